//! Logs with transaction payloads: they are packed expanded, and compressed again when they come back. The level that gives
//! the log's own bytes is found by trying.

use std::io::{self, Write};
use std::sync::Arc;

use binlogz_binlog::event::TransactionPayloadHeader;
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, EVENT_TYPE_OFFSET, HEADER_SIZE};
use binlogz_binlog::{Error as BinlogError, EventType};
use binlogz_flow::{Error as FlowError, Input, ReadAt, Rewrite, rewrite};
use binlogz_payload::{CompressOptions, CompressionLevel, Error as PayloadError};
use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// The server's default level: of payloads that come back in our bytes, and what is tried first.
pub(crate) const LEVEL_DEFAULT: u8 = 3;

/// Levels that a server's payloads may have, the usual ones first.
const LEVELS: [u8; 22] = [3, 1, 19, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 22, 20, 21];

/// Levels from here on take 20 to 81 MiB of memory for each thread that compresses.
const LEVEL_LARGE: u8 = 13;
/// Threads that compress at such levels.
const WORKERS_LARGE: usize = 2;
/// Levels from here on take up to 641 MiB, which is more than an archive may take; of transactions up to
/// [`HUGE_SIZE_MAX`] at most 150 MiB. One thread compresses at such levels.
const LEVEL_HUGE: u8 = 20;
/// Bytes of a transaction that is compressed at such levels. zstd's tables are no larger than what they are for.
const HUGE_SIZE_MAX: u64 = 8 << 20;

/// The library that compressed payloads, and will again.
pub(crate) fn codec() -> String {
    format!("libzstd {}", zstd_safe::version_string())
}

/// The transaction payloads of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Payloads {
    /// How many.
    pub(crate) count: u64,
    /// The most bytes that one says it holds.
    pub(crate) inside_max: u64,
}

/// Enough of a payload event for its fields.
const FRONT_SIZE: usize = HEADER_SIZE + 64;

impl Payloads {
    /// Those of a log, as far as its events can be followed.
    pub(crate) fn of(log: &dyn ReadAt) -> Payloads {
        let mut payloads = Payloads::default();
        let mut offset = binlogz_binlog::MAGIC.len() as u64;
        let mut front = [0; FRONT_SIZE];
        while let Ok(read) = log.read_at(&mut front, offset) {
            let Some((header, body)) =
                front.get(..read).and_then(|front| front.split_at_checked(HEADER_SIZE))
            else {
                break;
            };
            let size = header.get(EVENT_SIZE_OFFSET..).and_then(|size| size.first_chunk());
            let size = size.map_or(0, |size| u32::from_le_bytes(*size));
            if (size as usize) < HEADER_SIZE {
                break;
            }
            if header.get(EVENT_TYPE_OFFSET).copied().map(EventType) == Some(EventType::TRANSACTION_PAYLOAD) {
                payloads.count += 1;
                payloads.inside_max = payloads.inside_max.max(inside(body));
            }
            offset += u64::from(size);
        }
        payloads
    }

    /// The levels that may have made them, `likely` first.
    fn levels(self, likely: u8) -> impl Iterator<Item = u8> {
        let others = LEVELS.into_iter().filter(move |&level| level != likely);
        let sensible = move |level: &u8| *level < LEVEL_HUGE || self.inside_max <= HUGE_SIZE_MAX;
        std::iter::once(likely).chain(others).filter(sensible)
    }
}

/// What a payload says it holds; what can't be known is too much.
fn inside(body: &[u8]) -> u64 {
    let front = TransactionPayloadHeader::decode_front(body, u64::MAX).ok().flatten();
    front.and_then(|(header, _)| header.uncompressed_size()).unwrap_or(u64::MAX)
}

/// A log without its payloads.
pub(crate) struct Expanded {
    pub(crate) file: NamedTempFile,
    /// The level at which they are compressed again.
    pub(crate) level: u8,
    /// That gives the log's own bytes.
    pub(crate) exact: bool,
}

/// The log without payloads; `None`: there is no level that gives it back, nor are our bytes wanted instead. `likely` is
/// tried first.
///
/// # Errors
///
/// A disk that is full or fails: what it does to this log is not known.
pub(crate) fn expanded(
    log: &Arc<dyn ReadAt>,
    payloads: Payloads,
    likely: u8,
    workers: usize,
    canonical: bool,
) -> Result<Option<Expanded>> {
    let mut file = NamedTempFile::new().map_err(Error::io("make a temporary file"))?;
    let mut out = io::BufWriter::with_capacity(1 << 20, file.as_file_mut());
    let summary = rewrite(Input::Places(log.clone()), &mut out, Rewrite::Expand, workers, None, &mut |_| {});
    match summary.map_err(trouble) {
        Ok(summary) if summary.cut.is_none() => {}
        Ok(_) | Err(None) => return Ok(None),
        Err(Some(error)) => return Err(Error::io("expand payloads into a temporary file")(error)),
    }
    out.flush().map_err(Error::io("expand payloads into a temporary file"))?;
    drop(out);
    let mut levels = payloads.levels(likely);
    let found = loop {
        let Some(level) = levels.next() else { break None };
        if gives_back(&file, level, log.as_ref(), workers)? {
            break Some(level);
        }
    };
    let level = found.unwrap_or(LEVEL_DEFAULT);
    Ok((found.is_some() || canonical).then_some(Expanded { file, level, exact: found.is_some() }))
}

/// Whether a level makes the log of what it was expanded to.
fn gives_back(file: &NamedTempFile, level: u8, log: &dyn ReadAt, workers: usize) -> Result<bool> {
    let plain = file.reopen().map_err(Error::io("read a temporary file"))?;
    let mut compare = Compare { log, offset: 0, differs: false };
    let compressed = compress_into(Arc::new(plain), level.into(), &mut compare, workers)?;
    match compressed.map_err(trouble) {
        Ok(()) => Ok(compare.at_end()),
        Err(Some(error)) if !compare.differs => Err(Error::io("compress payloads")(error)),
        Err(_) => Ok(false),
    }
}

/// What the system says, unless the log is to blame.
fn trouble(error: FlowError) -> Option<io::Error> {
    let (FlowError::Input(error) | FlowError::Output(error)) = error else { return None };
    let (PayloadError::Io(error) | PayloadError::Binlog(BinlogError::Io(error))) = error else { return None };
    let of_the_log = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData);
    (!of_the_log).then_some(error)
}

/// Writes a log with its transactions compressed as its server did.
pub(crate) fn compress(log: Arc<dyn ReadAt>, level: i64, out: &mut dyn Write, workers: usize) -> Result<()> {
    compress_into(log, level, out, workers)?
        .map_err(|error| Error::io("compress payloads")(io::Error::other(error)))
}

fn compress_into(
    log: Arc<dyn ReadAt>,
    level: i64,
    out: &mut dyn Write,
    workers: usize,
) -> Result<Result<(), FlowError>> {
    let level =
        CompressionLevel::new(level).ok_or_else(|| Error::unexpected("payload level", level, "1 to 22"))?;
    let options = CompressOptions { level, ..CompressOptions::default() };
    let workers = match level.get() {
        LEVEL_HUGE.. => 1,
        LEVEL_LARGE.. => workers.min(WORKERS_LARGE),
        _ => workers,
    };
    Ok(rewrite(Input::Places(log), out, Rewrite::Compress(options), workers, None, &mut |_| {}).map(drop))
}

/// A writer that fails where what is written is not the log.
struct Compare<'a> {
    log: &'a dyn ReadAt,
    offset: u64,
    /// It is not the log.
    differs: bool,
}

impl Compare<'_> {
    fn at_end(&self) -> bool {
        self.log.read_at(&mut [0], self.offset).is_ok_and(|count| count == 0)
    }
}

impl Write for Compare<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut there = vec![0; bytes.len()];
        let mut have = 0;
        while have < there.len() {
            match self.log.read_at(there.get_mut(have..).unwrap_or_default(), self.offset + have as u64)? {
                0 => break,
                count => have += count,
            }
        }
        if there.get(..have) != Some(bytes) {
            self.differs = true;
            return Err(io::Error::other("other bytes"));
        }
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::builder::{LogBuilder, Payload, Release};

    use super::*;

    #[test]
    fn the_levels_above_19_are_for_small_transactions_alone() {
        let of = |inside: Option<u64>| {
            let mut payload = Payload::none(b"events");
            payload.uncompressed_size = inside;
            let mut log = LogBuilder::new(Release::MYSQL_9_7);
            Payloads::of(
                &log.transaction(&[b"1"]).payload(&Payload::zstd(b"events")).payload(&payload).take(),
            )
        };
        let payloads = of(Some(HUGE_SIZE_MAX));
        assert_eq!(payloads, Payloads { count: 2, inside_max: HUGE_SIZE_MAX });
        assert_eq!(payloads.levels(19).take(3).collect::<Vec<_>>(), [19, 3, 1]);
        assert_eq!(payloads.levels(22).count(), 22);
        assert_eq!(of(Some(HUGE_SIZE_MAX + 1)).levels(22).max(), Some(19));
        assert_eq!(of(None).levels(3).max(), Some(19));
    }
}
