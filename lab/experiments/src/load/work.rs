//! Puts the load of a step on the server, and times what the client sees.

use std::cell::RefCell;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use binlogz_figures::Quantiles;
use binlogz_sandbox::random::Random;
use binlogz_sandbox::workload::{WorkloadTarget, scaled};
use binlogz_sandbox::{Error as SandboxError, Result as SandboxResult};
use binlogz_source::ConnectOptions;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::load::sysbench::{self, Sysbench};
use crate::preset::experiment::{SysbenchTables, Work};
use crate::preset::options::ExperimentOptions;
use crate::safety::stop::RunStopper;
use crate::server::session::ServerSession;

/// Rows of the large table at scale 1.
pub(crate) const LARGE_ROWS: f64 = 1_100_000.0;
/// Updates of each kind at scale 1.
const UPDATES: f64 = 5_000.0;
/// The study's script took its ids from the shell's `$RANDOM`: single rows up to this id, …
const ROW_ID_MAX: u32 = 32_767;
/// … and ranges that begin up to this one (an unset variable made them so).
const RANGE_ID_MAX: u32 = 1_000;
/// Rows of the table with text at scale 1.
const TEXT_ROWS: f64 = 500_000.0;
/// The values of its rows: the study's own expressions.
const TEXT_VALUES: [&str; 3] =
    ["HEX(SHA2(CONCAT(NOW(), RAND(), UUID()), 512))", "NOW()", "FLOOR(RAND() * 100)"];
/// On most machines, more than this keep the cores no busier.
const LOADERS_MAX: u32 = 4;
/// A range is one row longer than this.
const RANGE: u32 = 1_000;

const NANOSECONDS: f64 = 1e9;

/// The client's view of a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientView {
    /// Seconds: sysbench's own figure, or the time until the last statement was answered, without that of making them.
    pub elapsed_s: f64,
    /// Transactions; single statements count as such.
    pub transactions: Option<u64>,
    /// Statements.
    pub queries: Option<u64>,
    /// Transactions a second.
    pub tps: Option<f64>,
    /// Statements a second.
    pub qps: Option<f64>,
    /// Half of all transactions took at most this long, in milliseconds; to within 5 %.
    pub p50_ms: Option<f64>,
    /// 95 % of them.
    pub p95_ms: Option<f64>,
    /// 99 % of them.
    pub p99_ms: Option<f64>,
    /// Errors that did not end the load.
    pub errors: u64,
    /// Whether the server could not keep up with the requested rate.
    pub overrun: bool,
}

/// A server under load.
pub(crate) struct Load<'a> {
    pub(crate) connect: &'a ConnectOptions,
    pub(crate) sysbench: Option<&'a Sysbench>,
    pub(crate) stopper: &'a RunStopper,
    tally: RefCell<Tally>,
}

/// Counts kept while a step runs.
#[derive(Debug, Default)]
struct Tally {
    seconds: f64,
    statements: u64,
    latencies: Quantiles,
    /// Sysbench's own counts.
    told: Option<sysbench::SysbenchFigures>,
    /// The server could not keep up with the rate.
    overrun: bool,
    /// A failure, of which the workload only has the text.
    failure: Option<Error>,
}

impl<'a> Load<'a> {
    pub(crate) fn new(
        connect: &'a ConnectOptions,
        sysbench: Option<&'a Sysbench>,
        stopper: &'a RunStopper,
    ) -> Load<'a> {
        Load { connect, sysbench, stopper, tally: RefCell::default() }
    }

    /// Does the work, at a scale.
    pub(crate) fn run(&self, work: Work, options: &ExperimentOptions) -> Result<ClientView> {
        let ExperimentOptions { scale, seed, time_s, .. } = *options;
        self.tally.replace(Tally::default());
        let rows = scaled(LARGE_ROWS, scale);
        let done = match work {
            Work::Workload(workload) => workload.run(self, scale),
            Work::LargeTable => self.tables(SysbenchTables { count: 1, rows }),
            Work::Tables(tables) => self.tables(tables),
            Work::TextTable => self.text_table(scaled(TEXT_ROWS, scale)),
            Work::UpdateLoop => self.update_loop(Duration::from_secs_f64(time_s)),
            Work::Timed { script, tables, threads, rate } => {
                self.timed(script, tables, threads, rate, time_s)
            }
            Work::RowUpdates => {
                let ids = ROW_ID_MAX.min(rows);
                self.updates(scale, seed, ids, |k, id| {
                    format!("UPDATE sbtest.sbtest1 SET k = {k} WHERE id = {id}")
                })
            }
            Work::RangeUpdates => {
                let ids = RANGE_ID_MAX.min(rows.saturating_sub(RANGE)).max(1);
                self.updates(scale, seed, ids, |k, id| {
                    let end = id + RANGE;
                    format!("UPDATE sbtest.sbtest1 SET k = {k} WHERE id BETWEEN {id} AND {end}")
                })
            }
        };
        let tally = self.tally.take();
        match (tally.failure, done) {
            (Some(failure), _) => Err(failure),
            (None, Err(error)) => Err(error.into()),
            (None, Ok(())) => {
                let seen = seen(tally.seconds, tally.statements, tally.latencies, tally.told);
                Ok(ClientView { overrun: tally.overrun, ..seen })
            }
        }
    }

    fn text_table(&self, rows: u32) -> SandboxResult<()> {
        let [s, t, g] = TEXT_VALUES;
        self.statements(&|out| {
            writeln!(
                out,
                "CREATE DATABASE sbtest;
                 CREATE TABLE sbtest.joinit (i INT AUTO_INCREMENT PRIMARY KEY, s TEXT, t TIME NOT NULL, g INT NOT NULL);
                 SET SESSION cte_max_recursion_depth = {rows};
                 INSERT INTO sbtest.joinit (s, t, g) WITH RECURSIVE n (i) AS \
                 (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT {s}, {t}, {g} FROM n;"
            )
        })
    }

    /// At least once; the study paused between them, which figures by row change don't show.
    fn update_loop(&self, time: Duration) -> SandboxResult<()> {
        let [s, t, g] = TEXT_VALUES;
        self.statements(&|out| {
            let begin = Instant::now();
            loop {
                writeln!(out, "UPDATE sbtest.joinit SET s = {s}, t = {t}, g = {g};")?;
                if begin.elapsed() >= time {
                    return Ok(());
                }
            }
        })
    }

    fn tables(&self, tables: SysbenchTables) -> SandboxResult<()> {
        self.statements(&|out| writeln!(out, "CREATE DATABASE sbtest;"))?;
        let [count, rows] = tables.arguments();
        let threads = format!("--threads={}", loaders(tables));
        self.sysbench(&["oltp_read_write", &count, &rows, "--rand-seed=7", &threads, "prepare"]).map(drop)
    }

    /// A rate that is too high fills sysbench's event queue: that is a result, not a failure.
    fn timed(
        &self,
        script: &str,
        tables: SysbenchTables,
        threads: u32,
        rate: Option<u32>,
        time_s: f64,
    ) -> SandboxResult<()> {
        let [count, rows] = tables.arguments();
        // sysbench takes only whole seconds.
        let time = format!("--time={}", time_s.ceil());
        let threads = format!("--threads={threads}");
        let rate_option = rate.map(|rate| format!("--rate={rate}"));
        let mut args = vec![script, &count, &rows, &threads, &time];
        args.extend(rate_option.as_deref());
        args.push("run");
        let done = self.sysbench(&args);
        let mut tally = self.tally.borrow_mut();
        match (done, &tally.failure) {
            (Err(_), Some(Error::Load(text))) if rate.is_some() && text.contains("queue is full") => {
                tally.failure = None;
                tally.overrun = true;
                Ok(())
            }
            (done, _) => done.map(drop),
        }
    }

    /// Statements with a number that counts them, and ids up to `ids`.
    fn updates(
        &self,
        scale: f64,
        seed: u64,
        ids: u32,
        statement: impl Fn(u32, u32) -> String + Sync,
    ) -> SandboxResult<()> {
        self.statements(&|out| {
            let mut random = Random::new(seed);
            (1..=scaled(UPDATES, scale)).try_for_each(|k| {
                let id = 1 + random.below(ids as usize) as u32;
                writeln!(out, "{};", statement(k, id))
            })
        })
    }

    /// Keeps the failure itself, since a workload only passes on its text.
    fn fail(&self, error: Error) -> SandboxError {
        let text = error.to_string();
        let error = if self.stopper.is_stopped() { Error::Interrupted } else { error };
        self.tally.borrow_mut().failure.get_or_insert(error);
        SandboxError::Failed(text)
    }

    fn run_statements(&self, write: &(dyn Fn(&mut dyn Write) -> io::Result<()> + Sync)) -> Result<()> {
        let mut session = ServerSession::open(self.connect)?;
        let id = session.number("SELECT CONNECTION_ID()")?.unwrap_or_default();
        self.stopper.session_begins(id)?;
        let mut sender = Sender { load: self, session, statement: Vec::new() };
        let sent = write(&mut sender).and_then(|()| sender.end());
        self.stopper.session_ends(id);
        sent.map_err(|source| Error::Io { what: "send statements".to_owned(), source })
    }
}

impl WorkloadTarget for Load<'_> {
    fn statements(&self, write: &(dyn Fn(&mut dyn Write) -> io::Result<()> + Sync)) -> SandboxResult<()> {
        self.run_statements(write).map_err(|error| self.fail(error))
    }

    fn sysbench(&self, args: &[&str]) -> SandboxResult<String> {
        let Some(sysbench) = self.sysbench else {
            return Err(SandboxError::Unavailable("sysbench was not looked for".to_owned()));
        };
        let begin = Instant::now();
        let args = [args, &["--histogram=on"]].concat();
        let said = sysbench.run(&args, self.stopper).map_err(|error| self.fail(error))?;
        let mut tally = self.tally.borrow_mut();
        tally.seconds += begin.elapsed().as_secs_f64();
        tally.told = sysbench::parse(&said);
        Ok(said)
    }
}

impl SysbenchTables {
    fn arguments(self) -> [String; 2] {
        [format!("--tables={}", self.count), format!("--table-size={}", self.rows)]
    }
}

/// Sends each statement once its semicolon is written, and times it.
struct Sender<'a> {
    load: &'a Load<'a>,
    session: ServerSession,
    statement: Vec<u8>,
}

impl Sender<'_> {
    fn send(&mut self) -> io::Result<()> {
        let statement = String::from_utf8_lossy(&self.statement);
        let statement = statement.trim();
        if statement.is_empty() {
            return Ok(());
        }
        if self.load.stopper.is_stopped() {
            return Err(io::Error::other("interrupted"));
        }
        let begin = Instant::now();
        let done = self.session.run(statement);
        let nanoseconds = begin.elapsed().as_nanos() as u64;
        let mut tally = self.load.tally.borrow_mut();
        tally.seconds += nanoseconds as f64 / NANOSECONDS;
        tally.statements += 1;
        tally.latencies.count(nanoseconds, 1.0);
        drop(tally);
        self.statement.clear();
        done.map_err(|error| {
            let text = error.to_string();
            self.load.fail(error);
            io::Error::other(text)
        })
    }

    /// A line break follows the last semicolon.
    fn end(&mut self) -> io::Result<()> {
        self.send()
    }
}

impl Write for Sender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b';') {
            match part.strip_suffix(b";") {
                Some(part) => {
                    self.statement.extend_from_slice(part);
                    self.send()?;
                }
                None => self.statement.extend_from_slice(part),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn seen(
    seconds: f64,
    statements: u64,
    latencies: Quantiles,
    told: Option<sysbench::SysbenchFigures>,
) -> ClientView {
    let (seconds, transactions, queries, errors, latencies) = match told {
        Some(told) => (told.seconds, told.transactions, told.queries, told.errors, told.latencies),
        None => (seconds, statements, statements, 0, latencies),
    };
    let known = latencies.total() > 0.0;
    let rate = |count: u64| (known && seconds > 0.0).then(|| count as f64 / seconds);
    let percentile = |share: f64| known.then(|| latencies.quantile(share) / 1e6);
    ClientView {
        elapsed_s: seconds,
        transactions: known.then_some(transactions),
        queries: known.then_some(queries),
        tps: rate(transactions),
        qps: rate(queries),
        p50_ms: percentile(0.5),
        p95_ms: percentile(0.95),
        p99_ms: percentile(0.99),
        errors,
        overrun: false,
    }
}

/// Connections that load tables at once: each loads a table of its own.
pub(crate) fn loaders(tables: SysbenchTables) -> u32 {
    tables.count.clamp(1, LOADERS_MAX)
}

/// Rows that each transaction of the update loop changes.
pub(crate) fn text_rows(scale: f64) -> u64 {
    scaled(TEXT_ROWS, scale).into()
}
