//! `binlogz sql serve`: other programs ask the logs, over Flight SQL and MySQL's protocol.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::panic;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use binlogz_cli_common::companions::sql_serve::{PORT, ServeArgs};
use binlogz_cli_common::start::refuse;
use binlogz_cli_common::time::shown;
use binlogz_cli_common::{Exit, exits};
use binlogz_flight::{DEFAULT_PORT, FlightAnswers};
use binlogz_mysql_front::MysqlAnswers;
use binlogz_query::engine::STACK_SIZE;
use binlogz_query::{Error, Logs, QueryEngine, QueryOptions, SchemaTime};
use binlogz_query_server::{
    AccountLogs, ProtocolServer, QueryAccounts, QueryServerError, StatementLimits, TellLine, Tls,
    WorkerCommand, Workers, questions, work,
};
use binlogz_scratch_file::{Scratch, ScratchKey};
use binlogz_source::prompt_for_password;
use clap::Parser;
use serde::Deserialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};

use crate::schema::SchemaPlace;
use crate::server::check_password;
use crate::temporary::Temporary;
use crate::{MIB, Run, TROUBLE, complain, inputs, masked};

const COMMAND: &str = "serve";
// The help says where the server listens.
const _: () = assert!(PORT == DEFAULT_PORT);
const PASSWORD: &str = "BINLOGZ_SQL_PASSWORD";
const PLANNING_TIME: Duration = Duration::from_secs(10);
/// An environment variable for workers: the folder of the server's temporary files. A process that has it is a worker.
const WORKER: &str = "BINLOGZ_SQL_WORKER";
/// An environment variable for workers: the file with CREATE TABLE statements that the server read.
const WORKER_SCHEMA: &str = "BINLOGZ_SQL_WORKER_SCHEMA";
/// An environment variable for workers: the time of these statements, as the bytes of the last log before and after.
const WORKER_SCHEMA_TIME: &str = "BINLOGZ_SQL_WORKER_SCHEMA_TIME";
/// An environment variable for workers of masked logs: the file that has them. It replaces the arguments' logs.
const WORKER_MASKED: &str = "BINLOGZ_SQL_WORKER_MASKED";
/// An environment variable for these workers: the key of that file.
const WORKER_MASKED_KEY: &str = "BINLOGZ_SQL_WORKER_MASKED_KEY";
/// The end of the name of the file that says which log is where in that file.
const MASKED_LIST: &str = "json";
/// Threads for connections; queries have their own.
const CONNECTION_THREADS: usize = 2;
/// More than any file with a password or accounts.
const SIZE_MAX: u64 = 1 << 20;
/// Reading or writing by users other than the owner and the group.
const OTHERS: u32 = 0o006;
/// Writing by them.
const OTHERS_WRITE: u32 = 0o002;

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
    /// The policy by which logs leave to it.
    exits: Option<PathBuf>,
}

/// Who may log in, and how logs leave to each.
#[derive(Default)]
struct ServedAccounts {
    accounts: QueryAccounts,
    /// The names by their policies; without a policy, logs leave as they are.
    by_policy: BTreeMap<Option<PathBuf>, Vec<String>>,
}

impl ServedAccounts {
    fn add(&mut self, user: &str, password: &str, policy: Option<PathBuf>) -> Result<(), Error> {
        if !self.accounts.add(user, password) {
            return Err(Error::Sql(format!("account {user}: has no password, or is there twice")));
        }
        self.by_policy.entry(policy).or_default().push(user.to_owned());
        Ok(())
    }
}

/// Serves, if a whole command line, program name included, asks for it.
pub(crate) fn asked_for(mut command_line: impl Iterator<Item = OsString>) -> Option<Run> {
    let program = command_line.next()?;
    if command_line.next()? != COMMAND {
        return None;
    }
    let command_line = std::iter::once(program).chain(command_line);
    let args = ServeArgs::try_parse_from(command_line).unwrap_or_else(|error| refuse(&error));
    Some(Box::new(move || run(args)))
}

fn run(args: ServeArgs) -> Result<(), Error> {
    if let Some(folder) = env::var_os(WORKER) {
        return be_worker(args, folder.into());
    }
    let ServedAccounts { accounts, by_policy } = accounts(&args)?;
    check(&args, &accounts)?;
    if args.base.base.is_some() && !by_policy.contains_key(&None) {
        let what = "--base: its rows are for accounts without a policy, expected one of them";
        return Err(Error::Sql(what.to_owned()));
    }
    let tls = tls(&args)?;
    // The first signal ends the server, the second one the process.
    let (end, ended) = oneshot::channel();
    let end = Mutex::new(Some(end));
    let temporary = Temporary::with(move |signal| {
        let end = end.lock().unwrap_or_else(PoisonError::into_inner).take();
        [SIGINT, SIGTERM, SIGHUP].contains(&signal) && end.is_some_and(|end| end.send(()).is_ok())
    })?;
    let options = QueryOptions {
        memory: args.memory.get().saturating_mul(MIB),
        jobs: args.inputs.jobs(),
        temporary: temporary.path().to_owned(),
    };
    if let Some(place) = args.base.base.as_deref() {
        // Workers reach it too, and have no terminal.
        check_password(&args.inputs.schema.server, place)?;
    }
    let schema = SchemaPlace::open(&args.inputs.schema, args.base.base.is_some())?;
    let ServedLogs { accounts: served, engines, notes } =
        served_logs(&args, by_policy, schema.as_ref(), &options, temporary.path())?;
    let limits = limits(&args, accounts.count());
    let runtime = Builder::new_multi_thread()
        .worker_threads(CONNECTION_THREADS)
        .enable_all()
        .build()
        .map_err(|error| Error::Log(format!("start threads: {error}")))?;
    let tell: TellLine = Arc::new(complain);
    let workers = Workers::new(served, limits, Arc::clone(&tell));
    let front = SqlFronts {
        listen: args.listen,
        mysql: args.mysql,
        tls,
        accounts,
        workers,
        idle: Duration::from_secs(args.idle.get().saturating_mul(60)),
        tell,
        notes,
    };
    let ran = runtime.block_on(front.run(ended));
    runtime.shutdown_background();
    engines.into_iter().for_each(QueryEngine::close);
    ran.map_err(|error| Error::Log(error.to_string()))
}

/// The logs of each policy, masked where there is one, with the engines that plan over them.
#[derive(Default)]
struct ServedLogs {
    accounts: Vec<AccountLogs>,
    engines: Vec<QueryEngine>,
    /// Notes on the logs, shown by SHOW WARNINGS.
    notes: Vec<String>,
}

fn served_logs(
    args: &ServeArgs,
    by_policy: BTreeMap<Option<PathBuf>, Vec<String>>,
    schema: Option<&SchemaPlace>,
    options: &QueryOptions,
    temporary: &Path,
) -> Result<ServedLogs, Error> {
    let based = args.base.base.is_some();
    let mut served = ServedLogs::default();
    for (number, (policy, accounts)) in by_policy.into_iter().enumerate() {
        let opened = inputs::logs_with(&args.inputs, args.arguments.clone(), schema, None)?;
        // Now, and not in the answer to each question.
        opened.check()?;
        opened.can_be_read_again()?;
        if number == 0 {
            // All accounts have the same logs; not all may see the names of tables.
            inputs::say_erased(&opened);
            served.notes.extend(opened.erased().map(|erased| erased.in_few_words(shown)));
        }
        let (logs, command) = match policy {
            None => {
                let logs = inputs::based(opened, &args.inputs, &args.base)?;
                let command = worker(&logs, based, temporary)?;
                (logs, command)
            }
            Some(policy) => {
                let place = temporary.join(format!("masked-{number}"));
                masked_worker(opened, &policy, &place, args.over_unread)?
            }
        };
        let engine = QueryEngine::new(logs, options)?;
        served.accounts.push(AccountLogs { accounts, queries: engine.queries(), command });
        served.engines.push(engine);
    }
    Ok(served)
}

fn limits(args: &ServeArgs, accounts: usize) -> StatementLimits {
    let queries = args.queries.get();
    let time = Duration::from_secs(args.timeout.get());
    StatementLimits {
        memory: args.memory.get().saturating_mul(MIB),
        queries,
        // A single account may have all; of several accounts, none can keep the others out.
        queries_of_account: if accounts > 1 { queries.div_ceil(2) } else { queries },
        time,
        // A table of a base is read while its query is planned.
        planning_time: if args.base.base.is_some() { time } else { PLANNING_TIME },
    }
}

/// The servers of this process, and what they share.
struct SqlFronts {
    listen: SocketAddr,
    mysql: Option<SocketAddr>,
    tls: Option<Tls>,
    accounts: QueryAccounts,
    workers: Arc<Workers>,
    idle: Duration,
    tell: TellLine,
    /// Notes on what is served, for clients that ask for warnings.
    notes: Vec<String>,
}

impl SqlFronts {
    /// Serves until the end comes. All protocols share accounts, connections and workers.
    async fn run(self, end: oneshot::Receiver<()>) -> Result<(), QueryServerError> {
        let SqlFronts { listen, mysql, tls, accounts, workers, idle, tell, notes } = self;
        workers.begin().await.map_err(|refusal| QueryServerError::new(refusal.line))?;
        let scheme = if tls.is_some() { "grpc+tls" } else { "grpc" };
        let workers_end = Arc::clone(&workers);
        let flight = ProtocolServer {
            listen,
            tls,
            accounts,
            logins: Arc::default(),
            open: Arc::default(),
            prepared: Arc::default(),
            workers,
            idle,
        };
        let mysql = mysql.map(|listen| ProtocolServer { listen, ..flight.clone() });
        let (ends, ended) = watch::channel(());
        let ending = async {
            let _ = end.await;
            drop(ends);
            Ok(())
        };
        let by_mysql = {
            let (tell, ended) = (Arc::clone(&tell), ended.clone());
            async move {
                let Some(mysql) = mysql else { return Ok(()) };
                let listening = |address| say_listening("mysql", address);
                binlogz_mysql_front::serve(mysql, (tell, notes), listening, dropped(ended)).await
            }
        };
        let listening = |address| say_listening(scheme, address);
        let by_flight = binlogz_flight::serve(flight, tell, listening, dropped(ended));
        let served = tokio::try_join!(by_flight, by_mysql, ending);
        workers_end.end();
        served.map(drop)
    }
}

/// Waits until the other end is dropped.
async fn dropped(mut end: watch::Receiver<()>) {
    while end.changed().await.is_ok() {}
}

/// Says where a server listens. If nobody reads it, the server serves all the same.
fn say_listening(scheme: &str, address: SocketAddr) {
    let _ = writeln!(io::stdout(), "listening on {scheme}://{address}").and_then(|()| io::stdout().flush());
}

/// Plans and runs statements for a server, and writes the results to standard output.
fn be_worker(args: ServeArgs, folder: PathBuf) -> Result<(), Error> {
    let options = QueryOptions {
        memory: args.memory.get().saturating_mul(MIB),
        jobs: args.inputs.jobs(),
        temporary: folder,
    };
    let over_unread = args.over_unread;
    let opened = match env::var_os(WORKER_MASKED) {
        Some(place) => masked_logs(Path::new(&place))?,
        None => open_logs(args)?,
    };
    let logs = if over_unread { opened } else { opened.with_unread_as_error() };
    // A fault of a statement is its client's to read.
    panic::set_hook(Box::new(|_| {}));
    let (ask, questions) = questions();
    let engine = QueryEngine::asking(logs, &options, ask)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(CONNECTION_THREADS)
        .thread_stack_size(STACK_SIZE)
        .enable_all()
        .build()
        .map_err(|error| Error::Log(format!("start threads: {error}")))?;
    let worked = runtime.block_on(work(engine.queries(), questions, &[&FlightAnswers, &MysqlAnswers]));
    // Whatever still runs is of no use to anybody.
    process::exit(match worked {
        Ok(()) => 0,
        Err(_) => i32::from(TROUBLE),
    })
}

/// The logs of a worker's arguments, described by the schema that the server read.
fn open_logs(args: ServeArgs) -> Result<Logs, Error> {
    let opened = inputs::logs_with(&args.inputs, args.arguments, None, None)?;
    let logs = inputs::based(opened, &args.inputs, &args.base)?;
    let Some(path) = env::var_os(WORKER_SCHEMA).map(PathBuf::from) else { return Ok(logs) };
    let text = fs::read_to_string(&path).map_err(|error| at(&path, &error))?;
    let time = env::var(WORKER_SCHEMA_TIME).ok().and_then(|time| schema_time(&time));
    let time = time.ok_or_else(|| at(&path, &"its time is missing"))?;
    logs.with_schema_of(text, time).map_err(|error| at(&path, &error))
}

/// The masked logs that the server wrote: such a worker opens no other.
fn masked_logs(place: &Path) -> Result<Logs, Error> {
    let key = env::var(WORKER_MASKED_KEY).ok().and_then(|key| ScratchKey::from_hex(&key));
    let key = key.ok_or_else(|| at(place, &"its key is missing"))?;
    let file = Scratch::open(place, &key).map_err(|error| at(place, &error))?;
    let list = place.with_extension(MASKED_LIST);
    let text = fs::read_to_string(&list).map_err(|error| at(&list, &error))?;
    Logs::of_masked(&text, file, complain)
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Log(format!("{}: {error}", path.display()))
}

/// Refuses to be open to a network by mistake.
fn check(args: &ServeArgs, accounts: &QueryAccounts) -> Result<(), Error> {
    let has_tls = args.tls_cert.is_some() || args.tls_dir.is_some();
    let missing = match (has_tls, accounts.is_empty()) {
        (true, false) => return Ok(()),
        (false, true) => "without TLS and passwords",
        (false, false) => "without TLS",
        (true, true) => "without passwords",
    };
    let beyond =
        [Some(args.listen), args.mysql].into_iter().flatten().find(|listen| !listen.ip().is_loopback());
    match beyond.filter(|_| !args.insecure) {
        None => Ok(()),
        Some(listen) => Err(Error::Sql(format!(
            "{listen}: is reached from other machines {missing}, expected --tls-dir or --tls-cert, and --user or --accounts; \
             --insecure listens all the same"
        ))),
    }
}

fn tls(args: &ServeArgs) -> Result<Option<Tls>, Error> {
    let tls = match (&args.tls_cert, &args.tls_key, &args.tls_dir) {
        (Some(certificate), Some(key), _) => Tls::read(certificate, key),
        (_, _, Some(folder)) => {
            let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
            let listens = [Some(args.listen), args.mysql].into_iter().flatten().map(|listen| listen.ip());
            let others = listens.filter(|address| !address.is_unspecified() && !address.is_loopback());
            names.extend(others.map(|address| address.to_string()));
            names.extend(args.tls_name.iter().cloned());
            fs::create_dir_all(folder)
                .map_err(|error| Error::Log(format!("{}: {error}", folder.display())))?;
            Tls::own(folder, names)
        }
        _ => return Ok(None),
    };
    tls.map(Some).map_err(|error| Error::Log(error.to_string()))
}

fn accounts(args: &ServeArgs) -> Result<ServedAccounts, Error> {
    let mut served = ServedAccounts::default();
    if let Some(path) = &args.accounts {
        if mode(path)? & OTHERS_WRITE != 0 {
            return Err(at(path, &"others may write it: chmod o-w"));
        }
        let text = read_text(path).map_err(|error| at(path, &error))?;
        let file: AccountsFile = toml::from_str(&text).map_err(|error| at(path, &error.message()))?;
        if file.account.is_empty() {
            return Err(at(path, &"has no account, so everybody could ask"));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for account in file.account {
            let password = match (&account.password_file, &account.password_env) {
                (Some(file), None) => secret(&folder.join(file))?,
                (None, Some(name)) => {
                    env::var(name).map_err(|_| at(path, &format!("the environment has no {name}")))?
                }
                _ => {
                    let what = format!("account {}: expected password_file or password_env", account.user);
                    return Err(at(path, &what));
                }
            };
            let own = account.exits.map(|policy| folder.join(policy));
            served.add(&account.user, &password, own.or_else(|| args.exits.clone()))?;
        }
    }
    if args.user.is_none() && args.accounts.is_none() && env::var_os(PASSWORD).is_some() {
        let what = format!("{PASSWORD} has a password, but whose? Expected --user, or --accounts");
        return Err(Error::Sql(what));
    }
    if let Some(user) = &args.user {
        let password = match (&args.password_file, env::var(PASSWORD)) {
            (Some(path), _) => secret(path)?,
            (None, Ok(password)) => password,
            (None, Err(_)) if io::stdin().is_terminal() => {
                prompt_for_password(&format!("Password of {user}: "))
                    .map_err(|error| Error::Log(format!("password: {error}")))?
            }
            (None, Err(_)) => {
                let what = format!("--user {user}: no password, expected --password-file or {PASSWORD}");
                return Err(Error::Sql(what));
            }
        };
        served.add(user, &password, args.exits.clone())?;
    }
    if served.accounts.is_empty() {
        // Everybody asks without a name.
        served.by_policy.insert(args.exits.clone(), vec![String::new()]);
    }
    Ok(served)
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

/// This program, also if its file was replaced since.
fn own_program() -> Result<PathBuf, Error> {
    let own = Path::new("/proc/self/exe");
    match own.exists() {
        true => Ok(own.to_owned()),
        false => env::current_exe().map_err(|error| at(Path::new("binlogz-sql"), &error)),
    }
}

/// Masks logs by a policy into a file at this place, and says how a worker is started that reads this file.
///
/// # Errors
///
/// Logs that can't be masked; changes that can't be masked for certain, unless they are to be left out.
fn masked_worker(
    opened: Logs,
    policy: &Path,
    place: &Path,
    over_unread: bool,
) -> Result<(Logs, WorkerCommand), Error> {
    let (file, key) = Scratch::with_name(place).map_err(|error| at(place, &error))?;
    let logs = masked::logs_to_ask(opened, policy, file)?;
    let counts = logs.exit_counts().cloned().unwrap_or_default();
    let is_whole = exits::report(&counts) == Exit::Done;
    if !is_whole && !over_unread {
        let what = "changes are left out, since they can't be masked for certain, and its clients don't see these lines; \
                    --over-unread serves the others";
        return Err(at(policy, &what));
    }
    let list = place.with_extension(MASKED_LIST);
    fs::write(&list, logs.masked_list()?).map_err(|error| at(&list, &error))?;
    let folder = place.parent().unwrap_or(Path::new(""));
    let environment = vec![
        (WORKER.into(), folder.as_os_str().to_owned()),
        (WORKER_MASKED.into(), place.as_os_str().to_owned()),
        (WORKER_MASKED_KEY.into(), key.to_hex().into()),
    ];
    let arguments = env::args_os().skip(1).collect();
    let command = WorkerCommand { program: own_program()?, arguments, environment, is_for_one: false };
    Ok((logs, command))
}

/// How a worker is started: this program, with the same arguments.
fn worker(logs: &Logs, has_base: bool, folder: &Path) -> Result<WorkerCommand, Error> {
    let program = own_program()?;
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
    Ok(WorkerCommand { program, arguments, environment, is_for_one: has_base || logs.stay_as_they_are() })
}
