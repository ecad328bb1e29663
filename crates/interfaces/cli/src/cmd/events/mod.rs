//! `binlogz events`: SHOW BINLOG EVENTS for files, without a server. Finds and decodes the events; [`rows`]
//! prints them.

mod rows;

use std::ops::ControlFlow;
use std::path::Path;

use binlogz_binlog::event::{AnyEvent, PostHeaderLengths, TransactionPayloadEvent, TransactionPayloadHeader};
use binlogz_binlog::show_events::{event_type_name, write_info};
use binlogz_binlog::{Error as BinlogError, EventFrame, EventHeader};
use binlogz_encryption::Keyring;
use binlogz_flow::{EventSpan, LogStart, WalkEnd, Walker, walk};
use clap::Args;

use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, warn_cut};
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, resolve};
use rows::{EventRow, EventRowFormat, EventRowPrinter};

/// List the events of binary logs, as SHOW BINLOG EVENTS does
///
/// Events in compressed transactions follow the Transaction_payload event that holds them, with its end as
/// their position.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EventsCommand {
    /// Start at this offset in the first log; an event must begin there
    #[arg(long, value_name = "POS", alias = "from")]
    start_position: Option<u64>,
    /// Stop after this many events
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// table; tsv as `mysql --batch` prints it; json: one object a line
    #[arg(long, value_enum, default_value_t = EventRowFormat::Table)]
    format: EventRowFormat,
    /// All of each line, in files and pipes too: otherwise lines end at 120 characters there, without Server_id and the name of a single log
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    keyring: KeyringArg,
    /// Binary logs or relay logs; - is standard input
    #[arg(required = true, value_name = "FILE|-")]
    files: Vec<LogPath>,
}

const EXAMPLES: &str = "Examples:
  binlogz events binlog.000042 | less
  binlogz events --start-position 15372 --limit 20 binlog.000042
  binlogz events --format json binlog.000042 | jq -r .info";

/// Bodies are held up to this size, in bytes: law 5. Of larger ones only the beginning is looked at.
const BODY_SIZE_MAX: usize = 8 << 20;

impl EventsCommand {
    pub(super) fn run(mut self) -> Result<Exit> {
        resolve(&mut self.files)?;
        let keyring = self.keyring.open()?;
        let names: Vec<_> = self.files.iter().map(log_name).collect();
        let sizes: Option<Vec<u64>> = self.files.iter().map(|log| log.size().ok().flatten()).collect();
        let size_max = sizes.and_then(|sizes| sizes.into_iter().max());
        let mut rows = EventRowPrinter::new(self.format, self.wide, &names, size_max)?;
        let mut exit = Exit::Done;
        let mut from = self.start_position;
        let mut left = self.limit.unwrap_or(u64::MAX);
        for (log, name) in self.files.iter().zip(&names) {
            if left == 0 {
                break;
            }
            let mut lister = Lister::new(log, name, from.take(), left, &mut rows);
            let listed = lister.list(keyring.as_ref());
            left = lister.left;
            match listed {
                Err(CommandFailure::Line(line)) => {
                    rows.flush()?;
                    complain(&line);
                    exit = Exit::Trouble;
                }
                listed => listed?,
            }
        }
        if exit == Exit::Done {
            // Of logs without events too.
            rows.heading()?;
        }
        rows.flush()?;
        Ok(exit)
    }
}

/// The file name in the rows: as in the server, without its folder.
fn log_name(log: &LogPath) -> String {
    let file_name = match log {
        LogPath::File(path) => path.file_name().map(Path::new),
        LogPath::Stdin => None,
    };
    file_name.map_or_else(|| "-".to_string(), |name| name.display().to_string())
}

/// Lists the events of one log.
struct Lister<'a> {
    log: &'a LogPath,
    name: &'a str,
    /// Where the first row is to come from, as long as that was not reached.
    from: Option<u64>,
    /// How many rows may still be printed.
    left: u64,
    rows: &'a mut EventRowPrinter,
    lengths: PostHeaderLengths,
    current: Option<(EventSpan, EventHeader)>,
    /// The current event without checksum, or as much of it as is held.
    event: Vec<u8>,
    /// Bytes of its body that are not held.
    not_held: u64,
    info: Vec<u8>,
    failure: Option<CommandFailure>,
}

impl<'a> Lister<'a> {
    fn new(
        log: &'a LogPath,
        name: &'a str,
        from: Option<u64>,
        left: u64,
        rows: &'a mut EventRowPrinter,
    ) -> Self {
        Lister {
            log,
            name,
            from,
            left,
            rows,
            lengths: PostHeaderLengths::default(),
            current: None,
            event: Vec::new(),
            not_held: 0,
            info: Vec::new(),
            failure: None,
        }
    }

    fn list(&mut self, keyring: Option<&Keyring>) -> Result<()> {
        let input = match self.from {
            // Of an archive, what ends before it is not read.
            Some(from) => self.log.open_part(keyring, &mut |run| run.end().is_none_or(|end| end > from))?,
            None => self.log.open(keyring)?,
        };
        let walked = walk(input, self);
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match walked.map_err(|error| CommandFailure::reading(self.log, &error))? {
            WalkEnd::Cut(cut) => warn_cut(self.log, cut, ""),
            WalkEnd::Whole | WalkEnd::Stopped => {}
        }
        match self.from {
            Some(from) => Err(CommandFailure::of(self.log, format_args!("ends before position {from}"))),
            None => Ok(()),
        }
    }

    /// Whether the events at this place are to be listed.
    fn wanted(&mut self, offset: u64) -> std::result::Result<bool, CommandFailure> {
        match self.from {
            Some(from) if offset < from => Ok(false),
            Some(from) if offset > from => Err(CommandFailure::of(
                self.log,
                format_args!("no event begins at position {from}, the next one begins at {offset}"),
            )),
            _ => {
                self.from = None;
                Ok(true)
            }
        }
    }

    /// Prints a row, if it is wanted.
    fn row(&mut self, place: EventSpan, header: &EventHeader, event: &AnyEvent<'_>) -> ControlFlow<()> {
        self.info.clear();
        write_info(event, header.flags, &mut self.info);
        self.print(place, header)
    }

    fn print(&mut self, place: EventSpan, header: &EventHeader) -> ControlFlow<()> {
        let (pos, end_log_pos) = match place.payload_end_log_pos {
            None => (place.offset, header.end_log_pos),
            Some(payload_end_log_pos) => (place.end, payload_end_log_pos),
        };
        let row = EventRow {
            log_name: self.name,
            pos,
            event_type: event_type_name(header.event_type),
            server_id: header.server_id,
            end_log_pos,
            info: &self.info,
        };
        if let Err(failure) = self.rows.print(&row) {
            return self.fail(failure);
        }
        self.left -= 1;
        if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn fail(&mut self, failure: CommandFailure) -> ControlFlow<()> {
        self.failure = Some(failure);
        ControlFlow::Break(())
    }
}

impl Walker for Lister<'_> {
    fn format_description(&mut self, start: &LogStart) -> ControlFlow<()> {
        self.lengths = start.context.post_header_lengths;
        let end = start.offset + start.event.len() as u64;
        let place = EventSpan { offset: start.offset, end, payload_end_log_pos: None };
        match (self.wanted(start.offset), EventHeader::decode(&start.event)) {
            (Ok(true), Ok(header)) => {
                self.row(place, &header, &AnyEvent::FormatDescription(start.description.clone()))
            }
            (Err(failure), _) => self.fail(failure),
            _ => ControlFlow::Continue(()),
        }
    }

    fn payload(
        &mut self,
        place: EventSpan,
        header: &EventHeader,
        fields: &TransactionPayloadHeader<'_>,
    ) -> ControlFlow<()> {
        match self.wanted(place.offset) {
            Ok(true) => {
                let event = TransactionPayloadEvent { header: *fields, payload: &[], trailing: &[] };
                self.row(place, header, &AnyEvent::TransactionPayload(event))
            }
            Ok(false) => ControlFlow::Continue(()),
            Err(failure) => self.fail(failure),
        }
    }

    fn begin(&mut self, place: EventSpan, header: &EventHeader) -> ControlFlow<()> {
        match self.wanted(place.offset) {
            Ok(true) => {
                self.current = Some((place, *header));
                self.event.clear();
                self.event.extend_from_slice(&header.encode());
                self.not_held = 0;
                ControlFlow::Continue(())
            }
            Ok(false) => ControlFlow::Continue(()),
            Err(failure) => self.fail(failure),
        }
    }

    fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        if self.current.is_some() {
            let room = BODY_SIZE_MAX.saturating_sub(self.event.len()).min(bytes.len());
            let (held, not_held) = bytes.split_at(room);
            self.event.extend_from_slice(held);
            self.not_held += not_held.len() as u64;
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        let Some((place, header)) = self.current.take() else { return ControlFlow::Continue(()) };
        self.info.clear();
        match self.describe(&header) {
            Ok(()) => self.print(place, &header),
            Err(error) => {
                let error = error.at(place.offset, Some(header.event_type));
                self.fail(CommandFailure::in_log(self.log, &error.into()))
            }
        }
    }
}

impl Lister<'_> {
    /// Writes the Info of the current event.
    fn describe(&mut self, header: &EventHeader) -> std::result::Result<(), BinlogError> {
        let frame = EventFrame::without_checksum_behind(&self.event)?;
        let decoded = AnyEvent::decode(&frame, &self.lengths);
        if self.not_held == 0 {
            write_info(&decoded?, header.flags, &mut self.info);
            return Ok(());
        }
        // Of these the beginning is enough, or says most.
        if let Ok(
            event @ (AnyEvent::Rows(_)
            | AnyEvent::Query(_)
            | AnyEvent::RowsQuery(_)
            | AnyEvent::ExecuteLoadQuery(_)),
        ) = decoded
        {
            write_info(&event, header.flags, &mut self.info);
            if matches!(event, AnyEvent::Rows(_)) {
                return Ok(());
            }
        }
        self.info.extend_from_slice(format!(" … ({} bytes more)", self.not_held).as_bytes());
        Ok(())
    }
}
