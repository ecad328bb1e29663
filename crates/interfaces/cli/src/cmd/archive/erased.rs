//! What is said of logs from which values were erased: they aren't byte for byte their servers'.

use std::collections::BTreeSet;

use binlogz_archive::format::{ErasureNote, FileEntry};
use binlogz_figures::counted;

use crate::time;

/// The note on these logs; `None`: nothing was erased from any.
pub(in crate::cmd) fn note_on<'f>(files: impl IntoIterator<Item = &'f FileEntry>) -> Option<String> {
    let erased: Vec<&FileEntry> = files.into_iter().filter(|file| file.is_erased()).collect();
    let logs = counted(erased.len() as u64, "logs");
    let notes = erased.iter().flat_map(|file| &file.erasures);
    in_words(notes).map(|what| match erased.len() {
        1 => format!("{logs} is not byte for byte its server's: {what}"),
        _ => format!("{logs} are not byte for byte their server's: {what}"),
    })
}

/// What was erased, and since when.
pub(in crate::cmd) fn in_words<'n>(notes: impl IntoIterator<Item = &'n ErasureNote>) -> Option<String> {
    let notes: Vec<&ErasureNote> = notes.into_iter().collect();
    let since = notes.iter().map(|note| note.at).min()?;
    let rows = counted(notes.iter().map(|note| note.rows).sum(), "row changes");
    let tables: BTreeSet<&str> = notes.iter().map(|note| note.table.as_str()).collect();
    let tables = tables.into_iter().collect::<Vec<_>>().join(", ");
    let since = time::shown(u32::try_from(since).unwrap_or(u32::MAX));
    Some(format!("values of {rows} of {tables} were erased since {since}"))
}
