//! Decides where a statement is answered, if the relay forwards statements that it does not answer itself
//! (`forward_sql`).
//!
//! A statement is answered by the relay, by the source, or by both, because both must know the variables it sets.
//! Positions and statuses are always the relay's: the source's mean other places in other files.

use binlogz_wire::statement::{
    Expression, NamePattern, Statement, TransactionStatement, first_word, mentions, mentions_variable,
};

use crate::compression_stats;
use crate::statement_answer::{NOT_SUPPORTED, Refusal};
use crate::variables::evaluate;
use crate::variables::system::READ_ONLY;

/// Variables that tell how far a source is, in a statement that the source would answer with its own coordinates.
const POSITIONS: [&str; 2] = ["gtid_executed", "gtid_purged"];
/// Tables that have those variables as rows.
const OF_VARIABLES: [&str; 3] = ["variables", "global_variables", "session_variables"];
/// A table that has the source's coordinates.
const LOG_STATUS: [&str; 1] = ["log_status"];
const NO_SUCH_THREAD: (u16, [u8; 5]) = (1094, *b"HY000");

/// Where a statement is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementRoute {
    /// By the relay.
    Here,
    /// By the source.
    There,
    /// By the relay, and if it does not refuse it, by the source too, whose answer the client gets.
    Both,
    /// Nowhere.
    Refused(Refusal),
}

/// The uses of a client's connection to the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionUses {
    /// It is open.
    pub is_open: bool,
    /// It answered the last statement.
    pub answered_last: bool,
}

/// Where this statement is answered.
pub fn route(text: &str, statement: Option<&Statement>, used: ConnectionUses) -> StatementRoute {
    let there_if = |there| if there { StatementRoute::There } else { StatementRoute::Here };
    match statement {
        Some(Statement::Select(items)) => {
            let has = |is: fn(&Expression) -> bool| items.iter().any(|(expression, _)| is(expression));
            match has(|expression| matches!(expression, Expression::Function(name) if !evaluate::knows(name)))
            {
                true => elsewhere(text),
                false => there_if(used.is_open && has(is_of_session)),
            }
        }
        Some(Statement::SelectFrom(query)) if !compression_stats::is_named(&query.from) => elsewhere(text),
        Some(
            Statement::Set(_)
            | Statement::SetNames { .. }
            | Statement::SetEach(_)
            | Statement::SetTransaction(_),
        ) => StatementRoute::Both,
        Some(Statement::Transaction(TransactionStatement::Begin)) => StatementRoute::There,
        Some(Statement::Transaction(_) | Statement::Use(_)) => there_if(used.is_open),
        Some(Statement::ShowWarnings) => there_if(used.answered_last),
        Some(_) => StatementRoute::Here,
        None => elsewhere(text),
    }
}

/// Whether the source may prepare this statement; else the client must send it as text.
pub fn may_be_prepared(text: &str) -> bool {
    match Statement::parse(text) {
        Some(
            Statement::ShowBinaryLogs
            | Statement::ShowBinaryLogStatus
            | Statement::ShowBinlogEvents(_)
            | Statement::ShowReplicaStatus(_)
            | Statement::ShowReplicas(_)
            | Statement::Set(_)
            | Statement::SetNames { .. }
            | Statement::SetEach(_)
            | Statement::SetTransaction(_)
            | Statement::Admin(_),
        ) => false,
        _ => matches!(elsewhere(text), StatementRoute::There),
    }
}

/// Whether the answer tells how far the relay is. It must be as far as whatever the client saw at the source.
pub fn tells_position(statement: &Statement) -> bool {
    let is_executed = |expression: &Expression| matches!(expression, Expression::SystemVariable(_, name) if name == POSITIONS[0]);
    match statement {
        Statement::ShowBinaryLogs
        | Statement::ShowBinaryLogStatus
        | Statement::ShowBinlogEvents(_)
        | Statement::ShowReplicaStatus(_) => true,
        Statement::Select(items) => items.iter().any(|(expression, _)| is_executed(expression)),
        // Drivers list many variables without a wish to know this one.
        Statement::ShowVariables(wanted) => wanted.patterns.iter().any(|pattern| match pattern {
            NamePattern::Is(name) | NamePattern::Like(name) => name.to_ascii_lowercase().contains("gtid"),
        }),
        _ => false,
    }
}

/// Whether a statement asks for nothing but `read_only` and `super_read_only`.
pub fn asks_read_only(statement: &Statement) -> bool {
    match statement {
        Statement::Select(items) => {
            !items.is_empty() && items.iter().all(|(expression, _)| is_read_only(expression))
        }
        Statement::ShowVariables(wanted) => {
            !wanted.patterns.is_empty()
                && wanted.patterns.iter().all(|pattern| match pattern {
                    NamePattern::Is(name) | NamePattern::Like(name) => {
                        READ_ONLY.contains(&name.to_ascii_lowercase().as_str())
                    }
                })
        }
        _ => false,
    }
}

fn is_read_only(expression: &Expression) -> bool {
    matches!(expression, Expression::SystemVariable(_, name) if READ_ONLY.contains(&name.as_str()))
}

/// The value is one of the session at the source.
fn is_of_session(expression: &Expression) -> bool {
    match expression {
        Expression::UserVariable(_) => true,
        Expression::Function(name) => name == "last_insert_id",
        Expression::Concat(parts) => parts.iter().any(is_of_session),
        _ => false,
    }
}

/// The source answers, unless its answer to the statement would differ from the relay's.
fn elsewhere(text: &str) -> StatementRoute {
    if tells_positions_of_source(text) {
        let message = "the relay answers for positions itself, in statements about nothing else: \
                       SHOW BINARY LOG STATUS, SELECT @@GLOBAL.gtid_executed";
        return StatementRoute::Refused((NOT_SUPPORTED, message.into()));
    }
    if first_word(text).as_deref() == Some("KILL") {
        // The client knows the number of its connection to the relay, which is another one's at the source.
        return StatementRoute::Refused((
            NO_SUCH_THREAD,
            "Unknown thread id: it is the relay's, not the source's".into(),
        ));
    }
    StatementRoute::There
}

/// The table `mysql.gtid_executed`, which is part of a dump of everything, is a table like others.
fn tells_positions_of_source(text: &str) -> bool {
    mentions_variable(text, &POSITIONS)
        || mentions(text, &LOG_STATUS)
        || mentions(text, &OF_VARIABLES) && mentions(text, &POSITIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_has_its_place() {
        let unused = ConnectionUses::default();
        let open = ConnectionUses { is_open: true, answered_last: true };
        let place =
            |text: &str, used: ConnectionUses| match route(text, Statement::parse(text).as_ref(), used) {
                StatementRoute::Here => "here",
                StatementRoute::There => "there",
                StatementRoute::Both => "both",
                StatementRoute::Refused(_) => "nowhere",
            };
        for (text, unused_place, open_place) in [
            ("SHOW CREATE TABLE a.b", "there", "there"),
            ("SELECT * FROM a.b", "there", "there"),
            ("SELECT * FROM performance_schema.binary_log_transaction_compression_stats", "here", "here"),
            ("FLUSH TABLES WITH READ LOCK", "there", "there"),
            ("SELECT NOW()", "there", "there"),
            ("SELECT @@wait_timeout, VERSION()", "here", "here"),
            ("SELECT @a", "here", "there"),
            ("SELECT LAST_INSERT_ID()", "here", "there"),
            ("SET @a = 1", "both", "both"),
            ("SET NAMES utf8mb4", "both", "both"),
            ("SET NAMES utf8mb4, autocommit = 1", "both", "both"),
            ("BEGIN", "there", "there"),
            ("COMMIT", "here", "there"),
            ("USE a", "here", "there"),
            ("SHOW WARNINGS", "here", "there"),
            ("SHOW BINARY LOG STATUS", "here", "here"),
            ("SELECT @@GLOBAL.gtid_executed", "here", "here"),
            ("PURGE BINARY LOGS TO 'a'", "here", "here"),
            ("SELECT NOW(), @@GLOBAL.gtid_executed", "nowhere", "nowhere"),
            ("SELECT LOCAL FROM performance_schema.log_status", "nowhere", "nowhere"),
            (
                "SELECT * FROM performance_schema.global_variables WHERE VARIABLE_NAME = 'gtid_executed'",
                "nowhere",
                "nowhere",
            ),
            ("SHOW TABLE STATUS LIKE 'gtid\\_executed'", "there", "there"),
            ("SHOW CREATE TABLE `mysql`.`gtid_executed`", "there", "there"),
            ("KILL QUERY 7", "nowhere", "nowhere"),
        ] {
            assert_eq!((place(text, unused), place(text, open)), (unused_place, open_place), "{text}");
        }
    }

    #[test]
    fn read_only_is_asked_for_alone_or_with_others() {
        for (text, expected) in [
            ("SELECT @@read_only", true),
            ("SELECT @@GLOBAL.READ_ONLY, @@super_read_only AS s", true),
            ("SHOW VARIABLES LIKE 'read_only'", true),
            ("SHOW GLOBAL VARIABLES WHERE Variable_name = 'Super_Read_Only'", true),
            ("SELECT @@read_only, @@server_id", false),
            ("SELECT @@transaction_read_only", false),
            ("SELECT 1", false),
            ("SHOW VARIABLES", false),
            ("SHOW VARIABLES LIKE '%read_only'", false),
        ] {
            assert_eq!(asks_read_only(&Statement::parse(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn positions_are_told_by_few_statements_and_prepared_by_none() {
        let tells = |text: &str| tells_position(&Statement::parse(text).unwrap());
        for text in [
            "SHOW MASTER STATUS",
            "SHOW BINARY LOGS",
            "SELECT 1, @@gtid_executed",
            "SHOW GLOBAL VARIABLES LIKE 'gtid_executed'",
            "SHOW VARIABLES WHERE Variable_name = 'GTID_EXECUTED'",
        ] {
            assert!(tells(text), "{text}");
        }
        assert!(!tells("SHOW VARIABLES") && !tells("SELECT @@server_id") && !tells("COMMIT"));
        for text in ["SHOW MASTER STATUS", "SELECT @@gtid_executed", "SET @a = 1", "KILL 1"] {
            assert!(!may_be_prepared(text), "{text}");
        }
        assert!(may_be_prepared("SELECT * FROM a WHERE b = ?") && may_be_prepared("SELECT @@server_id"));
    }
}
