//! MariaDB in a sandbox: the replica that can't read compressed transactions.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::mysql::{copy_tree, run_as_root};
use super::{MysqlBuilder, SandboxServer};
use crate::{Error, InstalledTool, IoContext, Result, Tool, cache};

/// Part of the cache key of the initialised data directory: raised when [`initialise`] changes.
const TEMPLATE_RECIPE: u32 = 1;

/// The scripts its bootstrap reads between [`BEFORE`] and [`AFTER`], in order.
const SYSTEM_TABLES: [&str; 3] =
    ["mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"];
/// One statement a line: its bootstrap asks for that.
const BEFORE: &str = "\
CREATE DATABASE mysql;
USE mysql;
SET @auth_root_socket = NULL, @skip_auth_anonymous = 1;
";
/// Before 10.4 it makes anonymous accounts, which would shadow those of other names.
const WITHOUT_ANONYMOUS: &str = "DELETE FROM mysql.user WHERE user = '';\n";
const AFTER: &str = "\
FLUSH PRIVILEGES;
CREATE USER repl@'127.0.0.1' IDENTIFIED BY 'repl';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO repl@'127.0.0.1';
";

const OPTIONS: [&str; 5] = [
    "--log-bin=binlog",
    "--relay-log=relay",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
    "--local-infile=ON",
];

impl MysqlBuilder {
    /// Keeps its sessions off the collations that MariaDB doesn't know, so that it can follow this source.
    pub fn readable_by_mariadb(mut self) -> MysqlBuilder {
        self.session_sql = Some("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci");
        self.option("character-set-server", "utf8mb4")
            .option("collation-server", "utf8mb4_general_ci")
            .init_sql("SET GLOBAL default_collation_for_utf8mb4 = utf8mb4_general_ci;\n")
    }
}

/// A running MariaDB; [`SandboxServer`] has the methods that it shares with other servers.
#[derive(Debug)]
pub struct MariadbSandbox {
    server: SandboxServer,
}

is_a_server!(MariadbSandbox);

impl MariadbSandbox {
    /// Starts 10.11 with these options in addition to its own, as in `("binlog-format", "ROW")`.
    pub fn start(options: &[(&str, &str)]) -> Result<MariadbSandbox> {
        Self::start_version(Tool::Mariadb, options)
    }

    /// Starts a version of it, such as [`Tool::Mariadb114`], with these options in addition to its own.
    pub fn start_version(version: Tool, options: &[(&str, &str)]) -> Result<MariadbSandbox> {
        let installed = version.find()?;
        let mut server = SandboxServer::new(installed, "mariadbd", "mariadb")?;
        server.says_slave = is_before_10_4(version);
        // The client of a version is the one that its tests use; older ones have none here.
        if version != Tool::Mariadb114 {
            server.client_from = Tool::Mariadb.find()?;
        }
        copy_tree(&template(version, installed)?, &server.datadir())?;
        server.set_own_options(OPTIONS)?;
        for (name, value) in options {
            server.set_option(name, value);
        }
        server.start()?;
        Ok(MariadbSandbox { server })
    }

    /// Follows a MySQL source (or a stand-in for one) on a port of 127.0.0.1, from an offset of a file.
    pub fn replicate_from_port(&self, port: u16, file: &str, offset: u64) -> Result<()> {
        self.sql(&format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='repl', \
             MASTER_PASSWORD='repl', MASTER_SSL=1, MASTER_SSL_VERIFY_SERVER_CERT=0, MASTER_CONNECT_RETRY=1, \
             MASTER_USE_GTID=no, MASTER_LOG_FILE='{file}', MASTER_LOG_POS={offset}; START SLAVE;"
        ))
        .map(drop)
    }

    /// Waits until it has applied its source's log up to there, or fails with the replication error.
    pub fn wait_for_position(&self, file: &str, offset: u64) -> Result<()> {
        let probe = format!("SELECT MASTER_POS_WAIT('{file}', {offset}, 1) >= 0");
        self.catches_up(&probe)
    }
}

fn is_before_10_4(version: Tool) -> bool {
    matches!(version, Tool::Mariadb101 | Tool::Mariadb102)
}

fn template(version: Tool, installed: &'static InstalledTool) -> Result<PathBuf> {
    let key = format!("datadir/mariadb-{}-{TEMPLATE_RECIPE}", installed.version());
    let entry = cache::entry(&key, |dir| initialise(version, installed, &dir.join("data")))?;
    Ok(entry.join("data"))
}

fn initialise(version: Tool, installed: &'static InstalledTool, data: &Path) -> Result<()> {
    std::fs::create_dir(data).at("create", data)?;
    let mut statements = BEFORE.to_owned();
    for name in SYSTEM_TABLES {
        let path = installed.prefix().join("root/usr/share/mysql").join(name);
        File::open(&path).and_then(|mut file| file.read_to_string(&mut statements)).at("read", &path)?;
    }
    if is_before_10_4(version) {
        statements.push_str(WITHOUT_ANONYMOUS);
    }
    statements.push_str(AFTER);

    let failed = |error| Error::Io("run mariadbd".into(), error);
    let mut child = installed
        .command("mariadbd")
        .args(["--no-defaults", "--bootstrap", "--innodb-log-file-size=8M", "--log-warnings=0"])
        .arg(format!("--datadir={}", data.display()))
        .args(run_as_root())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it ends early, its own message is the better error.
        let _ = stdin.write_all(statements.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Failed(format!("mariadbd --bootstrap {}\n{said}", output.status)));
    }
    Ok(())
}
