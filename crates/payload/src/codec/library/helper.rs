//! A running helper program, and the frame it is making.

use std::io::{self, BufReader, BufWriter, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use zstd_safe::zstd_sys::ZSTD_EndDirective;

use super::protocol::{BEGIN, DONE, END, FAILED, FLUSH, SIZE_UNKNOWN, WRITE, read_message, write_message};
use super::{Library, find};
use crate::codec::level::CompressionLevel;
use crate::error::{Error, Result};

/// At most this many bytes of requests are sent before a reply is read, so that they and their replies fit
/// into pipes.
const UNANSWERED_SIZE_MAX: usize = 16 << 10;
/// Bytes of input in one request.
const REQUEST_SIZE: usize = 1 << 20;

/// A running helper.
pub(crate) struct Helper {
    program: String,
    child: Child,
    requests: Option<BufWriter<ChildStdin>>,
    replies: BufReader<ChildStdout>,
    reply: Vec<u8>,
    /// Requests whose replies were not read.
    unanswered: u32,
    unanswered_size: usize,
}

impl Helper {
    /// Starts the program that has `library`; `None` if that is linked.
    ///
    /// # Errors
    ///
    /// A program that is not there, doesn't start, or has another library.
    pub(crate) fn start(library: Library) -> Result<Option<Helper>> {
        let Some(program) = library.program() else { return Ok(None) };
        let Some(file) = find(&program) else {
            let wrong = format!("{program} is neither beside binlogz nor on the PATH: it has {library}");
            return Err(io::Error::new(io::ErrorKind::NotFound, wrong).into());
        };
        let mut child = Command::new(file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other(format!("{program} has no pipes")).into());
        };
        let mut helper = Helper {
            program,
            child,
            requests: Some(BufWriter::with_capacity(64 << 10, stdin)),
            replies: BufReader::with_capacity(64 << 10, stdout),
            reply: Vec::new(),
            unanswered: 1,
            unanswered_size: 0,
        };
        let mut version = Vec::new();
        helper.read_replies(&mut version)?;
        if version != library.version().as_bytes() {
            let found = String::from_utf8_lossy(&version).into_owned();
            let wrong = format!("{} has libzstd {found}, expected {}", helper.program, library.version());
            return Err(io::Error::new(io::ErrorKind::InvalidData, wrong).into());
        }
        Ok(Some(helper))
    }

    /// Begins a frame.
    pub(crate) fn begin(&mut self, level: CompressionLevel, checksum: bool, size: Option<u64>) -> Result<()> {
        // Replies left over from an abandoned frame.
        self.read_replies(&mut Vec::new()).ok();
        let mut request = vec![level.get(), checksum.into()];
        request.extend_from_slice(&size.unwrap_or(SIZE_UNKNOWN).to_le_bytes());
        self.ask(BEGIN, &request, &mut Vec::new())
    }

    /// Compresses the next bytes of the frame; the output is appended to `out`, now or later.
    pub(crate) fn run(
        &mut self,
        bytes: &[u8],
        directive: ZSTD_EndDirective,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        for bytes in bytes.chunks(REQUEST_SIZE) {
            self.ask(WRITE, bytes, out)?;
        }
        match directive {
            ZSTD_EndDirective::ZSTD_e_continue => Ok(()),
            ZSTD_EndDirective::ZSTD_e_flush => self.ask(FLUSH, &[], out),
            ZSTD_EndDirective::ZSTD_e_end => {
                self.ask(END, &[], out)?;
                self.read_replies(out)
            }
        }
    }

    fn ask(&mut self, operation: u8, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.unanswered_size + bytes.len() > UNANSWERED_SIZE_MAX {
            self.read_replies(out)?;
        }
        let Some(requests) = &mut self.requests else { return Ok(()) };
        write_message(requests, operation, bytes).map_err(|error| ended(&self.program, error))?;
        self.unanswered += 1;
        self.unanswered_size += bytes.len();
        Ok(())
    }

    /// Reads all replies and appends their contents to `out`.
    fn read_replies(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if let Some(requests) = &mut self.requests {
            requests.flush().map_err(|error| ended(&self.program, error))?;
        }
        self.unanswered_size = 0;
        let mut failed = None;
        while self.unanswered > 0 {
            let first = read_message(&mut self.replies, &mut self.reply);
            match first.map_err(|error| ended(&self.program, error))? {
                Some(DONE) => out.extend_from_slice(&self.reply),
                Some(FAILED) => failed = failed.or(Some(String::from_utf8_lossy(&self.reply).into_owned())),
                Some(other) => {
                    let wrong = format!("reply begins with {other}, expected 0 or 1");
                    return Err(ended(&self.program, io::Error::new(io::ErrorKind::InvalidData, wrong)));
                }
                None => return Err(ended(&self.program, io::ErrorKind::UnexpectedEof.into())),
            }
            self.unanswered -= 1;
        }
        match failed {
            Some(wrong) => Err(io::Error::other(format!("{}: {wrong}", self.program)).into()),
            None => Ok(()),
        }
    }
}

fn ended(program: &str, error: io::Error) -> Error {
    io::Error::new(error.kind(), format!("{program} has ended: {error}")).into()
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It ends with its input.
        self.requests = None;
        let _ = self.child.wait();
    }
}
