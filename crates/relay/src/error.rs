//! What can go wrong between source, disk and replicas.

use std::io;
use std::sync::Arc;

use binlogz_store::storage;
use binlogz_wire::ServerError;

/// ER_CON_COUNT_ERROR: `is_network_error` of the server's rpl_replica.cc has it, ER_SOURCE_FATAL_ERROR_READING_BINLOG ends
/// a replica's receiver for good.
const TOO_MANY_CONNECTIONS: u16 = 1040;
/// ER_UNKNOWN_ERROR: where a statement can't be answered.
pub(crate) const UNKNOWN_ERROR: u16 = 1105;

/// The result of relaying.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why receiving or serving ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source can't be reached, or ended the conversation.
    #[error(transparent)]
    Source(#[from] binlogz_source::Error),
    /// The disk, or what is on it.
    #[error(transparent)]
    Store(#[from] binlogz_store::Error),
    /// A file of the relay's own is not as the relay writes it.
    #[error("{file} in the relay's directory is damaged: found {found}, expected {expected}")]
    Damaged {
        /// Its name.
        file: String,
        /// What stands there, shortened.
        found: String,
        /// What should.
        expected: String,
    },
    /// The source's log is not the one that is kept here.
    #[error("{0}")]
    Lineage(String),
    /// The source's stream does not go on where the kept log ends.
    #[error("{name} at {offset}: the source sends an event from there, expected {expected}")]
    Gap {
        /// The source's file.
        name: String,
        /// Where the event stands.
        offset: u64,
        /// Where the next one should stand.
        expected: String,
    },
    /// Bad bytes of the source's.
    #[error(transparent)]
    Binlog(#[from] binlogz_binlog::Error),
    /// A transaction that can't be expanded.
    #[error(transparent)]
    Payload(#[from] binlogz_payload::Error),
    /// One that can't be brought into a form, for all who wait for it.
    #[error("{0}")]
    Conversion(Arc<Error>),
    /// What is stored can't be read, or brought into a form.
    #[error("{file} {source}")]
    Stored {
        /// The stored file; offsets are its own.
        file: String,
        /// What is wrong there.
        source: Box<Error>,
    },
    /// A client broke the protocol.
    #[error(transparent)]
    Client(#[from] binlogz_wire::Error),
    /// A client went away: nobody's trouble.
    #[error("the client has left: {0}")]
    Left(io::Error),
    /// What is kept is damaged there: what stands before and after it is served.
    #[error("{0}")]
    DamagedLog(String),
    /// A client asked for what can't be served; it is told so.
    #[error("{0}")]
    Refused(String),
    /// Too few replicas have acknowledged what is durable here.
    #[error("not {wanted} replicas have acknowledged within {after:?}")]
    Unacknowledged {
        /// So many are waited for.
        wanted: usize,
        /// So long.
        after: std::time::Duration,
    },
    /// The system gives no thread: too many of them, or too little memory.
    #[error("start the thread {name}: {source}: the limit of processes and threads, or memory, is used up")]
    Thread {
        /// What it was to do.
        name: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A panic: a bug of ours.
    #[error("{name} panicked: {message}")]
    Panicked {
        /// What was being done.
        name: &'static str,
        /// What it said.
        message: String,
    },
    /// What must be done for ever has ended: a bug of ours.
    #[error("{0} ended by itself, which it never should")]
    Ended(&'static str),
    /// The archive at a place.
    #[error("archive {0}: {1}")]
    Archive(String, binlogz_archive::Error),
    /// The system refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried, as in "listen on 127.0.0.1:3307".
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// Characters of a damaged file that an error shows.
const FOUND_MAX: usize = 80;
/// Who keeps the receiving from going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// This machine: it lacks threads, descriptors, memory, room.
    Here,
    /// The source, or the way to it: it can't be reached.
    Unreachable,
    /// The source is there, but does not give its log, or gives what can't be taken.
    Refused,
}

/// Whether the system lacks descriptors or memory: EMFILE, ENFILE, ENOMEM, ENOBUFS.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105))
}

impl Error {
    /// Found where a file of the relay's own should have something else.
    pub(crate) fn damaged(file: &str, found: &str, expected: impl Into<String>) -> Error {
        let shown: String = found.chars().take(FOUND_MAX).collect();
        let more = if shown.len() < found.len() { " …" } else { "" };
        Error::Damaged { file: file.to_owned(), found: format!("{shown:?}{more}"), expected: expected.into() }
    }

    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }

    /// What reading a stored log failed with.
    pub(crate) fn of_stored(source: io::Error) -> Error {
        match source.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(binlogz_store::Error::Unreadable { damage }) => Error::DamagedLog(damage.clone()),
            _ => Error::io("read a stored log")(source),
        }
    }

    pub(crate) fn thread(name: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let name = name.into();
        move |source| Error::Thread { name, source }
    }

    /// What a connection to a client failed with.
    pub(crate) fn of_client(doing: &str, source: io::Error) -> Error {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match source.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset => Error::Left(source),
            _ => Error::Io { doing: doing.into(), source },
        }
    }

    /// Names the stored file, if bad bytes of it are the trouble.
    pub(crate) fn in_stored(self, file: impl FnOnce() -> String) -> Error {
        match self.is_bad_bytes() {
            true => Error::Stored { file: file(), source: Box::new(self) },
            false => self,
        }
    }

    fn is_bad_bytes(&self) -> bool {
        match self {
            Error::Binlog(error) => error.offset().is_some(),
            Error::Payload(error) => error.offset().is_some(),
            Error::Conversion(error) => error.is_bad_bytes(),
            _ => false,
        }
    }

    /// Whose trouble it is, for metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Error::Source(_) => "source",
            Error::Store(_) => "store",
            Error::Damaged { .. } | Error::DamagedLog(_) => "damaged",
            Error::Lineage(_) => "lineage",
            Error::Gap { .. } => "gap",
            Error::Binlog(_) => "binlog",
            Error::Payload(_) => "payload",
            Error::Conversion(error) => error.kind(),
            Error::Stored { source, .. } => source.kind(),
            Error::Client(_) | Error::Left(_) => "client",
            Error::Refused(_) => "refused",
            Error::Unacknowledged { .. } => "replicas",
            Error::Thread { .. } => "thread",
            Error::Panicked { .. } | Error::Ended(_) => "panic",
            Error::Archive(..) => "archive",
            Error::Io { .. } => "io",
        }
    }

    /// Whether trying again can't help: somebody must decide or repair something first.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            // It is repaired with the next connection.
            Error::Store(binlogz_store::Error::Refusing { .. }) => false,
            Error::Store(error) => !error.may_pass(),
            Error::Damaged { .. } | Error::Lineage(_) | Error::Gap { .. } => true,
            _ => self.is_bug(),
        }
    }

    /// Whether it is our own mistake, which comes again.
    pub(crate) fn is_bug(&self) -> bool {
        matches!(self, Error::Panicked { .. } | Error::Ended(_))
    }

    /// Who keeps the receiving from going on, where trying again may help.
    pub(crate) fn hindrance(&self) -> Hindrance {
        match self {
            Error::Thread { .. } | Error::Io { .. } => Hindrance::Here,
            Error::Source(binlogz_source::Error::Connect { source, .. }) if is_exhaustion(source) => {
                Hindrance::Here
            }
            Error::Source(
                binlogz_source::Error::Connect { .. }
                | binlogz_source::Error::Io { .. }
                | binlogz_source::Error::Wire {
                    source: binlogz_wire::Error::Closed { .. } | binlogz_wire::Error::Timeout { .. },
                    ..
                },
            ) => Hindrance::Unreachable,
            _ => Hindrance::Refused,
        }
    }

    /// Whether it is this machine's trouble: another server of the source would not help.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Error::Store(_) | Error::Io { .. } | Error::Payload(binlogz_payload::Error::Io(_)) => true,
            Error::Conversion(error) => error.is_local(),
            _ => false,
        }
    }

    /// Whether it may be gone in a moment, although nobody repairs anything, as when descriptors are used up.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Error::Store(error) => error.is_transient(),
            Error::Io { source, .. } | Error::Payload(binlogz_payload::Error::Io(source)) => {
                storage::is_transient(source)
            }
            Error::Conversion(error) => error.is_transient(),
            _ => false,
        }
    }

    /// What a client is told of it. What may pass in a moment has a code at which replicas connect again. So has all
    /// trouble of this machine's where a statement is answered: a replica's receiver asks some before each dump, and stops
    /// for good at any other error.
    pub(crate) fn told(&self, code: u16) -> ServerError {
        match self.is_transient() || (code == UNKNOWN_ERROR && self.is_local()) {
            true => ServerError {
                code: TOO_MANY_CONNECTIONS,
                sqlstate: Some(*b"08004"),
                message: format!("The relay can't serve this now, and may in a moment: {self}"),
            },
            false => ServerError { code, sqlstate: Some(*b"HY000"), message: self.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_of_this_machine_lets_replicas_connect_again() {
        let broken = || Error::io("read a file")(io::Error::from_raw_os_error(5));
        let exhausted = || Error::io("open a file")(io::Error::from_raw_os_error(24));
        // A replica's receiver asks SELECT @@server_id before it asks for the log, and ends at any other error.
        assert_eq!(broken().told(UNKNOWN_ERROR).code, TOO_MANY_CONNECTIONS);
        assert_eq!(exhausted().told(UNKNOWN_ERROR).code, TOO_MANY_CONNECTIONS);
        assert_eq!(exhausted().told(1236).code, TOO_MANY_CONNECTIONS);
        // What is broken in the log, or not to be had, does not pass.
        assert_eq!(Error::DamagedLog("binlog.000001 is damaged".into()).told(1236).code, 1236);
        assert_eq!(Error::Refused("no such variable".into()).told(UNKNOWN_ERROR).code, UNKNOWN_ERROR);
    }
}
