//! Bad SQL, damaged logs and too little memory are one clear line and exit code 2, and nothing stays behind.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use binlogz_archive::storage::{self, KeySource, Manner};
use binlogz_testkit::faults::FaultShim;
use binlogz_testkit::texts::RowTexts;

use crate::common::{KEY_FILE, Ran, SHAPES, archive_in, ask, sql};
use crate::small_disk::SmallDisk;

#[test]
fn bad_sql_is_one_line() {
    let log = std::slice::from_ref(&SHAPES.plain[7]);
    for (statement, expected) in [
        ("SELEC 1", "Expected"),
        ("", "there is no statement"),
        ("SELECT nothing FROM changes", "nothing"),
        ("SELECT * FROM shop.nowhere", "shop.nowhere"),
        ("INSERT INTO changes SELECT * FROM changes", "only read"),
        ("SELECT s.nothing FROM (SELECT named_struct('a', 1) AS s)", "nothing"),
        ("SELECT nothing(1)", "nothing"),
        ("SELECT CAST('x' AS INT)", "x"),
        ("SELECT json_value('{}', 'a')", "json_value: path is a"),
        ("SELECT gtid_in('x', 'y')", "gtid_in: "),
    ] {
        let line = ask(statement, log).failure();
        assert!(line.to_lowercase().contains(&expected.to_lowercase()), "{statement}: {line}");
    }
    // Deeper than any stack would bear without a limit.
    let deep = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    ask(&deep, log).failure();
    // A literal of ten million bytes, in a file: no argument may be so long.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.sql");
    fs::write(&path, format!("SELECT length('{}') AS n", "x".repeat(10_000_000))).unwrap();
    let mut huge = sql(["--format", "csv", "--file"]);
    assert_eq!(Ran::from(huge.arg(&path).args(log).output().unwrap()).ok(), "n\n10000000\n");
    let long = format!("SELECT {}1 AS n", "1 + ".repeat(300));
    assert_eq!(ask(&long, log).ok(), "n\n301\n");
}

#[test]
fn bad_usage_is_one_line() {
    let run = |args: &[&str]| Ran::from(sql(args).output().unwrap()).failure();
    assert_eq!(run(&[]), "there is no statement, expected one, or --file FILE");
    assert_eq!(run(&["SELECT 1"]), "there is no INPUT, expected binary logs or an archive");
    assert!(run(&["SELECT 1", "nowhere"]).starts_with("nowhere: "));
    assert!(run(&["--file", "nowhere", "log"]).starts_with("nowhere: "));
    assert!(run(&["SELECT 1", "."]).starts_with(".: is a directory, expected a binary log"));
}

#[test]
fn a_cell_of_any_width_is_a_cell_of_a_table() {
    let log = &SHAPES.plain[7];
    for statement in ["SELECT repeat('x', 70000) AS x, 1 AS n", "SELECT 12 AS n, repeat('x', 1000000) AS x"] {
        let out = Ran::from(sql([statement]).arg(log).output().unwrap()).ok();
        assert!(out.len() > 3 * 65_536 && out.ends_with("(1 row)\n"), "{}", out.len());
        Ran::from(sql([statement]).arg(log).env("COLUMNS", "70000").output().unwrap()).ok();
    }
}

/// Memory that a function takes isn't counted where it takes it.
#[test]
fn a_query_that_holds_more_than_it_may_is_ended_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = sql([
        "--memory",
        "64",
        "SELECT sum(length(repeat('x', 200000 + value))) FROM generate_series(1, 1000000)",
    ]);
    let ran = Ran::from(command.env("TMPDIR", folder.path()).args(&SHAPES.plain).output().unwrap());
    let line = ran.failure();
    assert!(line.starts_with("the query needs more than the 64 MiB of --memory: "), "{line}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_named_pipe_in_the_place_of_a_log_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("binlog.000001");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let line = ask("SELECT count(*) FROM changes", &[path]).failure();
    assert!(
        line.ends_with("is a named pipe, expected a binary log; cat gives its bytes to standard input: -"),
        "{line}"
    );
}

#[test]
fn folders_of_runs_that_were_killed_go_with_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let old = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("rest"), "x").unwrap();
        let status = Command::new("touch").args(["-d", "2020-01-01"]).arg(&path).status().unwrap();
        assert!(status.success());
        path
    };
    let (left, running, other) = (old("binlogz-sql-left"), old("binlogz-sql-running"), old("other"));
    let lock = fs::File::open(&running).unwrap();
    lock.try_lock().unwrap();
    let mut command = sql(["SELECT 1"]);
    Ran::from(command.arg(&SHAPES.plain[7]).env("TMPDIR", folder.path()).output().unwrap()).ok();
    assert_eq!([left.exists(), running.exists(), other.exists()], [false, true, true]);
}

#[test]
fn damage_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(&SHAPES.plain[1]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let path = folder.path().join("binlog.000002");
    fs::write(&path, &bytes).unwrap();
    for table in ["changes", "transactions", "events", "employees.salaries"] {
        let line = ask(&format!("SELECT count(*) FROM {table}"), std::slice::from_ref(&path)).failure();
        let place = format!("{} at ", path.display());
        assert!(line.starts_with(&place) && line.contains("checksum"), "{table}: {line}");
    }
    bytes[middle] ^= 1;
    fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let line = ask("SELECT count(*) FROM changes", std::slice::from_ref(&path)).failure();
    assert!(line.contains(" at ") && line.contains("the log ends inside an event"), "{line}");
    fs::write(&path, b"not a log at all").unwrap();
    let line = ask("SELECT count(*) FROM changes", std::slice::from_ref(&path)).failure();
    assert!(line.starts_with(&path.display().to_string()), "{line}");
}

#[test]
fn a_damaged_block_of_an_archive_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    fs::create_dir_all(archive.join("objects")).unwrap();
    fs::copy(SHAPES.archive.join("manifest.json"), archive.join("manifest.json")).unwrap();
    for entry in fs::read_dir(SHAPES.archive.join("objects")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 3;
        bytes[middle] ^= 1;
        fs::write(archive.join("objects").join(path.file_name().unwrap()), bytes).unwrap();
    }
    let line = ask("SELECT max(position) FROM changes", std::slice::from_ref(&archive)).failure();
    assert!(line.contains("archive/") && line.contains("damaged"), "{line}");
}

#[test]
fn a_query_beyond_its_memory_spills_or_says_so_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = |statement: &str| -> Ran {
        let mut command = sql(["--format", "csv", "--memory", "1", "--jobs", "1", statement]);
        command.env("TMPDIR", folder.path()).args(&SHAPES.plain).output().unwrap().into()
    };
    // Rows are sorted in temporary files.
    let sorted = run(
        "SELECT count(*) AS n FROM (SELECT before, after FROM changes ORDER BY after, before LIMIT 100000)",
    );
    assert!(sorted.out.starts_with("n\n") || sorted.error.contains("--memory"), "{sorted:?}");
    let line = run("SELECT array_agg(after) FROM changes").failure();
    assert!(line.starts_with("the query needs more than the 1 MiB of --memory: "), "{line}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A join of two tables that don't fit into memory, and a sort whose limit of rows doesn't fit either.
#[test]
fn what_a_join_or_a_limit_holds_beyond_its_memory_is_sorted_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let run = |memory: &str, statement: &str| -> Ran {
        let many = |rows: usize| format!("changes, (SELECT unnest(range({rows})) AS n)");
        let statement = statement.replace("many16", &many(16)).replace("many10", &many(10));
        let mut command = sql(["--format", "csv", "--memory", memory, "--jobs", "1", &statement]);
        command.env("TMPDIR", folder.path()).args(&SHAPES.plain).output().unwrap().into()
    };
    let join = "WITH many AS (SELECT n, log, \"offset\", row, after FROM many16) \
         SELECT count(a.after), count(DISTINCT b.after) FROM many a \
         JOIN many b ON a.n = b.n AND a.\"offset\" = b.\"offset\" AND a.row = b.row AND a.log = b.log";
    assert_eq!(run("48", join).ok(), run("1024", join).ok());
    let limit =
        "SELECT count(*), max(n) FROM (SELECT n, row, after FROM many10 ORDER BY n, row LIMIT 200000)";
    assert_eq!(run("12", limit).ok(), "count(*),max(n)\n200000,8\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The input in a pipe, sorted rows beyond the memory: all that is written is searched for texts of rows.
#[test]
fn no_text_of_a_row_is_in_any_temporary_file() {
    let Some(shim) = FaultShim::require() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (archive, key) = (folder.path().join("archive"), folder.path().join("key"));
    fs::write(&key, "07".repeat(32)).unwrap();
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let storage =
        storage::with_key(&archive, Some(KeySource::File(key.clone())), &Manner::default()).unwrap();
    archive_in(&storage, &SHAPES.plain);
    let logs: Vec<_> = SHAPES.plain.iter().map(|path| fs::read(path).unwrap()).collect();
    let texts = RowTexts::of(logs.iter().map(Vec::as_slice));
    let written = |input: &Path, piped: &[u8]| {
        let kept = tempfile::tempdir().unwrap();
        let statement = "SELECT max(n) AS n, max(length(row)) AS size FROM (SELECT row_number() OVER (ORDER BY row) AS n, row FROM \
                         (SELECT coalesce(after, before) || repeat(' ', 300) AS row FROM changes))";
        let mut command = sql(["--format", "csv", "--memory", "16", "--jobs", "1", statement]);
        let command = command.arg(input).envs(shim.keeping(kept.path())).env(KEY_FILE, &key);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(piped).unwrap();
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert!(ran.out.starts_with("n,size\n"), "{ran:?}");
        let sizes = fs::read_dir(kept.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
        let size: u64 = sizes.sum();
        assert_eq!(texts.found_in(kept.path()).unwrap(), Vec::<PathBuf>::new());
        size
    };
    let spilled = written(&archive, b"");
    assert!(spilled > 5 << 20, "nothing was sorted on the disk: {spilled} bytes");
    let piped = &logs[2];
    assert!(texts.are_in(piped) && written(Path::new("-"), piped) >= piped.len() as u64);
}

#[test]
fn a_signal_ends_it_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = sql(["SELECT count(*) FROM changes", "-"]);
    // A pipe whose bytes never come.
    let mut child = command.env("TMPDIR", folder.path()).stdin(Stdio::piped()).spawn().unwrap();
    while fs::read_dir(folder.path()).unwrap().count() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let _open = child.stdin.take();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_query_beyond_its_disk_says_so_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(&folder.path().join("disk"), 1 << 20) else { return };
    let mut command = sql([
        "--memory",
        "40",
        "--jobs",
        "1",
        "SELECT a.value, repeat('x', 200) AS x FROM generate_series(1, 600000) a ORDER BY x, 1 DESC",
    ]);
    let ran =
        Ran::from(command.env("TMPDIR", folder.path().join("disk")).args(&SHAPES.plain).output().unwrap());
    let line = ran.failure();
    assert!(
        line.starts_with("temporary files, in the folder that TMPDIR names: ") && line.contains("space"),
        "{line}"
    );
    assert_eq!(fs::read_dir(folder.path().join("disk")).unwrap().count(), 0);
}

#[test]
fn a_query_without_end_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let endless = "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b WHERE a.value + b.value = 1";
    let mut child = sql([endless]).args(&SHAPES.plain).env("TMPDIR", folder.path()).spawn().unwrap();
    while fs::read_dir(folder.path()).unwrap().count() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    // In the midst of it.
    thread::sleep(Duration::from_millis(500));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
