//! `binlogz-sql`: SQL over binary logs and archives, found as `binlogz sql`.
//!
//! Answers go to standard output, trouble to standard error as one line, and the exit code says how it went: 0 done, 2 bad
//! usage, bad input or I/O trouble.

#[cfg(feature = "cluster")]
mod cluster;
mod export;
mod follow;
mod inputs;
mod told;

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use binlogz_binlog::printable;
use binlogz_query::engine::{STACK_SIZE, statements};
use binlogz_query::print::{Format, Printer};
use binlogz_query::{Error, Options};
use clap::{Parser, ValueEnum};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use inputs::InputArgs;

/// Ask MySQL's binary logs in SQL
///
/// The tables are transactions, changes and events, and each table with row changes in the logs, as in "shop"."orders".
/// The SQL is that of Apache DataFusion. Archives are read as they are: blocks that can't have what is asked for are
/// neither read nor unpacked.
#[derive(Debug, Parser)]
#[command(name = "binlogz-sql", bin_name = "binlogz sql", version, max_term_width = 100, after_help = EXAMPLES, help_template = EXAMPLES_FIRST)]
struct Sql {
    /// Run the statements of this file; - is standard input
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Table)]
    format: FormatArg,
    /// Memory for sorts, joins and groups, in MiB; what doesn't fit goes to temporary files
    #[arg(long, value_name = "MIB", default_value_t = MEMORY, value_parser = inputs::above_zero)]
    memory: NonZeroUsize,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: cluster::ClusterArgs,
    #[command(flatten)]
    inputs: InputArgs,
    /// The statement, unless --file has it; then binary logs, archives, logs in archives; - is standard input
    #[arg(value_name = "STATEMENT|INPUT")]
    arguments: Vec<OsString>,
}

/// As in the help of binlogz: examples come before the options.
const EXAMPLES_FIRST: &str =
    "{before-help}{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{all-args}";

/// The default of --memory.
const MEMORY: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
const MIB: usize = 1 << 20;
/// Bytes written at a time.
const BUFFER_SIZE: usize = 64 << 10;

/// How often removing the folder of temporary files is tried before a signal ends the run.
const REMOVALS_MAX: usize = 10;

const EXAMPLES: &str = r#"Examples:
  binlogz sql 'SELECT schema, "table", count(*) FROM changes GROUP BY 1, 2 ORDER BY 3 DESC' binlog.0000*
  binlogz sql 'SELECT sum(after.total) FROM "shop"."orders"' s3://bucket/archive
  binlogz sql --format csv -f report.sql archive > report.csv

Exit codes: 0 done, 2 bad usage, bad SQL, bad input or I/O trouble."#;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// A table for people
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

const TROUBLE: u8 = 2;

/// A command, ready to run.
type Run = Box<dyn FnOnce() -> Result<(), Error> + Send>;

/// The command that the command line asks for.
fn command() -> Run {
    #[cfg(feature = "cluster")]
    if let Some(run) = cluster::asked_for(std::env::args_os()) {
        return run;
    }
    // `binlogz export`: a word that is no statement.
    match export::asked_for(std::env::args_os()) {
        Some(command_line) => {
            let export = export::ExportArgs::parse_from(command_line);
            Box::new(move || export.run())
        }
        None => {
            let sql = Sql::parse();
            Box::new(move || sql.run())
        }
    }
}

fn main() -> ExitCode {
    let run = command();
    // Planning goes as deep as an expression.
    let runner = thread::Builder::new().stack_size(STACK_SIZE).spawn(run);
    match runner.map(thread::JoinHandle::join) {
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

/// Tells of trouble. If even standard error is closed, the exit code must do.
fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "binlogz-sql: {}", printable(line));
}

impl Sql {
    fn run(mut self) -> Result<(), Error> {
        let text = self.text()?;
        let statements = statements(&text)?;
        if self.arguments.is_empty() {
            return Err(Error::Sql("there is no INPUT, expected binary logs or an archive".to_owned()));
        }
        let temporary = Temporary::new()?;
        let paths = std::mem::take(&mut self.arguments);
        let logs = self.inputs.logs(paths)?;
        let jobs = self.inputs.jobs();
        let options = Options {
            memory: self.memory.get().saturating_mul(MIB),
            jobs,
            temporary: temporary.path().to_owned(),
        };
        #[cfg(feature = "cluster")]
        let engine = self.cluster.engine(logs, &options)?;
        #[cfg(not(feature = "cluster"))]
        let engine = binlogz_query::Engine::new(logs, &options)?;
        let out = BufWriter::with_capacity(BUFFER_SIZE, io::stdout());
        let mut printer = Printer::new(self.format.into(), out);
        let ran = statements.into_iter().try_for_each(|statement| engine.run(statement, &mut printer));
        // What was there before an error is shown.
        let written = printer.finish();
        engine.close();
        ran.and(written)
    }

    /// The statements; what stays in the arguments are inputs.
    fn text(&mut self) -> Result<String, Error> {
        let read = |name: &dyn std::fmt::Display, error: io::Error| Error::Sql(format!("{name}: {error}"));
        match &self.file {
            Some(path) if path == Path::new("-") => {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text).map_err(|error| read(&"standard input", error))?;
                Ok(text)
            }
            Some(path) => fs::read_to_string(path).map_err(|error| read(&path.display(), error)),
            None if self.arguments.is_empty() => {
                Err(Error::Sql("there is no statement, expected one, or --file FILE".to_owned()))
            }
            None => {
                let statement = self.arguments.remove(0);
                // Said before the parser says that it is no statement.
                if Path::new(&statement).exists() {
                    let path = statement.to_string_lossy();
                    return Err(Error::Sql(format!(
                        "{path}: is an input, expected the statement first: binlogz sql 'SELECT …' {path}"
                    )));
                }
                let text = statement.into_string();
                text.map_err(|text| {
                    Error::Sql(format!("the statement is no UTF-8: {}", text.to_string_lossy()))
                })
            }
        }
    }
}

/// The folder of temporary files: gone with the run, also if a signal ends it.
struct Temporary(tempfile::TempDir);

impl Temporary {
    fn new() -> Result<Self, Error> {
        // A signal is noted from here on, and acted on once the folder is there.
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
        let mut signals = signals.map_err(|error| Error::Log(format!("handle signals: {error}")))?;
        let folder = tempfile::Builder::new().prefix("binlogz-sql-").tempdir();
        let folder = folder.map_err(|error| Error::Log(format!("make a temporary folder: {error}")))?;
        let path = folder.path().to_owned();
        thread::spawn(move || {
            for signal in signals.forever() {
                // A query that still runs may add a file meanwhile.
                for _ in 0..REMOVALS_MAX {
                    if fs::remove_dir_all(&path).is_ok() {
                        break;
                    }
                }
                let _ = emulate_default_handler(signal);
            }
        });
        Ok(Temporary(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Table => Format::Table,
            FormatArg::Csv => Format::Csv,
            FormatArg::Tsv => Format::Tsv,
            FormatArg::Json => Format::Json,
            FormatArg::Arrow => Format::Arrow,
            FormatArg::Parquet => Format::Parquet,
        }
    }
}
