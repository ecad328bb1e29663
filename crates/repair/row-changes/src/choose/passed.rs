//! The names of tables that passed, so that a table that isn't there can be told from one of which no row was chosen.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// More tables than this aren't remembered: they are for a message alone.
const PASSED_TABLES_MAX: usize = 10_000;

/// The tables that passed in the logs, by database and name. Its clones are one.
#[derive(Debug, Clone, Default)]
pub struct PassedTables {
    names: Arc<Mutex<BTreeSet<(String, String)>>>,
}

impl PassedTables {
    pub(crate) fn add(&self, database: &[u8], table: &[u8]) {
        let mut names = self.names.lock();
        if names.len() < PASSED_TABLES_MAX {
            let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name).into_owned());
            names.insert((database, table));
        }
    }

    /// Database and name of each table that was passed, in the order of names; `None` if there may be more tables than were noted.
    pub fn all(&self) -> Option<Vec<(String, String)>> {
        let names = self.names.lock();
        (names.len() < PASSED_TABLES_MAX).then(|| names.iter().cloned().collect())
    }
}
