//! Compares the relay with the programs around it: how fast it receives, and how much processor time its clients cost it.
//! It uses the logs of three workloads at full scale (employees, sysbench prepare, sysbench run), all on this machine.
//!
//! usage: `relay-speed BINLOGZ [CLIENTS]`
//!
//! Receiving is timed from the start of the program until the source's whole log is there; `mysqlbinlog --raw` without
//! syncing, the relay syncing as it goes. Clients are `mysqlbinlog --raw`, at the same time, writing to the temporary
//! directory; the CPU seconds are those of the server that they read from.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use binlogz_testkit::memory::peak_memory;
use binlogz_testkit::workload::{self, Workload, WorkloadSetting};
use binlogz_testkit::{Error, InstalledTool, MysqlSandbox, Result, Tool};

const CLIENTS: usize = 8;
const REPEATS: usize = 3;
const WORKLOADS: [Workload; 3] = [Workload::Employees, Workload::SysbenchPrepare, Workload::SysbenchRun];
/// Ticks of /proc a second.
const TICKS: f64 = 100.0;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let done = match args.next() {
        Some(binlogz) => {
            run(Path::new(&binlogz), args.next().and_then(|n| n.parse().ok()).unwrap_or(CLIENTS))
        }
        None => Err(Error::Failed("usage: relay-speed BINLOGZ [CLIENTS]".into())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("relay-speed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> Error {
    let what = what.to_owned();
    move |error| Error::Io(what, error)
}

fn run(binlogz: &Path, clients: usize) -> Result<()> {
    let folder = tempfile::tempdir().map_err(failed("make a folder"))?;
    let mysql = Tool::Mysql.find()?;
    let mut files = Vec::new();
    for binlog in workload::binlogs(1.0, &WorkloadSetting::plain())? {
        if let Some(place) = WORKLOADS.iter().position(|workload| *workload == binlog.workload) {
            let path = folder.path().join(format!("binlog.{:06}", place + 1));
            fs::copy(&binlog.path, &path).map_err(failed("copy a log"))?;
            files.push(path);
        }
    }
    files.sort();
    let size: u64 = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|file| file.len()).sum();
    let names: Vec<String> =
        files.iter().filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect();
    let source = mysql.sandbox().binlogs(&files).start()?;
    let bench = Bench { binlogz, mysql, source, folder: folder.path(), names, size };

    println!("receiving {size} bytes\n{:<34} {:>8} {:>8}", "", "seconds", "MB/s");
    let fetch = || bench.fetch("fetched", bench.source.port(), "", 1).map(|(seconds, _)| seconds);
    bench.report("mysqlbinlog --raw", fetch)?;
    bench.report("relay, as received", || {
        bench.receive(&["--store", "received"]).map(|(_, seconds)| seconds)
    })?;
    bench.report("relay, compressed at level 3", || {
        bench.receive(&["--store", "compressed", "--level", "3"]).map(|(_, seconds)| seconds)
    })?;

    println!(
        "\nserving {clients} clients\n{:<34} {:>8} {:>8} {:>8} {:>8}",
        "", "seconds", "MB/s", "CPU s", "source's"
    );
    let pid = bench.source.pid().ok_or_else(|| Error::Failed("the source is gone".into()))?;
    let source = bench.serve("source", clients, bench.source.port(), pid, "", None)?;
    for (kept, options) in [("received", ["--store", "received"]), ("compressed", ["--store", "compressed"])]
    {
        let (relay, _) = bench.receive(&options)?;
        for form in ["", "-z", "-u"] {
            let what = format!("relay, kept {kept}, binlog{form}.*");
            bench.serve(&what, clients, relay.port, relay.child.id(), form, Some(source))?;
            let [converted, shared] = relay.blocks()?;
            println!(
                "{:<34} {:>8} {:>8} MiB at most; by now {converted} blocks converted, sent again {shared} times",
                "",
                "",
                relay.memory() >> 10
            );
        }
    }
    Ok(())
}

struct Bench<'a> {
    binlogz: &'a Path,
    mysql: &'static InstalledTool,
    source: MysqlSandbox,
    folder: &'a Path,
    names: Vec<String>,
    size: u64,
}

/// A relay that runs.
struct Relay {
    child: Child,
    port: u16,
    /// Where its metrics are.
    http: u16,
    dir: PathBuf,
}

impl Drop for Relay {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Relay {
    /// The most it had, in KiB.
    fn memory(&self) -> u64 {
        peak_memory(self.child.id()).unwrap_or(0)
    }

    /// Blocks that were converted for clients, and how often one was sent that was there already.
    fn blocks(&self) -> Result<[u64; 2]> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.http)).map_err(failed("ask for metrics"))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").map_err(failed("ask for metrics"))?;
        let mut said = String::new();
        stream.read_to_string(&mut said).map_err(failed("read metrics"))?;
        let of = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Ok([of("binlogz_relay_blocks_converted_total "), of("binlogz_relay_blocks_shared_total ")])
    }
}

impl Bench<'_> {
    fn report(&self, what: &str, mut measured: impl FnMut() -> Result<f64>) -> Result<()> {
        let mut seconds = (0..REPEATS).map(|_| measured()).collect::<Result<Vec<_>>>()?;
        seconds.sort_by(f64::total_cmp);
        let median = seconds.get(REPEATS / 2).copied().unwrap_or_default();
        println!("{what:<34} {median:>8.2} {:>8.0}", self.size as f64 / 1e6 / median);
        Ok(())
    }

    /// Receives the whole log; a relay that has it, and how long that took.
    fn receive(&self, options: &[&str]) -> Result<(Relay, f64)> {
        let dir = self.folder.join("kept");
        let log = self.folder.join("relay.log");
        let begun = Instant::now();
        let mut command = Command::new(self.binlogz);
        command.args(["relay", "run", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--dir"]);
        command.arg(&dir).args(options);
        command.args(["--source", &format!("mysql://repl@127.0.0.1:{}", self.source.port())]);
        let stderr = fs::File::create(&log).map_err(failed("create a log"))?;
        command.env("MYSQL_PWD", "repl").stdout(Stdio::null()).stderr(stderr);
        let child = command.spawn().map_err(failed("run binlogz"))?;
        let mut relay = Relay { child, port: 0, http: 0, dir };
        // The source has begun a file after those.
        let behind = relay.dir.join(format!("binlog.{:06}", self.names.len() + 1));
        while !behind.exists() {
            if relay.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err(Error::Failed(fs::read_to_string(&log).unwrap_or_default()));
            }
            sleep(Duration::from_millis(2));
        }
        let seconds = begun.elapsed().as_secs_f64();
        let said = fs::read_to_string(&log).map_err(failed("read a log"))?;
        let port = |behind: &str| {
            let found =
                said.lines().find_map(|line| line.split_once(behind)?.1.trim_end_matches('/').parse().ok());
            found.ok_or_else(|| Error::Failed(format!("no port in {said}")))
        };
        relay.port = port("listening on 127.0.0.1:")?;
        relay.http = port("status on http://127.0.0.1:")?;
        Ok((relay, seconds))
    }

    /// Clients fetch all files at the same time: seconds, and where they put them.
    fn fetch(&self, into: &str, port: u16, form: &str, clients: usize) -> Result<(f64, PathBuf)> {
        let into = self.folder.join(into);
        let begun = Instant::now();
        let mut children = Vec::new();
        for client in 0..clients {
            let place = into.join(client.to_string());
            fs::create_dir_all(&place).map_err(failed("make a folder"))?;
            let mut fetch = self.mysql.command("mysqlbinlog");
            fetch.args(["--no-defaults", "-R", "--raw", "--host=127.0.0.1", "--user=repl"]);
            fetch.arg(format!("--port={port}")).arg(format!("--result-file={}/", place.display()));
            fetch.args(self.names.iter().map(|name| name.replace("binlog.", &format!("binlog{form}."))));
            let child = fetch.env("MYSQL_PWD", "repl").stderr(Stdio::null()).spawn();
            children.push(child.map_err(failed("run mysqlbinlog"))?);
        }
        for mut child in children {
            if !child.wait().map_err(failed("wait for mysqlbinlog"))?.success() {
                return Err(Error::Failed(format!("mysqlbinlog failed on binlog{form}")));
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        fs::remove_dir_all(&into).map_err(failed("remove a folder"))?;
        Ok((seconds, into))
    }

    /// Clients fetch all files: the server's CPU seconds; `source`: those of the source for the same. MB/s count what
    /// the source's files hold, whatever the form.
    fn serve(
        &self,
        what: &str,
        clients: usize,
        port: u16,
        pid: u32,
        form: &str,
        source: Option<f64>,
    ) -> Result<f64> {
        // Once for the caches, and for the index.
        self.fetch("served", port, form, 1)?;
        let before = cpu_seconds(pid)?;
        let (seconds, _) = self.fetch("served", port, form, clients)?;
        let cpu = cpu_seconds(pid)? - before;
        let rate = (self.size * clients as u64) as f64 / 1e6 / seconds;
        let ratio = source.map_or(String::new(), |source| format!("x {:.2}", cpu / source));
        println!("{what:<34} {seconds:>8.2} {rate:>8.0} {cpu:>8.2} {ratio:>8}");
        Ok(cpu)
    }
}

/// Processor time of a process since it began, in seconds.
fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(failed("read /proc"))?;
    // Behind the name in parentheses: state, and ten fields more, then the two.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    Ok(fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS)
}
