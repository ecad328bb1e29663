//! Our SQL functions, in addition to DataFusion's: `gtid_in(set, gtid)`, `json_value(document, path)`,
//! `json_extract(document, path)`, `hex(value)`.

use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use serde_json::Value;

/// The name of the function that looks for a GTID in a set.
pub(crate) const GTID_IN: &str = "gtid_in";

/// The functions beside DataFusion's.
pub fn all() -> [ScalarUDF; 4] {
    let immutable = Volatility::Immutable;
    let texts = vec![DataType::Utf8, DataType::Utf8];
    [
        create_udf(GTID_IN, texts.clone(), DataType::Boolean, immutable, Arc::new(gtid_in)),
        create_udf("json_value", texts.clone(), DataType::Utf8, immutable, Arc::new(json_value)),
        create_udf("json_extract", texts, DataType::Utf8, immutable, Arc::new(json_extract)),
        create_udf("hex", vec![DataType::Binary], DataType::Utf8, immutable, Arc::new(hex)),
    ]
}

fn gtid_in(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    let [sets, gtids] = arrays(args)?;
    let sets = sets.as_string::<i32>();
    let gtids = gtids.as_string::<i32>();
    let mut last: Option<(&str, GtidSet)> = None;
    let mut found = Vec::with_capacity(gtids.len());
    for (set, gtid) in sets.iter().zip(gtids) {
        let (Some(text), Some(gtid)) = (set, gtid) else {
            found.push(None);
            continue;
        };
        let set = match last.take() {
            Some((known, set)) if known == text => set,
            _ => GtidSet::from_str(text)
                .map_err(|error| DataFusionError::Execution(format!("gtid_in: {error}")))?,
        };
        found.push(Some(Gtid::from_str(gtid).is_ok_and(|gtid| set.contains(&gtid))));
        last = Some((text, set));
    }
    Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(found))))
}

/// The value at a path such as `$.a.b[0]` in a document: a string without its quotes, anything else as JSON; null is NULL.
fn json_value(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    json_at(args, "json_value", |value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    })
}

/// The value at a path, as JSON.
fn json_extract(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    json_at(args, "json_extract", |value| Some(value.to_string()))
}

fn json_at(
    args: &[ColumnarValue],
    function: &str,
    shown: fn(&Value) -> Option<String>,
) -> Result<ColumnarValue> {
    let [documents, paths] = arrays(args)?;
    let mut found = Vec::with_capacity(documents.len());
    for (document, path) in documents.as_string::<i32>().iter().zip(paths.as_string::<i32>()) {
        let (Some(document), Some(path)) = (document, path) else {
            found.push(None);
            continue;
        };
        let Some(pointer) = pointer(path) else {
            return exec_err!("{function}: path is {path}, expected one as $.name[0].\"other name\"");
        };
        let document: Option<Value> = serde_json::from_str(document).ok();
        found.push(document.as_ref().and_then(|document| document.pointer(&pointer)).and_then(shown));
    }
    Ok(ColumnarValue::Array(Arc::new(StringArray::from(found))))
}

/// MySQL's path as a JSON pointer.
fn pointer(path: &str) -> Option<String> {
    let mut rest = path.trim().strip_prefix('$')?;
    let mut pointer = String::new();
    while !rest.is_empty() {
        let member = if let Some(after) = rest.strip_prefix("[") {
            let (index, after) = after.split_once(']')?;
            rest = after;
            index.trim().parse::<u32>().ok()?;
            index.trim()
        } else {
            let after = rest.strip_prefix('.')?;
            if let Some(quoted) = after.strip_prefix('"') {
                let (name, after) = quoted.split_once('"')?;
                rest = after;
                name
            } else {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                let (name, after) = after.split_at_checked(end)?;
                rest = after;
                if name.is_empty() {
                    return None;
                }
                name
            }
        };
        pointer.push('/');
        pointer.push_str(&member.replace('~', "~0").replace('/', "~1"));
    }
    Some(pointer)
}

fn hex(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let Some(values) = arrays.first() else { return exec_err!("hex takes one argument") };
    let values = values.as_binary::<i32>().iter().map(|value| {
        value.map(|bytes| {
            bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
                let _ = write!(text, "{byte:02X}");
                text
            })
        })
    });
    Ok(ColumnarValue::Array(Arc::new(values.collect::<StringArray>())))
}

fn arrays(args: &[ColumnarValue]) -> Result<[ArrayRef; 2]> {
    let arrays = ColumnarValue::values_to_arrays(args)?;
    <[ArrayRef; 2]>::try_from(arrays).or_else(|_| exec_err!("the function takes two arguments"))
}
