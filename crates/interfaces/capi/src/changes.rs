//! The row changes of a log, those in compressed transactions too, one after the other.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use binlogz_binlog::event::RowsKind;
use binlogz_binlog::row::{Cell, TableSchema};
use binlogz_flow::{Input, RowChange, RowChanges, RowPosition};

use crate::handles::Handles;
use crate::known_tables::TablesOfLog;
use crate::status::{CallTrouble, Result, binlogz_status, c_string, called, pointed, text};
use crate::value::{ImageSide, ValueTexts, binlogz_value, value};

/// The row changes of a log, decoded on all cores, in order. Closed with binlogz_changes_close().
pub struct binlogz_changes {
    _address: u8,
}

static OPEN: Handles<binlogz_changes, Changes> = Handles::new();

/// The changes of a log.
struct Changes {
    path: PathBuf,
    changes: RowChanges,
    /// The tables at each place, if a schema was given.
    tables: Option<TablesOfLog>,
    current: Option<Current>,
    kept: ValueTexts,
    /// Why there are no more changes, if that is not the end of the log: a program that overlooks it must not see the end.
    failed: Option<CallTrouble>,
}

/// The last change given to the caller, and the texts and values given with it.
struct Current {
    change: RowChange,
    /// The change's table as it was then, if a schema was given.
    known: Option<Result<Arc<TableSchema>>>,
    position: CString,
    gtid: Option<CString>,
    database: CString,
    table: CString,
    /// The names that were asked for, by column.
    names: BTreeMap<usize, Option<CString>>,
}

/// The kind of change to a row.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum binlogz_operation {
    /// There is an after-image.
    BINLOGZ_INSERT = 0,
    /// There are both images.
    BINLOGZ_UPDATE = 1,
    /// There is a before-image.
    BINLOGZ_DELETE = 2,
}

/// A row change. Its texts end with NUL and hold until the next change.
#[repr(C)]
#[derive(Debug)]
pub struct binlogz_change {
    /// The kind of change.
    pub operation: binlogz_operation,
    /// Seconds since 1970 at which the statement began.
    pub timestamp: u32,
    /// How many columns the table has.
    pub columns: usize,
    /// The row's place in the log, for binlogz_changes_open(): the same whenever this log is read.
    pub position: *const c_char,
    /// The GTID of its transaction; NULL if it is anonymous.
    pub gtid: *const c_char,
    /// Name of the row's database.
    pub database: *const c_char,
    /// Name of the row's table.
    pub table: *const c_char,
}

/// The fields of a change that isn't there.
const NO_CHANGE: binlogz_change = binlogz_change {
    operation: binlogz_operation::BINLOGZ_INSERT,
    timestamp: 0,
    columns: 0,
    position: ptr::null(),
    gtid: ptr::null(),
    database: ptr::null(),
    table: ptr::null(),
};

/// A column of a table.
#[repr(C)]
#[derive(Debug)]
pub struct binlogz_column {
    /// Name of the column; NULL if neither the log (binlog_row_metadata=MINIMAL) nor a schema has one. It holds until the next
    /// change.
    pub name: *const c_char,
    /// Whether it is part of the primary key, as far as the log says.
    pub in_primary_key: bool,
}

/// Opens a binary or relay log. With after, the position of a change, those up to it are left out; NULL begins at the
/// beginning. A log in use ends with its last whole event. After any failure the handle is NULL.
///
/// # Safety
///
/// path is a string, after a string or NULL, changes points to where the handle goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_open(
    path: *const c_char,
    after: *const c_char,
    changes: *mut *mut binlogz_changes,
) -> binlogz_status {
    called(|| {
        // SAFETY: the caller keeps to it.
        let handle = unsafe { pointed(changes, "changes") }?;
        *handle = ptr::null_mut();
        // SAFETY: as above.
        let path = Path::new(unsafe { text(path, "path") }?);
        let after = match after.is_null() {
            true => None,
            // SAFETY: as above.
            false => Some(position(unsafe { text(after, "after") }?)?),
        };
        let input = Input::open(path).map_err(|error| CallTrouble::io(path, &error))?;
        let changes = match after {
            Some(after) => RowChanges::after(input, after),
            None => RowChanges::new(input),
        };
        let path = path.to_owned();
        let kept = ValueTexts::default();
        let changes = Changes { path, changes, tables: None, current: None, kept, failed: None };
        *handle = OPEN.open(binlogz_changes { _address: 0 }, changes);
        Ok(binlogz_status::BINLOGZ_OK)
    })
}

/// Names columns, and members of ENUM and SET, that the log doesn't name (binlog_row_metadata=MINIMAL), from the next change on. schema is the
/// path of a file of CREATE TABLE statements, as mysqldump --no-data writes them: the tables as they are after the last statement of the
/// log. The log, a file, is read once more for the statements that changed tables: each row has the columns of its place.
///
/// # Safety
///
/// schema is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_schema(
    changes: *mut binlogz_changes,
    schema: *const c_char,
) -> binlogz_status {
    called(|| {
        // SAFETY: the caller keeps to it.
        let schema = Path::new(unsafe { text(schema, "schema") }?);
        OPEN.with(changes, "changes", |changes| {
            changes.tables = Some(TablesOfLog::read(&changes.path, schema)?);
            Ok(binlogz_status::BINLOGZ_OK)
        })
    })
}

fn position(text: &str) -> Result<RowPosition> {
    text.parse().map_err(|error| CallTrouble::argument(format!("after: {error}")))
}

/// The next change. BINLOGZ_END after the last one; after a failure, the same failure again. BINLOGZ_UNREAD comes in place of BINLOGZ_END if
/// the log may hold changes that could not be read. Without a change all fields are 0 and NULL.
///
/// # Safety
///
/// change points to where the answer goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_next(
    changes: *mut binlogz_changes,
    change: *mut binlogz_change,
) -> binlogz_status {
    called(|| {
        // SAFETY: the caller keeps to it.
        let answer = unsafe { pointed(change, "change") }?;
        *answer = NO_CHANGE;
        OPEN.with(changes, "changes", |changes| changes.next(answer))
    })
}

impl Changes {
    fn next(&mut self, answer: &mut binlogz_change) -> Result<binlogz_status> {
        self.kept.clear();
        self.current = None;
        if let Some(trouble) = &self.failed {
            return Err(trouble.clone());
        }
        let change = match self.changes.next() {
            None => return Ok(binlogz_status::BINLOGZ_END),
            Some(Ok(change)) => change,
            Some(Err(error)) => {
                return Err(self.failed.insert(CallTrouble::in_log(&self.path, &error)).clone());
            }
        };
        let current = self.current.insert(Current {
            position: c_string(change.position.to_string()),
            gtid: change.gtid.as_ref().map(|gtid| c_string(gtid.to_string())),
            database: c_string(&*change.table().database),
            table: c_string(&*change.table().table),
            names: BTreeMap::new(),
            known: self.tables.as_mut().map(|tables| tables.of_change(&change)),
            change,
        });
        *answer = binlogz_change {
            operation: match current.change.kind {
                RowsKind::Write => binlogz_operation::BINLOGZ_INSERT,
                RowsKind::Update | RowsKind::PartialUpdate => binlogz_operation::BINLOGZ_UPDATE,
                RowsKind::Delete => binlogz_operation::BINLOGZ_DELETE,
            },
            timestamp: current.change.timestamp,
            columns: current.change.table().columns().len(),
            position: current.position.as_ptr(),
            gtid: current.gtid.as_ref().map_or(ptr::null(), |gtid| gtid.as_ptr()),
            database: current.database.as_ptr(),
            table: current.table.as_ptr(),
        };
        Ok(binlogz_status::BINLOGZ_OK)
    }

    fn current(&mut self) -> Result<&mut Current> {
        self.current.as_mut().ok_or_else(|| CallTrouble::argument("there is no current change"))
    }
}

/// A column of the change's table, counted from 0. Without one the answer is NULL and false. With a schema, a table whose columns at this
/// place aren't known is BINLOGZ_BAD_INPUT: the message says why. Its ENUMs and SETs are BINLOGZ_NATURAL.
///
/// # Safety
///
/// answer points to where the answer goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_column(
    changes: *mut binlogz_changes,
    column: usize,
    answer: *mut binlogz_column,
) -> binlogz_status {
    called(|| {
        // SAFETY: the caller keeps to it.
        let answer = unsafe { pointed(answer, "answer") }?;
        *answer = binlogz_column { name: ptr::null(), in_primary_key: false };
        OPEN.with(changes, "changes", |changes| {
            let Current { change, known, names, .. } = changes.current()?;
            let table = match known {
                None => change.table(),
                Some(Ok(table)) => table,
                Some(Err(trouble)) => return Err(trouble.clone().behind(&format!("at {}", change.position))),
            };
            let described = table.columns().get(column).ok_or_else(|| no_column(change, column))?;
            let name = || described.name.as_ref().map(|name| c_string(&**name));
            let name = names.entry(column).or_insert_with(name);
            *answer = binlogz_column {
                // It stays where it is when there are more: the list has its address alone.
                name: name.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
                in_primary_key: described.primary_key.is_some(),
            };
            Ok(binlogz_status::BINLOGZ_OK)
        })
    })
}

/// The value of a column, counted from 0, before the change. After a failure it is BINLOGZ_ABSENT.
///
/// # Safety
///
/// value points to where the answer goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_before(
    changes: *mut binlogz_changes,
    column: usize,
    value: *mut binlogz_value,
) -> binlogz_status {
    // SAFETY: the caller keeps to it.
    called(|| unsafe { give(changes, ImageSide::Before, column, value) })
}

/// The value of a column, counted from 0, after the change. After a failure it is BINLOGZ_ABSENT.
///
/// # Safety
///
/// value points to where the answer goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_after(
    changes: *mut binlogz_changes,
    column: usize,
    value: *mut binlogz_value,
) -> binlogz_status {
    // SAFETY: the caller keeps to it.
    called(|| unsafe { give(changes, ImageSide::After, column, value) })
}

/// # Safety
///
/// As its callers'.
unsafe fn give(
    changes: *mut binlogz_changes,
    side: ImageSide,
    column: usize,
    answer: *mut binlogz_value,
) -> Result<binlogz_status> {
    // SAFETY: the caller keeps to it.
    let answer = unsafe { pointed(answer, "value") }?;
    *answer = binlogz_value::ABSENT;
    OPEN.with(changes, "changes", |changes| {
        *answer = changes.value(side, column)?;
        Ok(binlogz_status::BINLOGZ_OK)
    })
}

impl Changes {
    fn value(&mut self, side: ImageSide, column: usize) -> Result<binlogz_value> {
        let Some(Current { change, known, .. }) = &self.current else {
            return Err(CallTrouble::argument("there is no current change"));
        };
        if column >= change.table().columns().len() {
            return Err(no_column(change, column));
        }
        let made = self.kept.value((side, column), || {
            let row = change.row();
            let image = match side {
                ImageSide::Before => row.before,
                ImageSide::After => row.after,
            };
            let cell = image.and_then(|image| image.cell(column));
            value(&row, cell.map(|cell| described(cell, known.as_ref())))
        });
        made.map_err(|trouble| trouble.behind(&format!("{} at {}", self.path.display(), change.position)))
    }
}

/// A cell with the column as a schema tells it.
fn described<'c>(cell: Cell<'c>, known: Option<&'c Result<Arc<TableSchema>>>) -> Cell<'c> {
    match known.and_then(|known| known.as_ref().ok()?.columns().get(cell.index)) {
        Some(column) => Cell { column, ..cell },
        None => cell,
    }
}

fn no_column(change: &RowChange, column: usize) -> CallTrouble {
    let count = change.table().columns().len();
    CallTrouble::argument(format!("column is {column}, but {} has {count}", change.table_name()))
}

/// Closes it; the last change is gone. NULL, or one that was closed before, is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn binlogz_changes_close(changes: *mut binlogz_changes) {
    OPEN.close(changes);
}
