//! `relay`: follows a source, keeps its log, serves it. The work is `binlogz-relay`'s.
//!
//! One file for each verb; `config` has the contents of `relay.toml`, and `resolve` makes the relay's options
//! from it.

mod check_config;
mod config;
mod doctor;
mod http;
mod init;
pub(in crate::cmd) mod listener_tls;
mod orders;
mod reload;
mod resolve;
mod run;
mod status;
mod tried;

use binlogz_relay::{Form, FormPolicy};
pub(in crate::cmd) use binlogz_source::secret;
use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;

use crate::Exit;
use crate::failure::Result;

/// Follow a server, keep its binary log durably, and serve it to replicas in the form they can read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RelayCommand {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "Examples:
  binlogz relay run --source mysql://repl@db1 --dir relay --listen 0.0.0.0:3307 --http 127.0.0.1:3308
  binlogz relay init && binlogz relay check-config && binlogz relay run --config relay.toml
  binlogz relay status --http 127.0.0.1:3308";

#[derive(Debug, Subcommand)]
enum Action {
    Run(Box<run::RelayRun>),
    Init(init::Init),
    CheckConfig(check_config::CheckConfig),
    Status(status::RelayStatusCommand),
    Doctor(doctor::RelayDoctorCommand),
    Reload(reload::Reload),
}

/// See [`FormPolicy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::cmd) enum FormName {
    /// The source's own bytes, file names and positions.
    Received,
    /// Every transaction that may be compressed is.
    Compressed,
    /// No compressed transactions, as if the feature did not exist.
    Uncompressed,
    /// What each can read: received for mysqld and mysqlbinlog since 8.0.20, uncompressed for all others.
    #[default]
    Auto,
}

impl FormName {
    pub(in crate::cmd) fn form(self) -> FormPolicy {
        match self {
            FormName::Received => FormPolicy::Always(Form::Received),
            FormName::Compressed => FormPolicy::Always(Form::Compressed),
            FormName::Uncompressed => FormPolicy::Always(Form::Uncompressed),
            FormName::Auto => FormPolicy::Auto,
        }
    }
}

/// See [`binlogz_relay::StoredForm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoreName {
    /// The source's own bytes.
    #[default]
    Received,
    /// Plain transactions compressed, by as many threads as there are cores, up to 8.
    Compressed,
}

impl RelayCommand {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<Exit> {
        match self.action {
            Action::Run(run) => run.run(),
            Action::Init(init) => init.run(),
            Action::CheckConfig(check) => check.run(),
            Action::Status(status) => status.run(),
            Action::Doctor(doctor) => doctor.run(),
            Action::Reload(reload) => reload.run(),
        }
    }
}
