//! The statements in logs, read ahead of their rows: from them and from the tables of now comes the history of tables.

use std::io;

use binlogz_binlog::gtid::GtidSet;
use binlogz_flow::Input;
use binlogz_flow::events::RunSummary;
use binlogz_schema::{HistoryPlace, SchemaFile, TableHistory};

use crate::choose::{Range, RowSelection};
use crate::pass::{
    Break, ChoiceListener, Error, FollowedTransaction, Follower, NoRows, Search, StatementAt,
    TransactionEnding, read_log,
};

/// Reads the statements of logs, which tell what tables were at the time of their rows.
///
/// It isn't `flow`'s `record_statements`: a statement gets the place of its transaction here, since the pass over the rows
/// records the statements again ([`StatementAt::record`]) and compares both histories.
pub struct StatementsAhead {
    follower: Follower<StatementRecorder>,
}

#[derive(Default)]
struct StatementRecorder {
    history: TableHistory,
    /// Whether statements may be missing between those that were read.
    has_gaps: bool,
}

impl Default for StatementsAhead {
    /// Begins without any statement.
    fn default() -> Self {
        StatementsAhead { follower: Follower::new(StatementRecorder::default()) }
    }
}

impl StatementsAhead {
    /// Reads a log, in the order of the logs.
    ///
    /// # Errors
    ///
    /// A log that can't be read, a temporary file that can't be written.
    pub fn read(
        &mut self,
        input: Input,
        name: &str,
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RunSummary, Error> {
        // No transaction is chosen, and no table has this name: no row is looked at.
        let nothing = RowSelection {
            tables: vec![(String::new(), String::new())],
            gtids: Some(GtidSet::new()),
            ..RowSelection::default()
        };
        let search = Search::new(&nothing, &NoRows, workers);
        let ran = read_log(input, (name, Range::WHOLE), &search, &mut self.follower, progress);
        ran.map(|(summary, _)| summary)
    }

    /// The history of tables, and whether a statement may have changed one that is chosen.
    pub fn finish(self, now: &SchemaFile, selection: &RowSelection) -> (TableHistory, bool) {
        let mut history = self.follower.listener.history;
        let touches =
            |(database, table): &(String, String)| history.touches(HistoryPlace::default(), database, table);
        let touches_chosen = selection.tables.is_empty() || selection.tables.iter().any(touches);
        history.settle(now.clone());
        (history, touches_chosen)
    }

    /// The history of tables by which columns' defaults are known, as far as the logs and the tables of now tell them. `None`: statements
    /// may be missing.
    pub fn defaults(self, now: Option<&SchemaFile>) -> Option<TableHistory> {
        let StatementRecorder { mut history, has_gaps } = self.follower.listener;
        history.settle(now.cloned().unwrap_or_default());
        (!has_gaps).then_some(history)
    }
}

impl ChoiceListener for StatementRecorder {
    fn wants_statements_after(&self) -> bool {
        true
    }

    fn breaks(&mut self, _: &Break) -> Result<(), Error> {
        self.has_gaps = true;
        Ok(())
    }

    fn statement(&mut self, transaction: &FollowedTransaction, statement: StatementAt<'_>) -> io::Result<()> {
        statement.record(transaction, &mut self.history);
        Ok(())
    }

    fn end(&mut self, _: &FollowedTransaction, _: TransactionEnding) -> io::Result<()> {
        Ok(())
    }
}
