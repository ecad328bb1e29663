//! Rows and what belongs to them, as bytes in spools: what a worker, or a pass, leaves for those after it. All such bytes are written and
//! read here. No file that stays has them.
//!
//! ```text
//! frame      records one after the other, in a spool; fields: what a record is made of
//! cells      the columns of an image; map: table maps
//! batch      worker → follower: what the events of a batch are
//! change     worker → images, cascade: the operation and the images of a row
//! reference  worker → script: what chosen rows refer to, and changes of that
//! touch      worker → past: keys that were changed, and their rows
//! statement  worker → script: a row's statement as a server applies it
//! logged     worker → script, log: a row's images as an event has them
//! script     collector → script: transactions, rows, statements
//! effect     cascade → collector: what foreign keys did with a row
//! shown      life: a row that is shown once its transaction has ended
//! folded     worker → fold: events, tables, changes of rows; net changes in runs
//! ```

mod batch;
mod cells;
mod change;
mod effect;
mod fields;
mod folded;
mod frame;
mod logged;
mod map;
mod reference;
mod script;
mod shown;
mod statement;
mod touch;

pub(crate) use batch::{BatchRecord, EventAt, RecordTable, RowAt, RowFlags, RowKeys};
pub(crate) use cells::{
    CellSpool, ImageCells, SpooledImage, cell_bytes, cells_of, cells_with_differences, read_cells,
};
pub(crate) use change::RowImages;
pub(crate) use effect::{EffectRecord, RowPlace};
pub(crate) use fields::{RecordFields, broken, put_sized};
pub(crate) use folded::{
    FoldRecord, FoldSide, FoldSides, FoldTableFields, NetImage, NetRow, OrderedRow, PassedEvent,
};
pub(crate) use frame::{RecordReader, each_record, put};
pub(crate) use logged::{LoggedChange, LoggedImages};
pub(crate) use map::{TABLE_MAP_POST_HEADER_LENGTH, family_of_kept, kept_map, map_of_kept, schema_of_kept};
pub(crate) use reference::{CarriedParent, RowReference};
pub(crate) use script::{ScriptReader, ScriptRecord, ScriptRow};
pub(crate) use shown::ShownRow;
pub(crate) use statement::ScriptChange;
pub(crate) use touch::{KeyRecord, KeyState, TouchOfTable, put_no_key};
