//! Checks an archive: every block, every SHA-256, and that the transactions follow one another without gaps.

use std::io;

use binlogz_binlog::gtid::GtidSet;

use crate::error::Result;
use crate::format::{FileEntry, Manifest};
use crate::log::directory::DirectoryWalk;
use crate::operations::coverage;
use crate::operations::presence::{CheckDepth, Inspector};
use crate::operations::restore::{self, LastObject};
use crate::storage::ArchiveStorage;

/// Checks every log of an archive and reports what is wrong, one line each: damage, then gaps.
///
/// # Errors
///
/// A manifest that can't be read.
pub fn check(storage: &dyn ArchiveStorage, manifest: &Manifest, workers: usize) -> Result<Vec<String>> {
    let mut problems = damage(storage, manifest, CheckDepth::Content, workers)?;
    problems.extend(chain(manifest)?);
    Ok(problems)
}

/// Looks for damaged and missing things, one line each, as deep as requested;
/// [`last_check::note`](super::last_check::note) writes down how many were found.
///
/// # Errors
///
/// Storage that can't be asked, where only its objects are looked at.
pub fn damage(
    storage: &dyn ArchiveStorage,
    manifest: &Manifest,
    depth: CheckDepth,
    workers: usize,
) -> Result<Vec<String>> {
    let mut problems = damage_of_manifest(storage, manifest);
    let last = LastObject::default();
    let mut inspector = Inspector::new(storage, depth);
    for file in &manifest.files {
        match depth {
            CheckDepth::Content => problems.extend(check_file(storage, &last, file, workers)),
            CheckDepth::Presence | CheckDepth::Hash => {
                let problem = inspector.problem(file)?;
                problems.extend(
                    problem.map(|problem| format!("{}: {problem}; it held {}", file.name, file.gtids)),
                );
            }
        }
    }
    Ok(problems)
}

/// The damage of the manifest itself, one line each: of its copy, of its parts.
pub fn damage_of_manifest(storage: &dyn ArchiveStorage, manifest: &Manifest) -> Vec<String> {
    manifest.problems(storage)
}

/// The damage of one log, one line each, as [`damage`] finds it with [`CheckDepth::Content`]: for a caller that checks an
/// archive log by log.
pub fn damage_of_log(storage: &dyn ArchiveStorage, file: &FileEntry, workers: usize) -> Vec<String> {
    check_file(storage, &LastObject::default(), file, workers)
}

fn check_file(
    storage: &dyn ArchiveStorage,
    last: &LastObject,
    file: &FileEntry,
    workers: usize,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut lost = Vec::new();
    let mut walk = None;
    let mut is_cut = false;
    for object in &file.objects {
        let blocks = last.open(storage, object).and_then(|object| {
            let (log, numbers) = object.log(&file.name)?;
            problems.extend(object.inspect(log).iter().map(|error| format!("{}: {error}", file.name)));
            let contents = object.contents();
            problems.extend(contents.as_ref().err().map(|error| {
                format!(
                    "{}: {error}; nothing is lost, but commands that look for rows read every block",
                    file.name
                )
            }));
            let contents = contents.ok().flatten();
            let directory = object.directory();
            problems.extend(directory.as_ref().err().map(|error| {
                format!(
                    "{}: {error}; nothing is lost, but questions about transactions read every block",
                    file.name
                )
            }));
            let directory = directory.ok().flatten();
            let directory = directory.as_ref().zip(contents.as_ref());
            let walk = walk.get_or_insert_with(|| DirectoryWalk::new(&object.head_of(log)));
            if is_cut {
                walk.lose();
            }
            let mut damaged = Vec::new();
            for number in numbers {
                match object.block(number, workers) {
                    Ok(block) => {
                        let told = contents
                            .as_ref()
                            .map_or(Ok(()), |contents| object.compare(number, &block, contents));
                        problems.extend(told.err().map(|error| format!("{}: {error}", file.name)));
                        let same = match directory {
                            Some(told) => object.compare_directory(number, &block, told, walk),
                            // The next object may have one, and the rest of the transaction.
                            None => {
                                object.pass_over(number, &block, walk);
                                Ok(())
                            }
                        };
                        problems.extend(same.err().map(|error| format!("{}: {error}", file.name)));
                    }
                    Err(error) => {
                        walk.lose();
                        damaged.push(format!("{}: {error}", file.name));
                    }
                }
            }
            Ok(damaged)
        });
        is_cut = blocks.is_err();
        let all = |error| vec![format!("{}: {error}; it held {}", file.name, file.gtids)];
        lost.extend(blocks.unwrap_or_else(all));
    }
    if lost.is_empty() {
        let verified = restore::whole_after(storage, last, file, &mut io::sink(), workers);
        lost.extend(verified.err().map(|error| format!("{}: {error}", file.name)));
    }
    problems.append(&mut lost);
    problems
}

/// Finds gaps between archives whose logs follow one another, each with the prefix of its lines: the
/// transactions before the first log of one archive must be in the archives before it. A transaction may be
/// in several archives: after a failover, the next server's log begins with the file that has everything the
/// last log lacks.
///
/// # Errors
///
/// A manifest that was changed by hand.
pub fn between(archives: &[(&str, &Manifest)]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut known: Option<GtidSet> = None;
    for (prefix, manifest) in archives {
        let Some(first) = manifest.files.first() else { continue };
        let mut gap = first.previous_gtid_set()?;
        if let Some(known) = &known {
            gap.subtract(known);
            if !gap.is_empty() {
                let name = &first.name;
                problems.push(format!(
                    "{prefix}{name}: gap: {gap} came before it and is in none of the archives before this one"
                ));
            }
        }
        let known = known.get_or_insert_default();
        for file in &manifest.files {
            known.union(&file.previous_gtid_set()?);
            known.union(&file.gtid_set()?);
        }
    }
    Ok(problems)
}

/// Gaps and overlaps between logs, found from the previous GTIDs of each.
///
/// # Errors
///
/// A manifest that was changed by hand.
pub fn chain(manifest: &Manifest) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut known: Option<GtidSet> = None;
    let mut gaps = coverage::gaps(manifest)?.into_iter().peekable();
    for file in &manifest.files {
        problems.extend(gaps.next_if(|gap| gap.log == file.name).map(|gap| gap.to_string()));
        let gtids = file.gtid_set()?;
        if let Some(known) = &known {
            let mut overlap = gtids.clone();
            overlap.intersect(known);
            if !overlap.is_empty() {
                problems.push(format!("{}: overlap: {overlap} is in an earlier log too", file.name));
            }
        }
        let known = known.get_or_insert_default();
        known.union(&file.previous_gtid_set()?);
        known.union(&gtids);
    }
    Ok(problems)
}
