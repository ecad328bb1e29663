//! A relay's /status.json as other commands read it. A field that a relay of another version lacks is empty.

use serde::Deserialize;
use serde_json::Value;

/// A relay.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct RelayDocument {
    pub(in crate::cmd) duties: Vec<Duty>,
    pub(in crate::cmd) clients: ClientsDocument,
    /// Errors that belong to no source, the newest first.
    pub(in crate::cmd) last_errors: Vec<ErrorDocument>,
    pub(in crate::cmd) sources: Vec<SourceDocument>,
}

/// One of its sources.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct SourceDocument {
    /// Empty for the only one of a relay.
    pub(in crate::cmd) name: String,
    pub(in crate::cmd) state: String,
    pub(in crate::cmd) tone: String,
    pub(in crate::cmd) failure: Option<String>,
    pub(in crate::cmd) lag_history_seconds: Vec<Option<u64>>,
    pub(in crate::cmd) troubles: Vec<String>,
    pub(in crate::cmd) source: ReceivingDocument,
    pub(in crate::cmd) log: Option<LogDocument>,
    pub(in crate::cmd) bytes: BytesDocument,
    pub(in crate::cmd) archive: Option<ArchiveDocument>,
    pub(in crate::cmd) rates: RatesDocument,
    pub(in crate::cmd) disk_free_bytes: Option<u64>,
    pub(in crate::cmd) replicas: Vec<ReplicaDocument>,
    pub(in crate::cmd) last_errors: Vec<ErrorDocument>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct Duty {
    pub(in crate::cmd) name: String,
    pub(in crate::cmd) up: bool,
    pub(in crate::cmd) failure: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct ClientsDocument {
    pub(in crate::cmd) logged_in: u64,
    pub(in crate::cmd) turned_away: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct ErrorDocument {
    /// In seconds since 1970.
    pub(in crate::cmd) time: u64,
    pub(in crate::cmd) kind: String,
    pub(in crate::cmd) text: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct ReceivingDocument {
    pub(in crate::cmd) server: String,
    pub(in crate::cmd) phase: String,
    pub(in crate::cmd) phase_seconds: u64,
    /// Since the first failure; a phase may be that of the last attempt.
    pub(in crate::cmd) down_seconds: Option<u64>,
    pub(in crate::cmd) error: Option<String>,
    pub(in crate::cmd) lag_seconds: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct LogDocument {
    pub(in crate::cmd) durable: PlaceDocument,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct PlaceDocument {
    pub(in crate::cmd) file: String,
    pub(in crate::cmd) position: u64,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct RatesDocument {
    pub(in crate::cmd) receive: Rate,
    pub(in crate::cmd) archive: Rate,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct Rate {
    pub(in crate::cmd) limit: Option<u64>,
    pub(in crate::cmd) shared_limit: Option<u64>,
    pub(in crate::cmd) is_waiting: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct BytesDocument {
    pub(in crate::cmd) received: u64,
    pub(in crate::cmd) stored: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct ArchiveDocument {
    pub(in crate::cmd) to: String,
    pub(in crate::cmd) last_file: Option<String>,
    pub(in crate::cmd) waiting_files: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cmd) struct ReplicaDocument {
    pub(in crate::cmd) user: String,
    pub(in crate::cmd) address: String,
    pub(in crate::cmd) server_id: u64,
    pub(in crate::cmd) form: String,
    pub(in crate::cmd) reads_compressed: Option<bool>,
    pub(in crate::cmd) lag_bytes: u64,
    pub(in crate::cmd) lag_seconds: Option<u64>,
}

impl RelayDocument {
    /// Reads a document, of one source or of several.
    pub(in crate::cmd) fn read(text: &str) -> Result<RelayDocument, String> {
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
