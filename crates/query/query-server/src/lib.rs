//! The common half of servers of SQL over binary logs, whatever protocol their clients speak.
//!
//! ```text
//! protocol_server  what the server of a protocol is given  address, accounts, what all share → listener
//! connections  how many, and how long one may be without a session
//! accounts     names and passwords
//! logins       how fast passwords can be guessed             account, address → when it is compared
//! tls          the certificate, given or made here
//! workers      processes that plan and run statements, each ended with its own
//! frames       what they say to each other                   requests, replies ↔ bytes
//! worker       such a process                                statement → WorkerProtocol → messages
//! prepared_room  how many bytes prepared statements may have
//! refusal      why a statement has no answer
//! ```
//!
//! No statement is parsed, planned or run in the process that serves, so a statement that breaks its process harms no other.
//! All share one limit of memory. A protocol has two halves: its server here asks [`Workers`], and its [`WorkerProtocol`] there
//! answers. This crate passes on their bytes and doesn't know what they mean.

mod accounts;
mod connections;
mod frames;
mod logins;
mod prepared_room;
mod protocol_server;
mod refusal;
mod tls;
mod worker;
mod workers;

use std::fmt::Display;
use std::sync::Arc;

pub use accounts::QueryAccounts;
pub use connections::{GuardedBytes, OpenConnections, QueryConnection, QueryListener};
pub use frames::{AskedStatement, sized};
pub use logins::Logins;
pub use prepared_room::{ChargedBytes, PreparedBytes, PreparedRoom};
pub use protocol_server::ProtocolServer;
pub use refusal::{Blame, StatementRefusal};
pub use tls::{TLS_HANDSHAKE_TIME, Tls};
pub use worker::{
    AnswerFuture, ROWS_PATIENCE, StatementWork, WorkerOutput, WorkerProtocol, WorkerQuestions, questions,
    work,
};
pub use workers::{AccountLogs, RowMessages, StatementLimits, WorkerCommand, Workers};

/// Before a login is denied, however many came before.
pub const DENIAL: std::time::Duration = std::time::Duration::from_secs(1);

/// Takes lines about what happened.
pub type TellLine = Arc<dyn Fn(&str) + Send + Sync>;

/// Why a server ended.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct QueryServerError(String);

impl QueryServerError {
    /// A line.
    pub fn new(line: impl Into<String>) -> Self {
        QueryServerError(line.into())
    }

    /// What failed, and why.
    pub fn of(what: &dyn Display, error: &dyn Display) -> Self {
        QueryServerError(format!("{what}: {error}"))
    }
}
