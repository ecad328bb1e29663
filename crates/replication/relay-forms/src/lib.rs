//! Converts the stored log into the form a reader can read: as received, compressed, or uncompressed.
//!
//! The input is a file of a log (`log`) and a form. The output is the bytes of that form with their positions, lengths
//! and checksums, to whatever sink the caller has: a client, a listing, or nothing. `serve` owns the sockets and decides
//! which client gets which form.
//!
//! * `translate` goes through a file of a form, transaction by transaction;
//! * `convert` changes one transaction: expanded, compressed, or with other clocks (`clock`);
//! * `checked` sends unchanged events, once their checksums were compared;
//! * `block` is a piece of a file, converted once by `block_maker`; `conversions` shares blocks and converters between all readers;
//! * `artificial_events` are in no file: a dump's first rotate and format description, heartbeats;
//! * `damage` says where a client can resume after damage that it need not read;
//! * `file_walk` goes through a whole file for its end, or for the events that `listing` shows.

pub(crate) mod artificial_events;
pub(crate) mod block;
pub(crate) mod block_maker;
mod checked;
pub(crate) mod clock;
pub(crate) mod conversions;
pub(crate) mod convert;
pub(crate) mod damage;
pub(crate) mod file_walk;
pub(crate) mod listing;
pub(crate) mod translate;

use binlogz_relay_log::LineageLog;
use conversions::Conversions;

/// A log, with what all its readers share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forms<'a> {
    pub(crate) kept: &'a LineageLog,
    pub(crate) conversions: &'a Conversions,
}

impl Conversions {
    /// The forms of a log.
    pub(crate) fn of<'a>(&'a self, kept: &'a LineageLog) -> Forms<'a> {
        Forms { kept, conversions: self }
    }
}
