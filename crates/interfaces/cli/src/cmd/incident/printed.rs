//! A command that is printed, ready to paste, and whether it works: it is run as it is printed, without its effect.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use binlogz_figures::wrapped;
use serde_json::{Value, json};

use crate::failure::{CommandFailure, Result};
use crate::server_args::{PASSWORD_ON_STDIN, typed_password};

/// Where the commands' continued lines begin.
const INDENT: &str = "      ";
/// Lines that a check says at the most.
const NOTES_MAX: usize = 4;
/// How often a running check is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How the script names later changes of the same rows.
const LATER: &str = "-- changed again later, which this would lose: ";

/// The words of a command of binlogz, without the program.
#[derive(Debug, Clone)]
pub(super) struct IncidentWords(Vec<String>);

impl IncidentWords {
    pub(super) fn of(words: &[&str]) -> Self {
        IncidentWords(words.iter().map(|word| (*word).to_owned()).collect())
    }

    pub(super) fn with(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.0.extend(more);
        self
    }

    /// Starts this program with these words; what it writes goes to pipes. A password that was asked for, it gets on its standard
    /// input, where no other process sees it.
    pub(super) fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(self.0.iter().map(OsStr::new)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let Some(password) = typed_password() else { return command.stdin(Stdio::null()).spawn() };
        let mut child = command.arg(PASSWORD_ON_STDIN).stdin(Stdio::piped()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            let line = [password.as_bytes(), b"\n"].concat();
            // One that has ended before it read that says itself why.
            let _ = input.write_all(&line);
        }
        Ok(child)
    }

    /// As a shell reads it.
    pub(super) fn shown(&self) -> String {
        format!("binlogz {}", shell_line(&self.0))
    }

    /// Collects the lines of a program's errors, without its name.
    pub(super) fn read_errors(errors: ChildStderr) -> JoinHandle<Vec<String>> {
        thread::spawn(move || {
            let lines = BufReader::new(errors).lines().map_while(std::result::Result::ok);
            // The rest is read too: a program whose output nobody reads would never end.
            let mut told = Vec::new();
            for line in lines {
                if told.len() <= NOTES_MAX {
                    told.push(line.strip_prefix("binlogz: ").unwrap_or(&line).to_owned());
                }
            }
            told
        })
    }
}

/// Words as a shell takes them.
pub(super) fn shell_line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Whether a command does what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandCheck {
    /// It was run, and does.
    Works,
    /// It was run, and does not do all.
    Incomplete,
    /// It could not be run: something has to be done before.
    NotRun,
}

impl CommandCheck {
    pub(super) fn of(run: &CheckedRun) -> Self {
        if run.has_worked() { CommandCheck::Works } else { CommandCheck::Incomplete }
    }
}

/// A command that is printed.
#[derive(Debug)]
pub(super) struct PrintedCommand {
    /// What it does.
    pub(super) purpose: &'static str,
    /// As a shell takes it. `None`: there is none, and the notes say why.
    pub(super) text: Option<String>,
    pub(super) check: CommandCheck,
    pub(super) notes: Vec<String>,
}

impl PrintedCommand {
    pub(super) fn none(purpose: &'static str, why: &str) -> Self {
        PrintedCommand { purpose, text: None, check: CommandCheck::Incomplete, notes: vec![why.to_owned()] }
    }

    /// For people; the shell takes the broken lines as one.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let state = match (&self.text, self.check) {
            (None, _) => "not possible",
            (Some(_), CommandCheck::Works) => "checked",
            (Some(_), CommandCheck::Incomplete) => "checked, and does not do all",
            (Some(_), CommandCheck::NotRun) => "not checked",
        };
        let mut lines = vec![format!("{} ({state}):", self.purpose)];
        lines.extend(self.text.as_deref().map(|text| broken(text, width)).unwrap_or_default());
        for note in self.notes.iter().take(NOTES_MAX) {
            lines.extend(wrapped(note, "  ", "    ", Some(width)).lines().map(str::to_owned));
        }
        lines
    }

    /// For machines.
    pub(super) fn json(&self) -> Value {
        let works = match self.check {
            CommandCheck::Works => Some(true),
            CommandCheck::Incomplete => Some(false),
            CommandCheck::NotRun => None,
        };
        json!({"purpose": self.purpose, "command": self.text, "works": works, "notes": self.notes})
    }
}

/// A command in lines of at most so many characters, each but the last with a backslash at its end.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = "  ".to_owned();
    let mut is_empty = true;
    for word in shell_words(text) {
        if !is_empty && line.chars().count() + word.chars().count() + " \\".len() + 1 > width {
            lines.push(format!("{line} \\"));
            line = INDENT.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines
}

/// Splits at the spaces outside of quotes.
fn shell_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut begin = 0;
    let mut is_quoted = false;
    for (place, c) in text.char_indices() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => {
                words.extend(text.get(begin..place));
                begin = place + 1;
            }
            _ => {}
        }
    }
    words.extend(text.get(begin..));
    words
}

/// The end of a check.
pub(super) struct CheckedRun {
    /// `None`: it took too long, and was ended.
    status: Option<ExitStatus>,
    pub(super) notes: Vec<String>,
    /// Comments of a script that tell of later changes, and its last line.
    pub(super) later: Vec<String>,
    pub(super) last: String,
}

impl CheckedRun {
    /// Runs a command, without what it would write.
    pub(super) fn of(words: &IncidentWords, time: Duration) -> Result<Self> {
        let failure = |error: std::io::Error| CommandFailure::of(&words.shown(), error);
        let mut child = words.start().map_err(failure)?;
        let errors = child.stderr.take().map(IncidentWords::read_errors);
        let script = child.stdout.take().map(read_script);
        let status = wait(&mut child, time).map_err(failure)?;
        let notes = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let (later, last) = script.and_then(|thread| thread.join().ok()).unwrap_or_default();
        Ok(CheckedRun { status, notes, later, last })
    }

    fn code(&self) -> Option<i32> {
        self.status.as_ref().and_then(ExitStatus::code)
    }

    pub(super) fn has_worked(&self) -> bool {
        self.code() == Some(0)
    }

    /// The lines that are printed with the command.
    pub(super) fn told(&self, time: Duration) -> Vec<String> {
        let slow = format!("not checked to its end: it takes longer than {} s", time.as_secs());
        let slow = self.status.is_none().then_some(slow);
        slow.into_iter().chain(self.notes.iter().cloned()).collect()
    }
}

fn wait(child: &mut Child, time: Duration) -> std::io::Result<Option<ExitStatus>> {
    let end = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// Goes through a script for what it says of itself.
fn read_script(out: impl Read + Send + 'static) -> JoinHandle<(Vec<String>, String)> {
    thread::spawn(move || {
        let mut later = Vec::new();
        let mut last = String::new();
        for line in BufReader::new(out).split(b'\n').map_while(std::result::Result::ok) {
            if !line.starts_with(b"-- ") {
                continue;
            }
            last = String::from_utf8_lossy(&line).into_owned();
            if let Some(change) = last.strip_prefix(LATER) {
                later.push(change.to_owned());
            }
        }
        (later, last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        let words =
            IncidentWords::of(&["undo", "--schema", "it's here.sql", "/var/lib/mysql/binlog.000042", ""]);
        assert_eq!(
            words.shown(),
            r"binlogz undo --schema 'it'\''s here.sql' /var/lib/mysql/binlog.000042 ''"
        );
    }

    #[test]
    fn long_commands_are_broken_between_words() {
        let text = "binlogz undo --schema 'a b c d e f' binlog.000041 binlog.000042 > undo.sql";
        let lines = broken(text, 40);
        let expected = [
            "  binlogz undo --schema 'a b c d e f' \\",
            "      binlog.000041 binlog.000042 > \\",
            "      undo.sql",
        ];
        assert_eq!(lines, expected);
    }
}
