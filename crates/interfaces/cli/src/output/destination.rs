//! Which file an `--output` means, and whether it may be written.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{OutputTarget, exists, live_index};
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;

/// The value of `--output`: a folder, a file, or `-`.
#[derive(Debug, Clone)]
pub(crate) enum Destination {
    /// `-`
    Stdout,
    /// A folder, file or device.
    Path(PathBuf),
}

impl From<OsString> for Destination {
    fn from(argument: OsString) -> Self {
        if argument == "-" { Destination::Stdout } else { Destination::Path(argument.into()) }
    }
}

impl Destination {
    /// Whether the result itself goes to standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Destination::Stdout)
    }

    /// Where the result of each log goes, if it may go there.
    ///
    /// # Errors
    ///
    /// A problem with the command line as a whole; a problem with one target is in that target's place.
    pub(crate) fn targets(&self, logs: &[LogPath], force: bool) -> Result<Vec<Result<OutputTarget>>> {
        let path = match self {
            Destination::Stdout if logs.len() > 1 => {
                return Err(CommandFailure::of(
                    &OutputTarget::Stdout,
                    format_args!("can't take {} logs, expected one; a folder takes many", logs.len()),
                ));
            }
            Destination::Stdout => return Ok(vec![Ok(stdout_of_a_log()?)]),
            Destination::Path(path) => path,
        };
        let paths = if path.is_dir() { in_folder(path, logs)? } else { vec![one_file(path, logs)?] };
        let inputs: Vec<_> = logs.iter().filter_map(|log| log.metadata().ok().flatten()).collect();
        Ok(paths.into_iter().map(|path| target(path, &inputs, force)).collect())
    }

    /// Where one log goes that is made of all these.
    pub(crate) fn target(&self, logs: &[LogPath], force: bool) -> Result<OutputTarget> {
        match self {
            Destination::Stdout => stdout_of_a_log(),
            Destination::Path(path) => {
                let inputs: Vec<_> = logs.iter().filter_map(|log| log.metadata().ok().flatten()).collect();
                target(path.clone(), &inputs, force)
            }
        }
    }
}

fn stdout_of_a_log() -> Result<OutputTarget> {
    if io::stdout().is_terminal() {
        return Err(CommandFailure::of(
            &OutputTarget::Stdout,
            "is a terminal; a binary log belongs into a file or pipe",
        ));
    }
    Ok(OutputTarget::Stdout)
}

/// The logs keep their names in a folder.
fn in_folder(folder: &Path, logs: &[LogPath]) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = Vec::with_capacity(logs.len());
    for log in logs {
        let name = match log {
            LogPath::File(path) => path.file_name(),
            LogPath::Stdin => None,
        };
        let Some(name) = name else {
            return Err(CommandFailure::of(log, "has no file name to keep; --output must be a file"));
        };
        let path = folder.join(name);
        if paths.contains(&path) {
            return Err(CommandFailure::of(&path.display(), "two logs of this name would go there"));
        }
        paths.push(path);
    }
    Ok(paths)
}

fn one_file(path: &Path, logs: &[LogPath]) -> Result<PathBuf> {
    let name = &path.display();
    let named_as_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    match path.try_exists() {
        Ok(false) if logs.len() > 1 || named_as_folder => {
            Err(CommandFailure::of(name, format_args!("there is no such folder; mkdir {name} makes it")))
        }
        _ if logs.len() > 1 => {
            Err(CommandFailure::of(name, format_args!("is no folder, expected one for {} logs", logs.len())))
        }
        _ => Ok(path.to_path_buf()),
    }
}

/// Examines the file, device or pipe that is at `path` now.
pub(crate) fn target(path: PathBuf, inputs: &[Metadata], force: bool) -> Result<OutputTarget> {
    let name: &dyn Display = &path.display();
    let there = match fs::metadata(&path) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(CommandFailure::of(name, error)),
    };
    match &there {
        Some(there) if there.is_dir() => {
            return Err(CommandFailure::of(name, "is a folder, expected a file"));
        }
        Some(there) if !there.is_file() => return Ok(OutputTarget::Device(path)),
        Some(there) if inputs.iter().any(|input| is_same_file(input, there)) => {
            return Err(CommandFailure::of(name, "is an input; a log is never written over"));
        }
        _ => {}
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        let folder = folder.display();
        return Err(CommandFailure::of(
            name,
            format_args!("there is no folder {folder}; mkdir -p {folder} makes it"),
        ));
    }
    let index = live_index::listing(&path).map_err(|error| CommandFailure::of(name, error))?;
    if let Some(index) = index {
        let index = index.display();
        return Err(CommandFailure::of(
            name,
            format_args!("{index} lists it: a server's own log is never replaced, not even with --force"),
        ));
    }
    // A link that leads nowhere is something, too.
    if path.symlink_metadata().is_ok() && !force {
        return Err(exists(name));
    }
    Ok(OutputTarget::File { path, replace: force })
}

fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}
