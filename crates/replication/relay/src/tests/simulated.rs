//! A source without a server: files made by hand, sent piece by piece from anywhere on, until the connection breaks.
//! Between two pieces the test does what other threads of a relay would do.

use std::ops::Range;

use binlogz_binlog::checksum::crc32;
use binlogz_binlog::event::RotateEvent;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, Framing, HeaderFlags, MAGIC};
use binlogz_source::Result;
use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, UUID, inner_transaction};
use binlogz_testkit::random::Random;
use binlogz_wire::session::{DumpStart, EventPiece};

use crate::receive::receiver::IncomingLog;

/// The prefix of its files' names.
pub(super) const BASE: &str = "binlog";

/// The log of a source: files of whole transactions, numbered from 1.
pub(super) struct SourceLog {
    pub(super) files: Vec<SourceFile>,
    checksum: ChecksumAlgorithm,
}

/// A file of it.
pub(super) struct SourceFile {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// Where each transaction ends, and its number.
    ends: Vec<(usize, u64)>,
}

/// The GTIDs from 1 to `last`.
pub(super) fn gtids(last: u64) -> GtidSet {
    let mut set = GtidSet::new();
    (1..=last).for_each(|gno| set.add(Gtid::new(UUID.into(), gno).unwrap()));
    set
}

impl SourceFile {
    /// How many there are.
    pub(super) fn transactions(&self) -> usize {
        self.ends.len()
    }
}

impl SourceLog {
    /// Some files, some of their transactions compressed by the source, and with `large` one in each that is larger
    /// than the distance of places in the index.
    pub(super) fn new(random: &mut Random, large: bool) -> SourceLog {
        let mut files = Vec::new();
        let mut last = 0;
        let count = 2 + random.below(3);
        for number in 1..=count {
            let mut log = LogBuilder::new(Release::MYSQL_9_7);
            let mut previous = Vec::new();
            let before = gtids(last);
            before.encode(before.format(), &mut previous);
            log.event(EventType::PREVIOUS_GTIDS, &previous).behind_gno(last);
            let mut ends = Vec::new();
            let transactions = 3 + random.below(8);
            let large_one = if large { random.below(transactions) } else { transactions };
            for place in 0..transactions {
                last += 1;
                let size = if place == large_one { 1_200_000 } else { 20 + random.below(3000) };
                // In runs of 50, as many at once: a test makes thousands of such logs, unoptimised.
                let mut value = Vec::with_capacity(size + 50);
                (0..size.div_ceil(50)).for_each(|run| value.extend_from_slice(&[run as u8 ^ last as u8; 50]));
                value.truncate(size);
                match random.below(3) {
                    0 => log.payload(&PayloadBody::zstd(&inner_transaction(&[&value, b"more"]))),
                    _ => log.transaction(&[&value, b"more"]),
                };
                ends.push((log.offset() as usize, last));
            }
            let name = |number: usize| format!("{BASE}.{number:06}");
            if number < count {
                let next = name(number + 1);
                log.event(EventType::ROTATE, &RotateEvent { position: 4, name: next.as_bytes() }.encode());
            }
            files.push(SourceFile { name: name(number), bytes: log.take(), ends });
        }
        SourceLog { files, checksum: ChecksumAlgorithm::CRC32 }
    }

    /// Files with a transaction each that begin at this time, in seconds since 1970, and then one a step.
    pub(super) fn hourly(count: usize, began: u64, step: u64) -> SourceLog {
        let name = |number: usize| format!("{BASE}.{number:06}");
        let file = |number: usize| {
            let before = gtids(number as u64 - 1);
            let gno = number as u64;
            let mut log = LogBuilder::new(Release::MYSQL_9_7);
            let mut previous = Vec::new();
            before.encode(before.format(), &mut previous);
            log.event(EventType::PREVIOUS_GTIDS, &previous).behind_gno(gno - 1).transaction(&[b"one"]);
            let ends = vec![(log.offset() as usize, gno)];
            if number < count {
                let next = name(number + 1);
                log.event(EventType::ROTATE, &RotateEvent { position: 4, name: next.as_bytes() }.encode());
            }
            let mut bytes = log.take();
            let time = (began + (gno - 1) * step) as u32;
            let mut at = MAGIC.len();
            while at < bytes.len() {
                let end = at + EventHeader::decode(&bytes[at..]).unwrap().event_size as usize;
                bytes[at..at + 4].copy_from_slice(&time.to_le_bytes());
                let checksum = crc32(&bytes[at..end - 4]);
                bytes[end - 4..end].copy_from_slice(&checksum.to_le_bytes());
                at = end;
            }
            SourceFile { name: name(number), bytes, ends }
        };
        SourceLog { files: (1..=count).map(file).collect(), checksum: ChecksumAlgorithm::CRC32 }
    }

    /// A small file with transactions that the source compressed and others, and one after it.
    pub(super) fn small() -> SourceLog {
        SourceLog::small_with(ChecksumAlgorithm::CRC32)
    }

    /// The small log with events that have these checksums.
    pub(super) fn small_with(checksum: ChecksumAlgorithm) -> SourceLog {
        let builder = || LogBuilder::with(Release::MYSQL_9_7, checksum, HeaderFlags::default());
        let mut log = builder();
        let mut previous = Vec::new();
        gtids(0).encode(gtids(0).format(), &mut previous);
        log.event(EventType::PREVIOUS_GTIDS, &previous);
        let mut ends = Vec::new();
        for gno in 1..=6u64 {
            let value = vec![gno as u8; 30];
            match gno % 3 {
                0 => log.payload(&PayloadBody::zstd(&inner_transaction(&[&value, b"more"]))),
                _ => log.transaction(&[&value, b"more"]),
            };
            ends.push((log.offset() as usize, gno));
        }
        let name = |number: usize| format!("{BASE}.{number:06}");
        let next = RotateEvent { position: 4, name: name(2).as_bytes() }.encode();
        log.event(EventType::ROTATE, &next);
        let first = SourceFile { name: name(1), bytes: log.take(), ends };
        let mut log = builder();
        let mut previous = Vec::new();
        gtids(6).encode(gtids(6).format(), &mut previous);
        log.event(EventType::PREVIOUS_GTIDS, &previous).behind_gno(6).transaction(&[b"the last"]);
        let ends = vec![(log.offset() as usize, 7)];
        SourceLog { files: vec![first, SourceFile { name: name(2), bytes: log.take(), ends }], checksum }
    }

    /// The number of its last transaction.
    pub(super) fn last(&self) -> u64 {
        self.files.iter().flat_map(|file| &file.ends).map(|(_, gno)| *gno).max().unwrap()
    }

    /// The last transaction that ends at an offset of a file or before.
    pub(super) fn last_before(&self, name: &str, offset: usize) -> u64 {
        let files = self.files.iter().take_while(|file| file.name.as_str() <= name);
        let ends = files.flat_map(|file| file.ends.iter().map(move |end| (file, end)));
        let before = ends.filter(|(file, (end, _))| file.name != name || *end <= offset);
        before.map(|(_, (_, gno))| *gno).max().unwrap_or(0)
    }

    /// The transaction that ends here.
    fn ending_at(&self, name: &[u8], offset: u64) -> Option<u64> {
        let file = self.files.iter().find(|file| file.name.as_bytes() == name)?;
        file.ends.iter().find(|(end, _)| *end as u64 == offset).map(|(_, gno)| *gno)
    }
}

/// The things that go on beside a connection.
pub(super) trait Beside {
    /// Between two events.
    fn between(&mut self, random: &mut Random);
    /// All of this transaction is sent.
    fn sent(&mut self, gno: u64);
    /// The relay says that it has this transaction for good.
    fn acknowledged(&mut self, gno: u64);
}

/// A connection to the source.
pub(super) struct Connection<'a, B> {
    source: &'a SourceLog,
    random: &'a mut Random,
    beside: &'a mut B,
    semi_sync: bool,
    /// Where the next event begins: which file, and where in it.
    file: usize,
    offset: usize,
    /// The event that is sent, and how much of it was.
    event: Range<usize>,
    sent: usize,
    described: bool,
    /// Pieces until the connection breaks.
    left: usize,
    has_input: bool,
}

impl<'a, B: Beside> Connection<'a, B> {
    /// Begins where the relay asks, which must be after the transactions that it claims to have.
    pub(super) fn new(
        source: &'a SourceLog,
        start: &DumpStart,
        random: &'a mut Random,
        beside: &'a mut B,
        pieces: usize,
    ) -> Self {
        let (DumpStart::Position { name, position } | DumpStart::GtidSet { name, position, .. }) = start;
        let file = match name.as_str() {
            "" => 0,
            name => source.files.iter().position(|file| file.name == name).unwrap(),
        };
        if let DumpStart::GtidSet { gtid_set, .. } = start {
            let ends = source.files.iter().enumerate().flat_map(|(place, file)| {
                file.ends.iter().map(move |(end, gno)| ((place, *end as u64), *gno))
            });
            let before = ends.filter(|(place, _)| *place <= (file, *position)).map(|(_, gno)| gno).max();
            assert_eq!(*gtid_set, gtids(before.unwrap_or(0)), "asked for {name} at {position}");
        }
        Connection {
            source,
            semi_sync: random.below(2) == 0,
            random,
            beside,
            file,
            offset: *position as usize,
            event: 0..0,
            sent: 0,
            described: false,
            left: pieces,
            has_input: false,
        }
    }
}

impl<B: Beside> IncomingLog for Connection<'_, B> {
    fn compression(&self) -> Option<binlogz_source::ConnectionCompression> {
        None
    }

    fn next_piece(&mut self) -> Result<Option<EventPiece<'_>>> {
        let source = self.source;
        if self.sent == self.event.len() {
            self.beside.between(self.random);
            if self.described && self.offset == source.files[self.file].bytes.len() {
                (self.file, self.offset, self.described) = (self.file + 1, MAGIC.len(), false);
            }
        }
        let Some(file) = source.files.get(self.file).filter(|_| self.left > 0) else { return Ok(None) };
        self.left -= 1;
        if self.sent == self.event.len() {
            // In front of everything the format description, also of what begins in the middle of a file.
            let begin = if self.described { self.offset } else { MAGIC.len() };
            let Some(bytes) = file.bytes.get(begin..).filter(|bytes| !bytes.is_empty()) else {
                return Ok(None);
            };
            let end = begin + EventHeader::decode(bytes).unwrap().event_size as usize;
            (self.event, self.sent, self.described) = (begin..end, 0, true);
            self.offset = self.offset.max(end);
        }
        let header = EventHeader::decode(&file.bytes[self.event.start..]).unwrap();
        let whole = self.event.len() - self.sent;
        let cut = header.event_type != EventType::FORMAT_DESCRIPTION && self.random.below(4) == 0;
        let first = if self.sent == 0 { HEADER_SIZE } else { 1 };
        let size = if cut { (first + self.random.below(whole)).min(whole) } else { whole };
        let from = self.event.start + self.sent;
        let begins = self.sent == 0;
        self.sent += size;
        self.has_input = self.random.below(4) > 0;
        let ends = self.sent == self.event.len();
        let transaction = file.ends.iter().find(|(end, _)| *end == self.event.end).map(|(_, gno)| *gno);
        if let Some(gno) = transaction.filter(|_| ends) {
            self.beside.sent(gno);
        }
        Ok(Some(EventPiece {
            header,
            framing: Framing::with_checksum(source.checksum),
            name: file.name.as_bytes(),
            offset: self.event.start as u64,
            wants_ack: self.semi_sync && transaction.is_some(),
            bytes: &file.bytes[from..from + size],
            begins,
            ends,
        }))
    }

    fn has_input(&self) -> bool {
        self.has_input
    }

    fn acknowledge(&mut self, name: &[u8], position: u64) -> Result<()> {
        let gno = self.source.ending_at(name, position).expect("an acknowledgement where a transaction ends");
        self.beside.acknowledged(gno);
        Ok(())
    }
}
