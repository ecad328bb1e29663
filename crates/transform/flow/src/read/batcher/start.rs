//! The beginning of a log: its magic and its format description, or another format description later.

use binlogz_binlog::event::{FormatDescription, PostHeaderLengths};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::reader::not_a_log;
use binlogz_binlog::transaction::TransactionBoundaryParser;
use binlogz_binlog::{Error, EventHeader, EventType, Framing, HeaderFlags, MAGIC};
use binlogz_payload::LogContext;

use super::{Batcher, FORMAT_DESCRIPTION_SIZE_MAX};
use crate::read::piece::{LogPiece, LogStart};

impl Batcher {
    /// A log begins here: its magic, then its format description.
    pub(super) fn start_log(&mut self) -> Result<LogPiece, Error> {
        let head = self.ahead();
        if !head.starts_with(&MAGIC) {
            return Err(not_a_log(head));
        }
        self.log_begin += self.offset_of(0);
        self.pending.drain(..MAGIC.len());
        self.in_use = false;
        self.gtid_seen = false;
        self.transactions = TransactionBoundaryParser::new();
        self.inside = false;
        self.context = None;
        self.fill(HEADER_SIZE)?;
        let offset = self.offset_of(0);
        let Some(header) = self.header()? else {
            let left = self.ahead().len() as u64;
            return Err(Error::Truncated { needed: HEADER_SIZE as u64, left }.at(offset, None));
        };
        if header.event_type != EventType::FORMAT_DESCRIPTION {
            let error =
                Error::invalid("binary log", "first event", header.event_type, "a format description");
            return Err(error.at(offset, Some(header.event_type)));
        }
        self.start(true)
    }

    /// The format description at the front of the pending bytes.
    pub(super) fn start(&mut self, magic: bool) -> Result<LogPiece, Error> {
        let offset = self.offset_of(0);
        let at = |error: Error| error.at(offset, Some(EventType::FORMAT_DESCRIPTION));
        let header = EventHeader::decode(&self.pending)?;
        if header.event_size > FORMAT_DESCRIPTION_SIZE_MAX {
            let error = Error::invalid("event header", "event size", header.event_size, "at most 4096");
            return Err(at(error));
        }
        let size = header.event_size as usize;
        let left = self.fill(size)?;
        if left < size {
            return Err(at(Error::Truncated { needed: size as u64, left: left as u64 }));
        }
        let event: Vec<u8> = self.pending.drain(..size).collect();
        let framing = Framing::new();
        let frame = framing
            .next_frame(&event)
            .map_err(at)?
            .ok_or(Error::Truncated { needed: size as u64, left: 0 })
            .map_err(at)?
            .verify()
            .map_err(at)?;
        let description = FormatDescription::decode_frame(&frame).map_err(at)?;
        let relay_log = match self.context {
            Some(context) => context.relay_log,
            None => header.flags.contains(HeaderFlags::RELAY_LOG),
        };
        self.in_use |= header.flags.contains(HeaderFlags::IN_USE);
        let context = LogContext {
            framing: Framing::of(&description),
            post_header_lengths: PostHeaderLengths::from(&description),
            relay_log,
        };
        self.context = Some(context);
        Ok(LogPiece::Start(LogStart { offset, magic, event, description, context }))
    }
}
