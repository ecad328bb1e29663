//! Turns a configuration into the relay's options: reads option files, passwords and certificates.

use std::fmt::Display;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use binlogz_archive::storage::refuse_addresses;
use binlogz_encryption::{Keyring, MasterKey};
use binlogz_exits::ExitPolicy;
use binlogz_figures::{byte_size, duration};
use binlogz_payload::CompressionLevel;
use binlogz_relay::{
    AccountOptions, ArchiveOptions, BringBack, ByteRates, Form, FormPolicy, ForwardOptions, HttpOptions,
    Limits, ListenTls, ReaderProfile, RelayOptions, Retention, RowMetadata, ScrubOptions, SourceOptions,
    StartAt, StoredForm, SyncPolicy, TableChoice, WaitForReplicas,
};
use binlogz_relay_forms::MaskedForm;
use binlogz_source::{ConnectOptions, PasswordOption, option_files, secret};

use crate::config::{
    AccountConfig, ArchiveConfig, HttpConfig, ListenConfig, ReadOnlyName, RelayConfig, SourceConfig,
    SourceConfigs, StoreConfig,
};
use crate::error::{ConfigError, Result};
use crate::form_name::{FormName, StoreName};

/// The relay's name for itself at servers.
const PROGRAM_NAME: &str = "binlogz relay";

/// The length of a schema's name, since it can be given as one.
const NAME_LENGTH_MAX: usize = 64;

impl RelayConfig {
    /// The relay's options: what the configuration says, with the passwords, option files and keyrings that it names.
    ///
    /// Warnings of option files are added to `warnings`, also where an error follows.
    ///
    /// # Errors
    ///
    /// A value that is not what its key expects, or a file that can't be read.
    pub fn resolve(self, warnings: &mut Vec<String>) -> Result<RelayOptions> {
        let accounts = self.accounts.iter().map(AccountConfig::resolve).collect::<Result<Vec<_>>>()?;
        let RelayConfig { source, store, listen, archive, http, limits, .. } = self;
        let rates = rates("limits", limits.receive_rate.as_deref(), limits.archive_rate.as_deref())?;
        let directory = store.dir.clone().ok_or_else(|| ConfigError::of(&"store", "dir is missing"))?;
        let sources = match source {
            SourceConfigs::One(source) => vec![source.alone(store, archive, listen.form, warnings)?],
            SourceConfigs::Several(sources) => {
                if !store.seed.is_empty() {
                    let expected = "seed: expected in the [source.store] of one source";
                    return Err(ConfigError::of(&"store", expected));
                }
                let mut resolved = Vec::with_capacity(sources.len());
                for source in sources {
                    resolved.push(source.among(
                        &directory,
                        &store,
                        archive.as_ref(),
                        listen.form,
                        warnings,
                    )?);
                }
                resolved
            }
        };
        Ok(RelayOptions {
            sources,
            directory,
            accounts,
            limits: listen.limits(),
            listen: listen.address,
            listen_tls: listen.tls()?,
            require_tls: listen.require_tls,
            http: http.map(HttpConfig::resolve).transpose()?,
            listen_native_password: listen.native_password,
            listen_semi_sync: listen.semi_sync,
            forward: listen.forward()?,
            rates,
        })
    }
}

impl SourceConfig {
    /// The only source of a relay, which has no name.
    fn alone(
        self,
        store: StoreConfig,
        archive: Option<ArchiveConfig>,
        form: FormName,
        warnings: &mut Vec<String>,
    ) -> Result<SourceOptions> {
        let own = [
            ("name", self.name.is_some()),
            ("listen", self.listen.is_some()),
            ("form", self.form.is_some()),
            ("store", self.store.is_some()),
            ("archive", self.archive.is_some()),
        ];
        if let Some((key, _)) = own.iter().find(|(_, is_given)| *is_given) {
            let expected =
                format_args!("{key}: expected in a [[source]] table, of which there can be several");
            return Err(ConfigError::of(&"source", expected));
        }
        self.resolve(store, archive, form, warnings)
    }

    /// One of several. Unless it has its own, its store and archive are those of the whole file, in folders of its name.
    fn among(
        mut self,
        directory: &Path,
        common: &StoreConfig,
        archive: Option<&ArchiveConfig>,
        form: FormName,
        warnings: &mut Vec<String>,
    ) -> Result<SourceOptions> {
        let name = self.name.clone().ok_or_else(|| ConfigError::of(&"[[source]]", "a source has no name"))?;
        if !is_source_name(&name) {
            let expected = "expected 1 to 64 lower-case letters, digits, - and _";
            return Err(ConfigError::of(&"[[source]]", format_args!("name {name:?}, {expected}")));
        }
        let mut store = self.store.take().unwrap_or_else(|| StoreConfig { dir: None, ..common.clone() });
        store.dir.get_or_insert_with(|| directory.join(&name));
        let common = archive.map(|archive| ArchiveConfig { to: archive.to.join(&name), ..archive.clone() });
        let archive = self.archive.take().or(common);
        let form = self.form.unwrap_or(form);
        self.resolve(store, archive, form, warnings)
            .map_err(|error| ConfigError::of(&format_args!("source {name}"), error))
    }

    fn resolve(
        self,
        store: StoreConfig,
        archive: Option<ArchiveConfig>,
        form: FormName,
        warnings: &mut Vec<String>,
    ) -> Result<SourceOptions> {
        let keyring = store.keyring()?;
        Ok(SourceOptions {
            servers: self.connections(warnings)?,
            start: self.start()?,
            encrypt: store.key(keyring.as_ref())?,
            keyring: keyring.map(Arc::new),
            sync: store.sync(),
            seed: store.seed.clone(),
            retention: store.retention()?,
            scrub: store.scrub()?,
            archive: archive.map(ArchiveConfig::resolve).transpose()?,
            closed: None,
            storing: store.storing()?,
            uncompressed_file_size: store.uncompressed_file_size()?,
            directory: store.dir.unwrap_or_default(),
            form: form.form(),
            server_id: self.server_id.filter(|id| *id > 0),
            semi_sync: self.semi_sync,
            wait_for_replicas: self.wait_for_replicas(),
            rates: rates("source", self.receive_rate.as_deref(), self.archive_rate.as_deref())?,
            listen: self.listen,
            name: self.name.unwrap_or_default(),
        })
    }
}

fn is_source_name(name: &str) -> bool {
    let is_fit = name.bytes().all(|letter| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
    is_fit && !name.is_empty() && name.len() <= NAME_LENGTH_MAX
}

/// The rates that a section names.
fn rates(section: &'static str, receive: Option<&str>, archive: Option<&str>) -> Result<ByteRates> {
    Ok(ByteRates {
        receive: rate(section, "receive_rate", receive)?,
        archive: rate(section, "archive_rate", archive)?,
    })
}

fn rate(section: &'static str, key: &'static str, text: Option<&str>) -> Result<Option<NonZeroU64>> {
    let Some(text) = text else { return Ok(None) };
    let rate = byte_size(text).map_err(refused(section, key))?;
    if rate < ByteRates::MIN {
        let expected = format!("{text:?}, expected at least {}K a second", ByteRates::MIN >> 10);
        return Err(refused(section, key)(expected));
    }
    Ok(NonZeroU64::new(rate))
}

/// The error of a key's value.
fn refused<E: Display>(section: &'static str, key: &'static str) -> impl Fn(E) -> ConfigError {
    move |error| ConfigError::of(&section, format_args!("{key}: {error}"))
}

impl HttpConfig {
    fn resolve(self) -> Result<HttpOptions> {
        if let Some(host) =
            self.hosts.iter().find(|host| host.is_empty() || host.contains([':', '/', ' ', '*']))
        {
            let expected = format_args!("hosts: {host:?}, expected a host name without scheme and port");
            return Err(ConfigError::of(&"http", expected));
        }
        Ok(HttpOptions { address: self.address, hosts: self.hosts })
    }
}

impl StoreConfig {
    fn uncompressed_file_size(&self) -> Result<u64> {
        let size = self.uncompressed_file_size.as_deref().map(byte_size).transpose();
        let size =
            size.map_err(|error| ConfigError::of(&"store", format_args!("uncompressed_file_size: {error}")))?;
        match size.unwrap_or(SourceOptions::UNCOMPRESSED_FILE_SIZE) {
            size @ 1..=SourceOptions::UNCOMPRESSED_FILE_SIZE => Ok(size),
            _ => Err(ConfigError::of(&"store", "uncompressed_file_size: expected 1 to 1G")),
        }
    }

    fn storing(&self) -> Result<StoredForm> {
        let level = self.level.map_or(Some(CompressionLevel::DEFAULT), CompressionLevel::new);
        let level = level.ok_or_else(|| ConfigError::of(&"store", "level: expected 1 to 22"))?;
        Ok(match self.store {
            StoreName::Received => StoredForm::Received,
            StoreName::Compressed => StoredForm::Compressed(level),
        })
    }
}

/// The error of a source.
fn of_source(error: impl Display) -> ConfigError {
    ConfigError::of(&"source", error)
}

impl SourceConfig {
    /// Option files first, then the options given here.
    fn connections(&self, warnings: &mut Vec<String>) -> Result<Vec<ConnectOptions>> {
        if self.servers.is_empty() {
            return Err(of_source(
                "servers is empty, expected at least one mysql://[USER@]HOST[:PORT] or [USER@]unix:/PATH",
            ));
        }
        let mut base = ConnectOptions::new(PROGRAM_NAME);
        let files = option_files::OptionFiles {
            defaults_file: self.defaults_file.clone(),
            ..option_files::OptionFiles::default()
        };
        let defaults = files.read(&["client"]).map_err(of_source)?;
        warnings.extend(defaults.warnings.iter().cloned());
        // The group may also have options of other programs.
        defaults.apply(&mut base).map_err(of_source)?;
        let password = secret::password(self.password_file.as_deref(), self.password_env.as_deref());
        if let Some(password) = password.map_err(of_source)? {
            base.password = PasswordOption::Given(password);
        }
        let level = self.zstd_compression_level.map(|level| level.to_string());
        for (name, value) in [
            ("ssl-mode", &self.ssl_mode),
            ("compression-algorithms", &self.compression_algorithms),
            ("zstd-compression-level", &level),
        ] {
            if let Some(value) = value {
                base.set(name, Some(value)).map_err(of_source)?;
            }
        }
        for (given, option) in [
            (&self.ssl_ca, &mut base.tls.ca),
            (&self.ssl_cert, &mut base.tls.certificate),
            (&self.ssl_key, &mut base.tls.key),
            (&self.server_public_key, &mut base.server_public_key_path),
        ] {
            if given.is_some() {
                option.clone_from(given);
            }
        }
        if let Some(key) = &self.server_public_key {
            std::fs::File::open(key)
                .map_err(|error| of_source(format_args!("{}: {error}", key.display())))?;
        }
        base.get_server_public_key |= self.get_server_public_key;
        let mut connections = Vec::with_capacity(self.servers.len());
        for url in &self.servers {
            let mut connection = base.clone();
            connection.set_server(url).map_err(of_source)?;
            connections.push(connection);
        }
        Ok(connections)
    }

    fn wait_for_replicas(&self) -> WaitForReplicas {
        let default = WaitForReplicas::default();
        WaitForReplicas {
            count: self.wait_for_replicas,
            timeout: self.wait_timeout_ms.map_or(default.timeout, Duration::from_millis),
        }
    }

    fn start(&self) -> Result<StartAt> {
        match self.start.as_deref() {
            None | Some("earliest") => Ok(StartAt::Earliest),
            Some("now") => Ok(StartAt::Now),
            Some(set) => set.parse().map(StartAt::Gtids).map_err(|error| {
                refused("source", "start")(format!("{error}; expected earliest, now or a GTID set"))
            }),
        }
    }
}

impl StoreConfig {
    fn sync(&self) -> SyncPolicy {
        let default = SyncPolicy::default();
        SyncPolicy {
            sync_binlog: self.sync_binlog.unwrap_or(default.sync_binlog),
            interval: self.sync_interval_ms.map_or(default.interval, |ms| Duration::from_millis(ms.max(1))),
        }
    }

    pub(crate) fn keyring(&self) -> Result<Option<Keyring>> {
        let Some(path) = &self.keyring else { return Ok(None) };
        let keyring = Keyring::open(path);
        keyring.map(Some).map_err(|error| ConfigError::with_encryption(&path.display(), &error))
    }

    /// The key that new files are encrypted with.
    fn key(&self, keyring: Option<&Keyring>) -> Result<Option<Arc<MasterKey>>> {
        match (self.encrypt, keyring) {
            (false, _) => Ok(None),
            (true, None) => Err(ConfigError::of(&"store", "encrypt needs a keyring")),
            (true, Some(keyring)) => {
                let key = keyring.current_key(self.encrypt_key_of.as_deref());
                key.map(|key| Some(Arc::new(key)))
                    .map_err(|error| ConfigError::with_encryption(&"store: encrypt", &error))
            }
        }
    }

    /// How fast closed files are read to find damage.
    fn scrub(&self) -> Result<ScrubOptions> {
        let Some(text) = &self.scrub_rate else { return Ok(ScrubOptions::default()) };
        match byte_size(text).map_err(refused("store", "scrub_rate"))? {
            0 => Ok(ScrubOptions { rate: None }),
            rate if rate < ByteRates::MIN => {
                let least = ByteRates::MIN >> 10;
                let expected = format!("{text:?}, expected at least {least}K a second, or 0 for none");
                Err(refused("store", "scrub_rate")(expected))
            }
            rate => Ok(ScrubOptions { rate: NonZeroU64::new(rate) }),
        }
    }

    fn retention(&self) -> Result<Retention> {
        let max_age = self.max_age.as_deref().map(duration).transpose();
        let max_bytes = self.max_bytes.as_deref().map(byte_size).transpose();
        Ok(Retention {
            max_age: max_age.map_err(refused("store", "max_age"))?,
            max_bytes: max_bytes.map_err(refused("store", "max_bytes"))?,
            force: self.purge_needed,
        })
    }
}

impl ArchiveConfig {
    fn resolve(self) -> Result<ArchiveOptions> {
        let bytes_max = self.bring_back_max_bytes.as_deref().map_or(Ok(BringBack::BYTES_MAX), byte_size);
        let free_min = self.free_space_min.as_deref().map_or(Ok(BringBack::FREE_MIN), byte_size);
        let bring_back = BringBack {
            bytes_max: bytes_max.map_err(refused("archive", "bring_back_max_bytes"))?,
            free_min: free_min.map_err(refused("archive", "free_space_min"))?,
        };
        let overdue = self.overdue.as_deref().map_or(Ok(ArchiveOptions::OVERDUE), duration);
        let overdue = overdue.map_err(refused("archive", "overdue"))?;
        let check = self.check.as_deref().map_or(Ok(ArchiveOptions::CHECK), duration);
        let check = check.map_err(refused("archive", "check"))?;
        let check = (!check.is_zero()).then_some(check);
        refuse_addresses(&self.to.to_string_lossy()).map_err(refused("archive", "to"))?;
        let tables = TableChoice::new(&self.tables, &self.ignore_tables);
        let tables = tables.map_err(refused("archive", "tables and ignore_tables"))?;
        Ok(ArchiveOptions { to: self.to, plaintext: self.plaintext, tables, bring_back, overdue, check })
    }
}

impl ListenConfig {
    fn tls(&self) -> Result<ListenTls> {
        match (self.tls, &self.ssl_cert, &self.ssl_key) {
            (true, Some(certificate), Some(key)) => {
                Ok(ListenTls::Files { certificate: certificate.clone(), key: key.clone() })
            }
            (true, None, None) => Ok(ListenTls::Own),
            (false, None, None) if self.require_tls => {
                Err(ConfigError::of(&"listen", "require_tls needs tls"))
            }
            (false, None, None) => Ok(ListenTls::Off),
            (false, ..) => {
                Err(ConfigError::of(&"listen", "tls is false: expected neither ssl_cert nor ssl_key"))
            }
            (true, ..) => Err(ConfigError::of(&"listen", "ssl_cert and ssl_key: expected both or none")),
        }
    }

    fn forward(&self) -> Result<Option<ForwardOptions>> {
        let default = ForwardOptions::default();
        let wait = self.forward_wait_ms.map_or(default.wait, Duration::from_millis);
        let read_only_of_source = self.read_only == ReadOnlyName::Source;
        if read_only_of_source && !self.forward_sql {
            let expected =
                "read_only = \"source\" needs forward_sql: without it, no client can change anything";
            return Err(ConfigError::of(&"listen", expected));
        }
        Ok(self.forward_sql.then_some(ForwardOptions { wait, read_only_of_source }))
    }

    fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits {
            connections_max: self.connections_max.unwrap_or(default.connections_max),
            per_address_max: self.connections_per_address_max.unwrap_or(default.per_address_max),
            logging_in_max: self.logging_in_max.unwrap_or(default.logging_in_max),
        }
    }
}

impl AccountConfig {
    fn resolve(&self) -> Result<AccountOptions> {
        let password = secret::password(self.password_file.as_deref(), self.password_env.as_deref())
            .map_err(|error| self.failure(error))?
            .ok_or_else(|| self.failure("has no password: expected password_file or password_env"))?;
        let at_source =
            secret::password(self.source_password_file.as_deref(), self.source_password_env.as_deref())
                .map_err(|error| self.failure(format_args!("at the source: {error}")))?;
        let mut from = Vec::with_capacity(self.from.len());
        for text in &self.from {
            let alone = text.parse().map(|address: std::net::IpAddr| address.into());
            let network = alone.or_else(|_| text.parse()).map_err(|_| {
                self.failure(format_args!("from {text:?}, expected an address or a network as in 10.0.0.0/8"))
            });
            from.push(network?);
        }
        let reads = self.reads()?;
        let tables = self.tables()?;
        let row_metadata = self.row_metadata()?;
        let form = self.form(reads, row_metadata, &tables)?;
        let exits = self.exits()?;
        Ok(AccountOptions {
            source: self.source.clone(),
            form,
            connections_max: self.connections_max,
            from,
            require_tls: self.require_tls,
            admin: self.admin,
            older_collations: self.older_collations,
            reads,
            row_metadata,
            tables,
            exits,
            source_login: (self.source_user.is_some() || at_source.is_some()).then(|| {
                let user = self.source_user.as_ref().unwrap_or(&self.user);
                (user.clone(), at_source.unwrap_or_else(|| password.clone()))
            }),
            ..AccountOptions::new(self.user.clone(), password)
        })
    }

    /// The profile of its clients; `None`: what each says of itself decides.
    fn reads(&self) -> Result<Option<&'static ReaderProfile>> {
        let Some(name) = self.reads.as_deref().filter(|name| *name != "auto") else { return Ok(None) };
        ReaderProfile::of_name(name).map(Some).ok_or_else(|| {
            let names: Vec<_> = ReaderProfile::all().iter().map(|profile| profile.name).collect();
            self.failure(format_args!("reads {name:?}, expected auto, {}", names.join(", ")))
        })
    }

    fn row_metadata(&self) -> Result<Option<RowMetadata>> {
        let Some(word) = &self.row_metadata else { return Ok(None) };
        word.parse().map(Some).map_err(|error| self.failure(format_args!("row_metadata {error}")))
    }

    fn tables(&self) -> Result<TableChoice> {
        TableChoice::new(&self.tables, &self.ignore_tables)
            .map_err(|error| self.failure(format_args!("tables and ignore_tables: {error}")))
    }

    /// The form that leaves by the policy, if there is one.
    fn exits(&self) -> Result<Option<Arc<MaskedForm>>> {
        let Some(path) = &self.exits else { return Ok(None) };
        let has = [
            (self.admin, "admin: positions and files of the relay are others than those of its masked log"),
            (
                self.source_user.is_some()
                    || self.source_password_file.is_some()
                    || self.source_password_env.is_some(),
                "an account at the source: nothing that the source answers is masked",
            ),
        ];
        if let Some((_, what)) = has.into_iter().find(|(has, _)| *has) {
            return Err(self.failure(format_args!("has exits, expected it without {what}")));
        }
        let policy = ExitPolicy::read(path).map_err(|error| self.failure(format_args!("exits: {error}")))?;
        Ok(Some(Arc::new(MaskedForm::new(policy))))
    }

    /// The form for clients that name no file, which must fit what the account can be given.
    fn form(
        &self,
        reads: Option<&ReaderProfile>,
        row_metadata: Option<RowMetadata>,
        tables: &TableChoice,
    ) -> Result<Option<FormPolicy>> {
        let needs_uncompressed = [
            (
                self.older_collations,
                "older_collations, expected form = \"uncompressed\": servers before 8.0 read no \
                 compressed transactions",
            ),
            (
                !tables.is_all(),
                "tables or ignore_tables, expected form = \"uncompressed\": rows of compressed transactions \
                 are not told apart",
            ),
            (
                self.exits.is_some(),
                "exits, expected form = \"uncompressed\": what is masked is not compressed",
            ),
            (
                row_metadata.is_some_and(|metadata| metadata != RowMetadata::AsReceived),
                "row_metadata, expected form = \"uncompressed\": tables within compressed transactions are not \
                 looked at",
            ),
            (
                reads.is_some_and(|profile| !profile.reads_payloads()),
                "reads, expected form = \"uncompressed\": such \
                 clients read no compressed transactions",
            ),
        ];
        let reason =
            needs_uncompressed.into_iter().find(|(is_needed, _)| *is_needed).map(|(_, reason)| reason);
        match (reason, self.form) {
            (Some(reason), Some(FormName::Received | FormName::Compressed)) => {
                Err(self.failure(format_args!("has {reason}")))
            }
            (Some(_), None) => Ok(Some(FormPolicy::Always(Form::Uncompressed))),
            (None, None) => Ok(reads.map(|profile| FormPolicy::Always(profile.form))),
            (_, Some(form)) => Ok(Some(form.form())),
        }
    }

    fn failure(&self, error: impl Display) -> ConfigError {
        ConfigError::of(&format_args!("account {}", self.user.escape_debug()), error)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// The options of a configuration, with an option file so that the machine's own ones are not read.
    fn resolve(text: &str) -> Result<RelayOptions> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("relay.toml");
        std::fs::write(folder.path().join("my.cnf"), "[client]\nuser=repl\n").unwrap();
        std::fs::write(&path, text).unwrap();
        let mut options = RelayConfig::read(&path)?.resolve(&mut Vec::new())?;
        for source in &mut options.sources {
            source.directory = source.directory.strip_prefix(folder.path()).unwrap().to_owned();
        }
        Ok(options)
    }

    const SEVERAL: &str = "[[source]]\nname = 'orders'\nservers = ['mysql://db1']\ndefaults_file = 'my.cnf'\n\
        [[source]]\nname = 'users'\nservers = ['mysql://db2']\ndefaults_file = 'my.cnf'\n";

    #[test]
    fn each_of_several_sources_has_a_folder_of_its_name() {
        let options =
            resolve(&format!("{SEVERAL}store = {{ dir = 'own' }}\n[store]\ndir = 'logs'\n")).unwrap();
        let places: Vec<_> =
            options.sources.iter().map(|source| (source.name.as_str(), source.directory.clone())).collect();
        assert_eq!(places, [("orders", PathBuf::from("logs/orders")), ("users", PathBuf::from("own"))]);
    }

    #[test]
    fn errors_say_the_section_and_the_key() {
        for (text, said) in [
            ("[source]\nservers = []\n[store]\ndir = 'logs'\n", "source: servers is empty, expected"),
            ("[source]\nname = 'a'\n[store]\ndir = 'logs'\n", "source: name: expected in a [[source]] table"),
            ("[source]\n[store]\n", "store: dir is missing"),
            ("[[source]]\n[store]\ndir = 'logs'\n", "[[source]]: a source has no name"),
            ("[[source]]\nname = 'A'\n[store]\ndir = 'logs'\n", "[[source]]: name \"A\", expected 1 to 64"),
            (
                "[[source]]\nname = 'a'\nreceive_rate = '1K'\nservers = ['mysql://db1']\ndefaults_file = 'my.cnf'\n\
                 [store]\ndir = 'logs'\n",
                "source a: source: receive_rate: \"1K\", expected at least",
            ),
        ] {
            let error = resolve(text).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.starts_with(said), "{text:?}: {error}");
        }
    }
}
