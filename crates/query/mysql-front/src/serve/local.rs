//! Statements that the connection answers itself, without a worker: those that set its session or ask for it. So clients
//! connect also while all workers are busy.

use binlogz_query_server::{Blame, StatementRefusal};
use binlogz_wire::ServerError;
use binlogz_wire::result_set::{ResultKind, ResultRow};
use binlogz_wire::session::ReplyColumn;
use binlogz_wire::statement::{AssignmentTarget, Expression, NewTransactions, Scope, Statement};

use super::connection::MysqlConnection;
use crate::errors::{ACCESS_DENIED, NOT_SUPPORTED, WRONG_VALUE, error};
use crate::variables::{CHANGED_SIZE_MAX, FrontVariables, VERSION, VariableKind, check_character_set};

/// The number of a note that has none of its own: ER_UNKNOWN_ERROR, which servers use so, too.
const NOTE_NUMBER: &str = "1105";

/// The refusal of a statement that another client has stopped.
pub(super) fn stopped() -> StatementRefusal {
    StatementRefusal::new(Blame::Stopped, "Query execution was interrupted")
}

/// The number of KILL, and whether it ends the connection.
pub(super) fn killed(text: &str) -> Option<(u32, bool)> {
    let mut words = text.trim().trim_end_matches(';').split_whitespace().skip(1);
    let first = words.next()?;
    let (number, is_connection) = match first.to_ascii_uppercase().as_str() {
        "QUERY" => (words.next()?, false),
        "CONNECTION" => (words.next()?, true),
        _ => (first, true),
    };
    let number = number.parse().ok()?;
    words.next().is_none().then_some((number, is_connection))
}

/// A value of SELECT, and the kind of its column.
type SelectedValue = (Option<String>, ResultKind);

impl MysqlConnection {
    /// Answers a statement, if it is one of these; false: it is another.
    pub(super) async fn answer_locally(&mut self, text: &str) -> bool {
        let Some(statement) = Statement::parse(text) else {
            return self.unlocked(text);
        };
        self.has_notes &= matches!(statement, Statement::ShowWarnings);
        let done = match statement {
            Statement::Select(items) => return self.select(&items),
            Statement::ShowVariables(shown) => {
                let rows: Vec<ResultRow> = self
                    .variables
                    .all()
                    .filter(|(name, _)| shown.includes(name))
                    .map(|(name, value)| {
                        [name, value.shown()].map(|text| Some(text.as_bytes().to_vec())).to_vec()
                    })
                    .collect();
                self.session.rows(&[text_column("Variable_name"), text_column("Value")], &rows);
                return true;
            }
            Statement::ShowWarnings => {
                let number = ReplyColumn { name: "Code", kind: ResultKind::INTEGER };
                let notes = if self.has_notes { self.shared.notes.as_slice() } else { &[] };
                let row = |note: &String| {
                    let cells = ["Note", NOTE_NUMBER, note.as_str()];
                    cells.map(|text| Some(text.as_bytes().to_vec())).to_vec()
                };
                let rows: Vec<ResultRow> = notes.iter().map(row).collect();
                self.session.rows(&[text_column("Level"), number, text_column("Message")], &rows);
                return true;
            }
            Statement::Use(database) => {
                self.use_database(&database).await;
                return true;
            }
            Statement::Set(_) | Statement::SetNames { .. } => set_part(&mut self.variables, &statement),
            Statement::SetEach(parts) => {
                parts.iter().try_for_each(|part| set_part(&mut self.variables, part))
            }
            Statement::SetTransaction(NewTransactions { scope: Scope::Global, .. }) => {
                Err(of_server("TRANSACTION"))
            }
            // Nothing is written, so each transaction sees the same.
            Statement::SetTransaction(_) | Statement::Transaction(_) => Ok(()),
            Statement::SelectFrom(_)
            | Statement::ShowBinaryLogs
            | Statement::ShowBinaryLogStatus
            | Statement::ShowReplicas(_)
            | Statement::ShowBinlogEvents(_)
            | Statement::ShowReplicaStatus(_)
            | Statement::Admin(_) => return false,
        };
        match done {
            Ok(()) => self.session.ok(),
            Err(refused) => self.session.refuse(&refused),
        }
        true
    }

    /// UNLOCK TABLES: nothing is locked.
    fn unlocked(&mut self, text: &str) -> bool {
        let is = text
            .trim()
            .trim_end_matches(';')
            .split_whitespace()
            .map(str::to_ascii_uppercase)
            .eq(["UNLOCK", "TABLES"]);
        if is {
            self.session.ok();
        }
        is
    }

    /// SELECT without a table, of what is known here.
    fn select(&mut self, items: &[(Expression, String)]) -> bool {
        let mut columns = Vec::new();
        let mut row: ResultRow = Vec::new();
        for (expression, name) in items {
            match self.selected(expression) {
                Ok(Some((value, kind))) => {
                    columns.push(ReplyColumn { name, kind });
                    row.push(value.map(String::into_bytes));
                }
                Ok(None) => return false,
                Err(refused) => {
                    self.session.refuse(&refused);
                    return true;
                }
            }
        }
        self.session.rows(&columns, &[row]);
        true
    }

    /// `None`: a worker knows it.
    fn selected(&self, expression: &Expression) -> Result<Option<SelectedValue>, ServerError> {
        let text = |text: &str| Some((Some(text.to_owned()), ResultKind::TEXT));
        Ok(match expression {
            Expression::SystemVariable(scope, name) => {
                let defaults = FrontVariables::default();
                let variables = if *scope == Scope::Global { &defaults } else { &self.variables };
                let value = variables.value(name)?;
                let kind = match value.kind {
                    VariableKind::Switch => ResultKind::INTEGER,
                    VariableKind::Number => ResultKind::UNSIGNED,
                    VariableKind::Text => ResultKind::TEXT,
                };
                Some((Some(value.value.to_owned()), kind))
            }
            // A backslash before these stays, which isn't to be seen here.
            Expression::Text(literal) if literal.contains(['%', '_']) => None,
            Expression::Text(literal) => text(literal),
            Expression::Literal(literal) if literal.parse::<i64>().is_ok() => {
                Some((Some(literal.clone()), ResultKind::INTEGER))
            }
            Expression::Null => Some((None, ResultKind::NULL)),
            Expression::Function(name) => match name.as_str() {
                "version" => text(VERSION),
                "database" | "schema" => {
                    Some((Some(self.database.clone()).filter(|name| !name.is_empty()), ResultKind::TEXT))
                }
                "user" | "session_user" | "system_user" => {
                    let session = self.told(crate::session::AnswerPurpose::Text);
                    text(&format!("{}@{}", session.user, session.address))
                }
                "current_user" => text(&format!("{}@%", self.user)),
                "connection_id" => Some((Some(self.number.to_string()), ResultKind::UNSIGNED)),
                _ => None,
            },
            Expression::UserVariable(name) => {
                let message = format!("User variables such as @{name} are not kept here");
                return Err(error(NOT_SUPPORTED, message));
            }
            Expression::Literal(_) | Expression::Concat(_) => None,
        })
    }
}

fn text_column(name: &str) -> ReplyColumn<'_> {
    ReplyColumn { name, kind: ResultKind::TEXT }
}

fn of_server(name: &str) -> ServerError {
    error(ACCESS_DENIED, format!("Access denied: {name} of the whole server can't be set"))
}

/// A part of SET.
fn set_part(variables: &mut FrontVariables, part: &Statement) -> Result<(), ServerError> {
    match part {
        Statement::Set(assignments) => set(variables, assignments),
        Statement::SetNames { character_set, collation } => {
            set_names(variables, character_set.as_deref(), collation.as_deref())
        }
        other => Err(error(NOT_SUPPORTED, format!("SET can't have this as a part: {other:?}"))),
    }
}

/// Sets variables of the session.
fn set(
    variables: &mut FrontVariables,
    assignments: &[(AssignmentTarget, Expression)],
) -> Result<(), ServerError> {
    for (target, expression) in assignments {
        let name = match target {
            AssignmentTarget::Session(name) => name,
            AssignmentTarget::UserVariable(name) => {
                return Err(error(
                    NOT_SUPPORTED,
                    format!("User variables such as @{name} are not kept here"),
                ));
            }
            AssignmentTarget::Global(name) | AssignmentTarget::Persist(name) => return Err(of_server(name)),
        };
        let value = value(variables, expression)?;
        let value = value.as_deref().filter(|value| !value.eq_ignore_ascii_case("DEFAULT"));
        // NULL is a value of character_set_results alone: texts stay as they are.
        variables.set(name, value)?;
    }
    Ok(())
}

/// The value that is assigned; `None`: NULL.
fn value(variables: &FrontVariables, expression: &Expression) -> Result<Option<String>, ServerError> {
    Ok(match expression {
        Expression::Literal(text) | Expression::Text(text) => Some(text.clone()),
        Expression::Null => None,
        Expression::SystemVariable(_, name) => Some(variables.value(name)?.value.to_owned()),
        Expression::Concat(parts) => {
            let mut all = String::new();
            for part in parts {
                let Some(part) = value(variables, part)? else { return Ok(None) };
                if all.len() + part.len() > CHANGED_SIZE_MAX {
                    return Err(error(WRONG_VALUE, "A variable can't be set to a text of this length"));
                }
                all.push_str(&part);
            }
            Some(all)
        }
        Expression::Function(name) | Expression::UserVariable(name) => {
            return Err(error(NOT_SUPPORTED, format!("A variable can't be set to the value of {name} here")));
        }
    })
}

/// SET NAMES; `None`: the default.
fn set_names(
    variables: &mut FrontVariables,
    character_set: Option<&str>,
    collation: Option<&str>,
) -> Result<(), ServerError> {
    character_set.map_or(Ok(()), check_character_set)?;
    // MariaDB's clients may say COLLATE DEFAULT.
    let own = collation.filter(|name| !name.eq_ignore_ascii_case("DEFAULT"));
    variables.set("collation_connection", own)?;
    for variable in ["character_set_client", "character_set_connection", "character_set_results"] {
        variables.set(variable, character_set)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_made_of_many_is_bounded() {
        let mut variables = FrontVariables::default();
        variables.set("optimizer_switch", Some(&"x".repeat(CHANGED_SIZE_MAX / 2))).unwrap();
        let many = ["@@optimizer_switch"; 3].join(", ");
        let statement = Statement::parse(&format!("SET init_connect = CONCAT({many})")).unwrap();
        let Err(refused) = set_part(&mut variables, &statement) else { panic!("was set") };
        assert!(refused.code == 1231 && refused.message.ends_with("of this length"), "{}", refused.message);
    }

    #[test]
    fn names_set_the_collation_too() {
        let mut variables = FrontVariables::default();
        for (text, number, character_set, collation) in [
            ("SET NAMES utf8 COLLATE utf8_unicode_ci", 0, "utf8", "utf8_unicode_ci"),
            ("SET NAMES utf8mb4 COLLATE latin1_swedish_ci", 1273, "utf8", "utf8_unicode_ci"),
            ("SET NAMES latin1 COLLATE utf8mb4_bin", 1115, "utf8", "utf8_unicode_ci"),
            ("SET NAMES utf8", 0, "utf8", "utf8mb4_general_ci"),
            ("SET NAMES DEFAULT", 0, "utf8mb4", "utf8mb4_general_ci"),
        ] {
            let refused = set_part(&mut variables, &Statement::parse(text).unwrap());
            assert_eq!(refused.map_or_else(|error| error.code, |()| 0), number, "{text}");
            assert_eq!(variables.value("character_set_client").unwrap().value, character_set, "{text}");
            assert_eq!(variables.value("collation_connection").unwrap().value, collation, "{text}");
        }
    }

    #[test]
    fn kill_names_a_connection_or_its_query() {
        assert_eq!(killed("KILL 7"), Some((7, true)));
        assert_eq!(killed("kill query 7;"), Some((7, false)));
        assert_eq!(killed(" KILL CONNECTION 7 "), Some((7, true)));
        assert_eq!(killed("KILL"), None);
        assert_eq!(killed("KILL QUERY 7 8"), None);
    }
}
