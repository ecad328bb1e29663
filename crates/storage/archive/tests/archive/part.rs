//! Parts of a log are its own bytes without the gaps, also where payloads are made again, and nothing else is read.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::format::Manifest;
use binlogz_archive::part::{LogParts, ObjectContents};
use binlogz_archive::restore::{LastObject, whole_after};
use binlogz_archive::storage::{ArchiveFolder, ArchiveStorage, ListedObject, ManifestBytes, ReadRange};
use binlogz_archive::{Result, check};
use binlogz_testkit::{corpus, mutate};

use crate::restore::{following, sample};

/// Counts the bytes of objects that are read.
struct Counted {
    folder: ArchiveFolder,
    read: Arc<AtomicU64>,
}

struct CountedObject(Box<dyn ReadRange>, Arc<AtomicU64>);

impl ReadRange for CountedObject {
    fn size(&self) -> Result<u64> {
        self.0.size()
    }

    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>> {
        self.1.fetch_add(size as u64, Ordering::Relaxed);
        self.0.read(offset, size)
    }
}

impl ArchiveStorage for Counted {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        self.folder.put(name, write)
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        Ok(Box::new(CountedObject(self.folder.get(name)?, Arc::clone(&self.read))))
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.folder.delete(name)
    }

    fn stored(&self) -> Result<Vec<ListedObject>> {
        self.folder.stored()
    }

    fn manifest(&self) -> Result<Option<ManifestBytes>> {
        self.folder.manifest()
    }

    fn put_manifest(&self, manifest: &ManifestBytes, replaces: Option<&[u8]>) -> Result<()> {
        self.folder.put_manifest(manifest, replaces)
    }
}

#[test]
fn a_log_is_given_in_parts() {
    let mut seed = mutate::seed() | 1;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed >> 32
    };
    let logs = [
        ("plain", sample("plain/binlog.000007")),
        ("compressed", sample("compressed/binlog.000005")),
        ("run", sample("compressed/binlog.000007")),
        // Some of its payloads stay payloads.
        ("levels", std::fs::read(corpus::path("levels.000003")).unwrap()),
    ];
    let dir = tempfile::tempdir().unwrap();
    let archive = Counted { folder: ArchiveFolder::new(dir.path()), read: Arc::default() };
    let mut told = |_: &CreateOutcome| {};
    let mut creator = Creator::new(&archive, 2, &mut told).unwrap();
    creator.block_size(16 << 10);
    for (name, log) in &logs {
        creator.add(name, Arc::new(log.clone())).unwrap();
    }
    creator.finish().unwrap();
    let manifest = Manifest::read(&archive).unwrap().unwrap();
    for (file, (name, log)) in manifest.files.iter().zip(&logs) {
        let given = |is_wanted: &mut dyn FnMut(u64) -> bool| {
            archive.read.store(0, Ordering::Relaxed);
            let last = LastObject::default();
            let objects = file.objects.iter();
            let objects =
                objects.map(|name| Arc::new(ObjectContents::open(&archive, &last, name).unwrap())).collect();
            let mut ends = Vec::new();
            let parts = LogParts::choose(file, objects, &mut |run| {
                ends.push(run.end().expect("its place is told"));
                is_wanted(ends.len() as u64 - 1)
            });
            let parts = parts.unwrap();
            let opened = archive.read.load(Ordering::Relaxed);
            let mut out = Vec::new();
            if let Some(parts) = &parts {
                parts.write(&mut out, 2).unwrap();
            }
            (parts.map(|parts| parts.gaps), out, ends, archive.read.load(Ordering::Relaxed) - opened)
        };
        let (gaps, head, ends, read) = given(&mut |_| false);
        assert_eq!((read, gaps.unwrap().len()), (0, 1), "{name}: nothing of its blocks is needed");
        assert!(head.len() < 400 && head[..100] == log[..100], "{name}");
        assert!(ends.len() > 2 && ends.last() == Some(&file.size), "{name}: {ends:?}");
        for _ in 0..12 {
            let wanted = random();
            let (gaps, out, ..) = given(&mut |number| wanted >> (number % 32) & 1 == 1);
            let Some(gaps) = gaps else { continue };
            let mut expected = log.clone();
            for gap in gaps.iter().rev() {
                expected.drain(gap.start as usize..gap.end as usize);
            }
            assert!(out == expected, "{name}: {gaps:?}");
        }
        // Blocks with payloads that stayed may hold anything.
        if file.payloads_kept == 0 {
            let (gaps, _, _, first) = given(&mut |number| number == 0);
            assert!(
                gaps.is_some() && first < file.packed_size / 2,
                "{name}: {first} of {}",
                file.packed_size
            );
        }
    }
    let mut problems = check::check(&archive, &manifest, 2).unwrap();
    problems.retain(|problem| !problem.contains(": gap: "));
    assert_eq!(problems, Vec::<String>::new());
}

/// Logs whose rows are those of the logs before: what both need is read once.
#[test]
fn all_logs_of_an_archive_are_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Counted { folder: ArchiveFolder::new(dir.path()), read: Arc::default() };
    let mut told = |_: &CreateOutcome| {};
    let mut creator = Creator::new(&archive, 2, &mut told).unwrap();
    creator.block_size(64 << 10);
    let logs = following();
    for (name, log) in (1..).zip(&logs) {
        creator.add(&format!("binlog.{name:06}"), Arc::new(log.clone())).unwrap();
    }
    creator.finish().unwrap();
    let manifest = Manifest::read(&archive).unwrap().unwrap();
    let size: u64 = archive.stored().unwrap().iter().map(|object| object.size).sum();
    let read = |last: &mut dyn FnMut() -> Arc<LastObject>| {
        archive.read.store(0, Ordering::Relaxed);
        for (file, log) in manifest.files.iter().zip(&logs) {
            let mut back = Vec::new();
            whole_after(&archive, &last(), file, &mut back, 2).unwrap();
            assert!(back == *log, "{}", file.name);
        }
        archive.read.load(Ordering::Relaxed)
    };
    let one = Arc::new(LastObject::default());
    let (together, apart) = (read(&mut || Arc::clone(&one)), read(&mut || Arc::default()));
    println!("{size} bytes: {together} read for all logs, {apart} for one after the other");
    assert!(together <= size && apart > size, "{together}, {apart} of {size}");
}
