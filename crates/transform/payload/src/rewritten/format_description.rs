//! Format descriptions of servers before 8.0.20: lengthened so that they announce type 40, and
//! shortened again.
//!
//! A reader refuses types above the count that the format description announces, so a log of an older server
//! must announce 40 types before it may hold a payload. The slots added hold what MySQL 9.7 writes there.
//! Going back, the version string tells how many there were; if it doesn't, the format description is left
//! alone.

use binlogz_binlog::event::{FormatDescription, POST_HEADER_LENGTHS};
use binlogz_binlog::{EventHeader, EventType, VerifiedFrame, frame::encode_event};

use crate::error::Result;

/// Types that must be announced where a payload follows.
const TYPES_WITH_PAYLOAD: usize = EventType::TRANSACTION_PAYLOAD.0 as usize;

/// The change that a log's format description needs before payloads may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcement {
    /// Nothing: it announces them, or no transaction has a GTID, so there will be none.
    Unchanged,
    /// The log gets this format description instead of its own.
    Changed(Vec<u8>),
    /// The format description can't be changed reversibly: payloads must not follow.
    Impossible,
}

/// The format description event under which payloads may follow.
pub fn announce_payloads(frame: &VerifiedFrame<'_>, description: &FormatDescription) -> Result<Announcement> {
    let count = description.post_header_lengths.len();
    if count >= TYPES_WITH_PAYLOAD {
        // Expand must not take an original format description for a lengthened one. If it would, the log is
        // our own, and stays as it is.
        return Ok(Announcement::Unchanged);
    }
    if types_of_version(description) != Some(count) {
        return Ok(if count < usize::from(EventType::GTID.0) {
            Announcement::Unchanged
        } else {
            Announcement::Impossible
        });
    }
    let added = POST_HEADER_LENGTHS.get(count..TYPES_WITH_PAYLOAD).unwrap_or_default();
    let lengths = [description.post_header_lengths.as_slice(), added].concat();
    Ok(Announcement::Changed(with_lengths(frame, description, lengths)))
}

/// The format description event as it was before [`announce_payloads`]; `None` if that did nothing.
pub fn withdraw_payloads(
    frame: &VerifiedFrame<'_>,
    description: &FormatDescription,
) -> Result<Option<Vec<u8>>> {
    let Some(count) = types_of_version(description) else { return Ok(None) };
    let added = description.post_header_lengths.get(count..).unwrap_or_default();
    let ours = POST_HEADER_LENGTHS.get(count..TYPES_WITH_PAYLOAD).unwrap_or_default();
    if added.is_empty() || added != ours {
        return Ok(None);
    }
    let lengths = description.post_header_lengths.get(..count).unwrap_or_default().to_vec();
    Ok(Some(with_lengths(frame, description, lengths)))
}

fn with_lengths(frame: &VerifiedFrame<'_>, description: &FormatDescription, lengths: Vec<u8>) -> Vec<u8> {
    let header = frame.header();
    let changed = FormatDescription { post_header_lengths: lengths, ..description.clone() };
    let grown =
        (changed.post_header_lengths.len() as u32).wrapping_sub(description.post_header_lengths.len() as u32);
    // Its position is that of its end, wherever it is; in artificial events it is 0 and stays so.
    let end_log_pos = match header.end_log_pos {
        0 => 0,
        end_log_pos if header.event_size <= end_log_pos => end_log_pos.wrapping_add(grown),
        end_log_pos => end_log_pos,
    };
    // A server that lacks type 40 and knows GTIDs writes a checksum after its format description.
    let algorithm = binlogz_binlog::ChecksumAlgorithm::CRC32;
    encode_event(EventHeader { end_log_pos, ..*header }, &changed.encode(), algorithm)
}

/// How many types a server of this version announces; `None` for servers that announce type 40, don't support
/// GTIDs, or are not MySQL's.
fn types_of_version(description: &FormatDescription) -> Option<usize> {
    if description.is_mariadb() {
        return None;
    }
    match description.server_version_number() {
        50_602..=50_699 => Some(35),
        50_700..=80_002 => Some(38),
        80_003..=80_019 => Some(39),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::event::SERVER_VERSION_SIZE;
    use binlogz_binlog::{ChecksumAlgorithm, Framing, HeaderFlags};

    use super::*;

    fn event(version: &str, types: usize, algorithm: ChecksumAlgorithm) -> Vec<u8> {
        let mut server_version = [0; SERVER_VERSION_SIZE];
        server_version[..version.len()].copy_from_slice(version.as_bytes());
        let description = FormatDescription {
            binlog_version: 4,
            server_version,
            created: 0,
            header_length: 19,
            post_header_lengths: POST_HEADER_LENGTHS[..types].to_vec(),
            checksum_algorithm: algorithm,
        };
        let header = EventHeader {
            timestamp: 1,
            event_type: EventType::FORMAT_DESCRIPTION,
            server_id: 1,
            event_size: 0,
            end_log_pos: 4 + 19 + 57 + types as u32 + 5,
            flags: HeaderFlags::IN_USE,
        };
        encode_event(header, &description.encode(), ChecksumAlgorithm::CRC32)
    }

    fn with<T>(event: &[u8], f: impl FnOnce(&VerifiedFrame<'_>, &FormatDescription) -> T) -> T {
        let frame = Framing::new().next_frame(event).unwrap().unwrap().verify().unwrap();
        f(&frame, &FormatDescription::decode_frame(&frame).unwrap())
    }

    #[test]
    fn older_servers_come_back_byte_for_byte() {
        for (version, types) in [("5.6.41-log", 35), ("5.7.44", 38), ("8.0.2-dmr", 38), ("8.0.19", 39)] {
            for algorithm in [ChecksumAlgorithm::NONE, ChecksumAlgorithm::CRC32] {
                let original = event(version, types, algorithm);
                let Announcement::Changed(changed) = with(&original, |f, d| announce_payloads(f, d).unwrap())
                else {
                    panic!("{version} unchanged");
                };
                assert_eq!(changed.len(), original.len() + 40 - types);
                with(&changed, |frame, description| {
                    assert_eq!(description.number_of_event_types(), 40);
                    assert_eq!(frame.header().end_log_pos as usize, 4 + changed.len());
                    assert_eq!(announce_payloads(frame, description).unwrap(), Announcement::Unchanged);
                });
                assert_eq!(with(&changed, |f, d| withdraw_payloads(f, d).unwrap()), Some(original));
            }
        }
    }

    #[test]
    fn newer_and_foreign_servers_are_left_alone() {
        for (version, types) in [("8.0.20", 40), ("9.7.4", 42), ("5.7.44", 38), ("10.11.6-MariaDB", 42)] {
            assert_eq!(
                with(&event(version, types, ChecksumAlgorithm::CRC32), |f, d| withdraw_payloads(f, d)
                    .unwrap()),
                None
            );
        }
        let odd = event("5.7.44", 36, ChecksumAlgorithm::CRC32);
        assert_eq!(with(&odd, |f, d| announce_payloads(f, d).unwrap()), Announcement::Impossible);
    }
}
