//! Events as the packets of a dump, cut while they pass through: no event is held, however large.
//!
//! ```text
//! message   00 · [with semi-sync: ef · whether an acknowledgement is wanted] · event
//! packets   length 3 · sequence 1 · payload; all but the last are full (see packet.rs)
//! ```

use crate::packet::{PACKET_HEADER_SIZE, PACKET_PAYLOAD_MAX};
use crate::response::OK;
use crate::semi_sync;

/// Cuts events into packets. Sequence numbers continue from the command's; after an event that wants an
/// acknowledgement they restart at 1.
#[derive(Debug)]
pub struct EventPackets {
    sequence: u8,
    /// Bytes of the message still to be written, and how many of them belong to the packet that was begun.
    message_left: u64,
    packet_left: u64,
    /// Whether that packet is full: another one follows, even if it is empty.
    was_full: bool,
    /// Whether each event is preceded by the bytes of semi-synchronous replication.
    semi_sync: bool,
    /// Whether the current event wants an acknowledgement.
    wants_ack: bool,
}

impl EventPackets {
    /// A writer whose first packet has this number.
    pub fn new(sequence: u8) -> Self {
        EventPackets {
            sequence,
            message_left: 0,
            packet_left: 0,
            was_full: false,
            semi_sync: false,
            wants_ack: false,
        }
    }

    /// Lets events request acknowledgements from now on ([`crate::semi_sync`]).
    pub fn begin_semi_sync(&mut self) {
        self.semi_sync = true;
    }

    /// The number of the next packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Whether an event has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.message_left > 0
    }

    /// Begins the message of an event of this size. `wants_ack` asks for an acknowledgement; it has no effect
    /// without semi-sync.
    pub fn begin(&mut self, event_size: u32, wants_ack: bool, out: &mut Vec<u8>) {
        let prefix = semi_sync::encode_prefix(wants_ack);
        let prefix = if self.semi_sync { prefix.as_slice() } else { &[] };
        self.wants_ack = self.semi_sync && wants_ack;
        self.message_left = u64::from(event_size) + 1 + prefix.len() as u64;
        self.packet(out);
        self.body(&[OK], out);
        self.body(prefix, out);
    }

    /// Appends the next bytes of the event; bytes beyond its size are ignored.
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
        if self.message_left == 0 && std::mem::take(&mut self.wants_ack) {
            self.sequence = 1;
        }
    }

    /// Appends the header of the next packet.
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
                packets.begin(event_size as u32, true, &mut out);
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

    #[test]
    fn with_semi_sync_each_event_says_whether_it_is_to_be_acknowledged() {
        let mut packets = EventPackets::new(250);
        packets.begin_semi_sync();
        let mut out = Vec::new();
        for wants_ack in [false, true, false] {
            packets.begin(3, wants_ack, &mut out);
            packets.body(b"abc", &mut out);
        }
        assert_eq!(out, b"\x06\0\0\xfa\0\xef\0abc\x06\0\0\xfb\0\xef\x01abc\x06\0\0\x01\0\xef\0abc");
        // If there are many packets, the last one, here an empty one, ends the exchange.
        let large = vec![0; PACKET_PAYLOAD_MAX - 3];
        out.clear();
        packets.begin(large.len() as u32, true, &mut out);
        packets.body(&large, &mut out);
        assert!(out.starts_with(b"\xff\xff\xff\x02\0\xef\x01") && out.ends_with(b"\0\0\0\x03"));
        assert_eq!(packets.sequence(), 1);
    }
}
