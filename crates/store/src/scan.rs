//! Reads a log file through: how far it holds whole transactions, and which GTIDs.
//!
//! Never holds an event whole, but for those whose bodies it must read: GTID events, the first bytes of
//! statements, the previous GTIDs.

use binlogz_binlog::event::{AnyGtidEvent, FormatDescription, PreviousGtidsEvent};
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::transaction::Malformed;
use binlogz_binlog::{
    Error as BinlogError, EventFrame, EventHeader, EventParser, EventType, EventVisitor, Framing,
    HeaderFlags, MAGIC, TransactionAssembler, Verified,
};

use crate::error::{Error, Result};
use crate::file::LogFile;

/// Bytes read at a time.
const CHUNK_SIZE: usize = 1 << 20;

/// The largest GTID set in front of a file that is read: more than 100,000 servers with gaps.
const PREVIOUS_GTIDS_SIZE_MAX: u32 = 64 << 20;

/// The largest GTID event; 9.7 writes at most 150 bytes.
const GTID_EVENT_SIZE_MAX: u32 = 64 << 10;

/// What a file holds.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The file was not closed.
    pub(crate) in_use: bool,
    /// Where the last whole transaction, or event between transactions, ends.
    pub(crate) whole: u64,
    /// Why it ends there, if bytes follow.
    pub(crate) torn: Option<BinlogError>,
    /// Those of the files before, and of all whole transactions.
    pub(crate) gtids: GtidSet,
    /// Whole transactions.
    pub(crate) transactions: u64,
    /// The last event is a rotate or a stop event.
    pub(crate) closed: bool,
}

/// Reads the format description: framing, in use, where it ends.
pub(crate) fn head(log: &LogFile) -> Result<Result<(Framing, bool, u64), BinlogError>> {
    let mut start = vec![0; GTID_EVENT_SIZE_MAX as usize];
    let count = log.read_at(0, &mut start)?;
    start.truncate(count);
    Ok(decode_head(&start))
}

fn decode_head(start: &[u8]) -> Result<(Framing, bool, u64), BinlogError> {
    let Some(event) = start.strip_prefix(&MAGIC) else {
        let found =
            start.iter().take(MAGIC.len()).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        return Err(BinlogError::Magic { found });
    };
    let at = |error: BinlogError| error.at(MAGIC.len() as u64, None);
    let cut = BinlogError::Truncated { needed: HEADER_SIZE as u64, left: event.len() as u64 };
    let frame = Framing::new().next_frame(event).map_err(at)?.ok_or(at(cut))?;
    if frame.header().event_type != EventType::FORMAT_DESCRIPTION {
        let found = frame.header().event_type;
        return Err(at(BinlogError::invalid("log", "first event", found, "a format description")));
    }
    let frame = frame.verify().map_err(at)?;
    let description = FormatDescription::decode_frame(&frame).map_err(at)?;
    let in_use = frame.header().flags.contains(HeaderFlags::IN_USE);
    Ok((Framing::of(&description), in_use, (MAGIC.len() + frame.bytes().len()) as u64))
}

/// Reads a file through. The inner error: its head is not one.
pub(crate) fn scan(log: &LogFile, size: u64) -> Result<Result<Scan, BinlogError>> {
    let (framing, in_use, start) = match head(log)? {
        Ok(head) => head,
        Err(error) => return Ok(Err(error)),
    };
    let mut parser = EventParser::new(framing, start);
    let mut visitor = Visitor::new(framing, start);
    let mut chunk = vec![0; CHUNK_SIZE];
    let mut offset = start;
    let torn = loop {
        let room = usize::try_from(size.saturating_sub(offset)).unwrap_or(CHUNK_SIZE).min(CHUNK_SIZE);
        let count = log.read_at(offset, chunk.get_mut(..room).unwrap_or_default())?;
        if count == 0 {
            break parser.finish().err();
        }
        offset += count as u64;
        if let Err(error) = parser.push(chunk.get(..count).unwrap_or_default(), &mut visitor) {
            break Some(error);
        }
    };
    let torn = torn.or_else(|| {
        let left = size.saturating_sub(visitor.whole);
        (left > 0).then(|| {
            BinlogError::invalid("transaction", "its last event", "missing", "there").at(visitor.whole, None)
        })
    });
    Ok(Ok(Scan {
        in_use,
        whole: visitor.whole,
        torn,
        gtids: visitor.gtids,
        transactions: visitor.transactions,
        closed: visitor.closed,
    }))
}

/// The GTIDs of all files before this one.
pub(crate) fn previous_gtids(log: &LogFile) -> Result<GtidSet> {
    let damaged = |source| Error::Damaged { file: log.name.clone(), source };
    let (framing, _, offset) = head(log)?.map_err(damaged)?;
    let mut start = [0; HEADER_SIZE];
    if log.read_at(offset, &mut start)? < HEADER_SIZE {
        return Ok(GtidSet::new());
    }
    let header = EventHeader::decode(&start).map_err(damaged)?;
    if header.event_type != EventType::PREVIOUS_GTIDS {
        return Ok(GtidSet::new());
    }
    framing
        .check_header(&header)
        .and_then(|()| check_size(&header))
        .map_err(|error| damaged(error.at(offset, None)))?;
    let mut event = vec![0; header.event_size as usize];
    let count = log.read_at(offset, &mut event)?;
    event.truncate(count);
    let read = || {
        let short = BinlogError::Truncated { needed: u64::from(header.event_size), left: count as u64 };
        let frame = framing.next_frame(&event)?.ok_or(short)?.verify()?;
        PreviousGtidsEvent::decode_frame(&frame)
    };
    Ok(read().map_err(|error| damaged(error.at(offset, Some(header.event_type))))?.gtid_set)
}

struct Visitor {
    framing: Framing,
    assembler: TransactionAssembler,
    whole: u64,
    gtids: GtidSet,
    transactions: u64,
    closed: bool,
    /// Of the event that goes by.
    begin: u64,
    header: Option<EventHeader>,
    event: Vec<u8>,
    wanted: usize,
    /// Of the transaction that is open.
    gtid: Option<Gtid>,
}

impl Visitor {
    fn new(framing: Framing, whole: u64) -> Self {
        Visitor {
            framing,
            assembler: TransactionAssembler::new(),
            whole,
            gtids: GtidSet::new(),
            transactions: 0,
            closed: false,
            begin: 0,
            header: None,
            event: Vec::new(),
            wanted: 0,
            gtid: None,
        }
    }

    fn take(&mut self, header: EventHeader) -> Result<(), BinlogError> {
        let was_open = self.assembler.is_open();
        let placement = self.assembler.feed(&header, self.event.get(HEADER_SIZE..).unwrap_or_default());
        if placement.malformed == Some(Malformed::UnexpectedGtid) {
            return Err(BinlogError::invalid(
                "transaction",
                "its last event",
                "a new transaction",
                "its end",
            ));
        }
        let frame = EventFrame::without_checksum_behind(&self.event)?;
        match header.event_type {
            EventType::PREVIOUS_GTIDS => {
                self.gtids.union(&PreviousGtidsEvent::decode_frame(&frame)?.gtid_set)
            }
            event_type if event_type.is_gtid() => {
                self.gtid = AnyGtidEvent::decode_frame(&frame)?.and_then(|event| event.gtid());
            }
            _ => {}
        }
        if !self.assembler.is_open() {
            self.whole = self.begin + u64::from(header.event_size);
            self.closed = matches!(header.event_type, EventType::ROTATE | EventType::STOP);
            if let Some(gtid) = self.gtid.take() {
                self.gtids.add(gtid);
            }
            let between = matches!(placement.boundary, binlogz_binlog::Boundary::Outside);
            self.transactions += u64::from(was_open || !between);
        }
        Ok(())
    }
}

fn check_size(header: &EventHeader) -> Result<(), BinlogError> {
    let max = match header.event_type {
        EventType::PREVIOUS_GTIDS => PREVIOUS_GTIDS_SIZE_MAX,
        event_type if event_type.is_gtid() => GTID_EVENT_SIZE_MAX,
        _ => return Ok(()),
    };
    if header.event_size > max {
        return Err(BinlogError::invalid(
            "event header",
            "event size",
            header.event_size,
            "one that such events have",
        ));
    }
    Ok(())
}

impl EventVisitor for Visitor {
    type Error = BinlogError;

    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<(), BinlogError> {
        check_size(header).map_err(|error| error.at(offset, Some(header.event_type)))?;
        self.begin = offset;
        self.event.clear();
        self.event.extend_from_slice(&header.encode());
        let whole = header.event_size as usize - self.framing.checksum().size();
        self.wanted = match header.event_type {
            EventType::PREVIOUS_GTIDS => whole,
            EventType::QUERY => whole.min(HEADER_SIZE + QUERY_PREFIX_SIZE_MAX),
            event_type if event_type.is_gtid() => whole,
            _ => HEADER_SIZE,
        };
        self.header = Some(*header);
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), BinlogError> {
        let room = self.wanted.saturating_sub(self.event.len());
        self.event.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        Ok(())
    }

    fn end(&mut self, _: Verified) -> Result<(), BinlogError> {
        let Some(header) = self.header.take() else { return Ok(()) };
        self.take(header).map_err(|error| error.at(self.begin, Some(header.event_type)))
    }
}
