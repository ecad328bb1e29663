//! Asks a running relay over its HTTP port. One limit covers the whole exchange, however slowly the answer comes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// More than any status.
const ANSWER_SIZE_MAX: usize = 64 << 20;

/// The document of /status.json; `query` is empty or begins with `?`.
pub fn status(address: SocketAddr, query: &str, limit: Duration) -> io::Result<String> {
    let until = Instant::now() + limit;
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_write_timeout(Some(left(until)?))?;
    let request = format!("GET /status.json{query} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let answer = String::from_utf8(read(&mut stream, until)?);
    let unfit = || io::Error::new(ErrorKind::InvalidData, "answers no relay's status");
    let answer = answer.map_err(|_| unfit())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(unfit)?;
    match head.get(..13) {
        Some("HTTP/1.1 200 ") => Ok(body.to_owned()),
        // Its own words: there is no such source, or its log can't be opened.
        Some("HTTP/1.1 404 " | "HTTP/1.1 503 ") => Err(io::Error::other(body.trim_end().to_owned())),
        _ => Err(unfit()),
    }
}

/// The addresses of `HOST:PORT` or `http://HOST:PORT/`.
pub fn addresses(place: &str) -> io::Result<Vec<SocketAddr>> {
    let expected = || io::Error::new(ErrorKind::InvalidInput, "expected HOST:PORT");
    let host = place.strip_prefix("http://").unwrap_or(place).trim_end_matches('/');
    if host.contains('/') || !host.contains(':') {
        return Err(expected());
    }
    let addresses: Vec<_> = host.to_socket_addrs()?.collect();
    if addresses.is_empty() { Err(expected()) } else { Ok(addresses) }
}

fn read(stream: &mut TcpStream, until: Instant) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut chunk = [0; 64 << 10];
    loop {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(answer),
            Ok(count) => answer.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Which of both it is depends on the system.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(late()),
            Err(error) => return Err(error),
        }
        if answer.len() > ANSWER_SIZE_MAX {
            return Err(io::Error::new(ErrorKind::InvalidData, "answers with more than 64 MiB"));
        }
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the answer did not come in time")
}
