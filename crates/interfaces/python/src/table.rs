//! A table as Python sees it.

use std::sync::Arc;

use binlogz_binlog::event::ColumnType;
use binlogz_binlog::row::{ColumnSchema, TableSchema};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::text::members;

/// The name of a column: `@1`, `@2` where the log has none.
pub(crate) fn column_name(index: usize, column: &ColumnSchema) -> String {
    match &column.name {
        Some(name) => String::from_utf8_lossy(name).into_owned(),
        None => format!("@{}", index + 1),
    }
}

/// A table as a log describes it.
#[pyclass(frozen, module = "binlogz")]
pub(crate) struct Table {
    pub(crate) schema_of_rows: Arc<TableSchema>,
    /// The database.
    #[pyo3(get)]
    pub(crate) schema: Py<PyString>,
    /// The name.
    #[pyo3(get)]
    pub(crate) table: Py<PyString>,
    /// Names of the columns: `@1`, `@2` where the log has none.
    pub(crate) names: Vec<Py<PyString>>,
    /// Names of the columns as python-mysql-replication has them: `UNKNOWN_COL0`, `UNKNOWN_COL1` where the log has none.
    pub(crate) compat_names: Vec<Py<PyString>>,
    /// A row of nothing but None. Its copies have their final size, and values replace values there: a dict that is filled key
    /// by key grows twice.
    row: Py<PyDict>,
    compat_row: Py<PyDict>,
    /// The members of an ENUM column as its values, in the columns' order.
    members: Vec<Vec<Py<PyAny>>>,
    /// The columns of the primary key, in the table's order; empty where the log does not tell.
    #[pyo3(get)]
    primary_key: Vec<String>,
}

impl Table {
    pub(crate) fn new(py: Python<'_>, schema: &Arc<TableSchema>) -> PyResult<Self> {
        let text = |bytes: &[u8]| PyString::new(py, &String::from_utf8_lossy(bytes)).unbind();
        let interned = |name: &str| PyString::intern(py, name).unbind();
        let columns = || schema.columns().iter().enumerate();
        let key = columns().filter(|(_, column)| column.primary_key.is_some());
        let names: Vec<_> = columns().map(|(index, column)| interned(&column_name(index, column))).collect();
        let compat_names: Vec<_> = columns()
            .map(|(index, column)| match &column.name {
                Some(name) => interned(&String::from_utf8_lossy(name)),
                None => interned(&format!("UNKNOWN_COL{index}")),
            })
            .collect();
        Ok(Table {
            schema_of_rows: Arc::clone(schema),
            schema: text(&schema.database),
            table: text(&schema.table),
            row: empty_row(py, &names)?,
            compat_row: empty_row(py, &compat_names)?,
            names,
            compat_names,
            members: schema.columns().iter().map(|column| members(py, column)).collect::<PyResult<_>>()?,
            primary_key: key.map(|(index, column)| column_name(index, column)).collect(),
        })
    }

    /// A row whose values are all None.
    pub(crate) fn row<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.row.bind(py).copy()
    }

    /// A row whose values are all None, with python-mysql-replication's names.
    pub(crate) fn compat_row<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.compat_row.bind(py).copy()
    }

    /// The value of a member of an ENUM column; `None`: the log doesn't name it.
    pub(crate) fn member<'py>(
        &self,
        py: Python<'py>,
        column: usize,
        number: u16,
    ) -> Option<Bound<'py, PyAny>> {
        let index = usize::from(number).checked_sub(1)?;
        Some(self.members.get(column)?.get(index)?.bind(py).clone())
    }
}

fn empty_row(py: Python<'_>, names: &[Py<PyString>]) -> PyResult<Py<PyDict>> {
    let row = PyDict::new(py);
    names.iter().try_for_each(|name| row.set_item(name, py.None()))?;
    Ok(row.unbind())
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.names)
    }

    /// Each column as a tuple: type, name, whether unsigned, in the primary key, collation id, members, metadata.
    #[getter]
    fn definitions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let definitions = self.schema_of_rows.columns().iter().map(|column| {
            let members = column.members.as_ref().map(|members| {
                members.iter().map(|member| String::from_utf8_lossy(member).into_owned()).collect::<Vec<_>>()
            });
            let ColumnType(number) = column.column_type;
            let name = column.name.as_ref().map(|name| String::from_utf8_lossy(name).into_owned());
            let is_key = column.primary_key.is_some();
            let unsigned = column.unsigned.unwrap_or(false);
            (number, name, unsigned, is_key, column.collation, members, column.metadata, column.nullable)
        });
        PyList::new(py, definitions.collect::<Vec<_>>())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Table {}.{}>", self.schema.bind(py), self.table.bind(py))
    }
}
