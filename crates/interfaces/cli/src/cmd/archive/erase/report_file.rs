//! A file with the report of an erasure, and its signature beside it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::report::EraseReport;
use super::report_key::ReportKey;
use crate::failure::{CommandFailure, Result};

/// Where the report goes once it is made.
pub(super) struct ReportFile {
    path: PathBuf,
    /// The signature's file, and the key.
    signature: Option<(PathBuf, ReportKey)>,
}

impl ReportFile {
    /// A new file. All is checked before anything is erased.
    pub(super) fn new(path: &Path, key: Option<&Path>) -> Result<Self> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".sig");
        let signature = match key {
            None => None,
            Some(key) => Some((PathBuf::from(beside), ReportKey::read(key)?)),
        };
        let file = ReportFile { path: path.to_owned(), signature };
        let own = [Some(&file.path), file.signature.as_ref().map(|(path, _)| path)];
        let there = own.into_iter().flatten().find(|path| path.exists()).cloned();
        match there {
            Some(path) => Err(CommandFailure::of(&path.display(), "is there, expected a new file")),
            None => Ok(file),
        }
    }

    pub(super) fn write(&self, report: &EraseReport) -> Result<()> {
        let line = report.line()?;
        put(&self.path, line.as_bytes())?;
        match &self.signature {
            Some((path, key)) => put(path, &key.sign(line.as_bytes())),
            None => Ok(()),
        }
    }
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(|error| CommandFailure::writing(&path.display(), &error))
}
