//! Walks over the headers of a log that can be read at any place, through a window of bytes that moves along. Bodies are read
//! only on request; of format descriptions it keeps what frames the events after them. What an event means is the caller's.

use std::borrow::Cow;
use std::io;

use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventHeader, EventType, Framing, MAGIC, VerifiedFrame};

use crate::read::batcher::FORMAT_DESCRIPTION_SIZE_MAX;
use crate::read::input::{ReadAt, bytes_at};

/// Bytes read at a time where only headers matter.
const WINDOW_SIZE: usize = 16 << 10;

/// The next thing at a place in a log.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HeaderStep {
    /// The header of an event that fits the log's framing.
    Event(EventHeader),
    /// The end, or the incomplete event of a log in use.
    End,
    /// Bytes that are no event, or a format description that can't be read.
    Unreadable,
}

/// A walk from one event to the next.
pub(crate) struct HeaderWalk<'p> {
    places: &'p dyn ReadAt,
    framing: Framing,
    /// Where the event of the last step begins, and the one after it.
    offset: u64,
    next_offset: u64,
    window: Vec<u8>,
    window_begin: u64,
}

impl<'p> HeaderWalk<'p> {
    /// Starts at the first event of the log.
    pub(crate) fn new(places: &'p dyn ReadAt) -> Self {
        HeaderWalk::from(places, Framing::new(), MAGIC.len() as u64)
    }

    /// Starts at an event within the log.
    pub(crate) fn from(places: &'p dyn ReadAt, framing: Framing, offset: u64) -> Self {
        HeaderWalk { places, framing, offset, next_offset: offset, window: Vec::new(), window_begin: offset }
    }

    /// Where the event of the last step begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the next step looks.
    pub(crate) fn next_offset(&self) -> u64 {
        self.next_offset
    }

    /// Goes to the next event.
    pub(crate) fn step(&mut self) -> io::Result<HeaderStep> {
        self.offset = self.next_offset;
        if self.bytes().len() < HEADER_SIZE {
            (self.window, self.window_begin) =
                (bytes_at(self.places, self.offset, WINDOW_SIZE)?, self.offset);
        }
        let bytes = self.bytes();
        if bytes.len() < HEADER_SIZE {
            return Ok(HeaderStep::End);
        }
        let Ok(header) = EventHeader::decode(bytes) else { return Ok(HeaderStep::Unreadable) };
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            let framing = format_description(self.places, self.offset, &header)?;
            let Some(framing) = framing else { return Ok(HeaderStep::Unreadable) };
            self.framing = framing;
        } else if self.framing.check_header(&header).is_err() {
            return Ok(HeaderStep::Unreadable);
        }
        self.next_offset = self.offset + u64::from(header.event_size);
        Ok(HeaderStep::Event(header))
    }

    /// The bytes of the event of the last step, fewer at the end of the file.
    pub(crate) fn event(&self, header: &EventHeader) -> io::Result<Cow<'_, [u8]>> {
        let size = header.event_size as usize;
        match self.bytes().get(..size) {
            Some(event) => Ok(Cow::Borrowed(event)),
            None => Ok(Cow::Owned(bytes_at(self.places, self.offset, size)?)),
        }
    }

    /// The frame of these bytes, if they are a whole event and its checksum agrees.
    pub(crate) fn verified<'e>(&self, event: &'e [u8]) -> Option<VerifiedFrame<'e>> {
        self.framing.next_frame(event).ok().flatten().and_then(|frame| frame.verify().ok())
    }

    /// The part of the window that begins at the offset.
    fn bytes(&self) -> &[u8] {
        let begin = usize::try_from(self.offset - self.window_begin).unwrap_or(usize::MAX);
        self.window.get(begin..).unwrap_or_default()
    }
}

/// The framing that the format description at `offset` announces, if it is whole.
pub(crate) fn format_description(
    places: &dyn ReadAt,
    offset: u64,
    header: &EventHeader,
) -> io::Result<Option<Framing>> {
    if header.event_size > FORMAT_DESCRIPTION_SIZE_MAX {
        return Ok(None);
    }
    let event = bytes_at(places, offset, header.event_size as usize)?;
    let frame = Framing::new().next_frame(&event).ok().flatten().and_then(|frame| frame.verify().ok());
    let description = frame.and_then(|frame| FormatDescription::decode_frame(&frame).ok());
    Ok(description.map(|description| Framing::of(&description)))
}
