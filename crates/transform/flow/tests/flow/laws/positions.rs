//! Law 1 where positions are not simply an event's place: relay logs, foreign ones, logs beyond 4 GiB. Also the places of
//! transactions before and after, as `compress --positions` prints them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventReader, EventType, HeaderFlags};
use binlogz_flow::{Input, MovedTransaction, ReadAt, Rewrite, Rewriter};
use binlogz_payload::Ineligible;
use binlogz_testkit::builder::{EndPositions, LogBuilder, Release, transaction_events};
use binlogz_testkit::{RealBinlog, real};

use super::support::{
    append_from, compress, compression, error_of, events, expand, options, places, run, same,
};

const RELAY_LOG: HeaderFlags = HeaderFlags::RELAY_LOG;

fn relay_log(positions: EndPositions) -> LogBuilder {
    let mut log = LogBuilder::with(Release::MYSQL_9_7, ChecksumAlgorithm::CRC32, RELAY_LOG);
    // The relay log's own events, then the source's.
    log.flags(RELAY_LOG).event(EventType::PREVIOUS_GTIDS, &[0; 8]);
    log.flags(HeaderFlags::default()).positions(positions);
    log
}

#[test]
fn positions_of_a_relay_log_are_the_sources() {
    for file in real::every_binlog().iter().filter(|file| file.relay_log) {
        let log = file.read();
        let plain = expand(&log);
        let compressed = compress(&plain, 3);
        for rewritten in [&plain, &compressed] {
            let of_gtids = |log| events(log).into_iter().filter(|event| event.header.event_type.is_gtid());
            let ends = |log| of_gtids(log).map(|event| event.header.end_log_pos).collect::<Vec<_>>();
            assert_eq!(ends(rewritten), ends(&log), "{}", file.name);
        }
    }
}

#[test]
fn a_relay_logs_own_events_move_along() {
    let mut log = relay_log(EndPositions::Source(1000));
    log.transaction(&[&[7; 500]]);
    log.flags(RELAY_LOG).positions(EndPositions::Own);
    log.event(EventType::ROTATE, b"\x04\0\0\0\0\0\0\0relay.000002");
    let compressed = compress(log.bytes(), 3);
    let rotate = events(&compressed).pop().expect("the last event");
    assert!(rotate.is(EventType::ROTATE));
    assert_eq!(rotate.header.end_log_pos as usize, compressed.len());
    same("relay log", "and back", &expand(&compressed), log.bytes());
}

#[test]
fn positions_of_a_source_come_back_whatever_they_are() {
    // As the source logged them, across the 4 GiB where they wrap around, and as the payload had them.
    for positions in
        [EndPositions::Source(1000), EndPositions::Source(u32::MAX - 700), EndPositions::Fixed(5000)]
    {
        let mut log = relay_log(positions);
        log.transaction(&[&[7; 500]]).transaction(&[&[8; 500], &[9; 500]]);
        let (compressed, summary) = run(places(log.bytes()), compression(3), 2).expect("a log");
        assert_eq!(summary.tally.changed, 2, "{positions:?}");
        same("relay log", "and back", &expand(&compressed), log.bytes());
    }
}

#[test]
fn positions_that_would_not_come_back_leave_a_transaction_plain() {
    // A gap after the GTID event.
    let mut log = transaction_at([EndPositions::Source(1000), EndPositions::Source(77_000)]);
    let (compressed, summary) = run(places(log.bytes()), compression(3), 2).expect("a log");
    assert_eq!(summary.tally.left().collect::<Vec<_>>(), [(Ineligible::Positions, 1)]);
    same("relay log", "compress", &compressed, log.bytes());
    log.positions(EndPositions::Source(90_000)).transaction(&[b"another value"]);
    same("relay log", "and back", &expand(&compress(log.bytes(), 3)), log.bytes());
}

/// All events of a transaction have the position at which they would end if they followed the GTID event one
/// after the other: which of the two they were can't be told from the payload.
#[test]
fn equal_positions_that_look_consecutive_leave_a_transaction_plain() {
    let consecutive = transaction_at([EndPositions::Source(1000); 2]);
    let end = events(consecutive.bytes()).last().expect("XID").header.end_log_pos;
    let log = transaction_at([EndPositions::Source(1000), EndPositions::Fixed(end)]);
    same("relay log", "and back", &expand(&compress(log.bytes(), 3)), log.bytes());
}

/// A relay log with one transaction: how its GTID event is numbered, and how the following events are. The
/// same way twice: one row of numbers.
fn transaction_at([front, rest]: [EndPositions; 2]) -> LogBuilder {
    let body = transaction_events(&[&[7; 500]]);
    let following = body.iter().map(|(_, body)| 19 + body.len() + 4).sum::<usize>();
    let mut log = relay_log(front);
    log.gtid(following as u64);
    if rest != front {
        log.positions(rest);
    }
    for (event_type, body) in &body {
        log.event(*event_type, body);
    }
    log
}

#[test]
fn a_foreign_position_that_becomes_true_is_an_error() {
    // The last event's position is where it will be once the transaction before it is compressed.
    let log_with = |position| {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        log.transaction(&[&[7; 5000]]).positions(EndPositions::Fixed(position));
        log.event(EventType::ROTATE, b"\x04\0\0\0\0\0\0\0binlog.000002");
        log
    };
    let end = compress(log_with(1).bytes(), 3).len() as u32;
    let log = log_with(end);
    let error = error_of(log.bytes(), compression(3));
    assert!(error.contains("Rotate event: event header: end log pos is"), "{error}");
    for harmless in [end - 1, end + 1, 0] {
        let log = log_with(harmless);
        same("foreign", "and back", &expand(&compress(log.bytes(), 3)), log.bytes());
    }
}

/// Bytes beyond the first few gigabytes, of which nearly all are zero.
#[derive(Default)]
struct Sparse {
    size: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

const PAGE: usize = 64 << 10;
static ZEROS: [u8; PAGE] = [0; PAGE];

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let place = (self.size % PAGE as u64) as usize;
        let count = bytes.len().min(PAGE - place);
        let number = self.size / PAGE as u64;
        if bytes[..count] != ZEROS[..count] {
            let page = self.pages.entry(number).or_insert_with(|| vec![0; PAGE].into());
            page[place..place + count].copy_from_slice(&bytes[..count]);
        }
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReadAt for Sparse {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let place = (offset % PAGE as u64) as usize;
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(PAGE - place).min(left);
        match self.pages.get(&(offset / PAGE as u64)) {
            Some(page) => buffer[..count].copy_from_slice(&page[place..place + count]),
            None => buffer[..count].fill(0),
        }
        Ok(count)
    }

    fn append_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        append_from(self, buffer, offset)
    }
}

#[test]
fn positions_beyond_4_gib_begin_anew_and_come_back() {
    // Five events of nearly 1 GiB of zeros that readers may skip, with transactions before, between and after
    // them.
    const FILLER: u32 = (1 << 30) - 4000;
    let mut log = LogBuilder::with(Release::MYSQL_9_7, ChecksumAlgorithm::NONE, HeaderFlags::default());
    let mut original = Sparse::default();
    let mut offsets = Vec::new();
    for number in 0..6u8 {
        offsets.push(log.offset());
        log.transaction(&[&[number; 3000]]);
        original.write_all(&log.take()).expect("memory");
        if number < 5 {
            let header = EventHeader {
                timestamp: 0,
                event_type: EventType::IGNORABLE,
                server_id: 1,
                event_size: FILLER,
                end_log_pos: (log.offset() + u64::from(FILLER)) as u32,
                flags: HeaderFlags::IGNORABLE,
            };
            original.write_all(&header.encode()).expect("memory");
            original.size += u64::from(FILLER) - 19;
            log.skip(u64::from(FILLER));
        }
    }
    assert!(offsets[4] < 1 << 32 && offsets[5] > 1 << 32, "{offsets:?}");

    let original = Arc::new(original);
    let mut compressed = Sparse::default();
    let mut places = Vec::new();
    let mut moved = |moved: MovedTransaction| {
        places.push(moved);
        Ok(())
    };
    let mut marked = options(3);
    marked.marks = true;
    let input = Input::Places(original.clone());
    Rewriter::new(Rewrite::Compress(marked))
        .workers(2)
        .on_moved(&mut moved)
        .run(input, &mut compressed)
        .expect("a log");
    assert_eq!(places.iter().map(|moved| moved.old.start).collect::<Vec<_>>(), offsets);
    assert!(compressed.size > 5 * u64::from(FILLER) && compressed.size < original.size);
    let last = &places[5].new;
    let mut header = [0; 19];
    compressed.read_at(&mut header, last.start).expect("memory");
    let header = EventHeader::decode(&header).expect("a GTID event");
    assert!(header.event_type.is_gtid() && last.start > 1 << 32);
    assert_eq!(header.end_log_pos, (last.start + u64::from(header.event_size)) as u32);

    let mut back = Sparse::default();
    let input = Input::Places(Arc::new(compressed));
    Rewriter::new(Rewrite::Expand).workers(2).run(input, &mut back).expect("a log");
    assert_eq!(back.size, original.size);
    assert!(back.pages == original.pages);
}

#[test]
fn every_transaction_is_where_it_is_said_to_have_gone() {
    let mut transactions = 0;
    for file in real::every_binlog() {
        let log = file.read();
        let mut out = Vec::new();
        let mut all = Vec::new();
        let mut moved = |moved: MovedTransaction| {
            all.push(moved);
            Ok(())
        };
        let mut marked = options(3);
        marked.marks = true;
        Rewriter::new(Rewrite::Compress(marked))
            .workers(3)
            .on_moved(&mut moved)
            .run(places(&log), &mut out)
            .expect("a real log");
        same(&file.name, "with positions told", &out, &compress(&log, 3));
        let (old, new) = (gtids(&file, &log), gtids(&file, &out));
        assert_eq!((all.len(), all.len()), (old.len(), new.len()), "{}", file.name);
        for (moved, (old, new)) in all.iter().zip(old.iter().zip(&new)) {
            assert_eq!((moved.old.start, &moved.gtid), (old.0, &old.1), "{}", file.name);
            assert_eq!((moved.new.start, &moved.gtid), (new.0, &new.1), "{}", file.name);
        }
        transactions += all.len();
    }
    assert!(transactions > 1000, "only {transactions}");
}

/// Where each transaction begins, and its GTID.
fn gtids(file: &RealBinlog, log: &[u8]) -> Vec<(u64, Option<Gtid>)> {
    let mut reader = EventReader::new(log);
    let mut gtids = Vec::new();
    loop {
        match reader.next_event() {
            Ok(Some((offset, frame))) => {
                if let Some(event) = AnyGtidEvent::decode_frame(&frame).expect("a real event") {
                    gtids.push((offset, event.gtid()));
                }
            }
            Ok(None) => return gtids,
            Err(error) => panic!("{}: {error}", file.name),
        }
    }
}
