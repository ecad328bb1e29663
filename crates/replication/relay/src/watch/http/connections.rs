//! All connections over HTTP, in one thread and without waiting for any of them: no client needs a thread that might
//! not start, and none blocks another.
//!
//! ```text
//! accept ─ reading ─ whole request ─ answer ─ writing ─ all sent ─ leaving ─ end
//!             │                                  │
//!             └ 5 s ─ end                        └ 5 s without getting on, 60 s in all ─ end
//! ```
//!
//! When there are [`CLIENTS_MAX`], we close the one that has been reading longest to admit the next: a monitor sends
//! its request at once, an idle connection never does.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::request::{self, HttpRequest, Read};

/// A request must arrive within this time; so must each bit of progress in reading the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The whole answer must be read within this time.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// How long we drain a client's input after the answer, so that it sees the answer and not a reset.
const LEAVING: Duration = Duration::from_millis(200);
/// A request's bytes.
const REQUEST_SIZE_MAX: usize = 8 << 10;
/// Connections at a time.
pub(super) const CLIENTS_MAX: usize = 16;
/// The delay after a failed accept.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);
/// The longest time between two looks: longer than any other wait here.
const POLL_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    state: HttpState,
    /// The connection's deadline.
    until: Instant,
}

#[derive(Debug)]
enum HttpState {
    Reading(Vec<u8>),
    /// The answer, how much of it was taken, and when it must be taken at last.
    Writing(Vec<u8>, usize, Instant),
    /// How much more is read.
    Leaving(usize),
}

/// Answers for ever. `None`: the bytes received are not a request.
pub(super) fn serve(listener: &TcpListener, answer: impl Fn(Option<&HttpRequest>) -> Vec<u8>) {
    // An accept that would block is not an error to end for: poll said that it would not.
    let _ = listener.set_nonblocking(true);
    let mut connections: Vec<Connection> = Vec::new();
    let mut accept_from = Instant::now();
    loop {
        let ready = wait(listener, &connections, accept_from);
        let now = Instant::now();
        let mut ready = ready.into_iter();
        let is_accepting = ready.next().unwrap_or_default();
        connections.retain_mut(|connection| {
            let is_ready = ready.next().unwrap_or_default();
            let is_late = now >= connection.until;
            // An answer to another client may have taken long: a request that has arrived by now counts.
            match is_ready && (!is_late || matches!(connection.state, HttpState::Reading(_))) {
                true => connection.go_on(now, &answer),
                false => !is_late,
            }
        });
        if is_accepting && !accept_all(listener, &mut connections, now) {
            accept_from = now + ACCEPT_RETRY;
        }
    }
}

/// Waits until a connection can continue or time is up. Returns which can: the listener, and each connection.
fn wait(listener: &TcpListener, connections: &[Connection], accept_from: Instant) -> Vec<bool> {
    let now = Instant::now();
    let is_accepting = now >= accept_from;
    let asked = |accepting: bool| if accepting { PollFlags::IN } else { PollFlags::empty() };
    let mut fds = vec![PollFd::new(listener, asked(is_accepting))];
    fds.extend(connections.iter().map(|connection| {
        let flags = match connection.state {
            HttpState::Reading(_) | HttpState::Leaving(_) => PollFlags::IN,
            HttpState::Writing(..) => PollFlags::OUT,
        };
        PollFd::new(&connection.stream, flags)
    }));
    let times = connections.iter().map(|connection| connection.until);
    let next = times.chain((!is_accepting).then_some(accept_from)).min();
    let patience = next.map_or(POLL_MAX, |next| next.saturating_duration_since(now)).min(POLL_MAX);
    // Rounded up: a wait that ends too early would be repeated at once.
    let patience = patience + Duration::from_millis(1);
    let timeout = Timespec::try_from(patience).ok();
    if poll(&mut fds, timeout.as_ref()).is_err() {
        // Interrupted, or out of memory: nothing is ready, and we must not poll again without a pause.
        std::thread::sleep(Duration::from_millis(10));
        return Vec::new();
    }
    fds.iter().map(|fd| !fd.revents().is_empty()).collect()
}

/// Accepts waiting connections; `false` if the system refuses at present.
fn accept_all(listener: &TcpListener, connections: &mut Vec<Connection>, now: Instant) -> bool {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {
                continue;
            }
            Err(_) => {
                // Descriptors may have run out: free one of ours.
                end_oldest(connections);
                return false;
            }
        };
        if connections.len() >= CLIENTS_MAX {
            end_oldest(connections);
        }
        if stream.set_nonblocking(true).is_ok() {
            let state = HttpState::Reading(Vec::new());
            connections.push(Connection { stream, state, until: now + PATIENCE });
        }
    }
}

/// Closes the connection that has been reading longest; if none is, the oldest.
fn end_oldest(connections: &mut Vec<Connection>) {
    let idle = connections.iter().position(|connection| matches!(connection.state, HttpState::Reading(_)));
    if !connections.is_empty() {
        connections.remove(idle.unwrap_or(0));
    }
}

impl Connection {
    /// Reads and writes as much as is possible without waiting; `false` if the connection is finished.
    fn go_on(&mut self, now: Instant, answer: &impl Fn(Option<&HttpRequest>) -> Vec<u8>) -> bool {
        loop {
            let step = match &mut self.state {
                HttpState::Reading(_) => self.read(now, answer),
                HttpState::Writing(..) => self.write(now),
                HttpState::Leaving(_) => self.leave(),
            };
            match step {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A client that disconnected is not an error.
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    /// Reads once; `false` if the client has left.
    fn read(&mut self, now: Instant, answer: &impl Fn(Option<&HttpRequest>) -> Vec<u8>) -> io::Result<bool> {
        let HttpState::Reading(bytes) = &mut self.state else { return Ok(true) };
        let mut chunk = [0; 1024];
        let count = self.stream.read(&mut chunk)?;
        bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let answer = match request::read(bytes) {
            Read::Whole(request) => answer(Some(&request)),
            Read::Part if count == 0 => return Ok(false),
            Read::Part if bytes.len() < REQUEST_SIZE_MAX => return Ok(true),
            Read::Part | Read::Bad => answer(None),
        };
        // Making the answer may have taken a while.
        let now = now.max(Instant::now());
        self.state = HttpState::Writing(answer, 0, now + ANSWER_MAX);
        self.until = now + PATIENCE;
        Ok(true)
    }

    fn write(&mut self, now: Instant) -> io::Result<bool> {
        let HttpState::Writing(answer, sent, last) = &mut self.state else { return Ok(true) };
        let rest = answer.get(*sent..).unwrap_or_default();
        if !rest.is_empty() {
            let count = self.stream.write(rest)?;
            *sent += count;
            self.until = (now + PATIENCE).min(*last);
            return Ok(count > 0);
        }
        self.stream.shutdown(Shutdown::Write)?;
        self.state = HttpState::Leaving(REQUEST_SIZE_MAX);
        self.until = now + LEAVING;
        Ok(true)
    }

    fn leave(&mut self) -> io::Result<bool> {
        let HttpState::Leaving(left) = &mut self.state else { return Ok(true) };
        let count = self.stream.read(&mut [0; 1024])?;
        *left = left.saturating_sub(count);
        Ok(count > 0 && *left > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    /// Serves for as long as the test runs: its path, or "bad"; `/large` is longer than any buffer.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            serve(&listener, |request| match request {
                Some(request) if request.path == "/large" => vec![b'x'; 64 << 20],
                Some(request) => request.path.clone().into_bytes(),
                None => b"bad".to_vec(),
            });
        });
        address
    }

    fn get(address: SocketAddr, path: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    #[test]
    fn idle_connections_keep_nobody_out() {
        let address = server();
        let mut idle: Vec<_> = (0..2 * CLIENTS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
        for at in 0..2 * CLIENTS_MAX {
            assert_eq!(get(address, &format!("/{at}")), format!("/{at}").as_bytes());
        }
        // The first were ended to make room: not by their time, of which the last have as much left.
        let first = idle.first_mut().unwrap();
        first.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(first.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn slow_readers_and_slow_writers_end() {
        let address = server();
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut silent = TcpStream::connect(address).unwrap();
        silent.write_all(b"GET / HT").unwrap();
        assert_eq!(get(address, "/meanwhile"), b"/meanwhile");
        silent.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(silent.read(&mut [0]).unwrap(), 0, "its time is over");
        std::thread::sleep(PATIENCE);
        let mut rest = Vec::new();
        // Its end is an end or a reset: what was in the buffers comes before.
        let _ = slow.read_to_end(&mut rest);
        assert!(rest.len() < 64 << 20, "it was cut off");
    }

    #[test]
    fn what_is_no_request_is_told_so() {
        let address = server();
        for bytes in [&b"\x01\x02\r\n\r\n"[..], &[b'a'; REQUEST_SIZE_MAX + 1], b"GET / HTTP/1.1\r\n\r\n"] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream.write_all(bytes).unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            assert_eq!(answer, b"bad");
        }
        assert_eq!(get(address, "/after"), b"/after");
    }
}
