//! Which parts of an archived log are needed for the output: the others are neither read nor unpacked.
//!
//! Nothing is shown before the first event of `--start-datetime`, so the parts before it are left out. The text needs
//! everything after it: it shows every transaction's begin and end whatever else is chosen, and where each of their
//! events begins. JSON lines leave out transactions that weren't chosen or have no rows of `--table` or `--database`.

use binlogz_archive::part::BlockRun;
use binlogz_flow::BoundaryMoment;
use binlogz_print::EventSelection;
use binlogz_print::met::MetRequests;

use super::options::{DumpFormat, DumpSettings, POSITION_MIN};

/// The parts of the logs that are needed, one after the other.
#[derive(Debug)]
pub(super) struct DumpSearch<'o> {
    selection: &'o EventSelection,
    /// `None`: everything from here on is late enough.
    start: Option<BoundaryMoment>,
    /// Lines have nothing of transactions that weren't chosen.
    is_lines: bool,
    /// Statements that empty a table are shown beside its rows.
    has_truncate: bool,
    /// Statements tell what tables are.
    needs_statements: bool,
    /// Where nothing more is shown may depend on any event.
    all: bool,
    /// The requests that the parts left out have met.
    pub(super) met: MetRequests,
}

impl<'o> DumpSearch<'o> {
    pub(super) fn new(options: &DumpSettings, selection: &'o EventSelection) -> Self {
        // The output depends on events that it doesn't show: counted ones, or positions, between which logs are cut.
        let is_anywhere = options.offset == 0
            && options.start_position == POSITION_MIN
            && options.stop_position.is_none_or(|stop| stop == u64::MAX)
            && selection.stop_time.is_none_or(|stop| selection.start_time.is_none_or(|start| start < stop));
        DumpSearch {
            selection,
            start: selection.start_time,
            is_lines: options.format != DumpFormat::Sql,
            has_truncate: options.format == DumpFormat::Debezium,
            needs_statements: false,
            all: !is_anywhere,
            met: MetRequests::default(),
        }
    }

    /// Also looks for the parts with statements, if these are needed.
    pub(super) fn needing_statements(self, needs_statements: bool) -> Self {
        DumpSearch { needs_statements, ..self }
    }

    /// A log was read that is in no archive: it may have had the first event.
    pub(super) fn pass_log(&mut self) {
        self.start = None;
    }

    /// Whether a part is needed.
    pub(super) fn may_be_in(&mut self, run: &BlockRun<'_>) -> bool {
        if self.all {
            return true;
        }
        if self.needs_statements && run.may_have_statements() {
            return true;
        }
        let stop = self.selection.stop_before_gtid.as_ref().filter(|_| self.is_lines);
        if stop.is_some_and(|stop| run.gtids.contains(stop)) {
            self.all = true;
            return true;
        }
        if let Some(start) = self.start {
            let is_early = run.times().is_some_and(|(_, last)| !start.may_be_reached(last));
            if is_early && !run.may_have_loose() {
                self.met.pass_over(self.selection, &run.gtids, false);
                return false;
            }
            self.start = None;
            return true;
        }
        // Which servers' events a part has is not told.
        if !self.is_lines || self.selection.server_id.is_some() {
            return true;
        }
        if let Some(stop) = self.selection.stop_time
            && run.times().is_none_or(|(_, last)| stop.may_be_reached(last))
        {
            self.all = true;
            return true;
        }
        // Parts without GTIDs may have transactions without, which are chosen in other ways.
        if run.gtids.is_empty() || run.may_have_loose() || self.may_show(run) {
            return true;
        }
        self.met.pass_over(self.selection, &run.gtids, true);
        false
    }

    /// Whether it may have lines.
    fn may_show(&self, run: &BlockRun<'_>) -> bool {
        let EventSelection { database, tables, include_gtids, .. } = self.selection;
        if include_gtids.as_ref().is_some_and(|set| set.is_disjoint(&run.gtids)) {
            return false;
        }
        if database.is_some() {
            // Statements, and rows of tables that aren't named, are looked at to tell whether the database is there.
            let is_in = |name: &[u8]| database.as_deref() == Some(name);
            return run.may_have_statements() || run.may_have_rows(&|rows| is_in(&rows.name.database));
        }
        tables.is_empty()
            || self.has_truncate && run.may_have_statements()
            || run.may_have_rows(&|rows| self.selection.has_table(&rows.name.database, &rows.name.table))
    }
}
