//! The answer to a query that returns rows, in text form.
//!
//! ```text
//! column count     LEI
//! columns          catalog · schema · table · original table · name · original name, each LEI length
//!                  and bytes · LEI 12 · collation 2 · length 4 · type 1 · flags 2 · decimals 1 · 2 × 0
//! EOF              absent with DEPRECATE_EOF
//! rows             for each column LEI length and bytes, or fb for NULL
//! EOF              an OK packet with DEPRECATE_EOF; an error can end the rows early
//! ```
//!
//! Answers are collected whole, up to a bound; a caller that takes rows as they come may have any number.

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};

use crate::command::{Command, SET_OPTION};
use crate::error::ServerError;
use crate::fields::{put_lei_text, take_lei_text};
use crate::packet::MESSAGE_SIZE_MAX;
use crate::response::{EOF, ERR, EofPacket, ErrPacket, MORE_RESULTS, OK, OkPacket};

/// The byte in place of a length that means NULL.
const NULL: u8 = 0xfb;
/// The byte in place of a column count that asks the client for a file.
const LOCAL_INFILE: u8 = 0xfb;
/// Bytes of the fields after a column's names.
const FIXED_FIELDS_SIZE: u64 = 12;
/// A server allows 4096 columns in a table.
const COLUMN_COUNT_MAX: u64 = 4096;

/// A column of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResultColumn<'a> {
    /// The database of the column's table.
    pub schema: &'a [u8],
    /// The table, as the query calls it.
    pub table: &'a [u8],
    /// The table's own name.
    pub original_table: &'a [u8],
    /// The column, as the query calls it.
    pub name: &'a [u8],
    /// The column's own name.
    pub original_name: &'a [u8],
    /// The collation of the column's text.
    pub collation: u16,
    /// The length of the longest value, in bytes.
    pub length: u32,
    /// The type, as in the binary log's column types.
    pub column_type: u8,
    /// Flags such as NOT NULL and UNSIGNED.
    pub flags: u16,
    /// Digits after the decimal point.
    pub decimals: u8,
}

const COLUMN: &str = "column definition";

impl<'a> ResultColumn<'a> {
    /// Reads the message.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, COLUMN);
        take_lei_text(&mut cursor, "catalog")?;
        let [schema, table, original_table] = [
            take_lei_text(&mut cursor, "schema")?,
            take_lei_text(&mut cursor, "table")?,
            take_lei_text(&mut cursor, "original table")?,
        ];
        let name = take_lei_text(&mut cursor, "name")?;
        let original_name = take_lei_text(&mut cursor, "original name")?;
        let size = cursor.lei("size of fixed fields")?;
        if size != FIXED_FIELDS_SIZE {
            return Err(Error::invalid(COLUMN, "size of fixed fields", size, "12"));
        }
        let column = ResultColumn {
            schema,
            table,
            original_table,
            name,
            original_name,
            collation: cursor.u16("collation")?,
            length: cursor.u32("length")?,
            column_type: cursor.u8("type")?,
            flags: cursor.u16("flags")?,
            decimals: cursor.u8("decimals")?,
        };
        cursor.u16("filler")?;
        cursor.finish()?;
        Ok(column)
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_lei_text(out, b"def");
        for name in [self.schema, self.table, self.original_table, self.name, self.original_name] {
            put_lei_text(out, name);
        }
        out.put_lei(FIXED_FIELDS_SIZE);
        out.put_u16(self.collation);
        out.put_u32(self.length);
        out.put_u8(self.column_type);
        out.put_u16(self.flags);
        out.put_u8(self.decimals);
        out.put_u16(0);
    }
}

/// The kind of values that a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResultKind {
    /// The type, as in the binary log's column types.
    pub column_type: u8,
    /// Flags such as NOT NULL and UNSIGNED.
    pub flags: u16,
    /// Digits after the decimal point.
    pub decimals: u8,
}

impl ResultKind {
    /// VAR_STRING.
    pub const TEXT: Self = ResultKind { column_type: 0xfd, flags: 0, decimals: 0 };
    /// The column of a bare NULL.
    pub const NULL: Self = ResultKind { column_type: 6, flags: 0, decimals: 0 };
    /// LONGLONG.
    pub const INTEGER: Self = ResultKind { column_type: 8, flags: 0, decimals: 0 };
    /// LONGLONG with UNSIGNED_FLAG.
    pub const UNSIGNED: Self = ResultKind { column_type: 8, flags: 0x20, decimals: 0 };

    /// Whether the values are texts, which have a character set: VARCHAR, the BLOBs, VAR_STRING, STRING.
    pub fn is_text(self) -> bool {
        matches!(self.column_type, 0x0f | 0xf9..=0xfe)
    }

    /// Whether the values are integers: TINY, SHORT, LONG, LONGLONG, INT24.
    pub fn is_integer(self) -> bool {
        matches!(self.column_type, 1..=3 | 8 | 9)
    }
}

/// A column of an answer that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerColumn {
    /// The column, as the query calls it.
    pub name: Vec<u8>,
    /// The kind of its values.
    pub kind: ResultKind,
}

/// A row: the text of each column, or NULL.
pub type ResultRow = Vec<Option<Vec<u8>>>;

/// Reads a row of `columns` columns.
pub(crate) fn decode_row(message: &[u8], columns: usize) -> Result<ResultRow> {
    let mut cursor = Cursor::new(message, "row");
    let row = (0..columns)
        .map(|_| {
            if cursor.peek().first() == Some(&NULL) {
                cursor.u8("column")?;
                return Ok(None);
            }
            take_lei_text(&mut cursor, "column").map(|text| Some(text.to_vec()))
        })
        .collect::<Result<ResultRow>>()?;
    cursor.finish()?;
    Ok(row)
}

/// Appends a row.
pub(crate) fn encode_row(row: &[Option<Vec<u8>>], out: &mut Vec<u8>) {
    for column in row {
        match column {
            Some(text) => put_lei_text(out, text),
            None => out.put_u8(NULL),
        }
    }
}

/// A server's answer to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAnswer {
    /// Success, without rows.
    Ok,
    /// Rows.
    Rows(Vec<ResultRow>),
    /// An error.
    Refused(ServerError),
}

/// Collects the answer to a statement, for a client that has not announced DEPRECATE_EOF.
#[derive(Debug, Default)]
pub struct AnswerReader {
    state: ResultState,
    columns: Vec<AnswerColumn>,
    rows: Vec<ResultRow>,
    /// Bytes of all rows.
    size: usize,
    affected_rows: u64,
    has_more: bool,
    /// Whether an EOF packet alone means success.
    takes_eof: bool,
}

#[derive(Debug, Default)]
enum ResultState {
    #[default]
    Begin,
    Columns {
        left: u64,
        count: usize,
    },
    Rows {
        count: usize,
    },
}

const WHAT: &str = "answer";

impl AnswerReader {
    /// For the answer to this command.
    pub(crate) fn of(command: &Command<'_>) -> Self {
        let takes_eof = matches!(command, Command::Other { code: SET_OPTION, .. });
        AnswerReader { takes_eof, ..AnswerReader::default() }
    }

    /// The columns of an answer that is whole; none if it has no rows.
    pub(crate) fn into_columns(self) -> Vec<AnswerColumn> {
        self.columns
    }

    /// How many rows the statement changed.
    pub fn affected_rows(&self) -> u64 {
        self.affected_rows
    }

    /// Whether the answer of a further statement follows: several came at once.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Takes the rows that have come so far; the answer has the rest. So an answer may be of any size.
    pub fn take_rows(&mut self) -> Vec<ResultRow> {
        self.size = 0;
        std::mem::take(&mut self.rows)
    }

    /// Takes the next message and returns the answer once it is whole.
    pub fn message(&mut self, message: &[u8]) -> Result<Option<ServerAnswer>> {
        if message.first() == Some(&ERR) {
            return ErrPacket::decode(message).map(|error| Some(ServerAnswer::Refused(error.into())));
        }
        match self.state {
            ResultState::Begin => match message.first() {
                Some(&OK) => OkPacket::decode(message).map(|ok| {
                    self.affected_rows = ok.affected_rows;
                    self.has_more = ok.status & MORE_RESULTS != 0;
                    Some(ServerAnswer::Ok)
                }),
                Some(&EOF) if self.takes_eof && EofPacket::is(message) => {
                    EofPacket::decode(message).map(|_| Some(ServerAnswer::Ok))
                }
                Some(&LOCAL_INFILE) => {
                    Err(Error::invalid(WHAT, "first byte", "fb: a wish for a local file", "rows"))
                }
                _ => {
                    let mut cursor = Cursor::new(message, WHAT);
                    let count = cursor.lei("column count")?;
                    cursor.finish()?;
                    if count > COLUMN_COUNT_MAX {
                        return Err(Error::invalid(WHAT, "column count", count, "at most 4096"));
                    }
                    self.state = ResultState::Columns { left: count, count: count as usize };
                    Ok(None)
                }
            },
            ResultState::Columns { left: 0, count } => {
                EofPacket::decode(message)?;
                self.state = ResultState::Rows { count };
                Ok(None)
            }
            ResultState::Columns { left, count } => {
                let ResultColumn { name, column_type, flags, decimals, .. } = ResultColumn::decode(message)?;
                let kind = ResultKind { column_type, flags, decimals };
                self.columns.push(AnswerColumn { name: name.to_vec(), kind });
                self.state = ResultState::Columns { left: left - 1, count };
                Ok(None)
            }
            ResultState::Rows { .. } if message.first() == Some(&EOF) && EofPacket::is(message) => {
                self.has_more = EofPacket::decode(message)?.status & MORE_RESULTS != 0;
                Ok(Some(ServerAnswer::Rows(std::mem::take(&mut self.rows))))
            }
            ResultState::Rows { count } => {
                self.size += message.len();
                if self.size > MESSAGE_SIZE_MAX {
                    return Err(Error::invalid(WHAT, "size of all rows", self.size, "at most 16 MiB"));
                }
                self.rows.push(decode_row(message, count)?);
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_every_cut_is_an_error;

    /// The column of `SELECT @@GLOBAL.SERVER_ID`.
    const SERVER_ID: ResultColumn<'_> = ResultColumn {
        schema: b"",
        table: b"",
        original_table: b"",
        name: b"@@GLOBAL.SERVER_ID",
        original_name: b"",
        collation: 63,
        length: 21,
        column_type: 8,
        flags: 0xa0,
        decimals: 0,
    };

    #[test]
    fn columns_round_trip() {
        let mut bytes = Vec::new();
        SERVER_ID.encode(&mut bytes);
        assert_eq!(bytes, b"\x03def\0\0\0\x12@@GLOBAL.SERVER_ID\0\x0c\x3f\0\x15\0\0\0\x08\xa0\0\0\0\0");
        assert_eq!(ResultColumn::decode(&bytes).unwrap(), SERVER_ID);
        assert_every_cut_is_an_error(&bytes, |bytes| ResultColumn::decode(bytes).map(drop));
    }

    #[test]
    fn rows_round_trip() {
        let row: ResultRow = vec![Some(b"1".to_vec()), None, Some(Vec::new())];
        let mut bytes = Vec::new();
        encode_row(&row, &mut bytes);
        assert_eq!(bytes, b"\x011\xfb\0");
        assert_eq!(decode_row(&bytes, 3).unwrap(), row);
        assert_every_cut_is_an_error(&bytes, |bytes| decode_row(bytes, 3).map(drop));
    }

    #[test]
    fn an_answer_is_collected() {
        let mut column = Vec::new();
        SERVER_ID.encode(&mut column);
        let mut reader = AnswerReader::default();
        for message in [b"\x01", column.as_slice(), b"\xfe\0\0\x02\0", b"\x0233"] {
            assert_eq!(reader.message(message).unwrap(), None);
        }
        let answer = reader.message(b"\xfe\0\0\x02\0").unwrap().unwrap();
        assert_eq!(answer, ServerAnswer::Rows(vec![vec![Some(b"33".to_vec())]]));
        // Rows may be taken before the answer is whole.
        let mut parts = AnswerReader::default();
        for message in [b"\x01", column.as_slice(), b"\xfe\0\0\x02\0", b"\x0233"] {
            parts.message(message).unwrap();
        }
        assert_eq!(parts.take_rows(), [vec![Some(b"33".to_vec())]]);
        assert_eq!(parts.message(b"\xfe\0\0\x02\0").unwrap(), Some(ServerAnswer::Rows(Vec::new())));
        let columns = reader.into_columns();
        let [AnswerColumn { name, kind }] = columns.as_slice() else { panic!("{columns:?}") };
        assert_eq!((name.as_slice(), kind.column_type, kind.flags), (&b"@@GLOBAL.SERVER_ID"[..], 8, 0xa0));
    }

    #[test]
    fn answers_without_rows() {
        let ok = AnswerReader::default().message(b"\0\0\0\x02\0\0\0").unwrap();
        assert_eq!(ok, Some(ServerAnswer::Ok));
        let mut reader = AnswerReader::default();
        reader.message(b"\0\xfc\0\x04\0\x02\0\0\0").unwrap();
        assert_eq!(reader.affected_rows(), 1024);
        assert!(!reader.has_more());
        reader.message(b"\0\x01\0\x0a\0\0\0").unwrap();
        assert!(reader.has_more());
        let set_option = Command::Other { code: SET_OPTION, parameters: &[0, 0] };
        let done = AnswerReader::of(&set_option).message(b"\xfe\0\0\x02\0").unwrap();
        assert_eq!(done, Some(ServerAnswer::Ok));
        assert!(AnswerReader::of(&Command::Query(b"DO 0")).message(b"\xfe\0\0\x02\0").is_err());
        let refused = AnswerReader::default().message(b"\xff\xa9\x04#HY000Unknown").unwrap();
        assert!(matches!(refused, Some(ServerAnswer::Refused(error)) if error.code == 1193));
    }

    #[test]
    fn lies_are_refused() {
        assert!(AnswerReader::default().message(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff").is_err(), "columns");
        assert!(AnswerReader::default().message(b"\xfb/etc/passwd").is_err(), "local file");
        assert!(AnswerReader::default().message(b"").is_err());
    }
}
