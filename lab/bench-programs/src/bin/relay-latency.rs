//! Measures how long after its commit a transaction reaches a replica: straight from the source, and by way of the relay,
//! at the same time, of the same transactions.
//!
//! usage: `relay-latency BINLOGZ [TRANSACTIONS_A_SECOND] [SECONDS] [RELAY_OPTION…]`
//!
//! sysbench's oltp_insert is the load, on a private mysqld with `sync_binlog=1`, whose data is in the temporary
//! directory. A replica here is a program that receives the log as replicas do. It measures the time from the commit that
//! the GTID event tells (`immediate_commit_timestamp`) until the transaction's last event has arrived, by the same clock.

#[path = "../arrivals.rs"]
mod arrivals;

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use arrivals::{ArrivalsFailure, arrivals, report};
use binlogz_binlog::gtid::GtidSet;
use binlogz_testkit::workload::sysbench;
use binlogz_testkit::{MysqlSandbox, Tool};

/// The source's account for replicas.
const ACCOUNT: &str = "repl";
/// Connections of the load.
const THREADS: &str = "--threads=16";

fn main() -> Result<(), ArrivalsFailure> {
    let mut args = env::args().skip(1);
    let binlogz = args
        .next()
        .ok_or("usage: relay-latency BINLOGZ [TRANSACTIONS_A_SECOND] [SECONDS] [RELAY_OPTION…]")?;
    let rate = args.next().unwrap_or("1000".into());
    let seconds = args.next().unwrap_or("20".into());
    let options: Vec<String> = args.collect();

    let folder = tempfile::tempdir()?;
    let source = Tool::Mysql.find()?.sandbox().start()?;
    source.sql("CREATE DATABASE sbtest")?;
    sysbench(&source, &["oltp_insert", "--tables=1", "--table-size=1000", "prepare"])?;
    let dir = folder.path().join("kept");
    let mut relay = Relay::start(&binlogz, &source, &dir, &folder.path().join("relay.log"), &options)?;
    let port = relay.port()?;

    let before: GtidSet = source.gtid_executed()?.parse()?;
    // The number of the last transaction, once the load has ended.
    let last = AtomicU64::new(0);
    let (direct, relayed) = thread::scope(|scope| -> Result<_, ArrivalsFailure> {
        let direct = scope.spawn(|| arrivals((ACCOUNT, ACCOUNT), source.port(), 1001, &before, &last));
        let relayed = scope.spawn(|| arrivals((ACCOUNT, ACCOUNT), port, 1002, &before, &last));
        let load = ["oltp_insert", "--tables=1", "--table-size=1000", THREADS];
        let paced = [format!("--rate={rate}"), format!("--time={seconds}"), "run".to_owned()];
        let all: Vec<&str> = load.into_iter().chain(paced.iter().map(String::as_str)).collect();
        let loaded = sysbench(&source, &all);
        let executed: GtidSet = source.gtid_executed()?.parse()?;
        let end =
            executed.iter().flat_map(|(_, intervals)| intervals.iter()).map(|interval| interval.end()).max();
        last.store(end.unwrap_or(1), Ordering::Release);
        // Those who wait see it.
        source.sql("CREATE DATABASE the_end")?;
        loaded?;
        let join =
            |thread: thread::ScopedJoinHandle<'_, _>| thread.join().map_err(|_| "a reader panicked")?;
        Ok((join(direct)?, join(relayed)?))
    })?;

    println!("{} transactions, {rate} a second wanted", direct.len());
    println!("{:<28} {:>9} {:>9} {:>9} {:>9}", "milliseconds after commit", "p50", "p95", "p99", "largest");
    report("from the source", direct.values().copied());
    report("through the relay", relayed.values().copied());
    let both = direct.iter().filter_map(|(number, at)| Some(relayed.get(number)? - at));
    report("relay behind source", both);
    Ok(())
}

/// A relay that follows the source.
struct Relay {
    child: Child,
    log: std::path::PathBuf,
}

impl Relay {
    fn start(
        binlogz: &str,
        source: &MysqlSandbox,
        dir: &std::path::Path,
        log: &std::path::Path,
        options: &[String],
    ) -> Result<Relay, ArrivalsFailure> {
        let url = format!("mysql://{ACCOUNT}@127.0.0.1:{}", source.port());
        let child = Command::new(binlogz)
            .args(["relay", "run", "--listen", "127.0.0.1:0", "--source", &url, "--dir"])
            .arg(dir)
            .args(options)
            .env("MYSQL_PWD", ACCOUNT)
            .stdout(Stdio::null())
            .stderr(fs::File::create(log)?)
            .spawn()?;
        Ok(Relay { child, log: log.to_owned() })
    }

    /// Where it listens, once it receives.
    fn port(&mut self) -> Result<u16, ArrivalsFailure> {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let said = fs::read_to_string(&self.log)?;
            let port =
                said.lines().find_map(|line| line.split_once("listening on 127.0.0.1:")?.1.parse().ok());
            if let Some(port) = port.filter(|_| said.contains("receiving ")) {
                return Ok(port);
            }
            if Instant::now() > until || self.child.try_wait()?.is_some() {
                return Err(format!("the relay did not begin: {said}").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
