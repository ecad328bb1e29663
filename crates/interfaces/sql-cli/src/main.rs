//! `binlogz-sql`: SQL over binary logs and archives, found as `binlogz sql`.
//!
//! Answers go to standard output, trouble to standard error as one line, and the exit code says how it went: 0 done, 1 changes
//! could not be read, 2 bad usage, bad input or I/O trouble.

#[cfg(feature = "cluster")]
mod cluster;
mod export;
mod follow;
mod inputs;
mod parameters;
mod progress;
mod prompt;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod server;
mod temporary;
mod told;

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, IsTerminal, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use binlogz_cli_common::failure::complain;
use binlogz_cli_common::help::{EXAMPLES_FIRST, HELP_WIDTH};
use binlogz_cli_common::program::speak_as;
use binlogz_cli_common::start::refuse;
use binlogz_cli_common::terminal;
use binlogz_cli_common::units::above_zero;
use binlogz_query::engine::{STACK_SIZE, statements};
use binlogz_query::print::{RowPrinter, RowsFormat};
use binlogz_query::{Error, QueryEngine, QueryOptions, ReadMeter, ReadStatement, StatementStopper, memory};
use clap::{Parser, ValueEnum};
use signal_hook::consts::SIGINT;

use inputs::SqlInputArgs;
use progress::ProgressArgs;
use prompt::Prompt;
use temporary::Temporary;

/// musl's own malloc takes a lock for each call. It is what the static programs of `make dist` are linked with.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Ask MySQL's binary logs in SQL
///
/// The tables are transactions, changes and events, and each table with row changes in the logs, as in "shop"."orders".
/// The SQL is that of Apache DataFusion; statements can only read. Archives are read as they are: blocks that can't have what
/// is asked for are neither read nor unpacked. Without a statement there is a prompt, or standard input has the statements.
/// Other programs connect to binlogz sql serve.
#[derive(Debug, Parser)]
#[command(name = "binlogz-sql", bin_name = "binlogz sql", version, max_term_width = HELP_WIDTH, after_help = EXAMPLES, help_template = EXAMPLES_FIRST)]
struct Sql {
    /// Run the statements of this file; - is standard input
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Table)]
    format: FormatArg,
    /// Memory for reading, sorts, joins and groups, in MiB; what doesn't fit goes to temporary files
    #[arg(long, value_name = "MIB", default_value_t = MEMORY, value_parser = above_zero)]
    memory: NonZeroUsize,
    /// Value of a parameter, $NAME in the statement ($1, or ? for the next number); may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameters::parse)]
    parameters: Vec<(String, String)>,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: cluster::ClusterArgs,
    #[command(flatten)]
    inputs: SqlInputArgs,
    #[command(flatten)]
    progress: ProgressArgs,
    /// The statement, if it isn't elsewhere; then binary logs, archives, logs in archives; - is standard input
    #[arg(value_name = "STATEMENT|INPUT")]
    arguments: Vec<OsString>,
}

/// The default of --memory.
const MEMORY: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
const MIB: usize = 1 << 20;
/// How often it is looked how much memory is held.
const MEMORY_PAUSE: Duration = Duration::from_millis(10);
/// Bytes written at a time.
const BUFFER_SIZE: usize = 64 << 10;

const EXAMPLES: &str = r#"Examples:
  binlogz sql 'SELECT schema, "table", count(*) FROM changes GROUP BY 1, 2 ORDER BY 3 DESC' binlog.0000*
  binlogz sql 'SELECT sum(after.total) FROM "shop"."orders"' s3://bucket/archive
  binlogz sql --format csv -f report.sql archive > report.csv
  binlogz sql --param id=42 'SELECT * FROM "shop"."orders" WHERE after.id = $id' archive
  binlogz sql archive                                     # a prompt

Exit codes: 0 done, 1 changes in the logs could not be read (each is named), 2 bad usage, bad SQL, bad input or I/O trouble."#;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// A table for people
    #[value(alias = "text")]
    Table,
    /// Comma-separated values with a heading; NULL is empty
    Csv,
    /// Tab-separated values, as mysql --batch has them
    Tsv,
    /// One JSON object a line
    Json,
    /// Arrow's IPC stream
    Arrow,
    /// A Parquet file with the rows of one statement
    Parquet,
}

/// The name of this program, at servers too.
const PROGRAM: &str = "binlogz-sql";

const TROUBLE: u8 = 2;
/// The exit code where changes in the logs could not be read.
const NEGATIVE: u8 = 1;

/// A command, ready to run.
type Run = Box<dyn FnOnce() -> Result<(), Error> + Send>;

/// The command that the command line asks for.
fn command() -> Run {
    #[cfg(feature = "cluster")]
    if let Some(run) = cluster::asked_for(std::env::args_os()) {
        return run;
    }
    #[cfg(feature = "serve")]
    if let Some(run) = serve::asked_for(std::env::args_os()) {
        return run;
    }
    // `binlogz export`: a word that is no statement.
    match export::asked_for(std::env::args_os()) {
        Some(command_line) => {
            let export =
                export::ExportArgs::try_parse_from(command_line).unwrap_or_else(|error| refuse(&error));
            Box::new(move || export.run())
        }
        None => {
            let sql = Sql::try_parse().unwrap_or_else(|error| refuse(&error));
            Box::new(move || sql.run())
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

impl Sql {
    fn run(mut self) -> Result<(), Error> {
        let values = parameters::values(&self.parameters)?;
        match self.asked()? {
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
                let engine = self.engine(&temporary, Arc::clone(&meter))?;
                let _ = stopper.set(engine.stopper());
                let (format, progress) = (self.format.into(), &self.progress);
                let mut prompt =
                    Prompt { engine: &engine, values, format, is_timing: false, progress, meter };
                let ended = prompt.run();
                engine.close();
                ended
            }
            StatementInput::Text(text) => {
                let statements = statements(&text)?;
                if self.arguments.is_empty() {
                    return Err(Error::Sql(
                        "there is no INPUT, expected binary logs or an archive".to_owned(),
                    ));
                }
                parameters::check(&statements, &values)?;
                let temporary = Temporary::new()?;
                let progress = self.progress.begin("asking the logs");
                let engine = self.engine(&temporary, progress.meter())?;
                let out = BufWriter::with_capacity(BUFFER_SIZE, progress.before(io::stdout()));
                let mut printer = RowPrinter::new(self.format.into(), out).fit(terminal::width());
                let mut run =
                    |statement: ReadStatement| engine.run(statement.with(values.clone()), &mut printer);
                let ran = statements.into_iter().try_for_each(&mut run);
                // Rows before an error are shown.
                let written = printer.finish();
                engine.close();
                ran.and(written)
            }
        }
    }

    fn engine(&mut self, temporary: &Temporary, meter: Arc<ReadMeter>) -> Result<QueryEngine, Error> {
        watch_memory(self.memory.get(), temporary.path().to_owned());
        let paths = std::mem::take(&mut self.arguments);
        let logs = self.inputs.logs(paths)?.metered(meter);
        let options = QueryOptions {
            memory: self.memory.get().saturating_mul(MIB),
            jobs: self.inputs.jobs(),
            temporary: temporary.path().to_owned(),
        };
        #[cfg(feature = "cluster")]
        return self.cluster.engine(logs, &options);
        #[cfg(not(feature = "cluster"))]
        QueryEngine::new(logs, &options)
    }

    /// The statements; what stays in the arguments are inputs.
    fn asked(&mut self) -> Result<StatementInput, Error> {
        let read = |name: &dyn std::fmt::Display, error: io::Error| Error::Sql(format!("{name}: {error}"));
        if let Some(path) = self.file.as_deref().filter(|path| *path != Path::new("-")) {
            return fs::read_to_string(path)
                .map(StatementInput::Text)
                .map_err(|error| read(&path.display(), error));
        }
        if self.file.is_none() {
            match self.arguments.first() {
                None => {
                    return Err(Error::Sql("there is no statement, expected one, or --file FILE".to_owned()));
                }
                Some(first) if !is_input(Path::new(first)) => {
                    let text = self.arguments.remove(0).into_string();
                    return text.map(StatementInput::Text).map_err(|text| {
                        Error::Sql(format!("the statement is no UTF-8: {}", text.to_string_lossy()))
                    });
                }
                // Said before the statement is looked for as a file.
                Some(first) if self.arguments.iter().skip(1).any(|other| !is_input(Path::new(other))) => {
                    let path = first.to_string_lossy();
                    return Err(Error::Sql(format!(
                        "{path}: is an input, expected the statement first: binlogz sql 'SELECT …' {path}"
                    )));
                }
                Some(_) => {}
            }
        }
        if self.arguments.iter().any(|path| path == "-") {
            let what =
                "standard input: is a log, so the statement is expected as an argument, or --file FILE";
            return Err(Error::Sql(what.to_owned()));
        }
        let mut stdin = io::stdin();
        if self.file.is_none() && stdin.is_terminal() {
            return Ok(StatementInput::Prompt);
        }
        let mut text = String::new();
        stdin.read_to_string(&mut text).map_err(|error| read(&"standard input", error))?;
        Ok(StatementInput::Text(text))
    }
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

impl From<FormatArg> for RowsFormat {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Table => RowsFormat::Table,
            FormatArg::Csv => RowsFormat::Csv,
            FormatArg::Tsv => RowsFormat::Tsv,
            FormatArg::Json => RowsFormat::Json,
            FormatArg::Arrow => RowsFormat::Arrow,
            FormatArg::Parquet => RowsFormat::Parquet,
        }
    }
}

impl From<RowsFormat> for FormatArg {
    fn from(format: RowsFormat) -> Self {
        match format {
            RowsFormat::Table => FormatArg::Table,
            RowsFormat::Csv => FormatArg::Csv,
            RowsFormat::Tsv => FormatArg::Tsv,
            RowsFormat::Json => FormatArg::Json,
            RowsFormat::Arrow => FormatArg::Arrow,
            RowsFormat::Parquet => FormatArg::Parquet,
        }
    }
}
