//! Tables that are longer than the terminal go through a pager, as git's output does.
//!
//! `BINLOGZ_PAGER` names it, or else `PAGER`; without either it is `less`. An empty name or `cat` means none. Standard
//! output that is no terminal never has one.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::failure::{CommandFailure, Result};

/// Where a user names one.
const VARIABLES: [&str; 2] = ["BINLOGZ_PAGER", "PAGER"];
const LESS: &str = "less";
/// The options that git gives it: it ends at once if one screen is enough, and leaves the shown text on the screen.
const LESS_OPTIONS: &str = "FRX";

/// How many are open: Ctrl-C is theirs as long.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Whether a user is reading in one.
pub fn is_open() -> bool {
    OPEN.load(Ordering::SeqCst) > 0
}

/// The pager that a user named.
pub fn named() -> Option<OsString> {
    VARIABLES.into_iter().find_map(env::var_os)
}

/// Runs a program that has the terminal meanwhile, as a pager has it.
pub fn hand_over<T>(run: impl FnOnce() -> T) -> T {
    OPEN.fetch_add(1, Ordering::SeqCst);
    let ran = run();
    OPEN.fetch_sub(1, Ordering::SeqCst);
    ran
}

/// A pager that shows the text written to it. When it is dropped, it waits for the user to leave it.
#[derive(Debug)]
pub struct Pager {
    child: Child,
}

impl Pager {
    /// The pager and where to write, if standard output is a terminal and the user wants one.
    pub fn start() -> Option<(Self, File)> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let pager = match named() {
            Some(pager) if pager.is_empty() || pager == "cat" => return None,
            Some(pager) => pager,
            None => is_installed(LESS).then(|| OsString::from(LESS))?,
        };
        let mut command = Command::new("sh");
        command.arg("-c").arg(pager).stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            command.env("LESS", LESS_OPTIONS);
        }
        OPEN.fetch_add(1, Ordering::SeqCst);
        let started = command.spawn().ok().and_then(|mut child| {
            let stdin = child.stdin.take()?;
            Some((Pager { child }, File::from(OwnedFd::from(stdin))))
        });
        if started.is_none() {
            OPEN.fetch_sub(1, Ordering::SeqCst);
        }
        started
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        // How it ends is between it and its user.
        let _ = self.child.wait();
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Lines of the terminal that is standard output.
fn terminal_lines() -> Option<usize> {
    terminal_size::terminal_size().map(|(_, rows)| usize::from(rows.0))
}

/// Text of unknown length for standard output: it is held as long as the terminal has room for it, and goes to a pager from there on.
#[derive(Debug)]
pub struct PagedOutput<W: Write> {
    out: W,
    held: Vec<u8>,
    lines: usize,
    /// Lines of the terminal; `None`: no pager is wanted, or there is none.
    lines_max: Option<usize>,
    /// The pipe is closed before the pager is waited for.
    pager: Option<(File, Pager)>,
}

impl<W: Write> PagedOutput<W> {
    /// Text for `out`, which is standard output; without a pager unless one is `wanted`.
    pub fn new(out: W, wanted: bool) -> Self {
        let lines_max = if wanted { terminal_lines() } else { None };
        PagedOutput { out, held: Vec::new(), lines: 0, lines_max, pager: None }
    }

    /// Passes on what is held: to a pager if there is one.
    fn pass_on(&mut self, wants_pager: bool) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        if wants_pager {
            // A bar that `out` takes away before its first byte would stand in the pager's screen.
            let _ = self.out.write(&[])?;
            self.pager = Pager::start().map(|(pager, pipe)| (pipe, pager));
            self.lines_max = None;
        }
        match &mut self.pager {
            Some((pipe, _)) => pipe.write_all(&held),
            None => self.out.write_all(&held),
        }
    }
}

impl<W: Write> Write for PagedOutput<W> {
    /// A pager that its user has left is a broken pipe.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (&mut self.pager, self.lines_max) {
            (Some((pipe, _)), _) => pipe.write(bytes),
            (None, None) => self.out.write(bytes),
            (None, Some(lines_max)) => {
                self.held.extend_from_slice(bytes);
                self.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
                if self.lines >= lines_max {
                    self.pass_on(true)?;
                }
                Ok(bytes.len())
            }
        }
    }

    /// Passes on all that was written: the text is over.
    fn flush(&mut self) -> io::Result<()> {
        self.pass_on(false)?;
        match &mut self.pager {
            Some((pipe, _)) => pipe.flush(),
            None => self.out.flush(),
        }
    }
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Shows a text on standard output, in a pager if the terminal has fewer lines.
pub fn show(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<()> {
    let failure = |error: io::Error| CommandFailure::writing(&"standard output", &error);
    let mut text = Vec::new();
    write(&mut text).map_err(failure)?;
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    if terminal_lines().is_some_and(|lines_max| lines >= lines_max)
        && let Some((_pager, mut out)) = Pager::start()
    {
        // A user who has seen enough leaves.
        return match out.write_all(&text) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failure(error)),
            _ => Ok(()),
        };
    }
    let mut out = io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).map_err(failure)
}
