//! `binlogz archive`, and archives as the input of other commands.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod checked;
mod codecs;
#[path = "../common/mod.rs"]
mod common;
mod encrypted;
mod erase;
mod erase_blocks;
mod exits;
mod full_disk;
mod growing;
mod input;
mod life;
mod operations;
#[path = "../common/planted.rs"]
mod planted;
mod rows;
mod selection;
