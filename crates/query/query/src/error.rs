//! Why a query ended, as one line for people.

use std::any::Any;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use tokio::task::JoinError;

use crate::moment_name::written;

/// Why a query ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reader of the output is gone.
    #[error("the reader of the output is gone")]
    ClosedPipe,
    /// An input can't be read; the line names it.
    #[error("{0}")]
    Log(String),
    /// The folder that is exported to can't be read or written, or holds something else; the line names it.
    #[error("{0}")]
    Target(String),
    /// The statement is wrong, or asks for what there is not.
    #[error("{0}")]
    Sql(String),
    /// The query needs more memory than it may have.
    #[error("the query needs more than the {limit} MiB of --memory: {what}")]
    Memory {
        /// The limit.
        limit: usize,
        /// The operator that asked for more.
        what: String,
    },
    /// A fault of this program or of its libraries.
    #[error("a fault in the program, which ended the query: {0}")]
    Fault(String),
    /// It was asked to stop.
    #[error("the query was stopped")]
    Stopped,
    /// Temporary files can't be written or read.
    #[error("temporary files, in the folder that TMPDIR names: {0}")]
    Temporary(String),
    /// The output can't be written.
    #[error("write: {0}")]
    Output(std::io::Error),
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An input that can't be read, on its way through DataFusion.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct LogError(pub(crate) String);

impl From<LogError> for DataFusionError {
    fn from(error: LogError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

impl Error {
    /// Why a task has no result.
    pub(crate) fn of_task(error: JoinError) -> Self {
        match error.try_into_panic() {
            Ok(panic) => Error::of_panic(panic.as_ref()),
            Err(_) => Error::Stopped,
        }
    }

    /// The error of a panic.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        Error::Fault(one_line(panic_text(panic)))
    }

    /// The error that DataFusion ended with; `memory` is the limit it had, in bytes.
    pub(crate) fn of(error: &DataFusionError, memory: usize) -> Self {
        let root = error.find_root();
        match root {
            DataFusionError::External(other) => Error::Log(one_line(&other.to_string())),
            DataFusionError::ResourcesExhausted(what) => {
                Error::Memory { limit: memory >> 20, what: one_line(what) }
            }
            DataFusionError::ExecutionJoin(error) if error.is_panic() => {
                Error::Fault(one_line(&error.to_string()))
            }
            DataFusionError::IoError(error) => Error::Temporary(one_line(&error.to_string())),
            DataFusionError::ArrowError(error, _) if let ArrowError::IoError(_, error) = error.as_ref() => {
                Error::Temporary(one_line(&error.to_string()))
            }
            DataFusionError::ArrowError(error, _) => Error::Sql(one_line(&error.to_string())),
            DataFusionError::SQL(parser, _) => Error::Sql(one_line(&parser.to_string())),
            DataFusionError::Plan(what) if let Some(table) = unknown_table(what) => Error::Sql(format!(
                "there is no table {table}, expected transactions, changes, events, or one that SHOW TABLES lists"
            )),
            DataFusionError::Plan(what)
            | DataFusionError::NotImplemented(what)
            | DataFusionError::Execution(what)
            | DataFusionError::Configuration(what) => Error::Sql(one_line(what)),
            other => Error::Sql(one_line(&other.to_string())),
        }
    }
}

/// The message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Error::ClosedPipe,
            _ => Error::Output(error),
        }
    }
}

/// The table that DataFusion did not find, without the catalog's name.
fn unknown_table(what: &str) -> Option<String> {
    let name = what.strip_prefix("table '")?.strip_suffix("' not found")?;
    Some(written(name.strip_prefix("binlogz.").unwrap_or(name)))
}

/// Text without line ends; DataFusion's help on many lines is cut.
fn one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.by_ref().take(4).collect::<Vec<_>>().join(" ")
}
