//! `binlogz table-at`: a table as it was, from the live one and the logs since.

mod dump;
mod unpacked;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_binlog::gtid::Gtid;
use binlogz_figures::counted;
use binlogz_flow::Input;
use binlogz_flow::events::{RunSummary, UnreadChanges};
use binlogz_row_changes::{
    LiveTable, LoggedStatements, PastError, PastFormat, PastSession, TableMoment, TouchedKeys,
    TouchedOutcome, TouchedTable,
};
use binlogz_source::ConnectOptions;
use clap::{Args, ValueEnum};

use super::choose::table;
use super::heads::{self, LogHead};
use super::{PROGRAM_NAME, failure, file_name};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain, name_unread, warn, warn_cut};
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, resolve};
use crate::output::{Destination, OutputTarget};
use crate::progress::WorkProgress;
use crate::server_args::{ServerArgs, with_place};
use crate::{time, units};

/// Show a table as it was at a moment, without a backup or from a dump
///
/// Reads the live table in one consistent view, and takes back all changes since the moment, row by row, as the binary logs
/// tell them. Writes SQL or CSV, or makes a new table on the server. The table itself is neither locked nor changed. What the
/// logs don't tell (a dropped column, a gap, images without all columns) is an error that names the place.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct TableAt {
    /// The moment: YYYY-MM-DD hh:mm:ss, local time, or with Z or an offset; or a GTID
    ///
    /// A time: before the first transaction, in the log's order, that was committed then or later. A GTID: just after this
    /// transaction.
    #[arg(long, value_name = "TIME|GTID", value_parser = moment)]
    at: GivenMoment,
    /// The server that has the table: HOST:PORT or a socket
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Go forward from this dump instead, which mysqldump wrote; the logs are to reach from it to the moment
    ///
    /// Text, also compressed with gzip or zstd, with the GTIDs or the position at which it was made (--single-transaction
    /// --source-data=2). The output is SQL.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["server", "into"], requires = "files")]
    dump: Option<PathBuf>,
    /// Output format [default: sql]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    /// Make this table on the server instead; it must not exist
    #[arg(long, value_name = "DB.TABLE", value_parser = table, conflicts_with_all = ["format", "output"])]
    into: Option<(String, String)>,
    /// Write to this file, which appears once it is whole [default: standard output]
    #[arg(long, short, value_name = "FILE|-")]
    output: Option<Destination>,
    /// Replace a file that exists; never one that a server's *.index beside it lists
    #[arg(long, requires = "output")]
    force: bool,
    /// Go on over incidents, where the server says that its log lacks changes; they stay as they are now
    #[arg(long, hide_short_help = true)]
    over_incidents: bool,
    /// Go on over statements logged as text that name other tables, as if no view, trigger, function or foreign key led to this one
    #[arg(long, hide_short_help = true)]
    over_statements: bool,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    keyring: KeyringArg,
    #[command(flatten)]
    connection: ServerArgs,
    /// The table
    #[arg(value_name = "DB.TABLE", value_parser = table)]
    of: (String, String),
    /// Binary logs in their order, or an archive, that reach from the moment to now [default: the server's own logs]
    #[arg(value_name = "FILE")]
    files: Vec<LogPath>,
}

/// How often tables may change while the logs are read.
const ATTEMPTS: usize = 5;

const EXAMPLES: &str = "Examples:
  binlogz table-at shop.orders --at '2026-11-22 23:10' --server db1:3306 | mysql scratch
  binlogz table-at shop.orders --at '2026-11-22 23:10' --server db1:3306 --into shop.orders_2310
  binlogz table-at shop.orders --at 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 -h db1 --format csv
  binlogz table-at shop.orders --at '2026-11-20 09:00' --server db1:3306 /backup/db1 binlog.000042
  binlogz table-at shop.orders --at '2026-11-20 09:00' --dump monday.sql /backup/db1 | mysql scratch

Exit codes: 0 done, 1 the logs don't have the moment, or changes since that can't be read, 2 trouble.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// A script for the mysql client that makes the table and fills it
    Sql,
    /// A line of column names, then a line for each row; NULL is an empty field, an empty text is ""
    Csv,
}

/// A moment, as it was given.
#[derive(Debug, Clone)]
struct GivenMoment {
    text: String,
    moment: TableMoment,
}

fn moment(text: &str) -> Result<GivenMoment, String> {
    let moment = match (text.parse::<Gtid>(), time::parse(text)) {
        (Ok(gtid), _) => TableMoment::After(gtid),
        (_, Ok(micros)) => TableMoment::Before(micros),
        (_, Err(error)) => return Err(format!("{error}; or a GTID, as UUID:23")),
    };
    Ok(GivenMoment { text: text.to_owned(), moment })
}

impl TableAt {
    pub(in crate::cmd) fn run(mut self) -> Result<Exit> {
        self.check_time()?;
        let target = match &self.output {
            None | Some(Destination::Stdout) => OutputTarget::Stdout,
            Some(destination) => destination.target(&self.files, self.force)?,
        };
        resolve(&mut self.files)?;
        if let Some(dump) = &self.dump {
            return self.ended(self.go_forward(dump, &target), &dump.display(), &target);
        }
        let connect = self.connect()?;
        self.ended(self.restore(&connect, &target), &connect.server(), &target)
    }

    /// The exit of a run. Errors name `from`.
    fn ended(
        &self,
        ran: Result<Exit, Trouble>,
        from: &dyn fmt::Display,
        target: &OutputTarget,
    ) -> Result<Exit> {
        match ran {
            Ok(exit) => Ok(exit),
            Err(Trouble::Line(failure)) => Err(failure),
            Err(Trouble::Past(PastError::Unmet(line))) => {
                complain(&line);
                Ok(Exit::Negative)
            }
            Err(Trouble::Past(PastError::Output(error))) => Err(CommandFailure::writing(target, &error)),
            Err(Trouble::Past(error @ (PastError::Server { .. } | PastError::Dump(_)))) => {
                Err(CommandFailure::of(&from, error))
            }
            Err(Trouble::Past(error)) => Err(CommandFailure::Line(error.to_string())),
        }
    }

    fn check_time(&self) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        match self.at.moment {
            TableMoment::Before(end) if end > i64::try_from(now).unwrap_or(i64::MAX) => {
                Err(CommandFailure::of(&"--at", format_args!("{}: is in the future", self.at.text)))
            }
            _ => Ok(()),
        }
    }

    fn connect(&self) -> Result<ConnectOptions> {
        if self.server.is_none() && !self.connection.names_a_place() {
            return Err(CommandFailure::Line(
                "needs the server that has the table: --server HOST:PORT; or a dump: --dump FILE".to_owned(),
            ));
        }
        let options = self.connection.connect_options(PROGRAM_NAME)?;
        match &self.server {
            Some(server) => with_place(&options, server).map_err(CommandFailure::Line),
            None => Ok(options),
        }
    }

    /// Statements that changed the table after the moment are only known when the logs were read: then they are read again.
    fn restore(&self, connect: &ConnectOptions, target: &OutputTarget) -> Result<Exit, Trouble> {
        let mut logged = None;
        for _ in 0..ATTEMPTS {
            match self.attempt(connect, target, logged.take())? {
                Attempt::Done(exit) => return Ok(exit),
                Attempt::Altered(statements) => logged = Some(statements),
            }
        }
        let (database, name) = &self.of;
        let line = format!(
            "statements change {database}.{name}, or other tables, faster than the logs can be read: try again"
        );
        Err(Trouble::Past(PastError::Refused(line)))
    }

    /// Goes through the logs once, with the statements in them if they are known.
    fn attempt(
        &self,
        connect: &ConnectOptions,
        target: &OutputTarget,
        logged: Option<Box<LoggedStatements>>,
    ) -> Result<Attempt, Trouble> {
        let asked = (self.of.0.as_str(), self.of.1.as_str());
        let mut session = PastSession::open(connect)?;
        let names = logged.as_ref().map(|logged| logged.names(asked)).transpose()?;
        let now = names.and_then(|mut names| names.pop()).unwrap_or_else(|| self.of.clone());
        let opened = LiveTable::open(&mut session, (&now.0, &now.1), 0)?;
        let Some(mut live) = opened else {
            if logged.is_some() {
                let line =
                    format!("{}.{} is not on the server, or this account may not see it", now.0, now.1);
                return Err(Trouble::Past(PastError::Refused(line)));
            }
            // Perhaps it has another name now.
            let needed = session.executed(!self.files.is_empty())?;
            let mut keys = TouchedKeys::of_statements(self.at.moment);
            self.read_logs(connect, &mut keys)?;
            return match keys.finish(&needed)? {
                TouchedOutcome::Altered(logged) => Ok(Attempt::Altered(logged)),
                TouchedOutcome::Rows(_) => Ok(Attempt::Done(Exit::Done)),
            };
        };
        if let Some(logged) = logged {
            live.follow(*logged, asked)?;
        }
        let parents = live.cascading_parents(&mut session)?;
        let hidden = parents.iter().find(|parent| parent.is_hidden()).map(ToString::to_string);
        let hidden = if session.logs_cascades()? { None } else { hidden };
        live.make_temporary(&mut session)?;
        match &self.into {
            Some((database, name)) => live.copy_into(&mut session, (database, name))?,
            None => {
                session.hold()?;
                live.keep_columns(&mut session)?;
            }
        }
        // Asked first: a trigger dropped after this is in the logs that are needed.
        let isolated = live.isolated_tables(&mut session)?;
        let needed = session.executed(!self.files.is_empty())?;
        let touched = TouchedTable { table: &live, parents, isolated };
        let mut keys = TouchedKeys::new(vec![touched], self.at.moment, self.over_statements);
        let mut exit = self.read_logs(connect, &mut keys)?;
        let (passed, cascades) = (keys.passed_statements(), keys.unlogged_cascades());
        let touched = match keys.finish(&needed)? {
            TouchedOutcome::Rows(touched) => touched,
            TouchedOutcome::Altered(logged) => return Ok(Attempt::Altered(logged)),
        };
        if !live.is_unchanged(&mut session)? {
            let line = "was changed by a statement while it was read: try again";
            return Err(CommandFailure::of(&format_args!("{}.{}", now.0, now.1), line).into());
        }
        exit = exit.max(passed_over(passed));
        let (database, name) = asked;
        if let Some(parent) = hidden {
            warn(&format!(
                "{database}.{name}: a foreign key refers to {parent}, which the account may not see: whether rows of the table were \
                 changed below the log through it isn't known"
            ));
            exit = Exit::Negative;
        }
        for first in cascades.into_iter().flatten() {
            warn(&format!(
                "{database}.{name}: rows that foreign keys changed below the log are as they are now; since the moment, a change may \
                 have been carried on like that first by {first}"
            ));
            exit = Exit::Negative;
        }
        if let Some(what) = live.unlike_then() {
            warn(&format!("{database}.{name} {what}"));
        }
        let mut key_count = 0;
        for touched in &touched {
            live.take_back(&mut session, touched)?;
            key_count += touched.key_count;
        }
        match &self.into {
            Some((database, name)) => {
                let rows = live.finish_copy(&mut session, (database, name))?;
                session.name_copies()?;
                let (rows, keys) = (counted(rows, "rows"), counted(key_count, "keys"));
                writeln!(io::stdout(), "{database}.{name}: {rows}; {keys} changed since")
                    .map_err(|error| CommandFailure::writing(&"standard output", &error))?;
            }
            None => {
                let when = match self.at.moment {
                    TableMoment::After(_) => "after",
                    TableMoment::Before(_) => "before",
                };
                let title = format!(
                    "binlogz table-at: {database}.{name} of {} as it was {when} {}",
                    connect.server(),
                    self.at.text
                );
                let format = match self.format {
                    Some(FormatArg::Csv) => PastFormat::Csv,
                    Some(FormatArg::Sql) | None => PastFormat::Sql,
                };
                let mut output = target.create_printed()?;
                let mut out = BufWriter::new(&mut output);
                live.write(&mut session, format, &title, &mut out)?;
                drop(out);
                output.finish()?;
            }
        }
        Ok(Attempt::Done(exit))
    }

    fn read_logs(&self, connect: &ConnectOptions, keys: &mut TouchedKeys<'_>) -> Result<Exit, Trouble> {
        match self.files.is_empty() {
            true => self.read_server(connect, keys),
            false => self.read_files(keys),
        }
    }

    fn read_files(&self, keys: &mut TouchedKeys<'_>) -> Result<Exit, Trouble> {
        let mut exit = Exit::Done;
        let keyring = self.keyring.open()?;
        let mut files = self.files.clone();
        if let Some(head) = heads::from_moment(&mut files, keyring.as_ref(), self.at.moment)? {
            self.check(&head)?;
        }
        let count = files.len();
        for (number, log) in files.iter().enumerate() {
            let input = log.open(keyring.as_ref())?;
            let progress = WorkProgress::of(log, log.size()?, (number + 1, count));
            let input = progress.watch(input);
            let name = file_name(log);
            let read = keys.read(input, &name, workers(self.jobs), &mut |bytes| progress.at(bytes));
            let RunSummary { read, unread } = read.map_err(|error| match error {
                PastError::Log(error) => Trouble::Line(failure(log, error)),
                error => Trouble::Past(error),
            })?;
            exit = exit.max(self.cross(log, unread)?);
            if let Some(cut) = read.cut {
                warn_cut(log, cut, "; they are left out");
            }
        }
        Ok(exit)
    }

    /// Whether the table can be told in spite of changes that could not be read; they are named. Changes from before the
    /// moment don't matter to a live table.
    fn cross(&self, log: &dyn fmt::Display, mut unread: UnreadChanges) -> Result<Exit, Trouble> {
        if let TableMoment::Before(moment) = self.at.moment {
            // Somewhere in the event's second.
            unread.retain(|unread| {
                let begin = i64::from(unread.timestamp) * 1_000_000;
                if self.dump.is_some() { begin < moment } else { begin + 1_000_000 > moment }
            });
        }
        let exit = name_unread(log, &unread, "the table may have been changed there");
        if unread.iter().all(|unread| unread.is_incident() && self.over_incidents) && unread.unnamed() == 0 {
            return Ok(exit);
        }
        let hint = match unread.iter().all(|unread| unread.is_incident()) {
            true => "; --over-incidents goes on without those changes",
            false => "",
        };
        let line = format!("the table can't be told: not all of its changes can be read{hint}");
        Err(Trouble::Past(PastError::Unmet(line)))
    }

    fn read_server(&self, connect: &ConnectOptions, keys: &mut TouchedKeys<'_>) -> Result<Exit, Trouble> {
        let mut exit = Exit::Done;
        let trouble = |error: binlogz_source::Error| CommandFailure::of(&connect.server(), error);
        let (logs, head) = heads::of_server(connect, self.at.moment)?;
        self.check(&head)?;
        while let Some((name, bytes)) = logs.next_log().map_err(trouble)? {
            let progress = WorkProgress::new(&name, None);
            let input = Input::Stream(bytes);
            let read = keys.read(input, &name, workers(self.jobs), &mut |bytes| progress.at(bytes));
            let RunSummary { read: _, unread } = read.map_err(|error| match error {
                PastError::Log(error) => Trouble::Line(failure(&LogPath::File(name.clone().into()), error)),
                error => Trouble::Past(error),
            })?;
            exit = exit.max(self.cross(&name, unread)?);
        }
        Ok(exit)
    }

    /// Earlier logs may have changed the table after the moment.
    fn check(&self, head: &LogHead) -> Result<(), Trouble> {
        match self.at.moment {
            TableMoment::Before(_) if !head.is_before(self.at.moment) && !head.is_first() => {
                Err(Trouble::Past(PastError::Unmet(format!(
                    "--at {}: the logs begin later, at {}",
                    self.at.text,
                    time::shown(head.created)
                ))))
            }
            _ => Ok(()),
        }
    }
}

/// Names statements that `--over-statements` passed over.
fn passed_over(statements: u64) -> Exit {
    if statements == 0 {
        return Exit::Done;
    }
    warn(&format!(
        "--over-statements passed over {} on other tables: what they changed in this one is not taken into account",
        counted(statements, "statements")
    ));
    Exit::Negative
}

/// How an attempt ended.
enum Attempt {
    Done(Exit),
    /// By these statements the tables are other ones than it took them for.
    Altered(Box<LoggedStatements>),
}

/// The reason for its end.
enum Trouble {
    Line(CommandFailure),
    Past(PastError),
}

impl From<CommandFailure> for Trouble {
    fn from(failure: CommandFailure) -> Self {
        Trouble::Line(failure)
    }
}

impl From<PastError> for Trouble {
    fn from(error: PastError) -> Self {
        Trouble::Past(error)
    }
}
