//! Logs as they may leave by a policy: masked once, into an encrypted temporary file, and read there as often as queries want.
//!
//! ```text
//! log → MaskedLogs → the file of all masked logs → Source::Masked → whatever reads logs
//! ```
//!
//! Whatever reads masked logs has no other bytes: neither an archive's index, nor a schema, nor a server's rows tell it what the logs
//! themselves don't. So conditions, counts, errors, plans and listings can only tell of masked values.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use binlogz_archive::Scratch;
use binlogz_exits::{ExitCounts, ExitPolicy, MaskedLogs};
use binlogz_flow::Input;
use serde::{Deserialize, Serialize};

use super::{Log, Logs, Source};
use crate::error::{Error, Result};

/// Bytes that are copied at a time.
const CHUNK: usize = 256 << 10;

/// How logs were masked.
#[derive(Debug)]
pub(super) struct LogExits {
    /// Names the policy and its key.
    policy: String,
    counts: ExitCounts,
    /// A log that stood encrypted where it was read.
    encrypted: Option<String>,
}

impl LogExits {
    pub(super) fn encrypted(&self) -> Option<&str> {
        self.encrypted.as_deref()
    }
}

/// A masked log, for another process: what it is called, and its part of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedMaskedLog {
    path: String,
    name: String,
    part: Range<u64>,
}

impl Logs {
    /// The logs as they may leave by a policy: masked, in this file, which is empty. They have neither a schema nor a base.
    ///
    /// # Errors
    ///
    /// Logs that can't be read, or that the policy doesn't fit; with a schema, logs that aren't in their order. A file that can't be
    /// written.
    pub fn masked(self, policy: ExitPolicy, mut file: Scratch) -> Result<Self> {
        let encrypted = self.encrypted()?.map(str::to_owned);
        let tables = self.tables_for_masks().map_err(|error| Error::Log(error.to_string()))?;
        let gate = MaskedLogs::completing(policy, tables);
        let pass = self.pass(|_| true);
        let mut parts = Vec::new();
        let mut begin = 0;
        for index in 0..self.len() {
            let end = begin + self.mask(&gate, index, &mut file)?;
            parts.push(begin..end);
            begin = end;
        }
        drop(pass);
        let exits = LogExits { policy: gate.policy_digest(), counts: gate.counts(), encrypted };
        let file = Arc::new(file);
        let masked = self.logs.iter().zip(parts).map(|(log, part)| Log {
            path: log.path.clone(),
            name: log.name.clone(),
            source: Source::Masked(Arc::clone(&file), part),
            size_then: None,
            size_read: OnceLock::new(),
        });
        let logs = masked.collect();
        let Logs { warn, unread, unread_is_error, meter, .. } = self;
        Ok(Logs { logs, exits: Some(exits), warn, unread, unread_is_error, meter, ..Logs::default() })
    }

    /// Writes the masked form of a log; returns how many bytes it has.
    fn mask(&self, gate: &MaskedLogs, index: usize, file: &mut Scratch) -> Result<u64> {
        let path = self.path(index);
        let failed = |error: io::Error| Error::Log(format!("{path}: {error}"));
        let input = self.open(index, &mut |_| true).map_err(|error| Error::Log(error.to_string()))?;
        match gate.log_at(index, path, input).map_err(failed)? {
            Input::Stream(mut masked) => copied(&mut masked, file).map_err(|error| error.of(path)),
            Input::Live(mut masked) => copied(&mut masked, file).map_err(|error| error.of(path)),
            Input::Places(_) | Input::Seek { .. } | Input::Sparse { .. } | Input::Pipe(_) => {
                Err(Error::Fault("the gate of --exits gave something else than a stream".to_owned()))
            }
        }
    }

    /// Whether they leave by a policy.
    pub(crate) fn are_masked(&self) -> bool {
        self.exits.is_some() || self.logs.iter().any(|log| matches!(log.source, Source::Masked(..)))
    }

    /// What was masked and left out, if they leave by a policy.
    pub fn exit_counts(&self) -> Option<&ExitCounts> {
        self.exits.as_ref().map(|exits| &exits.counts)
    }

    /// Names the policy by which they leave, if there is one, and its key.
    pub(crate) fn policy_digest(&self) -> Option<&str> {
        self.exits.as_ref().map(|exits| exits.policy.as_str())
    }

    /// A list of masked logs, with which another process finds them in the file.
    ///
    /// # Errors
    ///
    /// Logs that aren't masked.
    pub fn masked_list(&self) -> Result<String> {
        let listed = self.logs.iter().map(|log| match &log.source {
            Source::Masked(_, part) => {
                Ok(ListedMaskedLog { path: log.path.clone(), name: log.name.clone(), part: part.clone() })
            }
            Source::Path(_) | Source::Spooled(..) | Source::Received(..) => {
                Err(Error::Fault(format!("{}: isn't masked", log.path)))
            }
        });
        let listed: Vec<_> = listed.collect::<Result<_>>()?;
        serde_json::to_string(&listed).map_err(|error| Error::Fault(error.to_string()))
    }

    /// The masked logs of a list, in the file that another process wrote. `warn` gets a line for what can't be read.
    ///
    /// # Errors
    ///
    /// A text that is no list.
    pub fn of_masked(list: &str, file: Scratch, warn: impl Fn(&str) + Send + Sync + 'static) -> Result<Self> {
        let listed: Vec<ListedMaskedLog> = serde_json::from_str(list)
            .map_err(|error| Error::Log(format!("list of masked logs: {error}")))?;
        let file = Arc::new(file);
        let logs = listed.into_iter().map(|ListedMaskedLog { path, name, part }| Log {
            path,
            name,
            source: Source::Masked(Arc::clone(&file), part),
            size_then: None,
            size_read: OnceLock::new(),
        });
        Ok(Logs { logs: logs.collect(), warn: Box::new(warn), ..Logs::default() })
    }
}

/// Why a masked log could not be copied.
enum CopyError {
    /// The log can't be read, or may not leave.
    Read(io::Error),
    /// The file can't be written.
    Write(io::Error),
}

impl CopyError {
    fn of(self, path: &str) -> Error {
        match self {
            CopyError::Read(error) => Error::Log(format!("{path}: {error}")),
            CopyError::Write(error) => Error::Temporary(error.to_string()),
        }
    }
}

/// Copies all bytes; returns how many they are.
fn copied(from: &mut dyn Read, to: &mut dyn Write) -> Result<u64, CopyError> {
    let mut chunk = vec![0; CHUNK];
    let mut size = 0;
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(size),
            Ok(count) => {
                to.write_all(chunk.get(..count).unwrap_or_default()).map_err(CopyError::Write)?;
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(CopyError::Read(error)),
        }
    }
}
