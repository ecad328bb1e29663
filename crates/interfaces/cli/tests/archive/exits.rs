//! `archive copy --exits`: an archive of masked logs. They are what `expand --exits` writes, the archive tells that it is one, and no other logs
//! get in.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use binlogz_testkit::random::Random;
use binlogz_testkit::{MariadbSandbox, Result, Tool, mutate, require_tool};
use serde_json::Value;

use crate::common::Folder;
use crate::planted::{
    KEY, assert_clean, contains, needles, planted_log, policies, policies_by_class, policy_of_all,
};

const POLICY: &str = r#"key_file = "key"
[[table]]
name = "employees.employees"
[table.columns]
first_name = "hash"
last_name = { mask = "partial", first = 1 }
birth_date = "year"
[[table]]
name = "employees.salaries"
columns.salary = "hash"
"#;
const LOGS: [&str; 2] = ["binlog.000001", "binlog.000002"];
const COPY: [&str; 6] = ["archive", "copy", "--exits", "exits.toml", "arc", "masked"];

/// The line that commands have, after the policy.
const LEFT_OUT: &str = ": rows and values were left out, so no log may be purged for it\n";

fn put_policy(folder: &Folder, policy: &str) {
    folder.put_secret("key", KEY);
    folder.put("exits.toml", policy);
}

fn archived() -> Folder {
    let folder = Folder::new();
    put_policy(&folder, POLICY);
    LOGS.iter().for_each(|log| drop(folder.sample("plain", log)));
    folder.run(["archive", "create", "--to", "arc"].iter().chain(&LOGS)).is_done();
    folder
}

#[test]
fn a_masked_copy_has_what_expand_writes_and_tells_what_it_is() {
    let folder = archived();
    let ran = folder.run(COPY);
    assert_eq!(ran.code, Some(0), "{}{}", ran.text(), ran.stderr);
    assert!(
        ran.text().ends_with(LEFT_OUT) && ran.stderr.contains(" rows masked"),
        "{}{}",
        ran.text(),
        ran.stderr
    );
    fs::create_dir(folder.path("out")).unwrap();
    folder.run(["expand", "--exits", "exits.toml", "--output", "out"].iter().chain(&LOGS));
    folder.run(["archive", "check", "--depth", "content", "masked"]).is_done();
    let ran = folder.run(["archive", "restore", "--to", "back", "masked"]);
    assert!(ran.code == Some(0) && ran.text().ends_with(LEFT_OUT), "{}{}", ran.text(), ran.stderr);
    for log in LOGS {
        let masked = log.replace("binlog.", "binlog-masked.");
        assert!(folder.read(&format!("back/{masked}")) == folder.read(&format!("out/{log}")), "{log}");
        assert!(folder.read(&format!("out/{log}")) != folder.read(log), "{log}");
    }
    for args in [&["archive", "list", "masked"][..], &["archive", "check", "masked"]] {
        let ran = folder.run(args);
        assert!(ran.text().contains("logs masked by the policy "), "{args:?}: {}", ran.text());
    }
    let listed: Value =
        serde_json::from_slice(&folder.run(["archive", "list", "--format", "json", "masked"]).stdout)
            .unwrap();
    assert_eq!(listed["exits"].as_str().unwrap().len(), 64, "{listed}");
    let rows = folder.run(["rows", "employees.salaries", "--all", "masked"]);
    assert!(
        rows.code == Some(0) && rows.stderr.contains("masked: logs masked by the policy "),
        "{}",
        rows.stderr
    );
    // A later run finds the same logs, and adds the new one.
    folder.sample("plain", "binlog.000003");
    folder.run(["archive", "create", "--to", "arc", "binlog.000003"]).is_done();
    let ran = folder.run(COPY);
    let lines: Vec<_> = ran.text().lines().collect();
    assert_eq!(
        lines[..2],
        LOGS.map(|log| format!("{}: is in the archive already", log.replace("binlog.", "binlog-masked.")))
    );
    assert!(lines[2].starts_with("binlog-masked.000003: "), "{lines:?}");
    // A copy of the copy is one, too.
    let ran = folder.run(["archive", "copy", "masked", "again"]);
    assert!(ran.code == Some(0) && ran.text().ends_with(LEFT_OUT), "{}{}", ran.text(), ran.stderr);
}

#[test]
fn an_archive_has_masked_logs_of_one_policy_or_none() {
    let folder = archived();
    folder.run(COPY).code.filter(|code| *code == 0).unwrap();
    let ran = folder.run(["archive", "create", "--to", "masked", LOGS[0]]);
    assert!(ran.code == Some(2) && ran.stderr.contains("expected logs that aren't masked"), "{}", ran.stderr);
    let ran = folder.run(["archive", "copy", "arc", "masked"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("expected logs that aren't masked"), "{}", ran.stderr);
    let ran = folder.run(["archive", "copy", "--exits", "exits.toml", "masked", "other"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("has masked logs already"), "{}", ran.stderr);
    folder.put("exits.toml", POLICY.replace("year", "null"));
    let ran = folder.run(COPY);
    assert!(ran.code == Some(2) && ran.stderr.contains("masked by the policy "), "{}", ran.stderr);
    // A name that hides nothing: nothing is stored.
    folder.put("exits.toml", POLICY.replace("employees.salaries", "employees.salries"));
    let ran = folder.run(["archive", "copy", "--exits", "exits.toml", "arc", "typo"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("expected its right name"), "{}", ran.stderr);
    assert!(!folder.path("typo").join("manifest.json").exists());
    folder.put("exits.toml", POLICY);
    let ran = folder.run(["archive", "copy", "--dry-run", "--exits", "exits.toml", "arc", "dry"]);
    assert!(ran.code == Some(0) && !folder.path("dry").join("manifest.json").exists(), "{}", ran.stderr);
}

/// All files of a folder.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(fs::read(&path).unwrap()) }
    }
    found
}

/// Runs that are killed leave an archive whose logs are whole, or none; what is left goes on where it was.
#[test]
#[ignore = "half a minute: scripts/soak/exits.sh runs it"]
fn copies_that_are_killed_leave_no_half_archive() {
    let random = &mut Random::new(mutate::seed());
    let folder = archived();
    let mut killed = 0;
    for _ in 0..20 {
        let mut child = folder.spawn(COPY);
        thread::sleep(Duration::from_millis(random.below(1500) as u64));
        killed += usize::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
        if folder.path("masked").join("manifest.json").exists() {
            folder.run(["archive", "check", "--depth", "content", "masked"]).is_done();
        }
        if killed % 5 == 4 && folder.path("masked").exists() {
            fs::remove_dir_all(folder.path("masked")).unwrap();
        }
    }
    assert!(killed > 3, "{killed}");
    assert_eq!(folder.run(COPY).code, Some(0));
    folder.run(["archive", "check", "--depth", "content", "masked"]).is_done();
}

/// Planted values of every type are in no object, no restored log and no answer, whatever the policy.
#[test]
#[ignore = "a minute: scripts/soak/exits.sh runs it"]
fn nothing_planted_is_in_a_masked_copy() -> Result<()> {
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
        ("10.11", &*mariadb, "SET GLOBAL binlog_row_metadata = NO_LOG".to_owned(), ("LONGTEXT", "\"hash\"")),
    ] {
        let log = planted_log(server, &settings, json_type)?;
        let bytes = fs::read(&log).unwrap();
        assert!(contains(&bytes, b"planted"));
        let needles = needles(&bytes);
        for (policy, rules) in policies(json).into_iter().chain(policies_by_class(json)) {
            let what = format!("{name} {policy}");
            let folder = Folder::new();
            put_policy(&folder, &policy_of_all(&rules));
            let create = ["archive", "create", "--to", "arc"].map(AsRef::as_ref);
            folder.run(create.into_iter().chain([log.as_os_str()])).is_done();
            let ran = folder.run(COPY);
            assert!(matches!(ran.code, Some(0 | 1)), "{what}: {}", ran.stderr);
            let restored = folder.run(["archive", "restore", "--to", "back", "masked"]);
            let listed = folder.run(["archive", "list", "--wide", "masked"]);
            let told = [&ran.stdout, ran.stderr.as_bytes(), &restored.stdout, &listed.stdout].concat();
            let objects = files(&folder.path("masked"));
            let logs = files(&folder.path("back"));
            assert!(!logs.is_empty() && objects.len() > 1, "{what}");
            for bytes in objects.iter().chain(&logs).chain([&told]) {
                assert_clean(&what, bytes);
                let leak = needles
                    .iter()
                    .find(|needle| bytes.windows(needle.len()).any(|at| at == needle.as_slice()));
                assert_eq!(leak, None, "{what}");
            }
        }
    }
    Ok(())
}
