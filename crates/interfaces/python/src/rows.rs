//! The rows of an event, read when they are asked for.

use std::sync::Arc;

use binlogz_binlog::event::RowsEvent;
use binlogz_binlog::row::{CellContent, Row, RowDecoder, RowImage};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::bad;
use crate::gather::RowsContent;
use crate::table::Table;
use crate::value::{NULL_SOURCE, Style, made};

/// The rows of an event.
#[pyclass(frozen, name = "Rows", module = "binlogz")]
pub(crate) struct PythonRows {
    content: RowsContent,
    /// The table that the rows belong to.
    #[pyo3(get)]
    table: Py<Table>,
}

/// The number of a table, flags, the number of columns, and those that the images have.
type Head = (u64, u16, u64, Vec<u8>, Option<Vec<u8>>);

/// A row that was inserted, updated or deleted.
#[pyclass(frozen, get_all, module = "binlogz")]
pub(crate) struct Change {
    /// The transaction.
    transaction: Py<PyAny>,
    /// The table.
    table: Py<Table>,
    /// `insert`, `update` or `delete`.
    operation: &'static str,
    /// The row before an update or delete: values by the names of columns.
    before: Option<Py<PyDict>>,
    /// The row after an insert or update.
    after: Option<Py<PyDict>>,
    /// When the statement began, in seconds since 1970.
    timestamp: u32,
    /// Where its event begins in the log, or the payload event that holds it.
    offset: u64,
}

#[pymethods]
impl Change {
    /// The database.
    #[getter]
    fn schema(&self, py: Python<'_>) -> Py<pyo3::types::PyString> {
        self.table.get().schema.clone_ref(py)
    }

    /// The name of the table.
    #[getter]
    fn table_name(&self, py: Python<'_>) -> Py<pyo3::types::PyString> {
        self.table.get().table.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let image = |image: &Option<Py<PyDict>>| match image {
            Some(image) => Ok::<_, PyErr>(image.bind(py).repr()?.to_string()),
            None => Ok("None".to_owned()),
        };
        let table = self.table.get();
        let operation = self.operation;
        let before = image(&self.before)?;
        let after = image(&self.after)?;
        let schema = table.schema.bind(py);
        let name = table.table.bind(py);
        Ok(format!("<Change {operation} {schema}.{name} before={before} after={after}>"))
    }
}

impl PythonRows {
    pub(crate) fn new(content: RowsContent, table: Py<Table>) -> Self {
        PythonRows { content, table }
    }

    fn event(&self) -> PyResult<RowsEvent<'_>> {
        let RowsContent { event_type, body, post_header_length, .. } = &self.content;
        RowsEvent::decode(*event_type, body, *post_header_length).map_err(bad)
    }

    /// Does something for each row.
    fn each(&self, mut each: impl FnMut(&Row<'_, '_>) -> PyResult<()>) -> PyResult<()> {
        let mut decoder = RowDecoder::new();
        let event = self.event()?;
        let mut rows = decoder.rows(&self.content.schema, &event).map_err(bad)?;
        while let Some(row) = rows.next_row().map_err(bad)? {
            each(&row)?;
        }
        Ok(())
    }
}

#[pymethods]
impl PythonRows {
    /// `insert`, `update` or `delete`.
    #[getter]
    fn operation(&self) -> PyResult<&'static str> {
        Ok(self.event()?.kind().operation())
    }

    /// The number of its table, its flags, the number of columns, and which of them the images have.
    #[getter]
    fn head(&self) -> PyResult<Head> {
        let event = self.event()?;
        let after = event.columns_after.map(|bitmap| bitmap.0.to_vec());
        Ok((event.table_id.0, event.flags.0, event.width, event.columns.0.to_vec(), after))
    }

    /// Each row as a change of this transaction.
    fn changes<'py>(
        &self,
        py: Python<'py>,
        transaction: &Bound<'py, PyAny>,
        timestamp: u32,
        offset: u64,
    ) -> PyResult<Bound<'py, PyList>> {
        let operation = self.operation()?;
        let changes = PyList::empty(py);
        self.each(|row| {
            let image = |image: &Option<RowImage<'_, '_>>| match image {
                Some(image) => self.values(py, row, image).map(Some),
                None => Ok(None),
            };
            changes.append(Change {
                transaction: transaction.clone().unbind(),
                table: self.table.clone_ref(py),
                operation,
                before: image(&row.before)?,
                after: image(&row.after)?,
                timestamp,
                offset,
            })
        })?;
        Ok(changes)
    }

    /// Each row as python-mysql-replication has it: dicts of values, and of why a value is None.
    fn compat<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = PyList::empty(py);
        self.each(|row| {
            let made = PyDict::new(py);
            let images = match (&row.before, &row.after) {
                (Some(before), Some(after)) => [
                    Some((before, intern!(py, "before_values"), intern!(py, "before_none_sources"))),
                    Some((after, intern!(py, "after_values"), intern!(py, "after_none_sources"))),
                ],
                (Some(image), None) | (None, Some(image)) => {
                    [Some((image, intern!(py, "values"), intern!(py, "none_sources"))), None]
                }
                (None, None) => [None, None],
            };
            for (image, values_name, sources_name) in images.into_iter().flatten() {
                let (values, sources) = self.compat_values(py, row, image)?;
                made.set_item(values_name, values)?;
                made.set_item(sources_name, sources)?;
            }
            all.append(made)
        })?;
        Ok(all)
    }
}

impl PythonRows {
    /// The values of an image by the names of columns; a column that the image does not have is left out.
    fn values(&self, py: Python<'_>, row: &Row<'_, '_>, image: &RowImage<'_, '_>) -> PyResult<Py<PyDict>> {
        let table = self.table.get();
        let dict = table.row(py)?;
        let mut cells = 0;
        for (cell, name) in image.cells().filter_map(|cell| Some((cell, table.names.get(cell.index)?))) {
            cells += 1;
            if !matches!(cell.content, CellContent::Null) {
                dict.set_item(name, made(py, table, row, &cell, Style::Ours)?.value)?;
            }
        }
        if cells < table.names.len() {
            for (_, name) in table.names.iter().enumerate().filter(|(index, _)| image.cell(*index).is_none())
            {
                dict.del_item(name)?;
            }
        }
        Ok(dict.unbind())
    }

    /// The values of all columns, None for those that the image does not have; and, by column, why a value is None.
    fn compat_values<'py>(
        &self,
        py: Python<'py>,
        row: &Row<'_, '_>,
        image: &RowImage<'_, '_>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let table = self.table.get();
        let values = table.compat_row(py)?;
        let sources = PyDict::new(py);
        for (index, name) in table.compat_names.iter().enumerate() {
            let Some(cell) = image.cell(index) else {
                sources.set_item(name, intern!(py, "cols bitmap"))?;
                continue;
            };
            if matches!(cell.content, CellContent::Null) {
                sources.set_item(name, intern!(py, NULL_SOURCE))?;
                continue;
            }
            let made = made(py, table, row, &cell, Style::Compat)?;
            values.set_item(name, made.value)?;
            if let Some(source) = made.none_source {
                sources.set_item(name, source)?;
            }
        }
        Ok((values, sources))
    }
}

/// Whether the rows are of this table: equal tables share one schema.
pub(crate) fn is_of(table: &Table, content: &RowsContent) -> bool {
    Arc::ptr_eq(&table.schema_of_rows, &content.schema)
}
