//! Servers as replicas, of the source itself and of the relay in each form.

use std::thread::sleep;
use std::time::{Duration, Instant};

use binlogz_testkit::{MariadbSandbox, Mysql56Sandbox, MysqlSandbox, Result, SandboxServer, Tool};

use crate::common::relay::Relay;
use crate::table::{Table, Verdict};
use crate::{FORMS, HASH, Relays, Rows, patience};

/// After a crash it asks again for what it has not applied.
const RECOVERS: [(&str, &str); 1] = [("relay-log-recovery", "ON")];
/// All that can be had, the newest first.
const REPLICAS: [Tool; 11] = [
    Tool::Mysql,
    Tool::Mysql80,
    Tool::Mysql56,
    Tool::Mysql5614,
    Tool::Mysql55,
    Tool::Mariadb118,
    Tool::Mariadb114,
    Tool::Mariadb,
    Tool::Mariadb105,
    Tool::Mariadb102,
    Tool::Mariadb101,
];

/// The replicas that `BINLOGZ_COMPAT_REPLICAS` names (`mysql-5.5 mariadb-10.5`); all if it isn't set.
pub(crate) fn wanted() -> Vec<Tool> {
    let named = std::env::var("BINLOGZ_COMPAT_REPLICAS").unwrap_or_default();
    let is_wanted =
        |tool: &Tool| named.is_empty() || named.split_whitespace().any(|name| name == tool.name());
    REPLICAS.into_iter().filter(is_wanted).collect()
}

/// How such a replica may follow a source: by GTID or not.
pub(crate) fn ways(tool: Tool) -> &'static [bool] {
    if tool.name().starts_with("mariadb") || tool == Tool::Mysql55 { &[false] } else { &[true, false] }
}

const POLL: Duration = Duration::from_millis(200);
/// An error that stays so long is not one of a connection that is tried again.
const ERROR_STAYS: Duration = Duration::from_secs(6);

/// The server that a replica follows, and where it begins by position.
#[derive(Clone, Copy)]
pub(crate) struct Followed {
    pub(crate) host: &'static str,
    pub(crate) port: u16,
    pub(crate) user: &'static str,
    pub(crate) password: &'static str,
    pub(crate) first_file: &'static str,
    /// Whether a client is to use TLS; servers don't.
    pub(crate) tls: bool,
}

impl Followed {
    /// The source itself.
    pub(crate) fn source(source: &MysqlSandbox) -> Followed {
        Followed {
            host: "127.0.0.1",
            port: source.port(),
            user: "repl",
            password: "repl",
            first_file: "binlog.000001",
            tls: false,
        }
    }

    /// A relay, with the account of a form.
    pub(crate) fn of(user: &'static str, relay: &Relay) -> Followed {
        let first_file = match user.trim_start_matches("forwarded_") {
            "received" => "binlog.000001",
            "compressed" => "binlog-z.000001",
            _ => "binlog-u.000001",
        };
        Followed { host: "127.0.0.1", port: relay.port, user, password: "secret", first_file, tls: false }
    }

    /// The source itself, and the relay in each form.
    pub(crate) fn all(source: &MysqlSandbox, relay: &Relay) -> Vec<Followed> {
        let forms = FORMS.iter().map(|(_, [user, _], _)| Followed::of(user, relay));
        std::iter::once(Followed::source(source)).chain(forms).collect()
    }

    /// The headings above them.
    pub(crate) fn columns() -> Vec<String> {
        let forms = FORMS.iter().map(|(name, _, _)| format!("relay, {name}"));
        std::iter::once("the source itself".to_owned()).chain(forms).collect()
    }
}

/// A replica of some version.
pub(crate) enum Replica {
    Mysql(MysqlSandbox),
    Mysql56(Mysql56Sandbox),
    Mariadb(MariadbSandbox),
}

impl Replica {
    pub(crate) fn start(tool: Tool) -> Result<Replica> {
        Ok(match tool {
            Tool::Mysql55 | Tool::Mysql5614 | Tool::Mysql56 => {
                Replica::Mysql56(Mysql56Sandbox::start_version(tool, &RECOVERS)?)
            }
            Tool::Mariadb
            | Tool::Mariadb101
            | Tool::Mariadb102
            | Tool::Mariadb105
            | Tool::Mariadb114
            | Tool::Mariadb118 => {
                let options = [&[("binlog-format", "ROW")], &RECOVERS[..]].concat();
                Replica::Mariadb(MariadbSandbox::start_version(tool, &options)?)
            }
            _ => Replica::Mysql(tool.find()?.sandbox().option("skip-replica-start", "ON").start()?),
        })
    }

    pub(crate) fn server(&self) -> &SandboxServer {
        match self {
            Replica::Mysql(server) => server,
            Replica::Mysql56(server) => server,
            Replica::Mariadb(server) => server,
        }
    }

    pub(crate) fn server_mut(&mut self) -> &mut SandboxServer {
        match self {
            Replica::Mysql(server) => server,
            Replica::Mysql56(server) => server,
            Replica::Mariadb(server) => server,
        }
    }

    fn is_old(&self) -> bool {
        !matches!(self, Replica::Mysql(_))
    }

    /// The name of its row, as in `MySQL 5.6.24, by GTID`.
    pub(crate) fn title(&self, by_gtid: bool) -> String {
        let kind = if matches!(self, Replica::Mariadb(_)) { "MariaDB" } else { "MySQL" };
        let way = if by_gtid { "GTID" } else { "position" };
        format!("{kind} {}, by {way}", self.server().installed().version())
    }

    /// As it was when it was made.
    pub(crate) fn forget(&self) -> Result<()> {
        let server = self.server();
        let version = server.installed().version();
        let (stop, reset) = match self {
            Replica::Mysql(_) if version.starts_with("8.0.") => {
                ("STOP REPLICA; RESET REPLICA ALL", "RESET MASTER")
            }
            Replica::Mysql(_) => ("STOP REPLICA; RESET REPLICA ALL", "RESET BINARY LOGS AND GTIDS"),
            _ => ("STOP SLAVE; RESET SLAVE ALL", "RESET MASTER"),
        };
        server.sql(&format!("{stop}; DROP DATABASE IF EXISTS compat; {reset}")).map(drop)
    }

    pub(crate) fn follow(&self, followed: Followed, by_gtid: bool) -> Result<()> {
        self.follow_as(followed, by_gtid, None)
    }

    /// Follows as one of several channels, if it is given a name.
    pub(crate) fn follow_as(&self, followed: Followed, by_gtid: bool, channel: Option<&str>) -> Result<()> {
        let Followed { host, port, user, password, first_file, .. } = followed;
        let word = if self.is_old() { "MASTER" } else { "SOURCE" };
        let begin = match (self, by_gtid) {
            (Replica::Mariadb(_), _) => {
                format!("MASTER_SSL=0, MASTER_USE_GTID=no, MASTER_LOG_FILE='{first_file}', MASTER_LOG_POS=4")
            }
            (_, true) => format!("{word}_AUTO_POSITION=1"),
            // It has no GTIDs.
            (Replica::Mysql56(server), false) if server.installed().version().starts_with("5.5.") => {
                format!("MASTER_LOG_FILE='{first_file}', MASTER_LOG_POS=4")
            }
            (_, false) => format!("{word}_AUTO_POSITION=0, {word}_LOG_FILE='{first_file}', {word}_LOG_POS=4"),
        };
        let key = if self.is_old() { "" } else { "SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, " };
        let change = if self.is_old() { "CHANGE MASTER" } else { "CHANGE REPLICATION SOURCE" };
        let (name, of_channel) = match (self, channel) {
            (_, None) => (String::new(), String::new()),
            (Replica::Mariadb(_), Some(channel)) => (format!(" '{channel}'"), String::new()),
            (_, Some(channel)) => (String::new(), format!(" FOR CHANNEL '{channel}'")),
        };
        self.server()
            .sql(&format!(
                "{change}{name} TO {word}_HOST='{host}', {word}_PORT={port}, {word}_USER='{user}', \
                 {word}_PASSWORD='{password}', {word}_CONNECT_RETRY=1, {key}{begin}{of_channel}; {}{name}{of_channel}",
                self.begin()
            ))
            .map(drop)
    }

    pub(crate) fn begin(&self) -> &'static str {
        if self.is_old() { "START SLAVE" } else { "START REPLICA" }
    }

    /// Waits until it has all rows; if it does not get them, why.
    fn wait_for_all(&self, source: &SandboxServer) -> Option<Verdict> {
        self.wait_for_rows(HASH, &source.sql(HASH).unwrap(), patience())
    }

    /// Waits until its answer is this; if it doesn't get there, why.
    pub(crate) fn wait_for_rows(
        &self,
        question: &str,
        expected: &str,
        patience: Duration,
    ) -> Option<Verdict> {
        let until = Instant::now() + patience;
        let mut erring: Option<Instant> = None;
        loop {
            let found = self.server().sql(question);
            if found.as_ref().is_ok_and(|found| found == expected) {
                return None;
            }
            let status = self.server().replica_status().unwrap();
            let errors = ["Last_IO_Error", "Last_SQL_Error"].map(|field| status.get(field).cloned());
            match errors.into_iter().flatten().find(|error| !error.is_empty()) {
                Some(error) if erring.get_or_insert_with(Instant::now).elapsed() > ERROR_STAYS => {
                    return Some(Verdict::Stops(error));
                }
                Some(_) => {}
                None => erring = None,
            }
            if Instant::now() > until {
                let count = |text: &str| text.split('\t').next().unwrap_or("0").trim().to_owned();
                let has = found.map_or("none".to_owned(), |found| count(&found));
                return Some(Verdict::Differs(format!("{has} of {} rows", count(expected))));
            }
            sleep(POLL);
        }
    }

    /// How it fares from the beginning on, and after a restart of its own.
    pub(crate) fn verdict(
        &mut self,
        source: &SandboxServer,
        followed: Followed,
        by_gtid: bool,
    ) -> Result<Verdict> {
        self.forget()?;
        self.follow(followed, by_gtid)?;
        if let Some(verdict) = self.wait_for_all(source) {
            return Ok(verdict);
        }
        self.server_mut().kill();
        Rows::write(source);
        self.server_mut().start()?;
        self.server().sql(self.begin())?;
        Ok(self.wait_for_all(source).unwrap_or(Verdict::Works))
    }
}

/// Every kind of replica, by GTID and by position.
pub(crate) fn table(source: &MysqlSandbox, relays: &mut Relays) -> Table {
    let mut table = Table::new(
        "Replicas of MySQL 9.7",
        "Every row compared; the replica is killed in between, and so is the relay. Each is started again after more was written.",
        Followed::columns(),
    );
    fill(&mut table, source, relays, |relay| Followed::all(source, relay));
    table
}

/// Every kind of replica, with MySQL 8.0 as the source.
pub(crate) fn table_of_8_0(source: &MysqlSandbox, relays: &mut Relays) -> Table {
    let mut table = Table::new(
        "Replicas of MySQL 8.0",
        "The same with MySQL 8.0.33 as the source.",
        ["the source itself", "relay, `uncompressed`", "relay, `older_collations`"].map(str::to_owned).into(),
    );
    fill(&mut table, source, relays, |relay| {
        vec![Followed::source(source), Followed::of("uncompressed", relay), Followed::of("older", relay)]
    });
    table
}

/// A row for each kind of replica. `all`: the source itself, and the relay.
fn fill(
    table: &mut Table,
    source: &MysqlSandbox,
    relays: &mut Relays,
    all: impl Fn(&Relay) -> Vec<Followed>,
) {
    for tool in wanted() {
        // All parts run at once, and a busy machine may take too long once.
        let mut replica = match Replica::start(tool).or_else(|_| Replica::start(tool)) {
            Ok(replica) => replica,
            Err(error) => {
                let cell = Verdict::NotTried(error.to_string());
                table.row(tool.name(), vec![cell; all(&relays.usual).len()]);
                continue;
            }
        };
        for by_gtid in ways(tool) {
            let name = replica.title(*by_gtid);
            let mut cells = Vec::new();
            for followed in all(&relays.usual) {
                // Some versions crash at a log that they can't read, and again when they are started with it.
                if replica.server().sql("SELECT 1").is_err() {
                    replica = Replica::start(tool).unwrap();
                }
                let mut verdict = replica.verdict(source, followed, *by_gtid);
                if followed.port == relays.usual.port && matches!(verdict, Ok(Verdict::Works)) {
                    relays.restart(|| Rows::write(source));
                    let after = replica.wait_for_all(source).unwrap_or(Verdict::Works);
                    verdict = Ok(after.prefixed("after a restart of the relay"));
                }
                cells.push(verdict.unwrap_or_else(|error| Verdict::NotTried(error.to_string())));
            }
            table.row(name, cells);
        }
    }
}
