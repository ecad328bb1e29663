//! A manifest proves nothing. Before an archive says that it has a log, it looks for the log's objects; missing or
//! damaged ones are stored again, and the time of the check is written down.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::format::Manifest;
use binlogz_archive::last_check::{self, LastChecks};
use binlogz_archive::presence::{self, CheckDepth, Inspector};
use binlogz_archive::prune::{Keep, prune};
use binlogz_archive::storage::{ArchiveFolder, ArchiveStorage, EncryptedStorage, KeySource};
use binlogz_archive::{Error, Level, check, restore};
use binlogz_testkit::builder::{LogBuilder, Release};

use crate::encrypted::write_secret;
use crate::faults::{create, log, whole};

const LOGS: [&str; 2] = ["binlog.000003", "binlog.000004"];

fn object_of(folder: &ArchiveFolder, dir: &Path, log: usize) -> PathBuf {
    dir.join("objects").join(&Manifest::read(folder).unwrap().unwrap().files[log].objects[0])
}

/// Gives the logs once more, and returns what is said of each.
fn given_again(storage: &dyn ArchiveStorage, depth: CheckDepth) -> Vec<String> {
    let mut said = Vec::new();
    let mut told = |created: &CreateOutcome| {
        said.push(match created {
            CreateOutcome::Added(entry) => format!("{} added", entry.name),
            CreateOutcome::Known(entry) => format!("{} known", entry.name),
            CreateOutcome::StoredAgain(entry, why) => format!("{} again: {why}", entry.name),
        });
    };
    let mut creator = Creator::new(storage, 1, &mut told).unwrap();
    creator.depth(depth);
    LOGS.iter().for_each(|name| creator.add_file(name, Arc::new(log(name)), None).unwrap());
    creator.finish().unwrap();
    said
}

#[test]
fn a_log_whose_object_is_missing_or_damaged_is_stored_again() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage, &str); 4] = [
        ("gone", |path| fs::remove_file(path).unwrap(), "is missing"),
        ("empty", |path| fs::write(path, "").unwrap(), "is damaged"),
        ("cut", |path| fs::write(path, &fs::read(path).unwrap()[..500]).unwrap(), "is damaged"),
        ("zeros", |path| fs::write(path, vec![0; fs::read(path).unwrap().len()]).unwrap(), "is damaged"),
    ];
    for (what, damage, expected) in damages {
        // Both logs in one object, and each in its own.
        for together in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let folder = ArchiveFolder::new(dir.path());
            match together {
                true => create(&folder, &LOGS).unwrap(),
                false => LOGS.iter().for_each(|name| create(&folder, &[name]).unwrap()),
            }
            assert_eq!(given_again(&folder, CheckDepth::Presence), LOGS.map(|name| format!("{name} known")));
            damage(&object_of(&folder, dir.path(), 1));
            let said = given_again(&folder, CheckDepth::Presence);
            let again =
                said.iter().filter(|line| line.contains(" again: segment-") && line.contains(expected));
            assert_eq!(again.count(), if together { 2 } else { 1 }, "{what}: {said:?}");
            assert_eq!(whole(&folder), LOGS, "{what}");
            assert_eq!(given_again(&folder, CheckDepth::Hash), LOGS.map(|name| format!("{name} known")));
            let manifest = Manifest::read(&folder).unwrap().unwrap();
            assert_eq!(check::check(&folder, &manifest, 1).unwrap(), Vec::<String>::new(), "{what}");
        }
    }
}

#[test]
fn bytes_that_changed_in_an_object_are_found_where_it_is_hashed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = ArchiveFolder::new(dir.path());
    create(&folder, &LOGS).unwrap();
    let path = object_of(&folder, dir.path(), 0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[400] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(given_again(&folder, CheckDepth::Presence), LOGS.map(|name| format!("{name} known")));
    let said = given_again(&folder, CheckDepth::Hash);
    assert!(said.iter().all(|line| line.contains("again: ") && line.contains("SHA-256")), "{said:?}");
    assert_eq!(whole(&folder), LOGS);
}

#[test]
fn an_archive_that_can_not_be_asked_is_an_error_and_nothing_is_stored_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = ArchiveFolder::new(dir.path());
    create(&folder, &LOGS).unwrap();
    // Not a file: reading it fails, but it is there.
    let path = object_of(&folder, dir.path(), 0);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let stored = || {
        let objects = fs::read_dir(dir.path().join("objects")).unwrap();
        let mut names: Vec<_> = objects.map(|object| object.unwrap().file_name()).collect();
        names.sort();
        (names, fs::read(dir.path().join("manifest.json")).unwrap())
    };
    let before = stored();
    let mut told = |created: &CreateOutcome| panic!("{created:?}");
    let mut creator = Creator::new(&folder, 1, &mut told).unwrap();
    let added = creator.add_file(LOGS[0], Arc::new(log(LOGS[0])), None);
    assert!(matches!(added, Err(Error::Io { .. })), "{added:?}");
    drop(creator);
    assert!(stored() == before, "something was stored");
}

#[test]
fn objects_of_every_version_are_seen_to_be_there() {
    for version in [1, 2, 3, 5, 6, 8, 9, 11, 13] {
        let fixture =
            ArchiveFolder::new(format!("{}/tests/fixtures/version-{version}", env!("CARGO_MANIFEST_DIR")));
        let manifest = Manifest::read(&fixture).unwrap().unwrap();
        for depth in [CheckDepth::Presence, CheckDepth::Hash] {
            let mut inspector = Inspector::new(&fixture, depth);
            for file in &manifest.files {
                assert_eq!(inspector.problem(file).unwrap(), None, "version {version}: {}", file.name);
            }
            assert_eq!(check::damage(&fixture, &manifest, depth, 1).unwrap(), Vec::<String>::new());
        }
        assert!(presence::missing(&fixture, &manifest.files).unwrap().is_none(), "version {version}");
    }
}

#[test]
fn a_listing_tells_what_is_missing_or_too_small() {
    let dir = tempfile::tempdir().unwrap();
    let folder = ArchiveFolder::new(dir.path());
    LOGS.iter().for_each(|name| create(&folder, &[name]).unwrap());
    let files = Manifest::read(&folder).unwrap().unwrap().files;
    assert!(presence::missing(&folder, &files).unwrap().is_none());
    let path = object_of(&folder, dir.path(), 1);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 4]).unwrap();
    let (file, why) = presence::missing(&folder, &files).unwrap().unwrap();
    assert!(file.name == LOGS[1] && why.contains(" bytes, expected at least "), "{why}");
    fs::remove_file(&path).unwrap();
    let (file, why) = presence::missing(&folder, &files).unwrap().unwrap();
    assert!(file.name == LOGS[1] && why.ends_with("is missing"), "{why}");
    assert!(presence::missing(&folder, &files[..1]).unwrap().is_none());
}

#[test]
fn a_check_is_written_down_and_stays_while_the_archive_changes() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    write_secret(&key, &"07".repeat(32));
    for key in [None, Some(KeySource::File(key))] {
        let place = dir.path().join(if key.is_some() { "encrypted" } else { "plain" });
        let open = || EncryptedStorage::new(ArchiveFolder::new(&place), key.clone());
        create(&open(), &LOGS[..1]).unwrap();
        assert_eq!(LastChecks::read(&open()).unwrap().deepest(), None);
        let manifest = Manifest::read(&open()).unwrap().unwrap();
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        last_check::note(&open(), &manifest, CheckDepth::Content, 0, then).unwrap();
        create(&open(), &LOGS).unwrap();
        // Long after, what no log is in is left behind.
        prune(&open(), Keep::All, Duration::ZERO, SystemTime::now() + Duration::from_secs(30 * 86_400))
            .unwrap();
        let checks = LastChecks::read(&open()).unwrap();
        let check = checks.deepest().unwrap();
        assert_eq!((check.time, check.depth, check.logs), (1_700_000_000, CheckDepth::Content, 1));
        assert_eq!(check.last_log.as_ref().unwrap(), LOGS[0]);
        assert!(checks.damage().is_none());
        let path = place.join("objects/last-check.json");
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert!(LastChecks::read(&open()).is_err(), "byte {at}");
        }
        // A damaged record says nothing, and the next check replaces it.
        let manifest = Manifest::read(&open()).unwrap().unwrap();
        last_check::note(&open(), &manifest, CheckDepth::Presence, 3, SystemTime::now()).unwrap();
        assert_eq!(LastChecks::read(&open()).unwrap().damage().unwrap().problems, 3);
    }
}

/// The ways in which a log is cut: where, and the error.
#[test]
fn a_torn_closed_log_is_refused_and_its_whole_part_is_kept_as_a_part() {
    let mut builder = LogBuilder::new(Release::MYSQL_9_7);
    builder.transaction(&[b"first"]);
    let first = builder.offset() as usize;
    builder.transaction(&[b"second", &[b'x'; 400]]);
    let bytes = builder.take();
    let case = format!("{}/tests/fixtures/torn-closed.000004", env!("CARGO_MANIFEST_DIR"));
    let case = fs::read(case).unwrap();
    let cuts = [
        ("inside a header", bytes[..first + 7].to_vec()),
        ("inside a payload", bytes[..bytes.len() - 200].to_vec()),
        ("one byte short", bytes[..bytes.len() - 1].to_vec()),
        ("inside the last checksum", bytes[..bytes.len() - 3].to_vec()),
        ("magic alone", bytes[..4].to_vec()),
        ("zeros at the end", [&bytes[..], &[0; 64]].concat()),
        ("a real one", case),
    ];
    for (what, torn) in cuts {
        let dir = tempfile::tempdir().unwrap();
        let folder = ArchiveFolder::new(dir.path());
        let mut told = |_: &_| {};
        let mut creator = Creator::new(&folder, 1, &mut told).unwrap();
        let name = "binlog.000004";
        let refused = creator.add_file(name, Arc::new(torn.clone()), None);
        assert!(matches!(refused, Err(Error::Torn(_))), "{what}: {refused:?}");
        creator.add_active(name, Arc::new(torn.clone()), None).unwrap();
        let manifest = creator.finish().unwrap();
        let entry = &manifest.files[0];
        assert!(entry.active_size.is_some_and(|size| size <= torn.len() as u64), "{what}: {entry:?}");
        let mut back = Vec::new();
        restore::whole(&folder, entry, &mut back, 1).unwrap();
        // All but the flag that says it is a part.
        let same = |bytes: &[u8]| bytes.get(25..back.len()).unwrap_or_default().to_vec();
        assert!(back.len() as u64 == entry.size && same(&back) == same(&torn), "{what}");
        if what == "zeros at the end" {
            assert_eq!(back.len(), bytes.len(), "{what}");
        }
        // The whole log takes its place.
        if what != "a real one" {
            let mut told = |_: &_| {};
            let mut creator = Creator::new(&folder, 1, &mut told).unwrap();
            creator.add_file(name, Arc::new(bytes.clone()), None).unwrap();
            assert_eq!(creator.finish().unwrap().files[0].active_size, None, "{what}");
        }
    }
}

#[test]
fn an_event_larger_than_blocks_is_compressed_at_every_level() {
    let log = LogBuilder::new(Release::MYSQL_9_7).transaction(&[&vec![b'x'; 20 << 20]]).take();
    for level in [Level::Fast, Level::Default] {
        let dir = tempfile::tempdir().unwrap();
        let folder = ArchiveFolder::new(dir.path());
        let mut told = |_: &_| {};
        let mut creator = Creator::new(&folder, 2, &mut told).unwrap();
        creator.level(level);
        creator.add("binlog.000001", Arc::new(log.clone())).unwrap();
        let manifest = creator.finish().unwrap();
        let file = &manifest.files[0];
        assert!(file.packed_size < 100_000, "{level:?}: {} bytes of {}", file.packed_size, log.len());
        let mut back = Vec::new();
        restore::whole(&folder, file, &mut back, 2).unwrap();
        assert!(back == log, "{level:?}");
    }
}
