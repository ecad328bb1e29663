//! canal's flat messages: one for the rows of an event, one for a statement. All values are strings.

use std::io::Write as _;

use binlogz_binlog::Result;
use binlogz_binlog::row::{Cell, CellContent, ColumnKind, Row, RowImage, Value};

use crate::java::{Escapes, push_string};
use crate::statement::ChangeStatement;
use crate::table::{ChangeColumn, ChangeTable, java_type, type_name};
use crate::value::{self, canal as values};

/// Facts about an event.
#[derive(Debug)]
pub(crate) struct CanalOrigin {
    /// When it happened, in seconds since 1970.
    pub(crate) timestamp: u32,
    pub(crate) gtid: Option<String>,
    /// Where its transaction begins: counts messages up within a log, as canal's batches do.
    pub(crate) id: u64,
    /// The commit, in microseconds since 1970.
    pub(crate) time: u64,
}

/// A message that is being written.
#[derive(Debug, Default)]
pub(crate) struct CanalMessage {
    /// The old values of updates, which come after all rows.
    old: Vec<u8>,
    /// The number of each column's type, as the last row has it.
    types: Vec<i32>,
}

impl CanalMessage {
    /// Appends the message for rows. `next` gives them one after the other.
    pub(crate) fn push(
        &mut self,
        out: &mut Vec<u8>,
        (table, origin, kind): (&ChangeTable, &CanalOrigin, &str),
        mut next: impl FnMut(&mut dyn FnMut(&Row<'_, '_>) -> Result<()>) -> Result<bool>,
    ) -> Result<()> {
        self.old.clear();
        self.types.clear();
        self.types.extend(table.columns.iter().map(java_type));
        out.extend_from_slice(b"{\"data\":[");
        let mut is_first = true;
        loop {
            let goes_on = next(&mut |row| {
                if !std::mem::take(&mut is_first) {
                    out.push(b',');
                }
                self.row(out, row, table)
            })?;
            if !goes_on {
                break;
            }
        }
        out.push(b']');
        push_name(out, "database", &table.database);
        push_begin(out, origin, false);
        out.extend_from_slice(b",\"mysqlType\":{");
        for (index, column) in table.columns.iter().enumerate() {
            push_field(out, index, column);
            push_string(out, &type_name(column), Escapes::Fastjson);
        }
        out.extend_from_slice(b"},\"old\":");
        if self.old.is_empty() {
            out.extend_from_slice(b"null");
        } else {
            out.push(b'[');
            out.extend_from_slice(&self.old);
            out.push(b']');
        }
        out.extend_from_slice(b",\"pkNames\":");
        push_key(out, table);
        out.extend_from_slice(b",\"sql\":\"\",\"sqlType\":{");
        for (index, (column, number)) in table.columns.iter().zip(&self.types).enumerate() {
            push_field(out, index, column);
            // Writing to a vector can't fail.
            let _ = write!(out, "{number}");
        }
        out.push(b'}');
        push_end(out, &table.name, origin, kind);
        Ok(())
    }

    fn row(&mut self, out: &mut Vec<u8>, row: &Row<'_, '_>, table: &ChangeTable) -> Result<()> {
        let Some(data) = row.after.as_ref().or(row.before.as_ref()) else { return Ok(()) };
        out.push(b'{');
        for (index, column) in table.columns.iter().enumerate() {
            push_field(out, index, column);
            let cell = value::cell(data, column, index)?;
            self.note_type(index, &cell)?;
            push_value(out, row, &cell, column)?;
        }
        out.push(b'}');
        if let (Some(before), Some(_)) = (&row.before, &row.after) {
            self.push_old(row, before, table)?;
        }
        Ok(())
    }

    fn push_old(&mut self, row: &Row<'_, '_>, before: &RowImage<'_, '_>, table: &ChangeTable) -> Result<()> {
        let old = &mut self.old;
        let start = old.len();
        let changed = table.columns.iter().enumerate().filter(|(index, _)| value::is_changed(row, *index));
        for (number, (index, column)) in changed.enumerate() {
            if number == 0 {
                old.extend_from_slice(if start > 0 { b",{" } else { b"{" });
            }
            push_field(old, number, column);
            let cell = value::cell(before, column, index)?;
            push_value(old, row, &cell, column)?;
        }
        if old.len() > start {
            old.push(b'}');
        }
        Ok(())
    }

    /// An unsigned number that is too large for its type's signed one has the next larger type.
    fn note_type(&mut self, index: usize, cell: &Cell<'_>) -> Result<()> {
        let Some(number) = self.types.get_mut(index) else { return Ok(()) };
        let (limit, larger, usual) = match cell.column.kind {
            ColumnKind::TinyInt { unsigned: true } => (i64::from(i8::MAX), 5, -6),
            ColumnKind::SmallInt { unsigned: true } => (i64::from(i16::MAX), 4, 5),
            ColumnKind::Int { unsigned: true } => (i64::from(i32::MAX), -5, 4),
            ColumnKind::BigInt { unsigned: true } => (i64::MAX, 3, -5),
            ColumnKind::Set { .. } => {
                // That of NULL is another.
                *number = if cell.content == CellContent::Null { 2004 } else { -7 };
                return Ok(());
            }
            _ => return Ok(()),
        };
        *number = match cell.value()? {
            Value::Uint(value) if value > limit as u64 => larger,
            _ => usual,
        };
        Ok(())
    }
}

fn push_value(out: &mut Vec<u8>, row: &Row<'_, '_>, cell: &Cell<'_>, column: &ChangeColumn) -> Result<()> {
    match cell.content {
        CellContent::JsonDiffs(_) => {
            values::push_changed_document(out, &value::changed_document(row, cell.index)?);
            Ok(())
        }
        _ => values::push(out, cell, column),
    }
}

/// Appends the message of a statement.
pub(crate) fn push_statement(out: &mut Vec<u8>, (text, database): (&str, &str), origin: &CanalOrigin) {
    let statement = ChangeStatement::of(text);
    out.extend_from_slice(b"{\"data\":null");
    push_name(out, "database", statement.database.as_deref().unwrap_or(database));
    push_begin(out, origin, !statement.kind.changes_rows());
    out.extend_from_slice(b",\"mysqlType\":null,\"old\":null,\"pkNames\":null,\"sql\":");
    push_string(out, text, Escapes::Fastjson);
    out.extend_from_slice(b",\"sqlType\":null");
    push_end(out, statement.table.as_deref().unwrap_or_default(), origin, statement.kind.name());
}

fn push_begin(out: &mut Vec<u8>, origin: &CanalOrigin, is_ddl: bool) {
    let _ = write!(out, ",\"es\":{}000", origin.timestamp);
    push_name(out, "gtid", origin.gtid.as_deref().unwrap_or_default());
    let _ = write!(out, ",\"id\":{},\"isDdl\":{is_ddl}", origin.id);
}

fn push_end(out: &mut Vec<u8>, table: &str, origin: &CanalOrigin, kind: &str) {
    push_name(out, "table", table);
    let _ = writeln!(out, ",\"ts\":{},\"type\":\"{kind}\"}}", origin.time / 1000);
}

fn push_name(out: &mut Vec<u8>, name: &str, text: &str) {
    let _ = write!(out, ",\"{name}\":");
    push_string(out, text, Escapes::Fastjson);
}

fn push_field(out: &mut Vec<u8>, number: usize, column: &ChangeColumn) {
    if number > 0 {
        out.push(b',');
    }
    out.extend_from_slice(&column.field);
}

/// The key's columns in the table's order.
fn push_key(out: &mut Vec<u8>, table: &ChangeTable) {
    if table.key.is_empty() {
        return out.extend_from_slice(b"null");
    }
    let mut key = table.key.clone();
    key.sort_unstable();
    for (number, column) in key.iter().filter_map(|&index| table.columns.get(index)).enumerate() {
        out.push(if number == 0 { b'[' } else { b',' });
        push_string(out, &column.name, Escapes::Fastjson);
    }
    out.push(b']');
}
