//! SET: user variables, those of the session, those of compression, SET TRANSACTION.

use binlogz_variables::{CompressionVariables, Rights, VariableValue, Warning};
use binlogz_wire::ServerError;
use binlogz_wire::statement::{AssignmentTarget, Expression, NewTransactions, Scope};

use crate::statement_answer::{NOT_SUPPORTED, Refusal, StatementAnswer};
use crate::variables::evaluate::value;
use crate::variables::session::SessionValue;
use crate::variables::{ClientVariables, SystemVariables, unknown_variable};

/// The most variables of a client, each with at most the bytes below.
const VARIABLES_MAX: usize = 64;
const VALUE_SIZE_MAX: usize = 1024;
/// Characters of a user variable's name, as on the server.
const NAME_LENGTH_MAX: usize = 64;
/// How many bytes of a longer name the server's error shows.
const NAME_SHOWN_MAX: usize = 100;

const ILLEGAL_NAME: (u16, [u8; 5]) = (3061, *b"42000");
const ACCESS_DENIED: (u16, [u8; 5]) = (ServerError::SPECIFIC_ACCESS_DENIED, *b"42000");
const WRONG_VALUE: (u16, [u8; 5]) = (1231, *b"42000");
const WRONG_TYPE: (u16, [u8; 5]) = (1232, *b"42000");

const AUTOCOMMIT: &str = "autocommit";
const ISOLATION: [&str; 2] = ["transaction_isolation", "tx_isolation"];
const READ_ONLY: [&str; 2] = ["transaction_read_only", "tx_read_only"];
/// The server shows these words in capitals, however they were set.
const IN_CAPITALS: [&str; 3] = ["sql_mode", ISOLATION[0], ISOLATION[1]];

/// SET: makes all assignments up to the first that is refused; those of compression only if none is.
pub(crate) fn set(
    compression: &mut CompressionVariables,
    rights: Rights,
    variables: &mut ClientVariables,
    system: &SystemVariables,
    assignments: &[(AssignmentTarget, Expression)],
) -> StatementAnswer<'static> {
    let mut wanted = *compression;
    match assign(&mut wanted, rights, variables, system, assignments) {
        Ok(()) => {
            *compression = wanted;
            StatementAnswer::Done { warnings: variables.warnings.len() as u16 }
        }
        Err(((code, sqlstate), message)) => {
            variables.warnings.push(("Error", code, message.clone()));
            StatementAnswer::refused(((code, sqlstate), message))
        }
    }
}

/// Makes all assignments, or returns an error at the first that fails.
fn assign(
    compression: &mut CompressionVariables,
    rights: Rights,
    variables: &mut ClientVariables,
    system: &SystemVariables,
    assignments: &[(AssignmentTarget, Expression)],
) -> Result<(), Refusal> {
    for (target, expression) in assignments {
        let name = match target {
            AssignmentTarget::UserVariable(name) => legal(name)?,
            AssignmentTarget::Session(name) => {
                set_session(variables, name, expression, system)?;
                continue;
            }
            AssignmentTarget::Global(name) if CompressionVariables::has(name) => {
                let warning = set_global(compression, rights, name, expression, variables, system)?;
                variables.warnings.extend(warning.map(|warning| ("Warning", warning.code, warning.message)));
                continue;
            }
            AssignmentTarget::Global(name) => {
                return Err((ACCESS_DENIED, format!("Access denied: the relay has no global {name} to set")));
            }
            AssignmentTarget::Persist(name) => {
                return Err((
                    NOT_SUPPORTED,
                    format!(
                        "the relay does not keep {name}: its configuration says what holds at the next start"
                    ),
                ));
            }
        };
        let (value, _) = value(expression, variables, system)?;
        let fits = value.as_ref().is_none_or(|value| value.len() <= VALUE_SIZE_MAX);
        if !fits || (variables.len() >= VARIABLES_MAX && !variables.contains_key(name)) {
            return Err((NOT_SUPPORTED, "too many or too long variables".into()));
        }
        variables.values.insert(name.clone(), value);
    }
    Ok(())
}

/// SET of a variable of the session. The relay does nothing by it, but says it again when it is asked.
fn set_session(
    variables: &mut ClientVariables,
    name: &str,
    expression: &Expression,
    system: &SystemVariables,
) -> Result<(), Refusal> {
    // Nobody changes what is the relay's own; before the source was reached, any name will do.
    if system.is_own(name) || system.source().is_none() {
        return Ok(());
    }
    let known = system.of_source(name).ok_or_else(|| unknown_variable(name))?;
    if matches!(expression, Expression::Literal(word) if word.eq_ignore_ascii_case("DEFAULT")) {
        variables.session.remove(name);
        if name == AUTOCOMMIT {
            variables.set_autocommit(known.shown != "OFF");
        }
        return Ok(());
    }
    let (value, _) = value(expression, variables, system)?;
    let shown = value.clone().unwrap_or_else(|| "NULL".into());
    let value = if known.is_switch() {
        let on = match shown.to_ascii_uppercase().as_str() {
            "ON" | "TRUE" | "1" => true,
            "OFF" | "FALSE" | "0" => false,
            _ => {
                let message = format!("Variable '{name}' can't be set to the value of '{shown}'");
                return Err((WRONG_VALUE, message));
            }
        };
        if name == AUTOCOMMIT {
            variables.set_autocommit(on);
        }
        let shown = if on { "ON" } else { "OFF" };
        SessionValue { shown: shown.into(), selected: Some(u8::from(on).to_string()) }
    } else if known.kind().is_integer() {
        let number = match shown.to_ascii_uppercase().as_str() {
            "TRUE" => 1,
            "FALSE" => 0,
            text => text
                .parse::<i128>()
                .map_err(|_| (WRONG_TYPE, format!("Incorrect argument type to variable '{name}'")))?,
        };
        SessionValue::text(number.to_string())
    } else {
        let spelt = |text: String| if IN_CAPITALS.contains(&name) { text.to_ascii_uppercase() } else { text };
        match value.map(spelt) {
            Some(text) if text.len() <= VALUE_SIZE_MAX => SessionValue::text(text),
            Some(_) => return Err((NOT_SUPPORTED, "too many or too long variables".into())),
            None => SessionValue { shown: String::new(), selected: None },
        }
    };
    variables.session.insert(name.to_owned(), value);
    Ok(())
}

/// SET TRANSACTION. Without a scope it sets the next transaction's characteristics, which no statement can show.
pub(crate) fn set_transaction(
    variables: &mut ClientVariables,
    system: &SystemVariables,
    wanted: &NewTransactions,
) -> StatementAnswer<'static> {
    match wanted.scope {
        Scope::Any => return StatementAnswer::DONE,
        Scope::Global => {
            let message = "Access denied: the relay has no transactions of its own".into();
            return StatementAnswer::refused((ACCESS_DENIED, message));
        }
        Scope::Session => {}
    }
    let isolation = wanted.isolation.as_deref().map(|level| (ISOLATION, level));
    let read_only = wanted.read_only.map(|on| (READ_ONLY, if on { "ON" } else { "OFF" }));
    for (names, value) in isolation.into_iter().chain(read_only) {
        // Before 5.7.20 they had other names only.
        for name in names.into_iter().filter(|name| system.of_source(name).is_some()) {
            let value = Expression::Literal(value.to_owned());
            if let Err(refusal) = set_session(variables, name, &value, system) {
                return StatementAnswer::refused(refusal);
            }
        }
    }
    StatementAnswer::DONE
}

/// SET GLOBAL of a variable of compression, with the server's rules.
fn set_global(
    compression: &mut CompressionVariables,
    rights: Rights,
    name: &str,
    expression: &Expression,
    variables: &ClientVariables,
    system: &SystemVariables,
) -> Result<Option<Warning>, Refusal> {
    let (text, _) = value(expression, variables, system)?;
    let value = match (expression, text.as_deref()) {
        (_, None) => VariableValue::Null,
        (Expression::Literal(word), _) if word.eq_ignore_ascii_case("DEFAULT") => VariableValue::Default,
        (Expression::Literal(word), _) if word.eq_ignore_ascii_case("TRUE") => VariableValue::Integer(1),
        (Expression::Literal(word), _) if word.eq_ignore_ascii_case("FALSE") => VariableValue::Integer(0),
        (Expression::Literal(_) | Expression::SystemVariable(..), Some(text)) => {
            text.parse().map_or(VariableValue::Text(text), VariableValue::Integer)
        }
        (_, Some(text)) => VariableValue::Text(text),
    };
    compression.set(name, value, rights).map_err(|error| {
        let sqlstate = match error.code {
            1227 | 1231 | 1232 => *b"42000",
            _ => *b"HY000",
        };
        ((error.code, sqlstate), error.message)
    })
}

/// The name of a user variable, if a server would let it be set.
fn legal(name: &String) -> Result<&String, Refusal> {
    if name.chars().count() <= NAME_LENGTH_MAX {
        return Ok(name);
    }
    let end = (0..=NAME_SHOWN_MAX).rev().find(|end| name.is_char_boundary(*end)).unwrap_or_default();
    let shown = name.get(..end).unwrap_or_default();
    Err((ILLEGAL_NAME, format!("User variable name '{shown}' is illegal")))
}
