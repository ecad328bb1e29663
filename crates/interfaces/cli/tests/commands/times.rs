//! Moments: every form is taken by every option that takes a moment, and what is printed is taken as it is.

use crate::common::{Folder, Ran};

/// Where clocks of this zone are an hour, or two, ahead of UTC.
const ZONE: &str = "Europe/Berlin";

/// A command for each option that takes a moment. None of them finds what it is to read, and says so once it took the moment.
const TAKING: [&[&str]; 17] = [
    &["rows", "shop.orders", "--start-datetime", "TIME", "nowhere"],
    &["rows", "shop.orders", "--stop-datetime", "TIME", "nowhere"],
    &["undo", "--start-datetime", "TIME", "nowhere"],
    &["undo", "--stop-datetime=TIME", "nowhere"],
    &["redo", "--start-datetime=TIME", "nowhere"],
    &["redo", "--stop-datetime", "TIME", "nowhere"],
    &["table-at", "shop.orders", "--at", "TIME", "--dump", "nowhere", "nowhere"],
    &["recover", "--from", "nowhere", "--to", "127.0.0.1:1", "--until-datetime", "TIME"],
    &["archive", "serve", "--user", "x", "--password-file", "nowhere", "--until-datetime", "TIME", "nowhere"],
    &["archive", "cat", "--start-datetime", "TIME", "nowhere"],
    &["archive", "cat", "--stop-datetime", "TIME", "nowhere"],
    &["archive", "restore", "--to", "out", "--start-datetime", "TIME", "nowhere"],
    &["archive", "restore", "--to", "out", "--stop-datetime", "TIME", "nowhere"],
    &["dump", "--no-defaults", "--start-datetime", "TIME", "nowhere"],
    &["dump", "--no-defaults", "--stop-datetime=TIME", "nowhere"],
    &["dump", "--no-defaults", "--format=jsonl", "--start-datetime", "TIME", "nowhere"],
    &["dump", "--no-defaults", "--format=jsonl", "--stop-datetime", "TIME", "nowhere"],
];

fn run_in_zone(folder: &Folder, arguments: &[&str]) -> Ran {
    folder.binlogz(arguments).env("TZ", ZONE).output().unwrap().into()
}

fn with_time(folder: &Folder, command: &[&str], time: &str) -> Ran {
    let arguments: Vec<String> = command.iter().map(|argument| argument.replace("TIME", time)).collect();
    run_in_zone(folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Whether the moment was taken, and only the logs are missing. 10:42 of today may lie ahead, and then no table was so.
fn is_taken(ran: &Ran) -> bool {
    ran.stderr.contains("nowhere") || ran.stderr.contains("is in the future")
}

#[test]
fn every_form_is_taken_by_every_command() {
    let folder = Folder::new();
    for time in [
        "2026-11-22 10:42",
        "2026-11-22 10:42:17",
        "2026-11-22 10:42:17.000000 CET",
        "2026-07-22 10:42:17 CEST",
        "2026-11-22 10:42:17 UTC",
        "2026-11-22 10:42:17+01:00",
        "2026-11-22T10:42:17Z",
        "2026-11-22T10:42:17.000+01:00",
        "20261122104217",
        "261122 10:42:17",
        "2026-11-22",
        "10:42",
        "10:42:17 UTC",
        "yesterday",
        "yesterday 10:42",
        "today 00:00",
        "@1795309323",
        "@1795309323.000000",
    ] {
        for command in TAKING {
            let ran = with_time(&folder, command, time);
            assert!(is_taken(&ran), "{command:?}, {time}: {}", ran.stderr);
        }
    }
    for command in TAKING {
        let refused = with_time(&folder, command, "foo");
        assert!(
            !refused.stderr.contains("nowhere:") && refused.code != Some(0),
            "{command:?}: {}",
            refused.stderr
        );
    }
}

#[test]
fn relative_times_and_fractions_are_taken() {
    let folder = Folder::new();
    for time in ["now", "-1h", "-1h30m", "-2d", "2026-11-22 10:42:17.123456", "10:42:17.5", "@1795309323.25"]
    {
        for command in TAKING {
            let ran = with_time(&folder, command, time);
            assert!(is_taken(&ran), "{command:?}, {time}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_time_that_clocks_show_twice_or_never_is_named_by_every_command() {
    let folder = Folder::new();
    for (time, said) in [
        (
            "2026-10-25 02:30",
            "clocks show it twice, as they are put back: write '2026-10-25 02:30:00+02:00' or '2026-10-25 02:30:00+01:00'",
        ),
        ("2026-03-29 02:30", "clocks skip it: they are put forward from +01:00 to +02:00"),
        ("2026-02-30 10:42", "there is no 2026-02-30"),
    ] {
        for command in TAKING {
            let ran = with_time(&folder, command, time);
            assert!(ran.stderr.contains(said), "{command:?}, {time}: {}", ran.stderr);
            // mysqlbinlog takes one of the two moments, so dump does too, and says which.
            let goes_on = command[0] == "dump" && !time.starts_with("2026-02");
            assert_eq!(ran.stderr.contains("nowhere"), goes_on, "{command:?}, {time}: {}", ran.stderr);
        }
    }
    let dump = with_time(&folder, TAKING[13], "2026-10-25 02:30");
    assert!(dump.stderr.contains("taken, as by mysqlbinlog: 2026-10-25 02:30:00 CET\n"), "{}", dump.stderr);
}

/// The times of the rows, as printed.
fn printed(folder: &Folder, options: &[&str]) -> Vec<String> {
    let ran =
        run_in_zone(folder, &[&["rows", "sbtest.sbtest1", "--all"], options, &["binlog.000005"]].concat());
    let heads = ran.text().lines().filter(|line| line.starts_with("20"));
    heads.map(|line| line.split("  ").next().unwrap().to_owned()).collect()
}

#[test]
fn printed_times_are_taken_as_they_are() {
    let folder = Folder::with_sample("compressed", "binlog.000005");
    let all = printed(&folder, &[]);
    let (first, middle) = (&all[0], &all[all.len() / 2]);
    assert!(first < middle && middle.ends_with(" CET") && middle.contains('.'), "{middle}");
    let later: Vec<_> = all.iter().filter(|time| *time >= middle).cloned().collect();
    assert_eq!(printed(&folder, &["--start-datetime", middle]), later);
    let earlier: Vec<_> = all.iter().filter(|time| *time < middle).cloned().collect();
    assert_eq!(printed(&folder, &["--stop-datetime", middle]), earlier);
    // stats and the scripts of undo show the same times; JSON has them in UTC.
    let stats = run_in_zone(&folder, &["stats", "--by", "transaction", "--top", "60000", "binlog.000005"]);
    assert!(stats.text().contains(middle.as_str()), "{middle} is not in\n{}", stats.text());
    let undo = run_in_zone(&folder, &["undo", "binlog.000005"]);
    assert!(undo.text().contains(&format!(", {middle}, ")), "{}", undo.text());
    let json = run_in_zone(&folder, &["rows", "sbtest.sbtest1", "--format", "json", "binlog.000005"]);
    let row: serde_json::Value = serde_json::from_str(json.text().lines().next().unwrap()).unwrap();
    let utc = row["time"].as_str().unwrap();
    assert!(utc.ends_with('Z'), "{utc}");
    assert_eq!(printed(&folder, &["--start-datetime", utc]), all);
    let hours = run_in_zone(&folder, &["stats", "--by", "hour", "binlog.000005"]);
    let hour = hours.text().lines().find(|line| line.contains(" CET")).unwrap();
    let hour = hour.split(" CET").next().unwrap().trim().to_owned() + " CET";
    assert_eq!(printed(&folder, &["--start-datetime", &hour]), all);
    // Seconds, of the manifest.
    run_in_zone(&folder, &["archive", "create", "--to", "kept", "binlog.000005"]).is_done();
    let list = run_in_zone(&folder, &["archive", "list", "kept"]).text().to_owned();
    let moment = list.lines().find_map(|line| line.strip_prefix("last restorable moment: ")).unwrap();
    let last = moment.split(',').next().unwrap();
    assert!(last.ends_with(" CET"), "{list}");
    let cat = run_in_zone(&folder, &["archive", "cat", "--start-datetime", last, "kept"]);
    assert!(cat.code == Some(0) && !cat.stdout.is_empty(), "{last}: {}", cat.stderr);
    assert!(!printed(&folder, &["--start-datetime", last]).is_empty());
    // As dump prints it, of the head of an event and of a commit.
    let dump = run_in_zone(&folder, &["dump", "--no-defaults", "binlog.000005"]);
    let head = dump.text().lines().find(|line| line.contains("\tGTID\t")).unwrap();
    let head = head.split(" server id").next().unwrap();
    assert_eq!(printed(&folder, &["--start-datetime", head]).len(), all.len(), "{head}");
    let commit = dump.text().lines().find(|line| line.contains("original_commit_timestamp=")).unwrap();
    let commit = commit.split(['(', ')']).nth(1).unwrap();
    assert_eq!(printed(&folder, &["--start-datetime", commit]).len(), all.len(), "{commit}");
}

#[test]
fn plain_seconds_of_an_archive_are_no_date() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    folder.run(["archive", "create", "--to", "kept", "binlog.000009"]).is_done();
    folder.run(["archive", "cat", "--start-datetime", "0", "kept"]).is_done();
    let refused = folder.run(["archive", "cat", "--start-datetime", "2601021030", "kept"]);
    assert!(refused.stderr.contains("may be a date or seconds since 1970"), "{}", refused.stderr);
}
