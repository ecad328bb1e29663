//! The settings and shared parts of a protocol's server, and how it begins to listen.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Logins, OpenConnections, PreparedRoom, QueryAccounts, QueryListener, QueryServerError, TellLine, Tls,
    Workers,
};

/// A server of logs by one protocol: where it listens, whom it lets in, and what it shares with the servers of other protocols.
#[derive(Debug, Clone)]
pub struct ProtocolServer {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The server's certificate; `None`: connections are not encrypted.
    pub tls: Option<Tls>,
    /// The accounts that may log in; without any, every client may ask, by any name.
    pub accounts: QueryAccounts,
    /// How fast passwords can be guessed, by all protocols together.
    pub logins: Arc<Logins>,
    /// The connections of all protocols.
    pub open: Arc<OpenConnections>,
    /// The prepared statements of all protocols.
    pub prepared: Arc<PreparedRoom>,
    /// Where statements are planned and run.
    pub workers: Arc<Workers>,
    /// A connection, session, statement or query that nobody uses for so long ends.
    pub idle: Duration,
}

impl ProtocolServer {
    /// Listens. Connections are counted with those of the other protocols.
    ///
    /// # Errors
    ///
    /// An address that can't be listened on.
    pub fn bind(&self, tell: &TellLine) -> Result<(QueryListener, SocketAddr), QueryServerError> {
        let bound = QueryListener::bind(self.listen, Arc::clone(&self.open), Arc::clone(tell));
        let listener = bound.map_err(|error| self.failed(&error))?;
        let address = listener.address().map_err(|error| self.failed(&error))?;
        Ok((listener, address))
    }

    /// An error, with the address that was to be listened on.
    pub fn failed(&self, error: &dyn Display) -> QueryServerError {
        QueryServerError::of(&self.listen, error)
    }
}
