//! Whatever leaves by `--exits` is searched for planted values: every type of column, three policies, logs of MySQL and MariaDB, with
//! names of columns in the log and without; files, standard output and error, and temporary files.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use binlogz_testkit::{MariadbSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::planted::{
    KEY, assert_clean, contains, needles, planted_log, policies, policies_by_class, policy_of_all,
};

/// Puts a policy of all tables.
fn put_policy(folder: &Folder, rules: &str) {
    folder.put_secret("key", KEY);
    folder.put("exits.toml", policy_of_all(rules));
}

/// The masked rows that a run tells of.
#[track_caller]
fn assert_masked(what: &str, ran: &Ran) {
    assert!(matches!(ran.code, Some(0 | 1)), "{what}: {}", ran.stderr);
    assert!(
        ran.stderr.contains(" rows masked") && !ran.stderr.contains(" 0 rows masked"),
        "{what}: {}",
        ran.stderr
    );
    assert_clean(what, ran.stderr.as_bytes());
}

/// Searches all that leaves of a log by a policy.
fn search(shown: &str, log: &Path, rules: &str, needles: &BTreeSet<Vec<u8>>) {
    let folder = Folder::new();
    put_policy(&folder, rules);
    for command in ["expand", "compress"] {
        let what = format!("{shown} {command}");
        let args = [command, "--exits", "exits.toml", "--output", command].map(AsRef::as_ref);
        let ran = folder.run(args.into_iter().chain([log.as_os_str()]));
        assert_masked(&what, &ran);
        assert_clean(&what, &ran.stdout);
        assert_clean(&what, &folder.read(command));
        let plain = folder.run(["expand", "--output", &format!("plain-{command}"), command]);
        assert_eq!(plain.code, Some(0), "{what}: {}", plain.stderr);
        let plain = folder.read(&format!("plain-{command}"));
        assert_clean(&what, &plain);
        let leak = needles
            .iter()
            .find(|needle| plain.windows(needle.len()).any(|window| window == needle.as_slice()));
        assert_eq!(leak, None, "{what}");
    }
    for format in ["sql", "jsonl", "debezium", "maxwell", "canal"] {
        let what = format!("{shown} dump {format}");
        let format = format!("--format={format}");
        let args = ["dump", "--no-defaults", "--exits=exits.toml", "-vv", &format].map(AsRef::as_ref);
        let ran = folder.run(args.into_iter().chain([log.as_os_str()]));
        assert_clean(&what, &ran.stdout);
        assert_clean(&what, ran.stderr.as_bytes());
    }
    for format in ["text", "json", "csv"] {
        let what = format!("{shown} rows {format}");
        let args = ["rows", "shop.everything", "--all", "--exits", "exits.toml", "--format", format];
        let ran = folder.run(args.map(AsRef::as_ref).into_iter().chain([log.as_os_str()]));
        assert_masked(&what, &ran);
        assert_clean(&what, &ran.stdout);
        assert!(ran.text().matches("everything").count() > 5, "{what}: {}", ran.text());
    }
    for name in folder.names().iter().filter(|name| !matches!(&***name, "key" | "exits.toml")) {
        assert_clean(&format!("{shown} {name}"), &folder.read(name));
    }
}

#[test]
fn nothing_planted_leaves() -> Result<()> {
    search_each(|json| policies(json).to_vec())
}

#[test]
#[ignore = "minutes: scripts/soak/exits.sh runs it"]
fn nothing_planted_leaves_by_policies_of_each_class_of_types() -> Result<()> {
    search_each(|json| policies_by_class(json).to_vec())
}

/// Searches logs of MySQL and MariaDB with these policies.
fn search_each(policies: fn(&str) -> Vec<(&'static str, String)>) -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let _ = require_tool!(Tool::Mariadb);
    let mysql = mysql.sandbox().start()?;
    let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW"), ("binlog-annotate-row-events", "ON")])?;
    let notes = "SET GLOBAL binlog_rows_query_log_events = ON";
    let document = r#"{ mask = "json", paths = { "$.plan" = "keep", "$.who" = "hash" } }"#;
    for (name, server, settings, (json_type, json)) in [
        ("9.7.4 FULL", &*mysql, format!("{notes}, GLOBAL binlog_row_metadata = FULL"), ("JSON", document)),
        (
            "9.7.4 MINIMAL",
            &*mysql,
            format!("{notes}, GLOBAL binlog_row_metadata = MINIMAL"),
            ("JSON", document),
        ),
        // JSON is text there.
        (
            "10.11 FULL",
            &*mariadb,
            "SET GLOBAL binlog_row_metadata = FULL".to_owned(),
            ("LONGTEXT", "\"hash\""),
        ),
        ("10.11", &*mariadb, "SET GLOBAL binlog_row_metadata = NO_LOG".to_owned(), ("LONGTEXT", "\"hash\"")),
    ] {
        let log = planted_log(server, &settings, json_type)?;
        let bytes = fs::read(&log).unwrap();
        assert!(contains(&bytes, b"planted"));
        let needles = needles(&bytes);
        for (policy, rules) in policies(json) {
            search(&format!("{name} {policy}"), &log, &rules, &needles);
        }
    }
    Ok(())
}

/// A transaction that doesn't fit into memory waits in a file without a name, which is read here while it is there.
#[test]
fn temporary_files_have_nothing_planted() -> Result<()> {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    server.sql("SET GLOBAL binlog_row_metadata = FULL")?;
    server.sql("DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; CREATE TABLE big (id INT PRIMARY KEY, v LONGTEXT); FLUSH BINARY LOGS")?;
    let rows = (1..=12).map(|id| format!("INSERT INTO shop.big VALUES ({id}, REPEAT('planted ', 130000))"));
    server.sql(&format!("BEGIN; {}; COMMIT", rows.collect::<Vec<_>>().join("; ")))?;
    let log = server.flush_binary_logs()?;
    let folder = Folder::new();
    put_policy(&folder, "columns.v = { mask = \"partial\", last = 1 }");
    let args = ["expand", "--exits", "exits.toml", "--output", "masked"].map(AsRef::as_ref);
    let mut command = folder.binlogz(args.into_iter().chain([log.as_os_str()]));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        for bytes in nameless_files(child.id()) {
            most = most.max(bytes.len());
            assert!(!has_planted(&bytes));
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(most > 1 << 20, "{most}");
    let masked = folder.read("masked");
    assert!(masked.len() > 10 << 20 && !has_planted(&masked) && has_planted(&fs::read(log).unwrap()));
    Ok(())
}

/// Whether many bytes have the planted word.
fn has_planted(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'p').any(|part| part.starts_with(b"lanted"))
}

/// The files without a name that a process has open.
fn nameless_files(process: u32) -> Vec<Vec<u8>> {
    let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let nameless = open.flatten().map(|entry| entry.path()).filter(|path| {
        fs::read_link(path).is_ok_and(|target| target.to_string_lossy().ends_with(" (deleted)"))
    });
    let mut all = Vec::new();
    for path in nameless {
        let mut bytes = Vec::new();
        if File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).is_ok() {
            all.push(bytes);
        }
    }
    all
}
