//! A running helper program, and the frame it is making.

use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use zstd_safe::zstd_sys::ZSTD_EndDirective;

use super::pipe::PatientPipe;
use super::protocol::{BEGIN, DONE, END, FAILED, FLUSH, SIZE_UNKNOWN, WRITE, read_message, write_message};
use super::{Library, find};
use crate::codec::level::CompressionLevel;
use crate::error::{Error, Result};

/// At most this many bytes of requests are sent before a reply is read, so that they and their replies fit
/// into pipes.
const UNANSWERED_SIZE_MAX: usize = 16 << 10;
/// Bytes of input in one request.
const REQUEST_SIZE: usize = 1 << 20;

/// How long a helper may take to read a request or to answer it. The slowest, a mebibyte at level 22, takes a second or two on a
/// machine that does nothing else.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a helper may take to end once its input has; then it is killed.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// A running helper.
pub(crate) struct LibraryHelper {
    library: Library,
    program: String,
    child: Child,
    requests: Option<BufWriter<PatientPipe<ChildStdin>>>,
    replies: Option<BufReader<PatientPipe<ChildStdout>>>,
    reply: Vec<u8>,
    /// Requests whose replies were not read.
    unanswered: u32,
    unanswered_size: usize,
}

impl LibraryHelper {
    /// Starts the program that has `library`; `None` if that is linked.
    ///
    /// # Errors
    ///
    /// A program that is not there, doesn't start, has another library, or was given up a while ago.
    pub(crate) fn start(library: Library) -> Result<Option<LibraryHelper>> {
        let Some(program) = library.program() else { return Ok(None) };
        let Some(file) = find(&program) else {
            let wrong = format!("{program} is neither beside binlogz nor on the PATH: it has {library}");
            return Err(io::Error::new(io::ErrorKind::NotFound, wrong).into());
        };
        if let Some(wrong) = library.given_up() {
            return Err(Error::Helper { program, wrong });
        }
        LibraryHelper::start_program(library, &file, program, PATIENCE).map(Some)
    }

    fn start_program(
        library: Library,
        file: &Path,
        program: String,
        patience: Duration,
    ) -> Result<LibraryHelper> {
        // A group of its own, so that whatever it starts ends with it.
        let mut child =
            Command::new(file).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other(format!("{program} has no pipes")).into());
        };
        let stdin = PatientPipe::new(stdin, patience)?;
        let stdout = PatientPipe::new(stdout, patience)?;
        let mut helper = LibraryHelper {
            library,
            program,
            child,
            requests: Some(BufWriter::with_capacity(64 << 10, stdin)),
            replies: Some(BufReader::with_capacity(64 << 10, stdout)),
            reply: Vec::new(),
            unanswered: 1,
            unanswered_size: 0,
        };
        let mut version = Vec::new();
        helper.read_replies(&mut version)?;
        if version != library.version().as_bytes() {
            let found = String::from_utf8_lossy(&version).into_owned();
            return Err(helper.give_up(format!("has libzstd {found}, expected {}", library.version())));
        }
        Ok(helper)
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
        let Some(requests) = &mut self.requests else { return Err(self.is_gone()) };
        if let Err(error) = write_message(requests, operation, bytes) {
            return Err(self.failed(&error));
        }
        self.unanswered += 1;
        self.unanswered_size += bytes.len();
        Ok(())
    }

    /// Reads all replies and appends their contents to `out`.
    fn read_replies(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if let Some(requests) = &mut self.requests
            && let Err(error) = requests.flush()
        {
            return Err(self.failed(&error));
        }
        self.unanswered_size = 0;
        let mut failed = None;
        while self.unanswered > 0 {
            let Some(replies) = &mut self.replies else { return Err(self.is_gone()) };
            match read_message(replies, &mut self.reply) {
                Ok(Some(DONE)) => out.extend_from_slice(&self.reply),
                Ok(Some(FAILED)) => {
                    failed = failed.or(Some(String::from_utf8_lossy(&self.reply).into_owned()));
                }
                Ok(Some(other)) => {
                    return Err(self.give_up(format!("begins a reply with {other}, expected 0 or 1")));
                }
                Ok(None) => return Err(self.failed(&io::ErrorKind::UnexpectedEof.into())),
                Err(error) => return Err(self.failed(&error)),
            }
            self.unanswered -= 1;
        }
        match failed {
            Some(wrong) => Err(self.give_up(format!("has failed: {wrong}"))),
            None => Ok(()),
        }
    }

    fn failed(&mut self, error: &io::Error) -> Error {
        self.give_up(match error.kind() {
            io::ErrorKind::TimedOut => "does not answer".to_owned(),
            _ => format!("has ended: {error}"),
        })
    }

    /// Nothing more is asked of it: its codec is lost, for a while for this whole program.
    fn give_up(&mut self, wrong: String) -> Error {
        self.library.give_up(&wrong);
        (self.requests, self.replies) = (None, None);
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        Error::Helper { program: self.program.clone(), wrong }
    }

    fn is_gone(&self) -> Error {
        Error::Helper { program: self.program.clone(), wrong: "was given up".to_owned() }
    }
}

impl Drop for LibraryHelper {
    fn drop(&mut self) {
        // It ends with its input.
        (self.requests, self.replies) = (None, None);
        let until = Instant::now() + END_PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// How long to wait for a helper: longer than a script needs to begin on a busy machine.
    const SHORT: Duration = Duration::from_secs(2);

    /// A helper that is this script of the shell, of a version that no other test has.
    fn helper(version: &'static str, script: &str) -> (Result<LibraryHelper>, Library) {
        let name = format!("binlogz-helper-{version}-{}", std::process::id());
        let library = Library::Helper(version);
        let file = std::env::temp_dir().join(&name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let helper = LibraryHelper::start_program(library, &file, name, SHORT);
        fs::remove_file(&file).unwrap();
        (helper, library)
    }

    /// Asks a helper that runs `script` to compress. Returns the message of its failure, and the library it stands for.
    fn asked(version: &'static str, script: &str) -> (String, Library) {
        let (helper, library) = helper(version, script);
        let answer = helper.and_then(|mut helper| {
            helper.begin(CompressionLevel::DEFAULT, false, None)?;
            // More than the pipes take.
            let mut out = Vec::new();
            helper.run(&vec![7; 1 << 20], ZSTD_EndDirective::ZSTD_e_end, &mut out)
        });
        (answer.unwrap_err().to_string(), library)
    }

    #[test]
    fn a_helper_that_hangs_or_dies_ends_what_waits_for_it_and_is_given_up() {
        // Each with a process of its own behind it, which keeps the pipes open.
        for (version, script, said) in [
            ("0.0.1", "sleep 1000", "does not answer"),
            ("0.0.2", "printf '\\0\\5\\0\\0\\0000.0.2'; sleep 1000", "does not answer"),
            ("0.0.3", "printf '\\0\\5\\0\\0\\0000.0.3'; cat >/dev/null; sleep 1000", "does not answer"),
            ("0.0.4", "printf '\\0\\5\\0\\0\\0000.0.4'", "has ended"),
            ("0.0.5", "exit 1", "has ended"),
            ("0.0.6", "printf '\\0\\5\\0\\0\\0009.9.9'; cat >/dev/null", "has libzstd 9.9.9, expected 0.0.6"),
            ("0.0.7", "printf 'what\\n\\n\\n\\n\\n'; cat >/dev/null", "given"),
        ] {
            let began = Instant::now();
            let (answer, library) = asked(version, script);
            assert!(said == "given" || answer.contains(said), "{script}: {answer}");
            assert!(began.elapsed() < SHORT * 10, "{script}");
            assert!(library.given_up().is_some() && !library.is_available(), "{script}");
        }
    }
}
