//! The start and the end of transactions.
//!
//! ```text
//! BEGIN [WORK] · START TRANSACTION [WITH CONSISTENT SNAPSHOT | READ ONLY | READ WRITE, …]
//! COMMIT | ROLLBACK [WORK] [AND [NO] CHAIN] [NO RELEASE]
//! ```

use super::Parser;

/// The start or end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatement {
    /// A transaction begins.
    Begin,
    /// The transaction ends; with `chain` another one begins.
    End {
        /// Whether another one begins at once.
        chain: bool,
    },
}

impl Parser<'_> {
    /// Whether a statement with this first word is one of these; takes nothing.
    pub(super) fn is_transaction(&mut self, first: &str) -> bool {
        let before = self.tokens;
        let is_start = first == "START" && self.is_keyword("TRANSACTION");
        self.tokens = before;
        is_start || ["BEGIN", "COMMIT", "ROLLBACK"].contains(&first)
    }

    /// Parses the words after the first one.
    pub(super) fn transaction(&mut self, first: &str) -> Option<TransactionStatement> {
        match first {
            "START" => {
                self.is_keyword("TRANSACTION").then_some(())?;
                while !self.tokens.is_empty() && !self.is_next(';') {
                    match self.keyword()?.as_str() {
                        "WITH" => {
                            (self.is_keyword("CONSISTENT") && self.is_keyword("SNAPSHOT")).then_some(())?;
                        }
                        "READ" => {
                            self.only_or_write()?;
                        }
                        _ => return None,
                    }
                    if !self.symbol(',') {
                        break;
                    }
                }
                Some(TransactionStatement::Begin)
            }
            "BEGIN" => {
                let _ = self.is_keyword("WORK");
                Some(TransactionStatement::Begin)
            }
            _ => {
                let _ = self.is_keyword("WORK");
                let mut chain = false;
                if self.is_keyword("AND") {
                    chain = !self.is_keyword("NO");
                    self.is_keyword("CHAIN").then_some(())?;
                }
                if self.is_keyword("NO") {
                    self.is_keyword("RELEASE").then_some(())?;
                }
                Some(TransactionStatement::End { chain })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Statement;

    #[test]
    fn transactions_begin_and_end() {
        let begin = TransactionStatement::Begin;
        let end = |chain| TransactionStatement::End { chain };
        for (text, expected) in [
            ("BEGIN", begin),
            ("begin work;", begin),
            ("START TRANSACTION", begin),
            ("START TRANSACTION;", begin),
            ("start transaction with consistent snapshot, read only", begin),
            ("/*!40100 START TRANSACTION */", begin),
            ("START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */", begin),
            ("COMMIT", end(false)),
            ("commit work and no chain no release", end(false)),
            ("ROLLBACK AND CHAIN", end(true)),
        ] {
            assert_eq!(Statement::parse(text), Some(Statement::Transaction(expected)), "{text}");
        }
        for text in [
            "START",
            "START TRANSACTION WITH",
            "START TRANSACTION READ",
            "COMMIT AND",
            "BEGIN 1",
            "ROLLBACK TO a",
        ] {
            assert_eq!(Statement::parse(text), None, "{text}");
        }
        assert_eq!(Statement::parse("USE `shop`"), Some(Statement::Use("shop".into())));
    }
}
