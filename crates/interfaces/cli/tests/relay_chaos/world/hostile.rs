//! Hostile clients, all at once, for as long as the value that starts them is kept.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use binlogz_source::{ConnectOptions, Connection, Password, PasswordOption};
use binlogz_testkit::random::Random;

/// How many hostile clients know the password: each has a connection of its own.
const STRANGERS_WITH_PASSWORD: usize = 10;
const PROGRAM_NAME_SIZE: usize = 20_000;
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);

/// Connections that stay until this is dropped.
pub(crate) struct Hostile {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<TcpStream>>>,
}

impl Hostile {
    /// Connects `count` clients in the background, all at once: four of five at the relay's port, the rest at its HTTP
    /// port.
    pub(crate) fn connect(count: usize, port: u16, http: u16, seed: u64) -> Hostile {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = spawn(move || {
            let mut random = Random::new(seed);
            let mut open = Vec::new();
            let mut slow = Vec::new();
            for number in 0..count {
                if stopping.load(Ordering::Relaxed) {
                    break;
                }
                let (to, is_http) = if number % 5 == 4 { (http, true) } else { (port, false) };
                let address = SocketAddr::from(([127, 0, 0, 1], to));
                // A relay that can't be reached is not our trouble.
                let Ok(mut stream) = TcpStream::connect_timeout(&address, CONNECT_PATIENCE) else { continue };
                let _ = stream.set_write_timeout(Some(CONNECT_PATIENCE));
                let _ = stream.write_all(&opening(is_http, &mut random));
                match random.below(4) {
                    0 => slow.push(stream),
                    _ => open.push(stream),
                }
            }
            for number in 0..STRANGERS_WITH_PASSWORD {
                if stopping.load(Ordering::Relaxed) {
                    break;
                }
                log_in(port, number as u64 ^ seed);
            }
            while !stopping.load(Ordering::Relaxed) {
                for stream in &mut slow {
                    let _ = stream.write_all(&[0]);
                }
                sleep(Duration::from_millis(300));
            }
            open.append(&mut slow);
            open
        });
        Hostile { stop, thread: Some(thread) }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The first bytes of one: nothing, noise, half a packet, a packet that is far larger than any login, half a request.
fn opening(is_http: bool, random: &mut Random) -> Vec<u8> {
    match random.below(5) {
        0 => Vec::new(),
        1 => (0..random.below(4000)).map(|_| random.bits() as u8).collect(),
        2 if is_http => b"GET /status.json HTTP/1.1\r\nHost: relay\r\nX-Long: aaaa".to_vec(),
        2 => vec![0x40, 0, 0, 1, 0x85, 0xa6, 0xff],
        3 if is_http => [b"GET /".as_slice(), &[b'a'; 10_000]].concat(),
        3 => [[0xff, 0xff, 0xff, 1].as_slice(), &[0x41; 50_000]].concat(),
        _ => vec![0],
    }
}

/// A client that has the password, and an unneeded program name.
fn log_in(port: u16, seed: u64) {
    let mut options = ConnectOptions::new(&format!("{seed}-{}", "x".repeat(PROGRAM_NAME_SIZE)));
    options.host = Some("127.0.0.1".into());
    options.port = Some(port);
    options.user = Some("reader".into());
    options.password = PasswordOption::Given(Password::new("secret"));
    // It may be turned away.
    if let Ok(mut connection) = Connection::open(&options) {
        let _ = connection.query("SHOW BINARY LOG STATUS");
    }
}

/// The status code and body of an HTTP answer; `None`: there is none within the time.
pub(crate) fn http_get(port: u16, path: &str, patience: Duration) -> Option<(u16, String)> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut stream = TcpStream::connect_timeout(&address, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    stream.set_write_timeout(Some(patience)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}
