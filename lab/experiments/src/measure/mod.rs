//! The cost of a step: the server's counters, the bytes that a reader of the log receives, whole files by zstd; and which
//! replicas can follow.

pub(crate) mod consumer;
pub(crate) mod counters;
pub(crate) mod replicas;
pub(crate) mod zstd;
