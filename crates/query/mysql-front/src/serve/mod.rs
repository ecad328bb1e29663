//! Serves MySQL's clients.
//!
//! ```text
//! clients     who is connected; KILL                             number → its end
//! transport   bytes, plain, over TLS, compressed
//! connection  a client from its greeting to its end              bytes → wire's session → commands
//! commands    what each command does
//! local       statements that are answered without a worker      SET, USE, SELECT @@…
//! answers     a worker's answer as packets                       messages → packets
//! prepared    the prepared statements of a connection
//! ```

mod answers;
mod clients;
mod commands;
mod connection;
mod local;
mod prepared;
mod transport;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use binlogz_query_server::{
    Logins, PreparedRoom, ProtocolServer, QueryAccounts, QueryServerError, TellLine, Workers,
};

use clients::ConnectedClients;
use connection::MysqlConnection;
use transport::acceptor;

/// Things that the connections of a server share.
pub(crate) struct FrontShared {
    accounts: QueryAccounts,
    logins: Arc<Logins>,
    prepared: Arc<PreparedRoom>,
    workers: Arc<Workers>,
    idle: Duration,
    tell: TellLine,
    /// What is to be known of the logs.
    notes: Vec<String>,
    tls: Option<tokio_rustls::TlsAcceptor>,
    /// Whether clients must use it: those that come from other machines.
    requires_tls: bool,
    clients: Arc<ConnectedClients>,
}

/// Serves MySQL's clients until `end` comes. `listening` gets the address it listens on. Each query has the notes as its warnings.
///
/// # Errors
///
/// An address or a certificate that can't be used.
pub async fn serve(
    server: ProtocolServer,
    (tell, notes): (TellLine, Vec<String>),
    listening: impl FnOnce(SocketAddr),
    end: impl Future<Output = ()>,
) -> Result<(), QueryServerError> {
    let (mut listener, address) = server.bind(&tell)?;
    let tls = server.tls.as_ref().map(acceptor).transpose()?;
    listening(address);
    let requires_tls = tls.is_some() && !server.listen.ip().is_loopback();
    let ProtocolServer { accounts, logins, prepared, workers, idle, .. } = server;
    let clients: Arc<ConnectedClients> = Arc::default();
    let clients_end = Arc::clone(&clients);
    let shared = Arc::new(FrontShared {
        accounts,
        logins,
        prepared,
        workers,
        idle,
        tell,
        notes,
        tls,
        requires_tls,
        clients,
    });
    let accept = async move {
        loop {
            let bytes = listener.next().await;
            let connection = MysqlConnection::new(bytes, Arc::clone(&shared));
            // A client that breaks the protocol or leaves is nobody's trouble but its own.
            tokio::spawn(async move { connection.run().await });
        }
    };
    tokio::select! {
        () = accept => {}
        () = end => {}
    }
    clients_end.end_all();
    Ok(())
}
