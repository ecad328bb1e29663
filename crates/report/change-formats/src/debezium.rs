//! Debezium's change events, as its JSON converter writes them with `schemas.enable=false`.
//!
//! ```text
//! insert              c                      key as after
//! update              u                      key as after
//! update of the key   d, tombstone, c        as Debezium does: two rows for whoever reads by key
//! delete              d, tombstone           key as before
//! TRUNCATE TABLE      t                      no key (skipped.operations=none)
//! ```
//!
//! A tombstone, a message with a key and without a value, is only written where lines have keys. The metadata of transactions
//! is completed by `resolver/orders.rs`.

use std::io::Write as _;

use binlogz_binlog::Result;
use binlogz_binlog::row::{Row, RowImage};
use binlogz_print::BufferedLines;

use crate::fields::FieldPen;
use crate::java::{Escapes, push_string};
use crate::resolver::{MARK, orders};
use crate::settings::ChangeSettings;
use crate::table::ChangeTable;
use crate::value;
use crate::value::debezium::DebeziumValues;

/// Facts about an event that all of its rows share.
#[derive(Debug)]
pub(crate) struct DebeziumOrigin<'e> {
    /// The log's file name.
    pub(crate) file: &'e str,
    pub(crate) position: u64,
    pub(crate) server_id: u32,
    pub(crate) gtid: Option<String>,
    pub(crate) thread_id: Option<u32>,
    /// The transaction's id, where its metadata is asked for. XA transactions have none.
    pub(crate) transaction: Option<String>,
    /// The commit, in microseconds since 1970.
    pub(crate) time: u64,
}

/// The text that rows of an event have in common; a worker's is used again for all events.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    /// From the source's brace to the row's number.
    source: Vec<u8>,
    /// From there to the operation.
    rest: Vec<u8>,
    /// After the operation.
    end: Vec<u8>,
}

/// This program, where Debezium names its version.
const VERSION: &str = concat!("binlogz-", env!("CARGO_PKG_VERSION"));

impl Envelope {
    /// Prepares for rows of a table, which are announced where they have numbers.
    pub(crate) fn prepare(
        &mut self,
        out: &mut Vec<u8>,
        origin: &DebeziumOrigin<'_>,
        table: &ChangeTable,
        settings: &ChangeSettings<'_>,
    ) {
        let names = (table.database.as_str(), table.name.as_str());
        if let Some(id) = &origin.transaction {
            orders::push_rows(out, id, origin.time / 1000, names);
        }
        self.write(origin, names, settings);
    }

    fn write(
        &mut self,
        origin: &DebeziumOrigin<'_>,
        (database, table): (&str, &str),
        settings: &ChangeSettings<'_>,
    ) {
        let Envelope { source, rest, end } = self;
        source.clear();
        rest.clear();
        end.clear();
        let us = origin.time;
        let ms = origin.time / 1000;
        // Writing to a vector can't fail.
        let _ = write!(source, ",\"source\":{{\"version\":\"{VERSION}\",\"connector\":\"mysql\",\"name\":");
        push_string(source, &settings.topic_prefix, Escapes::Jackson);
        let _ = write!(source, ",\"ts_ms\":{ms},\"snapshot\":\"false\",\"db\":");
        push_string(source, database, Escapes::Jackson);
        let _ = write!(source, ",\"sequence\":null,\"ts_us\":{us},\"ts_ns\":{us}000,\"table\":");
        push_string(source, table, Escapes::Jackson);
        let _ = write!(source, ",\"server_id\":{},\"gtid\":", origin.server_id);
        match &origin.gtid {
            Some(gtid) => push_string(source, gtid, Escapes::Jackson),
            None => source.extend_from_slice(b"null"),
        }
        source.extend_from_slice(b",\"file\":");
        push_string(source, origin.file, Escapes::Jackson);
        let _ = write!(source, ",\"pos\":{},\"row\":", origin.position);
        rest.extend_from_slice(b",\"thread\":");
        match origin.thread_id {
            Some(thread) => {
                let _ = write!(rest, "{thread}");
            }
            None => rest.extend_from_slice(b"null"),
        }
        rest.extend_from_slice(b",\"query\":null},\"transaction\":");
        match &origin.transaction {
            Some(_) => rest.push(MARK),
            None => rest.extend_from_slice(b"null"),
        }
        rest.extend_from_slice(b",\"op\":\"");
        let _ = writeln!(end, "\",\"ts_ms\":{ms},\"ts_us\":{us},\"ts_ns\":{us}000}}");
    }

    /// Appends the line of a TRUNCATE TABLE.
    pub(crate) fn push_truncate(
        &mut self,
        out: &mut Vec<u8>,
        origin: &DebeziumOrigin<'_>,
        table: (&str, &str),
        settings: &ChangeSettings<'_>,
    ) {
        // It takes this time from elsewhere, in milliseconds.
        let time = origin.time / 1000 * 1000;
        let origin =
            DebeziumOrigin { time, thread_id: None, transaction: None, gtid: origin.gtid.clone(), ..*origin };
        self.write(&origin, table, settings);
        if settings.with_key {
            out.extend_from_slice(b"null\t");
        }
        out.extend_from_slice(b"{\"before\":null,\"after\":null");
        out.extend_from_slice(&self.source);
        out.push(b'0');
        out.extend_from_slice(&self.rest);
        out.push(b't');
        out.extend_from_slice(&self.end);
    }

    /// Writes the lines of a row.
    pub(crate) fn put_row<'l>(
        &self,
        lines: BufferedLines<'l>,
        (row, number): (&Row<'_, '_>, u64),
        table: &ChangeTable,
        settings: &ChangeSettings<'_>,
        apart: &mut Vec<u8>,
    ) -> Result<BufferedLines<'l>> {
        let pen = FieldPen { row, table, values: DebeziumValues(settings), apart };
        let mut writer = Writer { pen, with_key: settings.with_key };
        if value::key_is_changed(row, table) {
            let before = row.before;
            let after = row.after;
            let mut lines = self.put(lines, (before, None), (b'd', number), &mut writer)?;
            lines = writer.put_tombstone(lines)?;
            return self.put(lines, (None, after), (b'c', number), &mut writer);
        }
        let operation = match (row.before, row.after) {
            (None, _) => b'c',
            (Some(_), Some(_)) => b'u',
            (Some(_), None) => b'd',
        };
        let lines = self.put(lines, (row.before, row.after), (operation, number), &mut writer)?;
        if operation == b'd' { writer.put_tombstone(lines) } else { Ok(lines) }
    }

    fn put<'l>(
        &self,
        mut lines: BufferedLines<'l>,
        (before, after): (Option<RowImage<'_, '_>>, Option<RowImage<'_, '_>>),
        (operation, number): (u8, u64),
        writer: &mut Writer<'_, '_, '_>,
    ) -> Result<BufferedLines<'l>> {
        if writer.with_key {
            lines = writer.put_key(lines, after.as_ref().or(before.as_ref()))?;
            lines.step();
            lines.put(b"\t", 1);
        }
        lines.step();
        lines.put(b"{\"before\":", 10);
        lines = writer.put_image(lines, before.as_ref())?;
        lines.step();
        lines.put(b",\"after\":", 9);
        lines = writer.put_image(lines, after.as_ref())?;
        lines.put_text(&self.source);
        lines.step();
        lines.put_unsigned(number);
        lines.put_text(&self.rest);
        lines.step();
        lines.put(&[operation], 1);
        lines.put_text(&self.end);
        Ok(lines)
    }
}

struct Writer<'w, 'i, 'a> {
    pen: FieldPen<'w, 'i, 'a, DebeziumValues<'w>>,
    with_key: bool,
}

impl Writer<'_, '_, '_> {
    fn put_key<'l>(
        &mut self,
        lines: BufferedLines<'l>,
        image: Option<&RowImage<'_, '_>>,
    ) -> Result<BufferedLines<'l>> {
        let key = &self.pen.table.key;
        match (key.is_empty(), image) {
            (false, Some(image)) => self.pen.put_object(lines, image, key.iter().copied()),
            _ => Ok(put_null(lines)),
        }
    }

    fn put_tombstone<'l>(&mut self, mut lines: BufferedLines<'l>) -> Result<BufferedLines<'l>> {
        if self.with_key {
            let before = self.pen.row.before;
            lines = self.put_key(lines, before.as_ref())?;
            lines.step();
            lines.put(b"\tnull\n", 6);
        }
        Ok(lines)
    }

    fn put_image<'l>(
        &mut self,
        lines: BufferedLines<'l>,
        image: Option<&RowImage<'_, '_>>,
    ) -> Result<BufferedLines<'l>> {
        match image {
            Some(image) => self.pen.put_object(lines, image, 0..self.pen.table.columns.len()),
            None => Ok(put_null(lines)),
        }
    }
}

fn put_null(mut lines: BufferedLines<'_>) -> BufferedLines<'_> {
    lines.step();
    lines.put(b"null", 4);
    lines
}
