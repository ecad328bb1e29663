//! The sockets at which clients arrive: one for all sources, and those that sources have of their own. One thread waits
//! at all of them, and sockets can be added and removed meanwhile.

use parking_lot::Mutex;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, Socket, Type};

use crate::error::{Error, Result};

/// How often, and after how long, an address in use is tried again.
const TRIES: u32 = 20;
const RETRY: Duration = Duration::from_millis(25);

/// Connections that may wait to be accepted: a burst of logins waits there, not for the client to try again. The system may allow
/// fewer.
const QUEUE: i32 = 1024;

/// A socket at which clients arrive.
#[derive(Debug)]
pub(crate) struct ClientListener {
    socket: TcpListener,
    pub(crate) address: SocketAddr,
    /// The source that its clients want; `None`: they say so otherwise.
    pub(crate) source: Option<String>,
}

impl ClientListener {
    pub(crate) fn open(at: SocketAddr, source: Option<String>) -> Result<ClientListener> {
        let failed = || Error::io(format!("listen on {at}"));
        let socket = bind(at).map_err(failed())?;
        // A client that poll saw may be gone before it is accepted.
        socket.set_nonblocking(true).map_err(failed())?;
        let address = socket.local_addr().map_err(failed())?;
        Ok(ClientListener { socket, address, source })
    }
}

/// Listens on an address, which an earlier source may be about to leave.
fn bind(at: SocketAddr) -> io::Result<TcpListener> {
    let mut left = TRIES;
    loop {
        match bind_once(at) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && left > 0 => left -= 1,
            bound => return bound,
        }
        thread::sleep(RETRY);
    }
}

fn bind_once(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
    // As the standard library's listener, which has no choice of its queue.
    socket.set_reuse_address(true)?;
    socket.bind(&at.into())?;
    socket.listen(QUEUE)?;
    Ok(socket.into())
}

/// All sockets at which clients arrive.
#[derive(Debug)]
pub(crate) struct Listeners {
    all: Mutex<Vec<Arc<ClientListener>>>,
    /// The socket to look at first the next time, so that a busy socket does not keep others' clients waiting.
    first: AtomicUsize,
    /// A byte through here ends a wait: the sockets have changed.
    changed: (UnixStream, UnixStream),
}

impl Listeners {
    pub(crate) fn new(all: Vec<Arc<ClientListener>>) -> Result<Listeners> {
        let failed = || Error::io("make a pair of sockets");
        let changed = UnixStream::pair().map_err(failed())?;
        changed.0.set_nonblocking(true).map_err(failed())?;
        changed.1.set_nonblocking(true).map_err(failed())?;
        Ok(Listeners { all: Mutex::new(all), first: AtomicUsize::new(0), changed })
    }

    /// The sockets at which clients arrive now.
    pub(crate) fn all(&self) -> Vec<Arc<ClientListener>> {
        self.all.lock().clone()
    }

    /// Waits at these from now on.
    pub(crate) fn set(&self, all: Vec<Arc<ClientListener>>) {
        *self.all.lock() = all;
        // If there is no room for the byte, others are there that do the same.
        let _ = (&self.changed.1).write(&[0]);
    }

    /// Waits for the next client.
    pub(crate) fn accept(&self) -> io::Result<(TcpStream, SocketAddr, Arc<ClientListener>)> {
        loop {
            let all = self.all.lock().clone();
            let mut fds = vec![PollFd::new(&self.changed.0, PollFlags::IN)];
            fds.extend(all.iter().map(|listener| PollFd::new(&listener.socket, PollFlags::IN)));
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled?,
            };
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready.first() == Some(&true) {
                while (&self.changed.0).read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
            }
            let first = self.first.fetch_add(1, Ordering::Relaxed) % all.len().max(1);
            let in_turn = all.iter().zip(ready.iter().skip(1)).cycle().skip(first).take(all.len());
            for (listener, _) in in_turn.filter(|(_, is_ready)| **is_ready) {
                match listener.socket.accept() {
                    Ok((stream, peer)) => {
                        stream.set_nonblocking(false)?;
                        return Ok((stream, peer, Arc::clone(listener)));
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_socket_that_is_added_is_waited_at_and_one_that_is_removed_is_not() {
        let open = |source: Option<&str>| {
            let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            Arc::new(ClientListener::open(at, source.map(str::to_owned)).unwrap())
        };
        let shared = open(None);
        let own = open(Some("orders"));
        let listeners = Listeners::new(vec![Arc::clone(&shared)]).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| listeners.accept().unwrap().2.source.clone());
            // Most likely it waits by then, so that it has to be woken.
            thread::sleep(Duration::from_millis(50));
            listeners.set(vec![Arc::clone(&shared), Arc::clone(&own)]);
            let _client = TcpStream::connect(own.address).unwrap();
            assert_eq!(waiting.join().unwrap().as_deref(), Some("orders"));
        });
        let address = own.address;
        listeners.set(vec![Arc::clone(&shared)]);
        drop(own);
        assert!(TcpStream::connect(address).is_err(), "nobody listens there");
        // Both have clients: neither waits for ever.
        let other = open(Some("payments"));
        listeners.set(vec![Arc::clone(&shared), Arc::clone(&other)]);
        let at = [shared.address, shared.address, shared.address, other.address];
        let _clients = at.map(|address| TcpStream::connect(address).unwrap());
        let came: Vec<_> = (0..4).map(|_| listeners.accept().unwrap().2.source.clone()).collect();
        assert!(came[..2].contains(&Some("payments".into())), "{came:?}");
    }
}
