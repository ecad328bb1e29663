//! The figures of a file, put together from its parts, and of all files.

use std::sync::Arc;

use binlogz_payload::ServerGeneration;
use binlogz_payload::statistics::LogType;

use crate::collector::BatchFigures;
use crate::counts::Totals;
use crate::figures::{Description, StatsFigures, Writer};
use crate::filter::StatsFilter;
use crate::transaction::{CountedTransaction, TransactionEnd};

/// The figures of one file, while its parts come in.
#[derive(Debug)]
pub struct FileStats {
    pub(crate) figures: StatsFigures,
    log: u64,
    writer: Writer,
    /// The transaction that the last part left open.
    open: Option<CountedTransaction>,
    filter: Arc<StatsFilter>,
}

impl FileStats {
    /// Empty figures; the `top` largest transactions will be kept.
    pub fn new(top: usize) -> Self {
        let writer = Writer { log_type: LogType::Binary, generation: ServerGeneration::default() };
        FileStats { figures: StatsFigures::new(top), log: 0, writer, open: None, filter: Arc::default() }
    }

    /// Counts only what this filter chooses, which is that of the [`crate::StatsCollector`]s too.
    #[must_use]
    pub fn filtered(mut self, filter: &Arc<StatsFilter>) -> Self {
        self.filter = Arc::clone(filter);
        self
    }

    /// Adds the next part, in the order of the log.
    pub fn add(&mut self, part: BatchFigures) {
        if part.log != self.log {
            self.cut_off();
            self.log = part.log;
        }
        if let Some(description) = &part.figures.description {
            self.writer = description.writer;
        }
        if let Some((head, ending)) = part.cut.head {
            let open = self.open.get_or_insert_default();
            open.join(head);
            if let Some(ending) = ending {
                self.end(&ending);
            }
        }
        self.figures.add(&part.figures);
        if let Some(tail) = part.cut.tail {
            self.open = Some(tail);
        }
    }

    fn end(&mut self, ending: &TransactionEnd) {
        if let Some(transaction) = self.open.take() {
            self.filter.count(&mut self.figures, self.writer, &transaction, ending);
        }
    }

    /// No more of the open transaction will come.
    fn cut_off(&mut self) {
        self.end(&TransactionEnd::CutOff);
    }
}

/// The figures of files, each and all together.
#[derive(Debug)]
pub struct Stats {
    pub(crate) files: Vec<FileFigures>,
    pub(crate) all: StatsFigures,
}

/// A file that was read to its end.
#[derive(Debug)]
pub(crate) struct FileFigures {
    pub(crate) name: String,
    /// Bytes of the file, as far as it holds whole events.
    pub(crate) bytes: u64,
    pub(crate) events: u64,
    pub(crate) totals: Totals,
    pub(crate) stored_bytes: u64,
    pub(crate) commits: Option<(u64, u64)>,
    pub(crate) description: Option<Description>,
}

impl Stats {
    /// No files yet; the `top` largest transactions will be kept.
    pub fn new(top: usize) -> Self {
        Stats { files: Vec::new(), all: StatsFigures::new(top) }
    }

    /// Whether a transaction, or a row, was counted.
    pub fn has_anything(&self) -> bool {
        self.all.events > 0 && (self.all.totals.transactions > 0 || !self.all.tables.is_empty())
    }

    /// Adds a file of this size. The order of files decides which figures are first and last.
    pub fn add(&mut self, name: String, bytes: u64, mut file: FileStats) {
        file.cut_off();
        let mut figures = file.figures;
        figures.largest.set_file(self.files.len());
        self.all.add(&figures);
        self.files.push(FileFigures {
            name,
            bytes,
            events: figures.events,
            totals: figures.totals,
            stored_bytes: figures.stored_bytes,
            commits: figures.commits,
            description: figures.description,
        });
    }
}
