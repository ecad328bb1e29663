//! The new form of a piece of a log, before and after its place in the output is known.
//!
//! The input is transactions that `compress` or `expand` made, whose bytes are in a [`spool`]; the output is a log.
//! [`piece`] describes the new form, [`position_writer`] writes it with positions and checksums, and
//! [`format_description`] announces payloads at the beginning of the log. What is too large to hold is written as it
//! arrives: [`arriving_events`].

pub mod arriving_events;
mod event_place;
pub mod format_description;
pub mod piece;
pub mod position_writer;
pub mod spool;
