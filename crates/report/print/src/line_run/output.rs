//! The output of lines: a file whose bytes are counted, and what completes lines on their way into it.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Completes lines that lack facts which only the end of their transaction tells.
pub trait LineCompletion: Debug + Send {
    /// Takes whole lines, in order; writes those that are complete.
    ///
    /// # Errors
    ///
    /// An output that can't be written, a temporary file that can't.
    fn take(&mut self, lines: &[u8], out: &mut dyn Write) -> io::Result<()>;
}

/// Where the lines go.
#[derive(Debug)]
pub struct LineOutput {
    pub(super) file: CountedFile,
    completion: Option<Box<dyn LineCompletion>>,
}

/// A file that is written without a buffer, since the pieces are large.
#[derive(Debug)]
pub(super) struct CountedFile {
    pub(super) file: File,
    /// Bytes that were written.
    pub(super) written: Arc<AtomicU64>,
}

impl LineOutput {
    /// Lines go to this file, which may be a pipe.
    pub fn new(file: File) -> Self {
        LineOutput { file: CountedFile { file, written: Arc::default() }, completion: None }
    }

    /// Lines are completed before they are written, if that is needed.
    #[must_use]
    pub fn completed_by(self, completion: Option<Box<dyn LineCompletion>>) -> Self {
        LineOutput { completion, ..self }
    }

    /// Writes whole lines.
    pub(super) fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        match &mut self.completion {
            None => self.file.write_all(lines),
            Some(completion) => completion.take(lines, &mut self.file),
        }
    }
}

impl Write for CountedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = self.file.write(bytes)?;
        self.written.fetch_add(size as u64, Ordering::Release);
        Ok(size)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
