//! Goes to a place in a log without reading what stands in front of it.
//!
//! ```text
//! magic | format description, and what belongs to the log's head | passed over | event at `start`
//! ```
//!
//! The head is what tells how to read the rest: format descriptions, previous GTIDs, rotate events, and the first
//! event behind them (mysqlbinlog looks at it too). Positions come from people: the rest is passed over only where an
//! event certainly begins at `start`, or the file ends before it. Otherwise the log is read from its begin, which finds
//! out what is wrong. Reads headers, and one event; leaves the rest to the batcher.

use std::io::{self, Read};
use std::ops::Range;

use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, Framing, MAGIC};

use crate::batcher::FORMAT_DESCRIPTION_SIZE_MAX;
use crate::input::{Input, PlacesReader, ReadAt};

/// An event up to this size is read to see whether its checksum is right. Of a larger one the position it tells of
/// itself has to do.
const CHECKED_SIZE_MAX: u32 = 1 << 20;

impl Input {
    /// The same log, of which what stands between its head and `start` need not be read: the first event behind the
    /// head is the one at `start`. It stays as it is where that can't be told, and where it can't be read at any place.
    #[must_use]
    pub fn starting_at(self, start: u64) -> Input {
        match self {
            Input::Places(places) => match passed_over(places.as_ref(), start) {
                Ok(Some(passed)) => Input::Seek { places, passed },
                // What can't be read is told by whoever reads the log.
                Ok(None) | Err(_) => Input::Places(places),
            },
            other => other,
        }
    }
}

/// What lies between the head and `start`; `None`: it has to be read.
fn passed_over(places: &dyn ReadAt, start: u64) -> io::Result<Option<Range<u64>>> {
    if read(places, 0, MAGIC.len())? != MAGIC {
        return Ok(None);
    }
    let mut framing = None;
    let mut offset = MAGIC.len() as u64;
    loop {
        if offset >= start {
            return Ok(None);
        }
        let Ok(header) = EventHeader::decode(&read(places, offset, HEADER_SIZE)?) else { return Ok(None) };
        let event_type = header.event_type;
        if event_type == EventType::FORMAT_DESCRIPTION {
            framing = format_description(places, offset, &header)?;
        }
        let Some(framing) = &framing else { return Ok(None) };
        if framing.check_header(&header).is_err() {
            return Ok(None);
        }
        offset += u64::from(header.event_size);
        let is_head = matches!(
            event_type,
            EventType::FORMAT_DESCRIPTION | EventType::PREVIOUS_GTIDS | EventType::ROTATE
        );
        if !is_head {
            let passes = offset < start && is_event(places, start, framing)?;
            return Ok(passes.then_some(offset..start));
        }
    }
}

/// The framing that the format description at `offset` announces, if it is whole.
fn format_description(places: &dyn ReadAt, offset: u64, header: &EventHeader) -> io::Result<Option<Framing>> {
    if header.event_size > FORMAT_DESCRIPTION_SIZE_MAX {
        return Ok(None);
    }
    let event = read(places, offset, header.event_size as usize)?;
    let frame = Framing::new().next_frame(&event).ok().flatten().and_then(|frame| frame.verify().ok());
    let description = frame.and_then(|frame| FormatDescription::decode_frame(&frame).ok());
    Ok(description.map(|description| Framing::of(&description)))
}

/// Whether an event begins at `start`, or the file ends there or before.
fn is_event(places: &dyn ReadAt, start: u64, framing: &Framing) -> io::Result<bool> {
    let bytes = read(places, start, HEADER_SIZE)?;
    if bytes.is_empty() {
        return Ok(true);
    }
    let Ok(header) = EventHeader::decode(&bytes) else { return Ok(false) };
    if framing.check_header(&header).is_err() || header.event_type.name().is_none() {
        return Ok(false);
    }
    if framing.checksum() != ChecksumAlgorithm::NONE && header.event_size <= CHECKED_SIZE_MAX {
        let event = read(places, start, header.event_size as usize)?;
        let frame = framing.next_frame(&event).ok().flatten();
        return Ok(frame.is_some_and(|frame| frame.verify().is_ok()));
    }
    // On the wire it has 32 bits, also behind 4 GiB.
    let end = start + u64::from(header.event_size);
    Ok(header.end_log_pos == end as u32)
}

/// The bytes at `offset`, fewer at the end of the file.
fn read(places: &dyn ReadAt, offset: u64, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    PlacesReader { places, offset, left: size as u64 }.read_to_end(&mut bytes)?;
    Ok(bytes)
}
