//! The status of a relay: the status of each of its sources, and of what they share.

use std::collections::BTreeMap;

use serde::Serialize;

use super::status::{SharedStatus, SourceReport, StatusClients};
use super::{WatchedRelay, WatchedSource, condition};
use crate::serve::connections::transport::ServerTls;
use crate::telemetry::duties::{ACCEPT, DutyStatus};
use crate::telemetry::meters::RememberedError;

/// The status of a relay: the status of each of its sources, and of what they share. The field names in JSON are stable.
#[derive(Debug, Clone, Serialize)]
pub struct RelayStatus {
    /// binlogz's version.
    pub version: &'static str,
    /// Since the start.
    pub uptime_seconds: u64,
    /// Problems that someone must look at, each with the name of its source; empty if the relay is healthy.
    pub troubles: Vec<String>,
    /// The relay's duties for all its sources, and whether each is working.
    pub duties: Vec<DutyStatus>,
    /// Connections, of all sources.
    pub clients: StatusClients,
    /// SHA-256 of the certificate for clients, as openssl prints it; none without TLS.
    pub tls_fingerprint: Option<String>,
    /// Errors since the start that belong to no source, by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// The newest errors that belong to no source, the newest first.
    pub last_errors: Vec<RememberedError>,
    /// The sources, in the order of the configuration.
    pub sources: Vec<NamedStatus>,
}

/// A source by its name.
#[derive(Debug, Clone, Serialize)]
pub struct NamedStatus {
    /// The source's name; empty for the only source of a relay.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How it is, as its page says it: `Live`, `Behind`, `Source down` and so on.
    pub state: &'static str,
    /// How bad that is: good, neutral, warning or bad.
    pub tone: &'static str,
    /// How far it lagged behind the server during the last hour, if that was asked for; an element for each 40 seconds, the
    /// newest last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_history_seconds: Option<Vec<Option<u64>>>,
    /// Why its log could not be opened; there is nothing else to say of it then.
    pub failure: Option<String>,
    /// As a relay that has no other source shows it.
    #[serde(flatten)]
    pub status: Option<SourceReport>,
}

impl WatchedRelay {
    pub(crate) fn status(&self) -> RelayStatus {
        let telemetry = &self.door.telemetry;
        let shared = self.shared();
        let sources: Vec<_> = self.sources().into_iter().map(|watched| named(watched, &shared)).collect();
        let duties = telemetry.duties.seen();
        let (errors, last_errors) = telemetry.meters.errors();
        let mut troubles: Vec<String> = Vec::new();
        for source in &sources {
            troubles.extend(source.troubles().into_iter().map(|trouble| source.prefixed(&trouble)));
        }
        troubles.extend(duties.iter().filter_map(DutyStatus::trouble));
        RelayStatus {
            version: shared.version,
            uptime_seconds: self.started.elapsed().as_secs(),
            troubles,
            duties,
            clients: shared.clients,
            tls_fingerprint: shared.tls_fingerprint,
            errors,
            last_errors,
            sources,
        }
    }

    pub(super) fn shared(&self) -> SharedStatus {
        let counts = self.door.gate.counts();
        SharedStatus {
            version: env!("CARGO_PKG_VERSION"),
            clients: StatusClients {
                logged_in: counts.logged_in,
                logging_in: counts.logging_in,
                turned_away: counts.turned_away,
            },
            tls_fingerprint: self.door.tls.as_ref().map(ServerTls::shown_fingerprint),
        }
    }
}

fn named(watched: WatchedSource, shared: &SharedStatus) -> NamedStatus {
    let status = watched.source.and_then(|source| source.status(shared).map_err(|error| error.to_string()));
    NamedStatus::new(watched.name, status)
}

impl RelayStatus {
    /// The status of the only source, if it has no name.
    pub fn only(&self) -> Option<&NamedStatus> {
        self.sources.first().filter(|source| source.name.is_empty())
    }

    /// The reasons why replicas can't be served; empty if those of some source can be.
    pub(crate) fn unreadiness(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for source in &self.sources {
            let unready = source.unreadiness();
            if unready.is_empty() {
                wrong.clear();
                break;
            }
            wrong.extend(unready.into_iter().map(|why| source.prefixed(&why)));
        }
        let accepting = self.duties.iter().find(|duty| duty.name == ACCEPT);
        wrong.extend(accepting.and_then(DutyStatus::trouble));
        wrong
    }
}

impl NamedStatus {
    /// The error says why there is no status.
    pub(crate) fn new(name: String, status: Result<SourceReport, String>) -> NamedStatus {
        let (status, failure) = match status {
            Ok(status) => (Some(status), None),
            Err(failure) => (None, Some(failure)),
        };
        let (tone, state) = status.as_ref().map_or(condition::NOT_SERVED, condition::of);
        NamedStatus { name, state, tone: tone.name(), lag_history_seconds: None, failure, status }
    }

    fn prefixed(&self, line: &str) -> String {
        match self.name.as_str() {
            "" => line.to_owned(),
            name => format!("source {name}: {line}"),
        }
    }

    /// The troubles that someone must look at.
    pub fn troubles(&self) -> Vec<String> {
        match (&self.status, &self.failure) {
            (Some(status), _) => status.troubles.clone(),
            (None, failure) => failure.iter().map(|why| format!("it is not served: {why}")).collect(),
        }
    }

    /// The reasons why its replicas can't be served.
    pub(crate) fn unreadiness(&self) -> Vec<String> {
        self.status.as_ref().map_or_else(|| self.troubles(), SourceReport::unreadiness)
    }
}
