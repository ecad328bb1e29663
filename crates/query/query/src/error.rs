//! Why a query ended, as one line for people.

use std::any::Any;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use tokio::task::JoinError;

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
            _ if is_of_lost_executor(error) => Error::Log(LOST_EXECUTOR.to_owned()),
            DataFusionError::External(other) => Error::Log(one_line(&other.to_string())),
            DataFusionError::ResourcesExhausted(what) => {
                Error::Memory { limit: memory >> 20, what: one_line(what) }
            }
            DataFusionError::Execution(what) if log_error_in(what).is_some() => {
                Error::Log(one_line(&log_error_in(what).unwrap_or_default()))
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

/// The error of a log that an executor of a cluster ended with: it comes as Rust shows it to developers.
fn log_error_in(told: &str) -> Option<String> {
    let (_, quoted) = told.split_once("LogError(\"")?;
    let mut line = String::new();
    let mut rest = quoted.chars();
    loop {
        match rest.next()? {
            '"' => return Some(line),
            '\\' => line.push(rest.next()?),
            other => line.push(other),
        }
    }
}

/// The message to users when executors were lost too often, or after the first rows.
const LOST_EXECUTOR: &str =
    "the cluster lost executors, and with them a part of the answer: repeat the query";
/// How Ballista says that a result can't be fetched: the client, and the scheduler of a stage that needs it.
const FETCH_FAILED: [&str; 2] =
    ["Shuffle fetch partition error from Executor", " times, most recent failure reason: "];

/// Whether Ballista says that the scheduler ended the query, or that a result is gone with the executor that had it.
pub(crate) fn is_of_lost_executor(error: &DataFusionError) -> bool {
    let is_of_fetch = |what: &str| FETCH_FAILED.iter().any(|begin| what.contains(begin));
    match error.find_root() {
        DataFusionError::Execution(what) if what.starts_with("Job ") => {
            what.ends_with("failed: Cancelled") || is_of_fetch(what)
        }
        DataFusionError::External(other) => is_of_fetch(&other.to_string()),
        _ => false,
    }
}

/// The table that DataFusion did not find, without the catalog's name.
fn unknown_table(what: &str) -> Option<&str> {
    let name = what.strip_prefix("table '")?.strip_suffix("' not found")?;
    Some(name.strip_prefix("binlogz.").unwrap_or(name))
}

/// Text without line ends; DataFusion's help on many lines is cut.
fn one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.by_ref().take(4).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_of_an_executor_is_told_from_other_errors() {
        // As Ballista 55.0 says it.
        for (told, expected) in [
            ("Job 038GW7WRVM000 failed: Cancelled", true),
            (
                "Job 1 failed: Job failed due to stage 3 failed: Stage 3 has failed 1 times, most recent failure reason: \"Error\"\n",
                true,
            ),
            ("Job 1 failed: Job failed due to stage 2 failed: LogError(\"a.000001: damaged\")", false),
            (
                "Job 1 failed: Task 0 in Stage 2 failed 4 times, fail the stage, most recent failure reason: \"a\"",
                false,
            ),
            ("Cancelled", false),
        ] {
            assert_eq!(is_of_lost_executor(&DataFusionError::Execution(told.into())), expected, "{told}");
        }
        let fetch =
            "Shuffle fetch partition error from Executor 1, map_stage 2, map_partition 3, error desc: gone";
        assert!(is_of_lost_executor(&DataFusionError::External(fetch.into())));
        assert!(!is_of_lost_executor(&DataFusionError::External("a.000001: damaged".into())));
    }
}
