//! The contents of `relay.toml`. Unknown keys are errors, with their line; missing keys have the defaults
//! that the commented configuration of `relay init` shows.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use binlogz_archive::storage::{in_object_storage, refuse_addresses};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{FormName, StoreName};
use crate::failure::{CommandFailure, Result};
use crate::log;
use binlogz_fleet::targets::toml_error;

/// The port next to MySQL's, on the loopback interface only.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3307);
/// A configuration is read whole.
const SIZE_MAX: u64 = 1 << 20;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    pub(super) source: Sources,
    pub(super) store: Store,
    #[serde(default)]
    pub(super) listen: Listen,
    pub(super) archive: Option<Archive>,
    pub(super) http: Option<Http>,
    #[serde(default)]
    pub(super) limits: RateLimits,
    #[serde(default)]
    pub(super) log: Log,
    #[serde(default, rename = "account")]
    pub(super) accounts: Vec<Account>,
}

/// `[source]`, or `[[source]]` tables with names.
#[derive(Debug)]
pub(super) enum Sources {
    One(Box<Source>),
    Several(Vec<Source>),
}

impl<'de> Deserialize<'de> for Sources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct OneOrSeveral;
        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = Sources;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a table [source], or tables [[source]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Sources, A::Error> {
                Source::deserialize(MapAccessDeserializer::new(map))
                    .map(|source| Sources::One(Box::new(source)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, tables: A) -> std::result::Result<Sources, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(tables)).map(Sources::Several)
            }
        }
        deserializer.deserialize_any(OneOrSeveral)
    }
}

impl Sources {
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        match self {
            Sources::One(source) => std::slice::from_mut(&mut **source).iter_mut(),
            Sources::Several(sources) => sources.iter_mut(),
        }
    }
}

/// `[source]`: whom the relay follows.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    /// This key and the next four: for `[[source]]` alone.
    pub(super) name: Option<String>,
    pub(super) listen: Option<SocketAddr>,
    pub(super) form: Option<FormName>,
    pub(super) store: Option<Store>,
    pub(super) archive: Option<Archive>,
    #[serde(default)]
    pub(super) servers: Vec<String>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) password_env: Option<String>,
    pub(super) defaults_file: Option<PathBuf>,
    pub(super) ssl_mode: Option<String>,
    pub(super) ssl_ca: Option<PathBuf>,
    pub(super) ssl_cert: Option<PathBuf>,
    pub(super) ssl_key: Option<PathBuf>,
    pub(super) server_public_key: Option<PathBuf>,
    #[serde(default)]
    pub(super) get_server_public_key: bool,
    pub(super) compression_algorithms: Option<String>,
    pub(super) zstd_compression_level: Option<u8>,
    pub(super) start: Option<String>,
    pub(super) server_id: Option<u32>,
    #[serde(default)]
    pub(super) semi_sync: bool,
    #[serde(default)]
    pub(super) wait_for_replicas: usize,
    pub(super) wait_timeout_ms: Option<u64>,
    pub(super) receive_rate: Option<String>,
    pub(super) archive_rate: Option<String>,
}

/// `[limits]`: bytes a second of all sources together.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RateLimits {
    pub(super) receive_rate: Option<String>,
    pub(super) archive_rate: Option<String>,
}

/// `[store]`: the kept logs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Store {
    pub(super) dir: Option<PathBuf>,
    #[serde(default)]
    pub(super) store: StoreName,
    pub(super) level: Option<i64>,
    pub(super) uncompressed_file_size: Option<String>,
    pub(super) sync_binlog: Option<u32>,
    pub(super) sync_interval_ms: Option<u64>,
    #[serde(default)]
    pub(super) seed: Vec<PathBuf>,
    pub(super) keyring: Option<PathBuf>,
    #[serde(default)]
    pub(super) encrypt: bool,
    pub(super) encrypt_key_of: Option<String>,
    pub(super) max_age: Option<String>,
    pub(super) max_bytes: Option<String>,
    #[serde(default)]
    pub(super) purge_needed: bool,
    pub(super) scrub_rate: Option<String>,
}

/// `[listen]`: where replicas connect.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Listen {
    pub(super) address: SocketAddr,
    pub(super) form: FormName,
    pub(super) semi_sync: bool,
    pub(super) tls: bool,
    pub(super) ssl_cert: Option<PathBuf>,
    pub(super) ssl_key: Option<PathBuf>,
    pub(super) require_tls: bool,
    pub(super) native_password: bool,
    pub(super) forward_sql: bool,
    pub(super) forward_wait_ms: Option<u64>,
    pub(super) read_only: ReadOnlyName,
    pub(super) connections_max: Option<usize>,
    pub(super) connections_per_address_max: Option<usize>,
    pub(super) logging_in_max: Option<usize>,
}

/// Whose `read_only` clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReadOnlyName {
    /// The relay's, which is ON.
    Own,
    Source,
}

impl Default for Listen {
    fn default() -> Self {
        Listen {
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
pub(super) struct Archive {
    pub(super) to: PathBuf,
    #[serde(default)]
    pub(super) plaintext: bool,
    pub(super) bring_back_max_bytes: Option<String>,
    pub(super) free_space_min: Option<String>,
    pub(super) overdue: Option<String>,
    pub(super) check: Option<String>,
}

/// `[http]`: where status and metrics can be asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Http {
    pub(super) address: SocketAddr,
    #[serde(default)]
    pub(super) hosts: Vec<String>,
}

/// `[log]`: messages on standard error.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Log {
    pub(super) format: log::LogFormat,
    pub(super) level: Option<String>,
}

impl Log {
    pub(super) fn settings(&self) -> Result<log::LogSettings> {
        let levels = self
            .level
            .as_deref()
            .map_or_else(|| Ok(log::default_levels()), log::levels)
            .map_err(|error| CommandFailure::of(&"log", format_args!("level: {error}")))?;
        Ok(log::LogSettings { format: self.format, levels })
    }
}

/// `[[account]]`: who may log in to the relay.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    pub(super) user: String,
    pub(super) source: Option<String>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) password_env: Option<String>,
    pub(super) form: Option<FormName>,
    #[serde(default)]
    pub(super) connections_max: usize,
    #[serde(default)]
    pub(super) from: Vec<String>,
    #[serde(default)]
    pub(super) require_tls: bool,
    #[serde(default)]
    pub(super) admin: bool,
    #[serde(default)]
    pub(super) older_collations: bool,
    pub(super) reads: Option<String>,
    pub(super) row_metadata: Option<String>,
    #[serde(default)]
    pub(super) tables: Vec<String>,
    #[serde(default)]
    pub(super) ignore_tables: Vec<String>,
    pub(super) source_user: Option<String>,
    pub(super) source_password_file: Option<PathBuf>,
    pub(super) source_password_env: Option<String>,
}

impl Config {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => CommandFailure::of(
                &path.display(),
                format_args!("{error}; `binlogz relay init` writes one, --config names another"),
            ),
            _ => CommandFailure::of(&path.display(), error),
        };
        if std::fs::metadata(path).map_err(failed)?.len() > SIZE_MAX {
            return Err(CommandFailure::of(
                &path.display(),
                "is larger than 1 MiB, expected a configuration",
            ));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let mut config = Config::parse(&text)
            .map_err(|error| CommandFailure::Line(format!("{} {error}", path.display())))?;
        config.paths_from(path.parent().unwrap_or(Path::new("")));
        Ok(config)
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            let error = toml_error(text, &error);
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
        let accounts =
            accounts.flat_map(|account| [&mut account.password_file, &mut account.source_password_file]);
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

impl Source {
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

impl Store {
    fn paths_from(&mut self, folder: &Path) {
        for path in self.seed.iter_mut().chain(&mut self.keyring).chain(&mut self.dir) {
            *path = folder.join(&*path);
        }
    }
}

impl Archive {
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
        let config = Config::parse(minimal).unwrap();
        assert_eq!(config.listen.address, DEFAULT_LISTEN);
        for (added, said) in [
            ("[listen]\nadress = '127.0.0.1:1'\n", "line 6: unknown field `adress`"),
            ("[listen]\naddress = 'nowhere'\n", "line 6: invalid socket address syntax"),
            ("[[account]]\nuser = 'a'\npassword = 'x'\n", "line 7: unknown field `password`"),
            ("[[account]]\nform = 'shiny'\n", "line 6: unknown variant `shiny`"),
            ("[retentoin]\n", "line 5: unknown field `retentoin`"),
            ("[listen\n", "line 5: "),
        ] {
            let error = Config::parse(&format!("{minimal}{added}")).unwrap_err();
            assert!(error.starts_with(said), "{added:?}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        assert!(Config::parse("[store]\ndir='x'\n").unwrap_err().contains("missing field `source`"));
    }
}
