//! Batches of events as lists of Python tuples.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use binlogz_binlog::EventType;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::row::TableSchema;
use binlogz_source::wire::session::{ClientProfile, DumpStart, ReplicaProfile};
use binlogz_source::{ConnectOptions, DumpOptions};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyConnectionResetError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::feed::{BUG, Feed, FeedTrouble, NextBatch, expand};
use crate::gather::{EventContent, GatheredEvent};
use crate::interrupt::{LOOK_PERIOD, interruptible};
use crate::rows::{PythonRows, is_of};
use crate::selection::GtidSelection;
use crate::table::Table;
use crate::{bad, broken};

/// Tables that are remembered.
const TABLES_MAX: usize = 1024;

/// Events, a batch at a time.
#[pyclass(frozen, module = "binlogz")]
pub(crate) struct Stream {
    feed: Mutex<Option<Arc<Feed>>>,
    /// The logs; none: a server sends them.
    paths: Vec<PathBuf>,
    tables: Mutex<HashMap<usize, Py<Table>>>,
}

/// The events of files, archives and logs in archives, without the transactions in `start_after`.
#[pyfunction]
#[pyo3(signature = (paths, start_after=None))]
pub(crate) fn open_logs(py: Python<'_>, paths: Vec<PathBuf>, start_after: Option<&str>) -> PyResult<Stream> {
    let left_out = gtid_set(start_after)?;
    let paths = interruptible(py, move |_| expand(paths))?.map_err(broken)?;
    Ok(Stream::new(Feed::of_logs(paths.clone(), left_out), paths))
}

/// The events that a server sends. It begins after the transactions of `gtid_set`, or else at a position. With a `uuid` it
/// introduces itself as a replica, otherwise as mysqlbinlog. Events of the types in `unread` are left out, but for the last of a batch;
/// so are all transactions but those in `until`, if it is there.
#[pyfunction]
#[pyo3(signature = (options, server_id, blocking, log, position, gtid_set, uuid, heartbeat_ms, host, port, silence_s, unread, until=None))]
#[expect(clippy::too_many_arguments, reason = "called from one place, which names them")]
pub(crate) fn open_server(
    py: Python<'_>,
    options: Vec<(String, String)>,
    server_id: u32,
    blocking: bool,
    log: String,
    position: u64,
    gtid_set: Option<&str>,
    uuid: Option<&str>,
    heartbeat_ms: u64,
    host: String,
    port: u16,
    silence_s: Option<u64>,
    unread: Vec<u8>,
    until: Option<&str>,
) -> PyResult<Stream> {
    let mut connect = connect_options(&options)?;
    connect.timeouts.silence = silence_s.map(Duration::from_secs);
    let start = match gtid_set {
        Some(text) => DumpStart::GtidSet { gtid_set: self::gtid_set(Some(text))?, name: log, position: 4 },
        None => DumpStart::Position { name: log, position },
    };
    let profile = match uuid {
        Some(uuid) => ClientProfile::Replica(ReplicaProfile {
            server_uuid: uuid.parse().map_err(bad)?,
            heartbeat_period: Duration::from_millis(heartbeat_ms),
            semi_sync: false,
            host,
            port,
        }),
        None => ClientProfile::Mysqlbinlog,
    };
    let unread = unread.into_iter().map(EventType).collect();
    let dump = DumpOptions { profile, server_id, start, non_blocking: !blocking, verify_checksums: true };
    let only = until.map(|text| self::gtid_set(Some(text))).transpose()?;
    let selection = GtidSelection::of(only);
    let feed =
        interruptible(py, move |_| Feed::of_server(&connect, dump, unread, selection))?.map_err(broken)?;
    Ok(Stream::new(feed, Vec::new()))
}

/// A connection's options by their names in option files.
pub(crate) fn connect_options(options: &[(String, String)]) -> PyResult<ConnectOptions> {
    let mut connect = ConnectOptions::new("binlogz");
    for (name, value) in options {
        if !connect.set(name, Some(value)).map_err(bad)? {
            return Err(bad(format!("a connection has no option {name}")));
        }
    }
    Ok(connect)
}

fn gtid_set(text: Option<&str>) -> PyResult<GtidSet> {
    text.map_or_else(|| Ok(GtidSet::default()), |text| text.parse().map_err(bad))
}

#[pymethods]
impl Stream {
    fn __iter__(stream: PyRef<'_, Self>) -> PyRef<'_, Self> {
        stream
    }

    /// The next batch: a list of tuples (type, timestamp, server id, size, size of the body, next position, flags, log, offset, whether it is
    /// in a payload, content). It waits without the interpreter's lock.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(feed) = feed else { return Ok(None) };
        loop {
            match py.detach(|| feed.next(LOOK_PERIOD)) {
                NextBatch::Batch(Ok(batch)) => return self.list(py, batch).map(Some),
                NextBatch::Batch(Err(FeedTrouble::Bad(error) | FeedTrouble::Unread(error))) => {
                    return Err(bad(error));
                }
                NextBatch::Batch(Err(FeedTrouble::Broken(error))) => return Err(broken(error)),
                NextBatch::Batch(Err(FeedTrouble::Lost(error))) => {
                    return Err(PyConnectionResetError::new_err(error));
                }
                NextBatch::Batch(Err(FeedTrouble::Bug)) => return Err(PyRuntimeError::new_err(BUG)),
                NextBatch::NotYet => py.check_signals()?,
                NextBatch::End => return Ok(None),
            }
        }
    }

    /// Ends the stream, also for threads that wait for its next batch, and the connection to a server.
    fn close(&self) {
        let feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(feed) = feed {
            feed.close();
        }
    }
}

impl Stream {
    fn new(feed: Feed, paths: Vec<PathBuf>) -> Self {
        Stream { feed: Mutex::new(Some(Arc::new(feed))), paths, tables: Mutex::default() }
    }

    /// The rest of the stream, and its logs, for another reader; `None`: it was closed, or taken before.
    pub(crate) fn taken(&self) -> Option<(Arc<Feed>, Vec<PathBuf>)> {
        let feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some((feed, self.paths.clone()))
    }

    fn list<'py>(&self, py: Python<'py>, batch: Vec<GatheredEvent>) -> PyResult<Bound<'py, PyList>> {
        let mut log: Option<(Arc<str>, Bound<'py, PyString>)> = None;
        let list = PyList::empty(py);
        for event in batch {
            let name = match &log {
                Some((last, name)) if Arc::ptr_eq(last, &event.log) => name.clone(),
                _ => {
                    let name = PyString::new(py, &event.log);
                    log = Some((Arc::clone(&event.log), name.clone()));
                    name
                }
            };
            let header = event.header;
            let content = self.content(py, event.content)?;
            let fields = (
                header.event_type.0,
                header.timestamp,
                header.server_id,
                header.event_size,
                event.body_size,
                event.next_position,
                header.flags.0,
                name,
                event.offset,
                event.inside,
                content,
            );
            list.append(fields.into_pyobject(py)?)?;
        }
        Ok(list)
    }

    fn content<'py>(&self, py: Python<'py>, content: EventContent) -> PyResult<Bound<'py, PyAny>> {
        Ok(match content {
            EventContent::Rows(rows) => {
                let table = self.table(py, &rows.schema)?;
                debug_assert!(is_of(table.get(), &rows));
                PythonRows::new(rows, table).into_bound_py_any(py)?
            }
            EventContent::TableMap { id, schema } => {
                let table = self.table(py, &schema)?;
                (id.0, table).into_bound_py_any(py)?
            }
            EventContent::Gtid(gtid) => (
                gtid.gtid,
                gtid.may_have_statements,
                gtid.last_committed,
                gtid.sequence_number,
                gtid.immediate,
                gtid.original,
            )
                .into_bound_py_any(py)?,
            EventContent::Query(query) => PyTuple::new(
                py,
                [
                    query.thread_id.into_bound_py_any(py)?,
                    query.exec_time.into_bound_py_any(py)?,
                    query.error_code.into_bound_py_any(py)?,
                    PyBytes::new(py, &query.database).into_any(),
                    PyBytes::new(py, &query.statement).into_any(),
                    PyBytes::new(py, &query.status_variables).into_any(),
                ],
            )?
            .into_any(),
            EventContent::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
        })
    }

    /// The list is not locked while Python works: its garbage collector may run anything, this stream and other threads among it.
    fn tables(&self) -> MutexGuard<'_, HashMap<usize, Py<Table>>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one object of a table as a log describes it.
    fn table(&self, py: Python<'_>, schema: &Arc<TableSchema>) -> PyResult<Py<Table>> {
        // The table keeps its schema, so that no other has the address.
        let key = Arc::as_ptr(schema) as usize;
        let known = self.tables().get(&key).map(|table| table.clone_ref(py));
        if let Some(table) = known {
            return Ok(table);
        }
        let table = Py::new(py, Table::new(py, schema)?)?;
        let kept = table.clone_ref(py);
        let mut tables = self.tables();
        let too_many = if tables.len() == TABLES_MAX { std::mem::take(&mut *tables) } else { HashMap::new() };
        let same = tables.insert(key, kept);
        drop(tables);
        drop((too_many, same));
        Ok(table)
    }
}
