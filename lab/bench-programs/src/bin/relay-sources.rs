//! Many sources in one relay: their cost, and their effect on each other: start, memory and processor time, the delay of a quiet
//! source beside a noisy one, and kill -9 under load.
//!
//! usage: `relay-sources BINLOGZ [REAL [SIMULATED [SECONDS [KILLS]]]]`
//!
//! The noise comes from a server like the others, and from one that gives way to everything else (nice 19), as if it had cores of
//! its own.
//!
//! REAL (8) private servers, and SIMULATED (92) sources that another relay serves from stored logs. A measurement takes
//! SECONDS (20). At last the relay is killed KILLS (20) times while all servers write, and must have each one's log byte for
//! byte.

#[path = "../arrivals.rs"]
mod arrivals;
#[path = "../relay_process.rs"]
mod relay_process;

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use arrivals::{ArrivalsFailure, arrivals, report};
use binlogz_binlog::gtid::GtidSet;
use binlogz_testkit::workload::sysbench;
use binlogz_testkit::{MysqlSandbox, Tool};
use relay_process::RelayProcess;

/// How much later transactions of a quiet source may come beside a noisy one, at p99, beyond the delay that a client of
/// the source itself sees: all servers share this machine.
const NOISE_MAX: f64 = 2.0;
/// How nice a server is that gives way, and its load: most.
const NICE: i32 = 19;

/// The load on another source than the quiet one, which writes as fast as it can.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Noise {
    None,
    Equal,
    GivesWay,
}

impl Noise {
    const ALL: [Self; 3] = [Self::None, Self::Equal, Self::GivesWay];

    /// The place among the servers of the one that makes the noise.
    fn server(self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Equal => Some(1),
            Self::GivesWay => Some(2),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "alone",
            Self::Equal => "real1 noisy",
            Self::GivesWay => "real2 noisy, gives way",
        }
    }
}
/// Each kind of noise is measured so often.
const ROUNDS: usize = 2;
/// The account's password at the servers.
const PASSWORD: &str = "repl";

fn main() -> Result<(), ArrivalsFailure> {
    let mut args = env::args().skip(1);
    let binlogz = args.next().ok_or("usage: relay-sources BINLOGZ [REAL [SIMULATED [SECONDS [KILLS]]]]")?;
    let mut number = |default: usize| args.next().map_or(Ok(default), |text| text.parse());
    let real = number(8)?.max(3);
    let simulated = number(92)?;
    let seconds = number(20)?;
    let kills = number(20)?;
    let seconds = Duration::from_secs(seconds as u64);

    let folder = tempfile::tempdir()?;
    let secret = |name: &str| -> Result<(), ArrivalsFailure> {
        let path = folder.path().join(name);
        fs::write(&path, format!("{PASSWORD}\n"))?;
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o600))?)
    };
    secret("password")?;
    let servers = start(real)?;
    let (feeder, (last, size)) = feeder(&binlogz, folder.path(), simulated, &servers)?;

    let mut tables = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        tables.push(table(&format!("real{at}"), &format!("repl@127.0.0.1:{}", server.port())));
    }
    for at in 0..simulated {
        tables.push(table(&format!("sim{at}"), &format!("sim{at}@127.0.0.1:{}", feeder.port)));
    }
    let accounts: Vec<String> = (0..real).map(|at| format!("real{at}")).collect();
    let ends = |count: usize| -> Result<Vec<(String, f64, u64)>, ArrivalsFailure> {
        let mut ends = Vec::new();
        for (at, server) in servers.iter().enumerate().take(count) {
            let (file, position) = server.position()?;
            ends.push((format!("real{at}"), number_of(&file)?, position));
        }
        ends.extend((0..count.saturating_sub(servers.len())).map(|at| (format!("sim{at}"), last, size)));
        Ok(ends)
    };

    println!("sources  ready s  all here s  threads  MiB  CPU ms/s idle");
    let mut figures = Vec::new();
    for count in [1, real, real + simulated] {
        let dir = format!("kept{count}");
        let config = config(
            &dir,
            tables.get(..count).unwrap_or_default(),
            accounts.get(..count.min(real)).unwrap_or_default(),
        );
        let began = Instant::now();
        let relay = RelayProcess::start(&binlogz, folder.path(), &dir, &config)?;
        let ready = began.elapsed();
        relay.has(&ends(count)?)?;
        let here = began.elapsed();
        let before = relay.cpu()?;
        thread::sleep(seconds);
        let idle = (relay.cpu()? - before) * 1000.0 / seconds.as_secs_f64();
        let threads = relay.status("Threads:")?;
        let memory = relay.status("VmRSS:")? / 1024.0;
        println!(
            "{count:>7}  {:>7.2}  {:>10.2}  {threads:>7}  {memory:>3.0}  {idle:.1}",
            ready.as_secs_f64(),
            here.as_secs_f64()
        );
        figures.push((count, memory, idle));
    }
    if let (Some((one, memory, idle)), Some((all, all_memory, all_idle))) = (figures.first(), figures.last())
    {
        let more = (all - one) as f64;
        println!(
            "each further source: {:.2} MiB, {:.2} ms of CPU a second",
            (all_memory - memory) / more,
            (all_idle - idle) / more
        );
    }

    let dir = format!("kept{}", real + simulated);
    let config = config(&dir, &tables, &accounts);
    let relay = RelayProcess::start(&binlogz, folder.path(), &dir, &config)?;
    relay.has(&ends(real + simulated)?)?;
    println!("\nreal0 at 50 transactions a second, milliseconds after commit  p50  p95  p99  largest");
    let mut p99s = Noise::ALL.map(|noise| (noise, [0.0, 0.0]));
    for _ in 0..ROUNDS {
        for (noise, [of_source, of_relay]) in &mut p99s {
            let (direct, relayed) = quiet(&servers, relay.port, seconds, *noise)?;
            *of_source += p99(&direct) / ROUNDS as f64;
            *of_relay += p99(&relayed) / ROUNDS as f64;
            report(&format!("{}, from the source", noise.name()), direct.into_iter());
            report(&format!("{}, through the relay", noise.name()), relayed.into_iter());
        }
    }
    let [(_, alone), (_, equal), (_, gives_way)] = p99s;
    let times = |beside: [f64; 2]| [beside[0] / alone[0], beside[1] / alone[1]];
    let ([source_equal, relay_equal], [source_way, relay_way]) = (times(equal), times(gives_way));
    println!(
        "p99 beside a noisy source, times that of alone: {source_equal:.2} from the source and {relay_equal:.2} through the relay; \
         {source_way:.2} and {relay_way:.2} if it gives way"
    );
    drop(relay);

    killed(
        &servers,
        kills,
        || RelayProcess::start(&binlogz, folder.path(), &dir, &config),
        |relay| relay.has(&ends(real + simulated)?),
    )?;
    for (at, server) in servers.iter().enumerate() {
        for log in server.binlogs()? {
            let kept =
                folder.path().join(&dir).join(format!("real{at}")).join(log.file_name().unwrap_or_default());
            let original = fs::read(&log)?;
            let kept = fs::read(kept)?;
            // The file in use says so in its header's flags, which the relay clears.
            if original.len() != kept.len() || original.get(22..) != kept.get(22..) {
                return Err(format!("real{at}: {} is not what the source has", log.display()).into());
            }
        }
    }
    println!(
        "{kills} kills: the logs of {real} servers are here byte for byte, and those of {simulated} simulated sources whole"
    );
    drop(feeder);
    if relay_equal > NOISE_MAX * source_equal.max(1.0) || relay_way > NOISE_MAX * source_way.max(1.0) {
        return Err("a noisy source delays a quiet one more through the relay than at the source".into());
    }
    Ok(())
}

fn start(count: usize) -> Result<Vec<MysqlSandbox>, ArrivalsFailure> {
    let mysql = Tool::Mysql.find()?;
    let mut servers = Vec::new();
    for at in 0..count {
        let server =
            mysql.sandbox().option("innodb-buffer-pool-size", "32M").option("performance-schema", "OFF");
        servers.push(with_way(Noise::GivesWay.server() == Some(at), || Ok(server.start()?))?);
    }
    for server in &servers {
        server.sql(
            "CREATE DATABASE sbtest; CREATE TABLE sbtest.k (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)",
        )?;
    }
    for server in servers.iter().take(Noise::ALL.len()) {
        sysbench(server, &["oltp_insert", "--tables=1", "--table-size=1000", "prepare"])?;
    }
    Ok(servers)
}

/// Does something on a thread of its own; if it is to give way, so do the processes that it starts.
fn with_way<T: Send>(
    gives_way: bool,
    work: impl FnOnce() -> Result<T, ArrivalsFailure> + Send,
) -> Result<T, ArrivalsFailure> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if gives_way {
                // Of this thread alone, on Linux.
                rustix::process::setpriority_process(None, NICE)?;
            }
            work()
        });
        thread.join().map_err(|_| "a thread panicked")?
    })
}

fn p99(delays: &[f64]) -> f64 {
    let mut delays = delays.to_vec();
    delays.sort_by(f64::total_cmp);
    delays.get((delays.len() as f64 * 0.99) as usize).or(delays.last()).copied().unwrap_or(f64::NAN)
}

fn number_of(name: &str) -> Result<f64, ArrivalsFailure> {
    Ok(name.rsplit('.').next().unwrap_or_default().parse()?)
}

fn table(name: &str, server: &str) -> String {
    format!("[[source]]\nname = \"{name}\"\nservers = [\"mysql://{server}\"]\npassword_file = \"password\"\n")
}

fn config(dir: &str, tables: &[String], accounts: &[String]) -> String {
    let mut config = tables.concat();
    let _ = write!(
        config,
        "[store]\ndir = \"{dir}\"\n[listen]\naddress = \"127.0.0.1:0\"\nform = \"received\"\n[http]\naddress = \"127.0.0.1:0\"\n"
    );
    for account in accounts {
        let _ = write!(
            config,
            "[[account]]\nuser = \"{account}\"\npassword_file = \"password\"\nsource = \"{account}\"\n"
        );
    }
    config
}

/// A relay that serves the last server's log as this many sources, none of which it can reach any more; and the end of that
/// log: the file's number, and the offset.
fn feeder(
    binlogz: &str,
    folder: &Path,
    count: usize,
    servers: &[MysqlSandbox],
) -> Result<(RelayProcess, (f64, u64)), ArrivalsFailure> {
    let server = servers.last().ok_or("no servers")?;
    for _ in 0..2 {
        server.sql(&"INSERT INTO sbtest.k (body) VALUES (REPEAT(UUID(), 50));\n".repeat(200))?;
        server.flush_binary_logs()?;
    }
    let (file, position) = server.position()?;
    let end = (number_of(&file)?, position);
    let accounts: Vec<String> = (0..count).map(|at| format!("sim{at}")).collect();
    let ends: Vec<_> = accounts.iter().map(|name| (name.clone(), end.0, end.1)).collect();
    let start = |port: u16| {
        let tables: Vec<String> =
            accounts.iter().map(|name| table(name, &format!("repl@127.0.0.1:{port}"))).collect();
        RelayProcess::start(binlogz, folder, "feeder", &config("feeder", &tables, &accounts))
    };
    start(server.port())?.has(&ends)?;
    // Nobody listens there.
    Ok((start(1)?, end))
}

/// Microseconds from commit to arrival on both ways, of transactions of the first server, beside this noise.
fn quiet(
    servers: &[MysqlSandbox],
    port: u16,
    time: Duration,
    noise: Noise,
) -> Result<(Vec<f64>, Vec<f64>), ArrivalsFailure> {
    let source = servers.first().ok_or("no servers")?;
    let other = noise.server().and_then(|at| servers.get(at));
    let before: GtidSet = source.gtid_executed()?.parse()?;
    let last = AtomicU64::new(0);
    let seconds = format!("--time={}", time.as_secs());
    let load = ["oltp_insert", "--tables=1", "--table-size=1000"];
    thread::scope(|scope| -> Result<_, ArrivalsFailure> {
        let direct = scope.spawn(|| arrivals(("repl", PASSWORD), source.port(), 1001, &before, &last));
        let relayed = scope.spawn(|| arrivals(("real0", PASSWORD), port, 1002, &before, &last));
        let load_of_noise: Vec<&str> =
            load.into_iter().chain(["--threads=8", seconds.as_str(), "run"]).collect();
        let noise = other.map(|other| {
            let run = move || Ok(sysbench(other, &load_of_noise).map(drop)?);
            scope.spawn(move || with_way(noise == Noise::GivesWay, run))
        });
        let paced: Vec<&str> =
            load.into_iter().chain(["--threads=1", "--rate=50", seconds.as_str(), "run"]).collect();
        let loaded = sysbench(source, &paced);
        let executed: GtidSet = source.gtid_executed()?.parse()?;
        let end =
            executed.iter().flat_map(|(_, intervals)| intervals.iter()).map(|interval| interval.end()).max();
        last.store(end.unwrap_or(1), Ordering::Release);
        // Those who wait see it.
        source.sql("CREATE DATABASE IF NOT EXISTS the_end")?;
        loaded?;
        if let Some(noise) = noise {
            noise.join().map_err(|_| "the noise panicked")??;
        }
        let of = |thread: thread::ScopedJoinHandle<
            '_,
            Result<std::collections::HashMap<u64, f64>, ArrivalsFailure>,
        >| {
            let arrived = thread.join().map_err(|_| "a reader panicked")??;
            Ok::<_, ArrivalsFailure>(arrived.into_values().collect::<Vec<_>>())
        };
        Ok((of(direct)?, of(relayed)?))
    })
}

/// Kills the relay again and again while all servers write.
fn killed(
    servers: &[MysqlSandbox],
    kills: usize,
    start: impl Fn() -> Result<RelayProcess, ArrivalsFailure>,
    has_all: impl Fn(&RelayProcess) -> Result<(), ArrivalsFailure>,
) -> Result<(), ArrivalsFailure> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| -> Result<(), ArrivalsFailure> {
        let writers: Vec<_> = servers
            .iter()
            .map(|server| {
                let over = &over;
                scope.spawn(move || -> Result<(), ArrivalsFailure> {
                    while !over.load(Ordering::Acquire) {
                        server
                            .sql(&"INSERT INTO sbtest.k (body) VALUES (REPEAT(UUID(), 20));\n".repeat(20))?;
                        thread::sleep(Duration::from_millis(200));
                    }
                    Ok(())
                })
            })
            .collect();
        let killing = (0..kills).try_for_each(|at| {
            let relay = start()?;
            // Now at the start, now in the middle of things.
            thread::sleep(Duration::from_millis(at as u64 * 337 % 2000));
            drop(relay);
            Ok::<_, ArrivalsFailure>(())
        });
        over.store(true, Ordering::Release);
        for writer in writers {
            writer.join().map_err(|_| "a writer panicked")??;
        }
        killing
    })?;
    has_all(&start()?)
}
