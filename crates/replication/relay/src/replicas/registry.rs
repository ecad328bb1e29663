//! The connected replicas that have registered, and each one's single dump.
//!
//! A replica has one dump: a second one with its uuid (or, without a uuid, its server id) ends the first, as on the
//! server.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use binlogz_client_sql::RegisteredReplica;

#[derive(Debug, Default)]
pub(crate) struct Registry {
    inner: Mutex<RegistryState>,
}

#[derive(Debug, Default)]
struct RegistryState {
    replicas: BTreeMap<u32, RegisteredReplica>,
    dumps: BTreeMap<u32, (String, Arc<AtomicBool>)>,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.inner.lock()
    }

    pub(crate) fn register(&self, connection: u32, replica: RegisteredReplica) {
        self.lock().replicas.insert(connection, replica);
    }

    pub(crate) fn replicas(&self) -> Vec<RegisteredReplica> {
        self.lock().replicas.values().cloned().collect()
    }

    /// Whether a client registered on this connection.
    pub(crate) fn is_registered(&self, connection: u32) -> bool {
        self.lock().replicas.contains_key(&connection)
    }

    /// Begins a dump; `key` identifies its replica, if known. The flag is set when the dump must end. Also says whether another
    /// one must end now, which may be waiting.
    pub(crate) fn begin_dump(&self, connection: u32, key: Option<String>) -> (Arc<AtomicBool>, bool) {
        let flag = Arc::new(AtomicBool::new(false));
        let mut supersedes = false;
        if let Some(key) = key {
            let mut inner = self.lock();
            for (_, older) in inner.dumps.values().filter(|(other, _)| *other == key) {
                older.store(true, Ordering::Release);
                supersedes = true;
            }
            inner.dumps.insert(connection, (key, Arc::clone(&flag)));
        }
        (flag, supersedes)
    }

    pub(crate) fn leave(&self, connection: u32) {
        let mut inner = self.lock();
        inner.replicas.remove(&connection);
        inner.dumps.remove(&connection);
    }
}
