//! Writes a binary log of rows: magic, format description, no previous GTIDs, then transactions.
//!
//! ```text
//! GTID, or anonymous · BEGIN · for each table in turn: table map · rows events, the last with the flag STMT_END · XID
//! ```
//!
//! The GTID event has the length of its transaction, so a transaction is kept until its end, in a spool: memory is bounded.
//! The server id is 0, which no server has: no replica takes the events for its own.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};

use binlogz_binlog::event::{
    AnyGtidEvent, Bitmap, CommitTimestamps, FormatDescription, GtidEvent, GtidFlags, LogicalClock,
    POST_HEADER_LENGTHS, PreviousGtidsEvent, QueryEvent, RowsEvent, RowsFlags, SERVER_VERSION_SIZE,
    ServerVersions, StatusVariables, TableId, TableMapEvent, XidEvent,
};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::gtid::{Gtid, GtidSet, GtidSetFormat, ServerUuid};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags, MAGIC};
use binlogz_payload::{Spool, SpoolMemory};

use crate::record::{
    LoggedImages, PassedEvent, RecordFields, RecordReader, TABLE_MAP_POST_HEADER_LENGTH, map_of_kept, put,
};

/// The version in the format description: the first that knows payloads, so that the log may be compressed.
const VERSION: &str = "8.0.20-binlogz";
const VERSION_NUMBER: u32 = 80020;
/// The event types of that version.
const TYPES: usize = 40;
/// Bytes of rows in an event, unless a row has more: `binlog_row_event_max_size`.
const ROWS_SIZE_MAX: usize = 8192;
/// Bytes of a statement: mysqlbinlog makes one of the rows of a table, which has to fit into `max_allowed_packet`, 16 MiB in clients, as
/// base64.
const STATEMENT_SIZE_MAX: u64 = 4 << 20;
/// Memory for a transaction.
const TRANSACTION_MEMORY: usize = 8 << 20;
/// Bytes of an event's header and checksum.
const FRAME_SIZE: usize = HEADER_SIZE + 4;
/// Stands for the timestamp of its transaction's commit.
const OF_COMMIT: u32 = u32::MAX;
/// Post-header of a row event.
const ROWS_POST_HEADER_LENGTH: u8 = 10;

/// Writes a binary log of rows to `out`, transaction by transaction.
pub(crate) struct LogWriter<'o> {
    out: &'o mut dyn Write,
    offset: u64,
    sequence_number: i64,
    /// Type of each event, its own timestamp (u32) and flags (u16), its body.
    events: Spool,
    /// Bytes of the transaction's events in the log.
    size: u64,
    /// Offset in the transaction, in bytes, at which the open statement began.
    statement: u64,
    group: Option<Group>,
    /// Whether transactions that are passed through keep their GTIDs.
    has_gtids: bool,
}

/// The origin of a transaction, as its GTID event says.
struct TransactionOrigin {
    /// `None`: it is anonymous.
    gtid: Option<Gtid>,
    flags: GtidFlags,
    times: CommitTimestamps,
    versions: ServerVersions,
}

/// Rows that go into one event.
struct Group {
    map: usize,
    width: u64,
    event_type: EventType,
    bitmaps: Vec<u8>,
    flags: u16,
    rows: Vec<u8>,
    /// Hashes of the rows without a key as the group's UPDATEs made them.
    made: HashSet<u64>,
}

impl Group {
    fn takes(&self, map: usize, flags: u16, row: &LoggedImages<'_>) -> bool {
        (self.map, self.flags, self.event_type, &*self.bitmaps) == (map, flags, row.event_type, row.bitmaps)
            && !self.may_have_made(row)
    }

    /// Whether an UPDATE before it may have made the row that this one is to change: a server looks for all rows of an event at once if
    /// the table has no key, and leaves such a row as it is (MySQL 8.0.33, 9.7.4).
    fn may_have_made(&self, row: &LoggedImages<'_>) -> bool {
        row.without_key()
            .is_some_and(|(before, after)| after.is_none() || self.made.contains(&hash_of(before)))
    }

    fn add(&mut self, row: &LoggedImages<'_>) {
        self.rows.extend_from_slice(row.images);
        if let Some((_, Some(after))) = row.without_key() {
            self.made.insert(hash_of(after));
        }
    }
}

impl<'o> LogWriter<'o> {
    pub(crate) fn new(out: &'o mut dyn Write) -> io::Result<Self> {
        Self::begin(out, None)
    }

    /// A log with GTIDs, before which these transactions came. None of them has a tag.
    pub(crate) fn with_gtids(out: &'o mut dyn Write, previous: GtidSet) -> io::Result<Self> {
        Self::begin(out, Some(previous))
    }

    fn begin(out: &'o mut dyn Write, previous: Option<GtidSet>) -> io::Result<Self> {
        let mut writer = LogWriter {
            out,
            offset: 0,
            sequence_number: 0,
            events: spool(),
            size: 0,
            statement: 0,
            group: None,
            has_gtids: previous.is_some(),
        };
        let mut server_version = [0; SERVER_VERSION_SIZE];
        for (place, byte) in server_version.iter_mut().zip(VERSION.bytes()) {
            *place = byte;
        }
        let description = FormatDescription {
            binlog_version: 4,
            server_version,
            created: 0,
            header_length: HEADER_SIZE as u8,
            post_header_lengths: POST_HEADER_LENGTHS.iter().take(TYPES).copied().collect(),
            checksum_algorithm: ChecksumAlgorithm::CRC32,
        };
        writer.out.write_all(&MAGIC)?;
        writer.offset = MAGIC.len() as u64;
        let unset = (0, HeaderFlags::default());
        writer.write(EventType::FORMAT_DESCRIPTION, unset, &description.encode())?;
        let gtid_set = previous.unwrap_or_default();
        let previous = PreviousGtidsEvent { gtid_set, format: GtidSetFormat::Untagged };
        writer.write(EventType::PREVIOUS_GTIDS, unset, &previous.encode())?;
        Ok(writer)
    }

    /// A row of a table. `map` is its map as it was kept, `number` tells maps apart; `flags` are those of foreign keys.
    pub(crate) fn row(
        &mut self,
        (number, map): (usize, &[u8]),
        row: &LoggedImages<'_>,
        RowsFlags(flags): RowsFlags,
    ) -> io::Result<()> {
        let is_long = self.size - self.statement >= STATEMENT_SIZE_MAX;
        let fits = !is_long && self.group.as_ref().is_some_and(|group| group.takes(number, flags, row));
        let is_full =
            self.group.as_ref().is_some_and(|group| group.rows.len() + row.images.len() > ROWS_SIZE_MAX);
        if !fits || is_full {
            self.end_group(!fits)?;
        }
        if self.size == 0 {
            let begin = QueryEvent {
                thread_id: 0,
                exec_time: 0,
                error_code: 0,
                status_variables: StatusVariables(b""),
                database: b"",
                statement: b"BEGIN",
            }
            .encode()
            .map_err(io::Error::other)?;
            self.keep(EventType::QUERY, &begin)?;
        }
        let group = match &mut self.group {
            Some(group) => group,
            None => {
                let map = map_of_kept(map).map_err(io::Error::other)?;
                if !fits {
                    self.statement = self.size;
                    let numbered = TableMapEvent { table_id: id_of(number), ..map };
                    let body = numbered.encode(TABLE_MAP_POST_HEADER_LENGTH).map_err(io::Error::other)?;
                    self.keep(EventType::TABLE_MAP, &body)?;
                }
                self.group.insert(Group {
                    map: number,
                    width: map.column_count() as u64,
                    event_type: row.event_type,
                    bitmaps: row.bitmaps.to_vec(),
                    flags,
                    rows: Vec::new(),
                    made: HashSet::new(),
                })
            }
        };
        group.add(row);
        Ok(())
    }

    /// Ends the transaction, if it has any rows. `time` is in microseconds since 1970.
    pub(crate) fn commit(&mut self, time: u64) -> io::Result<()> {
        self.commit_after(self.sequence_number, time)
    }

    /// Ends the transaction as [`LogWriter::commit`] does. A replica may run it once those up to the number `last_committed` are committed.
    pub(crate) fn commit_after(&mut self, last_committed: i64, time: u64) -> io::Result<()> {
        self.commit_as(None, last_committed, time)
    }

    /// As [`LogWriter::commit_after`], with a GTID or anonymous.
    pub(crate) fn commit_as(&mut self, gtid: Option<Gtid>, last_committed: i64, time: u64) -> io::Result<()> {
        self.end_group(true)?;
        if self.size == 0 {
            return Ok(());
        }
        self.keep(EventType::XID, &XidEvent { xid: self.sequence_number as u64 + 1 }.encode())?;
        let origin = TransactionOrigin {
            gtid,
            flags: GtidFlags::default(),
            times: CommitTimestamps { immediate: time, original: None },
            versions: ServerVersions { immediate: VERSION_NUMBER, original: None },
        };
        self.end_transaction(last_committed, &origin)
    }

    /// The number of the transaction that was committed last; 0: none.
    pub(crate) fn last_number(&self) -> i64 {
        self.sequence_number
    }

    /// Bytes of the open transaction, without the rows that wait for their event.
    pub(crate) fn open_size(&self) -> u64 {
        self.size
    }

    /// An event of a transaction that is passed through, to its end: [`LogWriter::pass_commit`] then ends it.
    pub(crate) fn pass(&mut self, event: &PassedEvent<'_>) -> io::Result<()> {
        let own = (event.timestamp, event.flags);
        self.keep_with(event.event_type, own, event.body)
    }

    /// Ends a transaction that is passed through. Its GTID event was this one, if it had one, and it was committed at a time in
    /// microseconds since 1970.
    pub(crate) fn pass_commit(&mut self, gtid: Option<&AnyGtidEvent<'_>>, time: u64) -> io::Result<()> {
        let times = gtid.and_then(AnyGtidEvent::commit_timestamps);
        let versions = gtid.and_then(AnyGtidEvent::server_versions);
        let origin = TransactionOrigin {
            gtid: gtid.and_then(AnyGtidEvent::gtid).filter(|_| self.has_gtids),
            flags: gtid.map(AnyGtidEvent::flags).unwrap_or_default(),
            times: times.unwrap_or(CommitTimestamps { immediate: time, original: None }),
            versions: versions.unwrap_or(ServerVersions { immediate: VERSION_NUMBER, original: None }),
        };
        self.end_transaction(self.sequence_number, &origin)
    }

    fn end_transaction(&mut self, last_committed: i64, origin: &TransactionOrigin) -> io::Result<()> {
        self.sequence_number += 1;
        let time = origin.times.original.unwrap_or(origin.times.immediate);
        let timestamp = u32::try_from(time / 1_000_000).unwrap_or(u32::MAX);
        let body = self.gtid_event(last_committed, origin)?;
        let plain = HeaderFlags::default();
        let event_type = if origin.gtid.is_some() { EventType::GTID } else { EventType::ANONYMOUS_GTID };
        self.write(event_type, (timestamp, plain), &body)?;
        let events = std::mem::replace(&mut self.events, spool());
        self.size = 0;
        self.statement = 0;
        let mut reader = RecordReader::new(events.reader(0..events.size()));
        while let Some((event_type, content)) = reader.next()? {
            let mut fields = RecordFields::of(content);
            let own = fields.u32()?;
            let flags = HeaderFlags(fields.u16()?);
            let timestamp = if own == OF_COMMIT { timestamp } else { own };
            self.write(EventType(event_type), (timestamp, flags), fields.rest())?;
        }
        Ok(())
    }

    fn gtid_event(&self, last_committed: i64, origin: &TransactionOrigin) -> io::Result<Vec<u8>> {
        let mut event = GtidEvent {
            flags: origin.flags,
            uuid: origin.gtid.map_or(ServerUuid([0; 16]), |gtid| gtid.tsid().uuid),
            gno: origin.gtid.map_or(0, |gtid| gtid.gno()),
            logical_clock: Some(LogicalClock { last_committed, sequence_number: self.sequence_number }),
            commit_timestamps: Some(origin.times),
            transaction_length: Some(self.size),
            server_versions: Some(origin.versions),
            commit_group_ticket: None,
            trailing: b"",
        };
        // The length counts the event, whose size depends on the length.
        loop {
            let body = event.encode().map_err(io::Error::other)?;
            let length = Some(self.size + (FRAME_SIZE + body.len()) as u64);
            if event.transaction_length == length {
                return Ok(body);
            }
            event.transaction_length = length;
        }
    }

    fn end_group(&mut self, ends_statement: bool) -> io::Result<()> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let has_two = matches!(group.event_type, EventType::UPDATE_ROWS | EventType::PARTIAL_UPDATE_ROWS);
        let size = if has_two { group.bitmaps.len() / 2 } else { group.bitmaps.len() };
        let (columns, after) = group.bitmaps.split_at_checked(size).unwrap_or_default();
        let end = if ends_statement { RowsFlags::STMT_END.0 } else { 0 };
        let event = RowsEvent {
            event_type: group.event_type,
            table_id: id_of(group.map),
            flags: RowsFlags(group.flags | end),
            extra_data: b"",
            width: group.width,
            columns: Bitmap(columns),
            columns_after: has_two.then_some(Bitmap(after)),
            rows: &group.rows,
        };
        let body = event.encode(ROWS_POST_HEADER_LENGTH).map_err(io::Error::other)?;
        self.keep(group.event_type, &body)
    }

    /// Keeps an event of the transaction.
    fn keep(&mut self, event_type: EventType, body: &[u8]) -> io::Result<()> {
        self.keep_with(event_type, (OF_COMMIT, HeaderFlags::default()), body)
    }

    fn keep_with(
        &mut self,
        event_type: EventType,
        (timestamp, HeaderFlags(flags)): (u32, HeaderFlags),
        body: &[u8],
    ) -> io::Result<()> {
        put(&mut self.events, event_type.0, &[&timestamp.to_le_bytes(), &flags.to_le_bytes(), body])?;
        self.size += (FRAME_SIZE + body.len()) as u64;
        Ok(())
    }

    fn write(
        &mut self,
        event_type: EventType,
        (timestamp, flags): (u32, HeaderFlags),
        body: &[u8],
    ) -> io::Result<()> {
        self.offset += (FRAME_SIZE + body.len()) as u64;
        let header = EventHeader {
            timestamp,
            event_type,
            server_id: 0,
            event_size: 0,
            // As servers write positions beyond 4 GiB.
            end_log_pos: self.offset as u32,
            flags,
        };
        self.out.write_all(&encode_event(header, body, ChecksumAlgorithm::CRC32))
    }
}

fn hash_of(image: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    image.hash(&mut hasher);
    hasher.finish()
}

fn spool() -> Spool {
    Spool::new(&SpoolMemory::new(TRANSACTION_MEMORY), Vec::new())
}

fn id_of(map: usize) -> TableId {
    TableId(map as u64 + 1)
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::event::{OptionalMetadata, ServerFamily, TableMapFlags};

    use super::*;
    use crate::record::kept_map;

    fn update(images: &'static [u8], before_size: usize, bitmaps: &'static [u8]) -> LoggedImages<'static> {
        LoggedImages { event_type: EventType::UPDATE_ROWS, bitmaps, images, before_size }
    }

    /// The sizes of the statements of rows in a log, each of which begins with a table map and is ended.
    fn statements_in(log: &[u8]) -> Vec<usize> {
        let mut sizes = Vec::new();
        let mut open = 0;
        let mut rest = &log[MAGIC.len()..];
        while !rest.is_empty() {
            let header = EventHeader::decode(rest).unwrap();
            let (event, after) = rest.split_at(header.event_size as usize);
            rest = after;
            if header.event_type == EventType::TABLE_MAP {
                assert_eq!(open, 0, "the statement before has no end");
                open = event.len();
            } else if header.event_type == EventType::WRITE_ROWS {
                let body = &event[HEADER_SIZE..];
                let front = RowsEvent::decode_front(header.event_type, body, ROWS_POST_HEADER_LENGTH);
                open += event.len();
                if front.unwrap().1.contains(RowsFlags::STMT_END) {
                    sizes.push(open);
                    open = 0;
                }
            }
        }
        assert_eq!(open, 0, "the last statement has no end");
        sizes
    }

    #[test]
    fn rows_of_a_large_transaction_are_several_statements() {
        let table = TableMapEvent {
            table_id: TableId(0),
            flags: TableMapFlags::BIT_LEN_EXACT,
            database: b"shop",
            table: b"orders",
            column_types: &[3],
            column_metadata: &[],
            null_bitmap: Bitmap(&[0]),
            optional_metadata: OptionalMetadata(&[]),
        };
        let map = kept_map(&table, ServerFamily::Mysql).unwrap();
        let images = vec![0; ROWS_SIZE_MAX];
        let event_type = EventType::WRITE_ROWS;
        let row = LoggedImages { event_type, bitmaps: &[1], images: &images, before_size: 0 };
        let mut log = Vec::new();
        {
            let mut writer = LogWriter::new(&mut log).unwrap();
            for _ in 0..2 * STATEMENT_SIZE_MAX / ROWS_SIZE_MAX as u64 + 1 {
                writer.row((0, &map), &row, RowsFlags::default()).unwrap();
            }
            writer.commit(0).unwrap();
        }
        let sizes = statements_in(&log);
        let size_max = STATEMENT_SIZE_MAX as usize + 2 * ROWS_SIZE_MAX;
        assert!(sizes.len() == 3 && sizes.iter().all(|size| *size <= size_max), "{sizes:?}");
    }

    #[test]
    fn a_row_without_a_key_is_changed_once_in_a_statement() {
        let mut group = Group {
            map: 0,
            width: 1,
            event_type: EventType::UPDATE_ROWS,
            bitmaps: vec![1, 1],
            flags: 0,
            rows: Vec::new(),
            made: HashSet::new(),
        };
        group.add(&update(b"ab", 1, &[1, 1]));
        assert!(group.takes(0, 0, &update(b"ac", 1, &[1, 1])));
        assert!(!group.takes(0, 0, &update(b"bc", 1, &[1, 1])));
        // With a key servers look for one row after the other.
        assert!(group.takes(0, 0, &update(b"bc", 0, &[1, 1])));
        assert_eq!(group.rows, b"ab");
        // What an image lacks may make both rows one.
        group.bitmaps = vec![3, 1];
        assert!(!group.takes(0, 0, &update(b"xyz", 2, &[3, 1])));
    }
}
