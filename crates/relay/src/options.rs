//! The relay's configuration, and its validation.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use binlogz_encryption::{Keyring, MasterKey};
use binlogz_source::ConnectOptions;

use crate::closed::ClosedLogs;
use crate::error::{Error, Result};
use crate::form::FormPolicy;
use crate::housekeeping::archiving::ArchiveOptions;
use crate::housekeeping::retention::Retention;
use crate::log::brought_back::BringBack;
use crate::log::syncing::SyncPolicy;
use crate::receive::start::StartAt;
use crate::receive::storing::Storing;
use crate::replicas::acknowledgements::WaitForReplicas;
use crate::serve::accounts::{AccountOptions, Accounts};
use crate::serve::admission::Limits;
use crate::serve::transport::ServerTls;
use crate::serve::upstream::ForwardOptions;
use crate::watch::http::HttpOptions;

/// The relay's configuration.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// The source's servers, and how to log in there. The relay follows the first one that it can.
    pub sources: Vec<ConnectOptions>,
    /// The accounts that may log in to the relay; if empty, the account that the relay uses at the source.
    pub accounts: Vec<AccountOptions>,
    /// How many clients to serve.
    pub limits: Limits,
    /// The log's directory.
    pub directory: PathBuf,
    /// Where replicas connect.
    pub listen: SocketAddr,
    /// What TLS clients are shown.
    pub listen_tls: ListenTls,
    /// Whether clients must use TLS.
    pub require_tls: bool,
    /// The form for a client that names no file.
    pub form: FormPolicy,
    /// How received transactions are stored.
    pub storing: Storing,
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
    /// Logs to serve without a source; there are no sources then.
    pub closed: Option<ServedLogs>,
    /// Where to serve status and metrics over HTTP.
    pub http: Option<HttpOptions>,
    /// The relay's own server id; by default derived from its uuid.
    pub server_id: Option<u32>,
    /// Whether transactions are acknowledged to the source (semi-synchronous replication), each once it is
    /// durable.
    pub semi_sync: bool,
    /// Whether clients may log in with `mysql_native_password`, the only method of clients older than 8.0 and
    /// MariaDB's.
    pub listen_native_password: bool,
    /// Whether replicas may acknowledge what they are sent (semi-synchronous replication).
    pub listen_semi_sync: bool,
    /// Whether statements that the relay does not answer itself are forwarded to the source, and how.
    pub forward: Option<ForwardOptions>,
    /// How many of them the relay's own acknowledgements wait for.
    pub wait_for_replicas: WaitForReplicas,
}

/// Closed logs that are served without a source.
#[derive(Debug, Clone)]
pub struct ServedLogs {
    /// The logs, of which the last one is in the relay's directory.
    pub logs: Arc<ClosedLogs>,
    /// How much of the others may be on disk at a time.
    pub bring_back: BringBack,
    /// The server id of the only replica that is served; `None`: all are.
    pub only_replica: Option<u32>,
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
    /// What TLS clients are shown.
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
        RelayOptions {
            accounts: serve.accounts,
            limits: serve.limits,
            listen_tls: serve.listen_tls,
            require_tls: serve.require_tls,
            form: serve.form,
            closed: Some(serve.served),
            listen_native_password: serve.native_password,
            ..RelayOptions::new(serve.directory, serve.listen)
        }
    }
}

impl RelayOptions {
    /// The same size as servers use; positions have 32 bits, and transactions may be large.
    pub const UNCOMPRESSED_FILE_SIZE: u64 = 1 << 30;

    /// Every other option at its default: no sources yet, the log stored as received.
    pub fn new(directory: PathBuf, listen: SocketAddr) -> RelayOptions {
        RelayOptions {
            sources: Vec::new(),
            accounts: Vec::new(),
            limits: Limits::default(),
            directory,
            listen,
            listen_tls: ListenTls::default(),
            require_tls: false,
            form: FormPolicy::Auto,
            storing: Storing::Received,
            uncompressed_file_size: RelayOptions::UNCOMPRESSED_FILE_SIZE,
            start: StartAt::default(),
            seed: Vec::new(),
            sync: SyncPolicy::default(),
            keyring: None,
            encrypt: None,
            retention: Retention::default(),
            archive: None,
            closed: None,
            http: None,
            server_id: None,
            semi_sync: false,
            listen_native_password: true,
            listen_semi_sync: false,
            forward: None,
            wait_for_replicas: WaitForReplicas::default(),
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
    /// There is no source, an account has no password, or certificates can't be read.
    pub fn check(&self) -> Result<()> {
        self.resolve().map(drop)
    }

    /// The accounts that may log in, and the given certificate that they are shown.
    pub(crate) fn resolve(&self) -> Result<(Accounts, Option<ServerTls>)> {
        if self.sources.is_empty() && self.closed.is_none() {
            return Err(Error::Refused("there is no source to follow".into()));
        }
        if self.semi_sync && !self.sync.is_prompt() {
            return Err(Error::Refused(
                "semi_sync promises that a transaction is durable here: it needs sync_binlog = 1".into(),
            ));
        }
        let waits = self.wait_for_replicas.count > 0;
        if waits && !(self.semi_sync && self.listen_semi_sync) {
            return Err(Error::Refused(
                "wait_for_replicas delays the relay's acknowledgements until replicas have acknowledged: it needs \
                 semi_sync of both the source and the listen section"
                    .into(),
            ));
        }
        let mut accounts = self.accounts.clone();
        if accounts.is_empty() {
            let source = self.sources.first().filter(|_| self.closed.is_none());
            let none = || Error::Refused("there is no account that replicas could log in with".into());
            let (user, password) = source.ok_or_else(none)?.account()?;
            if password.is_empty() {
                return Err(Error::Refused(format!(
                    "user {user} has no password: replicas log in to the relay with the source's account, which \
                     needs one (an option file, a login path or MYSQL_PWD)"
                )));
            }
            accounts.push(AccountOptions::new(user, password));
        }
        let tls = match &self.listen_tls {
            ListenTls::Files { certificate, key } => Some(ServerTls::read(certificate, key)?),
            ListenTls::Off | ListenTls::Own => None,
        };
        Ok((Accounts::new(accounts)?, tls))
    }
}
