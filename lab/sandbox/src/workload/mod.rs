//! The five workloads that the feature's public studies measure, at any scale, for any server.
//!
//! Order and options are those of the public figures: at scale 1 the binlogs have the same sizes.

mod employees;
mod mersenne;
mod sysbench;

use std::fs;
use std::io::{self, Write};
use std::ops::Deref;

pub use sysbench::sysbench;

use crate::{Error, Result, SandboxServer};

/// A server that a workload runs on.
pub trait WorkloadTarget {
    /// Runs the statements that `write` produces, each ended by a semicolon, in one session. No text in them has a
    /// semicolon.
    fn statements(&self, write: &(dyn Fn(&mut dyn Write) -> io::Result<()> + Sync)) -> Result<()>;

    /// Runs `sysbench` with these arguments against schema `sbtest`; returns its output.
    fn sysbench(&self, args: &[&str]) -> Result<String>;
}

impl<S: Deref<Target = SandboxServer>> WorkloadTarget for S {
    fn statements(&self, write: &(dyn Fn(&mut dyn Write) -> io::Result<()> + Sync)) -> Result<()> {
        self.run_client(write).map(drop)
    }

    fn sysbench(&self, args: &[&str]) -> Result<String> {
        sysbench(self, args)
    }
}

/// Rows of each of sysbench's four tables at scale 1, and single-row deletes.
const TABLE_ROWS: f64 = 100_000.0;
/// Transactions of sysbench's run at scale 1.
const RUN_EVENTS: f64 = 15_000.0;

/// One of the five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Four tables loaded with multi-row INSERTs of about 1 MB: many large transactions.
    Employees,
    /// One UPDATE of every salary: one transaction.
    BulkUpdate,
    /// sysbench's tables loaded: many large transactions of digits.
    SysbenchPrepare,
    /// sysbench's OLTP transactions of two threads: many small ones.
    SysbenchRun,
    /// Single-row deletes, each its own transaction.
    Delete,
}

impl Workload {
    /// All five, in the order they run in.
    pub const ALL: [Workload; 5] = [
        Workload::Employees,
        Workload::BulkUpdate,
        Workload::SysbenchPrepare,
        Workload::SysbenchRun,
        Workload::Delete,
    ];

    /// The workload's name in file names and tables.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Employees => "employees",
            Workload::BulkUpdate => "bulk-update",
            Workload::SysbenchPrepare => "sysbench-prepare",
            Workload::SysbenchRun => "sysbench-run",
            Workload::Delete => "delete",
        }
    }

    /// Runs it on a server, at a scale; each needs the results of those before it.
    pub fn run(self, server: &impl WorkloadTarget, scale: f64) -> Result<()> {
        let rows = scaled(TABLE_ROWS, scale);
        let table_size = format!("--table-size={rows}");
        let oltp = ["oltp_read_write", "--tables=4", &table_size, "--rand-seed=7"];
        match self {
            Workload::Employees => {
                let dir = tempfile::tempdir()
                    .map_err(|error| Error::Io("create temporary directory".into(), error))?;
                let count = scaled(f64::from(employees::EMPLOYEES), scale);
                server.statements(&|out| out.write_all(employees::SCHEMA.as_bytes()))?;
                for file in employees::generate(count, dir.path())? {
                    server.statements(&|out| {
                        out.write_all(b"USE employees;\n")?;
                        io::copy(&mut fs::File::open(&file)?, out).map(drop)
                    })?;
                }
            }
            Workload::BulkUpdate => {
                server
                    .statements(&|out| writeln!(out, "UPDATE employees.salaries SET salary = salary + 1;"))?;
            }
            Workload::SysbenchPrepare => {
                server.statements(&|out| writeln!(out, "CREATE DATABASE sbtest;"))?;
                server.sysbench(&[&oltp[..], &["--threads=1", "prepare"]].concat())?;
            }
            Workload::SysbenchRun => {
                let events = format!("--events={}", scaled(RUN_EVENTS, scale));
                server.sysbench(&[&oltp[..], &["--threads=2", "--time=0", &events, "run"]].concat())?;
            }
            Workload::Delete => {
                server.statements(&|out| {
                    (1..=rows).try_for_each(|id| writeln!(out, "DELETE FROM sbtest.sbtest1 WHERE id = {id};"))
                })?;
            }
        }
        Ok(())
    }
}

/// The count at a scale, at least one.
pub fn scaled(count: f64, scale: f64) -> u32 {
    ((count * scale).round() as u32).max(1)
}
