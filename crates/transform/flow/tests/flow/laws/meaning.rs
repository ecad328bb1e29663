//! Law 3: the logs that compress and expand write mean the same as their inputs: to mysqlbinlog, and to a real replica
//! that gets them through a real source or as relay logs.

use std::fs;
use std::path::{Path, PathBuf};

use binlogz_flow::Rewrite;
use binlogz_testkit::workload::{self, WorkloadSetting};
use binlogz_testkit::{
    InstalledTool, MysqlSandbox, RealBinlog, Result, SampleCompression, Tool, mixed, real, require_tool,
};

use super::support::{compress, expand, options, rewritten};

#[test]
fn mysqlbinlog_prints_the_same_rows() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (mut rows, mut with_payload) = (0, 0);
    for file in real::every_binlog() {
        let log = file.read();
        let original = text_of(mysql, &file.path, dir.path());
        rows += original.lines().filter(|line| line.starts_with("###   @")).count();
        let plain = expand(&log);
        for (what, bytes) in [
            ("expanded", &plain),
            ("compressed", &compress(&log, 3)),
            ("plain compressed", &compress(&plain, 1)),
        ] {
            if *bytes == log {
                continue;
            }
            let path = dir.path().join("rewritten");
            fs::write(&path, bytes).expect("room for a log");
            let text = text_of(mysql, &path, dir.path());
            with_payload += 1;
            if text != original {
                let differ = original.lines().zip(text.lines()).find(|(one, other)| one != other);
                panic!("{}, {what}: mysqlbinlog prints {differ:?}", file.name);
            }
        }
    }
    assert!(rows > 100_000 && with_payload > 100, "{rows} rows, {with_payload} logs");
    Ok(())
}

/// mysqlbinlog's text of a log whose checksums it verifies, without the parts that compressing changes: positions,
/// checksums, lengths of transactions, payload events themselves.
fn text_of(mysql: &InstalledTool, path: &Path, dir: &Path) -> String {
    // The files of LOAD DATA are written there; their names are printed.
    let load = dir.join("load");
    let _ = fs::remove_dir_all(&load);
    fs::create_dir(&load).expect("a temporary directory");
    let local_load = format!("--local-load={}", load.display());
    let options = ["--verify-binlog-checksum", "-vv", "--base64-output=decode-rows", &local_load];
    let arguments = options.iter().map(AsRef::as_ref).chain([path.as_os_str()]);
    let output = mysql.mysqlbinlog(arguments).expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("ERROR"), "{}: {said}", path.display());
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut text = String::with_capacity(printed.len());
    for line in printed.lines().filter(|line| !is_of_the_place(line)) {
        match line.split_once(" end_log_pos ") {
            // `#261121  4:39:29 server id 1  end_log_pos 235 CRC32 0xb2d3719d <TAB>GTID ...`
            Some((before, after)) if line.starts_with('#') => {
                let after = after.split_once('\t').map_or("", |(_, event)| event);
                let after = after.split("\ttransaction_length=").next().unwrap_or_default();
                text.extend([before, "\t", after, "\n"]);
            }
            _ => text.extend([line, "\n"]),
        }
    }
    text
}

fn is_of_the_place(line: &str) -> bool {
    line.strip_prefix("# at ").is_some_and(|offset| offset.bytes().all(|byte| byte.is_ascii_digit()))
        || line.contains("\tTransaction_Payload\t")
        || ["# Start of compressed events.", "# End of compressed events."].contains(&line)
}

/// How a replica comes by logs.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// A source has them as its binary logs.
    Source,
    /// The logs are the replica's relay logs.
    RelayLogs,
}

/// All tables of a replica with their checksums, and what it has executed.
#[derive(Debug, PartialEq)]
struct State {
    tables: Vec<(String, String)>,
    executed: String,
}

fn fed(mysql: &'static InstalledTool, logs: &[PathBuf], way: Way, gtids: bool) -> Result<State> {
    let sandbox = || {
        let mode = if gtids { "ON" } else { "OFF" };
        mysql.sandbox().option("gtid-mode", mode).option("enforce-gtid-consistency", mode)
    };
    let replica = match way {
        Way::RelayLogs => {
            let mut replica = sandbox().start()?;
            replica.apply_relay_logs(logs)?;
            replica
        }
        Way::Source => {
            let source = sandbox().binlogs(logs).start()?;
            let replica = sandbox().start()?;
            replica.replicate_from(&source)?;
            replica.wait_for_source(&source)?;
            replica
        }
    };
    state(&replica)
}

fn state(replica: &MysqlSandbox) -> Result<State> {
    let schemas = replica.sql(
        "SELECT schema_name FROM information_schema.schemata
         WHERE schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY 1",
    )?;
    let mut tables = Vec::new();
    for schema in schemas.lines() {
        tables.extend(replica.checksum_tables(schema)?);
    }
    assert!(tables.len() > 3, "{tables:?}");
    Ok(State { tables, executed: replica.gtid_executed()? })
}

/// Logs rewritten under the names of binary logs.
fn write(logs: &[RealBinlog], rewrite: impl Fn(&[u8]) -> Vec<u8>, dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for (log, number) in logs.iter().zip(1..) {
        let path = dir.join(format!("binlog.{number:06}"));
        fs::write(&path, rewrite(&log.read())).expect("room for a log");
        paths.push(path);
    }
    paths
}

/// A replica that is fed the rewritten logs ends as one that is fed the logs.
fn means_the_same(
    logs: &[RealBinlog],
    rewrite: impl Fn(&[u8]) -> Vec<u8>,
    way: Way,
    gtids: bool,
) -> Result<()> {
    let mysql = Tool::Mysql.find()?;
    let [originals, rewritten] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let expected = fed(mysql, &write(logs, <[u8]>::to_vec, originals.path()), Way::RelayLogs, gtids)?;
    let got = fed(mysql, &write(logs, rewrite, rewritten.path()), way, gtids)?;
    assert_eq!(got, expected, "{} {way:?}", logs[0].name);
    Ok(())
}

fn of_run(run: &str) -> Result<Vec<RealBinlog>> {
    let mut logs = mixed::binlogs()?;
    logs.retain(|log| log.name.starts_with(&format!("{run}/source/")));
    assert!(logs.len() > 3, "{run}");
    Ok(logs)
}

fn workloads(setting: WorkloadSetting) -> Result<Vec<RealBinlog>> {
    let binlogs = workload::binlogs(real::SMALL_SCALE, &setting)?.into_iter();
    Ok(binlogs
        .map(|binlog| RealBinlog {
            name: binlog.workload.name().into(),
            path: binlog.path,
            compression: SampleCompression::Off,
            relay_log: false,
        })
        .collect())
}

#[test]
fn a_source_serves_what_was_compressed() -> Result<()> {
    require_tool!(Tool::Mysql);
    means_the_same(&of_run("plain")?, |log| compress(log, 3), Way::Source, true)
}

#[test]
fn a_source_serves_what_was_expanded() -> Result<()> {
    require_tool!(Tool::Mysql);
    means_the_same(&of_run("full-metadata-level3")?, expand, Way::Source, true)
}

#[test]
fn a_replica_applies_what_was_compressed_as_relay_logs() -> Result<()> {
    require_tool!(Tool::Mysql);
    means_the_same(&of_run("anonymous")?, |log| compress(log, 3), Way::RelayLogs, false)
}

#[test]
fn a_replica_applies_what_was_expanded_as_relay_logs() -> Result<()> {
    require_tool!(Tool::Mysql);
    means_the_same(&of_run("no-checksum-level3")?, expand, Way::RelayLogs, true)
}

#[test]
fn workloads_arrive_compressed_expanded_and_recompressed() -> Result<()> {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    means_the_same(&workloads(WorkloadSetting::plain())?, |log| compress(log, 19), Way::Source, true)?;
    let recompress = |log: &[u8]| rewritten(log, Rewrite::Recompress(options(9)));
    means_the_same(&workloads(WorkloadSetting::level(3))?, recompress, Way::RelayLogs, true)
}
