//! Changes between two reports: rows that are new, gone or different, server by server.

use std::collections::BTreeMap;

use crate::report::{ChangedRow, Finding, FindingVerdict, InspectReport, ServerReport};

/// The row of a server as a whole.
const SERVER: &str = "server";
/// Rows of running figures: they always differ.
const FIGURES: [&str; 2] = ["binary_log_transaction_compression_stats", "stage_timings"];

/// Changes since `before`. Running figures don't count as a change.
pub fn changes(before: &InspectReport, now: &InspectReport) -> Vec<ChangedRow> {
    let mut changes = Vec::new();
    for server in &now.servers {
        match before.servers.iter().find(|other| other.server == server.server) {
            Some(other) => compare(other, server, &mut changes),
            None => changes.push(change(server, SERVER, None, None, Some((&state(server), server.verdict)))),
        }
    }
    for server in &before.servers {
        if !now.servers.iter().any(|other| other.server == server.server) {
            changes.push(change(server, SERVER, None, Some((&state(server), server.verdict)), None));
        }
    }
    changes
}

fn compare(before: &ServerReport, now: &ServerReport, changes: &mut Vec<ChangedRow>) {
    let was = state(before);
    let is = state(now);
    if was != is {
        changes.push(change(now, SERVER, None, Some((&was, before.verdict)), Some((&is, now.verdict))));
    }
    if before.error.is_some() || now.error.is_some() {
        return;
    }
    let was = rows(before);
    let is = rows(now);
    for (key, finding) in &is {
        let before = was.get(key);
        if before.is_none_or(|before| before.found != finding.found || before.verdict != finding.verdict) {
            let before = before.map(|before| (before.found.as_str(), before.verdict));
            changes.push(change(now, key.0, key.1, before, Some((&finding.found, finding.verdict))));
        }
    }
    for (key, finding) in was.iter().filter(|(key, _)| !is.contains_key(*key)) {
        changes.push(change(now, key.0, key.1, Some((&finding.found, finding.verdict)), None));
    }
}

/// The server's identity, or why it could not be examined.
fn state(server: &ServerReport) -> String {
    match &server.error {
        Some(error) => error.clone(),
        None => {
            format!(
                "{}, server_uuid {}",
                server.version.as_deref().unwrap_or("no version"),
                server.server_uuid.as_deref().unwrap_or("unknown")
            )
        }
    }
}

type Key<'a> = (&'a str, Option<&'a str>);

fn rows(server: &ServerReport) -> BTreeMap<Key<'_>, &Finding> {
    let rows = server.findings.iter().filter(|finding| !FIGURES.contains(&finding.what.as_str()));
    rows.map(|finding| ((finding.what.as_str(), finding.subject.as_deref()), finding)).collect()
}

fn change(
    server: &ServerReport,
    what: &str,
    subject: Option<&str>,
    before: Option<(&str, FindingVerdict)>,
    now: Option<(&str, FindingVerdict)>,
) -> ChangedRow {
    ChangedRow {
        server: server.server.clone(),
        what: what.to_owned(),
        subject: subject.map(str::to_owned),
        before: before.map(|(found, _)| found.to_owned()),
        now: now.map(|(found, _)| found.to_owned()),
        verdict_before: before.map(|(_, verdict)| verdict),
        verdict_now: now.map(|(_, verdict)| verdict),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(findings: Vec<Finding>) -> InspectReport {
        let server = ServerReport { error: None, findings, ..ServerReport::failed("db1", "") };
        InspectReport::new(vec![server])
    }

    #[test]
    fn rows_that_differ_are_told_and_figures_are_not() {
        let before = report(vec![
            Finding::ok("binlog_format", "ROW"),
            Finding::ok("stage_timings", "1"),
            Finding::ok("consumer", "a replica").of("r1"),
        ]);
        let now = report(vec![
            Finding::new("binlog_format", "MIXED", FindingVerdict::Warn, ""),
            Finding::ok("stage_timings", "2"),
            Finding::ok("consumer", "a client").of("c1"),
        ]);
        assert_eq!(changes(&now, &now), []);
        let told = changes(&before, &now);
        let told: Vec<_> = told
            .iter()
            .map(|change| {
                (
                    change.what.as_str(),
                    change.subject.as_deref(),
                    change.before.as_deref(),
                    change.now.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("binlog_format", None, Some("ROW"), Some("MIXED")),
                ("consumer", Some("c1"), None, Some("a client")),
                ("consumer", Some("r1"), Some("a replica"), None),
            ]
        );
    }

    #[test]
    fn servers_come_and_go() {
        let some = report(Vec::new());
        let none = InspectReport::new(Vec::new());
        assert_eq!(changes(&none, &some).len(), 1);
        assert_eq!(changes(&some, &none)[0].now, None);
        let failed = InspectReport::new(vec![ServerReport::failed("db1", "gone")]);
        assert_eq!(changes(&some, &failed)[0].now.as_deref(), Some("gone"));
    }
}
