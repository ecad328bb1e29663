//! A relay's /status.json as other commands read it. A field that a relay of another version lacks is empty.

use serde::Deserialize;
use serde_json::Value;

/// A relay.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RelayDocument {
    pub(crate) duties: Vec<Duty>,
    pub(crate) clients: ClientsDocument,
    /// Errors that belong to no source, the newest first.
    pub(crate) last_errors: Vec<ErrorDocument>,
    /// The servers that it follows.
    pub sources: Vec<SourceDocument>,
}

/// One of its sources.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SourceDocument {
    /// Empty for the only one of a relay.
    pub name: String,
    pub(crate) state: String,
    pub(crate) tone: String,
    pub(crate) failure: Option<String>,
    pub(crate) lag_history_seconds: Vec<Option<u64>>,
    pub(crate) troubles: Vec<String>,
    pub(crate) source: ReceivingDocument,
    pub(crate) log: Option<LogDocument>,
    pub(crate) bytes: BytesDocument,
    pub(crate) archive: Option<ArchiveDocument>,
    pub(crate) rates: RatesDocument,
    pub(crate) disk_free_bytes: Option<u64>,
    pub(crate) replicas: Vec<ReplicaDocument>,
    pub(crate) last_errors: Vec<ErrorDocument>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Duty {
    pub(crate) name: String,
    pub(crate) up: bool,
    pub(crate) failure: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClientsDocument {
    pub(crate) logged_in: u64,
    pub(crate) turned_away: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ErrorDocument {
    /// In seconds since 1970.
    pub(crate) time: u64,
    pub(crate) kind: String,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReceivingDocument {
    pub(crate) server: String,
    pub(crate) phase: String,
    pub(crate) phase_seconds: u64,
    /// Since the first failure; a phase may be that of the last attempt.
    pub(crate) down_seconds: Option<u64>,
    pub(crate) error: Option<String>,
    pub(crate) lag_seconds: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LogDocument {
    pub(crate) durable: PlaceDocument,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PlaceDocument {
    pub(crate) file: String,
    pub(crate) position: u64,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RatesDocument {
    pub(crate) receive: Rate,
    pub(crate) archive: Rate,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Rate {
    pub(crate) limit: Option<u64>,
    pub(crate) shared_limit: Option<u64>,
    pub(crate) is_waiting: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BytesDocument {
    pub(crate) received: u64,
    pub(crate) stored: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ArchiveDocument {
    pub(crate) to: String,
    pub(crate) last_file: Option<String>,
    pub(crate) waiting_files: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReplicaDocument {
    pub(crate) user: String,
    pub(crate) profile: String,
    pub(crate) address: String,
    pub(crate) server_id: u64,
    pub(crate) form: String,
    pub(crate) reads_compressed: Option<bool>,
    /// Whether it gets every row as the source has it, and whether it acknowledges; relays of before don't tell the first.
    pub(crate) is_copy: Option<bool>,
    #[serde(default)]
    pub(crate) semi_sync: bool,
    pub(crate) lag_bytes: u64,
    pub(crate) lag_seconds: Option<u64>,
}

impl SourceDocument {
    /// The profiles of the replicas that are connected.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.replicas.iter().map(|replica| replica.profile.as_str()).filter(|profile| !profile.is_empty())
    }
}

impl RelayDocument {
    /// Reads a document, of one source or of several.
    pub fn read(text: &str) -> Result<RelayDocument, String> {
        let unfit = |error: serde_json::Error| format!("answers no relay's status: {error}");
        let document: Value = serde_json::from_str(text).map_err(unfit)?;
        if document.get("sources").is_some() {
            return serde_json::from_value(document).map_err(unfit);
        }
        if document.get("source").is_none() {
            return Err("answers no relay's status".to_owned());
        }
        let relay: RelayDocument = serde_json::from_value(document.clone()).map_err(unfit)?;
        let only: SourceDocument = serde_json::from_value(document).map_err(unfit)?;
        // Fields that both have are taken from the source.
        Ok(RelayDocument { duties: Vec::new(), last_errors: Vec::new(), sources: vec![only], ..relay })
    }
}

impl std::fmt::Display for PlaceDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.file, self.position)
    }
}
