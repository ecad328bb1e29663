//! Law 7 over every generation of log: with and without GTIDs, statements and rows, transactions larger than a batch.
//!
//! Where no GTID event comes (5.5, 5.6 without GTIDs, relay logs of theirs), only BEGIN and its kind say where a
//! transaction begins. `scripts/soak/laws.sh` makes each log larger: GENERATIONS_MB.

use binlogz_binlog::{ChecksumAlgorithm, EventType, HeaderFlags};
use binlogz_flow::{BatchSize, LogVerdict, Memory, Rewrite, Rewriter, verify};
use binlogz_testkit::builder::{LogBuilder, Release, insert_events, query, xid};
use binlogz_testkit::setting;

use super::support::{Pieces, compression, places, rewritten, run, same, stream};

/// A way to log changes.
type Kind = fn(&mut LogBuilder, values: &[&[u8]]);

/// Bytes of values in each log, at least: more than the batches that are tried.
fn size_min() -> usize {
    match setting("GENERATIONS_MB", 0) {
        0 => 256 << 10,
        megabytes => megabytes << 20,
    }
}

const RELEASES: [Release; 7] = [
    Release::MYSQL_5_5,
    Release::MYSQL_5_6,
    Release::MYSQL_5_7,
    Release::MYSQL_8_0_19,
    Release::MYSQL_8_0_20,
    Release::MYSQL_9_7,
    Release::MARIADB_10_11,
];

fn begin(release: Release) -> LogBuilder {
    let checksum =
        if release == Release::MYSQL_5_5 { ChecksumAlgorithm::NONE } else { ChecksumAlgorithm::CRC32 };
    LogBuilder::with(release, checksum, HeaderFlags::default())
}

/// One statement with all rows.
fn one_insert(log: &mut LogBuilder, values: &[&[u8]]) {
    let mut events = insert_events(log.write_rows(), values);
    events.push(xid());
    log.transaction_without_gtid(&events);
}

/// A transaction for each row, with a statement of its own now and then, as DDL is logged.
fn one_row_each(log: &mut LogBuilder, values: &[&[u8]]) {
    for (index, value) in values.iter().enumerate() {
        let mut events = insert_events(log.write_rows(), &[value]);
        events.push(xid());
        log.transaction_without_gtid(&events);
        if index % 100 == 0 {
            log.event(EventType::QUERY, &query("CREATE TABLE t (a INT)"));
        }
    }
}

/// Statements with the events that belong to them, with and without BEGIN; and a transaction that ends with COMMIT.
fn statements(log: &mut LogBuilder, values: &[&[u8]]) {
    let intvar = [vec![2], 7u64.to_le_bytes().to_vec()].concat();
    for value in values {
        let insert = query(&format!("INSERT INTO t VALUES (NULL, x'{}')", "61".repeat(value.len() / 2)));
        let with_id = [(EventType::INTVAR, intvar.clone()), (EventType::QUERY, insert)];
        for (event_type, body) in &with_id {
            log.event(*event_type, body);
        }
        let commit = (EventType::QUERY, query("COMMIT"));
        log.transaction_without_gtid(&[with_id.clone().as_slice(), &with_id, &[commit]].concat());
    }
}

/// A relay log that begins inside a transaction, after its BEGIN: rows of one statement, then others.
fn a_tail(log: &mut LogBuilder, values: &[&[u8]]) {
    let (first, others) = values.split_at(values.len() / 2);
    let mut events = insert_events(log.write_rows(), first);
    events.push(xid());
    for (event_type, body) in events {
        log.event(event_type, &body);
    }
    one_row_each(log, others);
}

/// With the GTID events of its release, anonymous or not.
fn with_gtids(log: &mut LogBuilder, values: &[&[u8]]) {
    for values in values.chunks(40) {
        let mut events = vec![(EventType::QUERY, query("BEGIN"))];
        events.extend(insert_events(log.write_rows(), values));
        events.push(xid());
        log.transaction_of(&events);
    }
}

/// A log of each release and kind that it can have, with its name and how many rows it has.
fn logs() -> Vec<(String, Vec<u8>, u64)> {
    let size = size_min();
    let value_size = 400;
    let values: Vec<Vec<u8>> =
        (0..size / value_size + 1).map(|index| vec![(index % 251) as u8; value_size]).collect();
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    let kinds: [(&str, Kind); 5] = [
        ("one insert", one_insert),
        ("one row each", one_row_each),
        ("statements", statements),
        ("a tail", a_tail),
        ("GTIDs", with_gtids),
    ];
    let mut logs = Vec::new();
    for release in RELEASES {
        for (name, kind) in kinds {
            let has_none = [Release::MYSQL_5_5, Release::MARIADB_10_11].contains(&release);
            let has_always = !has_none && release != Release::MYSQL_5_6;
            if (has_none && name == "GTIDs") || (has_always && name != "GTIDs") {
                continue;
            }
            let mut log = begin(release);
            kind(&mut log, &values);
            let rows = if name == "statements" { 0 } else { values.len() as u64 };
            logs.push((format!("{}: {name}", release.version), log.take(), rows));
        }
    }
    logs
}

fn verdict(log: &[u8], workers: usize) -> LogVerdict {
    verify(places(log), workers, &mut |_| {}).expect("a whole log")
}

#[test]
fn a_healthy_log_of_any_generation_is_ok_with_any_number_of_workers() {
    for (name, log, rows) in logs() {
        let one = verdict(&log, 1);
        assert_eq!(one.problems().first(), None, "{name}");
        assert_eq!(one.findings.rows, rows, "{name}");
        assert!(!one.findings.ends_inside_transaction, "{name}");
        for workers in [2, 3, 8, 64] {
            assert_eq!(verdict(&log, workers).findings, one.findings, "{name}: {workers} workers");
        }
        let piped = verify(stream(Pieces::new(&log, 4099)), 2, &mut |_| {}).expect("a whole log");
        assert_eq!(piped.findings, one.findings, "{name}: through a pipe");
    }
}

#[test]
fn a_log_of_any_generation_is_rewritten_alike_with_any_size_of_batches() {
    for (name, log, _) in logs() {
        for how in [|| Rewrite::Expand, || compression(1)] as [fn() -> Rewrite; 2] {
            let expected = rewritten(&log, how());
            for workers in [1, 8] {
                let (out, _) = run(places(&log), how(), workers).expect("a whole log");
                same(&name, &format!("{workers} workers"), &out, &expected);
            }
            for (target, max) in [(1, 1000), (3000, 100_000)] {
                let memory = Memory::new(2, BatchSize { target, max }, 0);
                let mut out = Vec::new();
                Rewriter::new(how()).memory(&memory).run(places(&log), &mut out).expect(&name);
                same(&name, &format!("batches of {target}"), &out, &expected);
            }
        }
    }
}
