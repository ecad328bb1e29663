//! Queries of a server's table, as far as clients name one.
//!
//! ```text
//! SELECT * | column [[AS] name], … FROM [schema.]table [WHERE column = text [AND …]] [LIMIT n]
//! TRUNCATE [TABLE] [schema.]table
//! ```

use std::fmt;

use super::token::Token;
use super::{Parser, Statement};

/// A table by its name, in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementTable {
    /// The database; empty means the session's.
    pub schema: String,
    /// The table's name.
    pub table: String,
}

impl fmt::Display for StatementTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.schema.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{}", self.schema, self.table)
    }
}

/// A query of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableQuery {
    /// The table.
    pub from: StatementTable,
    /// Columns, and their names in the answer; empty means all columns under their own names.
    pub columns: Vec<(String, String)>,
    /// Only rows in which each of these columns has this value.
    pub filter: Vec<(String, String)>,
    /// The largest number of rows.
    pub limit: Option<u64>,
}

impl Parser<'_> {
    /// Parses the words after SELECT if it is a query of a table; otherwise takes nothing.
    pub(super) fn select_from(&mut self) -> Option<Statement> {
        let before = self.tokens;
        let query = self.table_query();
        if query.is_none() {
            self.tokens = before;
        }
        query.map(Statement::SelectFrom)
    }

    fn table_query(&mut self) -> Option<TableQuery> {
        let mut query = TableQuery::default();
        if self.symbol('*') {
            self.is_keyword("FROM").then_some(())?;
        } else {
            loop {
                let column = self.word()?;
                let mut name = column.clone();
                let mut ends = self.is_keyword("FROM");
                if !ends && !self.is_next(',') {
                    let _ = self.is_keyword("AS");
                    name = self.name()?;
                    ends = self.is_keyword("FROM");
                }
                query.columns.push((column, name));
                if ends {
                    break;
                }
                self.symbol(',').then_some(())?;
            }
        }
        query.from = self.table_name()?;
        if self.is_keyword("WHERE") {
            loop {
                let column = self.word()?;
                self.symbol('=').then_some(())?;
                query.filter.push((column, self.literal()?));
                if !self.is_keyword("AND") {
                    break;
                }
            }
        }
        if self.is_keyword("LIMIT") {
            query.limit = Some(self.number()?);
        }
        Some(query)
    }

    /// Parses the words after TRUNCATE.
    pub(super) fn truncate(&mut self) -> Option<StatementTable> {
        let _ = self.is_keyword("TABLE");
        self.table_name()
    }

    fn table_name(&mut self) -> Option<StatementTable> {
        let first = self.word()?.to_ascii_lowercase();
        Some(match self.symbol('.') {
            true => StatementTable { schema: first, table: self.word()?.to_ascii_lowercase() },
            false => StatementTable { schema: String::new(), table: first },
        })
    }

    /// A name that may be quoted with backticks.
    fn word(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        let Token::Word(name, _) = &first.token else { return None };
        self.tokens = rest;
        Some(name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::AdminStatement;

    fn name(schema: &str, table: &str) -> StatementTable {
        StatementTable { schema: schema.into(), table: table.into() }
    }

    #[test]
    fn tables_are_read_and_truncated() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(left, right)| ((*left).into(), (*right).into())).collect()
        };
        for (text, expected) in [
            (
                "SELECT * FROM performance_schema.some_stats;",
                TableQuery { from: name("performance_schema", "some_stats"), ..TableQuery::default() },
            ),
            (
                "select Log_type, `B` as c, d e from `P`.T where A = 'x' and b=7 limit 1",
                TableQuery {
                    from: name("p", "t"),
                    columns: pairs(&[("Log_type", "Log_type"), ("B", "c"), ("d", "e")]),
                    filter: pairs(&[("A", "x"), ("b", "7")]),
                    limit: Some(1),
                },
            ),
        ] {
            assert_eq!(Statement::parse(text), Some(Statement::SelectFrom(expected)), "{text}");
        }
        for text in ["TRUNCATE TABLE performance_schema.t", "truncate performance_schema.t;"] {
            let truncate = AdminStatement::Truncate(name("performance_schema", "t"));
            assert_eq!(Statement::parse(text), Some(Statement::Admin(truncate)), "{text}");
        }
        for text in [
            "SELECT *",
            "SELECT * FROM",
            "SELECT a, FROM t",
            "SELECT a FROM t WHERE b",
            "SELECT COUNT(*) FROM t",
            "TRUNCATE",
        ] {
            assert_eq!(Statement::parse(text), None, "{text}");
        }
    }
}
