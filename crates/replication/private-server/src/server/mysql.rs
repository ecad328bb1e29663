//! MySQL in a sandbox: initialised once and copied, with binary logging and GTIDs on.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{SandboxServer, copy_files};
use crate::{Error, InstalledTool, IoContext, Result, cache};

/// Part of the cache key of the initialised data directory: raised when [`initialise`] changes.
const TEMPLATE_RECIPE: u32 = 1;

/// Accounts of every sandbox: root without a password, and `repl` for replicas, from 127.0.0.1.
const ACCOUNTS: &str = "\
CREATE USER root@'127.0.0.1';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
CREATE USER repl@'127.0.0.1' IDENTIFIED BY 'repl';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO repl@'127.0.0.1';
";

/// The options every sandbox starts with; the builder's options come after these and win.
/// Durability is off: no test here pulls the plug, and a commit then costs no disk write.
const OPTIONS: [&str; 10] = [
    "--log-bin=binlog",
    "--relay-log=relay",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--max-binlog-size=1G",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-doublewrite=OFF",
    "--local-infile=ON",
    "--loose-mysqlx=OFF",
];

/// How a MySQL sandbox will be started.
#[derive(Debug)]
pub struct MysqlBuilder {
    installed: &'static InstalledTool,
    options: Vec<String>,
    server_uuid: Option<String>,
    keyring: bool,
    binlogs: Vec<PathBuf>,
    init_sql: String,
    pub(super) session_sql: Option<&'static str>,
}

impl InstalledTool {
    /// A sandbox of this MySQL.
    pub fn sandbox(&'static self) -> MysqlBuilder {
        MysqlBuilder {
            installed: self,
            options: Vec::new(),
            server_uuid: None,
            keyring: false,
            binlogs: Vec::new(),
            init_sql: String::new(),
            session_sql: None,
        }
    }
}

impl MysqlBuilder {
    /// Adds a server option, as in `.option("binlog-checksum", "NONE")`; a later value of the same option wins.
    pub fn option(mut self, name: &str, value: &str) -> MysqlBuilder {
        self.options.push(format!("--{name}={value}"));
        self
    }

    /// Compresses every session's transactions at `level`.
    pub fn compression(self, level: u32) -> MysqlBuilder {
        self.option("binlog-transaction-compression", "ON")
            .option("binlog-transaction-compression-level-zstd", &level.to_string())
    }

    /// Gives the server this identity instead of a new one.
    pub fn server_uuid(mut self, uuid: &str) -> MysqlBuilder {
        self.server_uuid = Some(uuid.to_owned());
        self
    }

    /// Encrypts binary and relay logs, with the keyring in `keyring.json` of the data directory.
    pub fn encrypted(self) -> MysqlBuilder {
        self.keyring().option("binlog-encryption", "ON")
    }

    /// With a keyring, in `keyring.json` of the data directory: `binlog_encryption` may be turned on.
    pub fn keyring(mut self) -> MysqlBuilder {
        self.keyring = true;
        self
    }

    /// Starts with these files as its binary logs, in this order, under their own names: their transactions
    /// count as executed, and its replicas are sent them.
    pub fn binlogs(mut self, files: &[PathBuf]) -> MysqlBuilder {
        self.binlogs = files.to_vec();
        self
    }

    /// Runs these statements, one a line, at each of its starts, before anyone can connect.
    pub(super) fn init_sql(mut self, statements: &str) -> MysqlBuilder {
        self.init_sql.push_str(statements);
        self
    }

    /// Starts it and waits until it accepts connections.
    pub fn start(self) -> Result<MysqlSandbox> {
        let template = template(self.installed)?;
        let mut server = SandboxServer::new(self.installed, "mysqld", "mysql")?;
        let datadir = server.datadir();
        copy_tree(&template, &datadir)?;
        if let Some(uuid) = &self.server_uuid {
            write(&datadir.join("auto.cnf"), &format!("[auto]\nserver-uuid={uuid}\n"))?;
        }
        if self.keyring {
            write(&datadir.join("mysqld.my"), r#"{"components": "file://component_keyring_file"}"#)?;
            let keyring = datadir.join("keyring.json");
            let config = format!(r#"{{"path": "{}", "read_only": false}}"#, keyring.display());
            write(&datadir.join("component_keyring_file.cnf"), &config)?;
        }
        if !self.binlogs.is_empty() {
            let copies = copy_files(&self.binlogs, &datadir)?;
            let names = copies.iter().filter_map(|copy| copy.file_name()?.to_str());
            let index: String = names.map(|name| format!("./{name}\n")).collect();
            write(&datadir.join("binlog.index"), &index)?;
        }
        if !self.init_sql.is_empty() {
            let path = server.dir.join("init.sql");
            write(&path, &self.init_sql)?;
            server.set_option("init-file", &path.display().to_string());
        }
        server.set_own_options(OPTIONS)?;
        server.options.extend(self.options);
        server.session_sql = self.session_sql;
        server.start()?;
        Ok(MysqlSandbox { server })
    }
}

/// A running MySQL; [`SandboxServer`] has the methods that it shares with other servers.
#[derive(Debug)]
pub struct MysqlSandbox {
    server: SandboxServer,
}

is_a_server!(MysqlSandbox);

impl MysqlSandbox {
    /// Every GTID it has executed, without line breaks.
    pub fn gtid_executed(&self) -> Result<String> {
        Ok(self.sql("SELECT REPLACE(@@GLOBAL.gtid_executed, '\n', '')")?.trim().to_owned())
    }

    /// The server's `server_uuid`.
    pub fn server_uuid(&self) -> Result<String> {
        Ok(self.sql("SELECT @@server_uuid")?.trim().to_owned())
    }

    /// The keyring file of an [encrypted](MysqlBuilder::encrypted) server.
    pub fn keyring(&self) -> PathBuf {
        self.datadir().join("keyring.json")
    }
}

/// An initialised data directory of this version, made once and only copied from then on.
fn template(installed: &'static InstalledTool) -> Result<PathBuf> {
    let key = format!("datadir/mysql-{}-{TEMPLATE_RECIPE}", installed.version());
    let entry = cache::entry(&key, |dir| initialise(installed, dir))?;
    Ok(entry.join("data"))
}

fn initialise(installed: &'static InstalledTool, dir: &Path) -> Result<()> {
    let data = dir.join("data");
    let accounts = dir.join("accounts.sql");
    write(&accounts, ACCOUNTS)?;
    let output = installed
        .command("mysqld")
        .args(["--no-defaults", "--initialize-insecure", "--skip-log-bin", "--innodb-doublewrite=OFF"])
        .arg("--innodb-redo-log-capacity=8M") // keeps the copies small; a running server makes its own
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--init-file={}", accounts.display()))
        .args(run_as_root())
        .output()
        .map_err(|error| Error::Io("run mysqld".into(), error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Failed(format!("mysqld --initialize-insecure {}\n{said}", output.status)));
    }
    // Without it each copy gives itself a server_uuid of its own.
    let identity = data.join("auto.cnf");
    fs::remove_file(&identity).at("remove", &identity)
}

/// Both servers refuse to run as root unless told so.
pub(super) fn run_as_root() -> Option<String> {
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    root.then(|| "--user=root".to_owned())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).at("write", path)
}

/// Copies a data directory: a third of it is blocks of zeros, which `cp` can leave out.
pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let mut command = Command::new("cp");
    command.args(["--archive", "--sparse=always", "--reflink=auto"]).arg(from).arg(to);
    let status = command.status().at("copy", from)?;
    if !status.success() {
        return Err(Error::Failed(format!("copy {}: cp {status}", from.display())));
    }
    Ok(())
}
