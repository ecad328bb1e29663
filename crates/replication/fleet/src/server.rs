//! A row for each server that the file of targets names: the findings of `doctor` about it, in short.

use binlogz_figures::Tone;
use binlogz_inspect::{Finding, FindingVerdict, Knowledge, Reads, ServerReport, examine};
use binlogz_source::ConnectOptions;
use binlogz_source::option_files::BINLOGZ_GROUPS;

use crate::row::{FleetRow, FleetRowKind};
use crate::targets::FleetServer;

/// The name for itself at servers.
const PROGRAM_NAME: &str = "binlogz fleet";

/// Asks it, with the account that its option files name.
pub(crate) fn ask(target: &str, server: &FleetServer) -> FleetRow {
    let report = match connect_options(server) {
        Ok(options) => report(target, &options),
        Err(error) => ServerReport::failed(target, error.to_string()),
    };
    row(target, server, report)
}

/// Options from files alone, for a program that nobody watches: no password is asked for.
fn connect_options(server: &FleetServer) -> Result<ConnectOptions, binlogz_source::Error> {
    let mut options = ConnectOptions::new(PROGRAM_NAME);
    server.files.read(&BINLOGZ_GROUPS)?.apply(&mut options)?;
    options.set_server(&server.place)?;
    Ok(options)
}

fn report(target: &str, options: &ConnectOptions) -> ServerReport {
    examine(target, options, &Knowledge::built_in(), None)
}

fn row(target: &str, server: &FleetServer, report: ServerReport) -> FleetRow {
    let place = Some(without_account(&server.place).to_owned());
    if let Some(error) = report.error {
        return FleetRow::unreachable(target, FleetRowKind::Server, place, error);
    }
    let all = report.consumers().count() as u64;
    let cannot = report.consumers().filter(|consumer| consumer.reads == Reads::No).count() as u64;
    let (tone, state) = match (cannot, report.safe) {
        (0, true) => (Tone::Good, "Can compress"),
        (0, false) => (Tone::Neutral, "Not known"),
        (_, _) => (Tone::Warning, "Consumers can't read compression"),
    };
    let mut found: Vec<&Finding> =
        report.findings.iter().filter(|finding| finding.verdict > FindingVerdict::Warn).collect();
    found.sort_by_key(|finding| std::cmp::Reverse((finding.consumer.is_some(), finding.verdict)));
    let said = |finding: &&Finding| match &finding.subject {
        Some(subject) => format!("{}: {subject}: {}", finding.what, finding.found),
        None => format!("{}: {}", finding.what, finding.found),
    };
    FleetRow {
        target: target.to_owned(),
        kind: FleetRowKind::Server,
        source: place,
        reached: true,
        state: state.to_owned(),
        tone,
        server: report.version,
        replicas: Some(all),
        replicas_uncompressed: Some(cannot),
        findings: found.iter().map(said).collect(),
        ..FleetRow::default()
    }
}

/// A password in the place is refused, and is not shown either.
fn without_account(place: &str) -> &str {
    place.rsplit_once('@').map_or(place, |(_, place)| place)
}
