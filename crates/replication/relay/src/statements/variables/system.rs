//! The system variables: the source's values, and the relay's own where it differs from its source.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_wire::result_set::ResultKind;
use binlogz_wire::session::COMMAND_SIZE_MAX;
use binlogz_wire::statement::Scope;

use crate::error::Result;
use crate::lock::lock;
use crate::log::lineage_log::LineageLog;
use crate::log::stored_format::StoredHead;
use crate::receive::source_variables::{SourceVariable, SourceVariables};
use crate::statements::Statements;
use crate::statements::statement_answer::Refusal;
use crate::statements::variables::session::{SessionValue, Variables};
use crate::statements::variables::unknown_variable;

/// The variables that semi-synchronous replicas query: from 8.0.26 on, and before.
const SEMI_SYNC: [&str; 2] = ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"];
/// The settings of the source's plugins say nothing about the relay.
const SEMI_SYNC_PREFIX: &str = "rpl_semi_sync_";
/// ON and OFF in SELECT too.
const WORDS: [&str; 2] = ["gtid_mode", "enforce_gtid_consistency"];
/// ER_INCORRECT_GLOBAL_LOCAL_VAR.
const WRONG_SCOPE: (u16, [u8; 5]) = (1238, *b"HY000");

/// All system variables, at the time of a statement.
#[derive(Debug, Default)]
pub(crate) struct System {
    source: Option<Arc<SourceVariables>>,
    /// The relay's own, as SHOW VARIABLES has them; `None` is NULL.
    own: BTreeMap<&'static str, Option<String>>,
}

impl System {
    /// The relay's own values come from the stored log, so that the relay serves while the source is down.
    pub(crate) fn of(statements: &Statements, kept: &LineageLog) -> Result<Self> {
        let source = statements.intake.source_variables.get();
        let Some(now) = kept.store.positions() else { return Ok(System { source, own: BTreeMap::new() }) };
        let head = StoredHead::read(&kept.store, now.durable.file)?;
        let checksum = if head.checksum().size() > 0 { "CRC32" } else { "NONE" };
        let gtid_mode = if statements.intake.has_gtids() { "ON" } else { "OFF" };
        let switch = |on: bool| if on { "ON" } else { "OFF" };
        // The purged transactions are those before the first file.
        let first = kept.store.logs()?.first().map(|log| kept.store.previous_gtids(log.number));
        let purged = first.and_then(Result::ok).unwrap_or_default();
        let own = [
            ("binlog_checksum", checksum),
            ("enforce_gtid_consistency", gtid_mode),
            ("gtid_executed", &kept.durable_gtids().to_string()),
            ("gtid_mode", gtid_mode),
            ("gtid_owned", ""),
            ("gtid_purged", &purged.to_string()),
            ("hostname", &statements.hostname),
            ("local_infile", "OFF"),
            ("log_bin", "ON"),
            ("log_bin_basename", &kept.base),
            ("read_only", "ON"),
            ("require_secure_transport", switch(statements.requires_tls)),
            ("server_id", &head.header.server_id.to_string()),
            ("server_uuid", &kept.source.to_string()),
            ("super_read_only", "ON"),
            ("version", &head.description.server_version()),
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
        .map(|(name, value)| (name, value.to_owned()));
        let meanwhile = meanwhile.into_iter().filter(|_| source.is_none());
        let compression = *lock(&statements.intake.compression);
        // If it is off, the variable doesn't exist, as on a server without the plugin.
        let semi_sync = SEMI_SYNC.iter().filter(|_| statements.listen_semi_sync);
        let semi_sync = semi_sync.map(|name| (*name, "ON".to_owned()));
        let own = own.into_iter().chain(meanwhile).chain(compression.shown()).chain(semi_sync);
        let mut own: BTreeMap<_, _> = own.map(|(name, value)| (name, Some(value))).collect();
        // A client on the source's machine would go to the source by its socket.
        own.insert("socket", None);
        Ok(System { source, own })
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
        variables: &Variables,
    ) -> Result<(Option<String>, ResultKind), Refusal> {
        let of_source = self.of_source(name);
        if scope == Scope::Global && of_source.is_some_and(|variable| variable.only_in_sessions) {
            return Err((WRONG_SCOPE, format!("Variable '{name}' is a SESSION variable")));
        }
        let value = self.value(scope, name, variables).ok_or_else(|| unknown_variable(name))?;
        Ok((value.selected, self.kind(name)))
    }

    /// All variables' values in SHOW VARIABLES.
    pub(super) fn listed(&self, scope: Scope, variables: &Variables) -> BTreeMap<&str, String> {
        let of_source = self.source.iter().flat_map(|source| source.variables.keys());
        let names = of_source.map(String::as_str).chain(self.own.keys().copied());
        let names = names.filter(|name| {
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

    fn value(&self, scope: Scope, name: &str, variables: &Variables) -> Option<SessionValue> {
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
