//! Puts the texts of batches together, in their order.

use std::io::{self, Write};

use super::growing_text::GrowingText;
use super::kept::{TextKind, write_kept};
use super::options::{Base64Output, PrintOptions};
use super::rows_pen::UnprintedRows;
use super::state::{MysqlbinlogState, PrintStop};
use super::text::{PendingRows, StatementEnd, Text};
use super::write::text_memory::TextMemory;

/// Bytes of the open statement's text, body and footer together, that are kept in memory.
const OPEN_MEMORY: usize = 12 << 20;

/// Bytes of `# at` lines that are kept in memory.
const HEAD_MEMORY: usize = 1 << 20;

/// Puts the texts of batches together.
#[derive(Debug)]
pub(super) struct Assembler<'o> {
    options: &'o PrintOptions,
    workers: usize,
    head: GrowingText,
    /// The text of the open statement, piece by piece, so that pieces are not copied.
    open: Vec<PendingRows>,
    open_memory: usize,
}

impl<'o> Assembler<'o> {
    /// Nothing is open. `workers` is how many make the text of large statements.
    pub(super) fn new(options: &'o PrintOptions, workers: usize) -> Self {
        Assembler { options, workers, head: GrowingText::default(), open: Vec::new(), open_memory: 0 }
    }

    /// Writes the text of the next batch. If rows turn out to be unreadable only now, returns the resulting
    /// state, which is stopped.
    ///
    /// # Errors
    ///
    /// `out` or a temporary file can't be written.
    pub(super) fn write(
        &mut self,
        mut text: Text,
        memory: &TextMemory,
        out: &mut impl Write,
    ) -> io::Result<Option<MysqlbinlogState>> {
        let mut written = 0;
        if let Some(place) = text.first_head {
            text.out.write_range(written..place, out)?;
            written = place;
            self.head.write_to(out)?;
            self.head = GrowingText::of(text.head);
        } else {
            self.head.text.append(&mut text.head);
        }
        if self.head.memory() > HEAD_MEMORY {
            self.head.spill()?;
        }
        for end in text.ends {
            text.out.write_range(written..end.place, out)?;
            written = end.place;
            if let Some(stopped) = self.end_statement(end, memory, out)? {
                return Ok(Some(stopped));
            }
        }
        text.out.write_range(written..u64::MAX, out)?;
        self.keep_open(text.open)?;
        Ok(None)
    }

    fn keep_open(&mut self, rows: PendingRows) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.open_memory += rows.body.memory() + rows.footer.memory();
        self.open.push(rows);
        if self.open_memory > OPEN_MEMORY {
            for rows in &mut self.open {
                for part in [&mut rows.body, &mut rows.footer].into_iter().filter(|part| part.memory() > 0) {
                    part.spill()?;
                    part.release();
                }
            }
            self.open_memory = 0;
        }
        Ok(())
    }

    /// Writes all that waits for the end of a statement.
    fn end_statement(
        &mut self,
        end: StatementEnd,
        memory: &TextMemory,
        out: &mut impl Write,
    ) -> io::Result<Option<MysqlbinlogState>> {
        let StatementEnd { rows: last, kept, state, .. } = end;
        self.open_memory = 0;
        let (bodies, footers): (Vec<GrowingText>, Vec<GrowingText>) =
            self.open.drain(..).map(|rows| (rows.body, rows.footer)).unzip();
        let has_body = self.options.base64_output != Base64Output::DecodeRows;
        let has_footer = self.options.verbose > 0;
        for (kind, is_asked_for, open, last) in [
            (TextKind::Body, has_body, bodies, last.body),
            (TextKind::Footer, has_footer, footers, last.footer),
        ] {
            for part in open {
                part.write_to(out)?;
            }
            if is_asked_for && !kept.is_empty() {
                match write_kept(&kept, kind, self.options, self.workers, memory, out) {
                    Ok(()) => {}
                    Err(UnprintedRows::File(error)) => return Err(error),
                    Err(UnprintedRows::Damaged(line)) => {
                        let mut state = state.map(|state| *state).unwrap_or_default();
                        state.stopped = Some(PrintStop::Error(line));
                        return Ok(Some(state));
                    }
                }
            }
            last.write_to(out)?;
        }
        Ok(None)
    }
}
