//! Compresses and expands whole logs.

use std::ffi::{c_char, c_int};
use std::io::Error as IoError;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

use binlogz_atomic_file::{AtomicFile, ExistingFile};
use binlogz_flow::{Error as FlowError, Input, Rewrite, Rewriter};
use binlogz_payload::{CompressOptions, CompressionLevel};

use crate::status::{CallTrouble, Result, binlogz_status, called, pointed, text};

/// The mode of a log that is written, less the umask.
const MODE: u32 = 0o640;

/// How much was compressed or expanded.
#[repr(C)]
#[derive(Debug)]
pub struct binlogz_summary {
    /// Transactions that were compressed, or expanded.
    pub transactions: u64,
    /// Bytes of the log that was read.
    pub bytes_read: u64,
    /// Bytes of the log that was written.
    pub bytes_written: u64,
}

/// Compresses each transaction of the log input as MySQL 9.7 would, at zstd's level 1 to 22, and writes the log to output, which
/// appears whole or not at all. What is there already is replaced only with replace. summary may be NULL.
///
/// # Safety
///
/// input and output are strings; summary points to where the answer goes, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_compress(
    input: *const c_char,
    output: *const c_char,
    level: c_int,
    replace: bool,
    summary: *mut binlogz_summary,
) -> binlogz_status {
    called(|| {
        let bad = || CallTrouble::argument(format!("level is {level}, expected 1 to 22"));
        let level = CompressionLevel::new(level.into()).ok_or_else(bad)?;
        let options = CompressOptions { level, ..CompressOptions::default() };
        // SAFETY: the caller keeps to it.
        unsafe { rewrite(input, output, Rewrite::Compress(options), replace, summary) }
    })
}

/// Takes the transactions of the log input out of their payloads, and writes the log to output as binlogz_compress() does.
///
/// # Safety
///
/// input and output are strings; summary points to where the answer goes, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_expand(
    input: *const c_char,
    output: *const c_char,
    replace: bool,
    summary: *mut binlogz_summary,
) -> binlogz_status {
    // SAFETY: the caller keeps to it.
    called(|| unsafe { rewrite(input, output, Rewrite::Expand, replace, summary) })
}

/// # Safety
///
/// As its callers'.
unsafe fn rewrite(
    input: *const c_char,
    output: *const c_char,
    how: Rewrite,
    replace: bool,
    summary: *mut binlogz_summary,
) -> Result<binlogz_status> {
    // SAFETY: the caller keeps to it.
    let (path, output) = unsafe { (Path::new(text(input, "input")?), Path::new(text(output, "output")?)) };
    let writing = |error: IoError| CallTrouble::io(output, &error);
    let input = Input::open(path).map_err(|error| CallTrouble::io(path, &error))?;
    let mut file = AtomicFile::begin(output, MODE).map_err(writing)?;
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let done =
        Rewriter::new(how).workers(workers).run_seekable(input, &mut file).map_err(|error| match &error {
            FlowError::Output(error) => CallTrouble::io(output, error),
            error => CallTrouble::in_log(path, error),
        })?;
    file.finish(if replace { ExistingFile::Replace } else { ExistingFile::Refuse }).map_err(writing)?;
    if !summary.is_null() {
        // SAFETY: the caller keeps to it.
        *unsafe { pointed(summary, "summary") }? = binlogz_summary {
            transactions: done.tally.changed,
            bytes_read: done.bytes_read,
            bytes_written: done.bytes_written,
        };
    }
    Ok(binlogz_status::BINLOGZ_OK)
}
