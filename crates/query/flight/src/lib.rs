//! SQL over binary logs for other programs, by Apache Arrow Flight SQL: JDBC and ADBC tools connect to it.
//!
//! ```text
//! transport    connections as gRPC takes them
//! sessions     who logged in, what they prepared and run     token → session, until it is idle for too long
//! guard        lets requests pass that belong to a session   HTTP request → service
//! service      the protocol's requests as queries            commands → statements → messages
//! statements   asks workers                                  statement → plan, messages of rows
//! worker       a worker's half of the protocol               statement → query::Queries → messages
//! listings     catalogs, tables, types, what the server is   names → batches
//! ```
//!
//! Clients can only read: `query` plans nothing else for them. Accounts, logins, connections and worker processes are
//! those of `query-server`.

mod guard;
mod listings;
mod service;
mod sessions;
mod statements;
mod transport;
mod worker;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use binlogz_query::Queries;
use binlogz_query_server::{
    Logins, OpenConnections, PreparedRoom, QueryAccounts, QueryListener, QueryServerError, StatementRefusal,
    TLS_HANDSHAKE_TIME, TellLine, Tls, Workers,
};
use tonic::Status;
use tonic::transport::{Identity, ServerTlsConfig};

pub use worker::FlightAnswers;

use guard::SessionGuard;
use service::LogService;
use sessions::FlightSessions;

/// Where it listens by default: the port of other servers of this protocol.
pub const DEFAULT_PORT: u16 = 31337;

/// A client that doesn't answer for so long is gone, and so are its queries.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_ANSWER: Duration = Duration::from_secs(20);
/// Requests of a connection at once.
const REQUESTS_MAX: usize = 32;
/// Bytes of a request: a statement, or values of its parameters.
const REQUEST_SIZE_MAX: usize = 16 << 20;
/// Bytes of a request's headers.
const HEADERS_SIZE_MAX: u32 = 32 << 10;
/// Idle sessions are looked for this many times in the time that makes one idle.
const SWEEPS: u32 = 10;

/// A server of logs.
#[derive(Debug)]
pub struct FlightServer {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The server's certificate; `None`: connections are not encrypted.
    pub tls: Option<Tls>,
    /// The accounts that may log in; without any, every client may ask.
    pub accounts: QueryAccounts,
    /// How fast passwords can be guessed, by all protocols together.
    pub logins: Arc<Logins>,
    /// The connections of all protocols.
    pub open: Arc<OpenConnections>,
    /// The prepared statements of all protocols.
    pub prepared: Arc<PreparedRoom>,
    /// Where statements are planned and run.
    pub workers: Arc<Workers>,
    /// A session, a statement or a query that nobody uses for so long ends.
    pub idle: Duration,
}

impl FlightServer {
    /// Serves until `end` comes; running statements are then ended. `listening` gets the address it listens on.
    ///
    /// # Errors
    ///
    /// An address or a certificate that can't be used.
    pub async fn run(
        self,
        queries: Queries,
        tell: TellLine,
        listening: impl FnOnce(SocketAddr),
        end: impl Future<Output = ()>,
    ) -> Result<(), QueryServerError> {
        let at = |error: &dyn std::fmt::Display| QueryServerError::of(&self.listen, error);
        let listener = QueryListener::bind(self.listen, Arc::clone(&self.open), Arc::clone(&tell))
            .map_err(|error| at(&error))?;
        let sessions = Arc::new(FlightSessions::new(self.accounts, self.prepared, self.idle));
        let service =
            LogService::new(queries, Arc::clone(&sessions), tell, (self.workers, self.logins), self.idle);
        let service = FlightServiceServer::new(service).max_decoding_message_size(REQUEST_SIZE_MAX);
        let mut server = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE_ANSWER))
            .max_concurrent_streams(Some(2 * REQUESTS_MAX as u32))
            .http2_max_header_list_size(HEADERS_SIZE_MAX)
            .concurrency_limit_per_connection(REQUESTS_MAX);
        if let Some(tls) = &self.tls {
            let identity = Identity::from_pem(tls.certificate(), tls.key());
            let config = ServerTlsConfig::new().identity(identity).timeout(TLS_HANDSHAKE_TIME);
            server = server
                .tls_config(config)
                .map_err(|error| QueryServerError::of(&"certificate", &root(&error)))?;
        }
        listening(listener.address().map_err(|error| at(&error))?);
        let sweeping = sessions.clone();
        let sweep = async move {
            loop {
                tokio::time::sleep(self.idle / SWEEPS).await;
                sweeping.sweep();
            }
        };
        let server = server.add_service(SessionGuard::new(service, Arc::clone(&sessions)));
        let serve = server.serve_with_incoming(Box::pin(transport::accepted(listener)));
        tokio::select! {
            served = serve => served.map_err(|error| at(&root(&error)))?,
            () = sweep => {}
            () = end => {}
        }
        sessions.end_all();
        Ok(())
    }
}

/// An error as gRPC has it, sorted by blame.
fn status(error: binlogz_query::Error) -> Status {
    statements::status(StatementRefusal::from(error))
}

/// The cause beneath an error of the transport's, which says little itself.
fn root(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
