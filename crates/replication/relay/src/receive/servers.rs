//! The servers of the source, and which of them is followed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use binlogz_source::{ConnectOptions, Connection, SslMode};

use crate::error::{Error, Result};

/// At least one server.
#[derive(Debug)]
pub(crate) struct Servers {
    servers: Vec<ConnectOptions>,
    current: AtomicUsize,
    warned: AtomicBool,
}

impl Servers {
    pub(crate) fn new(servers: Vec<ConnectOptions>) -> Self {
        Servers { servers, current: AtomicUsize::new(0), warned: AtomicBool::new(false) }
    }

    /// Whether there is another server to fail over to.
    pub(crate) fn are_several(&self) -> bool {
        self.servers.len() > 1
    }

    /// All servers of the source.
    pub(crate) fn all(&self) -> impl Iterator<Item = &ConnectOptions> {
        self.servers.iter()
    }

    /// The server that is followed or tried.
    pub(crate) fn current(&self) -> Result<&ConnectOptions> {
        let place = self.current.load(Ordering::Relaxed);
        self.servers.get(place).ok_or_else(|| Error::Refused("there is no source to follow".into()))
    }

    /// A warning to log once: the server was free to offer TLS, and the connection has none.
    pub(crate) fn warning(&self, server: &ConnectOptions, connection: &Connection) -> Option<String> {
        let chosen = server.tls.effective_mode() == SslMode::Disabled;
        if chosen || !connection.is_open_to_others() || self.warned.swap(true, Ordering::Relaxed) {
            return None;
        }
        Some(format!(
            "warning: the connection to {} is not encrypted, since ssl_mode is preferred and the server offered no TLS, or \
             somebody on the way took the offer out: all of the log can be read and changed there. ssl_mode = required \
             refuses that, verify_identity also anybody who is not the server",
            server.server()
        ))
    }

    /// Moves on from a server that can't be followed. Returns whether all have been tried.
    pub(crate) fn next(&self) -> bool {
        let place = (self.current.load(Ordering::Relaxed) + 1) % self.servers.len().max(1);
        self.current.store(place, Ordering::Relaxed);
        place == 0
    }
}
