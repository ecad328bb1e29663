//! The native module of the Python package `binlogz`: events of logs as Python objects.
//!
//! ```text
//! gather  events of logs and servers, payloads opened, as owned events in batches   no interpreter
//! feed    the threads that gather; a queue of batches                               no interpreter
//! known_tables  what tables were at the place of an event                      no interpreter
//! table   a table as Python sees it
//! value   the values of columns
//! rows    the rows of an event
//! stream  batches as lists of Python tuples
//! definitions  the columns of a table over all logs                             no interpreter
//! parts   parts of logs that several processes read             no interpreter
//! survey   what logs have that was not taken yet                     no interpreter
//! selection    transactions and blocks that a reader of parts wants
//! columns, change_frame   columns of row changes that are being built
//! arrow   row changes as Arrow's C stream
//! transactions   transactions as such a stream
//! told_names   columns as table maps have them; statements that may name those
//! spark_types  columns by Spark's names of their types
//! jobs    stats, compress, expand; questions to servers
//! interrupt  work that may take long, while Python looks for signals
//! ```
//!
//! Reading, checking and expanding is done by a thread that never takes the interpreter's lock. The lock is held only
//! while Python objects are made. The objects that users see (transactions, changes, the events of
//! python-mysql-replication) are written in Python, beside this crate's `src`.

// PyO3's macros write the unsafe code of the interpreter's C interface; we write none.
#![allow(unsafe_code)]

mod arrow;
mod change_frame;
mod columns;
mod definitions;
mod feed;
mod gather;
mod interrupt;
mod jobs;
mod known_tables;
mod parts;
mod rows;
mod selection;
mod spark_types;
mod stream;
mod survey;
mod table;
mod text;
mod told_names;
mod transactions;
mod value;

use pyo3::prelude::*;

/// The functions and classes of `binlogz._native`.
#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::arrow::{ArrowRows, arrow_parts, arrow_rows, arrow_stream};
    #[pymodule_export]
    use super::definitions::told_columns;
    #[pymodule_export]
    use super::jobs::{ask, compress, expand, stats};
    #[pymodule_export]
    use super::parts::divide;
    #[pymodule_export]
    use super::rows::{Change, PythonRows};
    #[pymodule_export]
    use super::selection::gtid_set;
    #[pymodule_export]
    use super::stream::{Stream, open_logs, open_server};
    #[pymodule_export]
    use super::survey::survey;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::told_names::met_tables;
}

/// An error as Python's `ValueError` (bytes that can't be read, options) or `OSError`.
fn bad(error: impl std::fmt::Display) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}

fn broken(error: impl std::fmt::Display) -> PyErr {
    pyo3::exceptions::PyOSError::new_err(error.to_string())
}
