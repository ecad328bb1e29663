//! The logs that `undo`, `redo` and `rows` go through: files and archives, or those that a server sends.
//!
//! A server's log is read over a connection of its own, as it comes, and not stored. Events that the server writes
//! meanwhile are not read.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use binlogz_archive::part::BlockRun;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_encryption::Keyring;
use binlogz_exits::MaskedLogs;
use binlogz_flow::Input;
use binlogz_flow::events::RunSummary;
use binlogz_print::met::UnmetRequest;
use binlogz_row_changes::{CarryingKeys, Error, LogBytes, Range, RowSelection, ServerLogs, TableMoment};
use binlogz_schema::SchemaFile;
use binlogz_source::ConnectOptions;
use clap::Args;

use super::choose::ChooseArgs;
use super::heads::{self, LogHead, LogsBegin};
use super::looked_for::RecoverSearch;
use super::temporary_log::TemporaryLog;
use super::{PROGRAM_NAME, failure};
use crate::Exit;
use crate::failure::{CommandFailure, Result, name_unread, warn, warn_cut};
use crate::log_path::{LogPath, resolve};
use crate::progress::WorkProgress;
use crate::server_args::{ServerArgs, with_place};

/// The options that name the logs to read: files and archives, or a server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub(in crate::cmd) struct InputArgs {
    /// Read the binary logs of this server, HOST:PORT or a socket; FILE is then the name of one of them
    ///
    /// Without FILE all are read that can have what was chosen. Columns and keys are those of the server, unless --schema is
    /// given.
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Binary logs or relay logs, in their order; an archive; - is standard input
    #[arg(value_name = "FILE|-", required_unless_present_any = ["server", "host", "port", "socket"])]
    pub(super) files: Vec<LogPath>,
}

impl InputArgs {
    /// Whether they are a server's.
    pub(super) fn is_server(&self, connection: &ServerArgs) -> bool {
        self.server.is_some() || self.files.is_empty() && connection.names_a_place()
    }

    /// How to reach the server that has the logs, if one has them.
    pub(in crate::cmd) fn server(&self, connection: &ServerArgs) -> Result<Option<ConnectOptions>> {
        if !self.is_server(connection) {
            return Ok(None);
        }
        let options = connection.connect_options(PROGRAM_NAME)?;
        match &self.server {
            Some(server) => with_place(&options, server).map(Some).map_err(CommandFailure::Line),
            None => Ok(Some(options)),
        }
    }

    /// The logs. Of a server's logs, those that are named, or without names all that can have the chosen changes. If rows
    /// are followed, `earlier` ones matter as well.
    pub(super) fn logs(
        &self,
        server: Option<&ConnectOptions>,
        (choose, selection): (&ChooseArgs, &RowSelection),
        earlier: bool,
    ) -> Result<Vec<RecoverLog>> {
        let Some(connect) = server else {
            let mut files = self.files.clone();
            resolve(&mut files)?;
            let logs: Vec<_> = files.into_iter().map(RecoverLog::Path).collect();
            if let Some(place) = choose.transaction_at() {
                place.place_in(logs.iter().map(RecoverLog::name))?;
            }
            return Ok(logs);
        };
        if self.files.is_empty() && choose.has_position() {
            return Err(CommandFailure::Line(
                "--start-position and --stop-position need the names of the server's logs that they are for"
                    .to_owned(),
            ));
        }
        let all = heads::list(connect)?;
        let names: Vec<String> = match self.files.is_empty() {
            true => {
                let mut names: Vec<_> = all.iter().map(|(name, _)| name.clone()).collect();
                if let Some(place) = choose.transaction_at() {
                    let first = place.place_in(names.iter().cloned())?;
                    names.drain(..if earlier { 0 } else { first });
                }
                if earlier { names } else { with_chosen(names, connect, selection)? }
            }
            false => self.files.iter().map(ToString::to_string).collect(),
        };
        if let Some(place) = choose.transaction_at() {
            place.place_in(names.iter().cloned())?;
        }
        sent_logs(connect, names, &all)
    }

    /// The logs from the one on that has the moment, and where they begin.
    pub(super) fn logs_since(
        &self,
        server: Option<&ConnectOptions>,
        keyring: Option<&Keyring>,
        moment: TableMoment,
    ) -> Result<(Vec<RecoverLog>, Option<LogsBegin>)> {
        let Some(connect) = server else {
            let mut files = self.files.clone();
            resolve(&mut files)?;
            let begin = heads::from_moment(&mut files, keyring, moment)?;
            return Ok((files.into_iter().map(RecoverLog::Path).collect(), begin));
        };
        let all = heads::list(connect)?;
        let names: Vec<String> = match self.files.is_empty() {
            true => all.iter().map(|(name, _)| name.clone()).collect(),
            false => self.files.iter().map(ToString::to_string).collect(),
        };
        check_names(connect, &names, &all)?;
        if let (Some(read), Some((last, _))) = (names.last(), all.last())
            && read != last
        {
            warn(&format!(
                "{}: its logs after {read}, up to {last}, aren't read: what they changed stays",
                connect.server()
            ));
        }
        let (names, begin) = heads::from_moment_of_server(names, connect, moment)?.unzip();
        Ok((sent_logs(connect, names.unwrap_or_default(), &all)?, begin))
    }

    /// The inputs that the arguments name: a server, or files.
    pub(in crate::cmd) fn of(server: Option<String>, files: Vec<LogPath>) -> Self {
        InputArgs { server, files }
    }

    /// The logs that can have this transaction; of files, all.
    pub(in crate::cmd) fn logs_with(
        &self,
        server: Option<&ConnectOptions>,
        gtid: Gtid,
    ) -> Result<Vec<RecoverLog>> {
        let Some(connect) = server.filter(|_| self.files.is_empty()) else { return self.all_logs(server) };
        let mut gtids = GtidSet::new();
        gtids.add(gtid);
        let selection = RowSelection { gtids: Some(gtids), ..RowSelection::default() };
        let all = heads::list(connect)?;
        let names = all.iter().map(|(name, _)| name.clone()).collect();
        sent_logs(connect, with_chosen(names, connect, &selection)?, &all)
    }

    /// The logs: all of an archive or a server, unless some of a server's are named.
    pub(in crate::cmd) fn all_logs(&self, server: Option<&ConnectOptions>) -> Result<Vec<RecoverLog>> {
        let Some(connect) = server else {
            let mut files = self.files.clone();
            resolve(&mut files)?;
            return Ok(files.into_iter().map(RecoverLog::Path).collect());
        };
        let all = heads::list(connect)?;
        let names = match self.files.is_empty() {
            true => all.iter().map(|(name, _)| name.clone()).collect(),
            false => self.files.iter().map(ToString::to_string).collect(),
        };
        sent_logs(connect, names, &all)
    }
}

/// The logs of a server with these names, which are among all that it has.
fn sent_logs(connect: &ConnectOptions, names: Vec<String>, all: &[(String, u64)]) -> Result<Vec<RecoverLog>> {
    if names.is_empty() {
        return Err(CommandFailure::of(&connect.server(), "has no binary log"));
    }
    check_names(connect, &names, all)?;
    let mut logs = Vec::new();
    for name in names {
        let Some((_, size)) = all.iter().find(|(known, _)| *known == name) else {
            return Err(CommandFailure::of(&connect.server(), has_no(&name, all)));
        };
        let end = Arc::new(AtomicU64::new(u64::MAX));
        let log = SentLog { connect: connect.clone(), name, size: *size, end };
        logs.push(RecoverLog::OfServer(Box::new(log)));
    }
    Ok(logs)
}

/// Checks that a server has logs of these names, and that each is the one after the one before it.
fn check_names(connect: &ConnectOptions, names: &[String], all: &[(String, u64)]) -> Result<()> {
    let failed = |line: String| CommandFailure::of(&connect.server(), line);
    let mut before: Option<(&String, usize)> = None;
    for name in names {
        let Some(place) = all.iter().position(|(known, _)| known == name) else {
            return Err(failed(has_no(name, all)));
        };
        if let Some((last, next)) = before.filter(|(_, next)| *next != place) {
            let expected = match all.get(next) {
                Some((next, _)) => format!("{next}, the log after it"),
                None => "none, as it is the last log".to_owned(),
            };
            return Err(failed(format!("{name} is named after {last}, expected {expected}")));
        }
        before = Some((name, place + 1));
    }
    Ok(())
}

/// The logs from the one on before which nothing was chosen.
fn with_chosen(
    names: Vec<String>,
    connect: &ConnectOptions,
    selection: &RowSelection,
) -> Result<Vec<String>> {
    let RowSelection { gtids, start_time, .. } = selection;
    if gtids.is_none() && start_time.is_none() {
        return Ok(names);
    }
    let may_be_first = |head: &LogHead| {
        gtids.as_ref().is_some_and(|gtids| !head.follows_any(gtids))
            || start_time.is_some_and(|start| head.is_before(TableMoment::Before(start)))
    };
    Ok(heads::from_last(names, connect, &may_be_first)?.map(|(names, _)| names).unwrap_or_default())
}

/// The message that a server lacks a log.
fn has_no(name: &str, all: &[(String, u64)]) -> String {
    match (all.first(), all.last()) {
        (Some((first, _)), Some((last, _))) => {
            format!("has no binary log {name}; its logs are {first} to {last}")
        }
        _ => "has no binary log".to_owned(),
    }
}

/// Checks that logs which were named continue one another, each the one before it. A server's own do.
pub(super) fn follow_one_another(logs: &[RecoverLog], keyring: Option<&Keyring>) -> Result<()> {
    let paths: Vec<_> = logs.iter().filter_map(RecoverLog::path).cloned().collect();
    heads::follow_one_another(&paths, keyring)
}

/// A log that is read.
pub(in crate::cmd) enum RecoverLog {
    /// A file, a log in an archive, or standard input.
    Path(LogPath),
    OfServer(Box<SentLog>),
    /// Net changes of others.
    Temporary(TemporaryLog),
    /// One of these, as it may leave.
    Masked(Box<MaskedRecoverLog>),
}

/// A log that is read as it may leave.
pub(in crate::cmd) struct MaskedRecoverLog {
    log: RecoverLog,
    /// Among all.
    number: usize,
    exits: Arc<MaskedLogs>,
}

impl RecoverLog {
    /// Logs as they may leave: whatever opens one of them reads its masked form.
    pub(super) fn masked(logs: Vec<RecoverLog>, exits: &Arc<MaskedLogs>) -> Vec<RecoverLog> {
        let numbered = logs.into_iter().enumerate();
        let masked = numbered.map(|(number, log)| MaskedRecoverLog { log, number, exits: Arc::clone(exits) });
        masked.map(|log| RecoverLog::Masked(Box::new(log))).collect()
    }

    /// Where it is, unless a server sends it.
    pub(super) fn path(&self) -> Option<&LogPath> {
        match self {
            RecoverLog::Path(path) => Some(path),
            RecoverLog::OfServer(_) | RecoverLog::Temporary(_) => None,
            RecoverLog::Masked(masked) => masked.log.path(),
        }
    }

    /// Whether it is in an archive, of which only needed parts are read.
    pub(super) fn is_archived(&self) -> bool {
        matches!(self, RecoverLog::Path(path) if path.archived_gtids().is_some())
    }
}

/// A log that a server sends.
pub(in crate::cmd) struct SentLog {
    connect: ConnectOptions,
    name: String,
    size: u64,
    /// Where the log ended when it was read for the first time, in bytes: it ends there the next time as well.
    end: Arc<AtomicU64>,
}

impl fmt::Display for RecoverLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoverLog::Path(path) => path.fmt(f),
            RecoverLog::OfServer(log) => write!(f, "{}: {}", log.connect.server(), log.name),
            RecoverLog::Temporary(log) => f.write_str(log.name()),
            RecoverLog::Masked(masked) => masked.log.fmt(f),
        }
    }
}

impl RecoverLog {
    /// Opens it.
    pub(in crate::cmd) fn open(&self, keyring: Option<&Keyring>) -> Result<Input> {
        self.open_part(keyring, &mut |_| true)
    }

    pub(super) fn open_part(
        &self,
        keyring: Option<&Keyring>,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
    ) -> Result<Input> {
        match self {
            RecoverLog::Path(path) => path.open_part(keyring, is_wanted),
            RecoverLog::OfServer(log) => log.open(),
            RecoverLog::Temporary(log) => Ok(log.open()),
            // All blocks are read: an archive's keys are those of unmasked rows, and any statement may tell which column is which.
            RecoverLog::Masked(masked) => {
                let input = masked.log.open(keyring)?;
                let leaving = masked.exits.log_at(masked.number, &masked.log.to_string(), input);
                leaving.map_err(|error| CommandFailure::of(&masked.log, error))
            }
        }
    }

    /// When its server began it, in seconds since 1970; `None`: it can be read only once.
    pub(in crate::cmd) fn begun(&self, keyring: Option<&Keyring>) -> Result<Option<u32>> {
        if self.is_pipe() {
            return Ok(None);
        }
        Ok(Some(heads::head_of_input(self.open(keyring)?, self)?.created))
    }

    /// Whether it can be read only once.
    pub(in crate::cmd) fn is_pipe(&self) -> bool {
        match self {
            RecoverLog::Path(path) => !matches!(path.size(), Ok(Some(_))),
            RecoverLog::OfServer(_) | RecoverLog::Temporary(_) => false,
            RecoverLog::Masked(masked) => masked.log.is_pipe(),
        }
    }

    /// The log's name in output, without its folder or its server.
    pub(in crate::cmd) fn name(&self) -> String {
        match self {
            RecoverLog::Path(path) => super::file_name(path),
            RecoverLog::OfServer(log) => log.name.clone(),
            RecoverLog::Temporary(log) => log.name().to_owned(),
            RecoverLog::Masked(masked) => masked.log.name(),
        }
    }

    /// The bar of reading it.
    pub(in crate::cmd) fn progress(&self, place: (usize, usize)) -> Result<WorkProgress> {
        Ok(match self {
            RecoverLog::Path(path) => WorkProgress::of(path, path.size()?, place),
            RecoverLog::OfServer(log) => WorkProgress::of(&log.name, Some(log.size), place),
            RecoverLog::Temporary(log) => WorkProgress::of(&log.name(), None, place),
            RecoverLog::Masked(masked) => masked.log.progress(place)?,
        })
    }

    pub(super) fn failure(&self, error: Error) -> CommandFailure {
        failure(self, error)
    }
}

impl SentLog {
    fn open(&self) -> Result<Input> {
        let trouble = |error: binlogz_source::Error| CommandFailure::of_server(&self.connect.server(), error);
        let logs = ServerLogs::open(&self.connect, &self.name, heads::LOG_BEGIN).map_err(trouble)?;
        let log = logs.next_log().map_err(trouble)?.filter(|(name, _)| *name == self.name);
        let Some((_, bytes)) = log else {
            return Err(CommandFailure::of(
                &self.connect.server(),
                format_args!("sent nothing of {}", self.name),
            ));
        };
        let end = Arc::clone(&self.end);
        Ok(Input::Stream(Box::new(UpToEnd { bytes, count: 0, end })))
    }
}

/// The bytes of a log, which end where they ended the first time.
struct UpToEnd {
    bytes: LogBytes,
    count: u64,
    end: Arc<AtomicU64>,
}

impl Read for UpToEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.load(Ordering::Relaxed).saturating_sub(self.count);
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.bytes.read(buffer.get_mut(..room).unwrap_or_default())?;
        self.count += count as u64;
        if count == 0 && !buffer.is_empty() {
            self.end.fetch_min(self.count, Ordering::Relaxed);
        }
        Ok(count)
    }
}

/// One pass over logs.
pub(super) struct LogPass<'p> {
    pub(super) logs: &'p [RecoverLog],
    pub(super) choose: &'p ChooseArgs,
    pub(super) selection: &'p RowSelection,
    /// The foreign keys of which it matters what they changed below the log.
    pub(super) keys_below: Option<&'p CarryingKeys<'p>>,
    pub(super) schema: Option<&'p SchemaFile>,
    pub(super) keyring: Option<&'p Keyring>,
    /// As [`RecoverSearch::statements`].
    pub(super) statements: bool,
    /// Whether later changes of the same tables matter, though they are not chosen.
    pub(super) later: bool,
    /// Whether rows are followed from the beginning, so that all else matters as well.
    pub(super) earlier: bool,
    /// Of how many logs, from the first, it was said before what is wrong with them.
    pub(super) told: usize,
}

/// The result of a pass, apart from the rows.
#[must_use]
pub(super) struct PassFindings {
    /// Requests that nothing met.
    pub(super) unmet: Vec<UnmetRequest>,
    /// Negative: changes could not be read. They were named.
    pub(super) exit: Exit,
}

/// The consequence of changes that could not be read, for a warning.
pub(super) const UNREAD: &str = "its changes are left out";

/// A log that is to be read.
pub(super) struct OpenedLog<'p> {
    pub(super) log: &'p RecoverLog,
    pub(super) input: Input,
    pub(super) name: String,
    pub(super) range: Range,
    /// The transactions of the archive, which may be missing from the input.
    pub(super) archived_gtids: Option<GtidSet>,
    pub(super) looked_for: RecoverSearch<'p>,
    pub(super) progress: WorkProgress,
}

impl LogPass<'_> {
    /// Reads them in order, until `read` says that nothing more is needed. Changes that could not be read are named.
    pub(super) fn run(
        &self,
        read: &mut dyn FnMut(OpenedLog<'_>) -> Result<(RunSummary, bool)>,
    ) -> Result<PassFindings> {
        let count = self.logs.len();
        let mut unmet = Vec::new();
        let mut exit = Exit::Done;
        let mut is_over = false;
        // Whether anything of what was chosen may have passed.
        let mut has_begun = false;
        for (number, log) in self.logs.iter().enumerate() {
            let range = self.choose.range((number, count), &log.name());
            let mut looked_for =
                RecoverSearch::new((self.selection, self.keys_below), self.schema, range, self.statements);
            let input = log.open_part(self.keyring, &mut |run| {
                let is_in = looked_for.may_be_in(run);
                has_begun |= is_in;
                is_in || self.earlier || self.later && has_begun && looked_for.has_its_tables(run)
            })?;
            let archived_gtids = match log {
                RecoverLog::Path(path) => path.archived_gtids(),
                RecoverLog::OfServer(_) | RecoverLog::Temporary(_) | RecoverLog::Masked(_) => None,
            };
            let progress = log.progress((number + 1, count))?;
            let input = progress.watch(input);
            let name = log.name();
            let (RunSummary { read, unread }, goes_on) =
                read(OpenedLog { log, input, name, range, archived_gtids, looked_for, progress })?;
            let is_told = number < self.told;
            if !is_told {
                exit = exit.max(name_unread(log, &unread, UNREAD));
            }
            if let Some(cut) = read.cut.filter(|_| !is_told) {
                warn_cut(log, cut, "; they are left out");
            }
            is_over |= !goes_on;
            match (is_over, self.statements) {
                (false, _) => {}
                // A later statement may have changed the tables.
                (true, true) => continue,
                (true, false) => return Ok(PassFindings { unmet, exit }),
            }
            unmet.extend(self.choose.unmet_positions((number, count), read.bytes_read));
        }
        let stop = self.selection.stop_before_gtid.filter(|_| !is_over);
        unmet.extend(stop.map(|gtid| UnmetRequest::stop_before_gtid(&gtid)));
        Ok(PassFindings { unmet, exit })
    }
}
