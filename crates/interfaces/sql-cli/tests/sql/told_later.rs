//! Filters that other parts of a plan tell while it runs keep parts of an archive from being read: the answers are those of the log.

use std::fs;
use std::path::PathBuf;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{CommitTimestamps, GtidEvent, GtidFlags, LogicalClock};
use binlogz_binlog::gtid::ServerUuid;
use binlogz_testkit::builder::{LogBuilder, Release};
use tempfile::TempDir;

use crate::common::{Ran, SHAPES, archive_of, ask, sql};
use crate::pushdown::metric;
use crate::types::{Version, insert_into};

const TRANSACTIONS: u64 = 800;
const TEXT_SIZE: u16 = 1000;

/// A log of transactions a second apart, of so many rows each and by turns of two tables, and an archive of it. Of the last ones, the time of the first commit is
/// unknown.
fn over_time(untimed: u64, rows: u16) -> (PathBuf, PathBuf, TempDir) {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for number in 1..=TRANSACTIONS {
        let original = (number > TRANSACTIONS - untimed).then_some(0);
        let immediate = 1_700_000_000_000_000 + number * 1_000_000;
        let gtid = GtidEvent {
            flags: GtidFlags::default(),
            uuid: ServerUuid([7; 16]),
            gno: number,
            logical_clock: Some(LogicalClock {
                last_committed: number as i64 - 1,
                sequence_number: number as i64,
            }),
            commit_timestamps: Some(CommitTimestamps { immediate, original }),
            transaction_length: None,
            server_versions: None,
            commit_group_ticket: None,
            trailing: &[],
        };
        log.event(EventType::GTID, &gtid.encode().unwrap());
        let text_size = TEXT_SIZE / rows;
        let text = vec![b'a' + (number % 26) as u8; usize::from(text_size)];
        let row = |row: u16| {
            let id = number as u32 * u32::from(rows) + u32::from(row);
            [&[0][..], &id.to_le_bytes(), &text_size.to_le_bytes(), &text].concat()
        };
        let version = Version {
            types: vec![3, 15],
            // A longer one has two bytes for its length.
            metadata: TEXT_SIZE.to_le_bytes().to_vec(),
            names: vec!["id", "text"],
            row: (0..rows).flat_map(row).collect(),
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
    let (log, archive, _folder) = over_time(0, 1);
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

/// Rows without a time come before all others, wherever they are in the log.
#[test]
fn rows_without_a_time_are_not_passed_over() {
    let (log, archive, _folder) = over_time(5, 1);
    for statement in [
        "SELECT gtid, committed_at, after.id FROM shop.orders ORDER BY committed_at LIMIT 7",
        "SELECT gtid, committed_at FROM transactions ORDER BY committed_at, gtid DESC LIMIT 7",
        "SELECT gtid, committed_at FROM changes WHERE committed_at IS NULL OR gtid <> '' ORDER BY committed_at, gtid LIMIT 7",
    ] {
        let expected = ask(statement, std::slice::from_ref(&log)).ok();
        let without_time = expected.lines().filter(|line| line.contains(",,") || line.ends_with(',')).count();
        assert!((2..=5).contains(&without_time) && expected.lines().count() == 8, "{statement}: {expected}");
        assert_eq!(ask(statement, std::slice::from_ref(&archive)).ok(), expected, "{statement}");
    }
}

/// NULLs come first. Of most blocks the directory tells that none of their transactions lacks its time.
#[test]
fn the_first_transactions_leave_the_others_closed() {
    for statement in [
        "SELECT gtid, committed_at FROM transactions ORDER BY committed_at, gtid LIMIT 3",
        "SELECT gtid, \"table\", committed_at FROM changes ORDER BY committed_at, gtid, key LIMIT 3",
    ] {
        let archive = std::slice::from_ref(&SHAPES.archive);
        assert_eq!(ask(statement, archive).ok(), ask(statement, &SHAPES.plain).ok(), "{statement}");
        let plan = ask(&format!("EXPLAIN ANALYZE {statement}"), archive).ok();
        assert!(metric(&plan, "blocks_skipped") > 40, "{statement}: {plan}");
    }
}

/// NULLs would come first, and the statement leaves them out. A condition passes on thousands of rows at once; with several jobs, rows are
/// also read before the sort has seen those before.
#[test]
fn values_that_conditions_leave_no_null_of_end_the_reading() {
    let (log, archive, _folder) = over_time(5, 200);
    let ask = |statement: &str, input: &PathBuf| {
        Ran::from(sql(["--format", "csv", "--jobs", "1", statement]).arg(input).output().unwrap()).ok()
    };
    for statement in [
        "SELECT gtid FROM shop.orders WHERE committed_at > TIMESTAMP '2023-11-14 22:14:00' ORDER BY committed_at LIMIT 3",
        "SELECT gtid, after.id FROM shop.item WHERE after.id IS NOT NULL ORDER BY after.id LIMIT 3",
        "SELECT gtid, after.id FROM shop.item WHERE after.id > 1000 ORDER BY after.id LIMIT 3",
    ] {
        let expected = ask(statement, &log);
        assert_eq!(expected.lines().count(), 4, "{statement}: {expected}");
        assert_eq!(ask(statement, &archive), expected, "{statement}");
        let plan = ask(&format!("EXPLAIN ANALYZE {statement}"), &archive);
        let (read, skipped) = (metric(&plan, "blocks_read"), metric(&plan, "blocks_skipped"));
        assert!(skipped > 2 * read, "{statement}: {plan}");
    }
}
