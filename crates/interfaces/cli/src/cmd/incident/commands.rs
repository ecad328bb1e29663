//! The commands that lead back on the server itself: `rows` for what was done, `undo`, and `table-at`.

use std::time::Duration;

use binlogz_binlog::gtid::Gtid;
use binlogz_figures::utc;
use binlogz_source::{ConnectOptions, Connection};

use super::IncidentCommand;
use super::applying::NeededRight;
use super::name::IncidentName;
use super::printed::{CheckedRun, CommandCheck, IncidentWords, PrintedCommand, shell_line};
use super::sql_text::hexadecimal;
use crate::failure::{CommandFailure, Result};

/// The transaction that the commands take back or lead to.
pub(super) struct IncidentPlace<'p> {
    pub(super) name: IncidentName,
    /// The transaction before it.
    pub(super) previous: Option<Gtid>,
    /// When it was committed, in microseconds since 1970, if the log tells.
    pub(super) time: Option<u64>,
    /// The tables that it changed, each by database and name.
    pub(super) tables: Vec<(String, String)>,
    /// The rights that taking its rows back needs; none if it has no rows.
    pub(super) rights: Vec<NeededRight>,
    /// The logs, as they were given.
    pub(super) files: Vec<String>,
    /// The logs up to the one that has the transaction, that one included.
    pub(super) logs_up_to: Vec<String>,
    /// The server that has the logs.
    pub(super) server: Option<&'p ConnectOptions>,
    /// The server that tells names and keys.
    pub(super) schema: Option<(String, ConnectOptions)>,
}

impl IncidentPlace<'_> {
    /// `binlogz rows`, for what the transaction did.
    pub(super) fn rows(&self, command: &IncidentCommand, is_json: bool) -> IncidentWords {
        let option = self.name.option();
        let name = self.name.to_string();
        let mut names = self.tables.iter().map(|(database, table)| format!("{database}.{table}"));
        let first = names.next().unwrap_or_default();
        let others = names.flat_map(|name| ["--table".to_owned(), name]);
        let words = IncidentWords::of(&["rows", &first, option, &name]).with(others);
        let format = is_json.then_some(["--format".to_owned(), "json".to_owned()]);
        words.with(format.into_iter().flatten()).with(command.log_words()).with(self.files.clone())
    }

    /// `binlogz undo`, with what it takes to get all rows back, if anything does.
    pub(super) fn checked_undo(
        &self,
        command: &IncidentCommand,
        time: Duration,
        later: &mut Vec<String>,
    ) -> Result<PrintedCommand> {
        let purpose = "take it back";
        let option = self.name.option();
        let name = self.name.to_string();
        let base = IncidentWords::of(&["undo", option, &name]).with(command.log_words());
        let mut words = base.clone().with(self.files.clone());
        let mut run = CheckedRun::of(&words, time)?;
        if !run.has_worked()
            && run.notes.iter().any(|note| note.contains("--cascades"))
            && let Some(place) = self.named_server(command)
        {
            let cascades = ["--cascades".to_owned(), place];
            words = base.with(cascades).with(self.files.clone());
            run = CheckedRun::of(&words, time)?;
        }
        later.append(&mut run.later);
        let mut notes = run.told(time);
        notes.extend(run.last.strip_prefix("-- ").map(str::to_owned));
        let connect = self.server.or(self.schema.as_ref().map(|(_, connect)| connect));
        let mut tail = " > undo.sql".to_owned();
        if let Some(connect) = connect {
            let client = command.mysql_client(connect);
            let has_triggers = self.has_triggers(connect)?;
            let of_log = if has_triggers { NeededRight::of_log() } else { Vec::new() };
            let needed = if has_triggers { &of_log } else { &self.rights };
            let missing = NeededRight::missing(needed, connect)
                .map_err(|error| CommandFailure::of_server(&connect.server(), error))?;
            if has_triggers {
                words = words.with(["--format", "binlog", "--output", "-"].map(str::to_owned));
                notes.push("as a binary log: its tables have triggers, which would run again".to_owned());
            }
            tail = match (has_triggers, &missing) {
                (true, None) => format!(" | binlogz dump --skip-gtids - | {}", shell_line(&client)),
                (true, Some(_)) => " | binlogz dump --skip-gtids - > undo.sql".to_owned(),
                (false, None) => format!(" | {}", shell_line(&client)),
                (false, Some(_)) => tail,
            };
            notes.extend(missing.map(|right| {
                format!("this account may not run undo.sql: give it to the mysql client of an account with {right}")
            }));
        }
        Ok(PrintedCommand {
            purpose,
            text: Some(words.shown() + &tail),
            check: CommandCheck::of(&run),
            notes,
        })
    }

    /// The server that has the tables, as an option names it.
    fn named_server(&self, command: &IncidentCommand) -> Option<String> {
        let of_logs = self.server.map(|connect| command.server.clone().unwrap_or_else(|| connect.server()));
        of_logs.or(self.schema.as_ref().map(|(place, _)| place.clone()))
    }

    /// Whether a table of the transaction has triggers.
    fn has_triggers(&self, connect: &ConnectOptions) -> Result<bool> {
        let failure = |error: binlogz_source::Error| CommandFailure::of(&connect.server(), error);
        let mut connection = Connection::open(connect).map_err(failure)?;
        let names = self
            .tables
            .iter()
            .map(|(database, table)| format!("({}, {})", hexadecimal(database), hexadecimal(table)))
            .collect::<Vec<_>>()
            .join(", ");
        let statement = format!(
            "SELECT 1 FROM information_schema.triggers WHERE (event_object_schema, event_object_table) IN ({names}) LIMIT 1"
        );
        Ok(!connection.query(&statement).map_err(failure)?.is_empty())
    }

    /// `binlogz table-at`: its tables as they were before it.
    pub(super) fn checked_table_at(
        &self,
        command: &IncidentCommand,
        time: Duration,
    ) -> Result<PrintedCommand> {
        let purpose = "its tables as they were before it";
        let Some(place) = self.named_server(command) else {
            return Ok(PrintedCommand::none(
                purpose,
                "it reads the tables of a server: name it with --schema",
            ));
        };
        let at = match (self.previous, self.time) {
            (Some(previous), _) => previous.to_string(),
            (None, Some(micros)) => format!("{}Z", utc(micros)),
            (None, None) => {
                return Ok(PrintedCommand::none(purpose, "the logs don't tell the moment before it"));
            }
        };
        let names = self.tables.iter().map(|(database, table)| format!("{database}.{table}"));
        let words = IncidentWords::of(&["table-at"])
            .with(names)
            .with(["--at".to_owned(), at, "--server".to_owned(), place])
            .with(command.connection_words());
        let run = CheckedRun::of(&words, time)?;
        let text = Some(words.shown() + " > before.sql");
        Ok(PrintedCommand { purpose, text, check: CommandCheck::of(&run), notes: run.told(time) })
    }
}
