//! Counts the bytes of prepared statements and their values: those of an account, and all, whatever protocol they came by.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::refusal::{Blame, StatementRefusal};

/// Bytes of prepared statements, with their values: those of an account, and all.
const PREPARED_OF_ACCOUNT_MAX: usize = 16 << 20;
const PREPARED_MAX: usize = 64 << 20;

/// The room for prepared statements.
#[derive(Debug)]
pub struct PreparedRoom {
    all: Arc<PreparedBytes>,
    /// The bytes of each account that has a session.
    of_accounts: Mutex<HashMap<String, Weak<PreparedBytes>>>,
}

impl Default for PreparedRoom {
    fn default() -> Self {
        PreparedRoom { all: PreparedBytes::new(PREPARED_MAX, None), of_accounts: Mutex::default() }
    }
}

impl PreparedRoom {
    /// The counter of a session that all clients share.
    pub fn of_all(&self) -> Arc<PreparedBytes> {
        PreparedBytes::new(PREPARED_MAX, Some(&self.all))
    }

    /// The counter of an account.
    pub fn of_account(&self, account: &str) -> Arc<PreparedBytes> {
        let mut of_accounts = self.of_accounts.lock();
        if let Some(bytes) = of_accounts.get(account).and_then(Weak::upgrade) {
            return bytes;
        }
        let bytes = PreparedBytes::new(PREPARED_OF_ACCOUNT_MAX, Some(&self.all));
        of_accounts.insert(account.to_owned(), Arc::downgrade(&bytes));
        bytes
    }
}

/// Bytes that are held, up to a limit; those of an account also count for all.
#[derive(Debug)]
pub struct PreparedBytes {
    held: AtomicUsize,
    max: usize,
    all: Option<Arc<PreparedBytes>>,
}

/// Bytes that count until it is dropped.
#[derive(Debug)]
pub struct ChargedBytes {
    bytes: usize,
    of: Arc<PreparedBytes>,
}

impl PreparedBytes {
    fn new(max: usize, all: Option<&Arc<PreparedBytes>>) -> Arc<Self> {
        Arc::new(PreparedBytes { held: AtomicUsize::new(0), max, all: all.cloned() })
    }

    fn add(&self, bytes: usize) -> bool {
        let added = self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| {
            held.checked_add(bytes).filter(|held| *held <= self.max)
        });
        if added.is_err() {
            return false;
        }
        if self.all.as_ref().is_none_or(|all| all.add(bytes)) {
            return true;
        }
        self.held.fetch_sub(bytes, Ordering::AcqRel);
        false
    }

    fn sub(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::AcqRel);
        if let Some(all) = &self.all {
            all.sub(bytes);
        }
    }

    /// Counts bytes until what it returns is dropped.
    ///
    /// # Errors
    ///
    /// There would be too many.
    pub fn charged(self: &Arc<Self>, bytes: usize) -> Result<Arc<ChargedBytes>, StatementRefusal> {
        match self.add(bytes) {
            true => Ok(Arc::new(ChargedBytes { bytes, of: Arc::clone(self) })),
            false => Err(StatementRefusal::new(
                Blame::Limit,
                "prepared statements and their values have too many bytes: close some",
            )),
        }
    }
}

impl Drop for ChargedBytes {
    fn drop(&mut self) {
        self.of.sub(self.bytes);
    }
}
