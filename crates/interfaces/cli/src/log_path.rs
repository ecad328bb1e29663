//! A log named on the command line: a file, a log in an archive, or `-` for standard input.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use binlogz_archive::part::BlockRun;
use binlogz_binlog::gtid::GtidSet;
use binlogz_encryption::{Error as EncryptionError, Keyring};
use binlogz_flow::Input;

use crate::erased;
use crate::failure::{CommandFailure, Result, warn};
use binlogz_archive::input as archived;

/// Where a log is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogPath {
    /// `-`
    Stdin,
    /// A file, FIFO or device; or a log in an archive.
    File(PathBuf),
}

impl From<OsString> for LogPath {
    fn from(argument: OsString) -> Self {
        if argument == "-" { LogPath::Stdin } else { LogPath::File(argument.into()) }
    }
}

impl fmt::Display for LogPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogPath::Stdin => f.write_str("standard input"),
            LogPath::File(path) => path.display().fmt(f),
        }
    }
}

impl LogPath {
    /// Opens it for the pipeline; an encrypted one with a key of the keyring.
    pub(crate) fn open(&self, keyring: Option<&Keyring>) -> Result<Input> {
        self.open_input(keyring).map_err(|error| CommandFailure::with_encryption(self, &error))
    }

    /// Opens the log without the parts of an archived log that the caller doesn't need.
    pub(crate) fn open_part(
        &self,
        keyring: Option<&Keyring>,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
    ) -> Result<Input> {
        if let LogPath::File(path) = self
            && let Some(archived) = archived::find(path).map_err(|error| self.failure(&error))?
        {
            let input = archived.input_of(is_wanted).map_err(|error| self.failure(&error))?;
            return match keyring {
                Some(keyring) => input.decrypted(keyring),
                None => Ok(input),
            }
            .map_err(|error| CommandFailure::with_encryption(self, &error));
        }
        self.open(keyring)
    }

    /// Opens the log as [`LogPath::open`] does, for callers that say themselves which log an error is about.
    pub(crate) fn open_input(&self, keyring: Option<&Keyring>) -> Result<Input, EncryptionError> {
        let input = match self {
            LogPath::Stdin if io::stdin().is_terminal() => {
                return Err(io::Error::other("is a terminal, expected a binary log").into());
            }
            LogPath::Stdin => Input::stdin()?,
            LogPath::File(path) => match archived::find(path)? {
                Some(archived) => archived.input(),
                None if path.is_dir() => {
                    let folder = path.display().to_string();
                    let said = format!(
                        "is a directory, expected a binary log; name the logs in it: {}/binlog.0*",
                        folder.trim_end_matches('/')
                    );
                    return Err(io::Error::new(io::ErrorKind::IsADirectory, said).into());
                }
                None => Input::open(path)?,
            },
        };
        match keyring {
            Some(keyring) => input.decrypted(keyring),
            None => Ok(input),
        }
    }

    /// Metadata of the log in the file system; `None` for standard input and for a log in an archive.
    pub(crate) fn metadata(&self) -> Result<Option<Metadata>> {
        let LogPath::File(path) = self else { return Ok(None) };
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match archived::find(path) {
                Ok(Some(_)) => Ok(None),
                Ok(None) => Err(self.failure(&error)),
                Err(error) => Err(self.failure(&error)),
            },
            metadata => metadata.map(Some).map_err(|error| self.failure(&error)),
        }
    }

    /// The transactions of a log in an archive.
    pub(crate) fn archived_gtids(&self) -> Option<GtidSet> {
        let LogPath::File(path) = self else { return None };
        archived::find(path).ok()??.gtids()
    }

    /// Bytes to read; `None` where that can't be known before.
    pub(crate) fn size(&self) -> Result<Option<u64>> {
        if let LogPath::File(path) = self
            && let Some(archived) = archived::find(path).map_err(|error| self.failure(&error))?
        {
            return Ok(Some(archived.size()));
        }
        Ok(self.metadata()?.filter(Metadata::is_file).map(|metadata| metadata.len()))
    }

    fn file(&self) -> Option<&Path> {
        match self {
            LogPath::Stdin => None,
            LogPath::File(path) => Some(path),
        }
    }

    fn failure(&self, error: &io::Error) -> CommandFailure {
        CommandFailure::of(self, error)
    }
}

/// Replaces archives by their logs, and warns if values were erased from some. Refuses `-` in more than one place: it can be read only once.
pub(crate) fn resolve(logs: &mut Vec<LogPath>) -> Result<()> {
    let mut resolved = Vec::new();
    for log in logs.drain(..) {
        match log {
            LogPath::Stdin => resolved.push(log),
            LogPath::File(path) => {
                let masked = archived::masked(std::slice::from_ref(&path));
                masked
                    .map_err(|error| CommandFailure::of_archive(&error))?
                    .iter()
                    .for_each(|line| warn(line));
                let logs = archived::expand([path]).map_err(|error| CommandFailure::of_archive(&error))?;
                resolved.extend(logs.into_iter().map(LogPath::File));
            }
        }
    }
    *logs = resolved;
    erased::warn_of(logs.iter().filter_map(LogPath::file));
    check_stdin_once(logs.as_slice())
}

/// Refuses `-` in more than one place.
pub(crate) fn check_stdin_once<'a>(logs: impl IntoIterator<Item = &'a LogPath>) -> Result<()> {
    match logs.into_iter().filter(|log| **log == LogPath::Stdin).count() {
        0 | 1 => Ok(()),
        count => Err(CommandFailure::of(&LogPath::Stdin, format_args!("named {count} times, expected once"))),
    }
}
