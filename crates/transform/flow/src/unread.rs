//! Changes that a log may hold and that could not be read: noted as events go by, handed over at the end of a run.
//!
//! ```text
//! batch      an event that may hold changes and can't be decoded → noted, here; the caller's work may note more
//! caller     an event that isn't asked for → its notes are taken back (Event::pass_over)
//! end        UnreadChanges: one entry for each table, type and reason, which the caller must take
//! ```
//!
//! Law 8: nothing that may be a change is passed over in silence. Memory is bounded: the first entries have names,
//! all others are counted.

use std::collections::BTreeMap;
use std::fmt;

use binlogz_binlog::event::{IncidentEvent, LeftOutStatement, LeftOutTable};
use binlogz_binlog::row::TableSchema;
use binlogz_binlog::{ChangeContent, Error as BinlogError, EventHeader, EventType, HeaderFlags};
use parking_lot::Mutex;

use crate::position::EventPosition;

/// Entries that are named; events of further ones are counted.
const NAMED_MAX: usize = 1000;
/// Bytes of a reason or name that are kept.
const TEXT_MAX: usize = 512;

/// Changes that may stand in logs and could not be read. A caller that has them did not see all changes: it says so
/// (exit code 1 of a command).
#[must_use = "changes that could not be read have to be told"]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreadChanges {
    entries: BTreeMap<Key, (UnreadPlace, u64)>,
    /// Events whose entry has no room.
    others: u64,
}

/// Events of one table, or of no known one, that could not be read for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadEvents<'u> {
    /// Which log of the input, counted from 0.
    pub log: u64,
    /// Where the first of them stands.
    pub position: EventPosition,
    /// The seconds since 1970 in its header.
    pub timestamp: u32,
    /// Type of the events.
    pub event_type: EventType,
    /// Database and table, where they are known.
    pub table: Option<(&'u str, &'u str)>,
    /// Why the changes could not be read.
    pub why: &'u str,
    /// How many events there are.
    pub events: u64,
}

/// The fields that all events of an entry share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    log: u64,
    table: Option<(Box<str>, Box<str>)>,
    event_type: EventType,
    why: Box<str>,
}

impl Key {
    fn of(log: u64, header: &EventHeader, table: Option<(&[u8], &[u8])>, why: String) -> Self {
        let text = |bytes: &[u8]| cut(String::from_utf8_lossy(bytes).into_owned());
        let table = table.map(|(database, table)| (text(database), text(table)));
        Key { log, table, event_type: header.event_type, why: cut(why) }
    }

    fn with(&self, place: UnreadPlace, events: u64) -> UnreadEvents<'_> {
        UnreadEvents {
            log: self.log,
            position: place.position,
            timestamp: place.timestamp,
            event_type: self.event_type,
            table: self.table.as_ref().map(|(database, table)| (&**database, &**table)),
            why: &self.why,
            events,
        }
    }
}

/// The first event of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct UnreadPlace {
    position: EventPosition,
    timestamp: u32,
}

impl UnreadChanges {
    /// Whether all changes could be read.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.others == 0
    }

    /// How many events could not be read.
    pub fn events(&self) -> u64 {
        self.entries.values().map(|(_, events)| events).sum::<u64>() + self.others
    }

    /// How many events have no entry of their own: there is room for a thousand entries.
    pub fn unnamed(&self) -> u64 {
        self.others
    }

    /// The entries, in the order of their first events.
    pub fn iter(&self) -> impl Iterator<Item = UnreadEvents<'_>> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(key, (place, _))| (key.log, *place));
        entries.into_iter().map(|(key, (place, events))| key.with(*place, *events))
    }

    /// Notes an event outside of [`crate::events::run`], if by its type it may hold changes that can't be decoded, or says that
    /// some are lost. `body`: without checksum.
    pub fn note_by_type(&mut self, log: u64, position: EventPosition, header: &EventHeader, body: &[u8]) {
        for (table, why) in reasons_of_type(header, body) {
            self.note(log, (position, header), table, why);
        }
    }

    /// Notes an event, of this table if it is known, that could not be read.
    pub fn note(
        &mut self,
        log: u64,
        (position, header): (EventPosition, &EventHeader),
        table: Option<(&[u8], &[u8])>,
        why: impl fmt::Display,
    ) {
        let key = Key::of(log, header, table, why.to_string());
        self.add_entry(key, UnreadPlace { position, timestamp: header.timestamp }, 1);
    }

    /// Adds those of later events, or of another log.
    pub fn add(&mut self, later: UnreadChanges) {
        self.others += later.others;
        for (key, (place, events)) in later.entries {
            self.add_entry(key, place, events);
        }
    }

    /// Keeps only the entries that a caller asked for.
    pub fn retain(&mut self, mut keep: impl FnMut(&UnreadEvents<'_>) -> bool) {
        self.entries.retain(|key, (place, events)| keep(&key.with(*place, *events)));
    }

    fn add_entry(&mut self, key: Key, place: UnreadPlace, events: u64) {
        if self.entries.len() >= NAMED_MAX && !self.entries.contains_key(&key) {
            self.others += events;
            return;
        }
        let entry = self.entries.entry(key).or_insert((place, 0));
        entry.0 = entry.0.min(place);
        entry.1 += events;
    }
}

impl UnreadEvents<'_> {
    /// Whether the server says that changes are missing here, which no reader can find.
    pub fn is_incident(&self) -> bool {
        self.event_type.changes() == ChangeContent::Lost
    }
}

impl fmt::Display for UnreadEvents<'_> {
    /// `at 4711: WriteRowsV1 event of shop.orders: column 3: column type is 0x77, expected one that rows hold`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}", self.position.offset)?;
        if let Some(inside) = self.position.inside {
            write!(f, ", event {} of the payload", inside.index)?;
        }
        write!(f, ": {} event", self.event_type)?;
        if let Some((database, table)) = self.table {
            write!(f, " of {database}.{table}")?;
        }
        write!(f, ": {}", self.why)?;
        match self.events {
            0 | 1 => Ok(()),
            2 => f.write_str(" (and 1 more like it)"),
            events => write!(f, " (and {} more like it)", events - 1),
        }
    }
}

/// Notes about the events of a batch, made by the worker that has it.
#[derive(Debug, Default)]
pub(crate) struct UnreadNotes(Mutex<Vec<Note>>);

#[derive(Debug)]
struct Note {
    key: Key,
    place: UnreadPlace,
}

impl UnreadNotes {
    /// Notes an event that by its type may hold changes and can't be decoded, or that says that some are lost.
    pub(crate) fn by_type(&self, log: u64, position: EventPosition, header: &EventHeader, body: &[u8]) {
        for (table, why) in reasons_of_type(header, body) {
            self.note(log, (position, header), table, why);
        }
    }

    /// Notes an event of a table that can't be decoded.
    pub(crate) fn note(
        &self,
        log: u64,
        (position, header): (EventPosition, &EventHeader),
        table: Option<(&[u8], &[u8])>,
        why: String,
    ) {
        let key = Key::of(log, header, table, why);
        self.0.lock().push(Note { key, place: UnreadPlace { position, timestamp: header.timestamp } });
    }

    /// Takes back the notes about an event.
    pub(crate) fn take_back(&self, position: EventPosition) {
        self.0.lock().retain(|note| note.place.position != position);
    }

    /// Keeps the notes for which `keep` is true; it gets each as an entry of one event.
    pub(crate) fn retain(&self, mut keep: impl FnMut(&UnreadEvents<'_>) -> bool) {
        self.0.lock().retain(|Note { key, place }| keep(&key.with(*place, 1)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Takes all notes out.
    pub(crate) fn take(&self) -> UnreadChanges {
        let mut unread = UnreadChanges::default();
        for Note { key, place } in self.0.lock().drain(..) {
            unread.add_entry(key, place, 1);
        }
        unread
    }
}

/// A table, where it is known, and why changes of it can't be read.
type Reason<'b> = (Option<(&'b [u8], &'b [u8])>, String);

/// Why an event can't be read, if its type says so: once for each table that it is about.
fn reasons_of_type<'b>(header: &EventHeader, body: &'b [u8]) -> Vec<Reason<'b>> {
    match header.event_type {
        EventType::IGNORABLE => left_out(body),
        _ => why_of_type(header, body).map(|why| (None, why)).into_iter().collect(),
    }
}

/// Why an event can't be read, if its type says so.
fn why_of_type(header: &EventHeader, body: &[u8]) -> Option<String> {
    match header.event_type.changes() {
        ChangeContent::None => None,
        ChangeContent::Beside => None,
        // Events of MariaDB that are expanded in the log are nowhere else.
        ChangeContent::Decoded if header.event_type.mariadb_expanded().is_none() => None,
        ChangeContent::Decoded => Some("it could not be expanded".to_owned()),
        ChangeContent::Unread if header.flags.contains(HeaderFlags::IGNORABLE) => None,
        ChangeContent::Unread => Some("its type may hold changes, and can't be decoded".to_owned()),
        ChangeContent::Lost => Some(lost(body)),
    }
}

/// What a filler took the place of: a table's rows, or a statement.
fn left_out(body: &[u8]) -> Vec<Reason<'_>> {
    const ROWS: &str = "rows were left out when the log was made, since their table was not chosen";
    const STATEMENT: &str =
        "a statement about it was left out when the log was made, since it was not chosen";
    const UNNAMED: &str = "a statement about tables that were not chosen was left out when the log was made";
    let of_table = |LeftOutTable { database, table }, why: &str| (Some((database, table)), why.to_owned());
    if let Some(table) = LeftOutTable::decode(body) {
        return vec![of_table(table, ROWS)];
    }
    match LeftOutStatement::decode(body) {
        None => Vec::new(),
        Some(LeftOutStatement { tables }) if tables.is_empty() => vec![(None, UNNAMED.to_owned())],
        Some(LeftOutStatement { tables }) => {
            tables.into_iter().map(|table| of_table(table, STATEMENT)).collect()
        }
    }
}

/// The words for an incident, with the server's own.
fn lost(body: &[u8]) -> String {
    match IncidentEvent::decode(body) {
        Ok(event) => {
            let message = String::from_utf8_lossy(event.message);
            format!("the server lost changes here ({}: {message})", event.incident)
        }
        Err(_) => "the server lost changes here".to_owned(),
    }
}

fn cut(mut text: String) -> Box<str> {
    if text.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
    }
    text.into()
}

/// A table whose rows can't be read: its map says so.
#[derive(Debug, Clone)]
pub(crate) struct UnreadableTable {
    pub(crate) database: Box<[u8]>,
    pub(crate) table: Box<[u8]>,
    pub(crate) why: Box<str>,
}

/// The names of a table, as notes have them.
pub(crate) fn names(schema: &TableSchema) -> (&[u8], &[u8]) {
    (&schema.database, &schema.table)
}

/// The reason in words.
pub(crate) fn why(error: &BinlogError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(event_type: u8) -> EventHeader {
        EventHeader {
            timestamp: 7,
            event_type: EventType(event_type),
            server_id: 1,
            event_size: 19,
            end_log_pos: 0,
            flags: HeaderFlags::default(),
        }
    }

    fn at(offset: u64) -> EventPosition {
        EventPosition { offset, inside: None }
    }

    #[test]
    fn one_entry_for_a_table_and_a_bound_for_all() {
        let notes = UnreadNotes::default();
        for offset in [300, 100, 200] {
            notes.note(0, (at(offset), &header(23)), Some((b"d", b"t")), "bad".to_owned());
        }
        notes.by_type(0, at(50), &header(99), b"");
        notes.by_type(0, at(60), &header(2), b"");
        notes.by_type(0, at(70), &header(28), &[0; 9]);
        notes.by_type(0, at(80), &header(28), b"left out\x01d\x01u\0\0");
        notes.by_type(0, at(81), &header(28), b"d\xfeu\xfdd\xfev\0\0");
        notes.by_type(0, at(82), &header(28), b"\xfe\0");
        let mut unread = notes.take();
        assert!(notes.take().is_empty());
        let lines: Vec<_> = unread.iter().map(|entry| entry.to_string()).collect();
        assert_eq!(
            lines,
            [
                "at 50: type 0x63 event: its type may hold changes, and can't be decoded",
                "at 80: Ignorable event of d.u: rows were left out when the log was made, since their table was not chosen",
                "at 81: Ignorable event of d.u: a statement about it was left out when the log was made, since it was not chosen",
                "at 81: Ignorable event of d.v: a statement about it was left out when the log was made, since it was not chosen",
                "at 82: Ignorable event: a statement about tables that were not chosen was left out when the log was made",
                "at 100: WriteRowsV1 event of d.t: bad (and 2 more like it)",
            ]
        );
        for number in 0..2 * NAMED_MAX {
            notes.note(0, (at(1), &header(23)), Some((b"d", number.to_string().as_bytes())), String::new());
        }
        unread.add(notes.take());
        assert_eq!(unread.iter().count(), NAMED_MAX);
        assert_eq!(unread.events(), 8 + 2 * NAMED_MAX as u64);
        assert_eq!(unread.unnamed(), NAMED_MAX as u64 + 6);
    }

    #[test]
    fn what_is_not_asked_for_is_taken_back() {
        let notes = UnreadNotes::default();
        notes.by_type(0, at(50), &header(26), b"\x01\0\x02no");
        notes.by_type(0, at(90), &header(26), b"\x01\0\x02no");
        notes.take_back(at(50));
        let unread = notes.take();
        let entry = unread.iter().next().unwrap();
        assert_eq!((entry.position, entry.is_incident(), entry.events), (at(90), true, 1));
        assert_eq!(entry.why, "the server lost changes here (LOST_EVENTS: no)");
        let ignorable = EventHeader { flags: HeaderFlags::IGNORABLE, ..header(99) };
        notes.by_type(0, at(1), &ignorable, b"");
        assert!(notes.take().is_empty());
    }
}
