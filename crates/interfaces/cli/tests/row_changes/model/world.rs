//! A seed's history on the server: phases of DDL and of changes by turns, and after each the rows of all tables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use binlogz_testkit::Result;
use binlogz_testkit::random::Random;

use super::costs::timed;
use super::recovered;
use super::session::ModelSession;
use super::snapshot::{self, TableRows};
use super::tables::Statements;
use crate::common::{Folder, PROGRAM, Ran};

const CHANGE_PHASES: usize = 3;
const SESSIONS_MAX: usize = 3;
const TRANSACTIONS_MAX: usize = 6;
/// How often sessions run side by side.
const AT_ONCE_PERCENT: usize = 40;

/// The rows of all tables at a place of the log.
pub(super) struct Snapshot {
    pub(super) gtid: String,
    /// Of the log among the server's logs.
    pub(super) log: usize,
    pub(super) position: u64,
    /// Whether DDL ran since the snapshot before.
    pub(super) is_after_ddl: bool,
    pub(super) tables: BTreeMap<String, TableRows>,
}

/// A server that histories happen on.
#[derive(Clone, Copy)]
pub(super) struct ModelServer<'a> {
    pub(super) server: &'a ModelSession<'a>,
    /// One that is to follow it.
    pub(super) target: Option<&'a ModelSession<'a>>,
    /// One that gets folded logs.
    pub(super) folded: Option<&'a ModelSession<'a>>,
    /// Asks for the GTID of its last transaction.
    pub(super) last_gtid: &'a dyn Fn() -> Result<String>,
}

/// A seed's history.
pub(super) struct World<'a> {
    pub(super) server: &'a ModelSession<'a>,
    pub(super) target: Option<&'a ModelSession<'a>>,
    pub(super) folded: Option<&'a ModelSession<'a>>,
    last_gtid: &'a dyn Fn() -> Result<String>,
    pub(super) is_mariadb: bool,
    pub(super) seed: u64,
    pub(super) database: String,
    pub(super) folder: Folder,
    /// The statements that made the tables before the first log.
    pub(super) created: String,
    /// From the filled tables to the end.
    pub(super) snapshots: Vec<Snapshot>,
    /// The logs from the first snapshot to the last.
    pub(super) logs: Vec<PathBuf>,
    pub(super) has_full_images: bool,
    pub(super) has_triggers: bool,
    /// Whether there were statements that replace rows.
    pub(super) has_replaced: bool,
    pub(super) random: Random,
    /// Of the first snapshot.
    pub(super) dump: Option<PathBuf>,
    keep: Option<PathBuf>,
    log_first: usize,
    runs: usize,
}

impl World<'_> {
    pub(super) fn new(server: ModelServer<'_>, seed: u64) -> Result<World<'_>> {
        let ModelServer { server, target, folded, last_gtid } = server;
        let keep = std::env::var_os("MODEL_KEEP").map(|folder| Path::new(&folder).join(seed.to_string()));
        if let Some(keep) = &keep {
            std::fs::create_dir_all(keep).unwrap();
        }
        let mut world = World {
            server,
            target,
            folded,
            last_gtid,
            is_mariadb: server.sql("SELECT VERSION()")?.contains("MariaDB"),
            seed,
            database: format!("m{seed}"),
            folder: Folder::new(),
            created: String::new(),
            snapshots: Vec::new(),
            logs: Vec::new(),
            has_full_images: true,
            has_triggers: true,
            has_replaced: false,
            random: Random::new(seed ^ 0x00c0_ffee),
            dump: None,
            keep,
            log_first: 0,
            runs: 0,
        };
        world.live(&mut Statements::new(seed))?;
        Ok(world)
    }

    fn live(&mut self, statements: &mut Statements) -> Result<()> {
        let database = self.database.clone();
        let metadata = statements.one_of(&["MINIMAL", "MINIMAL", "FULL"]);
        let image = statements.one_of(&["FULL", "FULL", "FULL", "FULL", "MINIMAL", "NOBLOB"]);
        let json = statements.one_of(&["", "", "", "PARTIAL_JSON"]);
        let compression = statements.one_of(&["OFF", "OFF", "ON"]);
        self.has_full_images = image == "FULL" && (json.is_empty() || self.is_mariadb);
        let others = match self.is_mariadb {
            true => format!("GLOBAL log_bin_compress = {compression}, GLOBAL log_bin_compress_min_len = 10"),
            false => format!(
                "GLOBAL binlog_row_value_options = '{json}', GLOBAL binlog_transaction_compression = {compression}"
            ),
        };
        let settings = format!(
            "SET GLOBAL binlog_row_metadata = {metadata}, GLOBAL binlog_row_image = {image}, {others};"
        );
        // What `recover` has brought to its target already; commands that read the server's logs need not read it again and again.
        if self.target.is_none() || self.seed % recovered::EACH == 1 {
            self.server.purge_binary_logs()?;
            if let Some(target) = self.target {
                recovered::pass_over(target, self.server)?;
            }
        }
        self.run("settings", &format!("{settings}\nCREATE DATABASE {database};\n"))?;
        let tables = statements.tables();
        self.created = format!("CREATE DATABASE {database};\nUSE {database};\n{};\n", tables.join(";\n"));
        self.run("tables", &format!("USE {database};\n{};\n", tables.join(";\n")))?;
        self.server.flush_binary_logs()?;
        self.log_first = self.server.binlogs()?.len() - 1;
        let live = snapshot::live_tables(self.server, &database)?;
        let fill = statements.fill(&live);
        self.run("fill", &format!("USE {database};\n{fill}"))?;
        self.take(false)?;
        if statements.percent(40) && !self.is_mariadb {
            self.dump()?;
        }
        for phase in 0..CHANGE_PHASES {
            if phase > 0 && statements.percent(60) {
                let live = snapshot::live_tables(self.server, &database)?;
                let ddl: Vec<String> =
                    (0..1 + statements.random.below(2)).map(|_| statements.ddl(&live)).collect();
                self.run("ddl", &format!("USE {database};\n{};\n", ddl.join(";\n")))?;
                self.take(true)?;
            }
            if statements.percent(30) {
                self.server.flush_binary_logs()?;
            }
            let live = snapshot::live_tables(self.server, &database)?;
            let count = 1 + statements.random.below(SESSIONS_MAX);
            let sessions: Vec<String> = (0..count)
                .map(|_| {
                    let transactions = 1 + statements.random.below(TRANSACTIONS_MAX);
                    format!("USE {database};\n{}", statements.session(&live, transactions))
                })
                .collect();
            // The order in which they commit isn't that of the seed then.
            if statements.percent(AT_ONCE_PERCENT) {
                self.run_at_once(&sessions);
            } else {
                sessions.iter().try_for_each(|session| self.run("session", session))?;
            }
            self.take(false)?;
        }
        self.server.flush_binary_logs()?;
        let logs = self.server.binlogs()?;
        self.logs = logs[self.log_first..logs.len() - 1].to_vec();
        Ok(())
    }

    /// What mysqldump writes of the first snapshot.
    fn dump(&mut self) -> Result<()> {
        let socket = format!("--socket={}", self.server.socket().display());
        let options =
            ["--no-defaults", "--user=root", &socket, "--single-transaction", "--hex-blob", "--databases"];
        let databases = [&*self.database];
        let options = options.iter().chain(&databases);
        let dumped = timed("mysqldump", || self.server.installed().run("mysqldump", options))?;
        // A view whose table is gone can't be dumped.
        if dumped.status.success() {
            self.dump = Some(self.note("dump", "sql", &dumped.stdout));
        }
        Ok(())
    }

    /// Runs statements in a session of their own; those that the server refuses are left out.
    fn run(&mut self, name: &str, sql: &str) -> Result<()> {
        self.has_replaced |= sql.contains("REPLACE");
        let path = self.note(name, "sql", sql);
        let mut client = self.server.client();
        client.arg("--force").stdin(File::open(path).unwrap());
        let ran = timed("sessions", || client.output().unwrap());
        self.note(name, "err", &ran.stderr);
        Ok(())
    }

    /// Runs sessions side by side: they wait for each other's rows, and a deadlock ends one's transaction.
    fn run_at_once(&mut self, sessions: &[String]) {
        let clients: Vec<_> = sessions
            .iter()
            .map(|sql| {
                self.has_replaced |= sql.contains("REPLACE");
                let path = self.note("session-of-several", "sql", sql);
                let mut client = self.server.client();
                client
                    .arg("--force")
                    .stdin(File::open(path).unwrap())
                    .stderr(Stdio::piped())
                    .stdout(Stdio::null());
                client.spawn().unwrap()
            })
            .collect();
        for client in clients {
            let ran = timed("sessions at once", || client.wait_with_output().unwrap());
            self.note("session-of-several", "err", &ran.stderr);
        }
    }

    /// Writes what may be looked at later.
    pub(super) fn note(&mut self, name: &str, extension: &str, text: impl AsRef<[u8]>) -> PathBuf {
        self.runs += 1;
        let name = format!("{:03}-{name}.{extension}", self.runs);
        if let Some(keep) = &self.keep {
            std::fs::write(keep.join(&name), text.as_ref()).unwrap();
        }
        self.folder.put(&name, text)
    }

    fn take(&mut self, is_after_ddl: bool) -> Result<()> {
        let log = self.server.binlogs()?.pop().unwrap();
        // Nobody else writes to the server.
        let position = std::fs::metadata(log).unwrap().len();
        let snapshot = Snapshot {
            gtid: (self.last_gtid)()?.trim().to_owned(),
            log: self.server.binlogs()?.len() - 1 - self.log_first,
            position,
            is_after_ddl,
            tables: self.rows()?,
        };
        let text = format!("{} {} {}\n{:#?}\n", snapshot.gtid, snapshot.log, position, snapshot.tables);
        self.note("snapshot", "txt", &text);
        self.snapshots.push(snapshot);
        Ok(())
    }

    /// Runs a script, which ends at its first error.
    pub(super) fn script(&mut self, name: &str, script: &[u8], options: &[&str]) -> Output {
        let path = self.note(name, "sql", script);
        let mut client = self.server.client();
        client.args(options).stdin(File::open(path).unwrap());
        timed("scripts", || client.output().unwrap())
    }

    /// The rows of all tables now.
    pub(super) fn rows(&self) -> Result<BTreeMap<String, TableRows>> {
        snapshot::rows(self.server, &self.database)
    }

    /// A command of the program, with its connection.
    pub(super) fn command(&mut self, command: &[&str], logs: &[PathBuf]) -> Ran {
        let front = [command, &["--no-defaults", "--user=root"]].concat();
        let args: Vec<OsString> =
            front.iter().map(Into::into).chain(logs.iter().map(|log| log.clone().into())).collect();
        let program = std::env::var_os("MODEL_PROGRAM").unwrap_or(PROGRAM.into());
        let mut process = Command::new(program);
        process.args(&args).current_dir(self.folder.path("")).stdin(Stdio::null());
        let ran: Ran = timed(command[0], || process.output().unwrap().into());
        let text = format!("-- {args:?}\n-- exit code {:?}\n-- {}\n{}", ran.code, ran.stderr, ran.text());
        self.note(command[0], "out", &text);
        ran
    }

    /// The options that choose what came after a snapshot, and the logs. Where images lack columns, mostly all logs: earlier images of the
    /// rows are in them. `has_gtids`: other options choose transactions.
    pub(super) fn since(&self, snapshot: usize, has_gtids: bool) -> (Vec<String>, Vec<PathBuf>) {
        let snapshot = &self.snapshots[snapshot];
        if self.has_full_images || self.seed.is_multiple_of(4) || self.is_mariadb {
            let position = vec!["--start-position".to_owned(), snapshot.position.to_string()];
            return (position, self.logs[snapshot.log..].to_vec());
        }
        let number = |gtid: &str| gtid.rsplit(':').next().unwrap().parse::<u64>().unwrap();
        let uuid = snapshot.gtid.split(':').next().unwrap();
        let (first, last) =
            (number(&snapshot.gtid) + 1, number(&self.snapshots[self.snapshots.len() - 1].gtid));
        let chosen = if has_gtids { Vec::new() } else { vec![format!("--gtids={uuid}:{first}-{last}")] };
        (chosen, self.logs.clone())
    }

    /// The server, as the options name it.
    pub(super) fn place(&self) -> String {
        self.server.socket().display().to_string()
    }

    /// Whether DDL ran after the snapshot.
    pub(super) fn has_ddl_after(&self, snapshot: usize) -> bool {
        self.snapshots[snapshot + 1..].iter().any(|snapshot| snapshot.is_after_ddl)
    }

    pub(super) fn end(self) -> Result<()> {
        self.server.drop_database(&self.database)
    }
}

/// The reasons that a command gives for leaving something out: its errors and warnings, and comments of its script.
pub(super) fn reason(ran: &Ran) -> String {
    let named = ran.text().lines().filter(|line| {
        line.starts_with("--") && (line.contains("not undone") || line.contains("not redone"))
    });
    let lines: Vec<&str> = ran.stderr.lines().chain(named).take(4).collect();
    lines.join(" | ").chars().take(600).collect()
}
