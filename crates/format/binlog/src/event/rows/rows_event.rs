//! Row events of every generation: which table, which columns, then the rows.
//!
//! ```text
//! size field
//!    6 table_id        as the table map in front gave it; 4 bytes where the post-header has 6
//!    2 flags
//!    2 extra_size      of the extra data, these two bytes included; types 30 to 32 and 39 only
//!    n extra_data      chunks, see ExtraRowInfo
//!  LEI width           columns of the table
//!    m columns         bitmap: columns in the image (update: in the before-image)
//!    m columns_after   bitmap: columns in the after-image; updates only, not in type 21
//!      rows            the rest
//! ```
//!
//! | codes | generation | written by |
//! |---|---|---|
//! | 20 to 22 | pre-GA | 5.1 betas |
//! | 23 to 25 | v1 | 5.1, 5.5, MariaDB |
//! | 30 to 32 | v2 | since 5.6 |
//! | 39 | v2, JSON columns as differences | since 8.0.3 |
//!
//! `crate::row` reads the rows themselves, using the table map. (Facts of MySQL 9.7.4's `Rows_event` and of
//! 5.1's `Old_rows_log_event`.)

use super::Bitmap;
use super::table_id::{TableId, table_id_width};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::narrow;
use crate::event_type::EventType;
use crate::frame::decode_whole;
use crate::put::PutFields;

const WHAT: &str = "rows event";
/// Bytes of the size field before the extra data; the size counts itself.
const EXTRA_SIZE_SIZE: u8 = 2;

/// Flags of a row event. Unknown bits survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RowsFlags(pub u16);

impl RowsFlags {
    /// The last row event of its statement.
    pub const STMT_END: Self = RowsFlags(0x01);
    /// `foreign_key_checks` was off; beside [`USE_SQL_FOREIGN_KEY`](Self::USE_SQL_FOREIGN_KEY) also: a foreign key changed
    /// the row.
    pub const NO_FOREIGN_KEY_CHECKS: Self = RowsFlags(0x02);
    /// `unique_checks` was off.
    pub const RELAXED_UNIQUE_CHECKS: Self = RowsFlags(0x04);
    /// Every column is in the images.
    pub const COMPLETE_ROWS: Self = RowsFlags(0x08);
    /// The SQL layer keeps the foreign keys, as since 9.6 by default: rows that they change are in the log, before the
    /// row whose change caused theirs. The flag doesn't say that checks were off.
    pub const USE_SQL_FOREIGN_KEY: Self = RowsFlags(0x10);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The change that a row event makes to its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowsKind {
    /// An insert: each row has one after-image.
    Write,
    /// An update: each row has a before-image and an after-image.
    Update,
    /// A delete: each row has one before-image.
    Delete,
    /// An update whose after-image begins with value options and may hold JSON differences.
    PartialUpdate,
}

impl RowsKind {
    /// The operation on the rows, as all outputs name it: `insert`, `update` or `delete`.
    #[must_use]
    pub fn operation(self) -> &'static str {
        match self {
            RowsKind::Write => "insert",
            RowsKind::Update | RowsKind::PartialUpdate => "update",
            RowsKind::Delete => "delete",
        }
    }
}

/// The layout of a row event, which its type code decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Generation {
    PreGa,
    V1,
    V2,
}

impl Generation {
    /// Bytes of the post-header after the flags.
    fn extra_size_size(self) -> u8 {
        if self == Generation::V2 { EXTRA_SIZE_SIZE } else { 0 }
    }
}

/// A decoded row event. The rows stay unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsEvent<'a> {
    /// The type code: it tells kind and layout.
    pub event_type: EventType,
    /// The table's number, as assigned by the preceding table map.
    pub table_id: TableId,
    /// Flags of the event.
    pub flags: RowsFlags,
    /// Chunks read by [`RowsEvent::extra_row_info`]; empty before 5.6.
    pub extra_data: &'a [u8],
    /// Columns of the table.
    pub width: u64,
    /// Columns in the image; of an update, in the before-image.
    pub columns: Bitmap<'a>,
    /// Columns in the after-image of an update; `None` for the others.
    pub columns_after: Option<Bitmap<'a>>,
    /// The row images, one after the other.
    pub rows: &'a [u8],
}

impl<'a> RowsEvent<'a> {
    /// Reads a body without its checksum. `post_header_length` is the format description's for
    /// this type.
    ///
    /// # Errors
    ///
    /// A type that is not a row event, a field that is cut, an extra size below its own two bytes.
    pub fn decode(event_type: EventType, body: &'a [u8], post_header_length: u8) -> Result<Self> {
        let (kind, generation) = layout(event_type)?;
        let id_width = table_id_width(WHAT, post_header_length, generation.extra_size_size())?;
        decode_whole(body, WHAT, |cursor| {
            let table_id = TableId::read(cursor, id_width)?;
            let flags = RowsFlags(cursor.u16("flags")?);
            let extra_data = match generation {
                Generation::V2 => read_extra_data(cursor)?,
                Generation::PreGa | Generation::V1 => &[],
            };
            let width = cursor.lei("width")?;
            let columns = Bitmap(cursor.bytes_u64(Bitmap::size(width), "columns")?);
            let columns_after = if has_columns_after(kind, generation) {
                Some(Bitmap(cursor.bytes_u64(Bitmap::size(width), "columns after")?))
            } else {
                None
            };
            let rows = cursor.rest();
            Ok(RowsEvent { event_type, table_id, flags, extra_data, width, columns, columns_after, rows })
        })
    }

    /// Only the table's number and the flags, which come first, for readers that don't read the rows
    /// themselves.
    ///
    /// # Errors
    ///
    /// A type that is not a row event, a body that ends before them.
    #[inline]
    pub fn decode_front(
        event_type: EventType,
        body: &[u8],
        post_header_length: u8,
    ) -> Result<(TableId, RowsFlags)> {
        let (_, generation) = layout(event_type)?;
        let id_width = table_id_width(WHAT, post_header_length, generation.extra_size_size())?;
        let mut cursor = Cursor::new(body, WHAT);
        let table_id = TableId::read(&mut cursor, id_width)?;
        Ok((table_id, RowsFlags(cursor.u16("flags")?)))
    }

    /// The body as it is in a file, without the checksum.
    ///
    /// # Errors
    ///
    /// A type that is not a row event, extra data above 65,533 bytes, bitmaps that don't fit the type and the
    /// width.
    pub fn encode(&self, post_header_length: u8) -> Result<Vec<u8>> {
        let (kind, generation) = layout(self.event_type)?;
        let mut body = Vec::with_capacity(self.rows.len() + self.extra_data.len() + 64);
        let id_width = table_id_width(WHAT, post_header_length, generation.extra_size_size())?;
        self.table_id.write(&mut body, id_width);
        body.put_u16(self.flags.0);
        if generation == Generation::V2 {
            let size = self.extra_data.len() + usize::from(EXTRA_SIZE_SIZE);
            body.put_u16(narrow(size, WHAT, "extra size", "at most 65535 bytes")?);
            body.put(self.extra_data);
        }
        body.put_lei(self.width);
        let put_bitmap = |body: &mut Vec<u8>, bitmap: Bitmap<'_>| {
            if bitmap.0.len() as u64 != Bitmap::size(self.width) {
                return Err(Error::invalid(WHAT, "bitmap size", bitmap.0.len(), "a bit for each column"));
            }
            body.put(bitmap.0);
            Ok(())
        };
        put_bitmap(&mut body, self.columns)?;
        match (self.columns_after, has_columns_after(kind, generation)) {
            (Some(columns_after), true) => put_bitmap(&mut body, columns_after)?,
            (None, false) => {}
            (Some(_), false) => {
                return Err(Error::invalid(WHAT, "columns after", "there", "none for this type"));
            }
            (None, true) => return Err(Error::invalid(WHAT, "columns after", "absent", "a bitmap")),
        }
        body.put(self.rows);
        Ok(body)
    }

    /// The change that the event makes to its rows.
    pub fn kind(&self) -> RowsKind {
        // An event of another type can't have been decoded; if constructed by hand, it is treated as Write.
        layout(self.event_type).map_or(RowsKind::Write, |(kind, _)| kind)
    }

    /// The chunks of the extra data. An error ends the iteration.
    pub fn extra_row_info(&self) -> impl Iterator<Item = Result<ExtraRowInfo<'a>>> + use<'a> {
        let mut cursor = Cursor::new(self.extra_data, "extra row info");
        let kind = self.kind();
        std::iter::from_fn(move || {
            if cursor.is_empty() {
                return None;
            }
            let info = ExtraRowInfo::read(&mut cursor, kind);
            if info.is_err() {
                cursor.rest();
            }
            Some(info)
        })
    }
}

/// A chunk of extra data in a row event.
///
/// ```text
/// tag chunk
///   0 NDB        size u8 (of size, format and data), format u8, data
///   1 partition  partition_id u16; updates also source_partition_id u16
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtraRowInfo<'a> {
    /// NDB's own.
    Ndb {
        /// How to read the data.
        format: u8,
        /// The data.
        data: &'a [u8],
    },
    /// The partition of all rows in the event.
    Partition {
        /// The partition of the rows (for an update, where they end up).
        partition_id: u16,
        /// Where an update found them; `None` for the others.
        source_partition_id: Option<u16>,
    },
    /// A tag that is not known here, with all bytes after it; always the last item.
    Unknown(&'a [u8]),
}

/// Bytes of an NDB chunk's size and format, which the size counts.
const NDB_HEADER_SIZE: u8 = 2;

impl<'a> ExtraRowInfo<'a> {
    fn read(cursor: &mut Cursor<'a>, kind: RowsKind) -> Result<Self> {
        let whole = cursor.peek();
        match cursor.u8("tag")? {
            0 => {
                let size = cursor.u8("NDB size")?;
                let format = cursor.u8("NDB format")?;
                let data_size = size.checked_sub(NDB_HEADER_SIZE).ok_or_else(|| {
                    Error::invalid("extra row info", "NDB size", size, "at least 2, with size and format")
                })?;
                Ok(ExtraRowInfo::Ndb { format, data: cursor.bytes(usize::from(data_size), "NDB data")? })
            }
            1 => Ok(ExtraRowInfo::Partition {
                partition_id: cursor.u16("partition id")?,
                source_partition_id: match kind {
                    RowsKind::Update | RowsKind::PartialUpdate => Some(cursor.u16("source partition id")?),
                    RowsKind::Write | RowsKind::Delete => None,
                },
            }),
            _ => {
                cursor.rest();
                Ok(ExtraRowInfo::Unknown(whole))
            }
        }
    }

    /// Appends the chunk as it is stored in an event.
    ///
    /// # Errors
    ///
    /// NDB data above 253 bytes: their size does not fit.
    pub fn encode(&self, extra_data: &mut Vec<u8>) -> Result<()> {
        match *self {
            ExtraRowInfo::Ndb { format, data } => {
                let size = data.len() + usize::from(NDB_HEADER_SIZE);
                extra_data.put_u8(0);
                extra_data.put_u8(narrow(size, "extra row info", "NDB size", "at most 255 bytes")?);
                extra_data.put_u8(format);
                extra_data.put(data);
            }
            ExtraRowInfo::Partition { partition_id, source_partition_id } => {
                extra_data.put_u8(1);
                extra_data.put_u16(partition_id);
                if let Some(source_partition_id) = source_partition_id {
                    extra_data.put_u16(source_partition_id);
                }
            }
            ExtraRowInfo::Unknown(raw) => extra_data.put(raw),
        }
        Ok(())
    }
}

fn read_extra_data<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let extra_size = usize::from(cursor.u16("extra size")?);
    match extra_size.checked_sub(usize::from(EXTRA_SIZE_SIZE)) {
        Some(size) => cursor.bytes(size, "extra data"),
        None => Err(Error::invalid(WHAT, "extra size", extra_size, "at least 2, itself included")),
    }
}

fn layout(event_type: EventType) -> Result<(RowsKind, Generation)> {
    Ok(match event_type {
        EventType::PRE_GA_WRITE_ROWS => (RowsKind::Write, Generation::PreGa),
        EventType::PRE_GA_UPDATE_ROWS => (RowsKind::Update, Generation::PreGa),
        EventType::PRE_GA_DELETE_ROWS => (RowsKind::Delete, Generation::PreGa),
        EventType::WRITE_ROWS_V1 => (RowsKind::Write, Generation::V1),
        EventType::UPDATE_ROWS_V1 => (RowsKind::Update, Generation::V1),
        EventType::DELETE_ROWS_V1 => (RowsKind::Delete, Generation::V1),
        EventType::WRITE_ROWS => (RowsKind::Write, Generation::V2),
        EventType::UPDATE_ROWS => (RowsKind::Update, Generation::V2),
        EventType::DELETE_ROWS => (RowsKind::Delete, Generation::V2),
        EventType::PARTIAL_UPDATE_ROWS => (RowsKind::PartialUpdate, Generation::V2),
        other => return Err(Error::invalid(WHAT, "event type", other, "a row event")),
    })
}

/// Pre-GA updates have one bitmap for both images.
fn has_columns_after(kind: RowsKind, generation: Generation) -> bool {
    matches!(kind, RowsKind::Update | RowsKind::PartialUpdate) && generation != Generation::PreGa
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Post-header length of each row event, as its writers announce it.
    fn post_header_length(event_type: EventType) -> u8 {
        if event_type >= EventType::WRITE_ROWS { 10 } else { 8 }
    }

    fn event(code: u8) -> RowsEvent<'static> {
        let is_update = matches!(code, 24 | 31 | 39);
        RowsEvent {
            event_type: EventType(code),
            table_id: TableId(90),
            flags: RowsFlags::STMT_END,
            extra_data: if code >= 30 { b"\x01\x03\0\x04\0" } else { b"" },
            width: 9,
            columns: Bitmap(&[0xff, 0x01]),
            columns_after: is_update.then_some(Bitmap(&[0x0f, 0xfe])),
            rows: b"\0\0rows",
        }
    }

    #[test]
    fn every_generation_round_trips_and_is_an_error_when_cut() {
        for code in [20, 21, 22, 23, 24, 25, 30, 31, 32, 39] {
            let event = event(code);
            for length in [post_header_length(event.event_type), post_header_length(event.event_type) - 2] {
                let body = event.encode(length).unwrap();
                assert_eq!(RowsEvent::decode(event.event_type, &body, length).unwrap(), event, "{code}");
                for cut in 0..body.len() - event.rows.len() {
                    assert!(
                        RowsEvent::decode(event.event_type, &body[..cut], length).is_err(),
                        "{code} {cut}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_real_update_of_9_7_4_has_the_bytes_we_write() {
        let body = b"\x5a\0\0\0\0\0\x11\0\x02\0\x02\xff\xff\0\x01\0\0\0\x01a\0\x01\0\0\0\x01b";
        let event = RowsEvent::decode(EventType::UPDATE_ROWS, body, 10).unwrap();
        assert!(
            event.flags.contains(RowsFlags::STMT_END) && event.flags.contains(RowsFlags::USE_SQL_FOREIGN_KEY)
        );
        assert_eq!((event.kind(), event.width, event.rows.len()), (RowsKind::Update, 2, 14));
        assert_eq!(event.encode(10).unwrap(), body);
    }

    #[test]
    fn chunks_of_extra_data_round_trip() {
        let extra_data = b"\0\x05\x02abc\x01\x03\0\x04\0\x09left";
        let update = RowsEvent { extra_data, ..event(31) };
        let chunks = update.extra_row_info().collect::<Result<Vec<_>>>().unwrap();
        let expected = [
            ExtraRowInfo::Ndb { format: 2, data: b"abc" },
            ExtraRowInfo::Partition { partition_id: 3, source_partition_id: Some(4) },
            ExtraRowInfo::Unknown(b"\x09left"),
        ];
        assert_eq!(chunks, expected);
        let mut bytes = Vec::new();
        chunks.iter().try_for_each(|chunk| chunk.encode(&mut bytes)).unwrap();
        assert_eq!(bytes, extra_data);
        let write = RowsEvent { extra_data: b"\x01\x03\0", ..event(30) };
        let chunks = write.extra_row_info().collect::<Result<Vec<_>>>().unwrap();
        assert_eq!(chunks, [ExtraRowInfo::Partition { partition_id: 3, source_partition_id: None }]);
        for cut in [b"\0\x01\x02".as_slice(), b"\0\x05\x02ab", b"\x01\x03"] {
            let event = RowsEvent { extra_data: cut, ..event(30) };
            assert!(event.extra_row_info().any(|chunk| chunk.is_err()), "{cut:?}");
        }
    }

    #[test]
    fn sizes_that_lie_are_noticed() {
        let mut body = event(30).encode(10).unwrap();
        body[8] = 1;
        let error = RowsEvent::decode(EventType::WRITE_ROWS, &body, 10).unwrap_err();
        assert_eq!(error.to_string(), "rows event: extra size is 1, expected at least 2, itself included");
        // A width of 2^64-1 columns claims 2^61 bytes of bitmap.
        let huge = b"\x5a\0\0\0\0\0\x01\0\x02\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff";
        assert!(RowsEvent::decode(EventType::WRITE_ROWS, huge, 10).is_err());
        assert!(RowsEvent::decode(EventType::QUERY, &body, 10).is_err());
        for length in [1, 2, 4, 9, 11] {
            assert!(RowsEvent::decode(EventType::WRITE_ROWS, &body, length).is_err(), "{length}");
        }
    }

    #[test]
    fn bitmaps_that_do_not_fit_are_refused() {
        assert!(RowsEvent { columns_after: None, ..event(31) }.encode(10).is_err());
        assert!(RowsEvent { columns_after: Some(Bitmap(&[1, 1])), ..event(30) }.encode(10).is_err());
        assert!(RowsEvent { columns: Bitmap(&[1]), ..event(30) }.encode(10).is_err());
    }
}
