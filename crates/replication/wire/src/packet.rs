//! Packets: how messages are cut for the wire.
//!
//! ```text
//! offset size field
//!      0    3 length     of the payload in this packet
//!      3    1 sequence   counts packets of one exchange, modulo 256
//!      4    n payload
//! ```
//!
//! A message of 16 MiB − 1 bytes or more takes several packets: all but the last are full, and the last one,
//! which may be empty, is not. [`PacketReader`] hands out a message in the pieces it arrives in and never
//! holds one, so an event of 1 GiB costs no memory here. [`MessageReader`] collects the small messages of
//! login and statements.

use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};

/// Bytes of a packet's header.
pub(crate) const PACKET_HEADER_SIZE: usize = 4;
/// Bytes of payload in a full packet.
pub(crate) const PACKET_PAYLOAD_MAX: usize = 0xff_ffff;
/// The largest message collected in memory, in bytes: at most a row of a result.
pub const MESSAGE_SIZE_MAX: usize = 16 << 20;

/// A message that is too long is read to its end, up to the largest `max_allowed_packet` that a server can
/// have.
pub(crate) const SKIPPED_SIZE_MAX: usize = 1 << 30;
/// Bytes of memory that a connection keeps between messages.
const KEPT_SIZE_MAX: usize = 64 << 10;

const WHAT: &str = "packet";

/// The next bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePiece<'a> {
    /// The bytes; empty only if the message ends with them.
    pub bytes: &'a [u8],
    /// Whether the message begins here.
    pub begins: bool,
    /// Whether the message ends here.
    pub ends: bool,
}

/// Cuts a connection's received bytes into messages.
#[derive(Debug, Default)]
pub struct PacketReader {
    /// The header of the current packet, as far as it has arrived.
    header: [u8; PACKET_HEADER_SIZE],
    held: usize,
    /// Bytes of the current packet still to come.
    left: usize,
    /// Whether the message continues after the current packet.
    continues: bool,
    /// Whether part of the current message was handed out.
    inside: bool,
    next_sequence: u8,
    /// Whether sequence numbers are ignored.
    ignores_sequence: bool,
}

impl PacketReader {
    /// The next bytes of the message, taken from the start of `input`. `None` if more input is needed; then
    /// all of `input` was taken.
    ///
    /// # Errors
    ///
    /// A sequence number out of order.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<MessagePiece<'a>>> {
        loop {
            if self.held < PACKET_HEADER_SIZE && !self.read_header(input)? {
                return Ok(None);
            }
            let (bytes, rest) = input.split_at_checked(self.left).unwrap_or((input, &[]));
            *input = rest;
            self.left -= bytes.len();
            let packet_ends = self.left == 0;
            let ends = packet_ends && !self.continues;
            if packet_ends {
                self.held = 0;
            }
            if bytes.is_empty() && !ends {
                if packet_ends {
                    continue;
                }
                return Ok(None);
            }
            let begins = !self.inside;
            self.inside = !ends;
            return Ok(Some(MessagePiece { bytes, begins, ends }));
        }
    }

    /// Whether the reader is between two messages.
    pub fn is_between_messages(&self) -> bool {
        self.held == 0 && !self.inside
    }

    /// The number that the next packet must have.
    pub fn next_sequence(&self) -> u8 {
        self.next_sequence
    }

    /// A new exchange begins: the peer's next packet has this number.
    pub fn expect_sequence(&mut self, sequence: u8) {
        self.next_sequence = sequence;
    }

    /// For packets of a compressed connection: there the compressed packets are counted. libmysqlclient does
    /// not look at the numbers inside, which servers may set to the outer ones.
    pub(crate) fn ignore_sequence(&mut self) {
        self.ignores_sequence = true;
    }

    /// Takes the header; `false` if it is not whole yet.
    fn read_header(&mut self, input: &mut &[u8]) -> Result<bool> {
        let free = self.header.get_mut(self.held..).unwrap_or_default();
        let count = free.len().min(input.len());
        let (taken, rest) = input.split_at_checked(count).unwrap_or_default();
        free.iter_mut().zip(taken).for_each(|(slot, byte)| *slot = *byte);
        *input = rest;
        self.held += count;
        if self.held < PACKET_HEADER_SIZE {
            return Ok(false);
        }
        let [l0, l1, l2, sequence] = self.header;
        if sequence != self.next_sequence && !self.ignores_sequence {
            let found = format!("{sequence} where {} is next", self.next_sequence);
            return Err(Error::invalid(WHAT, "sequence", found, "packets in order"));
        }
        self.next_sequence = sequence.wrapping_add(1);
        self.left = u32::from_le_bytes([l0, l1, l2, 0]) as usize;
        self.continues = self.left == PACKET_PAYLOAD_MAX;
        Ok(true)
    }
}

/// Collects whole messages.
#[derive(Debug, Default)]
pub struct MessageReader {
    message: Vec<u8>,
    /// Bytes of the current message, if it is too long to hold.
    skipped: usize,
}

/// The outcome for a message of limited size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// The whole message.
    Whole(&'a [u8]),
    /// The message was too long.
    TooLong,
}

impl MessageReader {
    /// The next whole message, as from [`MessageReader::next`]. One above `size_max` is read to its end
    /// without being held, so that it can be answered.
    ///
    /// # Errors
    ///
    /// A message that takes more than [`SKIPPED_SIZE_MAX`], and what [`PacketReader::next`] fails with.
    pub(crate) fn next_within<'a>(
        &'a mut self,
        packets: &mut PacketReader,
        input: &mut &[u8],
        size_max: usize,
    ) -> Result<Option<Message<'a>>> {
        while let Some(piece) = packets.next(input)? {
            if piece.begins {
                self.message.clear();
                self.skipped = 0;
            }
            if self.skipped > 0 || self.message.len() + piece.bytes.len() > size_max {
                self.skipped += self.message.len() + piece.bytes.len();
                self.message = Vec::new();
            } else {
                self.message.extend_from_slice(piece.bytes);
            }
            if self.skipped > SKIPPED_SIZE_MAX {
                return Err(Error::invalid(WHAT, "length", "above 1 GiB", "a command"));
            }
            if piece.ends {
                let skipped = std::mem::take(&mut self.skipped);
                return Ok(Some(if skipped > 0 { Message::TooLong } else { Message::Whole(&self.message) }));
            }
        }
        Ok(None)
    }

    /// Bytes held of a message that is not whole yet.
    pub fn held(&self) -> usize {
        self.message.len()
    }

    /// Frees memory that a large message took.
    pub fn release(&mut self) {
        if self.message.capacity() > KEPT_SIZE_MAX {
            self.message = Vec::new();
        }
    }

    /// The next whole message, from packets cut by `packets`. `None` if more input is needed.
    ///
    /// # Errors
    ///
    /// A message above [`MESSAGE_SIZE_MAX`], and what [`PacketReader::next`] fails with.
    pub fn next<'a>(&'a mut self, packets: &mut PacketReader, input: &mut &[u8]) -> Result<Option<&'a [u8]>> {
        while let Some(piece) = packets.next(input)? {
            if piece.begins {
                self.message.clear();
            }
            if self.message.len() + piece.bytes.len() > MESSAGE_SIZE_MAX {
                return Err(Error::invalid(WHAT, "length", "above 16 MiB", "a message that is no event"));
            }
            self.message.extend_from_slice(piece.bytes);
            if piece.ends {
                return Ok(Some(&self.message));
            }
        }
        Ok(None)
    }
}

/// Makes a message's packets, numbered from `sequence`; `write` writes its payload.
pub fn message_from(sequence: u8, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut packets = PacketWriter { out: Vec::new(), next_sequence: sequence };
    packets.message(write);
    packets.out
}

/// Writes messages as packets and holds them until they are sent.
#[derive(Debug, Default)]
pub struct PacketWriter {
    out: Vec<u8>,
    next_sequence: u8,
}

impl PacketWriter {
    /// Appends one message; `write` writes its payload.
    pub fn message(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.out.len();
        self.out.put(&[0; PACKET_HEADER_SIZE]);
        write(&mut self.out);
        let length = self.out.len() - begin - PACKET_HEADER_SIZE;
        if length < PACKET_PAYLOAD_MAX {
            let header = self.header(length);
            if let Some(space) = self.out.get_mut(begin..begin + PACKET_HEADER_SIZE) {
                space.copy_from_slice(&header);
            }
        } else {
            let payload = self.out.split_off(begin + PACKET_HEADER_SIZE);
            self.out.truncate(begin);
            self.split(&payload);
        }
    }

    /// Bytes to be sent, oldest first. After sending, call [`PacketWriter::sent`].
    pub fn pending(&self) -> &[u8] {
        &self.out
    }

    /// Drops the first `count` pending bytes, which were sent.
    pub fn sent(&mut self, count: usize) {
        self.out.drain(..count.min(self.out.len()));
    }

    /// The number of the next packet.
    pub fn next_sequence(&self) -> u8 {
        self.next_sequence
    }

    /// Sets the number of the next packet.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.next_sequence = sequence;
    }

    /// Writes full packets and a last one that is not full.
    fn split(&mut self, payload: &[u8]) {
        for chunk in payload.chunks(PACKET_PAYLOAD_MAX) {
            let header = self.header(chunk.len());
            self.out.put(&header);
            self.out.put(chunk);
        }
        if payload.len().is_multiple_of(PACKET_PAYLOAD_MAX) {
            let header = self.header(0);
            self.out.put(&header);
        }
    }

    fn header(&mut self, length: usize) -> [u8; PACKET_HEADER_SIZE] {
        let [l0, l1, l2, ..] = (length as u32).to_le_bytes();
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        [l0, l1, l2, sequence]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(payload: &[u8]) -> Vec<u8> {
        let mut writer = PacketWriter::default();
        writer.message(|out| out.put(payload));
        writer.pending().to_vec()
    }

    /// Reads all messages from input in pieces of `size` bytes.
    fn read(bytes: &[u8], size: usize) -> Vec<Vec<u8>> {
        let mut packets = PacketReader::default();
        let mut messages = Vec::new();
        for mut piece in bytes.chunks(size) {
            while let Some(part) = packets.next(&mut piece).unwrap() {
                if part.begins {
                    messages.push(Vec::new());
                }
                messages.last_mut().unwrap().extend_from_slice(part.bytes);
            }
            assert!(piece.is_empty());
        }
        assert!(packets.is_between_messages());
        messages
    }

    #[test]
    fn messages_come_back_in_pieces_of_any_size() {
        let mut writer = PacketWriter::default();
        let messages: [&[u8]; 4] = [b"", b"x", b"a longer message", b""];
        messages.iter().for_each(|message| writer.message(|out| out.put(message)));
        assert_eq!(&writer.pending()[..9], b"\0\0\0\0\x01\0\0\x01x");
        for size in 1..writer.pending().len() {
            assert_eq!(read(writer.pending(), size), messages);
        }
    }

    #[test]
    fn a_single_message_has_its_number_and_a_length_of_three_bytes() {
        assert_eq!(message_from(7, |out| out.put(b"ab")), b"\x02\0\0\x07ab");
        let long = message_from(255, |out| out.put(&[1; 300]));
        assert_eq!((&long[..4], long.len()), (b"\x2c\x01\0\xff".as_slice(), 304));
    }

    #[test]
    fn messages_at_the_16_mib_border_are_split_and_joined() {
        for (length, packets) in [
            (PACKET_PAYLOAD_MAX - 1, 1),
            (PACKET_PAYLOAD_MAX, 2),
            (PACKET_PAYLOAD_MAX + 1, 2),
            (2 * PACKET_PAYLOAD_MAX - 1, 2),
            (2 * PACKET_PAYLOAD_MAX, 3),
        ] {
            let payload: Vec<u8> = (0..length).map(|index| (index / 251) as u8).collect();
            let bytes = written(&payload);
            assert_eq!(bytes.len(), length + packets * PACKET_HEADER_SIZE, "{length}");
            for size in [1 << 20, PACKET_PAYLOAD_MAX + 3, bytes.len()] {
                assert!(read(&bytes, size) == [payload.as_slice()], "{length} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_message_is_announced_once_and_ends_once() {
        let bytes = written(&vec![7; PACKET_PAYLOAD_MAX]);
        let mut packets = PacketReader::default();
        let mut input = bytes.as_slice();
        let first = packets.next(&mut input).unwrap().unwrap();
        assert!(first.begins && !first.ends && first.bytes.len() == PACKET_PAYLOAD_MAX);
        let last = packets.next(&mut input).unwrap().unwrap();
        assert_eq!(last, MessagePiece { bytes: b"", begins: false, ends: true });
        assert!(packets.next(&mut input).unwrap().is_none());
    }

    #[test]
    fn numbers_are_checked_and_wrap() {
        let mut packets = PacketReader::default();
        packets.expect_sequence(255);
        let mut input: &[u8] = b"\x01\0\0\xffa\x01\0\0\x00b\x01\0\0\x02c";
        assert_eq!(packets.next(&mut input).unwrap().unwrap().bytes, b"a");
        assert_eq!(packets.next(&mut input).unwrap().unwrap().bytes, b"b");
        let error = packets.next(&mut input).unwrap_err().to_string();
        assert_eq!(error, "packet: sequence is 2 where 1 is next, expected packets in order");
    }

    #[test]
    fn numbers_inside_compressed_packets_mean_nothing() {
        let mut packets = PacketReader::default();
        packets.ignore_sequence();
        let mut input: &[u8] = b"\x01\0\0\x07a\x01\0\0\x02b";
        assert_eq!(packets.next(&mut input).unwrap().unwrap().bytes, b"a");
        assert_eq!(packets.next(&mut input).unwrap().unwrap().bytes, b"b");
    }

    #[test]
    fn a_collected_message_is_bounded() {
        let bytes = written(&vec![0; MESSAGE_SIZE_MAX + 1]);
        let mut packets = PacketReader::default();
        let mut messages = MessageReader::default();
        let error = messages.next(&mut packets, &mut bytes.as_slice()).unwrap_err().to_string();
        assert_eq!(error, "packet: length is above 16 MiB, expected a message that is no event");
    }

    #[test]
    fn a_message_above_a_bound_is_taken_but_not_held() {
        let mut bytes = written(&vec![1; PACKET_PAYLOAD_MAX + 9]);
        let second = written(&[2; 10]);
        let mut packets = PacketReader::default();
        let mut messages = MessageReader::default();
        for bound in [10, PACKET_PAYLOAD_MAX - 1, PACKET_PAYLOAD_MAX, PACKET_PAYLOAD_MAX + 8] {
            packets.expect_sequence(0);
            let mut input = bytes.as_slice();
            let message = messages.next_within(&mut packets, &mut input, bound).unwrap();
            assert_eq!((message, input.len()), (Some(Message::TooLong), 0), "{bound}");
            assert_eq!(messages.message.capacity(), 0);
            packets.expect_sequence(0);
            let message = messages.next_within(&mut packets, &mut second.as_slice(), bound).unwrap();
            assert_eq!(message, Some(Message::Whole(&[2; 10])), "{bound}");
        }
        packets.expect_sequence(0);
        let whole =
            messages.next_within(&mut packets, &mut bytes.as_slice(), PACKET_PAYLOAD_MAX + 9).unwrap();
        assert!(matches!(whole, Some(Message::Whole(whole)) if whole.len() == PACKET_PAYLOAD_MAX + 9));
        messages.release();
        assert_eq!(messages.message.capacity(), 0);
        // Without its end it is not a command at all.
        bytes.truncate(PACKET_HEADER_SIZE + PACKET_PAYLOAD_MAX);
        packets.expect_sequence(0);
        let error = (0..65).find_map(|sequence| {
            *bytes.get_mut(3)? = sequence;
            messages.next_within(&mut packets, &mut bytes.as_slice(), 10).err()
        });
        assert_eq!(error.unwrap().to_string(), "packet: length is above 1 GiB, expected a command");
    }

    #[test]
    fn what_was_sent_is_no_longer_pending() {
        let mut writer = PacketWriter::default();
        writer.message(|out| out.put(b"ab"));
        writer.sent(5);
        assert_eq!(writer.pending(), b"b");
        writer.sent(9);
        assert!(writer.pending().is_empty());
    }
}
