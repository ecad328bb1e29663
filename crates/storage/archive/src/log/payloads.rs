//! Logs with transaction payloads. They are packed expanded, and compressed again when they are restored. We find the
//! codec (library, recipe and level) that reproduces the log's own bytes by trying. Payloads of another codec stay as
//! they are.

use std::io::{self, Write};
use std::sync::Arc;

use binlogz_binlog::event::TransactionPayloadHeader;
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, EVENT_TYPE_OFFSET, HEADER_SIZE};
use binlogz_binlog::{Error as BinlogError, EventType};
use binlogz_flow::{Error as FlowError, Input, MovedTransaction, ReadAt, Rewrite, Rewriter};
use binlogz_payload::{CompressOptions, CompressionLevel, Error as PayloadError, Expander, Library, Recipe};
use binlogz_scratch_file::Scratch;
use zstd_safe::get_frame_content_size;

use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};

/// The server's default level: used for payloads that come back in our bytes, and tried first.
pub(crate) const LEVEL_DEFAULT: u8 = 3;

/// Levels that a server's payloads may have, the most common first.
const LEVELS: [u8; 22] = [3, 1, 19, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 22, 20, 21];

/// Levels from this one up take 20 to 81 MiB of memory for each thread that compresses.
const LEVEL_LARGE: u8 = 13;
/// Threads that compress at such levels.
const WORKERS_LARGE: usize = 2;
/// Levels from this one up take up to 641 MiB, which is more than an archive may take; for transactions up to
/// [`HUGE_SIZE_MAX`] they take at most 150 MiB. One thread compresses at such levels.
const LEVEL_HUGE: u8 = 20;
/// The largest transaction, in bytes, compressed at such levels. zstd's tables are no larger than their input
/// needs.
const HUGE_SIZE_MAX: u64 = 8 << 20;

/// How payloads were made, and are made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Codec {
    pub(crate) library: Library,
    pub(crate) recipe: Recipe,
    pub(crate) level: u8,
}

impl Codec {
    /// The server's default since 8.0.35.
    pub(crate) const DEFAULT: Codec =
        Codec { library: Library::Linked, recipe: Recipe::Sized, level: LEVEL_DEFAULT };

    /// Library and recipe, as the manifest names them; it has the level, too.
    pub(crate) fn name(self) -> String {
        let library = self.library;
        match self.recipe {
            Recipe::Sized => library.to_string(),
            recipe => format!("{library}, {recipe}"),
        }
    }

    /// The codec that the manifest names; `None`: this program does not know it.
    pub(crate) fn named(name: &str, level: u8) -> Option<Codec> {
        let with = |library| Recipe::ALL.map(|recipe| Codec { library, recipe, level });
        Library::ALL.into_iter().flat_map(with).find(|codec| codec.name() == name)
    }

    /// This codec with each available library that a server may have used in this way. The servers that write no content
    /// size always compress at level 3, whatever is set (bug 34833913).
    fn with_all_libraries(self) -> impl Iterator<Item = Codec> {
        let by_a_server = self.recipe == Recipe::Sized || self.level == LEVEL_DEFAULT;
        let libraries = Library::ALL
            .into_iter()
            .filter(move |&library| library == Library::Linked || by_a_server && library.is_available());
        libraries.map(move |library| Codec { library, ..self })
    }

    fn options(self) -> Result<CompressOptions> {
        let level = CompressionLevel::new(self.level.into())
            .ok_or_else(|| Error::unexpected("payload level", self.level, "1 to 22"))?;
        Ok(CompressOptions {
            level,
            library: self.library,
            recipe: self.recipe,
            ..CompressOptions::default()
        })
    }

    fn workers(self, workers: usize) -> usize {
        match self.level {
            LEVEL_HUGE.. => 1,
            LEVEL_LARGE.. => workers.min(WORKERS_LARGE),
            _ => workers,
        }
    }
}

/// The transaction payloads of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Payloads {
    /// The number of payloads.
    pub(crate) count: u64,
    /// The largest size that one claims for its content.
    pub(crate) inside_max: u64,
    /// The offsets of some of them, with the size of their events: the first ones, then fewer and fewer.
    samples: Vec<(u64, u32)>,
    /// Bytes of events in the samples.
    samples_size: u64,
}

/// Enough of a payload event to hold its fields.
const FRONT_SIZE: usize = HEADER_SIZE + 64;

/// This many of the first payloads are samples; later ones are if their number is a power of two.
const SAMPLES_FIRST: u64 = 16;
/// The most bytes of events in a sample: it is compressed at up to 22 levels.
const SAMPLE_SIZE_MAX: u64 = HUGE_SIZE_MAX;
/// The most bytes of events in all samples; the first may be larger.
const SAMPLES_SIZE_MAX: u64 = 4 << 20;

impl Payloads {
    /// The payloads of a log, as far as its events can be followed.
    pub(crate) fn of(log: &dyn ReadAt) -> Payloads {
        let mut payloads = Payloads::default();
        let mut offset = binlogz_binlog::MAGIC.len() as u64;
        let mut front = [0; FRONT_SIZE];
        while let Ok(read) = log.read_at(&mut front, offset) {
            let Some((header, body)) =
                front.get(..read).and_then(|front| front.split_at_checked(HEADER_SIZE))
            else {
                break;
            };
            let size = header
                .get(EVENT_SIZE_OFFSET..)
                .and_then(|size| size.first_chunk())
                .map_or(0, |size| u32::from_le_bytes(*size));
            if (size as usize) < HEADER_SIZE {
                break;
            }
            if header.get(EVENT_TYPE_OFFSET).copied().map(EventType) == Some(EventType::TRANSACTION_PAYLOAD) {
                payloads.count += 1;
                let inside = inside(body);
                payloads.inside_max = payloads.inside_max.max(inside);
                let sampled = payloads.count <= SAMPLES_FIRST || payloads.count.is_power_of_two();
                // Both sizes are what the log says, which may be a lie.
                let sampled = sampled && inside <= SAMPLE_SIZE_MAX && u64::from(size) <= 2 * SAMPLE_SIZE_MAX;
                let all = payloads.samples_size.saturating_add(inside);
                if sampled && (payloads.samples.is_empty() || all <= SAMPLES_SIZE_MAX) {
                    payloads.samples_size += inside;
                    payloads.samples.push((offset, size));
                }
            }
            offset += u64::from(size);
        }
        payloads
    }

    /// The levels that may have made them, `likely` first.
    fn levels(&self, likely: u8) -> impl Iterator<Item = u8> {
        let others = LEVELS.into_iter().filter(move |&level| level != likely);
        let inside_max = self.inside_max;
        let sensible = move |level: &u8| *level < LEVEL_HUGE || inside_max <= HUGE_SIZE_MAX;
        std::iter::once(likely).chain(others).filter(sensible)
    }

    /// Some of them, opened; none that can't be.
    fn samples(&self, log: &dyn ReadAt) -> Vec<Sample> {
        self.samples.iter().filter_map(|&(offset, size)| Sample::read(log, offset, size)).collect()
    }

    /// The codecs that made the samples, the most frequent first, then other likely ones. Without samples,
    /// all codecs of the linked library.
    fn codecs(&self, samples: &[Sample], likely: Codec) -> Result<Vec<Codec>> {
        if self.samples.is_empty() {
            return Ok(self.levels(likely.level).map(|level| Codec { level, ..Codec::DEFAULT }).collect());
        }
        let mut made: Vec<(Codec, u32)> = Vec::new();
        for sample in samples {
            let known = made.iter().map(|&(codec, _)| codec).chain([likely]);
            let all = self.levels(likely.level).flat_map(|level| sample.codecs(level));
            for codec in known.chain(all).collect::<Vec<_>>() {
                if sample.is_made_by(codec)? {
                    match made.iter_mut().find(|(there, _)| *there == codec) {
                        Some((_, count)) => *count += 1,
                        None => made.push((codec, 1)),
                    }
                    break;
                }
            }
        }
        made.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let mut codecs: Vec<_> = made.into_iter().map(|(codec, _)| codec).collect();
        // Versions mostly agree on their output: the samples need not tell them apart.
        for codec in codecs.clone() {
            let others: Vec<_> = codec.with_all_libraries().filter(|other| !codecs.contains(other)).collect();
            codecs.extend(others);
        }
        Ok(codecs)
    }
}

/// The size that a payload claims for its content; if unknown, more than any limit.
fn inside(body: &[u8]) -> u64 {
    let front = TransactionPayloadHeader::decode_front(body, u64::MAX).ok().flatten();
    front.and_then(|(header, _)| header.uncompressed_size()).unwrap_or(u64::MAX)
}

/// A payload and its content.
struct Sample {
    payload: Vec<u8>,
    inside: Vec<u8>,
}

impl Sample {
    fn read(log: &dyn ReadAt, offset: u64, size: u32) -> Option<Sample> {
        let mut event = vec![0; size as usize];
        log.fill_at(&mut event, offset).ok().filter(|&have| have == event.len())?;
        let body = event.get(HEADER_SIZE..)?;
        let (header, front) = TransactionPayloadHeader::decode_front(body, body.len() as u64).ok()??;
        let payload = body.get(front..)?.get(..usize::try_from(header.payload_size()).ok()?)?.to_vec();
        let mut inside = Vec::with_capacity(usize::try_from(header.uncompressed_size()?).ok()?);
        Expander::new().ok()?.expand_whole(&payload, &mut inside).ok()?;
        Some(Sample { payload, inside })
    }

    /// The codecs of a level that may have made it.
    fn codecs(&self, level: u8) -> impl Iterator<Item = Codec> {
        let sized = get_frame_content_size(&self.payload).is_ok_and(|size| size.is_some());
        let recipes = Recipe::ALL.into_iter().filter(move |recipe| (*recipe == Recipe::Sized) == sized);
        recipes.flat_map(move |recipe| Codec { recipe, level, ..Codec::DEFAULT }.with_all_libraries())
    }

    /// A helper that does not work costs its codec, not the log.
    fn is_made_by(&self, codec: Codec) -> Result<bool> {
        let options = codec.options()?;
        let mut made = Vec::new();
        let compressed =
            options.compressor().and_then(|mut compressor| compressor.compress(&self.inside, &mut made));
        match compressed {
            Ok(()) => Ok(made == self.payload),
            Err(PayloadError::Helper { .. }) => Ok(false),
            Err(error) => Err(Error::io("compress a sample")(io::Error::other(error))),
        }
    }
}

/// The codecs that made all samples: only one of them can have made the whole log.
fn made_by_one(samples: &[Sample], codecs: &[Codec]) -> Result<Vec<Codec>> {
    let mut of_all = Vec::new();
    for &codec in codecs {
        let mut made = true;
        for sample in samples {
            made = made && sample.is_made_by(codec)?;
        }
        if made {
            of_all.push(codec);
        }
    }
    Ok(of_all)
}

/// A log without its payloads, or without most of them.
pub(crate) struct ExpandedLog {
    /// A temporary file without a name.
    pub(crate) file: Arc<Scratch>,
    /// How the payloads are compressed again.
    pub(crate) codec: Codec,
    /// Whether that reproduces the log's own bytes.
    pub(crate) exact: bool,
    /// The number of payloads still in it.
    pub(crate) kept: u64,
    /// Where its transactions end in both logs.
    pub(crate) ends: Ends,
}

/// Where transactions end: in a log without its payloads, and in the log with them.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Varints: how far both ends are from those of the transaction before.
    steps: Vec<u8>,
    last: (u64, u64),
}

impl Ends {
    fn push(&mut self, plain: u64, log: u64) {
        // Transactions come in order.
        varint::put(&mut self.steps, plain.saturating_sub(self.last.0));
        varint::put(&mut self.steps, log.saturating_sub(self.last.1));
        self.last = (plain, log);
    }

    /// Translates offsets in the log without payloads into offsets in the other one. Ask for them in order.
    pub(crate) fn places(&self) -> impl FnMut(u64) -> Option<u64> + Send + '_ {
        let mut steps = Taker::new(&self.steps);
        let mut at = (0, 0);
        move |plain| {
            while at.0 < plain && steps.left() > 0 {
                at = (at.0 + steps.number().ok()?, at.1 + steps.number().ok()?);
            }
            (at.0 == plain).then_some(at.1)
        }
    }
}

/// The log without the payloads that can be reproduced. `None` if no codec reproduces it and our own bytes
/// are not accepted instead. `likely` is tried first.
///
/// # Errors
///
/// A disk that is full or fails, since its effect on this log is unknown.
pub(crate) fn expanded(
    log: &Arc<dyn ReadAt>,
    payloads: &Payloads,
    likely: Codec,
    workers: usize,
    canonical: bool,
) -> Result<Option<ExpandedLog>> {
    let samples = payloads.samples(log.as_ref());
    let codecs = payloads.codecs(&samples, likely)?;
    let of_all = made_by_one(&samples, &codecs)?;
    drop(samples);
    if canonical || !of_all.is_empty() {
        let Some((file, _)) = expand(log, Rewrite::Expand, workers)? else { return Ok(None) };
        for codec in of_all {
            if let Some(ends) = gives_back(&file, codec, log.as_ref(), workers)? {
                return Ok(Some(ExpandedLog { file, codec, exact: true, kept: 0, ends }));
            }
        }
        if canonical {
            let codec = Codec::DEFAULT;
            let ends = Ends::default();
            return Ok(Some(ExpandedLog { file, codec, exact: false, kept: 0, ends }));
        }
    }
    // The payloads are not all of one codec: those of another stay.
    for &codec in codecs.iter().take(PARTIAL_CODECS_MAX) {
        let reproducible = Rewrite::ExpandReproducible(codec.options()?);
        let Some((file, changed)) = expand(log, reproducible, codec.workers(workers))? else {
            return Ok(None);
        };
        let kept = payloads.count.saturating_sub(changed);
        if changed > 0
            && let Some(ends) = gives_back(&file, codec, log.as_ref(), workers)?
        {
            return Ok(Some(ExpandedLog { file, codec, exact: true, kept, ends }));
        }
    }
    Ok(None)
}

/// Codecs tried for a part of a log's payloads.
const PARTIAL_CODECS_MAX: usize = 2;

/// A log expanded into a temporary file, and how many payloads became transactions; `None` if it can't be
/// expanded.
fn expand(log: &Arc<dyn ReadAt>, how: Rewrite, workers: usize) -> Result<Option<(Arc<Scratch>, u64)>> {
    let mut file = Scratch::new().map_err(Error::io("make a temporary file"))?;
    let mut out = io::BufWriter::with_capacity(1 << 20, &mut file);
    let summary = Rewriter::new(how).workers(workers).run(Input::Places(log.clone()), &mut out);
    let summary = match summary.map_err(trouble) {
        Ok(summary) if summary.cut.is_none() => summary,
        Ok(_) | Err(None) => return Ok(None),
        Err(Some(error)) => return Err(Error::io("expand payloads into a temporary file")(error)),
    };
    out.flush().map_err(Error::io("expand payloads into a temporary file"))?;
    drop(out);
    Ok(Some((Arc::new(file), summary.tally.changed)))
}

/// Where its transactions end, if a codec reproduces the log from its expanded form.
fn gives_back(plain: &Arc<Scratch>, codec: Codec, log: &dyn ReadAt, workers: usize) -> Result<Option<Ends>> {
    let mut compare = Compare { log, offset: 0, differs: false };
    let compressed = compress_noting(plain.clone(), codec, &mut compare, workers)?;
    match compressed.map_err(trouble) {
        Ok(ends) => Ok(compare.at_end().then_some(ends)),
        Err(Some(error)) if !compare.differs => Err(Error::io("compress payloads")(error)),
        Err(_) => Ok(None),
    }
}

/// The system's error, unless the log is to blame.
fn trouble(error: FlowError) -> Option<io::Error> {
    let (FlowError::Input(error) | FlowError::Output(error)) = error else { return None };
    let (PayloadError::Io(error) | PayloadError::Binlog(BinlogError::Io(error))) = error else { return None };
    let of_the_log = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData);
    (!of_the_log).then_some(error)
}

/// Writes a log with its transactions compressed as its server did.
pub(crate) fn compress(
    log: Arc<dyn ReadAt>,
    codec: Codec,
    out: &mut dyn Write,
    workers: usize,
) -> Result<Ends> {
    compress_noting(log, codec, out, workers)?.map_err(failed)
}

/// Writes parts of a log, with their transactions compressed as the server did. For each gap, `places` says where it ends
/// without payloads and with them, as offsets in the log.
pub(crate) fn compress_parts(
    log: Input,
    places: &[(u64, u64)],
    codec: Codec,
    out: &mut dyn Write,
    workers: usize,
) -> Result<()> {
    let rewriter = Rewriter::new(Rewrite::Compress(codec.options()?)).going_on_at(places);
    rewriter.workers(codec.workers(workers)).run(log, out).map(drop).map_err(failed)
}

/// Whether a log's first events keep their size with payloads: a format description that has to announce them grows.
pub(crate) fn stays(head: &[u8], codec: Codec) -> bool {
    let mut out = Vec::new();
    let log = Input::Stream(Box::new(io::Cursor::new(head.to_vec())));
    compress_parts(log, &[], codec, &mut out, 1).is_ok() && out.len() == head.len()
}

fn failed(error: FlowError) -> Error {
    Error::io("compress payloads")(io::Error::other(error))
}

fn compress_noting(
    log: Arc<dyn ReadAt>,
    codec: Codec,
    out: &mut dyn Write,
    workers: usize,
) -> Result<Result<Ends, FlowError>> {
    let how = Rewrite::Compress(CompressOptions { marks: true, ..codec.options()? });
    let mut ends = Ends::default();
    let mut note = |moved: MovedTransaction| {
        ends.push(moved.old.end, moved.new.end);
        Ok(())
    };
    let rewriter = Rewriter::new(how).workers(codec.workers(workers)).on_moved(&mut note);
    let ran = rewriter.run(Input::Places(log), out);
    Ok(ran.map(|_| ends))
}

/// A writer that fails if the bytes written to it differ from the log.
struct Compare<'a> {
    log: &'a dyn ReadAt,
    offset: u64,
    /// Set if it differs.
    differs: bool,
}

impl Compare<'_> {
    fn at_end(&self) -> bool {
        self.log.read_at(&mut [0], self.offset).is_ok_and(|count| count == 0)
    }
}

impl Write for Compare<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut there = vec![0; bytes.len()];
        let have = self.log.fill_at(&mut there, self.offset)?;
        if there.get(..have) != Some(bytes) {
            self.differs = true;
            return Err(io::Error::other("other bytes"));
        }
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release};
    use binlogz_testkit::corpus;

    use super::*;

    /// A log of the corpus whose payloads have several levels.
    const LEVELS_LOG: &str = "levels.000003";

    #[test]
    fn a_log_of_several_codecs_is_tried_with_none_as_a_whole() {
        for (name, whole) in [("binlog.000002", true), (LEVELS_LOG, false)] {
            let log = std::fs::read(corpus::path(name)).unwrap();
            let payloads = Payloads::of(&log);
            let samples = payloads.samples(&log);
            let codecs = payloads.codecs(&samples, Codec::DEFAULT).unwrap();
            assert!(samples.len() > 1 && !codecs.is_empty(), "{name}");
            assert_eq!(!made_by_one(&samples, &codecs).unwrap().is_empty(), whole, "{name}: {codecs:?}");
        }
    }

    #[test]
    fn the_levels_above_19_are_for_small_transactions_alone() {
        let of = |inside: Option<u64>| {
            let mut payload = PayloadBody::none(b"events");
            payload.uncompressed_size = inside;
            let mut log = LogBuilder::new(Release::MYSQL_9_7);
            Payloads::of(
                &log.transaction(&[b"1"]).payload(&PayloadBody::zstd(b"events")).payload(&payload).take(),
            )
        };
        let payloads = of(Some(HUGE_SIZE_MAX));
        assert_eq!((payloads.count, payloads.inside_max), (2, HUGE_SIZE_MAX));
        assert_eq!(payloads.levels(19).take(3).collect::<Vec<_>>(), [19, 3, 1]);
        assert_eq!(payloads.levels(22).count(), 22);
        assert_eq!(of(Some(HUGE_SIZE_MAX + 1)).levels(22).max(), Some(19));
        assert_eq!(of(None).levels(3).max(), Some(19));
    }
}
