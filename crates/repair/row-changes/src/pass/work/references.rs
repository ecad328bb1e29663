//! References of chosen rows to rows of other tables, and changes of such rows: later ones, which weren't chosen, may have changed the chosen
//! rows below the log.

use std::borrow::Cow;
use std::sync::Arc;

use binlogz_binlog::charset::Charset;
use binlogz_binlog::event::RowsEvent;
use binlogz_binlog::row::{CellContent, ColumnKind, ColumnSchema, Row, TableSchema};
use binlogz_flow::events::Event;
use binlogz_payload::Spool;
use binlogz_schema::{DefinedTable, HistoryPlace, TableThen};

use super::{PassWorker, changes_below};
use crate::choose::{Operation, Range};
use crate::digest::Digests;
use crate::pass::carried::KeyPlaces;
use crate::pass::carried_rows::EventOfParent;
use crate::pass::renderer::Renderer;
use crate::pass::tables_then::written_table;
use crate::pass::{CarryingKeys, Error, content};
use crate::record::{BatchRecord, CarriedParent, RowReference};
use crate::sql::defaults::{DefaultCell, default_cells};

/// The foreign keys of an event's table.
pub(super) struct EventReferences<'o> {
    digests: &'o Digests,
    keys: Vec<KeyPlaces>,
    /// What an INSERT gives columns that it leaves out.
    defaults: Vec<Option<DefaultCell>>,
}

impl EventReferences<'_> {
    /// The references of a row before and after its change.
    pub(super) fn of_row(&self, schema: &TableSchema, row: &Row<'_, '_>) -> Vec<RowReference> {
        let before = |index: usize| content(row.before, index);
        let after = |index: usize| match row.before {
            // The change left alone what the image after it lacks.
            Some(_) => content(row.after, index).or_else(|| before(index)),
            None => {
                let default = || self.defaults.get(index)?.as_ref().map(DefaultCell::content);
                content(row.after, index).or_else(default)
            }
        };
        let mut all = Vec::new();
        for places in &self.keys {
            let key = places.key;
            // An unknown value before the change can't be told apart from other references.
            if row.before.is_some()
                && let Some(digest @ Some(_)) = referred(self.digests, schema, places, before)
            {
                all.push(RowReference { is_after: false, key, digest });
            }
            if row.after.is_some()
                && let Some(digest) = referred(self.digests, schema, places, after)
            {
                all.push(RowReference { is_after: true, key, digest });
            }
        }
        all
    }
}

impl<'o, R: Renderer> PassWorker<'o, R> {
    /// Whether the transaction is chosen for certain, as far as a worker can tell.
    fn is_certainly_chosen(&self) -> bool {
        let selection = self.selection;
        self.is_chosen
            && selection.start_time.is_none()
            && selection.stop_time.is_none()
            && selection.stop_before_gtid.is_none()
            && selection.thread_ids.is_empty()
            && self.range == Range::WHOLE
    }

    /// Tells of rows of a parent that foreign keys carried on below the log, as far as chosen tables.
    pub(super) fn parents_changed(
        &mut self,
        event: &Event<'_>,
        (schema, rows): (&Arc<TableSchema>, &RowsEvent<'_>),
        records: &mut Spool,
    ) -> Result<(), Error> {
        let renderer = self.renderer;
        let reaches = |keys: &&CarryingKeys<'_>| keys.may_reach_from(&schema.database, &schema.table);
        let (true, Some(digests)) = (renderer.follows_references(), renderer.digests()) else {
            return Ok(());
        };
        let Some(keys) = self.carrying.filter(reaches) else { return Ok(()) };
        // Chosen transactions are left out: their effects below the log are told elsewhere.
        if !changes_below(rows) || self.is_certainly_chosen() {
            return Ok(());
        }
        let operation = Operation::of(rows.kind());
        let place = HistoryPlace { log: self.log_number, offset: event.position.offset };
        let table = written_table(schema, (self.schema, self.history), place);
        let told = self.schema.and_then(|file| file.table(&schema.database, &schema.table));
        let mut decoded = match self.decoder.rows(schema, rows) {
            Ok(decoded) => decoded,
            Err(error) => {
                event.unread(schema, &error);
                return Ok(());
            }
        };
        let source = &event.log.description;
        let keys = keys.reaching(&EventOfParent { source, place, operation, table: &table, told });
        while let Some(row) = decoded.next_row().map_err(|error| Error::Log(event.error(error)))? {
            for places in keys.of_row(&row) {
                let before = |index: usize| content(row.before, index);
                // Nothing refers to a row that has NULL there.
                if let Some(digest) = referred(digests, schema, places, before) {
                    BatchRecord::ParentChanged(CarriedParent { key: places.key, operation, digest })
                        .put(records)?;
                }
            }
        }
        Ok(())
    }

    /// The foreign keys of the table of an event's rows by which it matters what they refer to; `None`: it has none.
    pub(super) fn references(&self, event: &Event<'_>, operation: Operation) -> Option<EventReferences<'o>> {
        let renderer = self.renderer;
        let digests = renderer.digests().filter(|_| renderer.follows_references())?;
        let table = self.table.as_ref()?;
        let schema = &table.schema;
        let place = HistoryPlace { log: self.log_number, offset: event.position.offset };
        let told = self.schema.and_then(|file| file.table(&schema.database, &schema.table));
        let source = &event.log.description;
        let of_event = EventOfParent { source, place, operation, table, told };
        let keys = self.carrying?.referring(&of_event);
        if keys.is_empty() {
            return None;
        }
        let defaults = match operation {
            Operation::Insert => default_cells(schema, self.told_at(place, schema).or(told)),
            Operation::Update | Operation::Delete => Vec::new(),
        };
        Some(EventReferences { digests, keys, defaults })
    }

    fn told_at(&self, place: HistoryPlace, schema: &TableSchema) -> Option<&'o DefinedTable> {
        let [database, table] = [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name));
        match self.history?.history.at(place, &database, &table) {
            TableThen::Known(then) => Some(then),
            TableThen::UnknownSince(_) | TableThen::Disagrees(_) | TableThen::NotTold => None,
        }
    }
}

/// The digest of what a foreign key's columns have; `None`: one is NULL, which refers to nothing. Within: `None`: it isn't known.
fn referred<'a>(
    digests: &Digests,
    schema: &TableSchema,
    places: &KeyPlaces,
    cell: impl Fn(usize) -> Option<CellContent<'a>>,
) -> Option<Option<u128>> {
    let Some(columns) = &places.columns else { return Some(None) };
    let mut values = Vec::new();
    let mut is_known = true;
    for index in columns {
        let value = match (cell(*index), schema.columns().get(*index)) {
            (Some(CellContent::Null), _) => return None,
            (Some(CellContent::Value(bytes)), Some(column)) => compared(column, bytes),
            (Some(CellContent::Value(_) | CellContent::JsonDiffs(_)) | None, _) => None,
        };
        is_known &= value.is_some();
        values.extend(value);
    }
    Some(is_known.then(|| digests.of((places.key, &values))))
}

/// The bytes of a value that are the same in a child and in its parent if, and only if, a foreign key takes the values for equal. `None`: that
/// can't be told by bytes.
fn compared<'a>(column: &ColumnSchema, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    use ColumnKind as Kind;
    match column.kind {
        // Servers want the same size and sign on both sides.
        Kind::TinyInt { .. }
        | Kind::SmallInt { .. }
        | Kind::MediumInt { .. }
        | Kind::Int { .. }
        | Kind::BigInt { .. }
        | Kind::Decimal(_)
        | Kind::Bit { .. }
        | Kind::Year
        | Kind::Date
        | Kind::Enum { .. }
        | Kind::Set { .. } => Some(bytes.into()),
        Kind::Char { .. } | Kind::Varchar { .. } => match column.charset() {
            Some(Charset::Binary) => Some(trimmed(bytes, 0).into()),
            Some(_) | None => compared_text(bytes).map(Cow::Owned),
        },
        // The other side may have other fractions.
        Kind::Time { .. }
        | Kind::DateTime { .. }
        | Kind::Timestamp { .. }
        | Kind::OldTime
        | Kind::OldDateTime
        | Kind::OldTimestamp
        | Kind::Float
        | Kind::Double
        | Kind::Blob { .. }
        | Kind::Json { .. }
        | Kind::Geometry { .. }
        | Kind::Vector { .. }
        | Kind::TypedArray
        | Kind::Null => None,
    }
}

/// A text of ASCII, so that whatever differs is another text in every collation: small and capital letters, spaces at the end, y and i
/// (Lithuanian), w and v (Swedish) may be the same.
fn compared_text(bytes: &[u8]) -> Option<Vec<u8>> {
    let letter = |byte: &u8| match byte.to_ascii_lowercase() {
        b'y' => b'i',
        b'w' => b'v',
        other => other,
    };
    let is_ascii = bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
    is_ascii.then(|| trimmed(bytes, b' ').iter().map(letter).collect())
}

/// The bytes without those at the end that are this one.
fn trimmed(bytes: &[u8], end: u8) -> &[u8] {
    let size = bytes.iter().rposition(|byte| *byte != end).map_or(0, |last| last + 1);
    bytes.get(..size).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_a_collation_may_take_for_equal_are_one() {
        for (one, other, is_same) in [
            ("Ab-1", "aB-1  ", true),
            ("ya", "IA", true),
            ("wa", "va", true),
            ("ab", "abc", false),
            ("a b", "ab", false),
        ] {
            assert_eq!(
                compared_text(one.as_bytes()) == compared_text(other.as_bytes()),
                is_same,
                "{one} {other}"
            );
        }
        assert_eq!(compared_text("é".as_bytes()), None);
        assert_eq!(compared_text(b"a\0"), None, "some collations pass over it");
        assert_eq!((trimmed(b"a\0\0", 0), trimmed(b"\0", 0)), (&b"a"[..], &b""[..]));
    }
}
