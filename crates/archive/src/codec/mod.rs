//! Codes columns as bytes.
//!
//! In: numbers and byte strings, each of one column. Out: the smallest code found for them; and back. Nothing
//! here knows what a binary log is.
//!
//! - `numbers`: integers, through pco or zstd, possibly as differences from another column
//! - `strings`: byte strings, plain, through a dictionary, or as shapes with numbers in them
//! - `hash`: to look up what was seen before
//! - `varint`: integers and lengths in as few bytes as they need; the cursor that reads packed bytes
//! - `zstd`: zstd as this crate uses it

pub(crate) mod hash;
pub(crate) mod numbers;
pub(crate) mod strings;
pub(crate) mod varint;
pub(crate) mod zstd;
