//! Random changes, then `undo --format sql | mysql`: every table has the checksum from before the changes. Then `redo`:
//! every table has the checksum from after them.
//!
//! `BINLOGZ_UNDO_SEEDS` says how many seeds; `scripts/soak/undo.sh` runs 200. `SEED=N` begins at N.

use std::fs::File;
use std::path::{Path, PathBuf};

use binlogz_testkit::{MysqlSandbox, Result, SandboxServer, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::workload::Workload;

/// How a server logs, seed by seed.
const SETTINGS: [&str; 4] = [
    "SET GLOBAL binlog_row_metadata = FULL, GLOBAL binlog_transaction_compression = ON;",
    "SET GLOBAL binlog_row_metadata = MINIMAL, GLOBAL binlog_row_value_options = PARTIAL_JSON;",
    "SET GLOBAL binlog_transaction_compression = ON, GLOBAL binlog_row_value_options = PARTIAL_JSON, \
     GLOBAL binlog_rows_query_log_events = ON;",
    "SET GLOBAL binlog_row_metadata = FULL;",
];
const PLAIN: &str = "SET GLOBAL binlog_row_metadata = MINIMAL, GLOBAL binlog_transaction_compression = OFF, \
                     GLOBAL binlog_row_value_options = '', GLOBAL binlog_rows_query_log_events = OFF;";

const SEEDS: u64 = 3;
const TRANSACTIONS: usize = 60;

#[test]
fn changes_are_undone_and_redone_to_equality() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let (first, count) = (number("SEED").unwrap_or(1), number("BINLOGZ_UNDO_SEEDS").unwrap_or(SEEDS));
    let server = mysql.sandbox().start()?;
    for seed in first..first + count {
        println!("SEED={seed}");
        round_trip(&server, seed)?;
    }
    Ok(())
}

fn round_trip(server: &MysqlSandbox, seed: u64) -> Result<()> {
    let folder = Folder::new();
    let database = format!("d{seed}");
    let mut workload = Workload::new(seed);
    server.sql(PLAIN)?;
    server.sql(SETTINGS[seed as usize % SETTINGS.len()])?;
    server.sql(&workload.begin(&database))?;
    server.flush_binary_logs()?;
    let before = server.checksum_tables(&database)?;
    // Statements that break a key end the workload's client unless it goes on.
    let changes = folder.put("changes.sql", workload.run(&database, TRANSACTIONS));
    let ran = server.client().arg("--force").stdin(File::open(changes).unwrap()).output().unwrap();
    println!("{}", String::from_utf8_lossy(&ran.stderr));
    let after = server.checksum_tables(&database)?;
    let log = server.flush_binary_logs()?;
    let schema = schema_of(server, &folder, &database)?;
    let [undone, redone] = ["undo", "redo"].map(|verb| {
        let script = folder.run([verb.as_ref(), "--schema".as_ref(), schema.as_os_str(), log.as_os_str()]);
        script.is_done();
        script
    });
    assert_ne!(before, after, "SEED={seed}: nothing was changed");
    apply(server, &folder, &database, &undone)?;
    assert_eq!(server.checksum_tables(&database)?, before, "SEED={seed}: undone");
    apply(server, &folder, &database, &redone)?;
    assert_eq!(server.checksum_tables(&database)?, after, "SEED={seed}: redone");

    for (verb, state) in [("undo", &before), ("redo", &after)] {
        let mut options = vec![verb, "--format", "binlog", "--output", verb, "--schema"];
        options.extend(schema.to_str());
        // Of two seeds with the same settings, one is compressed.
        options.extend(["--compress"].iter().filter(|_| (seed / SETTINGS.len() as u64).is_multiple_of(2)));
        // Without a key, a row whose document changed in part can't be found: t2 is named, row by row.
        let is_partial = SETTINGS[seed as usize % SETTINGS.len()].contains("PARTIAL_JSON");
        let tables = ["t0", "t1", "t3", "parent", "child"].map(|table| format!("--table={database}.{table}"));
        options.extend(tables.iter().map(String::as_str).filter(|_| is_partial));
        let chosen = |tables: &[(String, String)]| {
            tables
                .iter()
                .filter(|(name, _)| !is_partial || !name.ends_with("t2"))
                .cloned()
                .collect::<Vec<_>>()
        };
        options.extend(log.to_str());
        let written = folder.run(options);
        // That a table had no rows in this seed is warned of.
        assert_eq!(written.code, Some(0), "SEED={seed}: {}", written.stderr);
        assert_eq!(written.text(), "", "SEED={seed}: something is left");
        through_mysqlbinlog(server, &folder.path(verb))?;
        let now = server.checksum_tables(&database)?;
        assert_eq!(chosen(&now), chosen(state), "SEED={seed}: {verb} as a log");
    }

    // What was undone and made again in tables without a key isn't undone once more: the server is to know nothing of it.
    let log = folder.put("log", std::fs::read(&log).unwrap());
    server.sql("RESET BINARY LOGS AND GTIDS")?;
    for (verb, state) in [("undo", &before), ("redo", &after)] {
        let batch = format!("--batch={}", 1 + seed * 7 % 50);
        let options =
            [verb, "--execute", &batch, "--apply", &place_of(server), "--user=root", "--no-defaults"];
        let applied = folder.run(options.map(AsRef::as_ref).into_iter().chain([log.as_os_str()]));
        assert_eq!((applied.code, &*applied.stderr), (Some(0), ""), "SEED={seed}: {}", applied.text());
        assert_eq!(&server.checksum_tables(&database)?, state, "SEED={seed}: {verb} applied");
    }
    server.sql(&format!("DROP DATABASE {database}"))?;
    Ok(())
}

/// A server as --apply takes it.
pub(crate) fn place_of(server: &MysqlSandbox) -> String {
    server.socket().display().to_string()
}

/// Runs a script; each of its statements must find its row.
fn apply(server: &MysqlSandbox, folder: &Folder, database: &str, script: &Ran) -> Result<()> {
    let path = folder.put(&format!("{database}.sql"), &script.stdout);
    let ran = server.client().arg("-vvv").stdin(File::open(path).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let told = String::from_utf8_lossy(&ran.stdout);
    let mut statement = "";
    for line in told.lines() {
        if ["INSERT", "UPDATE", "DELETE"].iter().any(|verb| line.starts_with(verb)) {
            statement = line;
        } else if line.starts_with("Query OK") {
            assert!(statement.is_empty() || line.contains("1 row affected"), "{line}: {statement}");
            statement = "";
        }
    }
    Ok(())
}

/// `mysqlbinlog | mysql`, with checksums compared.
pub(crate) fn through_mysqlbinlog(server: &SandboxServer, log: &Path) -> Result<()> {
    if let Err(refusal) = applied_by_mysqlbinlog(server, &[log])? {
        panic!("{refusal}");
    }
    Ok(())
}

/// `mysqlbinlog | mysql` of logs in their order; the inner error is what the server says.
pub(crate) fn applied_by_mysqlbinlog(
    server: &SandboxServer,
    logs: &[&Path],
) -> Result<std::result::Result<(), String>> {
    let options = ["--no-defaults", "--verify-binlog-checksum", "--skip-gtids"].map(AsRef::as_ref);
    let logs_given = logs.iter().map(|log| log.as_os_str());
    let printed = server.installed().run("mysqlbinlog", options.into_iter().chain(logs_given))?;
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let script = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(script.path(), printed.stdout).unwrap();
    let ran = server.client().stdin(File::open(script.path()).unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).trim_end().to_owned();
    Ok(if ran.status.success() { Ok(()) } else { Err(said) })
}

/// The schema file that mysqldump makes.
pub(crate) fn schema_of(server: &MysqlSandbox, folder: &Folder, database: &str) -> Result<PathBuf> {
    let socket = format!("--socket={}", server.socket().display());
    let options = ["--no-defaults", "--user=root", &socket, "--no-data", "--databases", database];
    let dumped = server.installed().run("mysqldump", options)?;
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    Ok(folder.put(&format!("{database}.schema.sql"), dumped.stdout))
}
