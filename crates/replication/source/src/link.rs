//! Carries bytes between a session and its server, and tells the session the time.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use binlogz_wire::compressed::{CompressedPackets, ConnectionCompression};
use rustls::{ClientConnection, StreamOwned};

use crate::connect_options::ConnectOptions;
use crate::error::{Error, Result};
use crate::socket::{HangUp, Socket};

/// Bytes to read at a time; large enough to make the cost of a system call negligible.
const READ_SIZE: usize = 256 << 10;

/// A connection, its received bytes, and a clock.
#[derive(Debug)]
pub(crate) struct Link {
    transport: Transport,
    /// Once the connection is compressed: what came in and goes out below the rest.
    compressed: Option<Box<CompressedLink>>,
    /// Received bytes: `begin..end` was not taken yet.
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

/// The lower half of a compressed connection.
#[derive(Debug)]
struct CompressedLink {
    packets: CompressedPackets,
    /// Received bytes: `begin..end` was not expanded yet.
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    out: Vec<u8>,
}

/// The result of waiting for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiveResult {
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
            compressed: None,
            buffer: vec![0; READ_SIZE],
            begin: 0,
            end: 0,
            server,
            started,
        })
    }

    /// A handle to end this connection from another thread.
    pub(crate) fn hang_up(&self) -> io::Result<HangUp> {
        match &self.transport {
            Transport::Plain(socket) => socket.hang_up(),
            Transport::Tls(stream) => stream.sock.hang_up(),
            Transport::Nothing => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Whether anyone on the way could listen, or change the messages.
    pub(crate) fn is_open_to_others(&self) -> bool {
        matches!(&self.transport, Transport::Plain(socket) if !socket.is_local())
    }

    /// Since the connection was begun.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Received bytes that were not taken yet.
    pub(crate) fn input(&self) -> &[u8] {
        self.buffer.get(self.begin..self.end).unwrap_or_default()
    }

    /// Takes the first `count` bytes of the input.
    pub(crate) fn take(&mut self, count: usize) {
        self.begin += count;
    }

    /// The `count` bytes taken last: valid until more is received.
    pub(crate) fn taken(&self, count: usize) -> &[u8] {
        self.buffer.get(self.begin.saturating_sub(count)..self.begin).unwrap_or_default()
    }

    /// Compresses all bytes from now on, if compression was negotiated; there must be no unread input.
    pub(crate) fn compress_with(&mut self, compression: Option<ConnectionCompression>) {
        if self.compressed.is_none()
            && let Some(compression) = compression
        {
            let packets = CompressedPackets::new(compression);
            let buffer = vec![0; READ_SIZE];
            let compressed = CompressedLink { packets, buffer, begin: 0, end: 0, out: Vec::new() };
            self.compressed = Some(Box::new(compressed));
        }
    }

    /// The compression of all bytes.
    pub(crate) fn compression(&self) -> Option<ConnectionCompression> {
        self.compressed.as_ref().map(|compressed| compressed.packets.compression())
    }

    /// The server restarts its numbering of compressed packets from this number.
    pub(crate) fn expect_sequence(&mut self, sequence: u8) {
        if let Some(compressed) = &mut self.compressed {
            compressed.packets.expect_sequence(sequence);
        }
    }

    /// Sends all of it: whole packets.
    pub(crate) fn send(&mut self, packets: &[u8], doing: &str) -> Result<()> {
        let begins = packets.get(3) == Some(&0);
        self.send_compressed(packets, doing, |lower, out| lower.compress(packets, begins, out))
    }

    /// Sends packets that begin no exchange, in the middle of the server's.
    pub(crate) fn send_beside(&mut self, packets: &[u8], doing: &str) -> Result<()> {
        self.send_compressed(packets, doing, |lower, out| lower.compress_beside(packets, out))
    }

    fn send_compressed(
        &mut self,
        packets: &[u8],
        doing: &str,
        compress: impl FnOnce(&mut CompressedPackets, &mut Vec<u8>) -> binlogz_binlog::Result<()>,
    ) -> Result<()> {
        let Some(mut compressed) = self.compressed.take() else { return self.send_bytes(packets, doing) };
        compressed.out.clear();
        let sent = match compress(&mut compressed.packets, &mut compressed.out) {
            Ok(()) => self.send_bytes(&compressed.out, doing),
            Err(source) => Err(self.malformed(doing, source)),
        };
        self.compressed = Some(compressed);
        sent
    }

    fn send_bytes(&mut self, bytes: &[u8], doing: &str) -> Result<()> {
        let sent = match &mut self.transport {
            Transport::Plain(socket) => socket.write_all(bytes),
            Transport::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
            Transport::Nothing => Err(io::ErrorKind::NotConnected.into()),
        };
        sent.map_err(|source| self.broken(doing, source))
    }

    /// Waits for more input, at most until the deadline; all input must have been taken.
    pub(crate) fn receive(&mut self, deadline: Option<Duration>, doing: &str) -> Result<ReceiveResult> {
        (self.begin, self.end) = (0, 0);
        let mut buffer = std::mem::take(&mut self.buffer);
        let received = match self.compressed.take() {
            None => self.read(&mut buffer, deadline, doing),
            Some(mut compressed) => {
                let received = self.read_packet(&mut compressed, &mut buffer, deadline, doing);
                self.compressed = Some(compressed);
                received
            }
        };
        self.buffer = buffer;
        Ok(match received? {
            Some(0) => ReceiveResult::End,
            count => {
                self.end = count.unwrap_or_default();
                ReceiveResult::Something
            }
        })
    }

    /// Waits for the next compressed packet that holds something, and expands it; as [`Link::read`].
    fn read_packet(
        &mut self,
        compressed: &mut CompressedLink,
        plain: &mut Vec<u8>,
        deadline: Option<Duration>,
        doing: &str,
    ) -> Result<Option<usize>> {
        loop {
            let input = compressed.buffer.get(compressed.begin..compressed.end).unwrap_or_default();
            let mut rest = input;
            let expanded = compressed.packets.expand(&mut rest, plain);
            compressed.begin += input.len() - rest.len();
            if expanded.map_err(|source| self.malformed(doing, source))? {
                if !plain.is_empty() {
                    return Ok(Some(plain.len()));
                }
                continue;
            }
            (compressed.begin, compressed.end) = (0, 0);
            match self.read(&mut compressed.buffer, deadline, doing)? {
                Some(0) => return Ok(Some(0)),
                Some(count) => compressed.end = count,
                None => return Ok(None),
            }
        }
    }

    /// Waits for bytes, at most until the deadline; how many came, 0 at the end of the connection. `None`: it is time to
    /// look at the deadline.
    fn read(&mut self, buffer: &mut [u8], deadline: Option<Duration>, doing: &str) -> Result<Option<usize>> {
        let now = self.now();
        let timeout = deadline.map(|deadline| deadline.saturating_sub(now));
        let read = match &mut self.transport {
            Transport::Plain(socket) => socket.set_read_timeout(timeout).and_then(|()| socket.read(buffer)),
            Transport::Tls(stream) => {
                stream.sock.set_read_timeout(timeout).and_then(|()| stream.read(buffer))
            }
            Transport::Nothing => Err(io::ErrorKind::NotConnected.into()),
        };
        match read {
            Ok(count) => Ok(Some(count)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(None),
                _ if is_end(&error) => Ok(Some(0)),
                _ => Err(self.broken(doing, error)),
            },
        }
    }

    /// Switches to TLS, by the deadline.
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

    fn malformed(&self, doing: &str, source: binlogz_binlog::Error) -> Error {
        self.wire_error(binlogz_wire::Error::Malformed { doing: doing.to_owned(), source })
    }

    fn tls_failed(&self, source: io::Error) -> Error {
        Error::Tls { server: self.server.clone(), source }
    }

    fn broken(&self, doing: &str, source: io::Error) -> Error {
        Error::Io { server: self.server.clone(), doing: doing.to_owned(), source }
    }
}

/// Whether the peer is gone. Which of these the system reports depends on what was still in flight, and
/// servers end TLS without saying goodbye.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}
