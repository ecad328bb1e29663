//! Sessions, prepared statements and queries of a server in this process: when they end, and how they are stopped.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, Any, CommandGetTables, ProstMessageExt,
};
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo, Ticket,
};
use binlogz_flight::serve;
use binlogz_query::{Logs, QueryEngine, QueryOptions, memory};
use binlogz_query_server::{
    AccountLogs, ProtocolServer, QueryAccounts, StatementLimits, WorkerCommand, Workers,
};
use binlogz_testkit::mutate;
use datafusion::arrow::array::RecordBatch;
use futures_util::{StreamExt, TryStreamExt};
use prost::Message;
use tokio::io::AsyncReadExt;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint};

use crate::common::SHAPES;
use crate::depth::{OTHERS, PRODUCTIONS};

type Client = FlightSqlServiceClient<Channel>;

/// How long a session may be idle here. On a busy machine a program may stand still for more than a second.
const IDLE: Duration = Duration::from_secs(4);
/// An answer that takes longer doesn't come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pauses of one that isn't idle.
const PAUSE: Duration = Duration::from_millis(150);
const PASSWORD: &str = "s3cret of reader";

/// Queries without an end: one gives no row, the other one rows as long as somebody takes them.
const SILENT: &str = "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b \
                      WHERE a.value + b.value = 1";
const TALKING: &str =
    "SELECT repeat('x', 100) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b";

/// With this many queries at once, and time enough for a busy machine.
fn limits(queries: usize) -> StatementLimits {
    StatementLimits {
        memory: 1 << 28,
        queries,
        queries_of_account: queries,
        time: 10 * PATIENCE,
        planning_time: PATIENCE,
    }
}

/// A server, ended with the test.
struct Serving {
    address: SocketAddr,
    told: Arc<Mutex<Vec<String>>>,
    runtime: Option<Runtime>,
    engine: Option<QueryEngine>,
    _end: oneshot::Sender<()>,
    _temporary: tempfile::TempDir,
}

impl Serving {
    /// With this many queries at once. `has_accounts`: clients log in, as `reader`.
    fn start(has_accounts: bool, idle: Duration, queries_max: usize) -> Self {
        Self::with(has_accounts, idle, &limits(queries_max))
    }

    fn with(has_accounts: bool, idle: Duration, limits: &StatementLimits) -> Self {
        Self::over(&SHAPES.plain, has_accounts, idle, limits)
    }

    fn over(paths: &[PathBuf], has_accounts: bool, idle: Duration, limits: &StatementLimits) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let options = QueryOptions { memory: limits.memory, jobs: 2, temporary: temporary.path().to_owned() };
        let logs = paths.iter().map(|path| path.clone().into_os_string());
        let worker = WorkerCommand {
            program: env!("CARGO_BIN_EXE_binlogz-sql").into(),
            arguments: ["serve", "--jobs", "2"].map(Into::into).into_iter().chain(logs).collect(),
            environment: vec![("BINLOGZ_SQL_WORKER".into(), temporary.path().into())],
            is_for_one: false,
        };
        let engine = QueryEngine::new(Logs::new(paths.to_vec(), None, |_| {}).unwrap(), &options).unwrap();
        let mut accounts = QueryAccounts::default();
        assert!(!has_accounts || accounts.add("reader", PASSWORD) && accounts.add("guest", PASSWORD));
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let teller = Arc::clone(&told);
        let tell = Arc::new(move |line: &str| teller.lock().unwrap().push(line.to_owned()));
        let (end, ended) = oneshot::channel::<()>();
        let (heard, listening) = oneshot::channel();
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let names = ["", "reader", "guest"].map(str::to_owned);
        let served = AccountLogs { accounts: names.to_vec(), queries: engine.queries(), command: worker };
        let workers = Workers::new(vec![served], *limits, tell.clone());
        let server = ProtocolServer {
            listen,
            tls: None,
            accounts,
            logins: Arc::default(),
            open: Arc::default(),
            prepared: Arc::default(),
            workers: Arc::clone(&workers),
            idle,
        };
        runtime.spawn(async move {
            workers.begin().await.unwrap();
            let listening = |address| heard.send(address).unwrap();
            serve(server, tell, listening, async { drop(ended.await) }).await.unwrap();
            workers.end();
        });
        let address = runtime.block_on(listening).expect("the server ended");
        Serving {
            address,
            told,
            runtime: Some(runtime),
            engine: Some(engine),
            _end: end,
            _temporary: temporary,
        }
    }

    /// Runs a test's requests.
    fn run(&self, test: impl Future<Output = ()>) {
        self.runtime.as_ref().unwrap().block_on(test);
    }

    /// A client that hasn't logged in.
    async fn client(&self) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        FlightSqlServiceClient::new(endpoint.connect().await.unwrap())
    }

    /// A client that hasn't logged in, from another address.
    async fn client_from(&self, address: [u8; 4]) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        let endpoint = endpoint.local_address(Some(address.into()));
        FlightSqlServiceClient::new(endpoint.connect().await.unwrap())
    }

    /// A client with a session of its own.
    async fn session(&self) -> Client {
        let mut client = self.client().await;
        client.handshake("reader", PASSWORD).await.unwrap();
        client
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
        self.engine.take().unwrap().close();
    }
}

fn ticket(info: &FlightInfo) -> Ticket {
    info.endpoint[0].ticket.clone().unwrap()
}

/// Begins a query.
async fn begin(client: &mut Client, query: &str) -> (FlightInfo, FlightRecordBatchStream) {
    let info = client.execute(query.to_owned(), None).await.unwrap();
    let rows = client.do_get(ticket(&info)).await.unwrap();
    (info, rows)
}

/// How many rows come, up to the first error: after one of its own the client gives it again without end.
async fn rows(rows: FlightRecordBatchStream) -> Result<usize, FlightError> {
    rows.try_fold(0, async |sum, batch: RecordBatch| Ok(sum + batch.num_rows())).await
}

/// Takes all rows of a query, or of the list of all tables with their columns.
async fn taken(client: &mut Client, query: Option<String>) -> Result<usize, FlightError> {
    let info = match query {
        Some(query) => client.execute(query, None).await?,
        None => {
            let all = CommandGetTables { include_schema: true, ..CommandGetTables::default() };
            client.get_tables(all).await?
        }
    };
    rows(client.do_get(ticket(&info)).await?).await
}

/// A query that needs no time, and a slot.
async fn one_row(client: &mut Client) -> usize {
    let asked = async {
        let (_, found) = begin(client, "SELECT 1").await;
        rows(found).await.unwrap()
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("there is no slot")
}

/// All that an error tells.
fn trouble(error: impl std::fmt::Display + std::fmt::Debug) -> String {
    format!("{error}; {error:?}")
}

/// The body of an action's one answer; none if it was refused.
async fn act(client: &mut Client, kind: &str, body: Vec<u8>) -> Result<Vec<u8>, FlightError> {
    let action = Action { r#type: kind.to_owned(), body: body.into() };
    let mut answers = client.do_action(action).await?;
    Ok(answers.message().await?.unwrap().body.to_vec())
}

/// Stops a query in the older way, and in the newer one; whether it was there.
async fn cancel(client: &mut Client, info: &FlightInfo, is_newer: bool) -> bool {
    let is_missing = |error: FlightError| {
        let error = trouble(error);
        assert!(error.contains("no such query runs"), "{error}");
        false
    };
    if is_newer {
        let body = CancelFlightInfoRequest { info: Some(info.clone()) }.encode_to_vec();
        match act(client, "CancelFlightInfo", body).await {
            Ok(body) => CancelFlightInfoResult::decode(&*body).unwrap().status() == CancelStatus::Cancelled,
            Err(error) => is_missing(error),
        }
    } else {
        let body = ActionCancelQueryRequest { info: info.encode_to_vec().into() }.as_any().encode_to_vec();
        match act(client, "CancelQuery", body).await {
            Ok(body) => {
                let answer: ActionCancelQueryResult = Any::decode(&*body).unwrap().unpack().unwrap().unwrap();
                answer.result == 1
            }
            Err(error) => is_missing(error),
        }
    }
}

#[test]
fn idle_sessions_and_statements_end_but_none_whose_query_runs() {
    let serving = Serving::start(true, IDLE, 8);
    serving.run(async {
        let mut idle = serving.session().await;
        let (mut busy, mut asking) = (serving.session().await, serving.session().await);
        let mut running = busy.prepare(TALKING.to_owned(), None).await.unwrap();
        let info = running.execute().await.unwrap();
        let mut stream = busy.do_get(ticket(&info)).await.unwrap();
        let mut unused = asking.prepare("SELECT 2".to_owned(), None).await.unwrap();
        let mut used = asking.prepare("SELECT 3".to_owned(), None).await.unwrap();
        let begun = Instant::now();
        while begun.elapsed() < 2 * IDLE {
            // Neither of the sessions is used, but one has a query whose rows are taken.
            stream.next().await.unwrap().unwrap();
            used.execute().await.unwrap();
            tokio::time::sleep(PAUSE).await;
        }
        let error = trouble(idle.execute("SELECT 1".to_owned(), None).await.unwrap_err());
        assert!(error.contains("the session has ended: log in again"), "{error}");
        let error = trouble(unused.execute().await.unwrap_err());
        assert!(error.contains("there is no such prepared statement"), "{error}");
        assert_eq!(one_row(&mut asking).await, 1);
        assert!(cancel(&mut busy, &info, true).await);
        drop(stream);
        assert_eq!(one_row(&mut busy).await, 1);
        running.execute().await.unwrap();
    });
}

#[test]
fn without_accounts_idle_statements_end_but_none_whose_query_runs() {
    let serving = Serving::start(false, IDLE, 8);
    serving.run(async {
        let mut client = serving.client().await;
        let mut unused = client.prepare("SELECT 2".to_owned(), None).await.unwrap();
        let mut running = client.prepare(TALKING.to_owned(), None).await.unwrap();
        let info = running.execute().await.unwrap();
        let mut stream = client.do_get(ticket(&info)).await.unwrap();
        let begun = Instant::now();
        while begun.elapsed() < 2 * IDLE {
            stream.next().await.unwrap().unwrap();
            tokio::time::sleep(PAUSE).await;
        }
        let error = trouble(unused.execute().await.unwrap_err());
        assert!(error.contains("there is no such prepared statement"), "{error}");
        drop(stream);
        running.execute().await.unwrap();
        assert_eq!(one_row(&mut client).await, 1);
    });
}

/// The client's connection lives, but it never reads: the query ends, and another one gets its slot.
#[test]
fn a_query_whose_rows_nobody_takes_gives_its_slot_back() {
    let serving = Serving::start(false, IDLE, 1);
    serving.run(async {
        let mut client = serving.client().await;
        let (_, mut stream) = begin(&mut client, TALKING).await;
        stream.next().await.unwrap().unwrap();
        let mut other = serving.client().await;
        assert_eq!(one_row(&mut other).await, 1);
        assert!(rows(stream).await.is_err(), "it was ended");
    });
}

#[test]
fn a_query_is_stopped_wherever_it_is() {
    let serving = Serving::start(true, PATIENCE, 1);
    serving.run(async {
        let mut client = serving.session().await;
        for (query, is_newer) in [(SILENT, false), (SILENT, true), (TALKING, false), (TALKING, true)] {
            let (info, stream) = begin(&mut client, query).await;
            // Another one waits for the slot, and can be stopped there.
            let mut patient = client.clone();
            let waits = patient.execute("SELECT 1".to_owned(), None).await.unwrap();
            let wanted = ticket(&waits);
            let waiting = tokio::spawn(async move { patient.do_get(wanted).await.map(drop) });
            let begun = Instant::now();
            while !cancel(&mut client, &waits, is_newer).await {
                assert!(begun.elapsed() < PATIENCE, "a query that waits can't be stopped");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let error = trouble(waiting.await.unwrap().unwrap_err());
            assert!(error.contains("stopped") || error.contains("cancelled"), "{error}");
            // Nobody else can.
            assert!(!cancel(&mut serving.session().await, &info, is_newer).await);
            assert!(cancel(&mut client, &info, is_newer).await, "{query}");
            // Also if nobody reads its end.
            assert_eq!(one_row(&mut client).await, 1, "{query}");
            assert!(!cancel(&mut client, &info, is_newer).await);
            let error = trouble(tokio::time::timeout(PATIENCE, rows(stream)).await.unwrap().unwrap_err());
            assert!(error.contains("stopped") || error.contains("cancelled"), "{error}");
        }
    });
}

#[test]
fn a_closed_session_ends_its_queries_and_no_others() {
    let serving = Serving::start(true, PATIENCE, 2);
    serving.run(async {
        let (mut client, mut other) = (serving.session().await, serving.session().await);
        let (_, stream) = begin(&mut client, SILENT).await;
        let (_, mut others) = begin(&mut other, TALKING).await;
        // "Closed", as the protocol has it.
        assert_eq!(act(&mut client, "CloseSession", Vec::new()).await.unwrap(), [8, 1]);
        let error = trouble(tokio::time::timeout(PATIENCE, rows(stream)).await.unwrap().unwrap_err());
        assert!(error.contains("stopped") || error.contains("cancelled"), "{error}");
        let error = trouble(client.execute("SELECT 1".to_owned(), None).await.unwrap_err());
        assert!(error.contains("the session has ended: log in again"), "{error}");
        assert_eq!(one_row(&mut other).await, 1, "its slot is free");
        others.next().await.unwrap().unwrap();
    });
}

/// Guesses of an address wait for one another, whether their answers are waited for or not; the right one too. Logins
/// from another address don't wait for them.
#[test]
fn guessing_is_slow_and_others_log_in_meanwhile() {
    const FREE: usize = 10;
    const GUESSES: usize = 14;
    let serving = Serving::start(true, PATIENCE, 1);
    serving.run(async {
        let mut home = serving.client_from([127, 0, 0, 2]).await;
        home.handshake("reader", PASSWORD).await.unwrap();
        let begun = Instant::now();
        let mut guesses = tokio::task::JoinSet::new();
        let answered = Arc::new(AtomicUsize::new(0));
        for guess in 0..GUESSES {
            let mut client = serving.client().await;
            let (user, password) = match guess % 3 {
                0 => ("reader".to_owned(), format!("guess {guess}")),
                1 => (format!("reader{guess}"), PASSWORD.to_owned()),
                _ => ("reader".to_owned(), String::new()),
            };
            let answered = Arc::clone(&answered);
            guesses.spawn(async move {
                let error = trouble(client.handshake(&user, &password).await.unwrap_err());
                answered.fetch_add(1, Ordering::Relaxed);
                error
            });
        }
        while serving.told.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut home = serving.client_from([127, 0, 0, 2]).await;
        home.handshake("reader", PASSWORD).await.unwrap();
        assert_eq!(one_row(&mut home).await, 1);
        // The right one, after all guesses: it has to wait as they do.
        serving.session().await;
        let waited = begun.elapsed();
        assert!(
            waited > Duration::from_secs((GUESSES - FREE) as u64) - Duration::from_millis(100),
            "{waited:?}"
        );
        while let Some(error) = guesses.join_next().await {
            let error = error.unwrap();
            assert!(error.contains("wrong user or password"), "{error}");
        }
        let told = serving.told.lock().unwrap().join("\n");
        assert_eq!(told, "127.0.0.1: login denied", "a burst is one line");

        let mut stranger = serving.client().await;
        let error = trouble(stranger.execute("SELECT 1".to_owned(), None).await.unwrap_err());
        assert!(error.contains("log in first, with user and password"), "{error}");
        stranger.set_token("0".repeat(64));
        let error = trouble(stranger.execute("SELECT 1".to_owned(), None).await.unwrap_err());
        assert!(error.contains("the session has ended"), "{error}");
    });
}

/// More connections than a process may have files, none of which says anything; and one that asks.
#[test]
fn idle_connections_keep_nobody_out() {
    const CONNECTIONS: usize = 700;
    let serving = Serving::start(true, PATIENCE, 1);
    serving.run(async {
        let mut before = serving.session().await;
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            idle.push(tokio::net::TcpStream::connect(serving.address).await.unwrap());
        }
        assert_eq!(one_row(&mut serving.session().await).await, 1, "a new one");
        assert_eq!(one_row(&mut before).await, 1, "one with a session");
        // The oldest of the silent ones was ended for others: long before the 30 seconds in which it has to log in.
        let mut greeting = Vec::new();
        let soon = Duration::from_secs(10);
        let ended = tokio::time::timeout(soon, idle[0].read_to_end(&mut greeting)).await;
        assert!(ended.is_ok(), "it is still open");
    });
}

/// Seconds that hostile clients have here; in soak an hour.
const HOSTILE_SECONDS: u64 = 10;

/// Samples that are damaged while they are served: bits that flip, cuts, lengths that lie, in place and by other files in their place.
struct DamagedLogs {
    folder: tempfile::TempDir,
    whole: Vec<Vec<u8>>,
}

impl DamagedLogs {
    /// Copies of four samples. Two are damaged from the beginning: a bit of the one, the end of the other.
    fn new() -> Self {
        let whole = [3, 4, 6, 8].map(|number| std::fs::read(&SHAPES.plain[number]).unwrap());
        let logs = DamagedLogs { folder: tempfile::tempdir().unwrap(), whole: whole.into() };
        for (number, bytes) in logs.whole.iter().enumerate() {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            match number {
                0 => bytes[middle] ^= 1,
                1 => bytes.truncate(middle),
                _ => {}
            }
            std::fs::write(logs.path(number), bytes).unwrap();
        }
        logs
    }

    fn path(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("damaged.{:06}", number + 1))
    }

    fn paths(&self) -> Vec<PathBuf> {
        (0..self.whole.len()).map(|number| self.path(number)).collect()
    }

    /// Damages one of the files in another way, by a seed. Each seventh time the file is whole again.
    fn damage(&self, seed: u64, round: u64) {
        let number = round as usize % self.whole.len();
        let bytes = match round % 7 {
            6 => self.whole[number].clone(),
            _ => mutate::mutate(&self.whole[number], seed, round).0,
        };
        let other = self.folder.path().join("other");
        let path: &Path = if round.is_multiple_of(2) { &self.path(number) } else { &other };
        std::fs::write(path, bytes).unwrap();
        if path == other {
            std::fs::rename(other, self.path(number)).unwrap();
        }
    }
}

/// Statements that read logs.
const READING: [&str; 7] = [
    "SELECT count(*) FROM changes",
    "SELECT max(after), min(before) FROM changes",
    "SELECT * FROM events",
    "SELECT log, count(*), sum(uncompressed_bytes) FROM transactions GROUP BY log",
    "SELECT * FROM transactions WHERE log LIKE 'damaged%' ORDER BY position DESC",
    "SELECT count(*) FROM information_schema.columns",
    "SELECT max(after) FROM employees.salaries",
];

/// A statement of a hostile client, by a seed.
fn hostile(next: &mut impl FnMut(usize) -> usize) -> String {
    let bombs = [
        "SELECT sum(length(repeat('x', 1000000 + value))) FROM generate_series(1, 100000)",
        "SELECT rpad('x', 2000000000, 'y')",
        "SELECT max(a) FROM (SELECT array_repeat(value, 1000000) AS a FROM generate_series(1, 100000))",
        "WITH RECURSIVE r AS (SELECT 'x' AS t UNION ALL SELECT t || t FROM r) SELECT max(length(t)) FROM r",
        SILENT,
        TALKING,
    ];
    let productions: Vec<_> = PRODUCTIONS.iter().chain(OTHERS).collect();
    match next(4) {
        0 => bombs[next(bombs.len())].to_owned(),
        1 => READING[next(READING.len())].to_owned(),
        _ => productions[next(productions.len())].1([12, 60, 900, 20_000][next(4)]),
    }
}

/// Among clients that ask for whatever ends, fills or keeps busy a process, leave without waiting, keep statements and guess passwords, and
/// over logs that are damaged meanwhile, an honest one is answered. `SEED` repeats a run, `SQL_SOAK_SECONDS` makes it longer; only there it
/// is also timed and weighed.
#[test]
fn an_honest_client_is_answered_among_hostile_ones() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, soak) = (number("SEED").unwrap_or(42), number("SQL_SOAK_SECONDS"));
    println!("SEED={seed}");
    let limits =
        StatementLimits { queries_of_account: 2, planning_time: Duration::from_secs(10), ..limits(4) };
    let damaged = DamagedLogs::new();
    let served = [SHAPES.plain.clone(), damaged.paths()].concat();
    let serving = Serving::over(&served, true, PATIENCE, &limits);
    let damage_met = Arc::new(AtomicUsize::new(0));
    serving.run(async {
        let mut honest = serving.session().await;
        let end = Instant::now() + Duration::from_secs(soak.unwrap_or(HOSTILE_SECONDS));
        let mut clients = tokio::task::JoinSet::new();
        for client in 0..6_u64 {
            let mut attacker = serving.client_from([127, 0, 0, 3]).await;
            let mut guesser = serving.client_from([127, 0, 0, 4]).await;
            attacker.handshake("guest", PASSWORD).await.unwrap();
            let mut state = seed.wrapping_mul(31).wrapping_add(client);
            let damage_met = Arc::clone(&damage_met);
            clients.spawn(async move {
                let mut next = move |below: usize| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 33) as usize % below
                };
                let (mut asked, mut kept) = (0_u64, Vec::new());
                while Instant::now() < end {
                    let query = hostile(&mut next);
                    let patience = Duration::from_millis([20, 300, 3000][next(3)]);
                    // A client that has no answer by then leaves.
                    let attack = async {
                        let answer = match next(9) {
                            0 => return drop(guesser.handshake("reader", "guess").await),
                            1 => return kept.extend(attacker.prepare(query, None).await),
                            2 => taken(&mut attacker, None).await,
                            _ => taken(&mut attacker, Some(query)).await,
                        };
                        let met = answer.is_err_and(|error| trouble(error).contains("damaged.00000"));
                        damage_met.fetch_add(met.into(), Ordering::Relaxed);
                    };
                    drop(tokio::time::timeout(patience, attack).await);
                    asked += 1;
                }
                asked
            });
        }
        let (mut slowest, mut heaviest) = (Duration::ZERO, 0);
        let mut answers = 0;
        while Instant::now() < end {
            damaged.damage(seed, answers);
            let begun = Instant::now();
            assert_eq!(one_row(&mut honest).await, 1);
            slowest = slowest.max(begun.elapsed());
            heaviest = heaviest.max(held_by_workers());
            answers += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut asked = 0;
        while let Some(client) = clients.join_next().await {
            asked += client.unwrap();
        }
        let met = damage_met.load(Ordering::Relaxed);
        println!(
            "{answers} answers among {asked} attacks, of which {met} met damage, the slowest after {slowest:?}, workers held {} MiB",
            heaviest >> 20
        );
        assert!(answers > 0 && asked > 0 && met > 0, "{answers} answers, {asked} attacks, {met} met damage");
        if soak.is_some() {
            assert!(slowest < Duration::from_secs(1), "{slowest:?}");
            // Those that wait hold something as well, and a process is ended some moments after it has grown.
            assert!(heaviest < memory::held_max(limits.memory) + (512 << 20), "{heaviest}");
        }
    });
}

/// Bytes of all processes that this one has started. One that doesn't run its own program yet shares this one's memory, and holds none.
fn held_by_workers() -> u64 {
    let own = std::process::id().to_string();
    let program = std::env::current_exe().unwrap();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let children = processes.filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.to_owned();
        // From here on its memory is its own.
        let is_worker = std::fs::read_link(entry.path().join("exe")).is_ok_and(|of| of != program);
        (parent == own && is_worker).then(|| memory::held_by(Some(number))).flatten()
    });
    children.sum()
}

/// A statement that ends its process ends no other.
#[test]
fn a_query_beyond_its_memory_ends_and_nothing_else_does() {
    let serving = Serving::start(false, PATIENCE, 2);
    serving.run(async {
        let mut client = serving.client().await;
        let doubled: String = (0..40)
            .map(|n| format!(", c{} AS (SELECT l.a FROM c{n} l JOIN c{n} r USING (a))", n + 1))
            .collect();
        let doubled = format!("WITH c0 AS (SELECT 1 AS a){doubled} SELECT a FROM c40");
        for query in [
            &*doubled,
            "SELECT sum(length(repeat('x', 1000000 + value))) FROM generate_series(1, 100000)",
            "SELECT repeat(repeat('x', 100000), 20000) || value FROM generate_series(1, 8)",
            "SELECT rpad('x', 2000000000, 'y')",
            "SELECT max(a) FROM (SELECT array_repeat(value, 1000000) AS a FROM generate_series(1, 100000))",
            "SELECT max(regexp_replace(repeat('a', 1000000), 'a', repeat('b', 100000 + value), 'g')) \
             FROM generate_series(1, 10)",
            "WITH RECURSIVE r AS (SELECT 'x' AS t UNION ALL SELECT t || t FROM r) SELECT max(length(t)) FROM r",
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + m.value FROM r, generate_series(1, 1000) m) \
             SELECT count(*) FROM r",
            "SELECT sum(length(c)) FROM (SELECT string_agg(repeat('x', 1000), ',') OVER (ORDER BY value) AS c \
             FROM generate_series(1, 100000))",
        ] {
            let asked = async {
                let info = client.execute(query.to_owned(), None).await.map_err(trouble)?;
                let found = client.do_get(ticket(&info)).await.map_err(trouble)?;
                rows(found).await.map_err(trouble)
            };
            let error = tokio::time::timeout(4 * PATIENCE, asked).await.expect(query).unwrap_err();
            let is_bounded = ["--memory", "ended its process", "exceed", "overflow", "a fault in the program", "took longer"];
            assert!(is_bounded.iter().any(|word| error.contains(word)), "{query}: {error}");
            assert_eq!(one_row(&mut client).await, 1, "{query}");
        }
    });
}

/// The server holds messages until their clients take them, so they are bounded too.
#[test]
fn a_row_that_is_too_large_for_a_message_is_an_error() {
    let serving = Serving::start(false, PATIENCE, 1);
    serving.run(async {
        let mut client = serving.client().await;
        for (size, is_sent) in [(60_000_000, true), (70_000_000, false)] {
            let query = format!("SELECT repeat('x', {size})");
            let info = client.execute(query, None).await.map_err(trouble).unwrap();
            let found = client.do_get(ticket(&info)).await.map_err(trouble).unwrap();
            let error = rows(found).await.map_err(trouble).unwrap_err();
            // A client takes as much as it was told to, by default 4 MB.
            let expected = match is_sent {
                true => "decoded message length too large",
                false => "a row takes 66 MiB as a message, expected at most 64 MiB",
            };
            assert!(error.contains(expected), "{size}: {error}");
            assert_eq!(one_row(&mut client).await, 1, "{size}");
        }
    });
}

#[test]
fn a_query_ends_with_its_time_and_with_its_client() {
    let limits = StatementLimits { time: Duration::from_secs(2), ..limits(1) };
    let serving = Serving::with(false, PATIENCE, &limits);
    serving.run(async {
        let mut client = serving.client().await;
        let (_, stream) = begin(&mut client, SILENT).await;
        let error = trouble(tokio::time::timeout(PATIENCE, rows(stream)).await.unwrap().unwrap_err());
        assert!(error.contains("the query took longer than the 2 s of --timeout"), "{error}");
        assert_eq!(one_row(&mut client).await, 1);
    });
    let serving = Serving::start(false, PATIENCE, 1);
    serving.run(async {
        // Its connection is closed while its query gives no rows.
        let mut client = serving.client().await;
        let (_, stream) = begin(&mut client, SILENT).await;
        drop((stream, client));
        assert_eq!(one_row(&mut serving.client().await).await, 1, "its slot is free");
    });
}

#[test]
fn prepared_statements_are_counted_and_given_back() {
    let serving = Serving::start(true, PATIENCE, 1);
    serving.run(async {
        let mut client = serving.session().await;
        let statement = format!("SELECT length('{}')", "x".repeat(1_000_000));
        let mut kept = Vec::new();
        let error = loop {
            match client.prepare(statement.clone(), None).await {
                Ok(prepared) => kept.push(prepared),
                Err(error) => break trouble(error),
            }
        };
        assert!(error.contains("too many bytes: close some") && kept.len() < 17, "{}: {error}", kept.len());
        kept.pop().unwrap().close().await.unwrap();
        client.prepare(statement, None).await.unwrap();
        let long = format!("SELECT length('{}')", "x".repeat(2_000_000));
        let error = trouble(client.prepare(long, None).await.unwrap_err());
        assert!(error.contains("expected at most 1048576"), "{error}");
    });
}
