//! The dumps that are being served, and how far each is: for status, metrics and retention.
//!
//! Positions are those of the stored bytes, whatever form the client is served.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use binlogz_relay_log::Form;
use binlogz_store::{FileNumber, Position};

/// The client of a dump.
#[derive(Debug, Clone)]
pub(crate) struct DumpClient {
    pub(crate) user: String,
    pub(crate) peer: SocketAddr,
    pub(crate) server_id: u32,
    pub(crate) uuid: String,
    pub(crate) form: Form,
    /// Whether that leaves by a policy.
    pub(crate) is_masked: bool,
    /// Whether it gets every row as the source has it: otherwise nobody can rely on it as a copy.
    pub(crate) is_copy: bool,
    /// The stored log's number.
    pub(crate) lineage: u64,
    /// Whether the replica acknowledges the transactions it receives.
    pub(crate) semi_sync: bool,
    /// The name of its profile.
    pub(crate) profile: &'static str,
    /// Whether clients of that profile read compressed transactions.
    pub(crate) knows_payloads: bool,
}

/// A dump's progress. Written by its thread, read by others.
#[derive(Debug)]
pub(crate) struct DumpProgress {
    place: Mutex<Position>,
    /// Timestamp of the last transaction sent, in seconds since 1970; 0 if none.
    timestamp: AtomicU32,
    bytes: AtomicU64,
    /// The acknowledged position in the log, and the number of acknowledgements.
    acknowledged: Mutex<Option<Position>>,
    acknowledgements: AtomicU64,
    /// Statements about accounts, and row events, that were left out.
    left_out_account_statements: AtomicU64,
    left_out_rows: AtomicU64,
    /// XA transactions that are prepared, of which the client gets the rows when they are committed, and the oldest file that
    /// is needed for them; and those that it got so.
    prepared_xa: Mutex<(u64, Option<FileNumber>)>,
    translated_xa: AtomicU64,
    all_bytes: Arc<AtomicU64>,
    began: Instant,
}

/// A snapshot of a dump.
#[derive(Debug, Clone)]
pub(crate) struct DumpState {
    pub(crate) connection: u32,
    pub(crate) reader: DumpClient,
    /// Where the next transaction is read from.
    pub(crate) place: Position,
    pub(crate) timestamp: u32,
    pub(crate) bytes: u64,
    /// The acknowledged position in the log.
    pub(crate) acknowledged: Option<Position>,
    pub(crate) acknowledgements: u64,
    pub(crate) left_out_account_statements: u64,
    pub(crate) left_out_rows: u64,
    /// XA transactions that are prepared, of which the client gets the rows when they are committed.
    pub(crate) prepared_xa: u64,
    /// How many such transactions the client was sent.
    pub(crate) translated_xa: u64,
    pub(crate) age: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Dumps {
    dumps: Mutex<BTreeMap<u32, (DumpClient, Arc<DumpProgress>)>>,
    all_bytes: Arc<AtomicU64>,
}

impl Dumps {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, (DumpClient, Arc<DumpProgress>)>> {
        self.dumps.lock()
    }

    /// A dump begins in this file.
    pub(crate) fn begin(&self, connection: u32, reader: DumpClient, file: FileNumber) -> Arc<DumpProgress> {
        let progress = Arc::new(DumpProgress {
            place: Mutex::new(Position { file, offset: 0 }),
            timestamp: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            acknowledged: Mutex::new(None),
            acknowledgements: AtomicU64::new(0),
            left_out_account_statements: AtomicU64::new(0),
            left_out_rows: AtomicU64::new(0),
            prepared_xa: Mutex::default(),
            translated_xa: AtomicU64::new(0),
            all_bytes: Arc::clone(&self.all_bytes),
            began: Instant::now(),
        });
        self.lock().insert(connection, (reader, Arc::clone(&progress)));
        progress
    }

    /// Returns who read it.
    pub(crate) fn end(&self, connection: u32) -> Option<DumpClient> {
        self.lock().remove(&connection).map(|(reader, _)| reader)
    }

    pub(crate) fn seen(&self) -> Vec<DumpState> {
        let dumps = self.lock();
        let seen = dumps.iter().map(|(connection, (reader, progress))| DumpState {
            connection: *connection,
            reader: reader.clone(),
            place: progress.place(),
            timestamp: progress.timestamp.load(Ordering::Relaxed),
            bytes: progress.bytes.load(Ordering::Relaxed),
            acknowledged: progress.last_acknowledged(),
            acknowledgements: progress.acknowledgements.load(Ordering::Relaxed),
            left_out_account_statements: progress.left_out_account_statements.load(Ordering::Relaxed),
            left_out_rows: progress.left_out_rows.load(Ordering::Relaxed),
            prepared_xa: progress.prepared_xa.lock().0,
            translated_xa: progress.translated_xa.load(Ordering::Relaxed),
            age: progress.began.elapsed(),
        });
        seen.collect()
    }

    /// The oldest file of a log that a client reads, from `first` on. Earlier ones come from the archive.
    pub(crate) fn oldest_file(&self, lineage: u64, first: FileNumber) -> Option<FileNumber> {
        let dumps = self.lock();
        let its = dumps.values().filter(|(reader, _)| reader.lineage == lineage);
        its.flat_map(|(_, progress)| progress.files()).filter(|file| *file >= first).min()
    }

    /// Bytes sent to all since the start.
    pub(crate) fn bytes(&self) -> u64 {
        self.all_bytes.load(Ordering::Relaxed)
    }
}

impl DumpProgress {
    /// The transaction that ends here was sent, or left out.
    pub(crate) fn passed(&self, file: FileNumber, offset: u64, timestamp: u32) {
        *self.place.lock() = Position { file, offset };
        if timestamp > 0 {
            self.timestamp.store(timestamp, Ordering::Relaxed);
        }
    }

    /// This many more bytes are being sent.
    pub(crate) fn sent(&self, count: usize) {
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        self.all_bytes.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// The client has everything up to there.
    pub(crate) fn acknowledged(&self, position: Position) {
        *self.acknowledged.lock() = Some(position);
    }

    pub(crate) fn last_acknowledged(&self) -> Option<Position> {
        *self.acknowledged.lock()
    }

    /// Counts a statement about accounts that the client was not sent.
    pub(crate) fn left_out_account_statement(&self) {
        self.left_out_account_statements.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an event with rows that the client was not sent.
    pub(crate) fn left_out_rows(&self) {
        self.left_out_rows.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts another acknowledgement.
    pub(crate) fn count_acknowledgement(&self) {
        self.acknowledgements.fetch_add(1, Ordering::Relaxed);
    }

    /// So many XA transactions are prepared for the client, and this is the oldest file that is needed for them.
    pub(crate) fn holds_prepared(&self, count: u64, oldest: Option<FileNumber>) {
        *self.prepared_xa.lock() = (count, oldest);
    }

    /// Counts an XA transaction that the client got as a plain one.
    pub(crate) fn translated_xa(&self) {
        self.translated_xa.fetch_add(1, Ordering::Relaxed);
    }

    /// The files that the dump needs.
    fn files(&self) -> impl Iterator<Item = FileNumber> {
        std::iter::once(self.place().file).chain(self.prepared_xa.lock().1)
    }

    fn place(&self) -> Position {
        *self.place.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_long_as_a_prepared_transaction_in_it_may_be_committed() {
        let dumps = Dumps::default();
        let reader = DumpClient {
            user: String::new(),
            peer: SocketAddr::from(([127, 0, 0, 1], 1)),
            server_id: 1,
            uuid: String::new(),
            form: Form::Uncompressed,
            is_masked: false,
            is_copy: true,
            lineage: 2,
            semi_sync: false,
            profile: "mysql-5.6",
            knows_payloads: false,
        };
        let progress = dumps.begin(7, reader, FileNumber(3));
        let oldest = || dumps.oldest_file(2, FileNumber(1));
        progress.holds_prepared(1, Some(FileNumber(3)));
        progress.passed(FileNumber(5), 4, 0);
        assert_eq!(oldest(), Some(FileNumber(3)));
        progress.holds_prepared(0, None);
        assert_eq!(oldest(), Some(FileNumber(5)));
    }
}
