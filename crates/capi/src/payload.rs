//! A Transaction_payload event as the events in it, for clients that receive a log and meet one.
//!
//! The whole event comes in, as a server sends it; the events inside go out with their headers, and without checksums, which
//! events in a payload don't have. They are held as a whole, so there is a limit.

use ::binlogz_payload::{Error as PayloadError, Expander, PayloadStream};
use binlogz_binlog::{
    ChecksumAlgorithm, Error as BinlogError, EventHeader, EventType, EventVisitor, Framing, StoredChecksum,
};

use crate::status::{Result, Trouble, binlogz_status, called, pointed};

/// The most bytes of events where the caller names none.
const MEMORY_MAX: usize = 1 << 30;

/// The events of a compressed transaction. Closed with binlogz_payload_close().
pub struct binlogz_payload {
    events: Vec<u8>,
    given: usize,
}

/// Opens a Transaction_payload event: event_length bytes from its header on. With checksum, its last four bytes are a CRC-32,
/// which is compared (binlog_checksum; the format description event of the log says whether). The events in it may take
/// memory_max bytes; 0 means 1 GiB.
///
/// BINLOGZ_BAD_INPUT: it is another event, its checksum is wrong, what it holds isn't whole events, or is larger than memory_max.
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
        if event.is_null() {
            return Err(Trouble::argument("event is NULL"));
        }
        // SAFETY: it isn't null, and the caller says how many bytes there are.
        let bytes = unsafe { std::slice::from_raw_parts(event, event_length) };
        let events = expanded(bytes, checksum, if memory_max == 0 { MEMORY_MAX } else { memory_max })?;
        *payload = Box::into_raw(Box::new(binlogz_payload { events, given: 0 }));
        Ok(binlogz_status::BINLOGZ_OK)
    })
}

/// The next event of the transaction, its header first: event and event_length, which hold until the payload is closed.
/// BINLOGZ_END after the last one.
///
/// # Safety
///
/// payload is open; event and event_length point to where the answer goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_payload_next(
    payload: *mut binlogz_payload,
    event: *mut *const u8,
    event_length: *mut usize,
) -> binlogz_status {
    called(|| {
        // SAFETY: the caller keeps to it.
        let payload = unsafe { pointed(payload, "payload") }?;
        // SAFETY: as above.
        let (event, event_length) =
            unsafe { (pointed(event, "event")?, pointed(event_length, "event_length")?) };
        let rest = payload.events.get(payload.given..).unwrap_or_default();
        // They were whole when the payload was opened.
        let frame = Framing::new().inside_payload().next_frame(rest).map_err(Trouble::input)?;
        let Some(frame) = frame else { return Ok(binlogz_status::BINLOGZ_END) };
        let frame = frame.unchecked().map_err(Trouble::input)?;
        *event = frame.bytes().as_ptr();
        *event_length = frame.bytes().len();
        payload.given += frame.bytes().len();
        Ok(binlogz_status::BINLOGZ_OK)
    })
}

/// Closes a payload; its events are gone. NULL is nothing.
///
/// # Safety
///
/// payload is open or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_payload_close(payload: *mut binlogz_payload) {
    if !payload.is_null() {
        // SAFETY: binlogz_payload_open() made it, and the caller doesn't use it again.
        drop(unsafe { Box::from_raw(payload) });
    }
}

/// The events of a payload, one after the other.
fn expanded(bytes: &[u8], checksum: bool, memory_max: usize) -> Result<Vec<u8>> {
    let framing = Framing::with_checksum(match checksum {
        true => ChecksumAlgorithm::CRC32,
        false => ChecksumAlgorithm::NONE,
    });
    let frame = framing.next_frame(bytes).map_err(Trouble::input)?;
    let whole = frame.filter(|frame| frame.header().event_size as usize == bytes.len());
    let Some(frame) = whole else {
        let size = EventHeader::decode(bytes).map_err(Trouble::input)?.event_size;
        let found = bytes.len();
        return Err(Trouble::input(format!(
            "the event has {found} bytes, expected {size}, as its header says"
        )));
    };
    let found = frame.header().event_type;
    if found != EventType::TRANSACTION_PAYLOAD {
        let expected = EventType::TRANSACTION_PAYLOAD;
        return Err(Trouble::input(format!("the event is a {found}, expected a {expected}")));
    }
    let frame = frame.verify().map_err(Trouble::input)?;
    let mut held = Held { events: Vec::new(), memory_max };
    let mut expand = || {
        let mut expander = Expander::new()?;
        let mut stream = PayloadStream::begin(0, frame.header(), framing);
        stream.body(frame.body(), &mut expander, &mut held)?;
        stream.end(&expander)
    };
    expand().map_err(Trouble::input)?;
    Ok(held.events)
}

/// Keeps the events of a payload, as long as they fit.
struct Held {
    events: Vec<u8>,
    memory_max: usize,
}

impl Held {
    fn keep(&mut self, bytes: &[u8]) -> Result<(), PayloadError> {
        if self.events.len() + bytes.len() > self.memory_max {
            let found = format!("more than {}", self.memory_max);
            return Err(BinlogError::invalid(
                "transaction payload",
                "size",
                found,
                "at most memory_max bytes",
            )
            .into());
        }
        self.events.extend_from_slice(bytes);
        Ok(())
    }
}

impl EventVisitor<StoredChecksum> for Held {
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
