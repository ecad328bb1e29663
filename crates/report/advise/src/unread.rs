//! The part of the logs for which there was no time. The rest of a log whose beginning was read is taken to be like that; a log of
//! which hardly anything was read may be of another kind.

use crate::{Advice, per};

/// A log of which at least this share was read shows what the rest is like.
pub const BEGINNING_ENOUGH: f64 = 0.02;

/// What the rest of the logs saves may differ from what their beginnings save by this share of it.
const REST_DIFFERS: f64 = 0.05;

impl Advice {
    /// Adds the size of the part of a log that was left out because time was over: `None` if it is not known.
    pub fn leave_out(&mut self, bytes: Option<u64>) {
        self.bytes_unread = sum(self.bytes_unread, bytes);
    }

    /// Adds the part of a log that was not read.
    pub(crate) fn add_unread(&mut self, log: &Advice) {
        self.leave_out(log.bytes_unread);
        if !log.shows_its_rest() {
            self.bytes_unknown = sum(self.bytes_unknown, log.bytes_unread);
        }
        self.spans += log.figures.commits.map_or(0, |(first, last)| last.saturating_sub(first));
    }

    /// Whether enough of this log was read to tell what the rest is like.
    fn shows_its_rest(&self) -> bool {
        let read = self.bytes_read as f64;
        self.bytes_unread.is_some_and(|unread| read >= BEGINNING_ENOUGH * (read + unread as f64))
    }

    /// Bytes that were read, and those that were not.
    pub fn read_and_unread(&self) -> (u64, Option<u64>) {
        (self.bytes_read, self.bytes_unread)
    }

    /// The size that the log had without compression as far as it was not read. Nothing is known of that, so
    /// it may become anything from nothing to this.
    pub(crate) fn unread_bytes(&self) -> f64 {
        self.without_compression(self.bytes_unread)
    }

    /// The part of that in logs of which too little was read.
    pub(crate) fn unknown_bytes(&self) -> f64 {
        self.without_compression(self.bytes_unknown)
    }

    /// What the saving may be off by, in bytes of the plain log as far as it was read, because of what was not read.
    pub(crate) fn unread_error(&self) -> f64 {
        let plain = self.plain_bytes() as f64;
        let unread = self.unread_bytes();
        let unknown = self.unknown_bytes();
        let share_of_rest = per((unread - unknown).max(0.0), plain + unread);
        unknown + REST_DIFFERS * share_of_rest * plain
    }

    fn without_compression(&self, bytes: Option<u64>) -> f64 {
        let plain = self.plain_bytes() as f64;
        match bytes {
            Some(0) => 0.0,
            // Logs that are compressed already expand.
            Some(bytes) => bytes as f64 * per(plain, self.bytes_read as f64).max(1.0),
            None => plain.max(1.0),
        }
    }

    /// The time in which what was read was committed, in microseconds: `whole` is the time from the first commit to the last.
    pub(crate) fn read_span(&self, whole: u64) -> u64 {
        // Between the beginnings of two logs lies the rest of the first, which was not measured.
        if self.bytes_unread == Some(0) || self.spans == 0 { whole } else { self.spans.min(whole) }
    }
}

fn sum(known: Option<u64>, more: Option<u64>) -> Option<u64> {
    known.zip(more).map(|(known, more)| known + more)
}
