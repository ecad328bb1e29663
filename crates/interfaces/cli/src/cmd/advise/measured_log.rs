//! A log that is measured: a file, a pipe, or a part of a server's log.

use std::fmt;

use binlogz_encryption::Keyring;
use binlogz_flow::Input;

use super::server::SampledServerLog;
use crate::failure::Result;
use crate::log_path::LogPath;

/// A log that is measured.
#[derive(Debug)]
pub(super) enum MeasuredLog {
    Path(LogPath),
    Server(Box<SampledServerLog>),
}

impl fmt::Display for MeasuredLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeasuredLog::Path(path) => path.fmt(f),
            MeasuredLog::Server(log) => log.fmt(f),
        }
    }
}

impl MeasuredLog {
    pub(super) fn size(&self) -> Result<Option<u64>> {
        match self {
            MeasuredLog::Path(path) => path.size(),
            MeasuredLog::Server(log) => Ok(Some(log.size)),
        }
    }

    pub(super) fn open(&self, keyring: Option<&Keyring>) -> Result<Input> {
        match self {
            MeasuredLog::Path(path) => path.open(keyring),
            MeasuredLog::Server(log) => log.open(),
        }
    }
}
