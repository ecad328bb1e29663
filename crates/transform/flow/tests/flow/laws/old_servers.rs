//! Law 1 for servers before 8.0.20, whose format descriptions have to announce payloads first.

use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::{ChecksumAlgorithm, EventReader, EventType, HeaderFlags};
use binlogz_payload::Ineligible;
use binlogz_testkit::builder::{LogBuilder, Release};

use super::support::{compress, compression, events, expand, places, run, same};

const OLD: [Release; 3] = [Release::MYSQL_5_6, Release::MYSQL_5_7, Release::MYSQL_8_0_19];

fn log(release: Release, checksum: ChecksumAlgorithm, flags: HeaderFlags) -> LogBuilder {
    let mut log = LogBuilder::with(release, checksum, flags);
    log.event(EventType::PREVIOUS_GTIDS, &[0; 8]);
    log.transaction(&[&[7; 400]]).transaction(&[&[8; 300], &[9; 70_000]]);
    log.event(EventType::ROTATE, b"\x04\0\0\0\0\0\0\0binlog.000002");
    log
}

fn types(log: &[u8]) -> u8 {
    let mut reader = EventReader::new(log);
    let (_, frame) = reader.next_event().expect("a log").expect("a format description");
    FormatDescription::decode_frame(&frame).expect("a format description").number_of_event_types()
}

#[test]
fn their_logs_announce_payloads_and_come_back() {
    for release in OLD {
        for checksum in [ChecksumAlgorithm::NONE, ChecksumAlgorithm::CRC32] {
            for flags in [HeaderFlags::default(), HeaderFlags::IN_USE] {
                let original = log(release, checksum, flags);
                let (compressed, summary) = run(places(original.bytes()), compression(3), 2).expect("a log");
                assert_eq!(summary.tally.changed, 2, "{release:?}");
                assert_eq!((types(original.bytes()), types(&compressed)), (release.types as u8, 40));
                same(release.version, "and back", &expand(&compressed), original.bytes());
                same(release.version, "compressed twice", &compress(&compressed, 3), &compressed);
                // Every event stands where it says it does.
                for event in events(&compressed) {
                    assert_eq!(event.header.end_log_pos as usize, event.end(), "{release:?}");
                }
            }
        }
    }
}

#[test]
fn newer_logs_keep_their_format_description() {
    for release in [Release::MYSQL_8_0_20, Release::MYSQL_9_7] {
        let original = log(release, ChecksumAlgorithm::CRC32, HeaderFlags::default());
        let compressed = compress(original.bytes(), 3);
        assert_eq!(compressed[..4 + 19 + 57], original.bytes()[..4 + 19 + 57], "{release:?}");
        assert_eq!(types(&compressed), release.types as u8);
        same(release.version, "and back", &expand(&compressed), original.bytes());
    }
}

#[test]
fn a_log_of_an_unknown_server_stays_as_it_is() {
    // 36 types: no server of 5.7 announces so many.
    let odd = Release { types: 36, ..Release::MYSQL_5_7 };
    let original = log(odd, ChecksumAlgorithm::CRC32, HeaderFlags::default());
    let (same_again, summary) = run(places(original.bytes()), compression(3), 2).expect("a log");
    same("odd", "compress", &same_again, original.bytes());
    assert_eq!(summary.tally.left().collect::<Vec<_>>(), [(Ineligible::FormatDescription, 2)]);
    same("odd", "expand", &expand(original.bytes()), original.bytes());
}

#[test]
fn a_relay_log_of_theirs_has_two_format_descriptions() {
    // A replica of 9.7 under a source of 5.7: the second format description is the one that counts.
    let mut relay = LogBuilder::with(Release::MYSQL_9_7, ChecksumAlgorithm::CRC32, HeaderFlags::RELAY_LOG);
    relay.flags(HeaderFlags::default()).positions(binlogz_testkit::builder::EndPositions::Source(4));
    relay.format_description(Release::MYSQL_5_7);
    relay.transaction(&[&[7; 400]]).transaction(&[&[8; 300]]);
    let (compressed, summary) = run(places(relay.bytes()), compression(3), 2).expect("a log");
    assert_eq!(summary.tally.changed, 2);
    same("relay log", "and back", &expand(&compressed), relay.bytes());
}
