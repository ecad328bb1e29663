//! The differences of a partial update as calls of JSON functions around the column.
//!
//! ```text
//! @2                                                   nothing changed
//! JSON_REPLACE(@2, '$.a', 1,
//! ###      '$.b', 'x')                                 alike ones share a call
//! JSON_REMOVE(
//! ###      JSON_INSERT(@2, '$.c', CAST('[]' AS JSON)),
//! ###      '$.d')                                      the first difference innermost
//! ```

use binlogz_binlog::Result;
use binlogz_binlog::row::json::{JsonDiff, JsonDiffs, JsonDocument, JsonValue};

use crate::mysqlbinlog::write::quote::push_quoted;
use crate::number::push_unsigned;

const NEW_LINE: &[u8] = b"\n###      ";

/// Appends the differences of a column, by its number from 1.
pub(crate) fn push_json_diffs(
    out: &mut Vec<u8>,
    number: usize,
    diffs: &JsonDiffs<'_>,
    scratch: &mut Vec<u8>,
) -> Result<()> {
    let diffs = diffs.iter().collect::<Result<Vec<_>>>()?;
    // Runs of differences with the same function, in the order in which they apply.
    let calls: Vec<&[JsonDiff<'_>]> = diffs.chunk_by(|a, b| a.function() == b.function()).collect();
    for (index, call) in calls.iter().rev().enumerate() {
        if index > 0 {
            out.extend_from_slice(NEW_LINE);
        }
        out.extend_from_slice(call.first().map_or("", JsonDiff::function).as_bytes());
        out.push(b'(');
    }
    out.push(b'@');
    push_unsigned(out, number as u64);
    for (index, call) in calls.iter().enumerate() {
        for (argument, diff) in call.iter().enumerate() {
            // Only the very first difference is on the column's line.
            out.extend_from_slice(if index == 0 && argument == 0 { b", " } else { b"," });
            if index > 0 || argument > 0 {
                out.extend_from_slice(NEW_LINE);
            }
            push_quoted(out, diff.path);
            if let Some(value) = diff.value {
                out.extend_from_slice(b", ");
                push_json_value(out, value, scratch)?;
            }
        }
        out.push(b')');
    }
    Ok(())
}

/// Appends numbers, booleans and null as they are, containers in a cast, the rest as a string.
fn push_json_value(out: &mut Vec<u8>, document: JsonDocument<'_>, text: &mut Vec<u8>) -> Result<()> {
    text.clear();
    document.write_text_unquoted(text)?;
    match document.value()? {
        JsonValue::Array(_) | JsonValue::Object(_) => {
            out.extend_from_slice(b"CAST(");
            push_quoted(out, text);
            out.extend_from_slice(b" AS JSON)");
        }
        JsonValue::String(_)
        | JsonValue::Date(_)
        | JsonValue::Time(_)
        | JsonValue::DateTime(_)
        | JsonValue::Opaque { .. } => push_quoted(out, text),
        JsonValue::Null
        | JsonValue::Bool(_)
        | JsonValue::Int(_)
        | JsonValue::Uint(_)
        | JsonValue::Double(_)
        | JsonValue::Decimal(_) => out.extend_from_slice(text),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        push_json_diffs(&mut out, 2, &JsonDiffs::new(bytes), &mut Vec::new()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_difference_is_the_column() {
        assert_eq!(text(b""), "@2");
    }

    #[test]
    fn alike_ones_share_a_call() {
        let replace_two = b"\x00\x03$.a\x03\x05\x01\x00\x00\x03$.b\x03\x0c\x01x";
        assert_eq!(text(replace_two), "JSON_REPLACE(@2, '$.a', 1,\n###      '$.b', 'x')");
    }

    #[test]
    fn calls_nest_with_the_first_innermost() {
        let diffs = b"\x01\x03$.c\x05\x02\x00\x00\x04\x00\x01\x06$.c[0]\x02\x04\x00\x02\x03$.d";
        let expected = "JSON_REMOVE(\n###      JSON_ARRAY_INSERT(\n###      JSON_INSERT(@2, \
            '$.c', CAST('[]' AS JSON)),\n###      '$.c[0]', null),\n###      '$.d')";
        assert_eq!(text(diffs), expected);
    }
}
