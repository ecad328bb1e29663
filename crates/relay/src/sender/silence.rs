//! What a dump does while there is nothing to send: it waits, takes acknowledgements, says that it is alive, and notices
//! that its client has left.

use std::io;

use binlogz_store::Position;

use super::{Sender, TICK, broken};
use crate::error::{Error, Result};
use crate::semi_sync::SemiSync;
use crate::steering;
use crate::transport::Transport;

impl Sender<'_> {
    /// Waits until more is durable, or until it is time to look around.
    pub(super) fn wait(&mut self, durable: Option<Position>) -> Result<()> {
        let patience = self.dump.semi_sync.as_ref().and_then(SemiSync::patience).unwrap_or(TICK);
        let now = self.kept.store.wait_durable_beyond(durable, patience);
        let has_news = now.map(|now| now.durable) > durable;
        // Who acknowledges nothing need not be heard before it is sent the next transaction.
        if !has_news || self.dump.semi_sync.is_some() {
            self.listen()?;
        }
        if has_news {
            return Ok(());
        }
        if patience == TICK {
            self.log.release();
            self.sink()?.release();
        }
        self.heartbeat_if_due()
    }

    /// Takes acknowledgements, and notices that the client has left.
    fn listen(&mut self) -> Result<()> {
        let mut semi_sync = self.dump.semi_sync.take();
        let transport = self.sink()?.transport();
        let is_there = match &mut semi_sync {
            Some(semi_sync) => semi_sync.listen(transport),
            None => has_left(transport).map(|left| !left).map_err(broken),
        };
        self.dump.semi_sync = semi_sync;
        match is_there? {
            true => Ok(()),
            false => Err(Error::Left(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    pub(super) fn heartbeat_if_due(&mut self) -> Result<()> {
        let Some(period) = self.dump.heartbeat_period else { return Ok(()) };
        let sink = self.sink()?;
        let (position, silent) = (sink.position(), sink.sent.elapsed());
        if silent < period || position < sink.from() {
            return Ok(());
        }
        self.heartbeat(position)
    }

    fn heartbeat(&mut self, position: u64) -> Result<()> {
        let event = steering::heartbeat(
            self.log.head().header.server_id,
            self.dump.heartbeat_v2,
            &self.name(),
            position,
            self.log.head().checksum(),
        );
        self.sink()?.say(&event).map_err(broken)
    }

    /// A client that has some of the log is told how far it has it.
    pub(super) fn tell_left_out(&mut self) -> Result<()> {
        match self.left_out_to.take() {
            Some(position) => self.heartbeat(position),
            None => Ok(()),
        }
    }
}

/// Whether the client ended the connection. What else it says is not looked at.
fn has_left(transport: &mut Transport) -> io::Result<bool> {
    let mut said = [0; 1024];
    loop {
        match transport.read_at_hand(&mut said)? {
            Some(0) => return Ok(true),
            Some(_) => {}
            None => return Ok(false),
        }
    }
}
