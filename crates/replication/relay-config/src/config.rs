//! The contents of `relay.toml`. Unknown keys are errors, with their line; missing keys have the defaults
//! that the commented configuration of `relay init` shows.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use binlogz_archive::storage::{in_object_storage, refuse_addresses};
use binlogz_encryption::Keyring;
use binlogz_figures::at_line;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::{ConfigError, Result};
use crate::form_name::{FormName, StoreName};
use crate::log_levels::{self, LogFormat, LogSettings};

/// The port next to MySQL's, on the loopback interface only.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3307);
/// A configuration is read whole.
const SIZE_MAX: u64 = 1 << 20;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayConfig {
    pub(crate) source: SourceConfigs,
    pub(crate) store: StoreConfig,
    /// `[listen]`.
    #[serde(default)]
    pub listen: ListenConfig,
    pub(crate) archive: Option<ArchiveConfig>,
    /// `[http]`; without it, status and metrics are served nowhere.
    pub http: Option<HttpConfig>,
    #[serde(default)]
    pub(crate) limits: RateConfig,
    /// `[log]`.
    #[serde(default)]
    pub log: LogConfig,
    #[serde(default, rename = "account")]
    pub(crate) accounts: Vec<AccountConfig>,
}

/// `[source]`, or `[[source]]` tables with names.
#[derive(Debug)]
pub(crate) enum SourceConfigs {
    One(Box<SourceConfig>),
    Several(Vec<SourceConfig>),
}

impl<'de> Deserialize<'de> for SourceConfigs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct OneOrSeveral;
        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = SourceConfigs;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a table [source], or tables [[source]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<SourceConfigs, A::Error> {
                SourceConfig::deserialize(MapAccessDeserializer::new(map))
                    .map(|source| SourceConfigs::One(Box::new(source)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, tables: A) -> std::result::Result<SourceConfigs, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(tables)).map(SourceConfigs::Several)
            }
        }
        deserializer.deserialize_any(OneOrSeveral)
    }
}

impl SourceConfigs {
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut SourceConfig> {
        match self {
            SourceConfigs::One(source) => std::slice::from_mut(&mut **source).iter_mut(),
            SourceConfigs::Several(sources) => sources.iter_mut(),
        }
    }
}

/// `[source]`: whom the relay follows.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// This key and the next four: for `[[source]]` alone.
    pub(crate) name: Option<String>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) form: Option<FormName>,
    pub(crate) store: Option<StoreConfig>,
    pub(crate) archive: Option<ArchiveConfig>,
    /// The servers of the source, as `mysql://[USER@]HOST[:PORT]` or `[USER@]unix:/PATH`. The first that can be reached is followed.
    #[serde(default)]
    pub servers: Vec<String>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) password_env: Option<String>,
    /// An option file of MySQL's to read first, with a group `client`.
    pub defaults_file: Option<PathBuf>,
    /// disabled, preferred, required, verify_ca or verify_identity.
    pub ssl_mode: Option<String>,
    /// The certificates to trust.
    pub ssl_ca: Option<PathBuf>,
    pub(crate) ssl_cert: Option<PathBuf>,
    pub(crate) ssl_key: Option<PathBuf>,
    pub(crate) server_public_key: Option<PathBuf>,
    /// Ask the source for its public key where the connection is not encrypted.
    #[serde(default)]
    pub get_server_public_key: bool,
    /// Compress the connection: zlib, zstd, uncompressed, or a list.
    pub compression_algorithms: Option<String>,
    /// The level for zstd, 1 to 22.
    pub zstd_compression_level: Option<u8>,
    pub(crate) start: Option<String>,
    /// The relay's server id; by default one made of its uuid.
    pub server_id: Option<u32>,
    /// Acknowledge transactions, each once it is durable here.
    #[serde(default)]
    pub semi_sync: bool,
    #[serde(default)]
    pub(crate) wait_for_replicas: usize,
    pub(crate) wait_timeout_ms: Option<u64>,
    pub(crate) receive_rate: Option<String>,
    pub(crate) archive_rate: Option<String>,
}

/// `[limits]`: bytes a second of all sources together.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RateConfig {
    pub(crate) receive_rate: Option<String>,
    pub(crate) archive_rate: Option<String>,
}

/// `[store]`: the kept logs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// The folder for the log; created if missing.
    pub dir: Option<PathBuf>,
    /// How the log is stored.
    #[serde(default)]
    pub store: StoreName,
    /// The level at which plain transactions are compressed, 1 to 22.
    pub level: Option<i64>,
    /// Of a new log: where a file of the uncompressed form ends, as `1G`.
    pub uncompressed_file_size: Option<String>,
    pub(crate) sync_binlog: Option<u32>,
    pub(crate) sync_interval_ms: Option<u64>,
    /// Begin a new log with these files from a backup of the source's log.
    #[serde(default)]
    pub seed: Vec<PathBuf>,
    pub(crate) keyring: Option<PathBuf>,
    #[serde(default)]
    pub(crate) encrypt: bool,
    pub(crate) encrypt_key_of: Option<String>,
    pub(crate) max_age: Option<String>,
    pub(crate) max_bytes: Option<String>,
    #[serde(default)]
    pub(crate) purge_needed: bool,
    pub(crate) scrub_rate: Option<String>,
}

/// `[listen]`: where replicas connect.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenConfig {
    /// The address and port.
    pub address: SocketAddr,
    /// The form for clients that name no file.
    pub form: FormName,
    /// Let replicas acknowledge what they are sent.
    pub semi_sync: bool,
    /// Offer TLS.
    pub tls: bool,
    /// The certificate that replicas are shown; by default one that the relay makes itself.
    pub ssl_cert: Option<PathBuf>,
    /// The key of that certificate.
    pub ssl_key: Option<PathBuf>,
    pub(crate) require_tls: bool,
    pub(crate) native_password: bool,
    /// Forward statements that the relay does not answer itself to the source.
    pub forward_sql: bool,
    pub(crate) forward_wait_ms: Option<u64>,
    pub(crate) read_only: ReadOnlyName,
    pub(crate) connections_max: Option<usize>,
    pub(crate) connections_per_address_max: Option<usize>,
    pub(crate) logging_in_max: Option<usize>,
}

/// Whose `read_only` clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReadOnlyName {
    /// The relay's, which is ON.
    Own,
    Source,
}

impl Default for ListenConfig {
    fn default() -> Self {
        ListenConfig {
            address: DEFAULT_LISTEN,
            form: FormName::default(),
            semi_sync: false,
            tls: true,
            ssl_cert: None,
            ssl_key: None,
            require_tls: false,
            native_password: true,
            forward_sql: false,
            forward_wait_ms: None,
            read_only: ReadOnlyName::Own,
            connections_max: None,
            connections_per_address_max: None,
            logging_in_max: None,
        }
    }
}

/// `[archive]`: where closed files go.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArchiveConfig {
    pub(crate) to: PathBuf,
    #[serde(default)]
    pub(crate) plaintext: bool,
    #[serde(default)]
    pub(crate) tables: Vec<String>,
    #[serde(default)]
    pub(crate) ignore_tables: Vec<String>,
    pub(crate) bring_back_max_bytes: Option<String>,
    pub(crate) free_space_min: Option<String>,
    pub(crate) overdue: Option<String>,
    pub(crate) check: Option<String>,
}

/// `[http]`: where status and metrics can be asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// The address and port.
    pub address: SocketAddr,
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
}

/// `[log]`: messages on standard error.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    pub(crate) format: LogFormat,
    pub(crate) level: Option<String>,
}

impl LogConfig {
    /// The format and levels that are meant.
    ///
    /// # Errors
    ///
    /// A level that is none.
    pub fn settings(&self) -> Result<LogSettings> {
        let levels = self
            .level
            .as_deref()
            .map_or_else(|| Ok(log_levels::default_levels()), log_levels::levels)
            .map_err(|error| ConfigError::of(&"log", format_args!("level: {error}")))?;
        Ok(LogSettings { format: self.format, levels })
    }
}

/// `[[account]]`: who may log in to the relay.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountConfig {
    pub(crate) user: String,
    pub(crate) source: Option<String>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) password_env: Option<String>,
    pub(crate) form: Option<FormName>,
    #[serde(default)]
    pub(crate) connections_max: usize,
    #[serde(default)]
    pub(crate) from: Vec<String>,
    #[serde(default)]
    pub(crate) require_tls: bool,
    #[serde(default)]
    pub(crate) admin: bool,
    #[serde(default)]
    pub(crate) older_collations: bool,
    pub(crate) reads: Option<String>,
    pub(crate) row_metadata: Option<String>,
    #[serde(default)]
    pub(crate) tables: Vec<String>,
    #[serde(default)]
    pub(crate) ignore_tables: Vec<String>,
    pub(crate) exits: Option<PathBuf>,
    pub(crate) source_user: Option<String>,
    pub(crate) source_password_file: Option<PathBuf>,
    pub(crate) source_password_env: Option<String>,
}

impl HttpConfig {
    /// At this address, without names that requests may ask for.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        HttpConfig { address, hosts: Vec::new() }
    }
}

impl RelayConfig {
    /// The configuration of a relay that follows one source; everything else has its default.
    #[must_use]
    pub fn of_one(source: SourceConfig, store: StoreConfig) -> Self {
        RelayConfig {
            source: SourceConfigs::One(Box::new(source)),
            store,
            listen: ListenConfig::default(),
            archive: None,
            http: None,
            limits: RateConfig::default(),
            log: LogConfig::default(),
            accounts: Vec::new(),
        }
    }

    /// The folder of the relay.
    ///
    /// # Errors
    ///
    /// The configuration names none.
    pub fn directory(&self) -> Result<PathBuf> {
        self.store.dir.clone().ok_or_else(|| ConfigError::of(&"store", "dir is missing"))
    }

    /// The names of profiles that the accounts of a source read as.
    pub fn profile_names<'a>(&'a self, source: &'a str) -> impl Iterator<Item = &'a str> {
        let is_of_source =
            move |account: &&AccountConfig| account.source.as_deref().is_none_or(|name| name == source);
        self.accounts.iter().filter(is_of_source).filter_map(|account| account.reads.as_deref())
    }

    /// The folder of a source's log, and the keyring with its keys. The only source of a relay has no name.
    ///
    /// # Errors
    ///
    /// The configuration names no folder, or a keyring that can't be read.
    pub fn log_of(&self, source: &str) -> Result<(PathBuf, Option<Keyring>)> {
        let own = match &self.source {
            SourceConfigs::One(_) => return Ok((self.directory()?, self.store.keyring()?)),
            SourceConfigs::Several(sources) => sources
                .iter()
                .find(|one| one.name.as_deref() == Some(source))
                .and_then(|one| one.store.as_ref()),
        };
        let folder = match own.and_then(|store| store.dir.clone()) {
            Some(folder) => folder,
            None => self.directory()?.join(source),
        };
        Ok((folder, own.unwrap_or(&self.store).keyring()?))
    }

    /// Reads a file. Paths in it become relative to the current folder.
    ///
    /// # Errors
    ///
    /// It can't be read, or is none; the error begins with the file, and its line.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => ConfigError::of(
                &path.display(),
                format_args!("{error}; `binlogz relay init` writes one, --config names another"),
            ),
            _ => ConfigError::of(&path.display(), error),
        };
        if std::fs::metadata(path).map_err(failed)?.len() > SIZE_MAX {
            return Err(ConfigError::of(&path.display(), "is larger than 1 MiB, expected a configuration"));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let mut config =
            RelayConfig::parse(&text).map_err(|error| ConfigError(format!("{} {error}", path.display())))?;
        config.paths_from(path.parent().unwrap_or(Path::new("")));
        Ok(config)
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            let error = at_line(text, error.span(), error.message());
            let hint = match error.contains("unknown field `password`") {
                true => "; a password stands in a password_file or in the environment (password_env)",
                false => "",
            };
            error + hint
        })
    }

    /// Paths in the file are relative to the file's own folder.
    fn paths_from(&mut self, folder: &Path) {
        let listen = [&mut self.listen.ssl_cert, &mut self.listen.ssl_key];
        let accounts = self.accounts.iter_mut();
        let accounts = accounts.flat_map(|account| {
            [&mut account.password_file, &mut account.source_password_file, &mut account.exits]
        });
        for path in listen.into_iter().chain(accounts).flatten() {
            *path = folder.join(&*path);
        }
        for source in self.source.iter_mut() {
            source.paths_from(folder);
        }
        self.store.paths_from(folder);
        self.archive.iter_mut().for_each(|archive| archive.path_from(folder));
    }
}

impl SourceConfig {
    fn paths_from(&mut self, folder: &Path) {
        let paths = [
            &mut self.password_file,
            &mut self.defaults_file,
            &mut self.ssl_ca,
            &mut self.ssl_cert,
            &mut self.ssl_key,
            &mut self.server_public_key,
        ];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self.store.iter_mut().for_each(|store| store.paths_from(folder));
        self.archive.iter_mut().for_each(|archive| archive.path_from(folder));
    }
}

impl StoreConfig {
    fn paths_from(&mut self, folder: &Path) {
        for path in self.seed.iter_mut().chain(&mut self.keyring).chain(&mut self.dir) {
            *path = folder.join(&*path);
        }
    }
}

impl ArchiveConfig {
    fn path_from(&mut self, folder: &Path) {
        // An address that is no place is refused later, as it stands here.
        let text = self.to.to_string_lossy();
        if in_object_storage(&self.to).is_none() && refuse_addresses(&text).is_ok() {
            self.to = folder.join(&self.to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_knows_is_an_error_with_its_line() {
        let minimal = "[source]\nservers = ['mysql://repl@db1']\n[store]\ndir = 'kept'\n";
        let config = RelayConfig::parse(minimal).unwrap();
        assert_eq!(config.listen.address, DEFAULT_LISTEN);
        for (added, said) in [
            ("[listen]\nadress = '127.0.0.1:1'\n", "line 6: unknown field `adress`"),
            ("[listen]\naddress = 'nowhere'\n", "line 6: invalid socket address syntax"),
            ("[[account]]\nuser = 'a'\npassword = 'x'\n", "line 7: unknown field `password`"),
            ("[[account]]\nform = 'shiny'\n", "line 6: unknown variant `shiny`"),
            ("[retentoin]\n", "line 5: unknown field `retentoin`"),
            ("[listen\n", "line 5: "),
        ] {
            let error = RelayConfig::parse(&format!("{minimal}{added}")).unwrap_err();
            assert!(error.starts_with(said), "{added:?}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        assert!(RelayConfig::parse("[store]\ndir='x'\n").unwrap_err().contains("missing field `source`"));
    }
    #[test]
    fn the_commented_configuration_has_the_defaults() {
        let config = RelayConfig::parse(crate::COMMENTED).unwrap();
        assert_eq!(format!("{:?}", config.listen), format!("{:?}", ListenConfig::default()));
        assert_eq!(config.log.settings(), LogConfig::default().settings());
        assert_eq!(config.directory(), Ok(PathBuf::from("data")));
    }
}
