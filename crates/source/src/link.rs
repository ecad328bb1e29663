//! Carries bytes between a session and its server, and tells the session the time.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};

use crate::connect_options::ConnectOptions;
use crate::error::{Error, Result};
use crate::socket::{HangUp, Socket};

/// Bytes asked of the connection at a time; large enough that a system call costs nothing.
const READ_SIZE: usize = 256 << 10;

/// A connection, what came in over it, and a clock.
#[derive(Debug)]
pub(crate) struct Link {
    transport: Transport,
    /// What came in: `begin..end` was not taken yet.
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Host and port, or the socket, for errors.
    server: String,
    started: Instant,
}

#[derive(Debug)]
enum Transport {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
    /// While it changes.
    Nothing,
}

/// What waiting for bytes brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// Bytes, or that it is time to look at the deadline.
    Something,
    /// The server ended the connection.
    End,
}

impl Link {
    pub(crate) fn connect(options: &ConnectOptions) -> Result<Self> {
        let started = Instant::now();
        let server = options.server();
        let socket =
            options.connect_socket().map_err(|source| Error::Connect { server: server.clone(), source })?;
        let connected = |source| Error::Connect { server: server.clone(), source };
        socket.set_write_timeout(Some(options.timeouts.answer)).map_err(connected)?;
        Ok(Link {
            transport: Transport::Plain(socket),
            buffer: vec![0; READ_SIZE],
            begin: 0,
            end: 0,
            server,
            started,
        })
    }

    /// What ends this connection from another thread.
    pub(crate) fn hang_up(&self) -> io::Result<HangUp> {
        match &self.transport {
            Transport::Plain(socket) => socket.hang_up(),
            Transport::Tls(stream) => stream.sock.hang_up(),
            Transport::Nothing => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Since the connection was begun.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// What came in and was not taken yet.
    pub(crate) fn input(&self) -> &[u8] {
        self.buffer.get(self.begin..self.end).unwrap_or_default()
    }

    /// Takes the first `count` bytes of the input.
    pub(crate) fn take(&mut self, count: usize) {
        self.begin += count;
    }

    /// What was taken last, with `count` bytes: valid until more is received.
    pub(crate) fn taken(&self, count: usize) -> &[u8] {
        self.buffer.get(self.begin.saturating_sub(count)..self.begin).unwrap_or_default()
    }

    /// Sends all of it.
    pub(crate) fn send(&mut self, bytes: &[u8], doing: &str) -> Result<()> {
        let sent = match &mut self.transport {
            Transport::Plain(socket) => socket.write_all(bytes),
            Transport::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
            Transport::Nothing => Err(io::ErrorKind::NotConnected.into()),
        };
        sent.map_err(|source| self.broken(doing, source))
    }

    /// Waits for more input, at most until the deadline; all input must have been taken.
    pub(crate) fn receive(&mut self, deadline: Option<Duration>, doing: &str) -> Result<Received> {
        let now = self.now();
        let timeout = deadline.map(|deadline| deadline.saturating_sub(now));
        (self.begin, self.end) = (0, 0);
        let read = match &mut self.transport {
            Transport::Plain(socket) => {
                socket.set_read_timeout(timeout).and_then(|()| socket.read(&mut self.buffer))
            }
            Transport::Tls(stream) => {
                stream.sock.set_read_timeout(timeout).and_then(|()| stream.read(&mut self.buffer))
            }
            Transport::Nothing => Err(io::ErrorKind::NotConnected.into()),
        };
        match read {
            Ok(0) => Ok(Received::End),
            Ok(count) => {
                self.end = count;
                Ok(Received::Something)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {
                    Ok(Received::Something)
                }
                _ if is_end(&error) => Ok(Received::End),
                _ => Err(self.broken(doing, error)),
            },
        }
    }

    /// Goes over to TLS; at the latest at the deadline.
    pub(crate) fn start_tls(&mut self, options: &ConnectOptions, deadline: Option<Duration>) -> Result<()> {
        let Transport::Plain(socket) = std::mem::replace(&mut self.transport, Transport::Nothing) else {
            return Err(self.tls_failed(io::Error::other("TLS stands already")));
        };
        let name = options.tls.server_name(options.host())?;
        let connection = ClientConnection::new(options.tls.config()?, name)
            .map_err(|error| self.tls_failed(io::Error::other(error)))?;
        let mut stream = StreamOwned::new(connection, socket);
        while stream.conn.is_handshaking() {
            let left = deadline.map(|deadline| deadline.saturating_sub(self.now()));
            if left == Some(Duration::ZERO) {
                return Err(self.tls_failed(io::ErrorKind::TimedOut.into()));
            }
            let step =
                stream.sock.set_read_timeout(left).and_then(|()| stream.conn.complete_io(&mut stream.sock));
            match step {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if is_end(&error) => {
                    let said = "the server ended the connection";
                    return Err(self.tls_failed(io::Error::new(error.kind(), said)));
                }
                Err(error) => return Err(self.tls_failed(error)),
            }
        }
        self.transport = Transport::Tls(Box::new(stream));
        Ok(())
    }

    pub(crate) fn wire_error(&self, source: binlogz_wire::Error) -> Error {
        Error::Wire { server: self.server.clone(), source }
    }

    fn tls_failed(&self, source: io::Error) -> Error {
        Error::Tls { server: self.server.clone(), source }
    }

    fn broken(&self, doing: &str, source: io::Error) -> Error {
        Error::Io { server: self.server.clone(), doing: doing.to_owned(), source }
    }
}

/// Whether the peer is gone: which of these the system says depends on what was still on its way, and servers end
/// TLS without saying goodbye.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}
