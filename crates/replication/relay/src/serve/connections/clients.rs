//! The clients of one source, so that they can be sent away when the source is no longer wanted.

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct ServedClients {
    inner: Mutex<ClientStreams>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct ClientStreams {
    streams: BTreeMap<u32, Arc<TcpStream>>,
    is_closed: bool,
}

impl ServedClients {
    /// Counts a client; `false` if there are to be none any more.
    pub(crate) fn enter(&self, connection: u32, stream: &Arc<TcpStream>) -> bool {
        let mut inner = self.inner.lock();
        if !inner.is_closed {
            inner.streams.insert(connection, Arc::clone(stream));
        }
        !inner.is_closed
    }

    pub(crate) fn leave(&self, connection: u32) {
        self.inner.lock().streams.remove(&connection);
        self.left.notify_all();
    }

    /// Closes all connections, and waits until their threads have noticed. Returns how many have not in time.
    pub(crate) fn send_away(&self, patience: Duration) -> usize {
        let until = Instant::now() + patience;
        let mut inner = self.inner.lock();
        inner.is_closed = true;
        // A thread that reads or writes sees the end of the connection.
        inner.streams.values().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        while !inner.streams.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.left.wait_for(&mut inner, left);
        }
        inner.streams.len()
    }
}
