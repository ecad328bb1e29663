//! Exports to object storage, of a server that is followed, and of encrypted logs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_testkit::faults::FaultShim;
use binlogz_testkit::s3::S3Server;
use binlogz_testkit::texts::RowTexts;
use binlogz_testkit::{MysqlSandbox, Tool, corpus, require_tool};

use crate::common::{Ran, SHAPES, schema, sql};
use crate::export::{count, export, files, rows};

/// How long a server's transactions may take to be exported.
const PATIENCE: Duration = Duration::from_secs(300);

/// A place in a bucket, and the bucket as a folder.
pub(crate) struct Lake {
    pub(crate) server: S3Server,
}

impl Lake {
    pub(crate) fn export(&self, inputs: &[PathBuf]) -> Command {
        let mut command = sql(["export", "--to", "s3://bucket/lake", "--schema"]);
        command.arg(schema()).args(inputs).envs(self.server.settings());
        command
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.server.bucket().join("lake")
    }

    /// The files that views.sql names: a reader of it sees these.
    pub(crate) fn seen(&self) -> Vec<PathBuf> {
        let Ok(views) = fs::read_to_string(self.folder().join("views.sql")) else { return Vec::new() };
        let named = views.split("'s3://bucket/lake/").skip(1).filter_map(|rest| rest.split('\'').next());
        let mut files: Vec<_> = named.map(|path| self.folder().join(path)).collect();
        files.sort();
        files
    }
}

#[test]
fn in_object_storage_a_run_counts_by_its_manifest() {
    let Some(server) = S3Server::start() else { return };
    let lake = Lake { server };
    let run = |inputs: &[PathBuf]| Ran::from(lake.export(inputs).output().unwrap()).ok();
    let first = run(&SHAPES.plain[..5]);
    assert!(first.starts_with("run 1: 369 transactions, 19,805 row changes of 8 tables, 9 files"), "{first}");
    let before = lake.seen();
    assert_eq!((before.len(), count(&before)), (9, 369 + 19805));
    let places =
        [("staged", false), ("listed", false), ("stored", false), ("moved", false), ("committed", true)];
    for (place, counts) in places {
        let died = lake.export(&SHAPES.plain).env("BINLOGZ_EXPORT_DIES_AT", place).output().unwrap();
        assert_eq!(died.status.code(), None, "{place}");
        assert_eq!(lake.seen(), before, "{place}: a reader sees what it saw");
        let manifest = lake.folder().join("_binlogz/00000002.json");
        assert_eq!(manifest.exists(), counts, "{place}");
    }
    // The run that counts needs no other to be whole, only its views.
    assert_eq!(run(&SHAPES.plain), "nothing is new\n");
    let seen = lake.seen();
    assert_eq!(count(&seen), 487 + 24973);
    // Of the killed runs nothing is left.
    assert_eq!(files(&lake.folder()), seen);
    let control = fs::read_dir(lake.folder().join("_binlogz")).unwrap();
    let control: BTreeSet<_> =
        control.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(control, BTreeSet::from(["00000001.json", "00000002.json", "last"].map(str::to_owned)));
    // The same rows as in a folder.
    let folder = tempfile::tempdir().unwrap();
    export(folder.path(), &[], &SHAPES.plain[..5]).ok();
    export(folder.path(), &[], &SHAPES.plain).ok();
    for data_set in ["employees/titles", "mix/strings", "mix/čaj%20茶", "_transactions"] {
        let rows_of = |place: &Path| rows(&files(&place.join(data_set)));
        assert!(rows_of(folder.path()) == rows_of(&lake.folder()), "{data_set}");
    }
}

#[test]
fn of_two_runs_into_one_place_one_counts() {
    let Some(server) = S3Server::start() else { return };
    let lake = Lake { server };
    Ran::from(lake.export(&SHAPES.plain[..1]).output().unwrap()).ok();
    // Another run took the number meanwhile: the manifest of the second run is there, but was not when this run began.
    let control = lake.folder().join("_binlogz");
    let (one, two) = (control.join("00000001.json"), control.join("00000002.json"));
    let run = |input: usize| {
        let mut command = lake.export(&SHAPES.plain[input..=input]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).env("BINLOGZ_EXPORT_WAITS_FOR", &two);
        command.spawn().unwrap()
    };
    let late = run(1);
    let begin = Instant::now();
    while !fs::read_dir(&control)
        .unwrap()
        .any(|entry| entry.unwrap().file_name().to_str().is_some_and(|name| name.starts_with("unfinished-")))
    {
        assert!(begin.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(20));
    }
    Ran::from(lake.export(&SHAPES.plain[2..3]).output().unwrap()).ok();
    let seen = lake.seen();
    let line = Ran::from(late.wait_with_output().unwrap()).failure();
    assert_eq!(
        line,
        "s3://bucket/lake/_binlogz/00000002.json: another export stored its run first; nothing was exported, run it again"
    );
    assert_eq!(lake.seen(), seen);
    assert_eq!(files(&lake.folder()), seen, "its files are gone");
    assert!(one.exists() && fs::read_dir(&control).unwrap().count() == 3, "two manifests, and the record");
    let again = Ran::from(lake.export(&SHAPES.plain[1..2]).output().unwrap()).ok();
    assert!(again.starts_with("run 3: "), "{again}");
}

#[test]
fn user_tables_are_found_in_object_storage() {
    let Some(server) = S3Server::start() else { return };
    let copied = server.bucket().join("archive");
    fs::create_dir_all(copied.join("objects")).unwrap();
    for file in ["manifest.json".into(), PathBuf::from("objects")] {
        let from = SHAPES.archive.join(&file);
        match from.is_dir() {
            true => fs::read_dir(&from).unwrap().for_each(|entry| {
                let path = entry.unwrap().path();
                fs::copy(&path, copied.join(&file).join(path.file_name().unwrap())).unwrap();
            }),
            false => drop(fs::copy(&from, copied.join(&file)).unwrap()),
        }
    }
    let statement = "SELECT operation, count(*), sum(after.salary) FROM employees.salaries GROUP BY 1 ORDER BY 1; \
                     SELECT table_name FROM information_schema.tables WHERE table_schema = 'mix' ORDER BY 1";
    let ask = |input: &str| {
        let mut command = sql(["--format", "csv", "--schema"]);
        command.arg(schema()).args([statement, input]).envs(server.settings());
        Ran::from(command.output().unwrap()).ok()
    };
    let expected = ask(SHAPES.archive.to_str().unwrap());
    assert!(expected.contains("\nnumbers\n"), "{expected}");
    assert_eq!(ask("s3://bucket/archive"), expected);
}

/// A program that is ended with its test.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_followed_server_is_exported_until_a_signal() {
    let mysql = require_tool!(Tool::Mysql);
    let sandbox = mysql.sandbox().option("binlog-row-metadata", "FULL").compression(3);
    let mut source = sandbox.start().unwrap();
    source
        .sql("CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(20))")
        .unwrap();
    source.sql("INSERT INTO shop.item VALUES (1, 'tea'), (2, 'cup')").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (to, errors) = (folder.path().join("lake"), folder.path().join("errors"));
    let server = format!("root@{}", source.socket().display());
    // All that is written to files, if there is a compiler for that.
    let written = folder.path().join("written");
    fs::create_dir(&written).unwrap();
    let shim = FaultShim::require();
    let follow = || {
        let mut command = sql(["export", "--interval", "1", "--follow", &server, "--to"]);
        command.arg(&to).env("HOME", folder.path());
        command.envs(shim.iter().flat_map(|shim| shim.keeping(&written)));
        command
            .stdout(Stdio::null())
            .stderr(fs::File::options().create(true).append(true).open(&errors).unwrap());
        Following(command.spawn().unwrap())
    };
    let exported = || if to.join("shop/item").is_dir() { count(&files(&to.join("shop/item"))) } else { 0 };
    let wait_for = |rows: i64| {
        let begin = Instant::now();
        while exported() != rows {
            assert!(
                begin.elapsed() < PATIENCE,
                "{} of {rows}: {:?}",
                exported(),
                fs::read_to_string(&errors)
            );
            thread::sleep(Duration::from_millis(50));
        }
    };
    let following = follow();
    wait_for(2);
    source
        .sql("UPDATE shop.item SET name = 'pot'; FLUSH BINARY LOGS; DELETE FROM shop.item WHERE id = 2")
        .unwrap();
    wait_for(5);
    // The server goes away and comes back.
    source.stop().unwrap();
    let begin = Instant::now();
    while !fs::read_to_string(&errors).unwrap().contains("asking again until it is there") {
        assert!(begin.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(50));
    }
    source.start().unwrap();
    source.sql("INSERT INTO shop.item VALUES (3, 'milk')").unwrap();
    wait_for(6);
    while !fs::read_to_string(&errors).unwrap().contains("the server is there again after ") {
        assert!(begin.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(50));
    }
    let mut following = following;
    let stopped = Command::new("kill").arg("-TERM").arg(following.0.id().to_string()).status().unwrap();
    assert!(stopped.success());
    assert_eq!(following.0.wait().unwrap().code(), None, "ended by the signal");
    assert!(fs::read_dir(to.join("_binlogz")).unwrap().all(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name == "lock" || name == "last" || name.ends_with(".json")
    }));
    nothing_of_its_log_is_in(&written, &source);
    // It goes on where it ended, and knows what it has.
    source.sql("DROP TABLE shop.item; CREATE TABLE shop.item (id INT PRIMARY KEY, price INT)").unwrap();
    source.sql("INSERT INTO shop.item VALUES (4, 5)").unwrap();
    let _following = follow();
    wait_for(7);
    // The same as of the server's own files: places, too.
    let own = folder.path().join("own");
    export(&own, &[], &source.binlogs().unwrap()).ok();
    for (data_set, columns) in [("shop/item", 13), ("_transactions", 99)] {
        let of = |place: &Path| rows_without(&files(&place.join(data_set)), columns);
        assert_eq!(of(&to), of(&own), "{data_set}");
    }
}

/// Logs are received into encrypted files without a name: no piece of the server's log, payloads among it, is in any file but those of
/// the export.
fn nothing_of_its_log_is_in(written: &Path, source: &MysqlSandbox) {
    let logs: Vec<_> = source.binlogs().unwrap().iter().map(|path| fs::read(path).unwrap()).collect();
    let logs = || logs.iter().map(Vec::as_slice);
    let texts = RowTexts::of(logs()).and_bytes(logs());
    assert!(logs().all(|log| texts.are_in(log)));
    let mut sizes = Vec::new();
    for entry in fs::read_dir(written).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.contains("%lake%") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        assert!(!texts.are_in(&bytes), "{name} has something of the log");
        sizes.push(bytes.len());
    }
    assert!(
        FaultShim::build().is_err() || sizes.iter().sum::<usize>() > 1000,
        "nothing was received: {sizes:?}"
    );
}

/// The rows of files, of the first columns: those of a table that changed differ by file.
fn rows_without(files: &[PathBuf], columns: usize) -> BTreeSet<String> {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let mut rows = BTreeSet::new();
    for path in files {
        let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
        for batch in reader.with_batch_size(1).build().unwrap() {
            let batch = batch.unwrap();
            rows.insert(format!("{:?}", &batch.columns()[..columns.min(batch.num_columns())]));
        }
    }
    rows
}

#[test]
fn what_is_encrypted_is_exported_only_if_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let log = [corpus::path("encrypted-binlog.000001")];
    let keyring = corpus::path("keyring.json");
    let keyring = ["--keyring", keyring.to_str().unwrap()];
    let refused = export(folder.path(), &keyring, &log).failure();
    let what = "is encrypted, and Parquet files are not; --plaintext exports it all the same";
    assert_eq!(refused, format!("{}: {what}", log[0].display()));
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
    export(folder.path(), &[&keyring[..], &["--plaintext"]].concat(), &log).ok();
    assert!(count(&files(folder.path())) > 0);
}
