//! `relay run`: receives and serves until stopped.

use binlogz_cli_common::malloc::keep_small;
use std::net::SocketAddr;
use std::path::PathBuf;

use binlogz_relay::Relay;
use binlogz_relay_config::{FormName, HttpConfig, RelayConfig, SourceConfig, StoreConfig, StoreName};
use clap::Args;

use super::listener_tls::ListenerTlsArgs;
use super::{of_config, orders, read};
use crate::Exit;
use crate::failure::{Result, warn};
use crate::log;

const SOURCE: &str = "The source: mysql://[USER@]HOST[:PORT] or [USER@]unix:/PATH. Its password comes from the option file or MYSQL_PWD. \
    Replicas log in to the relay with the same account.";

/// Receive and serve until stopped.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RelayRun {
    /// The configuration (see relay init). The other options start a relay without one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "listener_tls"])]
    config: Option<PathBuf>,
    #[command(flatten)]
    quick: QuickStart,
    // Beside the others: clap leaves a group empty that another one is flattened into.
    #[command(flatten)]
    listen_tls: ListenerTlsArgs,
}

const EXAMPLES: &str = "Examples:
  binlogz relay run --source mysql://repl@db1 --dir relay
  binlogz relay run --source mysql://repl@db1 --dir relay --listen 0.0.0.0:3307 --http 127.0.0.1:3308
  binlogz relay run --config /etc/binlogz/relay.toml";

/// The options of a quick start.
#[derive(Debug, Args)]
#[group(id = "quick", multiple = true)]
struct QuickStart {
    // As an attribute: rustdoc takes brackets for links.
    #[arg(long, value_name = "URL", help = SOURCE, required_unless_present = "config")]
    source: Option<String>,
    /// The folder for the log; created if missing.
    #[arg(long, value_name = "DIR", required_unless_present = "config")]
    dir: Option<PathBuf>,
    /// Where replicas connect; by default 127.0.0.1:3307.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Where status and metrics are served over HTTP; by default nowhere.
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
    /// The form for clients that name no file; by default auto.
    #[arg(long, value_enum)]
    form: Option<FormName>,
    /// How the log is stored; by default as received. In either case a request by the source's file name is served byte for
    /// byte as the source has it.
    #[arg(long, value_enum)]
    store: Option<StoreName>,
    /// The level at which plain transactions are compressed for --store compressed, 1 to 22; by default 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=22), requires = "store", hide_short_help = true)]
    level: Option<i64>,
    /// Of a new log: where a file of the uncompressed form ends; by default 1G.
    #[arg(long, value_name = "SIZE", hide = true)]
    uncompressed_file_size: Option<String>,
    /// The relay's server id; by default one made of its uuid, which is kept in DIR.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    server_id: Option<u32>,
    /// Acknowledge transactions to a semi-synchronous source, each once it is durable here.
    #[arg(long, hide_short_help = true)]
    semi_sync: bool,
    /// Let replicas acknowledge what they are sent (semi-synchronous replication).
    #[arg(long, hide_short_help = true)]
    listen_semi_sync: bool,
    /// Forward what the relay does not answer itself, such as SHOW CREATE TABLE or SELECT of a table, to the source, over a
    /// connection of the client's own account there.
    #[arg(long)]
    forward_sql: bool,
    /// Begin a new log with these files from a backup of the source's log.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    seed: Vec<PathBuf>,
    /// An option file to read, in MySQL's format, with a group client: user, password, ssl-mode, …
    #[arg(long, value_name = "FILE")]
    defaults_file: Option<PathBuf>,
    /// disabled, preferred, required, verify_ca or verify_identity.
    #[arg(long, value_name = "MODE", hide_short_help = true)]
    ssl_mode: Option<String>,
    /// The certificates to trust.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    ssl_ca: Option<PathBuf>,
    /// Ask the source for its public key where the connection is not encrypted.
    #[arg(long, hide_short_help = true)]
    get_server_public_key: bool,
    /// Compress the connection to the source: zlib, zstd, or a list. With uncompressed at its end, a source that has neither is
    /// followed without.
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    compression_algorithms: Option<String>,
    /// The level for zstd, 1 to 22; by default 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=22), requires = "compression_algorithms", hide_short_help = true)]
    zstd_compression_level: Option<u8>,
}

impl RelayRun {
    pub(super) fn run(self) -> Result<Exit> {
        keep_small();
        let config = match &self.config {
            Some(path) => read(path)?,
            None => self.quick.config(self.listen_tls),
        };
        let settings = config.log.settings().map_err(of_config)?;
        let levels = log::install(&settings)?;
        let mut warnings = Vec::new();
        let resolved = config.resolve(&mut warnings);
        warnings.iter().for_each(|warning| warn(warning));
        let mut options = resolved.map_err(of_config)?;
        options.limits = options.limits.limited_by_descriptors(options.sources.len());
        let directory = options.directory.clone();
        let running = match Relay::start(options) {
            Ok(running) => running,
            Err(error) => {
                tracing::error!("{error}");
                return Ok(Exit::Trouble);
            }
        };
        if let Some(path) = self.config {
            orders::obey(&directory, path, &running.relay(), settings, levels);
        }
        // Without systemd there is nothing to notify.
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
        running.join();
        Ok(Exit::Trouble)
    }
}

impl QuickStart {
    /// This relay's configuration, as `relay.toml` would have it.
    fn config(self, listen_tls: ListenerTlsArgs) -> RelayConfig {
        let mut source = SourceConfig::default();
        source.servers.extend(self.source);
        source.defaults_file = self.defaults_file;
        source.ssl_mode = self.ssl_mode;
        source.ssl_ca = self.ssl_ca;
        source.get_server_public_key = self.get_server_public_key;
        source.compression_algorithms = self.compression_algorithms;
        source.zstd_compression_level = self.zstd_compression_level;
        source.server_id = self.server_id;
        source.semi_sync = self.semi_sync;
        let mut store = StoreConfig::default();
        store.dir = self.dir;
        store.store = self.store.unwrap_or_default();
        store.level = self.level;
        store.uncompressed_file_size = self.uncompressed_file_size;
        store.seed = self.seed;
        let mut config = RelayConfig::of_one(source, store);
        config.listen.address = self.listen.unwrap_or(config.listen.address);
        config.listen.form = self.form.unwrap_or_default();
        config.listen.semi_sync = self.listen_semi_sync;
        config.listen.forward_sql = self.forward_sql;
        config.listen.tls = !listen_tls.no_listen_tls;
        config.listen.ssl_cert = listen_tls.listen_ssl_cert;
        config.listen.ssl_key = listen_tls.listen_ssl_key;
        config.http = self.http.map(HttpConfig::at);
        config
    }
}
