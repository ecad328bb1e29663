//! HTTP endpoints for browsers, Prometheus and process supervisors.
//!
//! ```text
//! /             the status for people        /healthz   200, or 503 when a person must repair something
//! /status.json  the same for machines        /readyz    200 when replicas can be served
//! /metrics      OpenMetrics
//! ```
//!
//! `connections` carries requests and answers, `request` reads one and says whether it means this relay. It is
//! read-only and needs no password. It listens where the configuration says, which is nowhere by default.

mod connections;
mod history;
mod metrics;
mod page;
mod request;

use std::net::{SocketAddr, TcpListener};

use crate::telemetry::duties;
use crate::watch::Watch;
use crate::watch::status::Status;

pub(crate) use history::History;
use request::Request;

/// Where to serve status and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// Where to listen.
    pub address: SocketAddr,
    /// Host names that requests may use for the relay, besides addresses and `localhost`.
    pub hosts: Vec<String>,
}

struct HttpAnswer {
    status: &'static str,
    content_type: &'static str,
    body: String,
    more_headers: String,
}

impl HttpAnswer {
    fn text(status: &'static str, body: impl Into<String>) -> Self {
        HttpAnswer {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
            more_headers: String::new(),
        }
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

pub(crate) fn serve(watch: &Watch, listener: &TcpListener) {
    let hosts = watch.http.as_ref().map_or(&[][..], |http| &http.hosts);
    connections::serve(listener, |request| {
        // A bug in one answer must not stop all others.
        let answered = duties::attempt(duties::HTTP, || Ok(answer_any(watch, hosts, request)));
        answered.unwrap_or_else(|error| {
            watch.telemetry.complain(&error, &error.to_string());
            HttpAnswer::text("500 Internal Server Error", format!("{error}\n")).bytes(true)
        })
    });
}

fn answer_any(watch: &Watch, hosts: &[String], request: Option<&Request>) -> Vec<u8> {
    let Some(request) = request else {
        return HttpAnswer::text("400 Bad Request", "expected an HTTP request\n").bytes(true);
    };
    if !request.is_ours(hosts) {
        let expected = "expected an address, localhost or a name in hosts of [http] as Host\n";
        return HttpAnswer::text("403 Forbidden", expected).bytes(true);
    }
    match request.method.as_str() {
        "GET" => answer(watch, request).bytes(true),
        "HEAD" => answer(watch, request).bytes(false),
        _ => HttpAnswer::text("405 Method Not Allowed", "expected GET\n").bytes(true),
    }
}

fn answer(watch: &Watch, request: &Request) -> HttpAnswer {
    let status = match watch.status() {
        Ok(status) => status,
        Err(error) => return HttpAnswer::text("500 Internal Server Error", format!("{error}\n")),
    };
    match request.path.as_str() {
        "/" => HttpAnswer {
            status: "200 OK",
            content_type: "text/html; charset=utf-8",
            body: page::html(&status, &watch.history.samples()),
            more_headers: format!("Refresh: {}\r\n", page::REFRESH_SECONDS),
        },
        "/status.json" => match serde_json::to_string_pretty(&status) {
            Ok(body) => HttpAnswer {
                status: "200 OK",
                content_type: "application/json",
                body: body + "\n",
                more_headers: String::new(),
            },
            Err(error) => HttpAnswer::text("500 Internal Server Error", format!("{error}\n")),
        },
        "/metrics" => match metrics::text(watch, status) {
            Ok(body) => HttpAnswer {
                status: "200 OK",
                content_type: metrics::CONTENT_TYPE,
                body,
                more_headers: String::new(),
            },
            Err(error) => HttpAnswer::text("500 Internal Server Error", format!("{error}\n")),
        },
        "/healthz" => health(request, &status, &status.troubles),
        "/readyz" => health(request, &status, &status.unreadiness()),
        _ => HttpAnswer::text("404 Not Found", "expected /, /status.json, /metrics, /healthz or /readyz\n"),
    }
}

/// 200 if nothing is wrong; otherwise one line per problem, then one per duty. With `?verbose`, the duties are always
/// listed.
fn health(request: &Request, status: &Status, wrong: &[String]) -> HttpAnswer {
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
    HttpAnswer::text(code, lines.join("\n") + "\n")
}
