//! Measures compress and expand side by side with zstd, on the five workloads at full scale, and holds laws 1 and 2 at
//! that scale. Run through `scripts/bench/core.sh`; `lab/book/core.md` has the figures and explains them.
//!
//! usage: `bench-core BINLOGZ [speed|laws]…`
//!
//! Speed: medians of alternating runs, each a process of its own from start to end, output to /dev/null. The
//! bound is listed beside them: libzstd alone over the same transactions, already in memory, with nothing
//! else done.

#![allow(clippy::indexing_slicing)] // a tool of ours: a panic tells enough

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use binlogz_binlog::event::TransactionPayloadEvent;
use binlogz_binlog::{EventReader, EventType};
use binlogz_testkit::workload::{self, Workload, WorkloadSetting};
use binlogz_testkit::{InstalledTool, Tool};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer, ResetDirective};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Alternating runs of each pair.
const ROUNDS: usize = 7;
const LEVEL: u32 = 3;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-core: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let binlogz = PathBuf::from(args.next().ok_or("usage: bench-core BINLOGZ [speed|laws]…")?);
    let parts: Vec<_> = args.collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    if wanted("speed") {
        speed(&binlogz)?;
    }
    if wanted("laws") {
        laws(&binlogz)?;
    }
    Ok(())
}

fn speed(binlogz: &Path) -> Result<()> {
    let zstd = Tool::Zstd.find()?;
    let plain = workload::binlogs(1.0, &WorkloadSetting::plain())?;
    let compressed = workload::binlogs(1.0, &WorkloadSetting::level(LEVEL))?;
    let dir = tempfile::tempdir()?;
    println!(
        "seconds: median (fastest to slowest) of {ROUNDS}; ratio: zstd's median by ours, above 1 is faster"
    );
    println!(
        "{:<17} {:<10} {:>24} {:>24} {:>6} {:>24} {:>7}",
        "", "", "binlogz", "zstd", "ratio", "binlogz, one core", "scaling"
    );
    for (plain, compressed) in plain.iter().zip(&compressed) {
        let name = plain.workload.name();
        // A file of one transaction is one frame, which zstd makes on one thread.
        let threads = if plain.workload == Workload::BulkUpdate { "--single-thread" } else { "-T2" };
        let ours = |verb: &str, jobs: &str, path: &Path| {
            let mut command = Command::new(binlogz);
            command.args([verb, "--jobs", jobs, "--output", "-"]).arg(path);
            command
        };
        row(
            name,
            "compress",
            [
                &mut ours("compress", "2", &plain.path),
                &mut command(zstd, &["-q", "-3", threads, "-c"], &plain.path),
                &mut ours("compress", "1", &plain.path),
            ],
        )?;
        let packed = dir.path().join(name);
        let mut pack = command(zstd, &["-q", "-3", "-c"], &plain.path);
        if !pack.stdout(File::create(&packed)?).status()?.success() {
            return Err(format!("zstd fails on {name}").into());
        }
        row(
            name,
            "expand",
            [
                &mut ours("expand", "2", &compressed.path),
                &mut command(zstd, &["-q", "-d", "-c"], &packed),
                &mut ours("expand", "1", &compressed.path),
            ],
        )?;
        let transactions = transactions(&fs::read(&compressed.path)?)?;
        println!(
            "{name:<17} {:<10} compress {:.3} s on two cores, {:.3} on one; expand {:.3} and {:.3}; {} transactions",
            "bound",
            bound(2, &transactions, compress_all),
            bound(1, &transactions, compress_all),
            bound(2, &transactions, expand_all),
            bound(1, &transactions, expand_all),
            transactions.len(),
        );
    }
    Ok(())
}

fn command(installed: &InstalledTool, args: &[&str], path: &Path) -> Command {
    let mut command = installed.command("zstd");
    command.args(args).arg(path);
    command
}

/// Runs three commands in turn: ours, zstd, ours on one core.
fn row(name: &str, verb: &str, mut commands: [&mut Command; 3]) -> Result<()> {
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..=ROUNDS {
        for (command, times) in commands.iter_mut().zip(&mut times) {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let begin = Instant::now();
            if !command.status()?.success() {
                return Err(format!("{command:?} fails").into());
            }
            // The first round only warms the caches.
            if round > 0 {
                times.push(begin.elapsed().as_secs_f64());
            }
        }
    }
    let [ours, zstd, one_core] = &times.map(Spread::of);
    println!(
        "{name:<17} {verb:<10} {ours:>24} {zstd:>24} {:>6.2} {one_core:>24} {:>7.2}",
        zstd.median / ours.median,
        one_core.median / ours.median,
    );
    Ok(())
}

struct Spread {
    median: f64,
    text: String,
}

impl Spread {
    fn of(mut times: Vec<f64>) -> Spread {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let text = format!("{median:.3} ({:.3} to {:.3})", times[0], times[times.len() - 1]);
        Spread { median, text }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.text)
    }
}

/// A transaction as mysqld compressed it.
struct Transaction {
    payload: Vec<u8>,
    events: Vec<u8>,
}

fn transactions(log: &[u8]) -> Result<Vec<Transaction>> {
    let mut reader = EventReader::new(log);
    let mut transactions = Vec::new();
    while let Some((_, frame)) = reader.next_event()? {
        if frame.event_type() == EventType::TRANSACTION_PAYLOAD {
            let event = TransactionPayloadEvent::decode(frame.body())?;
            let size = event.header.uncompressed_size().ok_or("a payload without its size")?;
            let mut events = Vec::with_capacity(size as usize);
            let written = zstd_safe::decompress(&mut events, event.payload);
            written.map_err(zstd_safe::get_error_name)?;
            transactions.push(Transaction { payload: event.payload.to_vec(), events });
        }
    }
    Ok(transactions)
}

/// Seconds that this many threads need for all transactions: the median of [`ROUNDS`].
fn bound(
    threads: usize,
    transactions: &[Transaction],
    all: fn(&mut dyn FnMut() -> Option<usize>, &[Transaction]),
) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let next = AtomicUsize::new(0);
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut next = || {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        (index < transactions.len()).then_some(index)
                    };
                    all(&mut next, transactions);
                });
            }
        });
        begin.elapsed()
    });
    Spread::of(times.map(|time: Duration| time.as_secs_f64()).collect()).median
}

fn compress_all(next: &mut dyn FnMut() -> Option<usize>, transactions: &[Transaction]) {
    let mut context = CCtx::create();
    context.set_parameter(CParameter::CompressionLevel(LEVEL as i32)).expect("a level");
    let mut out = Vec::new();
    while let Some(index) = next() {
        let events = &transactions[index].events;
        out.clear();
        out.reserve(zstd_safe::compress_bound(events.len()));
        context.reset(ResetDirective::SessionOnly).expect("a context");
        let mut input = InBuffer::around(events);
        let mut output = OutBuffer::around(&mut out);
        let left = context.compress_stream2(&mut output, &mut input, ZSTD_EndDirective::ZSTD_e_end);
        assert_eq!(left, Ok(0), "the bound is room enough");
    }
}

fn expand_all(next: &mut dyn FnMut() -> Option<usize>, transactions: &[Transaction]) {
    let mut context = DCtx::create();
    let mut out = Vec::new();
    while let Some(index) = next() {
        let Transaction { payload, events } = &transactions[index];
        out.clear();
        out.reserve(events.len());
        assert_eq!(context.decompress(&mut out, payload), Ok(events.len()));
    }
}

/// Law 1 on the five plain files, law 2 on the five compressed ones at three levels; fails where one does not hold.
fn laws(binlogz: &Path) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let rewrite = |args: &[&str], from: &Path, to: &str| -> Result<PathBuf> {
        let to = dir.path().join(to);
        let mut command = Command::new(binlogz);
        command.args(args).args(["--force", "--output"]).arg(&to).arg(from).stdout(Stdio::null());
        if command.status()?.success() { Ok(to) } else { Err(format!("{command:?} fails").into()) }
    };
    println!("{:<17} {:>6} {:>12} {:>12}  law", "", "level", "plain", "compressed");
    for level in [1, 3, 19] {
        let compressed = workload::binlogs(1.0, &WorkloadSetting::level(level))?;
        for (plain, compressed) in workload::binlogs(1.0, &WorkloadSetting::plain())?.iter().zip(&compressed)
        {
            let name = plain.workload.name();
            let number = level.to_string();
            let ours = rewrite(&["compress", "--level", &number], &plain.path, "compressed")?;
            let back = rewrite(&["expand"], &ours, "back")?;
            same(&back, &plain.path, name)?;
            println!("{name:<17} {level:>6} {:>12} {:>12}  1 holds", plain.bytes, fs::metadata(&ours)?.len());
            let expanded = rewrite(&["expand"], &compressed.path, "expanded")?;
            let again = rewrite(&["compress", "--level", &number], &expanded, "again")?;
            same(&again, &compressed.path, name)?;
            println!(
                "{name:<17} {level:>6} {:>12} {:>12}  2 holds",
                fs::metadata(&expanded)?.len(),
                compressed.bytes
            );
        }
    }
    Ok(())
}

fn same(got: &Path, expected: &Path, name: &str) -> Result<()> {
    if fs::read(got)? == fs::read(expected)? {
        Ok(())
    } else {
        Err(format!("{name}: the law does not hold").into())
    }
}
