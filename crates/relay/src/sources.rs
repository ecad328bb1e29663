//! The servers of the source, and which of them is followed.

use std::sync::atomic::{AtomicUsize, Ordering};

use binlogz_source::ConnectOptions;

use crate::error::{Error, Result};

/// At least one server.
#[derive(Debug)]
pub(crate) struct Sources {
    servers: Vec<ConnectOptions>,
    current: AtomicUsize,
}

impl Sources {
    pub(crate) fn new(servers: Vec<ConnectOptions>) -> Self {
        Sources { servers, current: AtomicUsize::new(0) }
    }

    /// The one that is followed, or tried.
    pub(crate) fn current(&self) -> Result<&ConnectOptions> {
        let place = self.current.load(Ordering::Relaxed);
        self.servers.get(place).ok_or_else(|| Error::Refused("there is no source to follow".into()))
    }

    /// The current one can't be followed: the next one's turn. Whether all had theirs.
    pub(crate) fn next(&self) -> bool {
        let place = (self.current.load(Ordering::Relaxed) + 1) % self.servers.len().max(1);
        self.current.store(place, Ordering::Relaxed);
        place == 0
    }
}
