//! Events of a stored transaction, numbered for another file: without their GTID event, with other positions and the checksums of
//! that file. They come in any pieces and leave in pieces.

use std::io::{self, Write};

use binlogz_binlog::checksum::Crc32;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader};
use binlogz_relay_forms::FormSink;

/// Passes a transaction on to `out`.
#[derive(Debug)]
pub(crate) struct RenumberedEvents<W> {
    out: W,
    /// The checksums of the events that come, and of those that leave.
    from: ChecksumAlgorithm,
    to: ChecksumAlgorithm,
    /// The position of the next event that leaves, or of the current one.
    position: u64,
    header: Vec<u8>,
    /// Bytes of the current event's body that are still to come, and after those of its checksum.
    body_left: u64,
    checksum_left: u64,
    is_left_out: bool,
    crc: Crc32,
}

impl<W: Write> RenumberedEvents<W> {
    /// The first event that leaves begins at `position`.
    pub(crate) fn new(out: W, position: u64, from: ChecksumAlgorithm, to: ChecksumAlgorithm) -> Self {
        RenumberedEvents {
            out,
            from,
            to,
            position,
            header: Vec::with_capacity(HEADER_SIZE),
            body_left: 0,
            checksum_left: 0,
            is_left_out: false,
            crc: Crc32::new(),
        }
    }

    /// Whether the last event came whole.
    pub(crate) fn is_between_events(&self) -> bool {
        self.header.is_empty()
    }

    fn begin_event(&mut self) -> io::Result<()> {
        let mut header = EventHeader::decode(&self.header).map_err(io::Error::other)?;
        let frame = (HEADER_SIZE + self.from.size()) as u64;
        let too_small = || io::Error::other(format!("an event of {} bytes", header.event_size));
        self.body_left = u64::from(header.event_size).checked_sub(frame).ok_or_else(too_small)?;
        self.checksum_left = self.from.size() as u64;
        self.is_left_out = header.event_type.is_gtid();
        if self.is_left_out {
            return Ok(());
        }
        let size = (HEADER_SIZE + self.to.size()) as u64 + self.body_left;
        self.position += size;
        header.event_size = u32::try_from(size).map_err(io::Error::other)?;
        // Modulo 2^32, as mysqld has it.
        header.end_log_pos = self.position as u32;
        self.crc = Crc32::new();
        self.pass_on(&header.encode())
    }

    fn pass_on(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_left_out {
            return Ok(());
        }
        if self.to != ChecksumAlgorithm::NONE {
            self.crc.update(bytes);
        }
        self.out.write_all(bytes)
    }

    fn end_event(&mut self) -> io::Result<()> {
        self.header.clear();
        if self.is_left_out || self.to == ChecksumAlgorithm::NONE {
            return Ok(());
        }
        let crc = std::mem::replace(&mut self.crc, Crc32::new());
        self.out.write_all(&crc.finish().to_le_bytes())
    }
}

impl<W: Write> Write for RenumberedEvents<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let missing = HEADER_SIZE - self.header.len();
            if missing > 0 {
                let (now, behind) = rest.split_at_checked(missing).unwrap_or((rest, &[]));
                self.header.extend_from_slice(now);
                rest = behind;
                if self.header.len() < HEADER_SIZE {
                    break;
                }
                self.begin_event()?;
            }
            let room = usize::try_from(self.body_left).unwrap_or(usize::MAX);
            let (body, behind) = rest.split_at_checked(room).unwrap_or((rest, &[]));
            self.pass_on(body)?;
            self.body_left -= body.len() as u64;
            let room = if self.body_left == 0 { self.checksum_left as usize } else { 0 };
            let (checksum, behind) = behind.split_at_checked(room).unwrap_or((behind, &[]));
            self.checksum_left -= checksum.len() as u64;
            rest = behind;
            if self.body_left == 0 && self.checksum_left == 0 {
                self.end_event()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> FormSink for RenumberedEvents<W> {
    fn skip_to(&mut self, _: u64) {}
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_binlog::frame::encode_event;
    use binlogz_binlog::{EventFrame, EventType, HeaderFlags};

    use super::*;

    #[test]
    fn events_keep_their_bodies_and_get_positions_and_checksums() {
        let algorithms = [ChecksumAlgorithm::CRC32, ChecksumAlgorithm::NONE];
        for (from, to) in algorithms.into_iter().flat_map(|from| algorithms.map(|to| (from, to))) {
            let header = |event_type| EventHeader {
                timestamp: 7,
                event_type,
                server_id: 3,
                event_size: 0,
                end_log_pos: 4711,
                flags: HeaderFlags::default(),
            };
            let bodies = [vec![], vec![1], vec![2; 70_000]];
            let mut input = encode_event(header(EventType::GTID), &[9; 42], from);
            for body in &bodies {
                input.extend(encode_event(header(EventType::WRITE_ROWS), body, from));
            }
            for size in [1, 30, 1 << 20] {
                let mut out = Vec::new();
                let mut events = RenumberedEvents::new(&mut out, u64::from(u32::MAX), from, to);
                input.chunks(size).for_each(|piece| events.write_all(piece).unwrap());
                assert!(events.is_between_events());
                let mut rest = out.as_slice();
                let mut position = u64::from(u32::MAX);
                for body in &bodies {
                    let event_size = EventHeader::decode(rest).unwrap().event_size as usize;
                    let frame = EventFrame::from_bytes(&rest[..event_size], to.size()).unwrap();
                    position += event_size as u64;
                    assert_eq!(
                        (frame.body(), frame.header().end_log_pos),
                        (body.as_slice(), position as u32)
                    );
                    assert!(frame.stored_checksum().is_none_or(|stored| stored == frame.computed_checksum()));
                    rest = &rest[event_size..];
                }
                assert!(rest.is_empty());
            }
            let mut events = RenumberedEvents::new(io::sink(), 4, from, to);
            events.write_all(&input[..input.len() - 1]).unwrap();
            assert!(!events.is_between_events());
        }
    }
}
