//! `binlogz-sql`: SQL over binary logs and archives, found as `binlogz sql`.
//!
//! Answers go to standard output, trouble to standard error as one line, and the exit code says how it went: 0 done, 1 changes
//! could not be read, 2 bad usage, bad input or I/O trouble.

mod base;
mod export;
mod follow;
mod inputs;
mod masked;
mod parameters;
mod progress;
mod prompt;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod server;
mod temporary;
mod told;

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use binlogz_cli_common::companions::export::ExportArgs;
use binlogz_cli_common::companions::sql::{SqlArgs, SqlFormat};
use binlogz_cli_common::failure::complain;
use binlogz_cli_common::malloc::give_buffers_back;
use binlogz_cli_common::program::speak_as;
use binlogz_cli_common::start::refuse;
use binlogz_cli_common::terminal;
use binlogz_exits::ExitCounts;
use binlogz_query::engine::{STACK_SIZE, statements};
use binlogz_query::print::{RowPrinter, RowsFormat};
use binlogz_query::{Error, QueryEngine, QueryOptions, ReadMeter, ReadStatement, StatementStopper, memory};
use clap::Parser;
use signal_hook::consts::SIGINT;

use progress::SqlProgress;
use prompt::Prompt;
use temporary::Temporary;

/// musl's own malloc takes a lock for each call. It is what the static programs of `make dist` are linked with.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MIB: usize = 1 << 20;
/// How often it is looked how much memory is held.
const MEMORY_PAUSE: Duration = Duration::from_millis(10);
/// Bytes written at a time.
const BUFFER_SIZE: usize = 64 << 10;

/// The name of this program, at servers too.
const PROGRAM: &str = "binlogz-sql";

const TROUBLE: u8 = 2;
/// The exit code where changes in the logs could not be read.
const NEGATIVE: u8 = 1;

/// A command, ready to run.
type Run = Box<dyn FnOnce() -> Result<(), Error> + Send>;

/// The command that the command line asks for.
fn command() -> Run {
    #[cfg(feature = "serve")]
    if let Some(run) = serve::asked_for(std::env::args_os()) {
        return run;
    }
    // `binlogz export`: a word that is no statement.
    match export::asked_for(std::env::args_os()) {
        Some(command_line) => {
            let export = ExportArgs::try_parse_from(command_line).unwrap_or_else(|error| refuse(&error));
            give_buffers_back();
            Box::new(move || export::run(export))
        }
        None => {
            let sql = SqlArgs::try_parse().unwrap_or_else(|error| refuse(&error));
            Box::new(move || run(sql))
        }
    }
}

fn main() -> ExitCode {
    speak_as(PROGRAM);
    let run = command();
    // Planning goes as deep as an expression.
    let runner = thread::Builder::new().stack_size(STACK_SIZE).spawn(run);
    match runner.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) if inputs::met_unread() => ExitCode::from(NEGATIVE),
        Ok(Ok(Ok(()) | Err(Error::ClosedPipe))) => ExitCode::SUCCESS,
        Ok(Ok(Err(error))) => {
            complain(&error.to_string());
            ExitCode::from(TROUBLE)
        }
        Ok(Err(_)) => ExitCode::from(TROUBLE),
        Err(error) => {
            complain(&format!("start a thread: {error}"));
            ExitCode::from(TROUBLE)
        }
    }
}

/// Where the statements are.
enum StatementInput {
    Text(String),
    /// At the terminal.
    Prompt,
}

/// Runs `binlogz sql`.
fn run(mut args: SqlArgs) -> Result<(), Error> {
    let values = parameters::values(&args.parameters)?;
    match asked(&mut args)? {
        StatementInput::Prompt => {
            let stopper: Arc<OnceLock<StatementStopper>> = Arc::default();
            let known = Arc::clone(&stopper);
            // Ctrl-C ends a statement, not the prompt.
            let temporary = Temporary::with(move |signal| {
                let known = known.get().filter(|_| signal == SIGINT);
                known.is_some_and(|stopper| {
                    stopper.stop();
                    true
                })
            })?;
            let meter = Arc::<ReadMeter>::default();
            let (engine, exits) = engine(&mut args, &temporary, Arc::clone(&meter))?;
            exits.iter().for_each(MaskedCounts::report);
            let _ = stopper.set(engine.stopper());
            let format = rows_format(args.format);
            let progress = &args.progress;
            let mut prompt = Prompt {
                engine: &engine,
                values,
                format,
                is_timing: false,
                has_pager: true,
                progress,
                meter,
            };
            let ended = prompt.run();
            engine.close();
            ended
        }
        StatementInput::Text(text) => {
            let statements = statements(&text)?;
            if args.arguments.is_empty() {
                return Err(Error::Sql("there is no INPUT, expected binary logs or an archive".to_owned()));
            }
            parameters::check(&statements, &values)?;
            let temporary = Temporary::new()?;
            let progress = SqlProgress::begin(&args.progress, "asking the logs");
            let (engine, exits) = engine(&mut args, &temporary, progress.meter())?;
            let out = BufWriter::with_capacity(BUFFER_SIZE, progress.before(io::stdout()));
            let mut printer = RowPrinter::new(rows_format(args.format), out).fit(terminal::width());
            let mut run = |statement: ReadStatement| engine.run(statement.with(values.clone()), &mut printer);
            let ran = statements.into_iter().try_for_each(&mut run);
            // Rows before an error are shown.
            let written = printer.finish();
            engine.close();
            progress.make_way();
            exits.iter().for_each(MaskedCounts::report);
            ran.and(written)
        }
    }
}

/// What is to be said of masked logs.
struct MaskedCounts {
    counts: ExitCounts,
    unread: Arc<AtomicBool>,
}

impl MaskedCounts {
    fn report(&self) {
        masked::report_counts(&self.counts, &self.unread);
    }
}

/// Opens the logs of the arguments.
fn engine(
    args: &mut SqlArgs,
    temporary: &Temporary,
    meter: Arc<ReadMeter>,
) -> Result<(QueryEngine, Option<MaskedCounts>), Error> {
    watch_memory(args.memory.get(), temporary.path().to_owned());
    let paths = std::mem::take(&mut args.arguments);
    let opened = inputs::logs(&args.inputs, &args.base, paths)?.metered(meter);
    let logs = match args.exits.as_deref() {
        Some(policy) => masked::logs_to_ask(opened, policy, masked::nameless_file()?)?,
        None => opened,
    };
    let unread = logs.unread();
    let exits = logs.exit_counts().map(|counts| MaskedCounts { counts: counts.clone(), unread });
    let options = QueryOptions {
        memory: args.memory.get().saturating_mul(MIB),
        jobs: args.inputs.jobs(),
        temporary: temporary.path().to_owned(),
    };
    Ok((QueryEngine::new(logs, &options)?, exits))
}

/// The statements; what stays in the arguments are inputs.
fn asked(args: &mut SqlArgs) -> Result<StatementInput, Error> {
    let read = |name: &dyn std::fmt::Display, error: io::Error| Error::Sql(format!("{name}: {error}"));
    if let Some(path) = args.file.as_deref().filter(|path| *path != Path::new("-")) {
        return fs::read_to_string(path)
            .map(StatementInput::Text)
            .map_err(|error| read(&path.display(), error));
    }
    if args.file.is_none() {
        match args.arguments.first() {
            None => {
                return Err(Error::Sql("there is no statement, expected one, or --file FILE".to_owned()));
            }
            Some(first) if !is_input(Path::new(first)) => {
                let text = args.arguments.remove(0).into_string();
                return text.map(StatementInput::Text).map_err(|text| {
                    Error::Sql(format!("the statement is no UTF-8: {}", text.to_string_lossy()))
                });
            }
            // Said before the statement is looked for as a file.
            Some(first) if args.arguments.iter().skip(1).any(|other| !is_input(Path::new(other))) => {
                let path = first.to_string_lossy();
                return Err(Error::Sql(format!(
                    "{path}: is an input, expected the statement first: binlogz sql 'SELECT …' {path}"
                )));
            }
            Some(_) => {}
        }
    }
    if args.arguments.iter().any(|path| path == "-") {
        let what = "standard input: is a log, so the statement is expected as an argument, or --file FILE";
        return Err(Error::Sql(what.to_owned()));
    }
    let mut stdin = io::stdin();
    if args.file.is_none() && stdin.is_terminal() {
        return Ok(StatementInput::Prompt);
    }
    let mut text = String::new();
    stdin.read_to_string(&mut text).map_err(|error| read(&"standard input", error))?;
    Ok(StatementInput::Text(text))
}

/// Ends the run if it holds more than it may: not all of it is counted where it is made.
fn watch_memory(mib: usize, temporary: PathBuf) {
    let held_max = memory::held_max(mib.saturating_mul(MIB));
    thread::spawn(move || {
        // A system that doesn't tell it won't later.
        while let Some(held) = memory::held_by(None) {
            if held > held_max {
                let what = "the process is ended".to_owned();
                complain(&Error::Memory { limit: mib, what }.to_string());
                let _ = fs::remove_dir_all(&temporary);
                process::exit(TROUBLE.into());
            }
            thread::sleep(MEMORY_PAUSE);
        }
    });
}

/// Whether an argument is a place rather than a statement: something that is there, or one word.
fn is_input(argument: &Path) -> bool {
    let text = argument.to_string_lossy();
    let is_word = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "();*'".contains(c));
    let begins_in_a_folder = || {
        argument
            .ancestors()
            .any(|above| !above.as_os_str().is_empty() && above != Path::new("/") && above.exists())
    };
    is_word || begins_in_a_folder()
}

/// The printer's format of an option.
fn rows_format(format: SqlFormat) -> RowsFormat {
    match format {
        SqlFormat::Table => RowsFormat::Table,
        SqlFormat::Csv => RowsFormat::Csv,
        SqlFormat::Tsv => RowsFormat::Tsv,
        SqlFormat::Json => RowsFormat::Json,
        SqlFormat::Arrow => RowsFormat::Arrow,
        SqlFormat::Parquet => RowsFormat::Parquet,
    }
}
