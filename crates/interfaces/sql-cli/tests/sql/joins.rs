//! A law: every join of every two tables over an archive of many blocks ends, with the answer that the log gives, and a reader that
//! pauses keeps no other waiting.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use binlogz_archive::storage;
use binlogz_query::{Logs, ParameterValues, Queries, QueryEngine, QueryOptions};
use binlogz_testkit::builder::{LogBuilder, Release};
use futures_util::StreamExt;
use tempfile::TempDir;

use crate::common::{Ran, archive_in_blocks, archive_of, ask, sql};
use crate::types::{Version, insert_into};

const TABLES: [&str; 5] = ["transactions", "changes", "events", "shop.item", "shop.orders"];
const TEXT_SIZE: u16 = 2000;
const BLOCKS_MIN: u64 = 30;
/// After so long nothing ends any more: each of these takes a second or two, but on a busy machine.
const HANGS: Duration = Duration::from_secs(600);

struct ManyBlocks {
    log: PathBuf,
    archive: PathBuf,
    _folder: TempDir,
}

/// A log of transactions that insert a row of some two kilobytes each, and an archive of it.
fn many_blocks(transactions: u32) -> ManyBlocks {
    let folder = tempfile::tempdir().unwrap();
    let log = log_of(folder.path(), transactions, TEXT_SIZE);
    let archive = folder.path().join("archive");
    archive_of(std::slice::from_ref(&log), &archive);
    let read =
        ask("EXPLAIN ANALYZE SELECT count(\"offset\") FROM changes", std::slice::from_ref(&archive)).ok();
    let (_, blocks) = read.split_once("blocks_read=").unwrap();
    let blocks: u64 = blocks.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    assert!(blocks >= BLOCKS_MIN, "{blocks} blocks");
    ManyBlocks { log, archive, _folder: folder }
}

/// A log of transactions that insert a row with a text of so many bytes each.
fn log_of(folder: &Path, transactions: u32, text_size: u16) -> PathBuf {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for number in 0..transactions {
        let text = vec![b'a' + (number % 26) as u8; usize::from(text_size)];
        let version = Version {
            types: vec![3, 15],
            metadata: text_size.to_le_bytes().to_vec(),
            names: vec!["id", "text"],
            row: [&[0][..], &number.to_le_bytes(), &text_size.to_le_bytes(), &text].concat(),
        };
        let table = if number % 2 == 0 { "item" } else { "orders" };
        log.transaction_of(&insert_into("shop", table, &version));
    }
    let path = folder.join("binlog.000001");
    fs::write(&path, log.bytes()).unwrap();
    path
}

/// The answer of a run that ends.
#[track_caller]
fn answer(statements: &str, input: &PathBuf) -> String {
    let mut command = sql(["--format", "csv", statements]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let file = fs::File::create(&out).unwrap();
    let mut child = command.arg(input).stdout(file).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > HANGS {
            child.kill().unwrap();
            let answered = fs::read_to_string(&out).unwrap();
            panic!("no end after {answered:?} of {statements}");
        }
        thread::sleep(Duration::from_millis(20));
    }
    let ran = Ran::from(child.wait_with_output().unwrap());
    Ran { out: fs::read_to_string(&out).unwrap(), ..ran }.ok()
}

#[test]
fn every_join_of_two_tables_of_an_archive_ends() {
    let logs = many_blocks(1200);
    let mut statements = String::new();
    for one in TABLES {
        for other in TABLES {
            statements.push_str(&format!(
                "SELECT count(*) AS \"{one} {other}\" FROM {one} a JOIN {other} b ON a.gtid = b.gtid; "
            ));
        }
        statements.push_str(&format!(
            "SELECT count(*) AS \"in\" FROM {one} WHERE gtid IN (SELECT gtid FROM {one}); "
        ));
    }
    let expected = answer(&statements, &logs.log);
    assert!(expected.contains("\ntransactions changes\n1200\n"), "{expected}");
    assert!(
        expected.contains("\nshop.orders shop.item\n0\nshop.orders shop.orders\n600\nin\n600\n"),
        "{expected}"
    );
    assert_eq!(answer(&statements, &logs.archive), expected);
}

/// So few that a join keeps them as a whole, and needn't divide the changes by their GTIDs.
#[test]
fn an_archive_tells_how_few_transactions_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_of(folder.path(), 2200, 20_000);
    let archive = folder.path().join("archive");
    archive_in_blocks(&storage::at(&archive).unwrap(), std::slice::from_ref(&log), None);
    let join =
        "SELECT t.thread_id, count(*) FROM changes c JOIN transactions t ON c.gtid = t.gtid GROUP BY 1";
    let [of_log, of_archive] = [&log, &archive].map(|input| {
        assert!(ask(join, std::slice::from_ref(input)).ok().contains(",2200\n"));
        ask(&format!("EXPLAIN {join}"), std::slice::from_ref(input)).ok()
    });
    assert!(of_log.contains("mode=Partitioned"), "{of_log}");
    assert!(of_archive.contains("mode=CollectLeft"), "{of_archive}");
}

#[test]
fn a_reader_that_pauses_keeps_no_other_waiting() {
    // More than waits anywhere between a log and its reader.
    let logs = many_blocks(6000);
    let folder = tempfile::tempdir().unwrap();
    let options = QueryOptions { memory: 1 << 30, jobs: 2, temporary: folder.path().to_owned() };
    let inputs = Logs::new(vec![logs.archive], None, |line| panic!("{line}")).unwrap();
    let engine = QueryEngine::new(inputs, &options).unwrap();
    let queries = engine.queries();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        for (paused, expected) in [("changes", 6000), ("events", 30_001), ("shop.item", 3000)] {
            let query = queries.plan(&format!("SELECT * FROM {paused}")).await.unwrap();
            let mut reader = queries.run(query, &ParameterValues::default(), HANGS, ()).await.unwrap();
            let mut count = reader.next().await.unwrap().unwrap().num_rows();
            assert!(count > 0 && count < expected, "{paused}: {count} at once");
            for (other, rows) in
                [("transactions", 6000), ("changes", 6000), ("shop.item", 3000), ("shop.orders", 3000)]
            {
                let counted = tokio::time::timeout(HANGS, count_of(&queries, other)).await;
                assert_eq!(counted.unwrap_or_else(|_| panic!("{other} waits for {paused}")), rows, "{other}");
            }
            while let Some(batch) = reader.next().await {
                count += batch.unwrap().num_rows();
            }
            assert_eq!(count, expected, "{paused}");
        }
    });
    engine.close();
}

/// The rows of a table, read one by one.
async fn count_of(queries: &Queries, table: &str) -> usize {
    let query = queries.plan(&format!("SELECT gtid, log FROM {table}")).await.unwrap();
    let mut reader = queries.run(query, &ParameterValues::default(), HANGS, ()).await.unwrap();
    let mut count = 0;
    while let Some(batch) = reader.next().await {
        count += batch.unwrap().num_rows();
    }
    count
}
