//! What a browser, Prometheus and whoever watches over processes may ask.
//!
//! ```text
//! /             the status for people        /healthz   200, or 503 when somebody must repair something
//! /status.json  the same for machines        /readyz    200 when replicas can be served
//! /metrics      OpenMetrics
//! ```
//!
//! Requests are read with httparse, within a size and a time; an answer ends its connection. Nothing can be changed
//! here, and nothing of it needs a password: it listens where the configuration says, which is nowhere by default.

mod history;
mod metrics;
mod page;

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::relay::Relay;

pub(crate) use history::History;

/// A request is there within this time, and an answer taken.
const PATIENCE: Duration = Duration::from_secs(5);
const REQUEST_SIZE_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
/// Requests at a time.
const CLIENTS_MAX: usize = 16;
/// After an accept that failed.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);
/// A page in a browser is asked for again after so many seconds.
const REFRESH: &str = "Refresh: 10\r\n";

/// An answer.
struct Answer {
    status: &'static str,
    content_type: &'static str,
    body: String,
    more_headers: &'static str,
}

impl Answer {
    fn text(status: &'static str, body: impl Into<String>) -> Self {
        Answer { status, content_type: "text/plain; charset=utf-8", body: body.into(), more_headers: "" }
    }
}

/// Answers for ever.
pub(crate) fn serve(relay: &Arc<Relay>, listener: &TcpListener) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(ACCEPT_RETRY);
            continue;
        };
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (its, count) = (Arc::clone(relay), Arc::clone(&clients));
        let serve = move || {
            // A client that went away is nobody's trouble.
            let _ = converse(&its, stream);
            count.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("http".into()).spawn(serve).is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn converse(relay: &Relay, mut stream: TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let (answer, with_body) = match read(&mut stream)? {
        Some((method, path)) if method == "GET" || method == "HEAD" => {
            (answer(relay, &path), method == "GET")
        }
        Some(_) => (Answer::text("405 Method Not Allowed", "expected GET\n"), true),
        None => (Answer::text("400 Bad Request", "expected an HTTP request\n"), true),
    };
    let Answer { status, content_type, body, more_headers } = answer;
    let size = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {size}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{more_headers}\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if with_body {
        stream.write_all(body.as_bytes())?;
    }
    stream.shutdown(Shutdown::Write)?;
    // What the client still says is taken, so that it sees the answer and not a reset.
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let _ = stream.take(REQUEST_SIZE_MAX as u64).read_to_end(&mut Vec::new());
    Ok(())
}

/// Method and path; `None`: it is no request, or a long one.
fn read(stream: &mut TcpStream) -> io::Result<Option<(String, String)>> {
    let until = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.unwrap_or_default();
                let path = path.split_once('?').map_or(path, |(path, _)| path);
                return Ok(Some((request.method.unwrap_or_default().to_owned(), path.to_owned())));
            }
            Ok(httparse::Status::Partial) if bytes.len() < REQUEST_SIZE_MAX => {}
            Ok(httparse::Status::Partial) | Err(_) => return Ok(None),
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
        }
    }
}

fn answer(relay: &Relay, path: &str) -> Answer {
    let status = match relay.status() {
        Ok(status) => status,
        Err(error) => return Answer::text("500 Internal Server Error", format!("{error}\n")),
    };
    match path {
        "/" => Answer {
            status: "200 OK",
            content_type: "text/html; charset=utf-8",
            body: page::html(&status, &relay.history.samples()),
            more_headers: REFRESH,
        },
        "/status.json" => match serde_json::to_string_pretty(&status) {
            Ok(body) => Answer {
                status: "200 OK",
                content_type: "application/json",
                body: body + "\n",
                more_headers: "",
            },
            Err(error) => Answer::text("500 Internal Server Error", format!("{error}\n")),
        },
        "/metrics" => match metrics::text(relay, status) {
            Ok(body) => {
                Answer { status: "200 OK", content_type: metrics::CONTENT_TYPE, body, more_headers: "" }
            }
            Err(error) => Answer::text("500 Internal Server Error", format!("{error}\n")),
        },
        "/healthz" if status.is_healthy() => Answer::text("200 OK", "ok\n"),
        "/healthz" => {
            let why = status.last_errors.first().map_or("receiving failed", |error| error.text.as_str());
            let why = status.damage.first().map_or(why, String::as_str);
            Answer::text("503 Service Unavailable", format!("{why}\n"))
        }
        "/readyz" if status.is_ready() => Answer::text("200 OK", "ok\n"),
        "/readyz" => Answer::text("503 Service Unavailable", "nothing of the source's log is here yet\n"),
        _ => Answer::text("404 Not Found", "expected /, /status.json, /metrics, /healthz or /readyz\n"),
    }
}
