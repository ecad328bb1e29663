//! The replication channel on the server: attached to the embedded source, and detached again with every setting as it was.
//!
//! The settings to restore are kept on the server itself, in the name of the channel's account: they are there exactly as long as
//! the channel is, whichever run finds it, on whichever machine.
//!
//! ```text
//! binlogz_w4_o1_s12_p0     replica_parallel_workers, replica_preserve_commit_order, server_id as they were; whether
//!                          skip_replica_start was persisted here
//! ```

use std::net::SocketAddr;

use crate::error::{ReplayError, Result};
use crate::filters::ReplicationFilters;
use crate::quoting::literal;
use crate::target::{FOLD_CHANNEL, RECOVERY_CHANNEL, TargetFacts, TargetServer, TargetTrouble};

const USER: &str = "binlogz";
/// ER_REPLICA_CHANNEL_DOES_NOT_EXIST.
const NO_SUCH_CHANNEL: u16 = 3074;
/// ER_SPECIFIC_ACCESS_DENIED_ERROR.
const ACCESS_DENIED: u16 = 1227;

/// Settings as they were before the first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SavedSettings {
    pub(crate) workers: u32,
    pub(crate) keeps_order: bool,
    pub(crate) server_id: u32,
    pub(crate) persisted: bool,
}

impl SavedSettings {
    pub(crate) fn of(facts: &TargetFacts, persists: bool) -> SavedSettings {
        SavedSettings {
            workers: facts.workers,
            keeps_order: facts.keeps_order,
            server_id: facts.server_id,
            persisted: persists,
        }
    }

    pub(crate) fn user(&self) -> String {
        let SavedSettings { workers, keeps_order, server_id, persisted } = self;
        format!("{USER}_w{workers}_o{}_s{server_id}_p{}", u8::from(*keeps_order), u8::from(*persisted))
    }

    fn parse(user: &str) -> Option<SavedSettings> {
        let mut parts = user.strip_prefix(USER)?.strip_prefix('_')?.split('_');
        let mut number = |letter: &str| -> Option<u32> { parts.next()?.strip_prefix(letter)?.parse().ok() };
        Some(SavedSettings {
            workers: number("w")?,
            keeps_order: number("o")? == 1,
            server_id: number("s")?,
            persisted: number("p")? == 1,
        })
    }
}

/// The replicating threads as they are meanwhile.
#[derive(Debug, Clone, Default)]
pub struct ApplierThreads {
    /// How many workers apply; `None`: as the server has it.
    pub workers: Option<u32>,
    /// Whether transactions commit in the log's order; `None`: as the server has it.
    pub keeps_order: Option<bool>,
    /// The databases and tables that are left out or go elsewhere.
    pub filters: ReplicationFilters,
}

/// How the channel reaches the embedded source.
#[derive(Debug, Clone)]
pub(crate) struct ChannelSource {
    pub(crate) address: SocketAddr,
    pub(crate) password: String,
    pub(crate) tls: bool,
    /// The server's id meanwhile: replicas pass over transactions that have their own.
    pub(crate) server_id: u32,
}

/// The channel that an earlier run left; `None` if there is none.
pub(crate) fn left(target: &mut TargetServer) -> Result<Option<SavedSettings>> {
    let users = target.ask(&format!(
        "SELECT USER FROM performance_schema.replication_connection_configuration WHERE CHANNEL_NAME = '{RECOVERY_CHANNEL}'"
    ));
    let Some(user) = users?.into_iter().flatten().next() else { return Ok(None) };
    match SavedSettings::parse(&user) {
        Some(before) => Ok(Some(before)),
        None => Err(ReplayError::unfit(
            &target.name,
            format!(
                "has a replication channel {RECOVERY_CHANNEL} that binlogz did not make (its account is {user:?}): expected none"
            ),
        )),
    }
}

/// Whether the account may change the settings that recovery needs. Changes nothing. No harmless statement shows whether
/// it may have a channel.
pub(crate) fn check_rights(target: &mut TargetServer) -> Result<()> {
    let name = target.name.clone();
    target.ask("SET GLOBAL server_id = @@GLOBAL.server_id").map(drop).map_err(|error| {
        match error.server_error() {
            Some(error) if error.code == ACCESS_DENIED => ReplayError::unfit(&name, &*error.message),
            _ => error.into(),
        }
    })
}

/// Attaches the server, and starts to apply. The same again after a server was restarted.
pub(crate) fn attach(
    target: &mut TargetServer,
    source: &ChannelSource,
    before: &SavedSettings,
    applying: &ApplierThreads,
) -> Result<(), TargetTrouble> {
    let words = target.words;
    let (change, prefix) = words.change();
    let replica = words.replica();
    // One that is left may run, and even have been started by the server itself.
    stop(target, RECOVERY_CHANNEL)?;
    stop(target, FOLD_CHANNEL)?;
    let ChannelSource { address, password, tls, server_id } = source;
    // Whatever was received before is dropped: after a crash it may be torn.
    let changed = target.ask(&format!(
        "{change} {prefix}_HOST = {}, {prefix}_PORT = {}, {prefix}_USER = {}, {prefix}_PASSWORD = {}, \
         {prefix}_SSL = {}, {prefix}_AUTO_POSITION = 1, {prefix}_CONNECT_RETRY = 1, {prefix}_RETRY_COUNT = 86400, \
         {prefix}_HEARTBEAT_PERIOD = 5 FOR CHANNEL '{RECOVERY_CHANNEL}'",
        literal(&address.ip().to_string()),
        address.port(),
        literal(&before.user()),
        literal(password),
        u8::from(*tls),
    ));
    // Not in the error's own words, which have the password.
    changed.map_err(|error| match error.server_error() {
        Some(error) => {
            TargetTrouble::Final(ReplayError::unfit(&target.name, format!("attach it: {}", error.message)))
        }
        None => TargetTrouble::Lost(error),
    })?;
    if before.persisted {
        target.run("SET PERSIST_ONLY skip_replica_start = ON")?;
    }
    target.run(&format!("SET GLOBAL server_id = {server_id}"))?;
    if let Some(workers) = applying.workers {
        target.run(&format!("SET GLOBAL {} = {workers}", words.variable("parallel_workers")))?;
    }
    if let Some(keeps) = applying.keeps_order {
        target.run(&format!(
            "SET GLOBAL {} = {}",
            words.variable("preserve_commit_order"),
            u8::from(keeps)
        ))?;
    }
    if !applying.filters.is_empty() {
        target.run(&format!(
            "CHANGE REPLICATION FILTER {} FOR CHANNEL '{RECOVERY_CHANNEL}'",
            applying.filters.clauses().join(", ")
        ))?;
    }
    target.run(&format!("START {replica} FOR CHANNEL '{RECOVERY_CHANNEL}'"))
}

/// Stops a channel; returns whether there is one.
pub(crate) fn stop(target: &mut TargetServer, channel: &str) -> Result<bool, TargetTrouble> {
    let stop = format!("STOP {} FOR CHANNEL '{channel}'", target.words.replica());
    match target.ask(&stop) {
        Ok(_) => Ok(true),
        Err(error) if error.server_error().is_some_and(|error| error.code == NO_SUCH_CHANNEL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Detaches the server: its settings first, since the channel is what knows them.
pub(crate) fn detach(target: &mut TargetServer, before: &SavedSettings) -> Result<(), TargetTrouble> {
    let words = target.words;
    let replica = words.replica();
    if !stop(target, RECOVERY_CHANNEL)? {
        // It was never attached, so nothing was changed.
        return Ok(());
    }
    // A server that is restarted starts it, and changes no settings while its thread runs.
    stop(target, FOLD_CHANNEL)?;
    target.run(&format!("SET GLOBAL {} = {}", words.variable("parallel_workers"), before.workers))?;
    target.run(&format!(
        "SET GLOBAL {} = {}",
        words.variable("preserve_commit_order"),
        u8::from(before.keeps_order)
    ))?;
    target.run(&format!("SET GLOBAL server_id = {}", before.server_id))?;
    if before.persisted {
        target.run("RESET PERSIST IF EXISTS skip_replica_start")?;
    }
    target.run(&format!("RESET {replica} ALL FOR CHANNEL '{RECOVERY_CHANNEL}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_fits_into_a_users_name_and_comes_back() {
        for workers in [0, 4, 1024] {
            let before = SavedSettings {
                workers,
                keeps_order: workers > 0,
                server_id: u32::MAX,
                persisted: workers == 4,
            };
            assert!(before.user().len() <= 32, "{}", before.user());
            assert_eq!(SavedSettings::parse(&before.user()), Some(before));
        }
        for user in ["repl", "binlogz", "binlogz_w4", "binlogz_w4_o1_s_p0", "other_w4_o1_s1_p0", ""] {
            assert_eq!(SavedSettings::parse(user), None, "{user}");
        }
    }
}
