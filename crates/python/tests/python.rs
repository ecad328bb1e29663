//! The package as Python sees it, beside python-mysql-replication, on a real server: one server, one interpreter. The checks
//! are in `checks.py`.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use binlogz_testkit::Tool;
use binlogz_testkit::tool::require;

/// Where cargo put the module: beside this test's own folder.
fn module() -> PathBuf {
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

#[test]
fn the_package_reads_what_python_mysql_replication_reads_and_compressed_rows_too() {
    let (Some(mysql), Some(cdc)) = (require(Tool::Mysql), require(Tool::Cdc)) else { return };
    let server = mysql.sandbox().compression(3).option("binlog_row_metadata", "FULL").start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    package(folder.path());
    let checks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checks.py");
    let socket = server.socket();
    let mut python = cdc.command("python");
    python.arg(&checks).env("PYTHONPATH", folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    python.env("PORT", server.port().to_string()).env("SOCKET", socket).env("DATADIR", server.datadir());
    let ran = python.output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{errors}");
}
