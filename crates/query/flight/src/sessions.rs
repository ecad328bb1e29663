//! Sessions: who logged in, which statements they prepared, and which of their queries run. A token of 32 random bytes
//! stands for a session.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use binlogz_query_server::{ChargedBytes, PreparedBytes, PreparedRoom, QueryAccounts};
use datafusion::arrow::datatypes::Schema;
use futures_util::future::AbortHandle as BeginningStopper;
use parking_lot::Mutex;
use prost::bytes::Bytes;
use tokio::task::AbortHandle;
use tonic::Status;

use crate::statements::{PlannedStatement, status};

/// Sessions at once; more are refused.
const SESSIONS_MAX: usize = 10_000;
/// Sessions of one account, among these.
const SESSIONS_OF_ACCOUNT_MAX: usize = 1000;
/// Statements that a session has prepared and not closed.
const STATEMENTS_MAX: usize = 1000;
/// Queries that a session has asked for at once, with those that wait.
const RUNNING_MAX: usize = 256;
/// The message for a client whose session has ended.
pub(crate) const SESSION_ENDED: &str = "the session has ended: log in again";
/// Bytes of tokens, and of the names of prepared statements.
const SECRET_SIZE: usize = 32;

/// All sessions.
pub(crate) struct FlightSessions {
    accounts: QueryAccounts,
    idle: Duration,
    all: Mutex<HashMap<String, Arc<FlightSession>>>,
    /// The one of all clients where nobody needs to log in.
    open: Option<Arc<FlightSession>>,
    prepared: Arc<PreparedRoom>,
}

/// A session.
pub(crate) struct FlightSession {
    /// The name of its account; empty if nobody needs one.
    pub(crate) account: String,
    charge: Arc<PreparedBytes>,
    used: Mutex<Instant>,
    statements: Mutex<HashMap<Vec<u8>, PreparedStatement>>,
    running: Mutex<RunningQueries>,
    next: AtomicU64,
}

/// The queries of a session.
#[derive(Default)]
struct RunningQueries {
    all: HashMap<u64, RunningQuery>,
    /// No more may begin.
    has_ended: bool,
}

/// A prepared statement and the values that were bound last.
#[derive(Clone)]
pub(crate) struct PreparedStatement {
    pub(crate) statement: Arc<str>,
    pub(crate) planned: PlannedStatement,
    pub(crate) parameters: Arc<Schema>,
    /// One row, as Arrow's IPC stream; empty: none.
    pub(crate) values: Bytes,
    _charged: Arc<ChargedBytes>,
    _values_charged: Option<Arc<ChargedBytes>>,
    used: Instant,
}

/// A query that waits for its turn, is planned, or runs.
struct RunningQuery {
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
    session: Arc<FlightSession>,
    number: u64,
    statement: Option<Vec<u8>>,
}

/// A secret that can't be guessed, in hexadecimal.
pub(crate) fn secret() -> Result<String, Status> {
    let mut bytes = [0; SECRET_SIZE];
    getrandom::fill(&mut bytes).map_err(|error| Status::internal(format!("random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl FlightSessions {
    pub(crate) fn new(accounts: QueryAccounts, prepared: Arc<PreparedRoom>, idle: Duration) -> Self {
        let open =
            accounts.is_empty().then(|| Arc::new(FlightSession::new(String::new(), prepared.of_all())));
        FlightSessions { accounts, idle, all: Mutex::default(), open, prepared }
    }

    /// The token of a new session; `None`: wrong name or password.
    pub(crate) fn log_in(&self, user: &str, password: &str) -> Result<Option<String>, Status> {
        if self.open.is_none() && !self.accounts.has(user, password) {
            return Ok(None);
        }
        let token = secret()?;
        // Without accounts a name is nobody's.
        let account = if self.open.is_some() { "" } else { user };
        let charge = self.prepared.of_account(account);
        let mut all = self.all.lock();
        let of_account = all.values().filter(|session| session.account == account).count();
        if all.len() >= SESSIONS_MAX || of_account >= SESSIONS_OF_ACCOUNT_MAX {
            return Err(Status::resource_exhausted("there are too many sessions"));
        }
        all.insert(token.clone(), Arc::new(FlightSession::new(account.to_owned(), charge)));
        Ok(Some(token))
    }

    /// The session of a token, used now.
    pub(crate) fn find(&self, token: Option<&str>) -> Option<Arc<FlightSession>> {
        let found = token.and_then(|token| self.all.lock().get(token).map(Arc::clone));
        let session = found.or_else(|| self.open.clone())?;
        *session.used.lock() = Instant::now();
        Some(session)
    }

    /// Ends a session.
    pub(crate) fn log_out(&self, session: &Arc<FlightSession>) {
        self.all.lock().retain(|_, other| !Arc::ptr_eq(other, session));
        if self.open.as_ref().is_none_or(|open| !Arc::ptr_eq(open, session)) {
            session.end();
        }
    }

    /// Ends sessions and statements that were idle for too long.
    pub(crate) fn sweep(&self) {
        let is_idle = |used: Instant| used.elapsed() > self.idle;
        let mut all = self.all.lock();
        all.retain(|_, session| {
            let is_idle = is_idle(*session.used.lock()) && session.running.lock().all.is_empty();
            !is_idle
        });
        let sessions: Vec<_> = all.values().chain(&self.open).cloned().collect();
        drop(all);
        sessions.iter().for_each(|session| session.sweep(is_idle));
    }

    /// Stops all queries.
    pub(crate) fn end_all(&self) {
        self.all.lock().drain().for_each(|(_, session)| session.end());
        if let Some(open) = &self.open {
            open.end();
        }
    }
}

impl FlightSession {
    fn new(account: String, charge: Arc<PreparedBytes>) -> Self {
        FlightSession {
            account,
            charge,
            used: Mutex::new(Instant::now()),
            statements: Mutex::default(),
            running: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    fn end(&self) {
        let mut running = self.running.lock();
        running.has_ended = true;
        let stoppers: Vec<_> = running.all.values().map(|running| running.stopper.clone()).collect();
        drop(running);
        stoppers.iter().for_each(Stopper::stop);
        self.statements.lock().clear();
    }

    /// Forgets statements that were idle for too long; one that runs isn't idle.
    fn sweep(&self, is_idle: impl Fn(Instant) -> bool) {
        let running: HashSet<_> =
            self.running.lock().all.values().filter_map(|running| running.statement.clone()).collect();
        self.statements.lock().retain(|name, statement| !is_idle(statement.used) || running.contains(name));
    }

    /// Keeps a prepared statement; its name.
    pub(crate) fn prepare(&self, statement: String, planned: PlannedStatement) -> Result<String, Status> {
        let name = secret()?;
        let charged = self.charge.charged(statement.len() + planned.size()).map_err(status)?;
        let mut statements = self.statements.lock();
        if statements.len() >= STATEMENTS_MAX {
            return Err(Status::resource_exhausted("there are too many prepared statements, close some"));
        }
        let prepared = PreparedStatement {
            statement: statement.into(),
            parameters: Arc::new(planned.parameters()?),
            planned,
            values: Bytes::new(),
            _charged: charged,
            _values_charged: None,
            used: Instant::now(),
        };
        statements.insert(name.clone().into_bytes(), prepared);
        Ok(name)
    }

    /// A prepared statement.
    pub(crate) fn prepared(&self, name: &[u8]) -> Result<PreparedStatement, Status> {
        let mut statements = self.statements.lock();
        let Some(prepared) = statements.get_mut(name) else {
            return Err(Status::not_found(
                "there is no such prepared statement; it was closed or not used for long",
            ));
        };
        prepared.used = Instant::now();
        Ok(prepared.clone())
    }

    /// Binds values to a prepared statement.
    pub(crate) fn bind(&self, name: &[u8], values: Bytes) -> Result<(), Status> {
        self.prepared(name)?;
        let charged = self.charge.charged(values.len()).map_err(status)?;
        if let Some(prepared) = self.statements.lock().get_mut(name) {
            (prepared.values, prepared._values_charged) = (values, Some(charged));
        }
        Ok(())
    }

    pub(crate) fn close(&self, name: &[u8]) {
        self.statements.lock().remove(name);
    }

    /// Notes a query that begins; a prepared one by its statement's name.
    pub(crate) fn begins(
        self: &Arc<Self>,
        ticket: Vec<u8>,
        statement: Option<Vec<u8>>,
        beginning: BeginningStopper,
    ) -> Result<Entry, Status> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut running = self.running.lock();
        if running.has_ended {
            return Err(Status::unauthenticated(SESSION_ENDED));
        }
        if running.all.len() >= RUNNING_MAX {
            return Err(Status::resource_exhausted("there are too many queries"));
        }
        let query =
            RunningQuery { ticket, statement: statement.clone(), stopper: Stopper { beginning, rows: None } };
        running.all.insert(number, query);
        Ok(Entry { session: Arc::clone(self), number, statement })
    }

    /// Stops the queries that this ticket began; whether there was one.
    pub(crate) fn stop(&self, ticket: &[u8]) -> bool {
        let running = self.running.lock();
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
        let mut running = self.session.running.lock();
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
        *self.session.used.lock() = now;
        if let Some(name) = &self.statement
            && let Some(statement) = self.session.statements.lock().get_mut(name)
        {
            statement.used = now;
        }
        // At last, so that the session never looks idle.
        self.session.running.lock().all.remove(&self.number);
    }
}
