//! Exports a server's new transactions every so often. Exported transactions are known by their GTIDs, so a run that ends
//! at any moment goes on where it stopped, and only the manifest is kept between runs.
//!
//! ```text
//! ask       the server, for all transactions but those of the manifest    connection → events
//! receive   into an encrypted file without a name, so much at a time      events → logs with gaps
//! export    as logs of any other kind                                     logs → a run
//! ```
//!
//! The caller waits, tries again, and handles signals.

use std::io::{BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_archive::Scratch;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{EventType, MAGIC};
use binlogz_source::wire::session::{ClientProfile, DumpStart};
use binlogz_source::{ConnectOptions, DumpOptions, RemoteLog};

use super::{ExportSummary, Exporter};
use crate::error::{Error, Result};
use crate::logs::{Logs, ReceivedParts};

/// Bytes received before they are exported: a server with months of logs is exported in parts.
pub const RECEIVED_MAX: u64 = 512 << 20;

/// A part of a server's log that was received.
#[derive(Debug)]
pub struct ReceivedPart {
    logs: Vec<ReceivedParts>,
    /// Whether the server may have more now.
    pub has_more: bool,
}

/// Why a server could not be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The connection broke, or the server can't be reached: it may come back.
    #[error("{0}")]
    Source(binlogz_source::Error),
    /// Anything else.
    #[error("{0}")]
    Other(Error),
}

impl From<Error> for FollowError {
    fn from(error: Error) -> Self {
        FollowError::Other(error)
    }
}

/// A log that is being received.
struct Log {
    name: String,
    file: BufWriter<Scratch>,
    /// Where the log's bytes end that were received.
    end: u64,
    gaps: Vec<Range<u64>>,
    /// Whether it has more than its format description.
    has_events: bool,
}

impl ReceivedPart {
    /// Receives the transactions that are not among these, up to the end of the server's log, or until there are this many
    /// bytes and a transaction ends.
    ///
    /// # Errors
    ///
    /// A server that can't be reached or refuses, a connection that breaks, a full disk.
    pub fn receive(
        connect: &ConnectOptions,
        exported: GtidSet,
        bytes_max: u64,
    ) -> std::result::Result<ReceivedPart, FollowError> {
        let start =
            DumpStart::GtidSet { gtid_set: exported, name: String::new(), position: MAGIC.len() as u64 };
        let dump = DumpOptions {
            profile: ClientProfile::Mysqlbinlog,
            server_id: 0,
            start,
            non_blocking: true,
            verify_checksums: true,
        };
        let mut remote = RemoteLog::open(connect, dump).map_err(FollowError::Source)?;
        let mut logs: Vec<ReceivedParts> = Vec::new();
        let mut log: Option<Log> = None;
        let mut size = 0;
        let mut has_more = false;
        while let Some(piece) = remote.next_piece().map_err(FollowError::Source)? {
            let kind = piece.header.event_type;
            if piece.begins && kind == EventType::FORMAT_DESCRIPTION {
                // A server repeats it; the one that begins a log has a name of its own.
                let name = String::from_utf8_lossy(piece.name).into_owned();
                if log.as_ref().is_some_and(|log| log.name == name) {
                    continue;
                }
                logs.extend(log.take().map(Log::finish).transpose()?.flatten());
                log = Some(Log::begin(name)?);
            } else if !piece.is_stored() {
                continue;
            }
            let begins_transaction = piece.begins
                && [EventType::GTID, EventType::GTID_TAGGED, EventType::ANONYMOUS_GTID].contains(&kind);
            if size > bytes_max && begins_transaction {
                has_more = true;
                break;
            }
            let Some(log) = &mut log else { continue };
            let offset = match kind {
                // The sender gives it position 0 where the log was joined in its middle.
                EventType::FORMAT_DESCRIPTION => MAGIC.len() as u64,
                _ => piece.offset,
            };
            size += piece.bytes.len() as u64;
            log.write(piece.begins.then_some(offset), piece.bytes)?;
            log.has_events |= kind != EventType::FORMAT_DESCRIPTION;
        }
        logs.extend(log.map(Log::finish).transpose()?.flatten());
        Ok(ReceivedPart { logs, has_more })
    }

    /// Whether the server had nothing new.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// Exports the received transactions. `schema`: CREATE TABLE statements for columns that the log doesn't name. `warn` gets a line for
    /// what can't be read or isn't known.
    ///
    /// # Errors
    ///
    /// As [`super::TableExport::run`].
    pub fn export(
        self,
        exporter: &mut Exporter<'_>,
        schema: Option<&str>,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<ExportSummary> {
        let logs = Logs::of_received(self.logs, warn);
        let logs = match schema {
            Some(text) => logs.with_schema(text.to_owned()).map_err(|error| Error::Log(error.to_string()))?,
            None => logs,
        };
        exporter.run(&logs)
    }
}

impl Log {
    fn begin(name: String) -> Result<Self> {
        let file = Scratch::new().map_err(|error| Error::Log(format!("make a temporary file: {error}")))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        file.write_all(&MAGIC).map_err(full)?;
        Ok(Log { name, file, end: MAGIC.len() as u64, gaps: Vec::new(), has_events: false })
    }

    /// `offset`: where in the log an event begins; `None`: the bytes go on with the last one.
    fn write(&mut self, offset: Option<u64>, bytes: &[u8]) -> Result<()> {
        if let Some(offset) = offset.filter(|offset| *offset > self.end) {
            self.gaps.push(self.end..offset);
            self.end = offset;
        }
        self.file.write_all(bytes).map_err(full)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn finish(self) -> Result<Option<ReceivedParts>> {
        let Log { name, file, gaps, has_events, .. } = self;
        let file = file.into_inner().map_err(|error| full(error.into_error()))?;
        Ok(has_events.then(|| ReceivedParts { name, file: Arc::new(file), gaps }))
    }
}

fn full(error: std::io::Error) -> Error {
    Error::Log(format!("write a temporary file: {error}"))
}
