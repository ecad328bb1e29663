//! The meaning of a statement's text for its transaction, by the server's rules.
//!
//! Only the first words are read. Leading comments hide a keyword, as they do from the server, which writes
//! transaction control without them. [`crate::transaction`] derives the bounds of transactions from this.
//! (Facts of MySQL 9.7.4's `Query_log_event::is_trans_keyword` and `Transaction_boundary_parser`.)

use crate::event::QueryEvent;

/// Bytes of a query event's body before its status variables.
const POST_HEADER_SIZE: usize = 4 + 4 + 1 + 2 + 2;

/// Bytes of a statement that are enough to classify it.
const KEYWORDS_SIZE_MAX: usize = 16;

/// Bytes of a query event's body that are enough to classify its statement: post-header, status
/// variables, database with its NUL, keywords.
pub const QUERY_PREFIX_SIZE_MAX: usize =
    POST_HEADER_SIZE + u16::MAX as usize + u8::MAX as usize + 1 + KEYWORDS_SIZE_MAX;

/// A statement as transaction control sees it: `BEGIN` and `COMMIT` exactly as written, the others by their
/// first words, in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// `BEGIN`.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`, but not to a savepoint.
    Rollback,
    /// `ROLLBACK TO`.
    RollbackTo,
    /// `SAVEPOINT`.
    Savepoint,
    /// `XA START`.
    XaStart,
    /// `XA END`.
    XaEnd,
    /// `XA PREPARE`.
    XaPrepare,
    /// `XA COMMIT`, also `ONE PHASE`.
    XaCommit,
    /// `XA ROLLBACK`.
    XaRollback,
    /// Anything else: it changes data or tables.
    Other,
}

/// `ROLLBACK TO ` comes before `ROLLBACK`, its own prefix.
const PREFIXES: [(&[u8], StatementKind); 8] = [
    (b"SAVEPOINT", StatementKind::Savepoint),
    (b"ROLLBACK TO ", StatementKind::RollbackTo),
    (b"ROLLBACK", StatementKind::Rollback),
    (b"XA START", StatementKind::XaStart),
    (b"XA END", StatementKind::XaEnd),
    (b"XA PREPARE", StatementKind::XaPrepare),
    (b"XA COMMIT", StatementKind::XaCommit),
    (b"XA ROLLBACK", StatementKind::XaRollback),
];

impl StatementKind {
    /// Classifies a statement by its text.
    pub fn of(text: &[u8]) -> Self {
        match text {
            b"BEGIN" => StatementKind::Begin,
            b"COMMIT" => StatementKind::Commit,
            _ => PREFIXES
                .iter()
                .find(|(prefix, _)| {
                    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
                })
                .map_or(StatementKind::Other, |(_, kind)| *kind),
        }
    }

    /// Classifies the statement of a query event by its body, of which the first [`QUERY_PREFIX_SIZE_MAX`]
    /// bytes are enough. `None` if there is no statement, or the body is cut before it.
    pub fn of_query(body: &[u8]) -> Option<Self> {
        let statement = QueryEvent::decode(body).ok()?.statement;
        (!statement.is_empty()).then(|| Self::of(statement))
    }

    /// Whether the statement is a change logged in statement format: it is not transaction control.
    /// One such statement keeps a server from compressing the transaction.
    pub fn is_statement_based(self) -> bool {
        self == StatementKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_control_is_told_from_changes() {
        use StatementKind::*;
        for (text, kind) in [
            ("BEGIN", Begin),
            ("begin", Other),
            ("BEGIN WORK", Other),
            ("COMMIT", Commit),
            ("COMMIT ", Other),
            ("ROLLBACK", Rollback),
            ("rollback work", Rollback),
            ("ROLLBACK TO `a`", RollbackTo),
            ("rollback to savepoint a", RollbackTo),
            ("ROLLBACK TO", Rollback),
            ("SAVEPOINT `a`", Savepoint),
            ("savepoint a", Savepoint),
            ("RELEASE SAVEPOINT a", Other),
            ("XA START X'61',X'',1", XaStart),
            ("XA BEGIN 'a'", Other),
            ("XA END X'61',X'',1", XaEnd),
            ("XA PREPARE X'61',X'',1", XaPrepare),
            ("XA COMMIT X'61',X'',1", XaCommit),
            ("xa commit 'a' one phase", XaCommit),
            ("XA ROLLBACK X'61',X'',1", XaRollback),
            ("XA", Other),
            ("/* c */ SAVEPOINT a", Other),
            ("CREATE TABLE t (a INT)", Other),
            ("", Other),
        ] {
            assert_eq!(StatementKind::of(text.as_bytes()), kind, "{text}");
            assert_eq!(kind.is_statement_based(), kind == Other);
        }
    }

    #[test]
    fn the_longest_prefix_is_enough() {
        let longest = PREFIXES.iter().map(|(prefix, _)| prefix.len()).max().unwrap();
        // One more byte shows that BEGIN and COMMIT end there.
        assert!(longest < KEYWORDS_SIZE_MAX);
    }

    #[test]
    fn a_query_body_is_classified_or_cut() {
        let mut body = vec![0; POST_HEADER_SIZE];
        body[8] = 2;
        body[11] = 3;
        body.extend_from_slice(b"\x00\x01\x02db\0COMMIT");
        assert_eq!(StatementKind::of_query(&body), Some(StatementKind::Commit));
        let empty = body.len() - 6;
        for cut in 0..=empty {
            assert_eq!(StatementKind::of_query(&body[..cut]), None, "{cut}");
        }
        assert_eq!(StatementKind::of_query(&body[..empty + 1]), Some(StatementKind::Other));
    }
}
