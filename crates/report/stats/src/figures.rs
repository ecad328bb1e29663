//! What is counted of a log, or of a part of it.

use std::collections::BTreeMap;

use binlogz_binlog::ChecksumAlgorithm;
use binlogz_flow::events::InputLog;
use binlogz_payload::ServerGeneration;
use binlogz_payload::statistics::{CompressionTable, LogType};

use crate::by_table::ByTable;
use crate::counts::Totals;
use crate::largest::LargestTransactions;
use crate::reason::ByReason;
use crate::size_class::BySize;
use crate::transaction::{CountedTransaction, TransactionEnd};

const MICROSECONDS_PER_HOUR: u64 = 3_600_000_000;

/// Ten years of hours; only a nonsensical log has more.
const HOURS_MAX: usize = 90_000;

/// The counts.
#[derive(Debug, Clone)]
pub(crate) struct StatsFigures {
    /// Events, including those in payloads.
    pub(crate) events: u64,
    pub(crate) totals: Totals,
    /// Bytes of transactions as they are stored, including GTID events, headers and checksums.
    pub(crate) stored_bytes: u64,
    pub(crate) compression: CompressionTable,
    pub(crate) tables: ByTable,
    pub(crate) sizes: BySize,
    /// By the hour of commit, counted from 1970 in UTC.
    pub(crate) hours: BTreeMap<u64, Totals>,
    pub(crate) reasons: ByReason,
    pub(crate) largest: LargestTransactions,
    /// The first and last commit, in microseconds since 1970.
    pub(crate) commits: Option<(u64, u64)>,
    /// The first log's format description.
    pub(crate) description: Option<Description>,
}

/// The program whose rules count a log's transactions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer {
    pub(crate) log_type: LogType,
    pub(crate) generation: ServerGeneration,
}

impl Writer {
    pub(crate) fn of(log: &InputLog) -> Self {
        Writer {
            log_type: if log.context.relay_log { LogType::Relay } else { LogType::Binary },
            generation: ServerGeneration::of_version_number(log.description.server_version_number()),
        }
    }
}

/// A log's format description, as far as it matters here.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) writer: Writer,
    pub(crate) server_version: String,
    pub(crate) has_checksums: bool,
}

impl StatsFigures {
    pub(crate) fn new(top: usize) -> Self {
        StatsFigures {
            events: 0,
            totals: Totals::default(),
            stored_bytes: 0,
            compression: CompressionTable::default(),
            tables: ByTable::default(),
            sizes: BySize::default(),
            hours: BTreeMap::new(),
            reasons: ByReason::default(),
            largest: LargestTransactions::new(top),
            commits: None,
            description: None,
        }
    }

    /// Notes a log's format description. In a relay log, its own comes before the source's.
    pub(crate) fn describe(&mut self, log: &InputLog, writer: Writer) {
        self.description.get_or_insert_with(|| Description {
            writer,
            server_version: log.description.server_version(),
            has_checksums: log.context.framing.checksum() == ChecksumAlgorithm::CRC32,
        });
    }

    /// Counts a transaction after all others.
    pub(crate) fn count(
        &mut self,
        writer: Writer,
        transaction: &CountedTransaction,
        ending: &TransactionEnd,
    ) {
        let totals = transaction.totals();
        self.tables.add_transaction(&transaction.tables, totals.compressed_bytes, totals.uncompressed_bytes);
        self.stored_bytes += transaction.stored_bytes();
        if let Some(reason) = ending.reason() {
            self.reasons.count(reason, totals.uncompressed_bytes);
        }
        if matches!(ending, TransactionEnd::CutOff) {
            // The server has not counted it either.
            return self.totals.rows.add(&totals.rows);
        }
        self.totals.add(&totals);
        let (compression, figures) = transaction.figures(writer.log_type, writer.generation);
        self.compression.count(writer.log_type, compression, figures);
        self.sizes.count(&totals);
        if let Some(timestamp) = transaction.timestamp() {
            self.add_hour(timestamp / MICROSECONDS_PER_HOUR, &totals);
            self.add_commits(timestamp, timestamp);
        }
        self.largest.show(transaction.large());
    }

    /// Counts rows outside of transactions.
    pub(crate) fn stray(&mut self, stray: &CountedTransaction) {
        self.totals.rows.add(&stray.rows);
        self.tables.add_transaction(&stray.tables, 1, 1);
    }

    fn add_hour(&mut self, hour: u64, totals: &Totals) {
        if self.hours.len() < HOURS_MAX || self.hours.contains_key(&hour) {
            self.hours.entry(hour).or_default().add(totals);
        }
    }

    fn add_commits(&mut self, first: u64, last: u64) {
        let (known_first, known_last) = self.commits.unwrap_or((first, last));
        self.commits = Some((known_first.min(first), known_last.max(last)));
    }

    /// Adds the figures of a later part.
    pub(crate) fn add(&mut self, other: &StatsFigures) {
        self.events += other.events;
        self.totals.add(&other.totals);
        self.stored_bytes += other.stored_bytes;
        self.compression.add(&other.compression);
        self.tables.add(&other.tables);
        self.sizes.add(&other.sizes);
        for (hour, totals) in &other.hours {
            self.add_hour(*hour, totals);
        }
        self.reasons.add(&other.reasons);
        self.largest.add(&other.largest);
        if let Some((first, last)) = other.commits {
            self.add_commits(first, last);
        }
        if self.description.is_none() {
            self.description.clone_from(&other.description);
        }
    }
}
