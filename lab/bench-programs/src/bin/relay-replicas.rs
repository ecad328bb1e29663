//! Many replicas on one relay: memory for each, processor time while all are idle and for each transaction, and how long all of them
//! need to catch up after the relay was killed.
//!
//! usage: `relay-replicas BINLOGZ [REPLICAS [SECONDS [FORM [MEGABYTES]]]]`
//!
//! MEGABYTES of transactions of 60 KB are what all of them catch up with after the kill, in place of 1,000 small ones; then as many new
//! replicas read as much from the source itself, and the processor time of both for each GB is printed.
//!
//! REPLICAS (1000) connections of our own client, each a replica with a uuid of its own. They are idle for SECONDS (20),
//! and are served the form FORM (received). Each checks that the log it gets goes on where it ended, across all
//! connections. Run it where this many descriptors may be open (`ulimit -n`).

#[path = "../relay_process.rs"]
mod relay_process;

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use binlogz_source::{ConnectOptions, DumpOptions, Password, PasswordOption, RemoteLog};
use binlogz_testkit::{MysqlSandbox, Tool};
use binlogz_wire::session::{ClientProfile, DumpStart, ReplicaProfile};
use relay_process::{RelayFailure, RelayProcess};

const PATIENCE: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_millis(5);
/// The account's password.
const PASSWORD: &str = "repl";
/// Bytes of stack for a client's thread.
const STACK_SIZE: usize = 256 << 10;
/// A replica's usual period (SOURCE_HEARTBEAT_PERIOD is 30 s).
const HEARTBEAT: Duration = Duration::from_secs(30);
/// The pause before a client connects again.
const AGAIN: Duration = Duration::from_millis(200);
/// How many clients may be logging in at a time; the relay turns away those above its own limit.
const LOGGING_IN_MAX: usize = 64;
/// Transactions that are written one by one while all replicas wait, and those that are written while the relay is down.
const PACED: usize = 20;
const MISSED: usize = 1000;

fn main() -> Result<(), RelayFailure> {
    let mut args = env::args().skip(1);
    let binlogz =
        args.next().ok_or("usage: relay-replicas BINLOGZ [REPLICAS [SECONDS [FORM [MEGABYTES]]]]")?;
    let mut number = |default: usize| args.next().map_or(Ok(default), |text| text.parse());
    let count = number(1000)?;
    let seconds = Duration::from_secs(number(20)? as u64);
    let form = args.next().unwrap_or_else(|| "received".to_owned());
    let megabytes: Option<usize> = args.next().map(|text| text.parse()).transpose()?;

    let folder = tempfile::tempdir()?;
    let secret = folder.path().join("password");
    fs::write(&secret, format!("{PASSWORD}\n"))?;
    fs::set_permissions(secret, fs::Permissions::from_mode(0o600))?;
    let mysql = Tool::Mysql.find()?;
    let sandbox = mysql.sandbox().option("innodb-buffer-pool-size", "32M");
    let source = sandbox.option("max-connections", &(count + 50).to_string()).start()?;
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body MEDIUMTEXT)")?;
    write(&source, 1000)?;

    let config = format!(
        "[source]\nservers = [\"mysql://repl@127.0.0.1:{}\"]\npassword_file = \"password\"\n[store]\ndir = \"kept\"\n\
         [listen]\naddress = \"127.0.0.1:0\"\nform = \"{form}\"\nconnections_max = {}\n[http]\naddress = \"127.0.0.1:0\"\n",
        source.port(),
        count + 10
    );
    let relay = RelayProcess::start(&binlogz, folder.path(), "kept", &config)?;
    has_all(&relay, &source)?;
    thread::sleep(Duration::from_secs(2));
    let empty = relay.status("VmRSS:")?;
    let threads = relay.status("Threads:")?;
    println!("no replica: {:.1} MiB, {threads} threads", empty / 1024.0);

    let clients = Arc::new(Clients::new(count, relay.port));
    let began = Instant::now();
    for at in 0..count {
        let clients = Arc::clone(&clients);
        let follow = move || clients.follow(at);
        thread::Builder::new().name(format!("replica {at}")).stack_size(STACK_SIZE).spawn(follow)?;
    }
    let end = clients.wait_for_end(&source, &form)?;
    println!(
        "{count} replicas, form {form}: all have the first {end} bytes after {:.2} s",
        began.elapsed().as_secs_f64()
    );

    // Everybody's memory is given back after the first pause.
    thread::sleep(Duration::from_secs(3));
    let memory = relay.status("VmRSS:")?;
    let threads = relay.status("Threads:")?;
    let cpu = relay.cpu()?;
    let switches = relay.switches()?;
    thread::sleep(seconds);
    let idle = (relay.cpu()? - cpu) / seconds.as_secs_f64();
    let switches = (relay.switches()? - switches) / seconds.as_secs_f64();
    println!(
        "idle: {:.1} MiB ({:.1} KiB each), {threads} threads, {:.2} % of a core, {switches:.0} context switches a second",
        memory / 1024.0,
        (memory - empty) / count as f64,
        idle * 100.0
    );

    let cpu = relay.cpu()?;
    let began = Instant::now();
    let mut delays = Vec::new();
    for _ in 0..PACED {
        write(&source, 1)?;
        let committed = Instant::now();
        clients.wait_for_end(&source, &form)?;
        delays.push(committed.elapsed().as_secs_f64() * 1000.0);
        thread::sleep(Duration::from_millis(50));
    }
    delays.sort_by(f64::total_cmp);
    println!(
        "a transaction is at all of them {:.0} ms (median) to {:.0} ms after its commit, and costs {:.1} ms of CPU ({:.1} s passed)",
        delays.get(delays.len() / 2).copied().unwrap_or(f64::NAN),
        delays.last().copied().unwrap_or(f64::NAN),
        (relay.cpu()? - cpu) * 1000.0 / PACED as f64,
        began.elapsed().as_secs_f64()
    );

    drop(relay);
    let (_, end_before) = source.position()?;
    match megabytes {
        None => write(&source, MISSED)?,
        Some(megabytes) => {
            let large = "INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 1700));\n";
            source.sql(&large.repeat(megabytes * 1_000_000 / 61_300))?;
        }
    }
    let began = Instant::now();
    let relay = RelayProcess::start(&binlogz, folder.path(), "kept", &config)?;
    let ready = began.elapsed();
    clients.port.store(u64::from(relay.port), Ordering::Release);
    clients.wait_for_end(&source, &form)?;
    println!(
        "killed, {MISSED} transactions later started again: ready after {:.2} s, all {count} replicas have them after {:.2} s, \
         {:.2} s of CPU",
        ready.as_secs_f64(),
        began.elapsed().as_secs_f64(),
        relay.cpu()?
    );
    let delivered = (source.position()?.1 - end_before) * count as u64;
    println!(
        "the relay: {:.2} s of CPU for each GB of {:.2}",
        per_gb(relay.cpu()?, delivered),
        gb(delivered)
    );
    println!(
        "memory then: {:.1} MiB, at most {:.1} MiB",
        relay.status("VmRSS:")? / 1024.0,
        relay.status("VmHWM:")? / 1024.0
    );
    clients.is_over.store(true, Ordering::Release);
    clients.check()?;
    if megabytes.is_some() {
        drop(relay);
        from_the_source(&source, count, end_before)?;
    }
    Ok(())
}

fn gb(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

fn per_gb(seconds: f64, bytes: u64) -> f64 {
    seconds / gb(bytes)
}

/// As many replicas read the source's log from `begin` on.
fn from_the_source(source: &MysqlSandbox, count: usize, begin: u64) -> Result<(), RelayFailure> {
    let (name, end) = source.position()?;
    let pid = source.pid().ok_or("the source is gone")?;
    let before = relay_process::cpu_of(pid)?;
    let clients = Arc::new(Clients::new(count, source.port()));
    for at in 0..count {
        let clients = Arc::clone(&clients);
        let name = name.clone();
        let follow = move || clients.follow_from(at, LogEnd { name, offset: begin });
        thread::Builder::new().name(format!("replica {at}")).stack_size(STACK_SIZE).spawn(follow)?;
    }
    clients.wait_for_end(source, "received")?;
    let delivered = (end - begin) * count as u64;
    let cpu = relay_process::cpu_of(pid)? - before;
    println!("mysqld: {:.2} s of CPU for each GB of {:.2}", per_gb(cpu, delivered), gb(delivered));
    clients.is_over.store(true, Ordering::Release);
    clients.check()
}

fn write(source: &MysqlSandbox, transactions: usize) -> Result<(), RelayFailure> {
    let one = "INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 10));\n";
    Ok(source.sql(&one.repeat(transactions)).map(drop)?)
}

fn has_all(relay: &RelayProcess, source: &MysqlSandbox) -> Result<(), RelayFailure> {
    let (file, position) = source.position()?;
    let number = file.rsplit('.').next().unwrap_or_default().parse()?;
    relay.has(&[(String::new(), number, position)])
}

/// The replicas: each in a thread that lasts as long as the process.
struct Clients {
    /// The relay's port; another one after its restart.
    port: AtomicU64,
    /// How far each has the log: the offset in its last file.
    ends: Vec<AtomicU64>,
    logging_in: AtomicUsize,
    is_over: AtomicBool,
    /// The first that one of them found wrong.
    wrong: Mutex<Option<String>>,
}

/// Where a client's log ends.
struct LogEnd {
    name: String,
    offset: u64,
}

impl Clients {
    fn new(count: usize, port: u16) -> Self {
        Clients {
            port: AtomicU64::new(u64::from(port)),
            ends: (0..count).map(|_| AtomicU64::new(0)).collect(),
            logging_in: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            wrong: Mutex::new(None),
        }
    }

    fn check(&self) -> Result<(), RelayFailure> {
        let wrong = self.wrong.lock().map_err(|_| "a replica panicked")?;
        wrong.as_ref().map_or(Ok(()), |wrong| Err(wrong.clone().into()))
    }

    /// Waits until each has all of the source's log, whose end is the same in every form of a log without payloads.
    fn wait_for_end(&self, source: &MysqlSandbox, form: &str) -> Result<u64, RelayFailure> {
        let (_, end) = source.position()?;
        let until = Instant::now() + PATIENCE;
        // Compressed, a log is shorter: there each must have as much as the one that has most, and that for a while.
        let is_known = form != "compressed";
        loop {
            let least = self.ends.iter().map(|end| end.load(Ordering::Acquire)).min().unwrap_or(0);
            let most = self.ends.iter().map(|end| end.load(Ordering::Acquire)).max().unwrap_or(0);
            if (is_known && least >= end) || (!is_known && least > 0 && least == most) {
                return Ok(least);
            }
            self.check()?;
            if Instant::now() > until {
                return Err(format!("a replica has {least} of {end} bytes, another one {most}").into());
            }
            thread::sleep(TICK);
        }
    }

    fn follow(&self, at: usize) {
        self.follow_from(at, LogEnd { name: String::new(), offset: 4 });
    }

    fn follow_from(&self, at: usize, mut end: LogEnd) {
        while !self.is_over.load(Ordering::Acquire) {
            // It ends when the relay does: then it is asked again.
            let _ = self.receive(at, &mut end);
            thread::sleep(AGAIN);
        }
    }

    fn log_in(&self, at: usize, end: &LogEnd) -> Result<RemoteLog, RelayFailure> {
        while self.logging_in.fetch_add(1, Ordering::AcqRel) >= LOGGING_IN_MAX {
            self.logging_in.fetch_sub(1, Ordering::AcqRel);
            thread::sleep(TICK);
        }
        let port = self.port.load(Ordering::Acquire);
        let mut connect = ConnectOptions::new("mysqld");
        let mut open = || -> Result<RemoteLog, RelayFailure> {
            connect.set_url(&format!("mysql://repl@127.0.0.1:{port}"))?;
            connect.password = PasswordOption::Given(Password::new(PASSWORD));
            let server_id = 10_000 + at as u32;
            let profile = ReplicaProfile {
                server_uuid: format!("00000000-0000-0000-0000-{server_id:012}").parse()?,
                heartbeat_period: HEARTBEAT,
                semi_sync: false,
                host: String::new(),
                port: 0,
            };
            let start = DumpStart::Position { name: end.name.clone(), position: end.offset };
            let profile = ClientProfile::Replica(profile);
            let dump = DumpOptions { profile, server_id, start, non_blocking: false, verify_checksums: true };
            Ok(RemoteLog::open(&connect, dump)?)
        };
        let opened = open();
        self.logging_in.fetch_sub(1, Ordering::AcqRel);
        opened
    }

    fn receive(&self, at: usize, end: &mut LogEnd) -> Result<(), RelayFailure> {
        let mut log = self.log_in(at, end)?;
        while let Some(piece) = log.next_piece()? {
            if !piece.is_stored() {
                continue;
            }
            let name = String::from_utf8_lossy(piece.name);
            if name != end.name.as_str() {
                (end.name, end.offset) = (name.into_owned(), 4);
            }
            // The format description comes first again on each connection.
            if piece.begins && piece.offset != end.offset && piece.offset != 4 {
                let wrong =
                    format!("replica {at}: {} goes on at {}, not at {}", end.name, piece.offset, end.offset);
                if let Ok(mut known) = self.wrong.lock() {
                    known.get_or_insert(wrong.clone());
                }
                return Err(wrong.into());
            }
            if piece.ends && piece.end_offset() > end.offset {
                end.offset = piece.end_offset();
                if let Some(known) = self.ends.get(at) {
                    known.store(end.offset, Ordering::Release);
                }
            }
        }
        Ok(())
    }
}
