//! A mix of everything a server writes, under every setting that changes how it writes it.
//!
//! The statements are in `sql/`. Each run puts them through a real server once, and the cache keeps its binlogs, and
//! those and the relay logs of its replica if it has one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::real_binlog::{RealBinlog, SampleCompression};
use crate::{Error, IoContext, MysqlSandbox, Result, Tool, cache};

/// Part of the cache key: raised when statements or runs change.
const RECIPE: u32 = 3;

const TRANSACTIONS: &str = include_str!("../sql/transactions.sql");
const TYPES: &str = include_str!("../sql/types.sql");
const STATEMENTS: &str = include_str!("../sql/statements.sql");
const LOAD: &str = include_str!("../sql/load.sql");
const XA: &str = include_str!("../sql/xa.sql");
const XA_AFTER: &str = include_str!("../sql/xa-after.sql");
const GTIDS: &str = include_str!("../sql/gtids.sql");
const NONTRANSACTIONAL: &str = include_str!("../sql/nontransactional.sql");
const TOGGLE: &str = include_str!("../sql/toggle.sql");

/// One server, or one source and its replica, with the mix put through it.
struct Run {
    name: &'static str,
    compression: SampleCompression,
    options: &'static [(&'static str, &'static str)],
    replica: Option<Replica>,
    /// The last file ends where the server was killed, its in-use flag set.
    crashes: bool,
}

struct Replica {
    compression: SampleCompression,
    options: &'static [(&'static str, &'static str)],
}

const NO_GTIDS: [(&str, &str); 2] = [("gtid-mode", "OFF"), ("enforce-gtid-consistency", "OFF")];
const FULL_METADATA: (&str, &str) = ("binlog-row-metadata", "FULL");
const MINIMAL_IMAGE: (&str, &str) = ("binlog-row-image", "MINIMAL");
const NO_CHECKSUM: (&str, &str) = ("binlog-checksum", "NONE");

const fn run(
    name: &'static str,
    compression: SampleCompression,
    options: &'static [(&'static str, &'static str)],
) -> Run {
    Run { name, compression, options, replica: None, crashes: false }
}

const RUNS: [Run; 12] = [
    Run {
        replica: Some(Replica { compression: SampleCompression::Level(3), options: &[] }),
        ..run("plain", SampleCompression::Off, &[])
    },
    Run {
        replica: Some(Replica { compression: SampleCompression::Off, options: &[NO_CHECKSUM] }),
        ..run("level3", SampleCompression::Level(3), &[])
    },
    run("level1", SampleCompression::Level(1), &[]),
    run("level19", SampleCompression::Level(19), &[]),
    run("toggled", SampleCompression::Mixed, &[]),
    run("no-checksum", SampleCompression::Off, &[NO_CHECKSUM]),
    run("no-checksum-level3", SampleCompression::Level(3), &[NO_CHECKSUM]),
    run("full-metadata", SampleCompression::Off, &[FULL_METADATA, MINIMAL_IMAGE]),
    run("full-metadata-level3", SampleCompression::Level(3), &[FULL_METADATA, MINIMAL_IMAGE]),
    run("anonymous", SampleCompression::Off, &NO_GTIDS),
    run("anonymous-level3", SampleCompression::Level(3), &NO_GTIDS),
    Run {
        crashes: true,
        ..run(
            "crashed",
            SampleCompression::Level(3),
            &[
                ("binlog-rows-query-log-events", "ON"),
                ("binlog-row-image", "NOBLOB"),
                ("binlog-row-event-max-size", "1024"),
            ],
        )
    },
];

/// Every file of every run; a minute's work the first time.
pub fn binlogs() -> Result<Vec<RealBinlog>> {
    let mut files = Vec::new();
    for run in &RUNS {
        let dir = kept(run.name, |dir| run.make(dir))?;
        files.extend(listed(&dir, run.name, "source", run.compression, false)?);
        if let Some(replica) = &run.replica {
            files.extend(listed(&dir, run.name, "replica", replica.compression, false)?);
            files.extend(listed(&dir, run.name, "relay", run.compression, true)?);
        }
    }
    Ok(files)
}

/// A file of about 100 MB with one transaction of 100,000 rows, and small ones before and after it; plain or at
/// one level.
pub fn big_transaction(compression: SampleCompression) -> Result<RealBinlog> {
    let name = match compression {
        SampleCompression::Off => "big".to_owned(),
        SampleCompression::Level(level) => format!("big-level{level}"),
        SampleCompression::Mixed => return Err(Error::Failed("one transaction has one level".into())),
    };
    let dir = kept(&name, |dir| {
        let server = sandbox(compression, &[])?;
        server.sql(
            "SET cte_max_recursion_depth = 100000;
             CREATE DATABASE mix; USE mix; CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(2000));
             INSERT INTO big VALUES (0, 'before');
             INSERT INTO big WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
                 SELECT i, CONCAT(SHA2(i, 512), REPEAT(SHA2(i, 256), 14)) FROM n;
             INSERT INTO big VALUES (100001, 'after');",
        )?;
        keep(&[server.flush_binary_logs()?], &dir.join("source"))
    })?;
    let mut files = listed(&dir, &name, "source", compression, false)?;
    files.pop().ok_or_else(|| Error::Failed(format!("{} is empty", dir.display())))
}

fn kept(name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    cache::entry(&format!("mixed-{RECIPE}/mysql-{}/{name}", Tool::Mysql.find()?.version()), make)
}

fn listed(
    dir: &Path,
    run: &str,
    part: &str,
    compression: SampleCompression,
    relay_log: bool,
) -> Result<Vec<RealBinlog>> {
    let dir = dir.join(part);
    let mut paths = Vec::new();
    for entry in fs::read_dir(&dir).at("read", &dir)? {
        paths.push(entry.at("read", &dir)?.path());
    }
    paths.sort();
    let named = |path: PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        RealBinlog { name: format!("{run}/{part}/{file}"), path, compression, relay_log }
    };
    Ok(paths.into_iter().map(named).collect())
}

fn keep(logs: &[PathBuf], dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).at("create", dir)?;
    for log in logs {
        fs::copy(log, dir.join(log.file_name().unwrap_or_default())).at("copy", log)?;
    }
    Ok(())
}

fn sandbox(compression: SampleCompression, options: &[(&str, &str)]) -> Result<MysqlSandbox> {
    let mut builder = Tool::Mysql.find()?.sandbox();
    if let SampleCompression::Level(level) = compression {
        builder = builder.compression(level);
    }
    options.iter().fold(builder, |builder, (name, value)| builder.option(name, value)).start()
}

impl Run {
    fn make(&self, dir: &Path) -> Result<()> {
        let mut source = sandbox(self.compression, self.options)?;
        put_through(&source, !self.options.contains(&NO_GTIDS[0]))?;
        if self.compression == SampleCompression::Mixed {
            source.sql(TOGGLE)?;
            // Two checksums in one set of files: the server begins a new one when it changes.
            source.sql("SET GLOBAL binlog_checksum = NONE")?;
            source.sql("CREATE DATABASE again")?;
            source.sql(&TOGGLE.replace("USE mix", "USE again"))?;
        }
        if let Some(replica) = &self.replica {
            let mut options = replica.options.to_vec();
            options.push(("relay-log-purge", "OFF"));
            let mut replica = sandbox(replica.compression, &options)?;
            replica.replicate_from(&source)?;
            replica.wait_for_source(&source)?;
            replica.sql("STOP REPLICA; FLUSH RELAY LOGS")?;
            let relay_logs = replica.relay_logs()?;
            replica.stop()?;
            keep(&replica.binlogs()?, &dir.join("replica"))?;
            keep(&relay_logs, &dir.join("relay"))?;
        }
        if self.crashes {
            source.kill();
        } else {
            source.stop()?;
        }
        keep(&source.binlogs()?, &dir.join("source"))
    }
}

/// Puts all statements through a server, with a new binlog now and then; `gtids` says whether it has GTIDs on.
pub fn put_through(server: &MysqlSandbox, gtids: bool) -> Result<()> {
    server.sql(TRANSACTIONS)?;
    server.sql(TYPES)?;
    server.sql("FLUSH BINARY LOGS")?;
    server.sql(STATEMENTS)?;
    load(server)?;
    server.sql("FLUSH BINARY LOGS")?;
    server.sql("FLUSH BINARY LOGS")?; // one without transactions
    server.sql(XA)?;
    server.sql(XA_AFTER)?;
    server.sql(if gtids { GTIDS } else { NONTRANSACTIONAL })?;
    server.sql("INSERT INTO mix.xa VALUES (99, 'the last transaction')").map(drop)
}

fn load(server: &MysqlSandbox) -> Result<()> {
    // A name without a directory: the server looks in the schema's, and the log holds no path of this machine.
    let file = server.datadir().join("mix/rows.csv");
    // Above 128 KiB, so that a statement's copy takes more than one block.
    let rows: String =
        (0..3000).map(|id| format!("{id},the value of row {id} in a file to load\n")).collect();
    fs::write(&file, rows).at("write", &file)?;
    server.sql(LOAD)?;
    fs::remove_file(&file).at("remove", &file)
}
