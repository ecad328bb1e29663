//! The answer to a statement: nothing more, rows, or an error.

use binlogz_wire::ServerError;
use binlogz_wire::result_set::{ResultKind, ResultRow};
use binlogz_wire::session::{ReplicaSession, ReplyColumn};

/// An error's code with its SQL state, and its text.
pub type Refusal = ((u16, [u8; 5]), String);

/// ER_NOT_SUPPORTED_YET.
pub(crate) const NOT_SUPPORTED: (u16, [u8; 5]) = (1235, *b"42000");

/// The setting that would have it answered.
pub const WITH_FORWARDING: &str = "; forward_sql = true in its configuration passes it to the source";

/// The answer to a statement.
#[derive(Debug)]
pub enum StatementAnswer<'a> {
    /// Done; SHOW WARNINGS has this many lines.
    Done {
        /// How many.
        warnings: u16,
    },
    /// Columns and rows.
    Rows(Vec<ReplyColumn<'a>>, Vec<ResultRow>),
    /// An error.
    Refused(ServerError),
}

impl<'a> StatementAnswer<'a> {
    pub(crate) const DONE: Self = StatementAnswer::Done { warnings: 0 };

    /// An answer of rows, with the columns' names and whether they are numbers.
    pub(crate) fn rows(columns: &[(&'static str, bool)], rows: Vec<ResultRow>) -> Self {
        StatementAnswer::Rows(
            columns.iter().map(|(name, is_number)| ReplyColumn { name, kind: kind(*is_number) }).collect(),
            rows,
        )
    }

    /// A refusal.
    pub fn refused(((code, sqlstate), message): Refusal) -> Self {
        StatementAnswer::Refused(ServerError { code, sqlstate: Some(sqlstate), message })
    }

    /// Sends this answer to the client.
    pub fn give(&self, session: &mut ReplicaSession) {
        match self {
            StatementAnswer::Done { warnings } => session.ok_with_warnings(*warnings),
            StatementAnswer::Rows(columns, rows) => session.rows(columns, rows),
            StatementAnswer::Refused(error) => session.refuse(error),
        }
    }
}

/// The kind of a column of numbers, or of texts.
pub(crate) fn kind(is_number: bool) -> ResultKind {
    if is_number { ResultKind::INTEGER } else { ResultKind::TEXT }
}

/// A value in a row.
pub(crate) fn cell(value: impl ToString) -> Option<Vec<u8>> {
    Some(value.to_string().into_bytes())
}
