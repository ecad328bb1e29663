//! Text as Python sees it: character columns, and the members of an ENUM column. Tables and values are made with it.

use binlogz_binlog::charset::Charset;
use binlogz_binlog::row::{ColumnKind, ColumnSchema};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A character column's bytes as text, others as bytes.
pub(crate) fn text<'py>(py: Python<'py>, column: &ColumnSchema, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let charset = column.charset();
    let decoded = match (column.collation, charset) {
        (None, _) => std::str::from_utf8(bytes).ok().map(|text| PyString::new(py, text)),
        (_, Some(Charset::Binary)) => None,
        (_, Some(charset)) => charset.decode(bytes).map(|text| PyString::new(py, &text)),
        (Some(_), None) => None,
    };
    Ok(decoded.map_or_else(|| PyBytes::new(py, &column.padded(bytes)).into_any(), Bound::into_any))
}

/// The values of an ENUM column's members; none for other columns.
pub(crate) fn members(py: Python<'_>, column: &ColumnSchema) -> PyResult<Vec<Py<PyAny>>> {
    let members = match (&column.kind, &column.members) {
        (ColumnKind::Enum { .. }, Some(members)) => members,
        _ => return Ok(Vec::new()),
    };
    members.iter().map(|member| Ok(text(py, column, member)?.unbind())).collect()
}
