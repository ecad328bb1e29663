//! A Transaction_payload event as the events in it, for clients that receive a log and meet one.
//!
//! The caller passes the whole event, as a server sends it. It gets the events inside with their headers, and without
//! checksums, which events in a payload don't have. They are held as a whole, so there is a limit.

use std::io::{Error as IoError, ErrorKind as IoErrorKind};
use std::ptr;

use ::binlogz_payload::{Error as PayloadError, Expander, PayloadStream};
use binlogz_binlog::{
    ChecksumAlgorithm, Error as BinlogError, EventHeader, EventType, EventVisitor, Framing, StoredChecksum,
};

use crate::handles::Handles;
use crate::status::{CallTrouble, Result, binlogz_status, called, pointed};

/// The longest event: its header has four bytes for the size.
const EVENT_SIZE_MAX: usize = u32::MAX as usize;
/// The most bytes of events where the caller names none.
const MEMORY_MAX: usize = 1 << 30;

/// The events of a compressed transaction. Closed with binlogz_payload_close().
pub struct binlogz_payload {
    _address: u8,
}

static OPEN: Handles<binlogz_payload, Events> = Handles::new();

/// The events of a payload.
struct Events {
    events: Vec<u8>,
    given: usize,
}

/// Opens a Transaction_payload event: event_length bytes from its header on. With checksum, its last four bytes are a CRC-32,
/// which is compared (binlog_checksum; the format description event of the log says whether). The events in it may take
/// memory_max bytes; 0 means 1 GiB.
///
/// BINLOGZ_BAD_INPUT: it is another event, its checksum is wrong, what it holds isn't whole events, or is larger than memory_max.
/// After any failure the handle is NULL.
///
/// # Safety
///
/// event points to event_length bytes, payload to where the handle goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_payload_open(
    event: *const u8,
    event_length: usize,
    checksum: bool,
    memory_max: usize,
    payload: *mut *mut binlogz_payload,
) -> binlogz_status {
    called(|| {
        // SAFETY: the caller keeps to it.
        let payload = unsafe { pointed(payload, "payload") }?;
        *payload = ptr::null_mut();
        if event.is_null() {
            return Err(CallTrouble::argument("event is NULL"));
        }
        if event_length > EVENT_SIZE_MAX {
            let what = format!("event_length is {event_length}, expected at most {EVENT_SIZE_MAX}");
            return Err(CallTrouble::argument(what));
        }
        // SAFETY: it isn't null, and the caller says how many bytes there are.
        let bytes = unsafe { std::slice::from_raw_parts(event, event_length) };
        let events = expanded(bytes, checksum, if memory_max == 0 { MEMORY_MAX } else { memory_max })?;
        *payload = OPEN.open(binlogz_payload { _address: 0 }, Events { events, given: 0 });
        Ok(binlogz_status::BINLOGZ_OK)
    })
}

/// The next event of the transaction, its header first: event and event_length, which hold until the payload is closed.
/// BINLOGZ_END after the last one. Without an event they are NULL and 0.
///
/// # Safety
///
/// event and event_length point to where the answer goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_payload_next(
    payload: *mut binlogz_payload,
    event: *mut *const u8,
    event_length: *mut usize,
) -> binlogz_status {
    called(|| {
        // SAFETY: the caller keeps to it.
        let (event, event_length) =
            unsafe { (pointed(event, "event")?, pointed(event_length, "event_length")?) };
        (*event, *event_length) = (ptr::null(), 0);
        OPEN.with(payload, "payload", |payload| {
            let rest = payload.events.get(payload.given..).unwrap_or_default();
            // They were whole when the payload was opened.
            let frame = Framing::new().inside_payload().next_frame(rest).map_err(CallTrouble::input)?;
            let Some(frame) = frame else { return Ok(binlogz_status::BINLOGZ_END) };
            let frame = frame.unchecked().map_err(CallTrouble::input)?;
            *event = frame.bytes().as_ptr();
            *event_length = frame.bytes().len();
            payload.given += frame.bytes().len();
            Ok(binlogz_status::BINLOGZ_OK)
        })
    })
}

/// Closes a payload; its events are gone. NULL, or one that was closed before, is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn binlogz_payload_close(payload: *mut binlogz_payload) {
    OPEN.close(payload);
}

/// The events of a payload, one after the other.
fn expanded(bytes: &[u8], checksum: bool, memory_max: usize) -> Result<Vec<u8>> {
    let framing = Framing::with_checksum(match checksum {
        true => ChecksumAlgorithm::CRC32,
        false => ChecksumAlgorithm::NONE,
    });
    let frame = framing.next_frame(bytes).map_err(CallTrouble::input)?;
    let whole = frame.filter(|frame| frame.header().event_size as usize == bytes.len());
    let Some(frame) = whole else {
        let size = EventHeader::decode(bytes).map_err(CallTrouble::input)?.event_size;
        let found = bytes.len();
        return Err(CallTrouble::input(format!(
            "the event has {found} bytes, expected {size}, as its header says"
        )));
    };
    let found = frame.header().event_type;
    if found != EventType::TRANSACTION_PAYLOAD {
        let expected = EventType::TRANSACTION_PAYLOAD;
        return Err(CallTrouble::input(format!("the event is a {found}, expected a {expected}")));
    }
    let frame = frame.verify().map_err(CallTrouble::input)?;
    let mut held = HeldEvents { events: Vec::new(), memory_max };
    let mut expand = || {
        let mut expander = Expander::new()?;
        let mut stream = PayloadStream::begin(0, frame.header(), framing);
        stream.body(frame.body(), &mut expander, &mut held)?;
        stream.end(&expander)
    };
    expand().map_err(|error| match error {
        PayloadError::Io(error) => CallTrouble::system(error),
        error => CallTrouble::input(error),
    })?;
    Ok(held.events)
}

/// Keeps the events of a payload, as long as they fit.
struct HeldEvents {
    events: Vec<u8>,
    memory_max: usize,
}

impl HeldEvents {
    fn keep(&mut self, bytes: &[u8]) -> Result<(), PayloadError> {
        if bytes.len() > self.memory_max.saturating_sub(self.events.len()) {
            let found = format!("more than {}", self.memory_max);
            return Err(BinlogError::invalid(
                "transaction payload",
                "size",
                found,
                "at most memory_max bytes",
            )
            .into());
        }
        // The caller's process goes on where there is no memory.
        self.events
            .try_reserve(bytes.len())
            .map_err(|error| IoError::new(IoErrorKind::OutOfMemory, error))?;
        self.events.extend_from_slice(bytes);
        Ok(())
    }
}

impl EventVisitor<StoredChecksum> for HeldEvents {
    type Error = PayloadError;

    fn begin(&mut self, _offset: u64, header: &EventHeader) -> Result<(), PayloadError> {
        self.keep(&header.encode())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), PayloadError> {
        self.keep(bytes)
    }

    fn end(&mut self, _checksum: StoredChecksum) -> Result<(), PayloadError> {
        Ok(())
    }
}
