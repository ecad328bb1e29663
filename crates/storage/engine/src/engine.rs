//! The engine: opens the log, hands out sessions, sets global variables, flushes once a second.

use std::sync::Arc;
use std::thread::JoinHandle;

use binlogz_binlog::ChecksumAlgorithm;
use binlogz_binlog::event::{CompressionType, FormatDescription, SERVER_VERSION_SIZE};
use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_encryption::Keyring;
use binlogz_payload::statistics::{CompressionStats, LogType, TransactionFigures};
use binlogz_store::{BinlogStore, RecoveryReport, Storage, StoreOptions};
use binlogz_variables::{Rights, Variable, VariableValue, Warning};
use parking_lot::{Condvar, Mutex};

use crate::compressors::Compressors;
use crate::error::{Error, Result};
use crate::gtids::Gtids;
use crate::log_state::{LogIdentity, LogState};
use crate::pipeline::Pipeline;
use crate::session::Session;
use crate::shared::{EngineShared, settings};
use crate::stored_variables::Globals;
use crate::timer::{CommitStage, StageFigures, StageTimer};

/// The most bytes of a transaction (the server's `max_binlog_cache_size` has no practical bound).
const MAX_CACHE_SIZE: usize = 1 << 30;

/// The server's identity in the log, and the variables it starts with.
#[derive(Debug, Clone)]
pub struct EngineOptions<'a> {
    /// The prefix of file names: the server's `log_bin`.
    pub base_name: &'a str,
    /// The server's identity in GTIDs.
    pub server_uuid: ServerUuid,
    /// The server's identity in event headers.
    pub server_id: u32,
    /// The version in the format description; GTID events contain its number.
    pub server_version: &'a str,
    /// Whether transactions have GTIDs (`gtid_mode`).
    pub gtid_mode: bool,
    /// Has the keys of encrypted files.
    pub keyring: Option<Arc<Keyring>>,
    /// The most bytes that a transaction may have in memory.
    pub max_cache_size: usize,
    /// Global variables, as on the server's command line.
    pub variables: &'a [(&'a str, VariableValue<'a>)],
}

impl EngineOptions<'_> {
    /// A server of this identity, with the defaults of MySQL 9.7.
    pub fn new(server_uuid: ServerUuid, server_id: u32) -> Self {
        EngineOptions {
            base_name: "binlog",
            server_uuid,
            server_id,
            server_version: "9.7.4",
            gtid_mode: true,
            keyring: None,
            max_cache_size: MAX_CACHE_SIZE,
            variables: &[],
        }
    }
}

/// A binary log that sessions commit to.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<EngineShared>,
    background: Option<JoinHandle<()>>,
}

impl Engine {
    /// Opens the log in `storage`, or begins one; returns what recovery found. Begins a new file, as a server
    /// does.
    ///
    /// # Errors
    ///
    /// A log that can't be opened; a variable that can't be set.
    pub fn open(storage: Arc<dyn Storage>, options: EngineOptions<'_>) -> Result<(Engine, RecoveryReport)> {
        let globals = Arc::new(Globals::default());
        for (name, value) in options.variables {
            let variable = Variable::find(name)?;
            let (value, _) = variable.check(*value)?;
            globals.store(variable.id, value.unwrap_or(variable.default));
        }
        let store_options = StoreOptions {
            base_name: options.base_name.to_owned(),
            keyring: options.keyring.clone(),
            ..StoreOptions::default()
        };
        let (store, report) = BinlogStore::open(storage, store_options)?;
        let identity = LogIdentity {
            uuid: options.server_uuid,
            server_id: options.server_id,
            version: options.server_version.to_owned(),
            version_number: version_number(options.server_version)?,
        };
        let gtids = Gtids::new(options.gtid_mode, options.server_uuid, report.gtids.clone());
        let log = LogState::start(&store, identity, options.keyring, gtids, settings(&globals))?;
        let shared = Arc::new(EngineShared {
            pipeline: Pipeline::new(store, Arc::clone(&globals), log),
            globals,
            compressors: Compressors::new(),
            compressing: StageTimer::default(),
            decompressing: StageTimer::default(),
            server_id: options.server_id,
            gtid_mode: options.gtid_mode,
            max_cache_size: options.max_cache_size,
            stopping: Mutex::new(false),
            stop: Condvar::new(),
        });
        let background = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("binlog-flush".into())
                .spawn(move || shared.flush_in_background())
        };
        let background = background.map_err(|error| Error::misuse("background flush", error, "a thread"))?;
        Ok((Engine { shared, background: Some(background) }, report))
    }

    /// A session with all rights; it inherits the current global variables.
    pub fn session(&self) -> Session {
        self.session_with_rights(Rights::ALL)
    }

    /// A session of an account that has only these rights.
    pub fn session_with_rights(&self, rights: Rights) -> Session {
        Session::new(Arc::clone(&self.shared), rights)
    }

    /// Sets a global variable, with all rights.
    ///
    /// # Errors
    ///
    /// The server's errors, with its numbers; a log that can't be rotated.
    pub fn set_global(&self, name: &str, value: VariableValue<'_>) -> Result<Option<Warning>> {
        self.shared.set_global(name, value, Rights::ALL, false)
    }

    /// A global variable's value, as text.
    pub fn global(&self, name: &str) -> Result<String> {
        let variable = Variable::find(name)?;
        Ok(variable.show(self.shared.globals.load(variable.id)))
    }

    /// Begins a new file (`FLUSH BINARY LOGS`).
    pub fn rotate(&self) -> Result<()> {
        self.shared.pipeline.rotate(None)
    }

    /// The log itself: positions, files, readers, purge.
    pub fn store(&self) -> &BinlogStore {
        &self.shared.pipeline.store
    }

    /// All GTIDs that are in the log, or were before a purge.
    pub fn gtid_executed(&self) -> GtidSet {
        self.shared.pipeline.with_log(|log| log.gtids.executed().clone())
    }

    /// `performance_schema.binary_log_transaction_compression_stats`: up to four rows.
    pub fn compression_statistics(&self) -> Vec<(LogType, CompressionType, CompressionStats)> {
        self.shared.pipeline.with_log(|log| {
            log.statistics.rows().map(|(log_type, compression, row)| (log_type, compression, *row)).collect()
        })
    }

    /// Counts a transaction that was received, not committed here: the rows RELAY.
    pub fn count_received(&self, compression: CompressionType, figures: TransactionFigures) {
        self.shared.pipeline.with_log(|log| log.statistics.count(LogType::Relay, compression, figures));
    }

    /// TRUNCATE of the statistics: the rows go, those of both logs.
    pub fn truncate_statistics(&self) {
        self.shared.pipeline.with_log(|log| log.statistics = Default::default());
    }

    /// How often a stage ran, and how long.
    pub fn stage(&self, stage: CommitStage) -> StageFigures {
        self.shared.timer(stage).figures()
    }

    /// TRUNCATE of the stages' figures.
    pub fn truncate_stages(&self) {
        self.shared.compressing.truncate();
        self.shared.decompressing.truncate();
    }

    /// Groups written, and syncs, since the start.
    pub fn group_figures(&self) -> (u64, u64) {
        self.shared.pipeline.group_figures()
    }

    /// Writes and syncs all that is committed, whatever the policy.
    pub fn flush(&self) -> Result<()> {
        self.shared.pipeline.write_and_sync()
    }

    /// Ends the log like a server that is shut down. Remaining sessions can't commit any more.
    ///
    /// # Errors
    ///
    /// A disk that fails: the log then ends as after a crash.
    pub fn close(mut self) -> Result<()> {
        self.end_background();
        self.shared.pipeline.close()
    }

    fn end_background(&mut self) {
        *self.shared.stopping.lock() = true;
        self.shared.stop.notify_all();
        if let Some(background) = self.background.take() {
            // It only panics if the engine is broken anyway.
            let _ = background.join();
        }
    }
}

impl Drop for Engine {
    /// Closes the log; a caller that wants to know whether that worked uses [`Engine::close`].
    fn drop(&mut self) {
        self.end_background();
        let _ = self.shared.pipeline.close();
    }
}

/// "9.7.4" → 90704.
fn version_number(version: &str) -> Result<u32> {
    let mut server_version = [0; SERVER_VERSION_SIZE];
    match server_version.get_mut(..version.len()) {
        Some(place) => place.copy_from_slice(version.as_bytes()),
        None => return Err(Error::misuse("server version", version, "at most 50 bytes")),
    }
    let description = FormatDescription {
        binlog_version: 4,
        server_version,
        created: 0,
        header_length: 0,
        post_header_lengths: Vec::new(),
        checksum_algorithm: ChecksumAlgorithm::NONE,
    };
    Ok(description.server_version_number())
}
