//! Exports of tables with names that others chose, and into targets whose own files were changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use binlogz_testkit::builder::{LogBuilder, Release};
use binlogz_testkit::s3::S3Server;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::Ran;
use crate::export::{count, export, files, told};
use crate::export_to::Lake;
use crate::types::{insert, insert_into, versions};

/// Transactions of the log that targets are made of, and how many a run adds.
const RUNS: u64 = 3;

/// A log with one transaction for each of these tables.
fn log_of(path: &Path, tables: &[(&str, &str)]) {
    let [version, ..] = versions();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for (database, table) in tables {
        log.transaction_of(&insert_into(database, table, &version));
    }
    fs::write(path, log.bytes()).unwrap();
}

/// Logs of one transaction each, one after the other.
fn logs(folder: &Path) -> Vec<PathBuf> {
    let [version, ..] = versions();
    let log = |run: u64| {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        log.behind_gno(run).transaction_of(&insert(&version));
        let path = folder.join(format!("binlog.{run:06}"));
        fs::write(&path, log.bytes()).unwrap();
        path
    };
    (0..=RUNS).map(log).collect()
}

/// A target of some runs, and a log that is not exported yet.
struct Exports {
    folder: TempDir,
    logs: Vec<PathBuf>,
}

impl Exports {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let logs = logs(folder.path());
        let exports = Exports { folder, logs };
        for log in 0..RUNS as usize {
            told(exports.export(log));
        }
        exports
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("lake")
    }

    fn control(&self, name: &str) -> PathBuf {
        self.to().join("_binlogz").join(name)
    }

    fn export(&self, log: usize) -> Ran {
        export(&self.to(), &[], &self.logs[log..=log])
    }

    /// All files and folders of the target, with their bytes; links as such.
    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        contents(&self.to())
    }
}

fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap().file_type();
        let bytes = if kind.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if kind.is_dir() {
            found.extend(contents(&path));
        }
        found.insert(path, bytes);
    }
    found
}

/// The names of the views, in order.
fn views(text: &str) -> Vec<String> {
    let views = text.split("CREATE OR REPLACE VIEW ").skip(1);
    views.map(|view| view.split_once(" AS ").unwrap().0.to_owned()).collect()
}

#[test]
fn tables_of_any_name_are_exported_and_told_apart() {
    let wide = "：".repeat(29);
    let widest = "：".repeat(64);
    let other = format!("{}！", "：".repeat(63));
    let tables = [
        ("shop", wide.as_str()),
        ("shop", widest.as_str()),
        ("shop", other.as_str()),
        (widest.as_str(), widest.as_str()),
        ("S1", "T"),
        ("s1", "t"),
        ("s1", "T"),
        ("temp", "t"),
        ("system", "t"),
        ("Memory", "t"),
        ("main", "transactions"),
        ("information_schema", "t"),
        ("shop", "a@1234abcd"),
        ("..", ".."),
        ("shop", "line\nend"),
        ("shop", "quote\"d"),
        ("shop", "item"),
    ];
    let folder = tempfile::tempdir().unwrap();
    // Its name would stand for other files in a pattern.
    let to = folder.path().join("lake[1]*");
    let log = folder.path().join("binlog.000001");
    log_of(&log, &tables);
    let log = std::slice::from_ref(&log);
    assert_eq!(told(export(&to, &[], log)), "run 1: 17 transactions, 17 row changes of 17 tables, 18 files");
    assert_eq!(told(export(&to, &[], log)), "nothing is new");
    assert_eq!(count(&files(&to)), 2 * 17);

    // Each table has a folder of its own, and the manifest tells whose it is.
    let manifest: Value =
        serde_json::from_slice(&fs::read(to.join("_binlogz/00000001.json")).unwrap()).unwrap();
    let told: BTreeMap<String, (String, String)> =
        serde_json::from_value(manifest["data_sets"].clone()).unwrap();
    let named: BTreeSet<_> =
        told.values().map(|(database, table)| (database.as_str(), table.as_str())).collect();
    assert_eq!(named, BTreeSet::from(tables));
    for data_set in told.keys() {
        assert_eq!(count(&files(&to.join(data_set))), 1, "{data_set}");
    }
    let text = fs::read_to_string(to.join("views.sql")).unwrap();
    let views = views(&text);
    let lower: BTreeSet<_> = views.iter().map(|view| view.to_lowercase()).collect();
    assert!(views.len() == 18 && lower.len() == 18, "{text}");
    // A table that could be another's or DuckDB's own has no name that could be both.
    for refused in ["\"S1\".\"T\"", "\"s1\".\"t\"", "\"temp\".\"t\"", "\"main\".\"transactions\""] {
        assert!(!views.iter().any(|view| view.eq_ignore_ascii_case(refused)), "{refused}: {text}");
    }
    assert!(views.contains(&"\"shop\".\"item\"".to_owned()), "{text}");
    assert!(text.contains("-- Table T of database S1:\nCREATE OR REPLACE VIEW \"S1@"), "{text}");
    assert!(text.contains("/lake[[]1][*]/shop/item/**/*.parquet'"), "{text}");
}

/// Any byte of any manifest or of the record: the run is an error, and nothing is exported or moved.
#[test]
fn a_changed_byte_of_a_manifest_is_an_error() {
    let exports = Exports::new();
    let names = ["00000001.json", "00000002.json", "00000003.json", "last"];
    let mut refused = 0;
    for name in names {
        let place = exports.control(name);
        let bytes = fs::read(&place).unwrap();
        // All bytes of the shortest one would be as many runs; the digits are what matters most.
        let seed = 7;
        for at in (0..bytes.len()).filter(|at| at % 23 == seed || bytes[*at].is_ascii_digit() && at % 5 == 0)
        {
            let mut changed = bytes.clone();
            changed[at] = match bytes[at] {
                b'9' => b'1',
                digit @ b'0'..=b'8' => digit + 1,
                other => other ^ 1,
            };
            fs::write(&place, &changed).unwrap();
            let before = exports.contents();
            let error = exports.export(RUNS as usize).failure();
            assert!(error.contains("/_binlogz/"), "{name} at {at}: {error}");
            assert!(exports.contents() == before, "{name} at {at}: {error}");
            refused += 1;
        }
        fs::write(&place, &bytes).unwrap();
    }
    assert!(refused > 100, "{refused}");
    assert_eq!(told(exports.export(RUNS as usize)), "run 4: 1 transaction, 1 row change of 1 table, 2 files");
}

#[test]
fn manifests_that_are_gone_or_put_back_are_errors() {
    let exports = Exports::new();
    let read = |name: &str| fs::read(exports.control(name)).unwrap();
    let (second, third, last) = (read("00000002.json"), read("00000003.json"), read("last"));
    // What is done to the target, and what the error tells.
    type Damage<'d> = (&'d dyn Fn(), &'d str);
    let remove = |name: &str| fs::remove_file(exports.control(name)).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(exports.control(name), bytes).unwrap();
    let forged = || drop(forge(&exports.control("00000002.json"), |manifest| manifest["rows"] = json!(7)));
    let damages: [Damage<'_>; 7] = [
        (&forged, "as the SHA-256 of the manifest before it, but that is"),
        (
            &|| remove("00000003.json"),
            "/_binlogz/last: the last run is 3, but the last manifest is that of run 2",
        ),
        (&|| remove("00000002.json"), "00000003.json: is run 3, but the manifest of run 2 is gone"),
        (
            &|| write("00000003.json", &second),
            "00000003.json: is the manifest of run 2, expected that of run 3",
        ),
        (&|| write("00000009.json", &second), "00000009.json: is run 9, but the manifest of run 4 is gone"),
        (&|| remove("last"), "/_binlogz/last: is gone, so that nobody knows whether run 3 was the last one"),
        (
            &|| write("last", b"{\n  \"run\": 3\n}\n"),
            "/_binlogz/last: no checksum, expected \"sha256\" in the last line",
        ),
    ];
    for (damage, expected) in damages {
        damage();
        let before = exports.contents();
        let error = exports.export(RUNS as usize).failure();
        assert!(error.contains(expected), "{error}");
        let dry = export(&exports.to(), &["--dry-run"], &exports.logs[..1]).failure();
        assert_eq!(dry, error);
        assert!(exports.contents() == before, "{error}");
        let _ = fs::remove_file(exports.control("00000009.json"));
        write("00000002.json", &second);
        write("00000003.json", &third);
        write("last", &last);
    }
    assert_eq!(told(exports.export(2)), "nothing is new");
}

/// A manifest as anybody could write it: with a checksum that fits.
fn forge(place: &Path, change: impl Fn(&mut Value)) -> Vec<u8> {
    let text = fs::read_to_string(place).unwrap();
    let (lines, _) = text.rsplit_once("  \"sha256\": ").unwrap();
    let mut manifest =
        serde_json::from_str(&format!("{}}}", lines.trim_end().trim_end_matches(','))).unwrap();
    change(&mut manifest);
    let text = serde_json::to_string_pretty(&manifest).unwrap();
    let lines = format!("{},\n", text.strip_suffix("\n}").unwrap());
    let forged = format!("{lines}  \"sha256\": \"{}\"\n}}\n", sha256(lines.as_bytes()));
    fs::write(place, &forged).unwrap();
    forged.into_bytes()
}

fn sha256(bytes: &[u8]) -> String {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut program =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sha256sum");
    program.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = program.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

/// Paths in a manifest whose checksum fits: a run that was killed before its files had their names would move them there.
#[test]
fn no_path_of_a_manifest_leaves_the_target() {
    let hostile = [
        ("path", "../../outside.parquet"),
        ("path", "shop/../../00000001-0.parquet"),
        ("path", "/etc/00000001-0.parquet"),
        ("path", "_binlogz/run/00000001-0.parquet"),
        ("path", "shop/item//00000001-0.parquet"),
        ("path", "shop/item/00000002-0.parquet"),
        ("path", "shop/item/.hidden/00000001-0.parquet"),
        ("path", "shop/item/00000001-0.json"),
        ("path", "shop/item/a\\b/00000001-0.parquet"),
        ("path", "views.sql"),
        ("staged", "../../../binlog.000000"),
        ("staged", "../lock"),
        ("staged", "000000.parquet/.."),
        ("staged", ".parquet"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let logs = logs(folder.path());
    for (number, (field, path)) in hostile.into_iter().enumerate() {
        let to = folder.path().join(format!("lake-{number}"));
        let mut command = crate::common::sql(["export", "--to"]);
        command.arg(&to).arg(&logs[0]).env("BINLOGZ_EXPORT_DIES_AT", "committed");
        assert_eq!(command.output().unwrap().status.code(), None);
        let place = to.join("_binlogz/00000001.json");
        forge(&place, |manifest| manifest["files"][1][field] = json!(path));
        let before = contents(folder.path());
        let error = export(&to, &[], &logs[..1]).failure();
        assert!(error.contains(&place.display().to_string()), "{error}");
        assert!(error.contains("expected"), "{error}");
        assert!(contents(folder.path()) == before, "{path}: {error}");
    }
}

#[test]
fn symbolic_links_in_a_target_are_refused() {
    let exports = Exports::new();
    let outside = exports.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let links = [
        "shop",
        "shop/item",
        "_transactions",
        "_binlogz",
        "_binlogz/lock",
        "_binlogz/last",
        "views.sql",
        "other",
    ];
    for name in links {
        let place = exports.to().join(name);
        let moved = outside.join("moved");
        let is_there = place.symlink_metadata().is_ok();
        if is_there {
            fs::rename(&place, &moved).unwrap();
        }
        symlink(&moved, &place).unwrap();
        let before = contents(exports.folder.path());
        let error = exports.export(RUNS as usize).failure();
        let what = "is a symbolic link; expected none in a folder of exports";
        assert_eq!(error, format!("{}: {what}", place.display()));
        assert!(contents(exports.folder.path()) == before, "{name}");
        fs::remove_file(&place).unwrap();
        if is_there {
            fs::rename(&moved, &place).unwrap();
        }
    }
    // The target itself may be named by one.
    let link = exports.folder.path().join("link");
    symlink(exports.to(), &link).unwrap();
    assert_eq!(told(export(&link, &[], &exports.logs[..1])), "nothing is new");
}

#[test]
fn files_that_were_deleted_are_told_once_and_not_exported_again() {
    let exports = Exports::new();
    let seen = files(&exports.to());
    fs::remove_file(&seen[0]).unwrap();
    fs::remove_file(&seen[1]).unwrap();
    let ran = exports.export(0);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "nothing is new\n"));
    assert_eq!(
        ran.error,
        "binlogz-sql: warning: 2 files of earlier runs are gone; their rows are not exported again\n"
    );
    assert_eq!(told(exports.export(RUNS as usize)), "run 4: 1 transaction, 1 row change of 1 table, 2 files");
    assert_eq!(told(exports.export(1)), "nothing is new");
    // Of a table without files there is no view, which DuckDB would refuse.
    files(&exports.to().join("shop")).iter().for_each(|file| fs::remove_file(file).unwrap());
    exports.export(0);
    let text = fs::read_to_string(exports.to().join("views.sql")).unwrap();
    assert_eq!(views(&text), ["transactions"], "{text}");
}

#[test]
fn manifests_of_an_earlier_version_are_taken_once_and_can_not_change_after_that() {
    let exports = Exports::new();
    // As 0.2.0 wrote them.
    for run in 1..=RUNS {
        let place = exports.control(&format!("{run:08}.json"));
        let text = fs::read_to_string(&place).unwrap();
        let (lines, _) = text.rsplit_once(",\n  \"sha256\": ").unwrap();
        let mut manifest: Value = serde_json::from_str(&format!("{lines}}}")).unwrap();
        let fields = manifest.as_object_mut().unwrap();
        fields["format"] = json!(1);
        fields.remove("previous");
        fields.remove("data_sets");
        fs::write(&place, serde_json::to_string_pretty(&manifest).unwrap() + "\n").unwrap();
    }
    fs::remove_file(exports.control("last")).unwrap();
    // Only looking changes nothing.
    let before = exports.contents();
    assert_eq!(told(export(&exports.to(), &["--dry-run"], &exports.logs[..1])), "nothing is new");
    assert!(exports.contents() == before);
    let ran = exports.export(0);
    assert_eq!(ran.out, "nothing is new\n");
    let warning = "warning: the manifests of earlier runs have no checksums and are taken as they are; from now on a change is an error";
    assert_eq!(ran.error, format!("binlogz-sql: {warning}\n"));
    // From now on a digit of the last one is noticed, …
    let third = exports.control("00000003.json");
    let bytes = fs::read(&third).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    fs::write(&third, text.replace(":1-3\"", ":1-2\"")).unwrap();
    let error = exports.export(2).failure();
    assert!(error.contains("00000003.json: the SHA-256 of the file is"), "{error}");
    fs::write(&third, &bytes).unwrap();
    // … also after further runs, whose manifests have checksums.
    assert_eq!(told(exports.export(RUNS as usize)), "run 4: 1 transaction, 1 row change of 1 table, 2 files");
    fs::write(&third, text.replace(":1-3\"", ":1-2\"")).unwrap();
    let error = exports.export(2).failure();
    assert!(error.contains("00000004.json: names") && error.contains("changed or put back"), "{error}");
    fs::write(&third, &bytes).unwrap();
    // None of the earlier version comes after one of this.
    let fourth = exports.control("00000004.json");
    let (kept, record) = (fs::read(&fourth).unwrap(), fs::read(exports.control("last")).unwrap());
    fs::write(&fourth, text.replace("\"run\": 3", "\"run\": 4").replace("00000003-", "00000004-")).unwrap();
    fs::remove_file(exports.control("last")).unwrap();
    fs::write(exports.control("00000005.json"), &kept).unwrap();
    exports.export(2).failure();
    fs::remove_file(exports.control("00000005.json")).unwrap();
    fs::write(exports.control("last"), record).unwrap();
    exports.export(2).failure();
    fs::write(&fourth, kept).unwrap();
    assert_eq!(told(exports.export(RUNS as usize)), "nothing is new");
}

#[test]
fn what_an_export_writes_is_not_for_everybody() {
    let exports = Exports::new();
    for place in contents(&exports.to()).keys() {
        let mode = place.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o027, 0, "{}: {mode:o}", place.display());
    }
}

/// A run that can't have its names counts nowhere, and the next one isn't kept from running.
#[test]
fn a_run_whose_files_can_not_have_their_places_does_not_count() {
    let exports = Exports::new();
    let next = exports.to().join("_transactions/day=2023-11-14/00000004-0.parquet");
    fs::write(&next, "mine").unwrap();
    let before = exports.contents();
    let error = exports.export(RUNS as usize).failure();
    assert_eq!(
        error,
        format!("{}: is there already; expected none, as no run before had it", next.display())
    );
    assert!(exports.contents() == before);
    fs::remove_file(&next).unwrap();
    // A file where a folder has to be.
    let folder = exports.folder.path().join("binlog.000009");
    let [version, ..] = versions();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.behind_gno(9).transaction_of(&insert_into("other", "item", &version));
    fs::write(&folder, log.bytes()).unwrap();
    fs::write(exports.to().join("other"), "mine").unwrap();
    let error = export(&exports.to(), &[], std::slice::from_ref(&folder)).failure();
    assert_eq!(
        error,
        format!("{}: Not a directory (os error 20)", exports.to().join("other/item").display())
    );
    assert_eq!(told(exports.export(RUNS as usize)), "run 4: 1 transaction, 1 row change of 1 table, 2 files");
}

#[test]
fn in_object_storage_changed_and_hostile_manifests_are_errors() {
    let Some(server) = S3Server::start() else { return };
    let lake = Lake { server };
    let folder = tempfile::tempdir().unwrap();
    let logs = logs(folder.path());
    let run = |log: usize| Ran::from(lake.export(&logs[log..=log]).output().unwrap());
    (0..RUNS as usize).for_each(|log| drop(run(log).ok()));
    let control = lake.folder().join("_binlogz");
    let third = control.join("00000003.json");
    let bytes = fs::read(&third).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let seen = lake.seen();
    assert_eq!(seen.len(), 2 * RUNS as usize);
    // A digit, a manifest that is gone, one whose checksum fits.
    fs::write(&third, text.replace(":1-3\"", ":1-2\"")).unwrap();
    let error = run(2).failure();
    assert!(
        error.starts_with("s3://bucket/lake/_binlogz/00000003.json: the SHA-256 of its lines is"),
        "{error}"
    );
    fs::remove_file(&third).unwrap();
    let error = run(2).failure();
    assert!(error.starts_with("s3://bucket/lake/_binlogz/last: the last run is 3"), "{error}");
    fs::write(&third, &bytes).unwrap();
    forge(&third, |manifest| manifest["files"][0]["path"] = json!("../../outside"));
    let error = run(2).failure();
    assert!(error.contains("00000003.json: \"../../outside\" is no file of an export"), "{error}");
    fs::write(&third, &bytes).unwrap();
    // A list of an unfinished run that names files which aren't its own: none is deleted.
    let unfinished = control.join("unfinished-00000002-0123456789ab.json");
    let named = seen[0].strip_prefix(lake.folder()).unwrap().to_str().unwrap().to_owned();
    for hostile in [named.as_str(), "../../outside.parquet", "views.sql"] {
        let list = json!({"format": 1, "run": 2, "files": [hostile]});
        fs::write(&unfinished, list.to_string()).unwrap();
        let error = run(2).failure();
        assert!(error.contains("unfinished-00000002-0123456789ab.json: "), "{error}");
        assert_eq!(lake.seen(), seen);
        assert!(seen.iter().all(|file| file.exists()), "{hostile}");
    }
    fs::remove_file(&unfinished).unwrap();
    // A file that its owner deleted is told once.
    fs::remove_file(&seen[0]).unwrap();
    let ran = run(2);
    assert_eq!(ran.out, "nothing is new\n");
    assert!(ran.error.contains("1 file of earlier runs is gone"), "{}", ran.error);
    assert_eq!(run(2).ok(), "nothing is new\n");
    assert_eq!(lake.seen(), seen[1..]);
}

/// A folder that a killed run left in the temporary folder is gone after the next run.
#[test]
fn the_folder_of_a_killed_run_is_removed_by_the_next() {
    let Some(server) = S3Server::start() else { return };
    let lake = Lake { server };
    let folder = tempfile::tempdir().unwrap();
    let logs = logs(folder.path());
    let temporary = tempfile::tempdir().unwrap();
    let left = || fs::read_dir(temporary.path()).unwrap().count();
    let run = |dies: Option<&str>| {
        let mut command = lake.export(&logs[..1]);
        command.env("TMPDIR", temporary.path());
        command.envs(dies.map(|place| ("BINLOGZ_EXPORT_DIES_AT", place)));
        Ran::from(command.output().unwrap())
    };
    assert_eq!(run(Some("staged")).code, None);
    assert_eq!(left(), 1);
    run(None).ok();
    assert_eq!(left(), 0);
}
