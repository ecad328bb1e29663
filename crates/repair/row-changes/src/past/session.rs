//! The session on the server that has the tables: what it asks of the server as a whole.

use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;
use binlogz_source::{ConnectOptions, Connection};

use super::PastError;
use super::logged_databases::LoggedDatabases;
use super::write::{SETTINGS, quoted};
use crate::owned_gtids::without_owners;
use crate::sql::text::push_quoted;

/// A copy of a table takes as long as it takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// How long transactions that are being committed may take.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);
const COMMIT_PERIOD: Duration = Duration::from_millis(50);
/// Settings of this session, which don't follow the server's global ones: answers have all rows (`sql_select_limit`), and joins of
/// large tables are allowed.
const OWN_SETTINGS: &str = "SESSION sql_quote_show_create = 1, SESSION wait_timeout = 31536000, SESSION sql_select_limit = 18446744073709551615, \
     SESSION sql_big_selects = 1, SESSION sql_safe_updates = 0, SESSION autocommit = 1";
const LOOKING: &str = "looking at its tables";
const GTID_OWNED: &str = "SELECT REPLACE(@@GLOBAL.gtid_owned, '\\n', '')";

/// A row of an answer.
pub(super) type PastAnswerRow = Vec<Option<Vec<u8>>>;

/// The session.
pub struct PastSession {
    pub(super) connection: Connection,
    /// The server's name, for people.
    server: String,
    /// Tables that are being made, until all of them are whole.
    pub(super) making: Vec<TableInProgress>,
}

/// A table that is being made: its database, its name, its name until then.
pub(super) struct TableInProgress {
    pub(super) database: String,
    pub(super) table: String,
    pub(super) unfinished: String,
}

impl TableInProgress {
    /// The name, in backticks, under which the table stands until it is whole.
    pub(super) fn place(&self) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&self.unfinished))
    }
}

impl std::fmt::Debug for PastSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PastSession").finish_non_exhaustive()
    }
}

impl PastSession {
    /// Connects.
    ///
    /// # Errors
    ///
    /// A server that can't be asked; MariaDB.
    pub fn open(connect: &ConnectOptions) -> Result<Self, PastError> {
        let mut connect = connect.clone();
        connect.timeouts.answer = ANSWER_TIMEOUT;
        let connection = Connection::open(&connect).map_err(PastError::server("connecting"))?;
        let mut session = PastSession { connection, server: connect.server(), making: Vec::new() };
        session.run("SET NAMES utf8mb4")?;
        session.run(&format!("SET {SETTINGS}, {OWN_SETTINGS}"))?;
        let version = session.text("SELECT VERSION()")?;
        if version.contains("MariaDB") {
            return Err(PastError::Refused(format!("is MariaDB {version}, expected MySQL")));
        }
        Ok(session)
    }

    /// Which databases the server logs.
    ///
    /// # Errors
    ///
    /// A server that can't be asked.
    pub(super) fn logged_databases(&mut self) -> Result<LoggedDatabases, PastError> {
        LoggedDatabases::ask(&mut self.connection, &self.server).map_err(PastError::server(LOOKING))
    }

    /// Sees the tables as they are now, until the end.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub fn hold(&mut self) -> Result<(), PastError> {
        self.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    }

    /// Whether the server logs the rows that its foreign keys change.
    ///
    /// # Errors
    ///
    /// A server that can't be asked.
    pub fn logs_cascades(&mut self) -> Result<bool, PastError> {
        let version = self.text("SELECT VERSION()")?;
        Ok(logs_cascades(&version) && !self.is_on("innodb_native_foreign_keys")?)
    }

    /// Whether a global variable is on; one that the server doesn't have isn't.
    pub(super) fn is_on(&mut self, variable: &str) -> Result<bool, PastError> {
        let rows = self.pairs(&format!("SHOW GLOBAL VARIABLES LIKE '{variable}'"))?;
        is_on(variable, rows.first().map(|(_, value)| value.as_str()))
    }

    /// The transactions that the rows seen may have in them. With `commits` also those that were being committed then: logs
    /// that are read from the server afterwards have them anyway.
    ///
    /// # Errors
    ///
    /// The server can't be asked, or has no GTIDs and logs are compared with it.
    pub fn executed(&mut self, commits: bool) -> Result<GtidSet, PastError> {
        let mode = self.text("SELECT @@GLOBAL.gtid_mode")?;
        if commits && mode != "ON" {
            return Err(PastError::Refused(format!(
                "gtid_mode is {mode}: without GTIDs nothing tells whether logs reach to what the server has now; it can be \
                 told for the server's own logs"
            )));
        }
        // A transaction is seen a moment before its GTID counts as executed; until then a session owns it.
        let being_committed = match commits {
            true => gtids(without_owners(&self.text(GTID_OWNED)?))?,
            false => GtidSet::new(),
        };
        let begin = Instant::now();
        loop {
            let mut executed = gtids(self.text("SELECT REPLACE(@@GLOBAL.gtid_executed, '\\n', '')")?)?;
            let mut open = being_committed.clone();
            open.subtract(&executed);
            if !open.is_empty() {
                open.intersect(&gtids(without_owners(&self.text(GTID_OWNED)?))?);
            }
            // Sessions of a replica's applier own a GTID all the time.
            if open.is_empty() || begin.elapsed() > COMMIT_TIMEOUT {
                executed.union(&open);
                return Ok(executed);
            }
            std::thread::sleep(COMMIT_PERIOD);
        }
    }

    /// The base tables of a database, sorted.
    ///
    /// # Errors
    ///
    /// A server that can't be asked.
    pub fn tables(&mut self, database: &str) -> Result<Vec<String>, PastError> {
        let mut text = Vec::new();
        push_quoted(&mut text, database.as_bytes());
        let rows = self.rows(&format!(
            "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema = {}",
            String::from_utf8_lossy(&text)
        ))?;
        let mut tables: Vec<_> = rows.iter().map(|row| column(row, 0)).collect();
        tables.sort();
        Ok(tables)
    }

    /// The base tables of all databases but the system's, sorted.
    ///
    /// # Errors
    ///
    /// A server that can't be asked.
    pub fn all_tables(&mut self) -> Result<Vec<(String, String)>, PastError> {
        let rows = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', \
             'sys', 'performance_schema', 'information_schema')",
        )?;
        let mut tables: Vec<_> = rows.iter().map(|row| (column(row, 0), column(row, 1))).collect();
        tables.sort();
        Ok(tables)
    }

    /// Whether an error says that the session has ended: nothing more can be asked.
    pub(super) fn is_gone(&mut self, error: &PastError) -> bool {
        matches!(error, PastError::Server { .. }) && self.text("SELECT 1").is_err()
    }

    /// Refuses a name under which there is a table.
    ///
    /// # Errors
    ///
    /// There is one; a server that can't be asked.
    pub fn check_free(&mut self, database: &str, table: &str) -> Result<(), PastError> {
        let found = self.rows(&format!(
            "SELECT table_name FROM information_schema.tables WHERE (table_schema, table_name) = ({})",
            names_of(database, table)
        ))?;
        match found.is_empty() {
            true => Ok(()),
            false => Err(PastError::Refused(format!("--into {database}.{table}: there is such a table"))),
        }
    }

    /// Gives the tables that were made their names, all at once.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub fn name_copies(&mut self) -> Result<(), PastError> {
        let name = |making: &TableInProgress| {
            format!("{} TO {}.{}", making.place(), quoted(&making.database), quoted(&making.table))
        };
        let names: Vec<_> = self.making.iter().map(name).collect();
        self.run(&format!("RENAME TABLE {}", names.join(", ")))?;
        self.making.clear();
        Ok(())
    }

    /// The first two columns of rows, in small letters.
    pub(super) fn pairs(&mut self, statement: &str) -> Result<Vec<(String, String)>, PastError> {
        let rows = self.rows(statement)?;
        Ok(rows.iter().map(|row| (column(row, 0).to_lowercase(), column(row, 1).to_lowercase())).collect())
    }

    pub(super) fn run(&mut self, statement: &str) -> Result<(), PastError> {
        let doing = statement.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
        self.connection.execute(statement.as_bytes()).map(drop).map_err(PastError::server(doing))
    }

    pub(super) fn rows(&mut self, statement: &str) -> Result<Vec<PastAnswerRow>, PastError> {
        self.connection.query(statement).map_err(PastError::server(LOOKING))
    }

    /// A column of the first row; an answer without it is an error.
    pub(super) fn field(&mut self, statement: &str, index: usize) -> Result<String, PastError> {
        let row = self.connection.first_row(statement).map_err(PastError::server(LOOKING))?;
        Ok(row.text(index).map_err(PastError::server(LOOKING))?.to_owned())
    }

    pub(super) fn text(&mut self, statement: &str) -> Result<String, PastError> {
        self.field(statement, 0)
    }
}

impl Drop for PastSession {
    fn drop(&mut self) {
        for making in &self.making {
            // If even that fails, its name says what it is.
            let _ = self.connection.execute(format!("DROP TABLE IF EXISTS {}", making.place()).as_bytes());
        }
    }
}

/// Whether a server of this version logs what its foreign keys change.
pub(super) fn logs_cascades(version: &str) -> bool {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let number: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    number >= (9, 6) && !version.contains("MariaDB")
}

/// A database and a table as two SQL strings, separated by a comma.
pub(super) fn names_of(database: &str, table: &str) -> String {
    let mut names = Vec::new();
    push_quoted(&mut names, database.as_bytes());
    names.extend_from_slice(b", ");
    push_quoted(&mut names, table.as_bytes());
    String::from_utf8_lossy(&names).into_owned()
}

/// A column of a row, as text.
pub(super) fn column(row: &PastAnswerRow, index: usize) -> String {
    let bytes = row.get(index).and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_on(variable: &str, value: Option<&str>) -> Result<bool, PastError> {
    match value {
        Some("on") => Ok(true),
        Some("off") | None => Ok(false),
        Some(other) => Err(PastError::Refused(format!("{variable} is {other:?}, expected ON or OFF"))),
    }
}

fn gtids(text: String) -> Result<GtidSet, PastError> {
    text.parse().map_err(|error| PastError::Refused(format!("GTIDs of the server: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_on_or_off() {
        let on = |value| is_on("partial_revokes", value).ok();
        assert_eq!([on(Some("on")), on(Some("off")), on(None)], [Some(true), Some(false), Some(false)]);
        assert_eq!([on(Some("1")), on(Some(""))], [None, None]);
    }

    #[test]
    fn owned_gtids_are_a_set() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let set: GtidSet = without_owners(&format!("{uuid}:5#12:7#13:tag:9#8")).parse().unwrap();
        assert_eq!(set, format!("{uuid}:5:7:tag:9").parse().unwrap());
        assert!(without_owners("").parse::<GtidSet>().unwrap().is_empty());
    }
}
