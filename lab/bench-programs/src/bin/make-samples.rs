//! Makes the real binlogs that the repository ships: `samples/`, and in the frozen corpus the files with one large
//! and one small payload of every level. Run through `scripts/make-samples.sh`.
//!
//! usage: make-samples SAMPLES_DIR CORPUS_DIR

#![allow(clippy::indexing_slicing)] // a tool of ours: a panic tells enough

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use binlogz_testkit::random::Random;
use binlogz_testkit::workload::Workload;
use binlogz_testkit::{IoContext, MysqlSandbox, Result, Tool, mixed};

/// About 900 employees and 300 rows in each of sysbench's tables.
const SCALE: f64 = 0.003;
/// Above the 1 MiB at which zstd's parameters, and the server's way of feeding it, are those of large inputs.
const LARGE_BYTES: usize = 1_200_000;
const SMALL_BYTES: usize = 2_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [samples, corpus] = args.as_slice() else {
        eprintln!("usage: make-samples SAMPLES_DIR CORPUS_DIR");
        return ExitCode::FAILURE;
    };
    match make(Path::new(samples), Path::new(corpus)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("make-samples: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(samples: &Path, corpus: &Path) -> Result<()> {
    let sandbox = || Tool::Mysql.find().map(|mysql| mysql.sandbox().option("server-id", "1"));
    keep(everything(sandbox()?.start()?)?, &samples.join("plain"), "binlog")?;
    keep(everything(sandbox()?.compression(3).start()?)?, &samples.join("compressed"), "binlog")?;
    keep(every_level(sandbox()?.start()?)?, corpus, "levels")
}

/// The five workloads, a file each, then the mix.
fn everything(mut server: MysqlSandbox) -> Result<MysqlSandbox> {
    for workload in Workload::ALL {
        workload.run(&server, SCALE)?;
        server.flush_binary_logs()?;
    }
    mixed::put_through(&server, true)?;
    server.stop()?;
    Ok(server)
}

/// Two files: a large transaction at each level from 1 to 22, then a small one at each.
fn every_level(mut server: MysqlSandbox) -> Result<MysqlSandbox> {
    server.sql(
        "CREATE DATABASE levels; CREATE TABLE levels.large (v TEXT); CREATE TABLE levels.small (v TEXT)",
    )?;
    let mut random = Random::new(1);
    let sentences: Vec<String> = (0..64).map(|_| sentence(&mut random)).collect();
    for (table, bytes) in [("large", LARGE_BYTES), ("small", SMALL_BYTES)] {
        server.sql("FLUSH BINARY LOGS")?;
        for level in 1..=22 {
            server.run_client(|stdin| {
                writeln!(stdin, "SET SESSION binlog_transaction_compression_level_zstd = {level};")?;
                writeln!(stdin, "SET SESSION binlog_transaction_compression = ON;")?;
                writeln!(stdin, "INSERT INTO levels.{table} VALUES ('level {level}')")?;
                let mut written = 0;
                while written < bytes {
                    // Repeated far and near, whole and cut, so that levels find different matches.
                    let sentence = &sentences[random.below(sentences.len())];
                    let cut = if random.below(12) == 0 { random.below(sentence.len()) } else { 0 };
                    writeln!(stdin, ", ('{}')", &sentence[cut..])?;
                    written += sentence.len() - cut;
                }
                writeln!(stdin, ";")
            })?;
        }
    }
    server.stop()?;
    Ok(server)
}

/// 400 letters and spaces.
fn sentence(random: &mut Random) -> String {
    (0..400).map(|_| char::from(b"etaoin shrdlucmfw"[random.below(17)])).collect()
}

/// Moves a server's binlogs to a directory, in the place of those that are there under the same name.
fn keep(server: MysqlSandbox, dir: &Path, name: &str) -> Result<()> {
    fs::create_dir_all(dir).at("create", dir)?;
    for binlog in server.binlogs()? {
        let number = binlog.extension().unwrap_or_default().to_string_lossy();
        let kept = dir.join(format!("{name}.{number}"));
        fs::copy(&binlog, &kept).at("copy", &binlog)?;
        println!("{}", kept.display());
    }
    Ok(())
}
