//! Large payloads that are expanded right into their output: the same bytes as by the way over a spool, and nothing that can
//! be read where they turn out to be damaged.

use std::io::{self, Cursor, Seek, SeekFrom, Write};

use binlogz_binlog::{ChecksumAlgorithm, HeaderFlags};
use binlogz_flow::{BatchSize, Error, Memory, Rewrite, RewriteSummary, Rewriter};
use binlogz_testkit::builder::{EndPositions, LogBuilder, PayloadBody, Release, inner_transaction};

use super::support::{places, same};

/// No transaction is held as a batch.
const SMALL: BatchSize = BatchSize { target: 64, max: 64 };

/// What a payload must come to before it is passed on in parts.
const LARGE: usize = 16 << 20;

/// Bytes in which nothing repeats within a value, and which cost no time.
fn value(number: usize, size: usize) -> Vec<u8> {
    let mut state = number as u64 + 1;
    let words = (0..size / 8).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40).to_le_bytes()
    });
    words.collect()
}

/// Sizes of values that come to 700,000 bytes: larger than a part, as large as one, and small ones that end beside its end.
const SIZES: [&[usize]; 2] = [&[700_000], &[300_000, 256_000, 100_000, 40_000, 3_000, 904, 96]];

fn payload(bytes: usize) -> PayloadBody {
    let groups = 0..bytes.div_ceil(700_000);
    let sizes = groups.flat_map(|number| SIZES[number % 2]).enumerate();
    let values: Vec<Vec<u8>> = sizes.map(|(number, &size)| value(number, size)).collect();
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    PayloadBody::zstd(&inner_transaction(&values))
}

/// A small payload, a large one, a plain transaction, and with the positions asked for one more large one and one that is
/// just not large.
fn log(positions: EndPositions) -> Vec<u8> {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.payload(&payload(1000)).payload(&payload(LARGE + 1)).transaction(&[b"between"]);
    log.positions(positions).payload(&payload(LARGE + 1)).payload(&payload(LARGE - 800_000));
    log.take()
}

fn expanded(log: &[u8], workers: usize, out: &mut (impl Write + Seek)) -> Result<RewriteSummary, Error> {
    let memory = Memory::new(workers, SMALL, 64 << 20);
    Rewriter::new(Rewrite::Expand).memory(&memory).run_seekable(places(log), out)
}

#[test]
fn parts_and_the_whole_give_the_same_log() {
    let cases = [
        (EndPositions::Own, 1),
        (EndPositions::Own, 2),
        (EndPositions::Fixed(7), 2),
        (EndPositions::Source(1000), 2),
    ];
    for (positions, workers) in cases {
        let log = log(positions);
        let mut whole = Vec::new();
        let memory = Memory::new(2, SMALL, 64 << 20);
        let spooled = Rewriter::new(Rewrite::Expand).memory(&memory).run(places(&log), &mut whole).unwrap();
        // The log need not begin where the output does.
        let mut out = Cursor::new(b"before".to_vec());
        out.seek(SeekFrom::End(0)).unwrap();
        let summary = expanded(&log, workers, &mut out).unwrap();
        same("parts", &format!("{positions:?}, {workers}"), &out.get_ref()[6..], &whole);
        assert_eq!(&out.get_ref()[..6], b"before");
        assert_eq!(summary.tally, spooled.tally);
        assert_eq!((summary.bytes_read, summary.bytes_written), (log.len() as u64, whole.len() as u64));
    }
}

#[test]
fn logs_without_checksums_or_lengths_give_the_same() {
    for (release, checksum) in [
        (Release::MYSQL_9_7, ChecksumAlgorithm::NONE),
        (Release::MYSQL_8_0_19, ChecksumAlgorithm::CRC32),
        (Release::MYSQL_5_7, ChecksumAlgorithm::CRC32),
    ] {
        let mut log = LogBuilder::with(release, checksum, HeaderFlags::default());
        log.format_description(Release { types: 40, ..release }).payload(&payload(LARGE + 1));
        let log = log.take();
        let mut whole = Vec::new();
        Rewriter::new(Rewrite::Expand).run(places(&log), &mut whole).unwrap();
        let mut out = Cursor::new(Vec::new());
        expanded(&log, 2, &mut out).unwrap();
        same("parts", release.version, out.get_ref(), &whole);
    }
}

#[test]
fn a_damaged_payload_leaves_nothing_that_can_be_read() {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let begin = log.offset() as usize;
    log.payload(&payload(LARGE + 3_000_000));
    let mut log = log.take();
    // Within zstd's own checksums of nothing: only the event's says so, and that at its end.
    let near_its_end = log.len() - 100_000;
    log[near_its_end] ^= 1;
    for workers in [1, 2] {
        let mut out = Cursor::new(Vec::new());
        let error = expanded(&log, workers, &mut out).unwrap_err();
        assert!(matches!(error, Error::Input(_)), "{error:?}");
        let out = out.into_inner();
        assert!(out.len() > LARGE, "it was noticed at {} bytes: nothing was passed on", out.len());
        assert!(out[begin..begin + 60].iter().all(|byte| *byte == 0), "{:?}", &out[begin..begin + 60]);
    }
}

/// Takes so many bytes.
struct FullDisk {
    room: usize,
    place: u64,
}

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.room.checked_sub(bytes.len()) {
            Some(room) => self.room = room,
            None => return Err(io::ErrorKind::StorageFull.into()),
        }
        self.place += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for FullDisk {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        if let SeekFrom::Start(place) = place {
            self.place = place;
        }
        Ok(self.place)
    }
}

#[test]
fn a_full_disk_ends_both_threads() {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let log = log.payload(&payload(LARGE + 6_000_000)).take();
    for workers in [1, 2] {
        for room in [100, LARGE + 500_000] {
            let error = expanded(&log, workers, &mut FullDisk { room, place: 0 }).unwrap_err();
            assert!(matches!(error, Error::Output(_)), "{error:?}");
        }
    }
}
