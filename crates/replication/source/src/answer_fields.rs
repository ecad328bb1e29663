//! The first row of an answer, whose values are read as what the statement asks for. A value that can't be read so is an error that
//! names the statement and what was answered: a default in its place would be a guess.

use std::str::FromStr;

use binlogz_binlog::gtid::GtidSet;
use binlogz_wire::result_set::ResultRow;

use crate::error::{Error, Result};

/// The first row of a server's answer to a statement.
#[derive(Debug, Clone)]
pub struct AnswerFields {
    server: String,
    statement: String,
    row: ResultRow,
}

/// The most characters of a value in an error.
const SHOWN_MAX: usize = 80;

impl AnswerFields {
    /// The first row of these.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn first_of(server: &str, statement: &str, rows: Vec<ResultRow>) -> Result<AnswerFields> {
        let server = server.to_owned();
        let statement = statement.to_owned();
        match rows.into_iter().next() {
            Some(row) => Ok(AnswerFields { server, statement, row }),
            None => Err(Error::Answer { server, statement, answer: "no row".to_owned(), expected: "a row" }),
        }
    }

    /// A text, which is not NULL.
    ///
    /// # Errors
    ///
    /// It is NULL, absent or no UTF-8.
    pub fn text(&self, index: usize) -> Result<&str> {
        let text = self.bytes(index).and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.ok_or_else(|| self.unexpected(index, "a text"))
    }

    /// A text; `None`: NULL.
    ///
    /// # Errors
    ///
    /// It is absent or no UTF-8.
    pub fn optional_text(&self, index: usize) -> Result<Option<&str>> {
        match self.row.get(index) {
            Some(None) => Ok(None),
            Some(Some(_)) | None => self.text(index).map(Some),
        }
    }

    /// A number, or something else with a form of its own. `expected` says what, as in "a number".
    ///
    /// # Errors
    ///
    /// It doesn't have this form.
    pub fn parsed<T: FromStr>(&self, index: usize, expected: &'static str) -> Result<T> {
        let text = self.text(index).map_err(|_| self.unexpected(index, expected))?;
        text.parse().map_err(|_| self.unexpected(index, expected))
    }

    /// A switch, as variables have it: 1 or ON, 0 or OFF.
    ///
    /// # Errors
    ///
    /// It is neither.
    pub fn is_on(&self, index: usize) -> Result<bool> {
        match self.text(index) {
            Ok("1" | "ON") => Ok(true),
            Ok("0" | "OFF") => Ok(false),
            _ => Err(self.unexpected(index, "0 or 1")),
        }
    }

    /// A set of GTIDs, which servers break into lines.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn gtid_set(&self, index: usize) -> Result<GtidSet> {
        const EXPECTED: &str = "a GTID set";
        let text = self.text(index).map_err(|_| self.unexpected(index, EXPECTED))?;
        text.replace('\n', "").parse().map_err(|_| self.unexpected(index, EXPECTED))
    }

    /// The error of a value that is not as expected.
    pub fn unexpected(&self, index: usize, expected: &'static str) -> Error {
        let answer = match (self.row.get(index), self.bytes(index)) {
            (None, _) => format!("{} columns", self.row.len()),
            (_, None) => "NULL".to_owned(),
            (_, Some(bytes)) => {
                let text = String::from_utf8_lossy(bytes);
                let shown: String = text.chars().take(SHOWN_MAX).collect();
                let end = if shown.len() < text.len() { " …" } else { "" };
                format!("{shown:?}{end}")
            }
        };
        Error::Answer { server: self.server.clone(), statement: self.statement.clone(), answer, expected }
    }

    fn bytes(&self, index: usize) -> Option<&[u8]> {
        self.row.get(index)?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(cells: &[Option<&str>]) -> AnswerFields {
        let row = cells.iter().map(|cell| cell.map(|text| text.as_bytes().to_vec())).collect();
        AnswerFields::first_of("db:3306", "SELECT 1", vec![row]).unwrap()
    }

    #[test]
    fn values_are_read_as_what_they_have_to_be() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let set = format!("{uuid}:1-5,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:7");
        let fields = fields(&[Some("7"), Some("ON"), Some("0"), Some(&set), Some("")]);
        assert_eq!(fields.parsed::<u32>(0, "a number").unwrap(), 7);
        assert_eq!((fields.is_on(1).unwrap(), fields.is_on(2).unwrap()), (true, false));
        assert_eq!(fields.gtid_set(3).unwrap().count(), 6);
        assert!(fields.gtid_set(4).unwrap().is_empty());
        assert_eq!(fields.text(4).unwrap(), "");
        assert_eq!(fields.optional_text(4).unwrap(), Some(""));
    }

    #[test]
    fn an_unreadable_value_names_the_statement_and_what_was_answered() {
        let fields = fields(&[Some("many"), None, Some("-1")]);
        let number = |index| fields.parsed::<u32>(index, "a number").unwrap_err().to_string();
        assert_eq!(number(0), "db:3306: SELECT 1 answered \"many\", expected a number");
        assert_eq!(number(1), "db:3306: SELECT 1 answered NULL, expected a number");
        assert_eq!(number(2), "db:3306: SELECT 1 answered \"-1\", expected a number");
        assert_eq!(number(3), "db:3306: SELECT 1 answered 3 columns, expected a number");
        for index in 0..4 {
            assert!(fields.is_on(index).is_err() && fields.gtid_set(index).is_err(), "{index}");
        }
        assert_eq!(fields.optional_text(1).unwrap(), None);
        assert!(fields.optional_text(3).is_err());
        let none = AnswerFields::first_of("db:3306", "SELECT 1", Vec::new()).unwrap_err().to_string();
        assert_eq!(none, "db:3306: SELECT 1 answered no row, expected a row");
    }
}
