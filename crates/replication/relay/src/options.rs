//! The relay's configuration, and its validation.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use binlogz_encryption::{Keyring, MasterKey};
use binlogz_relay_log::{BringBack, ClosedLogs, SyncPolicy};
use binlogz_source::ConnectOptions;

use crate::error::{Error, Result};
use crate::housekeeping::archiving::ArchiveOptions;
use crate::housekeeping::retention::Retention;
use crate::housekeeping::scrub::ScrubOptions;
use crate::rates::ByteRates;
use crate::receive::start::StartAt;
use crate::receive::storing::StoredForm;
use crate::replicas::acknowledgements::WaitForReplicas;
use crate::serve::connections::accounts::{AccountOptions, RelayAccounts};
use crate::serve::connections::admission::Limits;
use crate::serve::connections::client_form::FormPolicy;
use crate::serve::connections::transport::ServerTls;
use crate::serve::upstream::ForwardOptions;
use crate::watch::http::HttpOptions;

/// The relay's configuration: its sources, and the settings that they share.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// The sources it follows. If there are several, each has a name.
    pub sources: Vec<SourceOptions>,
    /// A directory for files that belong to no source; for an only source it is the log's.
    pub directory: PathBuf,
    /// The accounts that may log in to the relay; if empty, those that the relay uses at its sources.
    pub accounts: Vec<AccountOptions>,
    /// How many clients to serve.
    pub limits: Limits,
    /// Where replicas connect.
    pub listen: SocketAddr,
    /// The certificate that TLS clients are shown.
    pub listen_tls: ListenTls,
    /// Whether clients must use TLS.
    pub require_tls: bool,
    /// Where to serve status and metrics over HTTP.
    pub http: Option<HttpOptions>,
    /// Whether clients may log in with `mysql_native_password`, the only method of clients older than 8.0 and
    /// MariaDB's.
    pub listen_native_password: bool,
    /// Whether replicas may acknowledge transactions (semi-synchronous replication).
    pub listen_semi_sync: bool,
    /// Whether statements that the relay does not answer itself are forwarded to the source, and how.
    pub forward: Option<ForwardOptions>,
    /// Bytes a second of all sources together.
    pub rates: ByteRates,
}

/// One source of the relay: whom it follows, and how its log is kept.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// The source's name; empty if the relay has no other and gave it none.
    pub name: String,
    /// The source's servers, and how to log in there. The relay follows the first one that it can.
    pub servers: Vec<ConnectOptions>,
    /// Where its replicas connect, besides the relay's own address.
    pub listen: Option<SocketAddr>,
    /// The log's directory.
    pub directory: PathBuf,
    /// The form for a client that names no file.
    pub form: FormPolicy,
    /// How received transactions are stored.
    pub storing: StoredForm,
    /// A file of the uncompressed form ends once its transactions have this many bytes. A log keeps the value with
    /// which it began, since coordinates depend on it.
    pub uncompressed_file_size: u64,
    /// Where a new log begins.
    pub start: StartAt,
    /// Files that a new log begins with instead.
    pub seed: Vec<PathBuf>,
    /// When the log is made durable.
    pub sync: SyncPolicy,
    /// The keys of encrypted files.
    pub keyring: Option<Arc<Keyring>>,
    /// The key that new files are encrypted with.
    pub encrypt: Option<Arc<MasterKey>>,
    /// Which files to keep.
    pub retention: Retention,
    /// Where closed files go before any is purged.
    pub archive: Option<ArchiveOptions>,
    /// Logs to serve without a source; there are no servers then.
    pub closed: Option<ServedLogs>,
    /// The relay's own server id at this source; by default derived from its uuid.
    pub server_id: Option<u32>,
    /// Whether transactions are acknowledged to the source (semi-synchronous replication), each once it is
    /// durable.
    pub semi_sync: bool,
    /// How many of the relay's replicas its own acknowledgements wait for.
    pub wait_for_replicas: WaitForReplicas,
    /// Bytes a second of this source.
    pub rates: ByteRates,
    /// How fast closed files are read to find damage.
    pub scrub: ScrubOptions,
}

/// Closed logs that are served without a source.
#[derive(Debug, Clone)]
pub struct ServedLogs {
    /// The logs; the last one is in the relay's directory.
    pub logs: Arc<ClosedLogs>,
    /// How much of the others may be on disk at a time.
    pub bring_back: BringBack,
    /// The server id of the only replica that is served; `None`: all are.
    pub only_replica: Option<u32>,
    /// Whether incidents that stand between transactions are left out. A replica that gets one stops there.
    pub over_incidents: bool,
}

/// How to serve closed logs without a source.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The logs.
    pub served: ServedLogs,
    /// The directory that has the last of them, and nothing else.
    pub directory: PathBuf,
    /// The accounts that may log in.
    pub accounts: Vec<AccountOptions>,
    /// How many clients to serve.
    pub limits: Limits,
    /// Where replicas connect.
    pub listen: SocketAddr,
    /// The certificate that TLS clients are shown.
    pub listen_tls: ListenTls,
    /// Whether clients must use TLS.
    pub require_tls: bool,
    /// Whether clients may log in with `mysql_native_password`.
    pub native_password: bool,
    /// The form for a client that names no file.
    pub form: FormPolicy,
}

impl From<ServeOptions> for RelayOptions {
    fn from(serve: ServeOptions) -> RelayOptions {
        let source = SourceOptions {
            form: serve.form,
            closed: Some(serve.served),
            ..SourceOptions::new(serve.directory)
        };
        RelayOptions {
            accounts: serve.accounts,
            limits: serve.limits,
            listen_tls: serve.listen_tls,
            require_tls: serve.require_tls,
            listen_native_password: serve.native_password,
            ..RelayOptions::new(source, serve.listen)
        }
    }
}

impl RelayOptions {
    /// A relay of one source, every other option at its default.
    pub fn new(source: SourceOptions, listen: SocketAddr) -> RelayOptions {
        RelayOptions {
            directory: source.directory.clone(),
            sources: vec![source],
            accounts: Vec::new(),
            limits: Limits::default(),
            listen,
            listen_tls: ListenTls::default(),
            require_tls: false,
            http: None,
            listen_native_password: true,
            listen_semi_sync: false,
            forward: None,
            rates: ByteRates::default(),
        }
    }

    /// The sections of the configuration that differ, apart from accounts and, where there are several, sources.
    pub(crate) fn differences(&self, new: &RelayOptions) -> Vec<&'static str> {
        let listen = (self.listen, self.require_tls, self.limits)
            == (new.listen, new.require_tls, new.limits)
            && self.listen_tls == new.listen_tls
            && self.listen_native_password == new.listen_native_password
            && self.listen_semi_sync == new.listen_semi_sync
            && self.forward == new.forward;
        let only =
            |options: &RelayOptions| options.sources.first().filter(|only| only.name.is_empty()).cloned();
        let source = match (only(self), only(new)) {
            (Some(one), Some(other)) => one.is_same(&other),
            _ => true,
        };
        [
            ("[listen]", listen),
            ("[http]", self.http == new.http),
            ("dir of [store]", self.directory == new.directory),
            ("[source], [store] and [archive]", source),
        ]
        .into_iter()
        .filter_map(|(section, same)| (!same).then_some(section))
        .collect()
    }

    /// Whether it has one source, and no name for it.
    pub(crate) fn has_only_source(&self) -> bool {
        self.sources.iter().all(|source| source.name.is_empty())
    }
}

impl SourceOptions {
    /// 1 GiB, the size that servers use; positions have 32 bits, and transactions may be large.
    pub const UNCOMPRESSED_FILE_SIZE: u64 = 1 << 30;

    /// Every other option at its default: no servers yet, the log stored as received.
    pub fn new(directory: PathBuf) -> SourceOptions {
        SourceOptions {
            name: String::new(),
            servers: Vec::new(),
            listen: None,
            directory,
            form: FormPolicy::Auto,
            storing: StoredForm::Received,
            uncompressed_file_size: SourceOptions::UNCOMPRESSED_FILE_SIZE,
            start: StartAt::default(),
            seed: Vec::new(),
            sync: SyncPolicy::default(),
            keyring: None,
            encrypt: None,
            retention: Retention::default(),
            archive: None,
            closed: None,
            server_id: None,
            semi_sync: false,
            wait_for_replicas: WaitForReplicas::default(),
            rates: ByteRates::default(),
            scrub: ScrubOptions::default(),
        }
    }
}

/// The certificate for clients that connect with TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListenTls {
    /// None: there is no TLS.
    Off,
    /// One that the relay makes itself, once, and keeps in its directory.
    #[default]
    Own,
    /// A given one.
    Files {
        /// A PEM file of certificates, the relay's own first.
        certificate: PathBuf,
        /// The private key of the first certificate.
        key: PathBuf,
    },
}

impl RelayOptions {
    /// Reads the files that the options name, and reports errors. Changes nothing.
    ///
    /// # Errors
    ///
    /// A source has no server, two sources have something in common that each needs alone, an account has no password, or
    /// certificates can't be read.
    pub fn check(&self) -> Result<()> {
        self.resolve().map(drop)
    }

    /// The accounts that may log in, and the given certificate that they are shown.
    pub(crate) fn resolve(&self) -> Result<(RelayAccounts, Option<ServerTls>)> {
        if self.sources.is_empty() {
            return Err(Error::Refused("there is no source to follow".into()));
        }
        for (place, source) in self.sources.iter().enumerate() {
            source.check(self.listen_semi_sync).map_err(|error| source.named(error))?;
            let others = self.sources.get(..place).unwrap_or_default();
            others.iter().try_for_each(|other| source.check_beside(other))?;
            if source.listen.is_some_and(|at| at == self.listen && at.port() != 0) {
                let said = "listens where the relay does for all sources; it needs a port of its own";
                return Err(Error::Refused(format!("source {} {said}", source.name)));
            }
        }
        let accounts = match self.accounts.is_empty() {
            true => self.accounts_of_sources()?,
            false => self.accounts.clone(),
        };
        let names: Vec<&str> = self.sources.iter().map(|source| source.name.as_str()).collect();
        for AccountOptions { user, source, .. } in &accounts {
            if let Some(source) = source.as_ref().filter(|source| !names.contains(&source.as_str())) {
                let said = format!("account {user} may read the source {source}, which there is not");
                return Err(Error::Refused(said));
            }
        }
        let tls = match &self.listen_tls {
            ListenTls::Files { certificate, key } => Some(ServerTls::read(certificate, key)?),
            ListenTls::Off | ListenTls::Own => None,
        };
        Ok((RelayAccounts::new(accounts)?, tls))
    }

    /// The accounts that the relay has at its sources. Each may read the source that it belongs to, or any if several
    /// have it.
    fn accounts_of_sources(&self) -> Result<Vec<AccountOptions>> {
        let mut accounts: Vec<AccountOptions> = Vec::new();
        for source in &self.sources {
            let server = source.servers.first().filter(|_| source.closed.is_none());
            let none = || Error::Refused("there is no account that replicas could log in with".into());
            let (user, password) = server.ok_or_else(none)?.account()?;
            if password.is_empty() {
                return Err(source.named(Error::Refused(format!(
                    "user {user} has no password: replicas log in to the relay with the source's account, which \
                     needs one (an option file, a login path or MYSQL_PWD)"
                ))));
            }
            match accounts.iter_mut().find(|account| account.user == user) {
                Some(account) if account.password == password => account.source = None,
                Some(_) => {
                    return Err(source.named(Error::Refused(format!(
                        "user {user} has another password there than at another source: accounts for replicas are needed \
                         ([[account]])"
                    ))));
                }
                None => accounts.push(AccountOptions {
                    source: (!source.name.is_empty()).then(|| source.name.clone()),
                    ..AccountOptions::new(user, password)
                }),
            }
        }
        Ok(accounts)
    }
}

impl SourceOptions {
    /// Whether nothing about it has changed that needs it to be opened again, as all but its rates does. Keys are compared by
    /// their names.
    pub(crate) fn is_same(&self, other: &SourceOptions) -> bool {
        let key = |options: &SourceOptions| options.encrypt.as_ref().map(|key| key.id().to_owned());
        (&self.name, &self.servers, self.listen) == (&other.name, &other.servers, other.listen)
            && (&self.directory, self.form) == (&other.directory, other.form)
            && (self.storing, self.uncompressed_file_size) == (other.storing, other.uncompressed_file_size)
            && (&self.start, &self.seed, self.sync) == (&other.start, &other.seed, other.sync)
            && (self.keyring.is_some(), key(self)) == (other.keyring.is_some(), key(other))
            && (self.retention, &self.archive) == (other.retention, &other.archive)
            && (self.server_id, self.semi_sync) == (other.server_id, other.semi_sync)
            && (self.wait_for_replicas, self.scrub) == (other.wait_for_replicas, other.scrub)
    }

    fn check(&self, listen_semi_sync: bool) -> Result<()> {
        if self.servers.is_empty() && self.closed.is_none() {
            return Err(Error::Refused("there is no source to follow".into()));
        }
        if self.semi_sync && !self.sync.is_prompt() {
            return Err(Error::Refused(
                "semi_sync promises that a transaction is durable here: it needs sync_binlog = 1".into(),
            ));
        }
        let waits = self.wait_for_replicas.count > 0;
        if waits && !(self.semi_sync && listen_semi_sync) {
            return Err(Error::Refused(
                "wait_for_replicas delays the relay's acknowledgements until replicas have acknowledged: it needs \
                 semi_sync of both the source and the listen section"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Refuses what two sources can't share.
    fn check_beside(&self, other: &SourceOptions) -> Result<()> {
        let refuse = |what: String| Err(Error::Refused(what));
        let (name, before) = (&self.name, &other.name);
        if name.is_empty() || before.is_empty() {
            return refuse("there are several sources, so each needs a name".into());
        }
        if name == before {
            return refuse(format!("source {name} is there twice"));
        }
        if self.directory == other.directory {
            let dir = self.directory.display();
            return refuse(format!("sources {before} and {name} have the same directory, {dir}"));
        }
        if let (Some(one), Some(two)) = (&self.archive, &other.archive)
            && one.to == two.to
        {
            return refuse(format!(
                "sources {before} and {name} have the same archive, {}",
                one.to.display()
            ));
        }
        match (self.listen, other.listen) {
            (Some(one), Some(two)) if one == two && one.port() != 0 => {
                refuse(format!("sources {before} and {name} listen on the same address, {one}"))
            }
            _ => Ok(()),
        }
    }

    /// An error with the name of its source.
    fn named(&self, error: Error) -> Error {
        match (self.name.as_str(), error) {
            ("", error) => error,
            (name, Error::Refused(why)) => Error::Refused(format!("source {name}: {why}")),
            (_, error) => error,
        }
    }
}
