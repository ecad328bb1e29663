//! `binlogz sql serve`: other programs ask the logs, over Flight SQL.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU64, NonZeroUsize};
use std::os::unix::fs::PermissionsExt;
use std::panic;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use binlogz_cli_common::help::{EXAMPLES_FIRST, HELP_WIDTH};
use binlogz_cli_common::start::refuse;
use binlogz_cli_common::units::above_zero;
use binlogz_flight::{
    DEFAULT_PORT, FlightAccounts, FlightServer, StatementLimits, Tls, WorkerCommand, questions, work,
};
use binlogz_query::engine::STACK_SIZE;
use binlogz_query::{Error, Logs, QueryEngine, QueryOptions, SchemaTime};
use clap::Parser;
use serde::Deserialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::inputs::SqlInputArgs;
use crate::temporary::Temporary;
use crate::{MEMORY, MIB, Run, TROUBLE, complain};

const COMMAND: &str = "serve";
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT);
const PASSWORD: &str = "BINLOGZ_SQL_PASSWORD";
/// Each reads logs with some 100 MiB of its own.
const QUERIES: NonZeroUsize = NonZeroUsize::new(8).unwrap();
const IDLE_MINUTES: NonZeroU64 = NonZeroU64::new(30).unwrap();
/// Ten minutes.
const TIMEOUT_SECONDS: NonZeroU64 = NonZeroU64::new(600).unwrap();
const PLANNING_TIME: Duration = Duration::from_secs(10);
/// An environment variable for workers: the folder of the server's temporary files. A process that has it is a worker.
const WORKER: &str = "BINLOGZ_SQL_WORKER";
/// An environment variable for workers: the file with CREATE TABLE statements that the server read.
const WORKER_SCHEMA: &str = "BINLOGZ_SQL_WORKER_SCHEMA";
/// An environment variable for workers: the time of these statements, as the bytes of the last log before and after.
const WORKER_SCHEMA_TIME: &str = "BINLOGZ_SQL_WORKER_SCHEMA_TIME";
/// Threads for connections; queries have their own.
const CONNECTION_THREADS: usize = 2;
/// More than any file with a password or accounts.
const SIZE_MAX: u64 = 1 << 20;
/// Reading or writing by users other than the owner and the group.
const OTHERS: u32 = 0o006;
/// Writing by them.
const OTHERS_WRITE: u32 = 0o002;

const EXAMPLES: &str = "Examples:
  binlogz sql serve /var/lib/mysql/binlog.0*
  binlogz sql serve --listen 0.0.0.0:31337 --tls-dir tls --accounts accounts.toml s3://bucket/archive

Exit codes: 0 ended by Ctrl-C or SIGTERM, 2 bad usage, bad input or I/O trouble.";

/// Let other programs ask logs in SQL, over Arrow Flight SQL
///
/// JDBC, ADBC and what is built on them connect: DBeaver, Grafana, Python, R, Go. They can only read. The logs are those that
/// there are at the start.
#[derive(Debug, Parser)]
#[command(name = "binlogz-sql serve", bin_name = "binlogz sql serve", version, max_term_width = HELP_WIDTH, after_help = EXAMPLES, help_template = EXAMPLES_FIRST)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on; port 0: any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = LOOPBACK)]
    listen: SocketAddr,
    /// Accounts that may log in: a file of tables named account, each with user and password_file or password_env
    #[arg(long, value_name = "FILE.toml")]
    accounts: Option<PathBuf>,
    /// One who may log in, with the password of --password-file, of BINLOGZ_SQL_PASSWORD, or as asked at the terminal
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A file with the password of --user, which others can't read
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Certificate for TLS, as PEM
    #[arg(long, value_name = "FILE.pem", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, as PEM
    #[arg(long, value_name = "FILE.pem", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// TLS with a certificate of its own, made once and kept in this folder as sql-cert.pem
    #[arg(long, value_name = "DIR", conflicts_with = "tls_cert")]
    tls_dir: Option<PathBuf>,
    /// Name or address by which clients reach it, for its own certificate; may be repeated
    #[arg(long, value_name = "HOST", requires = "tls_dir")]
    tls_name: Vec<String>,
    /// Listen beyond this machine without TLS or without passwords
    #[arg(long)]
    insecure: bool,
    /// Answer queries without the changes that can't be read, and with NULL for columns that aren't known; standard error names these
    ///
    /// Otherwise a query that meets some is an error, since its client doesn't see standard error.
    #[arg(long)]
    over_unread: bool,
    /// Memory of all queries, in MiB; what sorts, joins and groups can't hold goes to temporary files, and a query beyond that ends
    #[arg(long, value_name = "MIB", default_value_t = MEMORY, value_parser = above_zero)]
    memory: NonZeroUsize,
    /// Queries that run at once; others wait
    #[arg(long, value_name = "N", default_value_t = QUERIES, value_parser = above_zero)]
    queries: NonZeroUsize,
    /// Seconds after which a query is ended
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT_SECONDS)]
    timeout: NonZeroU64,
    /// Minutes after which a session, or a query whose rows nobody takes, ends
    #[arg(long, value_name = "MINUTES", default_value_t = IDLE_MINUTES)]
    idle: NonZeroU64,
    #[command(flatten)]
    inputs: SqlInputArgs,
    /// Binary logs, archives, logs in archives
    #[arg(value_name = "INPUT", required = true)]
    arguments: Vec<OsString>,
}

/// The file of accounts, as people write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountsFile {
    account: Vec<AccountEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountEntry {
    user: String,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
}

/// Serves, if a whole command line, program name included, asks for it.
pub(crate) fn asked_for(mut command_line: impl Iterator<Item = OsString>) -> Option<Run> {
    let program = command_line.next()?;
    if command_line.next()? != COMMAND {
        return None;
    }
    let command_line = std::iter::once(program).chain(command_line);
    let args = ServeArgs::try_parse_from(command_line).unwrap_or_else(|error| refuse(&error));
    Some(Box::new(move || args.run()))
}

impl ServeArgs {
    fn run(self) -> Result<(), Error> {
        if let Some(folder) = env::var_os(WORKER) {
            return self.work(folder.into());
        }
        let accounts = self.accounts()?;
        self.check(&accounts)?;
        let tls = self.tls()?;
        // The first signal ends the server, the second one the process.
        let (end, ended) = oneshot::channel();
        let end = Mutex::new(Some(end));
        let temporary = Temporary::with(move |signal| {
            let end = end.lock().unwrap_or_else(PoisonError::into_inner).take();
            [SIGINT, SIGTERM, SIGHUP].contains(&signal) && end.is_some_and(|end| end.send(()).is_ok())
        })?;
        let options = QueryOptions {
            memory: self.memory.get().saturating_mul(MIB),
            jobs: self.inputs.jobs(),
            temporary: temporary.path().to_owned(),
        };
        let logs = self.inputs.logs(self.arguments.clone())?;
        // Now, and not in the answer to each question.
        logs.check()?;
        logs.can_be_read_again()?;
        let worker = worker(&logs, temporary.path())?;
        let engine = QueryEngine::new(logs, &options)?;
        let scheme = if tls.is_some() { "grpc+tls" } else { "grpc" };
        let server = FlightServer {
            listen: self.listen,
            tls,
            limits: StatementLimits {
                memory: options.memory,
                queries: self.queries.get(),
                // A single account may have all; of several accounts, none can keep the others out.
                queries_of_account: match accounts.count() {
                    0 | 1 => self.queries.get(),
                    _ => self.queries.get().div_ceil(2),
                },
                time: Duration::from_secs(self.timeout.get()),
                planning_time: PLANNING_TIME,
            },
            worker,
            accounts,
            idle: Duration::from_secs(self.idle.get().saturating_mul(60)),
        };
        let runtime = Builder::new_multi_thread().worker_threads(CONNECTION_THREADS).enable_all().build();
        let runtime = runtime.map_err(|error| Error::Log(format!("start threads: {error}")))?;
        let listening = |address: SocketAddr| {
            // If nobody reads it, the server serves all the same.
            let _ = writeln!(io::stdout(), "listening on {scheme}://{address}")
                .and_then(|()| io::stdout().flush());
        };
        let served = runtime.block_on(server.run(engine.queries(), Arc::new(complain), listening, async {
            let _ = ended.await;
        }));
        runtime.shutdown_background();
        engine.close();
        served.map_err(|error| Error::Log(error.to_string()))
    }

    /// Plans and runs statements for a server, and writes the results to standard output.
    fn work(self, folder: PathBuf) -> Result<(), Error> {
        let options = QueryOptions {
            memory: self.memory.get().saturating_mul(MIB),
            jobs: self.inputs.jobs(),
            temporary: folder,
        };
        let mut logs = self.inputs.logs_with(self.arguments, None, None)?;
        if let Some(path) = env::var_os(WORKER_SCHEMA).map(PathBuf::from) {
            let at = |error: &dyn std::fmt::Display| Error::Log(format!("{}: {error}", path.display()));
            let text = fs::read_to_string(&path).map_err(|error| at(&error))?;
            let time = env::var(WORKER_SCHEMA_TIME).ok().and_then(|time| schema_time(&time));
            let time = time.ok_or_else(|| at(&"its time is missing"))?;
            logs = logs.with_schema_of(text, time).map_err(|error| at(&error))?;
        }
        if !self.over_unread {
            logs = logs.with_unread_as_error();
        }
        // A fault of a statement is its client's to read.
        panic::set_hook(Box::new(|_| {}));
        let (ask, questions) = questions();
        let engine = QueryEngine::asking(logs, &options, ask)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(CONNECTION_THREADS)
            .thread_stack_size(STACK_SIZE)
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Error::Log(format!("start threads: {error}")))?;
        let worked = runtime.block_on(work(engine.queries(), questions));
        // Whatever still runs is of no use to anybody.
        process::exit(match worked {
            Ok(()) => 0,
            Err(_) => i32::from(TROUBLE),
        })
    }

    /// Refuses to be open to a network by mistake.
    fn check(&self, accounts: &FlightAccounts) -> Result<(), Error> {
        let has_tls = self.tls_cert.is_some() || self.tls_dir.is_some();
        let missing = match (has_tls, accounts.is_empty()) {
            (true, false) => return Ok(()),
            (false, true) => "without TLS and passwords",
            (false, false) => "without TLS",
            (true, true) => "without passwords",
        };
        match self.listen.ip().is_loopback() || self.insecure {
            true => Ok(()),
            false => Err(Error::Sql(format!(
                "{}: is reached from other machines {missing}, expected --tls-dir or --tls-cert, and --user or --accounts; \
                 --insecure listens all the same",
                self.listen
            ))),
        }
    }

    fn tls(&self) -> Result<Option<Tls>, Error> {
        let tls = match (&self.tls_cert, &self.tls_key, &self.tls_dir) {
            (Some(certificate), Some(key), _) => Tls::read(certificate, key),
            (_, _, Some(folder)) => {
                let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
                if !self.listen.ip().is_unspecified() && !self.listen.ip().is_loopback() {
                    names.push(self.listen.ip().to_string());
                }
                names.extend(self.tls_name.iter().cloned());
                fs::create_dir_all(folder)
                    .map_err(|error| Error::Log(format!("{}: {error}", folder.display())))?;
                Tls::own(folder, names)
            }
            _ => return Ok(None),
        };
        tls.map(Some).map_err(|error| Error::Log(error.to_string()))
    }

    fn accounts(&self) -> Result<FlightAccounts, Error> {
        let mut accounts = FlightAccounts::default();
        let mut add = |user: &str, password: &str| match accounts.add(user, password) {
            true => Ok(()),
            false => Err(Error::Sql(format!("account {user}: has no password, or is there twice"))),
        };
        if let Some(path) = &self.accounts {
            let at = |error: &dyn std::fmt::Display| Error::Log(format!("{}: {error}", path.display()));
            if mode(path)? & OTHERS_WRITE != 0 {
                return Err(at(&"others may write it: chmod o-w"));
            }
            let text = read_text(path).map_err(|error| at(&error))?;
            let file: AccountsFile = toml::from_str(&text).map_err(|error| at(&error.message()))?;
            if file.account.is_empty() {
                return Err(at(&"has no account, so everybody could ask"));
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            for account in file.account {
                let password = match (&account.password_file, &account.password_env) {
                    (Some(file), None) => secret(&folder.join(file))?,
                    (None, Some(name)) => {
                        env::var(name).map_err(|_| at(&format!("the environment has no {name}")))?
                    }
                    _ => {
                        return Err(at(&format!(
                            "account {}: expected password_file or password_env",
                            account.user
                        )));
                    }
                };
                add(&account.user, &password)?;
            }
        }
        if self.user.is_none() && self.accounts.is_none() && env::var_os(PASSWORD).is_some() {
            let what = format!("{PASSWORD} has a password, but whose? Expected --user, or --accounts");
            return Err(Error::Sql(what));
        }
        if let Some(user) = &self.user {
            let password = match (&self.password_file, env::var(PASSWORD)) {
                (Some(path), _) => secret(path)?,
                (None, Ok(password)) => password,
                (None, Err(_)) if io::stdin().is_terminal() => {
                    rpassword::prompt_password(format!("Password of {user}: "))
                        .map_err(|error| Error::Log(format!("password: {error}")))?
                }
                (None, Err(_)) => {
                    let what = format!("--user {user}: no password, expected --password-file or {PASSWORD}");
                    return Err(Error::Sql(what));
                }
            };
            add(user, &password)?;
        }
        Ok(accounts)
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(SIZE_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The permission bits of a file.
fn mode(path: &Path) -> Result<u32, Error> {
    let metadata = fs::metadata(path);
    let metadata = metadata.map_err(|error| Error::Log(format!("{}: {error}", path.display())))?;
    Ok(metadata.permissions().mode())
}

/// Refuses a secret that others may read or write.
fn private(path: &Path) -> Result<(), Error> {
    match mode(path)? & OTHERS {
        0 => Ok(()),
        _ => Err(Error::Log(format!("{}: others may read or write it: chmod o-rw", path.display()))),
    }
}

/// A password: the one line of a file that others can't read.
fn secret(path: &Path) -> Result<String, Error> {
    let at = |error: &dyn std::fmt::Display| Error::Log(format!("{}: {error}", path.display()));
    private(path)?;
    let text = read_text(path).map_err(|error| at(&error))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    // As an editor of Windows ends a line.
    let line = line.strip_suffix('\r').unwrap_or(line);
    match line.is_empty() || line.contains(['\n', '\r']) {
        true => Err(at(&"expected one line with a password")),
        false => Ok(line.to_owned()),
    }
}

/// The time of a schema, as [`worker`] writes it.
fn schema_time(text: &str) -> Option<SchemaTime> {
    let (begin, end) = text.split_once(' ')?;
    Some(SchemaTime { begin: begin.parse().ok()?, end: end.parse().ok()? })
}

/// How a worker is started: this program, with the same arguments.
fn worker(logs: &Logs, folder: &Path) -> Result<WorkerCommand, Error> {
    let at = |path: &Path, error: &dyn std::fmt::Display| Error::Log(format!("{}: {error}", path.display()));
    // Also if the file of the program was replaced since.
    let own = Path::new("/proc/self/exe");
    let program = match own.exists() {
        true => own.to_owned(),
        false => env::current_exe().map_err(|error| at(Path::new("binlogz-sql"), &error))?,
    };
    let mut environment = vec![(WORKER.into(), folder.as_os_str().to_owned())];
    if let Some(text) = logs.schema_text() {
        // A server that tells it isn't asked again, and may want a password.
        let path = folder.join("schema.sql");
        fs::write(&path, text).map_err(|error| at(&path, &error))?;
        environment.push((WORKER_SCHEMA.into(), path.into_os_string()));
        let SchemaTime { begin, end } = logs.schema_time();
        environment.push((WORKER_SCHEMA_TIME.into(), format!("{begin} {end}").into()));
    }
    let arguments = env::args_os().skip(1).collect();
    Ok(WorkerCommand { program, arguments, environment, is_for_one: logs.stay_as_they_are() })
}
