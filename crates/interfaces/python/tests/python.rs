//! The package as Python sees it, beside python-mysql-replication, on a real server: one server, one interpreter. The checks
//! are in `checks.py`.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "hostile/mod.rs"]
mod hostile;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use binlogz_archive::create::{self, CreateOutcome, Creator};
use binlogz_archive::storage::{ArchiveStorage, ObjectStorage, Patience, at};
use binlogz_testkit::altered_tables::{AlteredLogs, altered_logs};
use binlogz_testkit::s3::{BUCKET, S3Server};
use binlogz_testkit::tool::require;
use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, corpus, mutate};

/// Where cargo put the module: beside this test's own folder.
fn module() -> PathBuf {
    if let Some(path) = std::env::var_os("MODULE") {
        return path.into();
    }
    let test = std::env::current_exe().unwrap();
    let file = format!("{}binlogz_python{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    test.parent().unwrap().ancestors().map(|folder| folder.join(&file)).find(|path| path.exists()).unwrap()
}

/// The package as a wheel has it.
fn package(folder: &Path) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("binlogz");
    let copied = Command::new("cp").arg("-r").arg(package).arg(folder).status().unwrap();
    assert!(copied.success());
    std::fs::copy(module(), folder.join("binlogz/_native.abi3.so")).unwrap();
}

/// Runs a script beside this file with the package, on a server.
fn run(script: &str, python: &InstalledTool, server: &MysqlSandbox) -> Command {
    run_by(python.command("python"), script, server)
}

fn run_by(mut command: Command, script: &str, server: &MysqlSandbox) -> Command {
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PORT", server.port().to_string());
    command.env("SOCKET", server.socket()).env("DATADIR", server.datadir());
    command
}

#[test]
fn the_package_reads_what_python_mysql_replication_reads_and_compressed_rows_too() {
    let (Some(mysql), Some(cdc)) = (require(Tool::Mysql), require(Tool::Cdc)) else { return };
    let server = mysql.sandbox().compression(3).option("binlog_row_metadata", "FULL").start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    package(folder.path());
    let names = folder.path().join("names.json");
    let archives = archives(folder.path());
    let check = |mut command: Command| {
        command.env("PYTHONPATH", folder.path()).env("NAMES", &names).envs(archives.variables());
        let ran = command.output().unwrap();
        let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{out}{errors}");
    };
    check(run("checks.py", cdc, &server));
    // An interpreter with pyarrow; scripts/soak/python.sh names one that has pandas too.
    if let Some(python) = std::env::var_os("PYTHON_WITH_PANDAS") {
        check(run_by(Command::new(python), "arrow.py", &server));
    } else if let Some(python) = require(Tool::FlightSql) {
        check(run("arrow.py", python, &server));
    }
}

#[test]
fn rows_of_logs_without_names_have_those_of_their_place() {
    let (Some(mysql), Some(cdc)) = (require(Tool::Mysql), require(Tool::Cdc)) else { return };
    let server = mysql.sandbox().start().unwrap();
    server
        .sql("CREATE USER python IDENTIFIED BY 'p:/@s'; GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO python")
        .unwrap();
    let AlteredLogs { minimal, creation, full } = altered_logs(&server, mutate::seed()).unwrap();
    server
        .sql(
            "USE shop; CREATE TABLE moved (id INT PRIMARY KEY, paid INT, owed INT, state ENUM('new','old'));
             INSERT INTO moved VALUES (1, 100, 5, 'old'); ALTER TABLE moved MODIFY owed INT AFTER id;
             INSERT INTO moved VALUES (2, 6, 200, 'new')",
        )
        .unwrap();
    let moved = server.flush_binary_logs().unwrap();
    let folder = tempfile::tempdir().unwrap();
    package(folder.path());
    let joined = |logs: &[PathBuf]| std::env::join_paths(logs).unwrap();
    let all: Vec<_> = [creation].into_iter().chain(minimal).collect();
    // With pyarrow, if there is one.
    for python in [Some(cdc), require(Tool::FlightSql)].into_iter().flatten() {
        let mut command = run("altered.py", python, &server);
        command.env("PYTHONPATH", folder.path()).env("MOVED", &moved);
        let ran = command.env("MINIMAL", joined(&all)).env("FULL", joined(&full)).output().unwrap();
        let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{out}{errors}");
        println!("{out}");
    }
}

#[test]
fn tables_of_iceberg_have_each_row_once() {
    let (Some(mysql), Some(python)) = (require(Tool::Mysql), require(Tool::FlightSql)) else { return };
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    package(folder.path());
    let ran = run("iceberg.py", python, &server).env("PYTHONPATH", folder.path()).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{errors}");
}

/// Bytes of an archive's blocks here: small, so that a log has several.
const BLOCK_SIZE: usize = 20_000;

#[test]
fn parts_of_logs_have_what_the_whole_has() {
    let (Some(mysql), Some(python)) = (require(Tool::Mysql), require(Tool::FlightSql)) else { return };
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start().unwrap();
    server
        .sql(
            "CREATE DATABASE wide; USE wide; CREATE TABLE rows_of (id BIGINT UNSIGNED PRIMARY KEY, note TEXT, amount DECIMAL(9,2));
             RENAME TABLE rows_of TO `rows`",
        )
        .unwrap();
    let inserts: Vec<_> = (0..300)
        .map(|id| format!("INSERT INTO wide.`rows` VALUES ({id}, REPEAT('{id} ', 100), {id} / 7)"))
        .collect();
    server.sql(&inserts.join(";")).unwrap();
    let named = server.datadir().join(server.flush_binary_logs().unwrap());
    let folder = tempfile::tempdir().unwrap();
    package(folder.path());
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../samples/plain");
    let logs: Vec<_> = (1..=9).map(|number| samples.join(format!("binlog.00000{number}"))).collect();
    let bucket = S3Server::start();
    let mut command = run("parts.py", python, &server);
    if let Some(server) = &bucket {
        let place = format!("s3://{BUCKET}/{KEY}");
        let storage = ObjectStorage::new(&place, server.settings(), Patience::default()).unwrap();
        pack_small_blocks(&storage, &logs);
        command.envs(server.settings()).env("S3_ARCHIVE", &place);
    }
    command.env("PYTHONPATH", folder.path()).env("LOGS", std::env::join_paths(&logs).unwrap());
    let ran = command
        .env("ARCHIVE", small_blocks(&folder.path().join("samples"), &logs))
        .env("NAMED", small_blocks(&folder.path().join("named"), &[named]))
        .output();
    let ran = ran.unwrap();
    assert!(
        ran.status.success(),
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Logs in an archive of small blocks.
fn small_blocks(place: &Path, logs: &[PathBuf]) -> PathBuf {
    pack_small_blocks(&at(place).unwrap(), logs);
    place.to_owned()
}

fn pack_small_blocks(storage: &dyn ArchiveStorage, logs: &[PathBuf]) {
    let mut told = |_: &CreateOutcome| {};
    let mut creator = Creator::new(storage, 2, &mut told).unwrap();
    creator.block_size(BLOCK_SIZE);
    for log in logs {
        let name = log.file_name().unwrap().to_str().unwrap();
        creator.add(name, Arc::new(File::open(log).unwrap())).unwrap();
    }
    creator.finish().unwrap();
}

/// A log in an archive in a folder, and in one in object storage.
struct Archives {
    log: PathBuf,
    folder: PathBuf,
    bucket: Option<S3Server>,
}

const KEY: &str = "some/where";

fn archives(folder: &Path) -> Archives {
    let log = corpus::path("binlog.000005");
    let add = |storage: &dyn ArchiveStorage| {
        create::add(storage, "binlog.000005", Arc::new(File::open(&log).unwrap()), 1).unwrap();
    };
    let place = folder.join("archive");
    add(&at(&place).unwrap());
    let bucket = S3Server::start();
    if let Some(server) = &bucket {
        let place = format!("s3://{BUCKET}/{KEY}");
        add(&ObjectStorage::new(&place, server.settings(), Patience::default()).unwrap());
    }
    Archives { log, folder: place, bucket }
}

impl Archives {
    fn variables(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut variables =
            vec![("ARCHIVED".to_owned(), text(&self.log)), ("ARCHIVE".to_owned(), text(&self.folder))];
        if let Some(server) = &self.bucket {
            variables.extend(server.settings());
            variables.push(("S3_ARCHIVE".to_owned(), format!("s3://{BUCKET}/{KEY}")));
        }
        variables
    }
}

#[test]
#[ignore = "a measurement: scripts/bench/python.sh"]
fn speed() {
    let (mysql, cdc) = (require(Tool::Mysql).unwrap(), require(Tool::Cdc).unwrap());
    let sandbox = mysql.sandbox().option("binlog_row_metadata", "FULL").option("max_binlog_size", "1G");
    let server =
        sandbox.option("sync_binlog", "0").option("innodb_flush_log_at_trx_commit", "0").start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    package(folder.path());
    let ran = run("speed.py", cdc, &server).env("PYTHONPATH", folder.path()).status().unwrap();
    assert!(ran.success());
}
