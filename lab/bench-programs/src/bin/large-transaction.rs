//! Law 5 at length: a transaction of 1 GiB, made on the fly, through compress and expand, as a file and through pipes.
//! Prints the peak memory of each process, as the kernel tells it. Fails above 64 MiB (and the memory that zstd needs),
//! or if the log that comes back differs. Run through `scripts/soak/memory.sh`.
//!
//! usage: `large-transaction BINLOGZ [MEGABYTES]`

#![allow(clippy::indexing_slicing)] // a tool of ours: a panic tells enough

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

use binlogz_binlog::EventType;
use binlogz_testkit::builder::{LogBuilder, Release, transaction_events};
use binlogz_testkit::memory::peak_memory;
use binlogz_testkit::random::Random;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// 64 MiB, and for each of two workers what level 3 needs, in KiB as the kernel counts.
const MEMORY_MAX: u64 = (64 + 2 * 4) << 10;
const ROW_SIZE: usize = 8000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (binlogz, megabytes) = match args.as_slice() {
        [binlogz] => (binlogz, Ok(1024)),
        [binlogz, megabytes] => (binlogz, megabytes.parse()),
        _ => {
            eprintln!("usage: large-transaction BINLOGZ [MEGABYTES]");
            return ExitCode::FAILURE;
        }
    };
    match megabytes.map_err(Into::into).and_then(|megabytes| run(Path::new(binlogz), megabytes)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("large-transaction: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(binlogz: &Path, megabytes: usize) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let path = |name: &str| dir.path().join(name);
    let plain = path("plain");
    let compressed = path("compressed");
    let back = path("back");
    make(&plain, megabytes)?;
    println!("a transaction of {megabytes} MB, a log of {} bytes", fs::metadata(&plain)?.len());

    let rewrite = |verb: &str, from: &Path, to: &Path| -> Result<()> {
        let mut command = Command::new(binlogz);
        command.args([verb, "--jobs", "2", "--force", "--output"]).arg(to).arg(from).stdout(Stdio::null());
        watch(&format!("{verb}, files"), command.spawn()?)
    };
    rewrite("compress", &plain, &compressed)?;
    println!("compressed: {} bytes", fs::metadata(&compressed)?.len());
    rewrite("expand", &compressed, &back)?;
    same(&plain, &back)?;

    let piped = |verb: &str, from: &Path, to: &Path| -> Result<()> {
        let mut cat = Command::new("cat").arg(from).stdout(Stdio::piped()).spawn()?;
        let pipe = cat.stdout.take().ok_or("no pipe")?;
        let mut command = Command::new(binlogz);
        command.args([verb, "--jobs", "2", "--output", "-", "-"]);
        let child = command.stdin(pipe).stdout(File::create(to)?).stderr(Stdio::null()).spawn()?;
        watch(&format!("{verb}, pipe"), child)?;
        Ok(cat.wait().map(drop)?)
    };
    piped("compress", &plain, &path("piped"))?;
    same(&compressed, &path("piped"))?;
    piped("expand", &compressed, &back)?;
    same(&plain, &back)
}

/// Waits for a process and looks at its memory meanwhile; the kernel keeps the highest.
fn watch(what: &str, mut child: Child) -> Result<()> {
    let mut peak = 0;
    let status = loop {
        peak = peak_memory(child.id()).unwrap_or(peak);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(Duration::from_millis(2));
    };
    println!("{what}: peak memory {} MiB", peak >> 10);
    if !status.success() {
        return Err(format!("{what}: {status}").into());
    }
    if peak > MEMORY_MAX {
        Err(format!("{what} took {peak} KiB, at most {MEMORY_MAX}").into())
    } else {
        Ok(())
    }
}

/// Rows of words of a small vocabulary, 8 kB each.
fn make(path: &Path, megabytes: usize) -> Result<()> {
    let mut random = Random::new(1);
    let words: Vec<u8> =
        (0..1 << 16).flat_map(|_| format!("{:x},", random.below(5000)).into_bytes()).collect();
    let row = |random: &mut Random| words[random.below(words.len() - ROW_SIZE)..][..ROW_SIZE].to_vec();
    let rows = (megabytes << 20) / ROW_SIZE;
    let events = transaction_events(&[&row(&mut random)]);
    let size = |index: usize| (19 + events[index].1.len() + 4) as u64;

    let mut out = BufWriter::new(File::create(path)?);
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.event(EventType::PREVIOUS_GTIDS, &[0; 8]).transaction(&[b"before"]);
    log.gtid(size(0) + size(1) + rows as u64 * size(2) + size(3));
    log.event(events[0].0, &events[0].1).event(events[1].0, &events[1].1);
    for _ in 0..rows {
        let (event_type, body) = &transaction_events(&[&row(&mut random)])[2];
        log.event(*event_type, body);
        out.write_all(&log.take())?;
    }
    log.event(events[3].0, &events[3].1).transaction(&[b"behind"]);
    out.write_all(&log.take())?;
    Ok(out.flush()?)
}

fn same(expected: &Path, got: &Path) -> Result<()> {
    let [mut expected, mut got] = [BufReader::new(File::open(expected)?), BufReader::new(File::open(got)?)];
    let mut one = vec![0; 1 << 20];
    let mut other = vec![0; 1 << 20];
    loop {
        let count = expected.read(&mut one)?;
        got.read_exact(&mut other[..count])?;
        if one[..count] != other[..count] {
            return Err("what came back differs".into());
        }
        if count == 0 {
            return if got.read(&mut other)? == 0 { Ok(()) } else { Err("more came back".into()) };
        }
    }
}
