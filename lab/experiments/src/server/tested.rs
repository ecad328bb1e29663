//! The server under test: one of the user's, or a private one that exists only for the run.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use binlogz_sandbox::{MysqlSandbox, Tool, tool};
use binlogz_source::{ConnectOptions, Protocol};

use crate::error::{Error, IoErrorContext, Result};
use crate::server::session::ServerSession;

/// One transaction of millions of rows at level 22 takes minutes.
const ANSWER_MAX: Duration = Duration::from_secs(4 * 3600);

/// A server that is tested.
#[derive(Debug)]
pub struct TestedServer {
    connect: ConnectOptions,
    /// The server's process id, if it runs on this machine.
    pid: Option<u32>,
    sandbox: Option<MysqlSandbox>,
}

/// Names of this machine.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Says what a private server is made of, where there is no MySQL for it.
fn how_to_get_one(error: binlogz_sandbox::Error) -> Error {
    match error {
        binlogz_sandbox::Error::Unavailable(why) => Error::Refused(format!(
            "a private server needs a MySQL: MYSQL_BASEDIR=FOLDER names one that is installed (FOLDER/bin/mysqld or \
             FOLDER/sbin/mysqld), and `scripts/get-tool.sh mysql` in the sources of binlogz fetches one ({why})"
        )),
        error => error.into(),
    }
}

impl TestedServer {
    /// A server of the user's.
    ///
    /// # Errors
    ///
    /// It can't be reached.
    pub fn of_the_user(mut connect: ConnectOptions) -> Result<TestedServer> {
        connect.timeouts.answer = ANSWER_MAX;
        let mut session = ServerSession::open(&connect)?;
        let pid = match LOCAL_HOSTS.contains(&connect.host()) || connect.socket.is_some() {
            true => local_pid(&mut session),
            false => None,
        };
        Ok(TestedServer { connect, pid, sandbox: None })
    }

    /// A private server, of the MySQL that `MYSQL_BASEDIR` names or that is installed for the tests, with these
    /// options added to its own. It has a keyring, and is removed with the run.
    ///
    /// # Errors
    ///
    /// This MySQL is missing, or it can't be started.
    pub fn private(options: &[(String, String)]) -> Result<TestedServer> {
        tool::install_nothing();
        // Connections of thousands of clients are open files.
        let mut builder = Tool::Mysql
            .find()
            .map_err(how_to_get_one)?
            .sandbox()
            .keyring()
            .option("open-files-limit", "65535");
        for (name, value) in options {
            builder = builder.option(name, value);
        }
        let sandbox = builder.start()?;
        let connect = ConnectOptions {
            socket: Some(sandbox.socket()),
            protocol: Some(Protocol::Socket),
            user: Some("root".to_owned()),
            ..ConnectOptions::new("binlogz bench")
        };
        let mut server = TestedServer { connect, pid: sandbox.pid(), sandbox: Some(sandbox) };
        server.connect.timeouts.answer = ANSWER_MAX;
        Ok(server)
    }

    /// How to reach it.
    pub fn connect(&self) -> &ConnectOptions {
        &self.connect
    }

    /// Whether it is a private one.
    pub fn is_private(&self) -> bool {
        self.sandbox.is_some()
    }

    /// A name for people.
    pub fn name(&self) -> String {
        match self.sandbox {
            Some(_) => "private server".to_owned(),
            None => self.connect.server(),
        }
    }

    /// Restricts all threads of a private server to this many processors; `None`: to all of them.
    pub(crate) fn hold_to(&self, cores: Option<usize>) -> Result<()> {
        let (Some(pid), true) = (self.pid, self.is_private()) else { return Ok(()) };
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let last = cores.unwrap_or(all).clamp(1, all) - 1;
        let mut command = Command::new("taskset");
        command.args(["--all-tasks", "--pid", "--cpu-list", &format!("0-{last}"), &pid.to_string()]);
        let ran = command.output().at("run", Path::new("taskset"))?;
        match ran.status.success() {
            true => Ok(()),
            false => Err(Error::Load(format!("taskset: {}", String::from_utf8_lossy(&ran.stderr).trim()))),
        }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid
    }
}

/// The process id from the server's own file, if that process runs here and is a server.
fn local_pid(session: &mut ServerSession) -> Option<u32> {
    let rows = session.rows("SELECT @@GLOBAL.pid_file, @@GLOBAL.datadir").ok()?;
    let row = rows.first()?;
    let [Some(file), Some(datadir)] = row.as_slice() else { return None };
    let pid: u32 = fs::read_to_string(Path::new(datadir).join(file)).ok()?.trim().parse().ok()?;
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    (command.contains("mysqld") || command.contains("mariadbd")).then_some(pid)
}
