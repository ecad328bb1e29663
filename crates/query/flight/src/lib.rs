//! SQL over binary logs for other programs, by Apache Arrow Flight SQL: JDBC and ADBC tools connect to it.
//!
//! ```text
//! connections  how many, and how long one may be without a session
//! accounts     names and passwords                           Basic → yes or no
//! logins       how fast passwords can be guessed             account, address → when it is compared
//! sessions     who logged in, what they prepared and run     token → session, until it is idle for too long
//! guard        lets requests pass that belong to a session   HTTP request → service
//! service      the protocol's requests as queries            commands → workers → messages
//! workers      processes that plan and run statements, each ended with its own
//! frames       what they say to each other                   requests, replies ↔ bytes
//! worker       such a process                                statement → query::Queries → messages
//! listings     catalogs, tables, types, what the server is   names → batches
//! tls          the certificate, given or made here
//! ```
//!
//! Clients can only read: `query` plans nothing else for them. No statement is parsed, planned or run in the process that
//! serves, so a statement that breaks its process harms no other. All share one limit of memory.

mod accounts;
mod connections;
mod frames;
mod guard;
mod listings;
mod logins;
mod service;
mod sessions;
mod tls;
mod worker;
mod workers;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use binlogz_query::Queries;
use tonic::Status;

pub use accounts::FlightAccounts;
pub use tls::Tls;
pub use worker::{WorkerQuestions, questions, work};
pub use workers::{StatementLimits, WorkerCommand};

use connections::FlightListener;
use guard::SessionGuard;
use service::LogService;
use sessions::FlightSessions;
use workers::Workers;

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
    pub accounts: FlightAccounts,
    /// Where statements are planned and run.
    pub worker: WorkerCommand,
    /// Memory, time and number of statements that may run.
    pub limits: StatementLimits,
    /// A session, a statement or a query that nobody uses for so long ends.
    pub idle: Duration,
}

/// Takes lines about what happened.
pub type TellLine = Arc<dyn Fn(&str) + Send + Sync>;

/// Why a server ended.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    fn of(what: &dyn std::fmt::Display, error: &dyn std::fmt::Display) -> Self {
        Error(format!("{what}: {error}"))
    }
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
    ) -> Result<(), Error> {
        let at = |error: &dyn std::fmt::Display| Error::of(&self.listen, error);
        let listener = FlightListener::bind(self.listen, Arc::clone(&tell)).map_err(|error| at(&error))?;
        let sessions = Arc::new(FlightSessions::new(self.accounts, self.idle));
        let workers = Workers::new(self.worker, self.limits, queries.clone(), Arc::clone(&tell));
        workers.begin().await.map_err(|status| Error(status.message().to_owned()))?;
        let service = LogService::new(queries, Arc::clone(&sessions), tell, Arc::clone(&workers), self.idle);
        let service = FlightServiceServer::new(service).max_decoding_message_size(REQUEST_SIZE_MAX);
        let mut server = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE_ANSWER))
            .max_concurrent_streams(Some(2 * REQUESTS_MAX as u32))
            .http2_max_header_list_size(HEADERS_SIZE_MAX)
            .concurrency_limit_per_connection(REQUESTS_MAX);
        if let Some(tls) = &self.tls {
            let config = server.tls_config(tls.config());
            server = config.map_err(|error| Error(format!("certificate: {}", root(&error))))?;
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
        let serve = server.serve_with_incoming(Box::pin(listener.accepted()));
        tokio::select! {
            served = serve => served.map_err(|error| at(&root(&error)))?,
            () = sweep => {}
            () = end => {}
        }
        sessions.end_all();
        workers.end();
        Ok(())
    }
}

/// An error as gRPC has it, sorted by blame.
fn status(error: binlogz_query::Error) -> Status {
    use binlogz_query::Error;
    let line = error.to_string();
    match error {
        Error::Sql(_) => Status::invalid_argument(line),
        Error::Memory { .. } | Error::Temporary(_) => Status::resource_exhausted(line),
        Error::Log(_) => Status::data_loss(line),
        Error::Stopped => Status::cancelled(line),
        _ => Status::internal(line),
    }
}

/// The cause beneath an error of the transport's, which says little itself.
fn root(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
