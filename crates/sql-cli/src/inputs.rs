//! How logs are read: what `sql` and `export` have in common.

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use binlogz_encryption::Keyring;
use binlogz_query::{Error, Logs};
use binlogz_recover::{SchemaFile, SchemaFileError};
use clap::Args;

use crate::complain;

#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = above_zero)]
    jobs: Option<NonZeroUsize>,
    /// Read encrypted logs with the keys of this keyring file
    #[arg(long, value_name = "FILE")]
    keyring: Option<PathBuf>,
    /// Take column names and keys, where the logs lack them, from this file of CREATE TABLE statements
    ///
    /// As mysqldump --no-data --databases writes it. Without it such columns are "@1", "@2".
    #[arg(long, value_name = "FILE.sql")]
    schema: Option<PathBuf>,
}

/// Reads a number that is not zero, with the words of binlogz.
pub(crate) fn above_zero(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a number above 0".to_owned())
}

impl InputArgs {
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
    }

    /// The logs at these paths.
    pub(crate) fn logs(&self, paths: Vec<OsString>) -> Result<Logs, Error> {
        let keyring = self.keyring.as_deref().map(open_keyring).transpose()?;
        let paths = paths.into_iter().map(PathBuf::from).collect();
        let logs = Logs::new(paths, keyring, |line| complain(&format!("warning: {line}")))?;
        Ok(match (&self.schema, self.schema_text()?) {
            (Some(path), Some(text)) => logs.with_schema(text).map_err(|error| trouble(path, &error))?,
            _ => logs,
        })
    }

    /// The text of --schema.
    pub(crate) fn schema_text(&self) -> Result<Option<String>, Error> {
        let Some(path) = &self.schema else { return Ok(None) };
        let size = fs::metadata(path).map_err(|error| trouble(path, &error))?.len();
        if size > SchemaFile::SIZE_MAX {
            return Err(trouble(path, &SchemaFileError::TooLarge(size)));
        }
        let bytes = fs::read(path).map_err(|error| trouble(path, &error))?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

pub(crate) fn open_keyring(path: &Path) -> Result<Keyring, Error> {
    Keyring::open(path).map_err(|error| Error::Log(format!("{}: {error}", path.display())))
}

fn trouble(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Log(format!("{}: {error}", path.display()))
}
