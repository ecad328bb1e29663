//! `undo --all --until MOMENT`: everything since a moment goes back, each row once however often it changed.
//!
//! ```text
//! logs since the moment ─ fold → net changes, a log in a temporary file ─ the passes of undo → script, log, server
//! ```
//!
//! So whatever `undo` means is meant here: it names what can't be taken back, compares each row, and keeps its guards. A run that was
//! killed is continued by another one, as what it has done is a change since the moment as well.

use std::num::NonZeroU64;

use binlogz_archive::Scratch;
use binlogz_binlog::gtid::GtidSet;
use binlogz_encryption::Keyring;
use binlogz_figures::counted;
use binlogz_row_changes::{AppliedChanges, FoldAim, FoldOptions, FoldSummary, RowSelection, TableMoment};
use binlogz_schema::SchemaFile;
use binlogz_source::{ConnectOptions, Connection};
use clap::Args;

use super::folding::{FoldedLogs, LogFold, SchemaOfAll};
use super::heads::LogsBegin;
use super::inputs::{InputArgs, RecoverLog, follow_one_another};
use super::moment::{GivenMoment, moment};
use super::temporary_log::TemporaryLog;
use super::unlogged::ServerLogging;
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain};
use crate::time;

/// The options of going back to a moment.
#[derive(Debug, Args)]
#[command(next_help_heading = "Going back to a moment")]
pub(super) struct RewindArgs {
    /// Take back all changes since --until, each row once however often it changed: of all tables, or those of --table, which takes 'DB.*' too
    #[arg(long, hide_short_help = true, requires = "until", conflicts_with_all = ["gtids", "stop_before_gtid", "start_position", "stop_position", "transaction_at", "start_datetime", "stop_datetime", "thread_id", "operation", "where", "cascades", "across_ddl"])]
    all: bool,
    /// The moment to go back to: before the first transaction that was committed at this time or later, or just after this GTID
    #[arg(long, hide_short_help = true, value_name = "TIME|GTID", value_parser = moment, allow_hyphen_values = true, requires = "all")]
    until: Option<GivenMoment>,
}

impl RewindArgs {
    /// The moment, if there is one.
    pub(super) fn moment(&self) -> Option<&GivenMoment> {
        self.until.as_ref()
    }
}

/// The net changes since a moment.
pub(super) struct ChangesSince {
    /// They, as a log, until that is taken.
    log: Option<RecoverLog>,
    pub(super) summary: FoldSummary,
    /// The name of the last log that was read, and where it ended.
    pub(super) last: Option<(String, u64)>,
    /// What the server logs, if there is one.
    logging: Option<ServerLogging>,
    /// Whether all tables go back.
    is_of_all: bool,
}

/// Where the changes since a moment are.
pub(super) struct RewindSources<'r> {
    pub(super) input: &'r InputArgs,
    pub(super) log_server: Option<&'r ConnectOptions>,
    /// The one that wrote them, as far as there is one: whose logs are read, or that is changed.
    pub(super) server: Option<&'r ConnectOptions>,
    pub(super) keyring: Option<&'r Keyring>,
    pub(super) known: &'r SchemaOfAll,
    pub(super) selection: &'r RowSelection,
    pub(super) workers: usize,
}

impl RewindSources<'_> {
    /// Folds all that came since a moment; `None`: the logs don't have it, or have changes that can't be read, which was told.
    pub(super) fn changes_since(&self, since: &GivenMoment) -> Result<Option<ChangesSince>> {
        since.check("--until")?;
        let logging = self.server.map(ServerLogging::of).transpose()?;
        if logging.as_ref().is_some_and(|logging| logging.name_unlogged(&self.selection.tables) != Exit::Done)
        {
            return Ok(None);
        }
        let (logs, begin) = self.input.logs_since(self.log_server, self.keyring, since.moment)?;
        if let Some(Err(why)) = begin.as_ref().map(|begin| check_begin(since, begin)) {
            complain(&why);
            return Ok(None);
        }
        let is_before_logs = begin.is_some_and(|begin| !begin.head.is_before(since.moment));
        follow_one_another(&logs, self.keyring)?;
        let tables = self.known.tables(&logs, self.keyring, self.workers)?;
        let fold =
            LogFold { logs: &logs, keyring: self.keyring, tables: Some(&tables), workers: self.workers };
        let options = FoldOptions {
            excluded: GtidSet::default(),
            since: Some(since.moment),
            until: None,
            selection: self.selection.clone(),
            aim: FoldAim::TakeBack,
            transaction_rows: NonZeroU64::MAX,
            previous: None,
        };
        let temporary = |error: std::io::Error| CommandFailure::of(&"temporary file", error);
        let mut bytes = Scratch::new().map_err(temporary)?;
        let Some(FoldedLogs { summary, last }) = fold.run(options, &mut bytes, &"temporary file")? else {
            return Ok(None);
        };
        if let (TableMoment::After(gtid), false) = (since.moment, summary.has_begun) {
            complain(&format!("--until {}", TableMoment::absence(&gtid, &summary.up_to_end)));
            return Ok(None);
        }
        // Each log without GTIDs looks like a server's first.
        let has_gtids = !summary.gtids.is_empty();
        if let (TableMoment::Before(_), true, false) = (since.moment, is_before_logs, has_gtids) {
            complain(&format!(
                "--until {}: the logs have no transaction of before it, and no GTIDs: whether others came before them isn't known",
                since.text
            ));
            return Ok(None);
        }
        let name = format!("net changes since {}", since.text);
        let log = RecoverLog::Temporary(TemporaryLog::new(bytes, name));
        // Tables that are asked for were looked at.
        let is_of_all = self.selection.tables.is_empty();
        Ok(Some(ChangesSince { log: Some(log), summary, last, logging, is_of_all }))
    }
}

/// Checks that logs which begin here tell all tables at a moment.
fn check_begin(since: &GivenMoment, begin: &LogsBegin) -> Result<(), String> {
    since.check_begin("--until", begin)?;
    match begin.head.begins_after(since.moment) {
        true => Err(format!(
            "--until {}: the first log begins later, at {}: what the tables were before it isn't known",
            since.text,
            time::shown(begin.head.created)
        )),
        false => Ok(()),
    }
}

impl ChangesSince {
    /// The net changes as a log, once.
    pub(super) fn take_log(&mut self) -> Option<RecoverLog> {
        self.log.take()
    }

    /// Says what was folded.
    pub(super) fn shown(&self) -> String {
        let FoldSummary { transactions, changes, inserted, updated, deleted, .. } = self.summary;
        format!(
            "{} with {} since then, {}",
            counted(transactions, "transactions"),
            counted(changes, "row changes"),
            counted(inserted + updated + deleted, "net changes")
        )
    }

    /// Names rows of other tables that were changed together with those chosen, rows that foreign keys may have changed below the log, and what the
    /// server doesn't log. Negative, if there are some, or a transaction is cut off, which was told.
    pub(super) fn name_doubts(&self) -> Exit {
        let mut lacking = self.summary.borders.iter().filter(|border| border.may_lack_rows()).peekable();
        let lacks_rows = lacking.peek().is_some();
        for border in lacking {
            complain(&format!(
                "{} {}: such rows aren't undone; the first is {}",
                counted(border.count, "transactions"),
                border.reason(),
                border.first
            ));
        }
        let exit = if lacks_rows { Exit::Negative } else { Exit::Done };
        exit.max(self.name_together()).max(self.name_unlogged())
    }

    fn name_unlogged(&self) -> Exit {
        let Some(logging) = &self.logging else { return Exit::Done };
        let others = match self.is_of_all {
            true => logging.name_others("changes in the others stay"),
            false => Exit::Done,
        };
        others.max(logging.name_doubt())
    }

    fn name_together(&self) -> Exit {
        if let Some(note) = &self.summary.together {
            complain(&format!("{note}; without --table they go back too"));
            return Exit::Negative;
        }
        if self.summary.cut.is_some() { Exit::Negative } else { Exit::Done }
    }

    /// Names chosen tables that neither the schema has nor the logs, as a misspelt one. Negative, if there are some.
    pub(super) fn name_unknown(
        &self,
        selection: &RowSelection,
        described: Option<&SchemaFile>,
        has_rows: &dyn Fn(usize) -> bool,
    ) -> Exit {
        let mut exit = Exit::Done;
        let unknown = match described {
            Some(_) => "the schema has no such table, and the logs have no row of it since the moment",
            None => {
                "the logs have no row of it, and without --schema it isn't known whether there is such a table"
            }
        };
        for (place, (database, table)) in selection.tables.iter().enumerate() {
            let is_known = described.is_some_and(|described| match table == RowSelection::ALL_TABLES {
                true => described.has_database(database),
                false => described.columns_of(database, table).is_some(),
            });
            // Of rows that came and went there is no net change.
            if !is_known && !has_rows(place) && !self.summary.tables_met.contains(&place) {
                complain(&format!("--table {database}.{table}: {unknown}"));
                exit = Exit::Negative;
            }
        }
        exit
    }

    /// Names the transactions that the server committed after those that were read, apart from its own: they stay. Names those too that the
    /// logs have and it hasn't. Negative, if there are some, or that can't be told.
    pub(super) fn name_others(&self, connect: &ConnectOptions, applied: &AppliedChanges) -> Result<Exit> {
        let server = connect.server();
        let failed = |error| CommandFailure::of_server(&server, error);
        let mut connection = Connection::open(connect).map_err(failed)?;
        let told =
            connection.first_row("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_mode").map_err(failed)?;
        let executed = told.gtid_set(0).map_err(failed)?;
        let mode = told.text(1).map_err(failed)?;
        if mode != "ON" {
            complain(&format!(
                "{server}: gtid_mode is {mode}, expected ON: whether others changed rows after the logs were read isn't known"
            ));
            return Ok(Exit::Negative);
        }
        let mut lacking = self.summary.up_to_end.clone();
        lacking.subtract(&executed);
        let lacks = name_transactions(&lacking, |count, gtids| {
            format!("{server}: lacks {count} of the logs: {gtids}; expected a server that has all of them")
        });
        let mut later = executed;
        later.subtract(&self.summary.up_to_end);
        for own in applied.gtids.iter().chain(&applied.gtids_before) {
            later.subtract(&own.parse().unwrap_or_default());
        }
        let has_later = name_transactions(&later, |count, gtids| {
            format!(
                "{server}: {count} came after the logs were read, and stay: {gtids}; a run that reads them too takes them back"
            )
        });
        Ok(lacks.max(has_later))
    }
}

/// Says something of transactions, by their number and their GTIDs. Negative, if there are some.
fn name_transactions(gtids: &GtidSet, line: impl Fn(String, String) -> String) -> Exit {
    if gtids.is_empty() {
        return Exit::Done;
    }
    let count = counted(u64::try_from(gtids.count()).unwrap_or(u64::MAX), "transactions");
    complain(&line(count, gtids.brief().to_string()));
    Exit::Negative
}
