//! Everything that is neither statement nor row: the line before every event, GTIDs, commits, payloads.

use std::io::{self, Write as _};

use binlogz_binlog::event::{
    AnyGtidEvent, FormatDescription, Incident, IncidentEvent, PreviousGtidsEvent, RotateEvent,
    TransactionPayloadHeader, ViewChangeEvent, XaPrepareEvent, XidEvent,
};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{Error as BinlogError, EventType, HeaderFlags};
use binlogz_flow::events::Event;

use super::select::{gtid_of, unreadable};
use super::{PrintStep, Run};
use crate::mysqlbinlog::around::push_log_end;
use crate::mysqlbinlog::options::Base64Output;
use crate::mysqlbinlog::query::end_line;
use crate::mysqlbinlog::shown::ShownEvent;
use crate::mysqlbinlog::write::base64_lines::push_base64_lines;
use crate::mysqlbinlog::write::hexdump::{push_hexdump, push_hexdump_header, push_hexdump_rest};
use crate::number::{push_signed, push_unsigned};

/// Bytes of a large event that are dumped at once: whole lines.
const HEXDUMP_PIECE: u64 = 64 << 10;

impl Run<'_> {
    /// The comment that begins with the event's time.
    pub(super) fn header(&mut self, shown: &ShownEvent<'_>) {
        let head = &mut self.text.head;
        let server_id = shown.header.server_id & self.options.selection.server_id_mask;
        // Neighbouring events mostly begin the same way.
        let front = &mut self.pen.front;
        if front.time != shown.header.timestamp || front.server_id != server_id || front.text.is_empty() {
            (front.time, front.server_id) = (shown.header.timestamp, server_id);
            front.text.clear();
            front.text.push(b'#');
            self.pen.time.push_short(&mut front.text, front.time);
            front.text.extend_from_slice(b" server id ");
            push_unsigned(&mut front.text, server_id.into());
            front.text.extend_from_slice(b"  end_log_pos ");
        }
        head.extend_from_slice(&front.text);
        push_unsigned(head, shown.end_log_pos.into());
        head.push(b' ');
        if let Some(checksum) = shown.checksum {
            head.extend_from_slice(b"CRC32 0x");
            push_hex32(head, checksum);
            head.push(b' ');
        }
        if self.options.hexdump && !shown.bytes.is_empty() {
            push_hexdump(head, shown.bytes, shown.position);
        }
    }

    pub(super) fn gtid(&mut self, shown: &ShownEvent<'_>) -> Result<Option<PrintStep>, BinlogError> {
        self.state.seen_gtid = true;
        if std::mem::take(&mut self.state.skipped_in_transaction) {
            self.direct(b"COMMIT /* added by mysqlbinlog */");
        }
        let Some(event) = gtid_of(shown) else {
            return Err(BinlogError::Truncated { needed: 1, left: 0 });
        };
        let immediate_version = immediate_version(&event);
        self.state.immediate_server_version = immediate_version;
        if !self.emit {
            return Ok(None);
        }
        let times = event.commit_timestamps();
        let immediate = times.map_or(0, |times| times.immediate);
        let original = times.and_then(|times| times.original).unwrap_or(immediate);
        let pen = &mut *self.pen;
        for (text, time) in pen.commit_times.iter_mut().zip([original, immediate]) {
            text.set(time, &mut pen.time);
        }
        if !self.options.short_form {
            self.gtid_line(shown, &event);
        }
        self.commit_times(&event);
        self.server_versions(&event, immediate_version);
        self.gtid_next(event.gtid());
        Ok(None)
    }

    /// The comment that names the event, its place among the transactions that may run at once, times and length.
    fn gtid_line(&mut self, shown: &ShownEvent<'_>, event: &AnyGtidEvent<'_>) {
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
        let [original, immediate] = &self.pen.commit_times;
        head.extend_from_slice(b"\toriginal_committed_timestamp=");
        head.extend_from_slice(&original.digits);
        head.extend_from_slice(b"\timmediate_commit_timestamp=");
        head.extend_from_slice(&immediate.digits);
        head.extend_from_slice(b"\ttransaction_length=");
        push_unsigned(head, event.transaction_length().unwrap_or(0));
        head.push(b'\n');
    }

    /// The isolation level of transactions without statements, and the times of the commit.
    fn commit_times(&mut self, event: &AnyGtidEvent<'_>) {
        let head = &mut self.text.head;
        let [original, immediate] = &self.pen.commit_times;
        if !event.flags().may_have_sbr() {
            head.extend_from_slice(b"/*!50718 SET TRANSACTION ISOLATION LEVEL READ COMMITTED*/");
            end_line(head);
        }
        head.extend_from_slice(b"# original_commit_timestamp=");
        head.extend_from_slice(&original.comment);
        head.extend_from_slice(b"# immediate_commit_timestamp=");
        head.extend_from_slice(&immediate.comment);
        head.extend_from_slice(b"/*!80001 SET @@session.original_commit_timestamp=");
        head.extend_from_slice(&original.digits);
        head.extend_from_slice(b"*/");
        end_line(head);
    }

    fn server_versions(&mut self, event: &AnyGtidEvent<'_>, immediate_version: u32) {
        let head = &mut self.text.head;
        let versions = event.server_versions();
        let original_version = versions.and_then(|versions| versions.original).unwrap_or(immediate_version);
        for (name, version) in [(&b"original"[..], original_version), (b"immediate", immediate_version)] {
            head.extend_from_slice(b"/*!80014 SET @@session.");
            head.extend_from_slice(name);
            head.extend_from_slice(b"_server_version=");
            push_unsigned(head, version.into());
            head.extend_from_slice(b"*/");
            end_line(head);
        }
    }

    fn gtid_next(&mut self, gtid: Option<Gtid>) {
        let head = &mut self.text.head;
        head.extend_from_slice(b"SET @@SESSION.GTID_NEXT= '");
        match gtid {
            Some(gtid) => {
                let (tsid, text) = &mut self.pen.tsid;
                if *tsid != Some(gtid.tsid()) {
                    text.clear();
                    push_display(text, &gtid.tsid());
                    text.push(b':');
                    *tsid = Some(gtid.tsid());
                }
                head.extend_from_slice(text);
                push_unsigned(head, gtid.gno());
            }
            None => head.extend_from_slice(b"ANONYMOUS"),
        }
        head.push(b'\'');
        end_line(head);
    }

    pub(super) fn xid(&mut self, shown: &ShownEvent<'_>) -> Result<Option<PrintStep>, BinlogError> {
        self.state.end_transaction();
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

    pub(super) fn payload(
        &mut self,
        shown: &ShownEvent<'_>,
        event: Option<&Event<'_>>,
    ) -> io::Result<Result<Option<PrintStep>, BinlogError>> {
        self.state.payload_hidden = false;
        if !self.emit || self.options.short_form {
            return Ok(Ok(None));
        }
        self.header(shown);
        if let Some(event) = event.filter(|event| event.frame.is_none() && self.options.hexdump)
            && let Err(line) = self.large_hexdump(shown, event)?
        {
            return Ok(Ok(Some(PrintStep::Damaged(line))));
        }
        Ok(self.payload_fields(shown))
    }

    /// The dump of an event that is not held.
    fn large_hexdump(&mut self, shown: &ShownEvent<'_>, event: &Event<'_>) -> io::Result<Result<(), String>> {
        let mut bytes = std::mem::take(&mut self.pen.scratch);
        let size = u64::from(shown.header.event_size);
        let header_size = HEADER_SIZE as u64;
        let mut begin = header_size;
        bytes.clear();
        let read = event.read(0..begin, &mut bytes);
        push_hexdump_header(&mut self.text.head, &bytes, shown.position);
        self.text.flush_head();
        let mut failed = read.err();
        while begin < size && failed.is_none() {
            bytes.clear();
            failed = event.read(begin..begin + HEXDUMP_PIECE, &mut bytes).err();
            push_hexdump_rest(&mut self.text.out.text, &bytes, shown.position + begin);
            self.text.out.settle()?;
            begin += HEXDUMP_PIECE;
        }
        self.text.head.extend_from_slice(b"# ");
        self.pen.scratch = bytes;
        Ok(failed.map_or(Ok(()), |error| Err(error.to_string())))
    }

    fn payload_fields(&mut self, shown: &ShownEvent<'_>) -> Result<Option<PrintStep>, BinlogError> {
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

    pub(super) fn payload_end(&mut self) {
        if self.emit && !self.options.short_form && !self.state.payload_hidden {
            self.text.head.extend_from_slice(b"# End of compressed events.\n");
            self.text.flush_head();
        }
    }

    pub(super) fn format_description(&mut self, shown: &ShownEvent<'_>) -> io::Result<PrintStep> {
        let options = self.options;
        if !options.force_if_open && shown.header.flags.contains(HeaderFlags::IN_USE) {
            return Ok(PrintStep::Error(
                "Attempting to dump a binlog that was not closed properly. Most probably, mysqld is still \
                 writing it, or it crashed. Rerun with --force-if-open to ignore this problem."
                    .to_owned(),
            ));
        }
        let mode = options.base64_output;
        let encoded = mode != Base64Output::Never && !options.short_form;
        let is_relay_log = shown.header.flags.contains(HeaderFlags::RELAY_LOG);
        // An event without a position is what a server sends before its events: it does not end a log.
        let ends_log = self.state.begun && shown.header.end_log_pos > 0;
        self.state.begun |= !is_relay_log;
        if ends_log && !is_relay_log {
            let emit = self.emit;
            let out = &mut self.text.out.text;
            let mut unseen = Vec::new();
            push_log_end(if emit { out } else { &mut unseen }, options, self.state);
        }
        if encoded && !is_relay_log {
            self.state.printed_format_description = true;
        }
        if self.emit {
            // A format description that names a checksum algorithm is followed by a checksum, even if the
            // algorithm is none.
            let has_algorithm = shown.bytes.len() > HEADER_SIZE + shown.body.len();
            let description = match FormatDescription::decode(shown.body, has_algorithm) {
                Ok(description) => description,
                Err(error) => return Ok(PrintStep::Damaged(unreadable(shown, &error))),
            };
            if !options.short_form {
                self.format_description_line(shown, &description);
            }
            self.begin_log(shown, &description, encoded && mode != Base64Output::DecodeRows);
            self.text.flush_head();
        }
        if options.skip_gtids && encoded && !is_relay_log {
            self.direct(b"/*!50616 SET @@SESSION.GTID_NEXT='AUTOMATIC'*/");
        }
        Ok(PrintStep::Go)
    }

    /// The comment that names the server which wrote the log, and the time.
    fn format_description_line(&mut self, shown: &ShownEvent<'_>, description: &FormatDescription) {
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
            head.extend_from_slice(b"# Warning: this binlog is either in use or was not closed properly.\n");
        }
    }

    /// The statements that a log begins with: ROLLBACK after a start of the server, and the event itself, if it is `encoded`.
    fn begin_log(&mut self, shown: &ShownEvent<'_>, description: &FormatDescription, encoded: bool) {
        let head = &mut self.text.head;
        if shown.header.flags.contains(HeaderFlags::RELAY_LOG) {
            head.extend_from_slice(
                b"# This Format_description_event appears in a relay log and was generated by the replica thread.\n",
            );
            return;
        }
        let artificial = shown.header.flags.contains(HeaderFlags::ARTIFICIAL);
        if description.created != 0 && !artificial {
            head.extend_from_slice(b"ROLLBACK");
            end_line(head);
        }
        if encoded {
            head.extend_from_slice(b"BINLOG '\n");
            push_base64_lines(head, shown.bytes);
            head.push(b'\'');
            end_line(head);
        }
    }

    /// Warns once that --database leaves the GTIDs of all transactions in.
    fn warn_of_database(&mut self, event_type: EventType) {
        let options = self.options;
        if event_type == EventType::PREVIOUS_GTIDS
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
    }

    pub(super) fn other(&mut self, shown: &ShownEvent<'_>) -> Result<Option<PrintStep>, BinlogError> {
        self.warn_of_database(shown.header.event_type);
        if shown.header.event_type == EventType::INCIDENT {
            // mysqlbinlog does not read incidents that it doesn't know.
            let incident = IncidentEvent::decode(shown.body)?.incident;
            if incident != Incident::LOST_EVENTS {
                return Err(BinlogError::invalid("incident event", "incident", incident, "LOST_EVENTS"));
            }
        }
        if !self.emit {
            return Ok(None);
        }
        let options = self.options;
        let event_type = shown.header.event_type;
        // Even --short-form shows a prepared transaction.
        if !options.short_form || event_type == EventType::XA_PREPARE {
            self.header(shown);
        }
        let head = &mut self.text.head;
        match event_type {
            EventType::PREVIOUS_GTIDS => {
                if !options.short_form {
                    head.extend_from_slice(b"\tPrevious-GTIDs\n");
                }
                push_previous_gtids(head, shown.body)?;
            }
            EventType::XA_PREPARE => push_xa_prepare(head, &XaPrepareEvent::decode(shown.body)?),
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
            // Of an unknown type, such as the padding that Aurora writes.
            _ if shown.header.flags.contains(HeaderFlags::IGNORABLE) => {
                head.extend_from_slice(b"\tIgnorable\n# Unrecognized ignorable event\n");
            }
            _ => head.extend_from_slice(b"\n# Unknown event\n"),
        }
        Ok(None)
    }
}

fn push_previous_gtids(head: &mut Vec<u8>, body: &[u8]) -> Result<(), BinlogError> {
    let set = PreviousGtidsEvent::decode(body)?.gtid_set;
    let text = if set.is_empty() { "[empty]".to_owned() } else { format!("{set:#}") };
    for line in text.split('\n') {
        head.extend_from_slice(b"# ");
        head.extend_from_slice(line.as_bytes());
        head.push(b'\n');
    }
    Ok(())
}

fn push_xa_prepare(head: &mut Vec<u8>, event: &XaPrepareEvent<'_>) {
    head.extend_from_slice(b"\tXA PREPARE ");
    push_display(head, &event.xa_id);
    head.push(b'\n');
    head.extend_from_slice(if event.one_phase { b"XA COMMIT " } else { b"XA PREPARE " });
    push_display(head, &event.xa_id);
    if event.one_phase {
        head.extend_from_slice(b" ONE PHASE");
    }
    head.push(b'\n');
    end_line(head);
}

/// The version of the server that wrote the transaction. Without commit times (5.7 and before) it is 0; with
/// commit times alone (8.0.1 to 8.0.13) it is unknown.
pub(super) fn immediate_version(gtid: &AnyGtidEvent<'_>) -> u32 {
    let unknown = if gtid.commit_timestamps().is_none() { 0 } else { 999_999 };
    gtid.server_versions().map_or(unknown, |versions| versions.immediate)
}

pub(super) fn push_hex32(out: &mut Vec<u8>, number: u32) {
    let mut shift = u32::BITS;
    let text: [u8; 8] = std::array::from_fn(|_| {
        shift -= 4;
        let nibble = (number >> shift & 15) as u8;
        nibble + if nibble < 10 { b'0' } else { b'a' - 10 }
    });
    out.extend_from_slice(&text);
}

pub(super) fn push_display(out: &mut Vec<u8>, value: &dyn std::fmt::Display) {
    let written = write!(out, "{value}");
    debug_assert!(written.is_ok(), "a vector takes all that is written");
}
