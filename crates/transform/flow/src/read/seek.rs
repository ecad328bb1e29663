//! Goes to an offset in a log without reading the bytes before it.
//!
//! ```text
//! magic | format description, and what belongs to the log's head | passed over | event at `start`, or the GTID event
//!                                                                                of the transaction it stands in
//! ```
//!
//! The head tells how to read the rest: format descriptions, previous GTIDs, rotate events, and the first
//! event after them (mysqlbinlog reads it too). Positions come from people, so the rest is only skipped if an
//! event certainly begins at `start`, or the file ends before it. Otherwise the log is read from the
//! beginning, which reports what is wrong. Reads headers, and one event or two; leaves the rest to the
//! batcher.

use std::io;
use std::ops::Range;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, Framing, MAGIC};

use crate::read::header_walk::{HeaderStep, HeaderWalk, format_description};
use crate::read::input::{Input, ReadAt, bytes_at};

/// An event up to this size is read to check its checksum. For a larger one we rely on the position in its
/// header.
const CHECKED_SIZE_MAX: u32 = 1 << 20;

/// Which part of the log is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NeededPart {
    /// The event at the place, and all events after it.
    Event,
    /// The transaction that contains it, from its GTID event on, and all events after it.
    Transaction,
}

impl Input {
    /// Leaves out the bytes between the log's head and `start`: the first event after the head is the one at `start`. The
    /// input is returned unchanged if that can't be determined, or if it can't be read at any place.
    #[must_use]
    pub fn starting_at(self, start: u64) -> Input {
        self.from(start, NeededPart::Event)
    }

    /// As [`Input::starting_at`], but from the GTID event of the transaction that contains the event at
    /// `start`. Finding it means reading the headers of the preceding events, unless it is the one at
    /// `start`. A log without GTID events is unchanged.
    #[must_use]
    pub fn starting_in_transaction(self, start: u64) -> Input {
        self.from(start, NeededPart::Transaction)
    }

    fn from(self, start: u64, wanted: NeededPart) -> Input {
        match self {
            Input::Places(places) => match passed_over(places.as_ref(), start, wanted) {
                Ok(Some(passed)) => Input::Seek { places, passed },
                // The reader of the log reports what can't be read.
                Ok(None) | Err(_) => Input::Places(places),
            },
            other => other,
        }
    }
}

/// The range between the head and the needed part; `None` if it has to be read.
fn passed_over(places: &dyn ReadAt, start: u64, wanted: NeededPart) -> io::Result<Option<Range<u64>>> {
    let Some((head_end, framing)) = head(places, start)? else { return Ok(None) };
    if head_end >= start || !is_event(places, start, &framing)? {
        return Ok(None);
    }
    let begin = match wanted {
        NeededPart::Event => start,
        NeededPart::Transaction => match transaction_begin(places, &framing, head_end, start)? {
            Some(begin) => begin,
            None => return Ok(None),
        },
    };
    Ok(Some(head_end..begin))
}

/// Where the log's head ends, and how the events after it are framed; `None`: unknown, or `start` is in it.
fn head(places: &dyn ReadAt, start: u64) -> io::Result<Option<(u64, Framing)>> {
    if bytes_at(places, 0, MAGIC.len())? != MAGIC {
        return Ok(None);
    }
    let mut framing = None;
    let mut offset = MAGIC.len() as u64;
    loop {
        if offset >= start {
            return Ok(None);
        }
        let Ok(header) = EventHeader::decode(&bytes_at(places, offset, HEADER_SIZE)?) else {
            return Ok(None);
        };
        let event_type = header.event_type;
        if event_type == EventType::FORMAT_DESCRIPTION {
            framing = format_description(places, offset, &header)?;
        }
        let Some(known) = framing else { return Ok(None) };
        if known.check_header(&header).is_err() {
            return Ok(None);
        }
        offset += u64::from(header.event_size);
        let is_head = matches!(
            event_type,
            EventType::FORMAT_DESCRIPTION | EventType::PREVIOUS_GTIDS | EventType::ROTATE
        );
        if !is_head {
            return Ok(Some((offset, known)));
        }
    }
}

/// The last GTID event at or before the event at `start`, searching from `offset`; `None` if there is none,
/// or the events up to there are not valid.
fn transaction_begin(
    places: &dyn ReadAt,
    framing: &Framing,
    offset: u64,
    start: u64,
) -> io::Result<Option<u64>> {
    let first = bytes_at(places, start, HEADER_SIZE)?;
    // The file may end there.
    if first.is_empty() || EventHeader::decode(&first).is_ok_and(|header| header.event_type.is_gtid()) {
        return Ok(Some(start));
    }
    let mut found = None;
    let mut events = HeaderWalk::from(places, *framing, offset);
    while events.next_offset() < start {
        let HeaderStep::Event(header) = events.step()? else { return Ok(None) };
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            return Ok(None);
        }
        if header.event_type.is_gtid() {
            found = Some(events.offset());
        }
    }
    match found {
        Some(begin) if events.next_offset() == start && is_event(places, begin, framing)? => Ok(Some(begin)),
        _ => Ok(None),
    }
}

/// Whether an event begins at `start`, or the file ends there or before.
fn is_event(places: &dyn ReadAt, start: u64, framing: &Framing) -> io::Result<bool> {
    let bytes = bytes_at(places, start, HEADER_SIZE)?;
    if bytes.is_empty() {
        return Ok(true);
    }
    let Ok(header) = EventHeader::decode(&bytes) else { return Ok(false) };
    if framing.check_header(&header).is_err() || header.event_type.name().is_none() {
        return Ok(false);
    }
    if framing.checksum() != ChecksumAlgorithm::NONE && header.event_size <= CHECKED_SIZE_MAX {
        let event = bytes_at(places, start, header.event_size as usize)?;
        let frame = framing.next_frame(&event).ok().flatten();
        return Ok(frame.is_some_and(|frame| frame.verify().is_ok()));
    }
    // On the wire it has 32 bits, even beyond 4 GiB.
    let end = start + u64::from(header.event_size);
    Ok(header.end_log_pos == end as u32)
}
