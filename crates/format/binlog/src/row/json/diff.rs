//! The differences that a partial update logs in the place of a JSON document.
//!
//! ```text
//! operation u8 · path length LEI, path · value length LEI, value (binary JSON); not for a remove
//! operation   0 replace   1 insert   2 remove
//! ```
//!
//! The differences follow each other up to the end of the column's bytes; if there are none, nothing changed.
//! (`Json_diff_vector::read_binary` in the server, since 8.0.3.)

use super::JsonDocument;
use crate::cursor::Cursor;
use crate::error::{Error, Result};

const WHAT: &str = "json difference";

/// The differences of one column, unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonDiffs<'a>(&'a [u8]);

/// The operation of a difference. Unknown codes are refused: a reader that skips one has the wrong document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonDiffOperation {
    /// Replaces the value at the path.
    Replace,
    /// Inserts a member, or an element before the one at the path.
    Insert,
    /// Removes the value at the path.
    Remove,
}

/// One difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonDiff<'a> {
    /// The operation.
    pub operation: JsonDiffOperation,
    /// The path, as text; see [`JsonPath`](super::JsonPath).
    pub path: &'a [u8],
    /// The new value; `None` for a remove.
    pub value: Option<JsonDocument<'a>>,
}

impl<'a> JsonDiffs<'a> {
    /// Takes the bytes of a column.
    pub fn new(bytes: &'a [u8]) -> Self {
        JsonDiffs(bytes)
    }

    /// The bytes, as they are in the row.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The differences in order. An error ends the iteration.
    pub fn iter(&self) -> impl Iterator<Item = Result<JsonDiff<'a>>> + use<'a> {
        let mut cursor = Cursor::new(self.0, WHAT);
        std::iter::from_fn(move || {
            if cursor.is_empty() {
                return None;
            }
            let diff = JsonDiff::read(&mut cursor);
            if diff.is_err() {
                cursor.rest();
            }
            Some(diff)
        })
    }
}

impl<'a> JsonDiff<'a> {
    /// The SQL function that makes the same change.
    pub fn function(&self) -> &'static str {
        match self.operation {
            JsonDiffOperation::Replace => "JSON_REPLACE",
            JsonDiffOperation::Insert if self.path.ends_with(b"]") => "JSON_ARRAY_INSERT",
            JsonDiffOperation::Insert => "JSON_INSERT",
            JsonDiffOperation::Remove => "JSON_REMOVE",
        }
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
        let operation = match cursor.u8("operation")? {
            0 => JsonDiffOperation::Replace,
            1 => JsonDiffOperation::Insert,
            2 => JsonDiffOperation::Remove,
            other => return Err(Error::invalid(WHAT, "operation", other, "0 to 2")),
        };
        let path_length = cursor.lei("path length")?;
        let path = cursor.bytes_u64(path_length, "path")?;
        let value = if operation == JsonDiffOperation::Remove {
            None
        } else {
            let value_length = cursor.lei("value length")?;
            Some(JsonDocument::new(cursor.bytes_u64(value_length, "value")?))
        };
        Ok(JsonDiff { operation, path, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFFS: &[u8] = b"\x00\x03$.k\x03\x05\x02\x00\x01\x03$.z\x03\x0c\x01v\x02\x06$.a[0]";

    #[test]
    fn differences_are_read_one_by_one() {
        let diffs: Vec<_> = JsonDiffs::new(DIFFS).iter().collect::<Result<_>>().unwrap();
        assert_eq!(diffs.len(), 3);
        let value = JsonDocument::new(b"\x0c\x01v");
        let insert = JsonDiff { operation: JsonDiffOperation::Insert, path: b"$.z", value: Some(value) };
        assert_eq!(diffs[1], insert);
        assert_eq!((diffs[2].operation, diffs[2].value), (JsonDiffOperation::Remove, None));
        assert_eq!(JsonDiffs::new(b"").iter().count(), 0);
    }

    #[test]
    fn cuts_and_unknown_operations_are_noticed() {
        for length in 1..DIFFS.len() {
            let whole = matches!(length, 9 | 18);
            let diffs: Result<Vec<_>> = JsonDiffs::new(&DIFFS[..length]).iter().collect();
            assert_eq!(diffs.is_ok(), whole, "{length}");
        }
        let error = JsonDiffs::new(b"\x03\x01$").iter().next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "json difference: operation is 3, expected 0 to 2");
    }
}
