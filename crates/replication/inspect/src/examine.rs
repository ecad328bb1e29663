//! Examines one server: connect, ask, judge, plan.

use binlogz_source::{ConnectOptions, Connection, Error};

use crate::facts::ServerFacts;
use crate::findings::findings;
use crate::knowledge::Knowledge;
use crate::plan::plan;
use crate::report::{FindingVerdict, ServerReport};

/// Examines the server called `name`; the plan has this level, or the one that is set there. A server that can't be examined gives a report with an error.
pub fn examine(
    name: &str,
    options: &ConnectOptions,
    knowledge: &Knowledge,
    level: Option<u8>,
) -> ServerReport {
    let gathered = Connection::open(options).and_then(|mut connection| ServerFacts::gather(&mut connection));
    match gathered {
        Ok(facts) => judge(name, &facts, knowledge, level),
        Err(error) => ServerReport::failed(name, one_line(&error, &options.server())),
    }
}

fn judge(name: &str, facts: &ServerFacts, knowledge: &Knowledge, level: Option<u8>) -> ServerReport {
    let (findings, safe) = findings(facts, knowledge);
    // Without the feature there is nothing to plan.
    let plan = if findings.len() > 1 { plan(facts, &findings, level) } else { Vec::new() };
    ServerReport {
        server: name.to_owned(),
        error: None,
        server_uuid: facts.settings.get(&["server_uuid"]).map(str::to_owned),
        version: Some(facts.version_text.clone()),
        safe,
        verdict: findings.iter().map(|finding| finding.verdict).max().unwrap_or(FindingVerdict::Ok),
        findings,
        plan,
        estimate: None,
        answer: None,
        surveyed: None,
    }
}

/// The error without line breaks, and without the server at its beginning: the caller names the server.
fn one_line(error: &Error, server: &str) -> String {
    let text = error.to_string().replace(['\n', '\r'], " ");
    match text.strip_prefix(server).and_then(|rest| rest.strip_prefix(": ")) {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}
