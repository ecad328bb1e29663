//! `binlogz incident`: what happened? The unusual changes of a window, the worst first.
//!
//! This file checks the options and goes through the logs; [`logs`] finds those that are needed, [`server_facts`] asks the server for what
//! they don't tell, [`one`] shows one transaction, [`commands`] the way back, [`applying`] whether the account may go it, and [`restore`] the way forward from a backup.

mod applying;
mod chooser;
mod commands;
mod logs;
mod name;
mod one;
mod printed;
mod restore;
mod row_lines;
mod server_facts;
mod sessions;
mod sql_text;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use binlogz_encryption::Keyring;
use binlogz_figures::{Zone, counted, grouped, utc, wrapped};
use binlogz_flow::events::{self, RunSummary};
use binlogz_source::ConnectOptions;
use binlogz_triage::{
    CascadeEstimates, ChangeLines, RankedChange, Triage, TriageCollector, TriageWindow, change_json,
};
use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::row_changes::{InputArgs, LogOffset, RecoverLog, is_schema_server};
use super::workers;
use crate::Exit;
use crate::failure::{CommandFailure, Result, name_unread, warn, warn_cut};
use crate::format::ReportFormat;
use crate::keyring::KeyringArg;
use crate::log_path::LogPath;
use crate::server_args::{ServerArgs, with_place};
use crate::time::GivenTime;
use crate::{pager, terminal, units};
use name::IncidentName;

/// Show what happened: the unusual changes of the last hour, the worst first
///
/// Reads binary logs and lists mass DELETE and UPDATE, TRUNCATE, DROP, ALTER, transactions much larger than the usual, and a table's
/// first DELETE, each with its time, GTID, session, and rows by table. What is usual is learned from the same logs. No
/// row is decoded for it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct IncidentCommand {
    /// The window: so long before the last transaction of the logs, as 30m, 2h or 7d
    #[arg(long, value_name = "DURATION", default_value = WINDOW, value_parser = units::duration, conflicts_with_all = ["start_datetime", "stop_datetime"])]
    last: Duration,
    /// Only transactions committed at this time or later: '2026-11-22 23:10', 23:10, 'yesterday 23:10', -1h …
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start_datetime: Option<GivenTime>,
    /// Only transactions committed before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, alias = "until-datetime")]
    stop_datetime: Option<GivenTime>,
    /// Number of changes to show
    #[arg(long, value_name = "N", default_value_t = TOP, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    /// With a GTID: take column names and keys, where the log lacks them, from a file of CREATE TABLE statements or from a server
    #[arg(long, value_name = "FILE.sql|SERVER")]
    schema: Option<String>,
    /// With a GTID: the server into which a backup was restored, for the recover command
    #[arg(long, value_name = "SERVER")]
    to: Option<String>,
    #[command(flatten)]
    keyring: KeyringArg,
    /// Read the binary logs of this server, HOST:PORT or a socket; FILE is then the name of one of them
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Binary logs or relay logs, in their order; an archive; a folder with the index of logs, as a relay's; - is standard input
    ///
    /// A GTID before them, or FILE:POSITION where logs have none: that transaction alone, its rows, what came after on these, and the
    /// commands that lead back.
    #[arg(value_name = "GTID|FILE|-", required_unless_present_any = ["server", "host", "port", "socket"])]
    files: Vec<LogPath>,
    #[command(flatten)]
    connection: ServerArgs,
}

/// The window: what a person on call asks about.
const WINDOW: &str = "1h";
/// How many changes are shown: with their statements they fit on a screen of 60 lines.
const TOP: u16 = 20;
/// Characters of a line where standard output is no terminal.
const WIDTH: usize = 120;

/// The width at which lines are cut: in a pipe they have any length.
fn width_of_cut() -> usize {
    terminal::width().map_or(usize::MAX, |width| width.min(WIDTH))
}
/// The program's name for itself at servers.
const PROGRAM_NAME: &str = "binlogz";

const EXAMPLES: &str = "Examples:
  binlogz incident binlog.0000*
  binlogz incident --server db1:3306 -u monitor
  binlogz incident --last 3h /backup/db1
  binlogz incident 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 --server db1:3306 -u monitor
  binlogz incident --start-datetime '2026-11-22 22:00' --stop-datetime '2026-11-22 23:30' --format json binlog.0000*

Exit codes: 0 done, 1 changes in the logs could not be read, each is named, or the
window has no transaction, or the logs lack the one asked for, 2 trouble.";

impl IncidentCommand {
    pub(super) fn run(self) -> Result<Exit> {
        let (name, files) = self.asked();
        let input = InputArgs::of(self.server.clone(), logs::with_folders(&files)?);
        if let Some(name) = name {
            return self.show_one(&name, &input);
        }
        let server = input.server(&self.connection)?;
        let keyring = self.keyring.open()?;
        let window = self.window();
        let logs = logs::needed(input.all_logs(server.as_ref())?, window, keyring.as_ref())?;
        let cascades = Arc::new(server.as_ref().map(server_facts::cascades).unwrap_or_default());
        let mut triage = Triage::new(window);
        let mut exit = Exit::Done;
        for (number, log) in logs.iter().enumerate() {
            let place = (number + 1, logs.len());
            exit = exit.max(self.read(log, place, keyring.as_ref(), &cascades, &mut triage)?);
        }
        let names: Vec<String> = logs.iter().map(ToString::to_string).collect();
        let mut changes = triage.ranked();
        if let Some(connect) = &server {
            server_facts::add(connect, &mut changes);
        }
        match self.format {
            ReportFormat::Json => pager::show(|out| self.write_json(&triage, &changes, &names, out))?,
            ReportFormat::Text => pager::show(|out| self.write_text(&triage, &changes, &names, out))?,
        }
        if triage.span().is_none_or(|(first, last)| first > last) {
            warn("no transaction of these logs is in the window");
            return Ok(exit.max(Exit::Negative));
        }
        match self.chosen(&changes, &names, &logs) {
            Some(name) => Ok(exit.max(self.show_one(&name, &input)?)),
            None => Ok(exit),
        }
    }

    /// The change that a person at the terminal chooses, if one does.
    fn chosen(
        &self,
        changes: &[RankedChange],
        names: &[String],
        logs: &[RecoverLog],
    ) -> Option<IncidentName> {
        let shown = changes.get(..usize::from(self.top)).unwrap_or(changes);
        if self.format == ReportFormat::Json || shown.is_empty() || !chooser::has_person() {
            return None;
        }
        let width = terminal::width().unwrap_or(WIDTH).min(WIDTH).saturating_sub(chooser::MARK_WIDTH);
        let layout = ChangeLines::of(shown, names, width);
        let lines = shown
            .iter()
            .zip(1..)
            .flat_map(|(change, number)| layout.lines(number, change, names).into_iter().next());
        let place = chooser::choose(&lines.collect::<Vec<_>>())?;
        let transaction = &shown.get(place)?.transaction;
        Some(match transaction.gtid {
            Some(gtid) => IncidentName::Gtid(gtid),
            None => {
                let log = logs.get(transaction.log)?.name();
                IncidentName::Place(LogOffset { log, offset: transaction.offset })
            }
        })
    }

    /// The transaction that is asked for, if one is, and the logs.
    fn asked(&self) -> (Option<IncidentName>, Vec<LogPath>) {
        let named =
            self.files.split_first().and_then(|(first, files)| Some((IncidentName::of(first)?, files)));
        match named {
            None => (None, self.files.clone()),
            // The log may stand in the name alone.
            Some((IncidentName::Place(place), [])) if self.has_no_server() => {
                let log = LogPath::File(place.log.clone().into());
                (Some(IncidentName::Place(place)), vec![log])
            }
            Some((name, files)) => (Some(name), files.to_vec()),
        }
    }

    fn has_no_server(&self) -> bool {
        self.server.is_none() && !self.connection.names_a_place()
    }

    /// The logs as they were given, a folder's by their names.
    fn logs_given(&self) -> Result<Vec<String>> {
        Ok(logs::with_folders(&self.asked().1)?.iter().map(ToString::to_string).collect())
    }

    /// The options for a command that reads the same logs.
    fn log_words(&self) -> Vec<String> {
        let server = self.server.iter().flat_map(|server| ["--server".to_owned(), server.clone()]);
        let schema = self.schema.iter().flat_map(|schema| ["--schema".to_owned(), schema.clone()]);
        server.chain(schema).chain(self.keyring.words()).chain(self.connection_words()).collect()
    }

    fn connection_words(&self) -> Vec<String> {
        [self.connection.file_words(), self.connection.option_words(true)].concat()
    }

    /// The options of an account, without the server.
    fn account_words(&self) -> Vec<String> {
        [self.connection.file_words(), self.connection.option_words(false)].concat()
    }

    /// The mysql client, for the same server and account, wherever that was named.
    fn mysql_client(&self, connect: &ConnectOptions) -> Vec<String> {
        ["mysql".to_owned()].into_iter().chain(self.client_words(connect)).collect()
    }

    /// The options of a client of that server, for the same account; option files come first.
    fn client_words(&self, connect: &ConnectOptions) -> Vec<String> {
        let place = match connect.socket_path() {
            Some(path) => vec![format!("--socket={}", path.display())],
            None => {
                let (host, port) = connect.address();
                vec![format!("--host={host}"), format!("--port={port}"), "--protocol=TCP".to_owned()]
            }
        };
        let words = self.connection.file_words().into_iter();
        let user = connect.user.iter().map(|user| format!("--user={user}"));
        let options = self.connection.option_words(false).into_iter();
        words.chain(place).chain(user).chain(options.filter(|word| !word.starts_with("--user="))).collect()
    }

    /// The server of --schema, if it is one.
    fn schema_server(&self) -> Result<Option<(String, ConnectOptions)>> {
        let Some(place) = self.schema.as_deref().filter(|place| is_schema_server(place)) else {
            return Ok(None);
        };
        let options = self.connection.connect_options(PROGRAM_NAME)?;
        let connect = with_place(&options, place).map_err(CommandFailure::Line)?;
        Ok(Some((place.to_owned(), connect)))
    }

    fn window(&self) -> TriageWindow {
        let micros = |time: GivenTime| u64::try_from(time.microseconds()).unwrap_or(0);
        match (self.start_datetime.map(micros), self.stop_datetime.map(micros)) {
            (None, None) => TriageWindow::Last(u64::try_from(self.last.as_micros()).unwrap_or(u64::MAX)),
            (start, stop) => TriageWindow::Between(start.unwrap_or(0), stop.unwrap_or(u64::MAX)),
        }
    }

    /// Reads a log. Negative: changes could not be read. They were named.
    fn read(
        &self,
        log: &RecoverLog,
        place: (usize, usize),
        keyring: Option<&Keyring>,
        cascades: &Arc<CascadeEstimates>,
        triage: &mut Triage,
    ) -> Result<Exit> {
        let window = self.window();
        let workers = workers(self.jobs);
        let collector = || TriageCollector::new(window, workers).with_cascades(Arc::clone(cascades));
        let RunSummary { read, unread } = self.collect(log, place, keyring, collector, triage)?;
        if let Some(cut) = read.cut {
            warn_cut(log, cut, "; they are left out");
        }
        Ok(name_unread(log, &unread, "its changes may be missing here"))
    }

    /// Goes through a log on all cores, and adds to `triage` what the workers' collectors find.
    fn collect(
        &self,
        log: &RecoverLog,
        place: (usize, usize),
        keyring: Option<&Keyring>,
        collector: impl Fn() -> TriageCollector + Sync,
        triage: &mut Triage,
    ) -> Result<RunSummary> {
        let progress = log.progress(place)?;
        let input = progress.watch(log.open(keyring)?);
        let ran = events::run(
            input,
            workers(self.jobs),
            || Ok(collector()),
            |collector, batch| Ok(collector.collect(batch)),
            |batch| {
                triage.add(batch);
                Ok(())
            },
            &mut |bytes| progress.at(bytes),
        );
        let summary = ran.map_err(|error| CommandFailure::reading(log, &error))?;
        triage.end_log();
        Ok(summary)
    }

    fn write_text(
        &self,
        triage: &Triage,
        changes: &[RankedChange],
        logs: &[String],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let width = terminal::width().unwrap_or(WIDTH).min(WIDTH);
        let shown = changes.get(..usize::from(self.top)).unwrap_or(changes);
        writeln!(out, "{}", wrapped(&head(triage, changes.len(), logs), "", "  ", Some(width)))?;
        let lines = ChangeLines::of(shown, logs, width_of_cut());
        for (change, number) in shown.iter().zip(1..) {
            lines.lines(number, change, logs).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        match changes.len() - shown.len() {
            0 => Ok(()),
            more => writeln!(out, "and {}: --top {}", counted(more as u64, "changes"), changes.len()),
        }
    }

    fn write_json(
        &self,
        triage: &Triage,
        changes: &[RankedChange],
        logs: &[String],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let shown = changes.iter().take(usize::from(self.top));
        let document = json!({
            "logs": logs,
            "from": triage.span().map(|(first, _)| utc(first)),
            "to": triage.span().map(|(_, last)| utc(last)),
            "transactions": triage.transactions(),
            "usual_rows": triage.usual_rows(),
            "unusual": changes.len(),
            "changes": shown.map(|change| change_json(change, logs)).collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }
}

/// The line above the changes: what was read, and which part of it is shown.
fn head(triage: &Triage, unusual: usize, logs: &[String]) -> String {
    let names = match logs {
        [] => String::new(),
        [one] => one.clone(),
        [first, .., last] => format!("{first} to {last}"),
    };
    let transactions = counted(triage.transactions(), "transactions");
    let Some((first, last)) = triage.span().filter(|(first, last)| first <= last) else {
        return format!("{names}: {transactions}, none in the window");
    };
    let (from, _) = local(first);
    let (to, zone) = local(last);
    let changes = match unusual {
        0 => "nothing unusual".to_owned(),
        1 => "1 unusual change".to_owned(),
        more => format!("{} unusual changes, the worst first", grouped(more as u64)),
    };
    format!("{names}: {transactions}; from {from} to {to} {zone}: {changes}")
}

/// A moment in the zone of the process, and the zone.
fn local(micros: u64) -> (String, String) {
    let timestamp =
        Timestamp::from_microsecond(i64::try_from(micros).unwrap_or(i64::MAX)).unwrap_or_default();
    let (time, zone) = Zone::of_process().local(timestamp);
    (time.strftime("%Y-%m-%d %H:%M:%S").to_string(), zone)
}
