//! How far the stored log lags behind the source, by the source's clock, and whether receiving has stalled.
//!
//! ```text
//! level: 0               connected, nothing more is at hand, and that this is all is shown by a heartbeat, an event that the
//!                        source wrote just then, or silence after it; and the source was heard of just now
//! else, the smaller of   the source's time now − the timestamp of the last event that came
//!                        now − the last moment at which we were level, or heard that the source lives
//! neither is known       unknown: never 0
//! ```
//!
//! Silence alone proves nothing: a source that was asked for a heartbeat each second, and is silent for longer, may have
//! new data and be unable to send it. Data that isn't durable yet doesn't count as stored. Callers pass times as
//! arguments; `status` calls [`Lag::lag`] and [`Lag::standstill`].

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// An event no older than this, by the source's clock, is the newest that it has; timestamps are whole seconds.
const LIVE: u64 = 2;
/// A source that has sent nothing for this long after an older event has no more at present.
const QUIET: Duration = Duration::from_secs(5);
/// A source that was heard of this long ago counts as heard of just now: two heartbeats and what a busy machine adds.
const HEARD_JUST_NOW: Duration = Duration::from_secs(3);
/// Receiving that made no progress for this long, though there is more, has stalled.
pub(crate) const STANDSTILL: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Lag(Mutex<LagState>);

#[derive(Debug, Default)]
struct LagState {
    /// How many seconds the source's clock is ahead of ours.
    clock_ahead: i64,
    /// The source's clock when it was last asked, in seconds since 1970, and when that was.
    clock: Option<(u64, Instant)>,
    /// Timestamp of the last event received, in seconds since 1970 by the source's clock; 0 if none.
    timestamp: u32,
    connected: bool,
    /// When a piece was last processed.
    heard: Option<Instant>,
    /// Since when there has been unprocessed input without progress.
    more_since: Option<Instant>,
    /// Whether receiving is deliberately waiting.
    is_held: bool,
    /// When we last had everything the source had.
    level: Option<Instant>,
}

impl LagState {
    /// Silence after all that came was dealt with shows that this was all.
    fn is_quiet(&self, now: Instant) -> Option<Duration> {
        let heard = self.heard.filter(|_| self.more_since.is_none())?;
        let quiet = now.saturating_duration_since(heard);
        (quiet >= QUIET || self.level == Some(heard)).then_some(quiet)
    }

    fn note_level(&mut self, now: Instant) {
        if self.is_quiet(now).is_some() {
            // Not later: silence may have been a broken line's.
            self.level = self.level.max(self.heard);
        }
    }
}

impl Lag {
    /// Both clocks were read, in seconds since 1970.
    pub(crate) fn clocks(&self, source: u64, ours: u64, now: Instant) {
        let ahead = i64::try_from(source).ok().zip(i64::try_from(ours).ok());
        let mut state = self.0.lock();
        state.clock_ahead = ahead.map_or(0, |(source, ours)| source.saturating_sub(ours));
        state.clock = Some((source, now));
    }

    /// The source's clock when it was last asked, in seconds since 1970, and when that was; `None`: it was not asked
    /// since the start.
    pub(crate) fn source_clock(&self) -> Option<(u64, Instant)> {
        self.0.lock().clock
    }

    /// The time by the source's clock when it is this by ours.
    pub(crate) fn source_time(&self, ours: u64) -> u64 {
        ours.saturating_add_signed(self.0.lock().clock_ahead)
    }

    pub(crate) fn begins(&self, now: Instant) {
        let mut state = self.0.lock();
        state.note_level(now);
        state.connected = true;
        state.more_since.get_or_insert(now);
    }

    /// The events at hand were dealt with. `drained`: nothing more is at hand, and no transaction is open.
    pub(crate) fn ends(
        &self,
        (now, ours): (Instant, u64),
        timestamp: u32,
        drained: bool,
        is_heartbeat: bool,
    ) {
        let mut state = self.0.lock();
        let source = ours.saturating_add_signed(state.clock_ahead);
        let is_live = timestamp > 0 && source.saturating_sub(u64::from(timestamp)) <= LIVE;
        if timestamp > 0 {
            state.timestamp = timestamp;
        }
        (state.heard, state.more_since) = (Some(now), (!drained).then_some(now));
        if drained && (is_heartbeat || is_live) {
            state.level = Some(now);
        }
    }

    /// A deliberate wait does not count as a stall.
    pub(crate) fn hold(&self, is_held: bool) {
        self.0.lock().is_held = is_held;
    }

    pub(crate) fn disconnected(&self, now: Instant) {
        let mut state = self.0.lock();
        state.note_level(now);
        (state.connected, state.is_held) = (false, false);
    }

    /// The source's log has been reset.
    pub(crate) fn begin_anew(&self, now: Instant) {
        let mut state = self.0.lock();
        (state.timestamp, state.level, state.more_since) = (0, None, Some(now));
    }

    /// In seconds. `is_kept`: all that came is durable; `ours`: our clock.
    pub(crate) fn lag(&self, now: Instant, ours: u64, is_kept: bool) -> Option<u64> {
        let state = self.0.lock();
        let quiet = state.is_quiet(now);
        if state.connected && is_kept && quiet.is_some_and(|quiet| quiet < HEARD_JUST_NOW) {
            return Some(0);
        }
        let level = if quiet.is_some() { state.level.max(state.heard) } else { state.level };
        let by_level = level.map(|level| now.saturating_duration_since(level).as_secs());
        let source = ours.saturating_add_signed(state.clock_ahead);
        let by_timestamp = (state.timestamp > 0).then(|| source.saturating_sub(u64::from(state.timestamp)));
        by_level.into_iter().chain(by_timestamp).min()
    }

    /// How long receiving has been stalled; `None` if it isn't, or not for long.
    pub(crate) fn standstill(&self, now: Instant) -> Option<Duration> {
        let state = self.0.lock();
        let since = state.more_since.filter(|_| !state.is_held)?;
        let still = now.saturating_duration_since(since);
        (still >= STANDSTILL).then_some(still)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: u64 = 1_700_000_000;

    /// Times in seconds after a beginning; our clock goes with them, the source's is 100 s ahead.
    struct At(Instant, Lag);

    impl At {
        fn new() -> At {
            let at = At(Instant::now(), Lag::default());
            at.1.clocks(OURS + 100, OURS, at.0);
            at
        }

        fn now(&self, seconds: u64) -> Instant {
            self.0 + Duration::from_secs(seconds)
        }

        /// An event that was written at this time comes.
        fn event(&self, seconds: u64, written: u64, drained: bool) {
            self.1.begins(self.now(seconds));
            let timestamp = (OURS + 100 + written) as u32;
            self.1.ends((self.now(seconds), OURS + seconds), timestamp, drained, false);
        }

        fn heartbeat(&self, seconds: u64) {
            self.1.begins(self.now(seconds));
            self.1.ends((self.now(seconds), OURS + seconds), 0, true, true);
        }

        fn lag(&self, seconds: u64) -> Option<u64> {
            self.1.lag(self.now(seconds), OURS + seconds, true)
        }
    }

    #[test]
    fn it_is_told_against_the_sources_clock() {
        let at = At::new();
        assert_eq!(at.lag(5), None, "nothing is known");
        // An hour behind, over a slow line: often nothing is at hand, which proves nothing.
        at.event(3600, 0, true);
        assert_eq!(at.lag(3600), Some(3600));
        at.event(3601, 1000, false);
        assert_eq!(at.lag(3601), Some(2601));
        // All is here: the source is silent.
        at.event(3602, 3602, true);
        assert_eq!(at.lag(3602), Some(0));
        at.heartbeat(3603);
        assert_eq!(at.lag(3605), Some(0));
        at.heartbeat(3612);
        assert_eq!(at.lag(3612), Some(0));
        // It came but is not durable.
        assert_eq!(at.1.lag(at.now(3615), OURS + 3615, false), Some(3));
        // Written as it comes, now and then.
        at.event(3616, 3615, true);
        assert_eq!(at.lag(3616), Some(0));
        at.event(3619, 3619, true);
        assert_eq!(at.lag(3619), Some(0));
    }

    #[test]
    fn what_nobody_hears_of_lags() {
        let at = At::new();
        at.event(10, 10, true);
        at.heartbeat(20);
        // The receiver is gone without a word, or the line is dead: the last proof of life counts, from the beginning.
        assert_eq!(at.lag(22), Some(0));
        for silent in 3..100 {
            assert_eq!(at.lag(20 + silent), Some(silent));
        }
        assert_eq!(at.lag(1000), Some(980));
        // The connection is down: counted from the moment at which it was level.
        at.1.disconnected(at.now(30));
        assert_eq!(at.lag(30), Some(10));
        assert_eq!(at.lag(31), Some(11));
        assert_eq!(at.lag(5000), Some(4980));
    }

    #[test]
    fn an_old_event_of_an_idle_source_is_no_lag() {
        let at = At::new();
        // The relay begins at the end of a log that was written an hour ago.
        at.event(3600, 0, true);
        assert_eq!(at.lag(3604), Some(3604), "more may follow");
        assert_eq!(at.lag(3605), Some(5), "nothing did, and nothing else was heard since");
        at.heartbeat(3606);
        assert_eq!(at.lag(3606), Some(0));
        at.1.disconnected(at.now(3700));
        assert_eq!(at.lag(3701), Some(95));
    }

    #[test]
    fn standing_still_is_not_silence() {
        let at = At::new();
        assert_eq!(at.1.standstill(at.now(1000)), None, "nothing has come yet");
        at.event(10, 10, true);
        assert_eq!(at.1.standstill(at.now(1000)), None, "the source is silent");
        // The transaction that came is not dealt with.
        at.1.begins(at.now(1000));
        assert_eq!(at.lag(1000), Some(990), "the last that is known");
        assert_eq!(at.1.standstill(at.now(1059)), None, "not long");
        assert_eq!(at.1.standstill(at.now(1060)), Some(STANDSTILL));
        at.1.hold(true);
        assert_eq!(at.1.standstill(at.now(1060)), None);
        at.1.disconnected(at.now(1060));
        assert!(at.1.standstill(at.now(1070)).is_some(), "and the connection is lost");
        // Much comes, slowly.
        at.event(1071, 1000, false);
        assert_eq!(at.1.standstill(at.now(1100)), None);
        assert!(at.1.standstill(at.now(1131)).is_some());
    }
}
