//! The directory of transactions tells what the blocks hold and takes little room; damage and lies in it are named, or change nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_archive::create::Creator;
use binlogz_archive::directory::{DirectoryStep, LogDirectory, NeededDirectory};
use binlogz_archive::format::directory::DirectoryGroups;
use binlogz_archive::format::{ContentsEntry, FileEntry, Index, Manifest, VERSION};
use binlogz_archive::part::ObjectContents;
use binlogz_archive::restore::{self, LastObject};
use binlogz_archive::storage::ArchiveFolder;
use binlogz_archive::{Error, check};
use binlogz_testkit::builder::{LogBuilder, Release};
use binlogz_testkit::mutate::{mutate, seed};
use binlogz_testkit::setting;

const ALL: DirectoryGroups = DirectoryGroups::GTIDS
    .with(DirectoryGroups::SERVERS)
    .with(DirectoryGroups::LOGGED)
    .with(DirectoryGroups::SIZES)
    .with(DirectoryGroups::THREADS);
/// Lies that are told; `ARCHIVE_MUTATIONS` says more.
const LIES: u64 = 60;

/// A sample: a server's log without payloads, of which a directory tells everything.
fn log(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../samples/plain").join(name)).unwrap()
}

fn archived(dir: &Path, logs: &[(&str, Vec<u8>)], block_size: usize) -> (ArchiveFolder, Manifest) {
    let folder = ArchiveFolder::new(dir);
    let mut told = |_: &_| {};
    let mut creator = Creator::new(&folder, 2, &mut told).unwrap();
    creator.block_size(block_size);
    logs.iter().for_each(|(name, log)| creator.add(name, Arc::new(log.clone())).unwrap());
    creator.finish().unwrap();
    let manifest = Manifest::read(&folder).unwrap().unwrap();
    (folder, manifest)
}

fn directory(
    folder: &ArchiveFolder,
    file: &FileEntry,
    groups: DirectoryGroups,
) -> Result<Option<LogDirectory>, Error> {
    let last = LastObject::default();
    let objects = file.objects.iter().map(|object| ObjectContents::open(folder, &last, object).map(Arc::new));
    let needed = NeededDirectory { groups, as_logged: true };
    LogDirectory::choose(file, objects.collect::<Result<_, _>>()?, needed, &mut |_| true)
}

/// What a directory tells, a line for each transaction; `None`: nothing.
fn told(
    folder: &ArchiveFolder,
    file: &FileEntry,
    groups: DirectoryGroups,
) -> Result<Option<Vec<String>>, Error> {
    let Some(directory) = directory(folder, file, groups)? else { return Ok(None) };
    let mut lines = Vec::new();
    for step in directory.steps() {
        match step {
            DirectoryStep::Told(blocks) => {
                for (object, number) in blocks {
                    let block = directory.block(*object, *number)?;
                    let tables: Vec<_> = (0..).map_while(|number| block.table(number)).collect();
                    lines.extend(block.entries().map(|entry| format!("{tables:?} {entry:?}")));
                }
            }
            DirectoryStep::Read(range) => lines.push(format!("{range:?}")),
        }
    }
    Ok(Some(lines))
}

/// Transactions of one inserted row each.
fn small_transactions(count: u32) -> Vec<u8> {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for number in 0..count {
        log.transaction(&[format!("row {number}").as_bytes()]);
    }
    log.take()
}

#[test]
fn it_is_there_for_logs_of_servers_and_agrees_with_their_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["binlog.000001", "binlog.000002", "binlog.000003", "binlog.000004", "binlog.000005"];
    let logs: Vec<_> = names.iter().map(|name| (*name, log(name))).collect();
    let (folder, manifest) = archived(dir.path(), &logs, 20_000);
    assert_eq!(check::check(&folder, &manifest, 2).unwrap(), Vec::<String>::new());
    let mut count = 0;
    for file in &manifest.files {
        let lines = told(&folder, file, DirectoryGroups::SHAPES).unwrap().unwrap_or_default();
        count += lines.iter().filter(|line| line.contains("has_begun")).count();
    }
    assert!(count > 100, "{count}");
}

/// Within 2 % of the packed blocks, but for what the smallest has.
#[test]
fn it_takes_little_room() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, manifest) = archived(dir.path(), &[("binlog.000001", small_transactions(20_000))], 1 << 20);
    let file = &manifest.files[0];
    let object = restore::open(&folder, &file.objects[0]).unwrap();
    let size = object.index.directory.unwrap().size;
    let room: u64 = object.index.blocks.iter().map(|block| (block.packed_size / 50).max(160)).sum();
    assert!(size > 0 && size <= room, "{size} bytes, room for {room}");
    assert_eq!(told(&folder, file, DirectoryGroups::GTIDS).unwrap().unwrap().len(), 20_000);
    assert_eq!(told(&folder, file, DirectoryGroups::TIMES).unwrap().unwrap().len(), 20_000);
}

/// The logs of `DIRECTORY_LOGS`, a folder; without it the samples.
fn measured_logs() -> Vec<PathBuf> {
    let folder = std::env::var_os("DIRECTORY_LOGS").map(PathBuf::from);
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../samples/plain");
    let entries = fs::read_dir(folder.unwrap_or(samples)).unwrap();
    let mut logs: Vec<_> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    logs.sort();
    logs
}

/// The groups of columns that all blocks of a log tell.
fn groups_told(folder: &ArchiveFolder, file: &FileEntry) -> Vec<&'static str> {
    let groups = [
        ("shapes", DirectoryGroups::SHAPES),
        ("gtids", DirectoryGroups::GTIDS),
        ("servers", DirectoryGroups::SERVERS),
        ("logged", DirectoryGroups::LOGGED),
        ("sizes", DirectoryGroups::SIZES),
        ("threads", DirectoryGroups::THREADS),
        ("times", DirectoryGroups::TIMES),
    ];
    let is_told = |group: DirectoryGroups| {
        let told = directory(folder, file, group).unwrap();
        told.is_some_and(|directory| directory.tells_all())
    };
    groups.into_iter().filter(|(_, group)| is_told(*group)).map(|(name, _)| name).collect()
}

/// The directory of each sample and what it tells, beside the size of the archive. `DIRECTORY_LOGS` names a folder of other logs.
#[test]
fn directories_are_within_two_percent_of_their_archives() {
    let dir = tempfile::tempdir().unwrap();
    let (mut all, mut all_directories) = (0, 0);
    for (path, number) in measured_logs().into_iter().zip(0..) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let log = fs::read(&path).unwrap();
        let plain = log.len();
        let (folder, manifest) = archived(&dir.path().join(number.to_string()), &[(&name, log)], 8 << 20);
        let file = &manifest.files[0];
        let (mut size, mut directory) = (0, 0);
        for object in &file.objects {
            let index = restore::open(&folder, object).unwrap().index;
            size +=
                fs::metadata(dir.path().join(number.to_string()).join("objects").join(object)).unwrap().len();
            directory += index.directory.map_or(0, |entry| entry.size);
        }
        let percent = directory as f64 * 100.0 / size as f64;
        println!(
            "{name}: {plain} bytes, archived {size}, directory {directory}, {percent:.2} %: {:?}",
            groups_told(&folder, file)
        );
        all += size;
        all_directories += directory;
    }
    let percent = all_directories as f64 * 100.0 / all as f64;
    println!("all: {all}, directories {all_directories}, {percent:.2} %");
    assert!(percent > 0.1 && percent < 2.0, "{percent}");
}

/// The path of an object, its index, and where that begins.
fn object_of(dir: &Path, file: &FileEntry) -> (PathBuf, Vec<u8>, usize, Index) {
    let path = dir.join("objects").join(&file.objects[0]);
    let bytes = fs::read(&path).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[bytes.len() - at..][..8].try_into().unwrap());
    let offset = number(32) as usize;
    let size = number(24) as u32 as usize;
    let index = Index::decode(&bytes[offset..offset + size], VERSION).unwrap();
    (path, bytes, offset, index)
}

/// An object with another directory, every checksum right.
fn with_directory(bytes: &[u8], index: &Index, directory: &[u8]) -> Vec<u8> {
    let at = index.directory.unwrap().at;
    let mut index = index.clone();
    let size = directory.len() as u64;
    index.directory = Some(ContentsEntry { at, size, crc32: crc32fast::hash(directory) });
    let index = index.encode();
    let mut end = (at + size).to_le_bytes().to_vec();
    for number in [index.len() as u32, crc32fast::hash(&index), VERSION] {
        end.extend(number.to_le_bytes());
    }
    let crc32 = crc32fast::hash(&end).to_le_bytes();
    [&bytes[..at as usize], directory, &index, &end, &crc32, b"Azgolni3"].concat()
}

#[test]
fn one_that_lies_is_named_or_tells_the_same() {
    let (seed, dir) = (seed(), tempfile::tempdir().unwrap());
    let name = "binlog.000004";
    let (folder, manifest) = archived(dir.path(), &[(name, log(name))], 20_000);
    let file = &manifest.files[0];
    let (path, bytes, offset, index) = object_of(dir.path(), file);
    let entry = index.directory.unwrap();
    let right = &bytes[entry.at as usize..offset];
    assert_eq!((right.len() as u64, crc32fast::hash(right)), (entry.size, entry.crc32));
    let expected = told(&folder, file, DirectoryGroups::SHAPES).unwrap();
    let all = told(&folder, file, ALL).unwrap();
    assert!(expected.as_ref().is_some_and(|lines| lines.len() > 10), "{expected:?}");
    let mut named = 0;
    for lie in 0..setting("ARCHIVE_MUTATIONS", LIES) {
        let (directory, what) = mutate(right, seed, lie);
        fs::write(&path, with_directory(&bytes, &index, &directory)).unwrap();
        let problems = check::check(&folder, &manifest, 1).unwrap();
        if !problems.is_empty() {
            assert!(problems.iter().all(|problem| problem.contains("directory of")), "{what}: {problems:?}");
            named += 1;
            // It may say anything, but no more.
            let _ = (told(&folder, file, DirectoryGroups::SHAPES), told(&folder, file, ALL));
            continue;
        }
        // What isn't told any more is read.
        for (groups, expected) in [(DirectoryGroups::SHAPES, &expected), (ALL, &all)] {
            let found = told(&folder, file, groups).unwrap().unwrap_or_default();
            let known = expected.as_deref().unwrap_or_default();
            let is_range = |line: &String| !line.contains("has_begun");
            assert!(found.iter().all(|line| known.contains(line) || is_range(line)), "{what}: {found:?}");
        }
    }
    assert!(named > LIES / 3, "{named}");
    fs::write(&path, &bytes).unwrap();
    assert_eq!(check::check(&folder, &manifest, 1).unwrap(), Vec::<String>::new());
}

/// An object with all of its blocks overwritten.
fn without_blocks(bytes: &[u8], index: &Index) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for block in &index.blocks {
        bytes[block.at as usize..(block.at + block.packed_size) as usize].fill(0);
    }
    bytes
}

#[test]
fn no_block_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, manifest) = archived(dir.path(), &[("binlog.000001", small_transactions(2000))], 20_000);
    let file = &manifest.files[0];
    let (path, bytes, _, index) = object_of(dir.path(), file);
    let groups = ALL.with(DirectoryGroups::TIMES);
    let expected = told(&folder, file, groups).unwrap();
    assert_eq!(expected.as_ref().map(Vec::len), Some(2000));
    fs::write(&path, without_blocks(&bytes, &index)).unwrap();
    assert_eq!(told(&folder, file, groups).unwrap(), expected);
    assert!(!check::check(&folder, &manifest, 1).unwrap().is_empty());
}

/// A directory that is cut, or has a flipped bit, is an error, whatever its checksum says of the cut one.
#[test]
fn every_cut_and_every_flipped_byte_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let name = "binlog.000004";
    let (folder, manifest) = archived(dir.path(), &[(name, log(name))], 20_000);
    let (path, bytes, offset, index) = object_of(dir.path(), &manifest.files[0]);
    let object = &manifest.files[0].objects[0];
    let at = index.directory.unwrap().at as usize;
    for cut in at..offset {
        fs::write(&path, with_directory(&bytes, &index, &bytes[at..cut])).unwrap();
        let is_none = cut == at && restore::open(&folder, object).unwrap().directory().unwrap().is_none();
        assert!(is_none || restore::open(&folder, object).unwrap().directory().is_err(), "{cut}");
    }
    for place in at..offset {
        let mut bad = bytes.clone();
        bad[place] ^= 1 << (place % 8);
        fs::write(&path, bad).unwrap();
        assert!(restore::open(&folder, object).unwrap().directory().is_err(), "{place}");
    }
}

/// Damage costs nothing: the blocks tell the same. The check names it.
#[test]
fn a_damaged_one_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let name = "binlog.000004";
    let (folder, manifest) = archived(dir.path(), &[(name, log(name))], 20_000);
    let (path, bytes, _, index) = object_of(dir.path(), &manifest.files[0]);
    let entry = index.directory.unwrap();
    for at in (entry.at..entry.at + entry.size).step_by(entry.size as usize / 7) {
        let mut bad = bytes.clone();
        bad[at as usize] ^= 1 << (at % 8);
        fs::write(&path, &bad).unwrap();
        assert!(directory(&folder, &manifest.files[0], DirectoryGroups::SHAPES).unwrap().is_none(), "{at}");
        let problems = check::check(&folder, &manifest, 1).unwrap();
        assert!(
            matches!(&problems[..], [one] if one.contains("directory of transactions") && one.contains("nothing is lost")),
            "{at}: {problems:?}"
        );
    }
}
