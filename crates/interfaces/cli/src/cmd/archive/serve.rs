//! `binlogz archive serve`: the relay's serving side over an archive or files, without a source.

use binlogz_cli_common::malloc::keep_small;
use std::net::SocketAddr;
use std::path::PathBuf;

use binlogz_relay::{AccountOptions, Limits, Relay, ServeOptions, ServedLogs};
use binlogz_relay_config::{FormName, LogFormat, LogSettings, default_levels};
use binlogz_source::{Password, secret};
use clap::Args;

use crate::Exit;
use crate::cmd::closed_logs::{self, DiskArgs, StopArgs};
use crate::cmd::relay::listener_tls::ListenerTlsArgs;
use crate::failure::{CommandFailure, Result, say};
use crate::keyring::KeyringArg;
use crate::log;

/// The environment's password, as for MySQL's programs.
const PASSWORD_VARIABLE: &str = "MYSQL_PWD";

/// Serve an archive's logs, or files, to replicas, without their server
///
/// Replicas attach with CHANGE REPLICATION SOURCE TO and follow by GTID (SOURCE_AUTO_POSITION=1) or by position, any number of
/// them, each in the form that it can read; at the end they wait. The logs are those that are there when it starts. It runs
/// until it is stopped.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Serve {
    /// Where replicas connect
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3307")]
    listen: SocketAddr,
    /// The account that replicas log in with
    #[arg(long, value_name = "NAME")]
    user: String,
    /// Its password: a file that others can't read [default: MYSQL_PWD in the environment]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The form for replicas that name no file
    #[arg(long, value_enum, default_value_t)]
    form: FormName,
    #[command(flatten)]
    tls: ListenerTlsArgs,
    /// Serve only replicas that use TLS
    #[arg(long, conflicts_with = "no_listen_tls")]
    require_tls: bool,
    #[command(flatten)]
    stop: StopArgs,
    #[command(flatten)]
    disk: DiskArgs,
    #[command(flatten)]
    keyring: KeyringArg,
    /// The archive (its folder, or s3://BUCKET/PREFIX), or closed binary logs of one server
    #[arg(required = true, value_name = "ARCHIVE|FILE")]
    logs: Vec<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  MYSQL_PWD=secret binlogz archive serve --user repl /backup/db1
  binlogz archive serve --user repl --password-file repl.password --listen 0.0.0.0:3307 --require-tls s3://backup/db1

At the replica:
  CHANGE REPLICATION SOURCE TO SOURCE_HOST='backup1', SOURCE_PORT=3307, SOURCE_USER='repl', SOURCE_PASSWORD='secret',
    SOURCE_SSL=1, SOURCE_AUTO_POSITION=1; START REPLICA;";

impl Serve {
    pub(super) fn run(self) -> Result<Exit> {
        keep_small();
        let stop = self.stop.stop()?;
        let password = self.password()?;
        let folder = self.disk.folder()?;
        let Some(ended) = closed_logs::open(&self.logs, &self.keyring, &stop, folder.path())? else {
            return Ok(Exit::Negative);
        };
        let (first, last) = ended.logs().range();
        say(&format!("{first} to {last}, up to {}", closed_logs::reach(&ended)));
        log::install(&LogSettings { format: LogFormat::Text, levels: default_levels() })?;
        let options = ServeOptions {
            served: ServedLogs {
                logs: ended.shared(),
                bring_back: self.disk.bring_back(),
                only_replica: None,
                over_incidents: false,
            },
            directory: folder.path().to_owned(),
            accounts: vec![AccountOptions::new(self.user.clone(), password)],
            limits: Limits::default().limited_by_descriptors(1),
            listen: self.listen,
            listen_tls: self.tls.tls(),
            require_tls: self.require_tls,
            native_password: true,
            form: self.form.form(),
        };
        let running = Relay::serve(options).map_err(closed_logs::line)?;
        running.join();
        Ok(Exit::Trouble)
    }

    fn password(&self) -> Result<Password> {
        let has_variable = std::env::var_os(PASSWORD_VARIABLE).is_some();
        let variable = (self.password_file.is_none() && has_variable).then_some(PASSWORD_VARIABLE);
        let password = secret::password(self.password_file.as_deref(), variable);
        let password = password.map_err(|error| CommandFailure::of(&"--password-file", error))?;
        password.ok_or_else(|| {
            CommandFailure::of(
                &"--user",
                "needs a password: --password-file FILE, or MYSQL_PWD in the environment",
            )
        })
    }
}
