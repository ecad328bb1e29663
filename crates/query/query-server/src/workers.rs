//! The worker processes, in which statements are planned and run. Each has one statement at a time. It is killed with its
//! statement when the client goes, when the statement's time is over, or when all workers together hold more than their
//! memory.
//!
//! ```text
//! idle ── take ──> planning, running ── its statement has ended ──> idle
//!                        │ stopped, too long, too large, or it ended by itself
//!                        └──────> killed, ending ── it has ended ──> its turn is another statement's
//! ```
//!
//! A killed process holds its memory until the last of its threads has ended, which takes its time on a busy machine. Until
//! then it counts, and its statement keeps its turn: else clients that leave at once would have more processes than turns.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use binlogz_query::memory::{counted, held_by, held_max};
use binlogz_query::{Names, Queries};
use bytes::{Buf, Bytes};
use futures_util::Stream;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use crate::TellLine;
use crate::frames::{AskedStatement, FrameKind, Frames, frame};
use crate::refusal::{Blame, StatementRefusal};

/// A worker opens the logs first.
const START_TIME_MAX: Duration = Duration::from_secs(120);
/// How long one that closed its output may take to end by itself.
const END_TIME_MAX: Duration = Duration::from_secs(1);
/// How often the memory of workers is measured.
const WATCH_PAUSE: Duration = Duration::from_millis(10);
/// Memory in bytes that a worker may keep of its last statement; one that has more is ended. One that has less isn't ended for
/// the memory of those that are ending.
const KEPT_MAX: u64 = 64 << 20;
/// Messages that wait for a client.
const MESSAGES_WAITING: usize = 2;
/// Statements that are planned at once.
const PLANS_MAX: usize = 4;
/// Bytes beyond the limit that workers may hold together with those that are ending.
const ENDING_MAX: u64 = 128 << 20;
/// The least memory of a statement's sorts, joins and groups.
const BUDGET_MIN: usize = 64 << 10;

/// How a worker is started. It calls [`crate::work`].
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// Variables of the worker's environment, in addition to the server's.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether each worker has one statement: logs that grow stay to it what they were at its first.
    pub is_for_one: bool,
}

/// Logs as some accounts see them.
#[derive(Debug, Clone)]
pub struct AccountLogs {
    /// The names of the accounts; without accounts it is an empty name.
    pub accounts: Vec<String>,
    /// The engine that lists the tables.
    pub queries: Queries,
    /// How workers are started that read these logs.
    pub command: WorkerCommand,
}

/// Limits on statements.
#[derive(Debug, Clone, Copy)]
pub struct StatementLimits {
    /// Bytes of memory of all workers: [`binlogz_query::QueryOptions`].
    pub memory: usize,
    /// Queries that run at once; others wait.
    pub queries: usize,
    /// Queries of one account that run at once, among these.
    pub queries_of_account: usize,
    /// How long a query may run.
    pub time: Duration,
    /// How long it may be planned.
    pub planning_time: Duration,
}

/// All workers.
pub struct Workers {
    pools: Vec<Arc<WorkerPool>>,
    /// The pool of each account, by its place among them. A name that isn't there has no logs.
    pool_of: HashMap<String, usize>,
    limits: StatementLimits,
    tell: TellLine,
    seats: Arc<Seats>,
    turns: WorkTurns,
    /// Bytes that running queries were given.
    given: AtomicUsize,
}

type Seats = Mutex<Vec<Weak<Seat>>>;

/// The workers that read the same logs.
struct WorkerPool {
    command: WorkerCommand,
    /// The engine that answers their questions.
    queries: Queries,
    idle: Mutex<Vec<Worker>>,
    /// Whether one is started that nobody waits for.
    is_starting: AtomicBool,
}

/// The state of a worker while it lives.
struct Seat {
    process: u32,
    /// Bytes that it held when it was new.
    base: AtomicU64,
    /// Bytes that it holds beyond that.
    held: AtomicU64,
    is_busy: AtomicBool,
    /// It is to end because of its memory.
    is_too_large: AtomicBool,
    /// It is killed and hasn't ended yet.
    is_ending: AtomicBool,
    end: Notify,
    /// The process, as long as nothing has waited for its end: until then no other process has its number.
    killable: Mutex<Option<Pid>>,
}

impl Seat {
    /// Kills the process at once, in whatever state its statement is.
    fn kill(&self) {
        self.is_ending.store(true, Ordering::Release);
        if let Some(process) = *locked(&self.killable) {
            // It may have ended by itself.
            let _ = kill_process(process, Signal::KILL);
        }
    }

    /// From here on its end is waited for.
    fn let_go(&self) {
        locked(&self.killable).take();
    }
}

struct Worker {
    child: Child,
    input: ChildStdin,
    frames: Frames<ChildStdout>,
    seat: Arc<Seat>,
}

impl Worker {
    /// Waits for the process's end and then gives `share` back, whether anybody waits for that or not. The process is killed once it
    /// has had `time` to end by itself.
    fn end(self, share: Option<WorkShare>, time: Duration) -> Option<JoinHandle<io::Result<ExitStatus>>> {
        let Worker { mut child, input, frames, seat } = self;
        seat.is_ending.store(true, Ordering::Release);
        if time.is_zero() {
            // It may have ended.
            let _ = child.start_kill();
        }
        seat.let_go();
        // Without a runtime the server has ended: dropped, the process is killed.
        let runtime = Handle::try_current().ok()?;
        Some(runtime.spawn(async move {
            // Nobody reads what it still writes.
            drop((input, frames));
            let status = match tokio::time::timeout(time, child.wait()).await {
                Ok(status) => status,
                Err(_) => match child.start_kill() {
                    Ok(()) => child.wait().await,
                    Err(error) => Err(error),
                },
            };
            drop((seat, share));
            status
        }))
    }
}

/// A worker with a statement. Dropped before the statement has ended, it is killed.
struct TakenWorker {
    worker: Option<Worker>,
    /// The statement's turn and memory. It keeps them until its process is idle again or has ended.
    share: Option<WorkShare>,
    workers: Arc<Workers>,
    pool: Arc<WorkerPool>,
}

impl Drop for TakenWorker {
    fn drop(&mut self) {
        self.end();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Limits how many statements plan or run at once: in all, and of each account.
struct WorkTurns {
    plans: Arc<Semaphore>,
    queries: Arc<Semaphore>,
    of_account: usize,
    accounts: Mutex<HashMap<String, AccountTurns>>,
}

/// The semaphores of one account: for plans, and for queries.
type AccountTurns = (Arc<Semaphore>, Arc<Semaphore>);

/// A turn, until it is dropped.
struct WorkTurn {
    _all: OwnedSemaphorePermit,
    _account: OwnedSemaphorePermit,
}

/// The turn and the memory that a statement has while it plans or runs.
struct WorkShare {
    _turn: WorkTurn,
    /// Of a query.
    _budget: Option<Budget>,
}

impl WorkTurns {
    fn of(&self, account: &str) -> AccountTurns {
        let mut accounts = locked(&self.accounts);
        let plans = || Arc::new(Semaphore::new(PLANS_MAX.min(self.of_account.max(1)).div_ceil(2).max(1)));
        let queries = || Arc::new(Semaphore::new(self.of_account.max(1)));
        accounts.entry(account.to_owned()).or_insert_with(|| (plans(), queries())).clone()
    }

    async fn turn(all: &Arc<Semaphore>, of_account: Arc<Semaphore>) -> Result<WorkTurn, StatementRefusal> {
        let ends = |_| StatementRefusal::new(Blame::Unavailable, "the server ends");
        // First among one's own, so that one account doesn't wait in all places.
        let _account = of_account.acquire_owned().await.map_err(ends)?;
        let _all = Arc::clone(all).acquire_owned().await.map_err(ends)?;
        Ok(WorkTurn { _all, _account })
    }
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Workers {
    /// Workers for these logs, within these limits. Each account is of one of them alone.
    pub fn new(logs: Vec<AccountLogs>, limits: StatementLimits, tell: TellLine) -> Arc<Self> {
        let mut pools = Vec::new();
        let mut pool_of = HashMap::new();
        for (number, AccountLogs { accounts, queries, command }) in logs.into_iter().enumerate() {
            pool_of.extend(accounts.into_iter().map(|account| (account, number)));
            let is_starting = AtomicBool::new(false);
            pools.push(Arc::new(WorkerPool { command, queries, idle: Mutex::default(), is_starting }));
        }
        let seats: Arc<Seats> = Arc::default();
        let watched = Arc::downgrade(&seats);
        let held_max = held_max(limits.memory);
        thread::spawn(move || {
            while let Some(seats) = watched.upgrade() {
                watch(&seats, held_max);
                drop(seats);
                thread::sleep(WATCH_PAUSE);
            }
        });
        let turns = WorkTurns {
            plans: Arc::new(Semaphore::new(PLANS_MAX)),
            queries: Arc::new(Semaphore::new(limits.queries)),
            of_account: limits.queries_of_account,
            accounts: Mutex::default(),
        };
        let given = AtomicUsize::new(0);
        Arc::new(Workers { pools, pool_of, limits, tell, seats, turns, given })
    }

    /// Starts the first one for each of the logs.
    ///
    /// # Errors
    ///
    /// One that can't be started.
    pub async fn begin(self: &Arc<Self>) -> Result<(), StatementRefusal> {
        for pool in &self.pools {
            let worker = self.start(pool).await?;
            locked(&pool.idle).push(worker);
        }
        Ok(())
    }

    /// The logs of an account. None has those of another by default: they may have what it must not see.
    fn pool(&self, account: &str) -> Result<&Arc<WorkerPool>, StatementRefusal> {
        let pool = self.pool_of.get(account).and_then(|number| self.pools.get(*number));
        pool.ok_or_else(|| StatementRefusal::new(Blame::Program, format!("account {account:?} has no logs")))
    }

    /// The engine that lists the tables of an account's logs.
    ///
    /// # Errors
    ///
    /// An account without logs, which is a fault of the program.
    pub fn queries(&self, account: &str) -> Result<&Queries, StatementRefusal> {
        self.pool(account).map(|pool| &pool.queries)
    }

    /// Ends all that are idle; the others end with their statements.
    pub fn end(&self) {
        self.pools.iter().for_each(|pool| locked(&pool.idle).clear());
        self.turns.plans.close();
        self.turns.queries.close();
    }

    async fn start(&self, pool: &WorkerPool) -> Result<Worker, StatementRefusal> {
        let failed = |what: &dyn std::fmt::Display| {
            let line = format!("a worker can't be started: {what}");
            (self.tell)(&line);
            StatementRefusal::new(Blame::Unavailable, line)
        };
        let WorkerCommand { program, arguments, environment, is_for_one: _ } = &pool.command;
        let mut command = Command::new(program);
        command.args(arguments).envs(environment.iter().cloned());
        // A Ctrl-C at the terminal is the server's.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).process_group(0);
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let (Some(input), Some(output), Some(process)) =
            (child.stdin.take(), child.stdout.take(), child.id())
        else {
            return Err(failed(&"it has no pipes"));
        };
        let mut frames = Frames::new(output);
        match tokio::time::timeout(START_TIME_MAX, frames.next()).await {
            Ok(Ok(Some((FrameKind::Ready, _)))) => {}
            Ok(Ok(_)) => return Err(failed(&"it ended")),
            Ok(Err(error)) => return Err(failed(&error)),
            Err(_) => return Err(failed(&"it isn't ready after two minutes")),
        }
        let seat = Arc::new(Seat {
            process,
            base: AtomicU64::new(held_by(Some(process)).unwrap_or_default()),
            held: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
            is_too_large: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            end: Notify::new(),
            killable: Mutex::new(i32::try_from(process).ok().and_then(Pid::from_raw)),
        });
        let mut seats = locked(&self.seats);
        seats.retain(|seat| seat.strong_count() > 0);
        seats.push(Arc::downgrade(&seat));
        Ok(Worker { child, input, frames, seat })
    }

    async fn take(
        self: &Arc<Self>,
        pool: &Arc<WorkerPool>,
        share: WorkShare,
    ) -> Result<TakenWorker, StatementRefusal> {
        let idle = loop {
            let Some(mut worker) = locked(&pool.idle).pop() else { break None };
            // It may have ended while it was idle. None is killed in that state.
            if matches!(worker.child.try_wait(), Ok(None)) {
                break Some(worker);
            }
        };
        let worker = match idle {
            Some(worker) => worker,
            None => self.start(pool).await?,
        };
        self.start_spare(pool);
        worker.seat.is_busy.store(true, Ordering::Release);
        let workers = Arc::clone(self);
        let pool = Arc::clone(pool);
        Ok(TakenWorker { worker: Some(worker), share: Some(share), workers, pool })
    }

    /// Starts one for the next statement, if none is idle.
    fn start_spare(self: &Arc<Self>, pool: &Arc<WorkerPool>) {
        if !locked(&pool.idle).is_empty() || pool.is_starting.swap(true, Ordering::AcqRel) {
            return;
        }
        let workers = Arc::clone(self);
        let pool = Arc::clone(pool);
        tokio::spawn(async move {
            let started = workers.start(&pool).await;
            pool.is_starting.store(false, Ordering::Release);
            if let Ok(worker) = started
                && !workers.turns.plans.is_closed()
            {
                locked(&pool.idle).push(worker);
            }
        });
    }

    /// Plans a statement.
    /// The protocol says what is in the plan.
    ///
    /// # Errors
    ///
    /// A statement that is wrong, or takes too long or too much memory; a worker that can't be started or has ended.
    pub async fn plan(
        self: &Arc<Self>,
        account: &str,
        statement: AskedStatement,
    ) -> Result<Bytes, StatementRefusal> {
        let pool = Arc::clone(self.pool(account)?);
        let _turn = WorkTurns::turn(&self.turns.plans, self.turns.of(account).0).await?;
        let memory = (counted(self.limits.memory) / PLANS_MAX / 4).max(BUDGET_MIN) as u64;
        let mut taken = self.take(&pool, WorkShare { _turn, _budget: None }).await?;
        taken.ask(FrameKind::Plan, &AskedStatement { memory, ..statement }).await?;
        let planned = taken.planned().await?;
        taken.give_back();
        Ok(planned)
    }

    /// Plans a statement and runs it. It ends if nobody takes its rows for `patience`. `kept` is dropped when it has ended, also if its
    /// last rows are never taken.
    ///
    /// # Errors
    ///
    /// Those of [`Workers::plan`]; the rows may end with one, too.
    pub async fn run(
        self: &Arc<Self>,
        account: &str,
        statement: AskedStatement,
        patience: Duration,
        kept: impl Send + 'static,
    ) -> Result<RowMessages, StatementRefusal> {
        let pool = Arc::clone(self.pool(account)?);
        let _turn = WorkTurns::turn(&self.turns.queries, self.turns.of(account).1).await?;
        let budget = Budget::new(self);
        let memory = budget.bytes as u64;
        let mut taken = self.take(&pool, WorkShare { _turn, _budget: Some(budget) }).await?;
        taken.ask(FrameKind::Run, &AskedStatement { memory, ..statement }).await?;
        let begun = Instant::now();
        let plan = taken.planned().await?;
        let time = self.limits.time;
        let (sender, messages) = channel(MESSAGES_WAITING);
        let task = tokio::spawn(async move {
            let _kept = kept;
            loop {
                let next = match tokio::time::timeout_at(begun + time, taken.reply()).await {
                    Ok(Ok((FrameKind::Rows, body))) => Ok(Some(body)),
                    Ok(Ok((FrameKind::End, _))) => Ok(None),
                    Ok(Ok((FrameKind::AskTables, _))) => match taken.tell_tables().await {
                        Ok(()) => continue,
                        Err(status) => Err(status),
                    },
                    Ok(Ok(_)) => Err(StatementRefusal::new(Blame::Program, "a worker said something else")),
                    Ok(Err(status)) => Err(status),
                    Err(_) => Err(StatementRefusal::new(
                        Blame::Time,
                        format!("the query took longer than the {} of --timeout", seconds(time)),
                    )),
                };
                let is_last = !matches!(next, Ok(Some(_)));
                if matches!(next, Ok(None)) {
                    taken.give_back();
                }
                if is_last {
                    // Whether its client takes the end or not.
                    taken.end();
                }
                let sent = tokio::time::timeout(patience, sender.send(next)).await;
                if is_last || !matches!(sent, Ok(Ok(()))) {
                    return;
                }
            }
        });
        Ok(RowMessages { plan, messages, task, is_over: false })
    }
}

/// A duration for people.
fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// A share of the memory, given back when it is dropped.
struct Budget {
    workers: Arc<Workers>,
    bytes: usize,
}

impl Budget {
    /// Half of what is left, so that there is always some for the next.
    fn new(workers: &Arc<Workers>) -> Self {
        let all = counted(workers.limits.memory);
        let mut bytes = 0;
        let _ = workers.given.fetch_update(Ordering::AcqRel, Ordering::Acquire, |given| {
            let left = all.saturating_sub(given);
            bytes = if workers.limits.queries == 1 { left } else { left / 2 }.max(BUDGET_MIN);
            Some(given + bytes)
        });
        Budget { workers: Arc::clone(workers), bytes }
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.workers.given.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl TakenWorker {
    async fn ask(&mut self, kind: FrameKind, asked: &AskedStatement) -> Result<(), StatementRefusal> {
        let frame =
            asked.frame(kind).map_err(|error| StatementRefusal::new(Blame::Statement, error.to_string()))?;
        let Some(worker) = &mut self.worker else {
            return Err(StatementRefusal::new(Blame::Program, "no worker"));
        };
        match worker.input.write_all(&frame).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended().await),
        }
    }

    /// The answer that a statement was planned.
    async fn planned(&mut self) -> Result<Bytes, StatementRefusal> {
        let time = self.workers.limits.planning_time;
        loop {
            let Ok(reply) = tokio::time::timeout(time, self.reply()).await else {
                let line = format!("planning the statement took longer than {}", seconds(time));
                return Err(StatementRefusal::new(Blame::Time, line));
            };
            match reply? {
                (FrameKind::Planned, body) => return Ok(body),
                // Reading the logs for that has no limit: it is done once.
                (FrameKind::AskTables, _) => self.tell_tables().await?,
                _ => return Err(StatementRefusal::new(Blame::Program, "a worker said something else")),
            }
        }
    }

    /// Tells which user tables there are.
    async fn tell_tables(&mut self) -> Result<(), StatementRefusal> {
        let told = self.pool.queries.apart(Names::all_columns).await;
        let frame = match told {
            Ok(tables) => frame(FrameKind::Tables, &[&tables]),
            Err(error) => frame(FrameKind::NoTables, &[error.to_string().as_bytes()]),
        };
        let frame = frame.map_err(|error| StatementRefusal::new(Blame::Program, error.to_string()))?;
        let Some(worker) = &mut self.worker else {
            return Err(StatementRefusal::new(Blame::Program, "no worker"));
        };
        match worker.input.write_all(&frame).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended().await),
        }
    }

    /// The next frame. A statement that failed leaves the worker as it was.
    async fn reply(&mut self) -> Result<(FrameKind, Bytes), StatementRefusal> {
        let Some(worker) = &mut self.worker else {
            return Err(StatementRefusal::new(Blame::Program, "no worker"));
        };
        let next = tokio::select! {
            next = worker.frames.next() => next,
            () = worker.seat.end.notified() => return Err(self.ended().await),
        };
        match next {
            Ok(Some((FrameKind::Failed, mut body))) => {
                let blame = body.try_get_u8().map_or(Blame::Program, Blame::of);
                let number = body.try_get_u16_le().unwrap_or_default();
                let line = String::from_utf8_lossy(&body).into_owned();
                self.give_back();
                Err(StatementRefusal { number, ..StatementRefusal::new(blame, line) })
            }
            Ok(Some(reply)) => Ok(reply),
            Ok(None) | Err(_) => Err(self.ended().await),
        }
    }

    /// Ends the process and gives its share back when it has ended. Nothing is done for one that was given back.
    fn end(&mut self) {
        if let Some(worker) = self.worker.take() {
            drop(worker.end(self.share.take(), Duration::ZERO));
        }
    }

    /// Why the worker has ended.
    async fn ended(&mut self) -> StatementRefusal {
        let Some(worker) = self.worker.take() else {
            return StatementRefusal::new(Blame::Program, "no worker");
        };
        let is_too_large = worker.seat.is_too_large.load(Ordering::Acquire);
        // One that closed its output has ended, or is about to: how it does is told.
        let time = if is_too_large { Duration::ZERO } else { END_TIME_MAX };
        let status = match worker.end(self.share.take(), time) {
            Some(ended) => ended.await.map_err(io::Error::other).flatten(),
            None => Err(io::Error::other("the server ends")),
        };
        if is_too_large {
            let limit = self.workers.limits.memory >> 20;
            return StatementRefusal::new(
                Blame::Limit,
                format!("the query needs more than the {limit} MiB of --memory: its process was ended"),
            );
        }
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        (self.workers.tell)(&format!("a statement ended its process: {how}"));
        StatementRefusal::new(
            Blame::Program,
            format!("the statement ended its process ({how}); the server goes on"),
        )
    }

    fn give_back(&mut self) {
        let Some(worker) = self.worker.take() else { return };
        let held = held_by(Some(worker.seat.process)).unwrap_or_default();
        if held.saturating_sub(worker.seat.base.load(Ordering::Acquire)) > KEPT_MAX
            || worker.seat.is_too_large.load(Ordering::Acquire)
            || self.pool.command.is_for_one
        {
            drop(worker.end(self.share.take(), Duration::ZERO));
            self.workers.start_spare(&self.pool);
        } else if !self.workers.turns.plans.is_closed() {
            worker.seat.is_busy.store(false, Ordering::Release);
            locked(&self.pool.idle).push(worker);
        }
        self.share = None;
    }
}

/// Ends the worker that holds most, if all of them hold too much.
fn watch(seats: &Seats, held_max: u64) {
    let seats: Vec<_> = locked(seats).iter().filter_map(Weak::upgrade).collect();
    let mut all = 0_u64;
    let mut ending = 0_u64;
    let mut largest: Option<(u64, &Seat)> = None;
    for seat in &seats {
        if seat.is_busy.load(Ordering::Acquire) {
            let held = held_by(Some(seat.process)).unwrap_or_default();
            seat.held.store(held.saturating_sub(seat.base.load(Ordering::Acquire)), Ordering::Release);
        }
        let held = seat.held.load(Ordering::Acquire);
        all = all.saturating_add(held);
        if seat.is_ending.load(Ordering::Acquire) {
            ending = ending.saturating_add(held);
        } else if seat.is_busy.load(Ordering::Acquire) && largest.is_none_or(|(most, _)| held > most) {
            largest = Some((held, seat));
        }
    }
    let Some((most, largest)) = largest else { return };
    let is_too_much = all.saturating_sub(ending) > held_max;
    // What is ending gets smaller by itself; until it has, the others may not grow by as much.
    if is_too_much || most > KEPT_MAX && all > held_max.saturating_add(ENDING_MAX) {
        largest.is_too_large.store(true, Ordering::Release);
        // On a busy machine it would grow on until its statement's task has its turn.
        largest.kill();
        largest.end.notify_one();
    }
}

/// The rows of a query as they come, as messages of the protocol. Without it the query ends.
#[derive(Debug)]
pub struct RowMessages {
    plan: Bytes,
    /// `None`: there are no more.
    messages: Receiver<Result<Option<Bytes>, StatementRefusal>>,
    task: JoinHandle<()>,
    is_over: bool,
}

impl RowMessages {
    /// The plan of the query, as [`Workers::plan`] tells it.
    pub fn plan(&self) -> &Bytes {
        &self.plan
    }

    /// Ends the query when it is called; its rows end with an error then.
    pub fn stopper(&self) -> AbortHandle {
        self.task.abort_handle()
    }
}

impl Drop for RowMessages {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stream for RowMessages {
    type Item = Result<Bytes, StatementRefusal>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let Poll::Ready(next) = self.messages.poll_recv(context) else { return Poll::Pending };
        // An end that the query didn't tell of is none: it was stopped.
        let next = next
            .unwrap_or_else(|| Err(StatementRefusal::new(Blame::Stopped, "the query was stopped")))
            .transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use binlogz_query::{Logs, QueryEngine, QueryOptions};

    use super::*;

    const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../samples/plain");
    /// A worker that is ready and then doesn't do anything: a frame of kind H.
    const SILENT_WORKER: &str = r"printf '\001\000\000\000H'; exec sleep 600";

    /// The state letter of a process, as Linux has it. `None`: it is gone.
    fn state_of(process: u32) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }

    #[test]
    fn the_turn_of_a_killed_worker_is_kept_until_it_has_ended() {
        let temporary = tempfile::tempdir().unwrap();
        let log = fs::read_dir(SAMPLES)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "000001"))
            .take(1);
        let limits = StatementLimits {
            memory: 1 << 28,
            queries: 1,
            queries_of_account: 1,
            time: START_TIME_MAX,
            planning_time: START_TIME_MAX,
        };
        let options =
            QueryOptions { memory: limits.memory, jobs: 1, temporary: Path::to_owned(temporary.path()) };
        let engine = QueryEngine::new(Logs::new(log.collect(), None, |_| {}).unwrap(), &options).unwrap();
        let command = WorkerCommand {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), SILENT_WORKER.into()],
            environment: Vec::new(),
            is_for_one: false,
        };
        // One thread: what is spawned doesn't run before this test waits.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let logs =
                AccountLogs { accounts: vec!["reader".to_owned()], queries: engine.queries(), command };
            let workers = Workers::new(vec![logs], limits, Arc::new(|_: &str| {}));
            assert!(workers.queries("writer").is_err(), "another account");
            let pool = Arc::clone(workers.pool("reader").unwrap());
            let of_account = workers.turns.of("reader").1;
            let _turn = WorkTurns::turn(&workers.turns.queries, of_account).await.unwrap();
            let _budget = Some(Budget::new(&workers));
            let taken = workers.take(&pool, WorkShare { _turn, _budget }).await.unwrap();
            let process = taken.worker.as_ref().unwrap().seat.process;
            // Its client leaves.
            drop(taken);
            assert_eq!(workers.turns.queries.available_permits(), 0, "the turn");
            assert!(workers.given.load(Ordering::Acquire) > 0, "its memory");
            let next = Arc::clone(&workers.turns.queries).acquire_owned().await.unwrap();
            assert_eq!(state_of(process), None, "it was waited for");
            drop(next);
            assert_eq!(workers.given.load(Ordering::Acquire), 0, "its memory");
            workers.end();
        });
    }
}
