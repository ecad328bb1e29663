//! The values of columns as Python's. In [`Style::Compat`] they are python-mysql-replication's, where those differ.
//!
//! ```text
//!                        ours                             python-mysql-replication's
//! integers, YEAR         int                              int; the year 0000 is 1900
//! FLOAT, DOUBLE          float                            float
//! DECIMAL                Decimal                          Decimal
//! BIT                    int                              str of 0 and 1
//! DATE, DATETIME         date, datetime                   the same
//! … in no calendar       str, as SQL writes it            None
//! TIMESTAMP              datetime in UTC                  datetime without zone, in UTC
//! … zero                 str                              1970-01-01
//! TIME                   timedelta                        timedelta
//! CHAR, VARCHAR, TEXT    str; bytes if not valid          the same
//! BINARY, BLOB, GEOMETRY bytes                            bytes
//! ENUM                   str; int without its name        str; None without its name
//! SET                    str, with commas; int …          set; None if empty or without names
//! JSON                   dict, list, str, …               the same, with keys and strings as bytes
//! VECTOR                 list of float                    list of float (it has none)
//! ```

use binlogz_binlog::row::json::{JSON_DEPTH_MAX, JsonDocument, JsonValue};
use binlogz_binlog::row::{
    Cell, ColumnKind, ColumnSchema, Date, DateTime, Decimal, Row, Time, Timestamp, Value,
};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyList, PySet, PyString, PyTzInfo};

use crate::bad;
use crate::table::Table;
use crate::text::text;

/// The reader that the values are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Ours,
    Compat,
}

/// Why a NULL is None: python-mysql-replication's word.
pub(crate) const NULL_SOURCE: &str = "null";

/// A value; where it is `None` in compat style, why: the words of python-mysql-replication.
pub(crate) struct PythonValue<'py> {
    pub(crate) value: Bound<'py, PyAny>,
    pub(crate) none_source: Option<&'static str>,
}

/// The value of a cell.
pub(crate) fn made<'py>(
    py: Python<'py>,
    table: &Table,
    row: &Row<'_, '_>,
    cell: &Cell<'_>,
    style: Style,
) -> PyResult<PythonValue<'py>> {
    let compat = style == Style::Compat;
    let none = |source| PythonValue { value: py.None().into_bound(py), none_source: Some(source) };
    let column = cell.column;
    let value = match cell.value().map_err(bad)? {
        Value::Int(number) => number.into_bound_py_any(py)?,
        Value::Uint(number) => number.into_bound_py_any(py)?,
        Value::Year(0) if compat => 1900.into_bound_py_any(py)?,
        Value::Year(year) => year.into_bound_py_any(py)?,
        Value::Float(number) => f64::from(number).into_bound_py_any(py)?,
        Value::Double(number) => number.into_bound_py_any(py)?,
        Value::Decimal(number) => decimal(py, number)?,
        Value::Bit(bits) if compat => bit_text(column, bits).into_bound_py_any(py)?,
        Value::Bit(bits) => bits.into_bound_py_any(py)?,
        Value::Date(date) => match day(py, date) {
            Some(date) => date,
            None if compat => return Ok(none("out of date range")),
            None => date.text().as_str().into_bound_py_any(py)?,
        },
        Value::DateTime(time) => match moment(py, time) {
            Some(time) => time,
            None if compat => return Ok(none("out of datetime2 range")),
            None => time.text().as_str().into_bound_py_any(py)?,
        },
        Value::Timestamp(time) => timestamp(py, time, style)?,
        Value::Time(time) => delta(py, time)?,
        Value::Enum(number) => match table.member(py, cell.index, number) {
            Some(name) => name,
            None if number == 0 && column.members.is_some() => "".into_bound_py_any(py)?,
            None if compat => return Ok(none(NULL_SOURCE)),
            None => number.into_bound_py_any(py)?,
        },
        Value::Set(bits) if compat => {
            let names =
                column.set_members(bits).map(|name| text(py, column, name)).collect::<PyResult<Vec<_>>>()?;
            if names.is_empty() {
                return Ok(none("empty set"));
            }
            PySet::new(py, names)?.into_any()
        }
        Value::Set(bits) => set_text(py, column, bits)?,
        Value::Bytes(bytes) => text(py, column, bytes)?,
        Value::Geometry(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Json(document) => json(py, document, style)?,
        Value::JsonDiffs(_) => changed_json(py, row, cell, style)?,
        Value::Vector(vector) => {
            PyList::new(py, vector.iter().map(f64::from).collect::<Vec<_>>())?.into_any()
        }
        Value::Null => return Ok(none(NULL_SOURCE)),
    };
    Ok(PythonValue { value, none_source: None })
}

fn decimal<'py>(py: Python<'py>, number: Decimal<'_>) -> PyResult<Bound<'py, PyAny>> {
    static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class =
        DECIMAL.get_or_try_init(py, || Ok::<_, PyErr>(py.import("decimal")?.getattr("Decimal")?.unbind()))?;
    class.bind(py).call1((number.text().as_str(),))
}

/// The bits of a column, the highest first.
fn bit_text(column: &ColumnSchema, bits: u64) -> String {
    let width = match column.kind {
        ColumnKind::Bit { bits } => usize::from(bits),
        _ => 64,
    };
    format!("{bits:0width$b}")
}

/// `None`: it is in no calendar.
fn day<'py>(py: Python<'py>, date: Date) -> Option<Bound<'py, PyAny>> {
    if !is_day(date) {
        return None;
    }
    PyDate::new(py, date.year().into(), date.month(), date.day()).ok().map(Bound::into_any)
}

fn moment<'py>(py: Python<'py>, time: DateTime) -> Option<Bound<'py, PyAny>> {
    let date = time.date();
    let clock = [time.hours(), time.minutes(), time.seconds()];
    let is_time = matches!(clock, [..=23, ..=59, ..=59]);
    if !is_time || !is_day(date) {
        return None;
    }
    let day = (date.year(), date.month(), date.day());
    datetime(py, day, clock, time.fraction().microseconds(), None).ok()
}

/// A datetime, made of its state as pickle makes it: a third of the time of eight numbers. It checks nothing, so the fields must be
/// those of a day and a time.
fn datetime<'py>(
    py: Python<'py>,
    (year, month, day): (u16, u8, u8),
    [hours, minutes, seconds]: [u8; 3],
    micros: u32,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Bound<'py, PyAny>> {
    static DATETIME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || Ok::<_, PyErr>(py.import("datetime")?.getattr("datetime")?.unbind());
    let class = DATETIME.get_or_try_init(py, find)?.bind(py);
    let byte = |number: u32| (number & 0xff) as u8;
    let state = [
        byte(u32::from(year) >> 8),
        byte(u32::from(year)),
        month,
        day,
        hours,
        minutes,
        seconds,
        byte(micros >> 16),
        byte(micros >> 8),
        byte(micros),
    ];
    let state = PyBytes::new(py, &state);
    match zone {
        Some(zone) => class.call1((state, zone)),
        None => class.call1((state,)),
    }
}

/// Whether it is in Python's calendar.
fn is_day(date: Date) -> bool {
    let year = date.year();
    let is_leap = (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let last = match date.month() {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return false,
    };
    (1..=9999).contains(&year) && (1..=last).contains(&date.day())
}

fn timestamp<'py>(py: Python<'py>, time: Timestamp, style: Style) -> PyResult<Bound<'py, PyAny>> {
    let micros = time.fraction().microseconds();
    if style == Style::Ours && time.seconds() == 0 && micros == 0 {
        return "0000-00-00 00:00:00".into_bound_py_any(py);
    }
    let days = i64::from(time.seconds() / 86_400);
    let rest = time.seconds() % 86_400;
    let (year, month, day) = civil(days);
    let clock = [(rest / 3600) as u8, (rest / 60 % 60) as u8, (rest % 60) as u8];
    let utc = match style {
        Style::Ours => Some(PyTzInfo::utc(py)?),
        Style::Compat => None,
    };
    // A TIMESTAMP ends in 2106.
    datetime(py, (year as u16, month, day), clock, micros, utc.as_deref())
}

/// Year, month and day, this many days after 1970 began.
fn civil(days: i64) -> (i32, u8, u8) {
    // Years that begin in March end with the leap day.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year as i32, month as u8, day as u8)
}

fn delta<'py>(py: Python<'py>, time: Time) -> PyResult<Bound<'py, PyAny>> {
    let seconds = i32::from(time.hours()) * 3600 + i32::from(time.minutes()) * 60 + i32::from(time.seconds());
    let micros = time.fraction().microseconds() as i32;
    let sign = if time.is_negative() { -1 } else { 1 };
    Ok(PyDelta::new(py, 0, sign * seconds, sign * micros, true)?.into_any())
}

fn set_text<'py>(py: Python<'py>, column: &ColumnSchema, bits: u64) -> PyResult<Bound<'py, PyAny>> {
    let known = column.members.as_ref().map_or(0, |members| members.len());
    // A bit without a name would be lost.
    if column.members.is_none() || bits.checked_shr(known as u32).unwrap_or(0) != 0 {
        return bits.into_bound_py_any(py);
    }
    let names =
        column.set_members(bits).map(|name| match column.charset().and_then(|set| set.decode(name)) {
            Some(name) => name.into_owned(),
            None => String::from_utf8_lossy(name).into_owned(),
        });
    names.collect::<Vec<_>>().join(",").into_bound_py_any(py)
}

fn json<'py>(py: Python<'py>, document: JsonDocument<'_>, style: Style) -> PyResult<Bound<'py, PyAny>> {
    let mut walk = JsonWalk { style, budget: document.as_bytes().len(), depth: 0 };
    walk.value(py, document.value().map_err(bad)?)
}

/// Bytes of an array's entry for an element, and of an object's entries for a member, at least.
const ELEMENT_SIZE: usize = 3;
const MEMBER_SIZE: usize = 7;

/// Makes Python objects of a document. Several values may share offsets in it, and containers may contain one another. So
/// every byte read is taken from a budget of the document's own size, which valid documents never exceed; and the depth
/// is bounded as on the server.
struct JsonWalk {
    style: Style,
    budget: usize,
    depth: usize,
}

impl JsonWalk {
    fn spend(&mut self, bytes: usize) -> PyResult<()> {
        let left = self.budget.checked_sub(bytes);
        self.budget = left.ok_or_else(|| {
            bad("json document: offsets: found shared by several values, expected one value each")
        })?;
        Ok(())
    }

    fn enter(&mut self) -> PyResult<()> {
        self.depth += 1;
        if self.depth > JSON_DEPTH_MAX {
            let found = self.depth;
            let expected = JSON_DEPTH_MAX;
            return Err(bad(format!(
                "json document: nesting: found {found}, expected at most {expected} levels"
            )));
        }
        Ok(())
    }

    fn string<'py>(&mut self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.spend(bytes.len())?;
        Ok(match self.style {
            Style::Ours => PyString::new(py, &String::from_utf8_lossy(bytes)).into_any(),
            Style::Compat => PyBytes::new(py, bytes).into_any(),
        })
    }

    fn value<'py>(&mut self, py: Python<'py>, value: JsonValue<'_>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match value {
            JsonValue::Null => py.None().into_bound(py),
            JsonValue::Bool(value) => value.into_bound_py_any(py)?,
            JsonValue::Int(number) => number.into_bound_py_any(py)?,
            JsonValue::Uint(number) => number.into_bound_py_any(py)?,
            JsonValue::Double(number) => number.into_bound_py_any(py)?,
            JsonValue::Decimal(number) => decimal(py, number)?,
            JsonValue::String(bytes) => self.string(py, bytes)?,
            JsonValue::Date(date) => match (self.style, day(py, date)) {
                // It knows no dates in documents.
                (Style::Compat, Some(_)) => midnight(py, date)?,
                (Style::Ours, Some(date)) => date,
                _ => date.text().as_str().into_bound_py_any(py)?,
            },
            JsonValue::DateTime(time) => match moment(py, time) {
                Some(time) => time,
                None => time.text().as_str().into_bound_py_any(py)?,
            },
            JsonValue::Time(time) => delta(py, time)?,
            JsonValue::Opaque { bytes, .. } => {
                self.spend(bytes.len())?;
                match self.style {
                    Style::Ours => PyBytes::new(py, bytes).into_any(),
                    Style::Compat => {
                        let valid = bytes.utf8_chunks().map(|chunk| chunk.valid()).collect::<String>();
                        valid.into_bound_py_any(py)?
                    }
                }
            }
            JsonValue::Array(array) => {
                self.enter()?;
                let list = PyList::empty(py);
                for value in array.iter() {
                    self.spend(ELEMENT_SIZE)?;
                    list.append(self.value(py, value.map_err(bad)?)?)?;
                }
                self.depth -= 1;
                list.into_any()
            }
            JsonValue::Object(object) => {
                self.enter()?;
                let dict = PyDict::new(py);
                for member in object.iter() {
                    self.spend(MEMBER_SIZE)?;
                    let (key, value) = member.map_err(bad)?;
                    let key = self.string(py, key)?;
                    dict.set_item(key, self.value(py, value)?)?;
                }
                self.depth -= 1;
                dict.into_any()
            }
        })
    }
}

fn midnight<'py>(py: Python<'py>, date: Date) -> PyResult<Bound<'py, PyAny>> {
    let year = date.year().into();
    let month = date.month();
    let day = date.day();
    Ok(PyDateTime::new(py, year, month, day, 0, 0, 0, 0, None)?.into_any())
}

/// A document that was logged as differences from the one before.
fn changed_json<'py>(
    py: Python<'py>,
    row: &Row<'_, '_>,
    cell: &Cell<'_>,
    style: Style,
) -> PyResult<Bound<'py, PyAny>> {
    let tree = row.json_after(cell.index).map_err(bad)?;
    let Some(tree) = tree else {
        return Err(PyValueError::new_err("a JSON difference without its document"));
    };
    let mut text = Vec::new();
    tree.write_text(&mut text).map_err(bad)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let document = py.import("json")?.call_method1("loads", (text,))?;
    match style {
        Style::Ours => Ok(document),
        Style::Compat => with_bytes(py, &document),
    }
}

/// A document with keys and strings as bytes.
fn with_bytes<'py>(py: Python<'py>, document: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(text) = document.cast::<PyString>() {
        return Ok(PyBytes::new(py, text.to_cow()?.as_bytes()).into_any());
    }
    if let Ok(list) = document.cast::<PyList>() {
        let values = list.iter().map(|value| with_bytes(py, &value)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, values)?.into_any());
    }
    if let Ok(dict) = document.cast::<PyDict>() {
        let made = PyDict::new(py);
        for (key, value) in dict.iter() {
            made.set_item(with_bytes(py, &key)?, with_bytes(py, &value)?)?;
        }
        return Ok(made.into_any());
    }
    Ok(document.clone())
}
