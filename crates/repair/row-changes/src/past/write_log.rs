//! Rows as a server gives them, as the row events of a binary log that inserts them.
//!
//! ```text
//! column            is asked for as
//! FLOAT, DOUBLE     the double that it is, with all its digits
//! BIT, ENUM, SET    a number
//! TIMESTAMP         seconds since 1970
//! texts             their bytes
//! others            itself
//! generated         nothing: the images don't have it, the server that applies them makes it
//! ```
//!
//! The log has transactions of a bounded size. None of them makes a table. A table without rows may have an event without rows, which
//! tells readers of its columns.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_binlog::EventType;
use binlogz_binlog::event::RowsFlags;
use binlogz_binlog::row::json::JsonDocument;
use binlogz_binlog::row::temporal::big_endian;
use binlogz_binlog::row::{CellContent, ColumnClass, ColumnKind, TableSchema};
use binlogz_schema::SchemaFile;

use super::PastError;
use super::live::LiveTable;
use super::server_columns::{columns_of, map_of};
use super::session::{PastAnswerRow, PastSession};
use super::write::quoted;
use crate::log::writer::LogWriter;
use crate::record::{LoggedImages, schema_of_kept};
use crate::text_values::{date, datetime, decimal, integer, number_of, time, timestamp, year};

/// Bytes of rows in a transaction, unless a row has more.
const TRANSACTION_SIZE_MAX: usize = 8 << 20;
/// The most bytes of a value in an error.
const SHOWN_MAX: usize = 80;

/// Tables that have no rows, in a log of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyTables {
    /// The log has nothing of them.
    LeftOut,
    /// The log has their table maps, each with an event without rows: for programs that are to know the columns, not for servers.
    Mapped,
}

impl LiveTable {
    /// Writes a binary log that inserts the rows of tables as they were, one table after the other; returns how many rows.
    ///
    /// # Errors
    ///
    /// The server, or the output; a column of a type that isn't known here.
    pub fn write_log(
        tables: &[LiveTable],
        session: &mut PastSession,
        empty: EmptyTables,
        out: &mut dyn Write,
    ) -> Result<u64, PastError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let mut writer = LogWriter::new(out).map_err(PastError::Output)?;
        let mut count = 0;
        for (number, table) in tables.iter().enumerate() {
            let encoder = RowEncoder::of(table, session)?;
            let mut rows =
                RowEvents { writer: &mut writer, encoder: &encoder, number, time, size: 0, count: 0 };
            for select in table.selects(&encoder.expressions()) {
                let mut failed = None;
                let asked = session.connection.query_each(&select, &mut |answer| {
                    failed = answer.iter().try_for_each(|row| rows.row(row)).err();
                    failed.is_none()
                });
                if let Some(error) = failed {
                    return Err(error);
                }
                asked.map_err(PastError::server(format!("reading {}", encoder.table)))?;
            }
            if rows.count == 0 && empty == EmptyTables::Mapped {
                rows.map_alone()?;
            }
            count += rows.end()?;
        }
        Ok(count)
    }
}

/// A table as its server has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumnsNow {
    /// The database that the table is in.
    pub database: String,
    /// The name of the table.
    pub table: String,
    /// The columns that have values of their own, so not the generated ones, in their order; empty: the account may not see them, or one of
    /// them has a type that isn't known here.
    pub stored: Vec<String>,
}

impl PastSession {
    /// Writes a binary log that has the maps of all tables that the account sees, and no rows: it tells their columns.
    ///
    /// # Errors
    ///
    /// The server, or the output.
    pub fn write_maps(&mut self, out: &mut dyn Write) -> Result<Vec<TableColumnsNow>, PastError> {
        let mut writer = LogWriter::new(out).map_err(PastError::Output)?;
        let mut told = Vec::new();
        for (number, (database, table)) in self.all_tables()?.into_iter().enumerate() {
            let stored = match RowEncoder::of_now(self, (&database, &table)) {
                Ok(encoder) => {
                    let mut rows = RowEvents {
                        writer: &mut writer,
                        encoder: &encoder,
                        number,
                        time: 0,
                        size: 0,
                        count: 0,
                    };
                    rows.map_alone()?;
                    rows.end()?;
                    let stored = encoder.columns.iter().filter(|column| !column.is_generated);
                    stored.map(|column| column.name.clone()).collect()
                }
                Err(error) if self.is_gone(&error) => return Err(error),
                // Asking for the table says why.
                Err(_) => Vec::new(),
            };
            told.push(TableColumnsNow { database, table, stored });
        }
        Ok(told)
    }
}

/// Makes images of a table's rows.
struct RowEncoder {
    /// Database and name of the table, for messages.
    table: String,
    columns: Vec<EncodedColumn>,
    schema: TableSchema,
    /// The table's map, as records keep it.
    map: Vec<u8>,
}

/// A column of the moment.
struct EncodedColumn {
    /// The column's name now.
    name: String,
    is_generated: bool,
    is_text: bool,
}

impl RowEncoder {
    fn of(table: &LiveTable, session: &mut PastSession) -> Result<Self, PastError> {
        let asked = table.asked();
        let shown = format!("{}.{}", asked.0, asked.1);
        let names = (&*table.database, &*table.table);
        let told = table.schema.columns_of(names.0, names.1).unwrap_or_default();
        let (now, key) = columns_of(session, names, told)?;
        let mut columns = Vec::new();
        let mut then = Vec::new();
        for (name, name_then) in &table.then {
            let column = now.iter().find(|column| column.name == *name).ok_or_else(|| {
                PastError::Refused(format!(
                    "{shown}: the column {name} was changed while the table was read: try again"
                ))
            })?;
            columns.push(EncodedColumn {
                name: name.clone(),
                is_generated: column.is_generated(),
                is_text: column.is_text(),
            });
            then.push(column.called(name_then));
        }
        let place = |name: &String| columns.iter().position(|column| column.name == *name);
        let key: Vec<usize> = key.iter().filter_map(place).collect();
        // Keys are those of now: this one was one at the moment as well.
        let key = if table.is_key(&columns.iter().map(|column| &*column.name).collect::<Vec<_>>(), &key) {
            key
        } else {
            Vec::new()
        };
        let map = map_of(asked, &then, &key)?;
        let schema = schema_of_kept(&map).map_err(|error| PastError::Refused(format!("{shown}: {error}")))?;
        Ok(RowEncoder { table: shown, columns, schema, map })
    }

    /// The encoder of a table as it is now, of which only the map is wanted.
    fn of_now(session: &mut PastSession, names: (&str, &str)) -> Result<Self, PastError> {
        let shown = format!("{}.{}", names.0, names.1);
        let place = format!("{}.{}", quoted(names.0), quoted(names.1));
        let create = session.field(&format!("SHOW CREATE TABLE {place}"), 1)?;
        let schema = SchemaFile::parse(&format!("USE {};\n{create};\n", quoted(names.0)))
            .map_err(|error| PastError::Refused(format!("{shown}: {error}")))?;
        let told = schema.columns_of(names.0, names.1).unwrap_or_default();
        let (now, _) = columns_of(session, names, told)?;
        let columns = now.iter().map(|column| EncodedColumn {
            name: column.name.clone(),
            is_generated: column.is_generated(),
            is_text: column.is_text(),
        });
        let columns = columns.collect();
        let map = map_of(names, &now, &[])?;
        let schema = schema_of_kept(&map).map_err(|error| PastError::Refused(format!("{shown}: {error}")))?;
        Ok(RowEncoder { table: shown, columns, schema, map })
    }

    /// The expressions to select, without generated columns.
    fn expressions(&self) -> String {
        let columns = self.columns.iter().zip(self.schema.columns());
        let selected = columns.filter(|(column, _)| !column.is_generated);
        let expressions = selected.map(|(column, schema)| column.expression(schema.kind));
        expressions.collect::<Vec<_>>().join(", ")
    }

    /// A row's images, and the bitmap of their columns.
    fn images(&self, row: &PastAnswerRow) -> Result<(Vec<u8>, Vec<u8>), PastError> {
        let mut values = row.iter();
        let mut cells = Vec::new();
        for (column, schema) in self.columns.iter().zip(self.schema.columns()) {
            let value = if column.is_generated { None } else { values.next() };
            cells.push(match value {
                None => None,
                Some(None) => Some(None),
                Some(Some(text)) => Some(Some(
                    bytes_of(schema.kind, text, column.is_text)
                        .ok_or_else(|| self.unfit(column, schema.kind, text))?,
                )),
            });
        }
        let contents: Vec<_> = cells
            .iter()
            .map(|cell| {
                let value = cell.as_ref()?;
                Some(value.as_deref().map_or(CellContent::Null, CellContent::Value))
            })
            .collect();
        let mut images = Vec::new();
        let bitmap = self
            .schema
            .put_image(&contents, false, &mut images)
            .map_err(|error| PastError::Refused(format!("{}: {error}", self.table)))?;
        Ok((bitmap, images))
    }

    fn unfit(&self, column: &EncodedColumn, kind: ColumnKind, text: &[u8]) -> PastError {
        let shown = text.get(..SHOWN_MAX).unwrap_or(text).escape_ascii();
        PastError::Refused(format!(
            "{}: the server gave '{shown}' for the column {}, expected a value of {kind:?}",
            self.table, column.name
        ))
    }
}

impl EncodedColumn {
    fn expression(&self, kind: ColumnKind) -> String {
        let name = quoted(&self.name);
        match kind.class() {
            // All its digits; a sum with 0 would lose the sign of -0.
            ColumnClass::Float => format!("{name} * 1e0"),
            ColumnClass::Bit => format!("{name} + 0"),
            ColumnClass::Member => format!("CAST({name} AS UNSIGNED)"),
            ColumnClass::Timestamp(_) => format!("UNIX_TIMESTAMP({name})"),
            ColumnClass::String if self.is_text => format!("CAST({name} AS BINARY)"),
            ColumnClass::Integer | ColumnClass::Decimal | ColumnClass::Year | ColumnClass::Date => name,
            ColumnClass::Time(_) | ColumnClass::DateTime(_) | ColumnClass::String => name,
            ColumnClass::Json | ColumnClass::Geometry | ColumnClass::Vector | ColumnClass::Hidden => name,
        }
    }
}

/// A value's bytes, without the length before them; `None`: not a value of the column.
fn bytes_of(kind: ColumnKind, value: &[u8], is_text: bool) -> Option<Vec<u8>> {
    // The log has none of the zeros at the end of a BINARY(n).
    if let (ColumnKind::Char { .. }, false) = (kind, is_text) {
        let end = value.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        return value.get(..end).map(<[u8]>::to_vec);
    }
    if let ColumnClass::String | ColumnClass::Geometry | ColumnClass::Vector = kind.class() {
        return Some(value.to_vec());
    }
    if let ColumnKind::Json { .. } = kind {
        let mut document = Vec::new();
        return JsonDocument::put_text(value, &mut document).ok().map(|()| document);
    }
    let text = std::str::from_utf8(value).ok()?;
    match kind {
        ColumnKind::TinyInt { unsigned }
        | ColumnKind::SmallInt { unsigned }
        | ColumnKind::MediumInt { unsigned }
        | ColumnKind::Int { unsigned }
        | ColumnKind::BigInt { unsigned } => integer(text, kind.integer_bits(), unsigned),
        ColumnKind::Decimal(format) => decimal(text, format),
        ColumnKind::Float => float(text),
        ColumnKind::Double => {
            text.parse().ok().filter(|n: &f64| n.is_finite()).map(|n| n.to_le_bytes().to_vec())
        }
        ColumnKind::Bit { bits } => Some(big_endian(text.parse().ok()?, usize::from(bits).div_ceil(8))),
        ColumnKind::Year => year(text),
        ColumnKind::Date => date(text),
        ColumnKind::Time { fraction_digits } => time(text, fraction_digits),
        ColumnKind::DateTime { fraction_digits } => datetime(text, fraction_digits),
        ColumnKind::Timestamp { fraction_digits } => timestamp(text, fraction_digits),
        ColumnKind::Enum { size } | ColumnKind::Set { size } => number_of(text.parse().ok()?, size.into()),
        ColumnKind::Char { .. }
        | ColumnKind::Varchar { .. }
        | ColumnKind::Blob { .. }
        | ColumnKind::Geometry { .. }
        | ColumnKind::Vector { .. }
        | ColumnKind::Json { .. }
        | ColumnKind::Null
        | ColumnKind::OldTime
        | ColumnKind::OldDateTime
        | ColumnKind::OldTimestamp
        | ColumnKind::TypedArray => None,
    }
}

/// A FLOAT from the double that has its value; `None` if it has another one.
fn float(text: &str) -> Option<Vec<u8>> {
    let double: f64 = text.parse().ok()?;
    let float = double as f32;
    (f64::from(float) == double).then(|| float.to_le_bytes().to_vec())
}

/// Writes rows of a table.
struct RowEvents<'w, 'o> {
    writer: &'w mut LogWriter<'o>,
    encoder: &'w RowEncoder,
    /// The table's number among all that are written.
    number: usize,
    /// The time of the transactions, in microseconds since 1970.
    time: u64,
    /// Bytes of rows in the open transaction.
    size: usize,
    count: u64,
}

impl RowEvents<'_, '_> {
    fn row(&mut self, row: &PastAnswerRow) -> Result<(), PastError> {
        let (bitmaps, images) = self.encoder.images(row)?;
        let row = LoggedImages {
            event_type: EventType::WRITE_ROWS,
            bitmaps: &bitmaps,
            images: &images,
            before_size: 0,
        };
        let map = (self.number, &*self.encoder.map);
        self.writer.row(map, &row, RowsFlags::NO_FOREIGN_KEY_CHECKS).map_err(PastError::Output)?;
        self.size += images.len();
        self.count += 1;
        if self.size > TRANSACTION_SIZE_MAX { self.commit().map_err(PastError::Output) } else { Ok(()) }
    }

    /// The table's map, and an event without rows.
    fn map_alone(&mut self) -> Result<(), PastError> {
        let RowEncoder { schema, map, table, .. } = self.encoder;
        let none = vec![None; schema.columns().len()];
        let bitmap = schema.put_image(&none, false, &mut Vec::new());
        let bitmaps = bitmap.map_err(|error| PastError::Refused(format!("{table}: {error}")))?;
        // An INSERT without bytes has one row, of nothing but defaults.
        let row = LoggedImages {
            event_type: EventType::DELETE_ROWS,
            bitmaps: &bitmaps,
            images: &[],
            before_size: 0,
        };
        let flags = RowsFlags::NO_FOREIGN_KEY_CHECKS;
        self.writer.row((self.number, &**map), &row, flags).map_err(PastError::Output)
    }

    fn commit(&mut self) -> io::Result<()> {
        self.size = 0;
        self.writer.commit(self.time)
    }

    fn end(mut self) -> Result<u64, PastError> {
        self.commit().map_err(PastError::Output)?;
        Ok(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_bytes_of_a_row() {
        let bytes = |kind: ColumnKind, text: &str| bytes_of(kind, text.as_bytes(), false);
        let six = ColumnKind::Timestamp { fraction_digits: 6 };
        assert_eq!(bytes(six, "1700000000.5"), Some(vec![0x65, 0x53, 0xf1, 0, 7, 0xa1, 0x20]));
        assert_eq!(bytes(ColumnKind::Timestamp { fraction_digits: 0 }, "0"), Some(vec![0; 4]));
        assert_eq!(bytes(ColumnKind::Timestamp { fraction_digits: 0 }, "4294967296"), None);
        assert_eq!(bytes(ColumnKind::Float, "0.10000000149011612"), Some(0.1_f32.to_le_bytes().to_vec()));
        assert_eq!(bytes(ColumnKind::Float, "0.1"), None);
        assert_eq!(bytes(ColumnKind::Double, "-0"), Some((-0.0_f64).to_le_bytes().to_vec()));
        assert_eq!(bytes(ColumnKind::Char { length_max: 4 }, "a\0b\0\0"), Some(b"a\0b".to_vec()));
        assert_eq!(bytes(ColumnKind::Enum { size: 1 }, "256"), None);
        assert_eq!(bytes(ColumnKind::Json { length_size: 4 }, "[1"), None);
    }
}
