//! Expands payloads into transactions: the other direction of [`crate::compress`].
//!
//! The input is a batch with payload events, or a large one as a stream, which [`payload_stream`] opens.
//! [`transaction_expander`] makes a transaction of each; if the payload is to come back from it byte for byte,
//! `reproduction` compares. The output is a [`RewrittenPiece`](crate::RewrittenPiece).

pub mod payload_stream;
mod reproduction;
pub mod transaction_expander;
