//! The statement that turns a row from one image into another.
//!
//! ```text
//! from    to      statement        undo of   redo of
//! -       row     INSERT           DELETE    INSERT
//! row     row     UPDATE           UPDATE    UPDATE
//! row     -       DELETE           INSERT    DELETE
//! ```

use binlogz_binlog::row::{Cell, CellContent, ColumnKind, Row, RowImage, Value};

use super::json::push_changed;
use super::literal::{Unwritable, needs_leniency, push, push_equal, push_stored};
use crate::choose::Direction;
use crate::table::{Table, TableColumn, lacks};

/// What became of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A statement. `is_lenient`: only a session that isn't strict stores its values.
    Statement { is_lenient: bool },
    /// The row stays as it is.
    Nothing,
    /// No statement can be written: why.
    Missing(String),
}

/// The images of a row, by what a statement does with them.
struct Sides<'r, 'a> {
    from: Option<RowImage<'r, 'a>>,
    to: Option<RowImage<'r, 'a>>,
    before: Option<RowImage<'r, 'a>>,
    after: Option<RowImage<'r, 'a>>,
    /// Whether the statement makes the change again.
    is_redo: bool,
}

/// Appends the statement for a row, without its semicolon.
pub(crate) fn push_statement(
    out: &mut Vec<u8>,
    table: &Table,
    row: &Row<'_, '_>,
    direction: Direction,
) -> Outcome {
    if let Some(unfit) = &table.unfit {
        return Outcome::Missing(unfit.clone());
    }
    let Row { before, after } = *row;
    let (from, to) = match direction {
        Direction::Undo => (after, before),
        Direction::Redo => (before, after),
    };
    let sides = Sides { from, to, before, after, is_redo: direction == Direction::Redo };
    if !table.has_names && from.is_some() {
        return Outcome::Missing(
            "the log has no column names (binlog_row_metadata=FULL writes them): --schema tells them"
                .to_owned(),
        );
    }
    let start = out.len();
    let written = match (from, to) {
        (None, Some(to)) => insert(out, table, &to, sides.is_redo),
        (Some(_), Some(_)) => update(out, table, &sides),
        (Some(_), None) => delete(out, table, &sides),
        (None, None) => Ok(Outcome::Nothing),
    };
    let outcome = written.unwrap_or_else(Outcome::Missing);
    if !matches!(outcome, Outcome::Statement { .. }) {
        out.truncate(start);
    }
    outcome
}

fn insert(
    out: &mut Vec<u8>,
    table: &Table,
    to: &RowImage<'_, '_>,
    is_redo: bool,
) -> Result<Outcome, Unwritable> {
    let stored = || table.columns.iter().filter(|column| !column.is_generated);
    let absent: Vec<_> =
        stored().filter(|column| to.cell(column.index).is_none()).map(TableColumn::shown).collect();
    // An INSERT that is made again gives the same defaults to what it left out.
    let may_be_absent = is_redo && table.has_names;
    if !may_be_absent && !absent.is_empty() {
        return Err(lacks(&absent));
    }
    push(out, "INSERT INTO ");
    out.extend_from_slice(&table.name);
    let mut is_lenient = false;
    let present = || stored().filter_map(|column| Some((column, to.cell(column.index)?)));
    if table.has_names {
        for (count, (column, _)) in present().enumerate() {
            push(out, if count == 0 { " (" } else { ", " });
            column.push_name(out);
        }
        push(out, if present().next().is_none() { " ()" } else { ")" });
    }
    push(out, " VALUES (");
    for (count, (column, cell)) in present().enumerate() {
        push(out, if count == 0 { "" } else { ", " });
        is_lenient |= needs_leniency(&cell);
        push_stored(out, column, &cell).map_err(|why| of_column(column, &why))?;
    }
    push(out, ")");
    Ok(Outcome::Statement { is_lenient })
}

fn update(out: &mut Vec<u8>, table: &Table, sides: &Sides<'_, '_>) -> Result<Outcome, Unwritable> {
    push(out, "UPDATE ");
    out.extend_from_slice(&table.name);
    let (mut changed, mut assigned, mut is_lenient) = (0, 0, false);
    let mut absent = Vec::new();
    for column in table.columns.iter().filter(|column| !column.is_generated) {
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
        push(out, if assigned == 0 { " SET " } else { ", " });
        column.push_name(out);
        push(out, " = ");
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
        return Ok(Outcome::Nothing);
    }
    push_where(out, table, sides)?;
    Ok(Outcome::Statement { is_lenient })
}

fn delete(out: &mut Vec<u8>, table: &Table, sides: &Sides<'_, '_>) -> Result<Outcome, Unwritable> {
    push(out, "DELETE FROM ");
    out.extend_from_slice(&table.name);
    push_where(out, table, sides)?;
    Ok(Outcome::Statement { is_lenient: false })
}

/// Appends the condition that only the row as it is now meets.
fn push_where(out: &mut Vec<u8>, table: &Table, sides: &Sides<'_, '_>) -> Result<(), Unwritable> {
    push(out, " WHERE ");
    let mut count = 0;
    let mut absent = Vec::new();
    let mut columns: Vec<&TableColumn> = Vec::new();
    match &table.key {
        Some(key) => columns.extend(key.iter().filter_map(|index| table.columns.get(*index))),
        None => columns.extend(&table.columns),
    }
    for column in columns {
        let Some(cell) = sides.current(column.index) else {
            absent.push(column.shown());
            continue;
        };
        push(out, if count == 0 { "" } else { " AND " });
        count += 1;
        match cell.value() {
            Ok(Value::JsonDiffs(_)) => {
                column.push_name(out);
                push(out, " = ");
                sides.push_changed(out, column, &cell)?;
            }
            _ => {
                push_equal(out, column, &cell, table.key.is_none()).map_err(|why| of_column(column, &why))?
            }
        }
    }
    if !absent.is_empty() || count == 0 {
        return Err(lacks(&absent));
    }
    // Without a key there may be several equal rows, of which one was changed.
    push(out, if table.key.is_none() { " LIMIT 1" } else { "" });
    Ok(())
}

impl<'a> Sides<'_, 'a> {
    /// Whether the change gave a column another value.
    fn is_changed(&self, index: usize) -> bool {
        let [before, after] =
            [self.before, self.after].map(|image| image.and_then(|image| image.cell(index)));
        match (before, after) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(_), Some(Cell { content: CellContent::JsonDiffs(diffs), .. })) => !diffs.is_empty(),
            (Some(before), Some(after)) => before.content != after.content,
        }
    }

    /// A column as it is before the statement: what an image leaves out, the change left alone.
    fn current(&self, index: usize) -> Option<Cell<'a>> {
        let of = |image: Option<RowImage<'_, 'a>>| image.and_then(|image| image.cell(index));
        of(self.from).or_else(|| of(self.to))
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

fn is_moment(table: &Table, column: &TableColumn) -> bool {
    let kind = table.schema.columns().get(column.index).map(|column| column.kind);
    matches!(
        kind,
        Some(
            ColumnKind::DateTime { .. }
                | ColumnKind::Timestamp { .. }
                | ColumnKind::OldDateTime
                | ColumnKind::OldTimestamp
        )
    )
}

fn of_column(column: &TableColumn, why: &str) -> String {
    format!("{}: {why}", column.shown())
}
