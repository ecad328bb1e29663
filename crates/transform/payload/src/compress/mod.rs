//! Compresses transactions into payloads.
//!
//! The input is a batch of whole transactions, or a large one as a stream. [`extract`] finds the bytes of each that the
//! server's compressor gets, and [`feed`] passes them on. `payload_event` makes the event around the result, and
//! [`transaction_compressor`] joins them. The output is a [`RewrittenPiece`](crate::RewrittenPiece).

pub mod extract;
pub(crate) mod feed;
mod payload_event;
pub mod transaction_compressor;
