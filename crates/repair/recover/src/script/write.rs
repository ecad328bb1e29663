//! Writes the kept rows as a script for the mysql client: transaction by transaction. Everything left out is named at its
//! place.

use std::io::{self, Write};

use binlogz_figures::counted;

use super::collect::CollectedChanges;
use super::replay::{RowSink, Skip, WrittenRow, replay, verb};
use super::session::ScriptSession;
use super::{ScriptSummary, orphans};
use crate::choose::Direction;
use crate::sql::CLIENT_CHARSET;

pub(super) fn write(
    collected: &CollectedChanges,
    direction: Direction,
    across_ddl: bool,
    out: &mut dyn Write,
) -> io::Result<ScriptSummary> {
    let unchecked = collected.unchecked_tables();
    let mut writer = Writer {
        out,
        has_begun: false,
        session: ScriptSession::default(),
        checks_each: collected.cascading <= CHECKS_MAX,
        is_unchecked: false,
    };
    writer.begin_script(direction, &unchecked)?;
    collected.trigger_notes().iter().try_for_each(|note| writer.note(note))?;
    let summary = replay(collected, direction, across_ddl, &mut writer)?;
    writer.end_script(direction, &summary, !unchecked.is_empty())?;
    Ok(summary)
}

struct Writer<'o> {
    out: &'o mut dyn Write,
    /// Whether the current transaction has a statement.
    has_begun: bool,
    session: ScriptSession,
    /// Whether each transaction with unchecked rows ends with a check; otherwise there is one at the end.
    checks_each: bool,
    /// Whether the current transaction has a row that foreign keys may have changed.
    is_unchecked: bool,
}

/// A check reads whole tables: this many transactions may have one.
const CHECKS_MAX: u64 = 16;
/// The variables that are set back.
const SAVED: [&str; 3] = ["time_zone", "sql_mode", "foreign_key_checks"];
/// One more where rows are changed unchecked.
const SAVED_UNCHECKED: &str = "group_concat_max_len";

impl Writer<'_> {
    fn begin_script(&mut self, direction: Direction, unchecked: &[(&str, &str)]) -> io::Result<()> {
        let what = match direction {
            Direction::Undo => "binlogz undo: takes changes back, the last one first",
            Direction::Redo => "binlogz redo: makes changes again, in their order",
        };
        writeln!(self.out, "-- {what}")?;
        let more = [SAVED_UNCHECKED];
        let names = SAVED.iter().chain(more.iter().filter(|_| !unchecked.is_empty()));
        let saved: Vec<_> = names.map(|name| format!("@binlogz_{name} = @@session.{name}")).collect();
        let [_, settings] = self.session.begin();
        writeln!(self.out, "{CLIENT_CHARSET}")?;
        writeln!(self.out, "SET {};", saved.join(", "))?;
        writeln!(self.out, "{settings};")?;
        if unchecked.is_empty() {
            return Ok(());
        }
        self.note("rows that foreign keys changed are changed again unchecked; none may be left without what it refers to")?;
        self.statements(orphans::begin(unchecked))
    }

    fn statements(&mut self, statements: Vec<String>) -> io::Result<()> {
        statements.iter().try_for_each(|statement| writeln!(self.out, "{statement};"))
    }

    fn end_script(
        &mut self,
        direction: Direction,
        summary: &ScriptSummary,
        has_unchecked: bool,
    ) -> io::Result<()> {
        if has_unchecked {
            writeln!(self.out)?;
            if !self.checks_each {
                self.statements(orphans::check())?;
            }
            writeln!(self.out, "SET {SAVED_UNCHECKED} = @binlogz_{SAVED_UNCHECKED};")?;
        }
        writeln!(
            self.out,
            "\nSET time_zone = @binlogz_time_zone, sql_mode = @binlogz_sql_mode, foreign_key_checks = \
             @binlogz_foreign_key_checks;"
        )?;
        let ScriptSummary { transactions, statements, rows_left, statements_left, .. } = *summary;
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

impl RowSink for Writer<'_> {
    type Error = io::Error;

    fn begin(&mut self, description: &str, _time: u64, skipped: Option<&Skip>) -> io::Result<()> {
        writeln!(self.out, "\n-- {description}")?;
        match skipped {
            Some(skip) => self.note(&skip.why),
            None => Ok(()),
        }
    }

    fn row(&mut self, row: WrittenRow<'_>) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            writeln!(self.out, "BEGIN;")?;
        }
        for change in self.session.change_for(row.flags) {
            writeln!(self.out, "{change};")?;
        }
        self.is_unchecked |= row.flags.may_be_cascaded();
        self.out.write_all(row.content)?;
        self.out.write_all(b";\n")
    }

    /// A statement that isn't to run: whole, so that a person may let it run.
    fn left(&mut self, row: WrittenRow<'_>, why: &str) -> io::Result<()> {
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
        if std::mem::take(&mut self.is_unchecked) && self.checks_each {
            self.statements(orphans::check())?;
        }
        if std::mem::take(&mut self.has_begun) {
            writeln!(self.out, "COMMIT;")?;
        }
        Ok(())
    }
}
