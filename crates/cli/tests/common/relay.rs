//! A relay that runs beside real servers.
#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use binlogz_testkit::{Installed, MysqlSandbox};

use crate::common::Folder;

/// Two busy cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// A relay that runs; killed when dropped.
pub(crate) struct Relay {
    pub(crate) child: Child,
    log: PathBuf,
    pub(crate) port: u16,
}

impl Relay {
    pub(crate) fn start(folder: &Folder, source: &MysqlSandbox, options: &[&str]) -> Relay {
        let log = folder.path("relay.log");
        let stderr = fs::File::options().create(true).append(true).open(&log).unwrap();
        let before = fs::read_to_string(&log).unwrap().len();
        let url = format!("mysql://repl@127.0.0.1:{}", source.port());
        let mut command = folder.binlogz(["relay", "run", "--source", &url, "--dir", "kept"]);
        command.args(["--listen", "127.0.0.1:0"]).args(options);
        command.env("MYSQL_PWD", "repl").stdout(Stdio::null()).stderr(stderr);
        let child = command.spawn().unwrap();
        let mut relay = Relay { child, log, port: 0 };
        let listening = relay.wait_for("a port", |relay| {
            let said = relay.said();
            let line =
                said.get(before..)?.lines().find_map(|line| line.split_once("listening on 127.0.0.1:"));
            line.map(|(_, port)| port.parse().unwrap())
        });
        relay.port = listening;
        relay
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn wait_for<T>(&mut self, what: &str, mut found: impl FnMut(&mut Relay) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "no {what}: {ended:?}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until all files that the source has closed are closed here too, and compares them.
    pub(crate) fn has_all_of(&mut self, folder: &Folder, source: &MysqlSandbox) -> usize {
        source.flush_binary_logs().unwrap();
        let mut files = source.binlogs().unwrap();
        let open = files.pop().unwrap();
        let begun = folder.path("kept").join(open.file_name().unwrap());
        self.wait_for("last file", |_| begun.exists().then_some(()));
        for file in &files {
            let kept = fs::read(folder.path("kept").join(file.file_name().unwrap())).unwrap();
            assert!(
                kept == fs::read(file).unwrap(),
                "{} differs from the source's\n{}",
                file.display(),
                self.said()
            );
        }
        files.len()
    }

    /// Fetches all files that the source has closed, as received; they are the source's. How many, their names, bytes.
    pub(crate) fn received_equal(
        &mut self,
        mysql: &Installed,
        folder: &Folder,
        source: &MysqlSandbox,
    ) -> (usize, Vec<String>, Vec<Vec<u8>>) {
        source.flush_binary_logs().unwrap();
        let mut files = source.binlogs().unwrap();
        let open = files.pop().unwrap();
        let begun = folder.path("kept").join(open.file_name().unwrap());
        self.wait_for("last file", |_| begun.exists().then_some(()));
        let names: Vec<_> =
            files.iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect();
        let fetched = self.fetch(mysql, folder, &[], &names.iter().map(String::as_str).collect::<Vec<_>>());
        for (file, fetched) in files.iter().zip(&fetched) {
            assert!(*fetched == fs::read(file).unwrap(), "{} over the wire\n{}", file.display(), self.said());
        }
        (names.len(), names, fetched)
    }

    /// What a MySQL client is told.
    pub(crate) fn sql(&self, mysql: &Installed, password: &str, statement: &str) -> Result<String, String> {
        let mut client = mysql.command("mysql");
        client.args(["--no-defaults", "--host=127.0.0.1", "--user=repl", "--batch", "--skip-column-names"]);
        client.arg(format!("--port={}", self.port)).args(["--execute", statement]).env("MYSQL_PWD", password);
        let output = client.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    pub(crate) fn replicates_to(&self, replica: &MysqlSandbox, start: &str) {
        let port = self.port;
        replica
            .sql(&format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='repl', \
                 SOURCE_PASSWORD='repl', SOURCE_CONNECT_RETRY=1, {start}; START REPLICA"
            ))
            .unwrap();
    }

    /// Fetches files as they are with mysqlbinlog; gives them.
    pub(crate) fn fetch(
        &self,
        mysql: &Installed,
        folder: &Folder,
        options: &[&str],
        names: &[&str],
    ) -> Vec<Vec<u8>> {
        let mut fetch = mysql.command("mysqlbinlog");
        fetch.args([
            "--no-defaults",
            "--read-from-remote-server",
            "--raw",
            "--host=127.0.0.1",
            "--user=repl",
        ]);
        fetch.arg(format!("--port={}", self.port)).args(options).args(names).env("MYSQL_PWD", "repl");
        let into = folder.path("fetched");
        fs::create_dir_all(&into).unwrap();
        let output = fetch.arg(format!("--result-file={}/", into.display())).output().unwrap();
        assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), self.said());
        names.iter().map(|name| fs::read(into.join(name)).unwrap()).collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
