//! A manifest of many logs is in parts: a run that adds a log writes few bytes, and damage, killed runs and runs at the same time cost nothing.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::storage::{
    ArchiveFolder, ArchiveStorage, EncryptedStorage, KeySource, ListedObject, ManifestBytes, ReadRange,
};
use binlogz_archive::{Error, Result, check, remove};
use tempfile::TempDir;

use crate::faults::{Failing, create, flip, names_of};

const LOG: &str = "binlog.000003";
/// More than a manifest itself has.
const MANY: usize = 2_000;

/// `count` entries like this one, with numbered names.
pub(crate) fn entries(model: &FileEntry, count: usize) -> Vec<FileEntry> {
    let one = |number: usize| FileEntry {
        name: format!("many.{number:06}").try_into().unwrap(),
        gtids: format!("11111111-2222-3333-4444-555555555555:{number}"),
        sha256: format!("{number:064x}"),
        ..model.clone()
    };
    (1..=count).map(one).collect()
}

fn read(storage: &dyn ArchiveStorage) -> Manifest {
    Manifest::read(storage).unwrap().unwrap()
}

/// An archive of a log, and entries of this many more.
fn archive(storage: &dyn ArchiveStorage, count: usize) -> Manifest {
    create(storage, &[LOG]).unwrap();
    let mut manifest = read(storage);
    let more = entries(&manifest.files[0], count);
    manifest.files.extend(more);
    manifest.write(storage).unwrap();
    manifest
}

fn folder(dir: &TempDir) -> ArchiveFolder {
    ArchiveFolder::new(dir.path().join("archive"))
}

/// Paths of the manifest's parts, replaced ones that still exist included.
fn parts(dir: &TempDir) -> Vec<PathBuf> {
    let objects =
        fs::read_dir(dir.path().join("archive/objects")).unwrap().map(|entry| entry.unwrap().path());
    let is_part = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("manifest-part-");
    let mut parts: Vec<_> = objects.filter(is_part).collect();
    parts.sort();
    parts
}

fn head_size(dir: &TempDir) -> u64 {
    fs::metadata(dir.path().join("archive/manifest.json")).unwrap().len()
}

/// A manifest as programs before wrote it: in one piece.
fn write_in_one_piece(place: &Path, files: &[FileEntry]) {
    let files = serde_json::to_string_pretty(files).unwrap().replace('\n', "\n  ");
    let text =
        format!("{{\n  \"format\": \"binlogz archive\",\n  \"version\": 8,\n  \"files\": {files}\n}}\n");
    let crc32 = crc32fast::hash(text.as_bytes());
    let text = text.replace("\n}\n", &format!(",\n  \"crc32\": {crc32}\n}}\n"));
    fs::write(place.join("manifest.json"), &text).unwrap();
    fs::write(place.join("objects/manifest-copy.json"), text).unwrap();
}

#[test]
fn a_run_writes_few_bytes_and_every_run_reads_all_logs() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(&dir);
    let before = archive(&folder, MANY);
    assert_eq!(read(&folder).files, before.files);
    assert_eq!(parts(&dir).len(), 2, "a part and its copy");
    assert!(head_size(&dir) < 30_000, "{}", head_size(&dir));
    let text = fs::read_to_string(dir.path().join("archive/manifest.json")).unwrap();
    assert!(text.contains("\"version\": 14") && text.contains("\"manifest-part-"), "{text}");
    // One more log after the other: parts are stored now and then, and nothing grows without bound.
    let mut manifest = read(&folder);
    let more = entries(&manifest.files[0], MANY + 600);
    let (mut stored, mut largest) = (0, 0);
    for entry in &more[MANY..] {
        manifest.files.push(entry.clone());
        let before = parts(&dir).len();
        manifest.write(&folder).unwrap();
        stored += usize::from(parts(&dir).len() != before);
        largest = largest.max(head_size(&dir));
    }
    assert_eq!(read(&folder).files, manifest.files);
    assert_eq!(stored, 2);
    assert!(largest < 200_000, "{largest}");
    // Replaced parts stay for a reader, and are no orphans.
    assert_eq!(manifest.retired.len(), parts(&dir).len() - 4, "two parts and their copies");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
    assert_eq!(names_of(&remove::orphans(&folder, later).unwrap()), Vec::<String>::new());
    // They go with the next part an hour later.
    for retired in &mut manifest.retired {
        retired.since -= 3600;
    }
    let far = entries(&manifest.files[0], MANY + 900);
    manifest.files.extend_from_slice(&far[MANY + 600..]);
    manifest.write(&folder).unwrap();
    let named = parts(&dir).len() - manifest.retired.len();
    assert!(named <= 6 && manifest.retired.len() <= 4, "{named} {:?}", manifest.retired);
    assert_eq!(read(&folder).files, manifest.files);
    // The oldest half goes, then nearly all.
    manifest.files.drain(..MANY / 2);
    manifest.write(&folder).unwrap();
    assert_eq!(read(&folder).files, manifest.files);
    manifest.files.drain(..manifest.files.len() - 10);
    manifest.write(&folder).unwrap();
    assert_eq!(read(&folder).files, manifest.files);
    let text = fs::read_to_string(dir.path().join("archive/manifest.json")).unwrap();
    assert!(text.contains("\"version\": 13") && !text.contains("\"parts\""), "{text}");
}

#[test]
fn a_manifest_in_one_piece_is_read_and_its_next_run_divides_it() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(&dir);
    create(&folder, &[LOG]).unwrap();
    let mut files = read(&folder).files;
    files.extend(entries(&files[0], MANY));
    write_in_one_piece(&dir.path().join("archive"), &files);
    assert!(head_size(&dir) > 900_000, "{}", head_size(&dir));
    assert_eq!(read(&folder).files, files);
    assert!(check_lines(&folder).is_empty(), "{:?}", check_lines(&folder));
    create(&folder, &["binlog.000004"]).unwrap();
    let now = read(&folder).files;
    assert_eq!((now.len(), &now[1], head_size(&dir) < 40_000), (files.len() + 1, &now[1], true));
    assert!(files.iter().all(|file| now.contains(file)));
}

/// The problems of the manifest; gaps are left out, since the entries' logs aren't there.
fn check_lines(storage: &dyn ArchiveStorage) -> Vec<String> {
    let mut manifest = read(storage);
    manifest.files.truncate(1);
    let mut problems = check::check(storage, &manifest, 1).unwrap();
    problems.retain(|problem| !problem.contains(": gap: "));
    problems
}

#[test]
fn damage_to_a_part_costs_nothing_and_the_next_run_mends_it() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(&dir);
    let manifest = archive(&folder, MANY);
    assert_eq!(check_lines(&folder), Vec::<String>::new());
    for part in parts(&dir) {
        flip(&part, 4, |at| {
            assert!(read(&folder).files == manifest.files, "byte {at} of {}", part.display());
            let [problem] =
                check_lines(&folder).try_into().unwrap_or_else(|lines| panic!("byte {at}: {lines:?}"));
            let name = part.file_name().unwrap().to_str().unwrap();
            assert!(problem.contains(name) && problem.ends_with("it is there a second time"), "{problem}");
        });
    }
    let [_, part] = parts(&dir).try_into().unwrap();
    fs::write(&part, b"damaged").unwrap();
    let mut again = read(&folder);
    again.files.extend(entries(&manifest.files[0], MANY + 1).pop());
    again.write(&folder).unwrap();
    // The damaged one is replaced by one that has a log more.
    assert_eq!((check_lines(&folder), parts(&dir).len()), (Vec::new(), 4));
    // Both: an error names the part, and no run takes the rest for all.
    parts(&dir).iter().for_each(|part| fs::write(part, b"damaged").unwrap());
    let error = Manifest::read(&folder).unwrap_err().to_string();
    assert!(error.starts_with("manifest-part-") && error.contains("SHA-256 is "), "{error}");
    assert!(create(&folder, &["binlog.000004"]).is_err());
    fs::remove_file(&parts(&dir)[0]).unwrap();
    assert!(Manifest::read(&folder).is_err());
}

#[test]
fn a_run_that_fails_anywhere_leaves_all_logs() {
    let (mut steps, source) = (0, tempfile::tempdir().unwrap());
    // One that its next run divides.
    let folder = folder(&source);
    create(&folder, &[LOG]).unwrap();
    let mut files = read(&folder).files;
    files.extend(entries(&files[0], 300));
    loop {
        write_in_one_piece(&source.path().join("archive"), &files);
        let more = entries(&files[0], 301).pop().unwrap();
        let add = |storage: &dyn ArchiveStorage| {
            let mut manifest = Manifest::read(storage)?.unwrap();
            if manifest.files.iter().all(|file| file.name != more.name) {
                manifest.files.push(more.clone());
                manifest.write(storage)?;
            }
            Ok::<_, Error>(())
        };
        let done = add(&Failing::after(steps, &folder));
        let now = read(&folder).files;
        let count = now.len() - files.len();
        assert!(count <= 1 && files.iter().all(|file| now.contains(file)), "after {steps} steps");
        add(&folder).unwrap();
        assert_eq!(read(&folder).files.len(), files.len() + 1);
        assert_eq!(check_lines(&folder), Vec::<String>::new(), "after {steps} steps");
        if done.is_ok() {
            break;
        }
        steps += 1;
    }
    assert!(steps > 20, "{steps}");
}

/// A storage on which another run replaces the manifest as soon as it was read.
struct Busy<'a> {
    storage: &'a ArchiveFolder,
    others: Mutex<Vec<Box<dyn FnOnce() + Send + 'a>>>,
}

impl ArchiveStorage for Busy<'_> {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        self.storage.put(name, write)
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        self.storage.get(name)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.storage.delete(name)
    }

    fn stored(&self) -> Result<Vec<ListedObject>> {
        self.storage.stored()
    }

    fn manifest(&self) -> Result<Option<ManifestBytes>> {
        let manifest = self.storage.manifest();
        let other = self.others.lock().unwrap().pop();
        if let Some(other) = other {
            other();
        }
        manifest
    }

    fn put_manifest(&self, manifest: &ManifestBytes, replaces: Option<&[u8]>) -> Result<()> {
        self.storage.put_manifest(manifest, replaces)
    }
}

#[test]
fn a_reader_whose_parts_are_replaced_meanwhile_reads_those_of_now() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(&dir);
    let mut manifest = archive(&folder, MANY);
    let before = parts(&dir);
    // So many that the earlier part is replaced by a larger one.
    let more = entries(&manifest.files[0], MANY + 1_500);
    let replaced = || {
        manifest.files.extend_from_slice(&more[MANY..]);
        manifest.write(&folder).unwrap();
        // Long ago, as far as this reader can tell.
        before.iter().for_each(|part| fs::remove_file(part).unwrap());
    };
    let busy = Busy { storage: &folder, others: Mutex::new(vec![Box::new(replaced)]) };
    assert_eq!(read(&busy).files.len(), 1 + MANY + 1_500);

    // A part that is gone, and nobody has replaced it.
    parts(&dir).iter().for_each(|part| fs::remove_file(part).unwrap());
    let error = Manifest::read(&folder).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn parts_of_an_encrypted_archive_are_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    let key = |value: &str| {
        crate::encrypted::write_secret(&dir.path().join(value), &value.repeat(32));
        KeySource::File(dir.path().join(value))
    };
    let open = |value: &str| EncryptedStorage::new(folder(&dir), Some(key(value)));
    let manifest = archive(&open("07"), MANY);
    assert_eq!(read(&open("07")).files, manifest.files);
    assert_eq!(parts(&dir).len(), 2);
    for part in parts(&dir) {
        let bytes = fs::read(&part).unwrap();
        // zstd's magic, and what entries have.
        assert!(!bytes.windows(4).any(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd] || bytes == b"many"));
        flip(&part, 2, |_| assert!(read(&open("07")).files == manifest.files));
    }
    let stored: Vec<_> = parts(&dir).iter().map(|part| fs::read(part).unwrap()).collect();
    open("07").change_key(&key("09")).unwrap();
    assert_eq!(read(&open("09")).files, manifest.files);
    assert!(parts(&dir).iter().map(|part| fs::read(part).unwrap()).eq(stored));
    assert!(Manifest::read(&open("07")).is_err());
}

/// Only its manifest: 290 logs of the same size, of which a part has the oldest 258.
#[test]
fn the_manifest_of_version_10_is_read() {
    let fixture = ArchiveFolder::new(format!("{}/tests/fixtures/version-10", env!("CARGO_MANIFEST_DIR")));
    let manifest = read(&fixture);
    let names = manifest.files.iter().map(|file| file.name.to_string());
    assert!(names.eq((1..=290).map(|number| format!("binlog.{number:06}"))));
    assert!(manifest.files.iter().all(|file| file.size == 7361 && file.objects.len() == 1));
    let text = String::from_utf8(fixture.manifest().unwrap().unwrap().to_vec()).unwrap();
    assert_eq!(text.matches("\"name\"").count(), 32);
}
