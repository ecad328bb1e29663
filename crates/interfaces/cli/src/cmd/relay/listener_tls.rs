//! The options for the TLS that replicas are offered. `relay run` and `archive serve` take the same.

use std::path::PathBuf;

use binlogz_relay::ListenTls;
use clap::Args;

/// Whether and with which certificate replicas connect over TLS.
#[derive(Debug, Args)]
#[group(id = "listener_tls", multiple = true)]
pub(in crate::cmd) struct ListenerTlsArgs {
    /// The certificate shown to replicas that connect with TLS, in PEM form [default: one that binlogz makes itself]
    #[arg(long, value_name = "FILE", requires = "listen_ssl_key")]
    pub(super) listen_ssl_cert: Option<PathBuf>,
    /// The key of that certificate
    #[arg(long, value_name = "FILE", requires = "listen_ssl_cert")]
    pub(super) listen_ssl_key: Option<PathBuf>,
    /// Offer replicas no TLS
    #[arg(long, conflicts_with = "listen_ssl_cert")]
    pub(super) no_listen_tls: bool,
}

impl ListenerTlsArgs {
    pub(in crate::cmd) fn tls(&self) -> ListenTls {
        match (&self.listen_ssl_cert, &self.listen_ssl_key) {
            _ if self.no_listen_tls => ListenTls::Off,
            (Some(certificate), Some(key)) => {
                ListenTls::Files { certificate: certificate.clone(), key: key.clone() }
            }
            _ => ListenTls::Own,
        }
    }
}
