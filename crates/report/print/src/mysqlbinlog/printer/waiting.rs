//! Events that wait for the end of their statement: table maps and row events, whose `BINLOG` statement and `###`
//! lines are printed after the headers of all of them.
//!
//! A statement that begins and ends in one batch is printed straight in place. The part that a batch leaves open is
//! printed for the [`super::super::assembler::Assembler`], which puts it where the statement ends. Of a large statement the events
//! themselves are kept until then.

use std::io;

use binlogz_binlog::event::TableId;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_flow::events::ListedEvents;

use super::{Pass, PrintStep, Run};
use crate::mysqlbinlog::growing_text::GrowingText;
use crate::mysqlbinlog::kept::KEEP_FROM;
use crate::mysqlbinlog::options::Base64Output;
use crate::mysqlbinlog::query::end_line;
use crate::mysqlbinlog::rows_pen::UnprintedRows;
use crate::mysqlbinlog::text::{PendingRows, StatementEnd};

/// An event that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingEvent {
    /// The event's place among the events of the pass.
    place: usize,
    is_rows: bool,
    /// For rows, whether their table map was shown.
    known: bool,
}

/// The next step after printing.
pub(super) fn next(printed: Result<(), UnprintedRows>) -> io::Result<PrintStep> {
    match printed {
        Ok(()) => Ok(PrintStep::Go),
        Err(UnprintedRows::Damaged(line)) => Ok(PrintStep::Damaged(line)),
        Err(UnprintedRows::File(error)) => Err(error),
    }
}

impl Run<'_> {
    /// Lets the current event wait. `rows`: the table, if it has rows.
    #[inline]
    pub(super) fn wait(&mut self, body: &[u8], rows: Option<TableId>) {
        let has_body = self.options.base64_output != Base64Output::DecodeRows;
        let has_lines = self.options.verbose > 0;
        if !(has_body || has_lines && rows.is_some()) {
            return;
        }
        self.state.rows_waiting = true;
        self.state.body_open |= has_body;
        // The body is the same in every pass; the header of an event inside a payload is not.
        self.state.open_size += (HEADER_SIZE + body.len()) as u64;
        let known = has_lines && rows.is_some_and(|table| self.state.known_tables.contains(&table));
        self.pen.waiting.push(WaitingEvent { place: self.place, is_rows: rows.is_some(), known });
    }

    /// Ends a statement in rows: prints what waits.
    pub(super) fn end_rows(&mut self) -> io::Result<PrintStep> {
        let printed = if self.emit { self.print_waiting() } else { Ok(()) };
        self.pen.waiting.clear();
        self.state.end_rows();
        (self.left_open, self.left_body_open) = (false, false);
        next(printed)
    }

    fn print_waiting(&mut self) -> Result<(), UnprintedRows> {
        self.text.flush_head();
        if !self.left_open && self.text.open.is_empty() {
            let mut out = std::mem::take(&mut self.text.out);
            let printed = self.body(&mut out, self.state.body_open).and_then(|()| self.lines(&mut out));
            self.text.out = out;
            return printed;
        }
        let mut rows = std::mem::take(&mut self.text.open);
        if let Some(memory) = self.memory.filter(|_| rows.is_empty()) {
            rows = PendingRows::new(memory, self.options);
        }
        let printed =
            self.body(&mut rows.body, self.state.body_open).and_then(|()| self.lines(&mut rows.footer));
        let kept = std::mem::take(&mut self.state.kept.chunks);
        let state = (!kept.is_empty()).then(|| Box::new(self.state.clone()));
        self.text.ends.push(StatementEnd { place: self.text.out.size(), rows, kept, state });
        printed
    }

    /// Leaves what still waits to later passes: its text or, if there is much of it, the events.
    pub(super) fn leave_open(&mut self) -> io::Result<()> {
        let Some(events) =
            self.events.filter(|_| !self.pen.waiting.is_empty() && self.state.stopped.is_none())
        else {
            return Ok(());
        };
        let mut open = std::mem::take(&mut self.text.open);
        if let Some(memory) = self.memory.filter(|_| self.emit && open.is_empty()) {
            open = PendingRows::new(memory, self.options);
        }
        let mut printed = Ok(());
        if self.state.open_size > KEEP_FROM {
            if self.pass != Pass::Text {
                self.keep(events)?;
            }
            if self.emit && self.state.body_open && !self.left_body_open {
                open.body.text.extend_from_slice(BODY_BEGIN);
            }
        } else if self.emit {
            printed = self.body(&mut open.body, false).and_then(|()| self.lines(&mut open.footer));
        }
        self.text.open = open;
        if let PrintStep::Damaged(line) = next(printed)? {
            self.state.stopped = Some(crate::mysqlbinlog::state::PrintStop::Error(line));
        }
        Ok(())
    }

    fn keep(&mut self, events: ListedEvents<'_>) -> io::Result<()> {
        let waiting = &self.pen.waiting;
        let kept = events.keep(waiting.iter().map(|waiting| waiting.place));
        self.state.kept.push(kept, waiting.iter().map(|waiting| waiting.known).collect())
    }

    /// Appends the `BINLOG` statement of what waits, as far as it was not begun or ended.
    fn body(&mut self, out: &mut GrowingText, closes: bool) -> Result<(), UnprintedRows> {
        if self.options.base64_output != Base64Output::DecodeRows && !self.pen.waiting.is_empty() {
            if !self.left_body_open {
                out.text.extend_from_slice(BODY_BEGIN);
            }
            let Some(events) = self.events else { return Ok(()) };
            let pen = &mut *self.pen;
            for event in pen.waiting.iter().filter_map(|waiting| events.event(waiting.place)) {
                pen.rows.base64(self.options, &event, out)?;
            }
        }
        if closes {
            out.text.push(b'\'');
            end_line(&mut out.text);
        }
        Ok(())
    }

    /// Appends the `###` lines of what waits.
    fn lines(&mut self, out: &mut GrowingText) -> Result<(), UnprintedRows> {
        let Some(events) = self.events.filter(|_| self.options.verbose > 0) else { return Ok(()) };
        let pen = &mut *self.pen;
        for waiting in pen.waiting.iter().filter(|waiting| waiting.is_rows) {
            let Some(event) = events.event(waiting.place) else { continue };
            pen.rows.row_lines(self.options, &event, waiting.known, out)?;
        }
        Ok(())
    }
}

/// How a `BINLOG` statement begins.
const BODY_BEGIN: &[u8] = b"\nBINLOG '\n";
