//! A connection as the operating system has it: TCP or a Unix socket.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Type};

/// Either kind of connection.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Ends a connection that another thread may be waiting on.
#[derive(Debug)]
pub struct HangUp(Socket);

impl HangUp {
    /// Ends the connection: a thread that waits on it sees its end.
    pub fn now(&self) {
        // A connection that is over already can't be ended again.
        let _ = match &self.0 {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Socket {
    /// Tries each address of a host in turn; returns the last one's error.
    pub(crate) fn connect_tcp(
        host: &str,
        port: u16,
        bind_address: Option<&str>,
        timeout: Duration,
    ) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (host, port).to_socket_addrs()? {
            match connect_tcp(address, bind_address, timeout) {
                Ok(stream) => {
                    // Requests are small and answers awaited; a dead peer must be noticed at last.
                    stream.set_nodelay(true)?;
                    SockRef::from(&stream).set_keepalive(true)?;
                    return Ok(Socket::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(crate) fn connect_unix(path: &Path) -> io::Result<Self> {
        UnixStream::connect(path).map(Socket::Unix)
    }

    /// Whether the connection stays on this machine.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Socket::Unix(_))
    }

    /// A handle to end this connection from another thread.
    pub(crate) fn hang_up(&self) -> io::Result<HangUp> {
        match self {
            Socket::Tcp(stream) => stream.try_clone().map(Socket::Tcp),
            Socket::Unix(stream) => stream.try_clone().map(Socket::Unix),
        }
        .map(HangUp)
    }

    /// `None` waits forever.
    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        // The system accepts no zero: it would mean forever.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_millis(1)));
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(timeout),
            Socket::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// `None` waits forever.
    pub(crate) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_write_timeout(timeout),
            Socket::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }
}

fn connect_tcp(address: SocketAddr, bind_address: Option<&str>, timeout: Duration) -> io::Result<TcpStream> {
    let Some(from) = bind_address else { return TcpStream::connect_timeout(&address, timeout) };
    let same_family = |from: &SocketAddr| from.is_ipv4() == address.is_ipv4();
    let from = (from, 0).to_socket_addrs()?.find(same_family).ok_or_else(|| {
        io::Error::new(io::ErrorKind::AddrNotAvailable, "the bind address is of another family")
    })?;
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SockAddr::from(from))?;
    socket.connect_timeout(&SockAddr::from(address), timeout)?;
    Ok(socket.into())
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(buffer),
            Socket::Unix(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
