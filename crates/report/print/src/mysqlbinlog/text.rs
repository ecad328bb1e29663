//! Text on its way out: the result of a batch's events, and where earlier and later text belongs.
//!
//! ```text
//! out      text in order
//! head     `# at` lines of events that are not shown: they go before the next one shown
//! open     of the statement still open after the batch: its BINLOG statement (body) and its
//!          ### lines (footer), which are printed when it ends
//! ```
//!
//! A worker fills a [`Text`] as if nothing came before it; the [`super::assembler::Assembler`] inserts what earlier
//! batches left open where the first of each kind was flushed. Text that does not fit in [`TextMemory`] goes to
//! unnamed temporary files.

use std::sync::Arc;

use super::growing_text::GrowingText;
use super::kept::KeptChunk;
use super::options::{Base64Output, PrintOptions};
use super::state::MysqlbinlogState;
use super::write::text_memory::TextMemory;

/// Rows that wait for the end of a statement.
#[derive(Debug, Default)]
pub(super) struct PendingRows {
    /// The `BINLOG` statement of the rows.
    pub(super) body: GrowingText,
    /// The `###` lines of the rows.
    pub(super) footer: GrowingText,
}

impl PendingRows {
    /// Empty text, in reused memory if something will come.
    pub(super) fn new(memory: &TextMemory, options: &PrintOptions) -> Self {
        let part =
            |is_asked_for| if is_asked_for { GrowingText::new(memory) } else { GrowingText::default() };
        PendingRows {
            body: part(options.base64_output != Base64Output::DecodeRows),
            footer: part(options.verbose > 0),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.body.is_empty() && self.footer.is_empty()
    }
}

/// The end of a statement that was open before.
#[derive(Debug)]
pub(super) struct StatementEnd {
    /// The offset in `out`.
    pub(super) place: u64,
    /// The statement's last rows.
    pub(super) rows: PendingRows,
    /// The statement's earlier rows that were not turned into text, and the state in case they can't be.
    pub(super) kept: Vec<Arc<KeptChunk>>,
    pub(super) state: Option<Box<MysqlbinlogState>>,
}

/// The text of a batch's events.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) out: GrowingText,
    pub(super) head: Vec<u8>,
    pub(super) open: PendingRows,
    /// Where in `out` the `# at` lines of earlier batches belong.
    pub(super) first_head: Option<u64>,
    /// Where in `out` what waits belongs.
    pub(super) ends: Vec<StatementEnd>,
}

impl Text {
    /// No text, in reused memory.
    pub(super) fn new(memory: &TextMemory) -> Self {
        Text { out: GrowingText::new(memory), ..Text::default() }
    }

    /// An event is shown: what waits for one goes before it.
    #[inline]
    pub(super) fn flush_head(&mut self) {
        if self.first_head.is_none() {
            self.first_head = Some(self.out.size());
        }
        if !self.head.is_empty() {
            self.out.text.append(&mut self.head);
        }
    }
}
