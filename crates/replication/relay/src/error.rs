//! Errors between source, disk and replicas.

use std::io;

use binlogz_relay_log::Error as LogError;
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
    /// The stored log, or the bytes that are to get into it or out of it.
    #[error(transparent)]
    Log(#[from] LogError),
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
    /// A client's request can't be served; the client gets the reason.
    #[error("{0}")]
    Refused(String),
    /// The source does not give its log, or gives another one: no client is to blame.
    #[error("{0}")]
    OfSource(String),
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
    /// An operation failed in the operating system.
    #[error("{doing}: {source}")]
    Io {
        /// The attempted operation, as in "listen on 127.0.0.1:3307".
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

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
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
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

    /// The error of the log that it is, if it is one.
    pub(crate) fn of_log(&self) -> Option<&LogError> {
        match self {
            Error::Log(error) => Some(error),
            _ => None,
        }
    }

    /// Adds the stored file's name, if bad bytes in it are the cause.
    pub(crate) fn in_stored(self, file: impl FnOnce() -> String) -> Error {
        match self {
            Error::Log(error) => Error::Log(error.in_stored(file)),
            error => error,
        }
    }

    /// Whether the operating system refused something, outside the store.
    pub(crate) fn is_io(&self) -> bool {
        matches!(self, Error::Io { .. } | Error::Log(LogError::Io { .. }))
    }

    /// Whether a request can't be met.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Error::Refused(_) | Error::Log(LogError::Refused(_)))
    }

    /// The error's category, for metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Error::Source(_) | Error::OfSource(_) | Error::Unfollowable(_) => "source",
            Error::Log(error) => error.kind(),
            Error::Gap { .. } => "gap",
            Error::Client(_) | Error::Left(_) | Error::Connection { .. } | Error::Slow { .. } => "client",
            Error::Refused(_) | Error::Ahead(_) => "refused",
            Error::Unacknowledged { .. } => "replicas",
            Error::Thread { .. } => "thread",
            Error::Panicked { .. } | Error::Ended(_) => "panic",
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
            Error::Log(error) => error.is_final(),
            Error::Gap { .. } => true,
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
            Error::Thread { .. } | Error::Io { .. } | Error::Log(LogError::Io { .. }) => Hindrance::Here,
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
            Error::Log(error) => error.is_local(),
            Error::Io { .. } => true,
            _ => false,
        }
    }

    /// Whether it may pass without repair, as when descriptors run out.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Error::Log(error) => error.is_transient(),
            Error::Io { source, .. } => is_transient(source),
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

/// A fault of the stored log, in the crate that met it.
impl From<binlogz_store::Error> for Error {
    fn from(error: binlogz_store::Error) -> Self {
        Error::Log(error.into())
    }
}

impl From<binlogz_binlog::Error> for Error {
    fn from(error: binlogz_binlog::Error) -> Self {
        Error::Log(error.into())
    }
}

impl From<binlogz_payload::Error> for Error {
    fn from(error: binlogz_payload::Error) -> Self {
        Error::Log(error.into())
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
        assert_eq!(Error::Log(LogError::DamagedLog("binlog.000001 is damaged".into())).told(1236).code, 1236);
        assert_eq!(Error::Refused("no such variable".into()).told(UNKNOWN_ERROR).code, UNKNOWN_ERROR);
    }
}
