//! Builds logs by hand: those of servers that are not available here, and those that no server would write.
//!
//! ```text
//! LogBuilder   magic | format description | events, with sizes, positions and checksums that fit
//! Payload      the body of a transaction payload event, each field of which may lie or be missing
//! ```
//!
//! Bodies are encoded by `binlogz-binlog`, which is compared with real logs elsewhere. The only table is
//! `shop.item (v BLOB)`. A test introduces its own errors, with [`LogBuilder::event`] or a [`PayloadBody`].

use binlogz_binlog::event::{
    Bitmap, ColumnType, CommitTimestamps, CompressionType, FormatDescription, GtidEvent, GtidFlags,
    LogicalClock, OptionalMetadata, POST_HEADER_LENGTHS, QueryEvent, RowsEvent, RowsFlags,
    SERVER_VERSION_SIZE, ServerVersions, StatusVariables, TableId, TableMapEvent, TableMapFlags, XidEvent,
    rewrite_transaction_length,
};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::gtid::ServerUuid;
use binlogz_binlog::put::{PutFields, lei_size};
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, Framing, HeaderFlags, MAGIC};
use zstd_safe::zstd_sys::ZSTD_EndDirective;

const TIMESTAMP: u32 = 1_700_000_000;
const SERVER_ID: u32 = 7;
const TABLE_ID: TableId = TableId(90);
/// The server whose GTIDs the transactions have.
pub const UUID: ServerUuid = ServerUuid(*b"a server's uuid!");
/// Post-header lengths of the events of a transaction: those of 5.6 and everything since.
const TABLE_MAP_LENGTH: u8 = 8;
const ROWS_LENGTH: u8 = 10;
const ROWS_V1_LENGTH: u8 = 8;

/// A release, as far as its logs differ from those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// As its format description gives it.
    pub version: &'static str,
    /// Event types that it announces.
    pub types: usize,
    /// How its GTID events end.
    pub gtid: GtidForm,
}

/// The fields of a GTID event after its GTID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GtidForm {
    /// Nothing.
    Mysql56,
    /// The logical clock.
    Mysql57,
    /// Commit timestamps, transaction length and server versions as well.
    Mysql80,
}

impl Release {
    /// MySQL 5.5: rows of version 1, no GTIDs, no checksums.
    pub const MYSQL_5_5: Release = Release::new("5.5.62-log", 27, GtidForm::Mysql56);
    /// MariaDB 10.11: rows of version 1, GTIDs of its own. (Post-header lengths of its own event types are 0 here.)
    pub const MARIADB_10_11: Release = Release::new("10.11.6-MariaDB-log", 171, GtidForm::Mysql56);
    /// MySQL 5.6.
    pub const MYSQL_5_6: Release = Release::new("5.6.51-log", 35, GtidForm::Mysql56);
    /// MySQL 5.7.
    pub const MYSQL_5_7: Release = Release::new("5.7.44-log", 38, GtidForm::Mysql57);
    /// The last release without transaction payloads.
    pub const MYSQL_8_0_19: Release = Release::new("8.0.19", 39, GtidForm::Mysql80);
    /// The first release with them.
    pub const MYSQL_8_0_20: Release = Release::new("8.0.20", 40, GtidForm::Mysql80);
    /// The release that the corpus comes from.
    pub const MYSQL_9_7: Release = Release::new("9.7.4", 42, GtidForm::Mysql80);

    /// Whether rows are of version 1.
    fn writes_rows_v1(self) -> bool {
        [Release::MYSQL_5_5, Release::MARIADB_10_11].contains(&self)
    }

    const fn new(version: &'static str, types: usize, gtid: GtidForm) -> Release {
        Release { version, types, gtid }
    }
}

/// The rule for `end_log_pos` of the next events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndPositions {
    /// Where each ends.
    Own,
    /// Where each ended in a source's log, in which the first one began here.
    Source(u32),
    /// All the same.
    Fixed(u32),
}

/// A log that grows event by event.
#[derive(Clone, Debug)]
pub struct LogBuilder {
    release: Release,
    checksum: ChecksumAlgorithm,
    positions: EndPositions,
    flags: HeaderFlags,
    /// Where the next event begins in its log.
    offset: u64,
    gno: u64,
    bytes: Vec<u8>,
}

impl LogBuilder {
    /// A log of `release` whose events have checksums.
    pub fn new(release: Release) -> LogBuilder {
        LogBuilder::with(release, ChecksumAlgorithm::CRC32, HeaderFlags::default())
    }

    /// A log whose format description has these flags: in use, or a relay log's.
    pub fn with(release: Release, checksum: ChecksumAlgorithm, flags: HeaderFlags) -> LogBuilder {
        let mut log = LogBuilder {
            release,
            checksum,
            positions: EndPositions::Own,
            flags,
            offset: MAGIC.len() as u64,
            gno: 0,
            bytes: MAGIC.to_vec(),
        };
        log.format_description(release);
        log.flags = HeaderFlags::default();
        log
    }

    /// Sets the positions of the next events.
    pub fn positions(&mut self, positions: EndPositions) -> &mut LogBuilder {
        self.positions = positions;
        self
    }

    /// Sets the flags of the next events.
    pub fn flags(&mut self, flags: HeaderFlags) -> &mut LogBuilder {
        self.flags = flags;
        self
    }

    /// The GTID of the last transaction before: a log is rarely a server's first.
    pub fn behind_gno(&mut self, gno: u64) -> &mut LogBuilder {
        self.gno = gno;
        self
    }

    /// The next event begins this many bytes further on: the caller fills the gap.
    pub fn skip(&mut self, bytes: u64) -> &mut LogBuilder {
        self.offset += bytes;
        self
    }

    /// A format description, at the beginning and (the source's) in relay logs.
    pub fn format_description(&mut self, release: Release) -> &mut LogBuilder {
        let mut server_version = [0; SERVER_VERSION_SIZE];
        server_version[..release.version.len()].copy_from_slice(release.version.as_bytes());
        let mut post_header_lengths = POST_HEADER_LENGTHS.to_vec();
        post_header_lengths.resize(release.types, 0);
        if release.writes_rows_v1() {
            let v1 = usize::from(EventType::WRITE_ROWS_V1.0) - 1..usize::from(EventType::DELETE_ROWS_V1.0);
            post_header_lengths[v1].fill(ROWS_V1_LENGTH);
        }
        let body = FormatDescription {
            binlog_version: 4,
            server_version,
            created: 0,
            header_length: 19,
            post_header_lengths,
            checksum_algorithm: self.checksum,
        }
        .encode();
        // It has its own checksum even if the others have none.
        self.event_with(EventType::FORMAT_DESCRIPTION, &body, ChecksumAlgorithm::CRC32)
    }

    /// An event of any type with any body.
    pub fn event(&mut self, event_type: EventType, body: &[u8]) -> &mut LogBuilder {
        self.event_with(event_type, body, self.checksum)
    }

    fn event_with(
        &mut self,
        event_type: EventType,
        body: &[u8],
        checksum: ChecksumAlgorithm,
    ) -> &mut LogBuilder {
        let size = (19 + body.len() + checksum.size()) as u64;
        let end_log_pos = match &mut self.positions {
            EndPositions::Own => (self.offset + size) as u32,
            EndPositions::Source(position) => {
                *position = position.wrapping_add(size as u32);
                *position
            }
            EndPositions::Fixed(position) => *position,
        };
        self.offset += size;
        let header = EventHeader { end_log_pos, flags: self.flags, ..header(event_type) };
        self.bytes.extend(encode_event(header, body, checksum));
        self
    }

    /// A transaction that inserts values, each with a rows event of its own.
    pub fn transaction(&mut self, values: &[&[u8]]) -> &mut LogBuilder {
        self.transaction_of(&transaction_events(values))
    }

    /// A transaction of these events, with their bodies.
    pub fn transaction_of(&mut self, events: &[(EventType, Vec<u8>)]) -> &mut LogBuilder {
        let sizes = events.iter().map(|(_, body)| 19 + body.len() + self.checksum.size());
        self.gtid(sizes.sum::<usize>() as u64);
        for (event_type, body) in events {
            self.event(*event_type, body);
        }
        self
    }

    /// A transaction of statements or rows as the release writes it without MySQL's GTIDs: after BEGIN, or in MariaDB
    /// after its own GTID event, whose flags mean BEGIN. The events are those after BEGIN.
    pub fn transaction_without_gtid(&mut self, events: &[(EventType, Vec<u8>)]) -> &mut LogBuilder {
        if self.release == Release::MARIADB_10_11 {
            self.gno += 1;
            let mut body = self.gno.to_le_bytes().to_vec();
            body.extend([0; 4 + 1 + 6]); // domain, flags: transactional rows, unused
            self.event(EventType::MARIADB_GTID, &body);
        } else {
            self.event(EventType::QUERY, &query("BEGIN"));
        }
        for (event_type, body) in events {
            self.event(*event_type, body);
        }
        self
    }

    /// The type of events with inserted rows in logs of the release.
    pub fn write_rows(&self) -> EventType {
        if self.release.writes_rows_v1() { EventType::WRITE_ROWS_V1 } else { EventType::WRITE_ROWS }
    }

    /// A transaction in a payload, honest or not.
    pub fn payload(&mut self, payload: &PayloadBody) -> &mut LogBuilder {
        let body = payload.encode();
        self.gtid((19 + body.len() + self.checksum.size()) as u64);
        self.event(EventType::TRANSACTION_PAYLOAD, &body)
    }

    /// The GTID event of a transaction in which this many bytes follow it.
    pub fn gtid(&mut self, following: u64) -> &mut LogBuilder {
        self.gno += 1;
        let body = gtid_event(self.release.gtid, self.gno).encode().expect("no part is missing");
        let event = encode_event(header(EventType::GTID), &body, self.checksum);
        let framing = Framing::with_checksum(self.checksum);
        let frame = framing.next_frame(&event).ok().flatten().expect("whole").verify().expect("made here");
        let mut rewritten = Vec::new();
        rewrite_transaction_length(&frame, following, &mut rewritten).expect("a GTID event");
        let body = &rewritten[19..rewritten.len() - self.checksum.size()];
        self.event(EventType::GTID, body)
    }

    /// Where the next event begins in its log.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes of the log so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes since the last time; for logs that are put together elsewhere.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

fn header(event_type: EventType) -> EventHeader {
    EventHeader {
        timestamp: TIMESTAMP,
        event_type,
        server_id: SERVER_ID,
        event_size: 0,
        end_log_pos: 0,
        flags: HeaderFlags::default(),
    }
}

fn gtid_event(form: GtidForm, gno: u64) -> GtidEvent<'static> {
    let since = |first: GtidForm| form >= first;
    let clock = LogicalClock { last_committed: gno as i64 - 1, sequence_number: gno as i64 };
    GtidEvent {
        flags: GtidFlags::default(),
        uuid: UUID,
        gno,
        logical_clock: since(GtidForm::Mysql57).then_some(clock),
        commit_timestamps: since(GtidForm::Mysql80)
            .then_some(CommitTimestamps { immediate: 1_700_000_000_000_000, original: None }),
        transaction_length: since(GtidForm::Mysql80).then_some(0),
        server_versions: since(GtidForm::Mysql80)
            .then_some(ServerVersions { immediate: 80_019, original: None }),
        commit_group_ticket: None,
        trailing: &[],
    }
}

/// The events after a GTID event that insert values, with their bodies.
pub fn transaction_events(values: &[&[u8]]) -> Vec<(EventType, Vec<u8>)> {
    transaction_with(
        values.iter().map(|value| (EventType::WRITE_ROWS, rows(EventType::WRITE_ROWS, &[value]))),
    )
}

/// The events after a GTID event that insert or delete rows with these values, or update them: before and
/// after, in turn.
pub fn change_events(event_type: EventType, values: &[&[u8]]) -> Vec<(EventType, Vec<u8>)> {
    transaction_with([(event_type, rows(event_type, values))])
}

/// The events of one INSERT, without BEGIN: a table map, then events of this type with one row each, the last of which
/// ends the statement.
pub fn insert_events(event_type: EventType, values: &[&[u8]]) -> Vec<(EventType, Vec<u8>)> {
    let mut events = vec![(EventType::TABLE_MAP, table_map())];
    for (index, value) in values.iter().enumerate() {
        let flags = if index + 1 == values.len() { RowsFlags::STMT_END } else { RowsFlags::default() };
        events.push((event_type, rows_with(event_type, flags, &[value])));
    }
    events
}

/// The end of a transaction.
pub fn xid() -> (EventType, Vec<u8>) {
    (EventType::XID, XidEvent { xid: 1 }.encode())
}

/// The events after a GTID event, around those of rows.
fn transaction_with(rows: impl IntoIterator<Item = (EventType, Vec<u8>)>) -> Vec<(EventType, Vec<u8>)> {
    let mut events = vec![(EventType::QUERY, query("BEGIN")), (EventType::TABLE_MAP, table_map())];
    events.extend(rows);
    events.push(xid());
    events
}

/// The events of a transaction as they are inside a payload: no checksum, position 0.
pub fn inner_transaction(values: &[&[u8]]) -> Vec<u8> {
    transaction_events(values).iter().flat_map(|(event_type, body)| inner_event(*event_type, body)).collect()
}

/// An event as it is inside a payload.
pub fn inner_event(event_type: EventType, body: &[u8]) -> Vec<u8> {
    encode_event(header(event_type), body, ChecksumAlgorithm::NONE)
}

/// The body of a query event.
pub fn query(statement: &str) -> Vec<u8> {
    let event = QueryEvent {
        thread_id: 1,
        exec_time: 0,
        error_code: 0,
        status_variables: StatusVariables(&[]),
        database: b"shop",
        statement: statement.as_bytes(),
    };
    event.encode().expect("a short database name")
}

fn table_map() -> Vec<u8> {
    let event = TableMapEvent {
        table_id: TABLE_ID,
        flags: TableMapFlags::BIT_LEN_EXACT,
        database: b"shop",
        table: b"item",
        column_types: &[ColumnType::BLOB.0],
        column_metadata: &[4], // bytes of a value's length
        null_bitmap: Bitmap(&[0]),
        optional_metadata: OptionalMetadata(&[]),
    };
    event.encode(TABLE_MAP_LENGTH).expect("a post-header of 8 bytes")
}

fn rows(event_type: EventType, values: &[&[u8]]) -> Vec<u8> {
    rows_with(event_type, RowsFlags::default(), values)
}

fn rows_with(event_type: EventType, flags: RowsFlags, values: &[&[u8]]) -> Vec<u8> {
    let mut rows = Vec::new();
    for value in values {
        rows.push(0); // no NULL
        rows.put_u32(value.len() as u32);
        rows.put(value);
    }
    let event = RowsEvent {
        event_type,
        table_id: TABLE_ID,
        flags,
        extra_data: &[],
        width: 1,
        columns: Bitmap(&[1]),
        columns_after: (event_type == EventType::UPDATE_ROWS).then_some(Bitmap(&[1])),
        rows: &rows,
    };
    let is_v1 = (EventType::WRITE_ROWS_V1..=EventType::DELETE_ROWS_V1).contains(&event_type);
    event.encode(if is_v1 { ROWS_V1_LENGTH } else { ROWS_LENGTH }).expect("a post-header of 8 or 10 bytes")
}

/// The body of a transaction payload event. `None` leaves a field out; nothing has to be true.
#[derive(Clone, Debug)]
pub struct PayloadBody {
    /// 0 zstd, 255 none.
    pub compression_type: Option<u64>,
    /// Bytes of the events inside.
    pub uncompressed_size: Option<u64>,
    /// Bytes of `payload`.
    pub payload_size: Option<u64>,
    /// The bytes after the fields.
    pub payload: Vec<u8>,
    /// The bytes after the payload.
    pub trailing: Vec<u8>,
}

impl PayloadBody {
    /// Events in one zstd frame, as the server writes them.
    pub fn zstd(events: &[u8]) -> PayloadBody {
        PayloadBody::of(
            CompressionType::ZSTD,
            Some(events.len() as u64),
            zstd_frame(events, ContentSize::Told),
        )
    }

    /// Events as they are.
    pub fn none(events: &[u8]) -> PayloadBody {
        PayloadBody::of(CompressionType::NONE, None, events.to_vec())
    }

    /// Any bytes.
    pub fn of(
        compression_type: CompressionType,
        uncompressed_size: Option<u64>,
        payload: Vec<u8>,
    ) -> PayloadBody {
        PayloadBody {
            compression_type: Some(compression_type.0),
            uncompressed_size,
            payload_size: Some(payload.len() as u64),
            payload,
            trailing: Vec::new(),
        }
    }

    /// The body, its fields in the server's order.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let fields = [(2, self.compression_type), (3, self.uncompressed_size), (1, self.payload_size)];
        for (field_type, value) in fields {
            let Some(value) = value else { continue };
            body.put_lei(field_type);
            body.put_lei(lei_size(value) as u64);
            body.put_lei(value);
        }
        body.put_lei(0);
        body.put(&self.payload);
        body.put(&self.trailing);
        body
    }
}

/// A log of some kilobytes with one transaction, whose only row is this many compressed zeros. Takes no more
/// memory than the log.
pub fn bomb(zeros: u32) -> Vec<u8> {
    let mut front = inner_event(EventType::QUERY, &query("BEGIN"));
    front.extend(inner_event(EventType::TABLE_MAP, &table_map()));
    front.extend(row_of_zeros(zeros, ChecksumAlgorithm::NONE));
    let back = inner_event(EventType::XID, &XidEvent { xid: 1 }.encode());
    let size = front.len() as u64 + u64::from(zeros) + back.len() as u64;

    let mut context = zstd_safe::CCtx::create();
    context.set_pledged_src_size(Some(size)).expect("nothing was compressed yet");
    let mut payload = Vec::new();
    let mut feed = |bytes: &[u8], end| {
        let mut input = zstd_safe::InBuffer::around(bytes);
        loop {
            payload.reserve(1 << 10);
            let filled = payload.len();
            let mut output = zstd_safe::OutBuffer::around_pos(&mut payload, filled);
            let left = context.compress_stream2(&mut output, &mut input, end).expect("a good frame");
            if input.pos() == bytes.len() && (left == 0 || end == ZSTD_EndDirective::ZSTD_e_continue) {
                return;
            }
        }
    };
    feed(&front, ZSTD_EndDirective::ZSTD_e_continue);
    let chunk = vec![0; 1 << 20];
    let mut left = zeros as usize;
    while left > 0 {
        let count = left.min(chunk.len());
        feed(&chunk[..count], ZSTD_EndDirective::ZSTD_e_continue);
        left -= count;
    }
    feed(&back, ZSTD_EndDirective::ZSTD_e_end);
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.transaction(&[b"before"]).payload(&PayloadBody::of(CompressionType::ZSTD, Some(size), payload));
    log.transaction(&[b"behind"]);
    log.take()
}

/// The front of a rows event with one value of this many zeros, which come next (and then the checksum).
fn row_of_zeros(zeros: u32, checksum: ChecksumAlgorithm) -> Vec<u8> {
    let body = rows(EventType::WRITE_ROWS, &[&[]]);
    let event_size = (19 + body.len() + checksum.size()) as u32 + zeros;
    let mut event = EventHeader { event_size, ..header(EventType::WRITE_ROWS) }.encode().to_vec();
    event.put(&body[..body.len() - 4]);
    event.put_u32(zeros);
    event
}

/// Whether a zstd frame says how large its content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentSize {
    /// As since 8.0.35.
    Told,
    /// As before.
    Unknown,
}

/// One zstd frame at level 3.
pub fn zstd_frame(content: &[u8], size: ContentSize) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    let told = size == ContentSize::Told;
    context
        .set_parameter(zstd_safe::CParameter::ContentSizeFlag(told))
        .expect("a parameter of every release");
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(content.len()));
    context.compress2(&mut frame, content).expect("room for the bound");
    frame
}
