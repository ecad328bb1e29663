//! Work on whole logs, and questions to servers.

use std::io::{self, Seek, SeekFrom, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use binlogz_atomic_file::{AtomicFile, ExistingFile};
use binlogz_figures::FigureFormat;
use binlogz_flow::error::in_log;
use binlogz_flow::{Error as FlowError, Rewrite, Rewriter, events};
use binlogz_payload::{CompressOptions, CompressionLevel};
use binlogz_source::Connection;
use binlogz_stats::{FileStats, Stats, StatsCollector};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::feed;
use crate::interrupt::{InterruptFlag, interruptible};
use crate::stream::connect_options;
use crate::{bad, broken};

/// The largest transactions that are listed, as `binlogz stats` lists them.
const TOP: usize = 10;
/// The mode of a log that is written, less the umask.
const MODE: u32 = 0o640;

fn workers() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Why a log can't be read.
fn error_in(path: &Path, error: &FlowError) -> PyErr {
    match error {
        FlowError::Input(error) => bad(in_log(&path.display(), error)),
        error => bad(format!("{}: {error}", path.display())),
    }
}

/// The contents of logs in figures, as the JSON document of `binlogz stats --format json`.
#[pyfunction]
pub(crate) fn stats(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<String> {
    let document = interruptible(py, move |interrupted| {
        let mut figures = Stats::new(TOP);
        for path in feed::expand(paths).map_err(broken)? {
            let input = feed::open(&path).map_err(|error| broken(format!("{}: {error}", path.display())))?;
            let mut file = FileStats::new(TOP);
            let workers = workers();
            let ran = events::run(
                input,
                workers,
                || Ok(StatsCollector::new(TOP, false, workers)),
                |collector, batch| Ok(collector.collect(batch)),
                |part| {
                    file.add(part);
                    interrupted.check().map_err(|error| FlowError::Output(error.into()))
                },
                &mut |_| {},
            );
            let events::RunSummary { read, unread } = ran.map_err(|error| error_in(&path, &error))?;
            if !unread.is_empty() {
                return Err(error_in(&path, &FlowError::Unread(Box::new(unread))));
            }
            figures.add(path.display().to_string(), read.bytes_read, file);
        }
        let mut text = Vec::new();
        FigureFormat::Json.write(&figures.sections(), &mut text).map_err(broken)?;
        String::from_utf8(text).map_err(bad)
    });
    document?
}

/// Compresses the transactions of a log. Returns how many were compressed, and the bytes read and written.
#[pyfunction]
pub(crate) fn compress(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    level: i64,
    replace: bool,
) -> PyResult<(u64, u64, u64)> {
    let level =
        CompressionLevel::new(level).ok_or_else(|| bad(format!("level is {level}, expected 1 to 22")))?;
    let options = CompressOptions { level, ..CompressOptions::default() };
    interruptible(py, move |interrupted| {
        rewrite(&path, &output, Rewrite::Compress(options), replace, interrupted)
    })?
}

/// Takes the transactions of a log out of their payloads. Returns how many, and the bytes read and written.
#[pyfunction]
pub(crate) fn expand(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    replace: bool,
) -> PyResult<(u64, u64, u64)> {
    interruptible(py, move |interrupted| rewrite(&path, &output, Rewrite::Expand, replace, interrupted))?
}

/// A file that takes no more once nobody waits for it.
struct Interruptible<'i> {
    file: AtomicFile,
    interrupted: &'i InterruptFlag,
}

impl Write for Interruptible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.interrupted.check()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Interruptible<'_> {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.file.seek(place)
    }
}

fn rewrite(
    path: &Path,
    output: &Path,
    how: Rewrite,
    replace: bool,
    interrupted: &InterruptFlag,
) -> PyResult<(u64, u64, u64)> {
    let writing = |error: std::io::Error| broken(format!("{}: {error}", output.display()));
    let input = feed::open(path).map_err(|error| broken(format!("{}: {error}", path.display())))?;
    let file = AtomicFile::begin(output, MODE).map_err(writing)?;
    let mut file = Interruptible { file, interrupted };
    let done = Rewriter::new(how).workers(workers()).run_seekable(input, &mut file);
    let summary = done.map_err(|error| match &error {
        FlowError::Output(error) => broken(format!("{}: {error}", output.display())),
        error => error_in(path, error),
    })?;
    interrupted.check().map_err(writing)?;
    file.file.finish(if replace { ExistingFile::Replace } else { ExistingFile::Refuse }).map_err(writing)?;
    Ok((summary.tally.changed, summary.bytes_read, summary.bytes_written))
}

/// A server's answer to a statement: a dict for each row.
#[pyfunction]
pub(crate) fn ask<'py>(
    py: Python<'py>,
    options: Vec<(String, String)>,
    statement: &str,
) -> PyResult<Bound<'py, PyList>> {
    let connect = connect_options(&options)?;
    let statement = statement.to_owned();
    let answer = interruptible(py, move |_| {
        let mut connection = Connection::open(&connect)?;
        let rows = connection.query(&statement)?;
        let names = connection.columns().iter().map(|column| column.name.clone());
        Ok::<_, binlogz_source::Error>((names.collect::<Vec<_>>(), rows))
    });
    let (names, rows) = answer?.map_err(broken)?;
    let list = PyList::empty(py);
    for row in rows {
        let dict = PyDict::new(py);
        for (name, value) in names.iter().zip(&row) {
            let name = String::from_utf8_lossy(name);
            dict.set_item(name.as_ref(), value.as_ref().map(|value| PyBytes::new(py, value)))?;
        }
        list.append(dict)?;
    }
    Ok(list)
}
