//! Tables as they were: the live ones, with all later changes taken back by key.
//!
//! ```text
//! logs → pass → touched: of each key that was changed after the moment, the row as it was before its first change there
//! live table ─ without the rows of these keys ─ with the rows as they were → write: SQL, CSV or a log, or a new table
//! ```
//!
//! With a dump instead of the live table we go forward: then the last change of a key before the moment decides (`dump`,
//! `forward`).
//!
//! * `moment` divides the transactions of the logs, `heads` tells which logs may have some after it;
//! * `touched` reads the changes;
//! * `indirect` judges statements that name other tables, `routes` asks the server what leads from one table to another;
//! * `logged_statements` follows a table through DDL after the moment, `create` writes its CREATE TABLE of then;
//! * `restore` does all of it, in its order, for callers that read the logs;
//! * `logged_databases` asks which databases the server logs;
//! * `restriction` says which rows alone are wanted;
//! * `session` asks the server as a whole, `live` for a table, and joins both there, in tables of the session;
//! * `write` writes rows as text, `write_log` as a binary log, whose table maps say what `server_columns` asks.
//!
//! The first change of a key after the moment decides, whatever happened to it later: its image before the change is the
//! row as it was at the moment. So rows are read forward, once, and a transaction that was rolled back does no harm.
//!
//! No lock is needed: a row that no log changed after the moment is the same whenever it is read, and a row that one did
//! change isn't read from the live table. The logs only have to reach beyond the moment at which it is read.

mod create;
mod dump;
mod forward;
mod heads;
mod indirect;
mod key_touches;
mod live;
mod logged_databases;
mod logged_statements;
mod moment;
mod restore;
mod restriction;
mod routes;
mod server_columns;
mod session;
mod touched;
mod touched_rows;
mod write;
mod write_log;

use std::io;

use binlogz_source::Error as ServerError;

pub use dump::{DumpPlace, DumpedTable};
pub use forward::Forward;
pub use heads::{HeadError, LOG_BEGIN, LogHead, from_last_head, server_logs};
pub use key_touches::WantedKeyValues;
pub use live::LiveTable;
pub use logged_databases::LoggedDatabases;
pub use logged_statements::LoggedStatements;
pub use moment::{PastMoment, TableMoment};
pub use restore::{CascadeDoubts, RestoreSteps, RestoredTables, restore};
pub use restriction::{ColumnValue, ColumnValues};
pub use routes::{CascadingParent, TableRoutes};
pub use session::PastSession;
pub use touched::{TouchedKeys, TouchedOutcome};
pub use touched_rows::TouchedRows;
pub use write::PastFormat;
pub use write_log::{EmptyTables, TableColumnsNow};

/// A reason for which a table can't be had as it was.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// The server, or the way to it.
    #[error("{doing}: {source}")]
    Server {
        /// The action that failed.
        doing: String,
        /// The server's error.
        source: Box<ServerError>,
    },
    /// The table as it was can't be worked out from this table, its changes or these logs.
    #[error("{0}")]
    Refused(String),
    /// A table's rows can't be told apart, since it has no key, or had none.
    #[error("{0}")]
    Keyless(String),
    /// The server has no such table, or the account may not see it.
    #[error("{0}")]
    Absent(String),
    /// The table as it was can't be worked out from this dump.
    #[error("{0}")]
    Dump(String),
    /// The logs don't have the moment.
    #[error("{0}")]
    Unmet(String),
    /// A log can't be read.
    #[error(transparent)]
    Log(#[from] crate::pass::Error),
    /// A temporary file.
    #[error("temporary file: {0}")]
    Temporary(#[source] io::Error),
    /// The output.
    #[error(transparent)]
    Output(io::Error),
}

impl PastError {
    fn server(doing: impl Into<String>) -> impl FnOnce(ServerError) -> Self {
        let doing = doing.into();
        move |source| PastError::Server { doing, source: Box::new(source) }
    }
}
