//! `archive erase` of logs in many small blocks: the result is that of the same logs in one block each. Blocks without such rows stay as they are
//! packed, and the dry run doesn't read them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use binlogz_archive::Level;
use binlogz_archive::create::Creator;
use binlogz_archive::format::Manifest;
use binlogz_archive::restore;
use binlogz_archive::storage::ArchiveFolder;

use crate::common::Folder;

/// Tables filled, changed and emptied row by row; one log has the text of a statement beside its rows.
const SAMPLES: [&str; 4] = ["binlog.000003", "binlog.000004", "binlog.000005", "binlog.000006"];

/// Rows that are changed between, or not; of a table with a text in another block; many of them.
const ERASURES: [&[&str]; 4] = [
    &["--table", "sbtest.sbtest1", "--where", "@1 IN (3, 150, 151)", "--blank", "@4"],
    &["--table", "sbtest.sbtest1", "--where", "@1 = 77", "--rows"],
    &["--table", "mix.account", "--where", "@1 = 33", "--rows"],
    &["--table", "sbtest.sbtest1", "--where", "@1 < 100", "--blank", "@3,@4"],
];

/// An archive of the logs in blocks and segments of these sizes.
fn archived(block_size: usize, segment_size: u64) -> Folder {
    let folder = Folder::new();
    SAMPLES.iter().for_each(|log| drop(folder.sample("plain", log)));
    let storage = ArchiveFolder::new(folder.path("arc"));
    let mut told = |_: &_| {};
    let mut creator = Creator::new(&storage, 1, &mut told).unwrap();
    creator.level(Level::Fast);
    creator.block_size(block_size);
    creator.segment_size(segment_size);
    for log in SAMPLES {
        creator.add(log, Arc::new(File::open(folder.path(log)).unwrap())).unwrap();
    }
    creator.finish().unwrap();
    folder
}

fn blocks_of(folder: &Folder) -> usize {
    let storage = ArchiveFolder::new(folder.path("arc"));
    let manifest = Manifest::read(&storage).unwrap().unwrap();
    let objects: BTreeSet<_> = manifest.files.iter().flat_map(|file| &file.objects).collect();
    objects.into_iter().map(|object| restore::open(&storage, object).unwrap().index.blocks.len()).sum()
}

/// What an erasure said, without the sizes of objects, and the logs that are left.
fn erased(folder: &Folder, options: &[&str]) -> (Vec<String>, Vec<Vec<u8>>) {
    let erase = ["archive", "erase", "arc", "--level", "fast", "--grace", "0"];
    let dry = folder.run(erase.iter().chain(options));
    let done = folder.run(erase.iter().chain(options).chain(&["--execute"]));
    let lines = |ran: &crate::common::Ran| {
        let all = format!("{}{}{:?}", ran.text(), ran.stderr, ran.code);
        let is_of_size = |line: &&str| !line.contains(" object");
        // How many logs were read depends on what the index of each block has room for.
        let told = |line: &str| line.split("; ").next().unwrap_or_default().to_owned();
        all.lines().filter(is_of_size).map(told).collect::<Vec<_>>()
    };
    let storage = ArchiveFolder::new(folder.path("arc"));
    let manifest = Manifest::read(&storage).unwrap().unwrap();
    let mut logs = Vec::new();
    for file in &manifest.files {
        let mut log = Vec::new();
        restore::whole(&storage, file, &mut log, 1).unwrap();
        logs.push(log);
    }
    let checked = folder.run(["archive", "check", "--quiet", "arc"]);
    assert_ne!(checked.code, Some(2), "{}{}", checked.text(), checked.stderr);
    ([lines(&dry), lines(&done)].concat(), logs)
}

fn is_as_before(log: &[u8], folder: &Path, name: &str) -> bool {
    fs::read(folder.join(name)).unwrap() == log
}

#[test]
fn logs_in_many_blocks_lose_what_those_in_one_lose() {
    for erasure in ERASURES {
        let whole = archived(8 << 20, 512 << 20);
        let (said, left) = erased(&whole, erasure);
        assert!(said.iter().any(|line| line.contains(" were ")), "{said:#?}");
        let is_changed = |(name, log): (&&str, &Vec<u8>)| !is_as_before(log, &whole.path(""), name);
        assert!(SAMPLES.iter().zip(&left).any(is_changed), "{erasure:?}");
        for (block_size, segment_size) in [(3_000, 512 << 20), (20_000, 150_000)] {
            let parts = archived(block_size, segment_size);
            assert!(blocks_of(&parts) > 30);
            let (said_of_parts, left_of_parts) = erased(&parts, erasure);
            assert_eq!(said_of_parts, said, "{erasure:?}, blocks of {block_size}");
            assert!(left_of_parts == left, "{erasure:?}, blocks of {block_size}");
            assert!(blocks_of(&parts) > 30);
        }
    }
}
