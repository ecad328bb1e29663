//! The row changes of a log, those in compressed transactions too, one after the other.

use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};
use std::ptr;

use binlogz_binlog::event::RowsKind;
use binlogz_binlog::row::{Row, RowImage};
use binlogz_flow::{Input, RowChange, RowChanges, RowPosition};

use crate::status::{Result, Trouble, binlogz_status, c_string, called, pointed, text};
use crate::value::{Kept, binlogz_value, value};

/// The row changes of a log, decoded on all cores, in order. Closed with binlogz_changes_close().
pub struct binlogz_changes {
    path: PathBuf,
    changes: RowChanges,
    current: Option<Current>,
    kept: Kept,
}

/// The change that was given last, and what was given of it.
struct Current {
    change: RowChange,
    position: CString,
    gtid: Option<CString>,
    database: CString,
    table: CString,
    /// The names that were asked for.
    names: Vec<CString>,
}

/// What was done to a row.
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
    /// What was done.
    pub operation: binlogz_operation,
    /// Seconds since 1970 at which the statement began.
    pub timestamp: u32,
    /// How many columns the table has.
    pub columns: usize,
    /// Its place in the log, for binlogz_changes_open(): the same whenever this log is read.
    pub position: *const c_char,
    /// The GTID of its transaction; NULL if it is anonymous.
    pub gtid: *const c_char,
    /// Its database.
    pub database: *const c_char,
    /// Its table.
    pub table: *const c_char,
}

/// A column of a table.
#[repr(C)]
#[derive(Debug)]
pub struct binlogz_column {
    /// Its name; NULL if the log has none (binlog_row_metadata=MINIMAL). It holds until the next change.
    pub name: *const c_char,
    /// Whether it is part of the primary key, as far as the log says.
    pub in_primary_key: bool,
}

/// Opens a binary or relay log. With after, the position of a change, those up to it are left out; NULL begins at the
/// beginning. A log in use ends with its last whole event.
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
        let (path, handle) = unsafe { (Path::new(text(path, "path")?), pointed(changes, "changes")?) };
        let after = match after.is_null() {
            true => None,
            // SAFETY: as above.
            false => Some(position(unsafe { text(after, "after") }?)?),
        };
        let input = Input::open(path).map_err(|error| Trouble::io(path, &error))?;
        let changes = match after {
            Some(after) => RowChanges::after(input, after),
            None => RowChanges::new(input),
        };
        let (path, current, kept) = (path.to_owned(), None, Kept::default());
        *handle = Box::into_raw(Box::new(binlogz_changes { path, changes, current, kept }));
        Ok(binlogz_status::BINLOGZ_OK)
    })
}

fn position(text: &str) -> Result<RowPosition> {
    text.parse().map_err(|error| Trouble::argument(format!("after: {error}")))
}

/// The next change. BINLOGZ_END after the last one, and after a failure.
///
/// # Safety
///
/// changes is open, change points to where the answer goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_next(
    changes: *mut binlogz_changes,
    change: *mut binlogz_change,
) -> binlogz_status {
    called(|| {
        // SAFETY: the caller keeps to it.
        let (changes, answer) = unsafe { (pointed(changes, "changes")?, pointed(change, "change")?) };
        changes.kept.clear();
        changes.current = None;
        let Some(next) = changes.changes.next() else { return Ok(binlogz_status::BINLOGZ_END) };
        let change = next.map_err(|error| Trouble::in_log(&changes.path, &error))?;
        let current = changes.current.insert(Current {
            position: c_string(change.position.to_string()),
            gtid: change.gtid.as_ref().map(|gtid| c_string(gtid.to_string())),
            database: c_string(&*change.table().database),
            table: c_string(&*change.table().table),
            names: Vec::new(),
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
    })
}

/// A column of the change's table, counted from 0.
///
/// # Safety
///
/// changes is open, answer points to where the answer goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_column(
    changes: *mut binlogz_changes,
    column: usize,
    answer: *mut binlogz_column,
) -> binlogz_status {
    called(|| {
        // SAFETY: the caller keeps to it.
        let (changes, answer) = unsafe { (pointed(changes, "changes")?, pointed(answer, "answer")?) };
        let Current { change, names, .. } = changes.current()?.0;
        let column = change.table().columns().get(column).ok_or_else(|| no_column(change, column))?;
        let name = column.name.as_ref().map(|name| c_string(&**name));
        *answer = binlogz_column {
            // It stays where it is when the list grows: the list has its address alone.
            name: name.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
            in_primary_key: column.primary_key.is_some(),
        };
        names.extend(name);
        Ok(binlogz_status::BINLOGZ_OK)
    })
}

/// The value of a column, counted from 0, before the change.
///
/// # Safety
///
/// changes is open, value points to where the answer goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_before(
    changes: *mut binlogz_changes,
    column: usize,
    value: *mut binlogz_value,
) -> binlogz_status {
    // SAFETY: the caller keeps to it.
    called(|| unsafe { give(changes, |row| row.before, column, value) })
}

/// The value of a column, counted from 0, after the change.
///
/// # Safety
///
/// changes is open, value points to where the answer goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_after(
    changes: *mut binlogz_changes,
    column: usize,
    value: *mut binlogz_value,
) -> binlogz_status {
    // SAFETY: the caller keeps to it.
    called(|| unsafe { give(changes, |row| row.after, column, value) })
}

/// # Safety
///
/// As its callers'.
unsafe fn give(
    changes: *mut binlogz_changes,
    image: for<'r, 'a> fn(&Row<'r, 'a>) -> Option<RowImage<'r, 'a>>,
    column: usize,
    answer: *mut binlogz_value,
) -> Result<binlogz_status> {
    // SAFETY: the caller keeps to it.
    let (changes, answer) = unsafe { (pointed(changes, "changes")?, pointed(answer, "value")?) };
    let path = changes.path.clone();
    let (Current { change, .. }, kept) = changes.current()?;
    if column >= change.table().columns().len() {
        return Err(no_column(change, column));
    }
    let row = change.row();
    let cell = image(&row).and_then(|image| image.cell(column));
    let made = value(&row, cell, kept);
    *answer =
        made.map_err(|trouble| trouble.behind(&format!("{} at {}", path.display(), change.position)))?;
    Ok(binlogz_status::BINLOGZ_OK)
}

fn no_column(change: &RowChange, column: usize) -> Trouble {
    let count = change.table().columns().len();
    Trouble::argument(format!("column is {column}, but {} has {count}", change.table_name()))
}

impl binlogz_changes {
    fn current(&mut self) -> Result<(&mut Current, &mut Kept)> {
        let current = self.current.as_mut().ok_or_else(|| Trouble::argument("there is no current change"))?;
        Ok((current, &mut self.kept))
    }
}

/// Closes it; the last change is gone. NULL is nothing.
///
/// # Safety
///
/// changes is open or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binlogz_changes_close(changes: *mut binlogz_changes) {
    if !changes.is_null() {
        // SAFETY: binlogz_changes_open() made it, and the caller doesn't use it again.
        drop(unsafe { Box::from_raw(changes) });
    }
}
