//! Columns of tables of row changes that are being built: where each takes its values, and the batch that all of them make.

use std::sync::Arc;

use binlogz_arrow::{ImageColumn, ValueColumn};
use binlogz_flow::Error;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Fields, SchemaRef};

use super::columns::{Builder, FieldKind};
use super::{MadeColumn, arrow_error};

/// The source of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueSource {
    Log,
    Position,
    Gtid,
    CommittedAt,
    AppliedAt,
    LoggedAt,
    ServerId,
    Offset,
    Inside,
    Row,
    Schema,
    Table,
    Operation,
    Ending,
    Statement,
    Key,
    Changed,
    BeforeJson,
    AfterJson,
    Before,
    After,
}

impl ValueSource {
    /// Whether its values have the names of a table's columns.
    pub(super) fn names_columns(self) -> bool {
        use ValueSource::{After, AfterJson, Before, BeforeJson, Changed, Key};
        matches!(self, Key | Changed | BeforeJson | AfterJson | Before | After)
    }
}

/// A column that is being built.
pub(super) struct BuiltColumn {
    pub(super) source: ValueSource,
    pub(super) target: ValueTarget,
}

/// Where its values go.
pub(super) enum ValueTarget {
    Plain(Builder),
    Image(ImageColumn),
    /// One field of an image.
    Field(Box<ValueColumn>, usize),
    /// A column of an image, of which only whether it is NULL is asked.
    Presence(Box<ValueColumn>, usize),
}

impl BuiltColumn {
    /// An empty one; `fields` are those of an image.
    pub(super) fn new(source: ValueSource, kind: FieldKind, output: MadeColumn, fields: &Fields) -> Self {
        let field = match output {
            MadeColumn::Field(_, number) | MadeColumn::Presence(_, number) => {
                fields.get(number).map(|field| (field, number))
            }
            MadeColumn::Column(_) => None,
        };
        let target = match (source, field) {
            (ValueSource::Before | ValueSource::After, Some((field, number))) => {
                let values = Box::new(ValueColumn::new(field.data_type()));
                match output {
                    MadeColumn::Presence(..) => ValueTarget::Presence(values, number),
                    MadeColumn::Field(..) | MadeColumn::Column(_) => ValueTarget::Field(values, number),
                }
            }
            (ValueSource::Before | ValueSource::After, None) => ValueTarget::Image(ImageColumn::new(fields)),
            _ => ValueTarget::Plain(kind.builder()),
        };
        BuiltColumn { source, target }
    }
}

/// The rows of columns that are built.
pub(super) fn batch_of(
    columns: &mut [BuiltColumn],
    schema: &SchemaRef,
    rows: usize,
) -> Result<RecordBatch, Error> {
    let arrays = columns
        .iter_mut()
        .map(|column| match &mut column.target {
            ValueTarget::Plain(builder) => Ok(builder.finish()),
            ValueTarget::Image(image) => image.finish().map_err(arrow_error),
            ValueTarget::Field(values, _) | ValueTarget::Presence(values, _) => Ok(values.finish()),
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options).map_err(arrow_error)
}
