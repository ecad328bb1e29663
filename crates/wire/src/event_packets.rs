//! Events as the packets of a dump, cut as they go by: no event is held, however large.
//!
//! ```text
//! message   00 · event
//! packets   length 3 · sequence 1 · payload; all but the last are full (see packet.rs)
//! ```

use crate::packet::{PACKET_HEADER_SIZE, PACKET_PAYLOAD_MAX};
use crate::response::OK;

/// Cuts events into packets. Sequence numbers go on from the command's.
#[derive(Debug)]
pub struct EventPackets {
    sequence: u8,
    /// Bytes of the message not written yet, and of them those of the packet that was begun.
    message_left: u64,
    packet_left: u64,
    /// Whether that packet is full: another one follows, if only an empty one.
    was_full: bool,
}

impl EventPackets {
    /// Packets from this number on.
    pub fn new(sequence: u8) -> Self {
        EventPackets { sequence, message_left: 0, packet_left: 0, was_full: false }
    }

    /// The number of the next packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Whether an event was begun and not ended.
    pub fn is_open(&self) -> bool {
        self.message_left > 0
    }

    /// Begins the message of an event of this size.
    pub fn begin(&mut self, event_size: u32, out: &mut Vec<u8>) {
        self.message_left = u64::from(event_size) + 1;
        self.packet(out);
        self.body(&[OK], out);
    }

    /// The next bytes of the event; what goes beyond its size is ignored.
    pub fn body(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() && self.message_left > 0 {
            let room = usize::try_from(self.packet_left).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            out.extend_from_slice(now);
            self.packet_left -= now.len() as u64;
            self.message_left -= now.len() as u64;
            bytes = rest;
            if self.packet_left == 0 && (self.message_left > 0 || self.was_full) {
                self.packet(out);
            }
        }
    }

    /// The header of the next packet.
    fn packet(&mut self, out: &mut Vec<u8>) {
        let size = self.message_left.min(PACKET_PAYLOAD_MAX as u64);
        let [l0, l1, l2, ..] = (size as u32).to_le_bytes();
        let header: [u8; PACKET_HEADER_SIZE] = [l0, l1, l2, self.sequence];
        out.extend_from_slice(&header);
        self.sequence = self.sequence.wrapping_add(1);
        self.packet_left = size;
        self.was_full = size == PACKET_PAYLOAD_MAX as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketWriter;

    #[test]
    fn packets_are_those_of_the_writer() {
        for event_size in [
            19,
            20,
            PACKET_PAYLOAD_MAX - 2,
            PACKET_PAYLOAD_MAX - 1,
            PACKET_PAYLOAD_MAX,
            2 * PACKET_PAYLOAD_MAX - 1,
        ] {
            let event: Vec<u8> = (0..event_size).map(|index| (index / 251) as u8).collect();
            let mut writer = PacketWriter::default();
            writer.set_sequence(250);
            let mut packets = EventPackets::new(250);
            let mut out = Vec::new();
            for _ in 0..2 {
                writer.message(|out| {
                    out.push(OK);
                    out.extend_from_slice(&event);
                });
                packets.begin(event_size as u32, &mut out);
                for piece in event.chunks(1 << 20) {
                    assert!(packets.is_open());
                    packets.body(piece, &mut out);
                }
                assert!(!packets.is_open());
            }
            assert!(out == writer.pending(), "{event_size}");
            assert_eq!(packets.sequence(), writer.next_sequence());
        }
    }
}
