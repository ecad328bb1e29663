//! What is left of the logs of an erasure, one after the other: while one is packed, the next is written.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use binlogz_scratch_file::Scratch;

use crate::error::{Error, Result};
use crate::format::{ErasureNote, FileEntry};
use crate::operations::digest::{DigestReader, digest};
use crate::operations::former_blocks::FormerBlocks;
use crate::operations::plain_logs::PlainLogs;
use crate::storage::ArchiveStorage;

/// Says what is left of logs.
pub trait LogRemains: Send {
    /// The log comes next, and stays as it is.
    ///
    /// # Errors
    ///
    /// A log that can't be read.
    fn pass(&mut self, file: &FileEntry) -> Result<()>;

    /// Writes what is left of the log, of which `plain` has the bytes with the transactions of payloads in their place. It is packed in blocks that
    /// begin at these offsets of them.
    ///
    /// # Errors
    ///
    /// A log that can't be read, output that fails.
    fn write(
        &mut self,
        file: &FileEntry,
        plain: Arc<Scratch>,
        blocks: &[u64],
        out: &mut dyn Write,
    ) -> Result<WrittenRemains>;
}

/// How much was erased from a log, and where the rest of it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenRemains {
    /// How many row changes values were erased of.
    pub rows: u64,
    /// Up to this offset of `plain` the output has the same bytes; a transaction begins there.
    pub same_until: u64,
    /// Where blocks began, and where what is left of them begins in the output, as far as it is known: they are packed faster.
    pub block_begins: Vec<(u64, u64)>,
    /// Where those blocks began of which more than positions is other than it was.
    pub changed_blocks: BTreeSet<u64>,
}

/// The logs of an erasure.
pub(super) struct WrittenLogs<'p> {
    pub(super) storage: &'p dyn ArchiveStorage,
    /// All logs, in their order.
    pub(super) files: &'p [FileEntry],
    /// The logs that hold what is to be erased.
    pub(super) erased: &'p [FileEntry],
    /// Logs that are packed anew as they are.
    pub(super) moved: &'p [&'p FileEntry],
    /// When the run began, in seconds since 1970, and the table: for the note on each log.
    pub(super) at: (u64, &'p str),
}

/// What is left of a log, as it is packed.
pub(super) struct WrittenLog {
    pub(super) log: Arc<Scratch>,
    pub(super) note: ErasureNote,
    /// The blocks that it was packed in.
    pub(super) former: FormerBlocks,
    /// SHA-256 and size of it, as it is packed.
    pub(super) digest: (String, u64),
}

/// A log that is to be packed. `None`: as it is. An inner error is that of this log alone.
type LogToPack<'p> = (&'p FileEntry, Option<Result<WrittenLog>>);

impl<'p> WrittenLogs<'p> {
    /// Gives `packer` each log that is packed anew. One is written while the one before it is packed: there are two temporary files.
    ///
    /// # Errors
    ///
    /// What ends the run, and the errors of `packer`.
    pub(super) fn in_turn(
        &self,
        (plain_logs, remains): (&mut PlainLogs, &mut dyn LogRemains),
        packer: &mut dyn FnMut(&'p FileEntry, Option<Result<WrittenLog>>) -> Result<()>,
    ) -> Result<()> {
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(0);
            let writer = scope.spawn(move || self.write_all(plain_logs, remains, &sender));
            let packed = receiver.iter().try_for_each(|(file, written)| packer(file, written));
            // A writer that waits ends.
            drop(receiver);
            let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            packed.and(written)
        })
    }

    fn write_all(
        &self,
        plain_logs: &mut PlainLogs,
        remains: &mut dyn LogRemains,
        sender: &SyncSender<LogToPack<'p>>,
    ) -> Result<()> {
        for file in self.files {
            let is_named = |one: &FileEntry| one.name == file.name;
            let written = match self.erased.iter().any(is_named) {
                true => Some(match plain_logs.next_log() {
                    Ok(plain) => Ok(self.written(file, plain.bytes, remains)?),
                    Err(error) => Err(error),
                }),
                false => {
                    remains.pass(file)?;
                    None
                }
            };
            let is_packed = written.is_some() || self.moved.iter().any(|moved| is_named(moved));
            if is_packed && sender.send((file, written)).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Writes what is left of a log.
    fn written(
        &self,
        file: &FileEntry,
        plain: Arc<Scratch>,
        remains: &mut dyn LogRemains,
    ) -> Result<WrittenLog> {
        let log = Scratch::new().map_err(Error::io("make a temporary file"))?;
        let mut out = BufWriter::with_capacity(1 << 18, log);
        let former = FormerBlocks::of(self.storage, file)?;
        let WrittenRemains { rows, same_until, block_begins, changed_blocks } =
            remains.write(file, plain, &former.begins(), &mut out)?;
        out.flush().map_err(Error::io("write a temporary file"))?;
        let log =
            out.into_inner().map_err(|error| Error::io("write a temporary file")(error.into_error()))?;
        let (sha256, size, _) = digest(&mut DigestReader::new(&log))?;
        let (at, table) = self.at;
        Ok(WrittenLog {
            log: Arc::new(log),
            note: ErasureNote { at, table: table.to_owned(), rows, same_until },
            former: former.moved(&block_begins, &changed_blocks).keeping_references(),
            digest: (sha256, size),
        })
    }
}
