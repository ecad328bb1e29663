//! A log that its server is still writing: the transactions in it that are whole.

use std::io;
use std::sync::Arc;

use binlogz_binlog::header::{FLAGS_OFFSET, HEADER_SIZE};
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::{EventHeader, EventType, HeaderFlags, MAGIC, TransactionBoundaryParser};
use binlogz_flow::ReadAt;

use crate::error::{Error, Result};
use crate::log::events;
use crate::log::framing::first_damage;

/// Bytes read of an event at first: all of it, for most events.
const FRONT_SIZE: usize = 512;
/// The offset of the flag in the format description that marks the log as in use.
const IN_USE_AT: u64 = (MAGIC.len() + FLAGS_OFFSET) as u64;
const IN_USE: u8 = HeaderFlags::IN_USE.0 as u8;

/// The first bytes of a log, with the flag set that marks the log as in use. The server clears it when it
/// closes the log; with the flag set, the start of a closed log is the same as it was before.
pub(crate) struct ActivePart {
    log: Arc<dyn ReadAt>,
    size: u64,
}

impl ActivePart {
    /// The transactions of a log that are whole so far, before the first event that is damaged.
    ///
    /// # Errors
    ///
    /// A log that can't be read.
    pub(crate) fn of(log: Arc<dyn ReadAt>) -> Result<ActivePart> {
        let damage = first_damage(log.as_ref())?.and_then(|damage| damage.offset());
        let size = whole_size(log.as_ref(), damage.unwrap_or(u64::MAX)).map_err(Error::io("read the log"))?;
        Ok(ActivePart { log, size })
    }

    /// The first `size` bytes of a log.
    pub(crate) fn first(log: Arc<dyn ReadAt>, size: u64) -> ActivePart {
        ActivePart { log, size }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

impl ReadAt for ActivePart {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let size = buffer.len().min(left);
        let read = self.log.read_at(buffer.get_mut(..size).unwrap_or_default(), offset)?;
        let flag_at = IN_USE_AT.checked_sub(offset).and_then(|at| usize::try_from(at).ok());
        if let Some(flag) = flag_at.filter(|&at| at < read).and_then(|at| buffer.get_mut(at)) {
            *flag |= IN_USE;
        }
        Ok(read)
    }
}

/// The end of the last whole transaction before this offset, or of the head if there is none yet.
fn whole_size(log: &dyn ReadAt, before: u64) -> io::Result<u64> {
    let mut parser = TransactionBoundaryParser::new();
    let mut at = MAGIC.len() as u64;
    let mut whole = at;
    loop {
        let mut event = read_at_most(log, at, FRONT_SIZE)?;
        let Ok(header) = EventHeader::decode(&event) else { return Ok(whole) };
        let size = header.event_size as usize;
        let end = at + u64::from(header.event_size);
        if size < HEADER_SIZE || end > before || log.read_at(&mut [0], end - 1)? == 0 {
            return Ok(whole);
        }
        if header.event_type == EventType::QUERY && size > FRONT_SIZE {
            event = read_at_most(log, at, size.min(HEADER_SIZE + QUERY_PREFIX_SIZE_MAX))?;
        }
        let body = match event.get(..size) {
            Some(event) => events::body(event),
            None => event.get(HEADER_SIZE..).unwrap_or_default(),
        };
        parser.feed(&header, body);
        at = end;
        if !parser.is_open() {
            whole = at;
        }
    }
}

fn read_at_most(log: &dyn ReadAt, offset: u64, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size];
    let have = log.fill_at(&mut bytes, offset)?;
    bytes.truncate(have);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::builder::{LogBuilder, Release};

    use super::*;

    /// Cut anywhere, a log is whole up to the last transaction that ends before the cut.
    #[test]
    fn the_whole_part_ends_with_a_transaction() {
        let mut ends = Vec::new();
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        for size in [10, 1000, 100_000] {
            log.transaction(&[&vec![b'x'; size]]);
        }
        let bytes = log.take();
        let whole = |size: usize| whole_size(&bytes[..size].to_vec(), u64::MAX).unwrap() as usize;
        for size in (MAGIC.len()..bytes.len()).step_by(7) {
            let end = whole(size);
            assert!(end <= size);
            ends.push(end);
        }
        ends.push(whole(bytes.len()));
        assert_eq!(ends.last(), Some(&bytes.len()));
        assert!(ends.is_sorted());
        ends.dedup();
        // The magic, the format description and the other events before the first transaction, and three
        // transactions.
        assert!((5..=6).contains(&ends.len()), "{ends:?}");
    }

    #[test]
    fn the_part_says_that_it_is_in_use_and_ends_where_it_should() {
        let bytes = LogBuilder::new(Release::MYSQL_9_7).transaction(&[b"x"]).take();
        let part = ActivePart::first(Arc::new(bytes.clone()), 100);
        for begin in 0..100 {
            let mut read = vec![0; 300];
            let count = part.read_at(&mut read, begin).unwrap();
            let mut expected = bytes[..100].to_vec();
            expected[MAGIC.len() + FLAGS_OFFSET] |= 1;
            assert_eq!(read[..count], expected[begin as usize..], "{begin}");
        }
        assert_eq!(part.read_at(&mut [0], 100).unwrap(), 0);
    }
}
