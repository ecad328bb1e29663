//! Private servers, apart from the system's own: `recover --verify` restores into one, `bench --sandbox` runs its experiments
//! on them, and binlogz's tests run on them.
//!
//! * [`tool`] finds MySQL and MariaDB of several versions, and programs that tests need, in prefixes of their own;
//! * [`server`] runs sandboxed servers from them, with replicas.
//!
//! Everything expensive to make is kept in a [`cache`] outside the checkout. The workloads that run on them are
//! `binlogz-sandbox`'s.

pub mod cache;
mod error;
pub mod server;
pub mod tool;

pub use error::{Error, IoContext, Result};
pub use server::{MariadbSandbox, Mysql56Sandbox, MysqlBuilder, MysqlSandbox, ReplicaStart, SandboxServer};
pub use tool::{InstalledTool, Tool};
