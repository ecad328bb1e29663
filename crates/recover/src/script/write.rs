//! Kept rows as a script for the mysql client: transaction by transaction, with everything left out named where it stood.

use std::io::{self, Write};

use binlogz_figures::counted;

use super::Summary;
use super::collect::Collected;
use super::replay::{KeptRow, Sink, Skip, replay, verb};
use super::session::Session;
use crate::choose::Direction;

pub(super) fn write(
    collected: &Collected,
    direction: Direction,
    across_ddl: bool,
    out: &mut dyn Write,
) -> io::Result<Summary> {
    let mut writer = Writer { out, has_begun: false, session: Session::default() };
    writer.begin_script(direction)?;
    let summary = replay(collected, direction, across_ddl, &mut writer)?;
    writer.end_script(direction, &summary)?;
    Ok(summary)
}

struct Writer<'o> {
    out: &'o mut dyn Write,
    /// Whether the current transaction has a statement.
    has_begun: bool,
    session: Session,
}

impl Writer<'_> {
    fn begin_script(&mut self, direction: Direction) -> io::Result<()> {
        let what = match direction {
            Direction::Undo => "binlogz undo: takes changes back, the last one first",
            Direction::Redo => "binlogz redo: makes changes again, in their order",
        };
        let names = ["time_zone", "sql_mode", "foreign_key_checks"];
        writeln!(self.out, "-- {what}")?;
        let saved: Vec<_> = names.iter().map(|name| format!("@binlogz_{name} = @@session.{name}")).collect();
        let [charset, settings] = self.session.begin();
        writeln!(self.out, "{charset};")?;
        writeln!(self.out, "SET {};", saved.join(", "))?;
        writeln!(self.out, "{settings};")
    }

    fn end_script(&mut self, direction: Direction, summary: &Summary) -> io::Result<()> {
        writeln!(
            self.out,
            "\nSET time_zone = @binlogz_time_zone, sql_mode = @binlogz_sql_mode, foreign_key_checks = \
             @binlogz_foreign_key_checks;"
        )?;
        let Summary { transactions, statements, rows_left, statements_left, .. } = *summary;
        let verb = verb(direction);
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
}

impl Sink for Writer<'_> {
    type Error = io::Error;

    fn begin(&mut self, description: &str, _time: u64, skipped: Option<&Skip>) -> io::Result<()> {
        writeln!(self.out, "\n-- {description}")?;
        match skipped {
            Some(skip) => self.note(&skip.why),
            None => Ok(()),
        }
    }

    fn row(&mut self, row: KeptRow<'_>) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            writeln!(self.out, "BEGIN;")?;
        }
        for change in self.session.change_for(row.flags) {
            writeln!(self.out, "{change};")?;
        }
        self.out.write_all(row.content)?;
        self.out.write_all(b";\n")
    }

    /// A statement that isn't to run: whole, so that a person may let it run.
    fn left(&mut self, row: KeptRow<'_>, why: &str) -> io::Result<()> {
        self.out.write_all(b"-- ")?;
        self.out.write_all(why.as_bytes())?;
        // A statement has no line breaks: they are escaped.
        self.out.write_all(row.content)?;
        self.out.write_all(b";\n")
    }

    fn was(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "-- was: {text}")
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "-- {text}")
    }

    fn end(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_begun) {
            writeln!(self.out, "COMMIT;")?;
        }
        Ok(())
    }
}
