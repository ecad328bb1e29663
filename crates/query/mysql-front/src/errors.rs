//! MySQL's numbers for what is refused, and the SQLSTATE that goes with each.
//!
//! (MySQL's manual, "Server Error Message Reference".) What DataFusion says of a statement is found by its words.

use binlogz_query_server::{Blame, StatementRefusal};
use binlogz_wire::ServerError;

pub(crate) const UNKNOWN_COMMAND: u16 = 1047;
pub(crate) const TOO_MANY_CONNECTIONS: u16 = 1040;
pub(crate) const UNKNOWN_DATABASE: u16 = 1049;
const AMBIGUOUS_COLUMN: u16 = 1052;
const UNKNOWN_COLUMN: u16 = 1054;
pub(crate) const SYNTAX: u16 = 1064;
pub(crate) const EMPTY_STATEMENT: u16 = 1065;
pub(crate) const UNKNOWN_THREAD: u16 = 1094;
const UNKNOWN: u16 = 1105;
pub(crate) const UNKNOWN_CHARACTER_SET: u16 = 1115;
pub(crate) const NO_SUCH_TABLE: u16 = 1146;
pub(crate) const UNKNOWN_VARIABLE: u16 = 1193;
pub(crate) const WRONG_ARGUMENTS: u16 = 1210;
pub(crate) const ACCESS_DENIED: u16 = 1227;
pub(crate) const WRONG_VALUE: u16 = 1231;
pub(crate) const NOT_SUPPORTED: u16 = 1235;
pub(crate) const READ_ONLY_VARIABLE: u16 = 1238;
pub(crate) const UNKNOWN_STATEMENT_HANDLER: u16 = 1243;
pub(crate) const UNKNOWN_COLLATION: u16 = 1273;
pub(crate) const OPTION_PREVENTS: u16 = 1290;
pub(crate) const UNKNOWN_TIME_ZONE: u16 = 1298;
pub(crate) const INVALID_TEXT: u16 = 1300;
const UNKNOWN_FUNCTION: u16 = 1305;
const INTERRUPTED: u16 = 1317;
pub(crate) const TOO_MANY_STATEMENTS: u16 = 1461;
const OUT_OF_RANGE: u16 = 1690;
const TIMEOUT: u16 = 3024;
pub(crate) const INSECURE_TRANSPORT: u16 = 3159;
const CAPACITY: u16 = 3170;

/// The message of a server that only reads.
pub(crate) const READ_ONLY: &str =
    "The MySQL server is running with the --read-only option so it cannot execute this statement";

fn sqlstate(number: u16) -> [u8; 5] {
    match number {
        TOO_MANY_CONNECTIONS => *b"08004",
        UNKNOWN_COMMAND => *b"08S01",
        UNKNOWN_DATABASE
        | SYNTAX
        | EMPTY_STATEMENT
        | UNKNOWN_CHARACTER_SET
        | ACCESS_DENIED
        | WRONG_VALUE
        | NOT_SUPPORTED
        | UNKNOWN_FUNCTION
        | TOO_MANY_STATEMENTS => *b"42000",
        AMBIGUOUS_COLUMN => *b"23000",
        UNKNOWN_COLUMN => *b"42S22",
        NO_SUCH_TABLE => *b"42S02",
        INTERRUPTED => *b"70100",
        OUT_OF_RANGE => *b"22003",
        _ => *b"HY000",
    }
}

/// An error as clients are sent it.
pub(crate) fn error(number: u16, message: impl Into<String>) -> ServerError {
    ServerError { code: number, sqlstate: Some(sqlstate(number)), message: message.into() }
}

/// The refusal of a statement, with MySQL's number.
pub(crate) fn refused(number: u16, message: impl Into<String>) -> StatementRefusal {
    StatementRefusal { number, ..StatementRefusal::new(Blame::Statement, message) }
}

/// A refusal as clients are sent it.
pub(crate) fn of_refusal(refusal: StatementRefusal) -> ServerError {
    let number = match (refusal.number, refusal.blame) {
        (0, Blame::Stopped) => INTERRUPTED,
        (0, Blame::Time) => TIMEOUT,
        (0, Blame::Limit) => CAPACITY,
        (0, Blame::Statement | Blame::Logs | Blame::Unavailable | Blame::Program) => UNKNOWN,
        (number, _) => number,
    };
    error(number, refusal.line)
}

/// A refusal of the query engine, with MySQL's number where its words tell which.
pub(crate) fn numbered(refusal: StatementRefusal) -> StatementRefusal {
    if refusal.blame != Blame::Statement || refusal.number != 0 {
        return refusal;
    }
    let line = refusal.line.as_str();
    if line.ends_with("statements can only read") {
        return refused(OPTION_PREVENTS, READ_ONLY);
    }
    if let Some(name) = between(line, "there is no table ", ",") {
        return refused(NO_SUCH_TABLE, format!("Table '{name}' doesn't exist"));
    }
    if let Some(name) = between(line, "No field named ", ".").or_else(|| line.strip_prefix("No field named "))
    {
        let name = name.replace('"', "");
        let others = line.split_once(" Valid fields are ").map(|(_, others)| format!("; there are {others}"));
        let message = format!("Unknown column '{name}' in 'field list'{}", others.unwrap_or_default());
        return refused(UNKNOWN_COLUMN, message);
    }
    if let Some((name, rest)) =
        line.strip_prefix("there is no column ").and_then(|rest| rest.split_once(", "))
    {
        return refused(UNKNOWN_COLUMN, format!("Unknown column '{name}' in 'field list'; {rest}"));
    }
    if let Some(name) = between(line, "Invalid function '", "'") {
        return refused(UNKNOWN_FUNCTION, format!("FUNCTION {name} does not exist"));
    }
    if line.contains("Ambiguous reference") {
        return refused(AMBIGUOUS_COLUMN, line);
    }
    if line.to_lowercase().contains("overflow") {
        return refused(OUT_OF_RANGE, line);
    }
    refusal
}

fn between<'l>(line: &'l str, before: &str, after: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_says_has_mysqls_number() {
        for (line, number, message) in [
            (
                "there is no table binlog.nothing, expected transactions, changes, events, or one that SHOW TABLES lists",
                1146,
                "Table 'binlog.nothing' doesn't exist",
            ),
            (
                "Schema error: No field named nothing. Valid fields are changes.log, changes.gtid.",
                1054,
                "Unknown column 'nothing' in 'field list'; there are changes.log, changes.gtid.",
            ),
            (
                "there is no column x in after, expected one of a, b",
                1054,
                "Unknown column 'x in after' in 'field list'; expected one of a, b",
            ),
            ("Invalid function 'f'. Did you mean 'g'?", 1305, "FUNCTION f does not exist"),
            ("COPY is not possible: statements can only read", 1290, READ_ONLY),
        ] {
            let told = of_refusal(numbered(StatementRefusal::new(Blame::Statement, line)));
            assert_eq!((told.code, told.message.as_str()), (number, message));
        }
        let late = of_refusal(numbered(StatementRefusal::new(Blame::Time, "it took long")));
        assert_eq!((late.code, late.sqlstate), (TIMEOUT, Some(*b"HY000")));
    }
}
