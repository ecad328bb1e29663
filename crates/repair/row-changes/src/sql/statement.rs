//! The statement that turns a row from one image into another.
//!
//! ```text
//! from    to      statement        undo of   redo of
//! -       row     INSERT           DELETE    INSERT
//! row     row     UPDATE           UPDATE    UPDATE
//! row     -       DELETE           INSERT    DELETE
//! ```

use binlogz_binlog::row::{Cell, CellContent, ColumnClass, ColumnKind, Row, RowImage, Value};
use binlogz_schema::names_lacking;

use super::Unwritable;
use super::json::{push_changed, push_document};
use super::literal::{is_equal_exactly, needs_leniency, push_equal, push_same_text, push_stored};
use super::text::push_str;
use crate::choose::Direction;
use crate::table::{TableColumn, WrittenTable, lacks};

/// The outcome of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowOutcome {
    /// A statement. `is_lenient`: only a session that isn't strict stores its values.
    Statement { is_lenient: bool },
    /// The row stays as it is.
    Nothing,
    /// No statement can be written: why.
    Missing(String),
}

/// Appends the condition that finds the row by its key, whatever else it holds; nothing for a table without a key. Returns
/// where the condition of `statement` begins; of an INSERT, its end.
pub(crate) fn push_key_of(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    row: &Row<'_, '_>,
    direction: Direction,
    statement: &[u8],
) -> usize {
    let Row { before, after } = *row;
    let (from, to) = match direction {
        Direction::Undo => (after, before),
        Direction::Redo => (before, after),
    };
    let is_redo = direction == Direction::Redo;
    let sides = StatementImages { from, to, before, after, is_redo };
    let start = out.len();
    if table.key.is_some() && table.has_names && push_key(out, table, &sides).is_err() {
        out.truncate(start);
    }
    // The condition is made once more: a value may hold the word.
    let mut condition = Vec::new();
    match from {
        Some(_) if push_where(&mut condition, table, &sides).is_ok() => {
            (statement.len() + WHERE.len()).saturating_sub(condition.len())
        }
        _ => statement.len(),
    }
}

/// The images of a row, by what a statement does with them.
struct StatementImages<'r, 'a> {
    from: Option<RowImage<'r, 'a>>,
    to: Option<RowImage<'r, 'a>>,
    before: Option<RowImage<'r, 'a>>,
    after: Option<RowImage<'r, 'a>>,
    /// Whether the statement makes the change again.
    is_redo: bool,
}

/// Whether two JSON values are one document, though their bytes differ: JSON_SET and its kin leave gaps where values were, and a document that
/// is stored anew has none. An UPDATE from one to the other may change no row, as the server counts.
fn is_same_document(one: &Cell<'_>, other: &Cell<'_>) -> bool {
    let (Ok(Value::Json(one)), Ok(Value::Json(other))) = (one.value(), other.value()) else { return false };
    let (mut as_one, mut as_other) = (Vec::new(), Vec::new());
    let written = push_document(&mut as_one, &one).and_then(|()| push_document(&mut as_other, &other));
    written.is_ok() && as_one == as_other
}

/// Appends the statement for a row, without its semicolon. It finds the row by its key and all columns, as they are logged.
pub(crate) fn push_statement(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    row: &Row<'_, '_>,
    direction: Direction,
) -> RowOutcome {
    if let Some(unfit) = &table.unfit {
        return RowOutcome::Missing(unfit.clone());
    }
    let Row { before, after } = *row;
    let (from, to) = match direction {
        Direction::Undo => (after, before),
        Direction::Redo => (before, after),
    };
    let sides = StatementImages { from, to, before, after, is_redo: direction == Direction::Redo };
    // By their places alone values come into other columns if the table's were moved since.
    if !table.has_names {
        return RowOutcome::Missing(names_lacking(None));
    }
    let start = out.len();
    let written = match (from, to) {
        (None, Some(to)) => insert(out, table, &to, sides.is_redo),
        (Some(_), Some(_)) => update(out, table, &sides),
        (Some(_), None) => delete(out, table, &sides),
        (None, None) => Ok(RowOutcome::Nothing),
    };
    let outcome = written.unwrap_or_else(RowOutcome::Missing);
    if !matches!(outcome, RowOutcome::Statement { .. }) {
        out.truncate(start);
    }
    outcome
}

fn insert(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    to: &RowImage<'_, '_>,
    is_redo: bool,
) -> Result<RowOutcome, Unwritable> {
    let stored = || table.columns.iter().filter(|column| column.is_stored());
    let absent: Vec<_> =
        stored().filter(|column| to.cell(column.index).is_none()).map(TableColumn::shown).collect();
    // An INSERT that is made again gives the same defaults to what it left out.
    let may_be_absent = is_redo && table.has_names;
    if !may_be_absent && !absent.is_empty() {
        return Err(lacks(&absent));
    }
    push_str(out, "INSERT INTO ");
    out.extend_from_slice(&table.name);
    let mut is_lenient = false;
    let present = || stored().filter_map(|column| Some((column, to.cell(column.index)?)));
    if table.has_names {
        for (count, (column, _)) in present().enumerate() {
            push_str(out, if count == 0 { " (" } else { ", " });
            column.push_name(out);
        }
        push_str(out, if present().next().is_none() { " ()" } else { ")" });
    }
    push_str(out, " VALUES (");
    for (count, (column, cell)) in present().enumerate() {
        push_str(out, if count == 0 { "" } else { ", " });
        is_lenient |= needs_leniency(&cell);
        push_stored(out, column, &cell).map_err(|why| of_column(column, &why))?;
    }
    push_str(out, ")");
    Ok(RowOutcome::Statement { is_lenient })
}

fn update(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    sides: &StatementImages<'_, '_>,
) -> Result<RowOutcome, Unwritable> {
    push_str(out, "UPDATE ");
    out.extend_from_slice(&table.name);
    let mut changed = 0;
    let mut assigned = 0;
    let mut is_lenient = false;
    let mut absent = Vec::new();
    for column in table.columns.iter().filter(|column| column.is_stored()) {
        let is_changed = sides.is_changed(column.index);
        // Unless it is assigned, the server may set it to the time of the statement.
        if !is_changed && !is_moment(table, column) {
            continue;
        }
        let to = sides.to.and_then(|to| to.cell(column.index));
        if is_changed && to.is_none() {
            absent.push(column.shown());
            continue;
        }
        push_str(out, if assigned == 0 { " SET " } else { ", " });
        column.push_name(out);
        push_str(out, " = ");
        match to {
            None => column.push_name(out),
            Some(cell) => {
                is_lenient |= needs_leniency(&cell);
                sides.push_cell(out, column, &cell)?;
            }
        }
        changed += usize::from(is_changed);
        assigned += 1;
    }
    if !absent.is_empty() {
        return Err(lacks(&absent));
    }
    if changed == 0 {
        return Ok(RowOutcome::Nothing);
    }
    push_where(out, table, sides)?;
    Ok(RowOutcome::Statement { is_lenient })
}

fn delete(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    sides: &StatementImages<'_, '_>,
) -> Result<RowOutcome, Unwritable> {
    push_str(out, "DELETE FROM ");
    out.extend_from_slice(&table.name);
    push_where(out, table, sides)?;
    Ok(RowOutcome::Statement { is_lenient: false })
}

/// The text before a statement's condition.
const WHERE: &str = " WHERE ";

/// Appends the condition that only the row as it is now meets.
fn push_where(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    sides: &StatementImages<'_, '_>,
) -> Result<(), Unwritable> {
    push_str(out, WHERE);
    let start = out.len();
    if table.key.is_some() {
        push_key(out, table, sides)?;
    }
    push_columns(out, table, sides, start)?;
    // Without a key there may be several equal rows, of which one was changed.
    push_str(out, if table.key.is_none() { " LIMIT 1" } else { "" });
    Ok(())
}

/// Appends the condition that the row of this key meets.
fn push_key(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    sides: &StatementImages<'_, '_>,
) -> Result<(), Unwritable> {
    let mut absent = Vec::new();
    let key = table.key.iter().flatten().filter_map(|index| table.columns.get(*index));
    for (count, column) in key.enumerate() {
        let Some(cell) = sides.current(column.index) else {
            absent.push(column.shown());
            continue;
        };
        push_str(out, if count == 0 { "" } else { " AND " });
        push_equal(out, column, &cell, false).map_err(|why| of_column(column, &why))?;
    }
    if absent.is_empty() { Ok(()) } else { Err(lacks(&absent)) }
}

/// Appends conditions on all columns, byte by byte, after what the condition has from `start` on.
fn push_columns(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    sides: &StatementImages<'_, '_>,
    start: usize,
) -> Result<(), Unwritable> {
    let mut absent = Vec::new();
    for column in table.columns.iter().filter(|column| !column.is_gone) {
        let Some(cell) = sides.current(column.index) else {
            absent.push(column.shown());
            continue;
        };
        if is_compared_as_key(table, column, &cell) {
            continue;
        }
        push_str(out, if out.len() == start { "" } else { " AND " });
        match cell.value() {
            Ok(Value::JsonDiffs(_)) => {
                column.push_name(out);
                push_str(out, " = ");
                let changed = out.len();
                sides.push_changed(out, column, &cell)?;
                let written = out.get(changed..).unwrap_or_default().to_vec();
                push_same_text(out, column, &written);
            }
            _ => push_equal(out, column, &cell, true).map_err(|why| of_column(column, &why))?,
        }
    }
    // By its key a row is found whatever else the log lacks.
    let is_found = table.key.is_some() || absent.is_empty();
    if is_found && out.len() > start { Ok(()) } else { Err(lacks(&absent)) }
}

/// Whether the condition on a column of the key compares it byte by byte already.
fn is_compared_as_key(table: &WrittenTable, column: &TableColumn, cell: &Cell<'_>) -> bool {
    let is_in_key = table.key.as_ref().is_some_and(|key| key.contains(&column.index));
    is_in_key && is_equal_exactly(column, cell)
}

impl<'a> StatementImages<'_, 'a> {
    /// Whether the change gave a column another value.
    fn is_changed(&self, index: usize) -> bool {
        let [before, after] =
            [self.before, self.after].map(|image| image.and_then(|image| image.cell(index)));
        match (before, after) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(_), Some(Cell { content: CellContent::JsonDiffs(diffs), .. })) => !diffs.is_empty(),
            (Some(before), Some(after)) => {
                before.content != after.content && !is_same_document(&before, &after)
            }
        }
    }

    /// A column as it is before the statement. A column that the image after a change leaves out was not changed; one
    /// that the image before leaves out may have had any value.
    fn current(&self, index: usize) -> Option<Cell<'a>> {
        let of = |image: Option<RowImage<'_, 'a>>| image.and_then(|image| image.cell(index));
        of(self.from).or_else(|| of(self.to).filter(|_| !self.is_redo))
    }

    fn push_cell(&self, out: &mut Vec<u8>, column: &TableColumn, cell: &Cell<'a>) -> Result<(), Unwritable> {
        match cell.content {
            CellContent::JsonDiffs(_) => self.push_changed(out, column, cell),
            _ => push_stored(out, column, cell).map_err(|why| of_column(column, &why)),
        }
    }

    /// Appends the document that differences make: of the column as it is, or of the document before.
    fn push_changed(
        &self,
        out: &mut Vec<u8>,
        column: &TableColumn,
        cell: &Cell<'a>,
    ) -> Result<(), Unwritable> {
        let Ok(Value::JsonDiffs(diffs)) = cell.value() else { return Err(of_column(column, "unreadable")) };
        let before = self.before.and_then(|image| image.cell(column.index));
        let pushed = push_changed(out, &diffs, |out| match before {
            Some(before) => push_stored(out, column, &before),
            None if self.is_redo => {
                column.push_name(out);
                Ok(())
            }
            None => Err("its document before the change".to_owned()),
        });
        pushed.map_err(|why| of_column(column, &why))
    }
}

fn is_moment(table: &WrittenTable, column: &TableColumn) -> bool {
    let kind = table.schema.columns().get(column.index).map(|column| column.kind);
    matches!(kind.map(ColumnKind::class), Some(ColumnClass::DateTime(_) | ColumnClass::Timestamp(_)))
}

fn of_column(column: &TableColumn, why: &str) -> String {
    format!("{}: {why}", column.shown())
}
