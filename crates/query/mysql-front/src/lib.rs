//! SQL over binary logs for MySQL's own clients: the mysql client, Connector/J, PyMySQL and whatever else speaks MySQL's
//! protocol.
//!
//! ```text
//! serve        connections: greeting, login, TLS, commands        bytes → statements → workers → bytes
//! variables    system variables: their values, which may be set
//! session      what a worker is told of a client's session
//! worker       a worker's half                                    statement → dialect → query::Queries → rows
//! dialect      MySQL's statements as the query engine takes them
//! system       information_schema and what SHOW lists
//! rows         Arrow's batches as MySQL's rows
//! values       values of a prepared statement's parameters
//! errors       MySQL's numbers
//! ```
//!
//! The packets, logins and compression are those of `wire`, by which the relay serves replicas. Accounts, limits and worker
//! processes are those of `query-server`, which Flight SQL has, too. Clients can only read.

mod dialect;
mod errors;
mod rows;
mod serve;
mod session;
mod system;
mod values;
mod variables;
mod worker;

pub use serve::serve;
pub use worker::MysqlAnswers;
