//! A table of figures, independent of the format in which it is written.

use crate::MomentDigits;

/// A table with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The table's key in JSON.
    pub name: &'static str,
    /// The heading above it.
    pub title: &'static str,
    /// The columns of its rows: keys in JSON, headings in text and CSV. Stable.
    pub columns: &'static [&'static str],
    /// As many cells as columns in each.
    pub rows: Vec<Vec<TableCell>>,
}

/// The content of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableCell {
    /// A count, a size in bytes, a percentage.
    Number(i128),
    /// A number with this many decimal places, in units of its last one.
    Decimal(i128, u8),
    /// A name.
    Text(String),
    /// A moment, in microseconds since 1970.
    Moment(u64, MomentDigits),
    /// Not known, or not applicable.
    Null,
}

impl TableCell {
    /// A moment in microseconds since 1970, shown with all of them.
    pub fn moment(microseconds: u64) -> Self {
        TableCell::Moment(microseconds, MomentDigits::Microseconds)
    }

    /// The begin of an hour since 1970, shown to the minute.
    pub fn hour(hour: u64) -> Self {
        TableCell::Moment(hour.saturating_mul(3_600_000_000), MomentDigits::Minutes)
    }

    /// A number rounded to this many decimal places.
    pub fn decimal(value: f64, places: u8) -> Self {
        TableCell::Decimal((value * 10f64.powi(places.into())).round() as i128, places)
    }
}

impl From<u64> for TableCell {
    fn from(number: u64) -> Self {
        TableCell::Number(number.into())
    }
}

impl From<i64> for TableCell {
    fn from(number: i64) -> Self {
        TableCell::Number(number.into())
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        TableCell::Text(text)
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> Self {
        TableCell::Text(text.to_owned())
    }
}

impl<T: Into<TableCell>> From<Option<T>> for TableCell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(TableCell::Null, Into::into)
    }
}
