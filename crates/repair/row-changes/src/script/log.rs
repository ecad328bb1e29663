//! Writes the kept rows as a binary log. A report beside it names the rows that were left out.

use std::io::{self, Write};
use std::rc::Rc;

use binlogz_binlog::event::RowsFlags;

use super::ScriptSummary;
use super::collect::CollectedChanges;
use super::named::NamedTransactions;
use super::replay::{RowSink, Skip, WrittenRow, replay};
use crate::choose::Direction;
use crate::log::images::Images;
use crate::log::writer::LogWriter;
use crate::pass::{RowFlags, broken};

pub(super) fn write(
    collected: &CollectedChanges,
    direction: Direction,
    across_ddl: bool,
    out: &mut dyn Write,
    report: &mut dyn Write,
) -> io::Result<ScriptSummary> {
    let mut sink =
        LogSink { writer: LogWriter::new(out)?, collected, report: ScriptReport::new(report), time: 0 };
    replay(collected, direction, across_ddl, &mut sink)
}

struct LogSink<'c> {
    writer: LogWriter<'c>,
    collected: &'c CollectedChanges,
    report: ScriptReport<'c>,
    time: u64,
}

impl RowSink for LogSink<'_> {
    type Error = io::Error;

    fn begin(&mut self, description: &str, time: u64, skipped: Option<&Skip>) -> io::Result<()> {
        self.time = time;
        self.report.begin(description, skipped)
    }

    fn row(&mut self, row: WrittenRow<'_>) -> io::Result<()> {
        let map = self.collected.maps.get(row.map).ok_or_else(broken)?;
        let named = NamedTransactions::read(row.content).ok_or_else(broken)?;
        let images = Images::read(named.content).ok_or_else(broken)?;
        let flags = [
            (RowFlags::NO_FOREIGN_KEYS, RowsFlags::NO_FOREIGN_KEY_CHECKS),
            (RowFlags::SQL_FOREIGN_KEYS, RowsFlags::USE_SQL_FOREIGN_KEY),
        ];
        let flags = flags.iter().filter(|(own, _)| row.flags.has(*own));
        let flags = flags.fold(0, |flags, (_, logged)| flags | logged.0);
        self.writer.row((row.map, map), &images, RowsFlags(flags))
    }

    fn left(&mut self, row: WrittenRow<'_>, why: &str) -> io::Result<()> {
        let named = NamedTransactions::read(row.content).ok_or_else(broken)?;
        self.report.line(&format!("{why}{}", named.name))
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        self.report.line(text)
    }

    fn was(&mut self, _text: &str) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.writer.commit(self.time)
    }
}

/// Lines about transactions; transactions without any line are not named.
pub(super) struct ScriptReport<'o> {
    out: &'o mut dyn Write,
    /// The description of the transaction that was begun last.
    transaction: Rc<str>,
    /// That of the last one that was named.
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
