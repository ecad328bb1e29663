//! MySQL 5.6 in a sandbox: a replica from before everything 8.0 added, with GTIDs and position alike. And 5.5, which has no GTIDs.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::mysql::{copy_tree, run_as_root};
use super::{ReplicaStart, SandboxServer};
use crate::{Error, InstalledTool, IoContext, Result, Tool, cache};

/// Part of the cache key of the initialised data directory: raised when [`initialise`] changes.
const TEMPLATE_RECIPE: u32 = 1;

/// The size of InnoDB's log files in a new data directory.
const LOG_FILE_SIZE: &str = "8M";
/// The scripts its bootstrap reads after `USE mysql`, in order.
const SYSTEM_TABLES: [&str; 2] = ["mysql_system_tables.sql", "mysql_system_tables_data.sql"];

/// Run at each start. Anonymous accounts would shadow those of other names; bootstrap itself knows no GRANT.
const ACCOUNTS: &str = "\
SET sql_log_bin = 0;
DELETE FROM mysql.user WHERE user = '';
FLUSH PRIVILEGES;
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO repl@'127.0.0.1' IDENTIFIED BY 'repl';
SET sql_log_bin = 1;
";

/// With GTIDs it logs the transactions that it applies, and such a log must be in row format (its error 1666).
const OPTIONS: [&str; 7] = [
    "--log-bin=binlog",
    "--relay-log=relay",
    "--binlog-format=ROW",
    "--log-slave-updates",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
    "--skip-slave-start",
];

/// A running MySQL 5.6 or 5.5; [`SandboxServer`] has the methods that it shares with other servers.
#[derive(Debug)]
pub struct Mysql56Sandbox {
    server: SandboxServer,
}

is_a_server!(Mysql56Sandbox);

impl Mysql56Sandbox {
    /// Starts it with these options in addition to its own, as in `("gtid-mode", "OFF")`. MariaDB's client speaks to it.
    pub fn start(options: &[(&str, &str)]) -> Result<Mysql56Sandbox> {
        Self::start_version(Tool::Mysql56, options)
    }

    /// Starts [`Tool::Mysql56`], [`Tool::Mysql5614`] or [`Tool::Mysql55`] with these options in addition to its own.
    pub fn start_version(version: Tool, options: &[(&str, &str)]) -> Result<Mysql56Sandbox> {
        let installed = version.find()?;
        let client = Tool::Mariadb.find()?;
        let mut server = SandboxServer::new(installed, "mysqld", "mariadb")?;
        (server.client_from, server.says_slave) = (client, true);
        copy_tree(&template(installed)?, &server.datadir())?;
        let accounts = server.dir.join("accounts.sql");
        fs::write(&accounts, ACCOUNTS).at("write", &accounts)?;
        server.set_option("init-file", &accounts.display().to_string());
        server.set_own_options(OPTIONS)?;
        let of_version = match version {
            // It doesn't change the size that the data directory was made with.
            Tool::Mysql55 => &[("innodb-log-file-size", LOG_FILE_SIZE)][..],
            _ => &[("gtid-mode", "ON"), ("enforce-gtid-consistency", "ON")],
        };
        for (name, value) in of_version.iter().chain(options) {
            server.set_option(name, value);
        }
        server.start()?;
        Ok(Mysql56Sandbox { server })
    }

    /// Follows a source (or a stand-in for one) on a port of 127.0.0.1 that has the account `repl`.
    pub fn replicate_from_port(&self, port: u16, start: ReplicaStart) -> Result<()> {
        let start = match start {
            ReplicaStart::Gtid => "MASTER_AUTO_POSITION=1".to_owned(),
            ReplicaStart::Position(file, offset) => {
                format!("MASTER_AUTO_POSITION=0, MASTER_LOG_FILE='{file}', MASTER_LOG_POS={offset}")
            }
        };
        self.sql(&format!(
            "STOP SLAVE; CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='repl', \
             MASTER_PASSWORD='repl', MASTER_CONNECT_RETRY=1, {start}; START SLAVE;"
        ))
        .map(drop)
    }

    /// Waits until it has applied this GTID set, or fails with the replication error.
    pub fn wait_for_gtids(&self, set: &str) -> Result<()> {
        let probe = format!("SELECT GTID_SUBSET('{set}', @@GLOBAL.gtid_executed)");
        self.catches_up(&probe)
    }

    /// Waits until it has applied its source's log up to there, or fails with the replication error.
    pub fn wait_for_position(&self, file: &str, offset: u64) -> Result<()> {
        let probe = format!("SELECT MASTER_POS_WAIT('{file}', {offset}, 1) >= 0");
        self.catches_up(&probe)
    }
}

fn template(installed: &'static InstalledTool) -> Result<PathBuf> {
    let key = format!("datadir/mysql-{}-{TEMPLATE_RECIPE}", installed.version());
    let entry = cache::entry(&key, |dir| initialise(installed, dir))?;
    Ok(entry.join("data"))
}

fn initialise(installed: &'static InstalledTool, dir: &Path) -> Result<()> {
    let data = dir.join("data");
    fs::create_dir_all(data.join("mysql")).at("create", &data)?;
    let mut statements = "USE mysql;\n".to_owned();
    for name in SYSTEM_TABLES {
        let path = installed.prefix().join("root/usr/share/mysql").join(name);
        File::open(&path).and_then(|mut file| file.read_to_string(&mut statements)).at("read", &path)?;
    }
    let script = dir.join("bootstrap.sql");
    fs::write(&script, statements).at("write", &script)?;
    let output = installed
        .command("mysqld")
        .args(["--no-defaults", "--bootstrap", &format!("--innodb-log-file-size={LOG_FILE_SIZE}")])
        .arg(format!("--datadir={}", data.display()))
        .args(run_as_root())
        .stdin(Stdio::from(File::open(&script).at("open", &script)?))
        .output()
        .map_err(|error| Error::Io("run mysqld".into(), error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Failed(format!("mysqld --bootstrap {}\n{said}", output.status)));
    }
    // Without it each copy gives itself a server_uuid of its own.
    let identity = data.join("auto.cnf");
    if identity.exists() {
        fs::remove_file(&identity).at("remove", &identity)?;
    }
    Ok(())
}
