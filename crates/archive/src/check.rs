//! Checks an archive: every block, every SHA-256, and that the transactions follow one another without gap.

use binlogz_binlog::gtid::GtidSet;

use crate::error::Result;
use crate::manifest::{FileEntry, Manifest};
use crate::restore;
use crate::storage::Storage;

/// Checks every log of an archive and tells what is wrong, one line each.
///
/// # Errors
///
/// A manifest that can't be read.
pub fn check(storage: &dyn Storage, manifest: &Manifest, workers: usize) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for file in &manifest.files {
        problems.extend(check_file(storage, file, workers));
    }
    problems.extend(check_chain(manifest)?);
    Ok(problems)
}

fn check_file(storage: &dyn Storage, file: &FileEntry, workers: usize) -> Vec<String> {
    let mut problems = Vec::new();
    for object in &file.objects {
        let blocks = restore::open(storage, object).and_then(|object| {
            let (_, numbers) = object.log(&file.name)?;
            let damaged = numbers.into_iter().filter_map(|number| object.block(number, workers).err());
            Ok(damaged.map(|error| format!("{}: {error}", file.name)).collect())
        });
        let lost = |error| vec![format!("{}: {error}; it held {}", file.name, file.gtids)];
        problems.extend(blocks.unwrap_or_else(lost));
    }
    if problems.is_empty() {
        problems.extend(
            restore::verify(storage, file, workers).err().map(|error| format!("{}: {error}", file.name)),
        );
    }
    problems
}

/// Gaps and overlaps between logs that say which transactions were before them.
fn check_chain(manifest: &Manifest) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut known: Option<GtidSet> = None;
    for file in &manifest.files {
        let (previous, gtids) = (file.previous_gtid_set()?, file.gtid_set()?);
        if let Some(known) = &known {
            let mut gap = previous.clone();
            gap.subtract(known);
            if !gap.is_empty() {
                problems.push(format!("{}: gap: {gap} came before it and is not in the archive", file.name));
            }
            let mut overlap = gtids.clone();
            overlap.intersect(known);
            if !overlap.is_empty() {
                problems.push(format!("{}: overlap: {overlap} is in an earlier log too", file.name));
            }
        }
        let known = known.get_or_insert_default();
        known.union(&previous);
        known.union(&gtids);
    }
    Ok(problems)
}
