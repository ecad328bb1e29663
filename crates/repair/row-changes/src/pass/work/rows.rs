//! The rows of an event: the records that a worker makes of each.

use std::sync::Arc;

use binlogz_binlog::event::{RowsEvent, RowsFlags, ServerFamily};
use binlogz_binlog::row::{Row, TableSchema, count_rows};
use binlogz_flow::events::Event;
use binlogz_payload::Spool;
use binlogz_schema::HistoryPlace;

use super::references::EventReferences;
use super::{PassWorker, is_among, record_table};
use crate::choose::{ConditionError, Operation, RowSelection};
use crate::pass::Error;
use crate::pass::renderer::{Renderer, RowRendering, TableRow};
use crate::pass::replaced::{UNSURE, may_give_defaults};
use crate::pass::tables_then::written_table;
use crate::record::{BatchRecord, RowAt, RowFlags, RowImages, RowKeys, cells_with_differences};
use crate::table::{Structure, WrittenTable};

impl<R: Renderer> PassWorker<'_, R> {
    /// Makes the records of an event's rows.
    pub(super) fn rows(
        &mut self,
        event: &Event<'_>,
        (schema, rows): (&Arc<TableSchema>, &RowsEvent<'_>),
        records: &mut Spool,
    ) -> Result<(), Error> {
        let operation = Operation::of(rows.kind());
        let is_chosen = self.is_chosen && self.selection.has_operation(operation);
        let is_followed = self.renderer.followed().is_some_and(|followed| {
            let [database, table] =
                [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name));
            is_among(followed, &database, &table)
        });
        let is_wanted = is_chosen || is_followed || self.renderer.digests().is_some();
        if !is_wanted || !self.selection.has_table(&schema.database, &schema.table) {
            return Ok(());
        }
        self.meet(event, schema);
        if is_followed {
            self.put_images_table(event, rows, records)?;
        }
        if is_chosen {
            self.put_table(rows, records)?;
        }
        let references = if is_chosen { self.references(event, operation) } else { None };
        let Some(table) = &self.table else { return Ok(()) };
        let mut decoded = match self.decoder.rows(schema, rows) {
            Ok(decoded) => decoded,
            Err(error) => {
                if is_followed {
                    let why = format!("{} at {}: {error}", event.header.event_type, event.position.offset);
                    BatchRecord::LostImages(record_table(schema), why.as_bytes()).put(records)?;
                }
                // Of what wasn't chosen nothing is missed.
                if is_chosen {
                    event.unread(schema, &error);
                }
                return Ok(());
            }
        };
        let wants_next = is_chosen && self.renderer.follows_replaced();
        // Images as they were logged are of the table as it was, whatever is known of that.
        let unsettled = if self.renderer.needs_table_maps() { RowFlags::SETTLED } else { 0 };
        let mut of_row = RowRecords {
            selection: self.selection,
            renderer: self.renderer,
            event,
            table,
            operation,
            is_chosen,
            is_followed,
            flags: flags_of(schema, rows, table) & !unsettled,
            references,
            last_replaced: if wants_next { last_replaced(schema, rows) } else { None },
            may_replace: wants_next && may_replace(rows),
            text: &mut self.text,
            records,
        };
        let mut number = 0;
        while let Some(row) = decoded.next_row().map_err(|error| Error::Log(event.error(error)))? {
            of_row.put(&row, number)?;
            number += 1;
        }
        Ok(())
    }

    /// Makes the table of an event's rows the current one.
    fn meet(&mut self, event: &Event<'_>, schema: &Arc<TableSchema>) {
        if self.table.as_ref().is_some_and(|table| Arc::ptr_eq(&table.schema, schema)) {
            return;
        }
        let place = HistoryPlace { log: self.log_number, offset: event.position.offset };
        let table = written_table(schema, (self.schema, self.history), place);
        self.table = Some(WrittenTable { place, ..table });
        self.has_told_table = false;
        self.has_told_images = false;
    }

    /// Tells of the current table as the one of images, unless the records have that.
    fn put_images_table(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        records: &mut Spool,
    ) -> Result<(), Error> {
        if !self.has_told_images {
            let map = self.maps.get(&rows.table_id).map_or(&[][..], Vec::as_slice);
            BatchRecord::ImagesTable(event.position.offset, map).put(records)?;
            self.has_told_images = true;
        }
        Ok(())
    }

    /// Tells of the current table as the one of chosen rows, unless the records have that.
    fn put_table(&mut self, rows: &RowsEvent<'_>, records: &mut Spool) -> Result<(), Error> {
        let Some(table) = self.table.as_ref().filter(|_| !self.has_told_table) else { return Ok(()) };
        let structure = Structure::of_written(table);
        BatchRecord::Table(structure, record_table(&table.schema)).put(records)?;
        if let Some(map) = self.maps.get(&rows.table_id).filter(|_| self.renderer.needs_table_maps()) {
            BatchRecord::TableMap(map).put(records)?;
        }
        self.has_told_table = true;
        Ok(())
    }
}

/// The flags of all rows of an event.
fn flags_of(schema: &TableSchema, rows: &RowsEvent<'_>, table: &WrittenTable) -> u8 {
    let is_unchecked = rows.flags.contains(RowsFlags::NO_FOREIGN_KEY_CHECKS)
        || may_be_cascaded_unflagged(schema, rows, table);
    [
        (is_unchecked, RowFlags::NO_FOREIGN_KEYS),
        (rows.flags.contains(RowsFlags::USE_SQL_FOREIGN_KEY), RowFlags::SQL_FOREIGN_KEYS),
        (rows.flags.contains(RowsFlags::STMT_END), RowFlags::ENDS_STATEMENT),
        (Operation::of(rows.kind()) == Operation::Update, RowFlags::UPDATE),
        (table.is_settled, RowFlags::SETTLED),
    ]
    .into_iter()
    .filter(|(is, _)| *is)
    .fold(0, |flags, (_, flag)| flags | flag)
}

/// Whether a foreign key may have deleted rows of an event that says nothing of it. The rows that a cascade deletes in the table of the
/// statement stand in one event with those that the statement itself deletes, the children in front of theirs and behind their parents.
fn may_be_cascaded_unflagged(schema: &TableSchema, rows: &RowsEvent<'_>, table: &WrittenTable) -> bool {
    let is_cascading = table.cascades_to_itself
        && Operation::of(rows.kind()) == Operation::Delete
        && rows.flags.contains(RowsFlags::USE_SQL_FOREIGN_KEY);
    // The last row is one that the statement itself deleted.
    is_cascading
        && !(rows.flags.contains(RowsFlags::STMT_END) && count_rows(schema, rows).is_ok_and(|it| it == 1))
}

/// The number of an event's last row, if REPLACE may have deleted it.
fn last_replaced(schema: &TableSchema, rows: &RowsEvent<'_>) -> Option<u64> {
    // Rows that can't be counted can't be read below either.
    if may_be_replaced(rows) { count_rows(schema, rows).ok()?.checked_sub(1) } else { None }
}

/// Whether REPLACE may have deleted the rows of an event. It deletes rows like that.
fn may_be_replaced(rows: &RowsEvent<'_>) -> bool {
    Operation::of(rows.kind()) == Operation::Delete
        && rows.flags.contains(RowsFlags::USE_SQL_FOREIGN_KEY)
        && !rows.flags.contains(RowsFlags::STMT_END)
}

/// Whether REPLACE may have inserted the first row of an event.
fn may_replace(rows: &RowsEvent<'_>) -> bool {
    Operation::of(rows.kind()) == Operation::Insert && rows.flags.contains(RowsFlags::USE_SQL_FOREIGN_KEY)
}

/// The maker of the records of an event's rows.
struct RowRecords<'w, R> {
    selection: &'w RowSelection,
    renderer: &'w R,
    event: &'w Event<'w>,
    table: &'w WrittenTable,
    operation: Operation,
    /// Whether the transaction and the operation are chosen.
    is_chosen: bool,
    /// Whether the images of all rows are passed on.
    is_followed: bool,
    /// The flags of all rows.
    flags: u8,
    /// The number of the last row, where it matters what the log has after it.
    last_replaced: Option<u64>,
    /// Whether REPLACE may have inserted the first row, where that matters.
    may_replace: bool,
    /// The table's foreign keys, where it matters what the rows refer to.
    references: Option<EventReferences<'w>>,
    text: &'w mut Vec<u8>,
    records: &'w mut Spool,
}

impl<R: Renderer> RowRecords<'_, R> {
    /// Makes those of a row, which has this number in its event.
    fn put(&mut self, row: &Row<'_, '_>, number: u64) -> Result<(), Error> {
        let is_mariadb = self.event.log.lengths.family() == ServerFamily::Mariadb;
        let is_unsure = is_mariadb && may_give_defaults(self.table, self.operation, row);
        let choice = match self.is_chosen {
            true if is_unsure && self.selection.condition.is_some() => unsure_choice(self.renderer)?,
            true => choice_of(self.selection, self.renderer, self.table, row)?,
            false => RowChoice::Left,
        };
        let is_chosen = !matches!(choice, RowChoice::Left);
        if self.is_followed {
            let width = self.table.schema.columns().len();
            let [before, after] =
                [row.before, row.after].map(|image| image.map(|image| cells_with_differences(&image, width)));
            let images = RowImages { operation: self.operation, before, after };
            BatchRecord::Image(images).put(self.records)?;
        }
        if let RowChoice::Undecided(why) = choice {
            BatchRecord::Undecided(why.as_bytes()).put(self.records)?;
        }
        if let Some(references) = self.references.as_ref().filter(|_| is_chosen) {
            BatchRecord::References(references.of_row(&self.table.schema, row)).put(self.records)?;
        }
        if let Some(digests) = self.renderer.digests() {
            let digests = self.renderer.digests_of_row(digests, self.table, row);
            let keys = RowKeys { is_chosen, digests, table: record_table(&self.table.schema) };
            BatchRecord::Keys(keys).put(self.records)?;
        }
        if is_chosen { self.put_text(row, number, is_unsure) } else { Ok(()) }
    }

    /// Passes on a chosen row's text.
    fn put_text(&mut self, row: &Row<'_, '_>, number: u64, is_unsure: bool) -> Result<(), Error> {
        self.text.clear();
        let is_last_replaced = self.last_replaced == Some(number);
        let keys = match is_last_replaced || self.may_replace && number == 0 {
            true => self.renderer.digest_of_keys(self.table, row),
            false => 0,
        };
        let row = TableRow { table: self.table, operation: self.operation, row };
        let rendering = match is_unsure {
            true => self.renderer.render_unsure(row, None, self.text),
            false => {
                let mut pass_on = |text: &mut Vec<u8>| {
                    BatchRecord::RowPart(text).put(self.records)?;
                    text.clear();
                    Ok(())
                };
                self.renderer.render_in_parts(row, self.text, &mut pass_on)?
            }
        };
        let flags = match rendering {
            RowRendering::Nothing => return Ok(()),
            RowRendering::Lacking(flags) => {
                BatchRecord::Lacking.put(self.records)?;
                flags
            }
            RowRendering::Text(flags) => flags,
        };
        let inside = self.event.position.inside.map(|inside| inside.index);
        let next_event = match inside {
            Some(index) => index + 1,
            None => self.event.position.offset + u64::from(self.event.header.event_size),
        };
        let row = RowAt {
            offset: self.event.position.offset,
            inside,
            row: number,
            next_event: is_last_replaced.then_some(next_event),
            timestamp: self.event.header.timestamp,
            flags: RowFlags(self.flags | flags),
            may_be_replaced: self.last_replaced.is_some(),
            may_replace: self.may_replace && number == 0,
            keys,
            text: self.text,
        };
        Ok(BatchRecord::Row(row).put(self.records)?)
    }
}

/// Whether a row is one of those asked for, if its transaction is.
pub(super) enum RowChoice {
    Chosen,
    Left,
    /// The row's images lack columns that the condition needs; the text names them.
    Undecided(String),
}

pub(super) fn choice_of<R: Renderer>(
    selection: &RowSelection,
    renderer: &R,
    table: &WrittenTable,
    row: &Row<'_, '_>,
) -> Result<RowChoice, Error> {
    match selection.has_row(table, row) {
        Ok(true) => Ok(RowChoice::Chosen),
        Ok(false) => Ok(RowChoice::Left),
        Err(error @ ConditionError::NotLogged { .. }) if renderer.defers_conditions() => {
            Ok(RowChoice::Undecided(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// The choice of an update by a condition, if it isn't known what columns have after it.
fn unsure_choice<R: Renderer>(renderer: &R) -> Result<RowChoice, Error> {
    match renderer.defers_conditions() {
        true => Ok(RowChoice::Undecided(UNSURE.to_owned())),
        false => Err(Error::Refused(UNSURE.to_owned())),
    }
}
