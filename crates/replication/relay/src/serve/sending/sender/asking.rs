//! Chooses the transactions that a semi-synchronous replica must acknowledge.

use binlogz_store::Position;

use super::Sender;
use crate::error::Result;

impl Sender<'_> {
    /// Requests an acknowledgement if the transaction to be sent next is the last durable one. It ends at these
    /// offsets, as stored and in the client's form. Returns what was requested.
    pub(super) fn ask(&mut self, stored: u64, end: u64, may: bool) -> Result<Option<u64>> {
        if self.dump.semi_sync.is_none() {
            return Ok(None);
        }
        let place = Position { file: self.log.file(), offset: stored };
        let is_last = || self.kept.store.positions().is_some_and(|now| now.durable == place);
        let asked = (may && is_last()).then_some(end);
        self.sink()?.wants_ack_at = asked;
        Ok(asked)
    }

    pub(super) fn note_sent(&mut self, stored: u64, unseen: bool, asked: Option<u64>) {
        let place = Position { file: self.log.file(), offset: stored };
        let name = asked.map(|_| self.name());
        if let Some(semi_sync) = &mut self.dump.semi_sync {
            match unseen {
                true => semi_sync.had(place),
                false => semi_sync.sent(place, name.zip(asked)),
            }
        }
    }
}
