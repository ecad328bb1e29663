//! Cuts a log into batches of events and expands its large payloads; runs on the reading thread.
//!
//! ```text
//! piece of the log (see crate::read::batcher)     becomes
//! Start   a format description              a batch of this one event
//! Batch   events in memory                  batches, cut where a payload is too large for a worker,
//!                                           or where enough work is together
//! Large   one event                         a batch of this one event; a payload is expanded into
//!                                           batches of the events inside
//! Cut     the end of a log in use           passed on
//! ```
//!
//! Whether a payload is small depends on the size that its zstd frames can expand to, never on the size that the payload
//! event claims. Small ones, nearly always all of them, are left to the workers: a hundred thousand of them keep all
//! cores busy. A large one is expanded here as a stream, about as fast as the cores can decode its rows.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::event::{CompressedEvent, CompressionType, PostHeaderLengths, TransactionPayloadEvent};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{Error as BinlogError, EventHeader, EventType};
use binlogz_payload::{Expander, LogContext, expanded_size_max};

use super::carried::{Tracker, WholeEvents};
use super::large_payload::{LargePayload, no_memory};
use super::log::InputLog;
use super::payload_place::PayloadBytes;
use super::permit::Permits;
use super::queued::{BatchContent, QueuedBatch, ReadAgain};
use crate::error::Error;
use crate::read::CutEvent;
use crate::read::batcher::Batcher;
use crate::read::buffers::LentBuffer;
use crate::read::input::Input;
use crate::read::{BatchSize, BatchUnit, LargeUnit, LogPiece, LogStart};
use crate::unread::UnreadNotes;
use crate::work::ordered::in_flight_max;

/// Bytes for all batches under way.
const BATCHES_MEMORY: usize = 16 << 20;
/// Payloads that are no larger than this, and can't expand to more, are expanded by a worker, each into a
/// buffer of its own.
const SMALL_PAYLOAD_MAX: u64 = 1 << 20;
/// The largest batch: larger ones are no faster.
const BATCH_MAX: usize = 1 << 20;
/// A batch for work that makes something of each table in it.
const LARGE_BATCH: usize = 4 << 20;
/// The smallest batch: below this, passing batches between threads becomes a noticeable cost.
const BATCH_MIN: usize = 64 << 10;
/// The largest expansion ratio assumed for a small payload when estimating a batch's work: frames without a
/// size (servers up to 8.0) could expand to whole blocks, as far as we can tell.
const EXPANSION_MAX: u64 = 64;

/// The memory plan of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryPlan {
    /// How the log is read.
    pub(super) batch: BatchSize,
    /// Payloads that are larger, or may expand to more, are large.
    pub(super) small_payload_max: u64,
    /// A batch ends where its events, payloads expanded, reach this size.
    pub(super) work_max: u64,
    /// Whether checksums are looked at.
    pub(super) verify: bool,
}

impl MemoryPlan {
    pub(super) fn for_workers(workers: usize) -> Self {
        let max = (BATCHES_MEMORY / in_flight_max(workers) / 2).clamp(BATCH_MIN, BATCH_MAX);
        MemoryPlan {
            batch: BatchSize { target: max / 2, max },
            small_payload_max: SMALL_PAYLOAD_MAX,
            work_max: 2 * max as u64,
            verify: true,
        }
    }

    /// For work that makes something of each table in a batch: with thousands of tables that takes longer than their rows.
    pub(super) fn for_many_tables(workers: usize) -> Self {
        MemoryPlan {
            batch: BatchSize { target: LARGE_BATCH, max: 2 * LARGE_BATCH },
            work_max: 2 * LARGE_BATCH as u64,
            ..MemoryPlan::for_workers(workers)
        }
    }

    /// For work that makes text, which is many times larger than its events: batches of half the size.
    pub(super) fn for_text(workers: usize, verify: bool) -> Self {
        let plan = MemoryPlan::for_workers(workers);
        let batch = BatchSize { target: plan.batch.target / 2, ..plan.batch };
        MemoryPlan { batch, work_max: plan.work_max / 2, verify, ..plan }
    }
}

/// A piece of work.
#[derive(Debug)]
pub(super) enum EventsJob {
    Batch(Box<QueuedBatch>),
    Cut(CutEvent),
}

/// Reads a log; see the module.
pub(super) struct LogSource {
    batcher: Batcher,
    plan: MemoryPlan,
    permits: Permits,
    expander: Option<Expander>,
    log: Option<Arc<InputLog>>,
    tracker: Tracker,
    piece: Option<Uncut>,
    payload: Option<LargePayload>,
}

/// Events in memory that have not been cut into batches yet.
struct Uncut {
    bytes: Arc<LentBuffer>,
    /// Where its events begin.
    starts: Vec<u32>,
    has_payloads: bool,
    /// Where the next batch begins.
    next: usize,
    /// Offset of the first byte in the log.
    offset: u64,
}

/// The kind of a piece's next batch.
enum NextBatchKind {
    Events(Range<usize>),
    /// An event that expands to more than a batch may have.
    Bulky(Range<usize>),
    Payload(EventHeader, Range<usize>),
}

impl LogSource {
    pub(super) fn new(input: Input, plan: MemoryPlan) -> Self {
        LogSource {
            batcher: Batcher::new(input, BatchUnit::Event, plan.batch),
            plan,
            permits: Permits::default(),
            expander: None,
            log: None,
            tracker: Tracker::default(),
            piece: None,
            payload: None,
        }
    }

    /// The next piece of work; `None` at the end of the log.
    pub(super) fn next_job(&mut self) -> Option<Result<EventsJob, Error>> {
        self.advance().transpose()
    }

    fn advance(&mut self) -> Result<Option<EventsJob>, Error> {
        loop {
            if let Some(batch) = self.payload_batch()? {
                return Ok(Some(EventsJob::Batch(Box::new(batch))));
            }
            if let Some(batch) = self.piece_batch()? {
                return Ok(Some(EventsJob::Batch(Box::new(batch))));
            }
            let Some(piece) = self.batcher.next_piece().transpose()? else { return Ok(None) };
            match piece {
                LogPiece::Start(start) => {
                    return self.start(start).map(|batch| Some(EventsJob::Batch(Box::new(batch))));
                }
                LogPiece::Batch(batch) => {
                    self.piece = Some(Uncut {
                        bytes: Arc::new(self.batcher.buffers().lend(batch.bytes)),
                        starts: batch.starts,
                        has_payloads: batch.has_payloads,
                        next: 0,
                        offset: batch.offset,
                    });
                }
                LogPiece::Large(large) => {
                    if let Some(batch) = self.large(large)? {
                        return Ok(Some(EventsJob::Batch(Box::new(batch))));
                    }
                }
                LogPiece::Cut(cut) => return Ok(Some(EventsJob::Cut(cut))),
            }
        }
    }

    /// The next events of the large payload that is being expanded, if there is one.
    fn payload_batch(&mut self) -> Result<Option<QueuedBatch>, Error> {
        let (Some(payload), Some(expander)) = (&mut self.payload, &mut self.expander) else {
            return Ok(None);
        };
        let batch = payload.next_batch(expander, self.plan.batch.target, &self.permits)?;
        if batch.is_none() {
            self.payload = None;
        }
        Ok(batch)
    }

    /// The next batch of the piece that is in memory, if there is one.
    fn piece_batch(&mut self) -> Result<Option<QueuedBatch>, Error> {
        let (Some(log), Some(piece)) = (&self.log, &mut self.piece) else { return Ok(None) };
        let bytes = Arc::clone(&piece.bytes);
        let is_one = !piece.has_payloads && bytes.len() as u64 <= self.plan.work_max;
        let next = match is_one.then_some(piece.next..bytes.len()).filter(|rest| !rest.is_empty()) {
            Some(rest) => NextBatchKind::Events(rest),
            None => match next_of(&bytes, piece.next, log, self.plan) {
                Some(next) => next,
                None => {
                    self.piece = None;
                    return Ok(None);
                }
            },
        };
        let log = Arc::clone(log);
        let offset = piece.offset;
        let permit = match &next {
            NextBatchKind::Bulky(_) => Some(self.permits.take()),
            NextBatchKind::Events(_) | NextBatchKind::Payload(..) => None,
        };
        match next {
            NextBatchKind::Events(range) | NextBatchKind::Bulky(range) => {
                piece.next = range.end;
                let place = |offset: usize| piece.starts.partition_point(|&start| (start as usize) < offset);
                let begin = place(range.start);
                let end = place(range.end);
                // Nearly always all of them.
                let mut starts = match end - begin == piece.starts.len() {
                    true => std::mem::take(&mut piece.starts),
                    false => piece.starts.get(begin..end).unwrap_or_default().to_vec(),
                };
                starts.iter_mut().for_each(|start| *start -= range.start as u32);
                let batch = self.log_batch(log, bytes, (range, &starts), offset)?;
                Ok(Some(QueuedBatch { permit, ..batch }))
            }
            NextBatchKind::Payload(header, range) => {
                piece.next = range.end;
                let offset = offset + range.start as u64;
                self.begin_payload(&log, header, offset, PayloadBytes::Memory { bytes, range })?;
                self.payload_batch()
            }
        }
    }

    /// Events of the log, `range` of `bytes`, and where in it they begin; the first of `bytes` stands at `offset`.
    fn log_batch(
        &mut self,
        log: Arc<InputLog>,
        bytes: Arc<LentBuffer>,
        (range, starts): (Range<usize>, &[u32]),
        offset: u64,
    ) -> Result<QueuedBatch, Error> {
        let carried = self.tracker.carried();
        let offset = offset + range.start as u64;
        let events = WholeEvents {
            bytes: bytes.get(range.clone()).unwrap_or_default(),
            offset,
            framing: log.context.framing,
            lengths: &log.lengths,
        };
        self.tracker.pass(events, starts)?;
        let bytes_read = range.len() as u64;
        let content = BatchContent::Log { offset };
        let again = self.batcher.places().map(|(places, begin)| ReadAgain::new(places, begin + offset));
        let verify = self.plan.verify;
        let unread = UnreadNotes::default();
        Ok(QueuedBatch {
            log,
            bytes,
            range,
            again,
            content,
            carried,
            bytes_read,
            permit: None,
            verify,
            unread,
        })
    }

    fn start(&mut self, start: LogStart) -> Result<QueuedBatch, Error> {
        let number = match &self.log {
            Some(log) => log.number + u64::from(start.magic),
            None => 0,
        };
        if start.magic {
            self.tracker = Tracker::default();
        }
        let lengths = PostHeaderLengths::from(&start.description);
        let unread = UnreadNotes::default();
        let log =
            InputLog { number, description: start.description, context: start.context, lengths, unread };
        let log = Arc::new(log);
        self.log = Some(Arc::clone(&log));
        let range = 0..start.event.len();
        let mut batch = self.log_batch(log, Arc::new(start.event.into()), (range, &[0]), start.offset)?;
        if start.magic {
            batch.bytes_read += binlogz_binlog::MAGIC.len() as u64;
        }
        Ok(batch)
    }

    /// An event that does not fit into a batch. `None`: a payload, which is expanded next.
    fn large(&mut self, large: LargeUnit) -> Result<Option<QueuedBatch>, Error> {
        let Some(log) = self.log.clone() else { return Ok(None) };
        // A log that ends inside the event: the error, or the cut, follows.
        if large.size == 0 {
            return Ok(None);
        }
        let mut head = Vec::with_capacity(HEADER_SIZE);
        large.reader(0..HEADER_SIZE as u64).read_to_end(&mut head).map_err(BinlogError::from)?;
        let header = EventHeader::decode(&head)?;
        let offset = large.offset;
        if header.event_type == EventType::TRANSACTION_PAYLOAD {
            if large.size <= self.plan.small_payload_max {
                let bytes = Arc::new(whole(&large, &header)?.into());
                self.piece = Some(Uncut { bytes, starts: vec![0], has_payloads: true, next: 0, offset });
            } else {
                self.begin_payload(&log, header, offset, PayloadBytes::Large(large))?;
            }
            return Ok(None);
        }
        let permit = self.permits.take();
        let bytes = whole(&large, &header)?;
        let range = 0..bytes.len();
        let mut batch = self.log_batch(log, Arc::new(bytes.into()), (range, &[0]), offset)?;
        batch.permit = Some(permit);
        Ok(Some(batch))
    }

    fn begin_payload(
        &mut self,
        log: &Arc<InputLog>,
        header: EventHeader,
        offset: u64,
        bytes: PayloadBytes,
    ) -> Result<(), Error> {
        let carried = self.tracker.carried();
        // For the events after it, only a payload event's header matters.
        let events = WholeEvents {
            bytes: &header.encode(),
            offset,
            framing: log.context.framing,
            lengths: &log.lengths,
        };
        self.tracker.pass(events, &[0])?;
        let tracker = self.tracker.inside_payload();
        if self.expander.is_none() {
            self.expander = Some(Expander::new()?);
        }
        self.payload = Some(LargePayload::begin(
            Arc::clone(log),
            header,
            offset,
            bytes,
            (carried, tracker),
            self.plan.verify,
            self.batcher.buffers(),
        )?);
        Ok(())
    }
}

/// The bytes of a large event.
fn whole(large: &LargeUnit, header: &EventHeader) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    // These bytes were there when the batcher passed over them.
    let reserved = bytes.try_reserve_exact(header.event_size as usize);
    reserved.map_err(|_| no_memory(header, large.offset))?;
    large.reader(0..large.size).read_to_end(&mut bytes).map_err(BinlogError::from)?;
    if bytes.len() as u64 != large.size {
        // The file has become shorter since.
        let error = BinlogError::Truncated { needed: large.size, left: bytes.len() as u64 };
        return Err(error.at(large.offset, Some(header.event_type)).into());
    }
    Ok(bytes)
}

/// The next batch of events in memory, from `begin` on; `None` after the last event.
fn next_of(bytes: &[u8], begin: usize, log: &InputLog, plan: MemoryPlan) -> Option<NextBatchKind> {
    let mut end = begin;
    let mut work = 0;
    while work < plan.work_max
        && let Some(rest) = bytes.get(end..).filter(|rest| !rest.is_empty())
    {
        let header = EventHeader::decode(rest).ok()?;
        let event = end..end + header.event_size as usize;
        work += u64::from(header.event_size);
        if header.event_type == EventType::TRANSACTION_PAYLOAD {
            let event_bytes = bytes.get(event.clone()).unwrap_or_default();
            match small_payload_size(event_bytes, log.context, plan) {
                Some(size) => work += size.min(EXPANSION_MAX * u64::from(header.event_size)),
                None if end == begin => return Some(NextBatchKind::Payload(header, event)),
                None => break,
            }
        } else if let Some(size) = bulky_size(bytes.get(event.clone()).unwrap_or_default(), &header, log) {
            match size <= plan.small_payload_max {
                true => work += size,
                false if end == begin => return Some(NextBatchKind::Bulky(event)),
                false => break,
            }
        }
        end = event.end;
    }
    (end > begin).then_some(NextBatchKind::Events(begin..end))
}

/// How far a payload can expand, if a worker may expand it. This does not depend on how much of the log is in
/// memory, so a damaged payload fails alike for any number of workers. Unreadable payloads count as large:
/// the stream finds out what is wrong, and where.
fn small_payload_size(event: &[u8], context: LogContext, plan: MemoryPlan) -> Option<u64> {
    if event.len() as u64 > plan.small_payload_max {
        return None;
    }
    let end = event.len().checked_sub(context.framing.checksum().size())?;
    let payload = TransactionPayloadEvent::decode(event.get(HEADER_SIZE..end)?).ok()?;
    let size = match payload.header.compression_type() {
        CompressionType::ZSTD => expanded_size_max(payload.payload)?,
        CompressionType::NONE => payload.payload.len() as u64,
        _ => return None,
    };
    (size <= plan.small_payload_max).then_some(size)
}

/// How far a compressed event of MariaDB can expand; `None` for all others.
fn bulky_size(event: &[u8], header: &EventHeader, log: &InputLog) -> Option<u64> {
    header.event_type.mariadb_expanded()?;
    let end = event.len().checked_sub(log.context.framing.checksum().size())?;
    let compressed = CompressedEvent::decode(header.event_type, event.get(HEADER_SIZE..end)?, &log.lengths);
    Some(compressed.ok()?.body_size_max())
}
