//! Statements as text, and the settings and files they need.

mod load;
mod query;
mod session_variables;
mod status_variables;

pub use load::{DeleteFileEvent, DuplicateHandling, ExecuteLoadQueryEvent, LoadBlockEvent};
pub use query::QueryEvent;
pub use session_variables::{
    IntvarEvent, IntvarVariable, RandEvent, UserVarEvent, UserVarType, UserVarValue,
};
pub use status_variables::{
    Flags2, MariaDbAlterStep, OVER_MAX_UPDATED_DBS, StatusVariable, StatusVariables, UpdatedDatabases,
};
