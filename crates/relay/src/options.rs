//! How to relay: what is configured, and whether it can be.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use binlogz_encryption::{Keyring, MasterKey};
use binlogz_source::ConnectOptions;

use crate::accounts::{AccountOptions, Accounts};
use crate::acknowledgements::WaitForReplicas;
use crate::archiving::ArchiveOptions;
use crate::error::{Error, Result};
use crate::form::FormPolicy;
use crate::gate::Limits;
use crate::http::HttpOptions;
use crate::retention::Retention;
use crate::start::StartAt;
use crate::storing::Storing;
use crate::syncing::SyncPolicy;
use crate::transport::ServerTls;

/// How to relay.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// The source's servers, and how to log in there: the first that can be followed is.
    pub sources: Vec<ConnectOptions>,
    /// Who may log in to the relay; none: the account that the relay has at the source.
    pub accounts: Vec<AccountOptions>,
    /// How many clients are served.
    pub limits: Limits,
    /// Where the log is kept.
    pub directory: PathBuf,
    /// Where replicas connect.
    pub listen: SocketAddr,
    /// What clients are shown that connect with TLS; without it there is no TLS.
    pub listen_tls: Option<ListenTls>,
    /// What a client is served that names no file.
    pub form: FormPolicy,
    /// How what is received is kept.
    pub storing: Storing,
    /// Bytes of transactions with which a file of the uncompressed form ends. A log has that with which it began:
    /// coordinates depend on it.
    pub uncompressed_file_size: u64,
    /// Where a new log begins.
    pub start: StartAt,
    /// Files that a new log begins with instead.
    pub seed: Vec<PathBuf>,
    /// When it is made durable.
    pub sync: SyncPolicy,
    /// The keys of encrypted files.
    pub keyring: Option<Arc<Keyring>>,
    /// Files are encrypted with this one.
    pub encrypt: Option<Arc<MasterKey>>,
    /// What is kept of the log.
    pub retention: Retention,
    /// Where closed files go, before any is purged.
    pub archive: Option<ArchiveOptions>,
    /// Where status and metrics can be asked for over HTTP.
    pub http: Option<HttpOptions>,
    /// The relay's own server id; by default one made of its uuid.
    pub server_id: Option<u32>,
    /// Whether transactions are acknowledged to the source (semi-synchronous replication), each once it is
    /// durable.
    pub semi_sync: bool,
    /// Whether clients may log in with `mysql_native_password`, which those of before 8.0 and MariaDB's know alone.
    pub listen_native_password: bool,
    /// Whether replicas may acknowledge what they are sent (semi-synchronous replication).
    pub listen_semi_sync: bool,
    /// For how many of them the relay's own acknowledgements wait.
    pub wait_for_replicas: WaitForReplicas,
}

impl RelayOptions {
    /// As servers end theirs; positions have 32 bits, and transactions may be large.
    pub const UNCOMPRESSED_FILE_SIZE: u64 = 1 << 30;
}

/// TLS towards clients.
#[derive(Debug, Clone)]
pub struct ListenTls {
    /// The certificates, in a PEM file: the relay's own first.
    pub certificate: PathBuf,
    /// The key of the first.
    pub key: PathBuf,
    /// Whether clients must use it.
    pub required: bool,
}

impl RelayOptions {
    /// Reads what the options name, and says what is wrong with them. Nothing is changed.
    ///
    /// # Errors
    ///
    /// No source, an account without password, certificates that can't be read.
    pub fn check(&self) -> Result<()> {
        self.resolve().map(drop)
    }

    /// Who may log in, and what they are shown.
    pub(crate) fn resolve(&self) -> Result<(Accounts, Option<ServerTls>)> {
        let source = self.sources.first();
        let source = source.ok_or_else(|| Error::Refused("there is no source to follow".into()))?;
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
            let (user, password) = source.account()?;
            if password.is_empty() {
                return Err(Error::Refused(format!(
                    "user {user} has no password: replicas log in to the relay with the source's account, which \
                     needs one (an option file, a login path or MYSQL_PWD)"
                )));
            }
            accounts.push(AccountOptions::new(user, password));
        }
        let tls =
            self.listen_tls.as_ref().map(|tls| ServerTls::read(&tls.certificate, &tls.key)).transpose()?;
        Ok((Accounts::new(accounts)?, tls))
    }
}
