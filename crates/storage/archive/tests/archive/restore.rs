//! Logs come out of an archive as they went in: real logs, cut and damaged ones, blocks of every size.
//!
//! `ARCHIVE_LOG_SIZE_MAX` and `ARCHIVE_MUTATIONS` make the tests long: see scripts/soak/archive.sh.

use std::collections::BTreeSet;
use std::io::{Read, Seek};
use std::sync::Arc;

use binlogz_archive::Level;
use binlogz_archive::block::UnpackedBlock;
use binlogz_archive::create::{self, CreateOutcome, Creator};
use binlogz_archive::format::{BlockEntry, FileEntry, Manifest};
use binlogz_archive::log::{BlockReuse, Cutter, FormerBlock, FormerReferences};
use binlogz_archive::segment::{Object, Segment};
use binlogz_archive::storage::ArchiveFolder;
use binlogz_archive::storage::{ArchiveStorage, ReadRange};
use binlogz_archive::{Result, check, restore};
use binlogz_binlog::EventType;
use binlogz_binlog::event::{CompressionType, PreviousGtidsEvent};
use binlogz_binlog::gtid::GtidSetFormat;
use binlogz_flow::{Input, Rewrite, Rewriter, RowChanges};
use binlogz_payload::{CompressOptions, Recipe};
use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, inner_transaction};
use binlogz_testkit::{corpus, mutate, real, setting};

/// Bytes of a log that is archived in a short test, since this is a debug build.
const LOG_SIZE_MAX: usize = 32_000;
const MUTATIONS: usize = 200;

/// An object in memory.
struct Bytes(Vec<u8>);

impl ReadRange for Bytes {
    fn size(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>> {
        Ok(self.0.get(offset as usize..).and_then(|bytes| bytes.get(..size)).unwrap_or_default().to_vec())
    }
}

/// Packs logs and returns the content of the object.
fn packed_together(logs: &[&[u8]], block_size: usize, workers: usize) -> Vec<u8> {
    let mut segment = Segment::new(Level::default()).unwrap();
    for (index, log) in logs.iter().enumerate() {
        let mut cutter = Cutter::with_size(*log, block_size);
        let number = segment.begin(&format!("log {index}"), &[]);
        assert!(segment.pack(number, &mut || cutter.next_piece(), workers).unwrap().is_none());
    }
    let (mut file, size, _) = segment.finish().unwrap();
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, size);
    bytes
}

/// Packs logs anew, each block with these references among the blocks before; gives those that it has then.
fn packed_anew(logs: &[Vec<u8>], references: &[Vec<u32>]) -> (Vec<Vec<u32>>, Vec<u8>) {
    let mut segment = Segment::new(Level::default()).unwrap();
    let mut number = 0;
    for log in logs {
        let mut cutter = Cutter::with_size(log.as_slice(), 40_000);
        let place = segment.begin("log", &[]);
        let mut next = || {
            let mut piece = cutter.next_piece()?;
            if let Some(piece) = &mut piece {
                let blocks = references[number as usize].clone();
                let references = Some(FormerReferences { object: "former".into(), number, blocks });
                // Without their bytes all columns are coded.
                piece.former = Some(FormerBlock {
                    packed: Vec::new(),
                    size: 0,
                    references,
                    reuse: BlockReuse::default(),
                });
                number += 1;
            }
            Ok(piece)
        };
        assert!(segment.pack(place, &mut next, 2).unwrap().is_none());
    }
    let (mut file, _, index) = segment.finish().unwrap();
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    (index.blocks.into_iter().map(|block| block.references).collect(), bytes)
}

#[test]
fn blocks_that_are_packed_anew_refer_to_what_they_referred_to() {
    let logs = following();
    let whole: Vec<_> = logs.iter().map(Vec::as_slice).collect();
    let object = Object::open("object", Box::new(Bytes(packed_together(&whole, 40_000, 1)))).unwrap();
    let chosen: Vec<Vec<u32>> = object.index.blocks.iter().map(|block| block.references.clone()).collect();
    assert!(chosen.iter().filter(|references| references.len() > 1).count() > 1, "{chosen:?}");
    let (kept, bytes) = packed_anew(&logs, &chosen);
    assert_eq!((kept, unpacked(&bytes).unwrap()), (chosen.clone(), logs.concat()));
    // Fewer than would be chosen.
    let fewer: Vec<Vec<u32>> = chosen.iter().map(|all| all.iter().skip(1).copied().collect()).collect();
    let (kept, bytes) = packed_anew(&logs, &fewer);
    assert_eq!((kept, unpacked(&bytes).unwrap()), (fewer, logs.concat()));
    // One of them isn't here.
    let missing = chosen.iter().map(|all| all.iter().copied().chain([999]).collect()).collect::<Vec<_>>();
    let (again, bytes) = packed_anew(&logs, &missing);
    assert_eq!((again, unpacked(&bytes).unwrap()), (chosen, logs.concat()));
}

fn packed(log: &[u8], block_size: usize) -> Vec<u8> {
    packed_together(&[log], block_size, 2)
}

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>> {
    let object = Object::open("object", Box::new(Bytes(bytes.to_vec())))?;
    let mut log = Vec::new();
    for number in 0..object.index.blocks.len() as u32 {
        log.extend_from_slice(&object.block(number, 1)?.log);
    }
    Ok(log)
}

#[test]
fn every_real_log_comes_back() {
    let size_max = setting("ARCHIVE_LOG_SIZE_MAX", LOG_SIZE_MAX);
    let dir = tempfile::tempdir().unwrap();
    let archive = ArchiveFolder::new(dir.path());
    let mut count = 0;
    for binlog in real::every_binlog() {
        let log = binlog.read();
        if log.len() > size_max {
            continue;
        }
        let name = binlog.name.replace('/', "-");
        let CreateOutcome::Added(entry) = create::add(&archive, &name, Arc::new(log.clone()), 2).unwrap()
        else {
            panic!("{name} is new");
        };
        let mut back = Vec::new();
        restore::whole(&archive, &entry, &mut back, 2).unwrap();
        assert!(back == log, "{name}");
        count += 1;
    }
    assert!(count >= 15, "{count} logs");
    assert_eq!(Manifest::read(&archive).unwrap().unwrap().files.len(), count);
}

#[test]
fn blocks_of_every_size_come_back() {
    let log = std::fs::read(corpus::path("binlog.000002")).unwrap();
    for block_size in [64, 700, 5000, 1 << 20] {
        assert!(unpacked(&packed(&log, block_size)).unwrap() == log, "blocks of {block_size} bytes");
    }
}

#[test]
fn mutated_logs_come_back() {
    let seed = mutate::seed();
    let originals: Vec<_> = ["binlog.000001", "binlog.000005", "relay.000012", "binlog.000004"]
        .map(|name| std::fs::read(corpus::path(name)).unwrap())
        .into();
    for index in 0..setting("ARCHIVE_MUTATIONS", MUTATIONS) {
        let original = &originals[index % originals.len()];
        let (log, what) = mutate::mutate(original, seed, index as u64);
        let bytes = packed(&log, if index % 2 == 0 { 1000 } else { 1 << 20 });
        assert!(unpacked(&bytes).unwrap() == log, "{what}");
    }
}

#[test]
fn damaged_objects_are_errors_and_no_panics() {
    let seed = mutate::seed();
    let log = std::fs::read(corpus::path("binlog.000004")).unwrap();
    let bytes = packed(&log, 1000);
    for index in 0..setting("ARCHIVE_MUTATIONS", MUTATIONS) as u64 {
        let (bad, what) = mutate::mutate(&bytes, seed, index);
        let Ok(object) = Object::open("object", Box::new(Bytes(bad))) else { continue };
        for (number, entry) in (0u32..).zip(&object.index.blocks) {
            let right =
                |part: &[u8]| log.get(entry.offset as usize..).is_some_and(|rest| rest.starts_with(part));
            assert!(object.block(number, 1).map_or(true, |block| right(&block.log)), "{what}");
        }
    }
}

#[test]
fn a_flipped_bit_is_named_with_its_transactions_and_the_rest_comes_back() {
    let log = std::fs::read(corpus::path("binlog.000002")).unwrap();
    let bytes = packed(&log, 2000);
    let object = Object::open("object", Box::new(Bytes(bytes.clone()))).unwrap();
    let bad = object.index.blocks.iter().position(|block| !block.gtids.is_empty()).unwrap();
    let entry = object.index.blocks[bad].clone();
    let mut damaged = bytes;
    damaged[entry.at as usize + 3] ^= 4;
    let object = Object::open("object", Box::new(Bytes(damaged))).unwrap();
    for (index, block) in object.index.blocks.iter().enumerate() {
        match object.block(index as u32, 1) {
            Ok(part) => {
                assert!(part.log == log[block.offset as usize..][..block.size as usize] && index != bad)
            }
            Err(error) => {
                let message = error.to_string();
                assert!(index == bad && message.contains(&entry.gtids.to_string()), "{message}");
                assert!(message.starts_with(&format!("object at {}: ", entry.at)), "{message}");
            }
        }
    }
}

#[test]
fn gaps_and_overlaps_between_logs_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let archive = ArchiveFolder::new(dir.path());
    let problems = || check::check(&archive, &Manifest::read(&archive).unwrap().unwrap(), 1).unwrap();
    let add = |from: &str, name: &str| {
        let log = std::fs::read(corpus::path(from)).unwrap();
        create::add(&archive, name, Arc::new(log), 1).unwrap();
    };
    add("binlog.000003", "a.000003");
    assert!(problems().is_empty(), "{:?}", problems());
    add("binlog.000005", "a.000005");
    assert!(problems().iter().any(|line| line.starts_with("a.000005: gap: ")), "{:?}", problems());
    add("binlog.000005", "a.000006");
    assert!(problems().iter().any(|line| line.starts_with("a.000006: overlap: ")), "{:?}", problems());
}

/// A log that lists these transactions as previous ones.
fn log_behind(previous: &str) -> Vec<u8> {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let previous = PreviousGtidsEvent { gtid_set: previous.parse().unwrap(), format: GtidSetFormat::Tagged };
    log.event(EventType::PREVIOUS_GTIDS, &previous.encode()).bytes().to_vec()
}

#[test]
fn the_chain_is_judged_in_the_order_of_the_logs_and_tags_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let archive = ArchiveFolder::new(dir.path());
    let problems = || check::check(&archive, &Manifest::read(&archive).unwrap().unwrap(), 1).unwrap();
    let add = |log: Vec<u8>, name: &str| create::add(&archive, name, Arc::new(log), 1).unwrap();
    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    // Out of order, in separate runs, the last two ordered by their numbers alone.
    let sets = ["1-5:tag:1-2", "1-7:tag:1-3", "1-9:tag:1-3"].map(|rest| format!("{UUID}:{rest}"));
    add(log_behind(&sets[2]), "a.1000000");
    add(log_behind(&sets[0]), "a.999998");
    add(log_behind(&sets[1]), "a.999999");
    let names: Vec<_> = Manifest::read(&archive)
        .unwrap()
        .unwrap()
        .files
        .into_iter()
        .map(|file| String::from(file.name))
        .collect();
    assert_eq!(names, ["a.999998", "a.999999", "a.1000000"]);
    let gap =
        |name: &str, set: &str| format!("{name}: gap: {UUID}:{set} came before it and is not in the archive");
    assert_eq!(problems(), [gap("a.999999", "6-7:tag:3"), gap("a.1000000", "8-9")]);

    // A real log with a tagged transaction, twice.
    let CreateOutcome::Added(entry) = add(corpus_log("binlog.000001"), "b.000001") else {
        panic!("it is new")
    };
    let tagged = entry.gtids.split(',').find(|set| set.matches(':').count() > 1).unwrap();
    add(corpus_log("binlog.000001"), "b.000002");
    let overlap = problems().pop().unwrap();
    assert!(
        overlap.starts_with("b.000002: overlap: ") && overlap.contains(tagged),
        "{overlap} with {tagged}"
    );
}

/// Payloads of several levels: no single level reproduces the log.
#[test]
fn payloads_that_would_not_come_back_are_kept_or_come_back_with_equal_meaning() {
    let log = corpus_log("levels.000003");
    let expanded = |log: &[u8]| {
        let mut out = Vec::new();
        let input = Input::Places(Arc::new(log.to_vec()));
        Rewriter::new(Rewrite::Expand).workers(1).run(input, &mut out).unwrap();
        out
    };
    for canonical in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let archive = ArchiveFolder::new(dir.path());
        for _ in 0..2 {
            let mut told = |_: &CreateOutcome| {};
            let mut creator = Creator::new(&archive, 1, &mut told).unwrap();
            creator.canonical_payloads(canonical);
            creator.add("levels.000003", Arc::new(log.clone())).unwrap();
            creator.finish().unwrap();
        }
        let manifest = Manifest::read(&archive).unwrap().unwrap();
        let [entry] = manifest.files.as_slice() else { panic!("{manifest:?}") };
        assert_eq!(entry.payloads_kept == 0, canonical);
        // Those of the most common level are expanded nevertheless.
        assert!(entry.payload_level.is_some(), "{entry:?}");
        restore::verify(&archive, entry, 1).unwrap();
        let mut back = Vec::new();
        restore::whole(&archive, entry, &mut back, 1).unwrap();
        assert_eq!(back == log, !canonical);
        assert!(expanded(&back) == expanded(&log));
    }
}

/// MySQL 8.0.20 to 8.0.33 and mysqlbinlog call libzstd in their own ways.
#[test]
fn payloads_of_every_recipe_are_expanded_and_come_back() {
    let rewritten = |log: Vec<u8>, how: Rewrite| {
        let mut out = Vec::new();
        Rewriter::new(how).run(Input::Places(Arc::new(log)), &mut out).unwrap();
        out
    };
    let plain = rewritten(sample("compressed/binlog.000004"), Rewrite::Expand);
    for recipe in Recipe::ALL {
        let options = CompressOptions { recipe, ..CompressOptions::default() };
        let log = rewritten(plain.clone(), Rewrite::Compress(options));
        let dir = tempfile::tempdir().unwrap();
        let archive = ArchiveFolder::new(dir.path());
        let created = create::add(&archive, "log", Arc::new(log.clone()), 1).unwrap();
        let CreateOutcome::Added(entry) = created else { panic!("{created:?}") };
        assert_eq!((entry.payload_level, entry.payloads_kept), (Some(3), 0), "{recipe}");
        let codec = entry.payload_codec.as_deref().unwrap();
        assert_eq!(codec.ends_with(recipe.name()), recipe != Recipe::Sized, "{codec}");
        let mut back = Vec::new();
        restore::whole(&archive, &entry, &mut back, 1).unwrap();
        assert!(back == log, "{recipe}");
    }
}

/// As MySQL 8.0.34 and 8.1 write: the first payload of each session tells its content's size, the others don't.
#[test]
fn of_payloads_whose_sessions_first_is_sized_the_others_are_expanded() {
    const SESSIONS: usize = 4;
    let compressor = |recipe| CompressOptions { recipe, ..CompressOptions::default() }.compressor().unwrap();
    let (mut first, mut other) = (compressor(Recipe::Sized), compressor(Recipe::Unsized));
    let mut log = LogBuilder::new(Release::MYSQL_8_0_20);
    for number in 0..100_usize {
        let value = format!("value {number} ").repeat(number + 1);
        let events = inner_transaction(&[value.as_bytes()]);
        let mut frame = Vec::new();
        let session = if number < SESSIONS { &mut first } else { &mut other };
        session.compress(&events, &mut frame).unwrap();
        log.payload(&PayloadBody::of(CompressionType::ZSTD, Some(events.len() as u64), frame));
    }
    let log = log.take();
    let dir = tempfile::tempdir().unwrap();
    let archive = ArchiveFolder::new(dir.path());
    let created = create::add(&archive, "log", Arc::new(log.clone()), 1).unwrap();
    let CreateOutcome::Added(entry) = created else { panic!("{created:?}") };
    assert_eq!((entry.payload_level, entry.payloads_kept), (Some(3), SESSIONS as u64), "{entry:?}");
    let codec = entry.payload_codec.as_deref().unwrap();
    assert!(codec.ends_with(Recipe::Unsized.name()), "{codec}");
    let mut back = Vec::new();
    restore::whole(&archive, &entry, &mut back, 1).unwrap();
    assert!(back == log);
}

#[test]
fn another_log_of_the_same_name_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let archive = ArchiveFolder::new(dir.path());
    let read = |name| Arc::new(std::fs::read(corpus::path(name)).unwrap());
    create::add(&archive, "log", read("binlog.000004"), 1).unwrap();
    let again = create::add(&archive, "log", read("binlog.000004"), 1).unwrap();
    assert!(matches!(again, CreateOutcome::Known(_)));
    let error = create::add(&archive, "log", read("binlog.000003"), 1).unwrap_err();
    assert!(error.to_string().starts_with("log: SHA-256 is "), "{error}");
}

pub(crate) fn sample(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../../samples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Rows inserted, changed, deleted: each log changes those of the one before.
pub(crate) fn following() -> Vec<Vec<u8>> {
    [3, 4, 5].map(|number| sample(&format!("plain/binlog.00000{number}"))).into()
}

#[test]
fn logs_packed_together_refer_to_one_another_and_come_back() {
    let logs = following();
    let logs: Vec<_> = logs.iter().map(Vec::as_slice).collect();
    let bytes = packed_together(&logs, 40_000, 1);
    assert!(bytes == packed_together(&logs, 40_000, 3), "the same with any number of workers");
    let object = Object::open("object", Box::new(Bytes(bytes))).unwrap();
    let across = |entry: &&BlockEntry| {
        entry.references.iter().any(|&number| object.index.blocks[number as usize].log != entry.log)
    };
    assert!(object.index.blocks.iter().filter(across).count() > 2);
    for (index, log) in logs.iter().enumerate() {
        let (number, blocks) = object.log(&format!("log {index}")).unwrap();
        assert_eq!(number as usize, index);
        let mut back = Vec::new();
        let mut add = |_: &BlockEntry, block: &UnpackedBlock| {
            back.extend_from_slice(&block.log);
            Ok(())
        };
        object.blocks(&blocks, 2, &mut add).unwrap();
        assert!(back == *log, "log {index}");
    }
}

#[test]
fn a_flipped_bit_is_named_in_the_blocks_that_need_it_and_the_rest_comes_back() {
    let logs = following();
    let bytes = packed_together(&logs.iter().map(Vec::as_slice).collect::<Vec<_>>(), 40_000, 2);
    let whole = Object::open("object", Box::new(Bytes(bytes.clone()))).unwrap();
    let entries = &whole.index.blocks;
    let bad = entries.iter().flat_map(|entry| &entry.references).copied().min().unwrap();
    let mut lost = std::collections::BTreeSet::from([bad]);
    for (number, entry) in (0u32..).zip(entries) {
        if entry.references.iter().any(|reference| lost.contains(reference)) {
            lost.insert(number);
        }
    }
    assert!(lost.len() > 1 && lost.len() < entries.len() / 2, "{} of {}", lost.len(), entries.len());
    let mut damaged = bytes;
    damaged[entries[bad as usize].at as usize + 5] ^= 16;
    let object = Object::open("object", Box::new(Bytes(damaged))).unwrap();
    for (number, entry) in (0u32..).zip(entries) {
        match object.block(number, 1) {
            Ok(part) => assert!(!lost.contains(&number) && part.log == whole.block(number, 1).unwrap().log),
            Err(error) => {
                let message = error.to_string();
                assert!(lost.contains(&number), "{message}");
                assert_eq!(message.contains(" needs an earlier block: "), number != bad, "{message}");
                assert!(message.contains(&entry.gtids.to_string()), "{message}");
                assert!(message.contains(" is damaged (checksum differs)"), "{message}");
            }
        }
    }
}

#[test]
fn version_1_is_read() {
    fixture(
        1,
        &[("binlog.000002", corpus_log("binlog.000002")), ("relay.000012", corpus_log("relay.000012"))],
    );
}

#[test]
fn versions_2_and_3_are_read() {
    for version in [2, 3] {
        fixture(
            version,
            &[
                ("binlog.000001", sample("plain/binlog.000001")),
                ("binlog.000002", sample("plain/binlog.000002")),
                ("binlog.000009", sample("compressed/binlog.000009")),
            ],
        );
    }
}

/// Pooled columns of 50 tables, and a block of text, in logs of which the archive itself has the SHA-256.
#[test]
fn version_5_is_read() {
    let path = format!("{}/tests/fixtures/version-5", env!("CARGO_MANIFEST_DIR"));
    let fixture = ArchiveFolder::new(path);
    let manifest = Manifest::read(&fixture).unwrap().unwrap();
    let names: Vec<_> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    let expected =
        ["binlog.000001", "binlog.000002", "binlog.000009", "tables.000001", "partial-json.000001"];
    assert_eq!(names, expected);
    for file in &manifest.files {
        // Compared with the SHA-256 of the manifest.
        let mut back = Vec::new();
        restore::whole(&fixture, file, &mut back, 1).unwrap();
        assert_eq!(back.len() as u64, file.size);
    }
    let mut back = Vec::new();
    restore::whole(&fixture, &manifest.files[0], &mut back, 1).unwrap();
    assert!(back == sample("plain/binlog.000001"));
}

/// It tells what its blocks hold.
#[test]
fn version_6_is_read() {
    fixture(
        6,
        &[
            ("binlog.000001", sample("plain/binlog.000001")),
            ("binlog.000002", sample("plain/binlog.000002")),
            ("binlog.000009", sample("compressed/binlog.000009")),
        ],
    );
    let folder = ArchiveFolder::new(format!("{}/tests/fixtures/version-6", env!("CARGO_MANIFEST_DIR")));
    let manifest = Manifest::read(&folder).unwrap().unwrap();
    let object = restore::open(&folder, &manifest.files[0].objects[0]).unwrap();
    let contents = object.contents().unwrap().unwrap();
    assert!(contents.blocks.len() == object.index.blocks.len() && !contents.tables.is_empty());
    assert!(contents.blocks.iter().all(|block| !block.is_opaque));
}

/// Documents changed in part, with the rows of earlier blocks among them: the archive itself has the SHA-256 of the log.
#[test]
fn version_8_is_read_and_documents_changed_in_part_take_what_was_changed() {
    let fixture = ArchiveFolder::new(format!("{}/tests/fixtures/version-8", env!("CARGO_MANIFEST_DIR")));
    let manifest = Manifest::read(&fixture).unwrap().unwrap();
    assert_eq!(manifest.files.len(), 2);
    let whole = |folder: &ArchiveFolder, file: &FileEntry| {
        let mut back = Vec::new();
        restore::whole(folder, file, &mut back, 2).unwrap();
        back
    };
    assert!(whole(&fixture, &manifest.files[0]) == sample("plain/binlog.000001"));
    let log = whole(&fixture, &manifest.files[1]);
    assert_eq!((manifest.files[1].name.as_str(), log.len()), ("partial-json.000001", 237_672));
    // Whole, zstd -19 takes 25,000 of them. In blocks most documents are in earlier ones.
    for (block_size, size_max) in [(8 << 20, 17_000), (64 << 10, 25_000)] {
        let dir = tempfile::tempdir().unwrap();
        let folder = ArchiveFolder::new(dir.path());
        let mut told = |_: &CreateOutcome| {};
        let mut creator = Creator::new(&folder, 2, &mut told).unwrap();
        creator.block_size(block_size);
        creator.add("partial-json.000001", Arc::new(log.clone())).unwrap();
        creator.finish().unwrap();
        let manifest = Manifest::read(&folder).unwrap().unwrap();
        let size = manifest.files[0].packed_size;
        println!("blocks of {block_size} bytes: {size}");
        assert!(whole(&folder, &manifest.files[0]) == log && size < size_max, "{size}");
        let object = restore::open(&folder, &manifest.files[0].objects[0]).unwrap();
        let refers = object.index.blocks.iter().any(|block| !block.references.is_empty());
        assert_eq!(refers, block_size < log.len());
    }
}

/// An archive of version 9 has the columns of its tables.
#[test]
fn version_9_is_read_and_tells_what_its_tables_are() {
    let fixture = ArchiveFolder::new(format!("{}/tests/fixtures/version-9", env!("CARGO_MANIFEST_DIR")));
    let manifest = Manifest::read(&fixture).unwrap().unwrap();
    let mut expected = BTreeSet::new();
    for file in &manifest.files {
        let mut log = Vec::new();
        restore::whole(&fixture, file, &mut log, 1).unwrap();
        if file.name == "binlog.000001" {
            assert!(log == sample("plain/binlog.000001"));
        }
        for change in RowChanges::new(Input::Stream(Box::new(std::io::Cursor::new(log)))) {
            expected.insert(format!("{:?}", change.unwrap().table()));
        }
    }
    let object = restore::open(&fixture, &manifest.files[0].objects[0]).unwrap();
    let contents = object.contents().unwrap().unwrap();
    let told = contents.tables.iter().map(|table| format!("{:?}", table.schema().unwrap().unwrap()));
    assert_eq!(told.collect::<BTreeSet<_>>(), expected);
}

/// Archives of version 11 have a directory of their transactions, and positions as texts; those of version 13 have texts without phrases.
#[test]
fn versions_11_and_13_are_read() {
    for version in [11, 13] {
        fixture(
            version,
            &[
                ("binlog.000001", sample("plain/binlog.000001")),
                ("binlog.000002", sample("plain/binlog.000002")),
                ("binlog.000009", sample("compressed/binlog.000009")),
            ],
        );
    }
}

/// Contents are made again from the blocks, as their version has them, and compared.
#[test]
fn what_archives_of_every_version_tell_of_their_blocks_is_so() {
    for version in [6, 8, 9, 11, 13] {
        let fixture =
            ArchiveFolder::new(format!("{}/tests/fixtures/version-{version}", env!("CARGO_MANIFEST_DIR")));
        let manifest = Manifest::read(&fixture).unwrap().unwrap();
        let problems = check::check(&fixture, &manifest, 2).unwrap();
        assert!(problems.iter().all(|problem| !problem.contains("what is told")), "{problems:?}");
    }
}

fn corpus_log(name: &str) -> Vec<u8> {
    std::fs::read(corpus::path(name)).unwrap()
}

fn fixture(version: u32, logs: &[(&str, Vec<u8>)]) {
    let path = format!("{}/tests/fixtures/version-{version}", env!("CARGO_MANIFEST_DIR"));
    let fixture = ArchiveFolder::new(path);
    let manifest = Manifest::read(&fixture).unwrap().unwrap();
    assert_eq!(manifest.files.len(), logs.len());
    for (file, (name, log)) in manifest.files.iter().zip(logs) {
        let mut back = Vec::new();
        restore::whole(&fixture, file, &mut back, 1).unwrap();
        assert!(file.name == *name && back == *log, "{name}");
    }
    assert!(fixture.get("none").is_err());
}
