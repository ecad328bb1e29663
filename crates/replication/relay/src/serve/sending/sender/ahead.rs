//! A client that asks for a position after the end of the log: it followed the source and is ahead of the relay, or its
//! position is wrong.

use std::time::Instant;

use binlogz_relay_log::Form;

use super::{AHEAD_MAX, Sender, TICK, behind_the_end};
use crate::error::{Error, Result};
use crate::receive::questions::Reach;

/// Facts about such a client's position.
pub(super) struct AheadPosition {
    until: Instant,
    /// When the source may be asked again.
    ask_at: Instant,
    /// Whether the source's file reaches the position: the relay's file will too.
    is_there: bool,
    /// Why it is not known yet.
    why: String,
}

impl AheadPosition {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        AheadPosition { until: now + AHEAD_MAX, ask_at: now, is_there: false, why: String::new() }
    }
}

impl Sender<'_> {
    /// All that is durable was gone through, and the position was not reached.
    ///
    /// # Errors
    ///
    /// The source's log does not reach it either. Or the relay's does not within [`AHEAD_MAX`].
    pub(super) fn check_ahead(&mut self, ahead: &mut AheadPosition) -> Result<()> {
        if self.dump.non_blocking {
            return Err(behind_the_end());
        }
        let left = ahead.until.saturating_duration_since(Instant::now());
        // Asked too late it would say only that there was no time.
        let may_ask = ahead.why.is_empty() || left > TICK;
        if may_ask && !ahead.is_there && Instant::now() >= ahead.ask_at {
            let form = self.dump.form;
            let durable = self.kept.store.positions();
            let wanted = (self.name(), self.sink()?.from());
            match self.intake.reach_of_source(self.kept, form, wanted, ahead.until) {
                // What became durable meanwhile may reach it.
                Ok(Reach::Ends) if self.kept.store.positions() == durable => return Err(behind_the_end()),
                Ok(Reach::Ends) => {}
                Ok(Reach::Further) => {
                    ahead.is_there = form == Form::Received;
                    ahead.why = "the source has more than is here yet".into();
                }
                Err(why) => ahead.why = format!("the source can't be asked: {why}"),
            }
            ahead.ask_at = Instant::now() + TICK;
        }
        if !left.is_zero() {
            return Ok(());
        }
        Err(Error::Ahead(format!(
            "{} at {} is not here after {AHEAD_MAX:?}: {}",
            self.name(),
            self.sink()?.from(),
            ahead.why
        )))
    }
}
