//! `binlogz fleet --listen`: asks all targets again and again, and serves the last answers as a page, a document and
//! metrics.
//!
//! ```text
//! /   /status.json   /metrics   of the last round      /healthz   200, or 503 when no round has ended for a long time
//! ```
//!
//! One thread asks; the other serves the last answers at once.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use binlogz_fleet::targets::FleetTarget;
use binlogz_fleet::{FleetDocument, FleetRounds, RoundOptions, page, prometheus};
use binlogz_relay::{HttpAnswer, HttpRequest, serve_pages};

use crate::failure::{CommandFailure, Result, complain};

/// Serves for ever; browsers may ask by these names.
pub(super) fn serve(
    address: SocketAddr,
    options: RoundOptions,
    hosts: &[String],
    first: Vec<FleetTarget>,
) -> Result<()> {
    let listener = TcpListener::bind(address)
        .map_err(|error| CommandFailure::of(&format!("listen on {address}"), error))?;
    let bound =
        listener.local_addr().map_err(|error| CommandFailure::of(&format!("listen on {address}"), error))?;
    complain(&format!("fleet: listening on http://{bound}/"));
    let every = options.every;
    let rounds = Arc::new(FleetRounds::new(options));
    let asking = Arc::clone(&rounds);
    let asked = thread::Builder::new().name("rounds".to_owned()).spawn(move || asking.run(first));
    asked.map_err(|error| CommandFailure::of(&"start a thread", error))?;
    serve_pages(&listener, hosts, "--host", |request| answer(&rounds, every, request));
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

fn answer(rounds: &FleetRounds, every: Duration, request: &HttpRequest) -> HttpAnswer {
    let latest = rounds.latest();
    let Some(round) = latest.as_ref() else {
        return HttpAnswer::text("503 Service Unavailable", "the first round has not ended yet\n");
    };
    match request.path.as_str() {
        "/" => {
            let mut page = Vec::new();
            match page::write(&round.rows, round.ended.elapsed(), &mut page) {
                Ok(()) => {
                    HttpAnswer::page(String::from_utf8_lossy(&page).into_owned(), every.as_secs().max(5))
                }
                Err(error) => HttpAnswer::text("500 Internal Server Error", format!("{error}\n")),
            }
        }
        "/status.json" => HttpAnswer::json(&FleetDocument::of(&round.rows)),
        "/metrics" => {
            let age = round.ended.elapsed().as_secs_f64();
            let text = prometheus::text(&round.rows) + &prometheus::of_round(round.seconds, age);
            HttpAnswer::of_type(prometheus::CONTENT_TYPE, text)
        }
        "/healthz" => {
            let age = round.ended.elapsed();
            match age <= rounds.age_max() {
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
