//! What `advise` prints, and how it fails.

mod common;

use common::{Folder, Ran};
use serde_json::Value;

/// A log with compressed transactions and others.
const LOG: &str = "binlog.000009";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.sample("compressed", LOG);
    folder
}

fn document(ran: &Ran) -> Value {
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn a_recommendation_and_tables_for_people() {
    let ran = folder().run(["advise", "--levels=3", LOG]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let mut titles = ran.text().lines().filter(|line| !line.starts_with(' ') && !line.is_empty());
    assert!(titles.next().unwrap().starts_with("Recommendation: "));
    let titles: Vec<_> = titles.filter(|line| *line != "A day at this rate").collect();
    assert_eq!(
        titles,
        [
            "What was looked at",
            "By level",
            "Transactions that would stay as they are",
            "By size of transaction",
            "By table",
            "By hour",
        ]
    );
}

#[test]
fn exact_sizes_are_those_of_compress() {
    let folder = folder();
    let report = document(&folder.run(["advise", "--levels=19,3,3", "--format=json", LOG]));
    let levels: Vec<_> =
        report["levels"].as_array().unwrap().iter().map(|row| row["level"].clone()).collect();
    assert_eq!(levels, [3, 19]);
    for row in report["levels"].as_array().unwrap() {
        let level = format!("--level={}", row["level"]);
        let compressed = folder.run(["compress", "--recompress", &level, "--force", "--output=out", LOG]);
        assert_eq!(compressed.code, Some(0), "{}", compressed.stderr);
        assert_eq!(row["bytes"], folder.read("out").len());
    }
    assert_eq!(report["summary"][0]["bytes_read"], folder.read(LOG).len());
}

#[test]
fn a_log_from_a_pipe_measures_the_same() {
    let folder = folder();
    let [file, pipe] = [
        folder.run(["advise", "--levels=3", "--format=json", LOG]),
        folder.run_with(["advise", "--levels=3", "--format=json", "-"], &folder.read(LOG)),
    ]
    .map(|ran| document(&ran));
    assert_eq!(file["levels"][0]["bytes"], pipe["levels"][0]["bytes"]);
    assert_eq!(file["tables"], pipe["tables"]);
}

#[test]
fn a_log_without_anything_to_compress_is_left_alone() {
    let folder = folder();
    let nothing = folder.read(LOG);
    // Magic and format description alone.
    let size = 4 + u32::from_le_bytes(nothing[13..17].try_into().unwrap()) as usize;
    folder.put("empty", &nothing[..size]);
    let report = document(&folder.run(["advise", "--format=json", "empty"]));
    assert_eq!(report["recommendation"][0]["verdict"], "leave_off");
    assert_eq!(report["recommendation"][0]["level"], Value::Null);
    assert_eq!(report["levels"][0]["saved_bytes"], 0);
    assert_eq!(report["per_day"].as_array().unwrap().len(), 0);
}

#[test]
fn trouble_is_one_line_and_the_others_are_measured() {
    let folder = folder();
    let ran = folder.run(["advise", "--levels=0", LOG]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("compression level is \"0\", expected 1 to 22"), "{}", ran.stderr);
    let bytes = folder.read(LOG);
    folder.put("cut", &bytes[..bytes.len() - 3]);
    let ran = folder.run(["advise", "--levels=3", "--format=json", "missing", "cut", LOG]);
    assert_eq!(ran.code, Some(2));
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines[0], "binlogz: missing: No such file or directory (os error 2)");
    assert!(lines[1].starts_with("binlogz: cut at ") && lines.len() == 2, "{lines:?}");
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(report["summary"][0]["files"], 1);
}
