//! Limits connections, of all protocols together: how many there are, and how long one may be without a session. Whatever
//! they do, new ones are accepted.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};

use crate::TellLine;

/// Connections at once. A process may have 1,024 files by default, and workers need some.
const CONNECTIONS_MAX: usize = 600;
/// Connections without a session, among these: one more ends the oldest, of the address that has most of them.
const STRANGERS_MAX: usize = 200;
/// How long a connection may be without a session.
const LOGIN_TIME: Duration = Duration::from_secs(30);
/// After a connection could not be accepted: the reason is there for longer.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often it is logged that connections can't be accepted.
const TOLD: Duration = Duration::from_secs(60);

/// A connection, as its requests know it.
#[derive(Debug)]
pub struct QueryConnection {
    address: SocketAddr,
    /// Whether a request with a session came by it.
    is_known: AtomicBool,
    is_ended: AtomicBool,
    reader: AtomicWaker,
}

impl QueryConnection {
    /// Address that the connection comes from.
    pub fn address(&self) -> IpAddr {
        self.address.ip()
    }

    /// It has a session.
    pub fn is_known_now(&self) {
        self.is_known.store(true, Ordering::Release);
    }

    fn is_stranger(&self) -> bool {
        !self.is_known.load(Ordering::Acquire)
    }

    fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        self.reader.wake();
    }
}

/// The connections that there are, whichever listener accepted them.
#[derive(Debug, Default)]
pub struct OpenConnections(Mutex<Vec<Weak<QueryConnection>>>);

/// Accepts connections.
pub struct QueryListener {
    listener: TcpListener,
    tell: TellLine,
    told: Option<Instant>,
    open: Arc<OpenConnections>,
}

impl std::fmt::Debug for QueryListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryListener").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl QueryListener {
    /// Listens. `open` has the connections of all listeners of the process.
    pub(crate) fn bind(address: SocketAddr, open: Arc<OpenConnections>, tell: TellLine) -> io::Result<Self> {
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(QueryListener { listener, tell, told: None, open })
    }

    /// The address that it listens on.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next connection.
    pub async fn next(&mut self) -> GuardedBytes {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Without it answers wait for more to come.
                    let _ = stream.set_nodelay(true);
                    if let Some(connection) = self.open.add(address) {
                        let deadline = Box::pin(tokio::time::sleep(LOGIN_TIME));
                        return GuardedBytes { stream, connection, deadline };
                    }
                }
                Err(error) => {
                    let now = Instant::now();
                    if self.told.is_none_or(|told| now > told + TOLD) {
                        self.told = Some(now);
                        (self.tell)(&format!("a connection can't be accepted: {error}"));
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

impl OpenConnections {
    /// Makes room for a connection; `None`: there is none.
    fn add(&self, address: SocketAddr) -> Option<Arc<QueryConnection>> {
        let mut open = self.0.lock();
        open.retain(|connection| connection.strong_count() > 0);
        let all: Vec<_> = open.iter().filter_map(Weak::upgrade).collect();
        let strangers: Vec<_> = all
            .iter()
            .filter(|connection| connection.is_stranger() && !connection.is_ended.load(Ordering::Acquire))
            .collect();
        if strangers.len() >= STRANGERS_MAX || all.len() >= CONNECTIONS_MAX {
            let mut counts: HashMap<IpAddr, usize> = HashMap::new();
            strangers.iter().for_each(|stranger| *counts.entry(stranger.address()).or_default() += 1);
            let most = counts.into_iter().max_by_key(|(_, count)| *count)?.0;
            // They are in the order in which they came.
            strangers.iter().find(|stranger| stranger.address() == most)?.end();
        }
        let connection = Arc::new(QueryConnection {
            address,
            is_known: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            reader: AtomicWaker::new(),
        });
        open.push(Arc::downgrade(&connection));
        Some(connection)
    }
}

/// The bytes of a connection, which end if it has no session for too long.
#[derive(Debug)]
pub struct GuardedBytes {
    stream: TcpStream,
    connection: Arc<QueryConnection>,
    deadline: Pin<Box<Sleep>>,
}

impl GuardedBytes {
    /// The connection whose bytes these are.
    pub fn connection(&self) -> &Arc<QueryConnection> {
        &self.connection
    }
}

#[cfg(feature = "tonic")]
impl tonic::transport::server::Connected for GuardedBytes {
    type ConnectInfo = Arc<QueryConnection>;

    fn connect_info(&self) -> Arc<QueryConnection> {
        Arc::clone(&self.connection)
    }
}

impl AsyncRead for GuardedBytes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.connection.reader.register(context.waker());
        let is_late = self.connection.is_stranger() && self.deadline.as_mut().poll(context).is_ready();
        if is_late || self.connection.is_ended.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for GuardedBytes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
