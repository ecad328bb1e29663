//! Which parts of an archived log are needed for what is shown: the others are neither read nor unpacked.
//!
//! Nothing is shown before the first event of `--start-datetime`, so the parts before it are left out. What comes after it
//! may depend on any event, since frames of transactions are shown whatever else is chosen.

use binlogz_archive::part::Run;

use super::options::{Options, POSITION_MIN};

/// What is needed of the logs, one after the other.
#[derive(Debug)]
pub(super) struct LookedFor {
    /// `None`: everything from here on.
    start: Option<i64>,
}

impl LookedFor {
    pub(super) fn new(options: &Options) -> Self {
        // These depend on events that are not shown: counts, positions, transactions that are to be there.
        let is_alone = options.offset == 0
            && options.start_position == POSITION_MIN
            && options.stop_position.is_none_or(|stop| stop == u64::MAX)
            && options.include_gtids.is_none()
            && options.stop_before_gtid.is_none()
            && options.tables.is_empty()
            && options.database.is_none()
            && options.server_id == 0
            && options
                .stop_datetime
                .is_none_or(|stop| options.start_datetime.is_some_and(|start| start < stop));
        LookedFor { start: options.start_datetime.filter(|_| is_alone) }
    }

    /// A log was read that is in no archive: it may have had the first event.
    pub(super) fn pass_log(&mut self) {
        self.start = None;
    }

    /// Whether a part is needed.
    pub(super) fn may_be_in(&mut self, run: &Run<'_>) -> bool {
        let is_early = |start| run.times().is_some_and(|(_, last)| i64::from(last) < start);
        if self.start.is_some_and(is_early) && !run.may_have_loose() {
            return false;
        }
        self.start = None;
        true
    }
}
