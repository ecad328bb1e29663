//! The handles that are open. C gets an address that is never read: each call looks up the handle for it. So a handle
//! that was closed, was never opened, or is used by two threads at once costs its caller an error, and not the process.
//!
//! A new handle may get the address of one that was closed long before: then a stale handle is a valid one, of another log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};

use crate::status::{CallTrouble, Result};

/// Parts of the table: threads with handles of their own don't wait for one another.
const PARTS: usize = 32;
/// The smallest distance of two addresses, as a power of two.
const ADDRESS_BITS: u32 = 5;

/// The open handles of a kind. `C` is the type that C sees, of which only the address matters; `H` is the value that the
/// handle stands for.
pub(crate) struct Handles<C, H> {
    parts: [RwLock<BTreeMap<usize, Arc<Mutex<H>>>>; PARTS],
    shown: std::marker::PhantomData<fn() -> C>,
}

impl<C, H> Handles<C, H> {
    pub(crate) const fn new() -> Self {
        Handles { parts: [const { RwLock::new(BTreeMap::new()) }; PARTS], shown: std::marker::PhantomData }
    }

    fn part(&self, address: usize) -> &RwLock<BTreeMap<usize, Arc<Mutex<H>>>> {
        let number = (address >> ADDRESS_BITS) % PARTS;
        // There are so many; the first one is never meant.
        self.parts.get(number).unwrap_or(&self.parts[0])
    }

    /// Opens a handle. `shown` is what its address is of, and is not empty.
    pub(crate) fn open(&self, shown: C, stands_for: H) -> *mut C {
        let handle = Box::into_raw(Box::new(shown));
        let mut part = self.part(handle as usize).write().unwrap_or_else(PoisonError::into_inner);
        part.insert(handle as usize, Arc::new(Mutex::new(stands_for)));
        handle
    }

    /// Calls `work` with the value that a handle stands for; `what` names the argument.
    pub(crate) fn with<R>(
        &self,
        handle: *const C,
        what: &str,
        work: impl FnOnce(&mut H) -> Result<R>,
    ) -> Result<R> {
        if handle.is_null() {
            return Err(CallTrouble::argument(format!("{what} is NULL")));
        }
        let part = self.part(handle as usize).read().unwrap_or_else(PoisonError::into_inner);
        let found = part.get(&(handle as usize)).map(Arc::clone);
        drop(part);
        let Some(found) = found else {
            return Err(CallTrouble::argument(format!("{what} isn't open: it was closed, or never opened")));
        };
        match found.try_lock() {
            // A panic in it poisons the handle.
            Ok(mut stands_for) => work(&mut stands_for),
            Err(TryLockError::WouldBlock) => {
                Err(CallTrouble::argument(format!("{what} is in use by another thread")))
            }
            Err(TryLockError::Poisoned(_)) => {
                Err(CallTrouble::bug(format!("{what} met a bug in an earlier call; close it")))
            }
        }
    }

    /// Closes a handle. One that isn't open stays so.
    pub(crate) fn close(&self, handle: *mut C) {
        let mut part = self.part(handle as usize).write().unwrap_or_else(PoisonError::into_inner);
        let closed = part.remove(&(handle as usize));
        drop(part);
        if closed.is_some() {
            // SAFETY: it was in the table, so open() made it, and nobody else closes it.
            drop(unsafe { Box::from_raw(handle) });
        }
    }
}
