//! Statements and texts that may hold the values, and stay: they are counted, and the first of them are named.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::ControlFlow;

use binlogz_binlog::event::{
    AnyGtidEvent, CompressedEvent, PostHeaderLengths, QueryEvent, RotateEvent, RowsQueryEvent,
    TransactionPayloadHeader,
};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{ChangeContent, EventClass, EventHeader, EventType};
use binlogz_flow::{EventSpan, LogStart, Walker};
use binlogz_schema::{RecordedStatement, TableHistory, statement_tokens};
use sqlparser::tokenizer::Token;

use super::aim::ErasureAim;
use super::plan::PlannedTables;
use crate::pass::{Error, StatementWords};

/// The most findings that are named.
const NAMED_MAX: usize = 20;

/// What may hold the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MayHold {
    /// A statement that changed rows, logged as text.
    Statement,
    /// The text of a statement whose rows are logged, none of them chosen.
    Text,
    /// DDL that names a table, and has a text in quotes.
    Definition,
    /// LOAD DATA logged as a statement, with its file.
    LoadedFile,
    /// An event of a type that isn't known.
    Unread,
}

impl MayHold {
    /// What it is, for a report.
    pub fn name(self) -> &'static str {
        match self {
            MayHold::Statement => "statement",
            MayHold::Text => "text",
            MayHold::Definition => "definition",
            MayHold::LoadedFile => "loaded file",
            MayHold::Unread => "unread event",
        }
    }
}

/// Where something is that may hold the values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementFinding {
    /// What it is.
    pub what: MayHold,
    /// The log.
    pub log: String,
    /// The offset there, in the log without its payloads.
    pub offset: u64,
    /// The transaction, if it has a GTID.
    pub gtid: Option<String>,
}

impl fmt::Display for StatementFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.log, self.offset, self.what.name())?;
        self.gtid.as_ref().map_or(Ok(()), |gtid| write!(f, " of {gtid}"))
    }
}

/// All of them: the first by place, and how many of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementFindings {
    /// The first.
    pub first: Vec<StatementFinding>,
    /// How many of each kind.
    pub counts: BTreeMap<MayHold, u64>,
}

impl StatementFindings {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    fn add(&mut self, finding: StatementFinding) {
        *self.counts.entry(finding.what).or_default() += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(finding);
        }
    }
}

/// Looks at statements as they pass.
pub(super) struct StatementLook<'l, 'a> {
    names: HashSet<String>,
    log: &'l str,
    pub(super) planned: &'l mut PlannedTables<'a>,
    pub(super) findings: &'l mut StatementFindings,
    gtid: Option<String>,
    pub(super) lengths: PostHeaderLengths,
    place: u64,
    header: Option<EventHeader>,
    body: Vec<u8>,
    /// The statement's text waits until it is known whether its rows were chosen.
    failed: Option<Error>,
}

impl<'l, 'a> StatementLook<'l, 'a> {
    pub(super) fn new(
        aim: &ErasureAim,
        log: &'l str,
        planned: &'l mut PlannedTables<'a>,
        findings: &'l mut StatementFindings,
    ) -> Self {
        StatementLook {
            names: aim.words(),
            log,
            planned,
            findings,
            gtid: None,
            lengths: PostHeaderLengths::default(),
            place: 0,
            header: None,
            body: Vec::new(),
            failed: None,
        }
    }

    /// The end of a walk; an error is why it ended.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.failed.map_or(Ok(()), Err)
    }

    fn found(&mut self, what: MayHold, offset: u64) {
        self.findings.add(StatementFinding {
            what,
            log: self.log.to_owned(),
            offset,
            gtid: self.gtid.clone(),
        });
    }

    /// Whether the text of a statement names one of the tables.
    pub(super) fn names_table(&self, text: &[u8]) -> bool {
        StatementWords::of(&String::from_utf8_lossy(text)).names_any(&self.names)
    }

    /// Notes the text of a statement that stays, and names the table.
    pub(super) fn text_stays(&mut self, offset: u64) {
        self.found(MayHold::Text, offset);
    }

    /// Takes an event, whatever it is, but for rows, their maps and their texts.
    pub(super) fn event(&mut self, header: &EventHeader, body: &[u8], offset: u64) -> Result<(), Error> {
        match header.event_type.class() {
            EventClass::Gtid => {
                let gtid = AnyGtidEvent::decode(body, header.event_type)?;
                self.gtid = gtid.and_then(|gtid| gtid.gtid()).map(|gtid| gtid.to_string());
            }
            EventClass::MariadbGtid => self.gtid = None,
            EventClass::Statement => self.statement(body, offset)?,
            EventClass::CompressedStatement => {
                let mut expanded = Vec::new();
                CompressedEvent::decode(header.event_type, body, &self.lengths)?.expand(&mut expanded)?;
                self.statement(&expanded, offset)?;
            }
            EventClass::LoadStatement | EventClass::LoadBlock => self.found(MayHold::LoadedFile, offset),
            EventClass::File => {
                // A server that begins to send a log names that one, without a time.
                if header.event_type == EventType::ROTATE
                    && header.timestamp != 0
                    && let Ok(rotate) = RotateEvent::decode(body)
                {
                    self.planned.so_far.rotate_to(rotate.name);
                }
            }
            EventClass::Dead | EventClass::Unknown => {
                if matches!(header.event_type.changes(), ChangeContent::Unread) {
                    self.found(MayHold::Unread, offset);
                }
            }
            // Their statement is told of.
            EventClass::StatementValue
            | EventClass::LoadEnd
            // Those are taken elsewhere.
            | EventClass::RowsStatement
            | EventClass::TableMap
            | EventClass::Rows
            | EventClass::CompressedRows
            | EventClass::Payload
            // They have no values.
            | EventClass::FileNote
            | EventClass::Heartbeat
            | EventClass::Commit
            | EventClass::Incident
            | EventClass::GroupContext
            | EventClass::GroupView
            | EventClass::Ignorable => {}
        }
        Ok(())
    }

    fn statement(&mut self, body: &[u8], offset: u64) -> Result<(), Error> {
        let query = QueryEvent::decode(body)?;
        if StatementKind::of(query.statement) != StatementKind::Other {
            return Ok(());
        }
        let text = String::from_utf8_lossy(query.statement);
        let words = StatementWords::of(&text);
        if words.is_ddl() {
            if words.names_any(&self.names) && has_text(&text) {
                self.found(MayHold::Definition, offset);
            }
        } else if !words.leaves_rows_alone() {
            self.found(MayHold::Statement, offset);
        }
        if self.planned.records(offset)
            && !TableHistory::is_of_rows(query.statement)
            && !query.is_alter_without_effect()
        {
            let database = String::from_utf8_lossy(query.database);
            let place = self.planned.so_far.place(offset);
            self.planned.so_far.record(&RecordedStatement::of_query(place, &query, (&database, &text)));
        }
        Ok(())
    }
}

/// Whether a statement has a text in quotes.
fn has_text(text: &str) -> bool {
    let is_word = |token: &Token| matches!(token, Token::Word(_) | Token::Number(..) | Token::Whitespace(_));
    match statement_tokens(text) {
        Ok(tokens) => tokens.iter().any(|token| !is_word(token) && token.to_string().contains(['\'', '"'])),
        Err(_) => true,
    }
}

impl Walker for StatementLook<'_, '_> {
    fn format_description(&mut self, start: &LogStart) -> ControlFlow<()> {
        self.lengths = start.context.post_header_lengths;
        if let Ok(frame) = start.frame() {
            self.planned.so_far.take_server(frame.header().server_id, self.place);
        }
        ControlFlow::Continue(())
    }

    fn payload(
        &mut self,
        _: EventSpan,
        _: &EventHeader,
        _: &TransactionPayloadHeader<'_>,
    ) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn begin(&mut self, place: EventSpan, header: &EventHeader) -> ControlFlow<()> {
        self.place = place.offset;
        self.header = Some(*header);
        self.body.clear();
        ControlFlow::Continue(())
    }

    fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        let is_kept = self.header.is_some_and(|header| match header.event_type.class() {
            EventClass::Rows | EventClass::CompressedRows | EventClass::LoadBlock => false,
            EventClass::File
            | EventClass::FileNote
            | EventClass::Heartbeat
            | EventClass::Gtid
            | EventClass::MariadbGtid
            | EventClass::Statement
            | EventClass::CompressedStatement
            | EventClass::LoadStatement
            | EventClass::StatementValue
            | EventClass::LoadEnd
            | EventClass::RowsStatement
            | EventClass::TableMap
            | EventClass::Commit
            | EventClass::Payload
            | EventClass::Incident
            | EventClass::GroupContext
            | EventClass::GroupView
            | EventClass::Ignorable
            | EventClass::Dead
            | EventClass::Unknown => true,
        });
        if is_kept {
            self.body.extend_from_slice(bytes);
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        let Some(header) = self.header else { return ControlFlow::Continue(()) };
        let body = std::mem::take(&mut self.body);
        let taken = match statement_text(&header, &body) {
            Ok(Some(text)) => {
                if self.names_table(text) {
                    self.text_stays(self.place);
                }
                Ok(())
            }
            Ok(None) => self.event(&header, &body, self.place),
            Err(error) => Err(error),
        };
        self.body = body;
        match taken {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// The text of a statement beside its rows, if this is one.
pub(super) fn statement_text<'b>(header: &EventHeader, body: &'b [u8]) -> Result<Option<&'b [u8]>, Error> {
    if header.event_type == EventType::ROWS_QUERY {
        return Ok(Some(RowsQueryEvent::decode(body)?.statement));
    }
    Ok((header.event_type == EventType::MARIADB_ANNOTATE_ROWS).then_some(body))
}
