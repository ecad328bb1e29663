//! Whether two sequences of logs mean the same, and where they first differ.
//!
//! Two logs mean the same if they hold the same events in the same order, however these are stored. We
//! compare type, timestamp, server id, flags and body of each event. We ignore what depends on place or form:
//! positions, checksums, payloads around events, transaction lengths, and the events that belong to a file
//! ([`belongs_to_file`]), since a log may be cut into different files.
//!
//! Each side is read on its own thread and turned into fingerprints, which the caller's thread compares.
//! Bodies are compared by a 64-bit hash: two different ones look the same once in 2^64 times.

use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::ops::ControlFlow;
use std::thread;

use binlogz_binlog::event::{AnyGtidEvent, TransactionPayloadHeader};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::{Error as BinlogError, EventFrame, EventHeader, EventType};
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::error::Error;
use crate::passes::walk::{EventSpan, WalkEnd, Walker, walk};
use crate::read::LogStart;
use crate::read::input::{Input, PipeStop};
use crate::read::{CutEvent, ReadProgress};

/// Fingerprints passed on at a time.
const CHUNK_SIZE: usize = 4096;

/// Or fewer, after this many bytes of events: a difference in slowly arriving events should be reported soon.
const CHUNK_BYTES: u64 = 1 << 20;

/// Chunks of a side that wait for the other side.
const CHUNKS_AHEAD: usize = 4;

/// The largest GTID event accepted, in bytes; servers write below 200.
const GTID_EVENT_SIZE_MAX: u32 = 64 << 10;

/// The common beginning of two sequences of logs, and where it ends.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Events that both have.
    pub events: u64,
    /// Transactions (GTID events) among them.
    pub transactions: u64,
    /// The first difference between the sides.
    pub difference: Option<Difference>,
    /// Logs in use that end inside an event, which is not compared: side and number of the log.
    pub cuts: Vec<(usize, usize, CutEvent)>,
}

/// Two events that should be the same; `None` if that side has no more.
#[derive(Debug)]
pub struct Difference {
    /// The event of each side.
    pub found: [Option<FoundEvent>; 2],
}

/// An event of one side.
#[derive(Debug, Clone)]
pub struct FoundEvent {
    /// The log it is from, by number.
    pub log: usize,
    /// Where the event is in that log.
    pub place: EventSpan,
    /// The event's header.
    pub header: EventHeader,
    /// Bytes of its body, the transaction length not counted.
    pub body_size: u64,
    /// The transaction that it belongs to: that of the last GTID event.
    pub gtid: Option<Gtid>,
}

/// A log that could not be read.
#[derive(Debug)]
pub struct UnreadableLog {
    /// Which side: 0 or 1.
    pub side: usize,
    /// Which log of its side.
    pub log: usize,
    /// The error.
    pub error: Error,
}

/// Whether an event belongs to its file rather than to the file's contents.
pub fn belongs_to_file(event_type: EventType) -> bool {
    event_type.is_of_file() || event_type.is_heartbeat()
}

/// Compares the logs of two sides, each in its order. `progress` receives the bytes read of both.
///
/// # Errors
///
/// A log that can't be read before a difference is found.
pub fn same<L: Sync>(
    sides: [&[L]; 2],
    open: impl Fn(&L) -> io::Result<Input> + Sync,
    progress: ReadProgress<'_>,
) -> Result<Comparison, Box<UnreadableLog>> {
    thread::scope(|scope| {
        // Dropping a reader ends its thread, also one that waits for the bytes of a pipe.
        let [mut a, mut b] = sides.map(|logs| {
            let (sender, messages) = bounded(CHUNKS_AHEAD);
            let open = &open;
            scope.spawn(move || read_side(logs, open, sender));
            SideReader {
                messages,
                stop: None,
                prints: Vec::new().into_iter(),
                gtid: None,
                bytes: 0,
                cuts: Vec::new(),
            }
        });
        let mut comparison = Comparison::default();
        let trouble = |side| move |(log, error)| Box::new(UnreadableLog { side, log, error });
        let mut told = 0;
        loop {
            let pair = [a.next().map_err(trouble(0))?, b.next().map_err(trouble(1))?];
            if a.bytes + b.bytes > told {
                told = a.bytes + b.bytes;
                progress(told);
            }
            match &pair {
                [None, None] => break,
                [Some(a), Some(b)] if a.same(b) => {
                    comparison.events += 1;
                    comparison.transactions += u64::from(a.header.event_type.is_gtid());
                }
                _ => {
                    let [print_a, print_b] = pair;
                    let found =
                        [print_a.map(|print| print.found(a.gtid)), print_b.map(|print| print.found(b.gtid))];
                    comparison.difference = Some(Difference { found });
                    break;
                }
            }
        }
        for (side, reader) in [a, b].into_iter().enumerate() {
            comparison.cuts.extend(reader.cuts.into_iter().map(|(log, cut)| (side, log, cut)));
        }
        Ok(comparison)
    })
}

/// An event's fingerprint.
struct Print {
    log: usize,
    place: EventSpan,
    header: EventHeader,
    body_size: u64,
    body_hash: u64,
    /// Which transaction a GTID event begins.
    gtid: Option<Gtid>,
}

impl Print {
    fn same(&self, other: &Print) -> bool {
        let of = |print: &Print| {
            let EventHeader { timestamp, event_type, server_id, flags, .. } = print.header;
            (event_type, timestamp, server_id, flags, print.body_size, print.body_hash)
        };
        of(self) == of(other)
    }

    fn found(self, gtid: Option<Gtid>) -> FoundEvent {
        let Print { log, place, header, body_size, .. } = self;
        FoundEvent { log, place, header, body_size, gtid }
    }
}

impl Difference {
    /// The first thing in which the two events differ.
    pub fn what(&self) -> &'static str {
        let [Some(a), Some(b)] = &self.found else { return "one side has no more events" };
        if a.header.event_type != b.header.event_type {
            "the types differ"
        } else if a.header.event_type.is_gtid() && a.gtid != b.gtid {
            "the GTIDs differ"
        } else if a.header.timestamp != b.header.timestamp {
            "the timestamps differ"
        } else if a.header.server_id != b.header.server_id {
            "the server ids differ"
        } else if a.header.flags != b.header.flags {
            "the flags differ"
        } else if a.body_size != b.body_size {
            "the bodies differ in size"
        } else {
            "the bodies differ"
        }
    }
}

/// A side's message.
enum Message {
    /// The side begins to read a log, and how to stop it.
    Begin(PipeStop),
    /// The next events, and the bytes of all logs so far.
    Prints(Vec<Print>, u64),
    /// A log in use ends inside an event.
    Cut(usize, CutEvent),
    /// A log can't be read any further.
    Failed(usize, Error),
}

/// One side, as the caller's thread sees it.
struct SideReader {
    messages: Receiver<Message>,
    stop: Option<PipeStop>,
    prints: std::vec::IntoIter<Print>,
    /// The transaction of the last GTID event.
    gtid: Option<Gtid>,
    bytes: u64,
    cuts: Vec<(usize, CutEvent)>,
}

impl SideReader {
    /// The next event; `None` after the last one of the last log.
    fn next(&mut self) -> Result<Option<Print>, (usize, Error)> {
        loop {
            if let Some(print) = self.prints.next() {
                if print.header.event_type.is_gtid() {
                    self.gtid = print.gtid;
                }
                return Ok(Some(print));
            }
            match self.messages.recv() {
                Ok(Message::Begin(stop)) => self.stop = Some(stop),
                Ok(Message::Prints(prints, bytes)) => {
                    self.prints = prints.into_iter();
                    self.bytes = bytes;
                }
                Ok(Message::Cut(log, cut)) => self.cuts.push((log, cut)),
                Ok(Message::Failed(log, error)) => return Err((log, error)),
                // The thread ended; if it had panicked, the scope would pass that on.
                Err(_) => return Ok(None),
            }
        }
    }
}

fn read_side<L>(logs: &[L], open: impl Fn(&L) -> io::Result<Input>, messages: Sender<Message>) {
    let mut printer = Printer::new(messages);
    for (number, log) in logs.iter().enumerate() {
        printer.log = number;
        let walked = open(log).map_err(|error| Error::Input(error.into())).and_then(|mut input| {
            printer.tell(Message::Begin(input.stop()));
            walk(input, &mut printer)
        });
        printer.flush();
        match walked {
            // A failure of the walker's own, if there is one, ended the walk.
            Ok(WalkEnd::Stopped) => match printer.failure.take() {
                Some(error) => return printer.tell(Message::Failed(number, error)),
                None => return,
            },
            Ok(WalkEnd::Cut(cut)) => printer.tell(Message::Cut(number, cut)),
            Ok(WalkEnd::Whole) => {}
            Err(error) => return printer.tell(Message::Failed(number, error)),
        }
        printer.bytes_before += printer.bytes;
    }
}

/// Makes fingerprints of the events it receives.
struct Printer {
    messages: Sender<Message>,
    /// The reader needs no more fingerprints.
    unwanted: bool,
    failure: Option<Error>,
    log: usize,
    prints: Vec<Print>,
    current: Option<Current>,
    /// Bytes of the events in `prints`.
    prints_bytes: u64,
    /// Bytes of this log, and of all logs before it.
    bytes: u64,
    bytes_before: u64,
    /// A GTID event without its checksum.
    gtid_event: Vec<u8>,
}

/// The current event.
struct Current {
    place: EventSpan,
    header: EventHeader,
    body_size: u64,
    hasher: DefaultHasher,
}

impl Printer {
    fn new(messages: Sender<Message>) -> Self {
        Printer {
            messages,
            unwanted: false,
            failure: None,
            log: 0,
            prints: Vec::with_capacity(CHUNK_SIZE),
            current: None,
            prints_bytes: 0,
            bytes: 0,
            bytes_before: 0,
            gtid_event: Vec::new(),
        }
    }

    fn tell(&mut self, message: Message) {
        self.unwanted |= self.messages.send(message).is_err();
    }

    fn flush(&mut self) {
        self.prints_bytes = 0;
        let prints = std::mem::replace(&mut self.prints, Vec::with_capacity(CHUNK_SIZE));
        self.tell(Message::Prints(prints, self.bytes_before + self.bytes));
    }

    /// The GTID event, without its transaction length.
    fn gtid(&mut self, current: &mut Current) -> Result<Option<Gtid>, BinlogError> {
        let frame = EventFrame::without_checksum_behind(&self.gtid_event)?;
        let Some(mut event) = AnyGtidEvent::decode_frame(&frame)? else { return Ok(None) };
        match &mut event {
            AnyGtidEvent::Untagged(event) => event.transaction_length = event.transaction_length.map(|_| 0),
            AnyGtidEvent::Tagged(event) => event.transaction_length = 0,
        }
        let body = event.encode()?;
        current.body_size = body.len() as u64;
        current.hasher.write(&body);
        Ok(event.gtid())
    }
}

impl Walker for Printer {
    fn format_description(&mut self, _: &LogStart) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn payload(
        &mut self,
        place: EventSpan,
        _: &EventHeader,
        _: &TransactionPayloadHeader<'_>,
    ) -> ControlFlow<()> {
        self.bytes = place.end;
        ControlFlow::Continue(())
    }

    fn begin(&mut self, place: EventSpan, header: &EventHeader) -> ControlFlow<()> {
        self.bytes = place.end;
        if belongs_to_file(header.event_type) {
            return ControlFlow::Continue(());
        }
        if header.event_type.is_gtid() {
            if header.event_size > GTID_EVENT_SIZE_MAX {
                let error =
                    BinlogError::invalid("event header", "event size", header.event_size, "at most 64 KiB");
                self.failure = Some(error.at(place.offset, Some(header.event_type)).into());
                return ControlFlow::Break(());
            }
            self.gtid_event.clear();
            self.gtid_event.extend_from_slice(&header.encode());
        }
        self.current = Some(Current { place, header: *header, body_size: 0, hasher: DefaultHasher::new() });
        ControlFlow::Continue(())
    }

    fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        match &mut self.current {
            Some(current) if current.header.event_type.is_gtid() => self.gtid_event.extend_from_slice(bytes),
            Some(current) => {
                current.body_size += bytes.len() as u64;
                current.hasher.write(bytes);
            }
            None => {}
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        let Some(mut current) = self.current.take() else { return ControlFlow::Continue(()) };
        let mut gtid = None;
        if current.header.event_type.is_gtid() {
            match self.gtid(&mut current) {
                Ok(found) => gtid = found,
                Err(error) => {
                    let event_type = Some(current.header.event_type);
                    self.failure = Some(error.at(current.place.offset, event_type).into());
                    return ControlFlow::Break(());
                }
            }
        }
        let Current { place, header, body_size, hasher } = current;
        let body_hash = hasher.finish();
        self.prints.push(Print { log: self.log, place, header, body_size, body_hash, gtid });
        self.prints_bytes += u64::from(header.event_size);
        if self.prints.len() == CHUNK_SIZE || self.prints_bytes >= CHUNK_BYTES {
            self.flush();
        }
        if self.unwanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
