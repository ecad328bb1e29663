//! Makes each event of a dump fit its client: passed, translated, left out or refused, as the client's profile and the
//! tables of its account say.
//!
//! ```text
//! sink: header ─► care: send it as it comes, hold it, fill its place, or end the dump
//!       whole event that was held ─► fit: as it is, others in its place, or a filler
//! ```
//!
//! Whatever is sent in an event's place has that event's size, so positions stay those of the form. Events that are
//! passed are not held and not copied.

mod account_statement;
pub(crate) mod filler;
mod row_statement;

use binlogz_binlog::event::{ColumnType, QueryEvent, TableMapEvent};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{ChecksumAlgorithm, EventClass, EventFrame, EventHeader, EventType, HeaderFlags};

pub(crate) use row_statement::{HEAD_SIZE, QueuedEvent};
use row_statement::{RowStatement, RowsCare};

use crate::serve::events::older_collations;
use crate::serve::events::profiles::{FillerKind, ProfileFamily, ReaderProfile, Treatment, Treatments};
use crate::serve::events::row_metadata;
use crate::serve::events::table_choice::TableChoice;
use crate::serve::events::xa::{self, XaRendering};

/// An event that is looked at is held whole: a statement of at most the server's own default `max_allowed_packet`.
pub(crate) const HELD_SIZE_MAX: u32 = 64 << 20;
/// Since 5.1.4, whatever the log says.
const TABLE_MAP_POST_HEADER: u8 = 8;

/// The way in which the sink handles an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventCare {
    /// It is sent as it comes.
    Send,
    /// It begins a transaction, and is held until the next event tells whether that may be sent.
    Front,
    /// It is held, then fitted.
    Look,
    /// It is held, then given back to be queued.
    Queue,
    /// A filler is sent in its place.
    Fill,
    /// A rows event without rows is sent in its place.
    Blank,
    /// It is passed over: its place is queued.
    Skip,
}

/// The events that are sent in the place of one that was held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FittedEvent {
    /// The event.
    AsIs,
    /// Another event of its size.
    Other(Vec<u8>),
    /// Events that are together as large as the statement about accounts that they replace.
    EmptyTransaction(Vec<Vec<u8>>),
    /// Events in the place of an XA ROLLBACK.
    XaRollback(Vec<Vec<u8>>),
    /// A filler.
    Filler,
    /// Nothing now.
    Later,
}

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventPlace {
    /// The event's offset in the client's file.
    pub(crate) offset: u64,
    /// The offset of its transaction, if all before the event is held.
    pub(crate) transaction: Option<u64>,
    /// Whether the client is to have it.
    pub(crate) is_sent: bool,
}

/// Fits the events of one dump.
#[derive(Debug)]
pub(crate) struct EventFitting {
    treatments: Treatments,
    fillers: FillerKind,
    /// The client, in errors.
    kind: &'static str,
    /// The tables whose rows are sent; `None`: all are.
    tables: Option<TableChoice>,
    statement: RowStatement,
    ready: Vec<QueuedEvent>,
    checksum: ChecksumAlgorithm,
    /// Whether the current file's statements about accounts are left out.
    without_accounts: bool,
    /// How the current transaction is made plain, if it is one of XA.
    xa: Option<XaRendering>,
}

impl EventFitting {
    /// Fits events to a client of this profile, for an account with these tables; `None`: it gets them as they are.
    pub(crate) fn new(profile: &ReaderProfile, tables: &TableChoice) -> Option<Self> {
        let tables = (!tables.is_all()).then(|| tables.clone());
        let ReaderProfile { treatments, fillers, kind, .. } = *profile;
        if tables.is_none() && passes_all(treatments) {
            return None;
        }
        Some(EventFitting {
            treatments,
            fillers,
            kind,
            tables,
            statement: RowStatement::new(profile.family == ProfileFamily::Mariadb),
            ready: Vec::new(),
            checksum: ChecksumAlgorithm::NONE,
            without_accounts: false,
            xa: None,
        })
    }

    /// Whether the client gets XA transactions as plain ones.
    pub(crate) fn translates_xa(&self) -> bool {
        self.treatments.xa == Treatment::Translated
    }

    /// Whether an event is of an XA transaction; a statement has to be whole.
    pub(crate) fn is_xa(&self, header: &EventHeader, event: Option<&[u8]>) -> bool {
        let statement = event.filter(|_| xa::may_be(header));
        let frame = statement.and_then(|event| EventFrame::from_bytes(event, self.checksum.size()).ok());
        header.event_type == EventType::XA_PREPARE || frame.is_some_and(|frame| xa::is(&frame))
    }

    /// The next transaction is one of XA, to be made plain like this; `None`: it isn't one.
    pub(crate) fn render_xa(&mut self, rendering: Option<XaRendering>) {
        self.xa = rendering;
    }

    /// Whether rows are left out here that come with XA COMMIT.
    pub(crate) fn withholds_rows(&self) -> bool {
        self.xa == Some(XaRendering::Empty)
    }

    /// The kind of filler in an event's place: among events of rows no statement may stand.
    pub(crate) fn filler_for(&self, replaced: &EventHeader) -> FillerKind {
        let is_of_rows = matches!(
            replaced.event_type.class(),
            EventClass::TableMap | EventClass::Rows | EventClass::RowsStatement
        );
        if is_of_rows && !self.withholds_rows() { FillerKind::Ignorable } else { self.fillers }
    }

    /// Goes on in a file whose events have this checksum, written by a server of this version as a number.
    pub(crate) fn begin_file(&mut self, checksum: ChecksumAlgorithm, server_version: u32) {
        self.checksum = checksum;
        let are_unreadable = server_version >= account_statement::FIRST_UNREADABLE;
        self.without_accounts = are_unreadable && self.treatments.account_statements == Treatment::LeftOut;
    }

    /// How many bytes of an event's body have to be known before it is decided what to do with it.
    pub(crate) fn head_size(&self, header: &EventHeader) -> usize {
        match self.tables.is_some() && header.event_type.class() == EventClass::Rows {
            true => HEAD_SIZE,
            false => 0,
        }
    }

    /// Whether several events may be sent in an event's place.
    pub(crate) fn may_be_several(&self, header: &EventHeader) -> bool {
        let is_of_accounts = self.without_accounts && header.event_size <= account_statement::SIZE_MAX;
        header.event_type == EventType::QUERY
            && (self.withholds_rows() && xa::may_be(header) || self.xa.is_none() && is_of_accounts)
    }

    /// Takes the events that have to be sent before the current one.
    pub(crate) fn take_ready(&mut self) -> Vec<QueuedEvent> {
        std::mem::take(&mut self.ready)
    }

    /// Decides what is done with an event. `head`: the beginning of its body.
    ///
    /// # Errors
    ///
    /// Why the dump ends before it.
    pub(crate) fn care(
        &mut self,
        header: &EventHeader,
        head: &[u8],
        place: EventPlace,
    ) -> Result<EventCare, String> {
        let class = header.event_type.class();
        if !matches!(class, EventClass::TableMap | EventClass::Rows) {
            self.statement.end(&mut self.ready);
        }
        if !place.is_sent {
            return Ok(self.pass(class, head));
        }
        if let Some(care) = self.care_of_xa(header, class) {
            return Ok(care);
        }
        match class {
            EventClass::File => self.file(header, place),
            EventClass::Gtid => self.gtid(header, place),
            EventClass::Statement => self.statement(header, place),
            EventClass::LoadStatement | EventClass::StatementValue => self.names_collations(header, place),
            EventClass::TableMap => Ok(self.table_map()),
            EventClass::Rows => self.rows(header, head, place),
            EventClass::Commit => self.commit(header, place),
            EventClass::Payload => self.payload(place),
            EventClass::GroupContext | EventClass::GroupView => {
                self.treated(self.treatments.group_events, header, place)
            }
            EventClass::Unknown => self.unknown(header, place),
            // It may quote rows of tables that are left out.
            EventClass::RowsStatement if self.tables.is_some() => Ok(EventCare::Fill),
            EventClass::RowsStatement
            | EventClass::Ignorable
            | EventClass::Incident
            | EventClass::LoadBlock
            | EventClass::LoadEnd
            | EventClass::Heartbeat
            // None of these is in a log of MySQL since 5.6.
            | EventClass::FileNote
            | EventClass::MariadbGtid
            | EventClass::CompressedStatement
            | EventClass::CompressedRows
            | EventClass::Dead => Ok(EventCare::Send),
        }
    }

    /// How the sink handles an event of an XA transaction that is made plain; `None`: as in any other transaction.
    fn care_of_xa(&self, header: &EventHeader, class: EventClass) -> Option<EventCare> {
        if matches!(class, EventClass::Gtid | EventClass::File) {
            return None;
        }
        match self.xa? {
            XaRendering::Empty if xa::may_be(header) => Some(EventCare::Look),
            XaRendering::Empty => Some(EventCare::Fill),
            XaRendering::Plain => {
                let is_looked_at = xa::may_be(header) || header.event_type == EventType::XA_PREPARE;
                is_looked_at.then_some(EventCare::Look)
            }
        }
    }

    /// Notes an event that the client has already.
    fn pass(&mut self, class: EventClass, head: &[u8]) -> EventCare {
        if self.tables.is_none() {
            return EventCare::Send;
        }
        if class == EventClass::Rows {
            self.statement.passed_rows(head);
        }
        match class == EventClass::TableMap {
            true => EventCare::Look,
            false => EventCare::Send,
        }
    }

    fn file(&self, header: &EventHeader, place: EventPlace) -> Result<EventCare, String> {
        // Servers that know the type don't read it, so it may have tags.
        let is_unread =
            header.event_type == EventType::PREVIOUS_GTIDS && self.treatments.gtids == Treatment::Refused;
        if is_unread {
            return Err(self.unread(header, place));
        }
        let is_kept = header.event_type != EventType::PREVIOUS_GTIDS || self.fillers == FillerKind::Ignorable;
        Ok(if is_kept { EventCare::Send } else { EventCare::Fill })
    }

    fn gtid(&self, header: &EventHeader, place: EventPlace) -> Result<EventCare, String> {
        match self.treatments.gtids {
            Treatment::Refused => return Err(self.unread(header, place)),
            Treatment::LeftOut => return Ok(EventCare::Fill),
            Treatment::Passed | Treatment::Translated => {}
        }
        let care = match header.event_type == EventType::GTID_TAGGED {
            true => self.tagged_gtid(place)?,
            false => EventCare::Send,
        };
        if self.fillers == FillerKind::Statement {
            return Ok(EventCare::Fill);
        }
        Ok(match self.treatments.xa {
            Treatment::Refused | Treatment::Translated => EventCare::Front,
            Treatment::Passed | Treatment::LeftOut => care,
        })
    }

    fn tagged_gtid(&self, place: EventPlace) -> Result<EventCare, String> {
        match self.treatments.tagged_gtids {
            Treatment::Passed => Ok(EventCare::Send),
            Treatment::Translated => Ok(EventCare::Look),
            Treatment::LeftOut => Ok(EventCare::Fill),
            Treatment::Refused => Err(format!(
                "the transaction at {} has a GTID with a tag, which {} can't read",
                place.offset, self.kind
            )),
        }
    }

    fn statement(&self, header: &EventHeader, place: EventPlace) -> Result<EventCare, String> {
        let is_looked_at = self.treatments.xa != Treatment::Passed && xa::may_be(header)
            || self.without_accounts && header.event_size <= account_statement::SIZE_MAX;
        match is_looked_at {
            true => Ok(EventCare::Look),
            false => self.names_collations(header, place),
        }
    }

    fn names_collations(&self, header: &EventHeader, place: EventPlace) -> Result<EventCare, String> {
        let Treatments { collations, tables_of_selects, .. } = self.treatments;
        let is_looked_at = collations != Treatment::Passed || tables_of_selects != Treatment::Passed;
        if !is_looked_at || !older_collations::may_be_unknown(header.event_type) {
            return Ok(EventCare::Send);
        }
        if header.event_size <= HELD_SIZE_MAX {
            return Ok(EventCare::Look);
        }
        // No CREATE TABLE is that long.
        match collations {
            Treatment::Passed => Ok(EventCare::Send),
            _ => {
                Err(self
                    .untranslatable(place, &format!("{} bytes are too many to look at", header.event_size)))
            }
        }
    }

    fn table_map(&self) -> EventCare {
        let Treatments { json_columns, vector_columns, row_metadata, .. } = self.treatments;
        let has_unread = [json_columns, vector_columns].contains(&Treatment::Refused);
        match has_unread || row_metadata != Treatment::Passed || self.tables.is_some() {
            true => EventCare::Look,
            false => EventCare::Send,
        }
    }

    fn rows(&mut self, header: &EventHeader, head: &[u8], place: EventPlace) -> Result<EventCare, String> {
        let care = match self.tables.is_some() {
            true => self
                .statement
                .rows(header, head, self.checksum, &mut self.ready)
                .map_err(|why| format!("the rows at {} can't be left out: {why}", place.offset))?,
            false => RowsCare::Send,
        };
        let is_partial = header.event_type == EventType::PARTIAL_UPDATE_ROWS;
        let is_unread = match is_partial {
            true => self.treatments.partial_json == Treatment::Refused,
            false => self.treatments.rows_version_2 == Treatment::Refused && !is_version_1(header.event_type),
        };
        match care {
            RowsCare::Send | RowsCare::Hold if is_unread => Err(self.unread(header, place)),
            RowsCare::Send => Ok(EventCare::Send),
            RowsCare::Hold => Ok(EventCare::Queue),
            RowsCare::Fill => Ok(EventCare::Fill),
            RowsCare::QueueFiller => Ok(EventCare::Skip),
            RowsCare::Blank => Ok(EventCare::Blank),
        }
    }

    fn commit(&self, header: &EventHeader, place: EventPlace) -> Result<EventCare, String> {
        match header.event_type == EventType::XA_PREPARE && self.treatments.xa != Treatment::Passed {
            true => Err(xa::refusal(self.kind, place.transaction.unwrap_or(place.offset))),
            false => Ok(EventCare::Send),
        }
    }

    fn payload(&self, place: EventPlace) -> Result<EventCare, String> {
        // Of a client that isn't known it was decided when it asked for the file.
        let is_unread = self.treatments.payloads != Treatment::Passed
            && self.treatments.unknown_events == Treatment::Refused;
        let place = place.transaction.unwrap_or(place.offset);
        if is_unread {
            return Err(format!(
                "the transaction at {place} is compressed, and {} does not read such: begin in a file of the uncompressed form",
                self.kind
            ));
        }
        if self.tables.is_some() || self.treatments.row_metadata != Treatment::Passed {
            return Err(format!(
                "the transaction at {place} is compressed, and the account has tables or row_metadata of its own: begin in a \
                 file of the uncompressed form"
            ));
        }
        Ok(EventCare::Send)
    }

    fn unknown(&self, header: &EventHeader, place: EventPlace) -> Result<EventCare, String> {
        match header.flags.contains(HeaderFlags::IGNORABLE) {
            true => Ok(EventCare::Send),
            false => self.treated(self.treatments.unknown_events, header, place),
        }
    }

    fn treated(
        &self,
        treatment: Treatment,
        header: &EventHeader,
        place: EventPlace,
    ) -> Result<EventCare, String> {
        match treatment {
            Treatment::Passed | Treatment::Translated => Ok(EventCare::Send),
            Treatment::LeftOut => Ok(EventCare::Fill),
            Treatment::Refused => Err(self.unread(header, place)),
        }
    }

    /// Queues an event that was to be.
    pub(crate) fn queue(&mut self, event: Vec<u8>) {
        self.statement.hold(event);
    }

    /// Decides what is sent of an event that was held, the front of a transaction among them. A damaged event is left
    /// unchanged, so that the client sees the damage.
    ///
    /// # Errors
    ///
    /// Why the dump ends before it.
    pub(crate) fn fit(&mut self, event: &[u8], place: EventPlace) -> Result<FittedEvent, String> {
        let Ok(frame) = EventFrame::from_bytes(event, self.checksum.size()) else {
            return Ok(FittedEvent::AsIs);
        };
        if frame.stored_checksum().is_some_and(|stored| stored != frame.computed_checksum()) {
            return Ok(FittedEvent::AsIs);
        }
        let event_type = frame.event_type();
        match event_type.class() {
            EventClass::TableMap => self.fit_table_map(&frame, place),
            EventClass::Gtid if event_type == EventType::GTID_TAGGED => Ok(self.without_tag(&frame)),
            EventClass::Statement => self.fit_statement(&frame, place),
            EventClass::LoadStatement | EventClass::StatementValue => self.with_older_names(&frame, place),
            EventClass::Commit => self.fit_commit(&frame, place),
            EventClass::Gtid
            | EventClass::File
            | EventClass::FileNote
            | EventClass::Heartbeat
            | EventClass::MariadbGtid
            | EventClass::CompressedStatement
            | EventClass::LoadBlock
            | EventClass::LoadEnd
            | EventClass::RowsStatement
            | EventClass::Rows
            | EventClass::CompressedRows
            | EventClass::Payload
            | EventClass::Incident
            | EventClass::GroupContext
            | EventClass::GroupView
            | EventClass::Ignorable
            | EventClass::Dead
            | EventClass::Unknown => Ok(FittedEvent::AsIs),
        }
    }

    /// A client that ignores GTIDs but doesn't know tagged ones gets one of the type that it ignores.
    fn without_tag(&self, frame: &EventFrame<'_>) -> FittedEvent {
        if self.treatments.tagged_gtids != Treatment::Translated {
            return FittedEvent::AsIs;
        }
        let header = EventHeader { event_type: EventType::GTID, ..*frame.header() };
        FittedEvent::Other(encode_event(header, frame.body(), self.checksum))
    }

    fn fit_statement(&self, frame: &EventFrame<'_>, place: EventPlace) -> Result<FittedEvent, String> {
        if let Some(rendering) = self.xa {
            let kind = StatementKind::of_query(frame.body()).unwrap_or(StatementKind::Other);
            if let Some(fitted) = self.fit_xa_statement(frame, kind, rendering) {
                return fitted.ok_or_else(|| self.no_room(place));
            }
        }
        if self.treatments.xa != Treatment::Passed && xa::is(frame) {
            return Err(xa::refusal(self.kind, place.transaction.unwrap_or(place.offset)));
        }
        let is_about_accounts = self.without_accounts
            && QueryEvent::decode(frame.body()).is_ok_and(|query| account_statement::is_one(query.statement));
        if !is_about_accounts {
            return self.with_older_names(frame, place);
        }
        let events = account_statement::empty_transaction(frame, self.fillers, self.checksum);
        events.map(FittedEvent::EmptyTransaction).ok_or_else(|| {
            let offset = place.offset;
            format!("the statement about accounts at {offset} is too short to be left out for {}", self.kind)
        })
    }

    /// The event in the place of a statement of an XA transaction, or nothing if it has no room; `None`: the statement is
    /// not about XA.
    fn fit_xa_statement(
        &self,
        frame: &EventFrame<'_>,
        kind: StatementKind,
        rendering: XaRendering,
    ) -> Option<Option<FittedEvent>> {
        let checksum = self.checksum;
        match (rendering, kind) {
            (_, StatementKind::XaStart) => Some(xa::begin(frame, checksum).map(FittedEvent::Other)),
            (XaRendering::Plain, StatementKind::XaEnd) => Some(Some(FittedEvent::Filler)),
            (XaRendering::Plain, _) => None,
            (XaRendering::Empty, StatementKind::XaEnd) => {
                Some(xa::commit(frame, checksum).map(FittedEvent::Other))
            }
            (XaRendering::Empty, StatementKind::XaRollback) => Some(
                account_statement::empty_transaction(frame, self.fillers, checksum)
                    .map(FittedEvent::XaRollback),
            ),
            (XaRendering::Empty, _) => Some(Some(FittedEvent::Filler)),
        }
    }

    /// The end of an XA transaction with rows is one that every server knows.
    fn fit_commit(&self, frame: &EventFrame<'_>, place: EventPlace) -> Result<FittedEvent, String> {
        if frame.event_type() != EventType::XA_PREPARE || self.xa != Some(XaRendering::Plain) {
            return Ok(FittedEvent::AsIs);
        }
        xa::xid(frame, self.checksum).map(FittedEvent::Other).ok_or_else(|| self.no_room(place))
    }

    /// The error for an event of an XA transaction that is smaller than what has to stand in its place.
    fn no_room(&self, place: EventPlace) -> String {
        let offset = place.offset;
        format!("the event of an XA transaction at {offset} is too short to be made plain for {}", self.kind)
    }

    fn with_older_names(&self, frame: &EventFrame<'_>, place: EventPlace) -> Result<FittedEvent, String> {
        let Treatments { collations, tables_of_selects, .. } = self.treatments;
        let fitted = older_collations::for_older(frame, self.checksum, collations, tables_of_selects)
            .map_err(|why| self.untranslatable(place, &why))?;
        Ok(fitted.map_or(FittedEvent::AsIs, FittedEvent::Other))
    }

    fn fit_table_map(&mut self, frame: &EventFrame<'_>, place: EventPlace) -> Result<FittedEvent, String> {
        let Ok(map) = TableMapEvent::decode(frame.body(), TABLE_MAP_POST_HEADER) else {
            return Ok(FittedEvent::AsIs);
        };
        let is_chosen = self.tables.as_ref().is_none_or(|tables| tables.has(map.database, map.table));
        if !place.is_sent {
            self.statement.passed_map(frame, is_chosen);
            return Ok(FittedEvent::Later);
        }
        if !is_chosen {
            return Ok(self.queue_table_map(frame, is_chosen));
        }
        self.check_columns(&map, place)?;
        let Some(other) = self.with_row_metadata(frame, &map, place)? else {
            return Ok(match self.tables.is_none() {
                true => FittedEvent::AsIs,
                false => self.queue_table_map(frame, is_chosen),
            });
        };
        if self.tables.is_none() {
            return Ok(FittedEvent::Other(other));
        }
        match EventFrame::from_bytes(&other, self.checksum.size()) {
            Ok(frame) => Ok(self.queue_table_map(&frame, is_chosen)),
            Err(error) => Err(format!("the table map at {} can't be written: {error}", place.offset)),
        }
    }

    /// Takes a table map into the statement that it belongs to.
    fn queue_table_map(&mut self, frame: &EventFrame<'_>, is_chosen: bool) -> FittedEvent {
        match self.statement.table_map(frame, is_chosen) {
            true => FittedEvent::Filler,
            false => FittedEvent::Later,
        }
    }

    /// The table map with the metadata that the client gets; `None`: it is as it should be.
    fn with_row_metadata(
        &self,
        frame: &EventFrame<'_>,
        map: &TableMapEvent<'_>,
        place: EventPlace,
    ) -> Result<Option<Vec<u8>>, String> {
        let body = row_metadata::fitted_body(frame.body(), map, self.treatments.row_metadata);
        let body = body.map_err(|why| {
            let [database, table] = [map.database, map.table].map(String::from_utf8_lossy);
            format!("the table map of {database}.{table} at {} {why}", place.offset)
        })?;
        Ok(body.map(|body| encode_event(*frame.header(), &body, self.checksum)))
    }

    /// Refuses columns whose rows the client can't read.
    fn check_columns(&self, map: &TableMapEvent<'_>, place: EventPlace) -> Result<(), String> {
        let Treatments { json_columns, vector_columns, .. } = self.treatments;
        for (column_type, name, treatment) in
            [(ColumnType::JSON, "JSON", json_columns), (ColumnType::VECTOR, "VECTOR", vector_columns)]
        {
            if treatment == Treatment::Refused && map.column_types.contains(&column_type.0) {
                let [database, table] = [map.database, map.table].map(String::from_utf8_lossy);
                return Err(format!(
                    "the rows at {} are not for {}: {database}.{table} has a column of type {name}, which it does not \
                     know. ignore_tables of its account leaves the table out",
                    place.offset, self.kind
                ));
            }
        }
        Ok(())
    }

    /// The error for an event whose type the client does not know.
    fn unread(&self, header: &EventHeader, place: EventPlace) -> String {
        let offset = place.offset;
        let event_type = header.event_type;
        let kind = self.kind;
        format!("the event at {offset} is {event_type}, which {kind} does not know")
    }

    /// The error for an event that can't be made readable for older servers.
    fn untranslatable(&self, place: EventPlace, why: &str) -> String {
        format!("the event at {} can't be made readable for {}: {why}", place.offset, self.kind)
    }
}

/// Whether events of every kind are passed. The form and the login see to payloads and checksums.
fn passes_all(treatments: Treatments) -> bool {
    let events = Treatments { payloads: Treatment::Passed, checksums: Treatment::Passed, ..treatments };
    events.each().iter().all(|(_, treatment)| *treatment == Treatment::Passed)
}

fn is_version_1(event_type: EventType) -> bool {
    [EventType::WRITE_ROWS_V1, EventType::UPDATE_ROWS_V1, EventType::DELETE_ROWS_V1].contains(&event_type)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_binlog::event::{
        Bitmap, OptionalMetadata, StatusVariable, StatusVariables, TableId, TableMapFlags,
    };

    use super::*;
    use crate::serve::events::event_in_tests::event_with;

    const HERE: EventPlace = EventPlace { offset: 4, transaction: None, is_sent: true };

    fn event(event_type: EventType, body: &[u8]) -> Vec<u8> {
        event_with(event_type, body, ChecksumAlgorithm::CRC32)
    }

    fn fitting(profile: &str, tables: &TableChoice) -> EventFitting {
        let mut fitting = EventFitting::new(ReaderProfile::of_name(profile).unwrap(), tables).unwrap();
        fitting.begin_file(ChecksumAlgorithm::CRC32, 90_704);
        fitting
    }

    #[test]
    fn damage_stays_visible() {
        let mut variables = Vec::new();
        let charset = StatusVariable::Charset { client: 255, connection: 255, server: 255 };
        charset.encode(&mut variables).unwrap();
        let query = QueryEvent {
            thread_id: 1,
            exec_time: 0,
            error_code: 0,
            status_variables: StatusVariables(&variables),
            database: b"shop",
            statement: b"CREATE USER a IDENTIFIED WITH 'caching_sha2_password' AS 'x'",
        };
        let tagged = event(EventType::GTID_TAGGED, &[7; 30]);
        let mut fitting = fitting("mariadb-10.2", &TableChoice::default());
        for whole in [event(EventType::QUERY, &query.encode().unwrap()), tagged] {
            assert_ne!(fitting.fit(&whole, HERE), Ok(FittedEvent::AsIs));
            for at in 0..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 0x10;
                assert_eq!(fitting.fit(&damaged, HERE), Ok(FittedEvent::AsIs), "byte {at}");
                assert_eq!(fitting.fit(&whole[..at], HERE), Ok(FittedEvent::AsIs), "the first {at} bytes");
            }
        }
    }

    #[test]
    fn rows_with_a_type_that_mariadb_does_not_know_are_left_out_or_refused() {
        let table = |column_type: ColumnType| {
            let map = TableMapEvent {
                table_id: TableId(7),
                flags: TableMapFlags::BIT_LEN_EXACT,
                database: b"shop",
                table: b"j",
                column_types: &[ColumnType::LONG.0, column_type.0],
                column_metadata: &[4],
                null_bitmap: Bitmap(&[0]),
                optional_metadata: OptionalMetadata(&[]),
            };
            event(EventType::TABLE_MAP, &map.encode(TABLE_MAP_POST_HEADER).unwrap())
        };
        let all = TableChoice::default();
        let ignoring = TableChoice::new(&[], &["shop.j".to_owned()]).unwrap();
        for (column_type, name) in [(ColumnType::JSON, "JSON"), (ColumnType::VECTOR, "VECTOR")] {
            let error = fitting("mariadb-11.4", &all).fit(&table(column_type), HERE).unwrap_err();
            assert!(error.contains(&format!("shop.j has a column of type {name}")), "{error}");
            let left_out = fitting("mariadb-11.4", &ignoring).fit(&table(column_type), HERE);
            assert_eq!(left_out, Ok(FittedEvent::Filler));
            assert_eq!(fitting("mysql-5.6", &all).fit(&table(column_type), HERE), Ok(FittedEvent::AsIs));
        }
        assert_eq!(fitting("mariadb-11.4", &all).fit(&table(ColumnType::BLOB), HERE), Ok(FittedEvent::AsIs));
    }

    #[test]
    fn a_client_that_knows_all_costs_nothing() {
        let all = TableChoice::default();
        for profile in ["mysql-8.3", "other", "binlogz"] {
            assert!(EventFitting::new(ReaderProfile::of_name(profile).unwrap(), &all).is_none(), "{profile}");
        }
    }
}
