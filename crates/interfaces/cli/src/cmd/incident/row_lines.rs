//! The first rows of each table of a transaction, as `binlogz rows` tells them: a line for each row.

use std::io::{BufRead, BufReader};

use binlogz_triage::{TableChanges, TriagedTransaction};
use serde_json::Value;

use super::printed::IncidentWords;
use crate::Exit;
use crate::failure::{CommandFailure, Result};

/// Rows of each table that are kept.
pub(super) const ROWS_MAX: usize = 10;
/// Notes that are kept.
const NOTES_MAX: usize = 5;

/// The rows of one operation on a table.
#[derive(Debug, Default)]
pub(super) struct TableSample {
    /// Database and table, as the rows command writes them.
    table: String,
    count: u64,
    lines: Vec<String>,
    /// As JSON, if that is asked for.
    pub(super) values: Vec<Value>,
}

/// The first rows of each table.
#[derive(Debug)]
pub(super) struct RowSample {
    pub(super) tables: Vec<TableSample>,
    /// What was said of them.
    pub(super) notes: Vec<String>,
    pub(super) exit: Exit,
}

impl Default for RowSample {
    fn default() -> Self {
        RowSample { tables: Vec::new(), notes: Vec::new(), exit: Exit::Done }
    }
}

impl RowSample {
    /// Runs the command and takes the first rows of each table.
    pub(super) fn of(words: &IncidentWords) -> Result<Self> {
        let failure = |error: std::io::Error| CommandFailure::of(&"binlogz rows", error);
        let mut child = words.start().map_err(failure)?;
        let errors = child.stderr.take().map(IncidentWords::read_errors);
        let mut sample = RowSample::default();
        if let Some(out) = child.stdout.take() {
            let mut paragraph = Vec::new();
            for line in BufReader::new(out).split(b'\n') {
                let line = String::from_utf8_lossy(&line.map_err(failure)?).into_owned();
                if line.starts_with('{') {
                    sample.take_json(&line);
                } else if line.is_empty() {
                    sample.take(&std::mem::take(&mut paragraph));
                } else {
                    paragraph.push(line);
                }
            }
            sample.take(&paragraph);
        }
        let status = child.wait().map_err(failure)?;
        let errors = errors.map(std::thread::JoinHandle::join).and_then(std::result::Result::ok);
        sample.notes = errors.unwrap_or_default();
        sample.exit = match status.code() {
            Some(0) => Exit::Done,
            Some(1) => Exit::Negative,
            _ => Exit::Trouble,
        };
        if sample.exit == Exit::Trouble {
            return Err(CommandFailure::Line(format!("{}: {}", words.shown(), sample.notes.join("; "))));
        }
        sample.notes.truncate(NOTES_MAX);
        Ok(sample)
    }

    /// Takes how many rows the transaction has of each: `binlogz rows` tells the first hundred.
    pub(super) fn count(&mut self, transaction: &TriagedTransaction) {
        for TableChanges { name, rows, .. } in &transaction.tables {
            let [database, table] = [&name.database, &name.table].map(|name| String::from_utf8_lossy(name));
            let counts = [("INSERT", rows.inserts), ("UPDATE", rows.updates), ("DELETE", rows.deletes)];
            for (operation, count) in counts {
                let heading = format!("{operation} {database}.{table}");
                let told = self.tables.iter_mut().find(|sample| sample.table == heading);
                told.into_iter().for_each(|sample| sample.count = sample.count.max(count));
            }
        }
    }

    fn table(&mut self, name: &str) -> &mut TableSample {
        let place = match self.tables.iter().position(|table| table.table == name) {
            Some(place) => place,
            None => {
                self.tables.push(TableSample { table: name.to_owned(), ..TableSample::default() });
                self.tables.len() - 1
            }
        };
        // It was found or made just now.
        #[expect(clippy::indexing_slicing, reason = "the place of a table that is there")]
        &mut self.tables[place]
    }

    fn take_json(&mut self, line: &str) {
        let Ok(row) = serde_json::from_str::<Value>(line) else { return };
        let [database, table] =
            ["database", "table"].map(|key| row.get(key).and_then(Value::as_str).unwrap_or_default());
        let name = format!("{database}.{table}");
        let table = self.table(&name);
        table.count += 1;
        if table.values.len() < ROWS_MAX {
            table.values.push(row);
        }
    }

    /// Takes a paragraph: `TIME ZONE  UPDATE shop.orders`, its transaction, columns. What an update left alone is left out but for
    /// the first column, which mostly tells which row it is.
    fn take(&mut self, paragraph: &[String]) {
        let Some(name) = paragraph.first().and_then(|line| line.split("  ").nth(1)) else { return };
        let table = self.table(name);
        table.count += 1;
        if table.lines.len() >= ROWS_MAX {
            return;
        }
        let columns = paragraph
            .iter()
            .skip(2)
            .filter(|line| ["    ", "  * ", "  + ", "  - "].iter().any(|mark| line.starts_with(mark)));
        let told = columns.enumerate().filter(|(number, line)| *number == 0 || !line.starts_with("    "));
        let texts = told.map(|(_, line)| {
            let column = line.get(4..).unwrap_or_default();
            match column.split_once(' ') {
                Some((name, value)) => format!("{name} {}", value.trim_start()),
                None => column.to_owned(),
            }
        });
        let line = texts.collect::<Vec<_>>().join(", ");
        table.lines.push(line);
    }
}

impl TableSample {
    /// The heading, and the first rows, none wider than this.
    pub(super) fn lines(&self, rows_max: usize, width: usize) -> Vec<String> {
        let shown = self.lines.get(..rows_max).unwrap_or(&self.lines);
        let more = self.count.saturating_sub(shown.len() as u64);
        let heading = match more {
            0 => self.table.clone(),
            more => format!("{} ({} of {})", self.table, shown.len(), shown.len() as u64 + more),
        };
        let lines = [heading].into_iter().chain(shown.iter().map(|line| format!("  {line}")));
        lines.map(|line| shortened(&line, width)).collect()
    }
}

/// A line of at most so many characters.
fn shortened(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let front: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{front}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_told_by_what_it_changed() {
        let mut sample = RowSample::default();
        let paragraph = [
            "2026-11-22 23:10:42.123456 CET  UPDATE shop.orders",
            "  GTID 3e11fa47-71ca-11e1-9e33-c80aa9429562:23, thread 87, binlog.000042 at 15372#0",
            "  statement: UPDATE orders SET status = 'paid' WHERE id = 42",
            "    id      42",
            "  * status  'new' → 'paid'",
            "    total   20.00",
        ];
        for _ in 0..12 {
            sample.take(&paragraph.map(str::to_owned));
        }
        let lines = sample.tables[0].lines(2, 40);
        assert_eq!(
            lines,
            [
                "UPDATE shop.orders (2 of 12)",
                "  id 42, status 'new' → 'paid'",
                "  id 42, status 'new' → 'paid'"
            ]
        );
        assert_eq!(sample.tables[0].lines(1, 12)[1], "  id 42, st…");
    }
}
