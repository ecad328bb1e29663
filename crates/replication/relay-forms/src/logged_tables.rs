//! The tables at places of stored logs, as the statements before each place define them.
//!
//! A source that logs no names of columns (`binlog_row_metadata=MINIMAL`, the default) tells them by its CREATE TABLE statements alone. Whoever
//! begins in the middle of a log has to know those before: they are read from the nearest place that is known, header by header.

use std::io::Read;
use std::ops::Range;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventClass, EventHeader};
use binlogz_exits::{ExitError, note_statement};
use binlogz_relay_log::{Error, LineageLog, Result, StoredHead, verified};
use binlogz_schema::TablesSoFar;
use binlogz_store::FileNumber;
use parking_lot::Mutex;

/// Places that are remembered.
const PLACES_MAX: usize = 16;
/// No CREATE TABLE is that long.
const STATEMENT_SIZE_MAX: u32 = 64 << 20;

/// An offset in a file; 0: before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TablesPlace {
    file: FileNumber,
    offset: u64,
}

impl Default for TablesPlace {
    fn default() -> Self {
        TablesPlace { file: FileNumber(0), offset: 0 }
    }
}

/// The tables at a place of the log with this id.
#[derive(Debug)]
struct KnownTables {
    log: u64,
    place: TablesPlace,
    tables: TablesSoFar,
}

/// The tables at some places of stored logs, in their order.
#[derive(Debug, Default)]
pub(crate) struct LoggedTables(Mutex<Vec<KnownTables>>);

impl LoggedTables {
    /// Remembers the tables at an offset of a file.
    pub(crate) fn note(&self, log: u64, (file, offset): (FileNumber, u64), tables: TablesSoFar) {
        let place = TablesPlace { file, offset };
        let mut known = self.0.lock();
        let Err(index) = known.binary_search_by_key(&(log, place), KnownTables::key) else { return };
        known.insert(index, KnownTables { log, place, tables });
        if known.len() > PLACES_MAX
            && let Some(index) = least_missed(&known, (log, place))
        {
            known.remove(index);
        }
    }

    /// The tables before this offset of a file.
    ///
    /// # Errors
    ///
    /// The log before that can't be read.
    pub(crate) fn at(&self, kept: &LineageLog, file: FileNumber, offset: u64) -> Result<TablesSoFar> {
        let (mut place, mut tables) = self.before(kept.id, (file, offset)).unwrap_or_default();
        let mut files: Vec<_> = kept.store.logs()?.into_iter().map(|log| log.number).collect();
        // One that was purged, and is back for a while.
        if !files.contains(&file) {
            files.push(file);
        }
        let first = place.file;
        for number in files.into_iter().filter(|number| (first..=file).contains(number)) {
            if number != place.file || place.offset == 0 {
                if number != place.file.next() {
                    tables = TablesSoFar::default();
                }
                place = TablesPlace { file: number, offset: begin_file(kept, number, &mut tables)? };
            }
            let end = if number == file { offset } else { kept.store.reader(number, 0)?.end()? };
            read_statements(kept, number, place.offset..end, &mut tables)
                .map_err(|error| error.in_stored(|| kept.store.names().log(number)))?;
            place.offset = place.offset.max(end);
            self.note(kept.id, (number, place.offset), tables.clone());
        }
        Ok(tables)
    }

    /// The nearest place that is known, at or before another one of a log.
    fn before(&self, log: u64, (file, offset): (FileNumber, u64)) -> Option<(TablesPlace, TablesSoFar)> {
        let known = self.0.lock();
        let wanted = (log, TablesPlace { file, offset });
        let before = known.partition_point(|known| known.key() <= wanted).checked_sub(1)?;
        let known = known.get(before).filter(|known| known.log == log)?;
        Some((known.place, known.tables.clone()))
    }
}

impl KnownTables {
    fn key(&self) -> (u64, TablesPlace) {
        (self.log, self.place)
    }

    /// How much would have to be read again if only the place before it were known: files, and bytes.
    fn distance(&self, before: Option<&KnownTables>) -> (u64, u64) {
        match before.filter(|before| before.log == self.log) {
            None => (u64::MAX, 0),
            Some(before) if before.place.file == self.place.file => {
                (0, self.place.offset.saturating_sub(before.place.offset))
            }
            Some(before) => (self.place.file.0.saturating_sub(before.place.file.0), self.place.offset),
        }
    }
}

/// The index of the place, other than the new one, that is nearest to the place before it.
fn least_missed(known: &[KnownTables], new: (u64, TablesPlace)) -> Option<usize> {
    let before = std::iter::once(None).chain(known.iter().map(Some));
    let others = known.iter().zip(before).enumerate().filter(|(_, (known, _))| known.key() != new);
    others.min_by_key(|(_, (known, before))| known.distance(*before)).map(|(index, _)| index)
}

/// Begins a file, after all before it; returns the offset of its first event after the format description.
fn begin_file(kept: &LineageLog, file: FileNumber, tables: &mut TablesSoFar) -> Result<u64> {
    let head = StoredHead::read(&kept.store, file)?;
    let name = kept.store.names().log(file);
    // The stored files follow one another, however the source ended them.
    tables.rotate_to(name.as_bytes());
    tables.begin_log(name.as_bytes());
    Ok(head.end())
}

/// Notes what the statements of a range do to tables. Of other events only the headers are read.
fn read_statements(
    kept: &LineageLog,
    file: FileNumber,
    range: Range<u64>,
    tables: &mut TablesSoFar,
) -> Result<()> {
    let framing = StoredHead::read(&kept.store, file)?.framing();
    let mut reader = kept.store.reader(file, range.start)?;
    let mut at = range.start;
    let mut event = Vec::new();
    while at < range.end {
        reader.seek_to(at);
        event.resize(HEADER_SIZE, 0);
        reader.read_exact(&mut event).map_err(Error::of_stored)?;
        let header = EventHeader::decode(&event).map_err(|error| error.at(at, None))?;
        framing.check_header(&header).map_err(|error| error.at(at, None))?;
        // In payloads there are no statements that define tables: the server doesn't compress them.
        if header.event_type.class() == EventClass::Statement && header.event_size <= STATEMENT_SIZE_MAX {
            event.resize(header.event_size as usize, 0);
            reader.read_exact(event.get_mut(HEADER_SIZE..).unwrap_or_default()).map_err(Error::of_stored)?;
            let frame = verified(&event, framing, at)?;
            note_statement(tables, at, frame.body()).map_err(|error| match error {
                ExitError::Event(error) => Error::Binlog(error.at(at, Some(header.event_type))),
                other => Error::Refused(other.to_string()),
            })?;
        }
        at += u64::from(header.event_size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_far_from_others_are_remembered_longest() {
        let tables = LoggedTables::default();
        let far = [(FileNumber(1), 4), (FileNumber(3), 4), (FileNumber(3), 1 << 30)];
        far.iter().for_each(|place| tables.note(1, *place, TablesSoFar::default()));
        for step in 0..100 {
            tables.note(1, (FileNumber(7), 4 + step * 1000), TablesSoFar::default());
        }
        let known = tables.0.lock();
        let known: Vec<_> = known.iter().map(|known| (known.place.file, known.place.offset)).collect();
        assert_eq!(known.len(), PLACES_MAX);
        assert!(far.iter().all(|place| known.contains(place)), "{known:?}");
        assert_eq!(known.last(), Some(&(FileNumber(7), 4 + 99 * 1000)));
    }
}
