//! Which replicas can follow a source that compresses: each available kind, directly and through the relay in
//! each form. The outcome of each is one of: it works, it stops, or it silently loses rows.
//!
//! All of them are private servers; the source avoids the collations that MariaDB doesn't know.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use binlogz_relay::{Form, FormPolicy, ListenTls, Relay, RelayOptions, SourceOptions};
use binlogz_sandbox::cdc::CdcClient;
use binlogz_sandbox::{Error as SandboxError, MariadbSandbox, MysqlSandbox, SandboxServer, Tool};
use binlogz_source::ConnectOptions;

use crate::error::{Error, IoErrorContext, Result};
use crate::measure::replicas::MeasuredReplica;
use crate::safety::stop::RunStopper;

/// A replica that follows does so in a second; on busy cores in ten.
const PATIENCE: Duration = Duration::from_secs(60);
/// A client that receives nothing for this long has seen everything.
const SILENCE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(100);

/// Row transactions of the source.
const TRANSACTIONS: u32 = 20;
/// Rows of each: few enough for one event (binlog_row_event_max_size), since some clients tell events, not rows.
const ROWS: u32 = 30;
/// The relay's forms: the name in the results, the first file's name, the policy. Without a file name the relay chooses.
const FORMS: [(&str, &str, FormPolicy); 4] = [
    ("relay, received", "binlog.000001", FormPolicy::Always(Form::Received)),
    ("relay, compressed", "binlog-z.000001", FormPolicy::Always(Form::Compressed)),
    ("relay, uncompressed", "binlog-u.000001", FormPolicy::Always(Form::Uncompressed)),
    ("relay, auto", "", FormPolicy::Auto),
];

const COUNT: &str = "SELECT COUNT(*) FROM shop.orders";

/// The source that is followed.
struct FollowedSource {
    name: &'static str,
    port: u16,
    /// The first file's name there.
    first_file: String,
    encrypted: bool,
}

/// Sets them all up, one after the other.
pub(crate) fn examine(stopper: &RunStopper, tell: &mut dyn FnMut(&str)) -> Result<Vec<MeasuredReplica>> {
    tell("source");
    let source = source()?;
    let rows = count(&source)?;
    let first_file = "binlog.000001".to_owned();
    let direct = FollowedSource { name: "source", port: source.port(), first_file, encrypted: true };
    let relays = tempfile::tempdir().at("make a folder below", &std::env::temp_dir())?;
    let mut all = vec![direct];
    for (name, first_file, form) in FORMS {
        tell(name);
        all.push(relayed(&source, &relays.path().join(all.len().to_string()), name, first_file, form)?);
    }

    let mut replicas = Vec::new();
    let mut servers = Servers::default();
    for followed in &all {
        let settings: &[(&str, &[(&str, &str)])] = match followed.name {
            "source" => &[
                ("", &[]),
                ("a table filter", &[("replicate-wild-ignore-table", "shop.other%")]),
                ("4 appliers", &[("replica-parallel-workers", "4")]),
                ("1 applier", &[("replica-parallel-workers", "1")]),
                ("compression on", &[("binlog-transaction-compression", "ON")]),
            ],
            _ => &[("", &[])],
        };
        for (with, options) in settings {
            replicas.push(one(stopper, tell, followed, "mysqld", with, |followed| match options {
                [] => servers.mysqld(followed, rows),
                _ => mysqld(followed, options, rows),
            })?);
        }
        replicas
            .push(one(stopper, tell, followed, "MariaDB", "", |followed| servers.mariadb(followed, rows))?);
        replicas.push(one(stopper, tell, followed, "Python mysql-replication", "", cdc)?);
    }
    if let Some(direct) = all.first() {
        replicas.push(one(stopper, tell, direct, "mysqld", "semi-sync", |followed| {
            semi_sync(&source, followed)
        })?);
    }
    Ok(replicas)
}

/// The result of one replica.
struct Outcome {
    version: String,
    outcome: &'static str,
    rows_percent: Option<f64>,
    said: Option<String>,
}

fn one(
    stopper: &RunStopper,
    tell: &mut dyn FnMut(&str),
    followed: &FollowedSource,
    replica: &str,
    with: &str,
    follow: impl FnOnce(&FollowedSource) -> binlogz_sandbox::Result<Outcome>,
) -> Result<MeasuredReplica> {
    if stopper.is_stopped() {
        return Err(Error::Interrupted);
    }
    tell(&format!("{replica} from the {}", followed.name));
    let found = match follow(followed) {
        Err(SandboxError::Unavailable(why)) => {
            Outcome { version: String::new(), outcome: "not to be had", rows_percent: None, said: Some(why) }
        }
        found => found?,
    };
    Ok(MeasuredReplica {
        replica: format!("{replica} {}", found.version).trim_end().to_owned(),
        follows: followed.name.to_owned(),
        with: with.to_owned(),
        outcome: found.outcome.to_owned(),
        rows_percent: found.rows_percent,
        said: found.said,
    })
}

/// A source whose log begins with tables and goes on with compressed transactions.
fn source() -> Result<MysqlSandbox> {
    let source = Tool::Mysql.find()?.sandbox().readable_by_mariadb().compression(3).start()?;
    source.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(200)) \
         ENGINE=InnoDB; CREATE TABLE shop.other (id INT PRIMARY KEY) ENGINE=InnoDB;",
    )?;
    let row = "(REPEAT('apples and pears ', 10))";
    let values = vec![row; ROWS as usize].join(", ");
    let insert = format!("INSERT INTO shop.orders (note) VALUES {values};\n");
    source.sql(&insert.repeat(TRANSACTIONS as usize))?;
    source.sql("INSERT INTO shop.other VALUES (1)")?;
    Ok(source)
}

/// A relay with the whole log of the source. It ends with this process.
fn relayed(
    source: &MysqlSandbox,
    folder: &Path,
    name: &'static str,
    first_file: &str,
    form: FormPolicy,
) -> Result<FollowedSource> {
    let mut connect = ConnectOptions::new("binlogz bench");
    connect.set_url(&format!("mysql://repl@127.0.0.1:{}", source.port()))?;
    connect.set("password", Some("repl"))?;
    fs::create_dir_all(folder).at("create", folder)?;
    let followed = SourceOptions { servers: vec![connect], form, ..SourceOptions::new(folder.to_owned()) };
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let options = RelayOptions { listen_tls: ListenTls::Off, ..RelayOptions::new(followed, listen) };
    let failed = |error| Error::Load(format!("relay: {error}"));
    let relay = Relay::start(options).map_err(failed)?;
    let log = source.datadir().join("binlog.000001");
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let deadline = Instant::now() + PATIENCE;
    while size(&folder.join("binlog.000001")) < size(&log) {
        if Instant::now() > deadline {
            return Err(Error::Load("the relay did not receive the source's log in time".to_owned()));
        }
        sleep(POLL);
    }
    Ok(FollowedSource {
        name,
        port: relay.address().port(),
        first_file: first_file.to_owned(),
        encrypted: false,
    })
}

/// Servers without special settings, which follow one source after another, emptied before each.
#[derive(Default)]
struct Servers {
    mysqld: Option<MysqlSandbox>,
    mariadb: Option<MariadbSandbox>,
}

impl Servers {
    fn mysqld(&mut self, followed: &FollowedSource, rows: u64) -> binlogz_sandbox::Result<Outcome> {
        let mysql = Tool::Mysql.find()?;
        let replica = match &mut self.mysqld {
            Some(replica) => {
                replica.sql(
                    "STOP REPLICA; RESET REPLICA ALL; DROP DATABASE IF EXISTS shop; RESET BINARY LOGS AND GTIDS",
                )?;
                replica
            }
            none => none.insert(mysql.sandbox().start()?),
        };
        follow_by_gtid(replica, followed)?;
        outcome(replica, mysql.version(), rows)
    }

    fn mariadb(&mut self, followed: &FollowedSource, rows: u64) -> binlogz_sandbox::Result<Outcome> {
        let mariadb = Tool::Mariadb.find()?;
        let replica = match &mut self.mariadb {
            Some(replica) => {
                replica.sql("STOP SLAVE; RESET SLAVE ALL; DROP DATABASE IF EXISTS shop")?;
                replica
            }
            none => none.insert(MariadbSandbox::start(&[])?),
        };
        if followed.encrypted {
            replica.replicate_from_port(followed.port, &followed.first_file, 4)?;
        } else {
            replica.sql(&format!(
                "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='repl', MASTER_PASSWORD='repl', \
                 MASTER_SSL=0, MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=no, MASTER_LOG_FILE='{}', MASTER_LOG_POS=4; \
                 START SLAVE;",
                followed.port, followed.first_file
            ))?;
        }
        outcome(replica, mariadb.version(), rows)
    }
}

fn mysqld(
    followed: &FollowedSource,
    options: &[(&str, &str)],
    rows: u64,
) -> binlogz_sandbox::Result<Outcome> {
    let mysql = Tool::Mysql.find()?;
    let builder = options.iter().fold(mysql.sandbox(), |builder, (name, value)| builder.option(name, value));
    let replica = builder.start()?;
    follow_by_gtid(&replica, followed)?;
    outcome(&replica, mysql.version(), rows)
}

fn follow_by_gtid(replica: &MysqlSandbox, followed: &FollowedSource) -> binlogz_sandbox::Result<()> {
    let statement = format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={}, SOURCE_USER='repl', \
         SOURCE_PASSWORD='repl', SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, \
         SOURCE_AUTO_POSITION=1; START REPLICA;",
        followed.port
    );
    replica.sql(&statement).map(drop)
}

/// Waits until it has all rows, or an error.
fn outcome(replica: &SandboxServer, version: &str, rows: u64) -> binlogz_sandbox::Result<Outcome> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Before the tables exist it has no rows.
        let has = count(replica).unwrap_or(0);
        let status = replica.replica_status()?;
        let error = ["Last_SQL_Error", "Last_IO_Error"]
            .into_iter()
            .find_map(|field| status.get(field).filter(|text| !text.is_empty()).cloned());
        let outcome = match error {
            _ if has == rows => Some("works"),
            Some(_) => Some("stops"),
            None if Instant::now() > deadline => Some("loses rows"),
            None => None,
        };
        if let Some(outcome) = outcome {
            let rows_percent = Some(has as f64 / rows as f64 * 100.0);
            let said = error.filter(|_| outcome != "works");
            return Ok(Outcome { version: version.to_owned(), outcome, rows_percent, said });
        }
        sleep(POLL);
    }
}

fn count(server: &SandboxServer) -> binlogz_sandbox::Result<u64> {
    Ok(server.sql(COUNT)?.trim().parse().unwrap_or(0))
}

/// It prints the name of each event, and skips compressed transactions.
fn cdc(followed: &FollowedSource) -> binlogz_sandbox::Result<Outcome> {
    let version = Tool::Cdc.find()?.version().to_owned();
    let mut client = CdcClient::follow(followed.port, 3_999_999_938)?;
    let expected = TRANSACTIONS as usize + 1;
    let rows = |events: &[String]| events.iter().filter(|event| *event == "WriteRowsEvent").count();
    let deadline = Instant::now() + PATIENCE;
    let mut known = 0;
    let mut since = Instant::now();
    // Until it has everything, or nothing more comes because it is blocked or has ended.
    while Instant::now() < deadline && client.trouble().is_none() && (known == 0 || since.elapsed() < SILENCE)
    {
        let events = client.events();
        if rows(&events) >= expected {
            break;
        }
        if events.len() != known {
            (known, since) = (events.len(), Instant::now());
        }
        sleep(POLL);
    }
    let seen = rows(&client.events());
    let said = client.trouble();
    let outcome = match (seen >= expected, &said) {
        (true, _) => "works",
        (false, Some(_)) => "stops",
        (false, None) => "loses rows",
    };
    Ok(Outcome {
        version: format!("on Python {version}"),
        outcome,
        rows_percent: Some(seen as f64 / expected as f64 * 100.0),
        said,
    })
}

/// Whether a whole payload is acknowledged.
fn semi_sync(source: &MysqlSandbox, followed: &FollowedSource) -> binlogz_sandbox::Result<Outcome> {
    let mysql = Tool::Mysql.find()?;
    source.sql(
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'; \
         SET GLOBAL rpl_semi_sync_source_timeout = 60000, GLOBAL rpl_semi_sync_source_enabled = ON",
    )?;
    let replica = mysql.sandbox().start()?;
    replica.sql(
        "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'; \
         SET GLOBAL rpl_semi_sync_replica_enabled = ON",
    )?;
    follow_by_gtid(&replica, followed)?;
    let followed = outcome(&replica, mysql.version(), count(source)?)?;
    source.sql("INSERT INTO shop.orders (note) SELECT note FROM shop.orders LIMIT 50")?;
    let acknowledged = source.sql("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_yes_tx'")?;
    let acknowledged =
        acknowledged.split_whitespace().last().and_then(|count| count.parse().ok()).unwrap_or(0);
    source.sql("SET GLOBAL rpl_semi_sync_source_enabled = OFF")?;
    match acknowledged {
        0 => Ok(Outcome { outcome: "stops", said: Some("nothing was acknowledged".to_owned()), ..followed }),
        _ => Ok(followed),
    }
}
