//! One name for one idea: other names that options have in other commands, or had in earlier versions, mean the same.

use crate::common::{Folder, Ran};

const GTIDS: &str = "1410447f-e54d-11f1-848d-02fc00000001:1-5";

/// What a command makes of an option under each of its names.
fn under_each_name(folder: &Folder, command: &[&str], names: &[&str]) -> Vec<Ran> {
    let named = |name: &&str| {
        let arguments: Vec<_> = command.iter().map(|word| word.replace("NAME", name)).collect();
        let ran: Ran = folder.binlogz(&arguments).env("TZ", "UTC").output().unwrap().into();
        assert!(!ran.stderr.contains("unexpected argument"), "{arguments:?}: {}", ran.stderr);
        ran
    };
    names.iter().map(named).collect()
}

#[test]
fn every_name_of_an_option_means_the_same() {
    let folder = Folder::with_sample("compressed", "binlog.000005");
    folder.run(["archive", "create", "--to", "kept", "binlog.000005"]).is_done();
    let until = ["--stop-datetime", "--until-datetime"];
    let gtids = ["--gtids", "--include-gtids"];
    let (time, late) = ("2026-11-21 04:38:00", "2100-01-01");
    for (command, names) in [
        (&["rows", "sbtest.sbtest1", "NAME", time, "binlog.000005"][..], &until[..]),
        (&["undo", "NAME", time, "binlog.000005"], &until),
        (&["redo", "NAME", time, "binlog.000005"], &until),
        (&["archive", "cat", "NAME", late, "kept"], &until),
        (&["dump", "--no-defaults", "NAME", late, "binlog.000005"], &until),
        (&["recover", "--from", "nowhere", "--to", "127.0.0.1:1", "NAME", time], &until),
        (&["archive", "serve", "--user", "x", "--password-file", "nowhere", "NAME", time, "nowhere"], &until),
        (
            &["table-at", "shop.orders", "--dump", "nowhere", "NAME", time, "nowhere"],
            &["--at", "--until-datetime", "--stop-datetime"],
        ),
        (&["undo", "NAME", GTIDS, "binlog.000005"], &gtids),
        (&["archive", "cat", "NAME", GTIDS, "kept"], &gtids),
        (&["dump", "--no-defaults", "NAME", GTIDS, "binlog.000005"], &gtids),
        (&["events", "NAME", "4", "--limit", "2", "binlog.000005"], &["--start-position", "--from"]),
        (&["stats", "NAME", time, "binlog.000005"], &until),
        (&["stats", "NAME", GTIDS, "binlog.000005"], &gtids),
        (&["incident", "NAME", late, "binlog.000005"], &until),
        (&["archive", "restore", "--force", "--to", "back", "NAME", late, "kept"], &until),
        (&["archive", "restore", "--force", "--to", "back", "NAME", GTIDS, "kept"], &gtids),
        (&["fold", "--force", "--to", "folded", "NAME", time, "nowhere"], &until),
        (&["fold", "--force", "NAME", "folded", "binlog.000005"], &["--to", "--output"]),
    ] {
        let ran = under_each_name(&folder, command, names);
        for other in &ran[1..] {
            let same =
                (ran[0].code, &ran[0].stdout, &ran[0].stderr) == (other.code, &other.stdout, &other.stderr);
            assert!(same, "{command:?}: {} and {}", ran[0].stderr, other.stderr);
        }
        let says =
            !ran[0].stdout.is_empty() || ran[0].stderr.contains("nowhere") || ran[0].stderr.contains("there");
        assert!(says, "{command:?}: {}", ran[0].stderr);
    }
}

#[test]
fn people_read_text_or_a_table() {
    let folder = Folder::with_sample("compressed", "binlog.000005");
    folder.run(["archive", "create", "--to", "kept", "binlog.000005"]).is_done();
    folder.put("fleet.toml", "[[archive]]\nname = \"nightly\"\nto = \"kept\"\n");
    for command in [
        &["stats", "binlog.000005"][..],
        &["events", "--limit", "9", "binlog.000005"],
        &["incident", "binlog.000005"],
        &["rows", "sbtest.sbtest1", "binlog.000005"],
        &["archive", "list", "kept"],
        &["fold", "--force", "--to", "folded", "binlog.000005"],
        &["fleet", "--targets", "fleet.toml"],
    ] {
        let [text, table] =
            ["text", "table"].map(|format| folder.run([command, &["--format", format]].concat()));
        assert_ne!(text.code, Some(2), "{command:?}: {}", text.stderr);
        assert!(!text.stdout.is_empty(), "{command:?}");
        assert_eq!(text.text(), table.text(), "{command:?}: {}", table.stderr);
    }
}

#[test]
fn results_go_where_either_name_says() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    for (name, to) in [("--output", "one"), ("--to", "other")] {
        folder.run(["compress", name, to, "binlog.000009"]);
    }
    assert_eq!(folder.read("one"), folder.read("other"));
    for (name, to) in [("--result-file", "a.sql"), ("--output", "b.sql")] {
        folder.run(["dump", "--no-defaults", name, to, "binlog.000009"]).is(0, "", "");
    }
    assert_eq!(folder.read("a.sql"), folder.read("b.sql"));
    let text = folder.run(["dump", "--no-defaults", "--output=-", "binlog.000009"]);
    assert_eq!(text.stdout, folder.read("a.sql"));
}

#[test]
fn operations_are_named_in_any_case() {
    let folder = Folder::with_sample("compressed", "binlog.000005");
    let of =
        |operation: &str| folder.run(["rows", "sbtest.sbtest1", "--operation", operation, "binlog.000005"]);
    let expected = of("delete");
    assert!(expected.code == Some(0) && !expected.stdout.is_empty(), "{}", expected.stderr);
    for operation in ["DELETE", "Delete"] {
        assert_eq!(of(operation).stdout, expected.stdout, "{operation}: {}", of(operation).stderr);
    }
    let refused = of("truncate").stderr;
    assert!(refused.contains("insert, update, delete"), "{refused}");
}

#[test]
fn an_error_names_the_formats() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    let ran = folder.run(["dump", "--no-defaults", "--format=xml", "binlog.000009"]);
    let said =
        "Unknown option to format: xml\nAlternatives are: 'sql','jsonl','debezium','maxwell','canal','text'";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let [sql, text] = ["sql", "text"].map(|format| {
        folder.run(["dump", "--no-defaults", "--format", format, "binlog.000009"]).text().to_owned()
    });
    assert!(!sql.is_empty() && sql == text);
    for (command, said) in [
        (&["stats", "--format", "xml", "binlog.000009"][..], "table, json, csv"),
        (&["rows", "a.b", "--format", "xml", "binlog.000009"], "text, json, csv"),
        (&["undo", "--format", "xml", "binlog.000009"], "sql, binlog"),
        (&["archive", "list", "--format", "xml", "kept"], "json"),
    ] {
        let refused = folder.run(command);
        assert!(refused.code == Some(2) && refused.stderr.contains(said), "{command:?}: {}", refused.stderr);
    }
}
