//! Lays the figures out as tables. docs/reference/stats.md describes each column.

use binlogz_figures::{Section, TableCell};
use binlogz_payload::statistics::{COLUMNS, compression_percentage};

use crate::counts::Totals;
use crate::file::Stats;

/// The grouping of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsGrouping {
    /// Each file.
    File,
    /// Each table.
    Table,
    /// The largest transactions.
    Transaction,
    /// Classes of transactions by size.
    Size,
    /// Each hour of commit.
    Hour,
}

const NOT_COMPRESSED: &[&str] = &["reason", "description", "transactions", "bytes"];

const FILES: &[&str] = &[
    "file",
    "log_type",
    "server_version",
    "checksum",
    "bytes",
    "transaction_bytes",
    "events",
    "transactions",
    "compressed_transactions",
    "inserts",
    "updates",
    "deletes",
    "uncompressed_bytes",
    "compressed_bytes",
    "compression_percentage",
    "first_commit",
    "last_commit",
];

const TABLES: &[&str] = &[
    "database",
    "table",
    "transactions",
    "inserts",
    "updates",
    "deletes",
    "uncompressed_bytes",
    "compressed_bytes",
    "compression_percentage",
    "share_percent",
];

const TRANSACTIONS: &[&str] = &[
    "file",
    "offset",
    "transaction_id",
    "commit",
    "tables",
    "inserts",
    "updates",
    "deletes",
    "uncompressed_bytes",
    "compressed_bytes",
    "compression_percentage",
];

const SIZES: &[&str] = &[
    "size_from",
    "size_to",
    "transactions",
    "compressed_transactions",
    "row_changes",
    "uncompressed_bytes",
    "compressed_bytes",
    "compression_percentage",
];

const HOURS: &[&str] = &[
    "hour",
    "transactions",
    "compressed_transactions",
    "row_changes",
    "uncompressed_bytes",
    "compressed_bytes",
    "compression_percentage",
];

impl Stats {
    /// All tables, in the order in which people ask: how much there is, which tables it is of, how well it compresses,
    /// and when it was written.
    pub fn sections(&self) -> Vec<Section> {
        vec![
            self.files(),
            self.tables(),
            self.transactions(),
            self.compression(),
            self.not_compressed(),
            self.sizes(),
            self.hours(),
        ]
    }

    /// One of the tables.
    pub fn section(&self, by: StatsGrouping) -> Section {
        match by {
            StatsGrouping::File => self.files(),
            StatsGrouping::Table => self.tables(),
            StatsGrouping::Transaction => self.transactions(),
            StatsGrouping::Size => self.sizes(),
            StatsGrouping::Hour => self.hours(),
        }
    }

    /// The rows of performance_schema.binary_log_transaction_compression_stats.
    pub fn compression(&self) -> Section {
        let rows = self.all.compression.rows().map(|(log, compression, row)| {
            let mut cells: Vec<TableCell> = vec![
                log.to_string().into(),
                compression.to_string().into(),
                row.transaction_counter.into(),
                row.compressed_bytes_counter.into(),
                row.uncompressed_bytes_counter.into(),
                row.compression_percentage().into(),
            ];
            for transaction in [&row.first_transaction, &row.last_transaction] {
                cells.extend::<[TableCell; 4]>([
                    transaction.id.map_or_else(|| ANONYMOUS.to_owned(), |id| id.to_string()).into(),
                    transaction.compressed_bytes.into(),
                    transaction.uncompressed_bytes.into(),
                    transaction.timestamp.map(TableCell::moment).into(),
                ]);
            }
            cells
        });
        let title = "performance_schema.binary_log_transaction_compression_stats";
        Section { name: "compression", title, columns: &COLUMNS, rows: rows.collect() }
    }

    fn not_compressed(&self) -> Section {
        let rows = self.all.reasons.iter().map(|(reason, totals)| {
            vec![
                reason.name().into(),
                reason.to_string().into(),
                totals.transactions.into(),
                totals.bytes.into(),
            ]
        });
        Section {
            name: "not_compressed",
            title: "Why transactions are not compressed",
            columns: NOT_COMPRESSED,
            rows: rows.collect(),
        }
    }

    fn files(&self) -> Section {
        let rows = self.files.iter().map(|file| {
            let description = file.description.as_ref();
            let checksum = description.map(|log| if log.has_checksums { "CRC32" } else { "NONE" });
            let mut cells: Vec<TableCell> = vec![
                file.name.as_str().into(),
                description.map(|log| log.writer.log_type.to_string()).into(),
                description.map(|log| log.server_version.clone()).into(),
                checksum.into(),
                file.bytes.into(),
                file.stored_bytes.into(),
                file.events.into(),
                file.totals.transactions.into(),
                file.totals.compressed_transactions.into(),
            ];
            cells.extend(row_cells(&file.totals));
            cells.extend(size_cells(&file.totals));
            let (first, last) = file.commits.unzip();
            cells.extend::<[TableCell; 2]>([
                first.map(TableCell::moment).into(),
                last.map(TableCell::moment).into(),
            ]);
            cells
        });
        Section { name: "files", title: "Files", columns: FILES, rows: rows.collect() }
    }

    /// The largest tables, at most this many.
    pub fn largest_tables(&self, top: usize) -> Section {
        let mut section = Section { title: "Largest tables", ..self.tables() };
        section.rows.truncate(top);
        section
    }

    fn tables(&self) -> Section {
        let largest_first = self.all.tables.largest_first();
        let all: u64 = largest_first.iter().map(|(_, totals)| totals.uncompressed_bytes).sum();
        let rows = largest_first.into_iter().map(|(name, totals)| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let compressed = totals.compressed_bytes();
            let mut cells: Vec<TableCell> = vec![
                name.map(|name| text(&name.database)).into(),
                name.map(|name| text(&name.table)).into(),
                totals.transactions.into(),
            ];
            let of_one = Totals {
                rows: totals.rows,
                uncompressed_bytes: totals.uncompressed_bytes,
                compressed_bytes: compressed,
                ..Totals::default()
            };
            cells.extend(row_cells(&of_one));
            cells.extend(size_cells(&of_one));
            cells.push(TableCell::decimal(100.0 * totals.uncompressed_bytes as f64 / all.max(1) as f64, 1));
            cells
        });
        Section { name: "tables", title: "Tables", columns: TABLES, rows: rows.collect() }
    }

    fn transactions(&self) -> Section {
        let rows = self.all.largest.largest_first().into_iter().map(|transaction| {
            let mut cells: Vec<TableCell> = vec![
                self.files.get(transaction.file).map(|file| file.name.as_str()).into(),
                transaction.offset.into(),
                transaction.id.map_or_else(|| ANONYMOUS.to_owned(), |id| id.to_string()).into(),
                transaction.commit_timestamp.map(TableCell::moment).into(),
                transaction.tables.into(),
            ];
            cells.extend(row_cells(&transaction.totals));
            cells.extend(size_cells(&transaction.totals));
            cells
        });
        Section {
            name: "transactions",
            title: "Largest transactions",
            columns: TRANSACTIONS,
            rows: rows.collect(),
        }
    }

    fn sizes(&self) -> Section {
        let rows = self.all.sizes.iter().map(|(class, totals)| {
            let mut cells: Vec<TableCell> = vec![class.from.into(), class.to.into()];
            cells.extend(group_cells(totals));
            cells
        });
        Section { name: "sizes", title: "Transactions by size", columns: SIZES, rows: rows.collect() }
    }

    fn hours(&self) -> Section {
        let rows = self.all.hours.iter().map(|(hour, totals)| {
            let mut cells: Vec<TableCell> = vec![TableCell::hour(*hour)];
            cells.extend(group_cells(totals));
            cells
        });
        Section { name: "hours", title: "Hours", columns: HOURS, rows: rows.collect() }
    }
}

/// The id of a transaction without GTID, as the server shows it.
pub(crate) const ANONYMOUS: &str = "ANONYMOUS";

fn row_cells(totals: &Totals) -> [TableCell; 3] {
    [totals.rows.inserts.into(), totals.rows.updates.into(), totals.rows.deletes.into()]
}

fn size_cells(totals: &Totals) -> [TableCell; 3] {
    let compressed = totals.compressed_bytes;
    let uncompressed = totals.uncompressed_bytes;
    [uncompressed.into(), compressed.into(), compression_percentage(compressed, uncompressed).into()]
}

fn group_cells(totals: &Totals) -> impl Iterator<Item = TableCell> {
    let counts = [totals.transactions, totals.compressed_transactions, totals.rows.total()];
    counts.into_iter().map(TableCell::from).chain(size_cells(totals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_described_in_the_docs() {
        let docs = include_str!("../../../../docs/reference/stats.md");
        for section in Stats::new(0).sections() {
            assert!(docs.contains(&format!("`{}`", section.name)), "{}", section.name);
            for column in section.columns {
                assert!(docs.contains(&format!("`{column}`")), "{}.{column}", section.name);
            }
        }
    }
}
