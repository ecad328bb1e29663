//! The clients that are connected, by their numbers, so that one can end another's statement or connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// All clients that are logged in.
#[derive(Debug, Default)]
pub(super) struct ConnectedClients {
    last: AtomicU32,
    all: Mutex<HashMap<u32, Arc<ConnectedClient>>>,
}

/// A client that is logged in, as others see it.
#[derive(Debug, Default)]
pub(super) struct ConnectedClient {
    user: Mutex<String>,
    /// Notified when its statement is to end.
    statement: Notify,
    is_running: AtomicBool,
    /// Notified when its connection is to end.
    connection: Notify,
    is_ended: AtomicBool,
}

impl ConnectedClient {
    /// Waits until the connection is to end.
    pub(super) async fn ended(&self) {
        while !self.is_ended.load(Ordering::Acquire) {
            self.connection.notified().await;
        }
    }

    /// Waits until its statement is to end.
    pub(super) async fn stopped(&self) {
        self.statement.notified().await;
    }

    /// A statement begins. A stop that came before was meant for another.
    pub(super) async fn begins(&self) {
        // A notification that nobody waited for is kept: it is taken now.
        tokio::select! {
            biased;
            () = self.statement.notified() => {}
            () = std::future::ready(()) => {}
        }
        self.is_running.store(true, Ordering::Release);
    }

    pub(super) fn ends(&self) {
        self.is_running.store(false, Ordering::Release);
    }

    fn stop(&self) {
        if self.is_running.load(Ordering::Acquire) {
            self.statement.notify_one();
        }
    }

    fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        self.connection.notify_one();
        self.stop();
    }
}

impl ConnectedClients {
    /// A number that no client has had for long.
    pub(super) fn next_number(&self) -> u32 {
        self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Notes a client that has logged in, or has become another user.
    pub(super) fn enter(&self, number: u32, user: &str) -> Arc<ConnectedClient> {
        let mut all = self.all.lock();
        let client = Arc::clone(all.entry(number).or_default());
        user.clone_into(&mut client.user.lock());
        client
    }

    pub(super) fn leave(&self, number: u32) {
        self.all.lock().remove(&number);
    }

    /// ClientResult the statement, or the connection, of a client of the same user; whether there is one. Users don't see each other.
    pub(super) fn kill(&self, number: u32, user: &str, is_connection: bool) -> bool {
        let client = self.all.lock().get(&number).cloned();
        let Some(client) = client.filter(|client| *client.user.lock() == user) else { return false };
        match is_connection {
            true => client.end(),
            false => client.stop(),
        }
        true
    }

    /// ClientResult all connections.
    pub(super) fn end_all(&self) {
        let all: Vec<_> = self.all.lock().drain().map(|(_, client)| client).collect();
        all.iter().for_each(|client| client.end());
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.lock().len()
    }
}
