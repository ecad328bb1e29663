//! ClientVariables: those that a client set, the source's, and the relay's own.
//!
//! The input is an expression or an assignment (`binlogz_wire::statement`); the result is a value with its type, or the
//! server's error.
//!
//! * `session` is a client's own state: its variables, default database and transaction;
//! * `source` are the source's variables and collations; `system` are the system variables: the source's values, and the relay's own
//!   where it differs from its source;
//! * `evaluate` finds the value of an expression: SELECT without a table;
//! * `set` makes assignments.

pub(crate) mod evaluate;
pub(crate) mod session;
pub(crate) mod set;
pub(crate) mod source;
pub(crate) mod system;

use binlogz_wire::ServerError;
use binlogz_wire::statement::ShownVariables;

use crate::statement_answer::{Refusal, StatementAnswer, cell};
pub(crate) use session::ClientVariables;
pub(crate) use system::SystemVariables;

const UNKNOWN_VARIABLE: (u16, [u8; 5]) = (ServerError::UNKNOWN_SYSTEM_VARIABLE, *b"HY000");

fn unknown_variable(name: &str) -> Refusal {
    (UNKNOWN_VARIABLE, format!("Unknown system variable '{name}'"))
}

/// SHOW VARIABLES.
pub(crate) fn show(
    wanted: &ShownVariables,
    variables: &ClientVariables,
    system: &SystemVariables,
) -> StatementAnswer<'static> {
    let listed = system.listed(wanted.scope, variables).into_iter().filter(|(name, _)| wanted.includes(name));
    let rows = listed.map(|(name, value)| vec![cell(name), cell(value)]).collect();
    StatementAnswer::rows(&[("Variable_name", false), ("Value", false)], rows)
}
