//! Cuts logs into pieces that can be packed.
//!
//! The pieces are whole transactions, each small enough for a block. Nothing here knows how a block is packed.
//!
//! - `cut`: cuts a log into pieces
//! - `directory`: the transactions of a piece, by column
//! - `events`: where events begin and end, their GTIDs and checksums
//! - `payloads`: expands transaction payloads, and compresses them to the server's bytes again
//! - `active`: the whole part of a log that is still being written
//! - `framing`: whether a log ends with an event
//! - `order`: the order of logs by their names

pub(crate) mod active;
mod cut;
pub mod directory;
pub(crate) mod events;
pub(crate) mod framing;
pub(crate) mod order;
pub(crate) mod payloads;

pub(crate) use cut::{BLOCK_SIZE_MAX, MAPS_MAX};
pub use cut::{BlockReuse, CutPiece, Cutter, FormerBlock, FormerReferences};
pub use framing::first_damage;
pub use order::{numbered, sort_by_name};
