//! Servers for `binlogz bench`, and how it is run on them.

use std::process::Command;

use binlogz_testkit::{MysqlSandbox, Tool};
use serde_json::Value;

use crate::common::{Folder, Ran};

/// Variables that presets change.
const VARIABLES: &str = "SELECT @@GLOBAL.binlog_transaction_compression, \
    @@GLOBAL.binlog_transaction_compression_level_zstd, @@GLOBAL.binlog_encryption";
const STAGES: &str = "SELECT GROUP_CONCAT(ENABLED, TIMED) FROM performance_schema.setup_instruments \
    WHERE NAME LIKE 'stage/sql/%ompressing transaction changes.'";
const SCHEMAS: &str =
    "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name IN ('sbtest', 'employees')";

/// A server with settings that are no version's default.
pub(crate) fn server() -> MysqlSandbox {
    let mysql = Tool::Mysql.find().unwrap();
    mysql.sandbox().option("binlog-transaction-compression-level-zstd", "9").start().unwrap()
}

/// A preset on a server, as a user would.
pub(crate) fn bench(folder: &Folder, server: &MysqlSandbox, preset: &str, args: &[&str]) -> Command {
    let mut command = folder.binlogz(["bench", preset]);
    command.arg(server.socket()).args([
        "--user=root",
        "--no-defaults",
        "--yes-load-this-server",
        "--out=out",
    ]);
    command.args(args);
    command
}

pub(crate) fn run(mut command: Command) -> Ran {
    command.output().unwrap().into()
}

pub(crate) fn results(folder: &Folder) -> Value {
    serde_json::from_slice(&folder.read("out/results.json")).unwrap()
}

pub(crate) fn state(server: &MysqlSandbox) -> String {
    [VARIABLES, STAGES, SCHEMAS].map(|asked| server.sql(asked).unwrap()).concat()
}
