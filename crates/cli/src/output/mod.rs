//! Where a result goes: a file that appears only when it is whole, a device, or standard output.
//!
//! A file is written under another name beside its place, synced, renamed, and its folder synced.
//! Until then nothing is at its place, and what was there is still there. [`Destination`] decides
//! which file that is and what must not be replaced.

mod destination;
mod live_index;

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{Failure, Result};
use crate::interrupt;

pub(crate) use destination::{Destination, target};

/// A place to write to that passed all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// A device or FIFO: written as it is.
    Device(PathBuf),
    /// A regular file.
    File {
        /// Its place.
        path: PathBuf,
        /// Whether what is there may be replaced.
        replace: bool,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Stdout => f.write_str("standard output"),
            Target::Device(path) | Target::File { path, .. } => path.display().fmt(f),
        }
    }
}

impl Target {
    /// Begins to write what says nothing of a log's rows.
    pub(crate) fn create(&self) -> Result<Output<'_>> {
        self.create_with(REPORT_MODE, None)
    }

    /// Begins to write a log. A file takes over permissions and modification time of what it is made
    /// from, where there is one; until it is whole, nobody may read it who may not read that.
    pub(crate) fn create_log(&self, made_from: Option<&Metadata>) -> Result<Output<'_>> {
        let widest = made_from.map_or(LOG_MODE, |from| from.permissions().mode());
        self.create_with(LOG_MODE & (widest | OWNER), made_from)
    }

    /// Begins to write; these may read and write a new file, as chmod counts, before the user's umask. A file takes over
    /// permissions and modification time of what it is made from, where there is one.
    pub(crate) fn create_with(&self, mode: u32, made_from: Option<&Metadata>) -> Result<Output<'_>> {
        let failure = |error: io::Error| Failure::writing(self, &error);
        let inner = match self {
            // Not std's stdout: that looks for the ends of lines.
            Target::Stdout => {
                Inner::Direct(io::stdout().as_fd().try_clone_to_owned().map_err(failure)?.into())
            }
            Target::Device(path) => {
                Inner::Direct(OpenOptions::new().write(true).open(path).map_err(failure)?)
            }
            Target::File { path, .. } => Inner::Temporary(temporary_beside(path, mode).map_err(failure)?),
        };
        Ok(Output { target: self, inner, made_from: made_from.cloned() })
    }
}

/// What temporary files are called; whoever finds one after a crash sees where it came from.
const TEMPORARY_PREFIX: &str = ".binlogz-";

/// What anybody may do with a new report, before the user's umask.
const REPORT_MODE: u32 = 0o666;
/// The same of a log, which holds rows: as mysqld makes its own.
const LOG_MODE: u32 = 0o640;
/// The same of what is printed from a log: whoever prints it may read it.
const PRINTED_MODE: u32 = 0o600;
/// What the owner needs to write a file.
const OWNER: u32 = 0o600;

/// Makes a file for what is printed or copied from logs, or empties the one that is there, which keeps its mode.
pub(crate) fn create_printed(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(PRINTED_MODE).open(path)
}

fn temporary_beside(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let mut unfinished = interrupt::unfinished();
    let file = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(folder_of(path))?;
    unfinished.push(file.path().to_path_buf());
    Ok(file)
}

/// The folder in which a file stands.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Something being written. Dropped before [`Output::finish`], it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    target: &'a Target,
    inner: Inner,
    made_from: Option<Metadata>,
}

#[derive(Debug)]
enum Inner {
    Direct(File),
    Temporary(NamedTempFile),
}

impl Output<'_> {
    /// Writes to the same place, for a caller that needs a writer of its own.
    pub(crate) fn writer(&self) -> io::Result<File> {
        match &self.inner {
            Inner::Direct(file) => file.try_clone(),
            Inner::Temporary(file) => file.as_file().try_clone(),
        }
    }

    /// Bytes of what was written, where it is a file.
    pub(crate) fn size(&self) -> io::Result<u64> {
        match &self.inner {
            Inner::Direct(file) => file.metadata().map(|file| file.len()),
            Inner::Temporary(file) => file.as_file().metadata().map(|file| file.len()),
        }
    }

    /// Takes back what was written beyond `size` bytes, where that can be taken back.
    pub(crate) fn truncate(&mut self, size: u64) -> io::Result<()> {
        let Inner::Temporary(file) = &mut self.inner else { return Ok(()) };
        file.as_file().set_len(size)?;
        file.as_file().seek(SeekFrom::Start(size)).map(drop)
    }

    /// All is written: a file takes its place now.
    pub(crate) fn finish(self) -> Result<()> {
        let Output { target, inner, made_from } = self;
        let (Inner::Temporary(temporary), Target::File { path, replace }) = (inner, target) else {
            return Ok(());
        };
        let failure = |error: io::Error| Failure::writing(target, &error);
        if let Some(made_from) = made_from {
            take_over(temporary.as_file(), &made_from).map_err(failure)?;
        }
        temporary.as_file().sync_all().map_err(failure)?;
        let mut unfinished = interrupt::unfinished();
        let name = temporary.path().to_path_buf();
        let renamed = if *replace { temporary.persist(path) } else { temporary.persist_noclobber(path) };
        unfinished.retain(|unfinished| *unfinished != name);
        drop(unfinished);
        renamed.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(target),
            _ => failure(error.error),
        })?;
        File::open(folder_of(path)).and_then(|folder| folder.sync_all()).map_err(failure)
    }
}

/// As gzip and zstd do: who may read the result, and of when it is.
fn take_over(file: &File, made_from: &Metadata) -> io::Result<()> {
    file.set_permissions(fs::Permissions::from_mode(made_from.permissions().mode() & 0o777))?;
    file.set_modified(made_from.modified()?)
}

/// The complaint about a file that must not be replaced.
fn exists(target: &dyn fmt::Display) -> Failure {
    Failure::of(target, "exists already; --force replaces it")
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.inner {
            Inner::Direct(file) => file.write(bytes),
            // Not the temporary file's own: that adds its name to errors.
            Inner::Temporary(file) => file.as_file().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
