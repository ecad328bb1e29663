//! What is left of logs takes their place, whatever ends the run, and nothing else of an archive still holds what was erased.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use binlogz_archive::create::Creator;
use binlogz_archive::erase::{self, EraseOptions, ErasePlan, EraseSummary, LogRemains, WrittenRemains};
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::prune::{Keep, prune};
use binlogz_archive::storage::{ArchiveFolder, ArchiveStorage, EncryptedStorage, KeySource};
use binlogz_archive::{Error, Level, Result, Scratch, check, copy, merge, remove, restore};
use binlogz_binlog::checksum::crc32;
use binlogz_flow::ReadAt;
use binlogz_testkit::s3::{FaultProxy, RequestFault, S3Server};

use crate::faults::{Failing, create, log};

const NAMES: [&str; 2] = ["binlog.000003", "binlog.000004"];
/// The log that has the words, and the words.
const HOLDING: &str = NAMES[0];
const WORDS: &[u8] = b"REPLICATION SLAVE";
const GRACE: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// Puts other letters in the place of the words.
struct Blanking;

/// A log without the words, and how often it had them.
fn blanked(log: &[u8]) -> (Vec<u8>, u64) {
    let mut left = log.to_vec();
    let mut count = 0;
    let mut at = 4;
    while at < left.len() {
        let size = u32::from_le_bytes(left[at + 9..at + 13].try_into().unwrap()) as usize;
        let event = &mut left[at..at + size];
        while let Some(place) = event.windows(WORDS.len()).position(|window| window == WORDS) {
            event[place..place + WORDS.len()].fill(b'x');
            count += 1;
            let sum = crc32(&event[..size - 4]);
            event[size - 4..].copy_from_slice(&sum.to_le_bytes());
        }
        at += size;
    }
    (left, count)
}

fn bytes_of(log: &Scratch) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    let size = log.fill_at(&mut bytes, 0).unwrap();
    bytes.truncate(size);
    bytes
}

impl LogRemains for Blanking {
    fn pass(&mut self, _: &FileEntry) -> Result<()> {
        Ok(())
    }

    fn write(
        &mut self,
        _: &FileEntry,
        plain: Arc<Scratch>,
        blocks: &[u64],
        out: &mut dyn Write,
    ) -> Result<WrittenRemains> {
        let (left, count) = blanked(&bytes_of(&plain));
        out.write_all(&left).map_err(Error::writing)?;
        // Nothing moves.
        let block_begins = blocks.iter().map(|begin| (*begin, *begin)).collect();
        // Blocks that aren't as they were are found by comparing.
        Ok(WrittenRemains { rows: count, same_until: 4, block_begins, changed_blocks: BTreeSet::new() })
    }
}

/// Erases the words, as often as they are there.
fn erased(storage: &dyn ArchiveStorage, grace: Duration, now: SystemTime) -> Result<EraseSummary> {
    let manifest = Manifest::read(storage)?.unwrap_or_default();
    let candidates = erase::candidates(storage, &manifest, &mut |_| true)?;
    let mut held = Vec::new();
    for file in candidates.logs {
        let has = blanked(&bytes_of(&*erase::plain(storage, &file, 1)?)).1 > 0;
        held.extend(has.then_some(file));
    }
    let plan = ErasePlan::of(&manifest, held, candidates.strays);
    let options = EraseOptions { table: "mysql.user".to_owned(), level: Level::Fast, workers: 1, grace, now };
    erase::erase(storage, &plan, &options, &mut Blanking, &mut |_| {})
}

fn archive(dir: &tempfile::TempDir) -> ArchiveFolder {
    let folder = ArchiveFolder::new(dir.path().join("archive"));
    // One segment has all of them.
    let mut told = |_: &_| {};
    let mut creator = Creator::new(&folder, 1, &mut told).unwrap();
    creator.level(Level::Fast);
    NAMES.iter().for_each(|name| creator.add(name, Arc::new(log(name))).unwrap());
    creator.finish().unwrap();
    folder
}

fn manifest(storage: &dyn ArchiveStorage) -> Manifest {
    Manifest::read(storage).unwrap().unwrap()
}

/// Each log comes back as it was or without the words. Whether they are gone.
#[track_caller]
fn is_readable(storage: &dyn ArchiveStorage) -> bool {
    let mut is_gone = false;
    let mut names = Vec::new();
    for file in &manifest(storage).files {
        let mut back = Vec::new();
        restore::whole(storage, file, &mut back, 1).unwrap();
        let own = log(&file.name);
        let (left, count) = if *file.name == *HOLDING { blanked(&own) } else { (own.clone(), 0) };
        assert!(back == own || back == left, "{}", file.name);
        if count > 0 {
            is_gone = back == left;
            assert_eq!(file.is_erased(), is_gone);
            assert_eq!(file.source_sha256() == file.sha256, !is_gone);
        } else {
            assert!(!file.is_erased());
        }
        names.push(file.name.to_string());
    }
    assert_eq!(names, NAMES);
    is_gone
}

/// All that is stored is named, and every part in it is one that is looked for there.
#[track_caller]
fn holds_nothing_else(storage: &dyn ArchiveStorage) {
    let manifest = manifest(storage);
    let named: BTreeSet<String> =
        manifest.files.iter().flat_map(|file| &file.objects).map(|object| object.to_string()).collect();
    let stored = storage.stored().unwrap().into_iter().map(|object| object.name);
    let segments: BTreeSet<String> = stored.filter(|name| name.ends_with(".binlogz")).collect();
    assert_eq!(segments, named);
    for name in &named {
        for part in &restore::open(storage, name).unwrap().index.logs {
            let mut files = manifest.files.iter();
            let is_live = |file: &FileEntry| {
                *file.name == *part.name && file.objects.iter().any(|object| **object == **name)
            };
            assert!(files.any(is_live), "{} in {name}", part.name);
        }
    }
}

#[test]
fn an_erasure_that_fails_anywhere_leaves_an_archive_that_the_next_run_finishes() {
    let mut steps = 0;
    loop {
        let dir = tempfile::tempdir().unwrap();
        let folder = archive(&dir);
        let now = SystemTime::now();
        let done = erased(&Failing::after(steps, &folder), GRACE, now);
        is_readable(&folder);
        erased(&folder, GRACE, now).unwrap();
        assert!(is_readable(&folder), "after {steps} steps");
        // A day later the former objects go, and what the killed run left behind.
        erased(&folder, GRACE, now + 2 * DAY).unwrap();
        assert!(is_readable(&folder), "after {steps} steps");
        holds_nothing_else(&folder);
        let problems = check::check(&folder, &manifest(&folder), 1).unwrap();
        assert!(problems.iter().all(|problem| problem.contains(": gap: ")), "{problems:?}");
        if done.is_ok_and(|done| done.failed.is_empty()) {
            break;
        }
        steps += 1;
    }
    assert!(steps > 15, "{steps}");
}

/// A removed log's part stays in an object that holds others: nobody looks for it there, but it is there.
#[test]
fn parts_of_logs_that_were_removed_go_too() {
    let dir = tempfile::tempdir().unwrap();
    let folder = archive(&dir);
    let before = manifest(&folder);
    remove::remove(&folder, before.clone(), &[HOLDING.to_owned()]).unwrap();
    let object = before.files[0].objects[0].clone();
    assert!(manifest(&folder).files[0].objects.contains(&object));
    let done = erased(&folder, Duration::ZERO, SystemTime::now()).unwrap();
    assert_eq!((done.logs.len(), done.repacked, done.before.len()), (0, 1, 1));
    assert!(manifest(&folder).files.iter().all(|file| !file.is_erased()));
    assert!(folder.get(&object).is_err());
    holds_nothing_else(&folder);
}

#[test]
fn what_was_erased_comes_back_neither_by_create_nor_by_copy_nor_by_merge() {
    let dir = tempfile::tempdir().unwrap();
    let folder = archive(&dir);
    let other = ArchiveFolder::new(dir.path().join("other"));
    let copied = |from: &ArchiveFolder, to: &ArchiveFolder| copy::plan(from, to)?.run(from, to, 1, &|_| {});
    copied(&folder, &other).unwrap();
    let done = erased(&folder, Duration::ZERO, SystemTime::now()).unwrap();
    assert_eq!((done.logs.len(), done.repacked, done.still_named.len()), (1, 1, 0));
    assert_eq!(done.logs[0].erasures[0].rows, 1);
    // Earlier programs would lose the note.
    let text = String::from_utf8(folder.manifest().unwrap().unwrap().to_vec()).unwrap();
    assert!(text.contains("\"version\": 16"), "{text}");
    // The log as it was is known.
    create(&folder, &NAMES).unwrap();
    assert!(is_readable(&folder));
    // An archive that still has it doesn't replace it.
    let error = copied(&other, &folder).unwrap_err().to_string();
    let expected = "binlog.000003: the log is with values that were erased from it in the other archive, expected without them";
    assert!(error.starts_with(expected), "{error}");
    copied(&folder, &other).unwrap();
    assert!(is_readable(&other));
    let options =
        merge::MergeOptions { level: Level::Fast, workers: 1, grace: GRACE, now: SystemTime::now() };
    merge::merge(&folder, options, &mut |_| {}).unwrap();
    assert!(is_readable(&folder));
    // The objects are lost: what create could store again are the values.
    for object in manifest(&folder).files.iter().flat_map(|file| &file.objects).collect::<BTreeSet<_>>() {
        std::fs::remove_file(dir.path().join("archive/objects").join(object)).unwrap();
    }
    let error = create(&folder, &[HOLDING]).unwrap_err().to_string();
    assert!(error.contains("create would bring back what was erased"), "{error}");
    prune(&other, Keep::All, Duration::ZERO, SystemTime::now()).unwrap();
    holds_nothing_else(&other);
}

/// Objects that can't be deleted are named, and go later.
#[test]
fn objects_that_are_locked_are_named_and_go_once_they_can() {
    let dir = tempfile::tempdir().unwrap();
    let folder = archive(&dir);
    let done = erased(&Failing::locked(&folder), Duration::ZERO, SystemTime::now()).unwrap();
    assert_eq!(done.swept.undeleted.len(), 1, "{:?}", done.swept.undeleted);
    assert!(is_readable(&folder));
    assert!(folder.get(&done.swept.undeleted[0].0).is_ok());
    prune(&folder, Keep::All, Duration::ZERO, SystemTime::now()).unwrap();
    holds_nothing_else(&folder);
}

#[test]
fn values_are_erased_from_an_encrypted_archive_and_in_object_storage() {
    let now = SystemTime::now();
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let folder = ArchiveFolder::new(dir.path().join("archive"));
    let encrypted = EncryptedStorage::new(folder, Some(KeySource::File(key)));
    create(&encrypted, &NAMES).unwrap();
    erased(&encrypted, Duration::ZERO, now).unwrap();
    assert!(is_readable(&encrypted));
    holds_nothing_else(&encrypted);

    let Some(server) = S3Server::start() else { return };
    let proxy = FaultProxy::start(&server, |_, _| RequestFault::Pass).unwrap();
    let storage = crate::s3::archive(proxy.settings());
    create(&storage, &NAMES).unwrap();
    erased(&storage, Duration::ZERO, now).unwrap();
    assert!(is_readable(&storage));
    holds_nothing_else(&storage);
}
