//! `recover --verify`: restores into a private server, and compares every table with the live source at the same GTIDs.
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

use super::definitions::{self, DifferentDefinition};
use super::errors;
use super::target::{OWN_SCHEMAS, TargetServer, line, quoted};
use super::{PROGRAM_NAME, Recover, say};
use crate::Exit;
use crate::cmd::archive::json;
use crate::failure::{CommandFailure, Result, complain};
use crate::format::ReportFormat;
use crate::server_args::with_place;

/// How long the private server may take for the transactions it fetches from the source.
const CATCH_UP_S: u32 = 3600;
/// The channel of a replication that names none.
const DEFAULT_CHANNEL: &str = "";

/// The findings of a drill; the fields of its JSON.
#[derive(Debug, Serialize)]
struct Drill {
    equal: bool,
    /// All that both servers had when they were compared.
    gtids: String,
    /// Transactions that came from the logs, and those that only the source had as yet.
    from_logs: u64,
    from_source: u64,
    seconds: f64,
    tables: Vec<ComparedTable>,
    /// Databases, tables, views, routines, triggers, events and accounts whose definitions are equal, and the others.
    definitions_equal: usize,
    definitions: Vec<DifferentDefinition>,
}

#[derive(Debug, Serialize)]
struct ComparedTable {
    table: String,
    /// `None`: it is not there, or can't be read.
    source: Option<String>,
    restored: Option<String>,
}

impl ComparedTable {
    fn is_equal(&self) -> bool {
        self.source.is_some() && self.source == self.restored
    }
}

impl Recover {
    /// Makes the drill.
    pub(super) fn verify(&self, source: &str) -> Result<Exit> {
        let begun = Instant::now();
        let options = self.connection.connect_options(PROGRAM_NAME)?;
        let mut options =
            with_place(&options, source).map_err(|error| CommandFailure::of(&"--source", error))?;
        options.timeouts.answer = super::ANSWER_MAX;
        let mut source = TargetServer::connect(options)?;
        let sandbox = restored(&self.dump)?;
        let at = format!("root@{}", sandbox.socket().display());
        let own = with_place(&ConnectOptions::new(PROGRAM_NAME), &at);
        let mut own = own.map_err(|error| CommandFailure::of(&"the private server", error))?;
        own.timeouts.answer = super::ANSWER_MAX;
        let recovered = self.recover(own.clone())?;
        // What is missing then shows in the tables.
        if recovered != Exit::Done && !self.over_incidents {
            return Ok(recovered);
        }
        let mut sandbox_server = TargetServer::connect(own)?;
        let of_logs = sandbox_server.executed().map_err(line)?;
        let gtids = snapshot(&mut source)?;
        let mut ahead = of_logs.clone();
        ahead.subtract(&gtids);
        if !ahead.is_empty() {
            return Err(CommandFailure::of(
                &source.name,
                format_args!(
                    "lacks {} transactions of the logs, {}: they are not its own",
                    ahead.count(),
                    ahead.brief()
                ),
            ));
        }
        let mut rest = gtids.clone();
        rest.subtract(&of_logs);
        if !rest.is_empty() {
            catch_up(&mut sandbox_server, &mut source, &gtids)?;
        }
        let (ours, theirs) = (checksums(&mut sandbox_server)?, checksums(&mut source)?);
        let (definitions_equal, definitions) = definitions::compare(&mut source, &mut sandbox_server)?;
        let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        let tables: Vec<_> = names
            .into_iter()
            .map(|table| ComparedTable {
                table: table.clone(),
                source: theirs.get(table).cloned().flatten(),
                restored: ours.get(table).cloned().flatten(),
            })
            .collect();
        let drill = Drill {
            equal: tables.iter().all(ComparedTable::is_equal) && definitions.is_empty(),
            gtids: gtids.to_string().replace('\n', ""),
            from_logs: count(&of_logs),
            from_source: count(&rest),
            seconds: begun.elapsed().as_secs_f64(),
            tables,
            definitions_equal,
            definitions,
        };
        self.tell(&drill).map(|exit| exit.max(recovered))
    }

    fn tell(&self, drill: &Drill) -> Result<Exit> {
        if self.format == ReportFormat::Json {
            json::print(drill)?;
        } else {
            let Drill { from_logs, from_source, seconds, .. } = drill;
            say(&format!(
                "restored in {seconds:.1} s: {from_logs} transactions from dumps and logs, {from_source} that only the source \
                 has as yet"
            ))?;
            for table in drill.tables.iter().filter(|table| !table.is_equal()) {
                let shown = |sum: &Option<String>| sum.clone().unwrap_or_else(|| "not there".into());
                say(&format!(
                    "{}: differs: source {}, restored {}",
                    table.table,
                    shown(&table.source),
                    shown(&table.restored)
                ))?;
            }
            for definition in &drill.definitions {
                say(&definition.line())?;
            }
            say(&format!(
                "{} of {} definitions are equal",
                drill.definitions_equal,
                drill.definitions_equal + drill.definitions.len()
            ))?;
            let equal = drill.tables.iter().filter(|table| table.is_equal()).count();
            say(&format!("{equal} of {} tables are equal", drill.tables.len()))?;
        }
        Ok(if drill.equal { Exit::Done } else { Exit::Negative })
    }
}

/// A private server with these dumps.
fn restored(dumps: &[PathBuf]) -> Result<MysqlSandbox> {
    let trouble = |error: binlogz_private_server::Error| CommandFailure::of(&"the private server", error);
    let server = Tool::Mysql.find().and_then(|mysql| mysql.sandbox().start()).map_err(trouble)?;
    // Its own transactions are no part of a backup.
    server.sql("RESET BINARY LOGS AND GTIDS").map_err(trouble)?;
    for dump in dumps {
        server.sql_file(dump).map_err(|error| CommandFailure::of(&dump.display(), error))?;
    }
    Ok(server)
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
    took.and(unlocked).map_err(line)?;
    Ok(gtids)
}

/// Fetches the transactions that the logs lack from the source itself, by replication, and no transaction more.
fn catch_up(sandbox: &mut TargetServer, source: &mut TargetServer, gtids: &GtidSet) -> Result<()> {
    let (user, password) = source.options.account().map_err(line)?;
    let (host, port) = match source.options.socket_path() {
        Some(_) => ("127.0.0.1".to_owned(), source.one("SELECT @@GLOBAL.port")?),
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
        quoted(&host),
        quoted(&user),
        quoted(&password),
    ));
    // Not in the error's own words, which have the password.
    changed.map_err(|_| CommandFailure::of(&source.name, "can't be followed for what the logs lack"))?;
    sandbox.ask(&format!("START REPLICA UNTIL SQL_AFTER_GTIDS = '{gtids}'")).map_err(line)?;
    let begun = Instant::now();
    loop {
        if sandbox.one(&format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', 1)"))? == "0" {
            sandbox.ask("STOP REPLICA").map_err(line)?;
            return Ok(());
        }
        if let Some(error) = errors::of(sandbox, DEFAULT_CHANNEL).map_err(line)? {
            return Err(CommandFailure::of(
                &source.name,
                format_args!("follow it for what the logs lack: {error}"),
            ));
        }
        if begun.elapsed().as_secs() > CATCH_UP_S.into() {
            return Err(CommandFailure::of(
                &source.name,
                "the private server did not catch up within an hour",
            ));
        }
    }
}

/// `CHECKSUM TABLE` of every base table, by name.
fn checksums(server: &mut TargetServer) -> Result<BTreeMap<String, Option<String>>> {
    let names = server.ask(&format!(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' \
         AND table_schema NOT IN ({OWN_SCHEMAS})"
    ));
    let mut found = BTreeMap::new();
    for row in names.map_err(line)? {
        let [schema, table] = row.as_slice() else { continue };
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let told =
            server.ask(&format!("CHECKSUM TABLE {}.{}", quoted(schema), quoted(table))).map_err(line)?;
        let sum = told.into_iter().flatten().nth(1).filter(|sum| !sum.is_empty());
        if sum.is_none() {
            complain(&format!("{}: {schema}.{table} has no checksum", server.name));
        }
        found.insert(format!("{schema}.{table}"), sum);
    }
    Ok(found)
}

fn count(gtids: &GtidSet) -> u64 {
    u64::try_from(gtids.count()).unwrap_or(u64::MAX)
}
