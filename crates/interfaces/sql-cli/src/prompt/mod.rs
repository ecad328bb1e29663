//! The prompt: statements of several lines, one after the other, until the end of input. Errors don't end it, and Ctrl-C ends
//! what runs.
//!
//! ```text
//! commands    \d, .timer and others, which are no SQL
//! ending      where a statement ends
//! completion  names for the Tab key
//! place       the caret below what an error is about
//! history     earlier statements, in a file
//! ```

mod commands;
mod completion;
mod ending;
mod history;
mod place;
mod sql_names;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_cli_common::companions::sql_inputs::SqlProgressArgs;
use binlogz_cli_common::pager::PagedOutput;
use binlogz_figures::progress::TICK;
use binlogz_query::print::{RowPrinter, RowsFormat};
use binlogz_query::statements::statements;
use binlogz_query::{Error, Names, ParameterValues, QueryEngine, ReadMeter, ReadStatement};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use crate::progress::SqlProgress;
use crate::{BUFFER_SIZE, complain, terminal};
use commands::PromptCommand;
use completion::PromptHelper;
use place::ErrorPlace;

const PROMPT: &str = "binlogz> ";
/// Statements that the history has.
const HISTORY_MAX: usize = 10_000;
/// Columns of a terminal that doesn't tell.
const USUAL_WIDTH: usize = 80;
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
    /// Whether long answers go to a pager.
    pub(crate) has_pager: bool,
    pub(crate) progress: &'a SqlProgressArgs,
    /// Counts the bytes that the engine has read.
    pub(crate) meter: Arc<ReadMeter>,
}

impl Prompt<'_> {
    /// Runs statements until the end of input.
    pub(crate) fn run(&mut self) -> Result<(), Error> {
        let failed = |error: ReadlineError| Error::Log(format!("prompt: {error}"));
        let config = Config::builder().completion_type(CompletionType::List).auto_add_history(false);
        let config = config.max_history_size(HISTORY_MAX).map_err(failed)?.build();
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
                        Err(error) => complain_of(&error, text)?,
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
        let (text, last_is_tall) = ending::statements_of(text);
        let mut statements = statements(text)?.into_iter().peekable();
        while let Some(statement) = statements.next() {
            let is_tall = last_is_tall && statements.peek().is_none();
            self.execute(statement, if is_tall { RowsFormat::Tall } else { self.format })?;
        }
        Ok(true)
    }

    /// Executes a statement and shows its rows.
    fn execute(&self, statement: ReadStatement, format: RowsFormat) -> Result<(), Error> {
        let begun = Instant::now();
        let progress = self.begin("asking the logs");
        let mut printer = self.printer(format, progress.before(io::stdout()));
        let ran = self.engine.run(statement.with(self.values.clone()), &mut printer);
        let took = begun.elapsed();
        // The rows are shown before the error, the time and the next prompt.
        let written = printer.finish();
        drop(progress);
        match ran.and(written) {
            // A user who has seen enough leaves the pager: a terminal is no pipe.
            Err(Error::ClosedPipe) if io::stdout().is_terminal() => {}
            shown => shown?,
        }
        if self.is_timing {
            writeln!(io::stdout(), "Time: {:.3} s", took.as_secs_f64())?;
        }
        Ok(())
    }

    /// Progress of what may read logs.
    fn begin(&self, name: &'static str) -> SqlProgress {
        SqlProgress::begin_again(self.progress, name, Arc::clone(&self.meter), TICK)
    }

    fn printer<W: Write + Send>(&self, format: RowsFormat, out: W) -> RowPrinter<BufWriter<PagedOutput<W>>> {
        // These are no text.
        let is_text = !matches!(format, RowsFormat::Arrow | RowsFormat::Parquet);
        let out = PagedOutput::new(out, self.has_pager && is_text);
        RowPrinter::new(format, BufWriter::with_capacity(BUFFER_SIZE, out)).fit(terminal::width())
    }
}

/// Tells of an error, and shows where in the text it is.
fn complain_of(error: &Error, text: &str) -> Result<(), Error> {
    let told = error.to_string();
    complain(&told);
    let (text, _) = ending::statements_of(text);
    let place = ErrorPlace::of(&told, text).filter(|_| matches!(error, Error::Sql(_)));
    let width = terminal::width().unwrap_or(USUAL_WIDTH);
    if let Some(drawn) = place.and_then(|place| place.drawn(text, width)) {
        writeln!(io::stderr(), "{drawn}")?;
    }
    Ok(())
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
