//! `dump` of a server's logs beside mysqlbinlog's: a live MySQL 9.7.4, the same options, the same bytes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Folder, Ran, wait_for};
use binlogz_testkit::{MysqlSandbox, SandboxServer, Tool, mixed, require_tool};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Generous: a busy machine is no failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that has the mix of everything, compressed, and an account without TLS.
fn server() -> Result<MysqlSandbox, Box<dyn std::error::Error>> {
    let files: Vec<_> = mixed::binlogs()?
        .into_iter()
        .filter(|log| log.name.starts_with("level3/source/"))
        .map(|log| log.path)
        .collect();
    assert!(files.len() >= 4, "{files:?}");
    let installed = Tool::Mysql.find()?;
    let server = installed.sandbox().binlogs(&files).start()?;
    server.sql("CREATE DATABASE remote; CREATE TABLE remote.t (id INT PRIMARY KEY, v VARCHAR(100))")?;
    Ok(server)
}

/// Connects to the server in either program.
fn with_server(mut command: Command, server: &SandboxServer, arguments: &[&str]) -> Command {
    command.args(["--no-defaults", "--no-login-paths", "-h127.0.0.1", "-urepl"]);
    command.arg(format!("-P{}", server.port())).args(arguments).env("MYSQL_PWD", "repl");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn ours(folder: &Folder, server: &SandboxServer, arguments: &[&str]) -> Command {
    with_server(folder.mysqlbinlog([""; 0]), server, arguments)
}

fn theirs(folder: &Folder, server: &MysqlSandbox, arguments: &[&str]) -> Command {
    let mut command = with_server(server.installed().command("mysqlbinlog"), server, arguments);
    command.current_dir(folder.path(""));
    command
}

pub(crate) fn run(mut command: Command) -> Ran {
    command.output().unwrap().into()
}

/// The server's file as it sends it: it clears the in-use flag.
pub(crate) fn sent(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    if bytes.get(21) == Some(&1) {
        bytes[21] = 0;
    }
    bytes
}

#[test]
fn logs_of_a_live_server() -> Outcome {
    require_tool!(Tool::Mysql);
    let mut server = server()?;
    text_is_mysqlbinlogs(&server);
    lines_are_those_of_the_file(&server)?;
    raw_files_are_mysqlbinlogs(&server);
    raw_files_are_the_servers(&server)?;
    refusals_are_mysqlbinlogs(&server);
    printing_never_stops_until_told(&server)?;
    raw_never_stops_until_told(&mut server)
}

fn text_is_mysqlbinlogs(server: &MysqlSandbox) {
    let uuid = server.server_uuid().unwrap();
    let excluded = format!("--exclude-gtids={uuid}:1-2");
    for arguments in [
        ["-R", "binlog.000001"].as_slice(),
        &["-R", "-v", "binlog.000002", "binlog.000004", "binlog.000003"],
        &["-R", "-vv", "--base64-output=decode-rows", "--to-last-log", "binlog.000002"],
        &["-R", "--to-last-log", "--start-position=198", "binlog.000003"],
        &["-R", "--start-position=198", "--verify-binlog-checksum", "binlog.000004"],
        &["-R", "--stop-position=900", "binlog.000004"],
        &["-R", "--start-position=198", "--stop-position=900", "--hexdump", "binlog.000004"],
        &["-R", "--offset=7", "--short-form", "binlog.000001"],
        &["-R", "--skip-gtids", "--disable-log-bin", "--idempotent", "--set-charset=latin1", "binlog.000004"],
        &["-R", "--print-table-metadata", "--database=mix", "binlog.000002"],
        &["-R", "--rewrite-db=mix->blend", "binlog.000004"],
        &["-R", "--server-id=77", "--to-last-log", "binlog.000003"],
        &["-R", "--start-datetime=2101-01-01 0:0:0", "--to-last-log", "binlog.000003"],
        &["-R", "--stop-datetime=2001-01-01 0:0:0", "--to-last-log", "binlog.000003"],
        &["--read-from-remote-source=BINLOG-DUMP-NON-GTIDS", "binlog.000003"],
        &["--read-from-remote-source=BINLOG-DUMP-GTIDS", "--to-last-log", &excluded, "binlog.000004"],
        &["-R", "--ssl-mode=REQUIRED", "--connection-server-id=77", "binlog.000003"],
        &[
            "-R",
            "--compression-algorithms=zstd",
            "--zstd-compression-level=9",
            "--to-last-log",
            "binlog.000002",
        ],
        &["-R", "--compress", "-v", "binlog.000004"],
        &["-R", ""],
        // Trouble.
        &["-R", "no-such.000001", "binlog.000003"],
        &["-R", "binlog.000003", "no-such.000001"],
        &["-R", "--start-position=1000000", "binlog.000004"],
        &["-R", "--start-position=199", "binlog.000004"],
        &["-R", "-uroot", "-pwrong", "binlog.000004"],
    ] {
        let (here, there) = (Folder::new(), Folder::new());
        // The files of LOAD DATA would else be called after those of the other.
        let arguments: Vec<_> = ["--local-load=."].iter().chain(arguments).copied().collect();
        let (ours, theirs) = (run(ours(&here, server, &arguments)), run(theirs(&there, server, &arguments)));
        assert_eq!(ours.code, theirs.code, "{arguments:?}: {} {}", ours.stderr, theirs.stderr);
        // Only we name requests that were not met.
        let is_unmet = |line: &&str| line.ends_with(" is there") || line.ends_with(" is of these times");
        let is_unmet = |line: &&str| {
            is_unmet(line)
                || line.contains(": the log ends at ")
                || line.contains(": nothing there concerns ")
        };
        let told: Vec<_> = ours.stderr.lines().filter(|line| !is_unmet(line)).collect();
        assert_eq!(told, theirs.stderr.lines().collect::<Vec<_>>(), "{arguments:?}");
        assert_same_text(&ours.stdout, &theirs.stdout, &format!("{arguments:?}"));
    }
}

#[track_caller]
fn assert_same_text(ours: &[u8], theirs: &[u8], what: &str) {
    let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
    if ours != theirs {
        let (ours, theirs) = (lines(ours), lines(theirs));
        let at = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
        let at = at.unwrap_or(ours.len().min(theirs.len()));
        panic!("{what}: line {at}: ours {:?}, theirs {:?}", ours.get(at), theirs.get(at));
    }
}

/// JSON of a log that is sent is JSON of the file, wherever the server begins.
fn lines_are_those_of_the_file(server: &MysqlSandbox) -> Outcome {
    let folder = Folder::new();
    let log = server.binlogs()?.into_iter().nth(3).ok_or("no fourth log")?;
    fs::copy(&log, folder.path("binlog.000004"))?;
    let json = |arguments: &[&str]| -> Ran {
        let arguments: Vec<_> = ["--format=jsonl"].iter().chain(arguments).copied().collect();
        run(ours(&folder, server, &arguments))
    };
    let (sent, file) = (json(&["-R", "binlog.000004"]), json(&["binlog.000004"]));
    sent.is_done();
    assert_same_text(&sent.stdout, &file.stdout, "whole");
    // From there on statements before it tell nothing of the tables.
    let begin = "--start-position=413";
    let (sent, file) = (json(&["-R", begin, "binlog.000004"]), json(&[begin, "binlog.000004"]));
    sent.is_done();
    assert!(file.text().lines().next().is_some_and(|line| line.contains("\"position\":413,")));
    // The first line of what is sent is the format description.
    assert!(sent.text().lines().skip(1).eq(file.text().lines()), "{}\n{}", sent.text(), file.text());
    Ok(())
}

fn raw_files_are_mysqlbinlogs(server: &MysqlSandbox) {
    let uuid = server.server_uuid().unwrap();
    let excluded = format!("--exclude-gtids={uuid}:1-2");
    for arguments in [
        ["-R", "binlog.000001"].as_slice(),
        &["-R", "binlog.000002"],
        &["-R", "-rpre-", "binlog.000001", "binlog.000002"],
        &["-R", "--to-last-log", "binlog.000002"],
        &["-R", "--verify-binlog-checksum", "binlog.000004"],
        &["-R", "--start-position=198", "binlog.000004"],
        &["--read-from-remote-source=BINLOG-DUMP-NON-GTIDS", "binlog.000003"],
        &["--read-from-remote-source=BINLOG-DUMP-GTIDS", "binlog.000003"],
        &["--read-from-remote-source=BINLOG-DUMP-GTIDS", "--to-last-log", &excluded, "binlog.000004"],
        &["-R", "--ssl-mode=DISABLED", "--get-server-public-key", "binlog.000003"],
        &["-R", "--connection-server-id=77", "binlog.000003"],
        &["-R", "--stop-position=500", "--stop-datetime=2001-01-01 0:0:0", "--database=x", "binlog.000004"],
        &["-R", "--offset=5", "--server-id=77", "--start-datetime=2101-01-01 0:0:0", "binlog.000004"],
        &["-R", ""],
        // Trouble.
        &["-R", "no-such.000001"],
        &["-R", "--start-position=1000000", "binlog.000004"],
        &["-R", "--start-position=199", "binlog.000004"],
        &["-R", "-uroot", "-pwrong", "binlog.000004"],
    ] {
        let (here, there) = (Folder::new(), Folder::new());
        let arguments: Vec<_> = ["--raw"].iter().chain(arguments).copied().collect();
        let (ours, theirs) = (run(ours(&here, server, &arguments)), run(theirs(&there, server, &arguments)));
        assert_eq!(ours.code, theirs.code, "{arguments:?}: {} {}", ours.stderr, theirs.stderr);
        // mysqlbinlog is silent about some of the options that it ignores.
        let is_silent = |line: &&str| {
            ["--start-datetime", "--offset", "--server-id"]
                .iter()
                .any(|option| *line == format!("WARNING: The {option} option is ignored in raw mode"))
        };
        let told: Vec<_> = ours.stderr.lines().filter(|line| !is_silent(line)).collect();
        assert_eq!(told, theirs.stderr.lines().collect::<Vec<_>>(), "{arguments:?}");
        let silent = ours.stderr.lines().filter(is_silent).count();
        assert_eq!(silent, if arguments.contains(&"--offset=5") { 3 } else { 0 }, "{}", ours.stderr);
        assert!(ours.stdout.is_empty(), "{arguments:?}");
        assert_eq!(here.names(), there.names(), "{arguments:?}");
        for name in here.names() {
            assert!(here.read(&name) == there.read(&name), "{arguments:?}: {name}");
        }
    }
}

fn raw_files_are_the_servers(server: &MysqlSandbox) -> Outcome {
    let folder = Folder::new();
    // Of a path the last part counts; mysqlbinlog, asked for one, gives nothing.
    let ran = run(ours(&folder, server, &["--raw", "-R", "/some/where/binlog.000002"]));
    assert_eq!((ran.code, folder.names()), (Some(0), vec!["binlog.000002".to_owned()]));
    let logs = server.binlogs()?;
    for algorithms in ["uncompressed", "zlib", "zstd,uncompressed"] {
        let folder = Folder::new();
        let compressed = format!("--compression-algorithms={algorithms}");
        let ran = run(ours(&folder, server, &["--raw", "-R", &compressed, "--to-last-log", "binlog.000001"]));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert_eq!(folder.names().len(), logs.len());
        for log in &logs {
            let name = log.file_name().unwrap().to_string_lossy().into_owned();
            assert!(folder.read(&name) == sent(log), "{name} {algorithms}");
        }
    }
    Ok(())
}

/// A refusal is one line, and the exit code is 1.
fn refusals_are_mysqlbinlogs(server: &MysqlSandbox) {
    for (arguments, line) in [
        (
            ["--raw", "-R", "-rno-such-folder/", "binlog.000004"].as_slice(),
            "ERROR: Could not create log file 'no-such-folder/binlog.000004': No such file or directory",
        ),
        (
            &["--raw", "-R", "--port=1", "binlog.000004"],
            "ERROR: Failed on connect: connect to 127.0.0.1:1: Connection refused",
        ),
        (
            &["--raw", "-R", "--ssl-ca=no-such.pem", "binlog.000004"],
            "ERROR: Failed on connect: read no-such.pem: I/O error: No such file or directory",
        ),
        (
            &["--raw", "-R", "--compression-algorithms=zlib,lz4", "binlog.000004"],
            "ERROR: compression-algorithms is 'zlib,lz4', expected some of zlib, zstd and uncompressed",
        ),
    ] {
        let folder = Folder::new();
        let ran = run(ours(&folder, server, arguments));
        assert_eq!((ran.code, ran.stdout.len()), (Some(1), 0), "{arguments:?}");
        assert!(ran.stderr.starts_with(line), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{arguments:?}: {}", ran.stderr);
        assert_eq!(folder.names(), [""; 0], "{arguments:?}");
    }
}

/// Events are printed when they come, by either format, until a signal or a reader that leaves.
fn printing_never_stops_until_told(server: &MysqlSandbox) -> Outcome {
    let log = server.binlogs()?.pop().ok_or("no log")?;
    let name = log.file_name().unwrap().to_string_lossy().into_owned();
    let text = ["-R", "--stop-never", "-v", "--base64-output=decode-rows", &name];
    let json = ["-R", "--stop-never", "--format=jsonl", &name];
    for (number, arguments) in [text.as_slice(), &json].into_iter().enumerate() {
        let folder = Folder::new();
        let mut child = ours(&folder, server, arguments).spawn()?;
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        for round in 0..2 {
            let id = 100 * (number + 1) + round;
            server.sql(&format!("INSERT INTO remote.t VALUES ({id}, 'row {id} has come')"))?;
            let mut line = String::new();
            while !line.contains(&format!("row {id} has come")) {
                line.clear();
                assert!(printed.read_line(&mut line)? > 0, "{arguments:?} ended by itself");
            }
        }
        let killed = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status()?;
        assert!(killed.success());
        assert_eq!(child.wait()?.signal(), Some(15), "{arguments:?}");

        let mut child = ours(&folder, server, arguments).spawn()?;
        drop(child.stdout.take());
        server.sql(&format!("INSERT INTO remote.t VALUES ({}, 'nobody reads')", 100 * (number + 1) + 50))?;
        assert_eq!(wait_for(&mut child, PATIENCE), Some(0), "{arguments:?}");
        let ran: Ran = child.wait_with_output()?.into();
        assert_eq!(ran.stderr, "", "{arguments:?}");
    }
    for arguments in [["-R", "-rno-such-folder/x", &name], ["-R", "-r/dev/full", &name]] {
        let ran = run(ours(&Folder::new(), server, &arguments));
        assert_eq!((ran.code, ran.stdout.len()), (Some(1), 0), "{arguments:?}");
        assert!(ran.stderr.starts_with("ERROR: ") && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    }
    Ok(())
}

fn raw_never_stops_until_told(server: &mut MysqlSandbox) -> Outcome {
    let log = server.binlogs()?.pop().ok_or("no log")?;
    let name = log.file_name().unwrap().to_string_lossy().into_owned();
    let arguments = ["--raw", "-R", "--stop-never", &name];

    let folder = Folder::new();
    let mut child = ours(&folder, server, &arguments).spawn()?;
    server.sql("INSERT INTO remote.t VALUES (1, 'while somebody reads')")?;
    wait_for_file(&folder, &name, &log, &mut child);
    // The file can be read while the run goes on.
    folder.run(["verify", &name]).is_done();
    let killed = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status()?;
    assert!(killed.success());
    assert_eq!(child.wait()?.signal(), Some(15));
    assert!(folder.read(&name) == sent(&log));

    let folder = Folder::new();
    let mut child = ours(&folder, server, &arguments).spawn()?;
    wait_for_file(&folder, &name, &log, &mut child);
    let whole = sent(&log);
    // Of two replicas with one server id the server keeps the last.
    let text = ["-R", "--stop-never", "--connection-server-id=78", "-v", &name];
    let mut printing = ours(&folder, server, &text).spawn()?;
    let mut printed = BufReader::new(printing.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("while somebody reads") {
        line.clear();
        assert!(printed.read_line(&mut line)? > 0, "it ended by itself");
    }
    server.kill();
    // The output ends as any dump's does.
    let mut rest = String::new();
    printed.read_to_string(&mut rest)?;
    assert!(rest.ends_with("/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=0*/;\n"), "{rest}");
    assert_eq!(wait_for(&mut printing, PATIENCE), Some(1));
    let ran: Ran = printing.wait_with_output()?.into();
    assert!(ran.stderr.starts_with("ERROR: Got error reading packet from server: "), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert_eq!(wait_for(&mut child, PATIENCE), Some(1));
    let ran: Ran = child.wait_with_output()?.into();
    let line = "ERROR: Got error reading packet from server: ";
    assert!(ran.stderr.starts_with(line) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("connection ended by the server while reading binlog."), "{}", ran.stderr);
    assert!(folder.read(&name) == whole);
    Ok(())
}

/// Waits until our copy has all of the server's file.
#[track_caller]
fn wait_for_file(folder: &Folder, name: &str, log: &Path, child: &mut Child) {
    let start = Instant::now();
    while fs::read(folder.path(name)).ok() != Some(sent(log)) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        assert!(start.elapsed() < PATIENCE, "{name} does not become the server's");
        thread::sleep(Duration::from_millis(10));
    }
}
