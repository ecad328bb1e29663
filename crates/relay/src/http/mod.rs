//! What a browser, Prometheus and whoever watches over processes may ask.
//!
//! ```text
//! /             the status for people        /healthz   200, or 503 when somebody must repair something
//! /status.json  the same for machines        /readyz    200 when replicas can be served
//! /metrics      OpenMetrics
//! ```
//!
//! `connections` carries requests and answers, `request` reads one and says whether it means this relay. Nothing can be
//! changed here, and nothing of it needs a password: it listens where the configuration says, which is nowhere by default.

mod connections;
mod history;
mod metrics;
mod page;
mod request;

use std::net::{SocketAddr, TcpListener};

use crate::duties;
use crate::relay::Relay;
use crate::status::Status;

pub(crate) use history::History;
use request::Request;

/// Where status and metrics can be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// Where to listen.
    pub address: SocketAddr,
    /// Names that requests may call the relay by, besides addresses and `localhost`.
    pub hosts: Vec<String>,
}

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

    fn bytes(&self, with_body: bool) -> Vec<u8> {
        let Answer { status, content_type, body, more_headers } = self;
        let size = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {size}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{more_headers}\r\n"
        );
        (head + if with_body { body } else { "" }).into_bytes()
    }
}

/// Answers for ever.
pub(crate) fn serve(relay: &Relay, listener: &TcpListener) {
    let hosts = relay.options.http.as_ref().map_or(&[][..], |http| &http.hosts);
    connections::serve(listener, |request| {
        // A bug in an answer must not end all others.
        let answered = duties::attempt(duties::HTTP, || Ok(answer_any(relay, hosts, request)));
        answered.unwrap_or_else(|error| {
            relay.complain(&error, &error.to_string());
            Answer::text("500 Internal Server Error", format!("{error}\n")).bytes(true)
        })
    });
}

fn answer_any(relay: &Relay, hosts: &[String], request: Option<&Request>) -> Vec<u8> {
    let Some(request) = request else {
        return Answer::text("400 Bad Request", "expected an HTTP request\n").bytes(true);
    };
    if !request.is_ours(hosts) {
        let expected = "expected an address, localhost or a name in hosts of [http] as Host\n";
        return Answer::text("403 Forbidden", expected).bytes(true);
    }
    match request.method.as_str() {
        "GET" => answer(relay, request).bytes(true),
        "HEAD" => answer(relay, request).bytes(false),
        _ => Answer::text("405 Method Not Allowed", "expected GET\n").bytes(true),
    }
}

fn answer(relay: &Relay, request: &Request) -> Answer {
    let status = match relay.status() {
        Ok(status) => status,
        Err(error) => return Answer::text("500 Internal Server Error", format!("{error}\n")),
    };
    match request.path.as_str() {
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
        "/healthz" => health(request, &status, &status.troubles),
        "/readyz" => health(request, &status, &status.unreadiness()),
        _ => Answer::text("404 Not Found", "expected /, /status.json, /metrics, /healthz or /readyz\n"),
    }
}

/// 200 where nothing is wrong; else what is, a line each, and then each duty. `?verbose` has the duties in any case.
fn health(request: &Request, status: &Status, wrong: &[String]) -> Answer {
    let (code, mut lines) = match wrong {
        [] => ("200 OK", vec!["ok".to_owned()]),
        wrong => ("503 Service Unavailable", wrong.to_vec()),
    };
    if !wrong.is_empty() || request.query == "verbose" {
        lines.extend(status.duties.iter().map(|duty| match &duty.failure {
            None => format!("duty {}: up for {} s", duty.name, duty.seconds),
            Some(why) => format!("duty {}: down for {} s: {why}", duty.name, duty.seconds),
        }));
    }
    Answer::text(code, lines.join("\n") + "\n")
}
