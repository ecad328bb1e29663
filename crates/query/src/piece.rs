//! What one task of a cluster reads of the logs: which log, where it is, and how large it was.

use std::path::Path;
use std::sync::Arc;

use binlogz_archive::input;
use datafusion::arrow::array::{AsArray, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::common::{Result, internal_err};
use serde::{Deserialize, Serialize};

/// A log that is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// The path of a file, `ARCHIVE/LOG` or `s3://BUCKET/ARCHIVE/LOG`.
    pub(crate) path: String,
    /// Bytes that it had when the query was planned.
    pub(crate) size: u64,
}

impl Piece {
    pub(crate) fn schema() -> SchemaRef {
        let path = Field::new("path", DataType::Utf8, false);
        let size = Field::new("size", DataType::UInt64, false);
        Arc::new(Schema::new(vec![path, size]))
    }

    /// Pieces as rows.
    pub(crate) fn rows(pieces: &[Piece]) -> Result<RecordBatch> {
        let paths: StringArray = pieces.iter().map(|piece| Some(piece.path.as_str())).collect();
        let sizes: UInt64Array = pieces.iter().map(|piece| piece.size).collect::<Vec<_>>().into();
        Ok(RecordBatch::try_new(Piece::schema(), vec![Arc::new(paths), Arc::new(sizes)])?)
    }

    pub(crate) fn of_rows(rows: &RecordBatch) -> Result<Vec<Piece>> {
        let [paths, sizes] = rows.columns() else { return internal_err!("pieces without a size") };
        let (Some(paths), Some(sizes)) =
            (paths.as_string_opt::<i32>(), sizes.as_primitive_opt::<UInt64Type>())
        else {
            return internal_err!("pieces of other types");
        };
        let all = paths.iter().zip(sizes).map(|(path, size)| match (path, size) {
            (Some(path), Some(size)) => Ok(Piece { path: path.to_owned(), size }),
            _ => internal_err!("a piece without a path"),
        });
        all.collect()
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// Forgets what is known of its archive.
    pub(crate) fn forget(&self) {
        if let Some(archive) = self.path().parent() {
            input::forget(archive);
        }
    }
}
