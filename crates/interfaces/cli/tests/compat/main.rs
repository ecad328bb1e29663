//! The compatibility matrix: which servers and clients follow a MySQL source, directly and through the relay in each form.
//!
//! ```text
//! replicas.rs   servers as replicas: every row compared, the replica and the relay killed and started again in between
//! newer.rs      what a newer source writes and older replicas don't know, a large transaction, a failover
//! links.rs      how a relay connects to its source
//! ways.rs       semi-synchronous replicas, and replicas of two sources
//! sources.rs    servers as the relay's source
//! clients/      change-data-capture clients: every row compared, the client killed and begun again in between
//! table.rs      what a cell says, and the page
//! ```
//!
//! `make compat` runs it: minutes to an hour, and servers that `make test` does not ask for. `PARTS` names the parts to run.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod clients;
#[path = "../common/mod.rs"]
mod common;
mod links;
mod newer;
mod replicas;
mod sources;
mod table;
mod ways;

use std::time::Duration;

use binlogz_testkit::{MysqlSandbox, SandboxServer, Tool, setting};

use common::Folder;
use common::relay::{Configuration, Relay, reserved_port};
use table::{Page, Table};

/// How long a replica or client that says nothing may take for what is written in milliseconds: `COMPAT_PATIENCE` seconds, on a busy machine.
fn patience() -> Duration {
    Duration::from_secs(setting("COMPAT_PATIENCE", 40))
}

/// The statements at the beginning of every cell: DDL, small transactions, a larger one, in the default collation of 9.7.
const BEGINNING: &str = "\
CREATE DATABASE compat;
CREATE TABLE compat.t (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(40), price DECIMAL(10,2), at DATETIME,
    KEY (word)) COLLATE utf8mb4_0900_ai_ci;
";
/// A hash of all rows, in words that 5.6 and MariaDB know.
const HASH: &str = "SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, HEX(word), price, at))) FROM compat.t";

/// Rows that a source writes at a time: transactions of one row, and one of many.
struct Rows;

impl Rows {
    const SINGLE: usize = 20;
    const TOGETHER: usize = 200;

    fn write(source: &SandboxServer) {
        let one = "INSERT INTO compat.t (word, price, at) VALUES ('ßé😀', 1.5, '2026-11-22 01:02:03');";
        let many: Vec<_> = (0..Self::TOGETHER).map(|row| format!("('word {row}', {row}, NULL)")).collect();
        let many = format!("INSERT INTO compat.t (word, price, at) VALUES {};", many.join(", "));
        source.sql(&format!("SET NAMES utf8mb4; {}{many}", one.repeat(Self::SINGLE))).unwrap();
    }
}

/// A source with the defaults of its version, with compression turned on.
fn source(tool: Tool) -> binlogz_testkit::Result<MysqlSandbox> {
    let source = tool.find()?.sandbox().compression(3).option("binlog-row-metadata", "FULL").start()?;
    source.sql(BEGINNING)?;
    Rows::write(&source);
    Ok(source)
}

/// The rights that a client's account needs at the source: the relay's own needs only the first two.
const RIGHTS: &str = "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT, RELOAD, SHOW DATABASES ON *.* TO";

/// The configuration of a relay of this source: an account for each form. `listen`: further keys of `[listen]`.
fn configuration(folder: &Folder, source: &SandboxServer, listen: &str) -> Configuration {
    let url = format!("mysql://repl@127.0.0.1:{}", source.port());
    let configuration = Configuration::of([url]).ports(reserved_port(), reserved_port());
    let configuration =
        FORMS.into_iter().fold(configuration, |configuration, (_, [own, forwarded], keys)| {
            configuration.account(own, keys).account(forwarded, format!("{keys}\n{FORWARDED}"))
        });
    let certificate = match certificate(folder) {
        true => "ssl_cert = \"relay.pem\"\nssl_key = \"relay.key\"",
        false => "",
    };
    configuration.listen(format!("{certificate}\n{listen}"))
}

/// The forms that an account may be given, each with two account names: one account stays at the relay, and the SQL of
/// the other goes on to the source, with an account of another name there.
const FORMS: [(&str, [&str; 2], &str); 5] = [
    ("`auto`", ["auto", "forwarded_auto"], "form = \"auto\""),
    ("`received`", ["received", "forwarded_received"], "form = \"received\""),
    ("`compressed`", ["compressed", "forwarded_compressed"], "form = \"compressed\""),
    ("`uncompressed`", ["uncompressed", "forwarded_uncompressed"], "form = \"uncompressed\""),
    ("`older_collations`", ["older", "forwarded_older"], "older_collations = true"),
];
const FORWARDED: &str = "source_user = \"repl\"\nsource_password_file = \"source.password\"";

/// The relays of one source.
struct Relays {
    usual: Relay,
    /// The relay that passes on to the source whatever it does not answer itself.
    forwarding: Relay,
    folders: [Folder; 2],
    /// The configuration of the usual relay.
    configuration: Configuration,
}

impl Relays {
    /// Starts relays of a source, and waits until they have all of its log.
    fn of(source: &MysqlSandbox) -> Relays {
        let folders = [Folder::new(), Folder::new()];
        let configuration = configuration(&folders[0], source, "");
        let mut usual = configuration.start(&folders[0]);
        let mut forwarding =
            self::configuration(&folders[1], source, "forward_sql = true").start(&folders[1]);
        usual.has_all_of(source);
        forwarding.has_all_of(source);
        Relays { usual, forwarding, folders, configuration }
    }

    /// Kills the usual one, as a crash would, and starts it again.
    fn restart(&mut self, meanwhile: impl FnOnce()) {
        self.usual.kill();
        meanwhile();
        self.usual = self.configuration.start(&self.folders[0]);
    }
}

/// Makes `relay.pem` and `relay.key`.
fn certificate(folder: &Folder) -> bool {
    let Ok(openssl) = Tool::Openssl.find() else { return false };
    let arguments =
        "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=relay -keyout relay.key -out relay.pem";
    let mut command = openssl.command("openssl");
    command.args(arguments.split(' ')).current_dir(folder.path("")).output().unwrap().status.success()
}

/// The parts of the matrix, by name.
const PARTS: [(&str, Part); 13] = [
    ("replicas", Part::BesideRelays(Tool::Mysql, replicas::table)),
    ("replicas-8.0", Part::BesideRelays(Tool::Mysql80, replicas::table_of_8_0)),
    ("clients", Part::BesideRelays(Tool::Mysql, clients::table)),
    ("forwarding", Part::BesideRelays(Tool::Mysql, clients::table_of_forwarding)),
    ("tls", Part::BesideRelays(Tool::Mysql, clients::table_of_tls)),
    ("maxwell", Part::Alone(clients::maxwell::table)),
    ("sql", Part::BesideRelays(Tool::Mysql, clients::sql::table)),
    ("sources", Part::Alone(sources::table)),
    ("newer", Part::Alone(newer::table)),
    ("large", Part::Alone(newer::large::table)),
    ("failover", Part::Alone(newer::failover::table)),
    ("links", Part::Alone(links::table)),
    ("ways", Part::Alone(ways::table)),
];

#[derive(Clone, Copy)]
enum Part {
    /// With a source of its own, and relays that follow it.
    BesideRelays(Tool, fn(&MysqlSandbox, &mut Relays) -> Table),
    Alone(fn() -> Table),
}

impl Part {
    /// `None` if the source can't be had.
    fn run(self) -> Option<Table> {
        match self {
            Part::Alone(table) => Some(table()),
            Part::BesideRelays(tool, table) => {
                if let Err(error) = tool.find() {
                    eprintln!("not tried: {error}");
                    return None;
                }
                let source = source(tool).unwrap();
                source.sql(&format!("{RIGHTS} repl@'127.0.0.1'")).unwrap();
                Some(table(&source, &mut Relays::of(&source)))
            }
        }
    }
}

#[test]
#[ignore = "make compat: minutes to an hour, and servers that make test does not ask for"]
fn the_matrix() {
    // As in `PARTS="clients sql" make compat`.
    let wanted = std::env::var("PARTS").unwrap_or_default();
    let wanted: Vec<_> = wanted.split_whitespace().collect();
    for name in &wanted {
        assert!(PARTS.iter().any(|(part, _)| part == name), "no part is called {name}");
    }
    let parts = PARTS.iter().filter(|(name, _)| wanted.is_empty() || wanted.contains(name));
    let mut page = Page::read();
    let mut faults = Vec::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = parts.map(|(_, part)| scope.spawn(|| part.run())).collect();
        let mut failed = false;
        for table in running {
            match table.join() {
                Ok(table) => table.into_iter().for_each(|table| {
                    faults.extend(table.faults());
                    page.add(table);
                }),
                Err(_) => failed = true,
            }
            // A run that is ended has what it has.
            page.write();
        }
        assert!(!failed, "a part of the matrix could not be run");
        assert_eq!(faults, [""; 0], "a reason or the rows were expected");
    });
}
