//! The value of an expression, and SELECT of expressions.

use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_wire::result_set::{ResultKind, ResultRow};
use binlogz_wire::session::ReplyColumn;
use binlogz_wire::statement::Expression;

use crate::statement_answer::{NOT_SUPPORTED, Refusal, StatementAnswer, WITH_FORWARDING};
use crate::variables::{ClientVariables, SystemVariables};

/// The functions below.
const FUNCTIONS: [&str; 11] = [
    "connection_id",
    "current_user",
    "database",
    "last_insert_id",
    "schema",
    "session_user",
    "system_user",
    "unix_timestamp",
    "user",
    "uuid",
    "version",
];

/// SELECT of expressions.
pub(crate) fn select<'a>(
    items: &'a [(Expression, String)],
    variables: &ClientVariables,
    system: &SystemVariables,
) -> StatementAnswer<'a> {
    let mut row: ResultRow = Vec::with_capacity(items.len());
    let mut columns = Vec::with_capacity(items.len());
    for (expression, name) in items {
        match value(expression, variables, system) {
            Ok((value, kind)) => {
                row.push(value.map(String::into_bytes));
                columns.push(ReplyColumn { name, kind });
            }
            Err(refusal) => return StatementAnswer::refused(refusal),
        }
    }
    StatementAnswer::Rows(columns, vec![row])
}

/// The value of an expression, and its kind.
pub(super) fn value(
    expression: &Expression,
    variables: &ClientVariables,
    system: &SystemVariables,
) -> Result<(Option<String>, ResultKind), Refusal> {
    Ok(match expression {
        Expression::Null => (None, ResultKind::NULL),
        Expression::Literal(text) => guessed(Some(text.clone())),
        Expression::Text(text) => (Some(text.clone()), ResultKind::TEXT),
        Expression::UserVariable(name) => guessed(variables.get(name).cloned().flatten()),
        Expression::SystemVariable(scope, name) => return system.select(*scope, name, variables),
        Expression::Concat(parts) => {
            let mut whole = String::new();
            for part in parts {
                // NULL makes the whole NULL.
                let (Some(part), _) = value(part, variables, system)? else {
                    return Ok((None, ResultKind::TEXT));
                };
                whole.push_str(&part);
            }
            (Some(whole), ResultKind::TEXT)
        }
        Expression::Function(name) => return function(name, variables, system),
    })
}

/// A value whose kind only its text tells.
fn guessed(value: Option<String>) -> (Option<String>, ResultKind) {
    let is_number = value.as_deref().is_some_and(|value| value.parse::<i64>().is_ok());
    (value, if is_number { ResultKind::INTEGER } else { ResultKind::TEXT })
}

/// Whether the relay knows a function.
pub(crate) fn knows(function: &str) -> bool {
    FUNCTIONS.contains(&function)
}

fn function(
    name: &str,
    variables: &ClientVariables,
    system: &SystemVariables,
) -> Result<(Option<String>, ResultKind), Refusal> {
    let client = &variables.client;
    let text = |text: String| (Some(text), ResultKind::TEXT);
    Ok(match name {
        "unix_timestamp" => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
            (Some(now.to_string()), ResultKind::INTEGER)
        }
        "version" => text(system.own("version").unwrap_or_default().to_owned()),
        "database" | "schema" => (client.database.clone(), ResultKind::TEXT),
        "user" | "session_user" | "system_user" => text(format!("{}@{}", client.user, client.host)),
        "current_user" => text(format!("{}@%", client.user)),
        "connection_id" => (Some(client.connection.to_string()), ResultKind::UNSIGNED),
        "last_insert_id" => (Some("0".into()), ResultKind::UNSIGNED),
        "uuid" => text(uuid()?),
        other => {
            return Err((
                NOT_SUPPORTED,
                format!("the relay does not know the function {other}{WITH_FORWARDING}"),
            ));
        }
    })
}

/// A random UUID (version 4).
fn uuid() -> Result<String, Refusal> {
    let mut bytes = [0; 16];
    let failed = |error: getrandom::Error| (NOT_SUPPORTED, format!("no random numbers: {error}"));
    getrandom::fill(&mut bytes).map_err(failed)?;
    let version = (u128::from_le_bytes(bytes) & !(0xf << 76) & !(3 << 62)) | (4 << 76) | (2 << 62);
    let hex = format!("{version:032x}");
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default().to_owned();
    Ok([part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_functions_that_are_known_have_values() {
        for name in FUNCTIONS {
            assert!(
                function(name, &ClientVariables::default(), &SystemVariables::default()).is_ok(),
                "{name}"
            );
        }
        assert!(function("now", &ClientVariables::default(), &SystemVariables::default()).is_err());
    }

    #[test]
    fn uuids_are_random_ones_by_their_form() {
        let one = uuid().unwrap();
        let other = uuid().unwrap();
        assert!(one != other && one.len() == 36, "{one} {other}");
        assert_eq!(one.as_bytes().get(14), Some(&b'4'), "{one}");
        assert!(one.as_bytes().get(19).is_some_and(|byte| b"89ab".contains(byte)), "{one}");
    }
}
