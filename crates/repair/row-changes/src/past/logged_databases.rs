//! Which databases a server logs: with `binlog-do-db` or `binlog-ignore-db` its logs lack changes, and nothing in them says so.
//!
//! By the manual ("Evaluation of Database-Level Replication and Binary Logging Options") and as tried on 9.7.4: a row is left out by the
//! database of its table, a statement, DDL among them, by the default database of its session; without a default database it is logged.
//! `binlog-ignore-db` counts only where there is no `binlog-do-db`. Names are compared byte for byte.

use binlogz_source::{AnswerFields, ConnectOptions, Connection, Error as ServerError};

/// The statements that tell it, by age: the second is what servers before 8.2, and MariaDB, understand.
const STATEMENTS: [&str; 2] = ["SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"];
/// The error of a server that doesn't know a statement.
const SYNTAX_ERROR: u16 = 1064;

/// The databases that a server logs, and those that it doesn't.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedDatabases {
    /// Of `binlog-do-db`; empty: all but the ignored ones are logged.
    only: Vec<String>,
    /// Of `binlog-ignore-db`.
    ignored: Vec<String>,
    /// Why they aren't known.
    unknown: Option<String>,
}

impl LoggedDatabases {
    /// Asks a server.
    ///
    /// # Errors
    ///
    /// A server that can't be reached. One that refuses to tell is no error: it is told as a doubt.
    pub fn of_server(connect: &ConnectOptions) -> Result<Self, ServerError> {
        LoggedDatabases::ask(&mut Connection::open(connect)?, &connect.server())
    }

    /// Asks in a session with the server that is called `server`.
    pub(crate) fn ask(connection: &mut Connection, server: &str) -> Result<Self, ServerError> {
        let mut unknown = None;
        for statement in STATEMENTS {
            match connection.query(statement) {
                // It has no binary log.
                Ok(rows) if rows.is_empty() => return Ok(LoggedDatabases::default()),
                Ok(rows) => {
                    let row = AnswerFields::first_of(server, statement, rows)?;
                    let [only, ignored] = [row.optional_text(2)?, row.optional_text(3)?].map(names);
                    return Ok(LoggedDatabases { only, ignored, unknown: None });
                }
                Err(error) => {
                    let code = error.server_error().map(|error| error.code).ok_or(error)?;
                    if code != SYNTAX_ERROR {
                        unknown = Some(format!("{statement} is refused with error {code}"));
                        break;
                    }
                }
            }
        }
        let unknown = unknown.or_else(|| Some(format!("{} isn't understood", STATEMENTS.join(" or "))));
        Ok(LoggedDatabases { unknown, ..LoggedDatabases::default() })
    }

    /// Why changes of tables in this database aren't logged, if they aren't.
    pub fn lacks(&self, database: &str) -> Option<String> {
        let is_logged = match self.only.is_empty() {
            true => !self.ignored.iter().any(|name| name == database),
            false => self.only.iter().any(|name| name == database),
        };
        (!is_logged).then(|| format!("{}: changes in the database {database} aren't logged", self.shown()))
    }

    /// What the logs may lack of any table: statements, or it isn't known what.
    pub fn doubt(&self) -> Option<String> {
        self.unknown().or_else(|| self.lacking_statements())
    }

    /// Why it isn't known which databases are logged, if it isn't.
    pub(super) fn unknown(&self) -> Option<String> {
        let why = self.unknown.as_ref()?;
        Some(format!(
            "whether all databases are logged isn't known: {why}, expected an account with REPLICATION CLIENT"
        ))
    }

    /// What the logs may lack of tables whose rows they have: statements.
    pub(super) fn lacking_statements(&self) -> Option<String> {
        let default = match (self.only.is_empty(), self.ignored.is_empty()) {
            (true, true) => return None,
            (true, false) => "one of these as the default database",
            (false, _) => "another default database",
        };
        Some(format!(
            "{}: statements such as ALTER TABLE and TRUNCATE that were run with {default} aren't logged, so what they changed isn't known",
            self.shown()
        ))
    }

    /// Whether changes of some databases aren't logged.
    pub fn is_partial(&self) -> bool {
        !self.only.is_empty() || !self.ignored.is_empty()
    }

    /// The setting, as an option file has it.
    fn shown(&self) -> String {
        match self.only.is_empty() {
            true => format!("binlog-ignore-db is {}", self.ignored.join(", ")),
            false => format!("binlog-do-db is {}", self.only.join(", ")),
        }
    }
}

/// Names that commas divide.
fn names(list: Option<&str>) -> Vec<String> {
    list.unwrap_or_default().split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(only: &str, ignored: &str) -> LoggedDatabases {
        LoggedDatabases { only: names(Some(only)), ignored: names(Some(ignored)), unknown: None }
    }

    #[test]
    fn a_list_of_databases_to_log_counts_before_those_to_ignore() {
        let all = logged("", "");
        assert_eq!((all.lacks("shop"), all.doubt(), all.is_partial()), (None, None, false));
        let some = logged("shop,a b", "shop");
        assert_eq!(some.lacks("shop"), None);
        assert_eq!(some.lacks("a b"), None);
        assert_eq!(
            some.lacks("Shop").unwrap(),
            "binlog-do-db is shop, a b: changes in the database Shop aren't logged"
        );
        assert!(some.doubt().unwrap().contains("with another default database"));
        let others = logged("", "mysql,shop");
        assert_eq!(others.lacks("other"), None);
        assert!(others.lacks("shop").unwrap().starts_with("binlog-ignore-db is mysql, shop: "));
        assert!(others.doubt().unwrap().contains("with one of these as the default database"));
    }
}
