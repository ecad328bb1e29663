//! Errors in the bytes of a binary log.
//!
//! An error names the structure being read, the field, the value found and the value expected. Readers add the offset;
//! the caller that opened the file adds its name.

use std::io;

use crate::event_type::EventType;

/// The result of reading or writing the binary log format.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why bytes could not be read as a binary log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field reaches beyond the end of the bytes that hold it.
    #[error("{what}: {field} needs {needed} bytes, {left} are left")]
    Short {
        /// The structure being read, for example "table map event".
        what: &'static str,
        /// The field that did not fit.
        field: &'static str,
        /// Bytes that the field needs.
        needed: u64,
        /// Bytes that were left.
        left: u64,
    },
    /// A field holds a value that the format does not allow.
    #[error("{what}: {field} is {found}, expected {expected}")]
    Invalid {
        /// The structure being read.
        what: &'static str,
        /// The field with the bad value.
        field: &'static str,
        /// The value that was found, as text.
        found: String,
        /// The values that the format allows there.
        expected: &'static str,
    },
    /// Bytes remain after the last field.
    #[error("{what}: {count} bytes left over after the last field")]
    LeftOver {
        /// The structure being read.
        what: &'static str,
        /// How many bytes remain.
        count: u64,
    },
    /// The stored checksum is not the checksum of the bytes.
    #[error("checksum is {stored:#010x}, the bytes give {computed:#010x}")]
    Checksum {
        /// The checksum stored after the event.
        stored: u32,
        /// The checksum of the bytes before it.
        computed: u32,
    },
    /// The stream ends inside an event.
    #[error("the log ends inside an event: {needed} bytes expected, {left} are there")]
    Truncated {
        /// Bytes that the event (or its header) needs.
        needed: u64,
        /// Bytes that are there.
        left: u64,
    },
    /// The field has no byte at all.
    #[error("is empty, expected a binary log")]
    Empty,
    /// The file does not begin like a binary log.
    #[error("not a binary log: it begins with {found}, expected fe 62 69 6e")]
    Magic {
        /// The first bytes in hexadecimal.
        found: String,
    },
    /// The file is encrypted and no keyring was given.
    #[error("the binary log is encrypted: a keyring is needed to read it")]
    Encrypted,
    /// MariaDB encrypted the rest of the file.
    #[error(
        "MariaDB encrypted the log from here on, expected plain events: its server sends them decrypted (dump -R, dump -R --raw)"
    )]
    EncryptedByMariadb,
    /// A file of MariaDB's other kind of binary log.
    #[error(
        "is a file of MariaDB's InnoDB-based binary log (binlog_storage_engine=innodb, since 12.3), expected a binary log in a file: \
         mariadb-binlog of 12.3 prints it; a replica with log_slave_updates and without that setting writes a log that can be read here"
    )]
    InnodbBinlog,
    /// Something about one column of a table is wrong.
    #[error("column {number}: {source}")]
    Column {
        /// The column, counted from 1 as mysqlbinlog's `@1`.
        number: usize,
        /// The error inside it.
        source: Box<Error>,
    },
    /// Something at an offset of the log is wrong.
    #[error("at {offset}: {}{source}", event_prefix(*event_type))]
    At {
        /// Offset in the (decrypted) file at which the event begins.
        offset: u64,
        /// The type of the event, where its header could be read.
        event_type: Option<EventType>,
        /// The error there.
        source: Box<Error>,
    },
    /// The reader underneath failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// Shorthand for [`Error::Invalid`].
    pub fn invalid(
        what: &'static str,
        field: &'static str,
        found: impl ToString,
        expected: &'static str,
    ) -> Self {
        Error::Invalid { what, field, found: found.to_string(), expected }
    }

    /// Adds the offset (and event type) at which the error happened; the innermost one stays.
    #[must_use]
    pub fn at(self, offset: u64, event_type: Option<EventType>) -> Self {
        match self {
            Error::At { .. } | Error::Io(_) => self,
            other => Error::At { offset, event_type, source: Box::new(other) },
        }
    }

    /// Adds the column, counted from 0, that the error is about.
    #[must_use]
    pub(crate) fn in_column(self, index: usize) -> Self {
        Error::Column { number: index + 1, source: Box::new(self) }
    }

    /// Whether the log simply ends inside an event, as a log still being written may.
    pub fn is_truncation(&self) -> bool {
        match self {
            Error::Truncated { .. } | Error::Empty => true,
            Error::At { source, .. } => source.is_truncation(),
            _ => false,
        }
    }

    /// The offset at which the error happened, where known.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Error::At { offset, .. } => Some(*offset),
            _ => None,
        }
    }
}

fn event_prefix(event_type: Option<EventType>) -> String {
    match event_type {
        Some(event_type) => format!("{event_type} event: "),
        None => String::new(),
    }
}
