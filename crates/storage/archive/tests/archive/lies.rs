//! Checksums tell damage, not lies. Manifests, parts, indexes and contents whose numbers are false and whose checksums are right are refused,
//! or change nothing that is given back; no panic, no memory that a number alone asks for.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use binlogz_archive::format::{Index, Manifest, VERSION};
use binlogz_archive::prune::Keep;
use binlogz_archive::storage::ArchiveFolder;
use binlogz_archive::{coverage, merge, prune, remove, restore};
use binlogz_testkit::memory::peak_memory;
use binlogz_testkit::mutate::{mutate, seed};
use binlogz_testkit::random::Random;
use binlogz_testkit::setting;
use sha2::{Digest, Sha256};

use crate::faults::{create, log};

const LOG: &str = "binlog.000002";
/// Lies of each kind; `ARCHIVE_MUTATIONS` says more.
const LIES: u64 = 60;
/// More memory than this, in KiB, no lie may cost. Tests beside this one take some, too.
const MEMORY_MAX: u64 = 1 << 20;
/// Numbers at which sums, signs, counts and lengths break.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    255,
    65_536,
    0x7fff_ffff,
    0x8000_0000,
    u32::MAX as u64,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

fn lies() -> u64 {
    setting("ARCHIVE_MUTATIONS", LIES)
}

fn is_bounded() {
    let peak = peak_memory(std::process::id()).unwrap();
    assert!(peak < MEMORY_MAX, "{peak} KiB");
}

/// A text with another number in it, or other bytes.
fn false_text(text: &[u8], random: &mut Random, seed: u64, index: u64) -> (Vec<u8>, String) {
    let starts: Vec<_> = (1..text.len())
        .filter(|at| text[*at].is_ascii_digit() && !text[at - 1].is_ascii_alphanumeric())
        .collect();
    if random.below(4) == 0 || starts.is_empty() {
        return mutate(text, seed, index);
    }
    let start = starts[random.below(starts.len())];
    let end = start + text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = NUMBERS[random.below(NUMBERS.len())].to_string();
    let text = [&text[..start], number.as_bytes(), &text[end..]].concat();
    (text, format!("SEED={seed} lie {index}: {number} at {start}"))
}

/// A manifest with its checksum.
pub(crate) fn with_checksum(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let Some((before, _)) = text.split_once(",\n  \"crc32\": ") else {
        return text.into_owned().into_bytes();
    };
    let crc32 = crc32fast::hash(format!("{before}\n}}\n").as_bytes());
    format!("{before},\n  \"crc32\": {crc32}\n}}\n").into_bytes()
}

/// Everything that reads a manifest and nothing else.
fn is_used(folder: &ArchiveFolder, at: &Path, what: &str) {
    let Ok(Some(mut manifest)) = Manifest::read(folder) else { return };
    let files = manifest.files.clone();
    let _ = coverage::coverage(&manifest);
    merge::plan(&manifest);
    remove::plan(&manifest, &[files.first().map(|file| file.name.to_string()).unwrap_or_default()]);
    for keep in [Keep::Since(1 << 30), Keep::Bytes(1 << 20), Keep::All] {
        let _ = prune::plan(folder, keep, Duration::from_secs(3600), SystemTime::now());
    }
    // It is written as it was read.
    fs::remove_file(at.join("objects/manifest-copy.json")).unwrap_or_default();
    manifest.write(folder).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(Manifest::read(folder).unwrap().unwrap().files == files, "{what}");
}

#[test]
fn a_manifest_and_parts_that_lie_are_errors_or_read_as_they_are() {
    let (seed, dir) = (seed(), tempfile::tempdir().unwrap());
    let mut random = Random::new(seed);
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/version-10");
    let text = fs::read_to_string(fixture.join("manifest.json")).unwrap();
    let name = text.split('"').find(|word| word.starts_with("manifest-part-")).unwrap();
    let packed = fs::read(fixture.join("objects").join(name)).unwrap();
    let mut entries = Vec::with_capacity(1 << 20);
    zstd_safe::decompress(&mut entries, &packed).unwrap();
    let sha256 =
        |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(text.contains(&sha256(&packed)) && text.contains(&format!("\"size\": {}", entries.len())));
    for index in 0..lies() {
        let place = dir.path().join(index.to_string());
        fs::create_dir_all(place.join("objects")).unwrap();
        let (mut manifest, mut part) = (text.clone().into_bytes(), packed.clone());
        let told;
        if index % 2 == 0 {
            (manifest, told) = false_text(&manifest, &mut random, seed, index);
        } else {
            let lie;
            (lie, told) = false_text(&entries, &mut random, seed, index);
            part.clear();
            part.reserve(zstd_safe::compress_bound(lie.len()));
            zstd_safe::compress(&mut part, &lie, 3).unwrap();
            let now = text.replace(&sha256(&packed), &sha256(&part));
            manifest = now
                .replace(&format!("\"size\": {}", entries.len()), &format!("\"size\": {}", lie.len()))
                .into();
        }
        fs::write(place.join("manifest.json"), with_checksum(&manifest)).unwrap();
        fs::write(place.join("objects").join(name), &part).unwrap();
        is_used(&ArchiveFolder::new(&place), &place, &told);
        fs::remove_dir_all(&place).unwrap();
    }
    is_bounded();
}

/// An index of other numbers, in bytes or in fields.
fn false_index(right: &Index, random: &mut Random, seed: u64, number: u64) -> (Vec<u8>, String) {
    if random.below(3) == 0 {
        return mutate(&right.encode(), seed, number);
    }
    let mut index = right.clone();
    let place = random.below(index.blocks.len());
    let other = random.below(index.blocks.len()) as u32;
    let value = match random.below(2) {
        0 => NUMBERS[random.below(NUMBERS.len())],
        // One of another block: near the truth.
        _ => [right.blocks[other as usize].at, right.blocks[other as usize].size, 13][random.below(3)],
    };
    let field = random.below(9);
    let block = &mut index.blocks[place];
    match field {
        0 => block.at = value,
        1 => block.size = value,
        2 => block.packed_size = value,
        3 => block.offset = value,
        4 => block.references = vec![other],
        5 => block.references = vec![place as u32, value as u32],
        6 => block.log = value as u32,
        7 => {
            if let Some(directory) = &mut index.directory {
                (directory.at, directory.size) = (value, right.blocks[other as usize].packed_size);
            }
        }
        _ => {
            if let Some(contents) = &mut index.contents {
                (contents.at, contents.size) = (value, right.blocks[other as usize].packed_size);
            }
        }
    }
    (index.encode(), format!("SEED={seed} lie {number}: field {field} of block {place}: {value}"))
}

#[test]
fn an_index_that_lies_is_an_error_or_changes_nothing() {
    let (seed, dir) = (seed(), tempfile::tempdir().unwrap());
    let mut random = Random::new(seed);
    let folder = ArchiveFolder::new(dir.path());
    let mut told = |_: &_| {};
    let mut creator = binlogz_archive::create::Creator::new(&folder, 1, &mut told).unwrap();
    // Some blocks that refer to each other.
    creator.block_size(4_000);
    creator.add(LOG, std::sync::Arc::new(log(LOG))).unwrap();
    creator.finish().unwrap();
    let manifest = Manifest::read(&folder).unwrap().unwrap();
    let file = &manifest.files[0];
    let path = dir.path().join("objects").join(&file.objects[0]);
    let bytes = fs::read(&path).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[bytes.len() - at..][..8].try_into().unwrap());
    let offset = number(32) as usize;
    let size = number(24) as u32 as usize;
    let right = Index::decode(&bytes[offset..offset + size], VERSION).unwrap();
    assert!(right.blocks.len() > 5 && right.contents.is_some());
    let mut refused = 0;
    for lie in 0..lies() {
        let (index, what) = false_index(&right, &mut random, seed, lie);
        let mut end = (offset as u64).to_le_bytes().to_vec();
        for number in [index.len() as u32, crc32fast::hash(&index), VERSION] {
            end.extend(number.to_le_bytes());
        }
        let crc32 = crc32fast::hash(&end).to_le_bytes();
        fs::write(&path, [&bytes[..offset], &index, &end, &crc32, b"Azgolni3"].concat()).unwrap();
        let mut back = Vec::new();
        match restore::whole(&folder, file, &mut back, 1) {
            Ok(()) => assert!(back == log(LOG), "{what}"),
            Err(_) => refused += 1,
        }
        let Ok(object) = restore::open(&folder, &file.objects[0]) else { continue };
        for block in 0..object.index.blocks.len() as u32 {
            let _ = object.block(block, 1);
        }
        (0..object.index.logs.len() as u32).for_each(|log| drop(object.inspect(log)));
        if let Ok(Some(contents)) = object.contents() {
            contents.tables.iter().for_each(|table| drop(table.schema()));
        }
    }
    // The blocks' headers say it once more.
    assert!(refused > lies() / 20, "{refused}");
    is_bounded();
}

/// The log itself is in the archive as it was: a lie about it does not come back as the truth.
#[test]
fn a_manifest_that_lies_about_a_log_gives_an_error_in_place_of_another_log() {
    let (seed, dir) = (seed(), tempfile::tempdir().unwrap());
    let mut random = Random::new(seed);
    let folder = ArchiveFolder::new(dir.path());
    create(&folder, &[LOG]).unwrap();
    let path = dir.path().join("manifest.json");
    let text = fs::read(&path).unwrap();
    let (mut read, mut refused) = (0, 0);
    // Few lies hit what a reading needs: as many as it takes for one.
    let count = lies() / 3;
    for index in 0..30 * count {
        if index >= count && refused > 0 {
            break;
        }
        let (lie, what) = false_text(&text, &mut random, seed, index);
        fs::write(&path, with_checksum(&lie)).unwrap();
        let Ok(Some(manifest)) = Manifest::read(&folder) else { continue };
        read += 1;
        for file in &manifest.files {
            let mut back = Vec::new();
            match restore::whole(&folder, file, &mut back, 1) {
                Ok(()) => assert!(back == log(LOG), "{what}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
    is_bounded();
}
