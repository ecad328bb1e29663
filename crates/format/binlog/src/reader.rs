//! Reads a binary log event by event from any `Read`: a file, a pipe, a slice.
//!
//! Holds one event in memory at a time (at most [`EventReader::event_size_max`] bytes; the server's own bound
//! is 1 GiB). Several concatenated logs, as from `cat`, are read as one stream: the magic is recognised
//! wherever an event could begin. Programs that must not hold large events whole use `binlogz-flow`.

use std::io::{self, Read};

use crate::error::{Error, Result};
use crate::event::FormatDescription;
use crate::event_type::EventType;
use crate::frame::{EventFrame, VerifiedFrame};
use crate::framing::Framing;
use crate::header::{EventHeader, HEADER_SIZE, HeaderFlags};
use crate::{EVENT_SIZE_MAX, MAGIC, MAGIC_ENCRYPTED, MAGIC_INNODB};

/// Bytes to read at a time; large enough to make the cost of a system call negligible.
const READ_SIZE: usize = 256 << 10;

/// Bytes needed to tell whether another log begins here: magic, event header, binlog version.
pub const LOG_START_SIZE: usize = MAGIC.len() + HEADER_SIZE + 2;

/// Whether another log begins here. The magic alone is not enough: it is also the timestamp of an event of
/// September 2028.
pub fn begins_log(bytes: &[u8]) -> bool {
    let Some(event) = bytes.strip_prefix(&MAGIC) else { return false };
    let described = EventHeader::decode(event).is_ok_and(|header| {
        header.event_type == EventType::FORMAT_DESCRIPTION && header.event_size as usize > HEADER_SIZE
    });
    described && event.get(HEADER_SIZE..HEADER_SIZE + 2) == Some(&[4, 0])
}

/// Reads events in order.
#[derive(Debug)]
pub struct EventReader<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    framing: Framing,
    verify: bool,
    event_size_max: u32,
    in_use: bool,
    at_start: bool,
}

impl<R: Read> EventReader<R> {
    /// A reader at the beginning of a log: the magic is expected first.
    pub fn new(input: R) -> Self {
        EventReader {
            input,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            framing: Framing::new(),
            verify: true,
            event_size_max: EVENT_SIZE_MAX,
            in_use: false,
            at_start: true,
        }
    }

    /// Whether checksums are checked (they are, unless told otherwise).
    #[must_use]
    pub fn verify_checksums(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Refuses events above this many bytes; at most 1 GiB, the default.
    #[must_use]
    pub fn event_size_max(mut self, bytes: u32) -> Self {
        self.event_size_max = bytes.min(EVENT_SIZE_MAX);
        self
    }

    /// Offset of the next event in the (decrypted) stream, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The framing in force: that of the last format description read.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether the last format description says that its file is in use (or was not closed).
    pub fn in_use(&self) -> bool {
        self.in_use
    }

    /// The next event with the offset at which it begins; `None` at the end of the log.
    ///
    /// # Errors
    ///
    /// An end inside an event is [`Error::Truncated`] with the event's offset, even for a log that is
    /// [`EventReader::in_use`]: the caller decides whether that is only a warning. For a log that is still
    /// being written, the caller may try again later, after `None` or [`Error::Truncated`]: the reader
    /// continues where the log ended.
    pub fn next_event(&mut self) -> Result<Option<(u64, EventFrame<'_>)>> {
        if !self.skip_magic()? {
            return Ok(None);
        }
        let offset = self.offset;
        let Some(size) = self.fill_event().map_err(|error| error.at(offset, None))? else {
            return Ok(None);
        };
        let begin = self.start;
        self.start += size;
        self.offset += size as u64;
        let bytes = self.buffer.get(begin..begin + size).unwrap_or_default();
        let header = EventHeader::decode(bytes)?;
        let at = |error: Error| error.at(offset, Some(header.event_type));
        let unverified = self
            .framing
            .next_frame(bytes)
            .map_err(at)?
            .ok_or(Error::Truncated { needed: size as u64, left: 0 })
            .map_err(at)?;
        let frame = match self.verify {
            true => unverified.verify().map(VerifiedFrame::frame),
            false => unverified.unchecked(),
        };
        let frame = frame.map_err(at)?;
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            let description = FormatDescription::decode_frame(&frame).map_err(at)?;
            self.framing = Framing::of(&description);
            self.in_use = header.flags.contains(HeaderFlags::IN_USE);
        }
        Ok(Some((offset, frame)))
    }

    /// Takes the magic where a log begins. `false` at the end of the stream.
    fn skip_magic(&mut self) -> Result<bool> {
        self.fill(LOG_START_SIZE)?;
        let head = self.buffered();
        let begins = if self.at_start { head.starts_with(&MAGIC) } else { begins_log(head) };
        if begins {
            self.start += MAGIC.len();
            // A log after another begins at its own offset 4.
            self.offset = MAGIC.len() as u64;
            self.at_start = false;
            return Ok(true);
        }
        if self.at_start {
            return Err(not_a_log(head));
        }
        Ok(!head.is_empty())
    }

    /// Brings the next event into the buffer; its size, or `None` at the end of the log.
    fn fill_event(&mut self) -> Result<Option<usize>> {
        let have = self.fill(HEADER_SIZE)?;
        if have == 0 {
            return Ok(None);
        }
        if have < HEADER_SIZE {
            return Err(Error::Truncated { needed: HEADER_SIZE as u64, left: have as u64 });
        }
        let header = EventHeader::decode(self.buffered())?;
        self.framing.check_header(&header)?;
        if header.event_size > self.event_size_max {
            return Err(Error::invalid(
                "event header",
                "event size",
                header.event_size,
                "at most the event size allowed here",
            ));
        }
        let needed = header.event_size as usize;
        let have = self.fill(needed)?;
        if have < needed {
            return Err(Error::Truncated { needed: needed as u64, left: have as u64 });
        }
        Ok(Some(needed))
    }

    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads until `wanted` bytes are buffered or the stream ends; returns how many there are. The buffer grows with the
    /// bytes that really arrive, not with the size that a header claims.
    fn fill(&mut self, wanted: usize) -> Result<usize> {
        while self.end - self.start < wanted {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.buffer.is_empty() {
                // The system has zeros: `resize` writes them, which many readers of small logs would wait for.
                self.buffer = vec![0; READ_SIZE];
            } else if self.buffer.len() < self.end + READ_SIZE {
                self.buffer.resize(self.end + READ_SIZE, 0);
            }
            let free = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.input.read(free) {
                Ok(0) => break,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.end - self.start)
    }
}

/// Why a stream that begins with these bytes is not a plain binary log.
pub fn not_a_log(head: &[u8]) -> Error {
    if head.starts_with(&MAGIC_ENCRYPTED) {
        return Error::Encrypted;
    }
    if head.starts_with(&MAGIC_INNODB) {
        return Error::InnodbBinlog;
    }
    if head.is_empty() {
        return Error::Empty;
    }
    if head.len() < MAGIC.len() {
        return Error::Truncated { needed: MAGIC.len() as u64, left: head.len() as u64 }.at(0, None);
    }
    let found: Vec<String> = head.iter().take(MAGIC.len()).map(|byte| format!("{byte:02x}")).collect();
    Error::Magic { found: found.join(" ") }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::checksum::ChecksumAlgorithm;
    use crate::event::{POST_HEADER_LENGTHS, SERVER_VERSION_SIZE};
    use crate::frame::encode_event;

    fn header(event_type: EventType, flags: HeaderFlags) -> EventHeader {
        EventHeader { timestamp: 1, event_type, server_id: 1, event_size: 0, end_log_pos: 0, flags }
    }

    /// A log in use: format description and two XID events.
    fn log() -> Vec<u8> {
        let mut server_version = [0; SERVER_VERSION_SIZE];
        server_version[..5].copy_from_slice(b"9.7.4");
        let description = FormatDescription {
            binlog_version: 4,
            server_version,
            created: 0,
            header_length: 19,
            post_header_lengths: POST_HEADER_LENGTHS.to_vec(),
            checksum_algorithm: ChecksumAlgorithm::CRC32,
        };
        let crc32 = ChecksumAlgorithm::CRC32;
        let mut log = MAGIC.to_vec();
        log.extend(encode_event(
            header(EventType::FORMAT_DESCRIPTION, HeaderFlags::IN_USE),
            &description.encode(),
            crc32,
        ));
        for xid in [1u64, 2] {
            log.extend(encode_event(
                header(EventType::XID, HeaderFlags::default()),
                &xid.to_le_bytes(),
                crc32,
            ));
        }
        log
    }

    /// A file that grows: only this many bytes of it are there.
    struct Growing {
        bytes: Vec<u8>,
        read: usize,
        there: Rc<Cell<usize>>,
    }

    impl Read for Growing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = (&self.bytes[self.read..self.there.get()]).read(buffer)?;
            self.read += count;
            Ok(count)
        }
    }

    #[test]
    fn a_log_that_is_still_written_is_read_on() {
        let bytes = log();
        let there = Rc::new(Cell::new(127));
        let mut reader =
            EventReader::new(Growing { bytes: bytes.clone(), read: 0, there: Rc::clone(&there) });
        let mut found = Vec::new();
        while there.get() < bytes.len() {
            match reader.next_event() {
                Ok(Some((offset, frame))) => found.push((offset, frame.event_type())),
                Ok(None) => there.set(there.get() + 1),
                Err(error) => {
                    assert!(error.is_truncation(), "{error}");
                    there.set(there.get() + 1);
                }
            }
        }
        assert!(reader.in_use());
        while let Some((offset, frame)) = reader.next_event().unwrap() {
            found.push((offset, frame.event_type()));
        }
        let xid = EventType::XID;
        assert_eq!(found, [(4, EventType::FORMAT_DESCRIPTION), (127, xid), (158, xid)]);
    }

    #[test]
    fn logs_one_behind_the_other_are_one_stream() {
        let both = [log(), log()].concat();
        let mut reader = EventReader::new(both.as_slice());
        let mut offsets = Vec::new();
        while let Some((offset, _)) = reader.next_event().unwrap() {
            offsets.push(offset);
        }
        assert_eq!(offsets, [4, 127, 158, 4, 127, 158]);
    }

    #[test]
    fn what_is_no_log_is_told_from_what_is_encrypted_or_cut() {
        let error = |bytes: &[u8]| EventReader::new(bytes).next_event().unwrap_err().to_string();
        assert_eq!(error(b"#!/bin/sh"), "not a binary log: it begins with 23 21 2f 62, expected fe 62 69 6e");
        assert_eq!(error(b"\xfdbin...."), "the binary log is encrypted: a keyring is needed to read it");
        assert_eq!(error(b"\xfeb"), "at 0: the log ends inside an event: 4 bytes expected, 2 are there");
    }

    #[test]
    fn an_event_above_the_limit_is_refused_before_it_is_read() {
        let bytes = log();
        let mut reader = EventReader::new(bytes.as_slice()).event_size_max(100);
        assert!(reader.next_event().unwrap_err().to_string().contains("event size is 123"));
    }
}
