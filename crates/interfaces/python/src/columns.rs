//! The columns of row changes that are being built: those of one table with its images as structs, or those of all tables with
//! images as JSON.

use std::sync::Arc;

use arrow_array::builder::{StringBuilder, TimestampMicrosecondBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use binlogz_arrow::{ChangeSide, ImageColumn, moment};
use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::row::{Row, RowImage};
use binlogz_print::jsonl::{push_string, push_value};

use crate::change_frame::ChangeFrame;
use crate::gather::GatheredEvent;

/// Columns that are being built.
pub(crate) struct ChangeColumns {
    log: StringBuilder,
    position: UInt64Builder,
    gtid: StringBuilder,
    committed_at: TimestampMicrosecondBuilder,
    applied_at: TimestampMicrosecondBuilder,
    logged_at: TimestampMicrosecondBuilder,
    server_id: UInt32Builder,
    offset: UInt64Builder,
    row: UInt64Builder,
    operation: StringBuilder,
    images: Images,
    scratch: Vec<u8>,
}

/// The rows before and after the changes.
enum Images {
    /// Of one table, with its columns.
    OfTable { fields: Fields, before: ImageColumn, after: ImageColumn },
    /// Of all tables, with their names.
    OfAll(Box<NamedImages>),
}

/// The rows of all tables, as text.
#[derive(Default)]
struct NamedImages {
    schema: StringBuilder,
    table: StringBuilder,
    before: StringBuilder,
    after: StringBuilder,
}

/// What a definition of a table says of its rows.
pub(crate) enum KnownTable {
    /// They are not asked for.
    Other,
    /// Where it has each of the columns, if it does.
    Places(Vec<Option<usize>>),
    Names {
        database: String,
        table: String,
        columns: Vec<String>,
    },
}

impl ChangeColumns {
    /// Empty ones, of a table with these columns; `None`: of all tables.
    pub(crate) fn new(fields: Option<&Fields>) -> Self {
        let moments = || TimestampMicrosecondBuilder::new().with_data_type(moment());
        let text = StringBuilder::new;
        ChangeColumns {
            log: text(),
            position: UInt64Builder::new(),
            gtid: text(),
            committed_at: moments(),
            applied_at: moments(),
            logged_at: moments(),
            server_id: UInt32Builder::new(),
            offset: UInt64Builder::new(),
            row: UInt64Builder::new(),
            operation: text(),
            images: match fields {
                Some(fields) => Images::OfTable {
                    fields: fields.clone(),
                    before: ImageColumn::new(fields),
                    after: ImageColumn::new(fields),
                },
                None => Images::OfAll(Box::default()),
            },
            scratch: Vec::new(),
        }
    }

    /// Their names and types.
    pub(crate) fn schema(fields: Option<&Fields>) -> Schema {
        let common = [
            ("log", DataType::Utf8),
            ("position", DataType::UInt64),
            ("gtid", DataType::Utf8),
            ("committed_at", moment()),
            ("applied_at", moment()),
            ("logged_at", moment()),
            ("server_id", DataType::UInt32),
            ("offset", DataType::UInt64),
            ("row", DataType::UInt64),
            ("operation", DataType::Utf8),
        ];
        let image = fields.map_or(DataType::Utf8, |fields| DataType::Struct(fields.clone()));
        let names =
            [("schema", DataType::Utf8), ("table", DataType::Utf8)].into_iter().filter(|_| fields.is_none());
        let images = [("before", image.clone()), ("after", image)];
        let all = common.into_iter().chain(names).chain(images);
        Schema::new(all.map(|(name, kind)| Field::new(name, kind, true)).collect::<Vec<_>>())
    }

    /// Appends what is a row's own; `number`: which of its event.
    pub(crate) fn push_row(
        &mut self,
        table: &KnownTable,
        row: &Row<'_, '_>,
        number: u64,
        operation: &str,
    ) -> Result<(), BinlogError> {
        match (&mut self.images, table) {
            (Images::OfTable { before, after, .. }, KnownTable::Places(places)) => {
                before.push(&ChangeSide { row, is_after: false }, places, &mut self.scratch)?;
                after.push(&ChangeSide { row, is_after: true }, places, &mut self.scratch)?;
            }
            (Images::OfAll(images), KnownTable::Names { database, table, columns }) => {
                let NamedImages { schema, table: tables, before, after } = images.as_mut();
                before.append_option(json(row.before.as_ref(), columns, &mut self.scratch)?);
                after.append_option(json(row.after.as_ref(), columns, &mut self.scratch)?);
                schema.append_value(database);
                tables.append_value(table);
            }
            (Images::OfTable { .. } | Images::OfAll(_), _) => return Ok(()),
        }
        self.row.append_value(number);
        self.operation.append_value(operation);
        Ok(())
    }

    /// Appends what is the same for these many rows of an event.
    pub(crate) fn push_event(&mut self, event: &GatheredEvent, frame: &ChangeFrame, rows: usize) {
        let logged_at = i64::from(event.header.timestamp) * 1_000_000;
        for _ in 0..rows {
            self.log.append_value(&event.log);
            self.position.append_option(frame.position);
            self.gtid.append_option(frame.gtid.as_deref());
            self.committed_at.append_option(frame.committed_at);
            self.applied_at.append_option(frame.applied_at);
            self.logged_at.append_option((logged_at > 0).then_some(logged_at));
            self.server_id.append_value(event.header.server_id);
            self.offset.append_value(event.offset);
        }
    }

    /// The first rows. There may be parts of others after them, of an event that can't be read.
    pub(crate) fn finish(&mut self, rows: usize) -> Result<Vec<ArrayRef>, ArrowError> {
        let common: [ArrayRef; 10] = [
            Arc::new(self.log.finish()),
            Arc::new(self.position.finish()),
            Arc::new(self.gtid.finish()),
            Arc::new(self.committed_at.finish()),
            Arc::new(self.applied_at.finish()),
            Arc::new(self.logged_at.finish()),
            Arc::new(self.server_id.finish()),
            Arc::new(self.offset.finish()),
            Arc::new(self.row.finish()),
            Arc::new(self.operation.finish()),
        ];
        let mut columns: Vec<_> = common.iter().map(|column| column.slice(0, rows)).collect();
        match &mut self.images {
            Images::OfTable { fields, before, after } => {
                for image in [before, after] {
                    columns.push(first_images(fields, image, rows)?);
                }
            }
            Images::OfAll(images) => {
                let NamedImages { schema, table, before, after } = images.as_mut();
                let built = [schema, table, before, after];
                columns.extend(built.map(|column| Arc::new(column.finish().slice(0, rows)) as ArrayRef));
            }
        }
        Ok(columns)
    }
}

/// The first images of a column, which is empty after that.
fn first_images(fields: &Fields, image: &mut ImageColumn, rows: usize) -> Result<ArrayRef, ArrowError> {
    let values = image.values.iter_mut().map(|values| values.finish().slice(0, rows)).collect();
    let is_there: NullBuffer = std::mem::take(&mut image.is_there).into_iter().take(rows).collect();
    Ok(Arc::new(StructArray::try_new(fields.clone(), values, Some(is_there))?))
}

/// An image as a JSON object.
fn json(
    image: Option<&RowImage<'_, '_>>,
    columns: &[String],
    scratch: &mut Vec<u8>,
) -> Result<Option<String>, BinlogError> {
    let Some(image) = image else { return Ok(None) };
    let mut out = vec![b'{'];
    for cell in image.cells() {
        if out.len() > 1 {
            out.push(b',');
        }
        push_string(&mut out, columns.get(cell.index).map_or("", String::as_str));
        out.push(b':');
        push_value(&mut out, &cell, scratch)?;
    }
    out.push(b'}');
    Ok(Some(String::from_utf8_lossy(&out).into_owned()))
}
