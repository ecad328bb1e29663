//! What runs on private servers: the workloads of the public studies, and a change-data-capture client. `bench --sandbox` and
//! binlogz's tests use them.
//!
//! * [`workload`] has the five workloads that the public studies measure, for any server;
//! * [`cdc`] runs a change-data-capture client against servers;
//! * [`random`] numbers from a seed.
//!
//! The servers themselves are `binlogz-private-server`'s, which has all its names here too. Nothing here is specific to
//! tests: the testkit skips them.

pub mod cdc;
pub mod random;
pub mod workload;

pub use binlogz_private_server::{
    Error, InstalledTool, IoContext, MariadbSandbox, Mysql56Sandbox, MysqlBuilder, MysqlSandbox,
    ReplicaStart, Result, SandboxServer, Tool, cache, server, tool,
};
