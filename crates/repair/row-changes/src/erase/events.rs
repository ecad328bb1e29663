//! The events of a transaction, kept until it ends: its GTID event, which comes first, has its length.
//!
//! ```text
//! an event in the spool
//!   size field
//!      1 place     1: its position is its own place in the log, and moves with it
//!     19 header    with the size that the event has without a checksum
//!      n body
//! ```
//!
//! Only now and then an event that is already there has to go, as the text of a statement of which a later row was chosen: it is passed over when
//! the transaction is written.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use binlogz_binlog::event::{FormatDescription, RowsFlags, rewrite_transaction_length};
use binlogz_binlog::frame::{encode_event, set_end_log_pos};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EVENT_SIZE_MAX, EventHeader, EventType, Framing, MAGIC};
use binlogz_payload::{Spool, SpoolMemory};

use crate::pass::Error;

/// Memory for a transaction; the rest is in a temporary file.
const MEMORY: usize = 8 << 20;

/// An event as it was read: header, body, and whether its position is its own place.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventRead<'e> {
    pub(super) header: &'e EventHeader,
    pub(super) body: &'e [u8],
    pub(super) is_in_place: bool,
}

/// The events of a transaction, or of a payload.
pub(super) struct ErasureEvents {
    spool: Spool,
    /// Where those begin that are passed over.
    dropped: BTreeSet<u64>,
    /// The events at which blocks began: where they are here, and where in the log as it was.
    begins: BTreeMap<u64, u64>,
    /// Bytes of the others without checksums, and how many they are.
    size: u64,
    count: u64,
    /// Whether anything is other than it was.
    pub(super) is_changed: bool,
}

/// Where an event is in the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ErasureEventAt {
    offset: u64,
    size: u64,
}

impl ErasureEvents {
    pub(super) fn new() -> Self {
        ErasureEvents {
            spool: Spool::new(&SpoolMemory::new(MEMORY), Vec::new()),
            dropped: BTreeSet::new(),
            begins: BTreeMap::new(),
            size: 0,
            count: 0,
            is_changed: false,
        }
    }

    /// A block began at the next event, which was at `offset` of the log.
    pub(super) fn begin_block(&mut self, offset: u64) {
        // The events of a payload are all at its place.
        if self.begins.last_key_value().is_none_or(|(_, last)| *last != offset) {
            self.begins.insert(self.spool.size(), offset);
        }
    }

    pub(super) fn add(&mut self, event: EventRead<'_>) -> Result<ErasureEventAt, Error> {
        let size = u32::try_from(HEADER_SIZE + event.body.len()).ok().filter(|size| *size <= EVENT_SIZE_MAX);
        let size = size.ok_or_else(|| Error::Refused("an event would have more than 1 GiB".to_owned()))?;
        let kept = ErasureEventAt { offset: self.spool.size(), size: size.into() };
        self.spool.append(&[u8::from(event.is_in_place)])?;
        self.spool.append(&EventHeader { event_size: size, ..*event.header }.encode())?;
        self.spool.append(event.body)?;
        self.size += kept.size;
        self.count += 1;
        Ok(kept)
    }

    /// Passes an event over.
    pub(super) fn drop_event(&mut self, event: ErasureEventAt) {
        if self.dropped.insert(event.offset) {
            self.size = self.size.saturating_sub(event.size);
            self.count = self.count.saturating_sub(1);
            self.is_changed = true;
        }
    }

    /// Makes an event of rows the last one of its statement. Its flags, of which the first byte is `flags` now, are this far in its body.
    pub(super) fn end_statement(
        &mut self,
        event: ErasureEventAt,
        offset: usize,
        flags: RowsFlags,
    ) -> Result<(), Error> {
        let place = event.offset + 1 + HEADER_SIZE as u64 + offset as u64;
        let low = (flags.0 | RowsFlags::STMT_END.0) as u8;
        self.spool.overwrite(place, &[low])?;
        self.is_changed = true;
        Ok(())
    }

    /// Bytes of the events in a log with such checksums.
    fn size_with(&self, checksum: ChecksumAlgorithm) -> u64 {
        self.size + self.count * checksum.size() as u64
    }
}

/// The log that is written.
pub(super) struct RemainingLog<'o> {
    out: &'o mut dyn Write,
    offset: u64,
    checksum: ChecksumAlgorithm,
    /// Where the first transaction begins that is other than it was.
    pub(super) same_until: Option<u64>,
    /// Where blocks began in the log as it was, and where what is left of them begins.
    pub(super) begins: Vec<(u64, u64)>,
    /// Where those blocks began of which more than positions is other than it was.
    pub(super) changed_blocks: BTreeSet<u64>,
}

impl<'o> RemainingLog<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        RemainingLog {
            out,
            offset: 0,
            checksum: ChecksumAlgorithm::NONE,
            same_until: None,
            begins: Vec::new(),
            changed_blocks: BTreeSet::new(),
        }
    }

    /// A block began at `before`, of which what is left begins here.
    pub(super) fn begin_block(&mut self, before: u64) {
        self.begins.push((before, self.offset));
    }

    /// Begins a log.
    pub(super) fn magic(&mut self) -> Result<(), Error> {
        self.out.write_all(&MAGIC)?;
        self.offset = MAGIC.len() as u64;
        Ok(())
    }

    /// Writes a format description; the events after it have the checksums that it announces.
    pub(super) fn format_description(
        &mut self,
        event: &[u8],
        is_in_place: bool,
        framing: Framing,
    ) -> Result<(), Error> {
        self.offset += event.len() as u64;
        let mut placed = event.to_vec();
        if is_in_place {
            let own = match FormatDescription::checksum_size(event)? {
                0 => ChecksumAlgorithm::NONE,
                _ => ChecksumAlgorithm::CRC32,
            };
            set_end_log_pos(&mut placed, self.offset as u32, own)?;
        }
        self.out.write_all(&placed)?;
        self.checksum = framing.checksum();
        Ok(())
    }

    /// Writes an event. The checksum is computed anew: the one that it was read with was right.
    pub(super) fn event(&mut self, event: EventRead<'_>) -> Result<(), Error> {
        let size = (HEADER_SIZE + event.body.len() + self.checksum.size()) as u64;
        self.offset += size;
        // As servers write positions beyond 4 GiB.
        let end_log_pos = if event.is_in_place { self.offset as u32 } else { event.header.end_log_pos };
        let header = EventHeader { end_log_pos, ..*event.header };
        Ok(self.out.write_all(&encode_event(header, event.body, self.checksum))?)
    }

    /// Writes a transaction.
    pub(super) fn transaction(
        &mut self,
        gtid: Option<EventRead<'_>>,
        events: &ErasureEvents,
    ) -> Result<(), Error> {
        if events.is_changed {
            self.same_until.get_or_insert(self.offset);
            let begun = self.begins.last().map_or(0, |(before, _)| *before);
            self.changed_blocks.insert(begun);
            self.changed_blocks.extend(events.begins.values());
        }
        if let Some(event) = gtid {
            let has_length = event.header.event_type != EventType::MARIADB_GTID;
            match has_length && events.is_changed {
                true => {
                    let body = with_length(event, events.size_with(self.checksum), self.checksum)?;
                    self.event(EventRead { body: &body, ..event })?;
                }
                false => self.event(event)?,
            }
        }
        let mut reader = events.spool.reader(0..events.spool.size());
        let mut offset = 0;
        let mut front = [0; 1 + HEADER_SIZE];
        let mut body = Vec::new();
        while offset < events.spool.size() {
            reader.read_exact(&mut front)?;
            let header = EventHeader::decode(front.get(1..).unwrap_or_default())?;
            let size = u64::from(header.event_size).saturating_sub(HEADER_SIZE as u64);
            body.clear();
            (&mut reader).take(size).read_to_end(&mut body)?;
            if let Some(before) = events.begins.get(&offset) {
                self.begin_block(*before);
            }
            if !events.dropped.contains(&offset) {
                let is_in_place = front.first() == Some(&1);
                self.event(EventRead { header: &header, body: &body, is_in_place })?;
            }
            offset += 1 + u64::from(header.event_size);
        }
        Ok(())
    }
}

/// The body of a GTID event with the length of its transaction, of which so many bytes follow it.
fn with_length(event: EventRead<'_>, following: u64, checksum: ChecksumAlgorithm) -> Result<Vec<u8>, Error> {
    let whole = encode_event(*event.header, event.body, ChecksumAlgorithm::NONE);
    let cut = binlogz_binlog::Error::Truncated { needed: whole.len() as u64, left: 0 };
    let frame = Framing::new().next_frame(&whole)?.ok_or(cut)?.verify()?;
    let mut rewritten = Vec::new();
    // The frame has no checksum, which counts.
    rewrite_transaction_length(&frame, following + checksum.size() as u64, &mut rewritten)?;
    Ok(rewritten.split_off(HEADER_SIZE.min(rewritten.len())))
}
