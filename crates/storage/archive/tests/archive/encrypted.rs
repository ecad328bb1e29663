//! Encrypted archives give logs back byte for byte to the owner of the key. Storage sees no row and can change nothing
//! unseen.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use binlogz_archive::format::Manifest;
use binlogz_archive::merge::{MergeOptions, merge};
use binlogz_archive::prune::{Keep, prune};
use binlogz_archive::storage::{ArchiveFolder, ArchiveStorage, EncryptedStorage, KeySource};
use binlogz_archive::{Error, Level, check, copy, restore};
use binlogz_testkit::random::Random;
use tempfile::TempDir;

use crate::faults::{create, flip, log, whole};

const NAMES: [&str; 2] = ["binlog.000003", "binlog.000004"];
const LOGS: [&str; 3] = ["binlog.000003", "binlog.000004", "binlog.000005"];

/// Writes a file that only its owner may read.
pub(crate) fn write_secret(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// A key of 32 bytes that all have this value, in a file.
fn key(dir: &TempDir, value: u8) -> KeySource {
    let path = dir.path().join(format!("key-{value}"));
    write_secret(&path, &format!("{}\n", format!("{value:02x}").repeat(32)));
    KeySource::File(path)
}

fn place(dir: &TempDir) -> PathBuf {
    dir.path().join("archive")
}

fn archive(dir: &TempDir, value: u8) -> EncryptedStorage<ArchiveFolder> {
    EncryptedStorage::new(ArchiveFolder::new(place(dir)), Some(key(dir, value)))
}

/// All files of an archive.
fn files(place: &Path) -> Vec<PathBuf> {
    let objects = fs::read_dir(place.join("objects")).unwrap().map(|entry| entry.unwrap().path());
    objects.chain([place.join("manifest.json")]).collect()
}

fn manifest(storage: &dyn ArchiveStorage) -> Manifest {
    Manifest::read(storage).unwrap().unwrap()
}

fn error(storage: &dyn ArchiveStorage) -> String {
    Manifest::read(storage).unwrap_err().to_string()
}

#[test]
fn logs_come_back_to_the_owner_of_the_key_alone() {
    let dir = tempfile::tempdir().unwrap();
    create(&archive(&dir, 7), &NAMES[..1]).unwrap();
    create(&archive(&dir, 7), &NAMES).unwrap();
    assert_eq!(whole(&archive(&dir, 7)), NAMES);
    assert!(archive(&dir, 7).is_encrypted().unwrap());
    let problems = check::check(&archive(&dir, 7), &manifest(&archive(&dir, 7)), 1).unwrap();
    assert_eq!(problems, Vec::<String>::new());

    let without = EncryptedStorage::new(ArchiveFolder::new(place(&dir)), None);
    assert!(matches!(Manifest::read(&without).unwrap_err(), Error::Locked { .. }));
    let line = error(&archive(&dir, 8));
    assert!(
        line.contains("key-8), expected ") && line.contains("which the archive is encrypted with"),
        "{line}"
    );
    let none = KeySource::File(dir.path().join("none"));
    assert!(
        error(&EncryptedStorage::new(ArchiveFolder::new(place(&dir)), Some(none)))
            .contains("none: No such file")
    );
    write_secret(&dir.path().join("key-9"), "too short");
    let short = KeySource::File(dir.path().join("key-9"));
    let line = error(&EncryptedStorage::new(ArchiveFolder::new(place(&dir)), Some(short)));
    assert!(line.contains("key-9 is 9 characters, expected 32 bytes"), "{line}");
    let failing = KeySource::Command("echo no such key >&2; exit 3".into());
    let line = error(&EncryptedStorage::new(ArchiveFolder::new(place(&dir)), Some(failing)));
    assert!(line.contains("exit status: 3: no such key"), "{line}");
    let base64 = KeySource::Command("echo BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=".into());
    assert_eq!(whole(&EncryptedStorage::new(ArchiveFolder::new(place(&dir)), Some(base64))), NAMES);
}

#[test]
fn storage_sees_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let seen = |place: &Path| {
        let has = |path: &PathBuf| {
            let bytes = fs::read(path).unwrap();
            ["sbtest", "segment-", "binlog.0000"]
                .iter()
                .any(|word| bytes.windows(word.len()).any(|bytes| bytes == word.as_bytes()))
        };
        files(place).iter().filter(|path| has(path)).count()
    };
    let plain = ArchiveFolder::new(dir.path().join("plain"));
    create(&plain, &NAMES[..1]).unwrap();
    assert_eq!(seen(&dir.path().join("plain")), 3, "the test finds it where it is");
    create(&archive(&dir, 7), &NAMES[..1]).unwrap();
    assert_eq!(seen(&place(&dir)), 0);
}

#[test]
fn a_bit_that_flips_anywhere_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let storage = archive(&dir, 7);
    create(&storage, &NAMES[..1]).unwrap();
    let before = manifest(&storage);
    let object = place(&dir).join("objects").join(&before.files[0].objects[0]);
    flip(&object, 60, |at| {
        let storage = archive(&dir, 7);
        let problems = check::check(&storage, &manifest(&storage), 1).unwrap();
        assert!(!problems.is_empty(), "a bit of byte {at} is not missed");
        let restored = restore::whole(&storage, &before.files[0], &mut Vec::new(), 1);
        assert!(restored.is_err(), "byte {at}");
    });
    // Of the manifest there is a copy.
    for file in ["manifest.json", "objects/manifest-copy.json"] {
        flip(&place(&dir).join(file), 100, |at| {
            let read = manifest(&archive(&dir, 7));
            assert!(read.files == before.files, "byte {at} of {file}");
            let problems = check::check(&archive(&dir, 7), &read, 1).unwrap();
            assert!(!problems.is_empty(), "a bit of byte {at} of {file} is not missed");
        });
    }
    assert_eq!(whole(&archive(&dir, 7)), NAMES[..1]);
}

/// Every flipped bit, of each bit of each file of a small archive, is noticed, and nothing but the log itself is ever
/// given back.
#[test]
#[ignore = "takes a minute; scripts/soak/archive.sh runs it"]
fn every_bit_that_flips_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let storage = archive(&dir, 7);
    create(&storage, &LOGS[..1]).unwrap();
    let before = manifest(&storage);
    let mut bits = 0;
    for path in files(&place(&dir)) {
        let bytes = fs::read(&path).unwrap();
        let is_segment = path.file_name().unwrap().to_str().unwrap().starts_with("segment-");
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bad).unwrap();
            let what = format!("bit {bit} of {}", path.display());
            let storage = archive(&dir, 7);
            let read = manifest(&storage);
            assert!(read.files == before.files, "{what}");
            let mut back = Vec::new();
            let restored = restore::whole(&storage, &read.files[0], &mut back, 1);
            assert_eq!(restored.is_err(), is_segment, "{what}");
            // Of a segment nothing is given that is not the log's: chunks are refused as a whole.
            assert!(log(LOGS[0]).starts_with(&back), "{what}");
            // To unpack everything each time would take long.
            if is_segment || bit % 64 == bit / 64 % 64 {
                let problems = check::check(&storage, &read, 1).unwrap();
                assert!(!problems.is_empty(), "{what} is not missed");
            }
            bits += 1;
        }
        fs::write(&path, bytes).unwrap();
    }
    println!("{bits} bits, each refused");
    assert_eq!(whole(&archive(&dir, 7)), LOGS[..1]);
}

#[test]
fn objects_that_are_cut_or_swapped_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let storage = archive(&dir, 7);
    let mut random = Random::new(3);
    let bytes: Vec<u8> = (0..300_000).map(|_| random.bits() as u8).collect();
    // Sizes around the edges of chunks, and ranges around them.
    for size in [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000] {
        let plain = &bytes[..size];
        storage.put("one", &mut |out| out.write_all(plain).map_err(Error::writing)).unwrap();
        let object = storage.get("one").unwrap();
        assert_eq!(object.size().unwrap(), size as u64);
        assert!(
            storage.stored().unwrap().iter().any(|stored| stored.name == "one" && stored.size == size as u64)
        );
        assert_eq!(object.read(0, size).unwrap(), plain);
        for _ in 0..20 {
            let from = random.below(size + 1);
            let to = from + random.below(size - from + 1);
            assert_eq!(
                object.read(from as u64, to - from).unwrap(),
                plain[from..to],
                "{from} to {to} of {size}"
            );
        }
        assert!(object.read(0, size + 1).is_err(), "a byte too many");
    }
    let (one, two) = (place(&dir).join("objects/one"), place(&dir).join("objects/two"));
    let stored = fs::read(&one).unwrap();
    fs::copy(&one, &two).unwrap();
    assert!(storage.get("two").unwrap().read(0, 10).is_err(), "another object's bytes");
    let end = stored.len() - 48;
    let missing_last = [&stored[..2 * 65_552], &stored[end..]].concat();
    fs::write(&one, missing_last).unwrap();
    assert!(storage.get("one").unwrap().read(65_536, 65_536).is_err(), "the last chunk is missing");
    let swapped = [&stored[65_552..2 * 65_552], &stored[..65_552], &stored[2 * 65_552..]].concat();
    fs::write(&one, swapped).unwrap();
    assert!(storage.get("one").unwrap().read(0, 65_536).is_err(), "chunks in another order");
    fs::write(&one, &stored[..40]).unwrap();
    assert!(storage.get("one").is_err(), "shorter than any");
}

#[test]
fn another_key_opens_the_archive_and_objects_stay() {
    let dir = tempfile::tempdir().unwrap();
    create(&archive(&dir, 7), &NAMES[..1]).unwrap();
    let before = manifest(&archive(&dir, 7));
    let object = place(&dir).join("objects").join(&before.files[0].objects[0]);
    let stored = fs::read(&object).unwrap();
    archive(&dir, 7).change_key(&key(&dir, 9)).unwrap();
    assert!(error(&archive(&dir, 7)).contains("which the archive is encrypted with"));
    assert_eq!(whole(&archive(&dir, 9)), NAMES[..1]);
    assert!(fs::read(&object).unwrap() == stored);
    create(&archive(&dir, 9), &NAMES).unwrap();
    assert_eq!(whole(&archive(&dir, 9)), NAMES);
    // The copy of the manifest has the new key too.
    fs::write(place(&dir).join("manifest.json"), "{").unwrap();
    assert_eq!(whole(&archive(&dir, 9)), NAMES);
    assert!(Manifest::read(&archive(&dir, 7)).is_err());
    let plain = EncryptedStorage::new(ArchiveFolder::new(dir.path().join("plain")), None);
    create(&plain, &NAMES[..1]).unwrap();
    assert!(plain.change_key(&key(&dir, 9)).unwrap_err().to_string().contains("not encrypted"));
}

/// If two runs begin an archive at once, each with a data key of its own, one must begin again.
#[test]
fn what_was_encrypted_for_another_archive_is_never_named() {
    let dir = tempfile::tempdir().unwrap();
    for plain in [false, true] {
        let _ = fs::remove_dir_all(place(&dir));
        let late = archive(&dir, 7);
        late.put("segment", &mut |out| out.write_all(b"bytes").map_err(Error::writing)).unwrap();
        match plain {
            true => create(&ArchiveFolder::new(place(&dir)), &NAMES[..1]).unwrap(),
            false => create(&archive(&dir, 7), &NAMES[..1]).unwrap(),
        }
        assert!(matches!(create(&late, &NAMES[1..]).unwrap_err(), Error::Changed), "plain: {plain}");
        assert_eq!(
            late.put_manifest(&b"{}".to_vec().into(), None).unwrap_err().to_string(),
            Error::Changed.to_string()
        );
    }
}

#[test]
fn an_encrypted_archive_is_copied_merged_and_pruned_as_any() {
    let dir = tempfile::tempdir().unwrap();
    let storage = archive(&dir, 7);
    LOGS.iter().for_each(|name| create(&storage, &[name]).unwrap());
    let copied = |to: &dyn ArchiveStorage| {
        let plan = copy::plan(&storage, to).unwrap();
        plan.run(&storage, to, 2, &|_| {}).unwrap().objects.len()
    };
    let other = EncryptedStorage::new(ArchiveFolder::new(dir.path().join("other")), Some(key(&dir, 9)));
    let plain = ArchiveFolder::new(dir.path().join("plain"));
    for to in [&other as &dyn ArchiveStorage, &plain] {
        assert_eq!((copied(to), copied(to)), (3, 0), "each object is copied once");
        assert_eq!(whole(to), LOGS);
    }
    let options =
        MergeOptions { level: Level::Fast, workers: 1, grace: Duration::ZERO, now: SystemTime::now() };
    assert!(merge(&other, options, &mut |_| {}).unwrap().logs > 1);
    assert_eq!(whole(&other), LOGS);
    let pruned = prune(&other, Keep::Bytes(1), Duration::ZERO, SystemTime::now()).unwrap();
    assert!(!pruned.logs.is_empty());
    assert_eq!(whole(&other).last().unwrap(), LOGS[2]);
}

/// An archive at a named place: the generation last seen is kept beside the key, too.
fn archive_at(dir: &TempDir, value: u8) -> EncryptedStorage<ArchiveFolder> {
    archive(dir, value).at(place(dir).to_string_lossy())
}

/// The manifest and its copy.
fn manifests(place: &Path) -> [Vec<u8>; 2] {
    ["manifest.json", "objects/manifest-copy.json"].map(|name| fs::read(place.join(name)).unwrap())
}

fn put_back(place: &Path, [manifest, copy]: &[Vec<u8>; 2]) {
    fs::write(place.join("manifest.json"), manifest).unwrap();
    fs::write(place.join("objects/manifest-copy.json"), copy).unwrap();
}

#[test]
fn an_older_manifest_that_is_put_back_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let generation = place(&dir).join("objects/manifest-generation");
    create(&archive_at(&dir, 7), &LOGS[..1]).unwrap();
    let (older, generation_then) = (manifests(&place(&dir)), fs::read(&generation).unwrap());
    create(&archive_at(&dir, 7), &LOGS[..2]).unwrap();
    let newer = manifests(&place(&dir));
    assert_eq!(whole(&archive_at(&dir, 7)), LOGS[..2]);
    // An older copy alone hides nothing, and is told by a check.
    put_back(&place(&dir), &[newer[0].clone(), older[1].clone()]);
    assert_eq!(whole(&archive_at(&dir, 7)), LOGS[..2]);
    let manifest = Manifest::read(&archive_at(&dir, 7)).unwrap().unwrap();
    let problems = check::check(&archive_at(&dir, 7), &manifest, 1).unwrap();
    let is_of_copy = |problem: &String| {
        problem.starts_with("copy of the manifest: ") && problem.contains("an older manifest was put back")
    };
    assert!(problems.iter().any(is_of_copy), "{problems:?}");
    // The manifest, and both.
    for manifest in [[&older[0], &newer[1]], [&older[0], &older[1]]] {
        put_back(&place(&dir), &manifest.map(Clone::clone));
        for storage in [archive_at(&dir, 7), archive(&dir, 7)] {
            let line = error(&storage);
            assert!(line.contains("1: an older manifest was put back, expected 2 or later"), "{line}");
            assert!(matches!(create(&storage, &LOGS), Err(Error::Unexpected { .. })));
        }
    }
    // A damaged manifest and an older copy are no way around it.
    put_back(&place(&dir), &[b"damaged".to_vec(), older[1].clone()]);
    assert!(Manifest::read(&archive_at(&dir, 7)).is_err());
    // All of the archive is put back: what is beside the key knows better; another reader can't.
    put_back(&place(&dir), &older);
    fs::write(&generation, &generation_then).unwrap();
    let line = error(&archive_at(&dir, 7));
    assert!(
        line.contains("if it was put back on purpose, remove ") && line.contains("key-7.generation-"),
        "{line}"
    );
    assert_eq!(whole(&archive(&dir, 7)), LOGS[..1]);
    // As it was, it is read, and goes on.
    put_back(&place(&dir), &newer);
    create(&archive_at(&dir, 7), &LOGS).unwrap();
    assert_eq!(whole(&archive_at(&dir, 7)), LOGS);
    // The generation is authenticated: it can't be written over.
    let text = String::from_utf8_lossy(&newer[0]).into_owned();
    let at = text.find("\"generation\":2").unwrap();
    let mut forged = newer[0].clone();
    forged[at + 13] = b'9';
    put_back(&place(&dir), &[forged.clone(), forged]);
    assert!(Manifest::read(&archive_at(&dir, 7)).is_err());
}

#[test]
fn another_key_and_a_copy_of_the_folder_are_no_older_manifests() {
    let dir = tempfile::tempdir().unwrap();
    create(&archive_at(&dir, 7), &LOGS[..1]).unwrap();
    archive_at(&dir, 7).change_key(&key(&dir, 8)).unwrap();
    assert_eq!(whole(&archive_at(&dir, 8)), LOGS[..1]);
    // A copy of the folder, made with cp, that falls behind.
    let other = dir.path().join("other");
    fs::create_dir_all(other.join("objects")).unwrap();
    for file in files(&place(&dir)) {
        let to = if file.ends_with("manifest.json") { other.clone() } else { other.join("objects") };
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
    create(&archive_at(&dir, 8), &LOGS).unwrap();
    let other =
        EncryptedStorage::new(ArchiveFolder::new(&other), Some(key(&dir, 8))).at(other.to_string_lossy());
    assert_eq!(whole(&other), LOGS[..1]);
    assert_eq!(whole(&archive_at(&dir, 8)), LOGS);
}

#[test]
fn a_key_file_that_others_may_use_is_no_key() {
    let dir = tempfile::tempdir().unwrap();
    create(&archive(&dir, 7), &LOGS[..1]).unwrap();
    let path = dir.path().join("key-7");
    let source = Some(KeySource::File(path.clone()));
    for (mode, is_refused) in
        [(0o644, true), (0o640, true), (0o620, true), (0o601, true), (0o600, false), (0o400, false)]
    {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let read = Manifest::read(&EncryptedStorage::new(ArchiveFolder::new(place(&dir)), source.clone()));
        assert_eq!(read.is_err(), is_refused, "{mode:o}");
        if let Err(error) = read {
            let line = error.to_string();
            assert!(
                line.contains(&format!("is {mode:04o}: others may use it, expected 0600: chmod 600 ")),
                "{line}"
            );
        }
    }
}
