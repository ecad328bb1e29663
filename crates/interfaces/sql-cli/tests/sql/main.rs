//! The real program over real logs: plain, compressed and archived.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod arithmetic;
#[cfg(feature = "serve")]
mod as_of;
#[cfg(feature = "serve")]
mod as_of_keys;
mod common;
mod depth;
mod directory;
mod docs;
mod endings;
mod exits;
#[cfg(feature = "serve")]
mod exits_served;
mod export;
mod export_hostile;
mod export_to;
#[cfg(feature = "serve")]
mod flight;
mod fuzz;
mod hostile;
mod iceberg;
mod input;
mod joins;
#[cfg(feature = "serve")]
mod mysql;
mod mysql_meaning;
#[path = "../../../cli/tests/common/planted.rs"]
mod planted;
mod processor;
mod prompt;
mod pushdown;
mod queries;
mod real;
mod selection;
#[cfg(feature = "serve")]
mod serve;
mod server_schema;
#[path = "../../../cli/tests/common/small_disk.rs"]
#[allow(dead_code)] // several test programs share it
mod small_disk;
mod table_at;
mod tables_then;
mod terminal;
mod told_later;
mod types;
