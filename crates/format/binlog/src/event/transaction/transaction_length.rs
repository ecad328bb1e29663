//! Reads and rewrites the one field of a GTID event that depends on the rest of its transaction.
//!
//! `transaction_length` counts the bytes of the whole transaction in its log, including the GTID event and
//! every checksum. The field has a variable size and counts itself, so the writer looks for the fixed point:
//! 250 bytes without a field would make 251 with one of one byte, which takes three: 253.
//!
//! Nothing else of the event changes. Compressing and expanding call this once for each
//! transaction, so it neither decodes the event nor allocates beyond the caller's buffer.
//! (Facts of MySQL 9.7.4's `Gtid_event::update_{,un}tagged_transaction_length`.)

use super::{gtid, gtid_tagged};
use crate::EVENT_SIZE_MAX;
use crate::error::{Error, Result};
use crate::event_type::EventType;
use crate::frame::{EventFrame, VerifiedFrame};
use crate::header::{EventHeader, HEADER_SIZE};
use crate::put::{PutFields, lei_size, vli_size};

const WHAT: &str = "GTID event";

/// The bytes of the whole transaction, according to its GTID event (of any kind); `None` if the writer did
/// not have the field yet (before 8.0.2).
pub fn transaction_length(frame: &EventFrame<'_>) -> Result<Option<u64>> {
    let field = match frame.event_type() {
        EventType::GTID | EventType::ANONYMOUS_GTID => gtid::find_transaction_length(frame.body())?,
        EventType::GTID_TAGGED => gtid_tagged::find_transaction_length(frame.body())?.2,
        other => return Err(not_a_gtid(other)),
    };
    Ok(field.map(|field| field.value))
}

/// Appends a GTID event (of any kind) with the transaction length it has when `following_bytes` bytes follow
/// it in its transaction: events with their checksums, in the log being written.
///
/// `event_size` is updated. `end_log_pos` stays as it is, and in a log with checksums, four zero bytes take
/// the place of this event's: the caller fills in both, since it knows the event's new offset. An event
/// without the field is appended unchanged.
///
/// # Errors
///
/// The event is not a GTID event, is cut, or would grow beyond 1 GiB; `out` is then unchanged.
pub fn rewrite_transaction_length(
    frame: &VerifiedFrame<'_>,
    following_bytes: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    match frame.event_type() {
        EventType::GTID | EventType::ANONYMOUS_GTID => rewrite_untagged(frame, following_bytes, out),
        EventType::GTID_TAGGED => rewrite_tagged(frame, following_bytes, out),
        other => Err(not_a_gtid(other)),
    }
}

fn rewrite_untagged(frame: &VerifiedFrame<'_>, following_bytes: u64, out: &mut Vec<u8>) -> Result<()> {
    let body = frame.body();
    let Some(field) = gtid::find_transaction_length(body)? else {
        out.put(frame.bytes());
        return Ok(());
    };
    let event_size = |field_size| frame.bytes().len() - field.size + field_size;
    let length = fix_point([1, 3, 4, 9], event_size, following_bytes, lei_size)?;
    put_header(frame, event_size(lei_size(length)), out)?;
    out.put(body.get(..field.offset).unwrap_or_default());
    out.put_lei(length);
    out.put(body.get(field.offset + field.size..).unwrap_or_default());
    put_checksum_place(frame, out);
    Ok(())
}

fn rewrite_tagged(frame: &VerifiedFrame<'_>, following_bytes: u64, out: &mut Vec<u8>) -> Result<()> {
    let body = frame.body();
    let (head, fields_offset, Some(field)) = gtid_tagged::find_transaction_length(body)? else {
        out.put(frame.bytes());
        return Ok(());
    };
    let fields_size = |field_size| body.len() - fields_offset - field.size + field_size;
    let event_size = |field_size| {
        let fields_size = fields_size(field_size);
        HEADER_SIZE + head.size(fields_size) + fields_size + frame.checksum_size()
    };
    let length = fix_point([1, 2, 3, 4, 5, 6, 7, 8, 9], event_size, following_bytes, vli_size)?;
    put_header(frame, event_size(vli_size(length)), out)?;
    head.encode(fields_size(vli_size(length)), out);
    out.put(body.get(fields_offset..field.offset).unwrap_or_default());
    out.put_vli(length);
    out.put(body.get(field.offset + field.size..).unwrap_or_default());
    put_checksum_place(frame, out);
    Ok(())
}

/// The smallest length consistent with the size of its own field.
fn fix_point<const N: usize>(
    field_sizes: [usize; N],
    event_size: impl Fn(usize) -> usize,
    following_bytes: u64,
    size_of: fn(u64) -> usize,
) -> Result<u64> {
    field_sizes
        .into_iter()
        .find_map(|size| {
            let length = following_bytes.checked_add(event_size(size) as u64)?;
            (size_of(length) == size).then_some(length)
        })
        .ok_or_else(|| {
            Error::invalid(WHAT, "size of the transaction", following_bytes, "less than 2^64 bytes")
        })
}

fn put_header(frame: &EventFrame<'_>, event_size: usize, out: &mut Vec<u8>) -> Result<()> {
    match u32::try_from(event_size) {
        Ok(event_size) if event_size <= EVENT_SIZE_MAX => {
            out.put(&EventHeader { event_size, ..*frame.header() }.encode());
            Ok(())
        }
        _ => Err(Error::invalid(WHAT, "event size", event_size, "at most 1 GiB")),
    }
}

fn put_checksum_place(frame: &EventFrame<'_>, out: &mut Vec<u8>) {
    out.resize(out.len() + frame.checksum_size(), 0);
}

#[cold]
fn not_a_gtid(found: EventType) -> Error {
    Error::invalid(WHAT, "event type", found, "Gtid, AnonymousGtid or GtidTagged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::{ChecksumAlgorithm, VerifiedChecksum};
    use crate::event::AnyGtidEvent;
    use crate::header::HeaderFlags;
    use crate::{Framing, frame::encode_event};

    /// A GTID event from a 9.7.4 log: 77 bytes, transaction length 176.
    const GTID: &[u8; 77] = b"\
        \x9c\xf7\x00\x6b\x21\x43\x81\x00\x00\x4d\x00\x00\x00\xeb\x00\x00\x00\x00\x00\x01\x14\x10\x44\x7f\xe5\x4d\
        \x11\xf1\x84\x8d\x02\xfc\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\
        \x00\x01\x00\x00\x00\x00\x00\x00\x00\xec\x19\x3c\x82\xbf\x60\x06\xb0\x50\x62\x01\x00\xd1\xdc\x0a\x5f";

    /// A tagged GTID event from a 9.7.4 log: 79 bytes, tag `tag_1`, transaction length 257.
    const GTID_TAGGED: &[u8; 79] = b"\
        \x9c\xf7\x00\x6b\x2a\x43\x81\x00\x00\x4f\x00\x00\x00\xac\x06\x00\x00\x00\x00\x02\x70\x00\x00\x00\x02\x28\
        \x20\x88\xfe\x95\x03\x9a\x22\xc5\x03\x11\x02\x35\x02\x04\xf1\x03\x00\x00\x00\x02\x04\x04\x06\x0a\x74\x61\
        \x67\x5f\x31\x08\x0c\x0a\x1c\x0c\x7f\xa5\x42\x3c\x82\xbf\x60\x06\x10\x05\x04\x12\x83\x12\x0b\x92\x2f\x7e\
        \xfb";

    fn crc_framing() -> Framing {
        let mut description = crate::event::FormatDescription {
            binlog_version: 4,
            server_version: [0; 50],
            created: 0,
            header_length: 19,
            post_header_lengths: crate::event::POST_HEADER_LENGTHS.to_vec(),
            checksum_algorithm: ChecksumAlgorithm::CRC32,
        };
        description.server_version[..5].copy_from_slice(b"9.7.4");
        Framing::of(&description)
    }

    fn frame(bytes: &[u8]) -> VerifiedFrame<'_> {
        // Some have no checksum yet.
        let frame = crc_framing().next_frame(bytes).unwrap().unwrap().unchecked().unwrap();
        frame.proven(VerifiedChecksum::made_here())
    }

    /// Rewrites an event and checks the result's invariants; returns the length written.
    fn rewrite(event: &[u8], following_bytes: u64) -> (u64, Vec<u8>) {
        let mut out = b"before".to_vec();
        rewrite_transaction_length(&frame(event), following_bytes, &mut out).unwrap();
        let out = out.strip_prefix(b"before").unwrap().to_vec();
        let written = frame(&out);
        assert_eq!(written.bytes().len(), out.len());
        assert_eq!(written.stored_checksum(), Some(0));
        let length = transaction_length(&written).unwrap().unwrap();
        assert_eq!(length, following_bytes + out.len() as u64, "the length counts the event itself");
        let mut old = decode(&frame(event));
        let mut new = decode(&written);
        for event in [&mut old, &mut new] {
            match event {
                AnyGtidEvent::Untagged(event) => event.transaction_length = None,
                AnyGtidEvent::Tagged(event) => event.transaction_length = 0,
            }
        }
        assert_eq!(old, new);
        assert_eq!(
            EventHeader { event_size: 0, ..*frame(event).header() },
            EventHeader { event_size: 0, ..*written.header() }
        );
        (length, out)
    }

    fn decode<'a>(frame: &EventFrame<'a>) -> AnyGtidEvent<'a> {
        AnyGtidEvent::decode_frame(frame).unwrap().unwrap()
    }

    fn with_checksum(mut event: Vec<u8>) -> Vec<u8> {
        let covered = event.len() - 4;
        let crc = crate::checksum::crc32(&event[..covered]);
        event[covered..].copy_from_slice(&crc.to_le_bytes());
        event
    }

    #[test]
    fn the_same_length_gives_the_same_bytes() {
        for (event, length) in [(GTID.as_slice(), 176), (GTID_TAGGED.as_slice(), 257)] {
            assert_eq!(transaction_length(&frame(event)).unwrap(), Some(length));
            let (_, rewritten) = rewrite(event, length - event.len() as u64);
            assert_eq!(with_checksum(rewritten), event);
        }
    }

    #[test]
    fn the_length_counts_its_own_growth() {
        // 76 bytes without the field: 174 more are 250 without it and so 251, too many for a byte.
        for (following, length) in [(0, 77), (173, 250), (174, 253), (175, 254), (65_456, 65_535)] {
            assert_eq!(rewrite(GTID, following).0, length, "{following}");
        }
        for (following, length) in [(65_457, 65_537), (16_777_136, 16_777_221), (u64::MAX - 85, u64::MAX)] {
            assert_eq!(rewrite(GTID, following).0, length, "{following}");
        }
    }

    #[test]
    fn every_size_around_a_growth_is_consistent() {
        for event in [GTID.as_slice(), &GTID_TAGGED[..]] {
            for edge in [128, 250, 16_384, 65_536, 1 << 21, 1 << 24, 1 << 28, 1 << 35, 1 << 56] {
                for following in (edge - 100)..(edge + 10) {
                    rewrite(event, following);
                }
            }
        }
    }

    #[test]
    fn a_size_beyond_all_numbers_is_an_error() {
        for event in [GTID.as_slice(), &GTID_TAGGED[..]] {
            let mut out = Vec::new();
            let error = rewrite_transaction_length(&frame(event), u64::MAX, &mut out).unwrap_err();
            assert_eq!(
                error.to_string(),
                "GTID event: size of the transaction is 18446744073709551615, expected less than 2^64 bytes"
            );
            assert!(out.is_empty());
        }
    }

    #[test]
    fn old_events_have_no_length_and_stay_as_they_are() {
        let body = frame(GTID).body();
        for kept in [25, 42, 49] {
            let event = encode_event(*frame(GTID).header(), &body[..kept], ChecksumAlgorithm::CRC32);
            assert_eq!(transaction_length(&frame(&event)).unwrap(), None);
            let mut out = Vec::new();
            rewrite_transaction_length(&frame(&event), 1000, &mut out).unwrap();
            assert_eq!(out, event);
        }
    }

    #[test]
    fn other_events_are_refused() {
        let header = EventHeader {
            timestamp: 0,
            event_type: EventType::XID,
            server_id: 0,
            event_size: 0,
            end_log_pos: 0,
            flags: HeaderFlags::default(),
        };
        let event = encode_event(header, &[0; 8], ChecksumAlgorithm::CRC32);
        let error = transaction_length(&frame(&event)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "GTID event: event type is Xid, expected Gtid, AnonymousGtid or GtidTagged"
        );
        assert!(rewrite_transaction_length(&frame(&event), 0, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_cut_body_is_an_error_or_an_older_one() {
        for event in [GTID.as_slice(), &GTID_TAGGED[..]] {
            let whole = frame(event);
            for kept in 0..whole.body().len() {
                let cut = encode_event(*whole.header(), &whole.body()[..kept], ChecksumAlgorithm::CRC32);
                let mut out = Vec::new();
                let rewritten = rewrite_transaction_length(&frame(&cut), 1000, &mut out);
                assert_eq!(rewritten.is_ok(), transaction_length(&frame(&cut)).is_ok(), "{kept}");
                if rewritten.is_err() {
                    assert!(out.is_empty(), "{kept}");
                }
            }
        }
    }
}
