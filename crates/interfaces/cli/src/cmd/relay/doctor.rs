//! `relay doctor`: says why a replica of a running relay lags or was refused, and names the relay's other problems; and what clients
//! of its profiles would not be sent as it is, of the last hour of its log.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use binlogz_binlog::printable;
use binlogz_figures::{Tone, wrapped};
use binlogz_inspect::{SurveyedLog, SurveyedThing};
use binlogz_relay::ReaderProfile;
use binlogz_relay_config::{MaskedAccount, RelayConfig};
use clap::Args;
use serde::Serialize;

use super::status::PATIENCE;
use super::{http, of_config, read};
use crate::Exit;
use crate::cmd::archive::json;
use crate::cmd::profile_survey;
use crate::failure::{CommandFailure, Result};
use crate::format::ReportFormat;
use crate::terminal;
use binlogz_fleet::RelayDocument;
use binlogz_fleet::findings::{self, RelayFinding};

/// Say why a replica lags or was refused, and what else is wrong with a running relay
///
/// Asks the relay's HTTP port and judges what it tells: sources, replicas, refused clients, the archive, the disk. With a
/// configuration, it also reads the last hour of the relay's log, and tells what the profiles of its accounts and of those
/// connected would not be sent as it is. The worst comes first. Exit code 1 if something is to be looked at, 2 if the relay can't be asked.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RelayDoctorCommand {
    /// The relay's HTTP address: HOST:PORT, or http://HOST:PORT/
    relay: Option<String>,
    /// Without an address, the one in this configuration
    #[arg(long, value_name = "FILE", default_value = "relay.toml")]
    config: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
}

/// Time to read the logs of all sources.
const BUDGET: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "Examples:
  binlogz relay doctor --config /etc/binlogz/relay.toml
  binlogz relay doctor 127.0.0.1:3308";

#[derive(Debug, Serialize)]
struct Report {
    findings: Vec<SourceFinding>,
    logs: Vec<LookedAtLog>,
}

/// A source's log of the last hour.
#[derive(Debug, Serialize)]
struct LookedAtLog {
    source: Option<String>,
    #[serde(flatten)]
    surveyed: SurveyedLog,
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
        let mut told = told(&relay, findings::now());
        let logs = match self.relay {
            Some(_) => Vec::new(),
            None => {
                let config = read(&self.config)?;
                told.extend(policies(&config, &relay));
                logs(&config, &relay, &mut told)?
            }
        };
        told.sort_by_key(|told| std::cmp::Reverse(told.tone));
        let is_well = told.iter().all(|told| told.tone <= Tone::Neutral);
        match self.format {
            ReportFormat::Json => json::print(&Report { findings: told, logs })?,
            ReportFormat::Text => print(&told)?,
        }
        Ok(if is_well { Exit::Done } else { Exit::Negative })
    }
}

/// The accounts whose logs are masked, with their policies as the files have them now.
fn policies(config: &RelayConfig, relay: &RelayDocument) -> Vec<SourceFinding> {
    let mut found = Vec::new();
    for followed in &relay.sources {
        let source = Some(followed.name.clone()).filter(|name| !name.is_empty());
        for MaskedAccount { user, policy, digest } in config.masked_accounts(&followed.name) {
            let (tone, said) = match digest {
                Ok(digest) => {
                    let place = policy.display();
                    (
                        Tone::Neutral,
                        format!(
                            "account {user} is sent a log masked by {place}, in files of names with -x{digest}"
                        ),
                    )
                }
                Err(error) => (Tone::Bad, format!("account {user}: exits: {error}")),
            };
            found.push(SourceFinding::new(source.as_ref(), tone, said));
        }
    }
    found
}

/// Looks through the logs of all sources that are on this machine; what was found is told as well.
fn logs(
    config: &RelayConfig,
    relay: &RelayDocument,
    told: &mut Vec<SourceFinding>,
) -> Result<Vec<LookedAtLog>> {
    let until = Instant::now() + BUDGET;
    let mut logs = Vec::new();
    for followed in &relay.sources {
        let profiles = profiles(config, &followed.name, followed.profiles());
        if profiles.is_empty() {
            continue;
        }
        let source = Some(followed.name.clone()).filter(|name| !name.is_empty());
        let left = until.saturating_duration_since(Instant::now());
        match survey(config, &followed.name, &profiles, left) {
            Ok(surveyed) => {
                told.extend(surveyed.findings.iter().map(|finding| of_log(source.as_ref(), finding)));
                if let Some(place) = &surveyed.stopped_at {
                    let said =
                        format!("the log of the last hour was read as far as {place}: the time was over");
                    told.push(SourceFinding::new(source.as_ref(), Tone::Neutral, said));
                }
                logs.push(LookedAtLog { source, surveyed });
            }
            Err(CommandFailure::Line(line)) => {
                let said = format!("the log of the last hour can't be looked at: {line}");
                told.push(SourceFinding::new(source.as_ref(), Tone::Warning, said));
            }
            Err(closed) => return Err(closed),
        }
    }
    Ok(logs)
}

fn of_log(source: Option<&String>, finding: &SurveyedThing) -> SourceFinding {
    let tone = if finding.why.is_some() { Tone::Warning } else { Tone::Neutral };
    SourceFinding::new(source, tone, format!("in the last hour: {}", finding.said()))
}

/// The profiles of a source's accounts and clients that are not sent everything as it is.
fn profiles<'a>(
    config: &'a RelayConfig,
    source: &'a str,
    connected: impl Iterator<Item = &'a str>,
) -> Vec<&'static ReaderProfile> {
    let named: Vec<&str> = config.profile_names(source).chain(connected).collect();
    ReaderProfile::all().iter().filter(|profile| named.contains(&profile.name)).collect()
}

fn survey(
    config: &RelayConfig,
    name: &str,
    profiles: &[&'static ReaderProfile],
    budget: Duration,
) -> Result<SurveyedLog> {
    let (folder, keyring) = config.log_of(name).map_err(of_config)?;
    profile_survey::of_folder(&folder, keyring.as_ref(), profiles, budget)
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

impl SourceFinding {
    fn new(source: Option<&String>, tone: Tone, said: String) -> Self {
        let severity = RelayFinding { tone, said: String::new() }.word();
        SourceFinding { source: source.cloned(), severity, said, tone }
    }
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
