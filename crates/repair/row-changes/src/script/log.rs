//! Writes the kept rows as a binary log. A report beside it names the rows that were left out.
//!
//! Since 9.6 REPLACE deletes and inserts a row without touching the rows that refer to it. A server that applies the two events deletes
//! these rows by ON DELETE CASCADE, as it would for a DELETE alone. So the first of the two says that foreign keys aren't checked,
//! if the second comes right behind it and has the same values in all keys. If it has others, or the keys aren't known, the report names
//! the row: the server then deleted what referred to a value that is gone, and left the rest.

use std::io::{self, Write};
use std::rc::Rc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::RowsFlags;

use super::ScriptSummary;
use super::collect::CollectedChanges;
use super::replay::{RowSink, Skip, WrittenRow, replay};
use crate::choose::Direction;
use crate::log::writer::LogWriter;
use crate::record::{LoggedChange, LoggedImages, RowFlags, broken};

pub(super) fn write(
    collected: &CollectedChanges,
    direction: Direction,
    across_ddl: bool,
    out: &mut dyn Write,
    report: &mut dyn Write,
) -> io::Result<ScriptSummary> {
    let mut sink = LogSink {
        writer: LogWriter::new(out)?,
        collected,
        direction,
        deleted: None,
        report: ScriptReport::new(report),
        time: 0,
        replaced_checked: 0,
    };
    let mut summary = replay(collected, direction, across_ddl, &mut sink)?;
    summary.replaced_checked = sink.replaced_checked;
    Ok(summary)
}

/// The report's line on a row that is deleted as a DELETE would delete it.
const REPLACED_CHECKED: &str = "a REPLACE may have left rows that refer to it, and they are deleted with it: it changed a key, or the keys \
                                aren't known (--schema tells them)";

struct LogSink<'c> {
    writer: LogWriter<'c>,
    collected: &'c CollectedChanges,
    direction: Direction,
    /// A row that is deleted: what comes next tells whether it is replaced.
    deleted: Option<DeletedRow>,
    report: ScriptReport<'c>,
    time: u64,
    /// The number of rows that were named because a REPLACE may have replaced them.
    replaced_checked: u64,
}

struct DeletedRow {
    table: usize,
    map: usize,
    flags: RowFlags,
    /// The digest of its keys' values, 0 if that isn't known.
    keys: u128,
    name: String,
    /// The row's images, as they were kept.
    images: Vec<u8>,
}

impl LogSink<'_> {
    fn put(&mut self, map: usize, flags: RowFlags, images: &LoggedImages<'_>) -> io::Result<()> {
        let number = map;
        let map = self.collected.maps.get(number).ok_or_else(broken)?;
        let flags = [
            (RowFlags::NO_FOREIGN_KEYS, RowsFlags::NO_FOREIGN_KEY_CHECKS),
            (RowFlags::SQL_FOREIGN_KEYS, RowsFlags::USE_SQL_FOREIGN_KEY),
        ]
        .iter()
        .filter(|(own, _)| flags.has(*own))
        .fold(0, |flags, (_, logged)| flags | logged.0);
        self.writer.row((number, map), images, RowsFlags(flags))
    }

    /// Writes the row that waits. `next` comes after it, with its event type and the digest of its keys.
    fn put_deleted(&mut self, next: Option<(&WrittenRow<'_>, EventType, u128)>) -> io::Result<()> {
        let Some(deleted) = self.deleted.take() else { return Ok(()) };
        let replacing = next.filter(|(row, event_type, _)| {
            // Within one statement only REPLACE deletes a row and inserts one into the same table right after it.
            let logged_insert = if self.direction == Direction::Undo { deleted.flags } else { row.flags };
            *event_type == EventType::WRITE_ROWS
                && row.table == deleted.table
                && logged_insert.has(RowFlags::FOLLOWS_DELETED)
        });
        let has_same_keys = replacing.is_some_and(|(_, _, keys)| keys != 0 && keys == deleted.keys);
        if replacing.is_some() && !has_same_keys {
            self.replaced_checked += 1;
            self.report.line(&format!("{REPLACED_CHECKED}: {}", deleted.name))?;
        }
        let unchecked = if has_same_keys { RowFlags::NO_FOREIGN_KEYS } else { 0 };
        let images = LoggedImages::read(&deleted.images)?;
        self.put(deleted.map, RowFlags(deleted.flags.0 | unchecked), &images)
    }
}

impl RowSink for LogSink<'_> {
    type Error = io::Error;

    fn begin(&mut self, description: &str, time: u64, skipped: Option<&Skip>) -> io::Result<()> {
        self.time = time;
        self.report.begin(description, skipped)
    }

    fn row(&mut self, row: WrittenRow<'_>) -> io::Result<()> {
        let change = LoggedChange::read(row.content)?;
        let keys = change.keys;
        let images = LoggedImages::read(change.images)?;
        self.put_deleted(Some((&row, images.event_type, keys)))?;
        if images.event_type == EventType::DELETE_ROWS && row.flags.has(RowFlags::SQL_FOREIGN_KEYS) {
            let table = row.table;
            let map = row.map;
            let flags = row.flags;
            let name = change.name.into_owned();
            let images = change.images.to_vec();
            self.deleted = Some(DeletedRow { table, map, flags, keys, name, images });
            return Ok(());
        }
        self.put(row.map, row.flags, &images)
    }

    fn left(&mut self, row: WrittenRow<'_>, why: &str) -> io::Result<()> {
        let change = LoggedChange::read(row.content)?;
        self.report.line(&format!("{why}{}", change.name))
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        self.report.line(text)
    }

    fn was(&mut self, _text: &str) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.put_deleted(None)?;
        self.writer.commit(self.time)
    }
}

/// Lines about transactions; transactions without any line are not named.
pub(super) struct ScriptReport<'o> {
    out: &'o mut dyn Write,
    /// The description of the transaction that was begun last.
    transaction: Rc<str>,
    /// The description of the transaction that was named last.
    named: Rc<str>,
    is_silent: bool,
}

impl<'o> ScriptReport<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        let transaction: Rc<str> = Rc::from("");
        ScriptReport { out, named: Rc::clone(&transaction), transaction, is_silent: false }
    }

    pub(super) fn begin(&mut self, description: &str, skipped: Option<&Skip>) -> io::Result<()> {
        self.transaction = description.into();
        self.is_silent = skipped.is_some_and(|skip| skip.needs_nothing);
        skipped.map_or(Ok(()), |skip| self.line(&skip.why))
    }

    /// The transaction that was begun last, for [`ScriptReport::line_of`].
    pub(super) fn transaction(&self) -> Rc<str> {
        Rc::clone(&self.transaction)
    }

    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        if self.is_silent {
            return Ok(());
        }
        self.line_of(&self.transaction(), text)
    }

    /// Writes a line about a transaction that may have been begun earlier.
    pub(super) fn line_of(&mut self, transaction: &Rc<str>, text: &str) -> io::Result<()> {
        if !Rc::ptr_eq(&self.named, transaction) {
            writeln!(self.out, "{transaction}")?;
            self.named = Rc::clone(transaction);
        }
        writeln!(self.out, "  {text}")
    }
}
