//! A password asked for at the terminal.
//!
//! The echo is off before the question stands there: what a fast typist, a paste or a program sends as an answer
//! would be shown otherwise, for as long as the terminal is as it was (glibc's `getpass` keeps this order too).

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io;

/// The terminal of the process; where it has none, the question fails.
const TERMINAL: &str = "/dev/tty";

/// Asks `question` at the process's terminal, and returns what was typed, without its line end. Nothing of it is
/// shown.
///
/// # Errors
///
/// The process has no terminal; or Ctrl-C was typed ([`io::ErrorKind::Interrupted`]).
pub fn prompt_for_password(question: &str) -> io::Result<String> {
    let silence = EchoSilence::new()?;
    let password = rpassword::prompt_password(question);
    drop(silence);
    password
}

/// The terminal without echo, until this is dropped.
struct EchoSilence {
    terminal: File,
    before: Termios,
}

impl EchoSilence {
    fn new() -> io::Result<Self> {
        let terminal = File::open(TERMINAL)?;
        let before = tcgetattr(&terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        tcsetattr(&terminal, OptionalActions::Now, &silent)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for EchoSilence {
    fn drop(&mut self) {
        // Where this fails, the terminal is gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
