//! Segments: the blocks of several logs in one object.
//!
//! Packs pieces of logs into an object to store, and unpacks the blocks of a stored object.
//!
//! - `packer`: packs pieces into a segment, several at once
//! - `object`: reads an object: its index, then the blocks that are wanted
//! - `directory`: what an object tells of its transactions
//! - `unpacker`: unpacks blocks with the earlier ones they refer to
//! - `picker`: picks columns of one table out of blocks
//! - `budget`: the memory that blocks in progress may take together

mod budget;
mod directory;
mod object;
mod packer;
mod picker;
mod unpacker;

pub use object::Object;
pub use packer::Segment;
pub(crate) use packer::{PACKED_MAX, PLAIN_MAX};
pub use picker::Positions;
