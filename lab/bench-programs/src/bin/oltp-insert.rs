//! Runs sysbench's oltp_insert against a real mysqld for the study that `binlogz bench commit` repeats on the log
//! alone: inserts a second by connections and flush policy.
//!
//! usage: `oltp-insert [SECONDS] [CONNECTIONS,…]`
//!
//! The server's data is in the temporary directory ($TMPDIR): the disk to measure. The binary log is synced as InnoDB's
//! redo log is: at each commit under policy 1, never by the server under 0 and 2. Connections beyond what the
//! system's limits allow are left out.

use std::process::ExitCode;

use binlogz_testkit::workload::sysbench;
use binlogz_testkit::{Error, MysqlSandbox, Result, Tool};

const SECONDS: &str = "5";
const CONNECTIONS: &str = "1,4,5,10,50,100,200,500,1000";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().unwrap_or(SECONDS.to_owned());
    let connections = args.next().unwrap_or(CONNECTIONS.to_owned());
    match run(&seconds, &connections) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oltp-insert: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(seconds: &str, connections: &str) -> Result<()> {
    println!("mysqld's oltp_insert\npolicy  compression  connections  inserts_per_second");
    for (compression, level) in [("off", None), ("3", Some(3))] {
        let mut builder = Tool::Mysql.find()?.sandbox().option("max-connections", "6000");
        if let Some(level) = level {
            builder = builder.compression(level);
        }
        let server = builder.start()?;
        server.sql("CREATE DATABASE sbtest")?;
        sysbench(&server, &["oltp_insert", "--tables=1", "--table-size=1000", "prepare"])?;
        for policy in ["0", "1", "2"] {
            let sync = if policy == "1" { "1" } else { "0" };
            server.sql(&format!(
                "SET GLOBAL innodb_flush_log_at_trx_commit = {policy}; SET GLOBAL sync_binlog = {sync}"
            ))?;
            for count in connections.split(',') {
                let rate = inserts(&server, count, seconds)?;
                println!("{policy:>6}  {compression:>11}  {count:>11}  {rate:>18}");
            }
        }
    }
    Ok(())
}

/// Inserts a second, as sysbench prints them.
fn inserts(server: &MysqlSandbox, connections: &str, seconds: &str) -> Result<String> {
    let args = [
        "oltp_insert",
        "--tables=1",
        "--table-size=1000",
        &format!("--threads={connections}"),
        &format!("--time={seconds}"),
        "run",
    ];
    // "    transactions:                        12345  (2468.12 per sec.)"
    let said = sysbench(server, &args)?;
    let line = said.lines().find(|line| line.trim_start().starts_with("transactions:"));
    let rate = line.and_then(|line| line.split_once('(')).and_then(|(_, rate)| rate.split_once(" per sec"));
    rate.map(|(rate, _)| rate.to_owned()).ok_or_else(|| Error::Failed(format!("no rate in {said}")))
}
