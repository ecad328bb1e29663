//! Commands that run until they are stopped, `archive serve` and `relay run`: on terminals of 80 and 120 columns and in a pipe, until
//! Ctrl-C ends them.

use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_testkit::{Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Running, client, sql, url};
use crate::common::terminal::wider;

/// Two busy cores.
const PATIENCE: Duration = Duration::from_secs(120);
/// A shell's exit code for a command that SIGINT ended.
const INTERRUPTED: i32 = 128 + 2;

type Variables<'v> = &'v [(&'v str, OsString)];

/// A running command, and its output so far.
struct Served {
    child: Running,
    said: Arc<Mutex<Vec<u8>>>,
    reader: thread::JoinHandle<()>,
}

impl Served {
    /// On a terminal of this many columns; typed keys go to its standard input.
    fn on_terminal(folder: &Folder, columns: usize, command: &str, variables: Variables<'_>) -> Served {
        let line = format!("stty cols {columns} rows 50; exec {} {command}", env!("CARGO_BIN_EXE_binlogz"));
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(folder.path(""));
        script.env_remove("COLUMNS").env("SHELL", "/bin/sh").env("TERM", "xterm");
        script.envs(variables.iter().cloned()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = script.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        Served::reading(child, output)
    }

    /// Runs a command with its standard error in a pipe.
    fn in_pipe(folder: &Folder, command: &str, variables: Variables<'_>) -> Served {
        let mut binlogz = folder.binlogz(command.split(' '));
        binlogz.envs(variables.iter().cloned()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = binlogz.spawn().unwrap();
        let output = child.stderr.take().unwrap();
        Served::reading(child, output)
    }

    fn reading(child: Child, output: impl Read + Send + 'static) -> Served {
        let said = Arc::<Mutex<Vec<u8>>>::default();
        let seen = Arc::clone(&said);
        // At the end of a terminal the system says EIO.
        let read = move || {
            BufReader::new(output)
                .bytes()
                .map_while(Result::ok)
                .for_each(|byte| seen.lock().unwrap().push(byte));
        };
        Served { child: Running(child), said, reader: thread::spawn(read) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    /// Waits until it has said this, wherever its lines are broken; the word that follows.
    #[track_caller]
    fn wait_for(&mut self, words: &str) -> String {
        let begin = Instant::now();
        loop {
            let text = unbroken(&self.text());
            // The word may still be coming.
            let after = text.split_once(words).and_then(|(_, after)| after.split_once('\n'));
            if let Some((after, _)) = after {
                return after.split(' ').next().unwrap_or_default().to_owned();
            }
            let ended = self.child.0.try_wait().unwrap();
            assert!(ended.is_none() && begin.elapsed() < PATIENCE, "no {words:?}, {ended:?}: {text}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for its end; all that it said.
    #[track_caller]
    fn ended(mut self) -> (ExitStatus, String) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < PATIENCE, "it doesn't end: {}", self.text());
            thread::sleep(Duration::from_millis(20));
        };
        self.reader.join().unwrap();
        (status, String::from_utf8(std::mem::take(&mut *self.said.lock().unwrap())).unwrap())
    }

    /// Types Ctrl-C on its terminal; what was shown before, no line of which is too wide.
    #[track_caller]
    fn ends_by_key(mut self, columns: usize) -> String {
        self.child.0.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
        let (status, text) = self.ended();
        assert_eq!(status.code(), Some(INTERRUPTED), "{text}");
        let (before, after) = text.rsplit_once("^C").unwrap_or((&text, ""));
        assert_eq!(after.trim(), "", "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        // A fingerprint is one word.
        let wider: Vec<_> =
            wider(before, columns).into_iter().filter(|line| line.trim().contains(' ')).collect();
        assert!(wider.is_empty(), "{columns} columns: {wider:#?}\n{text}");
        before.to_owned()
    }

    /// Sends SIGINT as Ctrl-C does; returns the output until then, line by line.
    #[track_caller]
    fn ends_by_signal(self) -> Vec<String> {
        let kill = Command::new("kill").args(["-s", "INT", &self.child.0.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let (status, text) = self.ended();
        assert_eq!(status.signal(), Some(2), "{status}: {text}");
        assert!(!text.contains(['\u{1b}', '\r']), "{text:?}");
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        assert!(lines.iter().all(|line| line.starts_with("binlogz: ")), "a line is broken: {lines:#?}");
        lines
    }
}

/// A line for each that was said: what goes on is indented.
fn unbroken(text: &str) -> String {
    text.replace("\r\n", "\n").replace("\n  ", " ")
}

/// Without what differs from run to run: numbers, places, fingerprints.
fn alike(lines: &[String]) -> Vec<String> {
    let word = |word: &str| match word.contains(['/', ':']) || word.chars().any(|c| c.is_ascii_digit()) {
        true => "…".to_owned(),
        false => word.to_owned(),
    };
    lines.iter().map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ")).collect()
}

/// All files below a folder.
fn files_below(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .flat_map(|path| match path.is_dir() {
            true => files_below(&path),
            false => vec![path.display().to_string()],
        })
        .collect();
    files.sort();
    files
}

fn has_script() -> bool {
    let is_here = Path::new("/usr/bin/script").exists();
    if !is_here {
        eprintln!("SKIPPED: script is not here, which makes a terminal");
    }
    is_here
}

#[test]
fn an_archive_is_served_until_ctrl_c_and_leaves_nothing() {
    if !has_script() {
        return;
    }
    let folder = Folder::new();
    ["binlog.000001", "binlog.000002"].iter().for_each(|name| drop(folder.sample("plain", name)));
    folder.run(["archive", "create", "--to", "kept", "binlog.000001", "binlog.000002"]).is_done();
    std::fs::create_dir(folder.path("tmp")).unwrap();
    let before = files_below(&folder.path(""));
    let variables = [("MYSQL_PWD", "repl".into()), ("TMPDIR", folder.path("tmp").into())];
    for logs in ["kept", "binlog.000001 binlog.000002"] {
        let command = format!("archive serve --user repl --listen 127.0.0.1:0 {logs}");
        let talked_to = |mut served: Served| {
            let port: u16 = served.wait_for("listening on 127.0.0.1:").parse().unwrap();
            // A client that comes and goes.
            drop(std::net::TcpStream::connect(("127.0.0.1", port)).unwrap());
            served
        };
        let piped = talked_to(Served::in_pipe(&folder, &command, &variables)).ends_by_signal();
        assert!(piped[0].contains("binlog.000001 to binlog.000002, up to "), "{piped:#?}");
        for columns in [80, 120] {
            let served = talked_to(Served::on_terminal(&folder, columns, &command, &variables));
            let shown = served.ends_by_key(columns);
            // All that it says elsewhere.
            let lines: Vec<_> = unbroken(&shown).lines().map(str::to_owned).collect();
            assert!(alike(&lines).starts_with(&alike(&piped[..3])), "{shown}\n{piped:#?}");
        }
        assert_eq!(files_below(&folder.path("")), before, "{logs}");
    }
}

#[test]
fn a_relay_runs_until_ctrl_c_and_goes_on_afterwards() {
    let mysql = require_tool!(Tool::Mysql);
    if !has_script() {
        return;
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.path("tmp")).unwrap();
    let mut source = mysql.sandbox().start().unwrap();
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)").unwrap();
    let variables = [("MYSQL_PWD", "repl".into()), ("TMPDIR", folder.path("tmp").into())];
    let command =
        format!("relay run --source {} --dir kept --listen 127.0.0.1:0 --http 127.0.0.1:0", url(&source));
    let mut rows = 0;
    let mut talked_to = |mut served: Served| {
        served.wait_for("status on http://");
        let port: u16 = served.wait_for("listening on 127.0.0.1:").parse().unwrap();
        let log_in = |password| client(mysql, "mysql", port, "repl", password);
        rows += 1;
        source.sql(&format!("INSERT INTO d.t VALUES ({rows})")).unwrap();
        let gtids = source.gtid_executed().unwrap();
        let begin = Instant::now();
        let has_all = || {
            let answer = sql(log_in("repl"), "SELECT @@GLOBAL.gtid_executed");
            answer.is_ok_and(|answer| answer.trim() == gtids.trim())
        };
        while !has_all() {
            assert!(begin.elapsed() < PATIENCE, "{gtids}: {}", served.text());
            thread::sleep(Duration::from_millis(20));
        }
        assert!(sql(log_in("wrong"), "SELECT 1").unwrap_err().contains("Access denied"));
        served.wait_for("access denied for user 'repl'");
        served
    };
    let piped = talked_to(Served::in_pipe(&folder, &command, &variables)).ends_by_signal();
    assert!(piped.iter().any(|line| line.contains("listening on ")), "{piped:#?}");
    for columns in [80, 120] {
        talked_to(Served::on_terminal(&folder, columns, &command, &variables)).ends_by_key(columns);
    }
    assert_eq!(files_below(&folder.path("tmp")), [""; 0]);
    let kept = files_below(&folder.path("kept"));
    assert!(!kept.iter().any(|path| path.contains("/kept/.")), "{kept:?}");

    // Its longest lines: the source isn't there.
    source.stop().unwrap();
    let piped = {
        let mut served = Served::in_pipe(&folder, &command, &variables);
        served.wait_for("Connection refused");
        served.ends_by_signal()
    };
    assert!(piped.iter().any(|line| line.len() > 80), "{piped:#?}");
    for columns in [80, 120] {
        let mut served = Served::on_terminal(&folder, columns, &command, &variables);
        served.wait_for("Connection refused");
        served.ends_by_key(columns);
    }
    assert_eq!(files_below(&folder.path("kept")), kept);
}
