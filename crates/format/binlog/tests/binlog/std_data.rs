//! The logs of MySQL 5.0 to 9.0 that the server's own test suite ships (Debian's `mysql-testsuite`,
//! `std_data` folders): every event decodes and encodes back into its bytes.
//!
//! They are the server's and not part of this tree: `BINLOGZ_STD_DATA` names a folder that holds
//! them, under whatever names.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use binlogz_binlog::event::{AnyEvent, FormatDescription, PostHeaderLengths};
use binlogz_binlog::{EventReader, EventType, MAGIC};
use binlogz_testkit::tool::std_data;

/// Files that are broken on purpose there, by a part of their path.
const BROKEN: [&str; 6] = [
    "no_fd_event",
    "truncated",
    "corrupt-relay-bin",
    // Edited after their checksums were written.
    "duplicate_xid",
    "malformed_xid",
    // Alphas of 5.1, whose type codes meant other things.
    "wl2325",
];

#[test]
#[ignore = "needs the logs of the server's test suite: scripts/soak/std-data.sh"]
fn logs_of_older_servers_encode_back_into_their_bytes() {
    let folder = std_data();
    let mut versions: BTreeMap<String, usize> = BTreeMap::new();
    for path in files(folder) {
        let bytes = fs::read(&path).unwrap();
        let name = path.display();
        if !bytes.starts_with(&MAGIC) || BROKEN.iter().any(|part| path.to_string_lossy().contains(part)) {
            continue;
        }
        let mut reader = EventReader::new(bytes.as_slice());
        let mut lengths = PostHeaderLengths::default();
        let mut version = String::new();
        while let Some((offset, frame)) =
            reader.next_event().unwrap_or_else(|error| panic!("{name}: {error}"))
        {
            if frame.event_type() == EventType::FORMAT_DESCRIPTION {
                let description = FormatDescription::decode_frame(&frame).unwrap();
                version = description.server_version().split('.').take(2).collect::<Vec<_>>().join(".");
                lengths = PostHeaderLengths::from(&description);
            }
            let event = AnyEvent::decode(&frame, &lengths);
            let event = event.unwrap_or_else(|error| panic!("{name} at {offset}: {error}"));
            assert_eq!(event.encode(&lengths).unwrap(), frame.body(), "{name} at {offset}: {event:?}");
            *versions.entry(version.clone()).or_default() += 1;
        }
    }
    for version in ["5.0", "5.1", "5.6", "5.7", "8.0", "9.0"] {
        assert!(versions.contains_key(version), "{version} is missing: {versions:?}");
    }
}

fn files(folder: PathBuf) -> Vec<PathBuf> {
    let mut folders = vec![folder];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}
