//! Transactions into payloads.
//!
//! In comes a batch of whole transactions, or a large one as a stream. [`extract`] finds what the server's compressor gets of each, which [`feed`]
//! passes on; `payload_event` makes the event around the result, and [`transaction_compressor`] joins them. Out goes a
//! [`Rewritten`](crate::Rewritten).

pub mod extract;
pub(crate) mod feed;
mod payload_event;
pub mod transaction_compressor;
