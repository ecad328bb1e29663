//! Goes through a log event by event, those in payloads included, on one thread.
//!
//! For callers that need the events in order (`events`, `verify --same`). Checksums are checked. Bodies are
//! passed on in pieces, so no event is held, however large. The [`Walker`] interprets the events.

use std::io::{self, Read};
use std::ops::ControlFlow;

use binlogz_binlog::event::TransactionPayloadHeader;
use binlogz_binlog::{EventHeader, EventParser, EventType, EventVisitor, StoredChecksum, VerifiedChecksum};
use binlogz_payload::{Error as PayloadError, Expander, LogContext, PayloadStream};

use crate::error::Error;
use crate::read::CutEvent;
use crate::read::batcher::Batcher;
use crate::read::input::Input;
use crate::read::{Batch, BatchSize, BatchUnit, LargeUnit, LogPiece, LogStart};

/// Bytes of events processed at a time; a larger event is read in pieces.
const BATCH_SIZE: BatchSize = BatchSize { target: 256 << 10, max: 1 << 20 };

/// Bytes of a large event that are read at a time.
const READ_SIZE: usize = 256 << 10;

/// Where an event is relative to transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSpan {
    /// Offset in its log: of the event, or of the payload event that holds it.
    pub offset: u64,
    /// Offset in its log at which the event ends, or the payload event that holds it.
    pub end: u64,
    /// For an event in a payload: the position that the payload event gives.
    pub payload_end_log_pos: Option<u32>,
}

/// Looks at events as they go by. A method that returns [`ControlFlow::Break`] ends the walk.
pub trait Walker {
    /// A format description: a log begins, or continues in another form.
    fn format_description(&mut self, start: &LogStart) -> ControlFlow<()>;

    /// A payload event. The events in it follow.
    fn payload(
        &mut self,
        place: EventSpan,
        header: &EventHeader,
        fields: &TransactionPayloadHeader<'_>,
    ) -> ControlFlow<()>;

    /// Another event begins.
    fn begin(&mut self, place: EventSpan, header: &EventHeader) -> ControlFlow<()>;

    /// The next bytes of its body.
    fn body(&mut self, bytes: &[u8]) -> ControlFlow<()>;

    /// The event is whole.
    fn end(&mut self) -> ControlFlow<()>;
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkEnd {
    /// At the end of the log.
    Whole,
    /// Before an event of which only some bytes are there: the log is in use.
    Cut(CutEvent),
    /// Where the [`Walker`] ended it.
    Stopped,
}

/// Walks through the log of `input`.
///
/// # Errors
///
/// Bytes that can't be read as events, with their offset; an input that fails.
pub fn walk<W: Walker>(input: Input, walker: &mut W) -> Result<WalkEnd, Error> {
    let mut batcher = Batcher::new(input, BatchUnit::Event, BATCH_SIZE);
    let mut steps = Steps::new()?;
    while let Some(piece) = batcher.next_piece() {
        let result = match piece? {
            LogPiece::Cut(cut) => return Ok(WalkEnd::Cut(cut)),
            LogPiece::Start(start) => match walker.format_description(&start) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => return Ok(WalkEnd::Stopped),
            },
            LogPiece::Batch(batch) => steps.batch(walker, &batch),
            LogPiece::Large(large) => steps.large(walker, &large),
        };
        match result {
            Err(_) if steps.stopped => return Ok(WalkEnd::Stopped),
            result => result?,
        }
    }
    Ok(WalkEnd::Whole)
}

/// Walks through events that stand by themselves: part of a log, from any place of it on.
#[derive(Debug)]
pub struct EventsWalk(Steps);

impl EventsWalk {
    /// Walks through nothing yet.
    ///
    /// # Errors
    ///
    /// There is no memory for a decompressor.
    pub fn new() -> Result<Self, Error> {
        Ok(EventsWalk(Steps::new()?))
    }

    /// Walks through these whole events, the first of which is at this offset of its log.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read as events, with their offset; a reader that fails.
    pub fn read<W: Walker>(
        &mut self,
        events: impl Read,
        offset: u64,
        context: LogContext,
        walker: &mut W,
    ) -> Result<WalkEnd, Error> {
        self.0.stopped = false;
        match self.0.events(walker, events, offset, context) {
            Err(_) if self.0.stopped => Ok(WalkEnd::Stopped),
            Err(error) => Err(error.into()),
            Ok(()) => Ok(WalkEnd::Whole),
        }
    }
}

/// State kept from piece to piece.
#[derive(Debug)]
struct Steps {
    expander: Expander,
    /// The walker ended the walk: the error is only a way out.
    stopped: bool,
    /// What was read last of events that are read in pieces.
    buffer: Vec<u8>,
}

impl Steps {
    fn new() -> Result<Self, Error> {
        Ok(Steps { expander: Expander::new()?, stopped: false, buffer: Vec::new() })
    }

    fn batch(&mut self, walker: &mut impl Walker, batch: &Batch) -> Result<(), PayloadError> {
        let mut parser = EventParser::new(batch.context.framing, batch.offset);
        parser.push(&batch.bytes, &mut self.visitor(walker, batch.context))?;
        Ok(parser.finish()?)
    }

    fn large(&mut self, walker: &mut impl Walker, large: &LargeUnit) -> Result<(), PayloadError> {
        self.events(walker, large.reader(0..large.size), large.offset, large.context)
    }

    fn events(
        &mut self,
        walker: &mut impl Walker,
        mut events: impl Read,
        offset: u64,
        context: LogContext,
    ) -> Result<(), PayloadError> {
        let mut parser = EventParser::new(context.framing, offset);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(READ_SIZE, 0);
        let mut visitor = self.visitor(walker, context);
        let walked = loop {
            match events.read(&mut buffer) {
                Ok(0) => break parser.finish().map_err(PayloadError::from),
                Ok(count) => {
                    let pushed = parser.push(buffer.get(..count).unwrap_or_default(), &mut visitor);
                    if pushed.is_err() {
                        break pushed;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error.into()),
            }
        };
        self.buffer = buffer;
        walked
    }

    fn visitor<'a, W>(&'a mut self, walker: &'a mut W, context: LogContext) -> OuterEvents<'a, W> {
        let place = EventSpan { offset: 0, end: 0, payload_end_log_pos: None };
        let inner = Events { walker, place, stopped: &mut self.stopped };
        OuterEvents { inner, expander: &mut self.expander, context, payload: None }
    }
}

/// Tells payload events from others.
struct OuterEvents<'a, W> {
    inner: Events<'a, W>,
    expander: &'a mut Expander,
    context: LogContext,
    payload: Option<OpenPayload>,
}

/// A payload event that goes by.
struct OpenPayload {
    header: EventHeader,
    stream: PayloadStream,
    told: bool,
}

impl<W: Walker> EventVisitor for OuterEvents<'_, W> {
    type Error = PayloadError;

    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<(), PayloadError> {
        let end = offset + u64::from(header.event_size);
        self.inner.place = EventSpan { offset, end, payload_end_log_pos: None };
        if header.event_type == EventType::TRANSACTION_PAYLOAD {
            let stream = PayloadStream::begin(offset, header, self.context.framing);
            self.payload = Some(OpenPayload { header: *header, stream, told: false });
            return Ok(());
        }
        self.inner.begin(offset, header)
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), PayloadError> {
        let Some(OpenPayload { header, stream, told }) = &mut self.payload else {
            return self.inner.body(bytes);
        };
        let bytes = stream.front(bytes, self.expander)?;
        if let Some(fields) = stream.fields().filter(|_| !*told) {
            *told = true;
            let flow = self.inner.walker.payload(self.inner.place, header, &fields);
            self.inner.go_on(flow)?;
            self.inner.place.payload_end_log_pos = Some(header.end_log_pos);
        }
        stream.body(bytes, self.expander, &mut self.inner)
    }

    fn end(&mut self, _: VerifiedChecksum) -> Result<(), PayloadError> {
        match self.payload.take() {
            Some(payload) => payload.stream.end(self.expander).map(drop),
            None => self.inner.whole(),
        }
    }
}

/// Tells events to the walker.
struct Events<'a, W> {
    walker: &'a mut W,
    place: EventSpan,
    stopped: &'a mut bool,
}

impl<W> Events<'_, W> {
    /// A walk that was ended leaves the parsers as an error.
    fn go_on(&mut self, flow: ControlFlow<()>) -> Result<(), PayloadError> {
        match flow {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                *self.stopped = true;
                Err(io::Error::other("the walk was ended").into())
            }
        }
    }
}

impl<W: Walker> Events<'_, W> {
    fn whole(&mut self) -> Result<(), PayloadError> {
        let flow = self.walker.end();
        self.go_on(flow)
    }
}

/// Events inside payloads have no checksums of their own; those of all other events were compared.
impl<W: Walker> EventVisitor<StoredChecksum> for Events<'_, W> {
    type Error = PayloadError;

    fn begin(&mut self, _: u64, header: &EventHeader) -> Result<(), PayloadError> {
        let flow = self.walker.begin(self.place, header);
        self.go_on(flow)
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), PayloadError> {
        let flow = self.walker.body(bytes);
        self.go_on(flow)
    }

    fn end(&mut self, _: StoredChecksum) -> Result<(), PayloadError> {
        self.whole()
    }
}
