//! Where a result goes: a file that appears only when it is whole, a device, or standard output.
//!
//! [`Destination`] decides which file the output goes to and which files must not be replaced; [`AtomicFile`] writes it.

mod destination;
mod live_index;

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use binlogz_atomic_file::{AtomicFile, ExistingFile};

use crate::failure::{CommandFailure, Result};

pub(crate) use destination::{Destination, target};

/// A place to write to that passed all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputTarget {
    /// Standard output.
    Stdout,
    /// A device or FIFO: written as it is.
    Device(PathBuf),
    /// A regular file.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Whether an existing file may be replaced.
        replace: bool,
    },
}

impl fmt::Display for OutputTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutputTarget::Stdout => f.write_str("standard output"),
            OutputTarget::Device(path) | OutputTarget::File { path, .. } => path.display().fmt(f),
        }
    }
}

impl OutputTarget {
    /// Begins to write a file that does not reveal a log's rows.
    pub(crate) fn create(&self) -> Result<OpenOutput<'_>> {
        self.create_with(REPORT_MODE, None)
    }

    /// Begins to write text printed from a log, which holds rows.
    pub(crate) fn create_printed(&self) -> Result<OpenOutput<'_>> {
        self.create_with(PRINTED_MODE, None)
    }

    /// Begins to write a log. If it is made from a file, the output takes over that file's permissions and
    /// modification time; until it is complete, only users who may read the original can read it.
    pub(crate) fn create_log(&self, made_from: Option<&Metadata>) -> Result<OpenOutput<'_>> {
        let widest = made_from.map_or(LOG_MODE, |from| from.permissions().mode());
        self.create_with(LOG_MODE & (widest | OWNER), made_from)
    }

    /// Begins to write. `mode` is the mode of a new file, as chmod counts, before the user's umask. A file takes over
    /// permissions and modification time of the one it is made from, if there is one.
    pub(crate) fn create_with(&self, mode: u32, made_from: Option<&Metadata>) -> Result<OpenOutput<'_>> {
        let failure = |error: io::Error| CommandFailure::writing(self, &error);
        let inner = match self {
            // Not std's stdout: that looks for the ends of lines.
            OutputTarget::Stdout => {
                OutputWay::Direct(io::stdout().as_fd().try_clone_to_owned().map_err(failure)?.into())
            }
            OutputTarget::Device(path) => {
                OutputWay::Direct(OpenOptions::new().write(true).open(path).map_err(failure)?)
            }
            OutputTarget::File { path, .. } => {
                OutputWay::Temporary(AtomicFile::begin(path, mode).map_err(failure)?)
            }
        };
        Ok(OpenOutput { target: self, inner, made_from: made_from.cloned() })
    }
}

/// The mode of a new report, before the user's umask.
const REPORT_MODE: u32 = 0o666;
/// The mode of a new log, which holds rows, before the user's umask: as mysqld makes its own.
const LOG_MODE: u32 = 0o640;
/// The mode of output printed from a log: only the user who prints it may read it.
const PRINTED_MODE: u32 = 0o600;
/// The owner's right to write a file.
const OWNER: u32 = 0o600;

/// Creates a file for output printed or copied from logs, or empties the existing one, which keeps its mode.
pub(crate) fn create_printed(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(PRINTED_MODE).open(path)
}

/// An output being written. Dropped before [`OpenOutput::finish`], it leaves no file.
#[derive(Debug)]
pub(crate) struct OpenOutput<'a> {
    target: &'a OutputTarget,
    inner: OutputWay,
    made_from: Option<Metadata>,
}

#[derive(Debug)]
enum OutputWay {
    Direct(File),
    Temporary(AtomicFile),
}

impl OpenOutput<'_> {
    /// Writes to the same place, for a caller that needs a writer of its own.
    pub(crate) fn writer(&self) -> io::Result<File> {
        match &self.inner {
            OutputWay::Direct(file) => file.try_clone(),
            OutputWay::Temporary(file) => file.file().try_clone(),
        }
    }

    /// The file, if what was written can be changed.
    pub(crate) fn seekable(&mut self) -> Option<&mut AtomicFile> {
        match &mut self.inner {
            OutputWay::Direct(_) => None,
            OutputWay::Temporary(file) => Some(file),
        }
    }

    /// How many bytes were written, if the output is a file.
    pub(crate) fn size(&self) -> io::Result<u64> {
        match &self.inner {
            OutputWay::Direct(file) => file.metadata().map(|file| file.len()),
            OutputWay::Temporary(file) => file.file().metadata().map(|file| file.len()),
        }
    }

    /// Removes everything beyond `size` bytes, if the output is a file.
    pub(crate) fn truncate(&mut self, size: u64) -> io::Result<()> {
        let OutputWay::Temporary(file) = &mut self.inner else { return Ok(()) };
        file.file().set_len(size)?;
        file.file().seek(SeekFrom::Start(size)).map(drop)
    }

    /// All is written: a file takes its place now.
    pub(crate) fn finish(self) -> Result<()> {
        let OpenOutput { target, inner, made_from } = self;
        let (OutputWay::Temporary(temporary), OutputTarget::File { replace, .. }) = (inner, target) else {
            return Ok(());
        };
        let failure = |error: io::Error| CommandFailure::writing(target, &error);
        if let Some(made_from) = made_from {
            take_over(temporary.file(), &made_from).map_err(failure)?;
        }
        let existing = if *replace { ExistingFile::Replace } else { ExistingFile::Refuse };
        temporary.finish(existing).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(target),
            _ => failure(error),
        })
    }
}

/// As gzip and zstd do: who may read the result, and of when it is.
fn take_over(file: &File, made_from: &Metadata) -> io::Result<()> {
    file.set_permissions(fs::Permissions::from_mode(made_from.permissions().mode() & 0o777))?;
    file.set_modified(made_from.modified()?)
}

/// The complaint about a file that must not be replaced.
fn exists(target: &dyn fmt::Display) -> CommandFailure {
    CommandFailure::of(target, "exists already; --force replaces it")
}

impl Write for OpenOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.inner {
            OutputWay::Direct(file) => file.write(bytes),
            OutputWay::Temporary(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
