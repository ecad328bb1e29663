//! A tool must never answer wrongly with exit code 0: times in any zone, requests that the logs don't meet,
//! events that servers write and others misread. Where mysqlbinlog knows better, it is asked.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::common::{Folder, Ran};
use binlogz_binlog::checksum::crc32;
use binlogz_binlog::event::{PreviousGtidsEvent, QueryEvent, StatusVariables};
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{EventType, HeaderFlags};
use binlogz_testkit::builder::{LogBuilder, Release};
use binlogz_testkit::{InstalledTool, SandboxServer, Tool, corpus, require_tool, tool};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The GTIDs of the corpus.
const UUID: &str = "1410447f-e54d-11f1-848d-02fc00000001";

/// The log with other times: that of each event is asked for with its number and the one it has.
fn retimed(log: &[u8], mut time: impl FnMut(usize, u32) -> u32) -> Vec<u8> {
    let mut log = log.to_vec();
    let (mut begin, mut number) = (4, 0);
    while begin < log.len() {
        let u32_at = |log: &[u8], at: usize| u32::from_le_bytes(log[at..at + 4].try_into().unwrap());
        let end = begin + u32_at(&log, begin + 9) as usize;
        let new = time(number, u32_at(&log, begin));
        log[begin..begin + 4].copy_from_slice(&new.to_le_bytes());
        let checksum = crc32(&log[begin..end - 4]);
        log[end - 4..end].copy_from_slice(&checksum.to_le_bytes());
        (begin, number) = (end, number + 1);
    }
    log
}

fn query(database: &str, statement: &str) -> Vec<u8> {
    let query = QueryEvent {
        thread_id: 1,
        exec_time: 0,
        error_code: 0,
        status_variables: StatusVariables(&[]),
        database: database.as_bytes(),
        statement: statement.as_bytes(),
    };
    query.encode().unwrap()
}

/// Both programs print the same and end the same.
#[track_caller]
fn same_as_mysqlbinlog(mysql: &InstalledTool, folder: &Folder, arguments: &[&str]) -> Ran {
    let theirs = mysql.command("mysqlbinlog").arg("--no-defaults").args(arguments).output().unwrap();
    let ours = folder.mysqlbinlog(["--no-defaults"]).args(arguments).output().unwrap();
    let told = String::from_utf8_lossy(&ours.stderr).into_owned();
    assert_eq!(ours.status.code(), theirs.status.code(), "{arguments:?}: {told}");
    if ours.stdout != theirs.stdout {
        let (theirs, ours) = (String::from_utf8_lossy(&theirs.stdout), String::from_utf8_lossy(&ours.stdout));
        let differs = theirs.lines().zip(ours.lines()).find(|(theirs, ours)| theirs != ours);
        panic!("{arguments:?}: {differs:?}, {} and {} lines", theirs.lines().count(), ours.lines().count());
    }
    ours.into()
}

// Times, in the zone of the process.

/// Zones of all kinds: by the hour, the half and the quarter, with summer in January, with half an hour of summer, with
/// winter as the exception, without any.
const ZONES: [&str; 12] = [
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
];

/// Local times, most of which one of the zones has never or twice.
const TIMES: [&str; 14] = [
    "2026-03-29 02:30:00",
    "2026-03-29 01:30:00",
    "2026-10-25 02:30:00",
    "2026-10-25 01:15:00",
    "2026-03-08 02:30:00",
    "2026-11-01 01:30:00",
    "2026-10-04 02:15:00",
    "2026-10-04 02:30:00",
    "2026-04-05 01:45:00",
    "2026-04-05 02:30:00",
    "2026-09-27 02:50:00",
    "2026-04-05 03:00:00",
    "2026-07-01 12:00:00",
    "1999-12-31 23:59:59",
];

/// A log with an event every quarter of an hour of the days around each of the times, and a second before it.
fn log_of_all_times(folder: &Folder) -> String {
    let mut times = Vec::new();
    for time in TIMES {
        let [year, month, day] =
            [&time[..4], &time[5..7], &time[8..10]].map(|field| field.parse::<i64>().unwrap());
        // Days since 1970, counted in years that begin in March.
        let year = if month <= 2 { year - 1 } else { year };
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day = year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468;
        let begin = day as u32 * 86_400 - 43_200;
        times.extend((0..192).flat_map(|quarter| [begin + quarter * 900 - 1, begin + quarter * 900]));
    }
    times.sort_unstable();
    times.dedup();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for number in 0..times.len() {
        log.event(EventType::QUERY, &query("d", &format!("CREATE TABLE t{number} (i INT)")));
    }
    let first = times[0];
    let log = retimed(log.bytes(), |number, _| number.checked_sub(1).map_or(first, |number| times[number]));
    folder.put("times.000001", log).to_str().unwrap().to_owned()
}

fn in_zone(mut command: Command, zone: &str, arguments: &[&str]) -> (Option<i32>, Vec<u8>, String) {
    let output = command.env("TZ", zone).arg("--no-defaults").args(arguments).output().unwrap();
    (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn times_are_local_times_in_every_zone() {
    let mysql = require_tool!(Tool::Mysql);
    if !Path::new("/usr/share/zoneinfo/Europe/Berlin").exists() {
        return tool::skip("mysqlbinlog needs /usr/share/zoneinfo, which is not there");
    }
    let folder = Folder::new();
    let log = log_of_all_times(&folder);
    let rules =
        ["CET-1CEST,M3.5.0,M10.5.0/3", "CET-1", ":Asia/Tokyo", "/usr/share/zoneinfo/Asia/Kolkata", ""];
    let compare = |zone: &&str| {
        let mut differences = Vec::new();
        for time in TIMES {
            for option in ["start", "stop"] {
                let arguments = [&format!("--{option}-datetime={time}"), "-s", log.as_str()];
                let theirs = in_zone(mysql.command("mysqlbinlog"), zone, &arguments);
                let ours = in_zone(folder.mysqlbinlog([""; 0]), zone, &arguments);
                if (theirs.0, &theirs.1) != (ours.0, &ours.1) {
                    let count = |text: &[u8]| String::from_utf8_lossy(text).matches("CREATE TABLE").count();
                    differences.push(format!(
                        "{zone} {option} {time}: {} {}",
                        count(&theirs.1),
                        count(&ours.1)
                    ));
                }
            }
        }
        let theirs = in_zone(mysql.command("mysqlbinlog"), zone, &[&log]);
        let ours = in_zone(folder.mysqlbinlog([""; 0]), zone, &[&log]);
        assert!((theirs.0, &theirs.1) == (ours.0, &ours.1), "{zone}: shown times differ");
        assert!(!ours.2.contains("time zone"), "{zone}: {}", ours.2);
        differences
    };
    let differences: Vec<String> = thread::scope(|scope| {
        let half = scope.spawn(|| ZONES[..6].iter().flat_map(compare).collect::<Vec<_>>());
        let mut all: Vec<_> = ZONES[6..].iter().chain(&rules).flat_map(compare).collect();
        all.extend(half.join().unwrap());
        all
    });
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn a_zone_that_is_not_known_is_told() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let log = corpus::path("binlog.000001");
    let log = log.to_str().unwrap();
    for zone in ["Nonsense/Zone", "Europe/Nowhere", "europe/berlin", "x", "12", "abcd/"] {
        let theirs = in_zone(mysql.command("mysqlbinlog"), zone, &[log]);
        let ours = in_zone(folder.binlogz(["dump"]), zone, &[log]);
        assert_eq!((theirs.0, theirs.1), (ours.0, ours.1), "{zone}");
        let told = format!("WARNING: TZ={zone}: no such time zone is known; local times are UTC\n");
        assert!(ours.2.ends_with(&told), "{}", ours.2);
    }
}

/// A container without a time zone database.
#[test]
fn zones_are_known_without_a_database() {
    let folder = Folder::new();
    let log = corpus::path("binlog.000001");
    let run = |database: &str| {
        let mut command = folder.binlogz(["dump", "--no-defaults"]);
        command.env("TZ", "America/New_York").env("TZDIR", database).arg(&log);
        Ran::from(command.output().unwrap())
    };
    let without = run(folder.path("nothing").to_str().unwrap());
    without.is_done();
    assert!(without.text().contains(" EST)\n"), "{}", without.text());
}

#[test]
fn one_rule_for_times_in_all_commands() {
    let folder = Folder::new();
    let log = corpus::path("binlog.000001");
    let log = log.to_str().unwrap();
    folder.run(["archive", "create", "--to", "arc", log]).is_done();
    let dump = |time: &str, zone: &str| {
        let mut command = folder.binlogz(["dump", "--no-defaults", "--start-datetime", time, log]);
        Ran::from(command.env("TZ", zone).output().unwrap())
    };
    let cat = |time: &str, zone: &str| {
        let mut command = folder.binlogz(["archive", "cat", "--start-datetime", time, "arc"]);
        Ran::from(command.env("TZ", zone).output().unwrap())
    };
    let list = |zone: &str| {
        let mut command = folder.binlogz(["archive", "list", "--wide", "arc"]);
        Ran::from(command.env("TZ", zone).output().unwrap())
    };
    // The archive shows the times that its options take.
    let text = list("Asia/Tokyo").text().to_owned();
    let row = text.lines().nth(2).unwrap();
    // The name, and two sizes with their units.
    let from = row.split_whitespace().skip(5).take(2).collect::<Vec<_>>().join(" ");
    let utc = list("UTC").text().to_owned();
    assert_ne!(text, utc);
    let all = cat("2000-01-01 00:00:00", "UTC").stdout;
    assert!(!all.is_empty() && cat(&from, "Asia/Tokyo").stdout == all);
    assert_eq!(cat(&format!("{from}+09:00"), "America/New_York").stdout, all);
    assert_eq!(dump(&from, "Asia/Tokyo").stdout, dump(&format!("{from} +0900"), "Asia/Tokyo").stdout);
    for time in ["2026-02-31 00:00:00", "2026-02-29 10:00:00Z", "2026-04-31 00:00:00+01:00"] {
        let date = &time[..10];
        let ran = dump(time, "UTC");
        let line = format!("ERROR: Incorrect date and time argument: {time}: there is no {date}\n");
        assert_eq!((ran.code, ran.text(), ran.stderr.as_str()), (Some(1), "", line.as_str()));
        let ran = cat(time, "UTC");
        assert_eq!((ran.code, ran.text()), (Some(2), ""));
        assert!(ran.stderr.contains(&format!("there is no {date}")), "{}", ran.stderr);
    }
}

// What was asked for and is not there.

/// Runs `dump` and expects an error, before or after the logs' text.
#[track_caller]
fn is_refused(ran: &Ran, line: &str) {
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), format!("ERROR: {line}\n").as_str()));
}

#[test]
fn requests_that_the_logs_do_not_meet_are_errors() {
    let folder = Folder::new();
    let log = corpus::path("binlog.000001");
    let bytes = fs::read(&log).unwrap();
    let (log, size) = (log.to_str().unwrap(), bytes.len());
    let beyond = (size + 1).to_string();
    for (request, line) in [
        ("--stop-before-gtid", format!("{UUID}:999"), "this transaction is not there".to_owned()),
        ("--include-gtids", format!("{UUID}:900-999"), "none of these transactions is there".to_owned()),
        ("--stop-position", beyond.clone(), format!("the log ends at {size}")),
        ("--start-position", beyond.clone(), format!("the log ends at {size}")),
    ]
    .map(|(option, value, what)| (format!("{option}={value}"), format!("{option}={value}: {what}")))
    {
        for format in ["sql", "jsonl"] {
            let arguments = ["dump", "--no-defaults", &format!("--format={format}"), &request];
            // A file can be looked at first.
            let ran = folder.run(arguments.iter().chain(&[log]));
            is_refused(&ran, &line);
            assert_eq!(ran.text(), "", "{request}");
            // A pipe can't.
            if !request.contains("-position") {
                let ran = folder.run_with(arguments.iter().chain(&["-"]), &bytes);
                is_refused(&ran, &line);
            }
        }
    }
    let none = "--start-datetime, --stop-datetime: no event is of these times";
    for format in ["sql", "jsonl"] {
        let arguments =
            ["dump", "--no-defaults", "--start-datetime=2100-01-01 00:00:00", "--format", format, log];
        is_refused(&folder.run(arguments), none);
        let arguments =
            ["dump", "--no-defaults", "--stop-datetime=2000-01-01 00:00:00", "--format", format, log];
        is_refused(&folder.run(arguments), none);
        // As far as there is something, it is what was asked for.
        for request in [
            format!("--stop-position={size}"),
            format!("--start-position={size}"),
            format!("--include-gtids={UUID}:3-999"),
            format!("--stop-before-gtid={UUID}:5"),
            "--stop-datetime=2100-01-01 00:00:00".to_owned(),
        ] {
            folder.run(["dump", "--no-defaults", "--format", format, &request, log]).is_done();
        }
    }
    // Of several logs one will do; of the last one the position counts.
    let second = corpus::path("binlog.000003");
    let second = second.to_str().unwrap();
    folder.run(["dump", "--no-defaults", &format!("--stop-before-gtid={UUID}:5"), log, second]).is_done();
    // Before the place to begin at it does not count.
    let ran = folder.run([
        "dump",
        "--no-defaults",
        "--start-position=2000",
        &format!("--stop-before-gtid={UUID}:1"),
        log,
    ]);
    assert_eq!((ran.code, ran.text()), (Some(1), ""), "{}", ran.stderr);
}

/// Names that occur nowhere are known only at the end; the output without them is printed before.
#[test]
fn names_that_occur_nowhere_are_errors() {
    let folder = Folder::new();
    let log = corpus::path("binlog.000001");
    let log = log.to_str().unwrap();
    let dump =
        |arguments: &[&str]| folder.run(["dump", "--no-defaults"].iter().chain(arguments).chain(&[log]));
    let (server, there) = {
        let all = dump(&["--format=jsonl"]);
        let field = |name: &str, end: char| {
            let at = all.text().rfind(name).unwrap() + name.len();
            all.text()[at..].split(end).next().unwrap().to_owned()
        };
        (field("\"server_id\":", ','), all.text().lines().count())
    };
    assert!(there > 10);
    let unmet = [
        ("--table=d.m2", "no row of this table is there"),
        ("--database=dd", "nothing there concerns this database"),
        ("--server-id=4711", "no event of this server is there"),
        ("--rewrite-db=dd->test", "nothing there concerns this database"),
    ];
    for (request, why) in unmet {
        for format in ["sql", "jsonl"] {
            if format == "jsonl" && request.starts_with("--rewrite-db") {
                continue;
            }
            for jobs in ["--jobs=1", "--jobs=3"] {
                let mut ran = dump(&[request, "--format", format, jobs]);
                // mysqlbinlog has a warning of its own for this option.
                if let Some((_, told)) = ran.stderr.split_once(", respectively, instead.\n") {
                    ran.stderr = told.to_owned();
                }
                is_refused(&ran, &format!("{request}: {why}"));
            }
        }
    }
    // In the usual way of recovering, nothing of the database is replayed, and a shell with pipefail says so.
    let offset = dump(&["--offset=100000"]);
    assert_eq!(offset.code, Some(1));
    let told = offset.stderr.strip_prefix("ERROR: --offset=100000: the logs have ").unwrap();
    let count: usize = told.strip_suffix(" events\n").unwrap().parse().unwrap();
    dump(&[&format!("--offset={count}")]).is_done();
    is_refused(
        &dump(&[&format!("--offset={}", count + 1)]),
        &format!("--offset={}: the logs have {count} events", count + 1),
    );

    // What is there meets the request, in any one of the logs.
    for format in ["sql", "jsonl"] {
        for request in ["--table=d.m1", "--database=d", &format!("--server-id={server}")] {
            let ran = dump(&[request, "--format", format]);
            assert_eq!(
                (ran.code, ran.stderr.lines().any(|line| line.contains("ERROR"))),
                (Some(0), false),
                "{request}"
            );
        }
        let other = corpus::path("binlog.000003");
        let ran = dump(&["--table=d.m1", "--format", format, other.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        // Of several names one is enough; the others are named.
        let ran = dump(&["--table=d.m2", "--table=d.m1", "--table=x.y", "--format", format]);
        assert_eq!(ran.code, Some(0));
        let line = |table: &str| format!("WARNING: --table={table}: no row of this table is there\n");
        assert_eq!(ran.stderr, [line("d.m2"), line("x.y")].concat());
        is_refused(
            &dump(&["--table=d.m2", "--table=x.y", "--format", format]),
            "--table=d.m2 --table=x.y: no row of these tables is there",
        );
    }
    dump(&["--rewrite-db=d->test"]).is_done();
    // One line for one reason.
    let ran = dump(&["--table=d.m1", "--start-datetime=2100-01-01 00:00:00"]);
    is_refused(&ran, "--start-datetime, --stop-datetime: no event is of these times");
    // To leave out what is not there is no error, since a log may well begin after it.
    let ran = dump(&[&format!("--exclude-gtids={UUID}:900-999")]);
    assert_eq!(ran.code, Some(0));
    let line = format!("WARNING: --exclude-gtids={UUID}:900-999: none of these transactions is there\n");
    assert_eq!(ran.stderr, line);
    let second = corpus::path("binlog.000003");
    let second = second.to_str().unwrap();
    folder.run(["dump", "--no-defaults", &format!("--exclude-gtids={UUID}:1-2"), second]).is_done();
    let raw = folder.run(["dump", "--no-defaults", "--raw", "-R", "--format=jsonl", "binlog.000001"]);
    is_refused(&raw, "You cannot use --format and --raw together.");
}

/// `undo` and `redo` would change everything if a request that isn't met were ignored.
#[test]
fn undo_and_redo_do_nothing_where_a_request_is_not_met() {
    let folder = Folder::with_sample("compressed", "binlog.000005");
    let size = fs::metadata(folder.path("binlog.000005")).unwrap().len();
    let columns = "(id INT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60))";
    let table = |number: usize| format!("CREATE TABLE sbtest{number} {columns};\n");
    let schema =
        folder.put("schema.sql", format!("USE sbtest;\n{}", (1..=20).map(table).collect::<String>()));
    let schema = format!("--schema={}", schema.display());
    for direction in ["undo", "redo"] {
        // Names of columns are needed, which this log does not have.
        let is_undo = direction == "undo";
        let schema = if is_undo { vec![&*schema] } else { Vec::new() };
        let run = |arguments: &[&str]| {
            let front = [direction, "--operation=delete"];
            folder.run(front.iter().chain(&schema).chain(arguments).chain(&["binlog.000005"]))
        };
        assert_eq!(run(&[]).code, Some(if is_undo { 0 } else { 1 }));
        for (option, value, why) in [
            ("--stop-before-gtid", format!("{UUID}:99999"), "this transaction is not there".to_owned()),
            ("--start-position", (size + 1).to_string(), format!("the log ends at {size}")),
            ("--stop-position", (size + 1).to_string(), format!("the log ends at {size}")),
        ] {
            let ran = run(&[option, &value]);
            let line = format!("binlogz: {option}={value}: {why}\n");
            assert_eq!(
                (ran.code, ran.text(), ran.stderr.as_str()),
                (Some(1), "", line.as_str()),
                "{direction}"
            );
        }
        let ran = run(&["--table=sbtest.sbtest99"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        if !is_undo {
            continue;
        }
        run(&["--stop-position", &size.to_string()]).is_done();
        let ran = run(&["--table=sbtest.sbtest1", "--table=sbtest.sbtest99"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("--table=sbtest.sbtest99: no row of this table is there"),
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("sbtest1:"), "{}", ran.stderr);
    }
}

/// Nothing of a pipe is shown that comes after the transaction to stop before, which its previous GTIDs name.
#[test]
fn a_transaction_that_stands_before_the_log_ends_a_pipe_at_once() {
    let folder = Folder::new();
    let bytes = fs::read(corpus::path("binlog.000003")).unwrap();
    let gtid = format!("{UUID}:1");
    let all = folder.run_with(["dump", "--no-defaults", "--format=jsonl", "-"], &bytes);
    assert!(
        all.text().contains("\"type\":\"gtid\"") && all.text().contains(&format!("\"gtid_set\":\"{UUID}:1-"))
    );
    for (format, transaction) in [("sql", "SET @@SESSION.GTID_NEXT= '1"), ("jsonl", "\"type\":\"gtid\"")] {
        let arguments = ["dump", "--no-defaults", "--format", format, "--stop-before-gtid", &gtid, "-"];
        let ran = folder.run_with(arguments, &bytes);
        is_refused(&ran, &format!("--stop-before-gtid={gtid}: this transaction stands before the log"));
        assert!(!ran.text().contains(transaction), "{}", ran.text());
    }
}

/// As a wrapper or MySQL's own test suite calls it.
#[test]
fn called_mysqlbinlog_it_keeps_the_exit_code_and_says_so() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let log = corpus::path("binlog.000001");
    let log = log.to_str().unwrap();
    for (request, said) in [
        (format!("--include-gtids={UUID}:900-999"), "none of these transactions is there"),
        ("--stop-position=99999999".to_owned(), "the log ends at "),
        ("--start-position=99999999".to_owned(), "the log ends at "),
        ("--start-datetime=2100-01-01 00:00:00".to_owned(), "no event is of these times"),
        ("--server-id=4711".to_owned(), "no event of this server is there"),
        ("--offset=99999".to_owned(), "the logs have "),
        ("--rewrite-db=dd->test".to_owned(), "nothing there concerns this database"),
    ] {
        let ran = same_as_mysqlbinlog(mysql, &folder, &[&request, log]);
        assert!(ran.stderr.starts_with("WARNING: ") && ran.stderr.contains(said), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    // mysqlbinlog has a warning of its own for this option.
    let ran = same_as_mysqlbinlog(mysql, &folder, &["--database=dd", log]);
    let told = "WARNING: --database=dd: nothing there concerns this database";
    assert!(ran.stderr.lines().any(|line| line == told), "{}", ran.stderr);
    let mut command = folder.mysqlbinlog(["--no-defaults", "--table=d.m2", log]);
    is_refused(&command.output().unwrap().into(), "--table=d.m2: no row of this table is there");
    let mut command = folder.mysqlbinlog(["--no-defaults", &format!("--stop-before-gtid={UUID}:999"), log]);
    is_refused(
        &command.output().unwrap().into(),
        &format!("--stop-before-gtid={UUID}:999: this transaction is not there"),
    );
}

#[test]
fn requests_that_an_archive_does_not_meet_are_answered_with_no() {
    let folder = Folder::new();
    let log = corpus::path("binlog.000001");
    folder.run(["archive", "create", "--to", "arc", log.to_str().unwrap()]).is_done();
    let absent = format!("{UUID}:999");
    for (arguments, said) in [
        (["--stop-before-gtid", &absent], "this transaction is not there"),
        (["--gtids", &absent], "none of these transactions is there"),
        (["--start-datetime", "2100-01-01 00:00:00"], "no transaction is of these times"),
        (["--stop-datetime", "2000-01-01 00:00:00"], "no transaction is of these times"),
    ] {
        for command in [&["cat"][..], &["restore", "--to", "out"]] {
            let ran = folder.run(["archive"].iter().chain(command).chain(&arguments).chain(&["arc"]));
            assert_eq!((ran.code, ran.text()), (Some(1), ""), "{arguments:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
            assert!(!folder.path("out/binlog.000001").exists());
        }
        // A log of an archive, as input of dump.
        if arguments[0] == "--stop-before-gtid" {
            let ran = folder.run(["dump", "--no-defaults", arguments[0], arguments[1], "arc"]);
            assert_eq!((ran.code, ran.text()), (Some(1), ""), "{}", ran.stderr);
        }
    }
    let some = folder.run(["archive", "cat", "--gtids", &format!("{UUID}:3-999"), "arc"]);
    assert_eq!(some.code, Some(0), "{}", some.stderr);
    assert!(!some.stdout.is_empty() && some.stderr.contains("are not there"), "{}", some.stderr);
}

// What servers write.

/// `mysqldump --add-drop-database`, replayed, in the log.
#[test]
fn use_is_printed_again_after_drop_database() -> Outcome {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().option("binlog_format", "STATEMENT").start()?;
    source.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE item (id INT PRIMARY KEY); INSERT INTO item VALUES (1); \
         DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; DROP TABLE IF EXISTS item; \
         CREATE TABLE item (id INT PRIMARY KEY); INSERT INTO item VALUES (2), (3); \
         CREATE DATABASE other; CREATE TABLE last (id INT); ALTER DATABASE other COLLATE utf8mb4_bin; \
         START TRANSACTION; INSERT INTO item VALUES (4); SAVEPOINT a; INSERT INTO item VALUES (5); COMMIT",
    )?;
    let log = source.flush_binary_logs()?;
    let folder = Folder::new();
    let ran = same_as_mysqlbinlog(mysql, &folder, &[log.to_str().unwrap()]);
    let replica = mysql.sandbox().start()?;
    let text = folder.put("dumped.sql", &ran.stdout);
    replica.sql_file(&text)?;
    assert_eq!(replica.checksum_tables("shop")?, source.checksum_tables("shop")?);
    Ok(())
}

#[test]
fn which_statements_end_the_use_of_a_database() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    for statement in [
        "BEGIN",
        "begin",
        "COMMIT",
        "ROLLBACK",
        "ROLLBACK TO `a`",
        "SAVEPOINT `a`",
        "XA START X'61'",
        "XA END X'61'",
        "XA PREPARE X'61'",
        "XA COMMIT X'61'",
        "DROP DATABASE x",
        "/* c */ SAVEPOINT a",
        "CREATE DATABASE y",
    ] {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        log.event(EventType::QUERY, &query("aaa", "first"));
        log.flags(HeaderFlags::SUPPRESS_USE).event(EventType::QUERY, &query("aaa", statement));
        log.flags(HeaderFlags::default()).event(EventType::QUERY, &query("aaa", "second"));
        let path = folder.put("binlog.000001", log.bytes());
        same_as_mysqlbinlog(mysql, &folder, &[path.to_str().unwrap()]);
    }
}

/// A fraction of zero is no fraction.
#[test]
fn a_timestamp_without_a_fraction_is_printed_without() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for fraction in [[0, 0, 0], [1, 0, 0]] {
        let variables = [&[13][..], &fraction].concat();
        let query = QueryEvent {
            thread_id: 1,
            exec_time: 0,
            error_code: 0,
            status_variables: StatusVariables(&variables),
            database: b"d",
            statement: b"INSERT INTO t VALUES (NOW(6))",
        };
        log.event(EventType::QUERY, &query.encode().unwrap());
    }
    let path = folder.put("binlog.000001", log.bytes());
    let ran = same_as_mysqlbinlog(mysql, &folder, &[path.to_str().unwrap()]);
    assert!(ran.text().contains("SET TIMESTAMP=1700000000/*!*/;"), "{}", ran.text());
}

/// Aurora's padding is such an event.
#[test]
fn an_unknown_event_that_may_be_ignored_is() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    for event_type in [28, 0, 1, 8, 12] {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        log.transaction(&[b"one"]).flags(HeaderFlags::IGNORABLE).event(EventType(event_type), &[0; 30]);
        log.flags(HeaderFlags::default()).transaction(&[b"two"]);
        let path = folder.put("binlog.000001", log.bytes());
        for options in [&["-v"][..], &["-s"], &["-H"]] {
            let arguments: Vec<_> = options.iter().copied().chain([path.to_str().unwrap()]).collect();
            same_as_mysqlbinlog(mysql, &folder, &arguments);
        }
    }
}

/// An incident as a live server writes it: a statement's changes to a MyISAM table did not fit its cache.
#[test]
fn incidents_of_a_live_server_are_read() -> Outcome {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    for checksum in ["CRC32", "NONE"] {
        let server = mysql
            .sandbox()
            .option("binlog_checksum", checksum)
            .option("binlog_stmt_cache_size", "4096")
            .option("max_binlog_stmt_cache_size", "4096")
            .start()?;
        server.sql("CREATE DATABASE d; CREATE TABLE d.t (v VARCHAR(200)) ENGINE=MyISAM")?;
        let rows = vec![format!("('{}')", "x".repeat(150)); 200].join(",");
        let refused = server.sql(&format!("INSERT INTO d.t VALUES {rows}"));
        assert!(refused.is_err(), "the server has no such limit");
        server.sql("CREATE TABLE d.after (i INT)")?;
        let logs = server.binlogs()?;
        let with_incident = logs.iter().find(|log| {
            folder.run(["events", "--format=tsv", log.to_str().unwrap()]).text().contains("\tIncident\t")
        });
        let log = with_incident.expect("a log with an incident").to_str().unwrap();
        for options in [&["-v"][..], &["-s"], &["-H"], &["-c"]] {
            let arguments: Vec<_> = options.iter().copied().chain([log]).collect();
            same_as_mysqlbinlog(mysql, &folder, &arguments);
        }
        let verified = folder.run(["verify", log]);
        assert_eq!(verified.code, Some(1), "{}{}", verified.text(), verified.stderr);
        assert!(
            verified.text().contains("the server lost changes here (LOST_EVENTS: "),
            "{}",
            verified.text()
        );
        folder.run(["compress", "--output", &format!("small.{checksum}"), log]).is_done();
        let json = folder.run(["dump", "--no-defaults", "--format=jsonl", log]);
        assert!(json.text().contains("\"type\":\"incident\""), "{}", json.text());
    }
    Ok(())
}

/// Another message under a checksum that fits it: the server's own inside does not.
#[test]
fn an_incident_that_was_changed_is_no_servers() {
    let folder = Folder::new();
    let mut body = b"\x01\0\x05error\0\0\0\0".to_vec();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.event(EventType::INCIDENT, &body);
    let path = folder.put("binlog.000001", log.bytes());
    let ran = folder.run(["verify", path.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.text().contains("Incident event: ") && ran.text().contains("inner checksum"),
        "{}",
        ran.text()
    );
    body.truncate(8);
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let path = folder.put("binlog.000002", log.event(EventType::INCIDENT, &body).bytes());
    let ran = folder.run(["verify", path.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.text().contains("the server lost changes here"), "{}", ran.text());
}

// Logs of a server.

fn remote(mut command: Command, server: &SandboxServer, arguments: &[&str]) -> Ran {
    command.args(["--no-defaults", "--no-login-paths", "-R", "-h127.0.0.1", "-urepl"]);
    command
        .arg(format!("-P{}", server.port()))
        .args(arguments)
        .env("MYSQL_PWD", "repl")
        .output()
        .unwrap()
        .into()
}

/// Rows of a renamed database, plain and compressed, go where they were told to go, in raw files too.
#[test]
fn raw_files_name_the_new_database() -> Outcome {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let compressed = "SET SESSION binlog_transaction_compression = ON";
    server.sql(&format!(
        "CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(100)); \
         CREATE DATABASE other; CREATE TABLE other.t (id INT); USE shop; \
         INSERT INTO item VALUES (1, 'one'), (2, 'two'); UPDATE item SET v = 'zwei' WHERE id = 2; \
         SET SESSION binlog_format = STATEMENT; INSERT INTO item VALUES (3, 'three'); \
         SET SESSION binlog_format = ROW; {compressed}; \
         INSERT INTO item (v) SELECT REPEAT(v, 5) FROM item; \
         INSERT INTO item (v) SELECT CONCAT(a.v, b.v) FROM item a, item b, item c; \
         INSERT INTO item (v) SELECT SHA2(RAND(a.id * 100 + b.id), 256) FROM item a, item b LIMIT 20000; \
         BEGIN; INSERT INTO other.t VALUES (1); INSERT INTO item (v) VALUES ('both'); COMMIT; DELETE FROM item WHERE id = 1"
    ))?;
    let log = server.flush_binary_logs()?;
    server.sql(&format!("USE other; {compressed}; INSERT INTO other.t VALUES (2), (3)"))?;
    let untouched = server.flush_binary_logs()?;
    let name = |log: &Path| log.file_name().unwrap().to_str().unwrap().to_owned();
    let rules = ["--rewrite-db=shop->a_longer_name", "--rewrite-db=other->o"];
    for rules in [&rules[..1], &rules[..]] {
        let (here, there) = (Folder::new(), Folder::new());
        let log = name(&log);
        let arguments: Vec<_> = ["--raw"].iter().chain(rules).copied().chain([log.as_str()]).collect();
        let ours = remote(here.mysqlbinlog([""; 0]), &server, &arguments);
        let mut command = mysql.command("mysqlbinlog");
        command.current_dir(there.path(""));
        let theirs = remote(command, &server, &arguments);
        assert_eq!((ours.code, ours.stderr.as_str()), (Some(0), ""), "{}", theirs.stderr);
        assert!(here.read(&log) == there.read(&log), "{rules:?}: another file");
        // It is a log whose checksums are right, and its rows go where they should.
        let path = here.path(&log);
        let text = same_as_mysqlbinlog(mysql, &here, &["-c", path.to_str().unwrap()]);
        assert!(text.text().contains("`a_longer_name`.`item`") && !text.text().contains("`shop`.`item`"));
    }
    // Events that name no such database stay as the server sends them, payloads too.
    let here = Folder::new();
    let log = name(&untouched);
    let ran = remote(here.mysqlbinlog([""; 0]), &server, &["--raw", rules[0], &log]);
    let told = format!("{}: nothing there concerns this database\n", rules[0]);
    assert_eq!((ran.code, ran.stderr), (Some(0), format!("WARNING: {told}")));
    assert!(here.read(&log) == fs::read(&untouched)?);
    let ran = remote(here.binlogz(["dump"]), &server, &["--raw", rules[0], &log]);
    assert_eq!((ran.code, ran.stderr), (Some(1), format!("ERROR: {told}")));
    Ok(())
}

#[test]
fn an_authority_that_nobody_asks_is_told() -> Outcome {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let authority = server.datadir().join("ca.pem");
    let authority = format!("--ssl-ca={}", authority.display());
    let folder = Folder::new();
    let log = server.flush_binary_logs()?;
    let log = log.file_name().unwrap().to_str().unwrap();
    for mode in ["PREFERRED", "REQUIRED", "VERIFY_CA"] {
        let arguments = [&authority, &format!("--ssl-mode={mode}"), log];
        let ours = remote(folder.mysqlbinlog([""; 0]), &server, &arguments);
        let theirs = remote(mysql.command("mysqlbinlog"), &server, &arguments);
        assert_eq!((ours.code, ours.stderr), (theirs.code, theirs.stderr.clone()), "{mode}");
        assert_eq!(theirs.stderr.contains("no verification"), mode != "VERIFY_CA");
    }
    // The other commands that connect.
    let port = server.port().to_string();
    let arguments =
        ["doctor", "--no-defaults", "-h127.0.0.1", "-P", &port, "-uroot", "--ssl-mode=REQUIRED", &authority];
    let ran = folder.run(arguments);
    assert!(ran.stderr.contains("ssl-ca or ssl-capath is given, and nothing is verified"), "{}", ran.stderr);
    Ok(())
}

// Logs that are no sequence.

/// A log with these transactions of a server, and what came before it.
fn log_after(previous: &str, gnos: std::ops::RangeInclusive<u64>) -> Vec<u8> {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let gtid_set: GtidSet = previous.parse().unwrap();
    let format = gtid_set.format();
    log.event(EventType::PREVIOUS_GTIDS, &PreviousGtidsEvent { gtid_set, format }.encode());
    log.behind_gno(gnos.start() - 1);
    for gno in gnos {
        log.transaction(&[format!("value {gno}").as_bytes()]);
    }
    log.take()
}

#[test]
fn logs_that_do_not_continue_one_another_are_refused_before_anything_is_read_or_served() {
    let folder = Folder::new();
    let server = binlogz_testkit::builder::UUID;
    let of = |last: u64| format!("{server}:1-{last}");
    let other = "bbbbbbbb-e54d-11f1-848d-02fc00000002:1-5";
    for name in ["a", "b", "reset"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    for (name, log) in [
        ("a/binlog.000001", log_after("", 1..=3)),
        ("a/binlog.000002", log_after(&of(3), 4..=5)),
        ("a/binlog.000003", log_after(&of(5), 6..=6)),
        ("b/binlog.000002", log_after(other, 1..=2)),
        ("reset/binlog.000003", log_after("", 1..=1)),
    ] {
        folder.put(name, log);
    }
    let all = ["a/binlog.000001", "a/binlog.000002", "a/binlog.000003"];
    let [one, two, three] = all;
    let bad: [(&[&str], &[&str]); 6] = [
        (&[one, "b/binlog.000002"], &["b/binlog.000002 does not continue a/binlog.000001: ", "of which"]),
        (&[two, "reset/binlog.000003"], &["reset/binlog.000003 does not continue a/binlog.000002: before"]),
        (&[one, three], &["binlog.000002 is missing between"]),
        (&[one, one], &["is there twice", one]),
        (&[two, "b/binlog.000002"], &["b/binlog.000002 and a/binlog.000002 have the same number"]),
        (&[two, one], &["a/binlog.000001 comes before a/binlog.000002"]),
    ];
    for (logs, said) in bad {
        let ran = folder.run(["rows", "shop.item"].iter().chain(logs));
        assert_eq!((ran.code, ran.text()), (Some(2), ""), "{logs:?}: {ran:?}");
        for said in said {
            assert!(ran.stderr.contains(said), "{said}: {ran:?}");
        }
        // Files are sorted there, so that the last is no trouble.
        if logs == [two, one] {
            continue;
        }
        let serve = ["archive", "serve", "--user", "repl", "--listen", "127.0.0.1:0", "--work-dir", "."];
        let ran: Ran = folder.binlogz(serve).args(logs).env("MYSQL_PWD", "x").output().unwrap().into();
        assert_eq!(ran.code, Some(2), "{logs:?}: {ran:?}");
        let said = said.iter().filter(|said| !said.contains("missing") && **said != one);
        said.for_each(|said| assert!(ran.stderr.contains(said), "{said}: {ran:?}"));
    }
    assert_eq!(folder.names(), ["a", "b", "reset"]);
    let ran = folder.run(["rows", "shop.item", "--format", "json"].iter().chain(&all));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(ran.text().lines().count(), 6);
}
