//! The clients, and how each is run.

use std::path::{Path, PathBuf};
use std::process::Command;

use binlogz_testkit::{Error, Result, Tool, cache};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/compat/clients");

/// A client's memory of its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Gtid,
    Position,
}

impl By {
    /// As it is said to clients, and to people.
    pub(crate) fn names(self) -> [&'static str; 2] {
        match self {
            By::Gtid => ["gtid", "GTID"],
            By::Position => ["position", "position"],
        }
    }
}

/// A client that follows a log.
#[derive(Clone, Copy)]
pub(crate) enum Client {
    /// mysql-replication, of PyPI.
    MysqlReplication,
    /// A package of npm: its name and version.
    Node(&'static str, &'static str),
    /// mysql-binlog-connector-java, of Maven.
    JavaConnector,
    /// Debezium embedded, of Maven: a snapshot, then the stream.
    Debezium,
    /// Flink CDC in a cluster of its own process, of Maven: a snapshot, then the stream, each row once for its checkpoints.
    Flink,
    /// Maxwell with its own connector, of Maven. It is no client of [`Client::ALL`]: it writes where it reads.
    Maxwell,
    /// Alibaba canal's parser, of Maven: on several threads, as its server has it, or on one.
    Canal { parallel: bool },
    /// mysql_async's binlog stream, of crates.io.
    MysqlAsync,
    /// go-mysql, of the Go module proxy: its syncer, the stream of events, or its canal, which knows tables.
    GoMysql { canal: bool },
}

impl Client {
    pub(crate) const ALL: [Client; 11] = [
        Client::JavaConnector,
        Client::Debezium,
        Client::Flink,
        Client::Canal { parallel: true },
        Client::Canal { parallel: false },
        Client::GoMysql { canal: false },
        Client::GoMysql { canal: true },
        Client::MysqlAsync,
        Client::MysqlReplication,
        Client::Node("@vlasky/zongji", "0.9.0"),
        Client::Node("@powersync/mysql-zongji", "0.6.2"),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Client::MysqlReplication => "mysql-replication 1.0.17 (Python)".into(),
            Client::Node(package, version) => format!("{package} {version} (Node)"),
            Client::JavaConnector => "mysql-binlog-connector-java 0.30.1 (Java)".into(),
            Client::Debezium => "Debezium 3.6.1 embedded (Java), snapshot and stream".into(),
            Client::Flink => "Flink CDC 3.5.0 on Flink 1.20.3 (Java), snapshot and stream".into(),
            Client::Maxwell => "Maxwell 1.22.6 with its connector 0.20.0 (Java)".into(),
            Client::Canal { parallel: true } => "Alibaba canal 1.1.7's parser (Java)".into(),
            Client::Canal { .. } => "Alibaba canal 1.1.7's parser (Java), `parallel = false`".into(),
            Client::MysqlAsync => "mysql_async 0.37.1 (Rust)".into(),
            Client::GoMysql { canal: false } => "go-mysql 1.13.0's syncer (Go)".into(),
            Client::GoMysql { .. } => "go-mysql 1.13.0's canal (Go)".into(),
        }
    }

    pub(crate) fn ways(self) -> &'static [By] {
        match self {
            Client::Node("@powersync/mysql-zongji", _) => &[By::Position],
            // It takes GTIDs if the source has them.
            Client::Debezium | Client::Flink => &[By::Gtid],
            Client::Maxwell => &[By::Position],
            _ => &[By::Gtid, By::Position],
        }
    }

    /// Whether it begins with the contents of the tables, not with a place in the log.
    pub(crate) fn begins_with_a_snapshot(self) -> bool {
        matches!(self, Client::Debezium | Client::Flink)
    }

    /// Whether our program for it can ask for TLS.
    pub(crate) fn speaks_tls(self) -> bool {
        !matches!(self, Client::Canal { .. })
    }

    /// Installs the packages that it needs.
    pub(crate) fn command(self) -> Result<Command> {
        match self {
            Client::MysqlReplication => python("mysql_replication.py"),
            Client::JavaConnector => Ok(Command::new(got("compat-java")?.join("bin/connector"))),
            Client::Debezium => Ok(Command::new(got("compat-debezium")?.join("bin/follow"))),
            Client::Flink => {
                let mut command = Command::new(got("compat-flink")?.join("bin/follow"));
                // Its serialization of what it doesn't know.
                command.env("JDK_JAVA_OPTIONS", "--add-opens=java.base/java.util=ALL-UNNAMED");
                Ok(command)
            }
            Client::Maxwell => Ok(Command::new(got("compat-maxwell-own")?.join("bin/compat"))),
            Client::Canal { parallel } => {
                let mut command = Command::new(got("compat-canal")?.join("bin/parser"));
                if !parallel {
                    command.env("SERIAL", "1");
                }
                Ok(command)
            }
            Client::MysqlAsync => Ok(Command::new(got("compat-rust")?.join("bin/compat-rust"))),
            Client::GoMysql { canal } => {
                let mut command = Command::new(got("compat-go")?.join("bin/compat"));
                command.env("AS", if canal { "canal" } else { "syncer" });
                Ok(command)
            }
            Client::Node(package, version) => {
                let mut command = node(package, version, "zongji.mjs")?;
                command.env("PACKAGE", package);
                Ok(command)
            }
        }
    }
}

/// A program in JavaScript, with a package of npm.
pub(crate) fn node(package: &str, version: &str, program: &str) -> Result<Command> {
    // Packages are found from where the program stands.
    let copy = npm(package, version)?.join(program);
    std::fs::copy(format!("{FOLDER}/{program}"), &copy).unwrap();
    let mut command = Command::new("node");
    command.arg(copy);
    Ok(command)
}

/// A program in Python, with the libraries of mysql-replication and mysql-connector-python.
pub(crate) fn python(program: &str) -> Result<Command> {
    let mut command = Tool::Cdc.find()?.command("python");
    command.arg(format!("{FOLDER}/{program}"));
    Ok(command)
}

/// Where `scripts/get-tool.sh` has put a client: one of Debian's, or one that it built from `scripts/compat/clients`.
pub(crate) fn got(tool: &str) -> Result<PathBuf> {
    let mut script = Command::new("bash");
    let output = script.args([&format!("{ROOT}/scripts/get-tool.sh"), tool]).output();
    let output = output.map_err(|error| Error::Unavailable(format!("bash: {error}")))?;
    let [printed, complaint] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    match output.status.success() {
        true => Ok(Path::new(printed.trim()).to_owned()),
        false => Err(Error::Unavailable(complaint.lines().last().unwrap_or(tool).to_owned())),
    }
}

fn npm(package: &str, version: &str) -> Result<PathBuf> {
    let key = format!("compat/{}-{version}", package.replace(['@', '/'], "_"));
    cache::entry(&key, |dir| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", &format!("{package}@{version}")]);
        let output = npm.current_dir(dir).output();
        let output = output.map_err(|error| Error::Unavailable(format!("npm: {error}")))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Error::Unavailable(format!("npm can't fetch {package}"))),
        }
    })
}
