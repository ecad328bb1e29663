//! Taking logs out of an archive leaves the rest whole, whatever ends the run, and readers that have begun finish.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use binlogz_archive::create::Creator;
use binlogz_archive::format::Manifest;
use binlogz_archive::merge::{self, MergeOptions, MergeSummary, merge};
use binlogz_archive::prune::{Keep, plan, prune};
use binlogz_archive::storage::{ArchiveFolder, ArchiveStorage};
use binlogz_archive::{Error, Level, Result, check, copy, remove, restore};

use crate::faults::{Failing, log, whole};

const NAMES: [&str; 3] = ["binlog.000003", "binlog.000004", "binlog.000005"];
const GRACE: Duration = Duration::from_secs(3600);

/// An archive with a segment for each log.
fn archive(dir: &tempfile::TempDir) -> ArchiveFolder {
    let folder = ArchiveFolder::new(dir.path().join("archive"));
    NAMES.iter().for_each(|name| add(&folder, name));
    folder
}

fn add(storage: &dyn ArchiveStorage, name: &str) {
    let mut told = |_: &_| {};
    let mut creator = Creator::new(storage, 1, &mut told).unwrap();
    creator.level(Level::Fast);
    creator.add(name, Arc::new(log(name))).unwrap();
    creator.finish().unwrap();
}

/// A copy of the archive in another folder.
fn copy_of(folder: &Path, to: &Path) -> ArchiveFolder {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to.join("objects")).unwrap();
    for file in ["manifest.json"].into_iter().map(PathBuf::from).chain(
        fs::read_dir(folder.join("objects"))
            .unwrap()
            .map(|file| Path::new("objects").join(file.unwrap().file_name())),
    ) {
        fs::copy(folder.join(&file), to.join(&file)).unwrap();
    }
    ArchiveFolder::new(to)
}

fn manifest(storage: &dyn ArchiveStorage) -> Manifest {
    Manifest::read(storage).unwrap().unwrap()
}

/// Keeps the last log.
fn keep(storage: &dyn ArchiveStorage) -> Keep {
    let gtids = manifest(storage).files.last().unwrap().gtid_set().unwrap();
    let (tsid, list) = gtids.iter().next().unwrap();
    Keep::After(format!("{tsid}:{}", list[0].start()).parse().unwrap())
}

/// Every block and every SHA-256. The logs are not all of their server, so they have gaps.
#[track_caller]
fn is_whole(storage: &dyn ArchiveStorage) {
    let mut problems = check::check(storage, &manifest(storage), 1).unwrap();
    problems.retain(|problem| !problem.contains(": gap: "));
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn a_reader_that_has_begun_ends_and_a_late_one_is_told_why() {
    let dir = tempfile::tempdir().unwrap();
    let folder = archive(&dir);
    let now = SystemTime::now();
    let begun = manifest(&folder);
    let pruned = prune(&folder, keep(&folder), GRACE, now).unwrap();
    assert_eq!((pruned.logs.len(), pruned.objects.len(), pruned.retired.len()), (2, 2, 0));
    assert_eq!(whole(&folder), NAMES[2..]);
    let read = |number: usize| {
        let mut back = Vec::new();
        restore::whole(&folder, &begun.files[number], &mut back, 1)
            .map(|()| assert!(back == log(NAMES[number])))
    };
    read(0).unwrap();
    // A log that is archived again is in its object again.
    add(&folder, NAMES[1]);
    let later = now + GRACE;
    let pruned = prune(&folder, keep(&folder), GRACE, later - Duration::from_secs(1)).unwrap();
    assert_eq!((pruned.logs.len(), pruned.retired.len()), (1, 0));
    let pruned = prune(&folder, keep(&folder), GRACE, later).unwrap();
    assert_eq!((pruned.logs.len(), pruned.retired.len()), (0, 1));
    assert!(matches!(read(0), Err(Error::Gone { .. })), "{:?}", read(0));
    read(1).unwrap();
    let pruned = prune(&folder, keep(&folder), GRACE, later + GRACE).unwrap();
    assert_eq!((pruned.retired.len(), folder.stored().unwrap().len()), (1, 2));
    assert_eq!(whole(&folder), NAMES[2..]);
    let text = String::from_utf8(folder.manifest().unwrap().unwrap().to_vec()).unwrap();
    assert!(text.contains("\"version\": 13") && !text.contains("retired"), "{text}");
    is_whole(&folder);
}

#[test]
fn without_a_manifest_no_object_is_taken_for_one_that_holds_no_log() {
    let dir = tempfile::tempdir().unwrap();
    archive(&dir);
    let folder = ArchiveFolder::new(dir.path().join("archive"));
    let keep = keep(&folder);
    fs::remove_file(dir.path().join("archive/manifest.json")).unwrap();
    let objects = folder.stored().unwrap().len();
    let in_a_week = SystemTime::now() + 7 * Duration::from_secs(86_400);
    let refused = |why: String| assert_eq!(why, "is no archive: it has no manifest.json");
    refused(plan(&folder, keep, GRACE, in_a_week).unwrap_err().to_string());
    refused(prune(&folder, keep, GRACE, in_a_week).unwrap_err().to_string());
    refused(remove::orphans(&folder, in_a_week).unwrap_err().to_string());
    assert_eq!(folder.stored().unwrap().len(), objects);
}

#[test]
fn a_prune_that_fails_anywhere_leaves_the_archive_whole_and_the_next_one_ends_it() {
    for grace in [Duration::ZERO, GRACE] {
        let dir = tempfile::tempdir().unwrap();
        archive(&dir);
        let mut steps = 0;
        loop {
            let folder = copy_of(&dir.path().join("archive"), &dir.path().join("copy"));
            // An object that a killed run left behind a day ago.
            let old = SystemTime::now() - 2 * Duration::from_secs(86_400);
            let orphan = dir.path().join("copy/objects/segment-0.binlogz");
            fs::File::create(orphan).unwrap().set_modified(old).unwrap();
            let (keep, now) = (keep(&folder), SystemTime::now());
            let failing = Failing::after(steps, &folder);
            let done = prune(&failing, keep, grace, now);
            let left = whole(&folder);
            assert!(left == NAMES || left == NAMES[2..], "after {steps} steps: {left:?}");
            prune(&folder, keep, grace, now).unwrap();
            // A day later what a killed run took out of the manifest, and did not delete, is left behind.
            prune(&folder, keep, grace, now + 2 * Duration::from_secs(86_400)).unwrap();
            assert_eq!(whole(&folder), NAMES[2..], "after {steps} steps");
            assert_eq!(folder.stored().unwrap().len(), 2, "after {steps} steps");
            if done.is_ok_and(|pruned| pruned.undeleted.is_empty()) {
                is_whole(&folder);
                break;
            }
            steps += 1;
        }
        assert!(steps > 7, "{steps}");
    }
}

/// Objects that may not be deleted yet, as in a bucket with object lock.
#[test]
fn an_object_that_is_locked_is_named_and_deleted_once_it_may() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let folder = archive(&dir);
    let locked = Failing::locked(&folder);
    let (keep, now) = (keep(&folder), SystemTime::now());
    prune(&locked, keep, GRACE, now)?;
    let pruned = prune(&locked, keep, GRACE, now + GRACE)?;
    assert_eq!((pruned.retired.len(), pruned.undeleted.len()), (2, 2));
    assert_eq!(manifest(&folder).retired.len(), 2);
    let pruned = prune(&folder, keep, GRACE, now + GRACE)?;
    assert_eq!((pruned.retired.len(), pruned.undeleted.len(), folder.stored()?.len()), (2, 0, 2));
    Ok(())
}

fn merged(storage: &dyn ArchiveStorage, grace: Duration, now: SystemTime) -> Result<MergeSummary> {
    merge(storage, MergeOptions { level: Level::Fast, workers: 1, grace, now }, &mut |_| {})
}

#[test]
fn merged_logs_are_in_one_object_and_a_reader_that_has_begun_ends() {
    let dir = tempfile::tempdir().unwrap();
    let folder = archive(&dir);
    let begun = manifest(&folder);
    assert_eq!(merge::plan(&begun).concat(), begun.files);
    let now = SystemTime::now();
    let done = merged(&folder, GRACE, now).unwrap();
    let size = |objects: &[binlogz_archive::storage::ListedObject]| {
        objects.iter().map(|object| object.size).sum::<u64>()
    };
    assert_eq!((done.logs, done.before.len(), done.after.len()), (3, 3, 1));
    assert!(size(&done.after) < size(&done.before), "{done:?}");
    assert_eq!(whole(&folder), NAMES);
    // The coverage is the same as before.
    let after = manifest(&folder);
    for (before, after) in begun.files.iter().zip(&after.files) {
        let same = (before.sha256.as_str(), before.times, before.gtids.as_str(), before.mode, before.size);
        assert_eq!(same, (after.sha256.as_str(), after.times, after.gtids.as_str(), after.mode, after.size));
        restore::verify(&folder, before, 1).unwrap();
    }
    assert!(merge::plan(&after).is_empty());
    // A later run deletes the former objects, also where there is nothing to merge.
    let done = merged(&folder, GRACE, now + 2 * GRACE).unwrap();
    assert_eq!((done.logs, done.swept.retired.len(), folder.stored().unwrap().len()), (0, 3, 2));
    // A command that serves an archive for days has its old manifest: the log is found where it is now.
    begun.files.iter().for_each(|file| restore::verify(&folder, file, 1).unwrap());
    is_whole(&folder);
}

#[test]
fn a_merge_that_fails_anywhere_leaves_every_log_whole() {
    let dir = tempfile::tempdir().unwrap();
    archive(&dir);
    let mut steps = 0;
    loop {
        let folder = copy_of(&dir.path().join("archive"), &dir.path().join("copy"));
        let now = SystemTime::now();
        let done = merged(&Failing::after(steps, &folder), GRACE, now);
        assert_eq!(whole(&folder), NAMES, "after {steps} steps");
        merged(&folder, GRACE, now).unwrap();
        assert_eq!(
            manifest(&folder)
                .files
                .iter()
                .map(|file| &file.objects)
                .collect::<std::collections::BTreeSet<_>>()
                .len(),
            1
        );
        // A day later the former objects go, and what the killed run left behind.
        merged(&folder, GRACE, now + 2 * Duration::from_secs(86_400)).unwrap();
        assert_eq!(whole(&folder), NAMES, "after {steps} steps");
        assert_eq!(folder.stored().unwrap().len(), 2, "after {steps} steps");
        if done.is_ok_and(|done| done.failed.is_empty()) {
            is_whole(&folder);
            break;
        }
        steps += 1;
    }
    assert!(steps > 15, "{steps}");
}

/// A run prunes while another merges: the logs that it removed do not come back.
#[test]
fn a_log_that_is_removed_meanwhile_does_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let folder = archive(&dir);
    let keep = keep(&folder);
    let mut count = 0;
    let options = MergeOptions { level: Level::Fast, workers: 1, grace: GRACE, now: SystemTime::now() };
    merge(&folder, options, &mut |_| {
        count += 1;
        if count == NAMES.len() {
            prune(&folder, keep, GRACE, SystemTime::now()).unwrap();
        }
    })
    .unwrap();
    assert_eq!(whole(&folder), NAMES[2..]);
    is_whole(&folder);
}

fn copied(from: &dyn ArchiveStorage, to: &dyn ArchiveStorage) -> Result<copy::CopySummary> {
    copy::plan(from, to)?.run(from, to, 1, &|_| {})
}

#[test]
fn a_copy_that_fails_anywhere_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let folder = archive(&dir);
    // Not of this archive: it stays.
    let other = "binlog.000001";
    let mut steps = 0;
    loop {
        let _ = fs::remove_dir_all(dir.path().join("copy"));
        let to = ArchiveFolder::new(dir.path().join("copy"));
        let done = copied(&folder, &Failing::after(steps, &to));
        let there = Manifest::read(&to).unwrap().unwrap_or_default().files.len();
        assert!(there == 0 || there == NAMES.len(), "after {steps} steps: {there}");
        // No object is there in part, and what is there is not copied again.
        let objects = to.stored().unwrap().iter().filter(|object| object.name.ends_with(".binlogz")).count();
        let again = copied(&folder, &to).unwrap();
        assert_eq!(
            (again.objects.len(), again.there.len()),
            (NAMES.len() - objects, objects),
            "after {steps} steps"
        );
        assert_eq!(manifest(&to).files, manifest(&folder).files, "after {steps} steps");
        if done.is_ok() {
            is_whole(&to);
            add(&to, other);
            assert_eq!(copied(&folder, &to).unwrap().logs_there, 4);
            assert_eq!(whole(&to), [&[other], &NAMES[..]].concat());
            break;
        }
        steps += 1;
    }
    assert!(steps > 15, "{steps}");
}

#[test]
fn a_copy_takes_no_damaged_object_and_no_other_log_of_the_same_name() {
    let dir = tempfile::tempdir().unwrap();
    let folder = archive(&dir);
    let to = ArchiveFolder::new(dir.path().join("copy"));
    let object = dir.path().join("archive/objects").join(&manifest(&folder).files[1].objects[0]);
    let bytes = fs::read(&object).unwrap();
    let mut damaged = bytes.clone();
    damaged[100] ^= 1;
    fs::write(&object, &damaged).unwrap();
    let bytes_told = AtomicU64::new(0);
    let told = |bytes| {
        bytes_told.fetch_add(bytes, Ordering::Relaxed);
    };
    let done = copy::plan(&folder, &to).unwrap().run(&folder, &to, 2, &told).unwrap();
    let (name, error) = &done.failed[0];
    assert!(object.ends_with(name) && error.to_string().contains("expected that in its name"), "{error}");
    assert_eq!(whole(&to), [NAMES[0], NAMES[2]]);
    assert!(to.get(name).is_err());
    assert!(bytes_told.load(Ordering::Relaxed) > 0);
    fs::write(&object, &bytes).unwrap();
    assert_eq!(copied(&folder, &to).unwrap().objects.len(), 1);
    assert_eq!(whole(&to), NAMES);

    let other = ArchiveFolder::new(dir.path().join("other"));
    let mut told = |_: &_| {};
    let mut creator = Creator::new(&other, 1, &mut told).unwrap();
    creator.add(NAMES[0], Arc::new(log(NAMES[2]))).unwrap();
    creator.finish().unwrap();
    let error = copied(&other, &to).unwrap_err().to_string();
    assert!(error.starts_with("binlog.000003: SHA-256 is "), "{error}");
}

/// Issue 42: an object of the same size was called there without being read.
#[test]
fn a_copy_replaces_damaged_objects_of_the_same_size() {
    let dir = tempfile::tempdir().unwrap();
    let folder = archive(&dir);
    let to = ArchiveFolder::new(dir.path().join("copy"));
    copied(&folder, &to).unwrap();
    let name = &manifest(&folder).files[1].objects[0];
    let [ours, theirs] = ["archive", "copy"].map(|at| dir.path().join(at).join("objects").join(name));
    let bytes = fs::read(&ours).unwrap();
    let mut damaged = bytes.clone();
    damaged[100] ^= 1;
    fs::write(&theirs, &damaged).unwrap();

    // With sizes compared alone, the damage is passed over.
    let passed_over = copy::plan(&folder, &to).unwrap().taking_sizes();
    let passed_over = passed_over.run(&folder, &to, 1, &|_| {}).unwrap();
    assert_eq!((passed_over.there.len(), passed_over.replaced.len()), (NAMES.len(), 0));
    assert!(fs::read(&theirs).unwrap() == damaged);

    let mended = copied(&folder, &to).unwrap();
    assert_eq!((mended.objects.len(), mended.there.len()), (0, NAMES.len() - 1));
    let [(object, found)] = &mended.replaced[..] else { panic!("{:?}", mended.replaced) };
    assert_eq!(object.name, name.to_string());
    assert!(found.to_string().ends_with("expected that in its name"), "{found}");
    assert!(fs::read(&theirs).unwrap() == bytes);
    is_whole(&to);

    // What is damaged on both sides stays as it is, and is named.
    for path in [&ours, &theirs] {
        fs::write(path, &damaged).unwrap();
    }
    let failed = copied(&folder, &to).unwrap();
    assert!(failed.replaced.is_empty() && failed.failed[0].0 == *name, "{failed:?}");
    // A whole copy needs nothing of a damaged original.
    fs::write(&theirs, &bytes).unwrap();
    assert_eq!(copied(&folder, &to).unwrap().there.len(), NAMES.len());
}

/// Issue 42, for objects whose names tell no hash: a whole one is never replaced by a damaged one.
#[test]
fn a_copy_of_version_1_replaces_damaged_objects_of_the_same_size() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = ArchiveFolder::new(format!("{}/tests/fixtures/version-1", env!("CARGO_MANIFEST_DIR")));
    let [from, to] = ["from", "to"].map(|at| ArchiveFolder::new(dir.path().join(at)));
    copied(&fixture, &from).unwrap();
    copied(&from, &to).unwrap();
    let name = &manifest(&from).files[0].objects[0];
    let [ours, theirs] = ["from", "to"].map(|at| dir.path().join(at).join("objects").join(name));
    let bytes = fs::read(&ours).unwrap();
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 3] ^= 1;
    fs::write(&theirs, &damaged).unwrap();
    assert_eq!(copied(&from, &to).unwrap().replaced.len(), 1);
    assert!(fs::read(&theirs).unwrap() == bytes);
    fs::write(&ours, &damaged).unwrap();
    assert_eq!(copied(&from, &to).unwrap().failed.len(), 1);
    assert!(fs::read(&theirs).unwrap() == bytes);
}

/// Archives of earlier versions, whose objects may have other names and no checksums of their own.
#[test]
fn archives_of_earlier_versions_are_copied_and_merged() {
    for version in [1, 2, 3, 5, 6, 8, 9, 11, 13] {
        let dir = tempfile::tempdir().unwrap();
        let folder =
            ArchiveFolder::new(format!("{}/tests/fixtures/version-{version}", env!("CARGO_MANIFEST_DIR")));
        let to = ArchiveFolder::new(dir.path());
        copied(&folder, &to).unwrap();
        merged(&to, Duration::ZERO, SystemTime::now()).unwrap();
        for (before, after) in manifest(&folder).files.iter().zip(&manifest(&to).files) {
            assert_eq!(before.sha256, after.sha256, "version {version}");
            restore::verify(&to, after, 1).unwrap();
        }
    }
}
