//! Many values of a column at once: one loop for each type.

use arrow_array::ArrowPrimitiveType;
use arrow_array::builder::PrimitiveBuilder;
use binlogz_binlog::Result;
use binlogz_binlog::row::{Cell, CellContent, ColumnKind, Date, Decimal};

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
