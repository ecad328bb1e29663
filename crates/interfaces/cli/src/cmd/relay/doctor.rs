//! `relay doctor`: says why a replica of a running relay lags or was refused, and names the relay's other problems.

use std::io::{self, Write};
use std::path::PathBuf;

use binlogz_binlog::printable;
use binlogz_figures::{Tone, wrapped};
use clap::Args;
use serde::Serialize;

use super::http;
use super::status::PATIENCE;
use crate::Exit;
use crate::cmd::archive::json;
use crate::failure::{CommandFailure, Result};
use crate::format::ReportFormat;
use crate::terminal;
use binlogz_fleet::RelayDocument;
use binlogz_fleet::findings::{self, RelayFinding};

/// Say why a replica lags or was refused, and what else is wrong with a running relay
///
/// Asks the relay's HTTP port and judges what it tells: sources, replicas, refused clients, the archive, the disk. The worst
/// comes first. Exit code 1 if something is to be looked at, 2 if the relay can't be asked.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RelayDoctorCommand {
    /// The relay's HTTP address: HOST:PORT, or http://HOST:PORT/
    relay: Option<String>,
    /// Without it, the address in this configuration
    #[arg(long, value_name = "FILE", default_value = "relay.toml")]
    config: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
}

const EXAMPLES: &str = "Examples:
  binlogz relay doctor --config /etc/binlogz/relay.toml
  binlogz relay doctor 127.0.0.1:3308";

#[derive(Debug, Serialize)]
struct Report {
    findings: Vec<SourceFinding>,
}

/// A finding, and the source that it is of.
#[derive(Debug, Serialize)]
struct SourceFinding {
    source: Option<String>,
    /// wrong, look or note.
    severity: &'static str,
    said: String,
    #[serde(skip)]
    tone: Tone,
}

impl RelayDoctorCommand {
    pub(super) fn run(self) -> Result<Exit> {
        let (_, body) = http::ask(self.relay.as_deref(), &self.config, "", PATIENCE)?;
        let failed = |error| CommandFailure::of(&self.relay.as_deref().unwrap_or("the relay"), error);
        let relay = RelayDocument::read(&body).map_err(failed)?;
        let told = told(&relay, findings::now());
        let is_well = told.iter().all(|told| told.tone <= Tone::Neutral);
        match self.format {
            ReportFormat::Json => json::print(&Report { findings: told })?,
            ReportFormat::Text => print(&told)?,
        }
        Ok(if is_well { Exit::Done } else { Exit::Negative })
    }
}

/// The findings about all sources, the worst first.
fn told(relay: &RelayDocument, now: u64) -> Vec<SourceFinding> {
    let of = |source: Option<&str>, found: Vec<RelayFinding>| -> Vec<SourceFinding> {
        let told = found.into_iter().map(|finding| SourceFinding {
            source: source.filter(|name| !name.is_empty()).map(str::to_owned),
            severity: finding.word(),
            tone: finding.tone,
            said: finding.said,
        });
        told.collect()
    };
    let mut told = of(None, findings::of_relay(relay, now));
    for source in &relay.sources {
        told.extend(of(Some(&source.name), findings::of_source(source, now)));
    }
    told.sort_by_key(|told| std::cmp::Reverse(told.tone));
    told
}

fn print(told: &[SourceFinding]) -> Result<()> {
    let mut text = String::new();
    for SourceFinding { source, severity, said, .. } in told {
        let source = source.as_ref().map_or(String::new(), |name| format!("{name}: "));
        // Clients chose some of it.
        let line = printable(&format!("{severity:<6}{source}{said}")).into_owned();
        let width = terminal::width().unwrap_or(terminal::PIPE_WIDTH);
        text += &(wrapped(&line, "", "      ", Some(width)) + "\n");
    }
    if told.is_empty() {
        text += "nothing is wrong\n";
    }
    let written = io::stdout().lock().write_all(text.as_bytes());
    written.map_err(|error| CommandFailure::writing(&"standard output", &error))
}
