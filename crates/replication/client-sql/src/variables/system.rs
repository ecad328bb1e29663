//! The system variables: the source's values, and the relay's own where it differs from its source.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_binlog::gtid::GtidSet;
use binlogz_variables::CompressionVariables;
use binlogz_wire::result_set::ResultKind;
use binlogz_wire::session::COMMAND_SIZE_MAX;
use binlogz_wire::statement::Scope;

use crate::statement_answer::Refusal;
use crate::variables::session::{ClientVariables, SessionValue};
use crate::variables::source::{SourceVariable, SourceVariables};
use crate::variables::unknown_variable;

/// The variables that semi-synchronous replicas query: from 8.0.26 on, and before.
const SEMI_SYNC: [&str; 2] = ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"];
/// The settings of the source's plugins say nothing about the relay.
const SEMI_SYNC_PREFIX: &str = "rpl_semi_sync_";
/// Whether the server takes changes: the relay itself takes none.
pub(crate) const READ_ONLY: [&str; 2] = ["read_only", "super_read_only"];
/// ON and OFF in SELECT too.
const WORDS: [&str; 2] = ["gtid_mode", "enforce_gtid_consistency"];
/// ER_INCORRECT_GLOBAL_LOCAL_VAR.
const WRONG_SCOPE: (u16, [u8; 5]) = (1238, *b"HY000");

/// The relay's own values. They come from the stored log and its configuration, so that the relay serves while the source is down.
#[derive(Debug, Clone)]
pub struct OwnVariables {
    /// This machine's name.
    pub hostname: String,
    /// Whether clients must use TLS.
    pub requires_tls: bool,
    /// Whether `read_only` and `super_read_only` are the source's, as far as its variables are known; else both are ON.
    pub read_only_of_source: bool,
    /// Whether replicas may acknowledge transactions.
    pub listen_semi_sync: bool,
    /// Whether the source has GTIDs.
    pub has_gtids: bool,
    /// Whether the events of the last file have checksums.
    pub has_checksums: bool,
    /// All transactions that are durable.
    pub gtid_executed: GtidSet,
    /// The GTIDs before the first file.
    pub gtid_purged: GtidSet,
    /// The base name of the source's files.
    pub log_base: String,
    /// The source's server id.
    pub server_id: u32,
    /// The source's uuid.
    pub server_uuid: String,
    /// The source's version.
    pub server_version: String,
    /// The variables that steer the compression of what is stored.
    pub compression: CompressionVariables,
}

/// All system variables, at the time of a statement.
#[derive(Debug, Default)]
pub(crate) struct SystemVariables {
    source: Option<Arc<SourceVariables>>,
    /// The relay's own, as SHOW VARIABLES has them; `None` is NULL.
    own: BTreeMap<&'static str, Option<String>>,
}

impl SystemVariables {
    /// The source's variables, and the relay's own, which it has as soon as something is stored.
    pub(crate) fn new(source: Option<Arc<SourceVariables>>, facts: Option<&OwnVariables>) -> Self {
        let Some(facts) = facts else { return SystemVariables { source, own: BTreeMap::new() } };
        let checksum = if facts.has_checksums { "CRC32" } else { "NONE" };
        let gtid_mode = if facts.has_gtids { "ON" } else { "OFF" };
        let switch = |on: bool| if on { "ON" } else { "OFF" };
        let own = [
            ("binlog_checksum", checksum),
            ("enforce_gtid_consistency", gtid_mode),
            ("gtid_executed", &facts.gtid_executed.to_string()),
            ("gtid_mode", gtid_mode),
            ("gtid_owned", ""),
            ("gtid_purged", &facts.gtid_purged.to_string()),
            ("hostname", &facts.hostname),
            ("local_infile", "OFF"),
            ("log_bin", "ON"),
            ("log_bin_basename", &facts.log_base),
            ("read_only", "ON"),
            ("require_secure_transport", switch(facts.requires_tls)),
            ("server_id", &facts.server_id.to_string()),
            ("server_uuid", &facts.server_uuid),
            ("super_read_only", "ON"),
            ("version", &facts.server_version),
            ("version_comment", "binlogz relay"),
        ]
        .map(|(name, value)| (name, value.to_owned()));
        // Before the source was reached for the first time.
        let meanwhile = [
            ("autocommit", "ON"),
            ("binlog_format", "ROW"),
            ("binlog_row_image", "FULL"),
            ("max_allowed_packet", &COMMAND_SIZE_MAX.to_string()),
            ("time_zone", "SYSTEM"),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into_iter()
        .filter(|_| source.is_none());
        // If it is off, the variable doesn't exist, as on a server without the plugin.
        let semi_sync =
            SEMI_SYNC.iter().filter(|_| facts.listen_semi_sync).map(|name| (*name, "ON".to_owned()));
        let mut own: BTreeMap<_, _> = own
            .into_iter()
            .chain(meanwhile)
            .chain(facts.compression.shown())
            .chain(semi_sync)
            .map(|(name, value)| (name, Some(value)))
            .collect();
        // A client on the source's machine would go to the source by its socket.
        own.insert("socket", None);
        if facts.read_only_of_source && source.is_some() {
            READ_ONLY.iter().for_each(|name| drop(own.remove(name)));
        }
        SystemVariables { source, own }
    }

    /// A value of the relay's own.
    pub(crate) fn own(&self, name: &str) -> Option<&str> {
        self.own.get(name)?.as_deref()
    }

    /// The source's variables, as far as they are known.
    pub(crate) fn source(&self) -> Option<&SourceVariables> {
        self.source.as_deref()
    }

    /// Whether the relay has a value of its own.
    pub(super) fn is_own(&self, name: &str) -> bool {
        self.own.contains_key(name)
    }

    pub(super) fn of_source(&self, name: &str) -> Option<&SourceVariable> {
        let variable = self.source.as_ref()?.variables.get(name)?;
        (!name.starts_with(SEMI_SYNC_PREFIX)).then_some(variable)
    }

    /// A variable's value in SELECT, and its kind.
    pub(super) fn select(
        &self,
        scope: Scope,
        name: &str,
        variables: &ClientVariables,
    ) -> Result<(Option<String>, ResultKind), Refusal> {
        let of_source = self.of_source(name);
        if scope == Scope::Global && of_source.is_some_and(|variable| variable.only_in_sessions) {
            return Err((WRONG_SCOPE, format!("Variable '{name}' is a SESSION variable")));
        }
        let value = self.value(scope, name, variables).ok_or_else(|| unknown_variable(name))?;
        Ok((value.selected, self.kind(name)))
    }

    /// All variables' values in SHOW VARIABLES.
    pub(super) fn listed(&self, scope: Scope, variables: &ClientVariables) -> BTreeMap<&str, String> {
        let of_source = self.source.iter().flat_map(|source| source.variables.keys());
        let names = of_source.map(String::as_str).chain(self.own.keys().copied()).filter(|name| {
            let of_session = self.of_source(name).is_some_and(|variable| variable.only_in_sessions);
            !(scope == Scope::Global && of_session)
        });
        names.filter_map(|name| Some((name, self.value(scope, name, variables)?.shown))).collect()
    }

    fn kind(&self, name: &str) -> ResultKind {
        let is_number = |value: &str| value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty();
        match (self.of_source(name), self.own(name)) {
            (Some(variable), _) => variable.kind(),
            (None, Some("ON" | "OFF")) if !WORDS.contains(&name) => ResultKind::INTEGER,
            (None, Some(value)) if is_number(value) => ResultKind::INTEGER,
            (None, _) => ResultKind::TEXT,
        }
    }

    fn value(&self, scope: Scope, name: &str, variables: &ClientVariables) -> Option<SessionValue> {
        if let (Scope::Any | Scope::Session, Some(value)) = (scope, variables.session.get(name)) {
            return Some(value.clone());
        }
        let of_client = match name {
            "port" => Some(variables.client.port.to_string()),
            "pseudo_thread_id" => Some(variables.client.connection.to_string()),
            "timestamp" => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Some(format!("{}.{:06}", now.as_secs(), now.subsec_micros()))
            }
            _ => None,
        };
        if let Some(value) = of_client {
            return Some(SessionValue::text(value));
        }
        let Some(own) = self.own.get(name) else {
            let SourceVariable { shown, selected, .. } = self.of_source(name)?;
            return Some(SessionValue { shown: shown.clone(), selected: selected.clone() });
        };
        let Some(own) = own else { return Some(SessionValue { shown: String::new(), selected: None }) };
        let selected = match own.as_str() {
            "ON" | "OFF" if self.kind(name).is_integer() => u8::from(own == "ON").to_string(),
            _ => own.clone(),
        };
        Some(SessionValue { shown: own.clone(), selected: Some(selected) })
    }
}
