//! `relay check-config`: reads a configuration and everything that it names, and changes nothing. `tried.rs` tries places and ports.

use std::io::{self, Write};
use std::path::PathBuf;

use binlogz_figures::counted;
use binlogz_relay::SourceOptions;
use clap::Args;

use super::{read, tried};
use crate::Exit;
use crate::failure::{CommandFailure, Result, warn};
use crate::terminal;

/// Check a configuration, with what it names: servers, passwords, certificates, archives, the HTTP port; and show what it
/// means
///
/// Each server of the sources is asked what it is, and whether the relay can follow it with its settings and the account's
/// rights. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckConfig {
    /// The configuration.
    #[arg(long, value_name = "FILE", default_value = "relay.toml")]
    config: PathBuf,
    /// Don't ask the servers: a service may start while its source is down
    #[arg(long)]
    offline: bool,
}

const EXAMPLES: &str = "Examples:
  binlogz relay check-config --config /etc/binlogz/relay.toml

Exit codes: 0 all is well, 1 a server can't be asked or followed, 2 the configuration is wrong.";

impl CheckConfig {
    pub(super) fn run(self) -> Result<Exit> {
        let name = self.config.display();
        let config = read(&self.config)?;
        let log = config.log.settings();
        let mut warnings = Vec::new();
        let options = log.and_then(|_| config.resolve(&mut warnings));
        warnings.iter().for_each(|warning| warn(warning));
        let options = options.map_err(|error| CommandFailure::of(&name, error))?;
        options.check().map_err(|error| CommandFailure::of(&name, error))?;
        let accounts: Vec<_> = options.accounts.iter().map(|account| account.user.as_str()).collect();
        let accounts = match (accounts.is_empty(), options.sources.as_slice()) {
            (true, [_]) => "the source's account".to_owned(),
            (true, _) => "the sources' accounts".to_owned(),
            (false, _) => accounts.join(", "),
        };
        let listen = options.listen;
        let said = match options.sources.as_slice() {
            [only] if only.name.is_empty() => {
                format!("{name}: {}, serves {accounts} on {listen}\n", does(only))
            }
            sources => {
                let each = sources.iter().map(|source| {
                    let own = source.listen.map_or(String::new(), |at| format!(", listens on {at}"));
                    format!("source {}: {}{own}\n", source.name, does(source))
                });
                let sources = counted(sources.len() as u64, "sources");
                format!("{name}: {sources}, serves {accounts} on {listen}\n{}", each.collect::<String>())
            }
        };
        let (asked, is_well) = match self.offline {
            true => (Vec::new(), true),
            false => tried::asked(&options),
        };
        let tried = tried::tried(&options)?;
        let said = asked.into_iter().chain(tried).fold(said, |said, line| said + &line + "\n");
        io::stdout()
            .write_all(terminal::within_width(&said).as_bytes())
            .map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        Ok(if is_well { Exit::Done } else { Exit::Negative })
    }
}

/// The relay's duties for a source.
fn does(source: &SourceOptions) -> String {
    let servers: Vec<_> = source.servers.iter().map(|server| server.server()).collect();
    format!("follows {}, keeps its log in {}", servers.join(" or "), source.directory.display())
}
