//! Answers questions about a log before processing it: how long it is, and whether it has certain
//! transactions. Reads headers and GTID events, skips everything else, and reports no errors except that the
//! log could not be read to its end.

use std::io;

use binlogz_binlog::MAGIC;
use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::gtid::Gtid;

use crate::read::header_walk::{HeaderStep, HeaderWalk};
use crate::read::input::{Input, ReadAt, bytes_at};

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
        let is_there = |offset: u64| bytes_at(places.as_ref(), offset, 1).map(|byte| !byte.is_empty());
        let mut size = 0;
        let mut beyond = 1;
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
    if bytes_at(places, 0, MAGIC.len())? != MAGIC {
        return Ok(None);
    }
    let mut events = HeaderWalk::new(places);
    loop {
        let header = match events.step()? {
            HeaderStep::Event(header) => header,
            HeaderStep::End => return Ok(Some(false)),
            HeaderStep::Unreadable => return Ok(None),
        };
        if header.event_type.is_gtid() && events.offset() >= from {
            let event = events.event(&header)?;
            let Some(frame) = events.verified(&event) else { return Ok(None) };
            let Ok(event) = AnyGtidEvent::decode(frame.body(), header.event_type) else { return Ok(None) };
            if event.as_ref().and_then(AnyGtidEvent::gtid).is_some_and(|gtid| is_wanted(&gtid)) {
                return Ok(Some(true));
            }
        }
    }
}
