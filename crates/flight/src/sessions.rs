//! Sessions: who logged in, what they prepared, and which of their queries run. A token of 32 random bytes stands for a session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use binlogz_query::{Query, Values};
use tokio::task::AbortHandle;
use tonic::Status;

use crate::accounts::Accounts;

/// Sessions at once; more are refused.
const SESSIONS_MAX: usize = 10_000;
/// Statements that a session has prepared and not closed.
const STATEMENTS_MAX: usize = 1000;
/// Of tokens, and of the names of prepared statements.
const SECRET_SIZE: usize = 32;

/// All sessions.
pub(crate) struct Sessions {
    accounts: Accounts,
    idle: Duration,
    all: Mutex<HashMap<String, Arc<Session>>>,
    /// The one of all clients where nobody needs to log in.
    open: Option<Arc<Session>>,
}

/// A session.
pub(crate) struct Session {
    used: Mutex<Instant>,
    statements: Mutex<HashMap<Vec<u8>, Prepared>>,
    running: Mutex<HashMap<u64, Running>>,
    next: AtomicU64,
}

/// A prepared statement and the values that were bound last.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) query: Query,
    pub(crate) values: Values,
    used: Instant,
}

struct Running {
    ticket: Vec<u8>,
    stopper: AbortHandle,
}

/// A query in the list of those that run, until it is dropped.
pub(crate) struct Entry {
    session: Arc<Session>,
    number: u64,
}

/// A secret that can't be guessed, in hexadecimal.
pub(crate) fn secret() -> Result<String, Status> {
    let mut bytes = [0; SECRET_SIZE];
    getrandom::fill(&mut bytes).map_err(|error| Status::internal(format!("random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    pub(crate) fn new(accounts: Accounts, idle: Duration) -> Self {
        let open = accounts.is_empty().then(|| Arc::new(Session::new()));
        Sessions { accounts, idle, all: Mutex::default(), open }
    }

    /// The token of a new session; `None`: wrong name or password.
    pub(crate) fn log_in(&self, user: &str, password: &str) -> Result<Option<String>, Status> {
        if self.open.is_none() && !self.accounts.has(user, password) {
            return Ok(None);
        }
        let token = secret()?;
        let mut all = locked(&self.all);
        if all.len() >= SESSIONS_MAX {
            return Err(Status::resource_exhausted("there are too many sessions"));
        }
        all.insert(token.clone(), Arc::new(Session::new()));
        Ok(Some(token))
    }

    /// The session of a token, used now.
    pub(crate) fn find(&self, token: Option<&str>) -> Option<Arc<Session>> {
        let found = token.and_then(|token| locked(&self.all).get(token).map(Arc::clone));
        let session = found.or_else(|| self.open.clone())?;
        *locked(&session.used) = Instant::now();
        Some(session)
    }

    /// Ends a session.
    pub(crate) fn log_out(&self, session: &Arc<Session>) {
        locked(&self.all).retain(|_, other| !Arc::ptr_eq(other, session));
        if self.open.as_ref().is_none_or(|open| !Arc::ptr_eq(open, session)) {
            session.end();
        }
    }

    /// Ends sessions and statements that were idle for too long.
    pub(crate) fn sweep(&self) {
        let is_idle = |used: Instant| used.elapsed() > self.idle;
        locked(&self.all).retain(|_, session| {
            let is_idle = is_idle(*locked(&session.used)) && locked(&session.running).is_empty();
            !is_idle
        });
        if let Some(open) = &self.open {
            locked(&open.statements).retain(|_, statement| !is_idle(statement.used));
        }
    }

    /// Stops all queries.
    pub(crate) fn end_all(&self) {
        locked(&self.all).drain().for_each(|(_, session)| session.end());
        if let Some(open) = &self.open {
            open.end();
        }
    }
}

impl Session {
    fn new() -> Self {
        Session {
            used: Mutex::new(Instant::now()),
            statements: Mutex::default(),
            running: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    fn end(&self) {
        locked(&self.running).values().for_each(|running| running.stopper.abort());
        locked(&self.statements).clear();
    }

    /// Keeps a prepared statement; its name.
    pub(crate) fn prepare(&self, query: Query) -> Result<String, Status> {
        let name = secret()?;
        let mut statements = locked(&self.statements);
        if statements.len() >= STATEMENTS_MAX {
            return Err(Status::resource_exhausted("there are too many prepared statements, close some"));
        }
        let prepared = Prepared { query, values: Values::default(), used: Instant::now() };
        statements.insert(name.clone().into_bytes(), prepared);
        Ok(name)
    }

    /// A prepared statement.
    pub(crate) fn prepared(&self, name: &[u8]) -> Result<Prepared, Status> {
        let mut statements = locked(&self.statements);
        let Some(prepared) = statements.get_mut(name) else {
            return Err(Status::not_found(
                "there is no such prepared statement; it was closed or not used for long",
            ));
        };
        prepared.used = Instant::now();
        Ok(prepared.clone())
    }

    /// Binds values to a prepared statement.
    pub(crate) fn bind(&self, name: &[u8], values: Values) -> Result<(), Status> {
        self.prepared(name)?;
        if let Some(prepared) = locked(&self.statements).get_mut(name) {
            prepared.values = values;
        }
        Ok(())
    }

    pub(crate) fn close(&self, name: &[u8]) {
        locked(&self.statements).remove(name);
    }

    /// Notes that a query runs.
    pub(crate) fn runs(self: &Arc<Self>, ticket: Vec<u8>, stopper: AbortHandle) -> Entry {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        locked(&self.running).insert(number, Running { ticket, stopper });
        Entry { session: Arc::clone(self), number }
    }

    /// Stops the queries that this ticket began; whether there was one.
    pub(crate) fn stop(&self, ticket: &[u8]) -> bool {
        let running = locked(&self.running);
        let mut asked = running.values().filter(|running| running.ticket == ticket).peekable();
        let is_there = asked.peek().is_some();
        asked.for_each(|running| running.stopper.abort());
        is_there
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        locked(&self.session.running).remove(&self.number);
        *locked(&self.session.used) = Instant::now();
    }
}
