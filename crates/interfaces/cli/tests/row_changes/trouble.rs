//! Faults while `undo` runs: a clear line, nothing half applied, and the journal goes on.

use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::small_disk::SmallDisk;
use crate::common::{Folder, Ran};
use crate::round_trip::place_of;

/// So many that a run isn't done before a busy machine comes to end it.
const ROWS: u64 = 20_000;

/// Starts a command, and waits until its journal has this many more lines.
fn begin(folder: &Folder, args: &[&str], journal: &Path, more: usize) -> Child {
    let lines = || std::fs::read_to_string(journal).unwrap_or_default().lines().count();
    let start = lines();
    let mut child = folder.binlogz(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while lines() < start + more && child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(120), "it doesn't come on");
        sleep(Duration::from_millis(2));
    }
    child
}

/// The end of a run that failed.
fn failed(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn a_lost_connection_and_a_killed_server_leave_whole_batches_and_a_journal_that_goes_on() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let mut server = mysql.sandbox().start()?;
    let folder = Folder::new();
    // Without a key a row that is inserted twice would stay: nothing but the journal tells.
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.events (what VARCHAR(20), count INT)")?;
    let numbers: Vec<String> = (0..ROWS).map(|number| format!("('row', {number})")).collect();
    server.sql(&format!("INSERT INTO shop.events VALUES {}", numbers.join(", ")))?;
    let before = server.checksum_tables("shop")?;
    server.flush_binary_logs()?;
    server.sql("DELETE FROM shop.events")?;
    let log = server.flush_binary_logs()?;
    let log = folder.put("log", std::fs::read(log).unwrap());
    let (place, journal) = (place_of(&server), folder.path("journal"));
    let options = ["--execute", "--batch", "10", "--journal", "journal"];
    let front = ["undo", "--no-defaults", "--user=root", "--apply", &place, log.to_str().unwrap()];
    let args: Vec<&str> = front.into_iter().chain(options).collect();
    let rows = |server: &MysqlSandbox| -> Result<u64> {
        Ok(server.sql("SELECT COUNT(*) FROM shop.events")?.trim().parse().unwrap())
    };

    let run = begin(&folder, &args, &journal, 20);
    let others =
        "SELECT id FROM performance_schema.processlist WHERE command <> 'Daemon' AND id <> CONNECTION_ID()";
    let sessions = server.sql(others).unwrap();
    for id in sessions.split_whitespace() {
        // It may be gone by itself.
        let _ = server.sql(&format!("KILL {id}"));
    }
    let said = failed(run);
    let states = [
        "its batch is rolled back, those before it stay",
        "the same command with the same --journal finds out",
    ];
    assert!(states.iter().any(|state| said.contains(state)), "{said}");
    let first = rows(&server)?;
    assert!(first > 0 && first < ROWS && first.is_multiple_of(10), "{first}: {said}");

    let run = begin(&folder, &args, &journal, 20);
    server.kill();
    let said = failed(run);
    assert!(states.iter().any(|state| said.contains(state)), "{said}");
    let unreachable = folder.run(&args);
    assert_eq!((unreachable.code, unreachable.text()), (Some(2), ""));
    assert!(unreachable.stderr.contains(": connect to "), "{}", unreachable.stderr);
    server.start()?;
    let second = rows(&server)?;
    assert!(second > first && second < ROWS && second.is_multiple_of(10), "{second}: {said}");

    let last = folder.run(&args);
    assert_eq!((last.code, &*last.stderr), (Some(0), ""), "{}", last.text());
    // Its transactions are told as a set.
    let told = last.text().lines().last().unwrap_or_default();
    assert!(told.starts_with("GTIDs: ") && told.len() < 120, "{told}");
    assert_eq!(server.checksum_tables("shop")?, before);
    Ok(())
}

#[test]
fn a_full_disk_and_a_table_renamed_since_change_nothing() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mount(&folder.path("disk"), 1 << 20) else { return Ok(()) };
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    // Larger than what is kept in memory.
    server.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE big (id INT PRIMARY KEY, text MEDIUMTEXT);
         INSERT INTO big VALUES (1, REPEAT('x', 13000000)), (2, REPEAT('y', 13000000))",
    )?;
    server.flush_binary_logs()?;
    server.sql("DELETE FROM shop.big")?;
    let log = server.flush_binary_logs()?;
    let log = log.to_str().unwrap();
    let place = place_of(&server);
    let run = |more: &[&str]| -> Ran {
        let mut command = folder.binlogz(["undo", log].iter().chain(more));
        command.env("TMPDIR", folder.path("disk")).output().unwrap().into()
    };
    let apply = ["--no-defaults", "--user=root", "--execute", "--apply", &place];
    for more in [&[][..], &["--output", "undo.sql"], &["--format", "binlog", "--output", "undo.log"], &apply]
    {
        let ran = run(more);
        assert_eq!((ran.code, ran.text()), (Some(2), ""), "{more:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("temporary file") && ran.stderr.contains("No space left"),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(folder.names(), ["disk"]);
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.big")?, "0\n");

    disk.resize(64 << 20);
    run(&["--output", "undo.sql"]).is_done();

    // Renamed: what the log has is of another table than the one of this name.
    server.sql(
        "USE shop; INSERT INTO big VALUES (3, 'z'); RENAME TABLE big TO old; CREATE TABLE big LIKE old",
    )?;
    let log = server.flush_binary_logs()?;
    let log = log.to_str().unwrap();
    let renamed = folder.run(["undo", log]);
    assert_eq!(renamed.code, Some(1));
    let line = "its table was changed after it (";
    assert!(
        renamed.text().contains(line) && renamed.text().contains("RENAME TABLE big TO old"),
        "{}",
        renamed.text()
    );
    assert!(!renamed.text().lines().any(|line| line.starts_with("DELETE")), "{}", renamed.text());
    let applied = folder.run(["undo", log].into_iter().chain(apply));
    assert_eq!(applied.code, Some(1), "{}", applied.stderr);
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.old")?, "1\n");
    Ok(())
}
