//! Watches events and tells a handler which transactions they form.

use std::ops::Range;

use binlogz_binlog::transaction::{Boundary, TransactionBoundaryParser, TransactionContent};
use binlogz_binlog::{EventHeader, EventVisitor, VerifiedChecksum};

use crate::error::{Error, Result};
use crate::transaction::candidate::{BodyPrefix, Candidate, OpenGtid};
use crate::transaction::context::LogContext;

/// Handles the transactions that a [`Scanner`] finds.
pub(crate) trait ScanHandler {
    /// The next event after the GTID event of a transaction.
    fn event(&mut self, header: &EventHeader);

    /// The next bytes of its body.
    fn body(&mut self, bytes: &[u8]);

    /// The transaction that [`ScanHandler::event`] reported is over. It is incomplete if the log ends, or
    /// another one begins, before its end.
    fn transaction(&mut self, candidate: Candidate, content: &TransactionContent, whole: bool) -> Result<()>;

    /// A transaction without GTID event ended; its events are reported as outside of transactions.
    fn without_gtid(&mut self);

    /// Events outside of transactions are here in the log.
    fn outside(&mut self, log: Range<u64>);
}

/// Finds the transactions in a stream of events.
pub(crate) struct Scanner<H> {
    pub(crate) handler: H,
    context: LogContext,
    assembler: TransactionBoundaryParser,
    prefix: BodyPrefix,
    header: Option<(u64, EventHeader)>,
    current: Current,
}

/// The transaction that is open.
enum Current {
    None,
    /// Inside the GTID event that begins one.
    Gtid(OpenGtid),
    /// After it.
    Open(Candidate),
}

impl<H: ScanHandler> Scanner<H> {
    pub(crate) fn new(handler: H, context: LogContext) -> Self {
        Scanner {
            handler,
            context,
            assembler: TransactionBoundaryParser::new(),
            prefix: BodyPrefix::default(),
            header: None,
            current: Current::None,
        }
    }

    /// Ends the stream.
    pub(crate) fn finish(mut self) -> Result<H> {
        self.cut_off()?;
        Ok(self.handler)
    }

    /// The open transaction, if there is one, stays incomplete.
    fn cut_off(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::Open(candidate) => {
                self.handler.transaction(candidate, &self.assembler.content().clone(), false)
            }
            Current::None | Current::Gtid(_) => Ok(()),
        }
    }
}

impl<H: ScanHandler> EventVisitor for Scanner<H> {
    type Error = Error;

    #[inline]
    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<()> {
        self.header = Some((offset, *header));
        self.prefix.begin(header.event_type);
        if header.event_type.is_gtid() {
            self.cut_off()?;
            self.current = Current::Gtid(OpenGtid::begin(offset, header)?);
        } else if let Current::Open(candidate) = &mut self.current {
            candidate.event(offset, header, self.context);
            self.handler.event(header);
        }
        Ok(())
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        self.prefix.body(bytes);
        match &mut self.current {
            Current::None => {}
            Current::Gtid(gtid) => gtid.body(bytes),
            Current::Open(_) => self.handler.body(bytes),
        }
        Ok(())
    }

    #[inline]
    fn end(&mut self, verified: VerifiedChecksum) -> Result<()> {
        let Some((offset, header)) = self.header else { return Ok(()) };
        let placement = self.assembler.feed(&header, self.prefix.bytes());
        match std::mem::replace(&mut self.current, Current::None) {
            Current::Gtid(gtid) => {
                self.current = Current::Open(Candidate::begin(gtid.end(verified), self.context));
            }
            Current::Open(mut candidate) => {
                candidate.event_end(verified);
                match placement.boundary {
                    Boundary::Inside | Boundary::Begin | Boundary::BeginAgain => {
                        self.current = Current::Open(candidate)
                    }
                    Boundary::End | Boundary::Single | Boundary::Outside => {
                        self.handler.transaction(candidate, self.assembler.content(), true)?;
                    }
                }
            }
            Current::None => {
                self.handler.outside(offset..offset + u64::from(header.event_size));
                if matches!(placement.boundary, Boundary::End | Boundary::Single) {
                    self.handler.without_gtid();
                }
            }
        }
        Ok(())
    }
}
