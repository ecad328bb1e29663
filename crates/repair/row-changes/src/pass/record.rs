//! Workers' records about the events of a batch, in a spool: bounded memory, whatever a batch expands to.
//!
//! ```text
//! size field
//!    1 kind
//!    4 size        of what follows
//!    n content     begin, query, prepared: offset u64, timestamp u32, event type u8, body
//!                  previous GTIDs: the body; rotate: the name
//!                  statement: the text; table: structure, `database`, NUL, `table`
//!                  row: offset u64, index in the payload u64 (u64::MAX: in none), row u64, timestamp u32, flags u8, what the
//!                  renderer wrote
//!                  keys: whether the row is chosen u8 (0, 1), how many digests u8, each u128, `database`, NUL, `table`
//!                  row part: what the renderer wrote of the row after it, so far
//!                  table map: its body, with 0 for the table's number
//!                  images' table: offset u64, table map as above; image: operation u8, its cells before and after the change, see cells.rs
//!                  carried: the foreign key's number u32, offset u64, index in the payload u64 as above
//!                  together: how many rows u64 (u64::MAX: they can't be counted), offset u64, index in the payload u64 as above, `database`,
//!                  NUL, `table`
//!                  undecided: why, as text
//!                  lost images: `database`, NUL, `table`, NUL, why; end, lacking, keys below, statement end: nothing
//! ```

use std::io::{self, Read};

use binlogz_binlog::EventType;
use binlogz_payload::Spool;

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// The first event of a transaction.
    Begin = 1,
    Query,
    /// A `LOAD DATA` that is logged as a statement.
    LoadQuery,
    XaPrepare,
    RowsQuery,
    Table,
    Row,
    /// A transaction's last event has passed.
    End,
    /// The table map of the rows after it.
    TableMap,
    /// All transactions before the log.
    PreviousGtids,
    /// The next log.
    Rotate,
    /// A row's keys, before the row if that is chosen.
    Keys,
    /// The front of a long text, before its row.
    RowPart,
    /// The row after it lacks columns that it would need.
    Lacking,
    /// The table of the images after it.
    ImagesTable,
    /// The images of a row, chosen or not, before the row if that is chosen.
    Image,
    /// Images of a table can't be read.
    LostImages,
    /// A change on account of which foreign keys may have changed rows that aren't in the log.
    KeysBelow,
    /// A changed row of a parent, which a foreign key carried on below the log.
    Carried,
    /// Rows of a table that isn't chosen, of a statement that may have chosen ones.
    Together,
    /// The last rows of a statement that may have chosen ones have passed.
    StatementEnd,
    /// Whether the row after it is chosen can't be told by its own images.
    Undecided,
}

impl RecordKind {
    fn of(code: u8) -> Option<Self> {
        use RecordKind::{
            Begin, Carried, End, Image, ImagesTable, Keys, KeysBelow, Lacking, LoadQuery, LostImages,
            PreviousGtids, Query, Rotate, Row, RowPart, RowsQuery, StatementEnd, Table, TableMap, Together,
            Undecided, XaPrepare,
        };
        let of_rows = [Table, TableMap, Lacking, Row, RowPart, Keys];
        let of_images = [ImagesTable, Image, LostImages, KeysBelow, Carried, Undecided];
        let of_statements = [Together, StatementEnd];
        [Begin, Query, LoadQuery, XaPrepare, RowsQuery, End, PreviousGtids, Rotate]
            .into_iter()
            .chain(of_rows)
            .chain(of_images)
            .chain(of_statements)
            .find(|kind| *kind as u8 == code)
    }
}

/// An event that was passed on.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventAt<'b> {
    pub(super) offset: u64,
    pub(super) timestamp: u32,
    pub(super) event_type: EventType,
    pub(super) body: &'b [u8],
}

/// A chosen row, and the text or bytes made of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowAt<'b> {
    /// Where its event begins, or the payload that holds it.
    pub(crate) offset: u64,
    /// Which event of the payload it is.
    pub(crate) inside: Option<u64>,
    /// Which row of the event it is.
    pub(crate) row: u64,
    /// Of a deleted row that is the last of its event: where the next event begins, or which of the payload that is.
    pub(crate) next_event: Option<u64>,
    /// When the statement began.
    pub(crate) timestamp: u32,
    pub(crate) flags: RowFlags,
    /// The renderer's text.
    pub(crate) text: &'b [u8],
}

/// The keys of a row, before and after its change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowKeys<'b> {
    /// Whether the row is one that was asked for, if its transaction is.
    pub(super) is_chosen: bool,
    digests: &'b [u8],
    /// `database`, NUL, `table`.
    table: &'b [u8],
}

impl RowKeys<'_> {
    pub(crate) fn digests(&self) -> impl Iterator<Item = u128> {
        let (digests, _) = self.digests.as_chunks::<16>();
        digests.iter().map(|digest| u128::from_le_bytes(*digest))
    }

    /// The table, by database and name.
    pub(crate) fn names(&self) -> (String, String) {
        let names = String::from_utf8_lossy(self.table);
        let (database, table) = names.split_once('\0').unwrap_or(("", &names));
        (database.to_owned(), table.to_owned())
    }

    /// `database.table`, for messages.
    pub(crate) fn table(&self) -> String {
        String::from_utf8_lossy(self.table).replacen('\0', ".", 1)
    }
}

/// How a row's statement is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowFlags(pub(crate) u8);

impl RowFlags {
    /// Foreign keys are not checked.
    pub(crate) const NO_FOREIGN_KEYS: u8 = 1;
    /// The session must not be strict.
    pub(crate) const LENIENT: u8 = 2;
    /// There is no statement: the text says why.
    pub(crate) const MISSING: u8 = 4;
    /// The SQL layer kept the foreign keys, as since 9.6: rows that they changed are in the log themselves.
    pub(crate) const SQL_FOREIGN_KEYS: u8 = 8;
    /// The row's event is the last of its statement.
    pub(crate) const ENDS_STATEMENT: u8 = 16;
    /// It was an UPDATE.
    pub(crate) const UPDATE: u8 = 32;
    /// Statements that changed its table later are taken into account.
    pub(crate) const SETTLED: u8 = 64;
    /// Nothing is in the log between it and the kept row before it, which the same statement deleted.
    pub(crate) const FOLLOWS_DELETED: u8 = 128;

    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    /// Foreign keys weren't checked for it, either because its session had switched that off or because a foreign key
    /// itself changed it: since 9.6 the log doesn't tell which.
    pub(crate) fn may_be_cascaded(self) -> bool {
        self.has(Self::NO_FOREIGN_KEYS) && self.has(Self::SQL_FOREIGN_KEYS)
    }

    /// A foreign key changed it on account of the row that comes after it in the same statement.
    pub(crate) fn is_cascaded(self) -> bool {
        self.may_be_cascaded() && !self.has(Self::ENDS_STATEMENT)
    }
}

pub(super) fn put(spool: &mut Spool, kind: RecordKind, parts: &[&[u8]]) -> io::Result<()> {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    let size =
        u32::try_from(size).map_err(|_| io::Error::other("a row takes more than 4 GiB as a statement"))?;
    spool.append(&[kind as u8])?;
    spool.append(&size.to_le_bytes())?;
    parts.iter().try_for_each(|part| spool.append(part))
}

pub(super) fn put_event(spool: &mut Spool, kind: RecordKind, event: EventAt<'_>) -> io::Result<()> {
    let front = (event.offset.to_le_bytes(), event.timestamp.to_le_bytes(), [event.event_type.0]);
    put(spool, kind, &[&front.0, &front.1, &front.2, event.body])
}

pub(super) fn put_row(spool: &mut Spool, row: RowAt<'_>) -> io::Result<()> {
    let [inside, next] = [row.inside, row.next_event].map(|number| number.unwrap_or(u64::MAX));
    let numbers = [row.offset, inside, row.row, next].map(u64::to_le_bytes);
    let front = (row.timestamp.to_le_bytes(), [row.flags.0]);
    put(spool, RecordKind::Row, &[numbers.as_flattened(), &front.0, &front.1, row.text])
}

pub(super) fn put_keys(
    spool: &mut Spool,
    is_chosen: bool,
    digests: &[u128],
    (database, table): (&[u8], &[u8]),
) -> io::Result<()> {
    let front = [u8::from(is_chosen), digests.len() as u8];
    let digests: Vec<_> = digests.iter().map(|digest| digest.to_le_bytes()).collect();
    put(spool, RecordKind::Keys, &[&front, digests.as_flattened(), database, &[0], table])
}

pub(super) fn put_carried(
    spool: &mut Spool,
    key: u32,
    (offset, inside): (u64, Option<u64>),
) -> io::Result<()> {
    let place = [offset, inside.unwrap_or(u64::MAX)].map(u64::to_le_bytes);
    put(spool, RecordKind::Carried, &[&key.to_le_bytes(), place.as_flattened()])
}

/// The foreign key's number, the offset, and the index in the payload.
pub(super) fn carried_of(content: &[u8]) -> io::Result<(u32, u64, Option<u64>)> {
    let read = || {
        let (key, rest) = content.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (inside, _) = rest.split_first_chunk()?;
        let inside = u64::from_le_bytes(*inside);
        Some((u32::from_le_bytes(*key), u64::from_le_bytes(*offset), (inside != u64::MAX).then_some(inside)))
    };
    read().ok_or_else(broken)
}

/// Rows of a table that isn't chosen: how many, if they can be counted.
pub(super) struct RowsAt<'b> {
    pub(super) count: Option<u64>,
    pub(super) offset: u64,
    pub(super) inside: Option<u64>,
    /// `database`, NUL, `table`.
    names: &'b [u8],
}

impl RowsAt<'_> {
    /// `database.table`, for messages.
    pub(super) fn table(&self) -> String {
        String::from_utf8_lossy(self.names).replacen('\0', ".", 1)
    }
}

pub(super) fn put_together(
    spool: &mut Spool,
    count: Option<u64>,
    (offset, inside): (u64, Option<u64>),
    (database, table): (&[u8], &[u8]),
) -> io::Result<()> {
    let numbers = [count.unwrap_or(u64::MAX), offset, inside.unwrap_or(u64::MAX)].map(u64::to_le_bytes);
    put(spool, RecordKind::Together, &[numbers.as_flattened(), database, &[0], table])
}

pub(super) fn together_of(content: &[u8]) -> io::Result<RowsAt<'_>> {
    let (numbers, names) = content.split_first_chunk::<24>().ok_or_else(broken)?;
    let ([count, offset, inside], _) = numbers.as_chunks::<8>() else { return Err(broken()) };
    let [count, offset, inside] = [count, offset, inside].map(|number| u64::from_le_bytes(*number));
    let known = |number: u64| (number != u64::MAX).then_some(number);
    Ok(RowsAt { count: known(count), offset, inside: known(inside), names })
}

/// Reads records one after the other.
pub(super) struct Records<'s> {
    reader: io::BufReader<Box<dyn Read + 's>>,
    content: Vec<u8>,
}

impl<'s> Records<'s> {
    pub(super) fn new(spool: &'s Spool) -> Self {
        let reader = io::BufReader::new(Box::new(spool.reader(0..spool.size())) as Box<dyn Read>);
        Records { reader, content: Vec::new() }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<(RecordKind, &[u8])>> {
        let mut front = [0; 5];
        if io::BufRead::fill_buf(&mut self.reader)?.is_empty() {
            return Ok(None);
        }
        self.reader.read_exact(&mut front)?;
        let [code, size @ ..] = front;
        self.content.resize(u32::from_le_bytes(size) as usize, 0);
        self.reader.read_exact(&mut self.content)?;
        let kind = RecordKind::of(code).ok_or_else(broken)?;
        Ok(Some((kind, &self.content)))
    }
}

pub(super) fn event_of(content: &[u8]) -> io::Result<EventAt<'_>> {
    let read = || {
        let (offset, rest) = content.split_first_chunk()?;
        let (timestamp, rest) = rest.split_first_chunk()?;
        let (event_type, body) = rest.split_first()?;
        Some(EventAt {
            offset: u64::from_le_bytes(*offset),
            timestamp: u32::from_le_bytes(*timestamp),
            event_type: EventType(*event_type),
            body,
        })
    };
    read().ok_or_else(broken)
}

pub(super) fn keys_of(content: &[u8]) -> io::Result<RowKeys<'_>> {
    let read = || {
        let ([is_chosen, count], rest) = content.split_first_chunk()?;
        let (digests, table) = rest.split_at_checked(usize::from(*count) * size_of::<u128>())?;
        Some(RowKeys { is_chosen: *is_chosen == 1, digests, table })
    };
    read().ok_or_else(broken)
}

pub(super) fn row_of(content: &[u8]) -> io::Result<RowAt<'_>> {
    let read = || {
        let (offset, rest) = content.split_first_chunk()?;
        let (inside, rest) = rest.split_first_chunk()?;
        let (row, rest) = rest.split_first_chunk()?;
        let (next, rest) = rest.split_first_chunk()?;
        let (timestamp, rest) = rest.split_first_chunk()?;
        let (flags, text) = rest.split_first()?;
        Some(RowAt {
            offset: u64::from_le_bytes(*offset),
            inside: Some(u64::from_le_bytes(*inside)).filter(|index| *index != u64::MAX),
            row: u64::from_le_bytes(*row),
            next_event: Some(u64::from_le_bytes(*next)).filter(|next| *next != u64::MAX),
            timestamp: u32::from_le_bytes(*timestamp),
            flags: RowFlags(*flags),
            text,
        })
    };
    read().ok_or_else(broken)
}

/// Our own bytes came back otherwise: a temporary file was changed.
pub(crate) fn broken() -> io::Error {
    io::Error::other("a temporary file does not hold what was written to it")
}
