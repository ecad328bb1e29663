//! Writes JSON as SQL. Most documents can be given as a text. A text can't express decimals, dates, and integers whose
//! signedness it loses, so calls of JSON functions make these: the stored document is the same to the byte.

use binlogz_binlog::row::json::{JsonDiffs, JsonDocument, JsonValue};

use super::Unwritable;
use super::text::{push, push_quoted};

/// Containers within containers that are followed: the server has no deeper ones.
const DEPTH_MAX: usize = 100;
const TOO_DEEP: &str = "a JSON document that is too deep";
/// The server reads integers in a text from here on as unsigned.
const UNSIGNED_FROM: u64 = 1 << 32;

/// Appends a whole document as an expression of type JSON.
pub(crate) fn push_document(out: &mut Vec<u8>, document: &JsonDocument<'_>) -> Result<(), Unwritable> {
    // The text is bounded by the document's size; so then is any walk through it.
    let mut text = Vec::new();
    document.write_text(&mut text).map_err(text_of)?;
    let value = document.value().map_err(text_of)?;
    if is_text(&value, 0)? {
        push(out, "CAST(");
        push_quoted(out, &text);
        push(out, " AS JSON)");
        return Ok(());
    }
    push_value(out, &value, true)
}

/// Whether a document has numbers: the server compares 2 and 2.0 as equal, and 0 and -0.0.
pub(crate) fn has_numbers(document: &JsonDocument<'_>) -> Result<bool, Unwritable> {
    of_numbers(&document.value().map_err(text_of)?, 0)
}

fn of_numbers(value: &JsonValue<'_>, depth: usize) -> Result<bool, Unwritable> {
    if depth > DEPTH_MAX {
        return Err(TOO_DEEP.to_owned());
    }
    Ok(match value {
        JsonValue::Array(array) => {
            for element in array.iter() {
                if of_numbers(&element.map_err(text_of)?, depth + 1)? {
                    return Ok(true);
                }
            }
            false
        }
        JsonValue::Object(object) => {
            for member in object.iter() {
                if of_numbers(&member.map_err(text_of)?.1, depth + 1)? {
                    return Ok(true);
                }
            }
            false
        }
        JsonValue::Int(_) | JsonValue::Uint(_) | JsonValue::Double(_) | JsonValue::Decimal(_) => true,
        JsonValue::Null
        | JsonValue::Bool(_)
        | JsonValue::String(_)
        | JsonValue::Date(_)
        | JsonValue::Time(_)
        | JsonValue::DateTime(_)
        | JsonValue::Opaque { .. } => false,
    })
}

/// Appends the document that differences make of `base`.
pub(crate) fn push_changed(
    out: &mut Vec<u8>,
    diffs: &JsonDiffs<'_>,
    base: impl FnOnce(&mut Vec<u8>) -> Result<(), Unwritable>,
) -> Result<(), Unwritable> {
    let diffs = diffs.iter().collect::<Result<Vec<_>, _>>().map_err(text_of)?;
    for diff in diffs.iter().rev() {
        push(out, diff.function());
        push(out, "(");
    }
    base(out)?;
    for diff in &diffs {
        push(out, ", ");
        push_quoted(out, diff.path);
        if let Some(value) = diff.value {
            push(out, ", ");
            push_document(out, &value)?;
        }
        push(out, ")");
    }
    Ok(())
}

fn text_of(error: binlogz_binlog::Error) -> Unwritable {
    error.to_string()
}

/// Whether the value's text is read back as the same value.
fn is_text(value: &JsonValue<'_>, depth: usize) -> Result<bool, Unwritable> {
    if depth > DEPTH_MAX {
        return Err(TOO_DEEP.to_owned());
    }
    Ok(match value {
        JsonValue::Array(array) => {
            for element in array.iter() {
                if !is_text(&element.map_err(text_of)?, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        JsonValue::Object(object) => {
            for member in object.iter() {
                if !is_text(&member.map_err(text_of)?.1, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        JsonValue::Int(number) => *number < UNSIGNED_FROM as i64,
        JsonValue::Uint(number) => *number >= UNSIGNED_FROM,
        JsonValue::Null | JsonValue::Bool(_) | JsonValue::Double(_) | JsonValue::String(_) => true,
        JsonValue::Decimal(_) | JsonValue::Opaque { .. } => false,
        JsonValue::Date(_) | JsonValue::Time(_) | JsonValue::DateTime(_) => false,
    })
}

/// Appends a value as an expression that a JSON function takes as its argument; `alone`: as a document.
fn push_value(out: &mut Vec<u8>, value: &JsonValue<'_>, alone: bool) -> Result<(), Unwritable> {
    // JSON_EXTRACT of an array gives any scalar as a document.
    if alone && !matches!(value, JsonValue::Array(_) | JsonValue::Object(_)) {
        push(out, "JSON_EXTRACT(JSON_ARRAY(");
        push_value(out, value, false)?;
        push(out, "), '$[0]')");
        return Ok(());
    }
    match value {
        JsonValue::Null => push(out, "NULL"),
        JsonValue::Bool(value) => push(out, value),
        JsonValue::Int(number) => push(out, number),
        JsonValue::Uint(number) => push(out, format_args!("CAST({number} AS UNSIGNED)")),
        JsonValue::Double(number) => push(out, format_args!("{number:e}")),
        JsonValue::String(text) => push_quoted(out, text),
        JsonValue::Decimal(decimal) => {
            let format = decimal.format();
            push(out, format_args!("CAST({decimal} AS DECIMAL({}, {}))", format.precision(), format.scale()));
        }
        JsonValue::Date(date) => push(out, format_args!("CAST('{date}' AS DATE)")),
        JsonValue::Time(time) => push(out, format_args!("CAST('{time}' AS TIME(6))")),
        JsonValue::DateTime(time) => push(out, format_args!("CAST('{time}' AS DATETIME(6))")),
        JsonValue::Array(array) => {
            push(out, "JSON_ARRAY(");
            for (index, element) in array.iter().enumerate() {
                push(out, if index > 0 { ", " } else { "" });
                push_value(out, &element.map_err(text_of)?, false)?;
            }
            push(out, ")");
        }
        JsonValue::Object(object) => {
            push(out, "JSON_OBJECT(");
            for (index, member) in object.iter().enumerate() {
                let (key, value) = member.map_err(text_of)?;
                push(out, if index > 0 { ", " } else { "" });
                push_quoted(out, key);
                push(out, ", ");
                push_value(out, &value, false)?;
            }
            push(out, ")");
        }
        JsonValue::Opaque { .. } => return Err("a JSON document with binary data in it".to_owned()),
    }
    Ok(())
}
