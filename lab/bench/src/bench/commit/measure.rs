//! One run: a number of committers for a period of time, on a log in a temporary folder.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_atomic_file::TemporaryFolder;
use binlogz_binlog::EventType;
use binlogz_binlog::event::{
    Bitmap, ColumnType, OptionalMetadata, RowsEvent, RowsFlags, TableId, TableMapEvent, TableMapFlags,
};
use binlogz_binlog::gtid::ServerUuid;
use binlogz_engine::{Engine, EngineOptions, Session, TransactionForm, VariableValue};
use binlogz_experiments::published::published;
use binlogz_figures::Quantiles;
use binlogz_payload::CompressionLevel;
use binlogz_store::FileStorage;
use parking_lot::{Condvar, Mutex};

/// The prefix of the name of the folder for a run's log.
const FOLDER_PREFIX: &str = "binlogz-bench-";

/// Enough for a commit; five thousand of them take address space, not memory.
const STACK_SIZE: usize = 512 << 10;

/// Bytes of a transaction's events apart from the row's text: BEGIN, table map, rows, XID.
const EVENTS_SIZE: u32 = 19 + 19 + 45 + 36 + 27;

/// Bytes of a GTID event, checksums and all, that the bare loop writes as well.
const AROUND_SIZE: u32 = 77 + 4 * 4;

/// The settings that vary.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitSettings {
    /// `flush_log_at_commit`.
    pub(super) policy: u8,
    pub(super) level: Option<CompressionLevel>,
    pub(super) committers: u32,
}

impl CommitSettings {
    pub(super) fn compression(&self) -> String {
        self.level.map_or_else(|| "off".to_owned(), |level| level.get().to_string())
    }

    /// The study's figure for it.
    pub(super) fn published(&self) -> Option<f64> {
        let known = published().insert.rows.iter().find(|row| row.threads == self.committers)?;
        match (self.level, self.policy) {
            (None, 1) => known.policy_1,
            (None, 2) => known.policy_2,
            _ => None,
        }
    }
}

/// The results.
#[derive(Debug)]
pub(super) struct CommitResults {
    elapsed: Duration,
    /// How long each commit took, in nanoseconds.
    latencies: Quantiles,
    syncs: u64,
    bytes: u64,
}

impl CommitResults {
    fn commits(&self) -> f64 {
        self.latencies.total()
    }

    pub(super) fn commits_per_second(&self) -> f64 {
        self.commits() / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub(super) fn syncs_per_commit(&self) -> f64 {
        self.syncs as f64 / self.commits().max(1.0)
    }

    pub(super) fn bytes_per_commit(&self) -> u64 {
        (self.bytes as f64 / self.commits().max(1.0)).round() as u64
    }

    /// The time that this share of all commits needed at most, to within 5 %.
    pub(super) fn percentile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.latencies.quantile(share) as u64)
    }

    /// The longest.
    pub(super) fn max(&self) -> Duration {
        Duration::from_nanos(self.latencies.max())
    }
}

fn nanos(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Appends as many bytes as a plain transaction has and syncs, over and over: the limit of the disk.
pub(super) fn bare_loop(dir: &Path, size: u32, time: Duration) -> io::Result<CommitResults> {
    let folder = TemporaryFolder::begin(dir, FOLDER_PREFIX)?;
    let path = folder.path().join("bare");
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let bytes = vec![b'x'; (size + AROUND_SIZE) as usize];
    let start = Instant::now();
    let mut latencies = Quantiles::default();
    let mut commits = 0;
    while commits == 0 || start.elapsed() < time {
        let before = Instant::now();
        file.write_all(&bytes)?;
        file.sync_data()?;
        latencies.count(nanos(before), 1.0);
        commits += 1;
    }
    let bytes = commits * bytes.len() as u64;
    Ok(CommitResults { elapsed: start.elapsed(), latencies, syncs: commits, bytes })
}

/// One cell.
pub(super) fn run(dir: &Path, cell: CommitSettings, size: u32, time: Duration) -> io::Result<CommitResults> {
    let folder = TemporaryFolder::begin(dir, FOLDER_PREFIX)?;
    let storage = FileStorage::open(folder.path()).map_err(io::Error::other)?;
    let variables = [
        ("flush_log_at_commit", VariableValue::Integer(cell.policy.into())),
        ("binlog_transaction_compression", VariableValue::Integer(cell.level.is_some().into())),
        (
            "binlog_transaction_compression_level_zstd",
            VariableValue::Integer(cell.level.unwrap_or_default().get().into()),
        ),
    ];
    let options =
        EngineOptions { variables: &variables, ..EngineOptions::new(ServerUuid(*b"binlogz's bench."), 1) };
    let (engine, _) = Engine::open(Arc::new(storage), options).map_err(io::Error::other)?;
    let start = engine.store().positions().map_or(0, |now| now.written.offset);
    let measured = commit(&engine, cell.committers, size, time)?;
    engine.flush().map_err(io::Error::other)?;
    let end = engine.store().positions().map_or(0, |now| now.written.offset);
    let (elapsed, latencies, syncs) = measured;
    engine.close().map_err(io::Error::other)?;
    Ok(CommitResults { elapsed, latencies, syncs, bytes: end.saturating_sub(start) })
}

/// Starts all committers at once. Returns the total time, the time of each commit, and the syncs.
fn commit(
    engine: &Engine,
    committers: u32,
    size: u32,
    time: Duration,
) -> io::Result<(Duration, Quantiles, u64)> {
    let stop = AtomicBool::new(false);
    let gate = Gate::default();
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..committers {
            let send = send.clone();
            let stop = &stop;
            let gate = &gate;
            let committer = move || {
                let mut session = engine.session();
                let mut row = Row::new(size, number);
                let mut latencies = Quantiles::default();
                gate.pass();
                let done = loop {
                    // Each at least once, however short the time is.
                    let before = Instant::now();
                    match row.commit(&mut session) {
                        Ok(()) => latencies.count(nanos(before), 1.0),
                        Err(error) => break Err(error),
                    }
                    if stop.load(Ordering::Relaxed) {
                        break Ok(latencies);
                    }
                };
                // The receiver waits for all.
                let _ = send.send(done);
            };
            let spawned = thread::Builder::new().stack_size(STACK_SIZE).spawn_scoped(scope, committer);
            if let Err(error) = spawned {
                stop.store(true, Ordering::Relaxed);
                gate.open();
                return Err(io::Error::other(format!("start {committers} threads: {error}")));
            }
        }
        drop(send);
        gate.open();
        let start = Instant::now();
        let syncs = engine.group_figures().1;
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let mut latencies = Quantiles::default();
        for done in receive {
            latencies.add(&done.map_err(io::Error::other)?);
        }
        Ok((start.elapsed(), latencies, engine.group_figures().1 - syncs))
    })
}

/// Closed until all committers are there.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.open.lock() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut open = self.open.lock();
        self.opened.wait_while(&mut open, |open| !*open);
    }
}

/// A row of digits in groups, as sysbench's are: never the same twice.
struct Row {
    image: Vec<u8>,
    state: u64,
}

/// Bytes before the row's text: the NULL bits, the text's length.
const ROW_START: usize = 1 + 4;

impl Row {
    fn new(size: u32, committer: u32) -> Self {
        let text = size.saturating_sub(EVENTS_SIZE).max(16);
        let mut image = vec![0];
        image.extend_from_slice(&text.to_le_bytes());
        image.resize(ROW_START + text as usize, b'-');
        Row { image, state: 0x9e37_79b9_7f4a_7c15 ^ (u64::from(committer) << 32 | 1) }
    }

    fn commit(&mut self, session: &mut Session) -> binlogz_engine::Result<()> {
        // Eleven digits and a dash.
        for group in self.image.get_mut(ROW_START..).unwrap_or_default().chunks_mut(12) {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let mut digits = self.state;
            for digit in group.iter_mut().take(11) {
                *digit = b'0' + (digits % 10) as u8;
                digits /= 10;
            }
        }
        let table_id = TableId(90);
        session.begin()?;
        session.table_map(&TableMapEvent {
            table_id,
            flags: TableMapFlags::BIT_LEN_EXACT,
            database: b"sbtest",
            table: b"sbtest1",
            column_types: &[ColumnType::BLOB.0],
            column_metadata: &[4],
            null_bitmap: Bitmap(&[0]),
            optional_metadata: OptionalMetadata(&[]),
        })?;
        session.rows(&RowsEvent {
            event_type: EventType::WRITE_ROWS,
            table_id,
            flags: RowsFlags(1),
            extra_data: &[],
            width: 1,
            columns: Bitmap(&[1]),
            columns_after: None,
            rows: &self.image,
        })?;
        let committed = session.commit()?;
        debug_assert!(committed.outcome != TransactionForm::Empty);
        Ok(())
    }
}
