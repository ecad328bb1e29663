//! The origin of a payload: binlogz, which marks its frames with zstd's content checksum if told to, or a
//! server, whose frames never carry one.
//!
//! ```text
//! size field
//!    n fields              see binlogz_binlog::event::transaction_payload
//!    4 frame magic         28 b5 2f fd
//!    1 frame descriptor    bit 2: a checksum of the content follows the frame
//! ```
//!
//! Only the front of the event is read; expanding it shows whether the rest is valid.

use binlogz_binlog::event::transaction_payload::HEADER_SIZE_LIMIT;
use binlogz_binlog::event::{CompressionType, TransactionPayloadHeader};

use crate::error::Result;

const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const CONTENT_CHECKSUM: u8 = 1 << 2;

/// The program that made a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// A server, or another program that does not mark frames.
    Server,
    /// binlogz: the transaction was plain before.
    Binlogz,
}

/// The origin of the payload whose event's body begins with `front` and has `body_size` bytes, its checksum
/// included or not, and its fields. `None` if `front` is too short to tell; [`HEADER_SIZE_LIMIT`] and five
/// bytes suffice.
///
/// # Errors
///
/// Fields that are damaged.
pub fn provenance(
    front: &[u8],
    body_size: u64,
) -> Result<Option<(Provenance, TransactionPayloadHeader<'_>)>> {
    let Some((header, size)) = TransactionPayloadHeader::decode_front(front, body_size)? else {
        return Ok(None);
    };
    if header.compression_type() != CompressionType::ZSTD {
        return Ok(Some((Provenance::Server, header)));
    }
    let frame = front.get(size..).unwrap_or_default();
    let Some((magic, [descriptor, ..])) = frame.split_at_checked(FRAME_MAGIC.len()) else {
        let whole = front.len() as u64 >= body_size || front.len() > HEADER_SIZE_LIMIT + FRAME_MAGIC.len();
        return Ok(whole.then_some((Provenance::Server, header)));
    };
    let marked = magic == FRAME_MAGIC && descriptor & CONTENT_CHECKSUM != 0;
    Ok(Some((if marked { Provenance::Binlogz } else { Provenance::Server }, header)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::compressor::Compressor;
    use crate::codec::level::CompressionLevel;

    fn body(mark: bool) -> Vec<u8> {
        let mut compressor = Compressor::new(CompressionLevel::DEFAULT).unwrap();
        compressor.mark_frames(mark).unwrap();
        let mut payload = Vec::new();
        compressor.compress(b"a transaction", &mut payload).unwrap();
        let mut body = Vec::new();
        TransactionPayloadHeader::new(CompressionType::ZSTD, payload.len() as u64, Some(13))
            .encode(&mut body);
        body.extend(payload);
        body
    }

    #[test]
    fn the_mark_is_seen_as_soon_as_its_byte_is_there() {
        for (mark, expected) in [(true, Provenance::Binlogz), (false, Provenance::Server)] {
            let body = body(mark);
            let tell = |size| {
                let told = provenance(&body[..size], body.len() as u64).unwrap();
                told.inspect(|(_, header)| assert_eq!(header.uncompressed_size(), Some(13)))
                    .map(|(maker, _)| maker)
            };
            let told: Vec<_> = (0..=body.len()).map(tell).collect();
            let first = told.iter().position(Option::is_some).unwrap();
            assert!(first <= 26 + 5, "{first}");
            assert!(told[first..].iter().all(|told| *told == Some(expected)));
        }
    }

    #[test]
    fn what_is_no_frame_is_not_ours() {
        let mut body = Vec::new();
        TransactionPayloadHeader::new(CompressionType::NONE, 6, None).encode(&mut body);
        body.extend([0x28, 0xb5, 0x2f, 0xfd, 4, 0]);
        let (maker, _) = provenance(&body, body.len() as u64).unwrap().unwrap();
        assert_eq!(maker, Provenance::Server);
        assert!(provenance(&[1, 1, 200, 0], 4).is_err());
    }
}
