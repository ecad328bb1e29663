//! Damages each byte of a stored file in turn and reads the file in every form: no damaged event leaves. A damaged byte
//! ends the reading with an error that says where and what; health is red until the file is repaired.

use std::collections::HashSet;
use std::sync::Arc;

use binlogz_binlog::header::FLAGS_OFFSET;
use binlogz_binlog::{
    ChecksumAlgorithm, EventFrame, EventHeader, EventType, Framing, HeaderFlags, UnverifiedFrame,
};
use binlogz_payload::{CompressionLevel, Spool, SpoolMemory};
use binlogz_relay_forms::{Forms, Translator, make_block};
use binlogz_relay_log::{Form, FormFile, LineageLog, StartOffsets};
use binlogz_store::{Damage, FileNumber, Storage};
use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::random::Random;

use super::crashes::{Bytes, Known, OneDisk, options, put_all_back, receive};
use super::dumps::{InMemory, by_position, dump};
use super::open_source;
use super::simulated::SourceLog;
use crate::error::{Error, Result};
use crate::housekeeping::scrub;
use crate::options::SourceOptions;
use crate::receive::storing::StoredForm;
use crate::serve::connections::client_form::FormPolicy;
use crate::source::RelaySource;
use crate::watch::status::SharedStatus;
use binlogz_wire::response::ErrPacket;

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
    while let Some(group) = log.walker().next_group()? {
        if log.is_cut(&group)? {
            return Ok(log.put_end(&group)?);
        }
        log.write(&group)?;
    }
    let walker = log.walker();
    if walker.offset() != walker.end()? {
        return Err(Error::Refused("binlog truncated in the middle of event".into()));
    }
    match log.walker().left() {
        Some(left) => Ok(log.write(&left)?),
        None => Ok(()),
    }
}

/// The contents of a file's blocks that many clients share.
fn blocks(forms: Forms<'_>, form: Form, of: FormFile) -> Result<Vec<u8>> {
    let part = Arc::new(forms.kept.part(form, of, None)?);
    let mut start = part.start();
    let mut bytes = Vec::new();
    // They end before what goes out as it is stored.
    while let Some(block) = make_block(forms, form, &part, &start)? {
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

/// No event is damaged. If the file is not as it was, the reading ends with an error before the transaction ends.
fn check(what: &str, got: &[u8], whole: &[u8], genuine: &Genuine, has_failed: bool) {
    let mut changed_at = None;
    let end = events(got, |at, frame| {
        let header = *frame.header();
        let Ok(frame) = frame.verify() else { panic!("{what}: at {at} damage has left: {header:?}") };
        assert!(
            genuine.contains(&anywhere(&frame)),
            "{what}: at {at} damage with a valid checksum: {header:?}"
        );
        assert!(
            changed_at.is_none() || !header.event_type.is_gtid(),
            "{what}: the transaction at {changed_at:?} has changed"
        );
        if whole.get(at..).is_none_or(|whole| !whole.starts_with(frame.bytes())) {
            changed_at.get_or_insert(at);
        }
    });
    assert_eq!(end, got.len(), "{what}: a part of an event has left");
    let is_whole = changed_at.is_none() && got.len() == whole.len();
    assert!(is_whole || has_failed, "{what}: something has changed, or is missing: {changed_at:?}");
}

/// Where the whole events end.
fn events<'a>(bytes: &'a [u8], mut tell: impl FnMut(usize, UnverifiedFrame<'a>)) -> usize {
    let framing = Framing::with_checksum(ChecksumAlgorithm::CRC32);
    let mut at = 0;
    while let Ok(Some(frame)) = framing.next_frame(&bytes[at..]) {
        tell(at, frame);
        at += frame.header().event_size as usize;
    }
    at
}

/// The undamaged file.
struct Whole {
    form: Form,
    of: FormFile,
    served: Served,
    blocks: Vec<u8>,
}

fn damaged(storing: StoredForm, limit: u64) {
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
    let mut refused = 0;
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
            // Blocks end before what goes out as it is stored.
            if let Ok(got) = blocks(relay.intake.conversions.of(&kept), *form, *of) {
                check(&what, &got, shared, &genuine, true);
            }
        }
        stored.write_at(at, &byte).unwrap();
    }
    println!("{storing:?}: {refused} refused");
    assert!(refused > 0);
}

#[test]
fn a_flipped_byte_of_a_received_file_never_leaves() {
    LIMITS.iter().for_each(|limit| damaged(StoredForm::Received, *limit));
}

#[test]
fn a_flipped_byte_of_a_compressed_file_never_leaves() {
    let level = CompressionLevel::new(3).unwrap();
    LIMITS.iter().for_each(|limit| damaged(StoredForm::Compressed(level), *limit));
}

#[test]
fn damage_is_told_with_file_offset_type_and_both_checksums() {
    let disk = SimulatedDisk::new();
    let random = &mut Random::new(1);
    let options = SourceOptions { storing: StoredForm::Received, ..options(random) };
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
    for form in Form::ALL {
        let served = serve(relay.intake.conversions.of(&kept), form, FormFile::first_of(FILE));
        let error = served.ended.unwrap_err().in_stored(|| "binlog.000001".into()).to_string();
        let words = ["binlog.000001 at ", ": WriteRows event: checksum is 0x", ", the bytes give 0x"];
        assert!(words.iter().all(|words| error.contains(words)), "{form:?}: {error}");
    }
}

/// A relay that keeps all of a source's log as received, and its disk.
pub(super) fn received(source: &SourceLog) -> (SimulatedDisk, RelaySource, Arc<LineageLog>) {
    let disk = SimulatedDisk::new();
    let random = &mut Random::new(1);
    let options = SourceOptions {
        storing: StoredForm::Received,
        uncompressed_file_size: 1 << 30,
        form: FormPolicy::Always(Form::Received),
        ..options(random)
    };
    let relay = open_source(options, Arc::new(OneDisk(disk.clone()))).unwrap();
    let mut known = Known::default();
    receive(&relay, source, random, &mut known, usize::MAX).unwrap();
    relay.intake.sync().unwrap();
    let kept = relay.intake.lineages.served().unwrap();
    put_all_back(&relay, &kept, &mut known);
    (disk, relay, kept)
}

/// Flips a bit of a byte.
pub(super) fn flip(disk: &SimulatedDisk, name: &str, at: u64, bit: u8) {
    let stored = disk.open(name, false).unwrap();
    let mut byte = [0];
    stored.read_at(at, &mut byte).unwrap();
    stored.write_at(at, &[byte[0] ^ 1 << bit]).unwrap();
}

fn troubles(relay: &RelaySource) -> Vec<String> {
    relay.watch.status(&SharedStatus::default()).unwrap().troubles
}

/// The bytes that the source has for the hole.
fn from_source(source: &SourceLog, damage: &Damage) -> Result<Spool> {
    let file = &source.files[damage.file.0 as usize - 1];
    let hole = &damage.holes[0];
    let mut bytes = Spool::new(&SpoolMemory::new(1 << 20), Vec::new());
    bytes.append(&file.bytes[hole.from as usize..hole.to as usize]).unwrap();
    Ok(bytes)
}

#[test]
fn a_dump_over_damage_ends_with_1236_that_says_where_also_for_clients_without_checksums_and_health_is_red() {
    let source = SourceLog::small();
    let (disk, relay, kept) = received(&source);
    let name = kept.store.logs().unwrap()[0].name.clone();
    let size = disk.open(&name, false).unwrap().size().unwrap();
    let head = kept.part(Form::Received, FormFile::first_of(FILE), None).unwrap().head.end();
    let mut genuine = HashSet::new();
    for file in &source.files {
        events(&file.bytes[4..], |_, frame| {
            genuine.insert(frame.verify().unwrap().bytes().to_vec());
        });
    }
    for set in ["SET @source_binlog_checksum = 'CRC32'", "SET @source_binlog_checksum = 'NONE'"] {
        for at in 4..size {
            let bit = (at % 8) as u8;
            flip(&disk, &name, at, bit);
            let connection = InMemory::default();
            let ended = dump(&relay, 1, set, &by_position(&name, 4), &connection);
            let messages = connection.messages();
            let (last, events) = messages.split_last().unwrap();
            let what = format!("{set}, byte {at}");
            for event in events.iter().filter(|event| event[0] == 0).map(|event| &event[1..]) {
                let header = EventHeader::decode(event).unwrap();
                let is_made = header.flags.contains(HeaderFlags::ARTIFICIAL)
                    || header.event_type == EventType::FORMAT_DESCRIPTION;
                assert!(is_made || genuine.contains(event), "{what}: damage has left: {header:?}");
            }
            let in_use_flag = at == 4 + FLAGS_OFFSET as u64 && bit == 0;
            if in_use_flag {
                ended.unwrap();
            } else {
                let error = ended.unwrap_err().to_string();
                let packet = ErrPacket::decode(last).unwrap();
                let said = String::from_utf8_lossy(packet.message);
                assert_eq!(packet.code, 1236, "{what}: {said}");
                assert!(said.starts_with(&format!("{name} at ")), "{what}: {said}");
                assert_eq!(said, error, "{what}");
                let offset: u64 = said[name.len() + 4..].split([':', ' ']).next().unwrap().parse().unwrap();
                assert!(offset <= at || at < head, "{what}: {said}");
                assert!(troubles(&relay).contains(&error), "{what}: {:?}", troubles(&relay));
            }
            flip(&disk, &name, at, bit);
            // It is read again, and was never damaged.
            scrub::repair(&relay.housekeeping, &|_, _| panic!("nothing to repair"), &mut Default::default())
                .unwrap();
            assert_eq!(troubles(&relay), [""; 0], "{what}");
        }
    }
}

#[test]
fn what_is_damaged_is_found_by_the_scrub_told_and_repaired_in_place() {
    let source = SourceLog::small();
    let (disk, relay, kept) = received(&source);
    let name = kept.store.logs().unwrap()[0].name.clone();
    let size = source.files[0].bytes.len() as u64;
    for at in 0..size {
        let bit = ((at + 3) % 8) as u8;
        // The flag of a file in use is in no checksum.
        if at == 4 + FLAGS_OFFSET as u64 && bit == 0 {
            continue;
        }
        flip(&disk, &name, at, bit);
        let day = 24 * 3600 * (2 + at);
        scrub::round(&relay.housekeeping, day).unwrap();
        let found = troubles(&relay);
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("{name} is damaged from ")),
            "{at}: {found:?}"
        );
        let (counts, last) = relay.telemetry.meters.errors();
        assert_eq!(last[0].text, format!("{}; it was found by reading closed files", found[0]));
        // For each byte before it was also told that its repair failed.
        assert_eq!(counts["damaged"] % 2, 1, "byte {at}: {counts:?}");
        // A source that lacks it leaves it as it is.
        let refuse = |_: &LineageLog, _: &Damage| Err(Error::OfSource("it is purged there".into()));
        scrub::repair(&relay.housekeeping, &refuse, &mut Default::default()).unwrap();
        assert_eq!(troubles(&relay), found, "byte {at}");
        let told = relay.telemetry.meters.errors().1[0].text.clone();
        assert!(told.contains("it was not repaired") && told.contains("it is purged there"), "{told}");
        scrub::repair(
            &relay.housekeeping,
            &|_, damage| from_source(&source, damage),
            &mut Default::default(),
        )
        .unwrap();
        assert_eq!(troubles(&relay), [""; 0], "byte {at}");
        let mut bytes = vec![0; size as usize];
        disk.open(&name, false).unwrap().read_at(0, &mut bytes).unwrap();
        assert!(bytes == source.files[0].bytes, "byte {at}");
    }
    let status = relay.watch.status(&SharedStatus::default()).unwrap().scrub;
    assert!(status.repaired >= size - 1, "{status:?}");
    let connection = InMemory::default();
    dump(&relay, 1, "SET @source_binlog_checksum = 'CRC32'", &by_position(&name, 4), &connection).unwrap();
}

/// Issue 42: nothing in such a log could be compared, and a flipped byte in its rows was served for ever.
#[test]
fn a_flipped_byte_of_a_closed_file_without_checksums_is_found_by_the_scrub_and_repaired() {
    let source = SourceLog::small_with(ChecksumAlgorithm::NONE);
    let (disk, relay, kept) = received(&source);
    let name = kept.store.logs().unwrap()[0].name.clone();
    let size = source.files[0].bytes.len() as u64;
    scrub::round(&relay.housekeeping, 24 * 3600).unwrap();
    assert_eq!(troubles(&relay), [""; 0]);
    for at in 0..size {
        flip(&disk, &name, at, (at % 8) as u8);
        scrub::round(&relay.housekeeping, 24 * 3600 * (2 + at)).unwrap();
        let found = troubles(&relay);
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("{name} is damaged from ")),
            "{at}: {found:?}"
        );
        let fetch = |_: &LineageLog, damage: &Damage| from_source(&source, damage);
        scrub::repair(&relay.housekeeping, &fetch, &mut Default::default()).unwrap();
        assert_eq!(troubles(&relay), [""; 0], "byte {at}");
        let mut bytes = vec![0; size as usize];
        disk.open(&name, false).unwrap().read_at(0, &mut bytes).unwrap();
        assert!(bytes == source.files[0].bytes, "byte {at}");
    }
}

#[test]
fn a_large_transaction_that_is_damaged_does_not_leave_either() {
    let source = SourceLog::new(&mut Random::new(3), true);
    let (disk, relay, kept) = received(&source);
    let whole = serve(relay.intake.conversions.of(&kept), Form::Received, FormFile::first_of(FILE));
    whole.ended.unwrap();
    let name = kept.store.logs().unwrap()[0].name.clone();
    let size = source.files[0].bytes.len() as u64;
    for at in (200..size).step_by(50_021).chain([size - 1]) {
        flip(&disk, &name, at, 5);
        let got = serve(relay.intake.conversions.of(&kept), Form::Received, FormFile::first_of(FILE));
        let error = got.ended.unwrap_err().to_string();
        assert!(whole.bytes.starts_with(&got.bytes) && got.bytes.len() as u64 <= at, "{at}: {error}");
        // All of it is whole events.
        let end = events(&got.bytes, |_, frame| assert!(frame.verify().is_ok(), "{at}"));
        assert_eq!(end, got.bytes.len(), "{at}");
        flip(&disk, &name, at, 5);
    }
}

#[test]
fn a_scrub_reads_each_closed_file_once_a_day_and_its_age_counts_from_the_beginning_of_the_last_whole_pass() {
    let source = SourceLog::new(&mut Random::new(2), false);
    let (_, relay, _) = received(&source);
    let read = || relay.housekeeping.scrub.status().read_bytes;
    let closed: u64 = source.files[..source.files.len() - 1].iter().map(|file| file.bytes.len() as u64).sum();
    let now = crate::time::now();
    scrub::round(&relay.housekeeping, now).unwrap();
    let first = read();
    // The format description is read, but not counted.
    assert!(first > closed * 9 / 10, "{first} of {closed}");
    scrub::round(&relay.housekeeping, now + 3600).unwrap();
    assert_eq!(read(), first, "not again within a day");
    scrub::round(&relay.housekeeping, now + 24 * 3600).unwrap();
    assert_eq!(read(), 2 * first);
    assert_eq!(relay.housekeeping.scrub.status().age_seconds, 0);
    // A clock that was put back keeps no pass from beginning.
    scrub::round(&relay.housekeeping, now - 3600).unwrap();
    assert_eq!(read(), 3 * first);
    assert!(relay.housekeeping.scrub.status().age_seconds >= 3600);
}
