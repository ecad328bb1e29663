//! The columns that tables have whatever the log: their types, and how they are built.

use std::sync::Arc;

use binlogz_arrow::moment;
use datafusion::arrow::array::{
    ArrayRef, ListBuilder, StringBuilder, TimestampMicrosecondBuilder, UInt32Builder, UInt64Builder,
};
use datafusion::arrow::datatypes::{DataType, Field};

/// The kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    Text,
    Texts,
    Small,
    Number,
    Moment,
}

impl FieldKind {
    pub(super) fn field(self, name: &str) -> Field {
        let data_type = match self {
            FieldKind::Text => DataType::Utf8,
            FieldKind::Texts => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            FieldKind::Small => DataType::UInt32,
            FieldKind::Number => DataType::UInt64,
            FieldKind::Moment => moment(),
        };
        Field::new(name, data_type, true)
    }

    /// One without room: of thousands of tables, most have few rows.
    pub(super) fn builder(self) -> Builder {
        match self {
            FieldKind::Text => Builder::Text(StringBuilder::with_capacity(0, 0)),
            FieldKind::Texts => {
                Builder::Texts(ListBuilder::with_capacity(StringBuilder::with_capacity(0, 0), 0))
            }
            FieldKind::Small => Builder::Small(UInt32Builder::with_capacity(0)),
            FieldKind::Number => Builder::Number(UInt64Builder::with_capacity(0)),
            FieldKind::Moment => {
                Builder::Moment(TimestampMicrosecondBuilder::with_capacity(0).with_data_type(moment()))
            }
        }
    }
}

/// A column that is being built.
#[derive(Debug)]
pub(super) enum Builder {
    Text(StringBuilder),
    Texts(ListBuilder<StringBuilder>),
    Small(UInt32Builder),
    Number(UInt64Builder),
    Moment(TimestampMicrosecondBuilder),
}

/// A value on its way into a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldValue<'a> {
    Null,
    Text(&'a str),
    Texts(&'a [String]),
    Number(u64),
    /// Microseconds since 1970.
    Moment(i64),
}

impl<'a> FieldValue<'a> {
    pub(super) fn text(text: Option<&'a str>) -> Self {
        text.map_or(FieldValue::Null, FieldValue::Text)
    }

    pub(super) fn number(number: Option<u64>) -> Self {
        number.map_or(FieldValue::Null, FieldValue::Number)
    }

    pub(super) fn moment(moment: Option<i64>) -> Self {
        moment.map_or(FieldValue::Null, FieldValue::Moment)
    }

    /// The seconds that a header has; 0 is no time.
    pub(super) fn seconds(seconds: u32) -> Self {
        FieldValue::moment((seconds > 0).then_some(i64::from(seconds) * 1_000_000))
    }
}

impl Builder {
    /// Appends a value; one of another kind is NULL.
    #[inline]
    pub(super) fn push(&mut self, value: FieldValue<'_>) {
        match (self, value) {
            (Builder::Text(builder), FieldValue::Text(text)) => builder.append_value(text),
            (Builder::Text(builder), _) => builder.append_null(),
            (Builder::Texts(builder), FieldValue::Texts(texts)) => {
                texts.iter().for_each(|text| builder.values().append_value(text));
                builder.append(true);
            }
            (Builder::Texts(builder), _) => builder.append(false),
            (Builder::Small(builder), FieldValue::Number(number)) => {
                builder.append_option(u32::try_from(number).ok())
            }
            (Builder::Small(builder), _) => builder.append_null(),
            (Builder::Number(builder), FieldValue::Number(number)) => builder.append_value(number),
            (Builder::Number(builder), _) => builder.append_null(),
            (Builder::Moment(builder), FieldValue::Moment(moment)) => builder.append_value(moment),
            (Builder::Moment(builder), _) => builder.append_null(),
        }
    }

    /// Appends a value this many times.
    pub(super) fn push_repeated(&mut self, value: FieldValue<'_>, count: usize) {
        match (self, value) {
            (Builder::Text(builder), FieldValue::Text(text)) => builder.append_value_n(text, count),
            (Builder::Text(builder), FieldValue::Null) => builder.append_nulls(count),
            (Builder::Number(builder), FieldValue::Number(number)) => builder.append_value_n(number, count),
            (Builder::Moment(builder), FieldValue::Moment(moment)) => builder.append_value_n(moment, count),
            (builder, value) => (0..count).for_each(|_| builder.push(value)),
        }
    }

    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Text(builder) => Arc::new(builder.finish()),
            Builder::Texts(builder) => Arc::new(builder.finish()),
            Builder::Small(builder) => Arc::new(builder.finish()),
            Builder::Number(builder) => Arc::new(builder.finish()),
            Builder::Moment(builder) => Arc::new(builder.finish()),
        }
    }
}
