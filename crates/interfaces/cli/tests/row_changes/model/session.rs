//! A session with a server that stays open: a process for each question would cost more than its answer.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};

use binlogz_testkit::{Error, Result, SandboxServer};

use super::costs::timed;

/// Printed after the answer to each question.
const END: &str = "= end of answer =";

/// A server with a client that stays connected. Clients of their own run the changes, with the settings of that moment.
pub(super) struct ModelSession<'a> {
    server: &'a SandboxServer,
    client: RefCell<Client>,
}

/// A client program that is asked through pipes.
struct Client {
    process: Child,
    questions: ChildStdin,
    /// Rows and errors.
    answers: BufReader<PipeReader>,
}

impl Deref for ModelSession<'_> {
    type Target = SandboxServer;
    fn deref(&self) -> &SandboxServer {
        self.server
    }
}

impl ModelSession<'_> {
    pub(super) fn new(server: &SandboxServer) -> ModelSession<'_> {
        let (answers, output) = std::io::pipe().unwrap();
        let mut command = server.client();
        command.args(["--force", "--unbuffered"]).stdin(Stdio::piped());
        command.stdout(output.try_clone().unwrap()).stderr(output);
        let mut process = command.spawn().unwrap();
        let questions = process.stdin.take().unwrap();
        let client = RefCell::new(Client { process, questions, answers: BufReader::new(answers) });
        ModelSession { server, client }
    }

    /// Runs statements; returns what the client prints, or the first error.
    pub(super) fn sql(&self, statements: &str) -> Result<String> {
        timed("sql", || self.client.borrow_mut().ask(statements))
    }

    /// Drops a database whatever refers to its tables.
    pub(super) fn drop_database(&self, name: &str) -> Result<()> {
        let own = "SET foreign_key_checks";
        self.sql(&format!("{own} = 0; DROP DATABASE {name}; {own} = 1")).map(drop)
    }

    /// Begins a new binary log; returns the one it closed.
    pub(super) fn flush_binary_logs(&self) -> Result<PathBuf> {
        let last = self.binlogs()?.pop().unwrap();
        self.sql("FLUSH BINARY LOGS")?;
        Ok(last)
    }

    /// Deletes all binary logs but a new one.
    pub(super) fn purge_binary_logs(&self) -> Result<()> {
        self.flush_binary_logs()?;
        let name = self.binlogs()?.pop().unwrap();
        let name = name.file_name().unwrap().to_string_lossy().into_owned();
        self.sql(&format!("PURGE BINARY LOGS TO '{name}'")).map(drop)
    }
}

impl Client {
    fn ask(&mut self, statements: &str) -> Result<String> {
        let statements = statements.trim_end().trim_end_matches(';');
        writeln!(self.questions, "{statements};\nSELECT '{END}';").unwrap();
        self.questions.flush().unwrap();
        let (mut answer, mut line) = (String::new(), Vec::new());
        let mut error = None;
        loop {
            line.clear();
            self.answers.read_until(b'\n', &mut line).unwrap();
            let text = String::from_utf8_lossy(&line);
            match text.trim_end_matches('\n') {
                END => break,
                "" if line.is_empty() => {
                    return Err(Error::Failed(format!("the client has ended: {answer}")));
                }
                // Rows are numbers, names and hexadecimal digits.
                text if text.starts_with("ERROR ") => error = error.or(Some(text.to_owned())),
                _ => answer.push_str(&text),
            }
        }
        error.map_or(Ok(answer), |error| Err(Error::Failed(error)))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Its input ends with the program that asks; it is not waited for, since its server may hang.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
