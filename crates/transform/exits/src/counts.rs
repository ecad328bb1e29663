//! Counts what was masked and what was left out.

use std::collections::{BTreeMap, BTreeSet};

use binlogz_flow::read::CutEvent;

/// The most reasons that are kept apart: a log may have any number of tables.
const REASONS_MAX: usize = 1000;
const OTHER_REASONS: &str = "further tables and statements";

/// A kind of thing that is left out because the policy says so, or because it is no change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// The text of the statement that made rows, which stands beside them.
    RowsStatements,
    /// A statement about a table that is left out.
    TableStatements,
    /// A statement about accounts, views, triggers, routines or events.
    OtherStatements,
    /// A variable or a block of a file that belonged to a statement.
    StatementValues,
    /// An event that readers may ignore, and data of Group Replication.
    Notes,
}

impl LeftOut {
    /// The name for people.
    pub fn shown(self) -> &'static str {
        match self {
            LeftOut::RowsStatements => "statements beside rows",
            LeftOut::TableStatements => "statements about tables that are left out",
            LeftOut::OtherStatements => "statements about accounts, views, triggers and routines",
            LeftOut::StatementValues => "values and files of statements",
            LeftOut::Notes => "events that are no changes",
        }
    }
}

/// What became of the events of logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitCounts {
    /// Transactions, empty ones among them.
    pub transactions: u64,
    /// Rows of tables with masked columns.
    pub masked_rows: u64,
    /// Rows that the policy leaves out.
    pub left_out_rows: u64,
    /// What else is left out.
    pub left_out: BTreeMap<LeftOut, u64>,
    /// Changes that may be missing, since they can't be masked for certain: why, and how many.
    pub unmasked: BTreeMap<String, u64>,
    /// Unique keys of which masks may make equal rows of different ones.
    pub weak_keys: BTreeSet<String>,
    /// Tables that the policy names and keeps, of which the logs have no rows: each with the line of the policy. Told once the logs are
    /// read to their end.
    pub unmet_tables: Vec<String>,
    /// Tables and columns that the policy was to hide, and that the logs don't have, though rows leave: each with the line of the
    /// policy. Told once the logs are read to their end.
    pub unmet_masks: Vec<String>,
    /// Where logs in use end inside an event.
    pub cuts: Vec<(String, CutEvent)>,
}

impl ExitCounts {
    pub(crate) fn leave_out(&mut self, what: LeftOut) {
        *self.left_out.entry(what).or_default() += 1;
    }

    pub(crate) fn weak_key(&mut self, key: &str) {
        if self.weak_keys.len() < REASONS_MAX && !self.weak_keys.contains(key) {
            self.weak_keys.insert(key.to_owned());
        }
    }

    pub(crate) fn unmasked(&mut self, why: &str, count: u64) {
        if !self.unmasked.contains_key(why) && self.unmasked.len() >= REASONS_MAX {
            *self.unmasked.entry(OTHER_REASONS.to_owned()).or_default() += count;
            return;
        }
        *self.unmasked.entry(why.to_owned()).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_bounded() {
        let mut counts = ExitCounts::default();
        for number in 0..2 * REASONS_MAX {
            counts.unmasked(&number.to_string(), 1);
        }
        assert_eq!(counts.unmasked.len(), REASONS_MAX + 1);
        assert_eq!(counts.unmasked[OTHER_REASONS], REASONS_MAX as u64);
    }
}
