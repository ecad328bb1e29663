//! Packs binary logs by column, across transactions, and restores them byte for byte.
//!
//! The path of a byte: [`create`](mod@create) cuts a log into blocks of whole events; [`block`] packs each,
//! where `layout` walks over the events and deals their fields out to `streams`, and [`numbers`] and
//! [`strings`] code each stream; [`storage`] keeps packed files as immutable objects behind a manifest;
//! [`restore`] goes the way back. What an archive's bytes mean stands in `docs/archive.md`.
//!
//! Compression of single transactions is the business of `binlogz-payload`: logs come here expanded.

#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::big_endian_bytes, clippy::host_endian_bytes)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used))]

pub mod block;
pub mod block_header;
mod blocks;
mod budget;
pub mod check;
pub mod create;
pub mod cut;
pub mod error;
pub mod folder;
pub mod former;
mod history;
pub mod index;
mod layout;
pub mod manifest;
pub mod numbers;
pub mod object;
pub mod order;
mod payloads;
pub mod restore;
mod rows;
#[cfg(feature = "s3")]
pub mod s3;
pub mod segment;
pub mod selection;
pub mod storage;
mod streams;
pub mod strings;
pub mod varint;
mod walk;
mod zstd;

pub use error::{Error, Result};
