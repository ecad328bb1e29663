//! A unit that is too large for a batch: finds its end without holding it.

use std::sync::Arc;

use binlogz_binlog::reader::{LOG_START_SIZE, begins_log};
use binlogz_binlog::{Error, EventHeader, EventType};
use binlogz_payload::Spool;

use super::Batcher;
use crate::read::input::Input;
use crate::read::piece::{CutEvent, LargeSource, LargeUnit, LogPiece};

impl Batcher {
    /// A unit that does not fit into memory: looks for its end, keeping only bytes that can't be read again. On return
    /// the next unit is at the front of `pending`.
    pub(super) fn large(&mut self) -> Result<LogPiece, Error> {
        let offset = self.offset_of(0);
        let mut source = match &self.input {
            Input::Places(places) => {
                LargeSource::Places { places: Arc::clone(places), offset: self.log_begin + offset }
            }
            Input::Seek { .. }
            | Input::Stream(_)
            | Input::Sparse { .. }
            | Input::Live(_)
            | Input::Pipe(_) => LargeSource::Spool(Spool::on_disk()),
        };
        let mut first = self.walked == 0;
        let end = loop {
            // The bytes walked belong to the unit; they are dropped when their room is needed.
            if self.ahead().len() < LOG_START_SIZE {
                source.keep(self.pending.get(..self.walked).unwrap_or_default())?;
                self.pending.drain(..self.walked);
                self.walked = 0;
                self.fill(LOG_START_SIZE)?;
            }
            let begin = self.offset_of(self.walked);
            if self.lost.front().is_some_and(|lost| lost.start == begin) {
                break begin;
            }
            if self.ahead().is_empty() || begins_log(self.ahead()) {
                break begin;
            }
            let header = match self.header() {
                Ok(Some(header)) => header,
                Ok(None) => break begin,
                Err(error) if first => return Err(error),
                // The intact bytes before the bad ones come first.
                Err(error) => {
                    self.ending = Some(Err(error));
                    break begin;
                }
            };
            let ends = header.event_type == EventType::FORMAT_DESCRIPTION || self.begins_unit(&header);
            if ends && !first {
                break begin;
            }
            self.fill(self.follow_size(&header))?;
            self.follow(&header);
            first = false;
            if !self.pass_event(&header, &mut source)? {
                break begin;
            }
        };
        let size = end - offset;
        source.keep(self.pending.get(..self.walked).unwrap_or_default())?;
        self.pending.drain(..self.walked);
        self.walked = 0;
        self.starts.clear();
        self.has_payloads = false;
        Ok(LogPiece::Large(LargeUnit { offset, size, context: self.context(), source }))
    }

    /// Skips an event of any size. `false` if the log ends inside it; [`Batcher::next_piece`] then reports
    /// the cut next.
    fn pass_event(&mut self, header: &EventHeader, source: &mut LargeSource) -> Result<bool, Error> {
        let event_size = header.event_size as usize;
        if let Some(walked) = Some(self.walked + event_size).filter(|&walked| walked <= self.pending.len()) {
            self.walked = walked;
            return Ok(true);
        }
        let begin = self.offset_of(self.walked);
        let mut left = event_size - self.ahead().len();
        loop {
            source.keep(&self.pending)?;
            self.pending.clear();
            self.walked = 0;
            let count = self.fill(1)?;
            if count >= left {
                self.walked = left;
                return Ok(true);
            }
            left -= count;
            if count == 0 {
                let there = (event_size - left) as u64;
                self.ending = Some(if self.in_use {
                    Ok(LogPiece::Cut(CutEvent { offset: begin, size: there }))
                } else {
                    let error = Error::Truncated { needed: event_size as u64, left: there };
                    Err(error.at(begin, Some(header.event_type)))
                });
                return Ok(false);
            }
        }
    }
}
