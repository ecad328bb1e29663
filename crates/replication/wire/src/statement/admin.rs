//! Statements that change a server's state: purge or flush its logs, start or stop receiving, truncate a table.
//!
//! ```text
//! PURGE BINARY | MASTER LOGS TO text | BEFORE text
//! FLUSH [LOCAL | NO_WRITE_TO_BINLOG] BINARY LOGS
//! START | STOP REPLICA | SLAVE [IO_THREAD] [FOR CHANNEL '']
//! TRUNCATE [TABLE] name: see `table`
//! ```

use super::{Parser, StatementTable};

/// A request to change the server's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminStatement {
    /// Removes the files before this one.
    PurgeTo(String),
    /// Removes the files that ended before this time, as in `2026-11-22 01:02:03`.
    PurgeBefore(String),
    /// Begins a new file.
    FlushBinaryLogs,
    /// Resumes receiving.
    StartReplica,
    /// Stops receiving.
    StopReplica,
    /// Empties a table.
    Truncate(StatementTable),
}

impl Parser<'_> {
    /// Parses the words after the first one.
    pub(super) fn admin(&mut self, first: &str) -> Option<AdminStatement> {
        match first {
            "PURGE" => {
                let which = self.is_keyword("BINARY") || self.is_keyword("MASTER");
                (which && self.is_keyword("LOGS")).then_some(())?;
                match self.keyword()?.as_str() {
                    "TO" => self.literal().map(AdminStatement::PurgeTo),
                    "BEFORE" => self.literal().map(AdminStatement::PurgeBefore),
                    _ => None,
                }
            }
            "FLUSH" => {
                let _ = self.is_keyword("LOCAL") || self.is_keyword("NO_WRITE_TO_BINLOG");
                let found = self.is_keyword("BINARY") && self.is_keyword("LOGS");
                found.then_some(AdminStatement::FlushBinaryLogs)
            }
            "START" => self.replica().map(|()| AdminStatement::StartReplica),
            "STOP" => self.replica().map(|()| AdminStatement::StopReplica),
            "TRUNCATE" => self.truncate().map(AdminStatement::Truncate),
            _ => None,
        }
    }

    fn replica(&mut self) -> Option<()> {
        (self.is_keyword("REPLICA") || self.is_keyword("SLAVE")).then_some(())?;
        let _ = self.is_keyword("IO_THREAD");
        if self.is_keyword("FOR") {
            // The only channel has no name.
            let unnamed = self.is_keyword("CHANNEL") && self.literal()?.is_empty();
            unnamed.then_some(())?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Statement;

    #[test]
    fn what_administrators_say() {
        for (text, expected) in [
            ("PURGE BINARY LOGS TO 'binlog.000003'", AdminStatement::PurgeTo("binlog.000003".into())),
            (
                "purge master logs before '2026-11-22 01:02:03';",
                AdminStatement::PurgeBefore("2026-11-22 01:02:03".into()),
            ),
            ("FLUSH BINARY LOGS", AdminStatement::FlushBinaryLogs),
            ("flush local binary logs", AdminStatement::FlushBinaryLogs),
            ("START REPLICA", AdminStatement::StartReplica),
            ("START SLAVE IO_THREAD FOR CHANNEL ''", AdminStatement::StartReplica),
            ("STOP REPLICA IO_THREAD", AdminStatement::StopReplica),
        ] {
            assert_eq!(Statement::parse(text), Some(Statement::Admin(expected)), "{text}");
        }
        for text in [
            "PURGE BINARY LOGS",
            "PURGE LOGS TO 'a'",
            "PURGE BINARY LOGS TO a",
            "PURGE BINARY LOGS BEFORE NOW()",
            "FLUSH LOGS",
            "START REPLICA SQL_THREAD",
            "START REPLICA UNTIL SQL_AFTER_GTIDS = ''",
            "STOP REPLICA FOR CHANNEL 'other'",
            "STOP",
        ] {
            assert_eq!(Statement::parse(text), None, "{text}");
        }
    }
}
