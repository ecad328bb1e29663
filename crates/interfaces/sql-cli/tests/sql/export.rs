//! Exports: equal rows, each once over many runs, also if runs are killed.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use binlogz_testkit::builder::{LogBuilder, Release};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding};
use tempfile::TempDir;

use crate::common::{Ran, SHAPES, archive_of, schema, sql};
use crate::types::{Version, insert, insert_into, versions};

pub(crate) fn export(to: &Path, options: &[&str], inputs: &[PathBuf]) -> Ran {
    let mut command = sql(["export", "--schema"]);
    command.arg(schema()).arg("--to").arg(to).args(options).args(inputs).output().unwrap().into()
}

/// A run's own account of itself, without its bytes.
#[track_caller]
pub(crate) fn told(ran: Ran) -> String {
    let out = ran.ok();
    out.trim_end().rsplit_once(", ").map_or(out.trim_end(), |(line, _)| line).to_owned()
}

/// Files that a reader sees, without those that a reader skips.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "_binlogz" && !name.starts_with('.') {
            found.extend(files(&path));
        } else if name.ends_with(".parquet") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The rows of files, one text a row, in order.
pub(crate) fn rows(files: &[PathBuf]) -> Vec<String> {
    let mut rows = Vec::new();
    for path in files {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        for batch in reader.with_batch_size(1).build().unwrap() {
            let batch = batch.unwrap();
            // Files of an export tell types as Parquet does, where UTC is written in another way.
            rows.push(format!("{batch:?}").replace("+00:00", "UTC"));
        }
    }
    rows
}

pub(crate) fn count(files: &[PathBuf]) -> i64 {
    let rows = |path: &PathBuf| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        reader.metadata().file_metadata().num_rows()
    };
    files.iter().map(rows).sum()
}

#[test]
fn an_export_has_the_rows_that_sql_has_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("lake");
    assert_eq!(told(export(&to, &["--dry-run"], &SHAPES.plain)), "new: 487 transactions");
    assert!(!to.exists());
    let first = told(export(&to, &[], &SHAPES.plain[..5]));
    assert_eq!(first, "run 1: 369 transactions, 19,805 row changes of 8 tables, 9 files");
    // The same transactions and more, in other shapes, twice.
    let again = [SHAPES.compressed[3].clone(), SHAPES.archive.clone(), SHAPES.plain[7].clone()];
    // Out of order, their statements don't tell what tables were: that is said.
    let unordered = |ran: Ran| {
        assert_eq!(ran.code, Some(1), "{}", ran.error);
        assert!(
            ran.error.contains("the logs are not in their order, or some are there twice"),
            "{}",
            ran.error
        );
        told(Ran { code: Some(0), error: String::new(), ..ran })
    };
    let second = unordered(export(&to, &["--jobs", "1"], &again));
    assert_eq!(second, "run 2: 118 transactions, 5,168 row changes of 19 tables, 20 files");
    assert_eq!(unordered(export(&to, &[], &again)), "nothing is new");

    assert_eq!(count(&files(&to.join("_transactions"))), 487);
    assert_eq!(count(&files(&to)), 487 + 24973);
    for (table, data_set, compared) in [
        ("employees.titles", "employees/titles", 1331),
        ("mix.numbers", "mix/numbers", 3),
        ("mix.times", "mix/times", 3),
        ("mix.strings", "mix/strings", 7),
        ("mix.others", "mix/others", 4),
        ("mix.\"čaj 茶\"", "mix/čaj%20茶", 1),
    ] {
        let expected = folder.path().join("expected.parquet");
        let mut command = sql(["--format", "parquet", "--schema"]);
        command.arg(schema()).arg(format!("SELECT * EXCLUDE (ending) FROM {table}")).args(&SHAPES.plain);
        command.stdout(File::create(&expected).unwrap());
        assert!(command.status().unwrap().success());
        let exported = rows(&files(&to.join(data_set)));
        assert_eq!(exported.len(), compared, "{table}");
        assert!(exported == rows(&[expected]), "{table}");
    }
    let views = fs::read_to_string(to.join("views.sql")).unwrap();
    assert_eq!(views.matches("CREATE OR REPLACE VIEW").count(), 28, "{views}");
    assert!(views.contains("VIEW \"mix\".\"čaj 茶\" AS"), "{views}");
}

/// By a policy, no file has a value that may not leave, whether it comes from logs or from an archive's columns; the policy stays.
#[test]
fn an_export_has_what_may_leave() {
    const TITLE: &str = "Senior Engineer";
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("exits.toml");
    let rules = "key_file = \"key\"\n[[table]]\nname = \"employees.titles\"\ncolumns.title = \"hash\"";
    fs::write(&policy, rules).unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "a key of the tests, which is no secret").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let open = folder.path().join("open");
    export(&open, &[], &SHAPES.plain).ok();
    let open = rows(&files(&open.join("employees/titles")));
    assert!(open.iter().any(|row| row.contains(TITLE)));
    let archive = std::slice::from_ref(&SHAPES.archive);
    let exits = ["--exits", policy.to_str().unwrap()];
    for (name, inputs) in [("logs", &SHAPES.plain[..]), ("archive", archive)] {
        let to = folder.path().join(name);
        let ran = export(&to, &exits, inputs);
        assert!(matches!(ran.code, Some(0 | 1)) && ran.error.contains(" rows masked"), "{}", ran.error);
        assert!(!ran.error.contains(" 0 rows masked"), "{}", ran.error);
        for path in files(&to) {
            let leaks = rows(std::slice::from_ref(&path)).iter().any(|row| row.contains(TITLE));
            let bytes = fs::read(&path).unwrap();
            let is_there = bytes.windows(TITLE.len()).any(|window| window == TITLE.as_bytes());
            assert!(!leaks && !is_there, "{}", path.display());
        }
        assert_eq!(rows(&files(&to.join("employees/titles"))).len(), open.len());
        let other = export(&to, &[], inputs).failure();
        assert!(other.ends_with("was exported with --exits of a policy and a key, which stay; expected the same, or another folder"), "{other}");
    }
    let other = export(&folder.path().join("open"), &exits, &SHAPES.plain).failure();
    assert!(other.ends_with("was exported without --exits; expected the same, or another folder"), "{other}");
}

/// The rows are the same at any level. No file has its schema in Arrow's form.
#[test]
fn levels_change_the_size_alone() {
    // A small one: rows are compared as text, which is slow.
    let log = std::slice::from_ref(&SHAPES.plain[0]);
    let folder = tempfile::tempdir().unwrap();
    let [small, fast] = ["19", "1"].map(|level| {
        let to = folder.path().join(level);
        export(&to, &["--level", level], log).ok();
        to
    });
    let bytes = |to: &Path| files(to).iter().map(|file| fs::metadata(file).unwrap().len()).sum::<u64>();
    assert!(bytes(&small) < bytes(&fast), "{} {}", bytes(&small), bytes(&fast));
    assert!(rows(&files(&small)) == rows(&files(&fast)));
    for refused in ["0", "23"] {
        let ran = export(folder.path(), &["--level", refused], log);
        let expected = format!("invalid value '{refused}' for '--level <LEVEL>'");
        assert!(ran.code == Some(2) && ran.error.contains(&expected), "{ran:?}");
    }
    for file in files(&small) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&file).unwrap()).unwrap();
        assert!(reader.metadata().file_metadata().key_value_metadata().is_none(), "{file:?}");
    }
}

/// With so many tables batches of events are larger.
#[test]
fn of_many_tables_each_has_its_rows() {
    const TABLES: usize = 101;
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("binlog.000001"), folder.path().join("lake"));
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let [first, ..] = versions();
    for number in (0..TABLES).chain(0..TABLES) {
        log.transaction_of(&insert_into("shop", &format!("t{number}"), &first));
    }
    fs::write(&path, log.bytes()).unwrap();
    let told = told(export(&to, &[], std::slice::from_ref(&path)));
    assert_eq!(told, "run 1: 202 transactions, 202 row changes of 101 tables, 102 files");
    for number in 0..TABLES {
        assert_eq!(count(&files(&to.join(format!("shop/t{number}")))), 2, "t{number}");
    }
}

/// One thread encodes the columns of a file, or several do.
#[test]
fn any_number_of_jobs_writes_the_same_rows() {
    let log = std::slice::from_ref(&SHAPES.plain[1]);
    let folder = tempfile::tempdir().unwrap();
    let [one, four] = ["1", "4"].map(|jobs| {
        let to = folder.path().join(jobs);
        export(&to, &["--jobs", jobs], log).ok();
        files(&to)
    });
    let largest = one.iter().map(|file| fs::metadata(file).unwrap().len()).max().unwrap();
    assert!(largest > 20_000, "{largest} bytes: one thread encodes all of it");
    assert!(rows(&one) == rows(&four));
}

/// In a file of few rows, what an encoder takes before the first value would be most of its time: differences, and contexts of zstd.
#[test]
fn small_columns_alone_are_not_compressed() {
    let folder = tempfile::tempdir().unwrap();
    export(folder.path(), &[], &SHAPES.plain).ok();
    let (mut small, mut other) = (0, 0);
    for path in files(folder.path()) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        let metadata = reader.metadata();
        for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
            let is_plain = column.compression() == Compression::UNCOMPRESSED;
            let told = (metadata.file_metadata().num_rows(), column.uncompressed_size(), is_plain);
            match told {
                (64.., _, true) | (..64, 5000.., true) => panic!("{path:?}: {column:?}"),
                (..64, _, true) => small += 1,
                _ => other += 1,
            }
            let has_differences =
                column.encodings().any(|encoding| encoding == Encoding::DELTA_BINARY_PACKED);
            assert!(told.0 >= 64 || !has_differences, "{path:?}: {column:?}");
            // Iceberg takes the partition of a file from these.
            let is_moment = ["committed_at", "logged_at"].contains(&column.column_path().string().as_str());
            assert_eq!(column.statistics().is_some(), told.0 >= 64 || is_moment, "{path:?}: {column:?}");
            assert!(!column.column_path().string().ends_with(".item"), "{path:?}: {column:?}");
        }
    }
    assert!(small > 100 && other > 100, "{small} and {other}");
}

#[test]
fn a_killed_run_leaves_whole_files_and_the_next_one_goes_on() {
    let log = std::slice::from_ref(&SHAPES.plain[5]);
    let expected = {
        let folder = tempfile::tempdir().unwrap();
        export(folder.path(), &[], log).ok();
        (files(folder.path()).len(), count(&files(folder.path())))
    };
    assert!(expected.0 > 12, "{expected:?}");
    // (where it dies, whether the run counts)
    let places = [
        ("staged", false),
        ("prepared", false),
        ("moved", false),
        ("committed", true),
        ("recorded", true),
        ("published", true),
    ];
    for (place, counts) in places {
        let folder = TempDir::new().unwrap();
        let to = folder.path();
        let mut command = sql(["export", "--to"]);
        command.arg(to).args(log).env("BINLOGZ_EXPORT_DIES_AT", place);
        assert_eq!(command.output().unwrap().status.code(), None, "{place}");
        // Every visible file is whole and can be opened.
        let seen = files(to);
        count(&seen);
        assert_eq!(seen.len(), usize::from(place == "published"), "{place}");
        let next = told(export(to, &[], log));
        assert_eq!(next == "nothing is new", counts, "{place}: {next}");
        assert_eq!((files(to).len(), count(&files(to))), expected, "{place}");
        let control = fs::read_dir(to.join("_binlogz")).unwrap();
        let mut control: Vec<_> = control.map(|entry| entry.unwrap().file_name()).collect();
        control.sort();
        assert_eq!(control, ["00000001.json", "last", "lock"], "{place}");
    }
}

#[test]
fn a_changed_table_gets_new_files_with_all_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("binlog.000001"), folder.path().join("lake"));
    for (run, version) in (1..).zip(&versions()) {
        // A log of this version alone: the data set has the earlier rows already.
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        log.behind_gno(run - 1).transaction_of(&insert(version));
        fs::write(&path, log.bytes()).unwrap();
        let told = told(export(&to, &["--partition", "none"], std::slice::from_ref(&path)));
        assert_eq!(told, format!("run {run}: 1 transaction, 1 row change of 1 table, 2 files"));
    }
    let files = files(&to.join("shop"));
    let names: Vec<_> = files.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names, ["00000001-0.parquet", "00000002-0.parquet", "00000003-0.parquet"]);
    let types = |path: &PathBuf| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        reader.schema().field_with_name("after").unwrap().data_type().to_string()
    };
    let types: Vec<_> = files.iter().map(types).collect();
    assert!(types[0].contains("\"n\": Int16") && types[0].contains("\"day\": Date32"), "{types:?}");
    assert!(types[1].contains("\"n\": Int64") && types[1].contains("\"note\": Utf8"), "{types:?}");
    // What it no longer has, the newest file has too.
    assert!(types[2].contains("\"n\": Int64") && types[2].contains("\"day\": Utf8"), "{types:?}");
}

#[test]
fn transactions_without_gtid_or_end_are_exported_once_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("binlog.000001"), folder.path().join("lake"));
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let [first, ..] = versions();
    let mut ends = Vec::new();
    for _ in 0..3 {
        for (event_type, body) in insert(&first) {
            log.event(event_type, &body);
            ends.push(log.offset() as usize);
        }
    }
    let run = |events: usize| {
        let end = events.checked_sub(1).map_or(log.bytes().len(), |last| ends[last]);
        fs::write(&path, &log.bytes()[..end]).unwrap();
        export(&to, &[], std::slice::from_ref(&path))
    };
    // Two transactions, and the rows of a third one.
    let ran = run(11);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.error, "binlogz-sql: warning: 1 transaction left out: the end is not in the logs\n");
    assert!(ran.out.starts_with("run 1: 2 transactions, 2 row changes of 1 table"), "{}", ran.out);
    assert_eq!(told(run(8)), "nothing is new");
    assert_eq!(told(run(0)), "run 2: 1 transaction, 1 row change of 1 table, 2 files");
    assert_eq!(told(run(0)), "nothing is new");
    assert_eq!(count(&files(&to.join("shop"))), 3);
}

/// The transaction has more rows than an export holds in memory until it knows that they are to be exported.
#[test]
fn a_large_transaction_is_exported_if_its_end_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let [_, second, _] = versions();
    let note = [&[0x80, 0x3e][..], &[b'x'; 16_000]].concat();
    let front = second.row.len() - b"\x03tea".len();
    let version =
        Version { row: [&second.row[..front], &note].concat(), metadata: vec![0, 0x80, 0x3e], ..second };
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.transaction_of(&insert(&version));
    let [begin, map, rows, end] = <[_; 4]>::try_from(insert(&version)).unwrap();
    log.event(begin.0, &begin.1);
    for _ in 0..2_200 {
        log.event(map.0, &map.1);
        log.event(rows.0, &rows.1);
    }
    let without_end = log.bytes().len();
    log.event(end.0, &end.1);
    let path = folder.path().join("binlog.000001");
    let archive = folder.path().join("archive");
    for (size, expected) in [
        (without_end, "run 1: 1 transaction, 1 row change of 1 table"),
        (log.bytes().len(), "run 1: 2 transactions, 2,201 row changes of 1 table"),
    ] {
        fs::write(&path, &log.bytes()[..size]).unwrap();
        archive_of(std::slice::from_ref(&path), &archive);
        for (input, name) in [(&path, "plain"), (&archive, "archived")] {
            let to = folder.path().join(format!("{name}-{size}"));
            let ran = export(&to, &[], std::slice::from_ref(input));
            assert!(ran.code == Some(0) && ran.out.starts_with(expected), "{ran:?}");
            let rows = if size == without_end { 1 } else { 2201 };
            assert_eq!(count(&files(&to.join("shop"))), rows);
        }
        fs::remove_dir_all(&archive).unwrap();
    }
}

#[test]
fn a_transaction_without_gtid_among_exported_ones_of_an_archive_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("binlog.000001"), folder.path().join("lake"));
    let [first, ..] = versions();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.transaction_of(&insert(&first));
    fs::write(&path, log.bytes()).unwrap();
    let all = "run 1: 1 transaction, 1 row change of 1 table, 2 files";
    assert_eq!(told(export(&to, &[], std::slice::from_ref(&path))), all);
    // As while gtid_mode is ON_PERMISSIVE.
    for (event_type, body) in insert(&first) {
        log.event(event_type, &body);
    }
    fs::write(&path, log.bytes()).unwrap();
    let archive = folder.path().join("archive");
    archive_of(std::slice::from_ref(&path), &archive);
    let missed = "run 2: 1 transaction, 1 row change of 1 table, 2 files";
    assert_eq!(told(export(&to, &[], std::slice::from_ref(&archive))), missed);
    assert_eq!(told(export(&to, &[], &[archive])), "nothing is new");
}

#[test]
fn what_a_data_set_is_stays() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("lake");
    let log = std::slice::from_ref(&SHAPES.plain[0]);
    let table = ["--partition", "month", "--table", "employees.titles"];
    let ran = told(export(&to, &table, log));
    assert!(ran.ends_with(" row changes of 1 table, 2 files"), "{ran}");
    assert!(
        files(&to).iter().all(|path| path.to_str().unwrap().contains("/month=2026-11/")),
        "{:?}",
        files(&to)
    );
    let refused = |options: &[&str]| export(&to, options, log).failure();
    let stays = format!("{}: was exported with", to.display());
    assert_eq!(
        refused(&["--partition", "day"]),
        format!("{stays} --partition month, which stays; expected the same, or another folder")
    );
    assert_eq!(
        refused(&["--table", "employees.salaries"]),
        format!("{stays} --table employees.titles, which stays; expected the same, or another folder")
    );
    assert_eq!(told(export(&to, &[], log)), "nothing is new");
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("mine"), "").unwrap();
    let expected = "is not empty, and not a folder of exports; expected one, or an empty folder";
    assert_eq!(export(&other, &[], log).failure(), format!("{}: {expected}", other.display()));
    // A damaged log: nothing is exported, nothing is left.
    let damaged = folder.path().join("binlog.000009");
    let mut bytes = fs::read(&SHAPES.plain[2]).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    fs::write(&damaged, &bytes).unwrap();
    let before = (files(&to), fs::read_dir(to.join("_binlogz")).unwrap().count());
    export(&to, &[], &[damaged]).failure();
    assert_eq!((files(&to), fs::read_dir(to.join("_binlogz")).unwrap().count()), before);
}

/// Freed memory has to go back to the system: with glibc's own settings a process keeps hundreds of megabytes of it.
#[test]
#[cfg(target_env = "gnu")]
fn an_export_runs_with_settings_that_keep_it_small() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = sql(["export", "--quiet", "--to"]);
    let command = command.arg(folder.path().join("lake")).arg("-").env_remove("MALLOC_MMAP_THRESHOLD_");
    // It waits for its input.
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let environment = format!("/proc/{}/environ", child.id());
    let is_set = || {
        let there = fs::read(&environment).unwrap_or_default();
        there.split(|byte| *byte == 0).any(|set| set == b"MALLOC_MMAP_THRESHOLD_=1048576")
    };
    let set = (0..3000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        is_set()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(set, "{environment}");
}
