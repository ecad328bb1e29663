//! `binlogz incident GTID` or `FILE:POSITION`: one transaction: its tables and rows, what came after on the same rows, and the commands that lead back.
//!
//! The rows and the later changes are those that `binlogz rows` and `binlogz undo` tell: this command runs them, as it prints them.

use std::io::{self, Write};
use std::time::Duration;

use binlogz_encryption::Keyring;
use binlogz_figures::{utc, wrapped};
use binlogz_source::ConnectOptions;
use binlogz_triage::{
    ChangeLines, RankedChange, SoughtTransaction, TransactionName, Triage, TriageCollector, TriageWindow,
    change_json,
};
use serde_json::{Value, json};

use super::applying::NeededRight;
use super::commands::IncidentPlace;
use super::name::IncidentName;
use super::printed::PrintedCommand;
use super::row_lines::{ROWS_MAX, RowSample};
use super::{IncidentCommand, WIDTH, server_facts, width_of_cut};
use crate::Exit;
use crate::cmd::row_changes::{InputArgs, RecoverLog};
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain, name_unread};
use crate::format::ReportFormat;
use crate::{pager, terminal};

/// Lines of a screen, and those that all but the rows take.
const LINES_MAX: usize = 60;
const OTHER_LINES: usize = 30;
/// How long a command may run to be checked.
const CHECK_TIME: Duration = Duration::from_secs(20);
/// Later changes that are shown.
const LATER_MAX: usize = 5;

/// The report about one transaction.
struct IncidentView {
    change: RankedChange,
    logs: Vec<String>,
    rows: RowSample,
    later: Vec<String>,
    commands: Vec<PrintedCommand>,
}

impl IncidentCommand {
    /// Shows the transaction.
    pub(super) fn show_one(&self, name: &IncidentName, input: &InputArgs) -> Result<Exit> {
        let server = input.server(&self.connection)?;
        let keyring = self.keyring.open()?;
        let SearchedLogs { mut earlier, logs, sought } = SearchedLogs::of(name, input, server.as_ref())?;
        if logs.iter().any(RecoverLog::is_pipe) {
            let line =
                "a transaction is read more than once: expected files, an archive or a server, not a pipe";
            return Err(CommandFailure::Line(line.to_owned()));
        }
        let (sought, mut exit) = self.seek(sought, &logs, keyring.as_ref())?;
        let Some(SoughtTransaction { mut change, previous }) = sought else {
            match name {
                IncidentName::Gtid(gtid) => complain(&format!("{gtid} is not in these logs")),
                IncidentName::Place(place) => complain(&format!("{place}: no transaction begins there")),
            }
            return Ok(exit.max(Exit::Negative));
        };
        if let (IncidentName::Place(_), Some(gtid)) = (name, change.transaction.gtid) {
            return self.show_one(&IncidentName::Gtid(gtid), input);
        }
        if let Some(connect) = server.as_ref().or(self.schema_server()?.as_ref().map(|(_, connect)| connect))
        {
            server_facts::add(connect, std::slice::from_mut(&mut change));
        }
        let up_to = logs.get(..=change.transaction.log).unwrap_or(&logs);
        earlier.extend(up_to.iter().map(|log| option_of(log, server.is_some())));
        let place = IncidentPlace {
            name: name.clone(),
            previous,
            time: change.transaction.is_commit_time.then_some(change.transaction.time),
            tables: change.tables(),
            rights: NeededRight::of(&change.transaction),
            files: self.logs_given()?,
            logs_up_to: earlier,
            server: server.as_ref(),
            schema: self.schema_server()?,
        };
        let mut rows = RowSample::default();
        let mut commands = Vec::new();
        let mut later = Vec::new();
        if change.transaction.rows().total() > 0 {
            rows = RowSample::of(&place.rows(self, self.format == ReportFormat::Json))?;
            rows.count(&change.transaction);
            exit = exit.max(rows.exit);
            commands.push(place.checked_undo(self, CHECK_TIME, &mut later)?);
        }
        commands.push(place.checked_table_at(self, CHECK_TIME)?);
        commands.push(place.checked_recover(self, CHECK_TIME)?);
        let logs = logs.iter().map(ToString::to_string).collect();
        let view = IncidentView { change, logs, rows, later, commands };
        match self.format {
            ReportFormat::Json => pager::show(|out| view.write_json(out))?,
            ReportFormat::Text => pager::show(|out| view.write_text(out))?,
        }
        Ok(exit)
    }

    /// The transaction, and the one before it.
    fn seek(
        &self,
        name: TransactionName,
        logs: &[RecoverLog],
        keyring: Option<&Keyring>,
    ) -> Result<(Option<SoughtTransaction>, Exit)> {
        let window = TriageWindow::Between(0, 0);
        let mut triage = Triage::seeking(name);
        let mut exit = Exit::Done;
        let workers = workers(self.jobs);
        for (number, log) in logs.iter().enumerate() {
            let ran = self.collect(
                log,
                (number + 1, logs.len()),
                keyring,
                || TriageCollector::new(window, workers).seeking(name, number),
                &mut triage,
            )?;
            exit = exit.max(name_unread(log, &ran.unread, "its changes may be missing here"));
            if triage.sought().is_some() {
                break;
            }
        }
        Ok((triage.sought(), exit))
    }
}

/// The logs that a transaction is looked for in.
struct SearchedLogs {
    /// The logs before these, written as command-line options.
    earlier: Vec<String>,
    logs: Vec<RecoverLog>,
    sought: TransactionName,
}

impl SearchedLogs {
    fn of(name: &IncidentName, input: &InputArgs, server: Option<&ConnectOptions>) -> Result<Self> {
        let place = match name {
            IncidentName::Gtid(gtid) => {
                let logs = input.logs_with(server, *gtid)?;
                return Ok(SearchedLogs { earlier: Vec::new(), logs, sought: TransactionName::Gtid(*gtid) });
            }
            IncidentName::Place(place) => place,
        };
        let mut logs = input.all_logs(server)?;
        let first = place.place_in(logs.iter().map(RecoverLog::name))?;
        let earlier = logs.drain(..first).map(|log| option_of(&log, server.is_some())).collect();
        Ok(SearchedLogs { earlier, logs, sought: TransactionName::Place { log: 0, offset: place.offset } })
    }
}

/// A log as an option names it.
fn option_of(log: &RecoverLog, is_of_server: bool) -> String {
    if is_of_server { log.name() } else { log.to_string() }
}

impl IncidentView {
    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let width = terminal::width().unwrap_or(WIDTH).min(WIDTH);
        let one = std::slice::from_ref(&self.change);
        for line in ChangeLines::of(one, &self.logs, width).paragraph(&self.change, &self.logs) {
            writeln!(out, "{line}")?;
        }
        let tables = self.rows.tables.len().max(1);
        let of_each = (LINES_MAX.saturating_sub(OTHER_LINES) / tables).saturating_sub(2).clamp(1, ROWS_MAX);
        for table in self.rows.tables.iter().take(LINES_MAX.saturating_sub(OTHER_LINES) / 3) {
            writeln!(out)?;
            table.lines(of_each, width_of_cut()).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        for note in &self.rows.notes {
            writeln!(out, "{}", wrapped(note, "  ", "    ", Some(width)))?;
        }
        if !self.later.is_empty() {
            writeln!(out, "\nAfter it, on the same rows:")?;
            for line in self.later.iter().take(LATER_MAX) {
                writeln!(out, "{}", wrapped(line, "  ", "    ", Some(width)))?;
            }
            if self.later.len() > LATER_MAX {
                writeln!(out, "  and {} more", self.later.len() - LATER_MAX)?;
            }
        }
        for command in &self.commands {
            writeln!(out)?;
            command.lines(width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        Ok(())
    }

    fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let rows: Vec<&Value> = self.rows.tables.iter().flat_map(|table| &table.values).collect();
        let document = json!({
            "change": change_json(&self.change, &self.logs),
            "time": utc(self.change.transaction.time),
            "rows": rows,
            "later": self.later,
            "commands": self.commands.iter().map(PrintedCommand::json).collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }
}
