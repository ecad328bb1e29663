//! How it is told that values were erased from logs.

use std::collections::BTreeSet;

use super::erasure_note::ErasureNote;
use super::file_entry::FileEntry;

/// Logs from which values were erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasedLogs {
    logs: u64,
    rows: u64,
    tables: BTreeSet<String>,
    /// When it was done first, in seconds since 1970.
    since: u64,
}

impl ErasedLogs {
    /// Those among these logs; `None`: nothing was erased from any.
    pub fn among<'f>(files: impl IntoIterator<Item = &'f FileEntry>) -> Option<Self> {
        let erased: Vec<&FileEntry> = files.into_iter().filter(|file| file.is_erased()).collect();
        let notes: Vec<&ErasureNote> = erased.iter().flat_map(|file| &file.erasures).collect();
        Some(ErasedLogs {
            logs: erased.len() as u64,
            rows: notes.iter().map(|note| note.rows).sum(),
            tables: notes.iter().flat_map(|note| note.table.split(", ")).map(str::to_owned).collect(),
            since: notes.iter().map(|note| note.at).min()?,
        })
    }

    /// What these logs are, and since when; `shown` writes a second since 1970.
    pub fn in_words(&self, shown: fn(u32) -> String) -> String {
        let rows = counted(self.rows, "row change");
        let tables = self.tables.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("{}: values of {rows} of {tables} were erased since {}", self.what(), self.since(shown))
    }

    /// As [`ErasedLogs::in_words`], without tables and counts: for readers who may not see all of them.
    pub fn in_few_words(&self, shown: fn(u32) -> String) -> String {
        format!("{}: values were erased since {}", self.what(), self.since(shown))
    }

    fn what(&self) -> String {
        let logs = counted(self.logs, "log");
        match self.logs {
            1 => format!("{logs} is not byte for byte its server's"),
            _ => format!("{logs} are not byte for byte their server's"),
        }
    }

    fn since(&self, shown: fn(u32) -> String) -> String {
        shown(u32::try_from(self.since).unwrap_or(u32::MAX))
    }
}

fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
