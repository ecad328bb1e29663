//! Reads through a log file: how far it holds whole transactions, and with which GTIDs. After damaged bytes
//! it finds the next transaction that is whole (`damage.rs` puts the pieces together).
//!
//! Holds no event whole, except those whose bodies it must read: GTID events, the first bytes of statements,
//! the previous GTIDs.

use std::io;

use binlogz_binlog::event::{AnyGtidEvent, FormatDescription, PreviousGtidsEvent};
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::transaction::MalformedSequence;
use binlogz_binlog::{
    ChecksumAlgorithm, Error as BinlogError, EventFrame, EventHeader, EventParser, EventType, EventVisitor,
    Framing, HeaderFlags, MAGIC, TransactionBoundaryParser, VerifiedChecksum,
};

use crate::error::{Error, Result};
use crate::files::log_file::LogFile;

/// Bytes read at once.
const CHUNK_SIZE: usize = 1 << 20;

/// The offset of the event type in a header.
const EVENT_TYPE_OFFSET: usize = 4;

/// The largest set of previous GTIDs that is read: more than 100,000 servers with gaps.
const PREVIOUS_GTIDS_SIZE_MAX: u32 = 64 << 20;

/// The largest GTID event; 9.7 writes at most 150 bytes.
const GTID_EVENT_SIZE_MAX: u32 = 64 << 10;

/// Which contents a file may have, besides undamaged ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demands {
    /// Whole transactions, as the store writes them.
    WholeTransactions,
    /// Any events: a server that crashed left a transaction without its end.
    Events,
}

/// Called with the number of bytes that are read next. An error ends the scan.
pub(crate) type ReadPace<'a> = &'a mut dyn FnMut(usize) -> io::Result<()>;

/// A file's contents.
#[derive(Debug)]
pub(crate) struct FileScan {
    /// The file was not closed.
    pub(crate) in_use: bool,
    /// How its events are framed.
    pub(crate) framing: Framing,
    /// The end of the last whole transaction, or of the last event between transactions.
    pub(crate) whole: u64,
    /// The end of the last event before which everything is whole.
    pub(crate) valid: u64,
    /// Why it ends there, if bytes follow.
    pub(crate) torn: Option<BinlogError>,
    /// The GTIDs of the earlier files and of all whole transactions.
    pub(crate) gtids: GtidSet,
    /// The number of whole transactions.
    pub(crate) transactions: u64,
    /// The last event is a rotate or a stop event.
    pub(crate) closed: bool,
    /// The GTID of the transaction that is not whole.
    pub(crate) open: Option<Gtid>,
    /// The first whole transaction's GTID.
    pub(crate) first: Option<Gtid>,
    /// The sequence numbers of the first and the last whole transaction, which count the transactions of a
    /// file; 0 if they have none.
    pub(crate) numbers: (i64, i64),
}

impl FileScan {
    /// For a file whose head can't be read: nothing is known about it. Servers write 4-byte checksums unless
    /// told otherwise.
    pub(crate) fn without_head(error: BinlogError) -> FileScan {
        FileScan {
            in_use: false,
            framing: Framing::with_checksum(ChecksumAlgorithm::CRC32),
            whole: 0,
            valid: 0,
            torn: Some(error),
            gtids: GtidSet::new(),
            transactions: 0,
            closed: false,
            open: None,
            first: None,
            numbers: (0, 0),
        }
    }
}

/// Reads the format description: the framing, whether the file is in use, where the event ends.
pub(crate) fn head(log: &LogFile) -> Result<Result<(Framing, bool, u64), BinlogError>> {
    let mut start = vec![0; GTID_EVENT_SIZE_MAX as usize];
    let count = log.read_at(0, &mut start)?;
    start.truncate(count);
    Ok(decode_head(&start))
}

/// Reads the format description in the first bytes of a file.
pub(crate) fn decode_head(start: &[u8]) -> Result<(Framing, bool, u64), BinlogError> {
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

/// Reads through a file. The inner error means that its head is not valid.
pub(crate) fn scan(log: &LogFile, size: u64) -> Result<Result<FileScan, BinlogError>> {
    scan_at_pace(log, size, Demands::WholeTransactions, &mut |_| Ok(()))
}

/// Reads through a file as [`scan`] does, with `pace` called before each read. The inner error means that its head is not
/// valid.
pub(crate) fn scan_at_pace(
    log: &LogFile,
    size: u64,
    demands: Demands,
    pace: ReadPace<'_>,
) -> Result<Result<FileScan, BinlogError>> {
    let (framing, in_use, start) = match head(log)? {
        Ok(head) => head,
        Err(error) => return Ok(Err(error)),
    };
    Ok(Ok(FileScan { in_use, ..scan_from(log, framing, start, size, demands, pace)? }))
}

/// Reads on from the start of a transaction.
pub(crate) fn scan_from(
    log: &LogFile,
    framing: Framing,
    start: u64,
    size: u64,
    demands: Demands,
    pace: ReadPace<'_>,
) -> Result<FileScan> {
    let mut parser = EventParser::new(framing, start);
    let mut visitor = Visitor { demands, ..Visitor::new(framing, start) };
    let mut chunk = vec![0; CHUNK_SIZE];
    let mut offset = start;
    let torn = loop {
        let room = usize::try_from(size.saturating_sub(offset)).unwrap_or(CHUNK_SIZE).min(CHUNK_SIZE);
        pace(room).map_err(Error::io("read", &log.name))?;
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
    Ok(FileScan {
        in_use: false,
        framing,
        whole: visitor.whole,
        valid: visitor.valid,
        torn,
        gtids: visitor.gtids,
        transactions: visitor.transactions,
        closed: visitor.closed,
        open: visitor.gtid,
        first: visitor.first,
        numbers: visitor.numbers,
    })
}

/// The next offset at or after `from` with a whole GTID event whose header gives that same position.
pub(crate) fn next_gtid_event(log: &LogFile, framing: Framing, from: u64, size: u64) -> Result<Option<u64>> {
    let mut chunk = vec![0; CHUNK_SIZE];
    let mut offset = from;
    while offset + HEADER_SIZE as u64 <= size {
        let room = usize::try_from(size - offset).unwrap_or(CHUNK_SIZE).min(CHUNK_SIZE);
        let count = log.read_at(offset, chunk.get_mut(..room).unwrap_or_default())?;
        let bytes = chunk.get(..count).unwrap_or_default();
        for (at, front) in (offset..).zip(bytes.windows(HEADER_SIZE)) {
            if is_front_of_gtid_event(front, at, size) && is_whole(log, framing, at)? {
                return Ok(Some(at));
            }
        }
        match count.checked_sub(HEADER_SIZE - 1) {
            // The last bytes may be the start of a header.
            Some(seen) if seen > 0 => offset += seen as u64,
            _ => break,
        }
    }
    Ok(None)
}

fn is_front_of_gtid_event(front: &[u8], at: u64, size: u64) -> bool {
    let Some(event_type) = front.get(EVENT_TYPE_OFFSET) else { return false };
    if !EventType(*event_type).is_gtid() {
        return false;
    }
    let Ok(header) = EventHeader::decode(front) else { return false };
    let end = at + u64::from(header.event_size);
    check_size(&header).is_ok() && end <= size && header.end_log_pos == end as u32
}

fn is_whole(log: &LogFile, framing: Framing, at: u64) -> Result<bool> {
    let mut event = vec![0; GTID_EVENT_SIZE_MAX as usize];
    let count = log.read_at(at, &mut event)?;
    event.truncate(count);
    Ok(framing.next_frame(&event).ok().flatten().is_some_and(|frame| frame.verify().is_ok()))
}

/// The GTIDs of all earlier files.
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
    demands: Demands,
    assembler: TransactionBoundaryParser,
    whole: u64,
    gtids: GtidSet,
    transactions: u64,
    closed: bool,
    valid: u64,
    first: Option<Gtid>,
    numbers: (i64, i64),
    /// The sequence number of the open transaction.
    number: i64,
    /// The start of the current event.
    begin: u64,
    header: Option<EventHeader>,
    event: Vec<u8>,
    wanted: usize,
    /// The GTID of the open transaction.
    gtid: Option<Gtid>,
}

impl Visitor {
    fn new(framing: Framing, whole: u64) -> Self {
        Visitor {
            framing,
            demands: Demands::WholeTransactions,
            assembler: TransactionBoundaryParser::new(),
            whole,
            gtids: GtidSet::new(),
            transactions: 0,
            closed: false,
            valid: whole,
            first: None,
            numbers: (0, 0),
            number: 0,
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
        let is_whole_wanted = self.demands == Demands::WholeTransactions;
        if is_whole_wanted && placement.malformed == Some(MalformedSequence::UnexpectedGtid) {
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
                let event = AnyGtidEvent::decode_frame(&frame)?;
                self.number = event
                    .as_ref()
                    .and_then(AnyGtidEvent::logical_clock)
                    .map_or(0, |clock| clock.sequence_number);
                self.gtid = event.and_then(|event| event.gtid());
            }
            _ => {}
        }
        if !self.assembler.is_open() {
            self.whole = self.begin + u64::from(header.event_size);
            self.closed = matches!(header.event_type, EventType::ROTATE | EventType::STOP);
            if let Some(gtid) = self.gtid.take() {
                self.gtids.add(gtid);
                self.first.get_or_insert(gtid);
            }
            if self.number > 0 {
                let first = if self.numbers.0 == 0 { self.number } else { self.numbers.0 };
                self.numbers = (first, std::mem::take(&mut self.number));
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
            _ => whole.min(HEADER_SIZE + TransactionBoundaryParser::body_wanted(header)),
        };
        self.header = Some(*header);
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), BinlogError> {
        let room = self.wanted.saturating_sub(self.event.len());
        self.event.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        Ok(())
    }

    fn end(&mut self, _: VerifiedChecksum) -> Result<(), BinlogError> {
        let Some(header) = self.header.take() else { return Ok(()) };
        self.take(header).map_err(|error| error.at(self.begin, Some(header.event_type)))?;
        self.valid = self.begin + u64::from(header.event_size);
        Ok(())
    }
}
