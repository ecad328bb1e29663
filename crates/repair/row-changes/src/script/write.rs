//! Writes the kept rows as a script for the mysql client: transaction by transaction. Everything left out is named at its
//! place.

use std::io::{self, Write};

use binlogz_figures::counted;

use super::children::{self, WaitingDeletes};
use super::collect::CollectedChanges;
use super::one_row::ONE_ROW;
use super::replay::{RowSink, Skip, WrittenRow, replay, verb};
use super::session::ScriptSession;
use super::{ScriptSummary, one_row, orphans, unfit};
use crate::choose::Direction;
use crate::record::RowFlags;
use crate::sql::CLIENT_CHARSET;

pub(super) fn write(
    collected: &CollectedChanges,
    direction: Direction,
    across_ddl: bool,
    out: &mut dyn Write,
) -> io::Result<ScriptSummary> {
    let unchecked = collected.unchecked_tables();
    let tables = collected.tables.iter().map(|table| (&*table.database, &*table.table)).collect();
    let mut writer = Writer {
        out,
        direction,
        tables,
        waiting: WaitingDeletes::default(),
        has_long_texts: false,
        has_begun: false,
        session: ScriptSession::default(),
        checks_each: collected.cascading <= CHECKS_MAX,
        is_unchecked: false,
    };
    writer.begin_script(&unchecked, collected)?;
    let notes = collected.trigger_notes().into_iter().chain(collected.later.notes());
    notes.into_iter().try_for_each(|note| writer.note(&note))?;
    let mut summary = replay(collected, direction, across_ddl, &mut writer)?;
    summary.changed_later = collected.later.count();
    writer.end_script(&summary, !unchecked.is_empty())?;
    Ok(summary)
}

struct Writer<'o> {
    out: &'o mut dyn Write,
    direction: Direction,
    /// Databases and names, by number.
    tables: Vec<(&'o str, &'o str)>,
    waiting: WaitingDeletes,
    /// Whether the server may make long queries.
    has_long_texts: bool,
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
const COMMENT: &[u8] = b"-- ";
/// The variables that are set back.
const SAVED: [&str; 3] = ["time_zone", "sql_mode", "foreign_key_checks"];
/// The variable that is saved too where the script has the server make queries.
const LONG_TEXTS: &str = "group_concat_max_len";

impl Writer<'_> {
    fn begin_script(&mut self, unchecked: &[(&str, &str)], collected: &CollectedChanges) -> io::Result<()> {
        let what = match self.direction {
            Direction::Undo => "binlogz undo: takes changes back, the last one first",
            Direction::Redo => "binlogz redo: makes changes again, in their order",
        };
        writeln!(self.out, "-- {what}")?;
        let saved: Vec<_> = SAVED.iter().map(|name| format!("@binlogz_{name} = @@session.{name}")).collect();
        let [_, settings] = self.session.begin();
        writeln!(self.out, "{CLIENT_CHARSET}")?;
        writeln!(self.out, "SET {};", saved.join(", "))?;
        writeln!(self.out, "{settings};")?;
        self.note(one_row::NOTE)?;
        if !collected.tables.is_empty() {
            self.note(unfit::NOTE)?;
            self.begin_long_texts()?;
            self.statements(unfit::check(&collected.tables))?;
        }
        if unchecked.is_empty() {
            return Ok(());
        }
        self.note("rows that foreign keys changed are changed again unchecked; none may be left without what it refers to")?;
        self.begin_long_texts()?;
        self.statements(orphans::begin(unchecked))
    }

    fn statements(&mut self, statements: Vec<String>) -> io::Result<()> {
        statements.iter().try_for_each(|statement| writeln!(self.out, "{statement};"))
    }

    /// Writes the DELETEs that wait for their check.
    fn waited(&mut self) -> io::Result<()> {
        let Some(number) = self.waiting.table() else { return Ok(()) };
        self.begin_long_texts()?;
        let names = self.tables.get(number).copied().unwrap_or_default();
        let waited = self.waiting.take(names);
        self.out.write_all(&waited)
    }

    /// Lets the server make long queries, once.
    fn begin_long_texts(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.has_long_texts, true) {
            return Ok(());
        }
        writeln!(self.out, "SET @binlogz_{LONG_TEXTS} = @@session.{LONG_TEXTS};")?;
        writeln!(self.out, "{};", orphans::LONG_TEXTS)
    }

    /// The condition of a DELETE by which foreign keys would change rows. Where the log has what they changed, all of that was
    /// changed before; where a DELETE is made again and the log doesn't have it, they are to do so.
    fn checked<'r>(&self, row: WrittenRow<'r>) -> Option<&'r [u8]> {
        let is_logged = row.flags.has(RowFlags::SQL_FOREIGN_KEYS);
        let is_checked =
            !row.flags.has(RowFlags::NO_FOREIGN_KEYS) && (is_logged || self.direction == Direction::Undo);
        let names = self.tables.get(row.table).filter(|_| is_checked)?;
        children::condition(row.content, *names)
    }

    fn end_script(&mut self, summary: &ScriptSummary, has_unchecked: bool) -> io::Result<()> {
        if has_unchecked && !self.checks_each {
            writeln!(self.out)?;
            self.statements(orphans::check())?;
        }
        let long_texts = [LONG_TEXTS];
        let names = SAVED.iter().chain(long_texts.iter().filter(|_| self.has_long_texts));
        let restored: Vec<_> = names.map(|name| format!("{name} = @binlogz_{name}")).collect();
        writeln!(self.out, "\nSET {};", restored.join(", "))?;
        let ScriptSummary { transactions, statements, rows_left, statements_left, .. } = *summary;
        let verb = verb(self.direction);
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

impl Writer<'_> {
    /// Writes a comment. Names may have line breaks: what follows one is a comment, too.
    fn comment(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.out.write_all(COMMENT)?;
        for line in parts.iter().flat_map(|part| part.split_inclusive(|byte| *byte == b'\n')) {
            self.out.write_all(line)?;
            if line.ends_with(b"\n") {
                self.out.write_all(COMMENT)?;
            }
        }
        self.out.write_all(b"\n")
    }
}

impl RowSink for Writer<'_> {
    type Error = io::Error;

    fn begin(&mut self, description: &str, _time: u64, skipped: Option<&Skip>) -> io::Result<()> {
        writeln!(self.out)?;
        self.comment(&[description.as_bytes()])?;
        match skipped {
            Some(skip) => self.note(&skip.why),
            None => Ok(()),
        }
    }

    fn row(&mut self, row: WrittenRow<'_>) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            writeln!(self.out, "BEGIN;")?;
        }
        let checked = self.checked(row);
        let changes = self.session.change_for(row.flags);
        if checked.is_none() || !changes.is_empty() || self.waiting.is_full_for(row.table) {
            self.waited()?;
        }
        self.statements(changes)?;
        if let Some(condition) = checked {
            self.is_unchecked |= row.flags.may_be_cascaded();
            self.waiting.push(row.table, condition, row.content);
            return Ok(());
        }
        self.is_unchecked |= row.flags.may_be_cascaded();
        self.out.write_all(row.content)?;
        self.out.write_all(b";\n")?;
        // An INSERT fails by itself.
        match row.content.first() {
            Some(b'I') => Ok(()),
            _ => self.out.write_all(ONE_ROW.as_bytes()),
        }
    }

    /// A statement that isn't to run: whole, so that a person may let it run.
    fn left(&mut self, row: WrittenRow<'_>, why: &str) -> io::Result<()> {
        self.waited()?;
        self.comment(&[why.as_bytes(), row.content, b";"])
    }

    fn was(&mut self, text: &str) -> io::Result<()> {
        self.waited()?;
        self.comment(&[b"was: ", text.as_bytes()])
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        self.waited()?;
        self.comment(&[text.as_bytes()])
    }

    fn end(&mut self) -> io::Result<()> {
        self.waited()?;
        if std::mem::take(&mut self.is_unchecked) && self.checks_each {
            self.statements(orphans::check())?;
        }
        if std::mem::take(&mut self.has_begun) {
            writeln!(self.out, "COMMIT;")?;
        }
        Ok(())
    }
}
