//! The clients that a relay serves: MySQL's own programs, and replicas. Its accounts all have the same password.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use binlogz_testkit::{InstalledTool, MysqlSandbox};

use super::Relay;

/// A process that is killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client's program that connects to a port of 127.0.0.1.
pub(crate) fn client(
    installed: &InstalledTool,
    program: &str,
    port: u16,
    user: &str,
    password: &str,
) -> Command {
    let mut command = installed.command(program);
    command.args(["--no-defaults", "--host=127.0.0.1"]);
    command.args([format!("--port={port}"), format!("--user={user}")]).env("MYSQL_PWD", password);
    command
}

/// The `mysql` client's answer, tab-separated and without headings; or its words for an error.
pub(crate) fn sql(mut client: Command, statements: &str) -> Result<String, String> {
    client.args(["--batch", "--skip-column-names", "--execute", statements]);
    let output = client.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

impl Relay {
    /// A client's program, such as `mysql`, that connects to the relay.
    pub(crate) fn client(&self, mysql: &InstalledTool, program: &str, user: &str) -> Command {
        client(mysql, program, self.port, user, self.password)
    }

    /// A MySQL client's answer.
    pub(crate) fn sql(
        &self,
        mysql: &InstalledTool,
        user: &str,
        options: &[&str],
        statements: &str,
    ) -> Result<String, String> {
        let mut client = self.client(mysql, "mysql", user);
        client.args(options);
        sql(client, statements)
    }

    /// mysqlbinlog, which reads the relay's log.
    pub(crate) fn mysqlbinlog(&self, mysql: &InstalledTool, user: &str) -> Command {
        let mut command = self.client(mysql, "mysqlbinlog", user);
        command.arg("--read-from-remote-server");
        command
    }

    /// Fetches files as they are with mysqlbinlog into a folder; gives where they are.
    pub(crate) fn fetch(
        &self,
        mysql: &InstalledTool,
        user: &str,
        into: &Path,
        options: &[&str],
        names: &[&str],
    ) -> Result<Vec<PathBuf>, String> {
        fs::create_dir_all(into).unwrap();
        let mut command = self.mysqlbinlog(mysql, user);
        command.args(["--raw", &format!("--result-file={}/", into.display())]).args(options).args(names);
        let output = command.output().unwrap();
        match output.status.success() {
            true => Ok(names.iter().map(|name| into.join(name)).collect()),
            false => Err(String::from_utf8(output.stderr).unwrap()),
        }
    }

    /// Makes a server follow the relay; `start` says from where, and whether by TLS.
    pub(crate) fn replicates_to(&self, replica: &MysqlSandbox, user: &str, start: &str) {
        let Relay { port, password, .. } = self;
        replica
            .sql(&format!(
                "STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, \
                 SOURCE_USER='{user}', SOURCE_PASSWORD='{password}', SOURCE_CONNECT_RETRY=1, \
                 SOURCE_RETRY_COUNT=100, {start}; START REPLICA"
            ))
            .unwrap();
    }

    /// Waits until a replica has applied all that the source has written; both have the same then.
    #[track_caller]
    pub(crate) fn brings(&self, source: &MysqlSandbox, replica: &MysqlSandbox, schemas: &[&str]) {
        replica.wait_for_source(source).unwrap_or_else(|error| panic!("{error}\n{}", self.said()));
        for schema in schemas {
            assert_eq!(replica.checksum_tables(schema).unwrap(), source.checksum_tables(schema).unwrap());
        }
        assert_eq!(replica.gtid_executed().unwrap(), source.gtid_executed().unwrap());
    }
}
