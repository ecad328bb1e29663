//! HTTP endpoints for browsers, Prometheus and process supervisors.
//!
//! ```text
//! /             the status for people        /healthz   200, or 503 when a person must repair something
//! /status.json  the same for machines        /readyz    200 when replicas can be served
//! /metrics      OpenMetrics
//! ```
//!
//! Of a relay whose sources have names, `?source=NAME` asks for one of them. `/status.json?history` also has the lag of the last
//! hour.
//!
//! `connections` carries requests and answers, `request` reads one and says whether it means this relay. It is
//! read-only and needs no password. It listens where the configuration says, which is nowhere by default.

mod connections;
mod entrance;
mod history;
mod metrics;
mod page;
mod request;

use std::net::{SocketAddr, TcpListener};

use serde::Serialize;

use crate::telemetry::complain;
use crate::telemetry::duties::{self, DutyStatus};
use crate::watch::WatchedRelay;
use crate::watch::relay_status::{NamedStatus, RelayStatus};

use entrance::ReplicaEntrance;
pub(crate) use history::{HourHistory, watch};
pub use request::HttpRequest;

/// Where to serve status and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// Where to listen.
    pub address: SocketAddr,
    /// Host names that requests may use for the relay, besides addresses and `localhost`.
    pub hosts: Vec<String>,
}

/// An answer.
#[derive(Debug)]
pub struct HttpAnswer {
    status: &'static str,
    content_type: &'static str,
    body: String,
    more_headers: String,
}

impl HttpAnswer {
    /// Plain text.
    pub fn text(status: &'static str, body: impl Into<String>) -> Self {
        HttpAnswer {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
            more_headers: String::new(),
        }
    }

    /// A page, which a browser asks for again after some seconds.
    pub fn page(body: String, refresh_seconds: u64) -> Self {
        HttpAnswer {
            status: "200 OK",
            content_type: "text/html; charset=utf-8",
            body,
            more_headers: format!("Refresh: {refresh_seconds}\r\n"),
        }
    }

    /// Text of another type, such as a document or metrics.
    pub fn of_type(content_type: &'static str, body: String) -> Self {
        HttpAnswer { status: "200 OK", content_type, body, more_headers: String::new() }
    }

    /// A document.
    pub fn json(document: &impl Serialize) -> Self {
        match serde_json::to_string_pretty(document) {
            Ok(body) => HttpAnswer::of_type("application/json", body + "\n"),
            Err(error) => HttpAnswer::text("500 Internal Server Error", format!("{error}\n")),
        }
    }

    fn not_found() -> Self {
        HttpAnswer::text("404 Not Found", "expected /, /status.json, /metrics, /healthz or /readyz\n")
    }

    fn bytes(&self, with_body: bool) -> Vec<u8> {
        let HttpAnswer { status, content_type, body, more_headers } = self;
        let size = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {size}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{more_headers}\r\n"
        );
        (head + if with_body { body } else { "" }).into_bytes()
    }
}

pub(crate) fn serve(watch: &WatchedRelay, listener: &TcpListener) {
    let hosts = watch.http.as_ref().map_or(&[][..], |http| &http.hosts);
    connections::serve(listener, |request| {
        // A bug in one answer must not stop all others.
        let answered = duties::attempt(duties::HTTP, || {
            Ok(answered(hosts, request, "hosts of [http]", |request| answer(watch, request)))
        });
        answered.unwrap_or_else(|error| {
            complain!(watch.door.telemetry, &error, &error.to_string());
            HttpAnswer::text("500 Internal Server Error", format!("{error}\n")).bytes(true)
        })
    });
}

/// Serves other pages than a relay's in the same way, for ever. They can be read without a password, by requests that
/// name an address, localhost or one of these names; `named_in` says where the names are configured.
pub fn serve_pages(
    listener: &TcpListener,
    hosts: &[String],
    named_in: &str,
    answer: impl Fn(&HttpRequest) -> HttpAnswer,
) {
    connections::serve(listener, |request| answered(hosts, request, named_in, &answer));
}

fn answered(
    hosts: &[String],
    request: Option<&HttpRequest>,
    named_in: &str,
    answer: impl Fn(&HttpRequest) -> HttpAnswer,
) -> Vec<u8> {
    let Some(request) = request else {
        return HttpAnswer::text("400 Bad Request", "expected an HTTP request\n").bytes(true);
    };
    if !request.is_ours(hosts) {
        let expected = format!("expected an address, localhost or a name in {named_in} as Host\n");
        return HttpAnswer::text("403 Forbidden", expected).bytes(true);
    }
    match request.method.as_str() {
        "GET" => answer(request).bytes(true),
        "HEAD" => answer(request).bytes(false),
        _ => HttpAnswer::text("405 Method Not Allowed", "expected GET\n").bytes(true),
    }
}

fn answer(watch: &WatchedRelay, request: &HttpRequest) -> HttpAnswer {
    let mut relay = watch.status();
    if request.parameter("history").is_some() || request.path == "/" {
        remember(watch, &mut relay);
    }
    let one = match (request.parameter("source"), relay.only()) {
        (Some(name), _) => match relay.sources.iter().find(|source| source.name == name) {
            Some(source) => Some(source),
            None => return HttpAnswer::text("404 Not Found", "there is no such source\n"),
        },
        (None, only) => only,
    };
    match one {
        Some(source) => of_source(watch, request, &relay, source),
        None => of_all(watch, request, &relay),
    }
}

/// The answer of a relay whose sources have names.
fn of_all(watch: &WatchedRelay, request: &HttpRequest, relay: &RelayStatus) -> HttpAnswer {
    match request.path.as_str() {
        "/" => HttpAnswer::page(page::all::html(relay), page::REFRESH_SECONDS),
        "/status.json" => HttpAnswer::json(relay),
        "/metrics" => metrics(watch, relay),
        "/healthz" => health(request, &relay.duties, &relay.troubles),
        "/readyz" => health(request, &relay.duties, &relay.unreadiness()),
        _ => HttpAnswer::not_found(),
    }
}

/// The answer about one source.
fn of_source(
    watch: &WatchedRelay,
    request: &HttpRequest,
    relay: &RelayStatus,
    source: &NamedStatus,
) -> HttpAnswer {
    let Some(status) = &source.status else {
        return HttpAnswer::text("503 Service Unavailable", source.troubles().join("\n") + "\n");
    };
    match request.path.as_str() {
        "/" => {
            let entrance = ReplicaEntrance::of(watch, &source.name, request);
            let page = page::html(&source.name, status, &samples(watch, &source.name), entrance.as_ref());
            HttpAnswer::page(page, page::REFRESH_SECONDS)
        }
        "/status.json" => HttpAnswer::json(source),
        "/metrics" => metrics(watch, relay),
        "/healthz" => health(request, &status.duties, &status.troubles),
        "/readyz" => health(request, &status.duties, &status.unreadiness()),
        _ => HttpAnswer::not_found(),
    }
}

fn metrics(watch: &WatchedRelay, relay: &RelayStatus) -> HttpAnswer {
    match metrics::text(watch, relay) {
        Ok(body) => HttpAnswer::of_type(metrics::CONTENT_TYPE, body),
        Err(error) => HttpAnswer::text("500 Internal Server Error", format!("{error}\n")),
    }
}

/// Adds the lag of the last hour to each source.
fn remember(watch: &WatchedRelay, relay: &mut RelayStatus) {
    for watched in watch.sources() {
        let named = relay.sources.iter_mut().find(|source| source.name == watched.name);
        if let (Some(named), Ok(source)) = (named, watched.source) {
            named.lag_history_seconds = Some(source.history.lags());
        }
    }
}

/// The last hour of a source.
fn samples(watch: &WatchedRelay, name: &str) -> Vec<history::Sample> {
    let source = watch.sources().into_iter().find(|watched| watched.name == name);
    source.and_then(|watched| watched.source.ok()).map_or(Vec::new(), |source| source.history.samples())
}

/// 200 if nothing is wrong; otherwise one line per problem, then one per duty. With `?verbose`, the duties are always
/// listed.
fn health(request: &HttpRequest, duties: &[DutyStatus], wrong: &[String]) -> HttpAnswer {
    let (code, mut lines) = match wrong {
        [] => ("200 OK", vec!["ok".to_owned()]),
        wrong => ("503 Service Unavailable", wrong.to_vec()),
    };
    if !wrong.is_empty() || request.parameter("verbose").is_some() {
        lines.extend(duties.iter().map(|duty| match &duty.failure {
            None => format!("duty {}: up for {} s", duty.name, duty.seconds),
            Some(why) => format!("duty {}: down for {} s: {why}", duty.name, duty.seconds),
        }));
    }
    HttpAnswer::text(code, lines.join("\n") + "\n")
}
