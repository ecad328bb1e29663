//! SQL over binary logs for other programs, by Apache Arrow Flight SQL: JDBC and ADBC tools connect to it.
//!
//! ```text
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
mod worker;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use binlogz_query_server::{
    GuardedBytes, ProtocolServer, QueryListener, QueryServerError, StatementRefusal, TLS_HANDSHAKE_TIME,
    TellLine, Tls,
};
use futures_util::{Stream, stream};
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

/// Serves until `end` comes; running statements are then ended. `listening` gets the address it listens on.
///
/// # Errors
///
/// An address or a certificate that can't be used.
pub async fn serve(
    server: ProtocolServer,
    tell: TellLine,
    listening: impl FnOnce(SocketAddr),
    end: impl Future<Output = ()>,
) -> Result<(), QueryServerError> {
    let (listener, address) = server.bind(&tell)?;
    let mut http = http(server.tls.as_ref())?;
    let ProtocolServer { listen, accounts, logins, prepared, workers, idle, .. } = server;
    let sessions = Arc::new(FlightSessions::new(accounts, prepared, idle));
    let service = LogService::new(Arc::clone(&sessions), tell, (workers, logins), idle);
    let service = FlightServiceServer::new(service).max_decoding_message_size(REQUEST_SIZE_MAX);
    listening(address);
    let sweeping = sessions.clone();
    let sweep = async move {
        loop {
            tokio::time::sleep(idle / SWEEPS).await;
            sweeping.sweep();
        }
    };
    let serve = http
        .add_service(SessionGuard::new(service, Arc::clone(&sessions)))
        .serve_with_incoming(Box::pin(accepted(listener)));
    tokio::select! {
        served = serve => served.map_err(|error| QueryServerError::of(&listen, &root(&error)))?,
        () = sweep => {}
        () = end => {}
    }
    sessions.end_all();
    Ok(())
}

/// The server of HTTP/2 beneath gRPC, with its limits.
fn http(tls: Option<&Tls>) -> Result<tonic::transport::Server, QueryServerError> {
    let server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_ANSWER))
        .max_concurrent_streams(Some(2 * REQUESTS_MAX as u32))
        .http2_max_header_list_size(HEADERS_SIZE_MAX)
        .concurrency_limit_per_connection(REQUESTS_MAX);
    let Some(tls) = tls else { return Ok(server) };
    let identity = Identity::from_pem(tls.certificate(), tls.key());
    let config = ServerTlsConfig::new().identity(identity).timeout(TLS_HANDSHAKE_TIME);
    server.tls_config(config).map_err(|error| QueryServerError::of(&"certificate", &root(&error)))
}

/// Connections, as they come.
fn accepted(listener: QueryListener) -> impl Stream<Item = io::Result<GuardedBytes>> {
    stream::unfold(listener, |mut listener| async move {
        let accepted = listener.next().await;
        Some((Ok(accepted), listener))
    })
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
