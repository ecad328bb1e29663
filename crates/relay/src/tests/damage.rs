//! Each byte of a stored file damaged in turn, and the file read in every form: a damaged event never leaves with a valid
//! checksum. A damaged byte ends the reading, which says where and what; or it goes out under its wrong checksum.

use std::collections::HashSet;
use std::sync::Arc;

use binlogz_binlog::{ChecksumAlgorithm, EventFrame, EventHeader, Framing, UnverifiedFrame};
use binlogz_payload::CompressionLevel;
use binlogz_store::{FileNumber, Storage};
use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::random::Random;

use super::crashes::{Bytes, Known, OneDisk, options, receive};
use super::open_source;
use super::simulated::SourceLog;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::forms::Forms;
use crate::forms::block::Block;
use crate::forms::translate::Translator;
use crate::log::checkpoints::StartOffsets;
use crate::log::parts::FormFile;
use crate::options::SourceOptions;
use crate::receive::storing::Storing;

const FILE: FileNumber = FileNumber(1);
/// Uncompressed files are cut here, or not at all.
const LIMITS: [u64; 2] = [700, 1 << 30];

/// A file of a form up to where the reading ended, and why.
struct Served {
    bytes: Vec<u8>,
    ended: Result<()>,
}

/// A client's view of a file of a form.
fn serve(forms: Forms<'_>, form: Form, of: FormFile) -> Served {
    let mut sink = Bytes::default();
    let ended = (|| {
        let mut log = Translator::new(forms, form, of, Bytes::default())?;
        let read = read(&mut log);
        sink = std::mem::take(log.sink()?);
        read
    })();
    Served { bytes: sink.0, ended }
}

/// As a sender goes through it.
fn read(log: &mut Translator<'_, Bytes>) -> Result<()> {
    log.put_front()?;
    while let Some(group) = log.walker().next()? {
        if log.is_cut(&group)? {
            return log.put_end(&group);
        }
        log.write(&group)?;
    }
    let walker = log.walker();
    if walker.offset() != walker.end()? {
        return Err(Error::Refused("binlog truncated in the middle of event".into()));
    }
    match log.walker().left() {
        Some(left) => log.write(&left),
        None => Ok(()),
    }
}

/// The contents of a file's blocks that many clients share.
fn blocks(forms: Forms<'_>, form: Form, of: FormFile) -> Result<Vec<u8>> {
    let part = Arc::new(forms.kept.part(form, of, None)?);
    let mut start = part.start();
    let mut bytes = Vec::new();
    // They end before what goes out as it is stored.
    while let Some(block) = Block::make(forms, form, &part, &start)? {
        for placed in block.transactions() {
            block.write(placed, &mut Vec::new(), |more| {
                bytes.extend_from_slice(more);
                Ok(())
            })?;
            start = StartOffsets { stored: placed.stored.end, at: placed.at.end };
        }
    }
    Ok(bytes)
}

/// All events that are not damaged, in any form, wherever they are.
type Genuine = HashSet<Vec<u8>>;

/// An event without what depends on its place.
fn anywhere(frame: &EventFrame<'_>) -> Vec<u8> {
    let header = EventHeader { event_size: 0, end_log_pos: 0, ..*frame.header() };
    [&header.encode(), frame.body()].concat()
}

/// An event whose checksum is valid is not damaged; and where the file is not as it was, the reader is told before the
/// transaction ends: by a wrong checksum, or because the reading ends.
fn check(what: &str, got: &[u8], whole: &[u8], genuine: &Genuine, has_failed: bool) {
    let (mut changed_at, mut is_visible) = (None, false);
    events(got, |at, frame| {
        let Ok(frame) = frame.verify() else {
            is_visible = true;
            return;
        };
        let header = frame.header();
        assert!(
            genuine.contains(&anywhere(&frame)),
            "{what}: at {at} damage with a valid checksum: {header:?}"
        );
        if changed_at.is_some() && header.event_type.is_gtid() {
            assert!(is_visible, "{what}: the transaction at {changed_at:?} has changed");
        }
        if whole.get(at..).is_none_or(|whole| !whole.starts_with(frame.bytes())) {
            changed_at.get_or_insert(at);
        }
    });
    let is_whole = changed_at.is_none() && got.len() == whole.len();
    assert!(
        is_whole || is_visible || has_failed,
        "{what}: something has changed, or is missing: {changed_at:?}"
    );
}

fn events<'a>(bytes: &'a [u8], mut tell: impl FnMut(usize, UnverifiedFrame<'a>)) {
    let framing = Framing::with_checksum(ChecksumAlgorithm::CRC32);
    let mut at = 0;
    while let Ok(Some(frame)) = framing.next_frame(&bytes[at..]) {
        tell(at, frame);
        at += frame.header().event_size as usize;
    }
}

/// The undamaged file.
struct Whole {
    form: Form,
    of: FormFile,
    served: Served,
    blocks: Vec<u8>,
}

fn damaged(storing: Storing, limit: u64) {
    let disk = SimulatedDisk::new();
    let random = &mut Random::new(1);
    let options = SourceOptions { storing, uncompressed_file_size: limit, ..options(random) };
    let relay = open_source(options, Arc::new(OneDisk(disk.clone()))).unwrap();
    let source = SourceLog::small();
    receive(&relay, &source, random, &mut Known::default(), usize::MAX).unwrap();
    relay.intake.sync().unwrap();
    let kept = relay.intake.lineages.served().unwrap();
    let mut whole = Vec::new();
    for form in Form::ALL {
        for of in kept.parts_of(form, FILE).unwrap() {
            let served = serve(relay.intake.conversions.of(&kept), form, of);
            served.ended.as_ref().unwrap();
            let blocks = blocks(relay.intake.conversions.of(&kept), form, of).unwrap();
            whole.push(Whole { form, of, served, blocks });
        }
    }
    let mut genuine = Genuine::new();
    for bytes in whole.iter().flat_map(|whole| [&whole.served.bytes, &whole.blocks]) {
        events(bytes, |_, frame| {
            genuine.insert(anywhere(&frame.verify().unwrap()));
        });
    }
    assert_eq!(whole.len() > 3, limit < 1000, "{} files", whole.len());
    let name = &kept.store.logs().unwrap()[0].name;
    let stored = disk.open(name, false).unwrap();
    let (mut refused, mut visible) = (0, 0);
    for at in 0..stored.size().unwrap() {
        let mut byte = [0];
        stored.read_at(at, &mut byte).unwrap();
        let bad = byte[0] ^ 1 << (at % 8);
        stored.write_at(at, &[bad]).unwrap();
        for Whole { form, of, served: Served { bytes, .. }, blocks: shared } in &whole {
            let what = format!("{storing:?}, {} {of:?}, byte {at}", form.name());
            let got = serve(relay.intake.conversions.of(&kept), *form, *of);
            check(&what, &got.bytes, bytes, &genuine, got.ended.is_err());
            refused += u64::from(got.ended.is_err());
            visible += u64::from(got.ended.is_ok() && got.bytes != *bytes);
            // Blocks end before what goes out as it is stored.
            if let Ok(got) = blocks(relay.intake.conversions.of(&kept), *form, *of) {
                check(&what, &got, shared, &genuine, true);
            }
        }
        stored.write_at(at, &byte).unwrap();
    }
    println!("{storing:?}: {refused} refused, {visible} to be seen");
    assert!(refused > 0 && visible > 0);
}

#[test]
fn a_flipped_byte_of_a_received_file_never_leaves_with_a_valid_checksum() {
    LIMITS.iter().for_each(|limit| damaged(Storing::Received, *limit));
}

#[test]
fn a_flipped_byte_of_a_compressed_file_never_leaves_with_a_valid_checksum() {
    let level = CompressionLevel::new(3).unwrap();
    LIMITS.iter().for_each(|limit| damaged(Storing::Compressed(level), *limit));
}

#[test]
fn damage_is_told_with_file_offset_type_and_both_checksums() {
    let disk = SimulatedDisk::new();
    let random = &mut Random::new(1);
    let options = SourceOptions { storing: Storing::Received, ..options(random) };
    let relay = open_source(options, Arc::new(OneDisk(disk.clone()))).unwrap();
    receive(&relay, &SourceLog::small(), random, &mut Known::default(), usize::MAX).unwrap();
    relay.intake.sync().unwrap();
    let kept = relay.intake.lineages.served().unwrap();
    // The value of the first row event, after the GTID event, BEGIN and the table map.
    let stored = disk.open(&kept.store.logs().unwrap()[0].name, false).unwrap();
    let mut bytes = vec![0; stored.size().unwrap() as usize];
    stored.read_at(0, &mut bytes).unwrap();
    let at = bytes.windows(30).position(|bytes| bytes == [1; 30]).unwrap();
    stored.write_at(at as u64, &[9]).unwrap();
    let served = serve(relay.intake.conversions.of(&kept), Form::Compressed, FormFile::first_of(FILE));
    let error = served.ended.unwrap_err().in_stored(|| "binlog.000001".into()).to_string();
    let words = ["binlog.000001 at ", ": WriteRows event: checksum is 0x", ", the bytes give 0x"];
    assert!(words.iter().all(|words| error.contains(words)), "{error}");
}
