//! The output of `stats`, and its errors.

use std::io::Read;

use crate::common::Folder;

/// A log with compressed transactions and others.
const LOG: &str = "binlog.000009";

fn folder() -> Folder {
    Folder::with_sample("compressed", LOG)
}

#[test]
fn tables_of_figures_for_people() {
    let ran = folder().run(["stats", "--all", LOG]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let titles: Vec<_> =
        ran.text().lines().filter(|line| !line.starts_with(' ') && !line.is_empty()).collect();
    assert_eq!(
        titles,
        [
            "Files",
            "Tables",
            "Largest transactions",
            "performance_schema.binary_log_transaction_compression_stats",
            "Why transactions are not compressed",
            "Transactions by size",
            "Hours",
        ]
    );
    folder().run(["stats", "--by", "size", LOG]).is(0, BY_SIZE, "");
}

#[test]
fn a_summary_is_enough_at_first() {
    folder().run(["stats", LOG]).is(0, SUMMARY, "");
    let ran = folder().run(["stats", "--top=1", "--bytes", LOG]);
    assert!(ran.text().contains("bytes of events stored in "), "{}", ran.text());
    let tables: Vec<_> = ran.text().lines().filter(|line| line.starts_with("  mix ")).collect();
    assert_eq!(tables.len(), 1, "{}", ran.text());
}

const SUMMARY: &str = "\
1 file, 5.7 KiB, server 9.7.4-2
22 transactions, 2026-11-21 04:37:45 to 2026-11-21 04:37:45 UTC
16 rows changed in 2 tables: 13 inserted, 2 updated, 1 deleted
4.9 KiB of events stored in 3.3 KiB, 34 % saved; 14 of the transactions compressed
largest transaction: 531 B, 49fc2641-e565-11f1-8b9c-02fc00000001:474, binlog.000009 at 2173

Largest tables
  database  table  transactions  inserts  updates  deletes  uncompressed bytes  compressed bytes  saved %  share %
  mix       gtids             7        6        1        1             1.1 KiB             653 B       42     53.2
  mix       xa                7        7        1        0               991 B             554 B       44     46.8

More: --all, or --by file, table, transaction, size or hour. What compression would save: binlogz advise
";

/// The figures of the transactions that were chosen.
fn chosen(options: &[&str]) -> serde_json::Value {
    let ran = folder().run(["stats", "--format=json", LOG].iter().chain(options));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{options:?}");
    serde_json::from_str(ran.text()).unwrap()
}

#[test]
fn what_is_counted_can_be_chosen() {
    let all = chosen(&[]);
    let count = |document: &serde_json::Value, name: &str| document["files"][0][name].as_u64().unwrap();
    // A filter that chooses everything changes nothing but the events outside of transactions.
    let ever = chosen(&["--start-datetime=1970-01-02 00:00:00", "--stop-datetime=2100-01-01 00:00:00"]);
    for name in ["tables", "transactions", "compression", "sizes", "hours", "not_compressed"] {
        assert_eq!(ever[name], all[name], "{name}");
    }
    assert!(count(&ever, "events") < count(&all, "events"));

    let of_table = chosen(&["--table=mix.xa"]);
    assert_eq!(of_table["tables"].as_array().unwrap().len(), 1);
    assert_eq!((count(&of_table, "transactions"), count(&of_table, "inserts")), (7, 7));

    let largest = &all["transactions"][0];
    let (gtid, commit) = (largest["transaction_id"].as_str().unwrap(), largest["commit"].as_str().unwrap());
    let of_gtid = chosen(&["--include-gtids", gtid]);
    assert_eq!(count(&of_gtid, "transactions"), 1);
    assert_eq!(of_gtid["transactions"], serde_json::json!([largest]));
    assert!(count(&of_gtid, "events") > 1 && count(&of_gtid, "events") < count(&ever, "events"));

    // Every transaction lies before or after a moment.
    let [before, after] = ["--stop-datetime", "--start-datetime"]
        .map(|option| count(&chosen(&[option, &format!("{commit}Z")]), "transactions"));
    assert!(before > 0 && after > 0, "{before} {after}");
    assert_eq!(before + after, count(&all, "transactions"));
    for jobs in ["--jobs=1", "--jobs=7"] {
        assert_eq!(chosen(&["--table=mix.xa", jobs]), of_table);
    }

    let ran = folder().run(["stats", "--table=mix.no_such", LOG]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.stderr, "binlogz: warning: nothing in these logs is what was chosen\n");
}

const BY_SIZE: &str = "\
Transactions by size
  size from  size to  transactions  compressed transactions  row changes  uncompressed bytes  compressed bytes  saved %
        0 B    256 B            15                        7            7             2.3 KiB           1.9 KiB       15
      256 B  1.0 KiB             7                        7            9             2.7 KiB           1.3 KiB       50
";

#[test]
fn sizes_in_bytes() {
    let ran = folder().run(["stats", "--by=size", "--bytes", LOG]);
    let row = "          0      256            15                        7            7               2,325             1,974       15";
    assert_eq!(ran.text().lines().nth(2), Some(row));
}

#[test]
fn csv_for_spreadsheets() {
    folder().run(["stats", "--by=table", "--format=csv", "--top=2", LOG]).is(0, BY_TABLE, "");
    let ran = folder().run(["stats", "--format=csv", LOG]);
    let first = ran.text().lines().next().unwrap();
    assert!(first.starts_with("LOG_TYPE,COMPRESSION_TYPE,TRANSACTION_COUNTER,COMPRESSED_BYTES_COUNTER,"));
    assert_eq!(ran.text().lines().count(), 3);
}

const BY_TABLE: &str = "\
database,table,transactions,inserts,updates,deletes,uncompressed_bytes,compressed_bytes,compression_percentage,share_percent
mix,gtids,7,6,1,1,1128,653,42,53.2
mix,xa,7,7,1,0,991,554,44,46.8
";

#[test]
fn json_for_programs_whatever_the_threads() {
    let folder = folder();
    let ran = folder.run(["stats", "--format=json", "--jobs=1", LOG]);
    let document: serde_json::Value = serde_json::from_str(ran.text()).unwrap();
    assert_eq!(document["compression"][0]["COMPRESSION_TYPE"], "ZSTD");
    assert_eq!(document["files"][0]["file"], LOG);
    assert_eq!(document["files"][0]["bytes"], folder.read(LOG).len());
    for jobs in ["--jobs=2", "--jobs=7"] {
        assert_eq!(folder.run(["stats", "--format=json", "--values", jobs, LOG]).text(), ran.text());
    }
    // A pipe gives the same but for its name.
    let piped = folder.run_with(["stats", "--format=json", "-"], &folder.read(LOG));
    assert_eq!(piped.text().replace("standard input", LOG), ran.text());
}

#[test]
fn files_are_counted_together_and_a_broken_one_is_left_out() {
    let folder = folder();
    let mut broken = folder.read(LOG);
    broken[300] ^= 1;
    folder.put("broken", &broken);
    let ran = folder.run(["stats", "--by=file", "--format=json", LOG, "broken", LOG, "missing"]);
    assert_eq!(ran.code, Some(2));
    let mut lines = ran.stderr.lines();
    let line = lines.next().unwrap();
    assert!(line.starts_with("binlogz: broken at ") && line.contains("checksum is 0x"), "{line}");
    assert_eq!(lines.next(), Some("binlogz: missing: No such file or directory (os error 2)"));
    let document: serde_json::Value = serde_json::from_str(ran.text()).unwrap();
    assert_eq!(document["files"].as_array().unwrap().len(), 2);
}

#[test]
fn a_log_that_is_missing_is_told_and_nothing_else() {
    for format in ["table", "json", "csv"] {
        let ran = folder().run(["stats", "--format", format, "no-such.000001"]);
        assert_eq!((ran.code, ran.stdout.as_slice()), (Some(2), &b""[..]), "{format}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn a_cut_log_is_an_error_unless_it_is_in_use() {
    let folder = folder();
    let mut cut = folder.read(LOG);
    cut.truncate(cut.len() - 3);
    folder.put("cut", &cut);
    let ran = folder.run(["stats", "cut"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("the log ends inside an event"), "{}", ran.stderr);
    // The in-use flag of the format description.
    cut[4 + 17] |= 1;
    folder.put("cut", &cut);
    let ran = folder.run(["stats", "--by=file", "cut"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.starts_with("binlogz: warning: cut at "), "{}", ran.stderr);
}

#[test]
fn bad_usage_is_told() {
    for args in
        [&["stats"][..], &["stats", "--by", "day", LOG], &["stats", "--top=0", LOG], &["stats", "-", "-"]]
    {
        assert_eq!(folder().run(args).code, Some(2), "{args:?}");
    }
}

#[test]
fn a_closed_pipe_is_a_quiet_success() {
    let folder = folder();
    let mut child = folder.spawn(["stats", LOG]);
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}
