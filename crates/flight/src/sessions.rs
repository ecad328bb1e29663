//! Sessions: who logged in, what they prepared, and which of their queries run. A token of 32 random bytes stands for a session.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use binlogz_query::{Query, Values};
use futures_util::future::AbortHandle as BeginningStopper;
use tokio::task::AbortHandle;
use tonic::Status;

use crate::accounts::Accounts;

/// Sessions at once; more are refused.
const SESSIONS_MAX: usize = 10_000;
/// Statements that a session has prepared and not closed.
const STATEMENTS_MAX: usize = 1000;
/// The message for a client whose session has ended.
pub(crate) const SESSION_ENDED: &str = "the session has ended: log in again";
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
    running: Mutex<RunningQueries>,
    next: AtomicU64,
}

/// The queries of a session.
#[derive(Default)]
struct RunningQueries {
    all: HashMap<u64, Running>,
    /// No more may begin.
    has_ended: bool,
}

/// A prepared statement and the values that were bound last.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) query: Query,
    pub(crate) values: Values,
    used: Instant,
}

/// A query that waits for its turn, is planned, or runs.
struct Running {
    ticket: Vec<u8>,
    /// The prepared statement that it is.
    statement: Option<Vec<u8>>,
    stopper: Stopper,
}

/// Stops a query. Not to be called with a lock that the query's end needs.
#[derive(Clone)]
struct Stopper {
    beginning: BeginningStopper,
    rows: Option<AbortHandle>,
}

/// A query in the list of those that run, until it is dropped.
pub(crate) struct Entry {
    session: Arc<Session>,
    number: u64,
    statement: Option<Vec<u8>>,
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
        let mut all = locked(&self.all);
        all.retain(|_, session| {
            let is_idle = is_idle(*locked(&session.used)) && locked(&session.running).all.is_empty();
            !is_idle
        });
        let sessions: Vec<_> = all.values().chain(&self.open).cloned().collect();
        drop(all);
        sessions.iter().for_each(|session| session.sweep(is_idle));
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
        let mut running = locked(&self.running);
        running.has_ended = true;
        let stoppers: Vec<_> = running.all.values().map(|running| running.stopper.clone()).collect();
        drop(running);
        stoppers.iter().for_each(Stopper::stop);
        locked(&self.statements).clear();
    }

    /// Forgets statements that were idle for too long; one that runs isn't idle.
    fn sweep(&self, is_idle: impl Fn(Instant) -> bool) {
        let running: HashSet<_> =
            locked(&self.running).all.values().filter_map(|running| running.statement.clone()).collect();
        locked(&self.statements).retain(|name, statement| !is_idle(statement.used) || running.contains(name));
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

    /// Notes a query that begins; a prepared one by its statement's name.
    pub(crate) fn begins(
        self: &Arc<Self>,
        ticket: Vec<u8>,
        statement: Option<Vec<u8>>,
        beginning: BeginningStopper,
    ) -> Result<Entry, Status> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut running = locked(&self.running);
        if running.has_ended {
            return Err(Status::unauthenticated(SESSION_ENDED));
        }
        let query =
            Running { ticket, statement: statement.clone(), stopper: Stopper { beginning, rows: None } };
        running.all.insert(number, query);
        Ok(Entry { session: Arc::clone(self), number, statement })
    }

    /// Stops the queries that this ticket began; whether there was one.
    pub(crate) fn stop(&self, ticket: &[u8]) -> bool {
        let running = locked(&self.running);
        let asked = running.all.values().filter(|running| running.ticket == ticket);
        let stoppers: Vec<_> = asked.map(|running| running.stopper.clone()).collect();
        drop(running);
        stoppers.iter().for_each(Stopper::stop);
        !stoppers.is_empty()
    }
}

impl Stopper {
    fn stop(&self) {
        self.beginning.abort();
        if let Some(rows) = &self.rows {
            rows.abort();
        }
    }
}

impl Entry {
    /// Notes how the rows of the query are stopped, and stops them if it was stopped meanwhile.
    pub(crate) fn has_begun(&self, rows: AbortHandle) {
        let mut running = locked(&self.session.running);
        let Some(query) = running.all.get_mut(&self.number) else { return };
        query.stopper.rows = Some(rows);
        let stopper = query.stopper.clone();
        drop(running);
        if stopper.beginning.is_aborted() {
            stopper.stop();
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let now = Instant::now();
        *locked(&self.session.used) = now;
        if let Some(name) = &self.statement
            && let Some(statement) = locked(&self.session.statements).get_mut(name)
        {
            statement.used = now;
        }
        // At last, so that the session never looks idle.
        locked(&self.session.running).all.remove(&self.number);
    }
}
