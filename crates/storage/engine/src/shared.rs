//! State that the sessions of an engine share.

use std::sync::Arc;
use std::time::Duration;

use binlogz_binlog::ChecksumAlgorithm;
use binlogz_variables::{Rights, Variable, VariableId, VariableScope, VariableValue, Warning};
use parking_lot::{Condvar, Mutex};

use crate::compressors::Compressors;
use crate::error::Result;
use crate::log_state::FileSettings;
use crate::pipeline::Pipeline;
use crate::stored_variables::{FlushPolicy, Globals};
use crate::timer::{CommitStage, StageTimer};

/// How often to write and sync transactions that are not synced at each commit.
const BACKGROUND_FLUSH: Duration = Duration::from_secs(1);

/// State that sessions share.
#[derive(Debug)]
pub(crate) struct EngineShared {
    pub(crate) pipeline: Pipeline,
    pub(crate) globals: Arc<Globals>,
    pub(crate) compressors: Compressors,
    pub(crate) compressing: StageTimer,
    pub(crate) decompressing: StageTimer,
    pub(crate) server_id: u32,
    pub(crate) gtid_mode: bool,
    pub(crate) max_cache_size: usize,
    /// Set when the thread should end.
    pub(crate) stopping: Mutex<bool>,
    pub(crate) stop: Condvar,
}

impl EngineShared {
    pub(crate) fn timer(&self, stage: CommitStage) -> &StageTimer {
        match stage {
            CommitStage::Compressing => &self.compressing,
            CommitStage::Decompressing => &self.decompressing,
        }
    }

    pub(crate) fn flush_in_background(&self) {
        let mut stopping = self.stopping.lock();
        while !*stopping {
            self.stop.wait_for(&mut stopping, BACKGROUND_FLUSH);
            if !*stopping && self.globals.flush_policy() != FlushPolicy::SyncAtCommit {
                drop(stopping);
                // The store refuses from here on, and reports that to committers.
                let _ = self.pipeline.write_and_sync();
                stopping = self.stopping.lock();
            }
        }
    }

    pub(crate) fn set_global(
        &self,
        name: &str,
        value: VariableValue<'_>,
        rights: Rights,
        in_transaction: bool,
    ) -> Result<Option<Warning>> {
        let variable = Variable::find(name)?;
        let (value, warning) = variable.check_set(VariableScope::Global, value, rights, in_transaction)?;
        let value = value.unwrap_or(variable.default);
        match variable.id {
            VariableId::Checksum => {
                let settings =
                    FileSettings { checksum: ChecksumAlgorithm(value as u8), ..settings(&self.globals) };
                self.pipeline.rotate(Some(settings))?;
            }
            VariableId::Encryption if value != self.globals.load(variable.id) => {
                let settings = FileSettings { encrypted: value != 0, ..settings(&self.globals) };
                self.pipeline.rotate(Some(settings))?;
            }
            _ => {}
        }
        self.globals.store(variable.id, value);
        Ok(warning)
    }
}

pub(crate) fn settings(globals: &Globals) -> FileSettings {
    FileSettings {
        checksum: ChecksumAlgorithm(globals.load(VariableId::Checksum) as u8),
        encrypted: globals.load(VariableId::Encryption) != 0,
    }
}
