//! Takes row changes back, or makes them again: from binary logs to SQL.
//!
//! ```text
//! digest   digests of keys and values
//! owned_gtids  GTIDs of transactions that are being committed
//! text_values  values as a row has them, from their texts
//! table    what is known of a table: its map in the log, a schema file, a server
//! choose   which transactions and rows
//! record   rows and what belongs to them, as bytes in spools
//! sql      a row's images as a statement, values as literals
//! pass     one pass over logs on all cores: chosen rows, in order, with their transactions
//! log      a row's images as a row event has them, the events of a binary log
//! cascade  rows that foreign keys changed below the log
//! images   columns that images lack, from earlier images of the rows
//! apply    the session that applies changes to a server, its journal
//! script   what was chosen as a script or a binary log, the last transaction first where changes are taken back
//! life     the changes as they are, in their order, for people and programs
//! past     a table as it was: the live one, with later changes taken back by key
//! fold     a log with one net change for each row
//! erase    logs without the values of chosen rows
//! ```
//!
//! Modules only import from modules above them in this list. It opens no files: the caller hands it logs and takes text.

mod apply;
mod cascade;
mod choose;
mod digest;
mod erase;
mod fold;
mod images;
mod life;
mod log;
mod owned_gtids;
mod pass;
mod past;
mod record;
mod script;
mod sql;
mod table;
mod text_values;

pub use apply::{ApplyError, LogBytes, ServerLogs, SplitRows, SplitTables};
pub use cascade::FamilyError;
pub use choose::{
    Condition, ConditionError, Direction, Doubt, KeySpan, Operation, PassedTables, Range, RowSelection,
    WantedKeys,
};
pub use erase::{
    ChildReference, Eraser, ErasureAim, ErasureCounts, LogErasure, LoggedDefinitions, MayHold,
    NoDatabaseOfKey, StatementFinding, StatementFindings, TableCounts,
};
pub use fold::{BorderCount, Fold, FoldAim, FoldOptions, FoldSummary, FoldTables, LargestNumber};
pub use images::LiveRows;
pub use life::{Life, LifeFormat, StatementsAhead};
pub use pass::{CarryingKeys, Error};
pub use past::{
    CascadeDoubts, CascadingParent, ColumnValue, ColumnValues, DumpPlace, DumpedTable, EmptyTables, Forward,
    HeadError, LOG_BEGIN, LiveTable, LogHead, LoggedDatabases, LoggedStatements, PastError, PastFormat,
    PastMoment, PastSession, RestoreSteps, RestoredTables, TableColumnsNow, TableMoment, TableRoutes,
    TouchedKeys, TouchedOutcome, TouchedRows, WantedKeyValues, from_last_head, restore, server_logs,
};
pub use script::{
    AppliedChanges, ApplyOptions, ReadHistory, Script, ScriptForm, ScriptSummary, TableSummary,
};
pub use table::{
    ServerSchemaError, ServerTables, is_server, rights_lacking_on_all, sees_all_tables, server_schema,
};
