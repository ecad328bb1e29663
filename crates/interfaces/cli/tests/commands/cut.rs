//! Every real log, cut at many places: an error with its offset, or a warning where the log is in use; no
//! panic, no partial output.

use crate::common::Folder;
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, HEADER_SIZE};
use binlogz_testkit::corpus;
use binlogz_testkit::random::Random;

/// Cuts a log and command. In process, every byte has its turn; here a process each.
const CUTS: usize = 4;

/// Where the events of a log begin, and where the last one ends.
fn boundaries(log: &[u8]) -> Vec<usize> {
    let mut boundaries = vec![4];
    let mut offset = 4;
    while let Some(header) = log.get(offset..offset + HEADER_SIZE) {
        let size = header[EVENT_SIZE_OFFSET..EVENT_SIZE_OFFSET + 4].try_into().unwrap();
        offset += u32::from_le_bytes(size) as usize;
        boundaries.push(offset);
    }
    boundaries
}

#[test]
fn every_log_cut_at_many_places() {
    let mut random = Random::new(binlogz_testkit::mutate::seed());
    let commands: [&[&str]; 4] = [
        &["compress", "--output", "out", "log"],
        &["expand", "--output", "out", "log"],
        &["verify", "log"],
        &["events", "--limit", "1000000", "log"],
    ];
    let folder = Folder::new();
    for log in corpus::binlogs() {
        let bytes = log.read();
        let boundaries = boundaries(&bytes);
        let (description_end, in_use) = (boundaries[1], bytes[21] & 1 == 1);
        for command in commands {
            for _ in 0..CUTS {
                // An empty file has a message of its own: messages.rs.
                let cut = 1 + random.below(bytes.len() - 1);
                if boundaries.contains(&cut) && cut > 4 {
                    continue;
                }
                folder.put("log", &bytes[..cut]);
                let ran = folder.run(command);
                let what = format!("{} cut at {cut}: {command:?}: {}", log.name, ran.stderr);
                let warns = in_use && cut > description_end;
                assert_eq!(ran.code, Some(if warns { 0 } else { 2 }), "{what}");
                let event = boundaries.iter().rev().find(|boundary| **boundary <= cut).copied().unwrap_or(0);
                let place = match cut {
                    0 => "binlogz: log: is empty, ".to_owned(),
                    _ => format!("binlogz: {}log at {event}: ", if warns { "warning: " } else { "" }),
                };
                assert!(ran.stderr.starts_with(&place), "{what}");
                assert_eq!(ran.stderr.lines().count(), 1, "{what}");
                if warns && command[0] != "verify" && command[0] != "events" {
                    std::fs::remove_file(folder.path("out")).unwrap();
                }
                assert_eq!(folder.names(), ["log"], "{what}");
            }
        }
    }
}
