//! What can go wrong while a log goes through the pipeline.

use std::io;

use binlogz_binlog::Error as BinlogError;

/// Sorted by blame: the log, or its destination.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log can't be read, or its bytes are bad.
    #[error(transparent)]
    Input(binlogz_payload::Error),
    /// The output can't be written.
    #[error(transparent)]
    Output(binlogz_payload::Error),
}

impl Error {
    /// Whether the output's reader is gone.
    pub fn is_closed_pipe(&self) -> bool {
        let Error::Output(error) = self else { return false };
        let io = match error {
            binlogz_payload::Error::Io(error) => error,
            binlogz_payload::Error::Binlog(BinlogError::Io(error)) => error,
            _ => return false,
        };
        io.kind() == io::ErrorKind::BrokenPipe
    }
}

impl From<BinlogError> for Error {
    fn from(error: BinlogError) -> Self {
        Error::Input(error.into())
    }
}

impl From<binlogz_payload::Error> for Error {
    fn from(error: binlogz_payload::Error) -> Self {
        Error::Input(error)
    }
}
