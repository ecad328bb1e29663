//! Real servers in sandboxes: a temporary directory, a port of their own on 127.0.0.1, gone when dropped.
//!
//! [`SandboxServer`] is the common part of MySQL and MariaDB: start, stop, kill, SQL through the real client, binary
//! logs. [`MysqlSandbox`], [`Mysql56Sandbox`] and [`MariadbSandbox`] add how each is initialised and
//! replicates.

/// Lets a kind of server be used as the [`SandboxServer`] that it has.
macro_rules! is_a_server {
    ($kind:ty) => {
        impl std::ops::Deref for $kind {
            type Target = SandboxServer;
            fn deref(&self) -> &SandboxServer {
                &self.server
            }
        }

        impl std::ops::DerefMut for $kind {
            fn deref_mut(&mut self) -> &mut SandboxServer {
                &mut self.server
            }
        }
    };
}

mod mariadb;
mod mysql;
mod mysql56;
mod process;
mod replication;

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub use mariadb::MariadbSandbox;
pub use mysql::{MysqlBuilder, MysqlSandbox};
pub use mysql56::Mysql56Sandbox;
pub use process::free_port;
use process::{ServerGuard, ServerProcess};
pub use replication::ReplicaStart;

use crate::{Error, InstalledTool, IoContext, Result};

/// How long the index of a running server may be away, which takes it an instant to replace.
const INDEX_PATIENCE: Duration = Duration::from_secs(60);

/// A server program in a sandbox.
#[derive(Debug)]
pub struct SandboxServer {
    installed: &'static InstalledTool,
    program: &'static str,
    client: &'static str,
    /// Where the client comes from: 5.6 has none of its own.
    client_from: &'static InstalledTool,
    /// Whether to use the statements of MySQL before 5.7 and MariaDB before 10.5: they don't know `SHOW REPLICA STATUS`, the former
    /// no `SHUTDOWN` either.
    says_slave: bool,
    /// Holds `data/`, `tmp/`, the socket and the log.
    dir: PathBuf,
    options: Vec<String>,
    /// Run at the start of each of the client's sessions.
    session_sql: Option<&'static str>,
    port: u16,
    /// The port of each start, if it was chosen.
    chosen_port: Option<u16>,
    // Dropped in this order: the server ends before its directory goes.
    process: Option<ServerProcess>,
    guard: Arc<ServerGuard>,
}

impl SandboxServer {
    /// A sandbox with an empty directory; the caller fills its `data/` before [`SandboxServer::start`].
    fn new(
        installed: &'static InstalledTool,
        program: &'static str,
        client: &'static str,
    ) -> Result<SandboxServer> {
        let dir = tempfile::Builder::new()
            .prefix("binlogz-")
            .tempdir()
            .map_err(|error| Error::Io("create temporary directory".into(), error))?;
        let guard = Arc::new(ServerGuard::new(dir.path())?);
        let dir = dir.keep();
        let tmp = dir.join("tmp");
        fs::create_dir(&tmp).at("create", &tmp)?;
        Ok(SandboxServer {
            installed,
            program,
            client,
            client_from: installed,
            says_slave: false,
            dir,
            options: Vec::new(),
            session_sql: None,
            port: 0,
            chosen_port: None,
            process: None,
            guard,
        })
    }

    /// Starts it again after [`SandboxServer::stop`] or [`SandboxServer::kill`], with its options as they are.
    pub fn start(&mut self) -> Result<()> {
        // The port is chosen before the server binds it: another program may be faster.
        for _ in 0..5 {
            let port = self.chosen_port.map_or_else(free_port, Ok)?;
            let mut command = self.installed.command(self.program);
            command.arg("--no-defaults").args(&self.options);
            command
                .arg(format!("--datadir={}", self.datadir().display()))
                .arg(format!("--socket={}", self.socket().display()))
                .arg(format!("--pid-file={}", self.dir.join("pid").display()))
                .arg(format!("--log-error={}", self.log_path().display()))
                .arg(format!("--tmpdir={}", self.dir.join("tmp").display()))
                .args(["--bind-address=127.0.0.1", "--secure-file-priv=", "--skip-name-resolve"])
                .arg(format!("--port={port}"));
            match ServerProcess::start(command, &self.log_path(), &self.guard)? {
                Some(process) => {
                    self.port = port;
                    self.process = Some(process);
                    return Ok(());
                }
                None => continue,
            }
        }
        Err(Error::Failed(format!("no port stayed free for {}", self.program)))
    }

    /// Sets the options that every sandbox of this server starts with.
    fn set_own_options<const COUNT: usize>(&mut self, own: [&str; COUNT]) -> Result<()> {
        // Any id will do as long as a source and its replicas differ: ids that people give are smaller.
        let random = RandomState::new().build_hasher().finish() as u32;
        self.options.push(format!("--server-id={}", (random >> 1) | 1 << 16));
        self.options.extend(own.map(str::to_owned));
        self.options.extend(mysql::run_as_root());
        Ok(())
    }

    /// Sets an option for the next start; a later value of the same option wins. Dashes and underscores are alike.
    pub(crate) fn set_option(&mut self, name: &str, value: &str) {
        self.options.push(format!("--{name}={value}"));
    }

    /// Shuts it down as an administrator would, and waits until it is gone.
    pub fn stop(&mut self) -> Result<()> {
        match &self.process {
            Some(process) if self.says_slave => process.terminate()?,
            Some(_) => drop(self.sql("SHUTDOWN")?),
            None => {}
        }
        match self.process.take() {
            Some(process) => process.wait(),
            None => Ok(()),
        }
    }

    /// Kills it as a crash would; everything given to the operating system is on disk.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// The server's process id while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(ServerProcess::id)
    }

    /// From the next start on its port is this one, so that others find it again.
    pub fn choose_port(&mut self, port: u16) {
        self.chosen_port = Some(port);
    }

    /// The server's port on 127.0.0.1: another one after each start, unless it was chosen.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path of the server's Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("sock")
    }

    /// The server's data directory.
    pub fn datadir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The server's error log so far.
    pub fn log(&self) -> Result<String> {
        fs::read_to_string(self.log_path()).at("read", &self.log_path())
    }

    fn log_path(&self) -> PathBuf {
        self.dir.join("server.log") // mysqld would add .err to a name without extension
    }

    /// The programs it came from.
    pub fn installed(&self) -> &'static InstalledTool {
        self.installed
    }

    /// The command-line client that came with the server, connected as root over the socket.
    pub fn client(&self) -> Command {
        let mut command = self.client_from.command(self.client);
        command
            .arg("--no-defaults")
            .arg("--user=root")
            .arg(format!("--socket={}", self.socket().display()))
            .args(["--batch", "--skip-column-names", "--local-infile=1", "--default-character-set=utf8mb4"])
            .args(self.session_sql.map(|sql| format!("--init-command={sql}")));
        command
    }

    /// Runs statements in one session through the client; returns its output: tab-separated, without headings.
    pub fn sql(&self, statements: &str) -> Result<String> {
        self.run_client(|stdin| stdin.write_all(statements.as_bytes()))
    }

    /// Runs a file of statements in one session; returns the client's output.
    pub fn sql_file(&self, path: &Path) -> Result<String> {
        let mut file = fs::File::open(path).at("open", path)?;
        self.run_client(|mut stdin| std::io::copy(&mut file, &mut stdin).map(drop))
    }

    /// Runs statements as `write` produces them, in one session: for more of them than memory should hold.
    pub fn run_client(
        &self,
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()> + Send,
    ) -> Result<String> {
        let failed = |error| Error::Io(format!("run {}", self.client), error);
        let mut child = self
            .client()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stdin = child.stdin.take();
        let (written, output) = thread::scope(|scope| {
            let writer = scope.spawn(move || match stdin {
                Some(stdin) => {
                    let mut stdin = std::io::BufWriter::new(stdin);
                    write(&mut stdin).and_then(|()| stdin.flush())
                }
                None => Ok(()),
            });
            let output = child.wait_with_output();
            (writer.join(), output)
        });
        let output = output.map_err(failed)?;
        // A client that fails closes its input: its own message says more than the broken pipe.
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Failed(format!("{}: {said}", self.client)));
        }
        match written {
            Ok(written) => written.map_err(failed)?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Paths of the server's binary logs in order, by its own index.
    pub fn binlogs(&self) -> Result<Vec<PathBuf>> {
        self.indexed_logs("binlog.index")
    }

    /// Paths of the server's relay logs in order, by its own index.
    pub fn relay_logs(&self) -> Result<Vec<PathBuf>> {
        self.indexed_logs("relay.index")
    }

    fn indexed_logs(&self, index: &str) -> Result<Vec<PathBuf>> {
        let path = self.datadir().join(index);
        let end = Instant::now() + INDEX_PATIENCE;
        let listed = loop {
            match fs::read_to_string(&path) {
                // A server deletes it before it renames the new one.
                Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < end => {
                    thread::sleep(Duration::from_millis(5));
                }
                read => break read.at("read", &path)?,
            }
        };
        Ok(listed.lines().map(|line| self.datadir().join(line.trim_start_matches("./"))).collect())
    }

    /// Begins a new binary log; returns the one it closed.
    pub fn flush_binary_logs(&self) -> Result<PathBuf> {
        let last = self.binlogs()?.pop();
        self.sql("FLUSH BINARY LOGS")?;
        last.ok_or_else(|| Error::Failed(format!("{} has no binary log", self.program)))
    }

    /// Copies its binary logs to a directory; returns the copies.
    pub fn copy_binlogs(&self, destination: &Path) -> Result<Vec<PathBuf>> {
        copy_files(&self.binlogs()?, destination)
    }

    /// `CHECKSUM TABLE` of every base table of a schema: (schema.table, checksum), ordered by name.
    pub fn checksum_tables(&self, schema: &str) -> Result<Vec<(String, String)>> {
        let tables = self.sql(&format!(
            "SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables \
             WHERE table_schema = '{schema}' AND table_type = 'BASE TABLE' ORDER BY table_name"
        ))?;
        if tables.is_empty() {
            return Ok(Vec::new());
        }
        let names = tables.lines().collect::<Vec<_>>().join(", ");
        let checksums = self.sql(&format!("CHECKSUM TABLE {names}"))?;
        Ok(checksums
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .map(|(table, checksum)| (table.to_owned(), checksum.to_owned()))
            .collect())
    }
}

/// Copies files into a directory under their own names; returns the copies.
fn copy_files(files: &[PathBuf], destination: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(destination).at("create", destination)?;
    let mut copies = Vec::new();
    for file in files {
        let copy = destination.join(file.file_name().unwrap_or_default());
        fs::copy(file, &copy).at("copy", file)?;
        copies.push(copy);
    }
    Ok(copies)
}
