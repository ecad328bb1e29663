//! The server's previous settings, as the statements that restore them: kept in a file for as long as they
//! may be needed.
//!
//! A killed run leaves that file in place. The next run in the same folder applies it first; a user can also
//! feed it to the mysql client.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use binlogz_source::ConnectOptions;

use crate::error::{Error, IoErrorContext, Result};
use crate::files::write_whole;
use crate::preset::experiment::SCHEMAS;
use crate::server::session::{STAGES, ServerSession, column, is_denied};

/// The file, in the folder of the results.
const FILE: &str = "restore.sql";

/// We wait for a server that comes back at once, not for one that is down.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// The longest wait for an answer: a DROP waits while a killed session still rolls back.
const ANSWER_MAX: Duration = Duration::from_secs(600);

/// The server's earlier settings.
#[derive(Debug)]
pub(crate) struct Restorer {
    connect: ConnectOptions,
    path: PathBuf,
    statements: Vec<String>,
}

impl Restorer {
    /// Whether a run that was killed left its file in a folder.
    pub(crate) fn is_left_behind(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Asks for `variables`, and keeps them in `folder`. If a killed run left its file there, that one is right, since it is
    /// older.
    pub(crate) fn save(
        session: &mut ServerSession,
        connect: &ConnectOptions,
        variables: &[&str],
        folder: &Path,
    ) -> Result<Restorer> {
        let path = folder.join(FILE);
        let mut statements = left_behind(&path)?;
        for statement in &statements {
            session.run(statement)?;
        }
        if statements.is_empty() {
            for name in variables {
                let value = session.text(&format!("SELECT @@GLOBAL.{name}"))?.unwrap_or_default();
                statements.push(format!("SET GLOBAL {name} = {}", literal(&value)));
            }
            statements.extend(stage_statements(session));
            statements.extend(SCHEMAS.map(|schema| format!("DROP DATABASE IF EXISTS {schema}")));
        }
        let text: String = statements.iter().map(|statement| format!("{statement};\n")).collect();
        write_whole(&path, text.as_bytes())?;
        Ok(Restorer { connect: connect.clone(), path, statements })
    }

    /// Restores the server, and removes the file. `sessions` are killed first.
    pub(crate) fn restore(mut self, sessions: &[u64], cause: &Error) -> Result<()> {
        self.connect.timeouts.answer = ANSWER_MAX;
        let mut failure = None;
        for attempt in 0..TRIES {
            if attempt > 0 {
                sleep(PAUSE);
            }
            match self.try_once(sessions) {
                Ok(denied) if denied.is_empty() => {
                    fs::remove_file(&self.path).at("remove", &self.path)?;
                    return Ok(());
                }
                Ok(denied) => return Err(self.left(denied, cause)),
                Err(error) => failure = Some(error),
            }
        }
        let failure = failure.map_or_else(String::new, |error| error.to_string());
        let cause = if failure == cause.to_string() { failure } else { format!("{cause}; {failure}") };
        let left = "the server's settings were not restored".to_owned();
        let user = self.connect.account().map(|(user, _)| user).unwrap_or_default();
        Err(Error::NotRestored {
            cause,
            left,
            remedy: format!("once it can be reached, run: {}", self.by_hand(&user)),
        })
    }

    /// The statements that the account may not run any more; all others were run.
    fn try_once(&self, sessions: &[u64]) -> Result<Vec<(String, Error)>> {
        let mut session = ServerSession::open(&self.connect)?;
        for id in sessions {
            // It may have ended by itself.
            let _ = session.run(&format!("KILL {id}"));
        }
        let mut denied = Vec::new();
        for statement in &self.statements {
            match session.run(statement) {
                Ok(()) => {}
                Err(error) if is_denied(&error) => denied.push((statement.clone(), error)),
                Err(error) => return Err(error),
            }
        }
        Ok(denied)
    }

    /// The error for settings that the account may no longer change. The file keeps only these statements.
    fn left(&self, denied: Vec<(String, Error)>, cause: &Error) -> Error {
        let text: String = denied.iter().map(|(statement, _)| format!("{statement};\n")).collect();
        // If this fails, the file still has all statements, which is as good.
        let _ = write_whole(&self.path, text.as_bytes());
        let statements: Vec<String> =
            denied.iter().map(|(statement, error)| format!("{statement} ({error})")).collect();
        Error::NotRestored {
            cause: cause.to_string(),
            left: format!("the server is not as it was, the account may not run {}", statements.join(", ")),
            remedy: format!("with an account that may, run: {}", self.by_hand("ACCOUNT")),
        }
    }

    /// The command line for a user.
    fn by_hand(&self, user: &str) -> String {
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let place = match self.connect.socket_path() {
            Some(socket) => format!("--socket={}", socket.display()),
            None => {
                let (host, port) = self.connect.address();
                format!("--host={host} --port={port}")
            }
        };
        format!("mysql {place} --user={user} -p < {}", path.display())
    }
}

/// The statements of an earlier run's file.
fn left_behind(path: &Path) -> Result<Vec<String>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).at("read", path)?;
    Ok(text.lines().filter_map(|line| line.strip_suffix(';')).map(str::to_owned).collect())
}

/// Numbers unchanged, anything else as a string.
fn literal(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(_) => value.to_owned(),
        Err(_) => format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''")),
    }
}

/// Statements that restore the timing of the stages; none if the server doesn't show it.
fn stage_statements(session: &mut ServerSession) -> Vec<String> {
    let asked = format!(
        "SELECT NAME, ENABLED, TIMED FROM performance_schema.setup_instruments WHERE NAME IN ('{}', '{}')",
        STAGES[0], STAGES[1]
    );
    let rows = session.rows(&asked).unwrap_or_default();
    rows.iter()
        .map(|row| {
            format!(
                "UPDATE performance_schema.setup_instruments SET ENABLED = '{}', TIMED = '{}' WHERE NAME = '{}'",
                column(row, 1),
                column(row, 2),
                column(row, 0)
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_they_were() {
        for (value, text) in [("1", "1"), ("OFF", "'OFF'"), ("a'b\\", "'a''b\\\\'"), ("", "''")] {
            assert_eq!(literal(value), text);
        }
    }

    #[test]
    fn a_file_left_behind_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert!(left_behind(&path).unwrap().is_empty());
        fs::write(&path, "SET GLOBAL a = 1;\nDROP DATABASE IF EXISTS b;\n").unwrap();
        assert_eq!(left_behind(&path).unwrap(), ["SET GLOBAL a = 1", "DROP DATABASE IF EXISTS b"]);
    }
}
