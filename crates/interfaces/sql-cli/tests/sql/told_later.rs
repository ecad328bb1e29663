//! Filters that other parts of a plan tell while it runs keep parts of an archive from being read: the answers are those of the log.

use std::fs;
use std::path::PathBuf;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{CommitTimestamps, GtidEvent, GtidFlags, LogicalClock};
use binlogz_binlog::gtid::ServerUuid;
use binlogz_testkit::builder::{LogBuilder, Release};
use tempfile::TempDir;

use crate::common::{archive_of, ask};
use crate::pushdown::metric;
use crate::types::{Version, insert_into};

const TRANSACTIONS: u64 = 800;
const TEXT_SIZE: u16 = 1000;

/// A log of transactions a second apart, by turns of two tables, and an archive of it.
fn over_time() -> (PathBuf, PathBuf, TempDir) {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for number in 1..=TRANSACTIONS {
        let immediate = 1_700_000_000_000_000 + number * 1_000_000;
        let gtid = GtidEvent {
            flags: GtidFlags::default(),
            uuid: ServerUuid([7; 16]),
            gno: number,
            logical_clock: Some(LogicalClock {
                last_committed: number as i64 - 1,
                sequence_number: number as i64,
            }),
            commit_timestamps: Some(CommitTimestamps { immediate, original: None }),
            transaction_length: None,
            server_versions: None,
            commit_group_ticket: None,
            trailing: &[],
        };
        log.event(EventType::GTID, &gtid.encode().unwrap());
        let text = vec![b'a' + (number % 26) as u8; usize::from(TEXT_SIZE)];
        let version = Version {
            types: vec![3, 15],
            metadata: TEXT_SIZE.to_le_bytes().to_vec(),
            names: vec!["id", "text"],
            row: [&[0][..], &(number as u32).to_le_bytes(), &TEXT_SIZE.to_le_bytes(), &text].concat(),
        };
        let events = insert_into("shop", if number % 2 == 0 { "item" } else { "orders" }, &version);
        // The BEGIN has the time of the builder, which is another.
        for (event_type, body) in events.iter().filter(|(event_type, _)| *event_type != EventType::QUERY) {
            log.event(*event_type, body);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, archive) = (folder.path().join("binlog.000001"), folder.path().join("archive"));
    fs::write(&path, log.bytes()).unwrap();
    archive_of(std::slice::from_ref(&path), &archive);
    (path, archive, folder)
}

/// The blocks that each scan of a plan opens.
fn opened(statement: &str, archive: &PathBuf) -> Vec<u64> {
    let explained = ask(&format!("EXPLAIN ANALYZE {statement}"), std::slice::from_ref(archive)).ok();
    let scans = explained.split("LogScan").skip(1).map(|scan| metric(scan, "blocks_read"));
    scans.collect()
}

#[test]
fn filters_that_a_plan_tells_while_it_runs_leave_few_blocks() {
    let (log, archive, _folder) = over_time();
    let all = opened("SELECT after FROM shop.orders", &archive)[0];
    assert!(all > 20, "{all}");
    for (statement, rows) in [
        // The keys of a join, as numbers and as GTIDs.
        (
            "SELECT gtid, after.id FROM shop.orders JOIN (SELECT max(after.id) AS id FROM shop.orders) m ON after.id = m.id",
            1,
        ),
        (
            "SELECT after.id FROM shop.orders o JOIN (SELECT max(gtid) AS gtid FROM changes) t ON o.gtid = t.gtid",
            1,
        ),
        (
            "SELECT after.id FROM shop.item JOIN (SELECT min(after.id) AS id FROM shop.orders WHERE after.id > 900) m ON after.id = m.id",
            0,
        ),
        // The rows that a sort with a limit has.
        ("SELECT gtid, after.id FROM shop.orders ORDER BY committed_at DESC LIMIT 3", 3),
        ("SELECT committed_at, gtid, bytes FROM transactions ORDER BY committed_at DESC, gtid LIMIT 5", 5),
        ("SELECT gtid, \"table\" FROM changes ORDER BY committed_at DESC, key LIMIT 4", 4),
    ] {
        let expected = ask(statement, std::slice::from_ref(&log)).ok();
        assert_eq!(expected.lines().count(), rows + 1, "{statement}: {expected}");
        assert_eq!(ask(statement, std::slice::from_ref(&archive)).ok(), expected, "{statement}");
        let opened = opened(statement, &archive);
        assert!(opened.iter().min().is_some_and(|blocks| *blocks <= 3), "{statement}: {opened:?} of {all}");
    }
}
