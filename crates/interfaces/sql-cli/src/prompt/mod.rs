//! The prompt: statements of several lines, one after the other, until the end of input. Errors don't end it, and Ctrl-C ends
//! what runs.
//!
//! ```text
//! commands    \d, \timing and others, which are no SQL
//! completion  names for the Tab key, and where a statement ends
//! history     earlier statements, in a file
//! ```

mod commands;
mod completion;
mod history;
mod sql_names;

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_cli_common::companions::sql_inputs::SqlProgressArgs;
use binlogz_figures::progress::TICK;
use binlogz_query::print::{RowPrinter, RowsFormat};
use binlogz_query::statements::statements;
use binlogz_query::{Error, Names, ParameterValues, QueryEngine, ReadMeter};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use crate::progress::SqlProgress;
use crate::{BUFFER_SIZE, complain, terminal};
use commands::PromptCommand;
use completion::PromptHelper;

const PROMPT: &str = "binlogz> ";
/// How long the prompt waits for the names of user tables, which may need all logs to be read.
const GREETING_WAIT: Duration = Duration::from_millis(800);
/// User tables that the greeting names.
const GREETED_MAX: usize = 5;

/// The state of a prompt.
pub(crate) struct Prompt<'a> {
    pub(crate) engine: &'a QueryEngine,
    pub(crate) values: ParameterValues,
    pub(crate) format: RowsFormat,
    pub(crate) is_timing: bool,
    pub(crate) progress: &'a SqlProgressArgs,
    /// Counts the bytes that the engine has read.
    pub(crate) meter: Arc<ReadMeter>,
}

impl Prompt<'_> {
    /// Runs statements until the end of input.
    pub(crate) fn run(&mut self) -> Result<(), Error> {
        let failed = |error: ReadlineError| Error::Log(format!("prompt: {error}"));
        let config = Config::builder().completion_type(CompletionType::List).auto_add_history(false).build();
        let mut editor: Editor<PromptHelper, FileHistory> = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(PromptHelper::new(self.engine.names().clone())));
        let history = history::file();
        if let Some(path) = &history {
            // There is none at first.
            let _ = editor.load_history(path);
        }
        greet(self.engine.names())?;
        loop {
            match editor.readline(PROMPT) {
                Ok(text) => {
                    let text = text.trim();
                    if text.is_empty() {
                        continue;
                    }
                    let _ = editor.add_history_entry(text);
                    if let Some(path) = &history {
                        // A disk that is full or read-only takes the history from later sessions, no more.
                        let _ = editor.append_history(path);
                    }
                    match self.take(text) {
                        Ok(true) => {}
                        Ok(false) => return Ok(()),
                        Err(Error::ClosedPipe) => return Err(Error::ClosedPipe),
                        Err(error) => complain(&error.to_string()),
                    }
                }
                // The statement that was begun is dropped.
                Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {}
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Executes a line or a statement; false: it asks for the end.
    fn take(&mut self, text: &str) -> Result<bool, Error> {
        if let Some(command) = PromptCommand::of(text) {
            return self.obey(command?);
        }
        for statement in statements(text)? {
            let begun = Instant::now();
            let progress = self.begin("asking the logs");
            let mut printer = self.printer(progress.before(io::stdout()));
            let ran = self.engine.run(statement.with(self.values.clone()), &mut printer);
            let written = printer.finish();
            // Before the error, the time and the next prompt.
            drop(progress);
            ran.and(written)?;
            if self.is_timing {
                writeln!(io::stdout(), "Time: {:.3} s", begun.elapsed().as_secs_f64())?;
            }
        }
        Ok(true)
    }

    /// Progress of what may read logs.
    fn begin(&self, name: &'static str) -> SqlProgress {
        SqlProgress::begin_again(self.progress, name, Arc::clone(&self.meter), TICK)
    }

    fn printer<W: Write + Send>(&self, out: W) -> RowPrinter<BufWriter<W>> {
        RowPrinter::new(self.format, BufWriter::with_capacity(BUFFER_SIZE, out)).fit(terminal::width())
    }
}

/// Names the tables, and what helps on.
fn greet(names: &Names) -> Result<(), Error> {
    let (sender, receiver) = mpsc::channel();
    let looking = names.clone();
    // It goes on for the Tab key when it takes longer.
    thread::spawn(move || sender.send(looking.tables().map(|_| ())));
    let _ = receiver.recv_timeout(GREETING_WAIT);
    let of_users = match names.known_tables() {
        Some(tables) if tables.is_empty() => String::new(),
        Some(tables) => {
            let named: Vec<_> = tables.iter().take(GREETED_MAX).map(sql_names::written).collect();
            let more = tables.len().saturating_sub(GREETED_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!(", {}{more}", named.join(", "))
        }
        None => ", and each table with row changes in the logs".to_owned(),
    };
    let mut out = io::stdout();
    writeln!(out, "Tables: transactions, changes, events{of_users}. \\d lists them, \\d TABLE its columns.")?;
    writeln!(out, "A statement ends with ; Tab completes names, \\? is help, \\q ends.")?;
    Ok(out.flush()?)
}
