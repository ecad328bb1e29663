//! Asks a source's servers, before a relay runs, what they are and whether it can follow them: for `relay check-config`.
//!
//! ```text
//!               MySQL                                     MariaDB
//! settings      log_bin, server_id, binlog_format,        log_bin, server_id, binlog_format, gtid_domain_id,
//!               gtid_mode                                 binlog_storage_engine (since 12.3)
//! rights        REPLICATION SLAVE: a dump is begun        the same
//!               REPLICATION CLIENT, where the log is      BINLOG MONITOR (before 10.5 REPLICATION CLIENT)
//!               listed (`start`)
//! ```
//!
//! Rights are tried, not read: roles and a server's defaults grant what SHOW GRANTS doesn't list.

use binlogz_source::{ConnectOptions, Connection, DumpOptions, Error as SourceError, RemoteLog};

use crate::error::{Error, Result};
use crate::options::SourceOptions;
use crate::receive::mariadb;
use crate::receive::product;
use crate::receive::servers::Servers;
use crate::receive::start::StartAt;

/// ER_UNKNOWN_SYSTEM_VARIABLE: servers have come to lack variables, as later ones have new ones.
const UNKNOWN_VARIABLE: u16 = 1193;
/// ER_ACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR.
const DENIED: [u16; 2] = [1045, 1227];

/// The answers of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCheck {
    /// The address of the server.
    pub server: String,
    /// What it is, in words: product, version, settings. `None`: it could not be asked, and `problems` says why.
    pub product: Option<String>,
    /// What keeps the relay from following it, each with what to do.
    pub problems: Vec<String>,
    /// What is good to know.
    pub notes: Vec<String>,
}

impl SourceOptions {
    /// Asks each server of the source what it is. Waits for each as long as its options say. Nothing is changed there.
    pub fn ask_servers(&self) -> Vec<ServerCheck> {
        self.servers.iter().map(|server| ask(self, server)).collect()
    }
}

fn ask(source: &SourceOptions, server: &ConnectOptions) -> ServerCheck {
    let mut check =
        ServerCheck { server: server.server(), product: None, problems: Vec::new(), notes: Vec::new() };
    let asked = product::connect(server).and_then(|connection| ask_connected(source, connection, &mut check));
    match asked {
        Ok(()) => check.try_rights(source, server),
        Err(Error::Unfollowable(why)) => check.problems.push(why),
        Err(error) => check.problems.push(format!("it can't be asked: {error}")),
    }
    check
}

fn ask_connected(source: &SourceOptions, mut connection: Connection, check: &mut ServerCheck) -> Result<()> {
    let version = connection.greeting().map(|greeting| product::of(&greeting.server_version));
    let mut settings = ServerSettings { connection: &mut connection, shown: Vec::new() };
    check.has_log(&mut settings)?;
    match mariadb::answers(settings.connection) {
        true => check.mariadb(source, &mut settings)?,
        false => check.mysql(source, &mut settings)?,
    }
    let shown = settings.shown.join(", ");
    check.product = Some(format!("{}; {shown}", version.unwrap_or_default()));
    Ok(())
}

/// A server's settings, as far as they were asked for.
struct ServerSettings<'c> {
    connection: &'c mut Connection,
    /// Names and values.
    shown: Vec<String>,
}

impl ServerSettings<'_> {
    /// A global variable, which is shown as well; `None`: the server has none of this name, or it is NULL or empty.
    fn value(&mut self, name: &str) -> Result<Option<String>> {
        match self.connection.first_row(&format!("SELECT @@GLOBAL.{name}")) {
            Ok(row) => {
                let value = row.optional_text(0)?.filter(|value| !value.is_empty()).map(str::to_owned);
                self.shown.extend(value.iter().map(|value| format!("{name} {value}")));
                Ok(value)
            }
            Err(error) if error.server_error().is_some_and(|error| error.code == UNKNOWN_VARIABLE) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl ServerCheck {
    /// What every source needs.
    fn has_log(&mut self, settings: &mut ServerSettings<'_>) -> Result<()> {
        if settings.value("log_bin")?.is_some_and(|value| ["0", "OFF"].contains(&value.as_str())) {
            self.problems
                .push("log_bin is OFF, so there is no log to follow: start it with --log-bin".into());
        }
        if settings.value("server_id")?.is_some_and(|value| value == "0") {
            self.problems
                .push("server_id is 0, with which a server refuses all replicas: give it another".into());
        }
        // Servers that have come to lack the variable write rows alone.
        if let Some(format) = settings.value("binlog_format")?.filter(|format| format != "ROW") {
            self.notes.push(format!(
                "binlog_format is {format}: changes that are logged as statements reach clients as statements, whatever \
                 tables their account has"
            ));
        }
        Ok(())
    }

    fn mysql(&mut self, source: &SourceOptions, settings: &mut ServerSettings<'_>) -> Result<()> {
        let mode = settings.value("gtid_mode")?.unwrap_or_else(|| "OFF".into());
        if mode == "ON" {
            return Ok(());
        }
        match (source.servers.len(), &source.start) {
            (0 | 1, StartAt::Earliest | StartAt::Now) => self.notes.push(format!(
                "gtid_mode is {mode}: replicas follow by file and position, and no other server can take its place"
            )),
            (_, StartAt::Gtids(_)) => self.problems.push(format!(
                "gtid_mode is {mode}, and the log is to begin after GTIDs: set it to ON, or begin with the earliest file"
            )),
            _ => self.problems.push(format!(
                "gtid_mode is {mode}, and servers of one source are compared by their GTIDs: set it to ON, or name one server"
            )),
        }
        Ok(())
    }

    fn mariadb(&mut self, source: &SourceOptions, settings: &mut ServerSettings<'_>) -> Result<()> {
        settings.value("gtid_domain_id")?;
        if let Some(engine) = settings.value("binlog_storage_engine")? {
            self.problems.push(format!(
                "its log is kept by {engine} (binlog_storage_engine), which the relay can't store: follow a server with log files"
            ));
        }
        let servers = Servers::new(source.servers.clone());
        self.problems.extend(mariadb::why_not(&servers, &source.start).map(ToOwned::to_owned));
        self.notes.push(
            "MariaDB's log is served as received: to its own replicas, by position or by its GTIDs, and to clients that read \
             its events"
                .into(),
        );
        Ok(())
    }

    /// Begins to read the log, as the relay does, and lists its files where that is needed.
    fn try_rights(&mut self, source: &SourceOptions, server: &ConnectOptions) {
        let has_log = self.problems.is_empty();
        let user = server.user.as_deref().unwrap_or("the account");
        if let Err(error) = RemoteLog::open(server, DumpOptions::to_the_end("", 4))
            .and_then(|mut log| log.next_event().map(drop))
            && has_log
        {
            self.problems.push(match is_denied(&error) {
                true => format!(
                    "{user} may not read its log ({error}): GRANT REPLICATION SLAVE ON *.* to it there"
                ),
                false => format!("its log can't be read: {error}"),
            });
        }
        if source.start == StartAt::Earliest {
            return;
        }
        let is_mariadb = self.product.as_deref().is_some_and(|product| product.starts_with(product::MARIADB));
        let listed = Connection::open(server).and_then(|mut connection| connection.query("SHOW BINARY LOGS"));
        if let Err(error) = listed {
            let right = match is_mariadb {
                true => "BINLOG MONITOR (before 10.5 REPLICATION CLIENT)",
                false => "REPLICATION CLIENT",
            };
            self.problems.push(match is_denied(&error) {
                true => format!(
                    "{user} may not list its logs, as start needs ({error}): GRANT {right} ON *.* to it there"
                ),
                false => format!("its logs can't be listed: {error}"),
            });
        }
    }
}

fn is_denied(error: &SourceError) -> bool {
    error.server_error().is_some_and(|error| DENIED.contains(&error.code))
}
