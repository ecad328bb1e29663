//! The base of binlogz's tests: real servers, workloads, corpus, mutations.
//!
//! * [`tool`] finds (and installs) MySQL, MariaDB, sysbench and zstd in prefixes of their own, or skips a test;
//! * [`server`] runs sandboxed servers from them, with replicas;
//! * [`cdc`] runs a change-data-capture client against them;
//! * [`s3`] runs an S3 server, and a proxy that treats its requests as networks do;
//! * [`workload`] makes binlogs of the five workloads that the public studies measure;
//! * [`altered_tables`] logs the same changes with and without names, between random ALTERs;
//! * [`mixed`] makes binlogs of everything else that a server writes;
//! * [`corpus`] has the real binlogs that the repository ships, and [`real::every_binlog`] all of these;
//! * [`ordinary`] is a server that nobody tuned, with the shop that the guides work on;
//! * [`builder`] builds logs by hand: of servers that are not available here, and with any false claim in
//!   them;
//! * [`spliced`] puts events into real logs, and takes others out;
//! * [`mutate`] damages them, from a seed that is printed;
//! * [`disk`] is a disk that loses, tears and refuses the writes of a store;
//! * [`faults`] makes the system calls of a real process fail;
//! * [`texts`] finds the texts of rows again, in files that should not have them;
//! * [`assert_golden`] compares what a test made with the file of before;
//! * [`setting`](setting()) says how long a test is, [`memory`] how much memory a process took.
//!
//! Everything expensive to make is kept in a [`cache`] outside the checkout. A test that needs an unavailable
//! program says `SKIPPED` aloud and passes, unless `BINLOGZ_REQUIRE_SERVERS=1`; see [`require_tool!`].

// Any error here is a failed test.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::host_endian_bytes)]

pub mod altered_tables;
pub mod browser;
pub mod builder;
pub mod corpus;
pub mod disk;
pub mod faults;
mod golden;
pub mod memory;
pub mod mixed;
pub mod mutate;
pub mod ordinary;
pub mod real;
mod real_binlog;
pub mod s3;
mod setting;
pub mod spliced;
pub mod texts;
pub mod tool;
pub mod workload;

pub use binlogz_sandbox::{Error, IoContext, Result, cache, cdc, random, server};
pub use golden::assert_golden;
pub use real_binlog::{RealBinlog, SampleCompression};
pub use server::{MariadbSandbox, Mysql56Sandbox, MysqlSandbox, SandboxServer};
pub use setting::setting;
pub use tool::{InstalledTool, Tool};
