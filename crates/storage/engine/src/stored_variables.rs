//! The values of the server's variables: the global ones for all threads, and each session's own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use binlogz_payload::CompressionLevel;
use binlogz_variables::{VARIABLES, VariableId};

/// The condition that a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlushPolicy {
    /// 0: nothing; written and synced once a second.
    OnceASecond,
    /// 1: written and synced (by `sync_binlog`).
    SyncAtCommit,
    /// 2: written; synced once a second.
    WriteAtCommit,
}

/// The global values.
#[derive(Debug)]
pub(crate) struct Globals {
    values: [AtomicU64; VARIABLES.len()],
}

impl Default for Globals {
    fn default() -> Self {
        Globals { values: VARIABLES.each_ref().map(|variable| AtomicU64::new(variable.default)) }
    }
}

impl Globals {
    pub(crate) fn load(&self, id: VariableId) -> u64 {
        self.values.get(id as usize).map_or(0, |value| value.load(Ordering::Relaxed))
    }

    pub(crate) fn store(&self, id: VariableId, value: u64) {
        if let Some(place) = self.values.get(id as usize) {
            place.store(value, Ordering::Relaxed);
        }
    }

    pub(crate) fn for_session(&self) -> SessionVariables {
        SessionVariables {
            compression: self.load(VariableId::Compression),
            level: self.load(VariableId::Level),
        }
    }

    pub(crate) fn flush_policy(&self) -> FlushPolicy {
        match self.load(VariableId::FlushLogAtCommit) {
            0 => FlushPolicy::OnceASecond,
            1 => FlushPolicy::SyncAtCommit,
            _ => FlushPolicy::WriteAtCommit,
        }
    }

    pub(crate) fn sync_binlog(&self) -> u32 {
        self.load(VariableId::SyncBinlog) as u32
    }

    pub(crate) fn max_binlog_size(&self) -> u64 {
        self.load(VariableId::MaxBinlogSize)
    }

    pub(crate) fn sync_delay(&self) -> Duration {
        Duration::from_micros(self.load(VariableId::SyncDelay))
    }

    pub(crate) fn sync_no_delay_count(&self) -> usize {
        self.load(VariableId::SyncNoDelayCount) as usize
    }
}

/// The values of one session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionVariables {
    compression: u64,
    level: u64,
}

impl SessionVariables {
    pub(crate) fn load(&self, id: VariableId) -> Option<u64> {
        match id {
            VariableId::Compression => Some(self.compression),
            VariableId::Level => Some(self.level),
            _ => None,
        }
    }

    pub(crate) fn store(&mut self, id: VariableId, value: u64) {
        match id {
            VariableId::Compression => self.compression = value,
            VariableId::Level => self.level = value,
            _ => {}
        }
    }

    /// The level, if the session's transactions are to be compressed.
    pub(crate) fn compression(&self) -> Option<CompressionLevel> {
        (self.compression != 0).then(|| CompressionLevel::clamped(self.level as i64))
    }
}
