//! The options of `dump` beside mysqlbinlog's own: both programs get the same command lines, and must print the same and
//! mean the same.

use std::process::{Command, Output};

use crate::common::Folder;
use binlogz_testkit::{InstalledTool, Tool, require_tool};

/// Command lines that end before any log is read: error messages, exit codes and, after `--help`, the value
/// of each option have to be the same.
const BAD_USAGE: &[&[&str]] = &[
    &["--bogus"],
    &["--bogus", "--version"],
    &["--start-pos=4", "x"],
    &["--bogus=1", "x"],
    &["-z", "x"],
    &["-Hz", "x"],
    &["-c5", "x"],
    &["-o"],
    &["-oabc", "x"],
    &["--offset"],
    &["--offset=", "x"],
    &["--port=", "x"],
    &["--port=abc"],
    &["--server-id=abc"],
    &["--connection-server-id=abc"],
    &["--connection-server-id=99999999999999999999"],
    &["--start-position=99999999999999999999999", "x"],
    &["--offset=20E", "x"],
    &["--stop-position=0x10", "x"],
    &["--zstd-compression-level=abc", "x"],
    &["--verbose=abc", "x"],
    &["--skip-verbose", "x"],
    &["--version=5"],
    &["--help=5"],
    &["--base64-output=xx", "x"],
    &["--base64-output=", "x"],
    &["--base64-output", "x"],
    &["--protocol=foo"],
    &["--ssl-mode=verify"],
    &["--ssl-mode=4"],
    &["--skip-ssl-mode"],
    &["--ssl"],
    &["--read-from-remote-source=foo", "x"],
    &["--read-from-remote-source=BINLOG", "x"],
    &["-R", "--read-from-remote-source=BINLOG-DUMP-GTIDS", "x"],
    &["--raw", "x"],
    &["--raw", "-R", "--include-gtids=", "x"],
    &["--raw", "-R", "--exclude-gtids=", "x"],
    &["-R", "--start-position=5G", "x"],
    &["--raw", "-R", "--start-position=5G", "x"],
    &["--stop-position=99", "-"],
    &["--rewrite-db=abc", "x"],
    &["--rewrite-db=a->", "x"],
    &["--rewrite-db=->b", "x"],
    &["--start-datetime=foo", "x"],
    &["--start-datetime=", "x"],
    &["--stop-datetime=2020-13-01 00:00:00", "x"],
    &["--debug"],
    &["--skip-debug"],
    &["--debug=d"],
    &["-#d"],
    &["--debug-check"],
    &["x", "--no-defaults"],
    &["--defaults-file"],
    &["--loose-bogus", "--bogus"],
    &["--loose-port=abc"],
    &["--loose-skip-bogus=4", "--skip-bogus"],
    &["--short-form", "--compress", "--bogus"],
    &["--stop-never-slave-server-id=3", "--read-from-remote-master=BINLOG-DUMP-GTIDS", "--bogus"],
];

/// Command lines to which `--help` is appended, which shows how they were understood.
const TAKEN: &[&[&str]] = &[
    &[],
    &["-j", "5", "-o", "7", "-d", "db1", "-h", "h1", "-P", "5", "-u", "u1", "-S", "s", "-l", "l", "-r", "r"],
    &["--start-position=1e3"],
    &["--start-position=1kb", "--offset=1P"],
    &["--start-position= 12", "--stop-position=+50"],
    &["--start-position=3", "--stop-position=-7"],
    &["--offset=-1", "--server-id=-1"],
    &["--server-id=4294967296", "--server-id-bits=40"],
    &["--server-id-bits=1"],
    &["--port=99999999999"],
    &["--port=-1"],
    &["--binlog-row-event-max-size=1000"],
    &["--binlog-row-event-max-size=1"],
    &["--binlog-row-event-max-size=99999999999"],
    &["--zstd-compression-level=30"],
    &["--open_files_limit=0"],
    &["--connection-server-id=-5"],
    &["-R", "--connection-server-id=99999999999"],
    &["--stop-never-slave-server-id=-7"],
    &["--stop-never"],
    &["--to-last-log", "--raw"],
    &["--hexdump=on", "--force-read=TRUE", "--idempotent=1"],
    &["--hexdump=foo", "--print-table-metadata=2"],
    &["--skip-hexdump=0", "--skip-force-if-open"],
    &["--enable-hexdump=0", "--disable-force-if-open"],
    &["--skip-loose-hexdump", "--loose-skip-force-if-open"],
    &["--skip-offset", "--skip-host"],
    &["--maximum-offset=5", "--maximum-hexdump"],
    &["-FfHitDc"],
    &["-Hv", "-vvv"],
    &["--base64_output=decode-r"],
    &["--password=x", "-py"],
    &["--skip-password"],
    &["--start-datetime=2020-01-01T00:00:00.0", "--stop-datetime=20300101000000"],
    &["--get-server-public-key=1", "--ssl-session-data-continue-on-failed-reuse"],
    &["--compression-algorithms=zlib,foo", "--compress", "--zstd-compression-level=7"],
    &["--require-row-format", "--skip-gtids", "--verify-binlog-checksum"],
    &["--set-charset=latin1", "--include-gtids=nonsense", "--rewrite-db=a->b", "--host="],
    &["--loose-bogus", "--loose-bogus=4", "--loose-hexdump"],
];

/// A link of this name to our binary.
fn ours(folder: &Folder) -> Command {
    let link = folder.path("mysqlbinlog");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_binlogz"), &link).unwrap();
    }
    Command::new(link)
}

fn run(mut command: Command, folder: &Folder, arguments: &[&str]) -> Output {
    command.args(arguments).current_dir(folder.path("")).stdin(std::process::Stdio::null());
    command.env("HOME", folder.path("")).env_remove("MYSQL_HOME").env_remove("MYSQL_TEST_LOGIN_FILE");
    command.output().unwrap()
}

/// Exit code and complaints, without the directories of the programs.
fn complaints(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|word| match word.trim_end_matches(':').ends_with("/mysqlbinlog") {
            true => "PROGRAM",
            false => word,
        });
        words.collect::<Vec<_>>().join(" ")
    });
    format!("exit code {:?}\n{}", output.status.code(), lines.collect::<Vec<_>>().join("\n"))
}

/// The table after the help.
fn variables(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let rows = text.lines().skip_while(|line| !line.starts_with("-----")).skip(1);
    // Options that mysqlbinlog does not have come after those it has.
    rows.take_while(|line| !line.starts_with("keyring ")).map(|line| line.trim_end().to_owned()).collect()
}

/// The first row in which the tables differ.
fn difference(ours: &Output, theirs: &Output) -> Option<(String, String)> {
    let (ours, theirs) = (variables(ours), variables(theirs));
    if ours.len() != theirs.len() {
        return Some((format!("{} rows", ours.len()), format!("{} rows", theirs.len())));
    }
    ours.into_iter().zip(theirs).find(|(ours, theirs)| ours != theirs)
}

fn theirs(mysql: &InstalledTool) -> Command {
    mysql.command("mysqlbinlog")
}

#[test]
fn bad_usage_is_told_as_mysqlbinlog_tells_it() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    for arguments in BAD_USAGE {
        let (ours, theirs) = (run(ours(&folder), &folder, arguments), run(theirs(mysql), &folder, arguments));
        assert!(!theirs.status.success(), "{arguments:?} is no bad usage");
        assert_eq!(complaints(&ours), complaints(&theirs), "{arguments:?}");
        assert!(ours.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn options_are_taken_as_mysqlbinlog_takes_them() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    for arguments in TAKEN {
        let arguments: Vec<_> = arguments.iter().copied().chain(["--help", "--bogus"]).collect();
        let ours = run(ours(&folder), &folder, &arguments);
        let theirs = run(theirs(mysql), &folder, &arguments);
        assert_eq!(complaints(&ours), complaints(&theirs), "{arguments:?}");
        assert_eq!(difference(&ours, &theirs), None, "{arguments:?}");
        assert!(variables(&ours).len() > 55, "{arguments:?}");
    }
}

#[test]
fn option_files_are_read_as_mysqlbinlog_reads_them() {
    let mysql = require_tool!(Tool::Mysql);
    for (text, arguments) in [
        ("[mysqlbinlog]\nhexdump\noffset=7\n[client]\nhost=h\n[other]\nbogus\n", ["--help"].as_slice()),
        ("[client]\nhexdump\n", &["--skip-hexdump", "--help"]),
        ("[mysqlbinlog]\nhexdump\nport\n", &["--help"]),
        ("[client]\nfoo=bar\n", &["--help"]),
        ("[client]\nloose-foo=bar\npassword=abc\n", &["--help"]),
        ("[client]\nloose-foo=bar\npassword=abc\n", &["--print-defaults", "-v", "x"]),
        ("[client]\nverbose\n", &["-V5", "x"]),
    ] {
        let folder = Folder::new();
        folder.put("my.cnf", text);
        let arguments: Vec<_> = ["--defaults-file=my.cnf"].iter().chain(arguments).copied().collect();
        let ours = run(ours(&folder), &folder, &arguments);
        let theirs = run(theirs(mysql), &folder, &arguments);
        assert_eq!(complaints(&ours), complaints(&theirs), "{text} {arguments:?}");
        assert_eq!(difference(&ours, &theirs), None, "{text} {arguments:?}");
        if arguments.contains(&"--print-defaults") {
            let second =
                |output: &Output| String::from_utf8_lossy(&output.stdout).lines().nth(1).map(str::to_owned);
            assert_eq!(second(&ours), second(&theirs));
            assert!(second(&ours).is_some_and(|line| line.contains("--password=***** ")));
        }
    }
    let folder = Folder::new();
    let missing = run(ours(&folder), &folder, &["--defaults-file=missing.cnf", "x"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(complaints(&missing).contains("missing.cnf"), "{}", complaints(&missing));
}

#[test]
fn without_logs_the_help_is_shown() {
    let folder = Folder::new();
    for command in [ours(&folder), folder.binlogz(["dump"])] {
        let shown = run(command, &folder, &[]);
        assert_eq!(shown.status.code(), Some(1));
        let text = String::from_utf8_lossy(&shown.stdout);
        assert!(text.contains("Usage: ") && text.contains("--stop-before-gtid=GTID"), "{text}");
        assert!(
            text.lines().all(|line| line.len() <= 90 || line.contains(" Ver ") || line.contains("Usage"))
        );
    }
    let version = run(folder.binlogz(["dump", "-V"]), &folder, &[]);
    let text = String::from_utf8_lossy(&version.stdout);
    assert!(text.contains(" dump  Ver 9.7.4 for ") && version.status.success(), "{text}");
    // Ours, by the other commands' help too.
    let help = folder.run(["help", "dump"]);
    assert!(help.text().contains("--stop-before-gtid <GTID>"), "{}", help.text());
}
