//! The size of the logs after `zstd FILE`: it shows how much is lost by compressing each transaction alone.
//!
//! Small logs are compressed whole. For others a few pieces represent the rest, each compressed with the
//! bytes before it for zstd to refer to.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use binlogz_flow::{Error, ReadAt, ordered};
use binlogz_payload::{CompressionLevel, Compressor};

use crate::Advice;
use crate::random::mixed;

/// The levels that people compress files with: zstd's default, and its highest ordinary one.
const LEVELS: [i64; 2] = [3, 19];

/// Logs up to this size, in bytes, are compressed whole.
const WHOLE_MAX: u64 = 4 << 20;

/// Bytes of a piece, and of the part before it.
const PIECE: u64 = 2 << 20;

/// The number of pieces that represent all files.
const PIECES: u64 = 4;

/// Bytes compressed between two checks of the clock.
const STEP: u64 = 128 << 10;

/// The size of all files after zstd at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WholeFile {
    pub(crate) level: CompressionLevel,
    pub(crate) bytes: u64,
    pub(crate) exact: bool,
}

/// A file to compress, or a piece of one.
struct Job {
    level: usize,
    file: usize,
    /// Where to begin, where to start counting, and where to end.
    start: u64,
    from: u64,
    end: u64,
}

impl Advice {
    /// Compresses the files, or pieces of them, until `deadline`. Levels above all requested ones are left
    /// out: they would take longest.
    ///
    /// # Errors
    ///
    /// A file that can't be read.
    pub fn measure_whole_files(
        &mut self,
        files: &[(Arc<dyn ReadAt>, u64)],
        seed: u64,
        workers: usize,
        deadline: Instant,
    ) -> Result<(), Error> {
        let total: u64 = files.iter().map(|(_, size)| size).sum();
        let exact = total <= WHOLE_MAX;
        let highest = self.levels.iter().max().copied().unwrap_or_default();
        let levels: Vec<_> =
            LEVELS.map(CompressionLevel::clamped).into_iter().filter(|level| *level <= highest).collect();
        let jobs = match exact {
            true => (0..files.len())
                .map(|file| (file, 0, 0, files.get(file).map_or(0, |(_, size)| *size)))
                .collect(),
            false => pieces(files, total, seed),
        };
        let mut jobs = (0..levels.len()).flat_map(|level| {
            jobs.iter().map(move |&(file, start, from, end)| Job { level, file, start, from, end })
        });
        let mut sums = vec![(0, 0); levels.len()];
        ordered::run(
            workers,
            || jobs.next().filter(|_| Instant::now() < deadline).map(Ok),
            (),
            || Ok(()),
            |(), job| {
                let level = levels.get(job.level).copied().unwrap_or_default();
                let places = files.get(job.file).map(|(places, _)| places.as_ref());
                let size = places.map_or(Ok(None), |places| compressed(places, &job, level, deadline))?;
                Ok::<_, Error>((job.level, job.end - job.from, size))
            },
            |(level, bytes, size)| {
                if let (Some(sum), Some(size)) = (sums.get_mut(level), size) {
                    sum.0 += bytes;
                    sum.1 += size;
                }
                Ok(())
            },
        )?;
        let whole = levels.iter().zip(sums).filter(|(_, (bytes, _))| *bytes > 0);
        self.whole_files = whole
            .map(|(level, (bytes, size))| {
                let bytes = (size as f64 * total as f64 / bytes as f64).round() as u64;
                WholeFile { level: *level, bytes, exact }
            })
            .collect();
        Ok(())
    }
}

/// Pieces spread over the files: one at a random place of each part.
fn pieces(files: &[(Arc<dyn ReadAt>, u64)], total: u64, seed: u64) -> Vec<(usize, u64, u64, u64)> {
    let part = total / PIECES;
    let places = (0..PIECES).map(|piece| piece * part + mixed(seed ^ piece) % part.max(1));
    places
        .filter_map(|mut place| {
            let file = files.iter().position(|(_, size)| {
                let inside = place < *size;
                if !inside {
                    place -= size;
                }
                inside
            })?;
            let (_, size) = files.get(file)?;
            let from = place.min(size.saturating_sub(PIECE));
            Some((file, from.saturating_sub(PIECE), from, (from + PIECE).min(*size)))
        })
        .collect()
}

/// The compressed size of the bytes from `from` on; `None` if time is over first.
fn compressed(
    places: &dyn ReadAt,
    job: &Job,
    level: CompressionLevel,
    deadline: Instant,
) -> Result<Option<u64>, Error> {
    let mut compressor = Compressor::new(level)?;
    compressor.begin(job.end - job.start)?;
    let mut buffer = vec![0; STEP as usize];
    let mut at = job.start;
    let mut before = 0;
    while at < job.end {
        if at == job.from {
            before = compressor.produced();
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        let border = if at < job.from { job.from } else { job.end };
        let wanted = usize::try_from(STEP.min(border - at)).unwrap_or(0);
        let count = match places.read_at(buffer.get_mut(..wanted).unwrap_or_default(), at) {
            Ok(0) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count.map_err(binlogz_payload::Error::from)?,
        };
        compressor.write(buffer.get(..count).unwrap_or_default(), &mut io::sink())?;
        at += count as u64;
    }
    let size = compressor.finish(&mut io::sink())?;
    Ok(Some(size - before))
}
