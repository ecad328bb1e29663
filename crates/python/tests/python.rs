//! The package as Python sees it, beside python-mysql-replication, on a real server: one server, one interpreter. The checks
//! are in `checks.py`.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use binlogz_testkit::tool::require;
use binlogz_testkit::{Installed, MysqlSandbox, Tool};

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
fn run(script: &str, python: &Installed, server: &MysqlSandbox) -> Command {
    let mut command = python.command("python");
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
    let ran = run("checks.py", cdc, &server).env("PYTHONPATH", folder.path()).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{errors}");
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
