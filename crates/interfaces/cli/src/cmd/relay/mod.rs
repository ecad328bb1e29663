//! `relay`: follows a source, keeps its log, serves it. The work is `binlogz-relay`'s.
//!
//! One file for each verb; `binlogz-relay-config` reads `relay.toml` and makes the relay's options from it.

mod check_config;
mod doctor;
mod http;
mod init;
pub(in crate::cmd) mod listener_tls;
mod orders;
mod reload;
mod run;
mod status;
mod tried;

use std::path::Path;

use binlogz_relay_config::{ConfigError, RelayConfig};
use clap::{Args, Subcommand};

use crate::Exit;
use crate::failure::{CommandFailure, Result};

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

/// Reads a configuration.
fn read(path: &Path) -> Result<RelayConfig> {
    RelayConfig::read(path).map_err(of_config)
}

/// A configuration's error as the command's line.
fn of_config(error: ConfigError) -> CommandFailure {
    CommandFailure::Line(error.to_string())
}
