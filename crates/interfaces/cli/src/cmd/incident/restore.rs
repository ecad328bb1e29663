//! The command that brings a server, into which a backup was restored, forward to before the transaction.
//!
//! `recover` does it where transactions have GTIDs, with files or an archive. Logs that only a server has are fetched first. Without
//! GTIDs the server can't tell what the backup has, so `dump` prints the statements, and the person knows where they begin.

use std::time::Duration;

use binlogz_binlog::gtid::Gtid;
use binlogz_source::ConnectOptions;

use super::commands::IncidentPlace;
use super::name::IncidentName;
use super::printed::{CheckedRun, CommandCheck, IncidentWords, PrintedCommand, shell_line};
use super::{IncidentCommand, PROGRAM_NAME};
use crate::cmd::row_changes::{LogOffset, list};
use crate::failure::{CommandFailure, Result};
use crate::server_args::with_place;

const PURPOSE: &str = "a restored server, brought forward to before it";
/// Where logs of a server are put.
const FETCHED: &str = "incident-logs";

impl IncidentPlace<'_> {
    /// The command, checked if nothing has to be done before it.
    pub(super) fn checked_recover(
        &self,
        command: &IncidentCommand,
        time: Duration,
    ) -> Result<PrintedCommand> {
        let Some(to) = &command.to else {
            let why = "name the server into which a backup was restored: --to SERVER";
            return Ok(PrintedCommand::none(PURPOSE, why));
        };
        match (&self.name, self.server) {
            (IncidentName::Gtid(gtid), None) => self.recover_from_files(command, (to, *gtid), time),
            (IncidentName::Gtid(gtid), Some(server)) => recover_from_server(command, (to, *gtid), server),
            (IncidentName::Place(place), _) => self.dump_up_to(command, to, place),
        }
    }

    fn recover_from_files(
        &self,
        command: &IncidentCommand,
        (to, gtid): (&str, Gtid),
        time: Duration,
    ) -> Result<PrintedCommand> {
        let words = recover(command, to, gtid).with(self.files.clone());
        let run = CheckedRun::of(&words.clone().with(["--check".to_owned()]), time)?;
        let text = Some(words.shown());
        let notes = run.told(time);
        Ok(PrintedCommand { purpose: PURPOSE, text, check: CommandCheck::of(&run), notes })
    }

    /// Statements up to the transaction, for the mysql client.
    fn dump_up_to(&self, command: &IncidentCommand, to: &str, place: &LogOffset) -> Result<PrintedCommand> {
        let target = with_place(&command.connection.connect_options(PROGRAM_NAME)?, to)
            .map_err(|error| CommandFailure::of(&"--to", error))?;
        let stop = format!("--stop-position={}", place.offset);
        let words = IncidentWords::of(&["dump"]);
        let words = match self.server {
            Some(server) => words.with(remote_words(command, server)),
            None => words.with(command.keyring.words()),
        };
        let words = words.with([stop]).with(self.logs_up_to.clone());
        let text = format!("{} | {}", words.shown(), shell_line(&command.mysql_client(&target)));
        let first = self.logs_up_to.first().map(String::as_str).unwrap_or_default();
        let note = format!(
            "without GTIDs it can't be checked: it replays all from the begin of {first} on; if the backup ends later, leave out the logs \
             before, and say with --start-position where it ends"
        );
        Ok(PrintedCommand {
            purpose: PURPOSE,
            text: Some(text),
            check: CommandCheck::NotRun,
            notes: vec![note],
        })
    }
}

fn recover(command: &IncidentCommand, to: &str, gtid: Gtid) -> IncidentWords {
    let words = IncidentWords::of(&["recover", "--to", to, "--stop-before-gtid", &gtid.to_string()]);
    words.with(command.account_words()).with(["--from".to_owned()])
}

/// Fetches the logs, and recovers from these.
fn recover_from_server(
    command: &IncidentCommand,
    (to, gtid): (&str, Gtid),
    server: &ConnectOptions,
) -> Result<PrintedCommand> {
    let logs = list(server)?;
    let Some((first, _)) = logs.first() else {
        return Ok(PrintedCommand::none(PURPOSE, "the server has no binary log"));
    };
    let options = ["--raw", "--to-last-log", &format!("--result-file={FETCHED}/"), first].map(str::to_owned);
    let fetch = IncidentWords::of(&["dump"]).with(remote_words(command, server)).with(options);
    // The shell names them: there may be thousands.
    let base = first.rsplit_once('.').map_or(first.as_str(), |(base, _)| base);
    let from = shell_line(&[format!("{FETCHED}/{base}")]);
    let recover = recover(command, to, gtid).shown();
    let text = format!("mkdir -p {FETCHED} && {} && {recover} {from}.[0-9]*", fetch.shown());
    let note = format!(
        "it reads files: first all logs of the server are fetched, {first} and those after it; name a later one if the backup has all before it"
    );
    Ok(PrintedCommand { purpose: PURPOSE, text: Some(text), check: CommandCheck::NotRun, notes: vec![note] })
}

/// The options of `dump` for logs that a server sends.
fn remote_words(command: &IncidentCommand, server: &ConnectOptions) -> Vec<String> {
    let mut words = command.client_words(server);
    // Option files come first, as for mysqlbinlog.
    words.push("--read-from-remote-server".to_owned());
    words
}
