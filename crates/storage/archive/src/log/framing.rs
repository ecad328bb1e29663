//! Follows the events of a log while its bytes pass by, and says at the end whether all of them are whole: each has the
//! checksum that its bytes give, and the log ends with an event.

use std::io::{self, Write};

use binlogz_binlog::checksum::{CHECKSUM_SIZE, Crc32};
use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, EVENT_TYPE_OFFSET, HEADER_SIZE};
use binlogz_binlog::{ChecksumAlgorithm, Error as BinlogError, EventType, Framing, MAGIC};
use binlogz_flow::ReadAt;

use crate::error::{Error, Result};

/// Bytes of a header in logs of MySQL 3.23, whose first event says so.
const HEADER_SIZE_V1: usize = 13;
/// Bytes of a format description at most: those of servers have less than 300.
const DESCRIPTION_SIZE_MAX: u64 = 64 << 10;

/// The bytes of a log so far.
#[derive(Debug, Default)]
pub(crate) struct LogFraming {
    at: u64,
    /// Where the next event begins, or its header goes on.
    next: u64,
    /// The event that ends there: its begin, size and type.
    event: Option<(u64, u64, EventType)>,
    /// Bytes of a header, or of the magic, that has not come as a whole.
    begun: Vec<u8>,
    state: FramingState,
    /// What the last format description says of the events behind it.
    framing: Framing,
    checking: EventCheck,
    /// The first event that is not as its server wrote it, with its offset.
    damage: Option<BinlogError>,
}

/// What the present event's checksum is compared with.
#[derive(Debug, Default)]
enum EventCheck {
    #[default]
    Nothing,
    /// The bytes of a format description, which says itself whether it has a checksum.
    Description(Vec<u8>),
    /// The checksum of the bytes so far, and the stored one as far as it has come.
    Crc32(Crc32, Vec<u8>),
}

#[derive(Debug, Default)]
enum FramingState {
    #[default]
    Magic,
    Events {
        header_size: usize,
    },
    /// It doesn't begin as a log does: nothing is known of its end.
    NoLog,
    /// Where no header of an event was found.
    Lost(u32),
}

impl LogFraming {
    /// The error at the end of the log, with the offset of the first event that is damaged or cut; `None`: all events are
    /// whole, or it is no log.
    pub(crate) fn torn(mut self) -> Option<BinlogError> {
        match self.damage.take() {
            Some(damage) => Some(damage),
            None => self.cut(),
        }
    }

    /// The error if the log doesn't end with an event.
    fn cut(&self) -> Option<BinlogError> {
        let truncated = |offset, needed, left, event_type| {
            Some(BinlogError::Truncated { needed, left }.at(offset, event_type))
        };
        match self.state {
            FramingState::Magic | FramingState::NoLog => None,
            FramingState::Lost(size) => Some(
                BinlogError::invalid("event header", "event size", size, "at least that of the header")
                    .at(self.next, None),
            ),
            FramingState::Events { .. } if self.at < self.next => {
                let (begin, size, event_type) = self.event?;
                truncated(begin, size, self.at - begin, Some(event_type))
            }
            FramingState::Events { header_size } if !self.begun.is_empty() => {
                truncated(self.next, header_size as u64, self.begun.len() as u64, None)
            }
            FramingState::Events { .. } if self.event.is_none() => {
                truncated(self.next, HEADER_SIZE as u64, 0, None)
            }
            FramingState::Events { .. } => None,
        }
    }

    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        loop {
            let wanted = match self.state {
                FramingState::Magic => MAGIC.len(),
                FramingState::Events { header_size } => header_size,
                FramingState::NoLog | FramingState::Lost(_) => {
                    self.at += bytes.len() as u64;
                    return;
                }
            };
            // The rest of an event.
            let skip = usize::try_from(self.next.saturating_sub(self.at)).unwrap_or(usize::MAX);
            if self.begun.is_empty() && skip > 0 {
                let (passed, rest) = bytes.split_at(skip.min(bytes.len()));
                self.check(passed);
                self.at += passed.len() as u64;
                bytes = rest;
                if self.at == self.next {
                    self.compare();
                }
            }
            if bytes.is_empty() {
                return;
            }
            let (taken, rest) = bytes.split_at(bytes.len().min(wanted - self.begun.len()));
            self.begun.extend_from_slice(taken);
            self.at += taken.len() as u64;
            bytes = rest;
            if self.begun.len() == wanted {
                self.whole();
            }
        }
    }

    /// The magic or a header is there as a whole.
    fn whole(&mut self) {
        let begun = std::mem::take(&mut self.begun);
        let begin = self.at - begun.len() as u64;
        let FramingState::Events { header_size } = self.state else {
            self.next = self.at;
            self.state = match begun == MAGIC {
                true => FramingState::Events { header_size: HEADER_SIZE_V1 },
                false => FramingState::NoLog,
            };
            return;
        };
        let event_type = EventType(begun.get(EVENT_TYPE_OFFSET).copied().unwrap_or_default());
        let size = begun
            .get(EVENT_SIZE_OFFSET..)
            .and_then(|size| size.first_chunk())
            .map_or(0, |size| u32::from_le_bytes(*size));
        // The first event says which header the others have.
        let least = match self.event {
            None if event_type != EventType::START_V3 => HEADER_SIZE,
            _ => header_size,
        };
        if (size as usize) < least {
            self.next = begin;
            self.state = FramingState::Lost(size);
            return;
        }
        self.state = FramingState::Events { header_size: least };
        if self.event.is_none() && ![EventType::FORMAT_DESCRIPTION, EventType::START_V3].contains(&event_type)
        {
            let error = BinlogError::invalid(
                "event header",
                "event type",
                event_type.0,
                "that of a format description",
            );
            self.damage = Some(error.at(begin, Some(event_type)));
        }
        self.event = Some((begin, u64::from(size), event_type));
        self.next = begin + u64::from(size);
        self.checking = match event_type {
            EventType::FORMAT_DESCRIPTION if u64::from(size) <= DESCRIPTION_SIZE_MAX => {
                EventCheck::Description(Vec::new())
            }
            _ if self.framing.checksum() == ChecksumAlgorithm::CRC32 => {
                EventCheck::Crc32(Crc32::new(), Vec::new())
            }
            _ => EventCheck::Nothing,
        };
        self.check_from(begin, &begun);
        if self.at == self.next {
            self.compare();
        }
    }

    /// The next bytes of the present event, behind its header.
    fn check(&mut self, bytes: &[u8]) {
        self.check_from(self.at, bytes);
    }

    /// Bytes of the present event from this offset on.
    fn check_from(&mut self, offset: u64, bytes: &[u8]) {
        match &mut self.checking {
            EventCheck::Nothing => {}
            EventCheck::Description(description) => description.extend_from_slice(bytes),
            EventCheck::Crc32(crc32, stored) => {
                let stored_at = self.next.saturating_sub(CHECKSUM_SIZE as u64);
                let before = usize::try_from(stored_at.saturating_sub(offset)).unwrap_or(usize::MAX);
                let (covered, rest) = bytes.split_at(before.min(bytes.len()));
                crc32.update(covered);
                stored.extend_from_slice(rest);
            }
        }
    }

    /// The present event is there as a whole.
    fn compare(&mut self) {
        let result = match std::mem::take(&mut self.checking) {
            EventCheck::Nothing => Ok(()),
            EventCheck::Description(bytes) => described(&bytes).map(|framing| self.framing = framing),
            EventCheck::Crc32(crc32, stored) => {
                let stored = stored.first_chunk().map_or(0, |stored| u32::from_le_bytes(*stored));
                match crc32.finish() {
                    computed if computed == stored => Ok(()),
                    computed => Err(BinlogError::Checksum { stored, computed }),
                }
            }
        };
        if let (Err(error), Some((begin, _, event_type))) = (result, self.event) {
            self.damage.get_or_insert_with(|| error.at(begin, Some(event_type)));
        }
    }
}

/// The first damaged event of a log: it has another checksum than its bytes give. `None` also if the log has no checksums.
///
/// # Errors
///
/// A log that can't be read.
pub fn first_damage(log: &dyn ReadAt) -> Result<Option<BinlogError>> {
    let mut framing = LogFraming::default();
    let mut buffer = vec![0; 1 << 18];
    let mut offset = 0;
    loop {
        let count = log.read_at(&mut buffer, offset).map_err(Error::io("read the log"))?;
        match buffer.get(..count).unwrap_or_default() {
            [] => return Ok(framing.damage),
            bytes => framing.feed(bytes),
        }
        offset += count as u64;
    }
}

/// How the events behind a format description are framed.
fn described(bytes: &[u8]) -> Result<Framing, BinlogError> {
    let frame = Framing::new().next_frame(bytes)?.map(|frame| frame.verify()).transpose()?;
    // It came as a whole.
    let description = frame.map(|frame| FormatDescription::decode_frame(&frame)).transpose()?;
    Ok(description.map_or_else(Framing::new, |description| Framing::of(&description)))
}

impl Write for LogFraming {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.feed(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::builder::{LogBuilder, Release};
    use binlogz_testkit::corpus;

    use super::*;

    fn torn(parts: &[&[u8]]) -> Option<BinlogError> {
        let mut framing = LogFraming::default();
        parts.iter().for_each(|part| framing.feed(part));
        framing.torn()
    }

    /// However its bytes come, and wherever it is cut.
    #[test]
    fn a_log_is_torn_unless_it_ends_with_an_event() {
        let bytes = LogBuilder::new(Release::MYSQL_9_7).transaction(&[b"x", &[b'y'; 300]]).take();
        let mut ends = vec![];
        let mut at = MAGIC.len();
        while at < bytes.len() {
            at += u32::from_le_bytes(*bytes[at + EVENT_SIZE_OFFSET..].first_chunk().unwrap()) as usize;
            ends.push(at);
        }
        for size in MAGIC.len()..=bytes.len() {
            let cut = &bytes[..size];
            let whole = torn(&[cut]);
            assert_eq!(whole.is_none(), ends.contains(&size), "{size}: {whole:?}");
            let said = whole.map(|error| error.to_string());
            let one_by_one: Vec<_> = cut.chunks(1).collect();
            assert_eq!(torn(&one_by_one).map(|error| error.to_string()), said, "{size}");
            let (one, other) = cut.split_at(size / 3);
            assert_eq!(torn(&[one, other]).map(|error| error.to_string()), said, "{size}");
        }
        let zeros = [&bytes[..], &[0; 40]].concat();
        let error = torn(&[&zeros]).unwrap();
        assert_eq!(error.offset(), Some(bytes.len() as u64), "{error}");
        assert!(torn(&[b"no log at all"]).is_none() && torn(&[]).is_none());
    }

    /// Issue 42: it was archived as a whole log, and what the archive had of it was taken for its bytes.
    #[test]
    fn a_flipped_bit_of_any_event_is_found_with_its_place_however_the_bytes_come() {
        let bytes = LogBuilder::new(Release::MYSQL_9_7).transaction(&[b"x", &[b'y'; 300]]).take();
        let mut begin = MAGIC.len();
        for at in MAGIC.len()..bytes.len() {
            let size =
                u32::from_le_bytes(*bytes[begin + EVENT_SIZE_OFFSET..].first_chunk().unwrap()) as usize;
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            // Closing a log clears a flag, which no checksum covers.
            if at != MAGIC.len() + binlogz_binlog::header::FLAGS_OFFSET || at % 8 != 0 {
                let error = torn(&[&bad]).unwrap_or_else(|| panic!("byte {at} of the event at {begin}"));
                assert_eq!(error.offset(), Some(begin as u64), "byte {at}: {error}");
                let one_by_one: Vec<_> = bad.chunks(1).collect();
                assert_eq!(torn(&one_by_one).map(|error| error.to_string()), Some(error.to_string()));
            }
            begin += if at + 1 == begin + size { size } else { 0 };
        }
    }

    #[test]
    fn no_real_log_is_torn() {
        for log in corpus::binlogs() {
            let bytes = std::fs::read(&log.path).unwrap();
            assert!(torn(&[&bytes]).is_none(), "{}", log.path.display());
        }
    }
}
