//! Many values of a column at once: one loop for each type.

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::{ArrowPrimitiveType, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use binlogz_binlog::Result;
use binlogz_binlog::charset::Charset;
use binlogz_binlog::row::{Cell, CellContent, ColumnKind, ColumnSchema, Date, Decimal};

use super::{Builder, ValueColumn, days, decoded};

impl ValueColumn {
    /// Appends cells of one column, each as [`ValueColumn::push`] does.
    ///
    /// # Errors
    ///
    /// Bytes that are no value of the column's type.
    pub fn extend<'a>(
        &mut self,
        kind: ColumnKind,
        cells: impl Iterator<Item = Option<Cell<'a>>>,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        use ColumnKind::{BigInt, Blob, Char, Date as Day, Double, Float, Int, SmallInt, TinyInt, Varchar};
        match (&mut self.0, kind) {
            (Builder::I8(builder), TinyInt { unsigned: false }) => fixed(builder, cells, i8::from_le_bytes),
            (Builder::U8(builder), TinyInt { unsigned: true }) => fixed(builder, cells, u8::from_le_bytes),
            (Builder::I16(builder), SmallInt { unsigned: false }) => {
                fixed(builder, cells, i16::from_le_bytes)
            }
            (Builder::U16(builder), SmallInt { unsigned: true }) => fixed(builder, cells, u16::from_le_bytes),
            (Builder::I32(builder), Int { unsigned: false }) => fixed(builder, cells, i32::from_le_bytes),
            (Builder::U32(builder), Int { unsigned: true }) => fixed(builder, cells, u32::from_le_bytes),
            (Builder::I64(builder), BigInt { unsigned: false }) => fixed(builder, cells, i64::from_le_bytes),
            (Builder::U64(builder), BigInt { unsigned: true }) => fixed(builder, cells, u64::from_le_bytes),
            (Builder::F32(builder), Float) => fixed(builder, cells, f32::from_le_bytes),
            (Builder::F64(builder), Double) => fixed(builder, cells, f64::from_le_bytes),
            (Builder::Date(builder), Day) => {
                fixed_or_null(builder, cells, |bytes| days(Date::from_bytes(bytes)))
            }
            (Builder::Text(builder), Char { .. } | Varchar { .. } | Blob { .. }) => {
                cells.for_each(|cell| match cell {
                    Some(Cell { column, content: CellContent::Value(bytes), .. }) => {
                        builder.append_value(decoded(column, bytes));
                    }
                    _ => builder.append_null(),
                });
                Ok(())
            }
            _ => {
                let mut cells = cells;
                cells.try_for_each(|cell| self.push(cell.as_ref(), None, scratch))
            }
        }
    }

    /// Appends values that stand one after the other, each of the bytes that its type has. `false`: such values are not taken
    /// this way, and nothing was appended.
    ///
    /// # Errors
    ///
    /// Bytes that are no value of the column's type.
    pub fn extend_fixed(&mut self, kind: ColumnKind, bytes: &[u8]) -> Result<bool> {
        use ColumnKind::{BigInt, Double, Float, Int, SmallInt, TinyInt};
        match (&mut self.0, kind) {
            (Builder::I8(builder), TinyInt { unsigned: false }) => append(builder, bytes, i8::from_le_bytes),
            (Builder::U8(builder), TinyInt { unsigned: true }) => append(builder, bytes, u8::from_le_bytes),
            (Builder::I16(builder), SmallInt { unsigned: false }) => {
                append(builder, bytes, i16::from_le_bytes)
            }
            (Builder::U16(builder), SmallInt { unsigned: true }) => {
                append(builder, bytes, u16::from_le_bytes)
            }
            (Builder::I32(builder), Int { unsigned: false }) => append(builder, bytes, i32::from_le_bytes),
            (Builder::U32(builder), Int { unsigned: true }) => append(builder, bytes, u32::from_le_bytes),
            (Builder::I64(builder), BigInt { unsigned: false }) => append(builder, bytes, i64::from_le_bytes),
            (Builder::U64(builder), BigInt { unsigned: true }) => append(builder, bytes, u64::from_le_bytes),
            (Builder::F32(builder), Float) => append(builder, bytes, f32::from_le_bytes),
            (Builder::F64(builder), Double) => append(builder, bytes, f64::from_le_bytes),
            (Builder::D128(builder, scale), ColumnKind::Decimal(format))
                if u8::try_from(*scale) == Ok(format.scale()) =>
            {
                match Decimal::unscaled_each(bytes, format)? {
                    Some(numbers) => builder.append_slice(&numbers),
                    None => return Ok(false),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Appends texts of a column that stand one after the other: the bytes of all, and where each ends in them. `false`: such texts are not
    /// taken this way, and nothing was appended.
    pub fn extend_texts(
        &mut self,
        column: &ColumnSchema,
        (bytes, ends): (&[u8], impl Iterator<Item = usize>),
    ) -> bool {
        use ColumnKind::{Blob, Char, Varchar};
        // Of others each text is looked at.
        let are_alike = match column.charset() {
            Some(Charset::Utf8mb3 | Charset::Utf8mb4) | None => true,
            Some(Charset::Ascii | Charset::Latin1) => bytes.is_ascii(),
            _ => false,
        };
        match (&mut self.0, column.kind) {
            (Builder::Text(builder), Char { .. } | Varchar { .. } | Blob { .. }) if are_alike => {
                let offsets = std::iter::once(Some(0)).chain(ends.map(|end| i32::try_from(end).ok()));
                let Some(offsets) = offsets.collect::<Option<Vec<i32>>>() else { return false };
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                // Refuses what is no UTF-8, and texts that end inside a character.
                let texts = StringArray::try_new(offsets, Buffer::from(bytes), None);
                texts.is_ok_and(|texts| builder.append_array(&texts).is_ok())
            }
            _ => false,
        }
    }

    /// Appends for each cell any value, or NULL where there is none.
    pub fn extend_there(&mut self, are_there: impl Iterator<Item = bool>) {
        match &mut self.0 {
            Builder::Text(builder) => {
                are_there.for_each(|is_there| builder.append_option(is_there.then_some("")))
            }
            Builder::Bytes(builder) => {
                are_there.for_each(|is_there| builder.append_option(is_there.then_some([])));
            }
            _ => self.extend_nulls(are_there.count()),
        }
    }

    /// Appends this many NULLs.
    pub fn extend_nulls(&mut self, count: usize) {
        match &mut self.0 {
            Builder::I8(builder) => builder.append_nulls(count),
            Builder::I16(builder) => builder.append_nulls(count),
            Builder::I32(builder) => builder.append_nulls(count),
            Builder::I64(builder) => builder.append_nulls(count),
            Builder::U8(builder) => builder.append_nulls(count),
            Builder::U16(builder) => builder.append_nulls(count),
            Builder::U32(builder) => builder.append_nulls(count),
            Builder::U64(builder) => builder.append_nulls(count),
            Builder::F32(builder) => builder.append_nulls(count),
            Builder::F64(builder) => builder.append_nulls(count),
            Builder::D128(builder, _) => builder.append_nulls(count),
            Builder::D256(builder, _) => builder.append_nulls(count),
            Builder::Date(builder) => builder.append_nulls(count),
            Builder::DateTime(builder) | Builder::Timestamp(builder) => builder.append_nulls(count),
            Builder::Bytes(builder) => builder.append_nulls(count),
            Builder::Vector(builder) => builder.append_nulls(count),
            Builder::Text(builder) => builder.append_nulls(count),
        }
    }
}

fn append<T: ArrowPrimitiveType, const SIZE: usize>(
    builder: &mut PrimitiveBuilder<T>,
    bytes: &[u8],
    value: impl Fn([u8; SIZE]) -> T::Native,
) {
    let (values, _) = bytes.as_chunks::<SIZE>();
    builder.append_slice(&values.iter().map(|bytes| value(*bytes)).collect::<Vec<_>>());
}

/// Appends values of this many bytes.
fn fixed<'a, T: ArrowPrimitiveType, const SIZE: usize>(
    builder: &mut PrimitiveBuilder<T>,
    cells: impl Iterator<Item = Option<Cell<'a>>>,
    value: impl Fn([u8; SIZE]) -> T::Native,
) -> Result<()> {
    fixed_or_null(builder, cells, |bytes| Some(value(bytes)))
}

fn fixed_or_null<'a, T: ArrowPrimitiveType, const SIZE: usize>(
    builder: &mut PrimitiveBuilder<T>,
    cells: impl Iterator<Item = Option<Cell<'a>>>,
    value: impl Fn([u8; SIZE]) -> Option<T::Native>,
) -> Result<()> {
    for cell in cells {
        let Some(cell) = cell else {
            builder.append_null();
            continue;
        };
        match cell.content {
            CellContent::Value(bytes) => match bytes.try_into() {
                Ok(bytes) => builder.append_option(value(bytes)),
                // Says what is wrong with it.
                Err(_) => return cell.value().map(drop),
            },
            _ => builder.append_null(),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_schema::DataType;
    use binlogz_binlog::event::ColumnType;

    use super::*;

    /// A column of texts with a collation.
    fn column(collation: u64) -> ColumnSchema {
        ColumnSchema {
            kind: ColumnKind::Varchar { length_max: 40 },
            column_type: ColumnType::VARCHAR,
            metadata: 40,
            nullable: true,
            unsigned: None,
            collation: Some(collation),
            name: None,
            members: None,
            geometry_type: None,
            dimensionality: None,
            visible: None,
            primary_key: None,
        }
    }

    const UTF8MB4: u64 = 255;
    const LATIN1: u64 = 8;
    const UTF16: u64 = 54;

    #[test]
    fn texts_are_taken_at_once_where_their_bytes_are_utf8() {
        let mut values = ValueColumn::new(&DataType::Utf8);
        assert!(values.extend_texts(&column(UTF8MB4), ("onetwö".as_bytes(), [3, 3, 7].into_iter())));
        assert!(values.extend_texts(&column(LATIN1), (b"ascii", [5].into_iter())));
        for (collation, bytes, ends) in [
            (UTF8MB4, "onetwö".as_bytes(), [3, 6]),
            (UTF8MB4, b"one\xffab", [3, 6]),
            (LATIN1, b"one\xfcab", [3, 6]),
            (UTF16, b"onetwo", [2, 6]),
        ] {
            assert!(!values.extend_texts(&column(collation), (bytes, ends.into_iter())), "{bytes:?}");
        }
        let made = values.finish();
        assert_eq!(made.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["one", "", "twö", "ascii"]);
        let mut numbers = ValueColumn::new(&DataType::Int32);
        assert!(!numbers.extend_texts(&column(UTF8MB4), (b"1", [1].into_iter())));
    }

    #[test]
    fn only_what_is_there_is_not_null() {
        for kind in [DataType::Utf8, DataType::Binary] {
            let mut values = ValueColumn::new(&kind);
            values.extend_there([true, false, true].into_iter());
            let made = values.finish();
            assert_eq!([0, 1, 2].map(|row| made.is_valid(row)), [true, false, true], "{kind}");
        }
    }
}
