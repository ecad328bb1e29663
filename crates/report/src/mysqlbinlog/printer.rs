//! Prints the events of batches, on any core: the order they depend on is that of [`State`].
//!
//! ```text
//! turn: state before the batch → all events pass by, nothing is printed → state behind it
//! text: state before the batch → the same again, printing                → Text
//! ```
//!
//! With one worker there is nobody to wait for: one pass does both.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_binlog::charset::{Charset, collation_name};
use binlogz_binlog::event::{
    AnyGtidEvent, ExecuteLoadQueryEvent, FormatDescription, IncidentEvent, IntvarEvent, IntvarVariable,
    LoadBlockEvent, PreviousGtidsEvent, QueryEvent, RandEvent, RotateEvent, RowsEvent, RowsFlags,
    RowsQueryEvent, TableId, TableMapEvent, TableMapFlags, TransactionPayloadHeader, UserVarEvent,
    UserVarType, UserVarValue, ViewChangeEvent, XaPrepareEvent, XidEvent,
};
use binlogz_binlog::row::RowDecoder;
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{Error as BinlogError, EventType, HeaderFlags};
use binlogz_flow::Error as FlowError;
use binlogz_flow::events::{Event, EventBatch, EventList, Item, TableEvent, Tables, Turn};

use super::around::push_log_end;
use super::base64_lines::push_base64_lines;
use super::hexdump::push_hexdump;
use super::local_time::LocalTime;
use super::number::{push_signed, push_unsigned};
use super::options::{Base64Output, Positions, PrintOptions};
use super::query::{end_line, push_charset, push_description, push_settings};
use super::quote::push_identifier;
use super::rows::{RowsPrinter, Verbosity};
use super::shown::{Shown, ShownBuffer, new_name};
use super::state::{Buffered, State, Stop};
use super::table_columns::push_columns;
use super::text::Text;

/// The first server whose table maps tell of generated invisible primary keys.
const TELLS_OF_GENERATED_KEYS: u32 = 80_030;

/// utf8mb3_general_ci: what names are written in.
const NAMES_COLLATION: u16 = 33;

/// What a batch became.
#[derive(Debug)]
pub struct Printed {
    /// Its text.
    pub text: Text,
    /// Why nothing behind it is shown, if so.
    pub stopped: Option<Stop>,
    /// To be told on stderr, in mysqlbinlog's words.
    pub warnings: Vec<String>,
}

/// A worker's printer. One for all its batches.
#[derive(Debug)]
pub struct Printer<'o> {
    options: &'o PrintOptions,
    positions: Positions,
    workers: usize,
    list: EventList,
    pen: Pen,
}

/// All that prints, and is used again for each event.
#[derive(Debug)]
struct Pen {
    time: LocalTime,
    tables: Tables,
    decoder: RowDecoder,
    rows: HashMap<TableId, RowsPrinter>,
    shown: ShownBuffer,
    scratch: Vec<u8>,
}

/// What an event leads to.
enum Next {
    Go,
    Stop,
    Error(String),
}

/// Which of the two things a pass does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    State,
    Text,
    Both,
}

/// One pass over events.
struct Run<'r> {
    options: &'r PrintOptions,
    positions: Positions,
    pen: &'r mut Pen,
    state: &'r mut State,
    text: &'r mut Text,
    pass: Pass,
    emit: bool,
}

impl<'o> Printer<'o> {
    /// A printer for a run with so many workers.
    pub fn new(options: &'o PrintOptions, positions: Positions, workers: usize) -> Self {
        Printer {
            options,
            positions,
            workers,
            list: EventList::default(),
            pen: Pen {
                time: LocalTime::new(),
                tables: Tables::new(),
                decoder: RowDecoder::new(),
                rows: HashMap::new(),
                shown: ShownBuffer::default(),
                scratch: Vec::new(),
            },
        }
    }

    /// Prints the events of a batch; `buffer` is used for the text. `None`: an earlier batch failed.
    ///
    /// # Errors
    ///
    /// A temporary file that can't be written.
    pub fn print(
        &mut self,
        turn: Turn<State>,
        batch: &mut EventBatch<'_>,
        buffer: Vec<u8>,
    ) -> io::Result<Option<Printed>> {
        let mut text = Text::new(buffer);
        if let Err(error) = self.pen.tables.begin(batch) {
            batch.fail(error);
        }
        batch.read_ahead(&mut self.list);
        let Some(mut state) = turn.wait() else { return Ok(None) };
        let mut turn = Some(turn);
        let mut before = None;
        loop {
            let is_last = batch.is_at_end();
            if self.workers > 1 {
                before = Some(state.clone());
                self.run(&mut state, &mut Text::default(), batch, Pass::State)?;
                let made_files = std::mem::take(&mut state.made_files);
                let warnings = std::mem::take(&mut state.warnings);
                drop(warnings);
                if let Some(before) = &mut before {
                    before.made_files = made_files;
                }
                if let Some(turn) = turn.take_if(|_| is_last) {
                    turn.pass(state.clone());
                }
            }
            let printing = before.as_mut().unwrap_or(&mut state);
            let pass = if self.workers > 1 { Pass::Text } else { Pass::Both };
            run(self.options, self.positions, &mut self.pen, printing, &mut text, &self.list, batch, pass)?;
            if is_last {
                let stopped = printing.stopped.clone();
                let warnings = printing.take_warnings();
                if let Some(turn) = turn.take() {
                    turn.pass(state);
                }
                return Ok(Some(Printed { text, stopped, warnings }));
            }
            if self.workers > 1 {
                // What the text pass alone finds out goes on with the state.
                let told = before.as_mut().map(State::take_warnings).unwrap_or_default();
                state.warnings = told;
            }
            batch.read_ahead(&mut self.list);
        }
    }

    fn run(
        &mut self,
        state: &mut State,
        text: &mut Text,
        batch: &EventBatch<'_>,
        pass: Pass,
    ) -> io::Result<()> {
        run(self.options, self.positions, &mut self.pen, state, text, &self.list, batch, pass)
    }
}

#[expect(clippy::too_many_arguments, reason = "they are borrowed apart from each other")]
fn run(
    options: &PrintOptions,
    positions: Positions,
    pen: &mut Pen,
    state: &mut State,
    text: &mut Text,
    list: &EventList,
    batch: &EventBatch<'_>,
    pass: Pass,
) -> io::Result<()> {
    let mut run = Run { options, positions, pen, state, text, pass, emit: pass != Pass::State };
    for item in batch.listed(list) {
        if run.state.stopped.is_some() {
            break;
        }
        match item {
            Item::Event(event) => run.log_event(&event)?,
            Item::PayloadEnd(_) => run.payload_end(),
        }
    }
    Ok(())
}

/// Prints what a log that ended had not shown yet.
///
/// # Errors
///
/// None that an empty text has.
pub fn end_log(options: &PrintOptions, state: &mut State) -> io::Result<Text> {
    let mut text = Text::default();
    let mut printer = Printer::new(options, Positions::default(), 1);
    let mut run = Run {
        options,
        positions: printer.positions,
        pen: &mut printer.pen,
        state,
        text: &mut text,
        pass: Pass::Both,
        emit: true,
    };
    run.release_format_description()?;
    Ok(text)
}

impl Run<'_> {
    /// An event as it stands in its log: before `--start-position` only the first few are looked at.
    fn log_event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let offset = event.position.offset;
        let start = self.positions.start;
        if offset < start && event.log.number == 0 {
            return self.skipped_event(event);
        }
        if self.state.held_format_description {
            self.release_format_description()?;
        }
        self.event(event)
    }

    /// An event before `--start-position`: mysqlbinlog reads on from the begin of the log as long as
    /// there are events that belong to it, and shows the format description where it stopped.
    fn skipped_event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let offset = event.position.offset;
        let event_type = event.header.event_type;
        let end = offset + u64::from(event.header.event_size);
        if event.is_inside_payload() {
            return Ok(());
        }
        if event_type == EventType::FORMAT_DESCRIPTION && (offset == 4 || self.state.held_format_description)
        {
            self.state.held_format_description = true;
            self.state.skipped_to = Some(offset);
            self.state.buffered.clear();
            let held = Shown {
                header: event.header,
                end_log_pos: event.end_log_pos(),
                position: offset,
                bytes: event.frame.map_or(&[][..], |frame| frame.bytes()),
                body: event.body,
                checksum: event.stored_checksum().filter(|_| event.log.context.framing.checksum().size() > 0),
                inside_payload: false,
            };
            self.hold(&held);
            return Ok(());
        }
        if self.state.held_format_description {
            self.state.skipped_to = Some(offset);
            if !matches!(event_type, EventType::PREVIOUS_GTIDS | EventType::ROTATE) {
                self.release_format_description()?;
                return Ok(());
            }
        }
        if end > self.positions.start && self.state.skipped_to != Some(offset) {
            self.state.stopped = Some(Stop::Error(format!(
                "Could not read entry at offset {}: no event begins there; one begins at {offset}.",
                self.positions.start
            )));
        }
        Ok(())
    }

    fn hold(&mut self, shown: &Shown<'_>) {
        self.state.buffered.push(Buffered {
            header: shown.header,
            end_log_pos: shown.end_log_pos,
            position: shown.position,
            bytes: shown.bytes.into(),
            checksum: shown.checksum,
            checksum_size: shown.bytes.len() - shown.body.len() - binlogz_binlog::header::HEADER_SIZE,
        });
    }

    /// Shows the format description of a log that is not shown from its begin.
    fn release_format_description(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.state.held_format_description) {
            return Ok(());
        }
        let (Some(held), Some(position)) = (self.state.buffered.pop(), self.state.skipped_to) else {
            return Ok(());
        };
        let shown = Shown { position, ..held.shown() };
        self.shown_event(&shown, None)
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.pen.shown);
        let ended = match buffer.show(event, &self.options.rewrite_db, self.emit) {
            Ok(shown) => self.shown_event(&shown, Some(event)),
            Err(error) => {
                self.unreadable(event.error(error));
                Ok(())
            }
        };
        self.pen.shown = buffer;
        ended
    }

    #[cold]
    fn unreadable(&mut self, error: FlowError) {
        self.state.stopped = Some(Stop::Error(error.to_string()));
    }

    fn shown_event(&mut self, shown: &Shown<'_>, event: Option<&Event<'_>>) -> io::Result<()> {
        let next = self.selected_event(shown, event)?;
        self.state.entries += 1;
        match next {
            Next::Go => {}
            // mysqlbinlog does not hear what comes of an event inside a payload.
            Next::Stop if shown.inside_payload => {}
            Next::Error(line) if shown.inside_payload => {
                if self.emit {
                    self.state.warnings.push(format!("ERROR: {line}"));
                }
            }
            Next::Stop => self.state.stopped = Some(Stop::Asked),
            Next::Error(line) => self.state.stopped = Some(Stop::Error(line)),
        }
        Ok(())
    }

    /// Decides whether an event is shown.
    fn selected_event(&mut self, shown: &Shown<'_>, event: Option<&Event<'_>>) -> io::Result<Next> {
        let selection = &self.options.selection;
        let event_type = shown.header.event_type;
        let time = i64::from(shown.header.timestamp);
        if event_type != EventType::FORMAT_DESCRIPTION {
            if !self.state.started {
                let late = selection.start_time.is_none_or(|start| time >= start);
                if self.state.entries < selection.offset || !late {
                    return Ok(Next::Go);
                }
                self.state.started = true;
            }
            let mask = if selection.server_id_mask == 0 { u32::MAX } else { selection.server_id_mask };
            let other_server = selection.server_id.is_some_and(|id| id != shown.header.server_id & mask);
            if event_type != EventType::ROTATE && other_server {
                return Ok(Next::Go);
            }
        }
        let is_at_stop = !shown.inside_payload && shown.position >= self.positions.stop;
        if selection.stop_time.is_some_and(|stop| time >= stop) || is_at_stop {
            return Ok(Next::Stop);
        }
        if let Some(stop) = &selection.stop_before_gtid
            && event_type.is_gtid()
            && gtid_of(shown).and_then(|gtid| gtid.gtid()).as_ref() == Some(stop)
        {
            return Ok(Next::Stop);
        }
        if self.options.require_row_format
            && !shown.inside_payload
            && let Some(refused) = self.state.row_format.check(&shown.header, shown.body)
        {
            return Ok(Next::Error(refused));
        }
        if self.emit && !self.options.short_form {
            let head = &mut self.text.head;
            head.extend_from_slice(b"# at ");
            push_unsigned(head, shown.position);
            head.push(b'\n');
        }
        if self.is_filtered_by_gtid(shown) {
            return Ok(Next::Go);
        }
        self.chosen_event(shown, event)
    }

    /// Whether the transaction's GTID is not asked for.
    fn is_filtered_by_gtid(&mut self, shown: &Shown<'_>) -> bool {
        let selection = &self.options.selection;
        let filtered = self.state.filtered_by_gtid;
        match shown.header.event_type {
            event_type if event_type.is_gtid() => {
                if selection.include_gtids.is_none() && selection.exclude_gtids.is_none() {
                    return self.options.skip_gtids;
                }
                let gtid = gtid_of(shown).and_then(|gtid| gtid.gtid());
                let is_in = |set: &binlogz_binlog::gtid::GtidSet| {
                    gtid.as_ref().is_some_and(|gtid| set.contains(gtid))
                };
                let included = selection.include_gtids.as_ref().is_none_or(is_in);
                let excluded = selection.exclude_gtids.as_ref().is_some_and(is_in);
                self.state.filtered_by_gtid = !included || excluded;
                self.state.filtered_by_gtid || self.options.skip_gtids
            }
            EventType::PREVIOUS_GTIDS => self.options.skip_gtids,
            EventType::XID => {
                self.state.filtered_by_gtid = false;
                filtered
            }
            EventType::QUERY => {
                if filtered && query_kind(shown.body).is_some_and(ends_group) {
                    self.state.filtered_by_gtid = false;
                }
                filtered
            }
            EventType::STOP
            | EventType::FORMAT_DESCRIPTION
            | EventType::ROTATE
            | EventType::IGNORABLE
            | EventType::INCIDENT => false,
            _ => filtered,
        }
    }

    /// Shows an event that was asked for.
    fn chosen_event(&mut self, shown: &Shown<'_>, event: Option<&Event<'_>>) -> io::Result<Next> {
        let event_type = shown.header.event_type;
        let printed = match event_type {
            EventType::QUERY => self.query(shown)?,
            EventType::INTVAR | EventType::RAND | EventType::USER_VAR => {
                self.hold(shown);
                return Ok(Next::Go);
            }
            EventType::BEGIN_LOAD_QUERY | EventType::APPEND_BLOCK => self.load_block(shown)?,
            EventType::EXECUTE_LOAD_QUERY => self.execute_load(shown)?,
            EventType::FORMAT_DESCRIPTION => return self.format_description(shown),
            EventType::TABLE_MAP | EventType::ROWS_QUERY => return self.row_related(shown, event),
            event_type if event_type.is_rows() => return self.row_related(shown, event),
            event_type if event_type.is_gtid() => self.gtid(shown),
            EventType::XID => self.xid(shown),
            EventType::TRANSACTION_PAYLOAD => self.payload(shown),
            _ => self.other(shown),
        };
        Ok(match printed {
            Ok(Some(next)) => next,
            Ok(None) => {
                self.flush_head();
                Next::Go
            }
            Err(error) => Next::Error(unreadable(shown, &error)),
        })
    }

    fn flush_head(&mut self) {
        if self.emit {
            self.text.flush_head();
        }
    }

    /// Writes past what waits in the head.
    fn direct(&mut self, line: &[u8]) {
        if self.emit {
            self.text.out.text.extend_from_slice(line);
            end_line(&mut self.text.out.text);
        }
    }

    fn is_other_database(&self, database: &[u8]) -> bool {
        self.options.selection.database.as_deref().is_some_and(|wanted| wanted != database)
    }

    fn query(&mut self, shown: &Shown<'_>) -> io::Result<Result<Option<Next>, BinlogError>> {
        let query = match QueryEvent::decode(shown.body) {
            Ok(query) => query,
            Err(error) => return Ok(Err(error)),
        };
        let kind = StatementKind::of(query.statement);
        let (starts, ends) = (starts_group(kind), ends_group(kind));
        let skips = kind == StatementKind::Other
            && (self.is_other_database(query.database) || !self.options.selection.tables.is_empty());
        for held in std::mem::take(&mut self.state.buffered) {
            if !skips && let Err(error) = self.setting(&held.shown()) {
                return Ok(Err(error));
            }
        }
        if skips {
            if self.state.seen_gtid && !self.state.in_transaction && !starts && !ends {
                self.direct(b"COMMIT /* added by mysqlbinlog */");
                self.state.skipped_in_transaction = false;
                self.state.in_transaction = false;
                self.state.seen_gtid = false;
            } else {
                self.state.skipped_in_transaction = true;
            }
            return Ok(Ok(Some(Next::Go)));
        }
        if ends {
            self.state.in_transaction = false;
            self.state.skipped_in_transaction = false;
            self.state.seen_gtid = false;
        } else if starts {
            self.state.in_transaction = true;
            self.state.seen_gtid = false;
        } else if !self.state.in_transaction {
            // It commits by itself.
            self.state.seen_gtid = false;
        }
        if self.emit && !self.options.short_form {
            self.header(shown);
            push_description(&mut self.text.head, "Query", &query);
        }
        self.settings(shown, &query);
        if self.emit {
            let head = &mut self.text.head;
            head.extend_from_slice(query.statement);
            head.push(b'\n');
            end_line(head);
        }
        Ok(Ok(None))
    }

    fn settings(&mut self, shown: &Shown<'_>, query: &QueryEvent<'_>) {
        let out = if self.emit { &mut self.text.head } else { &mut self.pen.scratch };
        if !self.emit {
            out.clear();
        }
        let (session, short_form) = (&mut self.state.session, self.options.short_form);
        push_settings(out, session, &shown.header, query, short_form, self.emit);
    }

    /// Prints an event that sets something for the next statement.
    fn setting(&mut self, shown: &Shown<'_>) -> Result<(), BinlogError> {
        if !self.emit {
            return Ok(());
        }
        if !self.options.short_form {
            self.header(shown);
            self.text.head.extend_from_slice(match shown.header.event_type {
                EventType::INTVAR => b"\tIntvar\n",
                EventType::RAND => b"\tRand\n",
                _ => b"\tUser_var\n",
            });
        }
        let head = &mut self.text.head;
        match shown.header.event_type {
            EventType::INTVAR => {
                let event = IntvarEvent::decode(shown.body)?;
                head.extend_from_slice(match event.variable {
                    IntvarVariable::LAST_INSERT_ID => b"SET LAST_INSERT_ID=",
                    IntvarVariable::INSERT_ID => b"SET INSERT_ID=",
                    _ => b"SET INVALID_INT=",
                });
                push_unsigned(head, event.value);
                end_line(head);
            }
            EventType::RAND => {
                let event = RandEvent::decode(shown.body)?;
                head.extend_from_slice(b"SET @@RAND_SEED1=");
                push_unsigned(head, event.seed1);
                head.extend_from_slice(b", @@RAND_SEED2=");
                push_unsigned(head, event.seed2);
                end_line(head);
            }
            _ => {
                let event = UserVarEvent::decode(shown.body)?;
                let connection = match &event.value {
                    Some(value) if value.value_type != UserVarType::STRING => value.collation as u16,
                    _ => NAMES_COLLATION,
                };
                let charset = [NAMES_COLLATION, connection, NAMES_COLLATION];
                let differs = self.state.session.charset.is_some_and(|printed| printed != charset);
                if differs {
                    push_charset(head, charset);
                }
                head.extend_from_slice(b"SET @");
                push_identifier(head, event.name);
                head.extend_from_slice(b":=");
                push_user_value(head, event.value.as_ref());
                end_line(head);
                if let Some(printed) = self.state.session.charset.filter(|_| differs) {
                    push_charset(head, printed);
                }
            }
        }
        Ok(())
    }

    /// The comment that begins with the event's time.
    fn header(&mut self, shown: &Shown<'_>) {
        let head = &mut self.text.head;
        head.push(b'#');
        self.pen.time.push_short(head, shown.header.timestamp);
        head.extend_from_slice(b" server id ");
        push_unsigned(head, shown.header.server_id.into());
        head.extend_from_slice(b"  end_log_pos ");
        push_unsigned(head, shown.end_log_pos.into());
        head.push(b' ');
        if let Some(checksum) = shown.checksum {
            head.extend_from_slice(b"CRC32 0x");
            push_hex32(head, checksum);
            head.push(b' ');
        }
        if self.options.hexdump {
            push_hexdump(head, shown.bytes, shown.position);
        }
    }

    fn gtid(&mut self, shown: &Shown<'_>) -> Result<Option<Next>, BinlogError> {
        self.state.seen_gtid = true;
        if std::mem::take(&mut self.state.skipped_in_transaction) {
            self.direct(b"COMMIT /* added by mysqlbinlog */");
        }
        let Some(event) = gtid_of(shown) else {
            return Err(BinlogError::Truncated { needed: 1, left: 0 });
        };
        let versions = event.server_versions();
        self.state.immediate_server_version = versions.map_or(999_999, |versions| versions.immediate);
        if !self.emit {
            return Ok(None);
        }
        let times = event.commit_timestamps();
        let immediate = times.map_or(0, |times| times.immediate);
        let original = times.and_then(|times| times.original).unwrap_or(immediate);
        if !self.options.short_form {
            self.header(shown);
            let anonymous = shown.header.event_type == EventType::ANONYMOUS_GTID;
            let head = &mut self.text.head;
            head.extend_from_slice(if anonymous { b"\tAnonymous_GTID" } else { b"\tGTID" });
            let clock = event.logical_clock();
            head.extend_from_slice(b"\tlast_committed=");
            push_signed(head, clock.map_or(0, |clock| clock.last_committed));
            head.extend_from_slice(b"\tsequence_number=");
            push_signed(head, clock.map_or(0, |clock| clock.sequence_number));
            let sbr = event.flags().may_have_sbr();
            head.extend_from_slice(if sbr { b"\trbr_only=no" } else { b"\trbr_only=yes" });
            for (name, number) in [
                (&b"\toriginal_committed_timestamp="[..], original),
                (b"\timmediate_commit_timestamp=", immediate),
                (b"\ttransaction_length=", event.transaction_length().unwrap_or(0)),
            ] {
                head.extend_from_slice(name);
                push_unsigned(head, number);
            }
            head.push(b'\n');
        }
        let head = &mut self.text.head;
        if !event.flags().may_have_sbr() {
            head.extend_from_slice(b"/*!50718 SET TRANSACTION ISOLATION LEVEL READ COMMITTED*/");
            end_line(head);
        }
        for (name, time) in [(&b"original"[..], original), (b"immediate", immediate)] {
            head.extend_from_slice(b"# ");
            head.extend_from_slice(name);
            head.extend_from_slice(b"_commit_timestamp=");
            push_unsigned(head, time);
            head.extend_from_slice(b" (");
            self.pen.time.push_long(head, time);
            head.extend_from_slice(b")\n");
        }
        head.extend_from_slice(b"/*!80001 SET @@session.original_commit_timestamp=");
        push_unsigned(head, original);
        head.extend_from_slice(b"*/");
        end_line(head);
        let immediate = versions.map_or(999_999, |versions| versions.immediate);
        let original = versions.and_then(|versions| versions.original).unwrap_or(immediate);
        for (name, version) in [(&b"original"[..], original), (b"immediate", immediate)] {
            head.extend_from_slice(b"/*!80014 SET @@session.");
            head.extend_from_slice(name);
            head.extend_from_slice(b"_server_version=");
            push_unsigned(head, version.into());
            head.extend_from_slice(b"*/");
            end_line(head);
        }
        head.extend_from_slice(b"SET @@SESSION.GTID_NEXT= '");
        match event.gtid() {
            Some(gtid) => push_display(head, &gtid),
            None => head.extend_from_slice(b"ANONYMOUS"),
        }
        head.push(b'\'');
        end_line(head);
        Ok(None)
    }

    fn xid(&mut self, shown: &Shown<'_>) -> Result<Option<Next>, BinlogError> {
        self.state.in_transaction = false;
        self.state.skipped_in_transaction = false;
        self.state.seen_gtid = false;
        if self.emit {
            if !self.options.short_form {
                self.header(shown);
                self.text.head.extend_from_slice(b"\tXid = ");
                push_unsigned(&mut self.text.head, XidEvent::decode(shown.body)?.xid);
                self.text.head.push(b'\n');
            }
            self.text.head.extend_from_slice(b"COMMIT");
            end_line(&mut self.text.head);
        }
        Ok(None)
    }

    fn payload(&mut self, shown: &Shown<'_>) -> Result<Option<Next>, BinlogError> {
        if !self.emit || self.options.short_form {
            return Ok(None);
        }
        self.header(shown);
        let size = shown.header.event_size.into();
        let Some((fields, _)) = TransactionPayloadHeader::decode_front(shown.body, size)? else {
            return Err(BinlogError::Truncated { needed: 1, left: 0 });
        };
        let head = &mut self.text.head;
        head.extend_from_slice(b"\tTransaction_Payload\t\tpayload_size=");
        push_unsigned(head, fields.payload_size());
        head.extend_from_slice(b"\tcompression_type=");
        push_display(head, &fields.compression_type());
        if let Some(size) = fields.uncompressed_size() {
            head.extend_from_slice(b"\tuncompressed_size=");
            push_unsigned(head, size);
        }
        head.extend_from_slice(b"\n# Start of compressed events.\n");
        Ok(None)
    }

    fn payload_end(&mut self) {
        // The payload itself may have been passed over: then so were its events.
        if self.state.filtered_by_gtid || !self.state.started && self.options.selection.is_late() {
            return;
        }
        if self.emit && !self.options.short_form && !self.state.held_format_description {
            self.text.head.extend_from_slice(b"# End of compressed events.\n");
            self.text.flush_head();
        }
    }

    fn format_description(&mut self, shown: &Shown<'_>) -> io::Result<Next> {
        let options = self.options;
        let mode = options.base64_output;
        let encoded = mode != Base64Output::Never && !options.short_form;
        let is_relay_log = shown.header.flags.contains(HeaderFlags::RELAY_LOG);
        if !is_relay_log && std::mem::replace(&mut self.state.begun, true) {
            let (emit, out) = (self.emit, &mut self.text.out.text);
            let mut unseen = Vec::new();
            push_log_end(if emit { out } else { &mut unseen }, options, self.state);
        }
        if encoded && !is_relay_log {
            self.state.printed_format_description = true;
        }
        if self.emit {
            let description = match FormatDescription::decode(shown.body, shown.checksum.is_some()) {
                Ok(description) => description,
                Err(error) => return Ok(Next::Error(unreadable(shown, &error))),
            };
            if !options.short_form {
                self.header(shown);
                let head = &mut self.text.head;
                head.extend_from_slice(b"\tStart: binlog v ");
                push_unsigned(head, description.binlog_version.into());
                head.extend_from_slice(b", server v ");
                head.extend_from_slice(description.server_version().as_bytes());
                head.extend_from_slice(b" created ");
                self.pen.time.push_short(head, shown.header.timestamp);
                let at_startup = description.created != 0;
                head.extend_from_slice(if at_startup { b" at startup\n" } else { b"\n" });
                if shown.header.flags.contains(HeaderFlags::IN_USE) {
                    head.extend_from_slice(
                        b"# Warning: this binlog is either in use or was not closed properly.\n",
                    );
                }
            }
            let head = &mut self.text.head;
            if is_relay_log {
                head.extend_from_slice(
                    b"# This Format_description_event appears in a relay log and was generated by the replica thread.\n",
                );
            } else {
                let artificial = shown.header.flags.contains(HeaderFlags::ARTIFICIAL);
                if description.created != 0 && !artificial {
                    head.extend_from_slice(b"ROLLBACK");
                    end_line(head);
                }
                if encoded && mode != Base64Output::DecodeRows {
                    head.extend_from_slice(b"BINLOG '\n");
                    push_base64_lines(head, shown.bytes);
                    head.push(b'\'');
                    end_line(head);
                }
            }
            self.text.flush_head();
        }
        if options.skip_gtids && self.emit {
            self.direct(b"/*!50616 SET @@SESSION.GTID_NEXT='AUTOMATIC'*/");
        }
        if !options.force_if_open && shown.header.flags.contains(HeaderFlags::IN_USE) {
            return Ok(Next::Error(
                "Attempting to dump a binlog that was not closed properly. Most probably, mysqld is still \
                 writing it, or it crashed. Rerun with --force-if-open to ignore this problem."
                    .to_owned(),
            ));
        }
        Ok(Next::Go)
    }

    /// Table maps, row events and the statements behind them.
    fn row_related(&mut self, shown: &Shown<'_>, event: Option<&Event<'_>>) -> io::Result<Next> {
        let Some(event) = event else { return Ok(Next::Go) };
        let length = event.log.lengths.of(shown.header.event_type);
        let is_rows = shown.header.event_type.is_rows();
        let mut rows = None;
        if shown.header.event_type == EventType::TABLE_MAP {
            let map = match TableMapEvent::decode(shown.body, length) {
                Ok(map) => map,
                Err(error) => return Ok(Next::Error(unreadable(shown, &error))),
            };
            if self.is_ignored(&map) {
                if self.emit {
                    // Rows of it are passed over, but the table map is in force.
                    let _ = self.pen.tables.event(event);
                }
                self.state.skipped_in_transaction = true;
                self.state.ignored_tables.push(map.table_id);
                return Ok(Next::Go);
            }
            self.state.ignored_tables.retain(|id| *id != map.table_id);
            return self.table_map(shown, event, &map);
        }
        if is_rows {
            match RowsEvent::decode(shown.header.event_type, shown.body, length) {
                Ok(event) => rows = Some(event),
                Err(error) => return Ok(Next::Error(unreadable(shown, &error))),
            }
        }
        if let Some(rows) = &rows {
            let ends = rows.flags.contains(RowsFlags::STMT_END);
            let ignored = self.state.ignored_tables.contains(&rows.table_id);
            if ends {
                self.state.ignored_tables.clear();
            }
            if ignored {
                if ends {
                    self.end_rows(self.state.body_open)?;
                }
                self.state.skipped_in_transaction = true;
                return Ok(Next::Go);
            }
            if !self.state.printed_format_description
                && !self.options.short_form
                && self.options.base64_output != Base64Output::DecodeRows
            {
                let name = rows_name(shown.header.event_type);
                return Ok(Next::Error(match self.options.base64_output {
                    Base64Output::Never => format!(
                        "--base64-output=never specified, but binlog contains a {name} event which must be \
                         printed in base64."
                    ),
                    _ => format!(
                        "malformed binlog: it does not contain any Format_description_log_event. I now found \
                         a {name} event, which is not safe to process without a \
                         Format_description_log_event."
                    ),
                }));
            }
            return self.rows(shown, event, rows);
        }
        self.rows_query(shown)
    }

    fn is_ignored(&self, map: &TableMapEvent<'_>) -> bool {
        let tables = &self.options.selection.tables;
        self.is_other_database(map.database)
            || !tables.is_empty()
                && !tables.iter().any(|(database, table)| database == map.database && table == map.table)
    }

    fn table_map(
        &mut self,
        shown: &Shown<'_>,
        event: &Event<'_>,
        map: &TableMapEvent<'_>,
    ) -> io::Result<Next> {
        self.state.rows_open = true;
        if self.options.short_form {
            return Ok(Next::Go);
        }
        if self.emit {
            let schema = match self.pen.tables.event(event) {
                Ok(Some(TableEvent::Map(schema))) => schema,
                Ok(_) => return Ok(Next::Go),
                Err(error) => return Ok(Next::Error(error.to_string())),
            };
            self.header(shown);
            let head = &mut self.text.head;
            head.extend_from_slice(b"\tTable_map: ");
            push_identifier(head, map.database);
            head.push(b'.');
            push_identifier(head, map.table);
            head.extend_from_slice(b" mapped to number ");
            push_unsigned(head, map.table_id.0);
            head.push(b'\n');
            let version = self.state.immediate_server_version;
            if (TELLS_OF_GENERATED_KEYS..999_999).contains(&version) {
                head.extend_from_slice(b"# has_generated_invisible_primary_key=");
                let has = map.flags.contains(TableMapFlags::GENERATED_INVISIBLE_PRIMARY_KEY);
                head.extend_from_slice(if has { b"1\n" } else { b"0\n" });
            }
            if self.options.print_table_metadata {
                push_columns(head, &schema);
            }
            self.text.flush_head();
        }
        self.base64(shown)?;
        Ok(Next::Go)
    }

    fn rows_query(&mut self, shown: &Shown<'_>) -> io::Result<Next> {
        if self.options.short_form || self.options.verbose < 2 {
            self.state.rows_open = true;
            self.flush_head();
            return Ok(Next::Go);
        }
        self.state.rows_open = true;
        if self.emit {
            let event = match RowsQueryEvent::decode(shown.body) {
                Ok(event) => event,
                Err(error) => return Ok(Next::Error(unreadable(shown, &error))),
            };
            self.header(shown);
            let head = &mut self.text.head;
            head.extend_from_slice(b"\tRows_query\n");
            for line in event.statement.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                head.extend_from_slice(b"# ");
                head.extend_from_slice(line);
                head.push(b'\n');
            }
            self.text.flush_head();
        }
        self.base64(shown)?;
        Ok(Next::Go)
    }

    /// Adds an event to the `BINLOG` statement.
    fn base64(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        if self.options.base64_output == Base64Output::DecodeRows {
            return Ok(());
        }
        if self.emit {
            let body = &mut self.text.body.text;
            if !self.state.body_open {
                body.extend_from_slice(b"\nBINLOG '\n");
            }
            push_base64_lines(body, shown.bytes);
            self.text.body.settle()?;
        }
        self.state.body_open = true;
        self.state.rows_waiting = true;
        Ok(())
    }

    fn rows(&mut self, shown: &Shown<'_>, event: &Event<'_>, rows: &RowsEvent<'_>) -> io::Result<Next> {
        let ends = rows.flags.contains(RowsFlags::STMT_END);
        self.state.rows_open = true;
        if !self.options.short_form {
            if self.emit {
                self.header(shown);
                let head = &mut self.text.head;
                head.push(b'\t');
                head.extend_from_slice(rows_name(shown.header.event_type).as_bytes());
                head.extend_from_slice(b": table id ");
                push_unsigned(head, rows.table_id.0);
                push_flags(head, rows.flags);
                head.push(b'\n');
                self.text.flush_head();
            }
            self.base64(shown)?;
            if self.options.verbose > 0 {
                if self.emit {
                    if let Err(line) = self.row_lines(event, rows)? {
                        return Ok(Next::Error(line));
                    }
                }
                self.state.rows_waiting = true;
            }
        }
        if ends {
            self.end_rows(!self.options.short_form && self.state.body_open)?;
        } else {
            self.flush_head();
        }
        Ok(Next::Go)
    }

    /// Appends the `###` lines.
    fn row_lines(&mut self, event: &Event<'_>, rows: &RowsEvent<'_>) -> io::Result<Result<(), String>> {
        let schema = match self.pen.tables.event(event) {
            Ok(Some(TableEvent::Rows(schema, _))) => schema,
            _ => {
                let out = &mut self.text.footer.text;
                out.extend_from_slice(b"### Row event for unknown table #");
                push_unsigned(out, rows.table_id.0);
                out.push(b'\n');
                return Ok(Ok(()));
            }
        };
        let verbosity = if self.options.verbose > 1 { Verbosity::Types } else { Verbosity::Values };
        let printer = match self.pen.rows.entry(rows.table_id) {
            Entry::Occupied(known) if Arc::ptr_eq(known.get().schema(), &schema) => known.into_mut(),
            entry => {
                let database = new_name(&schema.database, &self.options.rewrite_db).map(Vec::from);
                let printer = RowsPrinter::renamed(Arc::clone(&schema), verbosity, database.as_deref());
                entry.insert_entry(printer).into_mut()
            }
        };
        let footer = &mut self.text.footer;
        let mut spilled = None;
        let printed = {
            let (mut text, mut part) = (std::mem::take(&mut footer.text), std::mem::take(footer));
            let printed = printer.print_by_row(&mut text, &mut self.pen.decoder, rows, |text| {
                if text.len() > super::text::PART_MEMORY {
                    std::mem::swap(&mut part.text, text);
                    if let Err(error) = part.settle() {
                        spilled = Some(error);
                    }
                    std::mem::swap(&mut part.text, text);
                }
                Ok::<(), BinlogError>(())
            });
            part.text = text;
            *footer = part;
            printed
        };
        if let Some(error) = spilled {
            return Err(error);
        }
        Ok(printed.map_err(|error| event.error(error).to_string()))
    }

    /// A statement in rows is over: what waits is printed. `closes`: there is a `BINLOG` to close.
    fn end_rows(&mut self, closes: bool) -> io::Result<()> {
        if self.emit {
            if closes {
                let body = &mut self.text.body.text;
                body.push(b'\'');
                end_line(body);
            }
            self.text.flush_rows(self.state.rows_waiting)?;
        }
        self.state.rows_open = false;
        self.state.body_open = false;
        self.state.rows_waiting = false;
        Ok(())
    }

    fn other(&mut self, shown: &Shown<'_>) -> Result<Option<Next>, BinlogError> {
        let options = self.options;
        if shown.header.event_type == EventType::PREVIOUS_GTIDS
            && options.selection.database.is_some()
            && !options.skip_gtids
            && !std::mem::replace(&mut self.state.warned_of_database, true)
            && self.emit
        {
            self.state.warnings.push(
                "WARNING: The option --database has been used. It may filter parts of transactions, but will \
                 include the GTIDs in any case. If you want to exclude or include transactions, you should use \
                 the options --exclude-gtids or --include-gtids, respectively, instead."
                    .to_owned(),
            );
        }
        if !self.emit {
            return Ok(None);
        }
        let event_type = shown.header.event_type;
        if !options.short_form || matches!(event_type, EventType::XA_PREPARE) {
            if !options.short_form {
                self.header(shown);
            }
        }
        let head = &mut self.text.head;
        match event_type {
            EventType::PREVIOUS_GTIDS => {
                if !options.short_form {
                    head.extend_from_slice(b"\tPrevious-GTIDs\n");
                }
                let set = PreviousGtidsEvent::decode(shown.body)?.gtid_set;
                let text = if set.is_empty() { "[empty]".to_owned() } else { format!("{set:#}") };
                for line in text.split('\n') {
                    head.extend_from_slice(b"# ");
                    head.extend_from_slice(line.as_bytes());
                    head.push(b'\n');
                }
            }
            EventType::XA_PREPARE => {
                let event = XaPrepareEvent::decode(shown.body)?;
                if !options.short_form {
                    head.extend_from_slice(b"\tXA PREPARE ");
                    push_display(head, &event.xa_id);
                    head.push(b'\n');
                }
                head.extend_from_slice(if event.one_phase { b"XA COMMIT " } else { b"XA PREPARE " });
                push_display(head, &event.xa_id);
                if event.one_phase {
                    head.extend_from_slice(b" ONE PHASE");
                }
                head.push(b'\n');
                end_line(head);
            }
            _ if options.short_form => {}
            EventType::STOP => head.extend_from_slice(b"\tStop\n"),
            EventType::ROTATE => {
                let event = RotateEvent::decode(shown.body)?;
                head.extend_from_slice(b"\tRotate to ");
                head.extend_from_slice(event.name);
                head.extend_from_slice(b"  pos: ");
                push_unsigned(head, event.position);
                head.push(b'\n');
            }
            EventType::INCIDENT => {
                let event = IncidentEvent::decode(shown.body)?;
                head.extend_from_slice(b"\n# Incident: ");
                push_display(head, &event.incident);
                head.extend_from_slice(b"\nRELOAD DATABASE; # Shall generate syntax error\n");
            }
            EventType::DELETE_FILE => {
                head.extend_from_slice(b"\n#Delete_file: file_id=");
                let id = shown.body.first_chunk().map_or(0, |id| u32::from_le_bytes(*id));
                push_unsigned(head, id.into());
                head.push(b'\n');
            }
            EventType::VIEW_CHANGE => {
                let event = ViewChangeEvent::decode(shown.body)?;
                head.extend_from_slice(b"\tView_change: view_id ");
                head.extend_from_slice(event.view_name());
                head.push(b'\n');
            }
            EventType::IGNORABLE => {
                head.extend_from_slice(b"\tIgnorable\n# Ignorable event type ");
                push_unsigned(head, event_type.0.into());
                head.extend_from_slice(b" (Ignorable)\n");
            }
            _ => head.extend_from_slice(b"\n# Unknown event\n"),
        }
        Ok(None)
    }

    /// A block of a file that LOAD DATA reads.
    fn load_block(&mut self, shown: &Shown<'_>) -> io::Result<Result<Option<Next>, BinlogError>> {
        let event = match LoadBlockEvent::decode(shown.body) {
            Ok(event) => event,
            Err(error) => return Ok(Err(error)),
        };
        let begins = shown.header.event_type == EventType::BEGIN_LOAD_QUERY;
        if self.emit && !self.options.short_form {
            self.header(shown);
            let head = &mut self.text.head;
            head.extend_from_slice(if begins {
                b"\n#Begin_load_query: file_id: "
            } else {
                b"\n#Append_block: file_id: "
            });
            push_unsigned(head, event.file_id.into());
            head.extend_from_slice(b"  block_len: ");
            push_unsigned(head, event.block.len() as u64);
            head.push(b'\n');
        }
        let path = if begins {
            let path = self.load_file(event.file_id)?;
            self.state.load_files.insert(event.file_id, path.clone());
            Some(path)
        } else {
            self.state.load_files.get(&event.file_id).cloned()
        };
        if let Some(path) = path.filter(|_| self.pass != Pass::Text) {
            OpenOptions::new().append(true).open(path)?.write_all(event.block)?;
        }
        Ok(Ok(None))
    }

    /// The file for a LOAD DATA: made, or the one that was made before the text is.
    fn load_file(&mut self, file_id: u32) -> io::Result<PathBuf> {
        if self.pass == Pass::Text
            && let Some(path) = self.state.made_files.pop_front()
        {
            return Ok(path);
        }
        let path = make_file(&self.options.local_load, file_id)?;
        if self.pass == Pass::State {
            self.state.made_files.push_back(path.clone());
        }
        Ok(path)
    }

    fn execute_load(&mut self, shown: &Shown<'_>) -> io::Result<Result<Option<Next>, BinlogError>> {
        let load = match ExecuteLoadQueryEvent::decode(shown.body) {
            Ok(load) => load,
            Err(error) => return Ok(Err(error)),
        };
        let path = self.state.load_files.remove(&load.file_id);
        if self.is_other_database(load.query.database) {
            self.state.skipped_in_transaction = true;
            return Ok(Ok(None));
        }
        let Some(path) = path else {
            if self.emit {
                let told = "WARNING: Ignoring Execute_load_query since there is no Begin_load_query event for file_id";
                self.state.warnings.push(format!("{told}: {}", load.file_id));
            }
            return Ok(Ok(None));
        };
        if self.emit && !self.options.short_form {
            self.header(shown);
            push_description(&mut self.text.head, "Execute_load_query", &load.query);
        }
        self.settings(shown, &load.query);
        if self.emit {
            let head = &mut self.text.head;
            let statement = load.query.statement;
            let place = |at: u32| (at as usize).min(statement.len());
            head.extend_from_slice(statement.get(..place(load.file_name_start)).unwrap_or_default());
            head.extend_from_slice(b" LOCAL INFILE ");
            super::quote::push_quoted(head, path.as_os_str().as_encoded_bytes());
            if load.duplicate_handling == binlogz_binlog::event::DuplicateHandling::REPLACE {
                head.extend_from_slice(b" REPLACE");
            }
            head.extend_from_slice(b" INTO");
            head.extend_from_slice(statement.get(place(load.file_name_end)..).unwrap_or_default());
            head.push(b'\n');
            end_line(head);
            if !self.options.short_form {
                head.extend_from_slice(b"# file_id: ");
                push_unsigned(head, load.file_id.into());
                head.extend_from_slice(b" \n");
            }
        }
        Ok(Ok(None))
    }
}

impl Buffered {
    fn shown(&self) -> Shown<'_> {
        let end = self.bytes.len().saturating_sub(self.checksum_size);
        Shown {
            header: self.header,
            end_log_pos: self.end_log_pos,
            position: self.position,
            bytes: &self.bytes,
            body: self.bytes.get(binlogz_binlog::header::HEADER_SIZE..end).unwrap_or_default(),
            checksum: self.checksum,
            inside_payload: false,
        }
    }
}

/// Makes a file with a name of its own, as mysqlbinlog names it.
fn make_file(folder: &Path, file_id: u32) -> io::Result<PathBuf> {
    for number in 0.. {
        let path = folder.join(format!("SQL_LOAD_MB-{file_id:x}-{number:x}"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("no name is left for the file of a LOAD DATA"))
}

fn gtid_of<'a>(shown: &Shown<'a>) -> Option<AnyGtidEvent<'a>> {
    AnyGtidEvent::decode(shown.body, shown.header.event_type).ok()?
}

fn query_kind(body: &[u8]) -> Option<StatementKind> {
    QueryEvent::decode(body).ok().map(|query| StatementKind::of(query.statement))
}

fn starts_group(kind: StatementKind) -> bool {
    matches!(kind, StatementKind::Begin | StatementKind::XaStart)
}

fn ends_group(kind: StatementKind) -> bool {
    matches!(kind, StatementKind::Commit | StatementKind::Rollback | StatementKind::XaRollback)
}

#[cold]
fn unreadable(shown: &Shown<'_>, error: &BinlogError) -> String {
    format!("Could not read entry at offset {}: {error}", shown.position)
}

/// What mysqlbinlog calls the row events.
fn rows_name(event_type: EventType) -> &'static str {
    match event_type {
        EventType::WRITE_ROWS => "Write_rows",
        EventType::UPDATE_ROWS => "Update_rows",
        EventType::DELETE_ROWS => "Delete_rows",
        EventType::PARTIAL_UPDATE_ROWS => "Update_rows_partial",
        EventType::WRITE_ROWS_V1 => "Write_rows_v1",
        EventType::UPDATE_ROWS_V1 => "Update_rows_v1",
        EventType::DELETE_ROWS_V1 => "Delete_rows_v1",
        _ => "Rows_of_5.1_beta",
    }
}

fn push_flags(out: &mut Vec<u8>, flags: RowsFlags) {
    let mut separator = &b" flags: "[..];
    for (flag, name) in [
        (RowsFlags::STMT_END, &b"STMT_END_F"[..]),
        (RowsFlags::NO_FOREIGN_KEY_CHECKS, b"NO_FOREIGN_KEY_CHECKS_F"),
        (RowsFlags::RELAXED_UNIQUE_CHECKS, b"RELAXED_UNIQUE_CHECKS_F"),
        (RowsFlags::COMPLETE_ROWS, b"COMPLETE_ROWS_F"),
        (RowsFlags::USE_SQL_FOREIGN_KEY, b"USE_SQL_FOREIGN_KEY_F"),
    ] {
        if flags.contains(flag) {
            out.extend_from_slice(separator);
            out.extend_from_slice(name);
            separator = b" ";
        }
    }
}

fn push_user_value(out: &mut Vec<u8>, value: Option<&UserVarValue<'_>>) {
    let Some(value) = value else { return out.extend_from_slice(b"NULL") };
    match value.value_type {
        UserVarType::INT => {
            let number = value.bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if value.is_unsigned() { push_unsigned(out, number) } else { push_signed(out, number as i64) }
        }
        UserVarType::REAL => {
            let number = value.bytes.first_chunk().map_or(0.0, |bytes| f64::from_le_bytes(*bytes));
            super::number::push_general(out, number, 14);
        }
        UserVarType::DECIMAL => push_decimal(out, value.bytes),
        _ => match (Charset::of_collation(value.collation.into()), collation_name(value.collation.into())) {
            (Some(charset), Some(collation)) => {
                out.push(b'_');
                out.extend_from_slice(charset.name().as_bytes());
                out.extend_from_slice(b" 0x");
                for byte in value.bytes {
                    for nibble in [byte >> 4, byte & 15] {
                        out.push(if nibble < 10 { b'0' + nibble } else { b'A' + nibble - 10 });
                    }
                }
                out.extend_from_slice(b" COLLATE `");
                out.extend_from_slice(collation.as_bytes());
                out.push(b'`');
            }
            _ => out.extend_from_slice(b"???"),
        },
    }
}

/// Precision, scale, digits.
fn push_decimal(out: &mut Vec<u8>, bytes: &[u8]) {
    use binlogz_binlog::row::{Decimal, DecimalFormat};
    let decimal = bytes.split_first_chunk().and_then(|([precision, scale], digits)| {
        let format = DecimalFormat::new(*precision, *scale).ok()?;
        Decimal::new(digits, format).ok()
    });
    if let Some(decimal) = decimal {
        out.extend_from_slice(decimal.text().as_bytes());
    }
}

fn push_hex32(out: &mut Vec<u8>, number: u32) {
    for shift in (0..8).rev() {
        let nibble = (number >> (4 * shift) & 15) as u8;
        out.push(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
    }
}

fn push_display(out: &mut Vec<u8>, value: &dyn std::fmt::Display) {
    let written = write!(out, "{value}");
    debug_assert!(written.is_ok(), "a vector takes all that is written");
}

/// Takes back what a failed run left of the files of LOAD DATA.
pub fn remove_load_files(state: &State) {
    for path in state.load_files.values() {
        let _ = fs::remove_file(path);
    }
}
