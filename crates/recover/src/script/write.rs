//! Writes what was kept as a script: transaction by transaction, with what is left named where it stood.

use std::io::{self, Write};

use binlogz_figures::counted;

use super::Summary;
use super::collect::{Collected, Skipped, shortened};
use super::kept::{Kind, Reader, broken};
use crate::choose::Direction;
use crate::pass::{Ending, RowFlags};

/// Values are stored as they are written: zero and invalid dates too, and 0 in AUTO_INCREMENT columns.
const SQL_MODE: &str = "ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION";
/// Anything that doesn't fit is an error.
const STRICT: &str = "STRICT_ALL_TABLES,";

pub(super) fn write(
    collected: &Collected,
    direction: Direction,
    across_ddl: bool,
    out: &mut dyn Write,
) -> io::Result<Summary> {
    let mut writer = Writer {
        out,
        collected,
        across_ddl,
        verb: if direction == Direction::Undo { "undone" } else { "redone" },
        summary: Summary::default(),
        skipped: None,
        has_begun: false,
        checks_foreign_keys: true,
        is_strict: true,
    };
    writer.begin(direction)?;
    let mut reader = Reader::new(&collected.kept, direction == Direction::Undo);
    while let Some((kind, content)) = reader.next()? {
        writer.record(kind, content)?;
    }
    writer.end()?;
    Ok(writer.summary)
}

struct Writer<'o> {
    out: &'o mut dyn Write,
    collected: &'o Collected,
    across_ddl: bool,
    verb: &'static str,
    summary: Summary,
    /// Why the current transaction is left out.
    skipped: Option<Skipped>,
    /// Whether the current transaction has a statement.
    has_begun: bool,
    checks_foreign_keys: bool,
    is_strict: bool,
}

impl Writer<'_> {
    fn begin(&mut self, direction: Direction) -> io::Result<()> {
        let what = match direction {
            Direction::Undo => "binlogz undo: takes changes back, the last one first",
            Direction::Redo => "binlogz redo: makes changes again, in their order",
        };
        let names = ["time_zone", "sql_mode", "foreign_key_checks"];
        writeln!(self.out, "-- {what}")?;
        writeln!(self.out, "SET NAMES utf8mb4;")?;
        let saved: Vec<_> = names.iter().map(|name| format!("@binlogz_{name} = @@session.{name}")).collect();
        writeln!(self.out, "SET {};", saved.join(", "))?;
        writeln!(
            self.out,
            "SET time_zone = '+00:00', foreign_key_checks = 1, sql_mode = '{STRICT}{SQL_MODE}';"
        )
    }

    fn end(&mut self) -> io::Result<()> {
        self.end_transaction()?;
        writeln!(
            self.out,
            "\nSET time_zone = @binlogz_time_zone, sql_mode = @binlogz_sql_mode, foreign_key_checks = \
             @binlogz_foreign_key_checks;"
        )?;
        let Summary { transactions, statements, rows_left, statements_left, .. } = self.summary;
        let verb = self.verb;
        writeln!(
            self.out,
            "-- {} in {}; {} and {} not {verb}",
            counted(statements, "rows"),
            counted(transactions, "transactions"),
            counted(rows_left, "rows"),
            counted(statements_left, "statements")
        )?;
        self.out.flush()
    }

    fn end_transaction(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_begun) {
            writeln!(self.out, "COMMIT;")?;
        }
        Ok(())
    }

    fn record(&mut self, kind: Kind, content: &[u8]) -> io::Result<()> {
        match kind {
            Kind::Header => {
                self.end_transaction()?;
                let (number, text) = content.split_first_chunk().ok_or_else(broken)?;
                self.skipped = self.collected.skipped.get(&u64::from_le_bytes(*number)).copied();
                writeln!(self.out, "\n-- {}", String::from_utf8_lossy(text))?;
                if let Some(skipped) = self.skipped {
                    writeln!(self.out, "-- not {}: {}", self.verb, why(skipped))?;
                }
                Ok(())
            }
            Kind::Row => self.row(content),
            Kind::Missing => {
                self.count_left();
                writeln!(self.out, "-- not {}: {}", self.verb, shortened(&String::from_utf8_lossy(content)))
            }
            Kind::Statement => {
                writeln!(self.out, "-- was: {}", shortened(&String::from_utf8_lossy(content)))
            }
            Kind::Border => {
                self.summary.statements_left += 1;
                writeln!(self.out, "-- not {}, a statement: {}", self.verb, String::from_utf8_lossy(content))
            }
        }
    }

    /// What XA ROLLBACK took back needs nothing more.
    fn count_left(&mut self) {
        self.summary.rows_left += u64::from(self.skipped != Some(Skipped::XaRolledBack));
    }

    fn row(&mut self, content: &[u8]) -> io::Result<()> {
        let read = || {
            let (table, rest) = content.split_first_chunk()?;
            let (epoch, rest) = rest.split_first_chunk()?;
            let (flags, statement) = rest.split_first()?;
            let table = self.collected.tables.get(u32::from_le_bytes(*table) as usize)?;
            Some((table.borders.get(u32::from_le_bytes(*epoch) as usize), RowFlags(*flags), statement))
        };
        let (border, flags, statement) = read().ok_or_else(broken)?;
        if self.skipped.is_some() {
            self.count_left();
            return self.comment("", statement);
        }
        if let Some(border) = border.filter(|_| !self.across_ddl) {
            self.count_left();
            let verb = self.verb;
            let front =
                format!("not {verb}, its table was changed after it ({border}); --across-ddl writes it: ");
            return self.comment(&front, statement);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.summary.transactions += 1;
            writeln!(self.out, "BEGIN;")?;
        }
        let checks = !flags.has(RowFlags::NO_FOREIGN_KEYS);
        if std::mem::replace(&mut self.checks_foreign_keys, checks) != checks {
            writeln!(self.out, "SET foreign_key_checks = {};", u8::from(checks))?;
        }
        let is_strict = !flags.has(RowFlags::LENIENT);
        if std::mem::replace(&mut self.is_strict, is_strict) != is_strict {
            writeln!(self.out, "SET sql_mode = '{}{SQL_MODE}';", if is_strict { STRICT } else { "" })?;
        }
        self.summary.statements += 1;
        self.out.write_all(statement)?;
        self.out.write_all(b";\n")
    }

    /// A statement that isn't to run: whole, so that a person may let it run.
    fn comment(&mut self, front: &str, statement: &[u8]) -> io::Result<()> {
        self.out.write_all(b"-- ")?;
        self.out.write_all(front.as_bytes())?;
        // A statement has no line breaks: they are escaped.
        self.out.write_all(statement)?;
        self.out.write_all(b";\n")
    }
}

fn why(skipped: Skipped) -> &'static str {
    match skipped {
        Skipped::Ended(Ending::RolledBack) => {
            "it ended with ROLLBACK, and what it changed in tables without transactions can't be told from the rest"
        }
        Skipped::Ended(Ending::PartlyRolledBack) => "it has changes that ROLLBACK TO SAVEPOINT took back",
        Skipped::Ended(Ending::Cut) => "the log ends within it, so it may not have been committed",
        Skipped::Ended(Ending::Whole) => "it is whole",
        Skipped::XaRolledBack => "XA ROLLBACK did that",
        Skipped::XaPrepared => "it is prepared; neither XA COMMIT nor XA ROLLBACK is in the logs",
    }
}
