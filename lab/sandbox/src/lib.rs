//! Private servers, apart from the system's own: `bench --sandbox` runs its experiments on them, and binlogz's tests run
//! on them.
//!
//! * [`tool`] finds MySQL and MariaDB of several versions, sysbench, zstd and a change-data-capture client in prefixes of their own;
//! * [`server`] runs sandboxed servers from them, with replicas;
//! * [`cdc`] runs a change-data-capture client against them;
//! * [`random`] numbers from a seed;
//! * [`workload`] has the five workloads that the public studies measure, for any server.
//!
//! Everything expensive to make is kept in a [`cache`] outside the checkout. Nothing here is specific to
//! tests: the testkit skips them.

pub mod cache;
pub mod cdc;
mod error;
pub mod random;
pub mod server;
pub mod tool;
pub mod workload;

pub use error::{Error, IoContext, Result};
pub use server::{MariadbSandbox, Mysql56Sandbox, MysqlBuilder, MysqlSandbox, ReplicaStart, SandboxServer};
pub use tool::{InstalledTool, Tool};
