//! The part of the logs that one task of a cluster reads: which log, where it is, how large it was, and which part of it.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use binlogz_archive::input;
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type, UInt64Type};
use datafusion::common::{Result, internal_err};
use serde::{Deserialize, Serialize};

/// A log that is read, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadPiece {
    /// The path of a file, `ARCHIVE/LOG` or `s3://BUCKET/ARCHIVE/LOG`.
    pub(crate) path: String,
    /// Bytes that it had when the query was planned.
    pub(crate) size: u64,
    /// `None`: the whole log.
    pub(crate) part: Option<ArchivedPart>,
}

/// A part of an archived log: the blocks that begin in these bytes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchivedPart {
    pub(crate) bytes: Range<u64>,
    /// How the log was packed when the query was planned. After a merge, blocks begin elsewhere: then no part fits another.
    pub(crate) packing: u32,
}

impl ReadPiece {
    pub(crate) fn schema() -> SchemaRef {
        let field = |name: &str, data_type, nullable| Field::new(name, data_type, nullable);
        Arc::new(Schema::new(vec![
            field("path", DataType::Utf8, false),
            field("size", DataType::UInt64, false),
            field("start", DataType::UInt64, true),
            field("end", DataType::UInt64, true),
            field("packing", DataType::UInt32, true),
        ]))
    }

    /// Pieces as rows.
    pub(crate) fn rows(pieces: &[ReadPiece]) -> Result<RecordBatch> {
        let paths: StringArray = pieces.iter().map(|piece| Some(piece.path.as_str())).collect();
        let sizes: UInt64Array = pieces.iter().map(|piece| piece.size).collect::<Vec<_>>().into();
        let parts = || pieces.iter().map(|piece| piece.part.as_ref());
        let starts: UInt64Array = parts().map(|part| part.map(|part| part.bytes.start)).collect();
        let ends: UInt64Array = parts().map(|part| part.map(|part| part.bytes.end)).collect();
        let packings: UInt32Array = parts().map(|part| part.map(|part| part.packing)).collect();
        let columns: Vec<ArrayRef> =
            vec![Arc::new(paths), Arc::new(sizes), Arc::new(starts), Arc::new(ends), Arc::new(packings)];
        Ok(RecordBatch::try_new(ReadPiece::schema(), columns)?)
    }

    pub(crate) fn of_rows(rows: &RecordBatch) -> Result<Vec<ReadPiece>> {
        let [paths, sizes, starts, ends, packings] = rows.columns() else {
            return internal_err!("pieces of {} columns", rows.num_columns());
        };
        let (Some(paths), Some(sizes), Some(starts), Some(ends), Some(packings)) = (
            paths.as_string_opt::<i32>(),
            sizes.as_primitive_opt::<UInt64Type>(),
            starts.as_primitive_opt::<UInt64Type>(),
            ends.as_primitive_opt::<UInt64Type>(),
            packings.as_primitive_opt::<UInt32Type>(),
        ) else {
            return internal_err!("pieces of other types");
        };
        let parts = starts
            .iter()
            .zip(ends)
            .zip(packings)
            .map(|((start, end), packing)| Some(ArchivedPart { bytes: start?..end?, packing: packing? }));
        let all = paths.iter().zip(sizes).zip(parts).map(|((path, size), part)| match (path, size) {
            (Some(path), Some(size)) => Ok(ReadPiece { path: path.to_owned(), size, part }),
            _ => internal_err!("a piece without a path"),
        });
        all.collect()
    }

    /// Bytes of the log that it is about.
    pub(crate) fn bytes(&self) -> u64 {
        let Some(ArchivedPart { bytes, .. }) = &self.part else { return self.size };
        bytes.end.min(self.size).saturating_sub(bytes.start)
    }

    /// The piece as a line about reading it shows it.
    pub(crate) fn shown(&self) -> String {
        match &self.part {
            None => self.path.clone(),
            Some(ArchivedPart { bytes, .. }) if bytes.end >= self.size => {
                format!("{} from {}", self.path, bytes.start)
            }
            Some(ArchivedPart { bytes, .. }) => {
                format!("{} from {} to {}", self.path, bytes.start, bytes.end)
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// Forgets the cached manifest of its archive.
    pub(crate) fn forget(&self) {
        if let Some(archive) = self.path().parent() {
            input::forget(archive);
        }
    }
}
