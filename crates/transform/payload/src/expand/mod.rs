//! Expands payloads into transactions: the other direction of [`crate::compress`].
//!
//! The input is a batch with payload events, or a large one as a stream, which [`payload_stream`] opens.
//! [`transaction_expander`] makes a transaction of each; if the payload is to come back from it byte for byte,
//! `reproduction` compares. The output is a [`RewrittenPiece`](crate::RewrittenPiece); what is too large to hold is passed
//! on in [parts](expanded_part) where the output can take it so.

pub mod expanded_part;
pub mod payload_stream;
mod reproduction;
pub mod transaction_expander;
