//! Goes through the kept rows, the last first where changes are taken back. Decides over each row, and tells a [`RowSink`].

use std::io;

use super::ScriptSummary;
use super::collect::{CollectedChanges, SkipReason};
use super::repeated::ChangeNumber;
use crate::choose::Direction;
use crate::pass::{TransactionEnding, shortened};
use crate::record::{RowFlags, ScriptReader, ScriptRecord, ScriptRow, broken};

/// A row that is written.
#[derive(Clone, Copy)]
pub(super) struct WrittenRow<'c> {
    /// The number of the row's table.
    pub(super) table: usize,
    /// Which of the table maps it needs.
    pub(super) map: usize,
    /// Which change it is, in a table without a key.
    pub(super) change: ChangeNumber,
    pub(super) flags: RowFlags,
    /// The renderer's text.
    pub(super) content: &'c [u8],
}

/// The reason for which nothing of a transaction is written.
pub(super) struct Skip {
    pub(super) why: String,
    /// Whether the rows are as they should be without the transaction.
    pub(super) needs_nothing: bool,
}

/// Writes the rows somewhere, and names those that are left out.
pub(super) trait RowSink {
    type Error: From<io::Error>;

    /// A transaction begins: its description, its time in microseconds since 1970, why nothing of it is written.
    fn begin(&mut self, description: &str, time: u64, skipped: Option<&Skip>) -> Result<(), Self::Error>;

    /// A row.
    fn row(&mut self, row: WrittenRow<'_>) -> Result<(), Self::Error>;

    /// A row that is left, though it could be written. `why` is empty where the transaction says it.
    fn left(&mut self, row: WrittenRow<'_>, why: &str) -> Result<(), Self::Error>;

    /// The original statement of the rows that follow.
    fn was(&mut self, text: &str) -> Result<(), Self::Error>;

    /// Notes a change that can't be written.
    fn note(&mut self, text: &str) -> Result<(), Self::Error>;

    /// The transaction is over.
    fn end(&mut self) -> Result<(), Self::Error>;
}

/// Replays all that was kept.
pub(super) fn replay<S: RowSink>(
    collected: &CollectedChanges,
    direction: Direction,
    across_ddl: bool,
    sink: &mut S,
) -> Result<ScriptSummary, S::Error> {
    let mut replay = Replay {
        sink,
        collected,
        across_ddl,
        verb: verb(direction),
        summary: ScriptSummary::default(),
        skipped: None,
        is_open: false,
        has_begun: false,
        waiting: None,
    };
    let mut reader = ScriptReader::new(&collected.kept, direction == Direction::Undo);
    while let Some(record) = reader.next()? {
        match record {
            ScriptRecord::Row(row) if direction == Direction::Undo => replay.row_backwards(row)?,
            other => {
                replay.waited()?;
                replay.record(&other)?;
            }
        }
    }
    replay.waited()?;
    replay.end()?;
    Ok(replay.summary)
}

/// The verb for rows, in messages.
pub(super) fn verb(direction: Direction) -> &'static str {
    if direction == Direction::Undo { "undone" } else { "redone" }
}

struct Replay<'c, S> {
    sink: &'c mut S,
    collected: &'c CollectedChanges,
    across_ddl: bool,
    verb: &'static str,
    summary: ScriptSummary,
    /// The reason for which the current transaction is left out; `None`: it isn't.
    skipped: Option<SkipReason>,
    is_open: bool,
    /// Whether the current transaction has a row.
    has_begun: bool,
    /// A row's change that waits for the changes that its foreign keys made, which stand before it in the log.
    waiting: Option<ScriptRow<'static>>,
}

impl<S: RowSink> Replay<'_, S> {
    fn end(&mut self) -> Result<(), S::Error> {
        self.has_begun = false;
        if std::mem::take(&mut self.is_open) { self.sink.end() } else { Ok(()) }
    }

    fn record(&mut self, record: &ScriptRecord<'_>) -> Result<(), S::Error> {
        match record {
            ScriptRecord::Header(number, time, text) => {
                self.end()?;
                self.skipped = self.collected.skipped.get(number).copied();
                self.is_open = true;
                let skipped = self.skipped.map(|skipped| Skip {
                    why: format!("not {}: {}", self.verb, why(skipped)),
                    needs_nothing: skipped == SkipReason::XaRolledBack,
                });
                self.sink.begin(&String::from_utf8_lossy(text), *time, skipped.as_ref())
            }
            ScriptRecord::Row(row) => self.row(row),
            ScriptRecord::Missing(text) => {
                self.count_left();
                let line = shortened(&String::from_utf8_lossy(text));
                self.sink.note(&format!("not {}: {line}", self.verb))
            }
            ScriptRecord::Statement(text) => self.sink.was(&shortened(&String::from_utf8_lossy(text))),
            ScriptRecord::Border(text) => {
                self.summary.statements_left += 1;
                let line = String::from_utf8_lossy(text);
                self.sink.note(&format!("not {}, a statement: {line}", self.verb))
            }
        }
    }

    /// Changes that XA ROLLBACK took back need nothing more.
    fn count_left(&mut self) {
        self.summary.rows_left += u64::from(self.skipped != Some(SkipReason::XaRolledBack));
    }

    /// A row of changes that are taken back. If foreign keys of the SQL layer changed rows together with an updated one,
    /// these stand before it in the log. They go back first, unchecked, as they were made: a session that took the
    /// updated one back would change them once more by itself.
    fn row_backwards(&mut self, row: ScriptRow<'_>) -> Result<(), S::Error> {
        let flags = row.flags;
        if self.waiting.is_some() {
            if flags.is_cascaded() {
                return self.row(&row);
            }
            self.waited()?;
        }
        let is_parent =
            flags.has(RowFlags::SQL_FOREIGN_KEYS) && !flags.may_be_cascaded() && flags.has(RowFlags::UPDATE);
        match is_parent {
            true => {
                self.waiting = Some(row.into_owned());
                Ok(())
            }
            false => self.row(&row),
        }
    }

    fn waited(&mut self) -> Result<(), S::Error> {
        self.waiting.take().map_or(Ok(()), |row| self.row(&row))
    }

    fn row(&mut self, row: &ScriptRow<'_>) -> Result<(), S::Error> {
        let number = row.table as usize;
        let table = self.collected.tables.get(number).ok_or_else(broken)?;
        let border = table.borders.get(row.epoch as usize);
        let row = WrittenRow {
            table: number,
            map: row.map as usize,
            change: ChangeNumber(row.change),
            flags: row.flags,
            content: &row.text,
        };
        if self.skipped.is_some() {
            self.count_left();
            return self.sink.left(row, "");
        }
        if let Some(border) = border.filter(|_| !self.across_ddl) {
            self.count_left();
            let verb = self.verb;
            return self.sink.left(
                row,
                &format!("not {verb}, its table was changed after it ({border}); --across-ddl writes it: "),
            );
        }
        self.summary.transactions += u64::from(!std::mem::replace(&mut self.has_begun, true));
        self.summary.statements += 1;
        self.sink.row(row)
    }
}

fn why(skipped: SkipReason) -> &'static str {
    match skipped {
        SkipReason::Ended(TransactionEnding::RolledBack) => {
            "it ended with ROLLBACK, and what it changed in tables without transactions can't be told from the rest"
        }
        SkipReason::Ended(TransactionEnding::PartlyRolledBack) => {
            "it has changes that ROLLBACK TO SAVEPOINT took back"
        }
        SkipReason::Ended(TransactionEnding::Cut) => {
            "the log ends within it, so it may not have been committed"
        }
        SkipReason::Ended(TransactionEnding::Whole) => "it is whole",
        SkipReason::XaRolledBack => "XA ROLLBACK did that",
        SkipReason::XaPrepared => "it is prepared; neither XA COMMIT nor XA ROLLBACK is in the logs",
    }
}
