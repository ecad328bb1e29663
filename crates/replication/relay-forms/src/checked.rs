//! Sends stored events as they are, each once its checksum was compared.
//!
//! ```text
//! up to HELD_SIZE_MAX    held, compared, sent
//! larger                 read and compared; read and compared again while it is sent, since the disk may give other bytes then:
//!                        its last bytes are sent only if they still agree
//! ```
//!
//! Events of a log that has no checksums are only framed: nothing in the file tells whether they are damaged.

use std::io::Read;
use std::ops::Range;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{
    Error as BinlogError, EventHeader, EventParser, EventVisitor, Framing, VerifiedChecksum,
};
use binlogz_relay_log::{Error, Result, verified};
use binlogz_store::LogReader;

/// Bytes to read at a time.
const COPY_SIZE: usize = 64 << 10;
/// Events up to this size are held whole. Servers write row events of about 8 KiB, unless a row is larger
/// (`binlog_row_event_max_size`).
const HELD_SIZE_MAX: usize = 1 << 20;

/// Verifies the checksums of whole events.
pub(crate) fn verify(mut events: &[u8], framing: Framing, mut offset: u64) -> Result<()> {
    while !events.is_empty() {
        let frame = verified(events, framing, offset)?;
        let size = frame.bytes().len();
        events = events.get(size..).unwrap_or_default();
        offset += size as u64;
    }
    Ok(())
}

/// Sends the events of a range, which begins and ends between events.
pub(crate) fn copy(
    log: &mut LogReader,
    range: Range<u64>,
    framing: Framing,
    buffer: &mut Vec<u8>,
    mut send: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut at = range.start;
    let mut wanted = COPY_SIZE;
    while at < range.end {
        fill(log, at..range.end, wanted, buffer)?;
        let whole = whole_events(buffer, framing, at)?;
        let events = buffer.get(..whole).unwrap_or_default();
        send(events)?;
        at += whole as u64;
        wanted = COPY_SIZE;
        if whole > 0 {
            continue;
        }
        let header = EventHeader::decode(buffer).map_err(|error| error.at(at, None))?;
        let size = header.event_size as usize;
        let end = at + u64::from(header.event_size);
        if end > range.end || size < HEADER_SIZE {
            // The header was another one when the range was found.
            let cut = BinlogError::Truncated { needed: u64::from(header.event_size), left: range.end - at };
            return Err(cut.at(at, Some(header.event_type)).into());
        }
        if size <= HELD_SIZE_MAX {
            wanted = size;
            continue;
        }
        large(log, at..end, framing, buffer, |_| Ok(()))?;
        large(log, at..end, framing, buffer, &mut send)?;
        at = end;
    }
    Ok(())
}

/// Fills the buffer with the first bytes of a range, at most `size_max` of them.
fn fill(log: &mut LogReader, range: Range<u64>, size_max: usize, buffer: &mut Vec<u8>) -> Result<()> {
    let size = usize::try_from(range.end - range.start).unwrap_or(size_max).min(size_max);
    buffer.resize(size, 0);
    log.seek_to(range.start);
    log.read_exact(buffer).map_err(Error::of_stored)
}

/// The size of the whole events at the front of these bytes, all of which are verified.
fn whole_events(bytes: &[u8], framing: Framing, offset: u64) -> Result<usize> {
    let mut whole = 0;
    while let Some(rest) = bytes.get(whole..).filter(|rest| !rest.is_empty()) {
        let at = |error: BinlogError| error.at(offset + whole as u64, None);
        let Some(frame) = framing.next_frame(rest).map_err(at)? else { break };
        let size = frame.header().event_size as usize;
        verified(rest, framing, offset + whole as u64)?;
        whole += size;
    }
    Ok(whole)
}

/// Sends an event in pieces; its last piece only if its checksum agrees.
fn large(
    log: &mut LogReader,
    range: Range<u64>,
    framing: Framing,
    buffer: &mut Vec<u8>,
    mut send: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut parser = EventParser::new(framing, range.start);
    let mut at = range.start;
    while at < range.end {
        fill(log, at..range.end, COPY_SIZE, buffer)?;
        parser.push(buffer, &mut VerifyOnly)?;
        at += buffer.len() as u64;
        if at == range.end {
            parser.finish()?;
        }
        send(buffer)?;
    }
    Ok(())
}

/// Wants nothing of an event but its verification.
struct VerifyOnly;

impl EventVisitor for VerifyOnly {
    type Error = BinlogError;

    fn begin(&mut self, _: u64, _: &EventHeader) -> Result<(), BinlogError> {
        Ok(())
    }

    fn body(&mut self, _: &[u8]) -> Result<(), BinlogError> {
        Ok(())
    }

    fn end(&mut self, _: VerifiedChecksum) -> Result<(), BinlogError> {
        Ok(())
    }
}
