//! Replicas: a MySQL sandbox that follows another server, or applies relay logs it is handed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{MysqlSandbox, SandboxServer};
use crate::{Error, IoContext, Result};

/// Applying the largest file that tests feed takes tens of seconds on two busy cores.
const CATCH_UP_MAX: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(50);
/// A replica that tries again each second is connected long before, once its source is there.
const CONNECT_MAX: Duration = Duration::from_secs(60);
/// Error numbers of a client whose source isn't there, or has gone: no connection by socket or by TCP, gone away, and
/// lost.
const ERRORS_NOT_THERE: [&str; 4] = ["2002", "2003", "2006", "2013"];

/// Where a replica begins to read its source's log.
#[derive(Clone, Debug)]
pub enum ReplicaStart {
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
    pub fn replicate_from(&self, source: &SandboxServer) -> Result<()> {
        self.replicate_from_port(source.port(), ReplicaStart::Gtid)
    }

    /// Follows whatever speaks for a source on a port of 127.0.0.1 and knows the account `repl`.
    pub fn replicate_from_port(&self, port: u16, start: ReplicaStart) -> Result<()> {
        let start = match start {
            ReplicaStart::Gtid => "SOURCE_AUTO_POSITION=1".to_owned(),
            ReplicaStart::Position(file, offset) => {
                format!("SOURCE_LOG_FILE='{file}', SOURCE_LOG_POS={offset}")
            }
        };
        self.sql(&format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='repl', \
             SOURCE_PASSWORD='repl', GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, {start}; START REPLICA;"
        ))
        .map(drop)
    }

    /// Waits until it receives and applies; a source that starts again meanwhile is waited for.
    ///
    /// # Errors
    ///
    /// A thread has stopped or met an error that trying again doesn't mend, or it isn't connected after a minute.
    pub fn wait_for_connection(&self) -> Result<()> {
        self.wait_until(CONNECT_MAX, "is not connected", |status| {
            let threads = ["Replica_IO_Running", "Replica_SQL_Running"];
            let [receives, applies] = threads.map(|thread| status.get(thread).map(String::as_str));
            match (receives, applies) {
                (Some("Yes"), Some("Yes")) => Ok(true),
                (Some("Connecting"), Some("Yes")) => Ok(false),
                _ => Err(Error::Failed(format!("replica: a thread has stopped: {status:?}"))),
            }
        })
    }

    /// Waits until it has applied all that `source` has written, or fails with the replication error. A source that starts again
    /// meanwhile is waited for.
    pub fn wait_for_source(&self, source: &MysqlSandbox) -> Result<()> {
        let caught_up = if source.sql("SELECT @@gtid_mode")?.trim() == "ON" {
            let executed = source.gtid_executed()?;
            format!("SELECT GTID_SUBSET('{executed}', @@GLOBAL.gtid_executed)")
        } else {
            let (file, offset) = source.position()?;
            format!("SELECT SOURCE_POS_WAIT('{file}', {offset}, 1) >= 0")
        };
        self.catches_up(&caught_up)
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
        self.wait_until(CATCH_UP_MAX, "has not applied its relay logs", |status| {
            Ok(status.get("Replica_SQL_Running").is_some_and(|on| on == "No"))
        })
    }
}

impl SandboxServer {
    /// `SHOW REPLICA STATUS` as field and value; empty where it is no replica.
    pub fn replica_status(&self) -> Result<BTreeMap<String, String>> {
        let mut client = self.client();
        let ask = if self.says_slave { "SHOW SLAVE STATUS" } else { "SHOW REPLICA STATUS" };
        client.args(["--vertical", "--column-names", "--execute", ask]);
        let output = client.output().map_err(|error| Error::Io("run client".into(), error))?;
        let status = String::from_utf8_lossy(&output.stdout);
        let fields = status.lines().filter_map(|line| line.split_once(": "));
        Ok(fields.map(|(field, value)| (field.trim().to_owned(), value.to_owned())).collect())
    }

    /// Waits until it answers 1, as it does once it has all.
    pub(super) fn catches_up(&self, probe: &str) -> Result<()> {
        self.wait_until(CATCH_UP_MAX, "has not caught up", |_| Ok(self.sql(probe)?.trim() == "1"))
    }

    /// Waits until a status is the one that is waited for.
    fn wait_until(
        &self,
        patience: Duration,
        unmet: &str,
        done: impl Fn(&BTreeMap<String, String>) -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let status = self.replica_status()?;
            if let Some(error) = lasting_error(&status) {
                return Err(Error::Failed(format!("replica: {error}")));
            }
            if done(&status)? {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::Failed(format!("replica {unmet}: {status:?}")));
            }
            sleep(POLL);
        }
    }
}

/// The error of a replica's threads. An absent source is no error as long as the replica tries again.
fn lasting_error(status: &BTreeMap<String, String>) -> Option<&str> {
    let of = |field: &str| status.get(field).map(String::as_str).filter(|text| !text.is_empty());
    let receives = of("Replica_IO_Running").or_else(|| of("Slave_IO_Running"));
    let tries_again = receives == Some("Connecting")
        && of("Last_IO_Errno").is_some_and(|number| ERRORS_NOT_THERE.contains(&number));
    of("Last_SQL_Error").or_else(|| of("Last_IO_Error").filter(|_| !tries_again))
}

fn relay_log_name(number: usize) -> String {
    format!("relay.{number:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_source_that_is_not_there_is_waited_for() {
        let error = |running: &str, number: &str, sql: &str| {
            let status = [
                ("Replica_IO_Running", running),
                ("Last_IO_Errno", number),
                ("Last_IO_Error", if number == "0" { "" } else { "of the connection" }),
                ("Last_SQL_Error", sql),
            ]
            .map(|(field, value)| (field.to_owned(), value.to_owned()));
            lasting_error(&status.into_iter().collect()).map(str::to_owned)
        };
        let connection = Some("of the connection".to_owned());
        let row = Some("no such row".to_owned());
        for (running, number, sql, expected) in [
            ("Yes", "0", "", &None),
            ("Connecting", "2003", "", &None),
            ("Connecting", "2013", "", &None),
            // It gave up; its account is refused; what it asks for is purged.
            ("No", "2003", "", &connection),
            ("Connecting", "1045", "", &connection),
            ("No", "13114", "", &connection),
            ("Connecting", "2003", "no such row", &row),
            ("Yes", "0", "no such row", &row),
        ] {
            assert_eq!(error(running, number, sql), *expected, "{running} {number} {sql}");
        }
    }
}
