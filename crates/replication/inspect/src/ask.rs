//! Queries one server, and distinguishes why a statement has no answer: a right is missing, the server
//! doesn't know what is asked for, or something else. Only a broken connection ends the examination.

use binlogz_source::wire::result_set::ResultRow;
use binlogz_source::{Connection, Error};

/// Error numbers for a right that the account lacks: database, table, column, global privilege.
const DENIED: [u16; 4] = [1044, 1142, 1143, 1227];
/// For what this server doesn't have: statement, table, column, system variable, storage engine's table.
const NOT_KNOWN: [u16; 6] = [1064, 1109, 1146, 1054, 1193, 1049];

/// An answer that a server may give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fact<T> {
    /// It answered.
    Known(T),
    /// It would answer with this right, as written after GRANT.
    NotGranted(&'static str),
    /// It has no such thing.
    Absent,
    /// It refused for another reason.
    Refused(String),
}

impl<T> Fact<T> {
    pub(crate) fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn as_ref(&self) -> Fact<&T> {
        match self {
            Fact::Known(value) => Fact::Known(value),
            Fact::NotGranted(grant) => Fact::NotGranted(grant),
            Fact::Absent => Fact::Absent,
            Fact::Refused(why) => Fact::Refused(why.clone()),
        }
    }

    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known(value) => Fact::Known(map(value)),
            Fact::NotGranted(grant) => Fact::NotGranted(grant),
            Fact::Absent => Fact::Absent,
            Fact::Refused(why) => Fact::Refused(why),
        }
    }

    /// What is read out of the answer; one that can't be read counts as refused.
    pub(crate) fn read<U>(self, read: impl FnOnce(T) -> Result<U, String>) -> Fact<U> {
        match self.map(read) {
            Fact::Known(Ok(value)) => Fact::Known(value),
            Fact::Known(Err(why)) | Fact::Refused(why) => Fact::Refused(why),
            Fact::NotGranted(grant) => Fact::NotGranted(grant),
            Fact::Absent => Fact::Absent,
        }
    }

    /// This answer or, if the server has no such thing, that of `other`.
    pub(crate) fn or_if_absent<E>(self, other: impl FnOnce() -> Result<Self, E>) -> Result<Self, E> {
        match self {
            Fact::Absent => other(),
            fact => Ok(fact),
        }
    }
}

/// A row of texts; NULL and what is no text are `None`.
#[derive(Debug)]
pub(crate) struct TextRow(Vec<Option<String>>);

impl TextRow {
    #[cfg(test)]
    pub(crate) fn of(texts: &[Option<&str>]) -> TextRow {
        TextRow(texts.iter().map(|text| text.map(str::to_owned)).collect())
    }

    pub(crate) fn get(&self, column: usize) -> Option<&str> {
        self.0.get(column)?.as_deref()
    }

    pub(crate) fn text(&self, column: usize) -> String {
        self.get(column).unwrap_or_default().to_owned()
    }

    pub(crate) fn number(&self, column: usize) -> Option<u64> {
        self.get(column)?.parse().ok()
    }

    /// The number in a column. What is none is told with the column's name.
    pub(crate) fn counter(&self, column: usize, name: &str) -> Result<u64, String> {
        self.number(column).ok_or_else(|| match self.get(column) {
            Some(text) => format!("{name} is '{text}', expected a number"),
            None => format!("{name} is NULL, expected a number"),
        })
    }
}

/// Asks a server.
pub(crate) struct ServerAsker<'a> {
    connection: &'a mut Connection,
}

impl<'a> ServerAsker<'a> {
    pub(crate) fn new(connection: &'a mut Connection) -> Self {
        ServerAsker { connection }
    }

    /// Runs a statement that needs `grant`.
    ///
    /// # Errors
    ///
    /// The connection is unusable.
    pub(crate) fn rows(&mut self, statement: &str, grant: &'static str) -> Result<Fact<Vec<TextRow>>, Error> {
        match self.connection.query(statement) {
            Ok(rows) => Ok(Fact::Known(rows.into_iter().map(text_row).collect())),
            Err(error) => match error.server_error() {
                Some(refusal) if DENIED.contains(&refusal.code) => Ok(Fact::NotGranted(grant)),
                Some(refusal) if NOT_KNOWN.contains(&refusal.code) => Ok(Fact::Absent),
                Some(refusal) => Ok(Fact::Refused(refusal.to_string())),
                None => Err(error),
            },
        }
    }
}

fn text_row(row: ResultRow) -> TextRow {
    TextRow(
        row.into_iter()
            .map(|column| column.map(|text| String::from_utf8_lossy(&text).into_owned()))
            .collect(),
    )
}
