//! The server that is tested: one of the user's, or a private one that goes with the run.

use std::fs;
use std::path::Path;
use std::process::Command;

use binlogz_sandbox::{MysqlSandbox, Tool, tool};
use binlogz_source::{ConnectOptions, Protocol};

use crate::error::{Error, IoContext, Result};
use crate::session::Session;
use crate::work::ANSWER_MAX;

/// A server that is tested.
#[derive(Debug)]
pub struct TestedServer {
    connect: ConnectOptions,
    /// Its process, where it runs on this machine.
    pid: Option<u32>,
    sandbox: Option<MysqlSandbox>,
}

/// Hosts that are this machine.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl TestedServer {
    /// A server of the user's.
    ///
    /// # Errors
    ///
    /// It can't be reached.
    pub fn of_the_user(mut connect: ConnectOptions) -> Result<TestedServer> {
        connect.timeouts.answer = ANSWER_MAX;
        let mut session = Session::open(&connect)?;
        let pid = match LOCAL_HOSTS.contains(&connect.host()) || connect.socket.is_some() {
            true => local_pid(&mut session),
            false => None,
        };
        Ok(TestedServer { connect, pid, sandbox: None })
    }

    /// A private server, of the MySQL that `MYSQL_BASEDIR` names or that is installed for the tests, with these
    /// options beside its own. It has a keyring, and is gone with the run.
    ///
    /// # Errors
    ///
    /// There is no such MySQL, or it can't be started.
    pub fn private(options: &[(String, String)]) -> Result<TestedServer> {
        tool::install_nothing();
        // Connections of thousands of clients are open files.
        let mut builder = Tool::Mysql.find()?.sandbox().keyring().option("open-files-limit", "65535");
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

    /// What people call it.
    pub fn name(&self) -> String {
        match self.sandbox {
            Some(_) => "private server".to_owned(),
            None => self.connect.server(),
        }
    }

    /// Holds a private server to so many processors, all of its threads; `None`: to none less than there are.
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

/// The process id in the server's own file, if such a process runs here and is a server.
fn local_pid(session: &mut Session) -> Option<u32> {
    let rows = session.rows("SELECT @@GLOBAL.pid_file, @@GLOBAL.datadir").ok()?;
    let row = rows.first()?;
    let [Some(file), Some(datadir)] = row.as_slice() else { return None };
    let pid: u32 = fs::read_to_string(Path::new(datadir).join(file)).ok()?.trim().parse().ok()?;
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    (command.contains("mysqld") || command.contains("mariadbd")).then_some(pid)
}
