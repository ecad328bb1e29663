//! A restore drill: a private server, restored from dumps and logs, is compared with the live source at the same GTIDs.
//!
//! ```text
//! dumps, then logs → sandbox ─ what the logs lack as yet, from the source itself → sandbox
//! source: one consistent snapshot, with its GTIDs          CHECKSUM TABLE and definitions of both
//! ```
//!
//! The source is locked for an instant only: `FLUSH TABLES WITH READ LOCK`, a snapshot, its GTIDs, and unlocked again.
//! CHECKSUM TABLE of an InnoDB table then reads the snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use binlogz_binlog::gtid::GtidSet;
use binlogz_private_server::{MysqlSandbox, Tool};
use binlogz_source::ConnectOptions;
use serde::Serialize;

use crate::definitions::{self, DifferentDefinition};
use crate::error::{ReplayError, Result};
use crate::quoting::{identifier, literal};
use crate::recovery::count;
use crate::target::{OWN_SCHEMAS, TargetServer};
use crate::thread_errors;

/// How long the private server may take for the transactions it fetches from the source.
const CATCH_UP_S: u32 = 3600;
/// The channel of a replication that names none.
const DEFAULT_CHANNEL: &str = "";

/// The findings of a drill; the fields of its JSON.
#[derive(Debug, Serialize)]
pub struct RestoreDrill {
    /// Whether all tables and definitions are equal.
    pub equal: bool,
    /// All that both servers had when they were compared.
    pub gtids: String,
    /// Transactions that came from dumps and logs.
    pub from_logs: u64,
    /// Transactions that only the source had as yet.
    pub from_source: u64,
    /// How long restoring and comparing took.
    pub seconds: f64,
    /// All base tables of both servers.
    pub tables: Vec<ComparedTable>,
    /// How many databases, tables, views, routines, triggers, events and accounts have equal definitions.
    pub definitions_equal: usize,
    /// The others.
    pub definitions: Vec<DifferentDefinition>,
}

/// A table of both servers, or of one.
#[derive(Debug, Serialize)]
pub struct ComparedTable {
    /// Database and table.
    pub table: String,
    /// Its checksum at the source; `None`: it is not there, or can't be read.
    pub source: Option<String>,
    /// The checksum of the restored one.
    pub restored: Option<String>,
}

impl ComparedTable {
    /// Whether it is there on both sides, with equal rows.
    pub fn is_equal(&self) -> bool {
        self.source.is_some() && self.source == self.restored
    }
}

impl RestoreDrill {
    /// Brings the restored server to the moment of the source, and compares all tables and definitions. `begun` is when
    /// restoring began.
    ///
    /// # Errors
    ///
    /// A server that can't be asked; logs whose transactions are not the source's.
    pub fn compare(
        source: &mut TargetServer,
        restored: &mut TargetServer,
        begun: Instant,
    ) -> Result<RestoreDrill> {
        let of_logs = restored.executed()?;
        let gtids = snapshot(source)?;
        let mut ahead = of_logs.clone();
        ahead.subtract(&gtids);
        if !ahead.is_empty() {
            return Err(ReplayError::unfit(
                &source.name,
                format!(
                    "lacks {} transactions of the logs, {}: they are not its own",
                    ahead.count(),
                    ahead.brief()
                ),
            ));
        }
        let mut rest = gtids.clone();
        rest.subtract(&of_logs);
        if !rest.is_empty() {
            catch_up(restored, source, &gtids)?;
        }
        let ours = checksums(restored)?;
        let theirs = checksums(source)?;
        let (definitions_equal, definitions) = definitions::compare(source, restored)?;
        let tables = compared(&ours, &theirs);
        Ok(RestoreDrill {
            equal: tables.iter().all(ComparedTable::is_equal) && definitions.is_empty(),
            gtids: gtids.to_string().replace('\n', ""),
            from_logs: count(&of_logs),
            from_source: count(&rest),
            seconds: begun.elapsed().as_secs_f64(),
            tables,
            definitions_equal,
            definitions,
        })
    }
}

/// A private server to restore into. It goes when this is dropped.
pub struct RestoredServer(MysqlSandbox);

impl RestoredServer {
    /// Starts one, and restores these dumps into it: SQL, as mysqldump writes it.
    ///
    /// # Errors
    ///
    /// There is no MySQL here, or a dump that it refuses.
    pub fn start(dumps: &[PathBuf]) -> Result<RestoredServer> {
        let server = Tool::Mysql.find().and_then(|mysql| mysql.sandbox().start())?;
        // Its own transactions are no part of a backup.
        server.sql("RESET BINARY LOGS AND GTIDS")?;
        for dump in dumps {
            server.sql_file(dump).map_err(|error| ReplayError::place(dump.display(), error))?;
        }
        Ok(RestoredServer(server))
    }

    /// How to connect to it.
    ///
    /// # Errors
    ///
    /// Its socket's path is no place of a server.
    pub fn options(&self, program_name: &str) -> Result<ConnectOptions> {
        let mut options = ConnectOptions::new(program_name);
        options
            .set_server(&format!("root@{}", self.0.socket().display()))
            .map_err(|error| ReplayError::place("the private server", error))?;
        Ok(options)
    }
}

/// The checksums of the restored server and of the source side by side.
fn compared(ours: &Checksums, theirs: &Checksums) -> Vec<ComparedTable> {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let of = |table: &String| ComparedTable {
        table: table.clone(),
        source: theirs.get(table).cloned().flatten(),
        restored: ours.get(table).cloned().flatten(),
    };
    names.into_iter().map(of).collect()
}

/// Begins a snapshot of the source in this session; returns its GTIDs.
fn snapshot(source: &mut TargetServer) -> Result<GtidSet> {
    let mut gtids = GtidSet::new();
    let mut took = Ok(());
    // Unlocked whatever happens.
    for statement in ["FLUSH TABLES WITH READ LOCK", "START TRANSACTION WITH CONSISTENT SNAPSHOT"] {
        took = took.and_then(|()| source.ask(statement).map(drop));
    }
    let took = took.and_then(|()| source.executed()).map(|executed| gtids = executed);
    let unlocked = source.ask("UNLOCK TABLES").map(drop);
    took.and(unlocked)?;
    Ok(gtids)
}

/// Fetches the transactions that the logs lack from the source itself, by replication, and no transaction more.
fn catch_up(sandbox: &mut TargetServer, source: &mut TargetServer, gtids: &GtidSet) -> Result<()> {
    let (user, password) = source.options.account()?;
    let (host, port) = match source.options.socket_path() {
        Some(_) => ("127.0.0.1".to_owned(), source.first_row("SELECT @@GLOBAL.port")?.text(0)?.to_owned()),
        None => {
            let (host, port) = source.options.address();
            (host.to_owned(), port.to_string())
        }
    };
    let gtids = gtids.to_string().replace('\n', "");
    let password = String::from_utf8_lossy(password.as_bytes()).into_owned();
    let changed = sandbox.ask(&format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = {}, SOURCE_PORT = {port}, SOURCE_USER = {}, SOURCE_PASSWORD = {}, \
         GET_SOURCE_PUBLIC_KEY = 1, SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 10",
        literal(&host),
        literal(&user),
        literal(&password),
    ));
    // Not in the error's own words, which have the password.
    changed.map_err(|_| ReplayError::unfit(&source.name, "can't be followed for what the logs lack"))?;
    sandbox.ask(&format!("START REPLICA UNTIL SQL_AFTER_GTIDS = '{gtids}'"))?;
    let begun = Instant::now();
    loop {
        // 1 says that the time is over.
        let wait = sandbox.first_row(&format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', 1)"))?;
        if !wait.is_on(0)? {
            sandbox.ask("STOP REPLICA")?;
            return Ok(());
        }
        if let Some(error) = thread_errors::of(sandbox, DEFAULT_CHANNEL)? {
            return Err(ReplayError::unfit(
                &source.name,
                format!("follow it for what the logs lack: {error}"),
            ));
        }
        if begun.elapsed().as_secs() > CATCH_UP_S.into() {
            return Err(ReplayError::unfit(
                &source.name,
                "the private server did not catch up within an hour",
            ));
        }
    }
}

/// `CHECKSUM TABLE` of every base table, by name. `None`: it has none.
type Checksums = BTreeMap<String, Option<String>>;

fn checksums(server: &mut TargetServer) -> Result<Checksums> {
    let names = server.ask(&format!(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' \
         AND table_schema NOT IN ({OWN_SCHEMAS})"
    ));
    let mut found = BTreeMap::new();
    for row in names? {
        let [schema, table] = row.as_slice() else { continue };
        let told = server.ask(&format!("CHECKSUM TABLE {}.{}", identifier(schema), identifier(table)))?;
        let sum = told.into_iter().flatten().nth(1).filter(|sum| !sum.is_empty());
        if sum.is_none() {
            server.listener.complain(&format!("{}: {schema}.{table} has no checksum", server.name));
        }
        found.insert(format!("{schema}.{table}"), sum);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_equal_only_if_both_servers_have_its_checksum() {
        let sums = |sums: &[(&str, Option<&str>)]| -> Checksums {
            sums.iter().map(|(table, sum)| ((*table).to_owned(), sum.map(str::to_owned))).collect()
        };
        let ours = sums(&[("a.1", Some("7")), ("a.2", Some("7")), ("a.3", None), ("a.4", Some("1"))]);
        let theirs = sums(&[("a.1", Some("7")), ("a.2", Some("8")), ("a.3", None), ("a.5", Some("1"))]);
        let compared = compared(&ours, &theirs);
        let equal: Vec<_> = compared.iter().map(|table| (&*table.table, table.is_equal())).collect();
        assert_eq!(equal, [("a.1", true), ("a.2", false), ("a.3", false), ("a.4", false), ("a.5", false)]);
    }
}
