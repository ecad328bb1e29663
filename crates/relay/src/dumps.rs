//! The dumps that are being served, and how far each is: for status, metrics and retention.
//!
//! Places are those of the stored bytes, whatever form the client is served.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use binlogz_store::{FileNumber, Position};

use crate::form::Form;

/// Whose dump it is.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    pub(crate) user: String,
    pub(crate) peer: SocketAddr,
    pub(crate) server_id: u32,
    pub(crate) uuid: String,
    pub(crate) form: Form,
    /// Which of the logs that are kept.
    pub(crate) lineage: u64,
    /// Whether it acknowledges what it is sent.
    pub(crate) semi_sync: bool,
}

/// How far a dump is. Written by its thread, read by others.
#[derive(Debug)]
pub(crate) struct Progress {
    place: Mutex<Position>,
    /// Of the last transaction that was sent, in seconds since 1970; 0: none was.
    timestamp: AtomicU32,
    bytes: AtomicU64,
    /// Up to where it has acknowledged the log, and how often.
    acknowledged: Mutex<Option<Position>>,
    acknowledgements: AtomicU64,
    /// Of all dumps.
    all_bytes: Arc<AtomicU64>,
    began: Instant,
}

/// A dump, as it is seen from outside.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) connection: u32,
    pub(crate) reader: Reader,
    /// Where the next transaction is read.
    pub(crate) place: Position,
    pub(crate) timestamp: u32,
    pub(crate) bytes: u64,
    /// Up to where it has acknowledged the log.
    pub(crate) acknowledged: Option<Position>,
    pub(crate) acknowledgements: u64,
    pub(crate) age: Duration,
}

/// All of them, by connection.
#[derive(Debug, Default)]
pub(crate) struct Dumps {
    dumps: Mutex<BTreeMap<u32, (Reader, Arc<Progress>)>>,
    all_bytes: Arc<AtomicU64>,
}

impl Dumps {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, (Reader, Arc<Progress>)>> {
        self.dumps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A dump begins in this file.
    pub(crate) fn begin(&self, connection: u32, reader: Reader, file: FileNumber) -> Arc<Progress> {
        let progress = Arc::new(Progress {
            place: Mutex::new(Position { file, offset: 0 }),
            timestamp: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            acknowledged: Mutex::new(None),
            acknowledgements: AtomicU64::new(0),
            all_bytes: Arc::clone(&self.all_bytes),
            began: Instant::now(),
        });
        self.lock().insert(connection, (reader, Arc::clone(&progress)));
        progress
    }

    /// The connection is over.
    pub(crate) fn end(&self, connection: u32) {
        self.lock().remove(&connection);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        let dumps = self.lock();
        let seen = dumps.iter().map(|(connection, (reader, progress))| Seen {
            connection: *connection,
            reader: reader.clone(),
            place: progress.place(),
            timestamp: progress.timestamp.load(Ordering::Relaxed),
            bytes: progress.bytes.load(Ordering::Relaxed),
            acknowledged: progress.last_acknowledged(),
            acknowledgements: progress.acknowledgements.load(Ordering::Relaxed),
            age: progress.began.elapsed(),
        });
        seen.collect()
    }

    /// The oldest file of a log that a client reads, from `first` on. Earlier ones come from the archive.
    pub(crate) fn oldest_file(&self, lineage: u64, first: FileNumber) -> Option<FileNumber> {
        let dumps = self.lock();
        let its = dumps.values().filter(|(reader, _)| reader.lineage == lineage);
        its.map(|(_, progress)| progress.place().file).filter(|file| *file >= first).min()
    }

    /// Bytes sent to all since the start.
    pub(crate) fn bytes(&self) -> u64 {
        self.all_bytes.load(Ordering::Relaxed)
    }
}

impl Progress {
    /// The transaction that ends here was sent, or left out.
    pub(crate) fn passed(&self, file: FileNumber, offset: u64, timestamp: u32) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Position { file, offset };
        if timestamp > 0 {
            self.timestamp.store(timestamp, Ordering::Relaxed);
        }
    }

    /// So many bytes more are on their way.
    pub(crate) fn sent(&self, count: usize) {
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        self.all_bytes.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// The client has everything up to there.
    pub(crate) fn acknowledged(&self, position: Position) {
        *self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner) = Some(position);
    }

    pub(crate) fn last_acknowledged(&self) -> Option<Position> {
        *self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It said so once more.
    pub(crate) fn count_acknowledgement(&self) {
        self.acknowledgements.fetch_add(1, Ordering::Relaxed);
    }

    fn place(&self) -> Position {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
