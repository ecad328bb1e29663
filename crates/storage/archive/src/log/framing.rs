//! Follows the headers of a log's events while its bytes pass by, and says at the end whether the log ends with an event.
//! It looks at sizes alone; `verify` checks checksums.

use std::io::{self, Write};

use binlogz_binlog::header::{EVENT_SIZE_OFFSET, EVENT_TYPE_OFFSET, HEADER_SIZE};
use binlogz_binlog::{Error as BinlogError, EventType, MAGIC};

/// Bytes of a header in logs of MySQL 3.23, whose first event says so.
const HEADER_SIZE_V1: usize = 13;

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
    /// The error at the end of the log, with the offset of the event that is cut; `None`: it ends with an event, or is no
    /// log.
    pub(crate) fn torn(&self) -> Option<BinlogError> {
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

    fn feed(&mut self, mut bytes: &[u8]) {
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
                let skip = skip.min(bytes.len());
                self.at += skip as u64;
                bytes = bytes.get(skip..).unwrap_or_default();
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
        let size = begun.get(EVENT_SIZE_OFFSET..).and_then(|size| size.first_chunk());
        let size = size.map_or(0, |size| u32::from_le_bytes(*size));
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
        self.event = Some((begin, u64::from(size), event_type));
        self.next = begin + u64::from(size);
    }
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

    #[test]
    fn no_real_log_is_torn() {
        for log in corpus::binlogs() {
            let bytes = std::fs::read(&log.path).unwrap();
            assert!(torn(&[&bytes]).is_none(), "{}", log.path.display());
        }
    }
}
