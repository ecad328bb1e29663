//! `dump` compared with the real mysqlbinlog: the same bytes on stdout, the same exit code, the same files of LOAD DATA,
//! for every option that changes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::Folder;
use binlogz_binlog::EventType;
use binlogz_binlog::event::{QueryEvent, StatusVariables};
use binlogz_testkit::builder::{EndPositions, LogBuilder, Release};
use binlogz_testkit::{InstalledTool, Tool, corpus, mutate, real, require_tool, tool};

/// Sets of options; every option that matters for files is in one of them.
const OPTION_SETS: &[&[&str]] = &[
    &[],
    &["-v"],
    &["-vv"],
    &["-vv", "--base64-output=decode-rows", "--print-table-metadata"],
    &["-s"],
    &["-s", "-v"],
    &["-s", "--skip-gtids"],
    &["-H"],
    &["-H", "-vv"],
    &["--print-table-metadata"],
    &["--require-row-format"],
    &["--set-charset=utf8mb4"],
    &["-D"],
    &["-i"],
    &["--skip-gtids"],
    &["--base64-output=never"],
    &["--base64-output=never", "-v"],
    &["--base64-output=decode-rows"],
    &["--base64-output=auto"],
    &["-d", "mix"],
    &["-d", "mix", "-v"],
    &["-d", "employees"],
    &["-d", "d", "--base64-output=decode-rows", "-v"],
    &["-d", "nosuch"],
    &["-d", "nosuch", "-v", "--skip-gtids"],
    &["--rewrite-db=d->longername"],
    &["--rewrite-db=mix->m2", "-v"],
    &["--rewrite-db=sbtest->x", "--rewrite-db=employees->emp2", "-vv", "--base64-output=decode-rows"],
    &["--rewrite-db=d->e", "-d", "e"],
    &["--rewrite-db=d->e", "-d", "d"],
    &["--server-id=33091"],
    &["--server-id=1"],
    &["--server-id=7"],
    &["-o", "3"],
    &["-o", "10"],
    &["-o", "5", "-v"],
    &["--start-position=128"],
    &["--start-position=198"],
    &["--start-position=245"],
    &["--start-position=9999999"],
    &["--start-position=300"],
    &["--stop-position=300"],
    &["--stop-position=5000", "-v"],
    &["--stop-position=127"],
    &["--stop-position=4"],
    &["--start-position=235", "--stop-position=1200"],
    &["--start-datetime=20261121043739"],
    &["--stop-datetime=20261121043739"],
    &["--start-datetime=20261121015631", "--stop-datetime=20261121015811"],
    &["--stop-datetime=20000101000000"],
    &["--include-gtids=1410447f-e54d-11f1-848d-02fc00000001:1-5"],
    &["--exclude-gtids=1410447f-e54d-11f1-848d-02fc00000001:1-5"],
    &["--exclude-gtids=1410447f-e54d-11f1-848d-02fc00000001:tag_1:1", "-v"],
    &["--include-gtids=1410447f-e54d-11f1-848d-02fc00000001:33-100", "--skip-gtids"],
    &["--exclude-gtids=1410447f-e54d-11f1-848d-02fc00000001:1-1000"],
    &["-c"],
    &["-F"],
    &["--skip-force-if-open"],
    &["-f"],
    &["--idempotent", "-D", "--require-row-format", "--set-charset=latin1"],
    &["--verify-binlog-checksum", "-vv"],
    &["--server-id=33091", "--server-id-bits=7"],
    &["--skip-gtids", "--base64-output=decode-rows"],
    &["--skip-gtids", "--base64-output=never"],
    &["-d", "mix", "--stop-position=3000"],
    &["-H", "--stop-position=2000", "--skip-gtids"],
    &["--binlog-row-event-max-size=256", "-v"],
];

/// Files with something of everything, and their compressed twins.
fn files() -> Vec<PathBuf> {
    let shipped = ["binlog.000001", "binlog.000005", "binlog.000006", "relay.000012"];
    let samples = corpus::samples();
    let wanted = ["plain/binlog.000007", "compressed/binlog.000007", "plain/binlog.000009"];
    let wanted = |name: &str| wanted.iter().any(|end| name.ends_with(end));
    let samples = samples.into_iter().filter(|sample| wanted(&sample.name)).map(|sample| sample.path);
    shipped.iter().map(|name| corpus::path(name)).chain(samples).collect()
}

/// The outcome of a run.
struct Dumped {
    output: Output,
    /// The files of LOAD DATA that it wrote.
    loaded: BTreeMap<String, Vec<u8>>,
}

/// Both programs, and a folder for LOAD DATA that both name alike.
struct Pair {
    mysql: &'static InstalledTool,
    folder: Folder,
}

impl Pair {
    fn new(mysql: &'static InstalledTool) -> Self {
        Pair { mysql, folder: Folder::new() }
    }

    fn run(&self, mut command: Command, options: &[&str], logs: &[&Path]) -> Dumped {
        let load = self.folder.path("load");
        let _ = fs::remove_dir_all(&load);
        fs::create_dir(&load).unwrap();
        command.arg("--no-defaults").args(options).arg("--local-load").arg(&load).args(logs);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let loaded = fs::read_dir(&load).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())
        });
        Dumped { output, loaded: loaded.collect() }
    }

    fn theirs(&self, options: &[&str], logs: &[&Path]) -> Dumped {
        self.run(self.mysql.command("mysqlbinlog"), options, logs)
    }

    fn ours(&self, options: &[&str], logs: &[&Path]) -> Dumped {
        self.run(self.folder.mysqlbinlog([""; 0]), options, logs)
    }

    /// The difference, in words.
    fn difference(&self, options: &[&str], logs: &[&Path]) -> Option<String> {
        let theirs = self.theirs(options, logs);
        let ours = self.ours(options, logs);
        difference(&theirs, &ours).map(|what| format!("{options:?} {logs:?}: {what}"))
    }
}

fn difference(theirs: &Dumped, ours: &Dumped) -> Option<String> {
    let codes = (theirs.output.status.code(), ours.output.status.code());
    if codes.0 != codes.1 {
        let stderr = String::from_utf8_lossy(&ours.output.stderr).into_owned();
        return Some(format!("exit codes {codes:?}; ours says {stderr}"));
    }
    if theirs.loaded != ours.loaded {
        return Some("the files of LOAD DATA differ".to_owned());
    }
    if theirs.output.stdout == ours.output.stdout {
        return None;
    }
    first_line(&theirs.output.stdout, &ours.output.stdout)
}

/// mysqlbinlog's words in the place of a GEOMETRY; it drops what follows in the event. We print the
/// value and go on (docs/reference/dump.md).
const GIVEN_UP: &[u8] = b"=!! Don't know how to handle column type=255";

/// The first line that differs.
fn first_line(theirs: &[u8], ours: &[u8]) -> Option<String> {
    let mut theirs = theirs.split(|&byte| byte == b'\n');
    let mut ours = ours.split(|&byte| byte == b'\n');
    let mut number = 0;
    loop {
        let (mut their_line, mut our_line) = (theirs.next(), ours.next());
        number += 1;
        if their_line.is_some_and(|line| line.windows(GIVEN_UP.len()).any(|window| window == GIVEN_UP)) {
            their_line = theirs.next();
            while our_line.is_some() && our_line != their_line {
                our_line = ours.next();
            }
        }
        if their_line != our_line {
            let show = |line: Option<&[u8]>| {
                line.map_or("(nothing)".to_owned(), |line| line.escape_ascii().to_string())
            };
            let (theirs, ours) = (show(their_line), show(our_line));
            return Some(format!("line {number}\n  theirs {theirs}\n  ours   {ours}"));
        }
        their_line?;
    }
}

/// Compares on two threads; panics with the first few differences.
fn compare_all(mysql: &'static InstalledTool, cases: &[(Vec<&str>, Vec<&Path>)]) {
    let next = AtomicUsize::new(0);
    let work = || {
        let pair = Pair::new(mysql);
        let mut differences = Vec::new();
        while let Some((options, logs)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            differences.extend(pair.difference(options, logs));
        }
        differences
    };
    let differences: Vec<String> = thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let shown = differences.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {} differ:\n{shown}", differences.len(), cases.len());
}

#[test]
fn every_option_gives_what_mysqlbinlog_gives() {
    let mysql = require_tool!(Tool::Mysql);
    assert!(OPTION_SETS.len() >= 60);
    let files = files();
    assert_eq!(files.len(), 7);
    let cases: Vec<_> = OPTION_SETS
        .iter()
        .flat_map(|options| files.iter().map(|file| (options.to_vec(), vec![file.as_path()])))
        .collect();
    compare_all(mysql, &cases);
}

#[test]
fn every_real_log_gives_what_mysqlbinlog_gives() {
    let mysql = require_tool!(Tool::Mysql);
    let logs = real::every_binlog();
    // The mix under four levels is the same mix; their bytes are compared elsewhere.
    let logs: Vec<_> = logs.iter().filter(|log| fs::metadata(&log.path).unwrap().len() < 3 << 20).collect();
    let options: [&[&str]; 3] = [&["-vv"], &[], &["-v", "--base64-output=decode-rows"]];
    let cases: Vec<_> = logs
        .iter()
        .enumerate()
        .map(|(index, log)| (options[index % options.len()].to_vec(), vec![log.path.as_path()]))
        .collect();
    compare_all(mysql, &cases);
}

#[test]
fn several_logs_and_stdin() {
    let mysql = require_tool!(Tool::Mysql);
    let [first, second] = ["binlog.000001", "binlog.000004"].map(corpus::path);
    let relay = corpus::path("relay.000012");
    let (first, second, relay) = (first.as_path(), second.as_path(), relay.as_path());
    let cases = vec![
        (vec![], vec![first, second]),
        (vec!["-v", "--stop-position=1000"], vec![first, second, relay]),
        (vec!["--start-position=855"], vec![first, second]),
        (vec!["--skip-gtids"], vec![relay, relay]),
        (vec!["-d", "d"], vec![second, first, second]),
        (vec![], vec![first, Path::new("no such log"), second]),
        (vec![], vec![Path::new(file!()), first]),
        (vec!["--stop-datetime=20261121014501"], vec![first, second]),
    ];
    compare_all(mysql, &cases);

    let pair = Pair::new(mysql);
    let mut input = Vec::new();
    for log in [first, second, relay] {
        input.extend(fs::read(log).unwrap());
    }
    let piped = pair.folder.put("piped", &input);
    let mut outputs = Vec::new();
    for mut command in [mysql.command("mysqlbinlog"), pair.folder.binlogz(["dump"])] {
        let load = pair.folder.path("load");
        let _ = fs::remove_dir_all(&load);
        fs::create_dir(&load).unwrap();
        let file = fs::File::open(&piped).unwrap();
        command.args(["--no-defaults", "-v", "-"]).arg("--local-load").arg(load).stdin(file);
        outputs.push(command.output().unwrap());
    }
    assert_eq!(outputs[0].status.code(), outputs[1].status.code());
    assert_eq!(first_line(&outputs[0].stdout, &outputs[1].stdout), None);
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let folder = Folder::new();
    let log = corpus::path("levels.000002");
    let run = |jobs: &str, name: &str| {
        let (jobs, name) = (format!("--jobs={jobs}"), format!("--result-file={name}"));
        let options = ["dump", "--no-defaults", "-v", &jobs, &name, log.to_str().unwrap()];
        let ran = folder.run(options);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    };
    run("1", "one");
    run("2", "two");
    run("5", "five");
    let one = folder.read("one");
    assert!(one.len() > 5_000_000, "{}", one.len());
    assert!(one == folder.read("two"));
    assert!(one == folder.read("five"));
}

/// A statement larger than many batches, and one that is filtered in part: text waits for their ends.
#[test]
fn large_statements_replay_and_print_as_mysqlbinlog_prints_them() -> binlogz_testkit::Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for level in [None, Some(3)] {
        let mut source = mysql.sandbox().option("max-allowed-packet", "64M");
        if let Some(level) = level {
            source = source.compression(level);
        }
        let source = source.start()?;
        let replay = mysql.sandbox().option("max-allowed-packet", "64M").start()?;
        source.sql(
            "SET cte_max_recursion_depth = 100000;
             CREATE DATABASE shop; USE shop;
             CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(200), price DECIMAL(9,2), made DATETIME(3));
             CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(100)) ENGINE=MyISAM;
             INSERT INTO item WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
                 SELECT i, CONCAT('item ', SHA2(i, 256)), i / 7, '2026-01-02 03:04:05.678' FROM n;
             BEGIN; UPDATE item SET price = price + 1; DELETE FROM item WHERE id % 3 = 0; COMMIT;
             INSERT INTO other (v) VALUES ('a\\'b'), (NULL), ('\\\\');
             SET binlog_format = 'STATEMENT'; SET @name = 'by statement'; INSERT INTO other (v) VALUES (@name);
             UPDATE item SET name = 'one' WHERE id = 1;
             SET binlog_format = 'ROW', sql_generate_invisible_primary_key = ON;
             CREATE TABLE keyless (v INT); INSERT INTO keyless VALUES (1);",
        )?;
        let binlog = source.flush_binary_logs()?;
        let log = binlog.as_path();
        let cases = vec![
            (vec![], vec![log]),
            (vec!["-v", "--base64-output=decode-rows"], vec![log]),
            (vec!["-vv", "-d", "shop"], vec![log]),
            (vec!["-v", "-d", "other"], vec![log]),
            (vec!["-H"], vec![log]),
            (vec!["-v", "-o", "30"], vec![log]),
            (vec!["--stop-position=1000000", "-v"], vec![log]),
            (vec!["--print-table-metadata", "--base64-output=decode-rows"], vec![log]),
        ];
        compare_all(mysql, &cases);

        let folder = Folder::new();
        let ran = folder.run([
            "dump".as_ref(),
            "--no-defaults".as_ref(),
            "--result-file=dumped.sql".as_ref(),
            log.as_os_str(),
        ]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        replay.sql_file(&folder.path("dumped.sql"))?;
        assert_eq!(replay.checksum_tables("shop")?, source.checksum_tables("shop")?);
    }
    Ok(())
}

/// The columns that mysqlbinlog 9.7.4 prints: members after NOT NULL, the character set of a binary ENUM, INVISIBLE last.
#[test]
fn table_metadata_is_what_mysqlbinlog_prints() {
    let folder = Folder::new();
    let log = corpus::case("printmeta.binlog");
    let log = log.to_str().unwrap();
    let ran =
        folder.run(["dump", "--no-defaults", "--base64-output=decode-rows", "--print-table-metadata", log]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for line in [
        "# Columns(`e` ENUM NOT NULL('x', 'y') CHARSET utf8mb4 COLLATE utf8mb4_0900_ai_ci,",
        "#         `s` SET NOT NULL('p', 'q') CHARSET utf8mb4 COLLATE utf8mb4_0900_ai_ci,",
        "#         `f` ENUM('x') CHARSET binary COLLATE binary)",
        "#         `v` BIGINT UNSIGNED INVISIBLE,",
    ] {
        assert!(ran.text().lines().any(|found| found == line), "{line}: {}", ran.text());
    }
    if let Some(mysql) = tool::require(Tool::Mysql) {
        let cases = [
            &["--print-table-metadata"][..],
            &["-vv", "--base64-output=decode-rows", "--print-table-metadata"],
        ];
        compare_all(mysql, &cases.map(|options| (options.to_vec(), vec![Path::new(log)])));
    }
}

#[test]
fn options_of_our_own() {
    let folder = Folder::new();
    let log = corpus::path("binlog.000001");
    let log = log.to_str().unwrap();
    let ran = folder.run(["dump", "--no-defaults", "-v", "--base64-output=decode-rows", "--table=d.m1", log]);
    assert_eq!(ran.code, Some(0));
    let text = ran.text();
    assert!(text.contains("### INSERT INTO `d`.`m1`"), "{text}");
    assert!(!text.contains("`d`.`t1`"), "{text}");
    let gtid = "1410447f-e54d-11f1-848d-02fc00000001:5";
    let ran = folder.run(["dump", "--no-defaults", &format!("--stop-before-gtid={gtid}"), log]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.text().contains("02fc00000001:4'/*!*/;") && !ran.text().contains(gtid));
}

#[test]
fn encrypted_logs_give_what_their_plain_twins_give() {
    let folder = Folder::new();
    let encrypted = corpus::encrypted();
    let run = |log: &Path| {
        let keyring = format!("--keyring={}", encrypted.keyring.display());
        folder.run(["dump", "--no-defaults", "-v", &keyring, log.to_str().unwrap()])
    };
    let (plain, secret) = (run(&encrypted.plain), run(&encrypted.encrypted));
    assert_eq!((secret.code, secret.stderr.as_str()), (Some(0), ""));
    assert!(plain.stdout == secret.stdout && plain.stdout.len() > 1000);
}

#[test]
fn logs_of_mariadb_are_read() -> binlogz_testkit::Result<()> {
    let _ = require_tool!(Tool::Mariadb);
    let server = binlogz_testkit::MariadbSandbox::start(&[("log-bin", "binlog"), ("binlog-format", "ROW")])?;
    server.sql("CREATE DATABASE m; CREATE TABLE m.t (a INT, b VARCHAR(9)); INSERT INTO m.t VALUES (1, 'x'); FLUSH LOGS")?;
    let folder = Folder::new();
    let log = server.binlogs()?.swap_remove(0);
    let ran = folder.run(["dump", "--no-defaults", "-v", log.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.text().contains("### INSERT INTO `m`.`t`\n### SET\n###   @1=1\n###   @2='x'\n"),
        "{}",
        ran.text()
    );
    Ok(())
}

/// Bytes that are letters by chance too.
#[test]
fn addresses_of_mariadb_are_bytes_whatever_they_are() -> binlogz_testkit::Result<()> {
    let _ = require_tool!(Tool::Mariadb);
    for metadata in ["NO_LOG", "MINIMAL"] {
        let options = [("log-bin", "binlog"), ("binlog-format", "ROW"), ("binlog-row-metadata", metadata)];
        let server = binlogz_testkit::MariadbSandbox::start(&options)?;
        server.sql(
            "CREATE DATABASE m; CREATE TABLE m.t (i INET6, j INET4, u UUID); INSERT INTO m.t VALUES ('6161:6262:6363:6464:6161:6262:6363:6464', \
             '97.98.99.100', '61616262-6364-6566-6768-696a6b6c6d6e'), ('::ffff:192.0.2.0', '10.0.0.0', '00000000-0000-0000-0000-000000000000'); FLUSH \
             LOGS",
        )?;
        let folder = Folder::new();
        let log = server.binlogs()?.swap_remove(0);
        let ran = folder.run(["dump", "--no-defaults", "--format", "jsonl", log.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for values in [
            r#""i":{"base64":"YWFiYmNjZGRhYWJiY2NkZA=="},"j":{"base64":"YWJjZA=="},"u":{"base64":"YWFiYmNkZWZnaGlqa2xtbg=="}"#,
            r#""i":{"base64":"AAAAAAAAAAAAAP//wAACAA=="},"j":{"base64":"CgAAAA=="},"u":{"base64":"AAAAAAAAAAAAAAAAAAAAAA=="}"#,
        ] {
            assert!(ran.text().contains(values), "{metadata}: {}", ran.text());
        }
    }
    Ok(())
}

/// Cut logs: the same text up to the cut, the same exit code, in use or not.
/// Logs with events that only older servers wrote.
#[test]
fn logs_of_older_servers() {
    let mysql = require_tool!(Tool::Mysql);
    // Status variable 1: modes of 5.7, of which 8.0.5 removed NO_AUTO_CREATE_USER (bit 28).
    let mode = [&[1][..], &(0x1000_0000_u64 | 1 << 21).to_le_bytes()].concat();
    let with_mode = QueryEvent {
        thread_id: 1,
        exec_time: 0,
        error_code: 0,
        status_variables: StatusVariables(&mode),
        database: b"shop",
        statement: b"DROP TABLE item",
    };
    let with_mode = with_mode.encode().unwrap();
    // An incident that isn't LOST_EVENTS, without words of its own.
    let unknown_incident = [66, 0, 0];
    let folder = Folder::new();
    let mut logs = Vec::new();
    for release in [Release::MYSQL_5_6, Release::MYSQL_5_7, Release::MYSQL_8_0_19] {
        let mut log = LogBuilder::new(release);
        // Events that a source sent before its own do not end a log.
        log.positions(EndPositions::Fixed(0)).format_description(release).positions(EndPositions::Own);
        log.transaction(&[b"one", b"two"]).event(EventType::QUERY, &with_mode);
        logs.push(folder.put(&format!("{}.old", release.version), log.bytes()));
        log.event(EventType::INCIDENT, &unknown_incident);
        logs.push(folder.put(&format!("{}.incident", release.version), log.bytes()));
    }
    let options = [vec!["-v"], vec!["--base64-output=decode-rows", "-s"]];
    let cases: Vec<_> = options
        .iter()
        .flat_map(|options| logs.iter().map(|log| (options.clone(), vec![log.as_path()])))
        .collect();
    compare_all(mysql, &cases);
}

#[test]
fn cut_logs_end_as_with_mysqlbinlog() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut cut = Vec::new();
    for name in ["binlog.000004", "binlog.000006"] {
        let log = fs::read(corpus::path(name)).unwrap();
        for size in [0, 3, 4, 10, 50, 127, 130, 200, 245, 600, 2000, log.len() - 1] {
            if let Some(front) = log.get(..size) {
                cut.push(folder.put(&format!("{name}.{size}"), front));
            }
        }
    }
    let cases: Vec<_> = cut.iter().map(|log| (vec!["-v"], vec![log.as_path()])).collect();
    compare_all(mysql, &cases);
}

/// Damaged logs: never a crash, one clear line each, and whole lines only.
#[test]
fn damaged_logs_end_in_clear_lines() {
    let seed = mutate::seed();
    for name in ["binlog.000001", "binlog.000005"] {
        let original = fs::read(corpus::path(name)).unwrap();
        for index in 0..20 {
            let (log, what) = mutate::mutate(&original, seed, index);
            ends_in_clear_lines(&log, &what);
        }
        // The begin is gone.
        ends_in_clear_lines(&original[500..], "without its begin");
    }
}

fn ends_in_clear_lines(log: &[u8], what: &str) {
    let folder = Folder::new();
    let path = folder.put("damaged", log);
    let ran =
        folder.run(["dump", "--no-defaults", "-vv", "--verify-binlog-checksum", path.to_str().unwrap()]);
    let mut errors = ran.stderr.lines().filter(|line| line.starts_with("ERROR: ")).peekable();
    let code = ran.code.unwrap_or_else(|| panic!("{what}: ended by a signal"));
    // The damage that ends the log has a line, and so has each event with changes that can't be read; each line tells a place, which may be the
    // log's begin.
    let tells_place =
        |line: &str| line.contains(" at ") || line.contains(": not a binary log: it begins with ");
    let is_told = errors.peek().is_some() == (code == 1) && errors.all(tells_place);
    assert!(code <= 1 && is_told, "{what}: {code}: {}", ran.stderr);
    assert!(ran.stdout.ends_with(b"\n"), "{what}: half a line at the end");
}

#[test]
fn output_that_nobody_takes() {
    let folder = Folder::new();
    let log = corpus::path("levels.000002");
    let mut child = folder.spawn(["dump", "--no-defaults", "-v", log.to_str().unwrap()]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));

    let ran = folder.run(["dump", "--no-defaults", "--result-file=/dev/full", log.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("ERROR: ") && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    let ran = folder.run(["dump", "--no-defaults", "--result-file=no/such/folder", log.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("ERROR: ") && ran.stderr.lines().count() == 1, "{}", ran.stderr);
}

#[test]
fn a_link_named_mysqlbinlog_is_mysqlbinlog() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let link = folder.path("mysqlbinlog");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_binlogz"), &link).unwrap();
    let log = corpus::path("binlog.000005");
    let ours = Command::new(link).arg("--no-defaults").arg(&log).output().unwrap();
    let theirs = mysql.mysqlbinlog(["--no-defaults".as_ref(), log.as_os_str()]).unwrap();
    assert_eq!(ours.status.code(), Some(0));
    assert!(ours.stdout == theirs.stdout);
}
