//! Answers questions about a log before processing it: how long it is, and whether it has certain
//! transactions. Reads headers and GTID events, skips everything else, and reports no errors except that the
//! log could not be read to its end.

use std::io;

use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventHeader, EventType, Framing, MAGIC};

use crate::read::input::{Input, ReadAt};
use crate::read::seek::{WINDOW_SIZE, format_description, read};

impl Input {
    /// Whether a transaction whose GTID `is_wanted` begins at `from` or after it. `None`: unknown, because the log can't
    /// be read at any place, or not to its end.
    pub fn has_gtid(&self, from: u64, is_wanted: impl FnMut(&Gtid) -> bool) -> Option<bool> {
        match self {
            // Errors in the log are reported when it is read.
            Input::Places(places) => find(places.as_ref(), from, is_wanted).ok().flatten(),
            _ => None,
        }
    }

    /// Bytes of the log; `None`: unknown without reading it.
    pub fn size(&self) -> Option<u64> {
        let Input::Places(places) = self else { return None };
        // Any existing offset can be requested: the first one that doesn't exist ends the log.
        let is_there = |offset: u64| read(places.as_ref(), offset, 1).map(|byte| !byte.is_empty());
        let (mut size, mut beyond) = (0, 1);
        while is_there(beyond).ok()? {
            (size, beyond) = (beyond, beyond.checked_mul(2)?);
        }
        while size < beyond {
            let middle = size + (beyond - size) / 2;
            match is_there(middle).ok()? {
                true => size = middle + 1,
                false => beyond = middle,
            }
        }
        Some(size)
    }
}

fn find(
    places: &dyn ReadAt,
    from: u64,
    mut is_wanted: impl FnMut(&Gtid) -> bool,
) -> io::Result<Option<bool>> {
    if read(places, 0, MAGIC.len())? != MAGIC {
        return Ok(None);
    }
    let mut framing = Framing::new();
    let mut offset = MAGIC.len() as u64;
    let (mut window, mut window_begin) = (Vec::new(), offset);
    loop {
        let place = |window_begin: u64| usize::try_from(offset - window_begin).unwrap_or(usize::MAX);
        if window.get(place(window_begin)..).is_none_or(|left| left.len() < HEADER_SIZE) {
            (window, window_begin) = (read(places, offset, WINDOW_SIZE)?, offset);
        }
        let bytes = window.get(place(window_begin)..).unwrap_or_default();
        if bytes.len() < HEADER_SIZE {
            // The end, or the incomplete event of a log in use.
            return Ok(Some(false));
        }
        let Ok(header) = EventHeader::decode(bytes) else { return Ok(None) };
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            let Some(found) = format_description(places, offset, &header)? else { return Ok(None) };
            framing = found;
        } else if framing.check_header(&header).is_err() {
            return Ok(None);
        }
        if header.event_type.is_gtid() && offset >= from {
            let event = read(places, offset, header.event_size as usize)?;
            let Some(frame) = framing.next_frame(&event).ok().flatten().and_then(|frame| frame.verify().ok())
            else {
                return Ok(None);
            };
            match AnyGtidEvent::decode(frame.body(), header.event_type) {
                Ok(gtid)
                    if gtid.as_ref().and_then(AnyGtidEvent::gtid).is_some_and(|gtid| is_wanted(&gtid)) =>
                {
                    return Ok(Some(true));
                }
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
        offset += u64::from(header.event_size);
    }
}
