//! `binlogz fleet --listen`: asks all targets again and again, and serves the last answers as a page, a document and
//! metrics.
//!
//! ```text
//! /   /status.json   /metrics   of the last round      /healthz   200, or 503 when no round has ended for a long time
//! ```
//!
//! One thread asks; the other serves the last answers at once. The file of targets is read before each round: a change
//! counts from the next one on. A file that can't be read leaves the targets as they were, with a row that says so.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_relay::{HttpAnswer, HttpRequest, serve_pages};

use super::ask::ask_all;
use super::history::RowHistory;
use super::row::{FleetRow, FleetRowKind, joined};
use super::targets::{self, FleetTarget};
use super::{Document, is_healthy, page, prometheus};
use crate::cmd::relay::findings;
use crate::failure::{CommandFailure, Result, complain};

/// Servers are asked no more often: doctor's answers change slowly, and its questions cost them something.
const SERVERS_EVERY: Duration = Duration::from_secs(300);
/// How many rounds may be missed before /healthz says so.
const ROUNDS_MISSED: u32 = 3;

/// How to serve.
#[derive(Debug, Clone)]
pub(super) struct FleetServeOptions {
    pub(super) targets: PathBuf,
    pub(super) limit: Duration,
    pub(super) every: Duration,
    pub(super) hosts: Vec<String>,
}

/// The last round.
struct Round {
    rows: Vec<FleetRow>,
    ended: Instant,
    seconds: f64,
}

type LatestRound = Mutex<Option<Round>>;

/// Serves for ever.
pub(super) fn serve(address: SocketAddr, options: FleetServeOptions, first: Vec<FleetTarget>) -> Result<()> {
    let listener = TcpListener::bind(address)
        .map_err(|error| CommandFailure::of(&format!("listen on {address}"), error))?;
    let bound =
        listener.local_addr().map_err(|error| CommandFailure::of(&format!("listen on {address}"), error))?;
    complain(&format!("fleet: listening on http://{bound}/"));
    let known: Arc<LatestRound> = Arc::default();
    let (asking, rounds) = (Arc::clone(&known), options.clone());
    let asked = thread::Builder::new().name("rounds".to_owned()).spawn(move || ask(&asking, &rounds, first));
    asked.map_err(|error| CommandFailure::of(&"start a thread", error))?;
    serve_pages(&listener, &options.hosts, "--host", |request| answer(&known, &options, request));
    Ok(())
}

/// A place to listen: an address and a port, or a port alone on this machine.
pub(super) fn listen_at(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let expected =
        |error: &dyn std::fmt::Display| format!("{error}, expected ADDRESS:PORT, or a port on this machine");
    let mut addresses = text.to_socket_addrs().map_err(|error| expected(&error))?;
    addresses.next().ok_or_else(|| expected(&"no address"))
}

/// Asks all targets for ever.
fn ask(known: &LatestRound, options: &FleetServeOptions, mut targets: Vec<FleetTarget>) {
    let mut history = RowHistory::default();
    let mut servers: Option<(Instant, Vec<FleetRow>)> = None;
    loop {
        let begin = Instant::now();
        let trouble = match targets::read(&options.targets) {
            Ok(now) => {
                targets = now;
                None
            }
            Err(failure) => Some(super::ask::why(failure)),
        };
        let are_servers_due = servers.as_ref().is_none_or(|(at, _)| at.elapsed() >= SERVERS_EVERY);
        let (of_servers, others) = targets.iter().cloned().partition(FleetTarget::is_server);
        let asked = if are_servers_due { [others, of_servers].concat() } else { others };
        let mut rows = ask_all(asked, options.limit);
        match &servers {
            Some((_, before)) if !are_servers_due => rows.extend(before.iter().cloned()),
            _ => {
                let of_servers =
                    rows.iter().filter(|row| row.kind == FleetRowKind::Server).cloned().collect();
                servers = Some((begin, of_servers));
            }
        }
        rows.extend(trouble.map(|why| FleetRow::of_file(&options.targets.display().to_string(), why)));
        history.add(&mut rows, findings::now());
        let round =
            Round { rows: joined(rows), ended: Instant::now(), seconds: begin.elapsed().as_secs_f64() };
        *known.lock().unwrap_or_else(PoisonError::into_inner) = Some(round);
        thread::sleep(options.every.saturating_sub(begin.elapsed()));
    }
}

fn answer(known: &LatestRound, options: &FleetServeOptions, request: &HttpRequest) -> HttpAnswer {
    let known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(round) = known.as_ref() else {
        return HttpAnswer::text("503 Service Unavailable", "the first round has not ended yet\n");
    };
    match request.path.as_str() {
        "/" => {
            let mut page = Vec::new();
            match page::write(&round.rows, round.ended.elapsed(), &mut page) {
                Ok(()) => HttpAnswer::page(
                    String::from_utf8_lossy(&page).into_owned(),
                    options.every.as_secs().max(5),
                ),
                Err(error) => HttpAnswer::text("500 Internal Server Error", format!("{error}\n")),
            }
        }
        "/status.json" => HttpAnswer::json(&Document { healthy: is_healthy(&round.rows), rows: &round.rows }),
        "/metrics" => {
            let age = round.ended.elapsed().as_secs_f64();
            let text = prometheus::text(&round.rows) + &prometheus::of_round(round.seconds, age);
            HttpAnswer::of_type(prometheus::CONTENT_TYPE, text)
        }
        "/healthz" => {
            let age = round.ended.elapsed();
            match age <= (options.every + options.limit) * ROUNDS_MISSED {
                true => HttpAnswer::text("200 OK", "ok\n"),
                false => {
                    let why = format!("the last round ended {} s ago\n", age.as_secs());
                    HttpAnswer::text("503 Service Unavailable", why)
                }
            }
        }
        _ => HttpAnswer::text("404 Not Found", "expected /, /status.json, /metrics or /healthz\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_this_machine() {
        assert_eq!(listen_at("3309").unwrap(), "127.0.0.1:3309".parse().unwrap());
        assert_eq!(listen_at("0.0.0.0:3309").unwrap(), "0.0.0.0:3309".parse().unwrap());
        assert_eq!(listen_at("[::1]:3309").unwrap(), "[::1]:3309".parse().unwrap());
        assert!(
            listen_at("there").unwrap_err().ends_with("expected ADDRESS:PORT, or a port on this machine")
        );
    }
}
