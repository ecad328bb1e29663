//! A relay by its configuration, asked over HTTP, with whom the tests of its operation work.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use binlogz_testkit::{Installed, MysqlSandbox};
use serde_json::Value;

use super::Folder;

/// Two busy cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// A relay that runs by a configuration; killed when dropped.
pub(crate) struct Relay {
    pub(crate) child: Child,
    pub(crate) log: PathBuf,
    pub(crate) port: u16,
    pub(crate) http: String,
}

impl Relay {
    /// `more` goes behind what every configuration here has.
    pub(crate) fn start(folder: &Folder, servers: &[&str], more: &str) -> Relay {
        Relay::launch(folder, servers, "", more, None)
    }

    /// One whose source has further keys.
    pub(crate) fn start_with(folder: &Folder, servers: &[&str], source: &str, more: &str) -> Relay {
        Relay::launch(folder, servers, source, more, None)
    }

    /// One that can write files of so many KiB.
    pub(crate) fn start_limited(
        folder: &Folder,
        servers: &[&str],
        more: &str,
        file_size_max: Option<u32>,
    ) -> Relay {
        Relay::launch(folder, servers, "", more, file_size_max)
    }

    fn launch(
        folder: &Folder,
        servers: &[&str],
        source: &str,
        more: &str,
        file_size_max: Option<u32>,
    ) -> Relay {
        let password = folder.put("source.password", "repl\n");
        fs::set_permissions(password, fs::Permissions::from_mode(0o600)).unwrap();
        let config = format!(
            "[source]\nservers = {servers:?}\npassword_file = \"source.password\"\n{source}\n[log]\nformat = \"json\"\n\
             [http]\naddress = \"127.0.0.1:0\"\n{more}\n"
        );
        folder.put("relay.toml", config);
        let log = folder.path("relay.log");
        let stderr = fs::File::create(&log).unwrap();
        let mut command = match file_size_max {
            None => folder.binlogz(["relay", "run", "--config=relay.toml"]),
            Some(kib) => {
                // Who ignores the signal is told by an error, as when a disk is full.
                let script =
                    format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" relay run --config=relay.toml");
                let mut shell = Command::new("bash");
                let folder = folder.path("");
                shell.args(["-c", &script, env!("CARGO_BIN_EXE_binlogz")]).current_dir(folder);
                shell
            }
        };
        let child = command.stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        let mut relay = Relay { child, log, port: 0, http: String::new() };
        let said = |relay: &Relay, what: &str| -> Option<String> {
            let line = relay.messages().into_iter().find(|line| line.starts_with(what))?;
            Some(line[what.len()..].trim_end_matches('/').to_owned())
        };
        relay.http = relay.wait_for("address", |relay| said(relay, "status on http://"));
        relay.port = said(&relay, "listening on 127.0.0.1:").unwrap().parse().unwrap();
        relay
    }

    /// The lines of its log, each of which must be a JSON object.
    pub(crate) fn messages(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap();
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        let message = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(line["time"].as_f64().unwrap() > 1.7e9 && line["level"].is_string(), "{line}");
            line["message"].as_str().unwrap().to_owned()
        };
        whole.lines().map(message).collect()
    }

    pub(crate) fn wait_for<T>(&mut self, what: &str, mut found: impl FnMut(&mut Relay) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            let ended = self.child.try_wait().unwrap();
            let patient = ended.is_none() && Instant::now() < deadline;
            assert!(patient, "no {what}: {ended:?}\n{}", fs::read_to_string(&self.log).unwrap());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The answer's status code and body.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.http).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: relay\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.get("/status.json").1).unwrap()
    }

    pub(crate) fn phase(&self) -> String {
        self.status()["source"]["phase"].as_str().unwrap().to_owned()
    }

    /// Waits until everything of the source is durable here.
    pub(crate) fn has_all_of(&mut self, source: &MysqlSandbox) {
        let (file, position) = source.position().unwrap();
        self.wait_for("end of the source's log", |relay| {
            let durable = &relay.status()["log"]["durable"];
            (durable["file"] == file.as_str() && durable["position"] == position).then_some(())
        });
    }

    /// What a MySQL client is told.
    pub(crate) fn sql(
        &self,
        mysql: &Installed,
        user: &str,
        options: &[&str],
        statement: &str,
    ) -> Result<String, String> {
        let mut client = mysql.command("mysql");
        client.args(["--no-defaults", "--host=127.0.0.1", "--batch", "--skip-column-names"]).args(options);
        client.args([format!("--port={}", self.port), format!("--user={user}")]);
        let output = client.args(["--execute", statement]).env("MYSQL_PWD", "secret").output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that is killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn url(server: &MysqlSandbox) -> String {
    format!("mysql://repl@127.0.0.1:{}", server.port())
}

/// Accounts whose password is `secret`.
pub(crate) fn accounts(folder: &Folder, accounts: &[(&str, &str)]) -> String {
    let path = folder.put("account.password", "secret\n");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let account = |(user, more): &(&str, &str)| {
        format!("[[account]]\nuser = \"{user}\"\npassword_file = \"account.password\"\n{more}\n")
    };
    accounts.iter().map(account).collect()
}
