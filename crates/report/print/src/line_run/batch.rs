//! Lines to be written: those of one batch stay in memory until those of all batches before it are written.
//!
//! ```text
//! batch 1   [lines ........][written]
//! batch 2   [lines ........ kept ... ][written]
//! batch 3   [lines .. no memory left: waits  ][written, further lines are written as they come]
//! ```
//!
//! The output is handed from batch to batch, and only its holder may write. So lines that are many times as
//! long as their events take neither memory nor files.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::output::LineOutput;
use crate::mysqlbinlog::{Chunk, TextMemory};

/// Bytes that are written at a time.
const WRITE_SIZE: usize = 256 << 10;

/// Gives the output when the batches before are written.
pub(crate) type AwaitedOutput = Receiver<LineOutput>;

/// The output, at hand.
pub(crate) fn at_hand(out: LineOutput) -> AwaitedOutput {
    let (give, awaited) = sync_channel(1);
    // There is room for one.
    let _ = give.send(out);
    awaited
}

/// The lines of a batch.
#[derive(Debug)]
pub(crate) struct LineBatch {
    kept: Vec<Chunk>,
    memory: TextMemory,
    before: AwaitedOutput,
    out: Option<LineOutput>,
    after: SyncSender<LineOutput>,
}

/// Why lines were not written.
#[derive(Debug)]
pub(crate) enum UnwrittenLines {
    /// The run failed before.
    Nobody,
    File(io::Error),
}

impl LineBatch {
    /// No lines yet, with the output as earlier batches leave it; and the receiver that hands the output to the next batch.
    pub(crate) fn new(before: AwaitedOutput, memory: &TextMemory) -> (Self, AwaitedOutput) {
        let (after, next) = sync_channel(1);
        (LineBatch { kept: Vec::new(), memory: memory.clone(), before, out: None, after }, next)
    }

    /// Takes whole lines, once there are enough of them. Waits where there is no memory to keep them.
    pub(crate) fn take(&mut self, lines: &mut Vec<u8>) -> Result<(), UnwrittenLines> {
        if lines.len() < WRITE_SIZE {
            return Ok(());
        }
        if self.out.is_none() {
            self.out = self.before.try_recv().ok();
        }
        if self.out.is_none()
            && let Some(chunk) = self.memory.keep(lines)
        {
            self.kept.push(chunk);
            return Ok(());
        }
        self.write(lines)
    }

    /// Writes all lines when it is their turn; `lines` are the last ones.
    fn write(&mut self, lines: &mut Vec<u8>) -> Result<(), UnwrittenLines> {
        let out = match &mut self.out {
            Some(out) => out,
            none => none.insert(self.before.recv().map_err(|_| UnwrittenLines::Nobody)?),
        };
        let mut write = |bytes: &[u8]| out.put(bytes).map_err(UnwrittenLines::File);
        self.kept.drain(..).try_for_each(|chunk| write(&chunk.text))?;
        write(lines)?;
        lines.clear();
        Ok(())
    }

    /// Writes the rest; returns the number of bytes written so far. `goes_on`: the next batch may write.
    pub(crate) fn end(mut self, mut last: Vec<u8>, goes_on: bool) -> Result<u64, UnwrittenLines> {
        self.write(&mut last)?;
        self.memory.give(last);
        let written = self.out.as_ref().map_or(0, |out| out.file.written.load(Ordering::Acquire));
        if let Some(out) = self.out.filter(|_| goes_on) {
            // There is room for one. After the last batch of a run that failed, no worker waits for it.
            let _ = self.after.send(out);
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::thread;

    use super::*;

    fn out(folder: &tempfile::TempDir) -> AwaitedOutput {
        at_hand(LineOutput::new(File::create(folder.path().join("out")).unwrap()))
    }

    #[test]
    fn lines_are_written_in_the_order_of_their_batches() {
        let folder = tempfile::tempdir().unwrap();
        let memory = TextMemory::default();
        let (first, next) = LineBatch::new(out(&folder), &memory);
        let (mut second, next) = LineBatch::new(next, &memory);
        let (mut third, last) = LineBatch::new(next, &memory);
        let lines = |byte| vec![byte; WRITE_SIZE];
        // More than there is memory for: the third waits.
        let third = thread::spawn(move || {
            (0..200).for_each(|_| third.take(&mut lines(b'3')).unwrap());
            third.end(vec![b'4'], true).unwrap();
        });
        second.take(&mut lines(b'2')).unwrap();
        first.end(vec![b'1'], true).unwrap();
        second.end(Vec::new(), true).unwrap();
        third.join().unwrap();
        assert!(last.try_recv().is_ok());
        let written = std::fs::read(folder.path().join("out")).unwrap();
        let expected = [vec![b'1'], lines(b'2'), vec![b'3'; 200 * WRITE_SIZE], vec![b'4']].concat();
        assert!(written == expected);
    }

    #[test]
    fn nobody_waits_for_a_batch_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        let memory = TextMemory::default();
        let (first, next) = LineBatch::new(out(&folder), &memory);
        let (second, _) = LineBatch::new(next, &memory);
        first.end(vec![b'1'], false).unwrap();
        assert!(matches!(second.end(vec![b'2'], true), Err(UnwrittenLines::Nobody)));
        assert_eq!(std::fs::read(folder.path().join("out")).unwrap(), b"1");
    }
}
