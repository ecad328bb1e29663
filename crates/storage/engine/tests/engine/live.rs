//! Compared with a live server: variables by its rules, statistics as it counts, and its tools and replicas
//! on our log.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use binlogz_engine::{Error, Rights, Session, VariableScope, VariableValue, Warning};
use binlogz_store::MemoryStorage;
use binlogz_testkit::{MysqlSandbox, Result, Tool, mixed, require_tool};

use crate::common::open;
use crate::replay::replay;

/// Ours, and what it is called in MySQL.
const NAMES: [(&str, &str); 9] = [
    ("binlog_transaction_compression", "binlog_transaction_compression"),
    ("binlog_transaction_compression_level_zstd", "binlog_transaction_compression_level_zstd"),
    ("binlog_checksum", "binlog_checksum"),
    ("binlog_encryption", "binlog_encryption"),
    ("max_binlog_size", "max_binlog_size"),
    ("sync_binlog", "sync_binlog"),
    ("binlog_group_commit_sync_delay", "binlog_group_commit_sync_delay"),
    ("binlog_group_commit_sync_no_delay_count", "binlog_group_commit_sync_no_delay_count"),
    ("flush_log_at_commit", "innodb_flush_log_at_trx_commit"),
];

const VALUES: [(&str, VariableValue<'static>); 28] = [
    ("ON", VariableValue::Text("ON")),
    ("'oFf'", VariableValue::Text("oFf")),
    ("'true'", VariableValue::Text("true")),
    ("TRUE", VariableValue::Integer(1)),
    ("'x'", VariableValue::Text("x")),
    ("'1'", VariableValue::Text("1")),
    ("''", VariableValue::Text("")),
    ("NONE", VariableValue::Text("NONE")),
    ("'crc32'", VariableValue::Text("crc32")),
    ("1.5", VariableValue::Decimal(1.5)),
    ("NULL", VariableValue::Null),
    ("-9223372036854775808", VariableValue::Integer(i64::MIN)),
    ("-1", VariableValue::Integer(-1)),
    ("0", VariableValue::Integer(0)),
    ("1", VariableValue::Integer(1)),
    ("2", VariableValue::Integer(2)),
    ("3", VariableValue::Integer(3)),
    ("22", VariableValue::Integer(22)),
    ("23", VariableValue::Integer(23)),
    ("4095", VariableValue::Integer(4095)),
    ("4097", VariableValue::Integer(4097)),
    ("100001", VariableValue::Integer(100_001)),
    ("1000000", VariableValue::Integer(1_000_000)),
    ("1000001", VariableValue::Integer(1_000_001)),
    ("1073741825", VariableValue::Integer(1_073_741_825)),
    ("4294967296", VariableValue::Integer(4_294_967_296)),
    ("9223372036854775807", VariableValue::Integer(i64::MAX)),
    ("DEFAULT", VariableValue::Default),
];

/// Runs each SET as this account, in one session; what SHOW WARNINGS says of each.
fn said_by_server(server: &MysqlSandbox, account: &str, before: &str, sets: &[String]) -> Vec<String> {
    let mut client = server.client();
    client.arg(format!("--user={account}")).arg("--force");
    client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = client.spawn().unwrap();
    let mut script = format!("{before};\n");
    for set in sets {
        script.push_str(&format!("SELECT '##';\n{set};\nSHOW WARNINGS;\n"));
    }
    let mut stdin = child.stdin.take().unwrap();
    // The answers are small: they wait in the pipe.
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.split("##\n").skip(1).map(|said| said.trim_end().to_owned()).collect()
}

fn said_by_engine(
    session: &mut Session,
    scope: VariableScope,
    name: &str,
    value: VariableValue<'_>,
) -> String {
    let warned = |warning: &Warning| format!("Warning\t{}\t{}", warning.code, warning.message);
    match session.set(scope, name, value) {
        Ok(None) => String::new(),
        Ok(Some(warning)) => warned(&warning),
        Err(Error::Variable(error)) => {
            let warning = error.warning.as_ref().map(|warning| warned(warning) + "\n").unwrap_or_default();
            format!("{warning}Error\t{}\t{}", error.code, error.message)
        }
        Err(other) => panic!("{name} = {value:?}: {other}"),
    }
}

#[test]
fn variables_follow_the_servers_rules() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql(
        "CREATE USER nobody@localhost;
         CREATE USER session_admin@localhost; GRANT SESSION_VARIABLES_ADMIN ON *.* TO session_admin@localhost;
         CREATE USER system_admin@localhost; GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO system_admin@localhost;
         CREATE USER encryption_admin@localhost; GRANT BINLOG_ENCRYPTION_ADMIN ON *.* TO encryption_admin@localhost;
         CREATE USER two_rights@localhost; GRANT SYSTEM_VARIABLES_ADMIN, BINLOG_ENCRYPTION_ADMIN ON *.* TO two_rights@localhost",
    )?;
    let none = Rights::NONE;
    let accounts = [
        ("root", Rights::ALL),
        ("nobody", none),
        ("session_admin", Rights { session_variables_admin: true, ..none }),
        ("system_admin", Rights { system_variables_admin: true, ..none }),
        ("encryption_admin", Rights { binlog_encryption_admin: true, ..none }),
        ("two_rights", Rights { system_variables_admin: true, binlog_encryption_admin: true, ..none }),
    ];
    let (mut compared, mut differ) = (0, Vec::new());
    for (account, rights) in accounts {
        for in_transaction in [false, true] {
            let engine = open(MemoryStorage::new(), &[]);
            let mut session = engine.session_with_rights(rights);
            if in_transaction {
                session.begin().unwrap();
            }
            let mut sets = Vec::new();
            let mut ours = Vec::new();
            for (name, server_name) in NAMES.iter().chain(&[("nosuch", "nosuch")]) {
                for (sql, value) in VALUES {
                    for (scope, word) in
                        [(VariableScope::Session, "SESSION"), (VariableScope::Global, "GLOBAL")]
                    {
                        sets.push(format!("SET {word} {server_name} = {sql}"));
                        ours.push(
                            said_by_engine(&mut session, scope, name, value).replace(name, server_name),
                        );
                    }
                }
                if *name == "nosuch" {
                    continue;
                }
                // What it is afterwards: of the session, where it has one, and of all.
                sets.push(format!("DO 0; SELECT @@SESSION.{server_name}"));
                ours.push(match session.get(name) {
                    Ok(value) => value,
                    Err(Error::Variable(error)) => {
                        format!("Error\t{}\t{}", error.code, error.message).replace(name, server_name)
                    }
                    Err(other) => panic!("{other}"),
                });
                sets.push(format!("DO 0; SELECT @@GLOBAL.{server_name}"));
                ours.push(engine.global(name).unwrap());
            }
            let before = if in_transaction { "BEGIN" } else { "DO 0" };
            let server_said = said_by_server(&server, account, before, &sets);
            assert_eq!(server_said.len(), sets.len());
            for ((set, server), ours) in sets.iter().zip(&server_said).zip(&ours) {
                compared += 1;
                if server != ours {
                    let transaction = if in_transaction { ", in a transaction" } else { "" };
                    differ.push(format!(
                        "{account}{transaction}: {set}\n  server {server:?}\n  ours   {ours:?}"
                    ));
                }
            }
        }
    }
    assert!(
        differ.is_empty(),
        "{} of {compared} differ:\n{}",
        differ.len(),
        differ[..differ.len().min(20)].join("\n")
    );
    // Values are inherited by new sessions, and kept by those that are there.
    let engine = open(MemoryStorage::new(), &[]);
    let old = engine.session();
    engine.set_global("binlog_transaction_compression_level_zstd", VariableValue::Integer(9)).unwrap();
    let level = |session: &Session| session.get("binlog_transaction_compression_level_zstd").unwrap();
    assert_eq!((level(&old), level(&engine.session())), ("3".into(), "9".into()));
    println!("{compared} statements compared");
    Ok(())
}

#[test]
fn statistics_are_the_servers() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let mut server = mysql.sandbox().compression(3).start()?;
    mixed::put_through(&server, true)?;
    let rows = server.sql(
        "SELECT LOG_TYPE, COMPRESSION_TYPE, TRANSACTION_COUNTER, COMPRESSED_BYTES_COUNTER,
         UNCOMPRESSED_BYTES_COUNTER, COMPRESSION_PERCENTAGE, FIRST_TRANSACTION_ID, LAST_TRANSACTION_ID
         FROM performance_schema.binary_log_transaction_compression_stats",
    )?;
    server.stop()?;
    let files: Vec<Vec<u8>> = server.binlogs()?.iter().map(|path| fs::read(path).unwrap()).collect();
    let ours = replay(&files, &files, Some(3));
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows, ours.rows);
    Ok(())
}

#[test]
fn a_replica_and_mysqlbinlog_take_our_log() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let run: Vec<_> =
        mixed::binlogs()?.into_iter().filter(|file| file.name.starts_with("plain/source/")).collect();
    let originals: Vec<PathBuf> = run.iter().map(|file| file.path.clone()).collect();
    let files: Vec<Vec<u8>> = run.iter().map(|file| file.read()).collect();
    let dir = tempfile::tempdir().unwrap();
    let mut ours = Vec::new();
    let replayed = replay(&files, &files, Some(3));
    for (number, bytes) in (1..).zip(&replayed.files) {
        let path = dir.path().join(format!("binlog.{number:06}"));
        fs::write(&path, bytes).unwrap();
        let output = mysql.mysqlbinlog(["--verify-binlog-checksum".as_ref(), path.as_os_str()])?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("ERROR"), "file {number}: {said}");
        ours.push(path);
    }
    // Ours in a server's data directory, which then serves them; the originals as relay logs.
    let source = mysql.sandbox().binlogs(&ours).start()?;
    let replica = mysql.sandbox().start()?;
    replica.replicate_from(&source)?;
    replica.wait_for_source(&source)?;
    drop(source);
    let mut other = mysql.sandbox().start()?;
    other.apply_relay_logs(&originals)?;
    let tables = replica.checksum_tables("mix")?;
    assert!(tables.len() > 10, "{tables:?}");
    assert_eq!(tables, other.checksum_tables("mix")?);
    assert_eq!(replica.gtid_executed()?, other.gtid_executed()?);
    Ok(())
}
