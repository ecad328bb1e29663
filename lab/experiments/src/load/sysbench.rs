//! The real sysbench: finds it, runs it against a server, reads its output.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use binlogz_figures::Quantiles;
use binlogz_sandbox::{Tool, tool};
use binlogz_source::ConnectOptions;
use tempfile::TempDir;

use crate::error::{Error, IoErrorContext, Result};
use crate::safety::stop::RunStopper;

/// sysbench, and how it reaches the server.
#[derive(Debug)]
pub(crate) struct Sysbench {
    program: Program,
    /// Holds the option file: a password in the arguments could be seen by others.
    folder: TempDir,
}

#[derive(Debug)]
enum Program {
    OnPath(PathBuf),
    Installed,
}

/// The figures that sysbench printed.
#[derive(Debug, Clone, Default)]
pub(crate) struct SysbenchFigures {
    pub(crate) seconds: f64,
    pub(crate) transactions: u64,
    pub(crate) queries: u64,
    pub(crate) errors: u64,
    pub(crate) latencies: Quantiles,
}

impl Sysbench {
    /// The one on PATH, or the one that is installed for the tests.
    pub(crate) fn find(connect: &ConnectOptions) -> Result<Sysbench> {
        tool::install_nothing();
        let program = match on_path("sysbench") {
            Some(path) => Program::OnPath(path),
            None if Tool::Sysbench.find().is_ok() => Program::Installed,
            None => {
                return Err(Error::Refused(
                    "sysbench is not on PATH: these workloads are its own; nothing was changed on the server"
                        .to_owned(),
                ));
            }
        };
        let folder = tempfile::tempdir().at("make a folder below", &std::env::temp_dir())?;
        write_options(connect, &folder.path().join("options"))?;
        Ok(Sysbench { program, folder })
    }

    /// Runs it with these arguments and returns its output.
    pub(crate) fn run(&self, args: &[&str], stopper: &RunStopper) -> Result<String> {
        let mut command = match &self.program {
            Program::OnPath(path) => Command::new(path),
            Program::Installed => Tool::Sysbench.find()?.command("sysbench"),
        };
        let [out, err] = ["out", "err"].map(|name| self.folder.path().join(name));
        command
            .arg(format!("--config-file={}", self.folder.path().join("options").display()))
            .args(["--db-driver=mysql", "--mysql-db=sbtest"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(File::create(&out).at("create", &out)?)
            .stderr(File::create(&err).at("create", &err)?);
        let started = || command.spawn().at("run", Path::new("sysbench"));
        let status = stopper.wait(started)?;
        let read = |path: &Path| fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned());
        let said = read(&out).at("read", &out)?;
        if status.success() {
            return Ok(said);
        }
        let trouble = format!("{said}{}", read(&err).at("read", &err)?);
        let fatal = trouble.lines().find(|line| line.contains("FATAL")).or_else(|| trouble.lines().last());
        Err(Error::Load(format!("sysbench {status}: {}", fatal.unwrap_or("it said nothing").trim())))
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Server, account and password, readable by this user alone.
fn write_options(connect: &ConnectOptions, path: &Path) -> Result<()> {
    let (user, password) = connect.account()?;
    let mut text = format!("mysql-user={user}\n");
    if !password.is_empty() {
        text.push_str(&format!("mysql-password={}\n", String::from_utf8_lossy(password.as_bytes())));
    }
    match connect.socket_path() {
        Some(socket) => text.push_str(&format!("mysql-socket={}\n", socket.display())),
        None => {
            let (host, port) = connect.address();
            text.push_str(&format!("mysql-host={host}\nmysql-port={port}\n"));
        }
    }
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).at("write", path)
}

/// Reads what `run` prints, with `--histogram=on`. `None`: the output has no figures, like that of `prepare`.
pub(crate) fn parse(said: &str) -> Option<SysbenchFigures> {
    let field = |name: &str| {
        let line = said.lines().map(str::trim).find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next().map(|word| word.trim_end_matches('s').to_owned())
    };
    let count = |name: &str| field(name)?.parse::<u64>().ok();
    let mut told = SysbenchFigures {
        seconds: field("total time:")?.parse().ok()?,
        transactions: count("transactions:")?,
        queries: count("queries:")?,
        errors: count("ignored errors:").unwrap_or(0) + count("reconnects:").unwrap_or(0),
        latencies: Quantiles::default(),
    };
    // "       0.293 |*                                        5", in milliseconds
    for line in said.lines() {
        let Some((value, rest)) = line.split_once('|') else { continue };
        let value = value.trim().parse::<f64>();
        let count = rest.split_whitespace().last();
        if let (Ok(value), Some(Ok(count))) = (value, count.map(str::parse::<f64>)) {
            told.latencies.count((value * 1e6) as u64, count);
        }
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       1.000 |**********                               90
       4.000 |*                                        10

SQL statistics:
    queries performed:
        total:                           2000
    transactions:                        100    (2468.12 per sec.)
    queries:                             2000   (9872.00 per sec.)
    ignored errors:                      3      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          5.0012s
    total number of events:              100
";

    #[test]
    fn what_sysbench_says_is_read() {
        let told = parse(SAID).unwrap();
        assert_eq!((told.seconds, told.transactions, told.queries, told.errors), (5.0012, 100, 2000, 3));
        assert!((told.latencies.quantile(0.5) / 1e6 - 1.0).abs() < 0.05);
        assert!((told.latencies.quantile(0.95) / 4e6 - 1.0).abs() < 0.05);
        assert!(parse("Creating table 'sbtest1'...\n").is_none());
    }
}
