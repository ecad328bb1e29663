//! Writes the events of a log whose payloads are expanded, with fillers in the places of rows of other tables.
//!
//! ```text
//! event      body begins with          what is written
//! Table_map  table id 6, flags 2, …    of a chosen table: the event, once rows of it come; of another: a filler
//! Rows       table id 6, flags 2, …    of a chosen table: the event; of another: a filler
//! Rows_query                           a filler: it may quote rows of other tables
//! others                               the event
//!
//! filler     the event's header with the type Ignorable (28) and the flag IGNORABLE, zeros, checksum
//! ```
//!
//! The last rows event of a statement has a flag by which a server applies what it has and closes its tables. If that event is left
//! out, the last one before it that stays gets the flag. If none stays, the statement's table maps don't either.
//!
//! The output is a temporary file. No place of it with rows is written twice, since it is encrypted (`binlogz-scratch-file`): a table
//! map is written once it is known whether it stays, and later only a flag and a checksum change.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::checksum::{CHECKSUM_SIZE, Crc32};
use binlogz_binlog::event::{FormatDescription, TableMapEvent};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{
    ChecksumAlgorithm, EventClass, EventFrame, EventHeader, EventType, Framing, HeaderFlags, MAGIC,
};
use binlogz_scratch_file::Scratch;

use super::{SelectedLog, TableChoice};
use crate::error::{Error, Result};
use crate::log::events::TABLE_MAP_POST_HEADER;

/// Bytes of a row event's body that tell table and flags: 6 and 2.
const ROWS_HEAD_SIZE: usize = 8;
/// The flag of the last rows event of a statement.
const STATEMENT_END: u8 = 0x01;
/// A table map or format description of more bytes is no server's: 4,096 columns with names and metadata need less.
const HELD_SIZE_MAX: u32 = 16 << 20;
/// Bytes of an event that are read again, and zeros that are written, at once.
const ZEROS_SIZE: usize = 64 << 10;

/// Where the writer is within an event.
#[derive(Debug, Clone, Copy)]
enum EventStage {
    /// So many bytes of its front have to be there before it is decided.
    Front(usize),
    /// So many bytes are still to be written.
    Kept(u64),
    /// So many bytes are still to be passed over: a filler stands in their place.
    LeftOut(u64),
}

/// Writes a log's events as they come, in any pieces.
pub(super) struct SelectedLogWriter<'c> {
    choice: &'c TableChoice,
    file: Scratch,
    /// Where the next byte goes.
    at: u64,
    /// The first bytes of the current event; before all, the magic.
    front: Vec<u8>,
    stage: EventStage,
    has_magic: bool,
    checksum: ChecksumAlgorithm,
    statement: ChosenRows,
    events_left_out: u64,
    error: Option<Error>,
}

/// The statement whose rows come.
#[derive(Debug, Default)]
struct ChosenRows {
    /// Ids of tables whose rows are left out.
    left_out: Vec<u64>,
    /// Maps of chosen tables, which are written before the first rows of one, and where.
    maps: Vec<(u64, Vec<u8>)>,
    /// The last rows event that stays.
    last: Option<Range<u64>>,
}

impl<'c> SelectedLogWriter<'c> {
    /// Writes into a new temporary file.
    pub(super) fn new(choice: &'c TableChoice) -> Result<Self> {
        Ok(SelectedLogWriter {
            choice,
            file: Scratch::new().map_err(Error::io("make a temporary file"))?,
            at: 0,
            front: Vec::new(),
            stage: EventStage::Front(MAGIC.len()),
            has_magic: false,
            checksum: ChecksumAlgorithm::NONE,
            statement: ChosenRows::default(),
            events_left_out: 0,
            error: None,
        })
    }

    /// Why writing failed, if it did.
    pub(super) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// The log is over.
    pub(super) fn finish(mut self) -> Result<SelectedLog> {
        if !self.front.is_empty() {
            return Err(Error::damaged("selected log", "an end inside an event", "whole events"));
        }
        self.keep_maps()?;
        Ok(SelectedLog { log: Arc::new(self.file), events_left_out: self.events_left_out })
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stage {
                EventStage::Front(needed) => {
                    let (now, behind) = split(rest, needed.saturating_sub(self.front.len()) as u64);
                    self.front.extend_from_slice(now);
                    rest = behind;
                    if self.front.len() >= needed {
                        self.decide()?;
                    }
                }
                EventStage::Kept(left) => {
                    let (now, behind) = split(rest, left);
                    self.write(now)?;
                    rest = behind;
                    self.go_on(EventStage::Kept(left - now.len() as u64));
                }
                EventStage::LeftOut(left) => {
                    let (now, behind) = split(rest, left);
                    rest = behind;
                    self.go_on(EventStage::LeftOut(left - now.len() as u64));
                }
            }
        }
        Ok(())
    }

    /// The next stage: the next event, where nothing is left of this one.
    fn go_on(&mut self, stage: EventStage) {
        self.stage = match stage {
            EventStage::Kept(0) | EventStage::LeftOut(0) => {
                self.front.clear();
                EventStage::Front(HEADER_SIZE)
            }
            stage => stage,
        };
    }

    /// Decides about the event whose front is there, or says how much more of it is needed.
    fn decide(&mut self) -> Result<()> {
        if !self.has_magic {
            self.has_magic = true;
            let magic = std::mem::take(&mut self.front);
            self.write(&magic)?;
            self.go_on(EventStage::Kept(0));
            return Ok(());
        }
        let header = EventHeader::decode(&self.front)?;
        let smallest = HEADER_SIZE + self.checksum.size();
        if (header.event_size as usize) < smallest {
            return Err(Error::unexpected(
                "event size",
                header.event_size,
                format_args!("at least {smallest}"),
            ));
        }
        let needed = front_size(&header)?;
        if self.front.len() < needed {
            self.stage = EventStage::Front(needed);
            return Ok(());
        }
        match header.event_type.class() {
            EventClass::TableMap => self.table_map(&header),
            EventClass::Rows => self.rows(&header),
            EventClass::RowsStatement => {
                self.end_statement()?;
                self.leave_out(&header)
            }
            EventClass::File => {
                self.end_statement()?;
                if header.event_type == EventType::FORMAT_DESCRIPTION {
                    self.format_description()?;
                }
                self.keep(&header)
            }
            EventClass::Gtid
            | EventClass::Statement
            | EventClass::LoadStatement
            | EventClass::StatementValue
            | EventClass::LoadBlock
            | EventClass::LoadEnd
            | EventClass::Commit
            | EventClass::Incident
            | EventClass::GroupContext
            | EventClass::GroupView
            | EventClass::Ignorable
            | EventClass::Heartbeat => {
                self.end_statement()?;
                self.keep(&header)
            }
            EventClass::FileNote
            | EventClass::MariadbGtid
            | EventClass::CompressedStatement
            | EventClass::CompressedRows
            | EventClass::Payload
            | EventClass::Dead
            | EventClass::Unknown => Err(Error::unexpected(
                format!("event at {}", self.at),
                header.event_type,
                "one whose tables are known, to leave out rows of others",
            )),
        }
    }

    fn format_description(&mut self) -> Result<()> {
        let frame = Framing::new().next_frame(&self.front)?;
        let frame = frame.ok_or_else(|| Error::damaged("format description", "a part", "the whole event"))?;
        let frame = frame.verify()?;
        let description = FormatDescription::decode_frame(&frame)?;
        if description.is_mariadb() {
            let version = description.server_version();
            return Err(Error::unexpected(
                "log",
                format_args!("MariaDB's ({version})"),
                "MySQL's, to leave out tables",
            ));
        }
        self.checksum = description.checksum_algorithm;
        Ok(())
    }

    fn table_map(&mut self, header: &EventHeader) -> Result<()> {
        let frame = EventFrame::from_bytes(&self.front, self.checksum.size())?;
        let map = TableMapEvent::decode(frame.body(), TABLE_MAP_POST_HEADER)?;
        if self.choice.has(map.database, map.table) {
            let event = std::mem::take(&mut self.front);
            self.statement.maps.push((self.at, event));
            self.at += u64::from(header.event_size);
            self.go_on(EventStage::Kept(0));
            return Ok(());
        }
        self.statement.left_out.push(map.table_id.0);
        self.leave_out(header)
    }

    fn rows(&mut self, header: &EventHeader) -> Result<()> {
        let head = self.front.get(HEADER_SIZE..).and_then(|body| body.first_chunk::<ROWS_HEAD_SIZE>());
        let Some([a, b, c, d, e, f, flags, _]) = head.copied() else {
            return Err(Error::damaged("rows event", "no table", "a table and flags"));
        };
        let table = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        let ends = flags & STATEMENT_END != 0;
        if self.statement.left_out.contains(&table) {
            if ends {
                self.end_before()?;
            }
            self.leave_out(header)?;
        } else {
            self.keep_maps()?;
            self.statement.last = Some(self.at..self.at + u64::from(header.event_size));
            self.keep(header)?;
        }
        if ends {
            self.statement = ChosenRows::default();
        }
        Ok(())
    }

    /// The statement's last rows event is left out: the last one that stays ends it, or its maps are left out too.
    fn end_before(&mut self) -> Result<()> {
        if let Some(last) = self.statement.last.clone() {
            return self.set_statement_end(last);
        }
        for (at, event) in std::mem::take(&mut self.statement.maps) {
            self.fill(at, &EventHeader::decode(&event)?)?;
        }
        Ok(())
    }

    /// No more rows of the statement come, though none of them ended it.
    fn end_statement(&mut self) -> Result<()> {
        self.keep_maps()?;
        self.statement = ChosenRows::default();
        Ok(())
    }

    fn keep_maps(&mut self) -> Result<()> {
        for (at, event) in std::mem::take(&mut self.statement.maps) {
            self.write_at(&event, at)?;
        }
        Ok(())
    }

    /// Gives a rows event that was written the flag of the last one of its statement, and the checksum that goes with it.
    fn set_statement_end(&mut self, event: Range<u64>) -> Result<()> {
        let flags_at = event.start + (HEADER_SIZE + ROWS_HEAD_SIZE - 2) as u64;
        let mut flags = [0];
        self.file.read_exact_at(&mut flags, flags_at).map_err(Error::io("read a temporary file"))?;
        self.write_at(&[flags[0] | STATEMENT_END], flags_at)?;
        if self.checksum == ChecksumAlgorithm::NONE {
            return Ok(());
        }
        let end = event.end - CHECKSUM_SIZE as u64;
        let mut crc = Crc32::new();
        let mut piece = vec![0; ZEROS_SIZE];
        let mut at = event.start;
        while at < end {
            let size = usize::try_from(end - at).unwrap_or(ZEROS_SIZE).min(ZEROS_SIZE);
            let piece = piece.get_mut(..size).unwrap_or_default();
            self.file.read_exact_at(piece, at).map_err(Error::io("read a temporary file"))?;
            crc.update(piece);
            at += size as u64;
        }
        self.write_at(&crc.finish().to_le_bytes(), end)
    }

    /// The current event stays.
    fn keep(&mut self, header: &EventHeader) -> Result<()> {
        let front = std::mem::take(&mut self.front);
        self.write(&front)?;
        let left = u64::from(header.event_size).saturating_sub(front.len() as u64);
        self.front = front;
        self.go_on(EventStage::Kept(left));
        Ok(())
    }

    /// A filler takes the place of the current event.
    fn leave_out(&mut self, header: &EventHeader) -> Result<()> {
        self.fill(self.at, header)?;
        self.at += u64::from(header.event_size);
        let left = u64::from(header.event_size).saturating_sub(self.front.len() as u64);
        self.go_on(EventStage::LeftOut(left));
        Ok(())
    }

    fn fill(&mut self, at: u64, replaced: &EventHeader) -> Result<()> {
        self.events_left_out += 1;
        let flags = HeaderFlags(replaced.flags.0 | HeaderFlags::IGNORABLE.0);
        let header = EventHeader { event_type: EventType::IGNORABLE, flags, ..*replaced }.encode();
        let mut crc = Crc32::new();
        crc.update(&header);
        self.write_at(&header, at)?;
        let end = at + (replaced.event_size as u64).saturating_sub(self.checksum.size() as u64);
        let mut zeros_at = at + HEADER_SIZE as u64;
        while zeros_at < end {
            let size = usize::try_from(end - zeros_at).unwrap_or(ZEROS_SIZE).min(ZEROS_SIZE);
            let zeros = ZEROS.get(..size).unwrap_or(&ZEROS);
            crc.update(zeros);
            self.write_at(zeros, zeros_at)?;
            zeros_at += zeros.len() as u64;
        }
        match self.checksum == ChecksumAlgorithm::NONE {
            true => Ok(()),
            false => self.write_at(&crc.finish().to_le_bytes(), end),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        self.file.write_all_at(bytes, at).map_err(Error::io("write a temporary file"))
    }
}

/// Zeros that are written at once.
static ZEROS: [u8; ZEROS_SIZE] = [0; ZEROS_SIZE];

/// How much of an event has to be there before it is decided.
fn front_size(header: &EventHeader) -> Result<usize> {
    let whole = match header.event_type.class() {
        EventClass::Rows => return Ok((HEADER_SIZE + ROWS_HEAD_SIZE).min(header.event_size as usize)),
        EventClass::TableMap => true,
        _ => header.event_type == EventType::FORMAT_DESCRIPTION,
    };
    match whole {
        true if header.event_size > HELD_SIZE_MAX => Err(Error::unexpected(
            format!("size of a {}", header.event_type),
            header.event_size,
            format_args!("at most {HELD_SIZE_MAX}"),
        )),
        true => Ok(header.event_size as usize),
        false => Ok(HEADER_SIZE),
    }
}

/// The first bytes, at most so many, and the others.
fn split(bytes: &[u8], count: u64) -> (&[u8], &[u8]) {
    bytes.split_at_checked(usize::try_from(count).unwrap_or(usize::MAX)).unwrap_or((bytes, &[]))
}

impl Write for SelectedLogWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes).map(|()| bytes.len()).map_err(|error| {
            let why = io::Error::other(error.to_string());
            self.error.get_or_insert(error);
            why
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use binlogz_binlog::frame::encode_event;
    use binlogz_testkit::builder::{EndPositions, LogBuilder, Release};

    use super::*;

    const CRC32: ChecksumAlgorithm = ChecksumAlgorithm::CRC32;

    /// A log whose events are a statement's, of which each word is one: `m1` maps table 1 (a.t1), `r1` has rows of it, `r1!` ends
    /// the statement, `q` is its text, `x` another event.
    fn log_of(statement: &str) -> Vec<u8> {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        let mut bytes = log.take();
        for word in statement.split_whitespace() {
            let table = word.as_bytes().get(1).map_or(0, |digit| digit - b'0');
            let flags = u8::from(word.ends_with('!'));
            let (event_type, body) = match word.as_bytes()[0] {
                b'm' => {
                    let name = [b't', b'0' + table];
                    let body =
                        [&[table, 0, 0, 0, 0, 0, 1, 0, 1, b'a', 0, 2][..], &name, &[0, 1, 3, 0, 0]].concat();
                    (EventType::TABLE_MAP, body)
                }
                b'r' => (
                    EventType::WRITE_ROWS,
                    [&[table, 0, 0, 0, 0, 0, flags, 0][..], &vec![9; 200_000]].concat(),
                ),
                b'q' => (EventType::ROWS_QUERY, b"\x07INSERT ".to_vec()),
                _ => (EventType::XID, vec![1; 8]),
            };
            let header = EventHeader {
                timestamp: 7,
                event_type,
                server_id: 3,
                event_size: 0,
                end_log_pos: 0,
                flags: HeaderFlags::default(),
            };
            bytes.extend(encode_event(header, &body, CRC32));
        }
        bytes
    }

    /// The same statement of a selection, read back: `_` for each filler.
    fn selected(statement: &str, ignored: &str, size: usize) -> String {
        let log = log_of(statement);
        let choice = TableChoice::new(&[], &[ignored.to_owned()]).unwrap();
        let mut writer = SelectedLogWriter::new(&choice).unwrap();
        log.chunks(size).for_each(|piece| writer.write_all(piece).unwrap());
        let selected = writer.finish().unwrap();
        let mut bytes = vec![0; log.len() + 1];
        let read = selected.log.fill_at(&mut bytes, 0).unwrap();
        assert_eq!(read, log.len());
        let mut shown = Vec::new();
        let mut at = MAGIC.len();
        while at < read {
            let event_size = EventHeader::decode(&bytes[at..]).unwrap().event_size as usize;
            let frame = EventFrame::from_bytes(&bytes[at..at + event_size], 4).unwrap();
            assert_eq!(
                frame.stored_checksum(),
                Some(frame.computed_checksum()),
                "{} at {at}",
                frame.event_type()
            );
            at += event_size;
            let table = char::from(b'0' + frame.body().first().copied().unwrap_or_default().min(9));
            match frame.event_type() {
                EventType::TABLE_MAP => shown.push(format!("m{table}")),
                EventType::WRITE_ROWS => {
                    let ends = if frame.body()[6] == STATEMENT_END { "!" } else { "" };
                    shown.push(format!("r{table}{ends}"));
                }
                EventType::IGNORABLE => {
                    assert!(frame.body().iter().all(|byte| *byte == 0));
                    shown.push("_".into());
                }
                EventType::XID => shown.push("x".into()),
                _ => {}
            }
        }
        let fillers = shown.iter().filter(|word| *word == "_").count();
        assert_eq!(selected.events_left_out, fillers as u64, "{statement}");
        shown.join(" ")
    }

    #[test]
    fn every_statement_of_which_rows_stay_ends() {
        for (statement, expected) in [
            ("m1 r1 r1! x", "m1 r1 r1! x"),
            ("q m2 r2 r2! x", "_ _ _ _ x"),
            ("m1 m2 r1 r1 r2! x", "m1 _ r1 r1! _ x"),
            ("m1 m2 r1 r2 r2 r1 r2 r2! x", "m1 _ r1 _ _ r1! _ _ x"),
            ("m2 m1 r2 r1! x", "_ m1 _ r1! x"),
            ("m1 m2 r2 r2! x", "_ _ _ _ x"),
            ("m1 m3 m2 r3 r2! x", "m1 m3 _ r3! _ x"),
            ("m1 r1 m2 r2! m1 r1! x", "m1 r1! _ _ m1 r1! x"),
            ("r7 r7! x", "r7 r7! x"),
            ("m1 m2 r1 r2 x", "m1 _ r1 _ x"),
            ("m1 x", "m1 x"),
            ("m1", "m1"),
        ] {
            for size in [1, 1000, 1 << 20] {
                if size == 1 && statement.len() > 12 {
                    continue;
                }
                assert_eq!(selected(statement, "a.t2", size), expected, "{statement}");
            }
            let all = selected(statement, "b.*", 1 << 20);
            assert_eq!(all.replace('_', "q"), statement, "all tables");
        }
    }

    #[test]
    fn what_is_not_a_mysql_log_is_refused() {
        let choice = TableChoice::new(&[], &["a.b".to_owned()]).unwrap();
        let written = |bytes: &[u8]| {
            let mut writer = SelectedLogWriter::new(&choice).unwrap();
            let written = writer.write_all(bytes);
            match writer.take_error() {
                Some(error) => Err(error.to_string()),
                None => {
                    written.unwrap();
                    writer.finish().map(drop).map_err(|error| error.to_string())
                }
            }
        };
        let mysql = log_of("m1 r1! x");
        assert_eq!(written(&mysql), Ok(()));
        let error = written(&mysql[..mysql.len() - 1]).unwrap_err();
        assert!(error.contains("an end inside an event"), "{error}");
        let mut mariadb = LogBuilder::new(Release::MARIADB_10_11);
        let error = written(&mariadb.positions(EndPositions::Own).take()).unwrap_err();
        assert!(
            error.starts_with("log is MariaDB's (10.11") && error.contains("expected MySQL's"),
            "{error}"
        );
        let mut payload = mysql;
        payload.extend(encode_event(
            EventHeader {
                timestamp: 7,
                event_type: EventType::TRANSACTION_PAYLOAD,
                server_id: 3,
                event_size: 0,
                end_log_pos: 0,
                flags: HeaderFlags::default(),
            },
            &[0; 9],
            CRC32,
        ));
        let error = written(&payload).unwrap_err();
        assert!(error.contains("expected one whose tables are known"), "{error}");
    }
}
