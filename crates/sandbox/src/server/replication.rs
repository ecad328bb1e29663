//! Replicas: a MySQL sandbox that follows another server, or applies relay logs it is handed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{MysqlSandbox, Server};
use crate::{Error, IoContext, Result};

/// Applying the largest file that tests feed takes tens of seconds on two busy cores.
const CATCH_UP_MAX: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(50);

/// Where a replica begins to read its source's log.
#[derive(Clone, Debug)]
pub enum StartAt {
    /// By GTID: whatever the replica does not have yet.
    Gtid,
    /// At an offset of a file.
    Position(String, u64),
}

impl MysqlSandbox {
    /// The end of its binary log: file and offset.
    pub fn position(&self) -> Result<(String, u64)> {
        let is_8_0 = self.installed().version().starts_with("8.0.");
        let ask = if is_8_0 { "SHOW MASTER STATUS" } else { "SHOW BINARY LOG STATUS" };
        let status = self.sql(ask)?;
        let mut fields = status.split('\t');
        match (fields.next(), fields.next().map(str::parse)) {
            (Some(file), Some(Ok(offset))) => Ok((file.to_owned(), offset)),
            _ => Err(Error::Failed(format!("no position in {status:?}"))),
        }
    }

    /// Follows `source` by GTID.
    pub fn replicate_from(&self, source: &Server) -> Result<()> {
        self.replicate_from_port(source.port(), StartAt::Gtid)
    }

    /// Follows whatever speaks for a source on a port of 127.0.0.1 and knows the account `repl`.
    pub fn replicate_from_port(&self, port: u16, start: StartAt) -> Result<()> {
        let start = match start {
            StartAt::Gtid => "SOURCE_AUTO_POSITION=1".to_owned(),
            StartAt::Position(file, offset) => format!("SOURCE_LOG_FILE='{file}', SOURCE_LOG_POS={offset}"),
        };
        self.sql(&format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='repl', \
             SOURCE_PASSWORD='repl', GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, {start}; START REPLICA;"
        ))
        .map(drop)
    }

    /// Waits until it has applied all that `source` has written, or fails with the replication error.
    pub fn wait_for_source(&self, source: &MysqlSandbox) -> Result<()> {
        let caught_up = if source.sql("SELECT @@gtid_mode")?.trim() == "ON" {
            let executed = source.gtid_executed()?;
            format!("SELECT GTID_SUBSET('{executed}', @@GLOBAL.gtid_executed)")
        } else {
            let (file, offset) = source.position()?;
            format!("SELECT SOURCE_POS_WAIT('{file}', {offset}, 1) >= 0")
        };
        self.wait_until(|| Ok(self.sql(&caught_up)?.trim() == "1"))
    }

    /// Applies files as its relay logs, in this order, and waits until it has. It must not follow a source;
    /// afterwards its applier is stopped.
    pub fn apply_relay_logs(&mut self, files: &[PathBuf]) -> Result<()> {
        let Some(last) = files.last() else { return Ok(()) };
        // The server makes its replication metadata first; then the files take the place of its relay logs.
        self.sql("CHANGE REPLICATION SOURCE TO SOURCE_HOST='nowhere.invalid'")?;
        self.stop()?;
        for file in self.relay_logs()? {
            fs::remove_file(&file).at("remove", &file)?;
        }
        let mut index = String::new();
        for (file, number) in files.iter().zip(1..) {
            let name = relay_log_name(number);
            fs::copy(file, self.datadir().join(&name)).at("copy", file)?;
            index.push_str(&format!("./{name}\n"));
        }
        let index_path = self.datadir().join("relay.index");
        fs::write(&index_path, index).at("write", &index_path)?;
        self.set_option("skip-replica-start", "ON");
        self.start()?;

        // The server has begun a relay log of its own after these: on reaching it, the applier sees that it is
        // past the last position, waits for its workers and stops.
        let end = fs::metadata(last).at("read", last)?.len();
        self.sql(&format!(
            "CHANGE REPLICATION SOURCE TO RELAY_LOG_FILE='{}', RELAY_LOG_POS=4; \
             START REPLICA SQL_THREAD UNTIL RELAY_LOG_FILE='{}', RELAY_LOG_POS={end};",
            relay_log_name(1),
            relay_log_name(files.len())
        ))?;
        let stopped = |status: BTreeMap<_, _>| status.get("Replica_SQL_Running").is_some_and(|on| on == "No");
        self.wait_until(|| self.replica_status().map(stopped))
    }
}

impl Server {
    /// `SHOW REPLICA STATUS` as field and value; empty where it is no replica.
    pub fn replica_status(&self) -> Result<BTreeMap<String, String>> {
        let mut client = self.client();
        let ask = if self.is_5_6 { "SHOW SLAVE STATUS" } else { "SHOW REPLICA STATUS" };
        client.args(["--vertical", "--column-names", "--execute", ask]);
        let output = client.output().map_err(|error| Error::Io("run client".into(), error))?;
        let status = String::from_utf8_lossy(&output.stdout);
        let fields = status.lines().filter_map(|line| line.split_once(": "));
        Ok(fields.map(|(field, value)| (field.trim().to_owned(), value.to_owned())).collect())
    }

    pub(super) fn wait_until(&self, done: impl Fn() -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + CATCH_UP_MAX;
        loop {
            let finished = done()?;
            let status = self.replica_status()?;
            for error in ["Last_IO_Error", "Last_SQL_Error"] {
                if let Some(error) = status.get(error).filter(|error| !error.is_empty()) {
                    return Err(Error::Failed(format!("replica: {error}")));
                }
            }
            if finished {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::Failed(format!("replica has not caught up: {status:?}")));
            }
            sleep(POLL);
        }
    }
}

fn relay_log_name(number: usize) -> String {
    format!("relay.{number:06}")
}
