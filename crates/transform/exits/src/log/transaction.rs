//! The events of a transaction, kept until it ends: its GTID event, which comes first, has its length.

use std::io::Read;

use binlogz_binlog::event::{AnyGtidEvent, QueryEvent, StatusVariables, rewrite_transaction_length};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, Framing, HeaderFlags, frame::encode_event};
use binlogz_payload::{Spool, SpoolMemory};

use super::sink::{LogSink, SinkFailure};
use crate::error::ExitError;
use crate::statement::control::Savepoints;

/// Memory for a transaction; the rest is in a temporary file.
const MEMORY: usize = 8 << 20;
/// Sequence number, domain and flags of MariaDB's GTID event, and six bytes more: one that announces nothing.
const MARIADB_GTID_SIZE: usize = 19;
/// Where the flags are in it.
const MARIADB_FLAGS_OFFSET: usize = 12;

/// A transaction that has begun.
pub(super) struct MaskedTransaction {
    /// The GTID event, of any kind.
    gtid: Option<(EventHeader, Vec<u8>)>,
    events: Spool,
    size: u64,
    /// Whether BEGIN is among the events, or an event that takes its place.
    pub(super) has_begun: bool,
    /// The header of the event that ended it, if that one was left out.
    pub(super) left_out_end: Option<EventHeader>,
    pub(super) savepoints: Savepoints,
}

/// Why a transaction isn't written.
pub(super) enum NotWritten {
    Failed(ExitError),
    ReaderGone,
}

impl From<SinkFailure> for NotWritten {
    fn from(failure: SinkFailure) -> Self {
        match failure {
            SinkFailure::ReaderGone => NotWritten::ReaderGone,
            SinkFailure::Spill(error) => NotWritten::Failed(ExitError::Spill(error)),
        }
    }
}

impl<E: Into<ExitError>> From<E> for NotWritten {
    fn from(error: E) -> Self {
        NotWritten::Failed(error.into())
    }
}

impl MaskedTransaction {
    pub(super) fn new() -> Self {
        MaskedTransaction {
            gtid: None,
            events: Spool::new(&SpoolMemory::new(MEMORY), Vec::new()),
            size: 0,
            has_begun: false,
            left_out_end: None,
            savepoints: Savepoints::default(),
        }
    }

    pub(super) fn begin_with(&mut self, header: &EventHeader, body: &[u8]) {
        self.gtid = Some((*header, body.to_vec()));
    }

    /// Adds an event.
    pub(super) fn add(
        &mut self,
        (header, body): (&EventHeader, &[u8]),
        checksum: ChecksumAlgorithm,
    ) -> Result<(), ExitError> {
        let event_size = u32::try_from(HEADER_SIZE + body.len()).ok();
        let event_size =
            event_size.filter(|size| *size <= binlogz_binlog::EVENT_SIZE_MAX).ok_or_else(|| {
                binlogz_binlog::Error::invalid("masked event", "size", body.len(), "at most 1 GiB")
            })?;
        let header = EventHeader { event_size, ..*header };
        self.events.append(&header.encode()).map_err(ExitError::Spill)?;
        self.events.append(body).map_err(ExitError::Spill)?;
        self.size += u64::from(event_size) + checksum.size() as u64;
        Ok(())
    }

    /// Writes it. One whose statement was left out is empty then, so that its GTID is there. Its logical clock counts after the
    /// transaction with the sequence number `clock`.
    pub(super) fn write(mut self, sink: &mut LogSink, clock: i64) -> Result<(), NotWritten> {
        self.complete(sink.checksum())?;
        if let Some((header, body)) = self.gtid.take() {
            let body = if header.event_type == EventType::MARIADB_GTID {
                body
            } else {
                let body = with_clock(&header, body, clock)?;
                self.with_length(&header, &body, sink.checksum())?
            };
            sink.event(&header, &body)?;
        }
        let mut reader = self.events.reader(0..self.events.size());
        let mut header = [0; HEADER_SIZE];
        let mut left = self.events.size();
        let mut body = Vec::new();
        while left > 0 {
            reader.read_exact(&mut header).map_err(ExitError::Spill)?;
            let header = EventHeader::decode(&header)?;
            let size = u64::from(header.event_size).saturating_sub(HEADER_SIZE as u64);
            body.clear();
            (&mut reader).take(size).read_to_end(&mut body).map_err(ExitError::Spill)?;
            left = left.saturating_sub(u64::from(header.event_size));
            sink.event(&header, &body)?;
        }
        Ok(())
    }

    /// Ends the transaction, if the event that did so was left out.
    fn complete(&mut self, checksum: ChecksumAlgorithm) -> Result<(), ExitError> {
        let Some(header) = self.left_out_end else { return Ok(()) };
        if !self.has_begun {
            match &mut self.gtid {
                // Nothing of it is there.
                None => return Ok(()),
                Some((gtid, body)) if gtid.event_type == EventType::MARIADB_GTID => begins(body),
                Some(_) => self.add_statement(&header, b"BEGIN", checksum)?,
            }
        }
        self.add_statement(&header, b"COMMIT", checksum)
    }

    fn add_statement(
        &mut self,
        header: &EventHeader,
        statement: &[u8],
        checksum: ChecksumAlgorithm,
    ) -> Result<(), ExitError> {
        let query = QueryEvent {
            thread_id: 0,
            exec_time: 0,
            error_code: 0,
            status_variables: StatusVariables(b""),
            database: b"",
            statement,
        };
        let flags = HeaderFlags::default();
        let header = EventHeader { event_type: EventType::QUERY, flags, ..*header };
        self.add((&header, &query.encode()?), checksum)
    }

    /// The body of the GTID event with the length of the transaction.
    fn with_length(
        &self,
        header: &EventHeader,
        body: &[u8],
        checksum: ChecksumAlgorithm,
    ) -> Result<Vec<u8>, ExitError> {
        let event = encode_event(*header, body, ChecksumAlgorithm::NONE);
        let cut = binlogz_binlog::Error::Truncated { needed: event.len() as u64, left: 0 };
        let frame = Framing::new().next_frame(&event)?.ok_or(cut)?.verify()?;
        let mut rewritten = Vec::new();
        // The frame has no checksum, which counts.
        rewrite_transaction_length(&frame, self.size + checksum.size() as u64, &mut rewritten)?;
        Ok(rewritten.split_off(HEADER_SIZE.min(rewritten.len())))
    }
}

/// The body of a GTID event whose logical clock counts after the transaction with this sequence number.
fn with_clock(header: &EventHeader, body: Vec<u8>, clock: i64) -> Result<Vec<u8>, ExitError> {
    if clock <= 0 {
        return Ok(body);
    }
    let event = AnyGtidEvent::decode(&body, header.event_type)?;
    let counted = event.and_then(|event| {
        let clock = event.logical_clock()?.counted_after(clock);
        Some(event.with_logical_clock(clock).encode())
    });
    Ok(counted.transpose()?.unwrap_or(body))
}

/// Makes of MariaDB's GTID event one that also takes the place of BEGIN, and that announces nothing.
fn begins(body: &mut Vec<u8>) {
    body.resize(MARIADB_GTID_SIZE, 0);
    body.iter_mut().skip(MARIADB_FLAGS_OFFSET).for_each(|byte| *byte = 0);
}
