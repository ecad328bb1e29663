//! Packs and unpacks one block.
//!
//! Packing takes a piece of a log, deals its fields out to columns and gives the packed bytes; unpacking gives the piece
//! back. A block may refer to rows of other blocks; the segment decides which ones.
//!
//! - `packed`: the byte table of a block; the two steps of packing and the two of unpacking
//! - `layout`: the fields of each event; `rows`: those of rows events
//! - `cells`, `form`: where the values of an image are, and how they are walked over
//! - `walk`: one description of the layout for both directions
//! - `streams`: the columns; `slots`: those of a table
//! - `picked`: some columns of one table, without the rest
//! - `former`: finds a row's earlier image; `history`: the same as in version 1

mod cells;
mod form;
pub(crate) mod former;
mod history;
pub(crate) mod layout;
mod packed;
pub mod picked;
pub(crate) mod rows;
pub(crate) mod slots;
mod streams;
mod walk;

pub use former::UnpackedBlock;
pub(crate) use packed::{
    DealtFields, deal, event_types, former_columns, is_by_columns, open_after, open_by, pack_bytes,
    packed_size_max, stands_alone,
};
pub use packed::{Method, OpenBlock, open};
pub(crate) use streams::FormerColumns;
