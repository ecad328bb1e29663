//! Events that are not held in memory: read into a parser, and those of a transaction passed on as they are
//! in a payload.

use std::io::Read;

use binlogz_binlog::{EventHeader, EventParser, EventVisitor, VerifiedChecksum};

use crate::compress::payload_event::InnerEvents;
use crate::error::{Error, Result};
use crate::transaction::candidate::Candidate;
use crate::transaction::context::LogContext;

/// Bytes read, or passed on, at once.
pub(crate) const STAGE_SIZE: usize = 128 << 10;

/// Reads all of `reader` into a parser.
pub(crate) fn push_all<V: EventVisitor<Error = Error>>(
    mut reader: impl Read,
    buffer: &mut [u8],
    parser: &mut EventParser,
    visitor: &mut V,
) -> Result<()> {
    loop {
        match reader.read(buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => parser.push(buffer.get(..count).unwrap_or_default(), visitor)?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Passes the events of a transaction to `sink` as they are in a payload, in pieces. `bytes` reads the
/// transaction, perhaps for the second time: damage found now is an error.
pub(crate) fn feed(
    candidate: &Candidate,
    bytes: impl Read,
    context: LogContext,
    stage: &mut Vec<u8>,
    buffer: &mut [u8],
    sink: impl FnMut(&[u8]) -> Result<()>,
) -> Result<VerifiedChecksum> {
    let mut feed = Feed {
        sink,
        stage: InnerEvents::new(stage, context),
        behind_gtid: false,
        verified: candidate.verified,
    };
    let mut parser = EventParser::new(context.framing, candidate.range().start);
    push_all(bytes, buffer, &mut parser, &mut feed)?;
    parser.finish()?;
    feed.flush()?;
    Ok(feed.verified)
}

/// Collects the events after a GTID event and passes them on.
struct Feed<'a, S> {
    sink: S,
    stage: InnerEvents<'a>,
    behind_gtid: bool,
    verified: VerifiedChecksum,
}

impl<S: FnMut(&[u8]) -> Result<()>> Feed<'_, S> {
    fn flush(&mut self) -> Result<()> {
        (self.sink)(self.stage.bytes)?;
        self.stage.bytes.clear();
        Ok(())
    }
}

impl<S: FnMut(&[u8]) -> Result<()>> EventVisitor for Feed<'_, S> {
    type Error = Error;

    fn begin(&mut self, _: u64, header: &EventHeader) -> Result<()> {
        if self.behind_gtid {
            self.stage.event(header);
        }
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        if !self.behind_gtid {
            return Ok(());
        }
        if self.stage.bytes.len() + bytes.len() > STAGE_SIZE {
            self.flush()?;
        }
        self.stage.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self, verified: VerifiedChecksum) -> Result<()> {
        self.behind_gtid = true;
        self.verified = verified;
        Ok(())
    }
}
