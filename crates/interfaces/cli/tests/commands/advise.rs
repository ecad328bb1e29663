//! The output of `advise`, and its errors.

use crate::common::{Folder, Ran};
use binlogz_testkit::Tool;
use binlogz_testkit::tool::require;
use serde_json::Value;

/// A log with compressed transactions and others.
const LOG: &str = "binlog.000009";

fn folder() -> Folder {
    Folder::with_sample("compressed", LOG)
}

fn document(ran: &Ran) -> Value {
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn a_recommendation_and_tables_for_people() {
    let ran = folder().run(["advise", "--details", "--levels=3", LOG]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let mut titles = ran.text().lines().filter(|line| !line.starts_with(' ') && !line.is_empty());
    assert!(titles.next().unwrap().starts_with("Recommendation: "));
    let titles: Vec<_> = titles.filter(|line| *line != "A day at this rate").collect();
    assert_eq!(
        titles,
        [
            "What was looked at",
            "By level",
            "The files as a whole, by zstd, and what is lost by compressing each transaction alone",
            "Transactions that would stay as they are",
            "By size of transaction",
            "By table",
            "By hour",
        ]
    );
}

/// All of its transactions are compressed, so a log of a few megabytes has an answer.
#[test]
fn every_sample_gets_an_answer_and_a_table() {
    let folder = Folder::new();
    let names: Vec<String> = (1..=9).map(|number| format!("binlog.00000{number}")).collect();
    for of in ["plain", "compressed"] {
        names.iter().for_each(|name| drop(folder.sample(of, name)));
        let logs: Vec<Vec<&str>> = names
            .iter()
            .map(|name| vec![name.as_str()])
            .chain([names.iter().map(String::as_str).collect()])
            .collect();
        for logs in logs {
            let ran = folder.run(["advise"].iter().chain(&logs));
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{logs:?}");
            let mut lines = ran.text().lines();
            let answer = lines.next().unwrap();
            assert!(answer.starts_with("Recommendation: "), "{answer}");
            // Ten transactions are too few, however they are measured.
            let has_answer = !["can't tell", "budget too small"].iter().any(|words| answer.contains(words));
            assert!(has_answer, "{of} {logs:?}: {}", ran.text());
            let reasons = lines.by_ref().take_while(|line| !line.is_empty());
            let reasons = reasons.filter(|line| line.starts_with("  - ")).count();
            assert!((1..=3).contains(&reasons), "{}", ran.text());
            assert!(lines.next().unwrap().starts_with("What each level saves"), "{}", ran.text());
            let levels: Vec<_> = lines.by_ref().skip(1).take_while(|line| !line.is_empty()).collect();
            let levels: Vec<_> = levels.iter().map(|line| line.split_whitespace().next().unwrap()).collect();
            assert!(levels.ends_with(&["off", "1", "3", "6", "9"]), "{levels:?}: {}", ran.text());
            let looked_at: Vec<_> = lines.collect();
            assert!(looked_at[0].starts_with("Looked at: "), "{looked_at:?}");
        }
    }
}

/// Levels above 9 come in the time that is left, and change nothing of the answer.
#[test]
fn higher_levels_are_measured_last() {
    let folder = folder();
    let answer =
        |options: &[&str]| document(&folder.run(["advise", "--format=json", LOG].iter().chain(options)));
    let all = answer(&[]);
    let levels: Vec<_> =
        all["levels"].as_array().unwrap().iter().map(|row| row["level"].as_u64().unwrap()).collect();
    assert_eq!(levels, [1, 3, 6, 9, 15, 19, 22]);
    let low = answer(&["--levels=1,3,6,9"]);
    for (all, low) in all["levels"].as_array().unwrap().iter().zip(low["levels"].as_array().unwrap()) {
        assert_eq!((&all["bytes"], &all["half_width_percent"]), (&low["bytes"], &low["half_width_percent"]));
    }
    let exact = answer(&["--exact", "--no-whole-files"]);
    for name in ["levels", "hours", "tables", "sizes"] {
        let bytes = |report: &Value| -> Vec<Value> {
            report[name].as_array().unwrap().iter().map(|row| row["bytes"].clone()).collect()
        };
        assert_eq!(bytes(&all), bytes(&exact), "{name}");
    }
}

#[test]
fn exact_sizes_are_those_of_compress() {
    let folder = folder();
    let report = document(&folder.run(["advise", "--exact", "--levels=19,3,3", "--format=json", LOG]));
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
fn a_sample_of_all_is_exact_and_says_so() {
    let folder = folder();
    let [sampled, exact] = ["--seed=7", "--exact"]
        .map(|how| document(&folder.run(["advise", "--levels=3", "--format=json", how, LOG])));
    assert_eq!(sampled["levels"][0]["bytes"], exact["levels"][0]["bytes"]);
    assert_eq!(sampled["levels"][0]["half_width_percent"], 0.0);
    assert_eq!(exact["levels"][0]["half_width_percent"], Value::Null);
    assert_eq!(
        (&sampled["summary"][0]["measured"], &sampled["summary"][0]["seed"]),
        (&"sampled".into(), &7.into())
    );
    assert_eq!(exact["summary"][0]["measured"], "exact");
    assert_eq!(sampled["whole_file"], exact["whole_file"]);
    assert_eq!(sampled["whole_file"][0]["measured"], "exact");
}

#[test]
fn a_budget_that_is_over_is_told() {
    let folder = folder();
    let ran = folder.run(["advise", "--budget=1ms", "--format=json", LOG]);
    assert_eq!(ran.code, Some(0));
    // Nothing else is told: whether the log was read to its end within a millisecond is not known.
    assert!(ran.stderr.lines().all(|line| line.contains("the budget allowed for")), "{}", ran.stderr);
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let (summary, recommendation) = (&report["summary"][0], &report["recommendation"][0]);
    // More than a little that was not read decides nothing.
    let unread = summary["unread_bytes"].as_u64().unwrap();
    if unread > folder.read(LOG).len() as u64 / 10 {
        assert_eq!(recommendation["text"], "budget too small to tell", "{recommendation}");
    }
    if summary["sampled_transactions"] == 0 && (summary["eligible_transactions"] != 0 || unread > 0) {
        assert_eq!(recommendation["verdict"], "cant_tell", "{recommendation}");
        assert_eq!(recommendation["level"], Value::Null);
    }
    let ran = folder.run(["advise", "--budget=0s", LOG]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("\"0s\", expected a time such as 30s, 5m or 7d"),
        "{}",
        ran.stderr
    );
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
    folder.run(["advise", "missing"]).fails("missing: No such file or directory (os error 2)");
    let ran = folder.run(["advise", "--levels=3", "--format=json", "missing", "cut", LOG]);
    assert_eq!(ran.code, Some(2));
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines[0], "binlogz: missing: No such file or directory (os error 2)");
    assert!(lines[1].starts_with("binlogz: cut at ") && lines.len() == 2, "{lines:?}");
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(report["summary"][0]["files"], 1);
}

/// The sample has 208 of its 300 transactions; all are measured as well, whatever else was asked for.
#[test]
fn a_log_is_measured_whole_beside_one_that_cant_be_read() {
    let folder = Folder::with_sample("plain", "binlog.000005");
    let ran = folder.run(["advise", "--budget=5m", "missing", "binlog.000005"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.stderr, "binlogz: missing: No such file or directory (os error 2)\n");
    let text: Vec<_> = ran.text().split_whitespace().collect();
    let text = text.join(" ");
    assert!(text.contains("Looked at: 1 file, ") && text.contains(" 300 transactions, "), "{text}");
    assert!(text.ends_with(", all compressed. More: --details"), "{text}");
}

/// Runs `advise` on a server with the password of its accounts.
fn ask(folder: &Folder, args: &[&str]) -> Ran {
    let mut command = folder.binlogz(["advise", "--no-defaults", "--exact", "--levels=3", "--format=json"]);
    command.args(args).env("MYSQL_PWD", "monitor");
    Ran::from(command.output().unwrap())
}

#[test]
fn the_last_logs_of_a_server_measure_as_their_files_do() {
    let Some(mysql) = require(Tool::Mysql) else { return };
    let source = mysql.sandbox().compression(1).encrypted().start().unwrap();
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(200))").unwrap();
    source
        .sql(
            "CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; CREATE USER half@'%' IDENTIFIED BY 'monitor';
            GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO monitor@'%';
            GRANT REPLICATION CLIENT ON *.* TO half@'%'",
        )
        .unwrap();
    for begin in [0, 100, 200] {
        let rows: Vec<_> = (begin..begin + 100).map(|id| format!("({id}, REPEAT('row {id}', 20))")).collect();
        source.flush_binary_logs().unwrap();
        source.sql(&format!("INSERT INTO shop.t VALUES {}", rows.join(","))).unwrap();
    }
    let folder = Folder::new();
    let files = source.copy_binlogs(&folder.path("logs")).unwrap();
    let last: Vec<_> = files[files.len() - 2..].iter().map(|file| file.to_str().unwrap()).collect();
    let keyring = format!("--keyring={}", source.keyring().display());
    let from_files = document(&ask(&folder, &[&keyring, last[0], last[1]]));

    let place = |user: &str| format!("mysql://{user}@127.0.0.1:{}", source.port());
    let ran = ask(&folder, &[&place("monitor"), "--max-rate=50M", "--last=2"]);
    assert!(ran.stderr.contains("is no replica"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let from_server: Value = serde_json::from_slice(&ran.stdout).unwrap();
    for rows in ["tables", "sizes", "not_compressed"] {
        let bytes = |report: &Value| -> Vec<Value> {
            report[rows].as_array().unwrap().iter().map(|row| row["bytes"].clone()).collect()
        };
        assert_eq!(bytes(&from_server), bytes(&from_files), "{rows}");
    }
    assert_eq!(from_server["summary"][0]["files"], 2);
    assert_eq!(from_server["summary"][0]["eligible_transactions"], 2);
    assert_eq!(from_server["levels"][0]["bytes"], from_files["levels"][0]["bytes"]);

    // Two logs of this size are not enough to tell from: without a number all are read.
    let all = ask(&folder, &[&place("monitor")]);
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    assert_eq!(all["summary"][0]["files"], files.len());

    // A right that is missing is named, by the server; what else was asked for is measured.
    let ran = ask(&folder, &[&place("half"), &keyring, last[0]]);
    assert!(ran.stderr.contains("REPLICATION SLAVE"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(2));
    assert!(serde_json::from_slice::<Value>(&ran.stdout).is_ok());
    let ran = ask(&folder, &[&place("nobody")]);
    assert!(ran.stderr.lines().count() == 1 && ran.stderr.contains("Access denied"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(2));
}
