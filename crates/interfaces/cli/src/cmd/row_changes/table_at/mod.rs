//! `binlogz table-at`: a table as it was, from the live one and the logs since.

mod dump;
mod parquet;
mod tables;
mod unpacked;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use binlogz_figures::counted;
use binlogz_flow::Input;
use binlogz_flow::events::{RunSummary, UnreadChanges};
use binlogz_row_changes::{
    CascadeDoubts, EmptyTables, LiveTable, LoggedStatements, PastError, PastFormat, PastMoment, PastSession,
    RestoreSteps, RestoredTables, TableMoment, TouchedKeys, restore,
};
use binlogz_source::ConnectOptions;
use clap::{Args, ValueEnum};

use super::choose::table;
use super::heads::{self, LogsBegin};
use super::moment::{GivenMoment, moment};
use super::{PROGRAM_NAME, failure, file_name};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain, name_unread, warn, warn_cut};
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, resolve};
use crate::output::{Destination, OpenOutput, OutputTarget};
use crate::progress::WorkProgress;
use crate::server_args::{ServerArgs, with_place};
use crate::similar::likely;
use crate::units;
use parquet::ParquetWriter;
use tables::{AskedTables, IntoPlace, PastTarget};

/// Show tables as they were at a moment, without a backup or from a dump
///
/// Reads the live tables in one consistent view, and takes back all changes since the moment, row by row, as the binary logs
/// tell them. Writes SQL, CSV, Parquet or a binary log, or makes new tables on the server. The tables themselves are neither locked nor changed. What the
/// logs don't tell (a dropped column, a gap, images without all columns) is an error that names the place.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct TableAt {
    /// The moment: '2026-11-22 23:10', 23:10, 'yesterday 23:10', -1h …; or a GTID
    ///
    /// A time: before the first transaction, in the log's order, that was committed then or later. A GTID: just after this
    /// transaction.
    #[arg(long, value_name = "TIME|GTID", value_parser = moment, allow_hyphen_values = true, aliases = ["until-datetime", "stop-datetime"])]
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
    /// Make this table on the server instead, or the tables in this database; none of them may exist
    #[arg(long, value_name = "DB.TABLE|DB", value_parser = IntoPlace::parse, conflicts_with_all = ["format", "output"])]
    into: Option<IntoPlace>,
    /// Write to this file, which appears once it is whole, or of several tables as CSV or Parquet to files in this folder [default: standard output]
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
    /// Leave this table out of those that 'DB.*' means, by its name at the moment; may be repeated
    #[arg(long, value_name = "DB.TABLE", value_parser = table)]
    ignore_table: Vec<(String, String)>,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    keyring: KeyringArg,
    #[command(flatten)]
    connection: ServerArgs,
    /// The table; more of them may follow, and 'DB.*' means all tables of a database
    #[arg(value_name = "DB.TABLE", value_parser = table)]
    of: (String, String),
    /// Binary logs in their order, or an archive, that reach from the moment to now [default: the server's own logs]
    ///
    /// An argument before all files is one more table if it looks like DB.TABLE and there is no such file. binlog.000042 is a file.
    #[arg(value_name = "DB.TABLE|FILE")]
    files: Vec<LogPath>,
}

const EXAMPLES: &str = "Examples:
  binlogz table-at shop.orders --at '2026-11-22 23:10' --server db1:3306 | mysql scratch
  binlogz table-at shop.orders --at '2026-11-22 23:10' --server db1:3306 --into shop.orders_2310
  binlogz table-at shop.orders shop.items --at '2026-11-22 23:10' --server db1:3306 --into shop_2310
  binlogz table-at 'shop.*' --at '2026-11-22 23:10' --server db1:3306 | mysql scratch
  binlogz table-at shop.orders --at 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 -h db1 --format csv
  binlogz table-at shop.orders --at '2026-11-22 23:10' --server db1:3306 --format binlog -o past
  binlogz table-at shop.orders --at '2026-11-20 09:00' --server db1:3306 /backup/db1 binlog.000042
  binlogz table-at shop.orders --at '2026-11-20 09:00' --dump monday.sql /backup/db1 | mysql scratch

Exit codes: 0 done, 1 the logs don't have the moment, or changes since that can't be read, 2 trouble.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// A script for the mysql client that makes the table and fills it
    Sql,
    /// A line of column names, then a line for each row; NULL is an empty field, an empty text is ""
    Csv,
    /// A binary log that inserts the rows, for mysqlbinlog and replicas; --output says where
    Binlog,
    /// A Parquet file for each table, with the types of binlogz export; --output says where
    Parquet,
}

impl FormatArg {
    /// The file name extension of a table in this format.
    fn suffix(self) -> &'static str {
        match self {
            FormatArg::Sql => "sql",
            FormatArg::Csv => "csv",
            FormatArg::Binlog => "binlog",
            FormatArg::Parquet => "parquet",
        }
    }

    /// The format's name, if its bytes are nothing for a terminal, and are never written without being told where.
    fn of_bytes(self) -> Option<&'static str> {
        match self {
            FormatArg::Sql | FormatArg::Csv => None,
            FormatArg::Binlog | FormatArg::Parquet => Some(self.suffix()),
        }
    }

    /// The format's name, if several tables are several files.
    fn of_one_table(self) -> Option<&'static str> {
        match self {
            FormatArg::Sql | FormatArg::Binlog => None,
            FormatArg::Csv | FormatArg::Parquet => Some(self.suffix()),
        }
    }
}

impl TableAt {
    pub(in crate::cmd) fn run(mut self) -> Result<Exit> {
        self.at.check("--at")?;
        let asked = AskedTables::split(&self.of, &mut self.files, &self.ignore_table)?;
        let separate = self.format.and_then(FormatArg::of_one_table).filter(|_| asked.single().is_none());
        if let (Some(format), None, None) =
            (self.format.and_then(FormatArg::of_bytes), separate, &self.output)
        {
            let line = format!("--format {format} needs --output, a file or - for a pipe");
            return Err(CommandFailure::Line(line));
        }
        let target = PastTarget::of(self.output.as_ref(), &self.files, (separate, self.force))?;
        if asked.single().is_none() && matches!(self.into, Some(IntoPlace::Table(..))) {
            let line = "--into DB.TABLE is for one table: --into DB makes several, under their own names";
            return Err(CommandFailure::Line(line.to_owned()));
        }
        resolve(&mut self.files)?;
        let text = match &target {
            PastTarget::Text(text) => text,
            PastTarget::Folder(..) => &OutputTarget::Stdout,
        };
        if let Some(dump) = &self.dump {
            if asked.single().is_none() {
                let line = "--dump is for one table: the logs go forward from its rows";
                return Err(CommandFailure::Line(line.to_owned()));
            }
            return self.ended(self.go_forward(dump, text), &dump.display(), text);
        }
        let connect = self.connect()?;
        if self.format == Some(FormatArg::Parquet) {
            ParquetWriter::find()?;
        }
        let restored = self.restore(&connect, (&asked, &target));
        self.ended(restored.map_err(|trouble| with_hint(trouble, &asked)), &connect.server(), text)
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
                Err(CommandFailure::of_server(&from.to_string(), error))
            }
            Err(Trouble::Past(error)) => Err(CommandFailure::Line(error.to_string())),
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

    /// Works out the tables, then writes them.
    fn restore(
        &self,
        connect: &ConnectOptions,
        (asked, target): (&AskedTables, &PastTarget),
    ) -> Result<Exit, Trouble> {
        let mut steps =
            TableAtSteps { args: self, connect, asked, target, targets: Vec::new(), exit: Exit::Done };
        let RestoredTables { mut session, tables: live, touched, doubts, passed_statements } =
            restore(connect, (&PastMoment::from(self.at.moment), self.over_statements), &mut steps)?;
        let TableAtSteps { targets, mut exit, .. } = steps;
        exit = exit.max(passed_over(passed_statements));
        for (table, doubts) in live.iter().zip(&doubts) {
            exit = exit.max(warn_of_cascades(table, doubts));
            if let Some(what) = table.unlike_then() {
                warn(&format!("{} {what}", shown(table)));
            }
        }
        match &self.into {
            Some(into) => {
                let mut lines = String::new();
                for (table, touched) in live.iter().zip(&touched) {
                    let (database, name) = into.of(table.asked().1);
                    let rows = table.finish_copy(&mut session, (&database, &name))?;
                    let rows = counted(rows, "rows");
                    let keys = counted(touched.key_count, "keys");
                    lines += &format!("{database}.{name}: {rows}; {keys} changed since\n");
                }
                session.name_copies()?;
                io::stdout()
                    .write_all(lines.as_bytes())
                    .map_err(|error| CommandFailure::writing(&"standard output", &error))?;
            }
            None => self.write(connect, &mut session, (asked, &live), &targets)?,
        }
        Ok(exit)
    }

    fn write(
        &self,
        connect: &ConnectOptions,
        session: &mut PastSession,
        (asked, live): (&AskedTables, &[LiveTable]),
        targets: &[OutputTarget],
    ) -> Result<(), Trouble> {
        if self.format == Some(FormatArg::Csv) {
            let written = live.iter().zip(targets).map(|(table, target)| write_csv(table, session, target));
            // They appear when all of them are whole.
            let outputs = written.collect::<Result<Vec<_>, _>>()?;
            return Ok(outputs.into_iter().try_for_each(OpenOutput::finish)?);
        }
        if self.format == Some(FormatArg::Parquet) {
            return ParquetWriter::find()?.write(live, session, targets);
        }
        let Some(target) = targets.first() else { return Ok(()) };
        if self.format == Some(FormatArg::Binlog) {
            let mut output = target.create_log(None)?;
            let mut out = BufWriter::new(&mut output);
            LiveTable::write_log(live, session, EmptyTables::LeftOut, &mut out)?;
            out.flush().map_err(PastError::Output)?;
            drop(out);
            return Ok(output.finish()?);
        }
        let when = match self.at.moment {
            TableMoment::After(_) => "after",
            TableMoment::Before(_) => "before",
        };
        let tables = asked.shown();
        let were = if live.len() == 1 { "it was" } else { "they were" };
        let title =
            format!("binlogz table-at: {tables} of {} as {were} {when} {}", connect.server(), self.at.text);
        let mut output = target.create_printed()?;
        let mut out = BufWriter::new(&mut output);
        LiveTable::write_script(live, session, &title, &mut out)?;
        drop(out);
        Ok(output.finish()?)
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
        if let Some(begin) = heads::from_moment(&mut files, keyring.as_ref(), self.at.moment)? {
            self.begin(keys, &begin)?;
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
        let trouble = |error: binlogz_source::Error| CommandFailure::of_server(&connect.server(), error);
        let (logs, begin) = heads::of_server(connect, self.at.moment)?;
        self.begin(keys, &begin)?;
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

    /// Takes where the logs begin.
    fn begin(&self, keys: &mut TouchedKeys<'_>, begin: &LogsBegin) -> Result<(), Trouble> {
        self.at.check_begin("--at", begin).map_err(PastError::Unmet)?;
        if begin.is_first {
            keys.begin_with(&begin.head);
        }
        Ok(())
    }
}

/// What `table-at` does while tables are worked out.
struct TableAtSteps<'r> {
    args: &'r TableAt,
    connect: &'r ConnectOptions,
    asked: &'r AskedTables,
    target: &'r PastTarget,
    /// Where the text of each table goes.
    targets: Vec<OutputTarget>,
    exit: Exit,
}

impl RestoreSteps for TableAtSteps<'_> {
    type Failure = Trouble;

    fn names(
        &self,
        session: &mut PastSession,
        logged: Option<&LoggedStatements>,
    ) -> Result<Vec<(String, String)>, PastError> {
        self.asked.at_moment(session, logged)
    }

    fn may_have_others(&self) -> bool {
        self.asked.has_databases()
    }

    fn likely(&self, missing: &str, there: Vec<String>) -> Option<String> {
        likely(missing, there)
    }

    fn begin(&mut self, session: &mut PastSession, live: &[LiveTable]) -> Result<(), Trouble> {
        let names: Vec<_> = live.iter().map(LiveTable::asked).collect();
        let names: Vec<_> =
            names.iter().map(|(database, name)| ((*database).to_owned(), (*name).to_owned())).collect();
        self.targets = self.target.of_tables(&names, &self.args.files, self.args.force)?;
        match &self.args.into {
            Some(into) => copy(session, live, into)?,
            None => {
                session.hold()?;
                live.iter().try_for_each(|table| table.keep_columns(session))?;
            }
        }
        Ok(())
    }

    fn needs_gtids(&self) -> bool {
        !self.args.files.is_empty()
    }

    fn read(&mut self, keys: &mut TouchedKeys<'_>) -> Result<(), Trouble> {
        // Of several passes, the last one counts.
        self.exit = self.args.read_logs(self.connect, keys)?;
        Ok(())
    }
}

/// Copies the tables as they are now.
fn copy(session: &mut PastSession, live: &[LiveTable], into: &IntoPlace) -> Result<(), PastError> {
    let names: Vec<_> = live.iter().map(|table| into.of(table.asked().1)).collect();
    for (database, name) in &names {
        session.check_free(database, name)?;
    }
    for (table, (database, name)) in live.iter().zip(&names) {
        table.copy_into(session, (database, name))?;
    }
    Ok(())
}

fn write_csv<'t>(
    table: &LiveTable,
    session: &mut PastSession,
    target: &'t OutputTarget,
) -> Result<OpenOutput<'t>, Trouble> {
    let mut output = target.create_printed()?;
    let mut out = BufWriter::new(&mut output);
    table.write(session, PastFormat::Csv, &mut out)?;
    out.flush().map_err(PastError::Output)?;
    drop(out);
    Ok(output)
}

/// The trouble, with what leaves a table without a key out of those of a database.
fn with_hint(trouble: Trouble, asked: &AskedTables) -> Trouble {
    match trouble {
        Trouble::Past(PastError::Keyless(line)) if asked.has_databases() => {
            Trouble::Line(CommandFailure::Line(format!("{line}; --ignore-table leaves it out")))
        }
        trouble => trouble,
    }
}

fn shown(table: &LiveTable) -> String {
    let (database, name) = table.asked();
    format!("{database}.{name}")
}

/// Names what foreign keys may have changed below the log.
fn warn_of_cascades(table: &LiveTable, doubts: &CascadeDoubts) -> Exit {
    let mut exit = Exit::Done;
    for line in doubts.lines() {
        warn(&format!("{}: {line}", shown(table)));
        exit = Exit::Negative;
    }
    exit
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
