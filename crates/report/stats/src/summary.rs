//! The figures in five lines for people: what there is, from when, what changed, how well it compresses, the largest transaction.

use binlogz_figures::{counted, grouped, human_size, utc};
use binlogz_payload::statistics::compression_percentage;

use crate::file::Stats;
use crate::sections::ANONYMOUS;

/// The characters of a time to the second.
const TO_THE_SECOND: usize = 19;

impl Stats {
    /// The figures in five lines; `exact_sizes`: in bytes instead of KiB, MiB and so on.
    pub fn summary(&self, exact_sizes: bool) -> [String; 5] {
        [
            self.files_line(exact_sizes),
            self.transactions_line(),
            self.rows_line(),
            self.compression_line(exact_sizes),
            self.largest_line(exact_sizes),
        ]
    }

    fn files_line(&self, exact_sizes: bool) -> String {
        let bytes = self.files.iter().map(|file| file.bytes).sum();
        let files = counted(self.files.len() as u64, "files");
        let descriptions = self.files.iter().filter_map(|file| file.description.as_ref());
        let mut versions: Vec<_> = descriptions.map(|log| log.server_version.as_str()).collect();
        versions.sort_unstable();
        versions.dedup();
        let servers = match versions.as_slice() {
            [] => String::new(),
            [version] => format!(", server {version}"),
            [first, .., last] => format!(", servers {first} to {last}"),
        };
        format!("{files}, {}{servers}", size(bytes, exact_sizes))
    }

    fn transactions_line(&self) -> String {
        let transactions = counted(self.all.totals.transactions, "transactions");
        let Some((first, last)) = self.all.commits else { return transactions };
        let [first, last] = [first, last].map(utc);
        let [first, last] = [&first, &last].map(|time| time.get(..TO_THE_SECOND).unwrap_or(time.as_str()));
        format!("{transactions}, {first} to {last} UTC")
    }

    fn rows_line(&self) -> String {
        let rows = self.all.totals.rows;
        let tables = self.all.tables.largest_first();
        let named = tables.iter().filter(|(name, _)| name.is_some()).count();
        let more = if named < tables.len() { "more than " } else { "" };
        let changed = counted(rows.total(), "rows");
        let [inserts, updates, deletes] = [rows.inserts, rows.updates, rows.deletes].map(grouped);
        let tables = counted(named as u64, "tables");
        format!(
            "{changed} changed in {more}{tables}: {inserts} inserted, {updates} updated, {deletes} deleted"
        )
    }

    fn compression_line(&self, exact_sizes: bool) -> String {
        let totals = self.all.totals;
        let plain = totals.uncompressed_bytes;
        let stored = totals.compressed_bytes;
        let sizes = match totals.compressed_transactions {
            0 => format!("{} of events", size(plain, exact_sizes)),
            _ => {
                let saved = compression_percentage(stored, plain);
                format!(
                    "{} of events stored in {}, {saved} % saved",
                    size(plain, exact_sizes),
                    size(stored, exact_sizes)
                )
            }
        };
        let compressed = match totals.compressed_transactions {
            0 => "none".to_owned(),
            some => grouped(some),
        };
        format!("{sizes}; {compressed} of the transactions compressed")
    }

    fn largest_line(&self, exact_sizes: bool) -> String {
        let Some(largest) = self.all.largest.largest_first().into_iter().next() else {
            return "no transaction is whole".to_owned();
        };
        let id = largest.id.map_or_else(|| ANONYMOUS.to_owned(), |id| id.to_string());
        let file = self.files.get(largest.file).map_or("", |file| file.name.as_str());
        let bytes = size(largest.totals.uncompressed_bytes, exact_sizes);
        format!("largest transaction: {bytes}, {id}, {file} at {}", largest.offset)
    }
}

fn size(bytes: u64, exact: bool) -> String {
    if exact { format!("{} bytes", grouped(bytes)) } else { human_size(bytes) }
}
