//! How a relay is started: by options, or by a configuration. Either way it keeps its log in `kept`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use binlogz_testkit::MysqlSandbox;

use super::Relay;
use crate::common::Folder;

const LISTENING: &str = "listening on 127.0.0.1:";
const STATUS: &str = "status on http://";

pub(crate) fn url(server: &MysqlSandbox) -> String {
    format!("mysql://repl@127.0.0.1:{}", server.port())
}

impl Relay {
    /// Starts a relay configured by options, which serves the source's account.
    pub(crate) fn start(folder: &Folder, source: &MysqlSandbox, options: &[&str]) -> Relay {
        let url = url(source);
        let mut command = folder.binlogz(["relay", "run", "--source", &url, "--dir", "kept"]);
        command.args(["--listen", "127.0.0.1:0"]).args(options).env("MYSQL_PWD", "repl");
        let mut relay = Relay::launch(folder, command, "repl");
        relay.port = relay.wait_for("port", |relay| {
            let said = relay.said();
            let (_, port) = said.lines().find_map(|line| line.split_once(LISTENING))?;
            Some(port.parse().unwrap())
        });
        relay
    }

    fn launch(folder: &Folder, mut command: Command, password: &'static str) -> Relay {
        let log = folder.path("relay.log");
        let stderr = fs::File::options().create(true).append(true).open(&log).unwrap();
        let log_start = stderr.metadata().unwrap().len() as usize;
        let child = command.stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        Relay { child, log, log_start, port: 0, http: String::new(), password }
    }
}

/// A relay's `relay.toml`: the lines that every relay here has, and the lines that a test adds. All passwords are in
/// files.
#[derive(Clone)]
pub(crate) struct Configuration {
    servers: Vec<String>,
    source: String,
    /// `[[source]]` tables instead of a `[source]`.
    several: Option<String>,
    store: String,
    listen: String,
    accounts: Vec<(&'static str, String)>,
    archive: String,
    /// Further keys of `[log]`.
    log: String,
    /// `ulimit`'s options.
    ulimit: Option<String>,
    /// Where it listens and answers over HTTP; 0: anywhere.
    ports: (u16, u16),
    environment: Vec<(&'static str, OsString)>,
    /// Another binlogz than the one under test.
    program: Option<PathBuf>,
}

impl Configuration {
    /// Follows these, the first that can be had.
    pub(crate) fn of<S: Into<String>>(servers: impl IntoIterator<Item = S>) -> Configuration {
        Configuration {
            servers: servers.into_iter().map(Into::into).collect(),
            source: String::new(),
            several: None,
            store: String::new(),
            listen: String::new(),
            accounts: Vec::new(),
            archive: String::new(),
            log: String::new(),
            ulimit: None,
            ports: (0, 0),
            environment: Vec::new(),
            program: None,
        }
    }

    /// Follows several sources: their `[[source]]` tables.
    pub(crate) fn of_several(tables: impl Into<String>) -> Configuration {
        Configuration { several: Some(tables.into()), ..Configuration::of(Vec::<String>::new()) }
    }

    /// This configuration with other sources.
    pub(crate) fn with_several(&self, tables: impl Into<String>) -> Configuration {
        Configuration { several: Some(tables.into()), ..self.clone() }
    }

    /// This configuration with other servers: a server that is started again has another port.
    pub(crate) fn with_servers<S: Into<String>>(
        &self,
        servers: impl IntoIterator<Item = S>,
    ) -> Configuration {
        Configuration { servers: servers.into_iter().map(Into::into).collect(), ..self.clone() }
    }

    /// Further keys of `[source]`.
    pub(crate) fn source(self, keys: impl Into<String>) -> Configuration {
        Configuration { source: keys.into(), ..self }
    }

    /// Further keys of `[store]`.
    pub(crate) fn store(self, keys: impl Into<String>) -> Configuration {
        Configuration { store: keys.into(), ..self }
    }

    /// Further keys of `[log]`.
    pub(crate) fn log(self, keys: impl Into<String>) -> Configuration {
        Configuration { log: keys.into(), ..self }
    }

    /// Further keys of `[listen]`.
    pub(crate) fn listen(self, keys: impl Into<String>) -> Configuration {
        Configuration { listen: keys.into(), ..self }
    }

    /// An account whose password is `secret`, and its further keys.
    pub(crate) fn account(mut self, user: &'static str, keys: impl Into<String>) -> Configuration {
        self.accounts.push((user, keys.into()));
        self
    }

    /// Archives closed files in the folder `arc`.
    pub(crate) fn archive(self) -> Configuration {
        self.archive_to("arc")
    }

    /// Archives closed files there.
    pub(crate) fn archive_to(self, to: &str) -> Configuration {
        Configuration { archive: format!("[archive]\nto = \"{to}\""), ..self }
    }

    /// Further keys of `[archive]`.
    pub(crate) fn archive_keys(mut self, keys: &str) -> Configuration {
        self.archive.push_str(&format!("\n{keys}\n"));
        self
    }

    /// It can't write files of more KiB, until [`Relay::may_write_any_size`].
    pub(crate) fn file_size_max(self, kib: u32) -> Configuration {
        Configuration { ulimit: Some(format!("-S -f {kib}")), ..self }
    }

    /// It can't open more files.
    pub(crate) fn open_files_max(self, descriptors: u32) -> Configuration {
        Configuration { ulimit: Some(format!("-n {descriptors}")), ..self }
    }

    /// Where it listens and answers over HTTP, so that it is found there again after a restart.
    pub(crate) fn ports(self, listen: u16, http: u16) -> Configuration {
        Configuration { ports: (listen, http), ..self }
    }

    /// Variables of its environment.
    pub(crate) fn environment(
        self,
        variables: impl IntoIterator<Item = (&'static str, OsString)>,
    ) -> Configuration {
        Configuration { environment: variables.into_iter().collect(), ..self }
    }

    /// This configuration, run by another binlogz.
    pub(crate) fn run_by(&self, program: Option<&Path>) -> Configuration {
        Configuration { program: program.map(Path::to_owned), ..self.clone() }
    }

    pub(crate) fn start(&self, folder: &Folder) -> Relay {
        let mut relay = self.launch(folder);
        let said = |relay: &Relay, what: &str| -> Option<String> {
            let line = relay.messages().into_iter().find(|line| line.starts_with(what))?;
            Some(line[what.len()..].trim_end_matches('/').to_owned())
        };
        relay.http = relay.wait_for("address", |relay| said(relay, STATUS));
        relay.port = said(&relay, LISTENING).unwrap().parse().unwrap();
        relay
    }

    /// Starts one whose ports are known, and waits for nothing: it may end at once.
    pub(crate) fn launch(&self, folder: &Folder) -> Relay {
        self.write(folder);
        let mut command = match &self.ulimit {
            None => {
                let mut command = folder.binlogz(["relay", "run", "--config=relay.toml"]);
                if let Some(program) = &self.program {
                    command = Command::new(program);
                    command.args(["relay", "run", "--config=relay.toml"]).current_dir(folder.path(""));
                }
                command
            }
            Some(limit) => {
                // A process that ignores the signal gets an error, as when a disk is full.
                let script =
                    format!("trap '' XFSZ; ulimit {limit}; exec \"$0\" relay run --config=relay.toml");
                let mut shell = Command::new("bash");
                shell.args(["-c", &script, env!("CARGO_BIN_EXE_binlogz")]).current_dir(folder.path(""));
                shell
            }
        };
        command.envs(self.environment.iter().cloned());
        let mut relay = Relay::launch(folder, command, "secret");
        relay.port = self.ports.0;
        relay.http = format!("127.0.0.1:{}", self.ports.1);
        relay
    }

    /// Writes the files, for a relay that is told to read them again.
    pub(crate) fn write(&self, folder: &Folder) {
        for (name, password) in [("source.password", "repl\n"), ("account.password", "secret\n")] {
            let path = folder.put(name, password);
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let Configuration { servers, source, store, listen, log, accounts, archive, .. } = self;
        let (port, http) = self.ports;
        let account = |(user, keys): &(&str, String)| {
            format!("[[account]]\nuser = \"{user}\"\npassword_file = \"account.password\"\n{keys}\n")
        };
        let accounts: String = accounts.iter().map(account).collect();
        let only =
            format!("[source]\nservers = {servers:?}\npassword_file = \"source.password\"\n{source}\n");
        let sources = self.several.as_ref().unwrap_or(&only);
        folder.put(
            "relay.toml",
            format!(
                "{sources}\n[store]\ndir = \"kept\"\n{store}\n[listen]\naddress = \"127.0.0.1:{port}\"\n{listen}\n\
                 [log]\nformat = \"json\"\n{log}\n[http]\naddress = \"127.0.0.1:{http}\"\n{archive}\n{accounts}"
            ),
        );
    }
}
