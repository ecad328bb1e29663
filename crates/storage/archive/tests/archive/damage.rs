//! A flipped bit in any part of an archive is reported with its object and the logs it concerns, and everything that does
//! not need it comes back: the headers of the blocks duplicate the index, and the manifest has its copy.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_archive::create::Creator;
use binlogz_archive::format::Manifest;
use binlogz_archive::format::{BlockEntry, ContentsEntry};
use binlogz_archive::selection::TransactionSelection;
use binlogz_archive::storage::ArchiveFolder;
use binlogz_archive::storage::ArchiveStorage;
use binlogz_archive::{check, restore};

const NAMES: [&str; 3] = ["binlog.000003", "binlog.000004", "binlog.000005"];

fn log(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../../samples/plain/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// An archive of logs, each of which changes rows of the one before: one block for each.
struct Archive {
    dir: tempfile::TempDir,
    folder: ArchiveFolder,
    object: PathBuf,
    blocks: Vec<BlockEntry>,
    contents: ContentsEntry,
    directory: ContentsEntry,
}

impl Archive {
    fn new() -> Archive {
        let dir = tempfile::tempdir().unwrap();
        let folder = ArchiveFolder::new(dir.path());
        let mut told = |_: &_| {};
        let mut creator = Creator::new(&folder, 1, &mut told).unwrap();
        NAMES.iter().for_each(|name| creator.add(name, Arc::new(log(name))).unwrap());
        creator.finish().unwrap();
        let manifest = Manifest::read(&folder).unwrap().unwrap();
        let name = &manifest.files[0].objects[0];
        let index = restore::open(&folder, name).unwrap().index;
        let (blocks, contents, directory) = (index.blocks, index.contents.unwrap(), index.directory.unwrap());
        assert!(blocks.len() == 3 && !blocks[2].references.is_empty(), "{blocks:?}");
        let object = dir.path().join("objects").join(name);
        Archive { dir, folder, object, blocks, contents, directory }
    }

    fn manifest(&self) -> Manifest {
        Manifest::read(&self.folder).unwrap().unwrap()
    }

    fn problems(&self) -> Vec<String> {
        check::check(&self.folder, &self.manifest(), 1).unwrap()
    }

    /// These logs come back as they were; others are errors. The same holds for the last transaction of each.
    #[track_caller]
    fn whole(&self) -> Vec<String> {
        let come_back = |file: &&binlogz_archive::format::FileEntry| {
            let mut back = Vec::new();
            let whole = restore::whole(&self.folder, file, &mut back, 1).is_ok();
            assert!(!whole || back == log(&file.name), "{}", file.name);
            let selection = TransactionSelection {
                gtids: Some(file.gtid_set().unwrap()),
                ..TransactionSelection::default()
            };
            let mut none = || Ok(Box::new(std::io::sink()) as Box<dyn std::io::Write>);
            let chosen = restore::chosen(&self.folder, file, &selection, 1, &mut none);
            assert_eq!(chosen.is_ok_and(|restored| restored.transactions > 0), whole, "{}", file.name);
            whole
        };
        let manifest = self.manifest();
        manifest.files.iter().filter(come_back).map(|file| file.name.to_string()).collect()
    }
}

/// Flips a bit of each of these bytes, one after the other.
fn flip(path: &Path, places: impl IntoIterator<Item = u64>, mut look: impl FnMut(u64)) {
    let bytes = std::fs::read(path).unwrap();
    for at in places {
        let mut bad = bytes.clone();
        bad[at as usize] ^= 1 << (at % 8);
        std::fs::write(path, bad).unwrap();
        look(at);
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn begin_headers_index_and_end_are_there_a_second_time() {
    let archive = Archive::new();
    assert_eq!((archive.problems(), archive.whole()), (Vec::new(), NAMES.map(String::from).to_vec()));
    let size = std::fs::metadata(&archive.object).unwrap().len();
    let object = archive.object.file_name().unwrap().to_str().unwrap();
    let (contents, directory) = (archive.contents, archive.directory);
    let index_at = directory.at + directory.size;
    let mut header_at = 12;
    let mut regions = vec![("begin", (0..12).step_by(8))];
    for block in &archive.blocks {
        regions
            .push(("header of block", (header_at..block.at).step_by(((block.at - header_at) / 3) as usize)));
        header_at = block.at + block.packed_size;
    }
    regions.push(("contents", (contents.at..directory.at).step_by((contents.size / 3) as usize)));
    regions
        .push(("directory of transactions", (directory.at..index_at).step_by((directory.size / 3) as usize)));
    regions.push(("index", (index_at..size - 32).step_by(((size - 32 - index_at) / 3) as usize)));
    regions.push(("index", (size - 32..size).step_by(7)));
    for (what, places) in regions {
        flip(&archive.object, places, |at| {
            assert_eq!(archive.whole(), NAMES, "{what}, byte {at}");
            let problems = archive.problems();
            let named = |problem: &String| {
                problem.contains(object) && problem.contains(what) && problem.contains("nothing is lost")
            };
            assert!(!problems.is_empty() && problems.iter().all(named), "{what}, byte {at}: {problems:?}");
            if what == "header of block" {
                let block = archive.blocks.iter().find(|block| block.at > at).unwrap();
                let gtids = block.gtids.to_string();
                assert!(problems.len() == 1 && problems[0].contains(&gtids), "byte {at}: {problems:?}");
            }
        });
    }
    assert_eq!(archive.problems(), Vec::<String>::new());
}

#[test]
fn a_damaged_block_is_named_with_those_that_need_it_and_the_rest_comes_back() {
    let archive = Archive::new();
    for (number, block) in (0u32..).zip(&archive.blocks) {
        let mut lost = vec![number];
        for (other, entry) in (0u32..).zip(&archive.blocks) {
            if entry.references.iter().any(|reference| lost.contains(reference)) {
                lost.push(other);
            }
        }
        let places = (block.at..block.at + block.packed_size).step_by(block.packed_size as usize / 2);
        flip(&archive.object, places, |at| {
            let whole: Vec<_> =
                (0u32..).zip(NAMES).filter(|(log, _)| !lost.contains(log)).map(|(_, name)| name).collect();
            assert_eq!(archive.whole(), whole, "byte {at}");
            let problems = archive.problems();
            assert_eq!(problems.len(), lost.len(), "{problems:?}");
            for (problem, &lost) in problems.iter().zip(&lost) {
                let gtids = archive.blocks[lost as usize].gtids.to_string();
                assert!(problem.starts_with(&format!("{}: ", NAMES[lost as usize])), "{problem}");
                assert!(
                    problem.contains(&gtids) && problem.contains("is damaged (checksum differs)"),
                    "{problem}"
                );
                assert_eq!(problem.contains(" needs an earlier block: "), lost != number, "{problem}");
            }
        });
    }
}

/// Index and one header: only that block and the blocks that need it are lost, and nothing is silently left
/// out.
#[test]
fn an_index_and_a_header_damaged_at_once_cost_that_block() {
    let archive = Archive::new();
    let bytes = std::fs::read(&archive.object).unwrap();
    for (lost, block) in archive.blocks.iter().enumerate() {
        let mut bad = bytes.clone();
        let end = bad.len() - 40;
        bad[end] ^= 1;
        let header =
            if lost == 0 { 12 } else { archive.blocks[lost - 1].at + archive.blocks[lost - 1].packed_size };
        bad[(header + 20) as usize] ^= 1;
        std::fs::write(&archive.object, &bad).unwrap();
        let needs = |entry: &BlockEntry| entry.references.contains(&(lost as u32));
        let whole: Vec<_> = NAMES
            .iter()
            .zip(&archive.blocks)
            .filter(|(_, entry)| *entry != block && !needs(entry))
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(archive.whole(), whole, "block {lost}");
        let problems = archive.problems();
        let gtids = block.gtids.to_string();
        assert!(
            problems.iter().any(|line| line.contains(NAMES[lost]) && line.contains(&gtids)),
            "{problems:?}"
        );
    }
}

#[test]
fn a_damaged_manifest_is_read_from_its_copy_and_mended_by_the_next_run() {
    let archive = Archive::new();
    for (file, what) in
        [("manifest.json", "manifest"), ("objects/manifest-copy.json", "copy of the manifest")]
    {
        let path = archive.dir.path().join(file);
        let size = std::fs::metadata(&path).unwrap().len();
        let mut missed = 0;
        flip(&path, (0..size).step_by(size as usize / 12), |at| {
            assert_eq!(archive.whole(), NAMES, "{file}, byte {at}");
            let problems = archive.problems();
            match problems.first() {
                Some(problem) => assert!(problem.contains(what) && problems.len() == 1, "{problems:?}"),
                // White space, which has no meaning.
                None => missed += 1,
            }
        });
        assert!(missed <= 3, "{missed}");
    }
    let path = archive.dir.path().join("manifest.json");
    std::fs::write(&path, "{").unwrap();
    let mut told = |_: &_| {};
    let mut creator = Creator::new(&archive.folder, 1, &mut told).unwrap();
    creator.add("binlog.000001", Arc::new(log("binlog.000001"))).unwrap();
    creator.finish().unwrap();
    assert_eq!(archive.manifest().files.len(), 4);
    assert!(archive.problems().iter().all(|problem| problem.contains(": gap: ")), "{:?}", archive.problems());
    assert!(archive.folder.get("manifest-copy.json").is_ok());
}
