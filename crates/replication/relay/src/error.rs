//! Errors between source, disk and replicas.

use std::io;
use std::sync::Arc;

use binlogz_store::is_transient;
use binlogz_wire::ServerError;

/// ER_CON_COUNT_ERROR: `is_network_error` in the server's rpl_replica.cc includes it, so a replica retries.
/// ER_SOURCE_FATAL_ERROR_READING_BINLOG ends a replica's receiver for good.
const TOO_MANY_CONNECTIONS: u16 = 1040;
/// ER_UNKNOWN_ERROR: a statement can't be answered.
pub(crate) const UNKNOWN_ERROR: u16 = 1105;

/// The result of relaying.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why receiving or serving ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source can't be reached, or closed the connection.
    #[error(transparent)]
    Source(#[from] binlogz_source::Error),
    /// The disk failed, or its contents are bad.
    #[error(transparent)]
    Store(#[from] binlogz_store::Error),
    /// One of the relay's own files has unexpected contents.
    #[error("{file} in the relay's directory is damaged: found {found}, expected {expected}")]
    Damaged {
        /// The file's name.
        file: String,
        /// The contents found, shortened.
        found: String,
        /// The contents expected.
        expected: String,
    },
    /// One of the relay's own files is of a version that this relay does not know.
    #[error(
        "{file} in the relay's directory: format version {found}, expected version {known}: another version of binlogz wrote it"
    )]
    Version {
        /// The file's name.
        file: String,
        /// The file's format version.
        found: u32,
        /// The version that is known here.
        known: u32,
    },
    /// The source's log is not the one stored here.
    #[error("{0}")]
    Lineage(String),
    /// The source is a server that the relay can't follow.
    #[error("{0}")]
    Unfollowable(String),
    /// The source's stream does not continue where the stored log ends.
    #[error("{name} at {offset}: the source sends an event from there, expected {expected}")]
    Gap {
        /// The source's file.
        name: String,
        /// The event's offset.
        offset: u64,
        /// The expected position of the next event.
        expected: String,
    },
    /// Bad bytes from the source.
    #[error(transparent)]
    Binlog(#[from] binlogz_binlog::Error),
    /// A transaction that can't be expanded.
    #[error(transparent)]
    Payload(#[from] binlogz_payload::Error),
    /// A transaction that can't be converted to a form; shared with all readers waiting for it.
    #[error("{0}")]
    Conversion(Arc<Error>),
    /// Stored data can't be read or converted to a form.
    #[error("{file} {source}")]
    Stored {
        /// The stored file, to which offsets refer.
        file: String,
        /// The error there.
        source: Box<Error>,
    },
    /// A client broke the protocol.
    #[error(transparent)]
    Client(#[from] binlogz_wire::Error),
    /// A client disconnected: not an error of ours.
    #[error("the client has left: {0}")]
    Left(io::Error),
    /// A connection to a client failed.
    #[error("{doing}: {source}")]
    Connection {
        /// The attempted operation.
        doing: String,
        /// The system's error, or that of TLS.
        source: io::Error,
    },
    /// A client neither read nor said anything for longer than it may.
    #[error("{doing}: the client took too long")]
    Slow {
        /// The attempted operation.
        doing: String,
    },
    /// The stored log is damaged there; what precedes and follows the damage is served.
    #[error("{0}")]
    DamagedLog(String),
    /// A client's request can't be served; the client gets the reason.
    #[error("{0}")]
    Refused(String),
    /// The source does not give its log, or gives another one: no client is to blame.
    #[error("{0}")]
    OfSource(String),
    /// The logs don't have the requested place or transaction.
    #[error("{0}")]
    Unmet(String),
    /// A client has more than is stored here, and it is not known yet whether the source has it too; it may ask again.
    #[error("{0}")]
    Ahead(String),
    /// Too few replicas have acknowledged the transactions that are durable here.
    #[error("not {wanted} replicas have acknowledged within {after:?}")]
    Unacknowledged {
        /// How many acknowledgements we wait for.
        wanted: usize,
        /// How long we waited.
        after: std::time::Duration,
    },
    /// The system can't start a thread: there are too many, or too little memory.
    #[error("start the thread {name}: {source}: the limit of processes and threads, or memory, is used up")]
    Thread {
        /// The thread's purpose.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A panic: a bug of ours.
    #[error("{name} panicked: {message}")]
    Panicked {
        /// The thread's duty.
        name: &'static str,
        /// The panic's message.
        message: String,
    },
    /// A task that must run for ever has ended: a bug of ours.
    #[error("{0} ended by itself, which it never should")]
    Ended(&'static str),
    /// A clock has jumped.
    #[error("{0}")]
    Clock(String),
    /// An error of the archive at this location.
    #[error("archive {0}: {1}")]
    Archive(String, binlogz_archive::Error),
    /// An operation failed in the operating system.
    #[error("{doing}: {source}")]
    Io {
        /// The attempted operation, as in "listen on 127.0.0.1:3307".
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

/// How many characters of a damaged file an error shows.
const FOUND_MAX: usize = 80;
/// The obstacle that keeps receiving from continuing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// This machine: it lacks threads, descriptors, memory or disk space.
    Here,
    /// The source can't be reached.
    Unreachable,
    /// The source is up, but does not send its log, or sends something unacceptable.
    Refused,
}

/// Whether the system lacks descriptors or memory: EMFILE, ENFILE, ENOMEM, ENOBUFS.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105))
}

impl Error {
    /// The error for unexpected contents in one of the relay's own files.
    pub(crate) fn damaged(file: &str, found: &str, expected: impl Into<String>) -> Error {
        let shown: String = found.chars().take(FOUND_MAX).collect();
        let more = if shown.len() < found.len() { " …" } else { "" };
        Error::Damaged { file: file.to_owned(), found: format!("{shown:?}{more}"), expected: expected.into() }
    }

    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }

    /// An error from reading a stored log.
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

    /// An error on a connection to a client.
    pub(crate) fn of_client(doing: &str, source: io::Error) -> Error {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, WouldBlock};
        let doing = doing.to_owned();
        match source.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset => Error::Left(source),
            // As the system tells the end of the time that a socket was given.
            TimedOut | WouldBlock => Error::Slow { doing },
            _ => Error::Connection { doing, source },
        }
    }

    /// Adds the stored file's name, if bad bytes in it are the cause.
    pub(crate) fn in_stored(self, file: impl FnOnce() -> String) -> Error {
        match self.is_bad_bytes() {
            true => Error::Stored { file: file(), source: Box::new(self) },
            false => self,
        }
    }

    /// The stored file with bad bytes.
    pub(crate) fn stored_file(&self) -> Option<&str> {
        match self {
            Error::Stored { file, .. } | Error::Store(binlogz_store::Error::Damaged { file, .. }) => {
                Some(file)
            }
            Error::Conversion(error) => error.stored_file(),
            _ => None,
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

    /// The error's category, for metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Error::Source(_) | Error::OfSource(_) | Error::Unfollowable(_) => "source",
            Error::Store(_) => "store",
            Error::Damaged { .. } | Error::DamagedLog(_) | Error::Version { .. } => "damaged",
            Error::Lineage(_) => "lineage",
            Error::Gap { .. } => "gap",
            Error::Binlog(_) => "binlog",
            Error::Payload(_) => "payload",
            Error::Conversion(error) => error.kind(),
            Error::Stored { source, .. } => source.kind(),
            Error::Client(_) | Error::Left(_) | Error::Connection { .. } | Error::Slow { .. } => "client",
            Error::Refused(_) | Error::Unmet(_) | Error::Ahead(_) => "refused",
            Error::Unacknowledged { .. } => "replicas",
            Error::Thread { .. } => "thread",
            Error::Panicked { .. } | Error::Ended(_) => "panic",
            Error::Archive(..) => "archive",
            Error::Clock(_) => "clock",
            Error::Io { .. } => "io",
        }
    }

    /// Whether a client is to blame for it, or asked for something it can't have.
    pub(crate) fn is_of_client(&self) -> bool {
        matches!(self.kind(), "client" | "refused")
    }

    /// Whether retrying can't help: someone must decide or repair something first.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            // The next connection repairs it.
            Error::Store(binlogz_store::Error::Refusing { .. }) => false,
            Error::Store(error) => !error.may_pass(),
            Error::Damaged { .. } | Error::Version { .. } | Error::Lineage(_) | Error::Gap { .. } => true,
            _ => self.is_bug(),
        }
    }

    /// Whether it is our own bug, which will recur.
    pub(crate) fn is_bug(&self) -> bool {
        matches!(self, Error::Panicked { .. } | Error::Ended(_))
    }

    /// The obstacle that keeps receiving from continuing, if retrying may help.
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

    /// Whether the cause is this machine: another server of the source would not help.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Error::Store(_) | Error::Io { .. } | Error::Payload(binlogz_payload::Error::Io(_)) => true,
            Error::Conversion(error) => error.is_local(),
            _ => false,
        }
    }

    /// Whether it may pass without repair, as when descriptors run out.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Error::Store(error) => error.is_transient(),
            Error::Io { source, .. } | Error::Payload(binlogz_payload::Error::Io(source)) => {
                is_transient(source)
            }
            Error::Conversion(error) => error.is_transient(),
            Error::Ahead(_) => true,
            _ => false,
        }
    }

    /// The error that a client gets. A temporary one gets a code at which replicas reconnect. So do all of this
    /// machine's errors in answer to a statement: a replica's receiver sends some statements before each dump, and
    /// stops for good at any other error.
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
        // A replica's receiver sends SELECT @@server_id before it asks for the log, and ends at any other error.
        assert_eq!(broken().told(UNKNOWN_ERROR).code, TOO_MANY_CONNECTIONS);
        assert_eq!(exhausted().told(UNKNOWN_ERROR).code, TOO_MANY_CONNECTIONS);
        assert_eq!(exhausted().told(1236).code, TOO_MANY_CONNECTIONS);
        // Damage in the log, or a request that can't be served, is not temporary.
        assert_eq!(Error::DamagedLog("binlog.000001 is damaged".into()).told(1236).code, 1236);
        assert_eq!(Error::Refused("no such variable".into()).told(UNKNOWN_ERROR).code, UNKNOWN_ERROR);
    }
}
