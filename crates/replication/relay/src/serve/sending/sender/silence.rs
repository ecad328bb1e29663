//! A dump while there is nothing to send: it waits, reads acknowledgements, sends heartbeats, and notices
//! when its client has left.

use std::io;
use std::time::Duration;

use binlogz_binlog::EventType;
use binlogz_relay_forms::artificial_events;
use binlogz_store::Position;

use super::{Sender, TICK, broken};
use crate::error::{Error, Result};
use crate::serve::connections::departures::DepartureWatch;
use crate::serve::connections::transport::DumpConnection;
use crate::serve::sending::semi_sync::SemiSync;

/// A dump that was sent nothing for this long is idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// How often an idle dump checks that its client is still connected, if nothing tells it: of a thousand, each costs the processor
/// something.
const IDLE_TICK: Duration = Duration::from_secs(2);
/// How often a dump that is woken for every event looks round by itself: it would find nothing new.
const WATCHED_TICK: Duration = Duration::from_secs(60);

/// How long to wait for news, and no longer than until the next heartbeat.
fn pause(silent: Duration, heartbeat_period: Option<Duration>, is_watched: bool) -> Duration {
    let tick = match is_watched {
        true if silent < TICK => TICK,
        true => WATCHED_TICK,
        false if silent < IDLE_AFTER => TICK,
        false => IDLE_TICK,
    };
    match heartbeat_period.map(|period| period.saturating_sub(silent)) {
        // One that can't be sent yet must not make this a busy loop.
        Some(left) => tick.min(left.max(TICK)),
        None => tick,
    }
}

impl Sender<'_> {
    /// Waits until more is durable, until there are more than this many wakes, or until the next check is due.
    pub(super) fn wait(&mut self, durable: Option<Position>, wakes: u64) -> Result<()> {
        let acknowledges = self.dump.semi_sync.as_ref().and_then(SemiSync::patience);
        let patience = match acknowledges {
            Some(patience) => patience,
            None => {
                let period = self.dump.heartbeat_period;
                let is_watched = self.dump.watch.is_some();
                let is_ahead = self.waits_for_a_gtid();
                let sink = self.sink()?;
                // A client that is ahead is waited for, not idle.
                if is_ahead || sink.position() < sink.from() {
                    TICK
                } else {
                    pause(sink.sent.elapsed(), period, is_watched)
                }
            }
        };
        let now = self.kept.store.wait_durable_beyond_or_wake(durable, wakes, patience);
        let has_news = now.map(|now| now.durable) > durable;
        if self.dump.watch.as_ref().is_some_and(DepartureWatch::has_left) {
            return Err(left());
        }
        // A client that doesn't acknowledge need not be read from before it is sent the next transaction.
        let is_over = !has_news && self.kept.store.wakes() == wakes;
        if is_over || self.dump.semi_sync.is_some() {
            self.listen()?;
        }
        if has_news {
            return Ok(());
        }
        if acknowledges.is_none() {
            self.log.release();
            self.sink()?.release();
        }
        self.heartbeat_if_due()
    }

    /// Reads acknowledgements, and notices that the client has left.
    fn listen(&mut self) -> Result<()> {
        let mut semi_sync = self.dump.semi_sync.take();
        let connection = self.sink()?.connection();
        let is_there = match &mut semi_sync {
            Some(semi_sync) => semi_sync.listen(connection),
            None => has_left(connection).map(|left| !left).map_err(broken),
        };
        self.dump.semi_sync = semi_sync;
        match is_there? {
            true => Ok(()),
            false => Err(left()),
        }
    }

    pub(super) fn heartbeat_if_due(&mut self) -> Result<()> {
        let Some(period) = self.dump.heartbeat_period else { return Ok(()) };
        let sink = self.sink()?;
        let position = sink.position();
        let silent = sink.sent.elapsed();
        if silent < period || position < sink.from() {
            return Ok(());
        }
        self.heartbeat(position)
    }

    fn heartbeat(&mut self, position: u64) -> Result<()> {
        // A source before 8.0.26 does not know it, and its format description does not list it: a replica of 9.7 that
        // asks for it stops at an event that is not listed ("could not queue event from source").
        let is_listed =
            self.log.head().description.post_header_lengths.len() >= usize::from(EventType::HEARTBEAT_V2.0);
        let event = artificial_events::heartbeat(
            self.log.head().header.server_id,
            self.dump.heartbeat_v2 && is_listed,
            &self.name(),
            position,
            self.log.head().checksum(),
        );
        self.sink()?.say(&event).map_err(broken)
    }

    /// Tells a client how far it already has the log.
    pub(super) fn tell_left_out(&mut self) -> Result<()> {
        match self.left_out_to.take() {
            Some(position) => self.heartbeat(position),
            None => Ok(()),
        }
    }
}

/// The client has closed the connection.
fn left() -> Error {
    Error::Left(io::ErrorKind::UnexpectedEof.into())
}

/// Whether the client closed the connection. Anything else it sends is ignored.
fn has_left(connection: &mut dyn DumpConnection) -> io::Result<bool> {
    let mut said = [0; 1024];
    loop {
        match connection.read_at_hand(&mut said)? {
            Some(0) => return Ok(true),
            Some(_) => {}
            None => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_dump_is_looked_at_seldom_but_in_time_for_its_heartbeat() {
        let ms = Duration::from_millis;
        for (silent, period, alone, watched) in [
            (0, None, 500, 500),
            (499, None, 500, 500),
            (999, None, 500, 60_000),
            (1_000, None, 2_000, 60_000),
            (1_000, Some(30_000), 2_000, 29_000),
            (29_200, Some(30_000), 800, 800),
            (29_900, Some(30_000), 500, 500),
            (40_000, Some(30_000), 500, 500),
            (1_500, Some(2_000), 500, 500),
        ] {
            let pauses = [false, true].map(|is_watched| pause(ms(silent), period.map(ms), is_watched));
            assert_eq!(pauses, [alone, watched].map(ms), "{silent} {period:?}");
        }
    }
}
