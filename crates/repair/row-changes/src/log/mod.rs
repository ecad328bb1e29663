//! Writes a binary log: a row's images as a row event has them, and the events around them.

pub(crate) mod images;
pub(crate) mod writer;
