//! Compressed packets, which a connection carries once both sides have agreed on compression.
//!
//! ```text
//! offset size field
//!      0    3 length      of the payload in this packet
//!      3    1 sequence    counts compressed packets of one exchange, modulo 256
//!      4    3 plain size  of the expanded payload; 0: it is not compressed
//!      7    n payload     zlib's format, or one zstd frame
//! ```
//!
//! Expanded and joined in order, the payloads are the packets of [`crate::packet`], cut anywhere; the
//! sequence numbers of those packets then mean nothing
//! ([`PacketReader::ignore_sequence`](crate::packet::PacketReader::ignore_sequence)). Compression begins
//! after the OK that ends the login, in both directions at once. A packet is held whole: at most 16 MiB of
//! each form, whatever size it claims.

use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use zstd_safe::{CCtx, DCtx};

use crate::capabilities::Capabilities;
use crate::packet::PACKET_PAYLOAD_MAX;

/// Bytes of a compressed packet's header.
const HEADER_SIZE: usize = 7;
/// Servers and clients don't compress anything smaller: it would not pay.
const COMPRESS_FROM: usize = 50;
/// zlib's own default.
const ZLIB_LEVEL: u8 = 6;

const WHAT: &str = "compressed packet";

/// How a connection is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionCompression {
    /// With zlib.
    Zlib,
    /// With zstd, at the level the client uses and asks the server to use.
    Zstd {
        /// The level, 1 to 22.
        level: u8,
    },
}

/// The compression a client allows (`--compression-algorithms`, `--zstd-compression-level`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionChoice {
    /// zlib.
    pub zlib: bool,
    /// zstd.
    pub zstd: bool,
    /// No compression.
    pub uncompressed: bool,
    /// The level for zstd.
    pub zstd_level: u8,
}

impl Default for CompressionChoice {
    /// The clients' default: no compression.
    fn default() -> Self {
        CompressionChoice { zlib: false, zstd: false, uncompressed: true, zstd_level: 3 }
    }
}

impl CompressionChoice {
    /// zstd's highest level.
    pub const ZSTD_LEVEL_MAX: u8 = 22;

    /// The choice given by a list of names, such as `zstd,uncompressed`. `None` if one of the names is
    /// unknown.
    pub fn of_names(list: &str) -> Option<Self> {
        let mut choice = CompressionChoice { uncompressed: false, ..CompressionChoice::default() };
        for name in list.split(',').map(str::trim) {
            match name.to_ascii_lowercase().as_str() {
                "zlib" => choice.zlib = true,
                "zstd" => choice.zstd = true,
                "uncompressed" => choice.uncompressed = true,
                _ => return None,
            }
        }
        Some(choice)
    }

    /// The compression to use with a server of these capabilities: zlib before zstd, as in libmysqlclient,
    /// and either before none. `None` if the server has nothing that is allowed.
    pub fn with(self, server: Capabilities) -> Option<Option<ConnectionCompression>> {
        if self.zlib && server.contains(Capabilities::COMPRESS) {
            return Some(Some(ConnectionCompression::Zlib));
        }
        if self.zstd && server.contains(Capabilities::ZSTD_COMPRESSION) {
            return Some(Some(ConnectionCompression::Zstd { level: self.zstd_level }));
        }
        self.uncompressed.then_some(None)
    }
}

impl ConnectionCompression {
    /// The algorithm's name, as servers and clients spell it.
    pub fn name(self) -> &'static str {
        match self {
            ConnectionCompression::Zlib => "zlib",
            ConnectionCompression::Zstd { .. } => "zstd",
        }
    }

    /// The capability that asks for it.
    pub fn capability(self) -> Capabilities {
        match self {
            ConnectionCompression::Zlib => Capabilities::COMPRESS,
            ConnectionCompression::Zstd { .. } => Capabilities::ZSTD_COMPRESSION,
        }
    }
}

/// Both directions of a compressed connection.
pub struct CompressedPackets {
    compression: ConnectionCompression,
    /// The incoming packet, header and payload, as far as it has arrived.
    held: Vec<u8>,
    /// The number of the next packet, in either direction.
    next_sequence: u8,
    /// The peer is a client: each of its exchanges begins at 0.
    serves: bool,
    expander: DCtx<'static>,
    compressor: CCtx<'static>,
}

impl std::fmt::Debug for CompressedPackets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompressedPackets").field("compression", &self.compression).finish_non_exhaustive()
    }
}

impl CompressedPackets {
    /// For a connection that has just finished its login.
    pub fn new(compression: ConnectionCompression) -> Self {
        CompressedPackets {
            compression,
            held: Vec::new(),
            next_sequence: 0,
            serves: false,
            expander: DCtx::create(),
            compressor: CCtx::create(),
        }
    }

    /// The server's side of such a connection.
    pub fn serving(compression: ConnectionCompression) -> Self {
        CompressedPackets { serves: true, ..CompressedPackets::new(compression) }
    }

    /// The compression in use.
    pub fn compression(&self) -> ConnectionCompression {
        self.compression
    }

    /// Takes one compressed packet from the start of `input` and replaces the content of `plain` with the packet's
    /// expanded bytes. `false` if more input is needed; then all of `input` was taken.
    ///
    /// # Errors
    ///
    /// A sequence number out of order, a payload that is not what its header says.
    pub fn expand(&mut self, input: &mut &[u8], plain: &mut Vec<u8>) -> Result<bool> {
        plain.clear();
        self.hold(input, HEADER_SIZE);
        let &[l0, l1, l2, sequence, p0, p1, p2, ..] = self.held.as_slice() else { return Ok(false) };
        if sequence != self.next_sequence && !(self.serves && sequence == 0) {
            let found = format!("{sequence} where {} is next", self.next_sequence);
            return Err(Error::invalid(WHAT, "sequence", found, "packets in order"));
        }
        let [length, plain_size] =
            [[l0, l1, l2, 0], [p0, p1, p2, 0]].map(|bytes| u32::from_le_bytes(bytes) as usize);
        self.hold(input, HEADER_SIZE + length);
        if self.held.len() < HEADER_SIZE + length {
            return Ok(false);
        }
        self.next_sequence = sequence.wrapping_add(1);
        let payload = self.held.get(HEADER_SIZE..).unwrap_or_default();
        if plain_size == 0 {
            plain.extend_from_slice(payload);
        } else {
            expand(self.compression, &mut self.expander, payload, plain_size, plain)?;
        }
        self.held.clear();
        Ok(true)
    }

    /// Expands packets that a peer sends in the middle of our exchange; unlike [`CompressedPackets::expand`],
    /// leaves our numbering unchanged.
    pub fn expand_beside(&mut self, input: &mut &[u8], plain: &mut Vec<u8>) -> Result<bool> {
        let next_sequence = self.next_sequence;
        let expanded = self.expand(input, plain);
        self.next_sequence = next_sequence;
        expanded
    }

    /// Bytes held of a packet that is not whole yet.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Appends packets, compressed, to `out`. `begins`: they begin an exchange.
    pub fn compress(&mut self, packets: &[u8], begins: bool, out: &mut Vec<u8>) -> Result<()> {
        if begins {
            self.next_sequence = 0;
        }
        for chunk in packets.chunks(PACKET_PAYLOAD_MAX) {
            let compressed = match chunk.len() {
                COMPRESS_FROM.. => {
                    self.compressed(chunk)?.filter(|compressed| compressed.len() < chunk.len())
                }
                _ => None,
            };
            let plain_size = if compressed.is_some() { chunk.len() } else { 0 };
            let payload = compressed.as_deref().unwrap_or(chunk);
            out.put(&three_bytes(payload.len()));
            out.put(&[self.next_sequence]);
            out.put(&three_bytes(plain_size));
            out.put(payload);
            self.next_sequence = self.next_sequence.wrapping_add(1);
        }
        Ok(())
    }

    /// Compresses packets, like [`CompressedPackets::compress`], that are sent in the middle of the peer's exchange and begin
    /// none: the peer's numbering continues unchanged.
    pub fn compress_beside(&mut self, packets: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let next_sequence = self.next_sequence;
        let compressed = self.compress(packets, true, out);
        self.next_sequence = next_sequence;
        compressed
    }

    /// The peer restarts its numbering: its next packet has this number.
    pub fn expect_sequence(&mut self, sequence: u8) {
        self.next_sequence = sequence;
    }

    fn compressed(&mut self, plain: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.compression {
            ConnectionCompression::Zlib => Ok(Some(compress_to_vec_zlib(plain, ZLIB_LEVEL))),
            ConnectionCompression::Zstd { level } => {
                let mut compressed = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
                let done = self.compressor.compress(&mut compressed, plain, level.into());
                done.map_err(|code| {
                    Error::invalid(WHAT, "zstd", zstd_safe::get_error_name(code), "a compressor that works")
                })?;
                Ok(Some(compressed))
            }
        }
    }

    /// Takes input until `wanted` bytes are held.
    fn hold(&mut self, input: &mut &[u8], wanted: usize) {
        let missing = wanted.saturating_sub(self.held.len()).min(input.len());
        let (taken, rest) = input.split_at_checked(missing).unwrap_or_default();
        self.held.extend_from_slice(taken);
        *input = rest;
    }
}

/// Expands a payload, which must be exactly as long as it claims.
fn expand(
    compression: ConnectionCompression,
    expander: &mut DCtx<'_>,
    payload: &[u8],
    plain_size: usize,
    plain: &mut Vec<u8>,
) -> Result<()> {
    let bad = |found: &str| Error::invalid(WHAT, "payload", found, "data that can be expanded");
    match compression {
        ConnectionCompression::Zlib => {
            // At most `plain_size`, which has three bytes.
            let expanded = decompress_to_vec_zlib_with_limit(payload, plain_size);
            *plain = expanded.map_err(|error| bad(&format!("{:?}", error.status)))?;
        }
        ConnectionCompression::Zstd { .. } => {
            // It writes no more than there is room for.
            plain.reserve_exact(plain_size);
            let expanded = expander.decompress(plain, payload);
            expanded.map_err(|code| bad(zstd_safe::get_error_name(code)))?;
        }
    }
    if plain.len() != plain_size {
        return Err(Error::invalid(WHAT, "plain size", plain_size, "as many bytes as the payload holds"));
    }
    Ok(())
}

/// A size, which always fits: chunks are cut to fit.
fn three_bytes(size: usize) -> [u8; 3] {
    let [b0, b1, b2, ..] = (size as u32).to_le_bytes();
    [b0, b1, b2]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ConnectionCompression; 2] =
        [ConnectionCompression::Zlib, ConnectionCompression::Zstd { level: 3 }];

    fn compressed(compression: ConnectionCompression, packets: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        CompressedPackets::new(compression).compress(packets, true, &mut out).unwrap();
        out
    }

    /// All the output, for input in pieces of `size` bytes.
    fn expanded(compression: ConnectionCompression, bytes: &[u8], size: usize) -> Result<Vec<u8>> {
        let mut packets = CompressedPackets::new(compression);
        let mut all = Vec::new();
        let mut plain = Vec::new();
        for mut piece in bytes.chunks(size) {
            while packets.expand(&mut piece, &mut plain)? {
                all.extend_from_slice(&plain);
            }
            assert!(piece.is_empty());
        }
        Ok(all)
    }

    #[test]
    fn packets_come_back_in_pieces_of_any_size() {
        let text = b"a text that repeats itself, a text that repeats itself, a text that repeats itself";
        for compression in ALL {
            for packets in [&b""[..], b"short", text] {
                let bytes = compressed(compression, packets);
                assert_eq!(bytes.len() < packets.len(), packets == text, "{compression:?}");
                for size in 1..=bytes.len().max(1) {
                    assert_eq!(expanded(compression, &bytes, size).unwrap(), packets);
                }
            }
        }
        let large: Vec<u8> = (0..PACKET_PAYLOAD_MAX + 100).map(|index| (index / 1000) as u8).collect();
        for compression in ALL {
            assert!(expanded(compression, &compressed(compression, &large), 1 << 20).unwrap() == large);
        }
    }

    #[test]
    fn what_is_said_beside_an_exchange_does_not_count_in_it() {
        for compression in ALL {
            let mut source = CompressedPackets::new(compression);
            let mut replica = CompressedPackets::new(compression);
            let mut plain = Vec::new();
            let mut says = |source: &mut CompressedPackets, replica: &mut CompressedPackets| {
                let mut out = Vec::new();
                source.compress(&[7; 100], false, &mut out).unwrap();
                replica.expand(&mut out.as_slice(), &mut plain).map(|_| out[3])
            };
            assert_eq!(says(&mut source, &mut replica).unwrap(), 0);
            assert_eq!(says(&mut source, &mut replica).unwrap(), 1);
            let mut ack = Vec::new();
            replica.compress_beside(b"acknowledged", &mut ack).unwrap();
            assert_eq!(ack[3], 0);
            assert_eq!(says(&mut source, &mut replica).unwrap(), 2);
            source.expect_sequence(1);
            replica.expect_sequence(1);
            assert_eq!(says(&mut source, &mut replica).unwrap(), 1);
        }
    }

    #[test]
    fn a_client_begins_each_exchange_at_0() {
        for compression in ALL {
            let mut client = CompressedPackets::new(compression);
            let mut server = CompressedPackets::serving(compression);
            let mut plain = Vec::new();
            let mut says = |begins: bool, server: &mut CompressedPackets| {
                let mut out = Vec::new();
                client.compress(&[7; 100], begins, &mut out).unwrap();
                server.expand(&mut out.as_slice(), &mut plain).map(|_| plain.len())
            };
            for begins in [true, false, true, true] {
                assert_eq!(says(begins, &mut server).unwrap(), 100);
            }
            let mut answer = Vec::new();
            server.compress(b"answer", false, &mut answer).unwrap();
            assert_eq!(answer[3], 1, "after the client's");
            server.expect_sequence(7);
            assert!(says(false, &mut server).is_err(), "1 where 7 is next");
            let mut beside = Vec::new();
            client.compress(b"acknowledged", true, &mut beside).unwrap();
            let mut server = CompressedPackets::serving(compression);
            server.expect_sequence(7);
            server.expand_beside(&mut beside.as_slice(), &mut plain).unwrap();
            assert_eq!(plain, b"acknowledged");
            answer.clear();
            server.compress(b"event", false, &mut answer).unwrap();
            assert_eq!(answer[3], 7);
        }
    }

    #[test]
    fn what_does_not_shrink_stays_as_it_is() {
        let mut state = 1_u32;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        let noise: Vec<u8> = std::iter::repeat_with(&mut random).take(300).collect();
        for compression in ALL {
            let bytes = compressed(compression, &noise);
            assert_eq!(bytes[..HEADER_SIZE], [44, 1, 0, 0, 0, 0, 0]);
            assert_eq!(bytes[HEADER_SIZE..], noise);
        }
    }

    #[test]
    fn a_packet_that_lies_is_an_error() {
        for compression in ALL {
            let good = compressed(compression, &[7; 1000]);
            assert_eq!(expanded(compression, &good, 99).unwrap(), [7; 1000]);
            // Sizes one less, one more, and 16 MiB.
            for size in [999, 1001, 0xff_ffff] {
                let mut bytes = good.clone();
                bytes[4..7].copy_from_slice(&three_bytes(size));
                expanded(compression, &bytes, 99).unwrap_err();
            }
            let mut bytes = good.clone();
            bytes[3] = 1;
            let error = expanded(compression, &bytes, 99).unwrap_err().to_string();
            assert_eq!(error, "compressed packet: sequence is 1 where 0 is next, expected packets in order");
            for place in HEADER_SIZE..good.len() {
                let mut bytes = good.clone();
                bytes[place] ^= 0x55;
                // zstd has no checksum here: wrong bytes can expand to the right size.
                assert!(
                    expanded(compression, &bytes, 99).is_ok_and(|plain| plain.len() == 1000)
                        || expanded(compression, &bytes, 99).is_err()
                );
            }
        }
    }

    #[test]
    fn the_choice_is_libmysqlclients() {
        let choice = CompressionChoice { zlib: true, zstd: true, uncompressed: false, zstd_level: 7 };
        let both = Capabilities::COMPRESS | Capabilities::ZSTD_COMPRESSION;
        let zstd = ConnectionCompression::Zstd { level: 7 };
        assert_eq!(choice.with(both), Some(Some(ConnectionCompression::Zlib)));
        assert_eq!(choice.with(Capabilities::ZSTD_COMPRESSION), Some(Some(zstd)));
        assert_eq!(choice.with(Capabilities::default()), None);
        assert_eq!(CompressionChoice::default().with(both), Some(None));
    }
}
