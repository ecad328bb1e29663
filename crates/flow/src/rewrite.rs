//! Compresses or expands a whole log: the pipeline with the two transformations of
//! `binlogz-payload` in its middle.

use std::io::{self, Read, Write};
use std::ops::Range;

use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::{Framing, VerifiedFrame};
use binlogz_payload::format_description::{Announcement, announce_payloads, withdraw_payloads};
use binlogz_payload::{
    CompressOptions, PieceBytes, Place, PositionWriter, Rewritten, Spool, Tally, TransactionCompressor,
    TransactionExpander,
};

use crate::batcher::{Batch, Batcher, Large, Piece, Start, Unit};
use crate::error::Error;
use crate::input::Input;
use crate::memory::Memory;
use crate::ordered;
use crate::salvage::Lost;

/// What is done to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewrite {
    /// Every eligible transaction becomes a payload.
    Compress(CompressOptions),
    /// Payloads become transactions, then transactions payloads: to change the level of what is
    /// compressed already.
    Recompress(CompressOptions),
    /// Every payload becomes a transaction.
    Expand,
}

/// A transaction's place in the log read and in the log written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Its GTID; `None` for anonymous ones.
    pub gtid: Option<Gtid>,
    /// Where it stands in the log read.
    pub old: Range<u64>,
    /// Where it stands in the log written.
    pub new: Range<u64>,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Transactions by what was done with them.
    pub tally: Tally,
    /// Bytes of the log read that were whole events.
    pub bytes_read: u64,
    /// Bytes of the log written.
    pub bytes_written: u64,
    /// The log is in use: it ends inside an event, of which so many bytes are there.
    pub cut: Option<Cut>,
}

/// The end of a log that is still being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Where the event begins that is not whole.
    pub offset: u64,
    /// How many bytes of it are there; they are not in the output.
    pub size: u64,
}

/// Tells how far a rewrite is: bytes read so far.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

/// Reads the log of `input` and writes its new form to `out`, with `workers` threads. Each
/// transaction's move is told to `moved`, where there is one (compress only).
///
/// The bytes written are the same with any number of workers.
///
/// # Errors
///
/// Bad bytes or an input that fails; an output that fails. What was written by then is worth
/// nothing.
pub fn rewrite(
    input: Input,
    out: impl Write,
    rewrite: Rewrite,
    workers: usize,
    moved: Option<&mut dyn FnMut(Moved) -> io::Result<()>>,
    progress: Progress<'_>,
) -> Result<Summary, Error> {
    rewrite_without(&[], input, out, rewrite, workers, moved, progress)
}

/// The same, as if the `lost` parts of the log were not there.
///
/// # Errors
///
/// As for [`rewrite()`].
pub fn rewrite_without(
    lost: &[Lost],
    input: Input,
    out: impl Write,
    rewrite: Rewrite,
    workers: usize,
    moved: Option<&mut dyn FnMut(Moved) -> io::Result<()>>,
    progress: Progress<'_>,
) -> Result<Summary, Error> {
    let memory = Memory::for_workers(workers, !matches!(rewrite, Rewrite::Compress(_)));
    rewrite_within(&memory, lost, input, out, rewrite, moved, progress)
}

/// The same with a memory plan of the caller's, which changes no byte of the output.
///
/// # Errors
///
/// As for [`rewrite()`].
pub fn rewrite_within(
    memory: &Memory,
    lost: &[Lost],
    mut input: Input,
    out: impl Write,
    rewrite: Rewrite,
    mut moved: Option<&mut dyn FnMut(Moved) -> io::Result<()>>,
    progress: Progress<'_>,
) -> Result<Summary, Error> {
    let stop = input.stop();
    let mut batcher = Batcher::new(input, Unit::Transaction, memory.batch)
        .without(lost.iter().map(|lost| lost.range.clone()));
    let mut announced = true;
    let jobs = || {
        let piece = batcher.next_piece()?;
        Some(piece.map_err(Error::from).and_then(|piece| {
            Ok(match piece {
                Piece::Start(start) => Job::Start(start_of(start, rewrite, &mut announced)?),
                Piece::Batch(batch) => Job::Batch(batch, announced),
                Piece::Large(large) => Job::Large(large, announced),
                Piece::Cut { offset, size } => Job::Cut(Cut { offset, size }),
            })
        }))
    };
    let mut writer = PositionWriter::new(out, !matches!(rewrite, Rewrite::Expand));
    let mut summary = Summary::default();
    let mut places = Vec::new();
    let sink = |result: Done| {
        match result {
            Done::Start(start) => {
                if start.magic {
                    writer.magic().map_err(Error::Output)?;
                    summary.bytes_read += 4;
                }
                summary.bytes_read += start.size_read;
                writer.as_is(&start.event).map_err(Error::Output)?;
            }
            Done::Piece { mut rewritten, mut input, size_read } => {
                places.clear();
                let all = moved.is_some();
                let placed = |_, place| {
                    if all {
                        places.push(place);
                    }
                };
                writer.write(&mut rewritten, &mut input, placed).map_err(Error::Output)?;
                for mark in rewritten.marks.iter_mut().flat_map(|marks| marks.drain(..)) {
                    let (Some(&start), Some(&end)) =
                        (places.get(mark.spans.start), places.get(mark.spans.end))
                    else {
                        continue;
                    };
                    if let Some(moved) = &mut moved {
                        moved(Moved { gtid: mark.gtid, old: mark.old, new: start..end })
                            .map_err(|error| Error::Output(error.into()))?;
                    }
                }
                summary.tally.add(&rewritten.tally);
                summary.bytes_read += size_read;
                let Rewritten { spool, .. } = *rewritten;
                memory.keep(spool.into_buffer());
                if let PieceInput::Batch(bytes) = input {
                    memory.keep(bytes);
                }
            }
            Done::Cut(cut) => summary.cut = Some(cut),
        }
        progress(summary.bytes_read);
        Ok(())
    };
    let new_worker = || Worker::new(rewrite);
    ordered::run(memory.workers, jobs, stop, new_worker, |worker, job| worker.work(job, memory), sink)?;
    summary.bytes_written = writer.written();
    writer.finish().map_err(Error::Output)?;
    Ok(summary)
}

/// What a worker gets.
enum Job {
    Start(NewStart),
    Batch(Batch, bool),
    Large(Large, bool),
    Cut(Cut),
}

/// What a worker makes of it.
enum Done {
    Start(NewStart),
    Piece { rewritten: Box<Rewritten>, input: PieceInput, size_read: u64 },
    Cut(Cut),
}

/// A format description as it is written.
pub(crate) struct NewStart {
    pub(crate) magic: bool,
    pub(crate) size_read: u64,
    pub(crate) event: Vec<u8>,
}

/// The format description under which the rewritten log goes on.
pub(crate) fn start_of(start: Start, rewrite: Rewrite, announced: &mut bool) -> Result<NewStart, Error> {
    let Start { magic, event, description, .. } = start;
    let size_read = event.len() as u64;
    let changed = {
        let frame = frame_of(&event)?;
        match rewrite {
            Rewrite::Compress(_) | Rewrite::Recompress(_) => {
                let announcement = announce_payloads(&frame, &description)?;
                *announced = announcement != Announcement::Impossible;
                match announcement {
                    Announcement::Changed(event) => Some(event),
                    Announcement::Unchanged | Announcement::Impossible => None,
                }
            }
            Rewrite::Expand => withdraw_payloads(&frame, &description)?,
        }
    };
    Ok(NewStart { magic, size_read, event: changed.unwrap_or(event) })
}

fn frame_of(event: &[u8]) -> Result<VerifiedFrame<'_>, Error> {
    let cut = binlogz_binlog::Error::Truncated { needed: event.len() as u64, left: 0 };
    Ok(Framing::new().next_frame(event)?.ok_or(cut)?.verify()?)
}

/// What a worker keeps from piece to piece.
struct Worker {
    compressor: Option<TransactionCompressor>,
    expander: Option<TransactionExpander>,
}

impl Worker {
    fn new(rewrite: Rewrite) -> Result<Self, Error> {
        let (compress, expand) = match rewrite {
            Rewrite::Compress(options) => (Some(options), false),
            Rewrite::Recompress(options) => (Some(options), true),
            Rewrite::Expand => (None, true),
        };
        Ok(Worker {
            compressor: compress.map(TransactionCompressor::new).transpose()?,
            expander: expand.then(TransactionExpander::new).transpose()?,
        })
    }

    fn work(&mut self, job: Job, memory: &Memory) -> Result<Done, Error> {
        let (input, context, offset, announced) = match job {
            Job::Start(start) => return Ok(Done::Start(start)),
            Job::Cut(cut) => return Ok(Done::Cut(cut)),
            Job::Batch(batch, announced) => {
                (PieceInput::Batch(batch.bytes), batch.context, batch.offset, announced)
            }
            Job::Large(large, announced) => {
                let (context, offset) = (large.context, large.offset);
                (PieceInput::Large(large), context, offset, announced)
            }
        };
        let size_read = input.size();
        let place = Place { offset, context, announced };
        let (rewritten, input) = match (&mut self.compressor, &mut self.expander) {
            (Some(compressor), None) => (compress(compressor, &input, place, memory)?, input),
            (None, Some(expander)) => (expand(expander, &input, place, memory)?, input),
            (Some(compressor), Some(expander)) => {
                let (input, _) = expanded(expander, input, place, memory)?;
                (compress(compressor, &input, place, memory)?, input)
            }
            (None, None) => unreachable!("a worker compresses, expands, or does both"),
        };
        Ok(Done::Piece { rewritten: Box::new(rewritten), input, size_read })
    }
}

fn compress(
    compressor: &mut TransactionCompressor,
    input: &PieceInput,
    place: Place,
    memory: &Memory,
) -> Result<Rewritten, Error> {
    let spool = memory.spool();
    Ok(match input {
        PieceInput::Batch(bytes) => compressor.batch(bytes, place, spool)?,
        PieceInput::Large(large) => {
            compressor.large(|range| Ok(large.reader(range)), large.size, place, spool)?
        }
        PieceInput::Spool(plain) => {
            compressor.large(|range| Ok(plain.reader(range)), plain.size(), place, spool)?
        }
    })
}

fn expand(
    expander: &mut TransactionExpander,
    input: &PieceInput,
    place: Place,
    memory: &Memory,
) -> Result<Rewritten, Error> {
    let spool = memory.spool();
    Ok(match input {
        PieceInput::Batch(bytes) => expander.batch(bytes, place, spool)?,
        PieceInput::Large(large) => expander.large(large.reader(0..large.size), place, spool)?,
        PieceInput::Spool(plain) => expander.large(plain.reader(0..plain.size()), place, spool)?,
    })
}

/// The piece as it would be in a log without compression that begins at the same place, and how many
/// payloads were in it.
pub(crate) fn expanded(
    expander: &mut TransactionExpander,
    mut input: PieceInput,
    place: Place,
    memory: &Memory,
) -> Result<(PieceInput, u64), Error> {
    let mut rewritten = expand(expander, &input, place, memory)?;
    let payloads = rewritten.tally.changed;
    if payloads == 0 {
        memory.keep(rewritten.spool.into_buffer());
        return Ok((input, 0));
    }
    let mut plain = memory.spool();
    let mut writer = PositionWriter::resume(&mut plain, place.offset, false);
    writer.write(&mut rewritten, &mut input, |_, _| {})?;
    writer.finish()?;
    memory.keep(rewritten.spool.into_buffer());
    Ok((PieceInput::Spool(plain), payloads))
}

/// The bytes that a piece was made from.
pub(crate) enum PieceInput {
    Batch(Vec<u8>),
    Large(Large),
    Spool(Spool),
}

impl PieceInput {
    pub(crate) fn size(&self) -> u64 {
        match self {
            PieceInput::Batch(bytes) => bytes.len() as u64,
            PieceInput::Large(large) => large.size,
            PieceInput::Spool(spool) => spool.size(),
        }
    }
}

impl PieceBytes for PieceInput {
    fn in_memory(&mut self, range: Range<u64>) -> Option<&mut [u8]> {
        match self {
            PieceInput::Batch(bytes) => bytes.in_memory(range),
            PieceInput::Large(_) => None,
            PieceInput::Spool(spool) => spool.in_memory(range),
        }
    }

    fn reader(&mut self, range: Range<u64>) -> io::Result<Box<dyn Read + '_>> {
        match self {
            PieceInput::Batch(bytes) => bytes.reader(range),
            PieceInput::Large(large) => Ok(large.reader(range)),
            PieceInput::Spool(spool) => Ok(Box::new(spool.reader(range))),
        }
    }
}
