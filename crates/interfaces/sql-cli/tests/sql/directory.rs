//! Questions about transactions: an archive's directory of them answers as the logs do, and its blocks stay closed. Archives of
//! earlier versions, and blocks of which nothing is told, answer from their events (`pushdown.rs` asks the former).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::restore;
use binlogz_archive::storage::{self, ArchiveFolder, ArchiveStorage};
use binlogz_binlog::EventType;
use binlogz_testkit::builder::{LogBuilder, Release, change_events, insert_events, xid};
use binlogz_testkit::corpus;
use binlogz_testkit::mutate::mend_checksums;

use crate::common::{Ran, SHAPES, archive_of, ask, root, schema, sql};
use crate::pushdown::{all, metric};

/// The columns that a directory tells.
const COLUMNS: [&str; 18] = [
    "log",
    "position",
    "gtid",
    "committed_at",
    "applied_at",
    "logged_at",
    "server_id",
    "thread_id",
    "events",
    "bytes",
    "compressed_bytes",
    "uncompressed_bytes",
    "compression",
    "not_compressed",
    "inserted",
    "updated",
    "deleted",
    "tables",
];

/// What people ask.
const QUESTIONS: [&str; 12] = [
    "SELECT count(*) FROM transactions",
    "SELECT gtid, committed_at, bytes, tables FROM transactions ORDER BY bytes DESC, gtid LIMIT 20",
    "SELECT date_trunc('minute', committed_at) AS minute, count(*), sum(inserted + updated + deleted) FROM transactions GROUP BY 1 \
     ORDER BY 1",
    "SELECT thread_id, count(*), sum(bytes) FROM transactions GROUP BY 1 ORDER BY 1",
    "SELECT not_compressed, count(*) FROM transactions GROUP BY 1 ORDER BY 1",
    "SELECT t.thread_id, count(*) FROM employees.salaries s JOIN transactions t ON s.gtid = t.gtid GROUP BY 1 ORDER BY 1",
    "SELECT c.\"table\", max(t.bytes) FROM changes c JOIN transactions t ON c.gtid = t.gtid GROUP BY 1 ORDER BY 1",
    "SELECT log, position, gtid FROM transactions WHERE logged_at BETWEEN TIMESTAMP '2026-11-21 04:37:39' AND TIMESTAMP '2026-11-21 \
     04:37:44' ORDER BY 1, 2",
    "SELECT gtid, applied_at FROM transactions WHERE committed_at > TIMESTAMP '2026-11-21 04:37:44' AND log <> 'binlog.000003' ORDER BY 1, 2",
    "SELECT tables, bytes FROM transactions WHERE gtid IN (SELECT gtid FROM transactions WHERE updated > 0) ORDER BY bytes, tables",
    "SELECT log, max(bytes), min(position), count(DISTINCT server_id) FROM transactions GROUP BY 1 ORDER BY 1",
    "SELECT bytes FROM transactions LIMIT 7",
];

fn questions() -> Vec<String> {
    let columns = COLUMNS.iter().map(|column| format!("SELECT {column} FROM transactions"));
    let together = format!("SELECT {} FROM transactions", COLUMNS.join(", "));
    columns
        .chain([together, "SELECT * FROM transactions".to_owned()])
        .chain(QUESTIONS.map(String::from))
        .collect()
}

#[track_caller]
fn answers_are_equal(logs: &[PathBuf], archive: &PathBuf) -> String {
    let questions = questions();
    let questions: Vec<_> = questions.iter().map(String::as_str).collect();
    let expected = all(&questions, logs, "2");
    let found = all(&questions, std::slice::from_ref(archive), "2");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
    expected
}

#[test]
fn questions_about_transactions_have_the_answers_of_the_logs() {
    let expected = answers_are_equal(&SHAPES.plain, &SHAPES.archive);
    assert!(expected.lines().count() > 1000, "{}", expected.lines().count());
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    archive_of(&SHAPES.compressed, &archive);
    answers_are_equal(&SHAPES.compressed, &archive);
    for (column, archive) in [("gtid, bytes", &SHAPES.archive), ("gtid, thread_id", &archive)] {
        let plan = format!("EXPLAIN ANALYZE SELECT {column} FROM transactions WHERE inserted > 0");
        let plan = ask(&plan, std::slice::from_ref(archive)).ok();
        // But for those that are never told, as LOAD DATA, and the few whose events are larger than a block is here.
        assert!(metric(&plan, "blocks_told") > 60 && metric(&plan, "blocks_read") < 60, "{plan}");
    }
    let plan =
        ask("EXPLAIN ANALYZE SELECT statement FROM transactions", std::slice::from_ref(&SHAPES.archive));
    assert_eq!(metric(&plan.ok(), "blocks_told"), 0);
}

/// How much of an archive a question about transactions reads, as `--verbose` says.
fn size_read(column: &str, archive: &Path) -> String {
    let statement = format!("SELECT {column} FROM transactions");
    let ran: Ran = sql(["--format", "csv", "--verbose", &statement]).arg(archive).output().unwrap().into();
    let size = ran.error.split(": ").nth(2).and_then(|cost| cost.split(", ").next());
    size.unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

/// Runs that the directory tells alternate with runs whose events are read: progress counts each log once.
#[test]
fn a_log_that_is_told_in_parts_is_read_once() {
    let archive = &SHAPES.archive;
    let plan = ask("EXPLAIN ANALYZE SELECT gtid FROM transactions", std::slice::from_ref(archive)).ok();
    assert!(metric(&plan, "blocks_told") > 0 && metric(&plan, "blocks_read") > 10, "{plan}");
    let whole = size_read("statement", archive);
    assert!(whole.ends_with("iB"), "{whole}");
    assert_eq!(size_read("gtid", archive), whole);
}

/// A run over a log or its archive: its code, its output, and what it said, without the folder.
fn answered(statement: &str, input: &Path) -> (Option<i32>, String, String) {
    let ran: Ran = sql(["--format", "csv", statement]).arg(input).output().unwrap().into();
    let folder = if input.is_dir() { input } else { input.parent().unwrap() };
    (ran.code, ran.out, ran.error.replace(&format!("{}/", folder.display()), ""))
}

/// All columns, and those that payloads don't change.
#[track_caller]
fn answers_as_its_archive(log: &Path, archive: &Path) {
    let together = COLUMNS.join(", ");
    for columns in [
        together.as_str(),
        "gtid, tables",
        "committed_at, applied_at, logged_at",
        "server_id, thread_id, inserted, deleted",
    ] {
        let statement = format!("SELECT {columns} FROM transactions");
        assert_eq!(answered(&statement, archive), answered(&statement, log), "{columns}: {}", log.display());
    }
    let counts =
        "SELECT gtid, committed_at, operation, count(*) FROM changes GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";
    assert_eq!(answered(counts, archive), answered(counts, log), "{}", log.display());
}

/// Archives logs by themselves and compares the answers.
fn each_answers_as_its_archive(logs: &[PathBuf]) {
    let folder = tempfile::tempdir().unwrap();
    for (log, number) in logs.iter().zip(0..) {
        let archive = folder.path().join(number.to_string());
        archive_of(std::slice::from_ref(log), &archive);
        answers_as_its_archive(log, &archive);
    }
}

/// Logs of other kinds: relay logs, payloads of every level, MariaDB's, XA transactions, statements, without GTIDs.
#[test]
fn logs_of_every_kind_answer_as_their_archives() {
    let files = ["mysql-9.7.4", "mariadb-10.11", "cases"];
    let folders = files.map(|name| corpus::path("binlog.000001").parent().unwrap().with_file_name(name));
    let mut logs: Vec<_> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            !["encrypted", "keyring", "schema.sql", "levels.000002"].iter().any(|other| name.contains(other))
        })
        .collect();
    logs.extend(["binlog.000007", "binlog.000009"].map(|name| root().join("samples/compressed").join(name)));
    assert!(logs.len() > 15, "{logs:?}");
    each_answers_as_its_archive(&logs);
}

/// A server before GTIDs, one that has them off, and logs with transactions of both.
#[test]
fn logs_without_gtids_answer_as_their_archives() {
    let folder = tempfile::tempdir().unwrap();
    let releases = [Release::MYSQL_5_5, Release::MYSQL_8_0_20, Release::MARIADB_10_11];
    let logs = releases.map(|release| {
        let mut log = LogBuilder::new(release);
        let kind = log.write_rows();
        for number in 0..60 {
            let value = format!("row {number}");
            let events = [insert_events(kind, &[value.as_bytes()]), vec![xid()]].concat();
            log.transaction_without_gtid(&events);
            if release == Release::MYSQL_8_0_20 && number % 7 == 0 {
                log.transaction(&[value.as_bytes()]);
            }
        }
        let path = folder.path().join(format!("binlog.{:06}", log.offset()));
        fs::write(&path, log.bytes()).unwrap();
        path
    });
    each_answers_as_its_archive(&logs);
}

/// Where the events of a log end.
fn event_ends(log: &[u8]) -> Vec<usize> {
    let size_at =
        |at: usize| log.get(at + 9..at + 13).map(|size| u32::from_le_bytes(size.try_into().unwrap()));
    std::iter::successors(Some(4), |&at| size_at(at).map(|size| at + size as usize)).skip(1).collect()
}

/// The log of a server that was killed ends within a transaction.
#[test]
fn logs_that_end_within_a_transaction_answer_as_their_archives() {
    let folder = tempfile::tempdir().unwrap();
    let log = fs::read(root().join("samples/plain/binlog.000004")).unwrap();
    let ends = event_ends(&log);
    assert!(ends.len() > 310 && ends.last() == Some(&log.len()), "{ends:?}");
    let logs: Vec<_> = ends[301..306]
        .iter()
        .map(|&end| {
            let path = folder.path().join(format!("binlog.{end:06}"));
            fs::write(&path, &log[..end]).unwrap();
            path
        })
        .collect();
    each_answers_as_its_archive(&logs);
}

/// A log of many small transactions of two tables' kinds.
fn many_transactions(count: u32) -> Vec<u8> {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for number in 0..count {
        let value = format!("row {number}");
        match number % 5 {
            0 => log.transaction(&[value.as_bytes(), b"another"]),
            1 => log.transaction_of(&change_events(EventType::UPDATE_ROWS, &[value.as_bytes(), b"after"])),
            _ => log.transaction(&[value.as_bytes()]),
        };
    }
    log.take()
}

/// Overwrites the blocks of an archive. Its index, contents and directories stay.
fn without_blocks(archive: &Path) {
    let folder = ArchiveFolder::new(archive);
    for object in
        folder.stored().unwrap().iter().map(|object| &object.name).filter(|name| name.starts_with("segment-"))
    {
        let path = archive.join("objects").join(object);
        let mut bytes = fs::read(&path).unwrap();
        for block in restore::open(&folder, object).unwrap().index.blocks {
            bytes[block.at as usize..(block.at + block.packed_size) as usize].fill(0);
        }
        fs::write(&path, bytes).unwrap();
    }
}

/// Usual questions about transactions are answered although no block can be opened.
#[test]
fn questions_about_transactions_open_no_block() {
    let folder = tempfile::tempdir().unwrap();
    let (path, archive) = (folder.path().join("binlog.000001"), folder.path().join("archive"));
    fs::write(&path, many_transactions(5000)).unwrap();
    archive_of(std::slice::from_ref(&path), &archive);
    without_blocks(&archive);
    let questions = [
        "SELECT gtid, committed_at, bytes, inserted, tables FROM transactions ORDER BY bytes DESC, gtid LIMIT 10",
        "SELECT date_trunc('minute', committed_at) AS minute, count(*) FROM changes GROUP BY 1 ORDER BY 1",
        "SELECT thread_id, server_id, count(*), sum(inserted), sum(updated) FROM transactions GROUP BY 1, 2",
        "SELECT operation, count(*) FROM changes WHERE gtid IS NOT NULL AND committed_at IS NOT NULL GROUP BY 1 ORDER BY 1",
        "SELECT count(*) FROM transactions a JOIN transactions b ON a.gtid = b.gtid WHERE a.updated > 0",
    ];
    for question in questions {
        let expected = ask(question, std::slice::from_ref(&path)).ok();
        assert!(expected.lines().count() > 1, "{expected}");
        assert_eq!(ask(question, std::slice::from_ref(&archive)).ok(), expected, "{question}");
        let plan = ask(&format!("EXPLAIN ANALYZE {question}"), std::slice::from_ref(&archive)).ok();
        assert!(metric(&plan, "blocks_told") > 20 && metric(&plan, "blocks_read") == 0, "{plan}");
    }
    let opened = ask("SELECT max(statement) FROM transactions", std::slice::from_ref(&archive));
    assert!(opened.failure().contains("block"));
}

/// Where transactions begin comes from the directory, with columns of rows; of a log that had payloads, from the log.
#[test]
fn positions_are_picked_with_columns_of_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (path, archive) = (folder.path().join("binlog.000001"), folder.path().join("archive"));
    fs::write(&path, many_transactions(5000)).unwrap();
    archive_of(std::slice::from_ref(&path), &archive);
    for statement in [
        "SELECT position, gtid, operation, \"row\", key, before, after FROM shop.item",
        "SELECT min(position), max(position), count(DISTINCT position) FROM shop.item WHERE operation = 'update'",
    ] {
        let expected = ask(statement, std::slice::from_ref(&path)).ok();
        assert_eq!(ask(statement, std::slice::from_ref(&archive)).ok(), expected, "{statement}");
        let plan = ask(&format!("EXPLAIN ANALYZE {statement}"), std::slice::from_ref(&archive)).ok();
        let (read, picked) = (metric(&plan, "blocks_read"), metric(&plan, "blocks_picked"));
        assert!(picked > 20 && picked == read, "{plan}");
    }
    let samples = [(&SHAPES.plain, "plain"), (&SHAPES.compressed, "compressed")].map(|(logs, name)| {
        let archive = folder.path().join(name);
        archive_of(logs, &archive);
        (logs, archive)
    });
    let statement = "SELECT log, position, \"row\", after.emp_no FROM employees.salaries";
    for (logs, archive) in samples {
        assert_eq!(ask_named(statement, std::slice::from_ref(&archive)), ask_named(statement, logs));
    }
}

/// The answer with the names that the samples' tables have.
fn ask_named(statement: &str, inputs: &[PathBuf]) -> String {
    let mut command = sql(["--format", "csv", "--schema"]);
    Ran::from(command.arg(schema()).arg(statement).args(inputs).output().unwrap()).ok()
}

/// The log with other times of commit, whose steps look like no others.
fn at_random_times(mut log: Vec<u8>) -> Vec<u8> {
    let mut time = 1_700_000_000_000_000u64;
    let known = time.to_le_bytes();
    let mut step = 1;
    for at in 0..log.len() - 7 {
        if log[at..at + 7] == known[..7] {
            step = step * 48_271 % 2_147_483_647;
            time += step;
            log[at..at + 7].copy_from_slice(&time.to_le_bytes()[..7]);
        }
    }
    mend_checksums(&mut log);
    log
}

/// Where the directory has no room for times of commit, they come from the streams of GTID events.
#[test]
fn times_without_room_are_those_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (path, archive) = (folder.path().join("binlog.000001"), folder.path().join("archive"));
    fs::write(&path, at_random_times(many_transactions(5000))).unwrap();
    let mut told = |_: &CreateOutcome| {};
    let storage = storage::at(&archive).unwrap();
    let mut creator = Creator::new(&storage, 2, &mut told).unwrap();
    creator.add("binlog.000001", Arc::new(File::open(&path).unwrap())).unwrap();
    creator.finish().unwrap();
    for statement in [
        "SELECT gtid, committed_at, applied_at FROM transactions",
        "SELECT date_trunc('hour', committed_at) AS hour, count(*) FROM changes GROUP BY 1 ORDER BY 1",
    ] {
        let expected = ask(statement, std::slice::from_ref(&path)).ok();
        assert!(expected.lines().count() > 100, "{expected}");
        assert_eq!(ask(statement, std::slice::from_ref(&archive)).ok(), expected);
        let plan = ask(&format!("EXPLAIN ANALYZE {statement}"), std::slice::from_ref(&archive)).ok();
        let (read, picked) = (metric(&plan, "blocks_read"), metric(&plan, "blocks_picked"));
        assert!(read > 0 && read == picked && metric(&plan, "blocks_told") == 0, "{plan}");
    }
}

/// An archive whose manifest has parts.
#[test]
fn archives_in_parts_answer_as_their_logs() {
    let folder = tempfile::tempdir().unwrap();
    let logs: Vec<_> = (1..=260)
        .map(|number| {
            let mut log = LogBuilder::new(Release::MYSQL_9_7);
            log.behind_gno(number * 2);
            log.transaction(&[b"one"]).transaction(&[format!("row {number}").as_bytes()]);
            let path = folder.path().join(format!("binlog.{number:06}"));
            fs::write(&path, log.bytes()).unwrap();
            path
        })
        .collect();
    let archive = folder.path().join("archive");
    archive_of(&logs, &archive);
    let manifest = fs::read_to_string(archive.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"version\": 14"), "{manifest}");
    let statement = "SELECT log, position, gtid, bytes, inserted FROM transactions ORDER BY gtid, log";
    assert_eq!(ask(statement, std::slice::from_ref(&archive)).ok(), ask(statement, &logs).ok());
    let plan = ask(&format!("EXPLAIN ANALYZE {statement}"), std::slice::from_ref(&archive)).ok();
    assert!(metric(&plan, "blocks_told") == 260 && metric(&plan, "blocks_read") == 0, "{plan}");
}
