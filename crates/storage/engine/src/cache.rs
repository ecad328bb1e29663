//! A transaction that grows: its events as they stand inside a payload, without checksums, at position 0.
//!
//! This is the server's binlog cache: events rolled back to a savepoint are removed from it, and its contents
//! decide whether the transaction is compressed.

use binlogz_binlog::event::{QueryEvent, StatusVariables};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::transaction::TransactionContent;
use binlogz_binlog::{EVENT_SIZE_MAX, EventHeader, EventType, HeaderFlags, TransactionBoundaryParser};

use crate::error::{Error, Result};

/// An event to be appended to a transaction.
#[derive(Debug, Clone, Copy)]
pub struct NewEvent<'a> {
    /// The event's type, which tells the meaning of the body.
    pub event_type: EventType,
    /// Seconds since 1970 at which the statement began.
    pub timestamp: u32,
    /// The header's flags.
    pub flags: HeaderFlags,
    /// Post-header and body, without checksum.
    pub body: &'a [u8],
}

#[derive(Debug, Default)]
pub(crate) struct Cache {
    bytes: Vec<u8>,
    events: u64,
    assembler: TransactionBoundaryParser,
    last: Option<EventHeader>,
    non_transactional: bool,
    savepoints: Vec<Savepoint>,
}

#[derive(Debug)]
struct Savepoint {
    name: Vec<u8>,
    size: usize,
    events: u64,
    assembler: TransactionBoundaryParser,
    last: Option<EventHeader>,
}

impl Cache {
    /// Empties it for the next transaction, which begins with a GTID event.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.events = 0;
        self.assembler = begun();
        self.last = None;
        self.non_transactional = false;
        self.savepoints.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn content(&self) -> &TransactionContent {
        self.assembler.content()
    }

    /// Whether its last event is still to come.
    pub(crate) fn is_open(&self) -> bool {
        self.assembler.is_open()
    }

    pub(crate) fn last(&self) -> Option<&EventHeader> {
        self.last.as_ref()
    }

    pub(crate) fn set_non_transactional(&mut self) {
        self.non_transactional = true;
    }

    pub(crate) fn is_non_transactional(&self) -> bool {
        self.non_transactional
    }

    pub(crate) fn append(&mut self, server_id: u32, event: NewEvent<'_>, max: usize) -> Result<()> {
        let size = HEADER_SIZE + event.body.len();
        if self.bytes.len() + size > max {
            return Err(Error::CacheFull { max });
        }
        if size as u64 + 4 > u64::from(EVENT_SIZE_MAX) {
            return Err(Error::misuse("event", format!("{size} bytes"), "at most 1 GiB"));
        }
        if !self.is_open() && !self.is_empty() {
            return Err(Error::misuse("event", "one after the end of its transaction", "commit first"));
        }
        let header = EventHeader {
            timestamp: event.timestamp,
            event_type: event.event_type,
            server_id,
            event_size: size as u32,
            end_log_pos: 0,
            flags: event.flags,
        };
        self.assembler.feed(&header, event.body);
        self.bytes.extend_from_slice(&header.encode());
        self.bytes.extend_from_slice(event.body);
        self.events += 1;
        self.last = Some(header);
        Ok(())
    }

    /// Remembers this place; a savepoint of the same name is moved.
    pub(crate) fn set_savepoint(&mut self, name: &[u8]) {
        self.savepoints.retain(|savepoint| savepoint.name != name);
        self.savepoints.push(Savepoint {
            name: name.to_vec(),
            size: self.bytes.len(),
            events: self.events,
            assembler: self.assembler.clone(),
            last: self.last,
        });
    }

    fn find_savepoint(&self, name: &[u8]) -> Result<usize> {
        let place = self.savepoints.iter().position(|savepoint| savepoint.name == name);
        place.ok_or_else(|| Error::misuse("savepoint", String::from_utf8_lossy(name), "one that was set"))
    }

    pub(crate) fn release_savepoint(&mut self, name: &[u8]) -> Result<()> {
        let place = self.find_savepoint(name)?;
        self.savepoints.truncate(place);
        Ok(())
    }

    /// Drops the events after a savepoint, which stays.
    pub(crate) fn rollback_to(&mut self, name: &[u8]) -> Result<()> {
        let place = self.find_savepoint(name)?;
        self.savepoints.truncate(place + 1);
        if let Some(savepoint) = self.savepoints.last() {
            self.bytes.truncate(savepoint.size);
            self.events = savepoint.events;
            self.assembler = savepoint.assembler.clone();
            self.last = savepoint.last;
        }
        Ok(())
    }
}

/// The events after the GTID event, which is made when the transaction gets its place.
fn begun() -> TransactionBoundaryParser {
    let mut assembler = TransactionBoundaryParser::new();
    let header = EventHeader {
        timestamp: 0,
        event_type: EventType::GTID,
        server_id: 0,
        event_size: 0,
        end_log_pos: 0,
        flags: HeaderFlags::default(),
    };
    assembler.feed(&header, &[]);
    assembler
}

/// The body of a statement without settings of its own: transaction control.
pub(crate) fn statement(database: &[u8], statement: &[u8]) -> Result<Vec<u8>> {
    let query = QueryEvent {
        // Sessions are no threads of a server.
        thread_id: 0,
        exec_time: 0,
        error_code: 0,
        status_variables: StatusVariables::default(),
        database,
        statement,
    };
    Ok(query.encode()?)
}
