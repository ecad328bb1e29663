//! `relay`: follows a source, keeps its log, serves it. The work is `binlogz-relay`'s.

use std::net::SocketAddr;
use std::path::PathBuf;

use binlogz_relay::{Form, Relay as Relaying, RelayOptions};
use binlogz_source::{ConnectOptions, option_files};
use clap::{Args, Subcommand, ValueEnum};

use crate::Exit;
use crate::failure::{Failure, Result, complain, warn};

/// Follow a server, keep its binary log durably, and serve it to replicas in the form they can read.
#[derive(Debug, Args)]
pub(crate) struct Relay {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Run(Box<Run>),
}

const SOURCE: &str = "The source: mysql://[USER@]HOST[:PORT]. Its password comes from the option file or MYSQL_PWD. \
    Replicas log in to the relay with the same account.";

/// Receive and serve until stopped.
#[derive(Debug, Args)]
struct Run {
    // As an attribute: rustdoc takes brackets for links.
    #[arg(long, value_name = "URL", help = SOURCE)]
    source: String,
    /// Where the log is kept; made if it is not there.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Where replicas connect.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = DEFAULT_LISTEN)]
    listen: SocketAddr,
    /// The certificate shown to replicas that connect with TLS, in PEM form; without it there is no TLS.
    #[arg(long, value_name = "FILE", requires = "listen_ssl_key")]
    listen_ssl_cert: Option<PathBuf>,
    /// The key of that certificate.
    #[arg(long, value_name = "FILE", requires = "listen_ssl_cert")]
    listen_ssl_key: Option<PathBuf>,
    /// What clients get that name no file.
    #[arg(long, value_enum, default_value_t = FormName::Received)]
    form: FormName,
    /// The relay's server id; by default one made of its uuid, which is kept in DIR.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    server_id: Option<u32>,
    /// Acknowledge transactions to a semi-synchronous source, each once it is durable here.
    #[arg(long)]
    semi_sync: bool,
    /// An option file to read, in MySQL's format, with a group client: user, password, ssl-mode, …
    #[arg(long, value_name = "FILE")]
    defaults_file: Option<PathBuf>,
    /// disabled, preferred, required, verify_ca or verify_identity.
    #[arg(long, value_name = "MODE")]
    ssl_mode: Option<String>,
    /// The certificates to trust.
    #[arg(long, value_name = "FILE")]
    ssl_ca: Option<PathBuf>,
    /// Ask the source for its public key where the connection is not encrypted.
    #[arg(long)]
    get_server_public_key: bool,
}

/// The port next to MySQL's, for nobody but this machine.
const DEFAULT_LISTEN: &str = "127.0.0.1:3307";

/// See [`Form`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormName {
    /// The source's own bytes, file names and positions.
    Received,
    /// No compressed transactions, as if the feature did not exist.
    Uncompressed,
}

impl Relay {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<Exit> {
        let Action::Run(run) = self.action;
        let failed = |error: &dyn std::fmt::Display| Failure::Line(error.to_string());
        let options = RelayOptions {
            source: run.connect().map_err(|error| failed(&error))?,
            directory: run.dir,
            listen: run.listen,
            tls: run.listen_ssl_cert.zip(run.listen_ssl_key),
            form: match run.form {
                FormName::Received => Form::Received,
                FormName::Uncompressed => Form::Uncompressed,
            },
            server_id: run.server_id,
            semi_sync: run.semi_sync,
        };
        let running = Relaying::start(options, Box::new(complain)).map_err(|error| failed(&error))?;
        running.join();
        Ok(Exit::Trouble)
    }
}

impl Run {
    /// Option files first, then what was given here.
    fn connect(&self) -> Result<ConnectOptions, binlogz_source::Error> {
        let mut connect = ConnectOptions::new("binlogz relay");
        let files = option_files::OptionFiles {
            defaults_file: self.defaults_file.clone(),
            ..option_files::OptionFiles::default()
        };
        let defaults = files.read(&["client"])?;
        defaults.warnings.iter().for_each(|warning| warn(warning));
        // Other programs' options may stand in the group too.
        defaults.apply(&mut connect)?;
        connect.set_url(&self.source)?;
        if let Some(mode) = &self.ssl_mode {
            connect.set("ssl-mode", Some(mode))?;
        }
        if self.ssl_ca.is_some() {
            connect.tls.ca.clone_from(&self.ssl_ca);
        }
        connect.get_server_public_key |= self.get_server_public_key;
        Ok(connect)
    }
}
