//! Codes columns as bytes.
//!
//! The input is numbers and byte strings, each of one column; the output is the smallest code found for them. Decoding
//! gives them back. Nothing here knows what a binary log is.
//!
//! - `numbers`: integers, through pco or zstd, possibly as differences from another column
//! - `strings`: byte strings, plain, through a dictionary, or as shapes with numbers in them
//! - `delta`: a string as its difference from an older one
//! - `text`: bytes, through zstd or PPMd
//! - `phrases`: a text's frequent phrases as one byte each, before PPMd
//! - `cost`: what a code costs in bytes and time, by the level
//! - `hash`: to look up bytes that occurred before
//! - `varint`: integers and lengths in as few bytes as they need; the cursor that reads packed bytes
//! - `zstd`, `ppmd`: these as this crate uses them

pub(crate) mod cost;
pub(crate) mod delta;
pub(crate) mod hash;
pub(crate) mod numbers;
mod phrases;
pub(crate) mod ppmd;
pub(crate) mod strings;
pub(crate) mod text;
pub(crate) mod varint;
pub(crate) mod zstd;

/// The trade between packing time and size. Readers don't need to know the level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Level {
    /// zstd for text: half again as large there, several times as fast.
    Fast,
    /// PPMd for text where what it saves is worth its time.
    #[default]
    Default,
    /// Everything is tried on everything.
    Max,
}
