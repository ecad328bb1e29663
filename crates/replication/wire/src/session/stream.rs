//! The stream of a dump: messages in, events out, each with its place in the source's log.
//!
//! ```text
//! event   00 · [semi-sync prefix 2] · event
//! error   ff … (see response.rs)
//! end     fe … (a dump that does not wait, at the end of the log)
//! ```
//!
//! Each file is preceded by a rotate event that is in no file and names it; then comes the file's format description. The
//! checksum of that rotate makes the stream awkward: the first rotate has one if the client announced CRC32, every later
//! one if the last format description says so. The same holds for heartbeats. (Facts of MySQL 9.7.4's `Binlog_sender`.)
//!
//! MariaDB leaves out events that it believes the client doesn't know, without a word. The headers tell: each event has to begin where
//! the one before it ended. Of a log that it encrypts it sends the event that says so before the first one asked for, wherever that is.
//!
//! Events are handed on in the pieces they arrive in; only those that steer the stream are held whole.

use binlogz_binlog::checksum::{CHECKSUM_SIZE, Crc32};
use binlogz_binlog::event::{FormatDescription, HeartbeatEvent, HeartbeatV2Event, RotateEvent};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{
    ChecksumAlgorithm, Error as BinlogError, EventFrame, EventHeader, EventType, Framing, HeaderFlags,
    Result as BinlogResult,
};

use crate::error::{DecodeContext, Error, Result, ServerError};
use crate::packet::MessagePiece;
use crate::response::{EOF, ERR, ErrPacket, OK};
use crate::semi_sync::{SEMI_SYNC_PREFIX_SIZE, decode_prefix};

/// The largest event that steers the stream: names have at most 512 bytes, format descriptions 255 types.
const STEERING_EVENT_SIZE_MAX: u32 = 64 << 10;
/// The largest error or end that is collected, in bytes.
const FAREWELL_SIZE_MAX: usize = 64 << 10;
/// Where the first event of every file begins.
const FIRST_EVENT_OFFSET: u64 = 4;

/// The next bytes of an event.
#[derive(Debug, Clone, Copy)]
pub struct EventPiece<'a> {
    /// The event's header.
    pub header: EventHeader,
    /// The event's framing, for reading the event once it is whole.
    pub framing: Framing,
    /// The source's file that the stream is in, without directory.
    pub name: &'a [u8],
    /// Where in that file the event begins. For an event that is in no file (see [`HeaderFlags::ARTIFICIAL`];
    /// heartbeats): the stream's position.
    pub offset: u64,
    /// Whether the source wants this event acknowledged.
    pub wants_ack: bool,
    /// The next bytes, including the event's header and checksum.
    pub bytes: &'a [u8],
    /// Whether the event begins here.
    pub begins: bool,
    /// Whether the event ends here. If checksums are verified, its checksum was then right.
    pub ends: bool,
}

impl EventPiece<'_> {
    /// Whether the event is in the source's file: neither made by the sender nor a heartbeat.
    pub fn is_stored(&self) -> bool {
        is_stored(&self.header)
    }

    /// Where the source's next event begins, once this one is whole.
    pub fn end_offset(&self) -> u64 {
        if self.is_stored() { self.offset + u64::from(self.header.event_size) } else { self.offset }
    }
}

fn is_stored(header: &EventHeader) -> bool {
    !header.flags.contains(HeaderFlags::ARTIFICIAL)
        && !is_heartbeat(header.event_type)
        && !is_repeated(header)
}

/// Whether the event stands earlier in the file than the dump began: MariaDB sends it again, without a position.
fn is_repeated(header: &EventHeader) -> bool {
    header.event_type == EventType::MARIADB_START_ENCRYPTION && header.end_log_pos == 0
}

fn is_heartbeat(event_type: EventType) -> bool {
    event_type == EventType::HEARTBEAT || event_type == EventType::HEARTBEAT_V2
}

/// The outcome for a piece of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FedPiece {
    /// Nothing yet: the piece is kept until more arrives.
    Nothing,
    /// Bytes of an event can be handed on.
    Event(Delivery),
    /// The end of the log.
    End,
}

/// Bytes of an event that can be handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delivery {
    from: PieceOrigin,
    pub(super) begins: bool,
    pub(super) ends: bool,
}

/// Where the bytes of a piece are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceOrigin {
    /// In the bytes held from earlier input, after the message's prefix.
    Held,
    /// The last bytes of the input, this many.
    Input(usize),
}

/// How to read a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamRules {
    /// The checksum algorithm that was announced to the source.
    pub(super) announced: ChecksumAlgorithm,
    /// Whether each event has a prefix.
    pub(super) semi_sync: bool,
    /// Skipped events leave gaps: positions then follow the headers.
    pub(super) has_gaps: bool,
    /// Whether the source is a MariaDB.
    pub(super) is_mariadb: bool,
    /// Whether to compare checksums.
    pub(super) verify: bool,
}

#[derive(Debug)]
pub(super) struct MessageStream {
    rules: StreamRules,
    prefix_size: usize,
    framing: Framing,
    name: Vec<u8>,
    /// Where the next event of the file begins.
    position: u64,
    /// The start of a message that can't be classified yet.
    held: Vec<u8>,
    state: StreamState,
    event: Current,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamState {
    BetweenMessages,
    /// The header is not whole.
    Header,
    /// The event steers the stream: it is held until whole.
    Steering,
    /// The event is handed on.
    Body,
    /// An error or the end.
    Farewell,
}

/// The event that the stream is in.
#[derive(Debug)]
struct Current {
    header: EventHeader,
    framing: Framing,
    offset: u64,
    wants_ack: bool,
    /// Bytes seen of it.
    seen: u64,
    crc: Crc32,
    /// The last bytes: the checksum, as far as it has arrived.
    stored: [u8; CHECKSUM_SIZE],
    stored_count: usize,
}

impl MessageStream {
    pub(super) fn new(rules: StreamRules) -> Self {
        MessageStream {
            rules,
            prefix_size: 1 + if rules.semi_sync { SEMI_SYNC_PREFIX_SIZE } else { 0 },
            framing: Framing::with_checksum(rules.announced),
            name: Vec::new(),
            position: 0,
            held: Vec::new(),
            state: StreamState::BetweenMessages,
            event: Current::none(),
        }
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Whether the current event wants an acknowledgement.
    pub(super) fn wants_ack(&self) -> bool {
        self.event.wants_ack
    }

    /// The bytes that [`MessageStream::feed`] reported; `input` ends with the piece it was given.
    pub(super) fn view<'a>(&'a self, delivery: Delivery, input: &'a [u8]) -> EventPiece<'a> {
        let bytes = match delivery.from {
            PieceOrigin::Held => self.held.get(self.prefix_size..),
            PieceOrigin::Input(count) => input.get(input.len().saturating_sub(count)..),
        };
        EventPiece {
            header: self.event.header,
            framing: self.event.framing,
            name: &self.name,
            offset: self.event.offset,
            wants_ack: self.event.wants_ack,
            bytes: bytes.unwrap_or_default(),
            begins: delivery.begins,
            ends: delivery.ends,
        }
    }

    /// Takes the next piece of a message.
    pub(super) fn feed(&mut self, piece: MessagePiece<'_>) -> Result<FedPiece> {
        if piece.begins {
            self.held.clear();
            self.state = match piece.bytes.first() {
                Some(&OK) => StreamState::Header,
                Some(&(ERR | EOF)) => StreamState::Farewell,
                other => return Err(self.unknown_message(other)),
            };
        }
        if self.state == StreamState::Farewell {
            return self.feed_farewell(piece);
        }
        let delivery = match self.feed_event(piece) {
            Ok(delivery) => delivery,
            Err(source) => return Err(Error::Malformed { doing: self.doing(), source }),
        };
        Ok(delivery.map_or(FedPiece::Nothing, FedPiece::Event))
    }

    fn feed_event(&mut self, piece: MessagePiece<'_>) -> BinlogResult<Option<Delivery>> {
        let delivery = match self.state {
            StreamState::Header => self.feed_header(piece)?,
            StreamState::Steering => self.feed_steering(piece)?,
            StreamState::Body => {
                self.event.take(piece.bytes, self.rules.verify)?;
                Some(Delivery {
                    from: PieceOrigin::Input(piece.bytes.len()),
                    begins: false,
                    ends: piece.ends,
                })
            }
            StreamState::BetweenMessages | StreamState::Farewell => None,
        };
        if piece.ends {
            self.state = StreamState::BetweenMessages;
            self.end_event()?;
        }
        Ok(delivery)
    }

    fn feed_header(&mut self, piece: MessagePiece<'_>) -> BinlogResult<Option<Delivery>> {
        // Nearly always the piece holds the whole prefix and header, and nothing is copied.
        let fits = self.held.is_empty() && piece.bytes.len() >= self.prefix_size + HEADER_SIZE;
        if fits {
            self.begin_event(piece.bytes)?;
        } else {
            self.held.extend_from_slice(piece.bytes);
            if self.held.len() < self.prefix_size + HEADER_SIZE && !piece.ends {
                return Ok(None);
            }
            let held = std::mem::take(&mut self.held);
            let begun = self.begin_event(&held);
            self.held = held;
            begun?;
        }
        if steers(self.event.header.event_type) {
            if fits {
                self.held.extend_from_slice(piece.bytes);
            }
            self.state = StreamState::Steering;
            return self.steer(piece.ends);
        }
        self.state = StreamState::Body;
        let message = if fits { piece.bytes } else { &self.held };
        let bytes = message.get(self.prefix_size..).unwrap_or_default();
        self.event.take(bytes, self.rules.verify)?;
        let from = if fits { PieceOrigin::Input(bytes.len()) } else { PieceOrigin::Held };
        Ok(Some(Delivery { from, begins: true, ends: piece.ends }))
    }

    fn feed_steering(&mut self, piece: MessagePiece<'_>) -> BinlogResult<Option<Delivery>> {
        if self.held.len() + piece.bytes.len() > self.prefix_size + STEERING_EVENT_SIZE_MAX as usize {
            return Err(too_long(self.held.len() + piece.bytes.len()));
        }
        self.held.extend_from_slice(piece.bytes);
        self.steer(piece.ends)
    }

    /// Follows the held event, once it is whole.
    fn steer(&mut self, ends: bool) -> BinlogResult<Option<Delivery>> {
        if !ends {
            return Ok(None);
        }
        let held = std::mem::take(&mut self.held);
        let event = held.get(self.prefix_size..).unwrap_or_default();
        let followed = self.event.take(event, false).and_then(|()| self.follow(event));
        self.held = held;
        followed?;
        Ok(Some(Delivery { from: PieceOrigin::Held, begins: true, ends: true }))
    }

    fn feed_farewell(&mut self, piece: MessagePiece<'_>) -> Result<FedPiece> {
        if self.held.len() + piece.bytes.len() > FAREWELL_SIZE_MAX {
            return Err(too_long(self.held.len() + piece.bytes.len())).during(&self.doing());
        }
        self.held.extend_from_slice(piece.bytes);
        if !piece.ends {
            return Ok(FedPiece::Nothing);
        }
        self.state = StreamState::BetweenMessages;
        if self.held.first() == Some(&ERR) {
            let error: ServerError = ErrPacket::decode(&self.held).during(&self.doing())?.into();
            return Err(Error::Server { doing: self.doing(), error });
        }
        // An EOF packet, or an OK packet in its place: both say only that this is the end.
        Ok(FedPiece::End)
    }

    /// Checks prefix and header, with which `message` begins.
    fn begin_event(&mut self, message: &[u8]) -> BinlogResult<()> {
        let (prefix, event) = message.split_at_checked(self.prefix_size).unwrap_or((message, &[]));
        let wants_ack = match prefix.get(1..) {
            Some(&[mark, flag]) => decode_prefix([mark, flag])?,
            _ => false,
        };
        let header = EventHeader::decode(event)?;
        // Heartbeats are in no file: the file's format description needn't announce them.
        let framing = match is_heartbeat(header.event_type) {
            true => Framing::with_checksum(self.framing.checksum()),
            false => self.framing,
        };
        framing.check_header(&header)?;
        if steers(header.event_type) && header.event_size > STEERING_EVENT_SIZE_MAX {
            return Err(too_long(header.event_size as usize));
        }
        let offset = self.offset_of(&header);
        self.check_place(&header, offset)?;
        self.event = Current { header, framing, offset, wants_ack, ..Current::none() };
        Ok(())
    }

    /// Checks that MariaDB left out nothing before the event. Inside transactions 11.4 and later write no ends.
    fn check_place(&self, header: &EventHeader, offset: u64) -> BinlogResult<()> {
        let has_end = header.end_log_pos != 0 && header.event_type != EventType::FORMAT_DESCRIPTION;
        if !self.rules.is_mariadb || !is_stored(header) || !has_end {
            return Ok(());
        }
        let end = (offset + u64::from(header.event_size)) as u32;
        if header.end_log_pos != end {
            let error = BinlogError::invalid(
                "event header",
                "end_log_pos",
                format!("{} and not {end}", header.end_log_pos),
                "an event that begins where the one before it ended: the server left out events",
            );
            return Err(error.at(offset, Some(header.event_type)));
        }
        Ok(())
    }

    /// The event's offset in the file.
    fn offset_of(&self, header: &EventHeader) -> u64 {
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            return FIRST_EVENT_OFFSET;
        }
        if !is_stored(header) || !self.rules.has_gaps {
            return self.position;
        }
        // Headers hold the low 32 bits of the end: take the first match at or after the position.
        let end_at_least = self.position + u64::from(header.event_size);
        self.position + u64::from(header.end_log_pos.wrapping_sub(end_at_least as u32))
    }

    /// The message ended, so the event must have ended too. Moves the position on.
    fn end_event(&mut self) -> BinlogResult<()> {
        let event = &self.event;
        event
            .finish(self.rules.verify)
            .map_err(|error| error.at(event.offset, Some(event.header.event_type)))?;
        if is_stored(&event.header) && event.header.event_type != EventType::FORMAT_DESCRIPTION {
            self.position = event.offset + u64::from(event.header.event_size);
        }
        Ok(())
    }

    /// Follows an event that steers: the next file, its framing, a position. The checksums of these events
    /// are always verified, since everything else is read according to them.
    fn follow(&mut self, event: &[u8]) -> BinlogResult<()> {
        let header = self.event.header;
        let frame = match self.event.framing.next_frame(event)? {
            Some(frame) => {
                frame.verify().map_err(|error| error.at(self.position, Some(header.event_type)))?
            }
            None => {
                return Err(BinlogError::Truncated {
                    needed: u64::from(header.event_size),
                    left: event.len() as u64,
                });
            }
        };
        match header.event_type {
            EventType::ROTATE if header.flags.contains(HeaderFlags::ARTIFICIAL) => {
                let rotate = RotateEvent::decode(frame.body())?;
                self.name = rotate.name.to_vec();
                self.position = rotate.position;
                self.event.offset = rotate.position;
                Ok(())
            }
            EventType::FORMAT_DESCRIPTION => {
                self.framing = Framing::of(&FormatDescription::decode_frame(&frame)?);
                self.event.framing = self.framing;
                // If the stream starts after it, the source still sends it, without a position.
                if header.end_log_pos != 0 {
                    self.position = self.position.max(u64::from(header.end_log_pos));
                }
                Ok(())
            }
            EventType::HEARTBEAT | EventType::HEARTBEAT_V2 => self.follow_heartbeat(&frame),
            _ => Ok(()),
        }
    }

    /// The source is further on, having skipped events or having nothing new.
    fn follow_heartbeat(&mut self, frame: &EventFrame<'_>) -> BinlogResult<()> {
        let (name, position) = if frame.event_type() == EventType::HEARTBEAT {
            let heartbeat = HeartbeatEvent::decode(frame.body())?;
            // Version 1 has the low 32 bits: take the first match at or after the position.
            let ahead = frame.header().end_log_pos.wrapping_sub(self.position as u32);
            (heartbeat.name, self.position + u64::from(ahead))
        } else {
            let heartbeat = HeartbeatV2Event::decode(frame.body())?;
            (heartbeat.name, heartbeat.position)
        };
        if name != self.name.as_slice() {
            let found = name.escape_ascii().to_string();
            return Err(BinlogError::invalid(
                "heartbeat event",
                "name",
                found,
                "the file that is being sent",
            ));
        }
        if position < self.position {
            return Err(BinlogError::invalid(
                "heartbeat event",
                "position",
                position,
                "a position not before what was sent",
            ));
        }
        self.position = position;
        self.event.offset = position;
        Ok(())
    }

    /// Where the stream is, for error messages.
    pub(super) fn doing(&self) -> String {
        if self.name.is_empty() {
            return "waiting for the first event".into();
        }
        format!("reading {} at {}", self.name.escape_ascii(), self.position)
    }

    fn unknown_message(&self, first: Option<&u8>) -> Error {
        let found = match first {
            Some(first) => format!("a message that begins with {first:02x}"),
            None => "an empty message".into(),
        };
        Error::Protocol { doing: self.doing(), found, expected: "an event, an error or the end" }
    }
}

impl Current {
    fn none() -> Self {
        Current {
            header: EventHeader {
                timestamp: 0,
                event_type: EventType(0),
                server_id: 0,
                event_size: 0,
                end_log_pos: 0,
                flags: HeaderFlags::default(),
            },
            framing: Framing::new(),
            offset: 0,
            wants_ack: false,
            seen: 0,
            crc: Crc32::new(),
            stored: [0; CHECKSUM_SIZE],
            stored_count: 0,
        }
    }

    /// Counts the next bytes and collects the checksum.
    fn take(&mut self, bytes: &[u8], verify: bool) -> BinlogResult<()> {
        let size = u64::from(self.header.event_size);
        if self.seen + bytes.len() as u64 > size {
            return Err(BinlogError::invalid(
                "event header",
                "event size",
                size,
                "the size of the message that the event came in",
            ));
        }
        if verify {
            let covered = size.saturating_sub(self.framing.checksum().size() as u64);
            let left = usize::try_from(covered.saturating_sub(self.seen)).unwrap_or(usize::MAX);
            let (body, stored) = bytes.split_at_checked(left).unwrap_or((bytes, &[]));
            self.crc.update(body);
            let free = self.stored.iter_mut().skip(self.stored_count);
            self.stored_count += free.zip(stored).map(|(slot, byte)| *slot = *byte).count();
        }
        self.seen += bytes.len() as u64;
        Ok(())
    }

    /// Checks that the event is whole and that its checksum is right.
    fn finish(&self, verify: bool) -> BinlogResult<()> {
        let needed = u64::from(self.header.event_size);
        if self.seen < needed {
            return Err(BinlogError::Truncated { needed, left: self.seen });
        }
        // Events that steer were checked when they were followed.
        if verify && self.framing.checksum().size() > 0 && !steers(self.header.event_type) {
            let stored = u32::from_le_bytes(self.stored);
            let computed = self.crc.clone().finish();
            if stored != computed {
                return Err(BinlogError::Checksum { stored, computed });
            }
        }
        Ok(())
    }
}

fn steers(event_type: EventType) -> bool {
    event_type == EventType::ROTATE || event_type == EventType::FORMAT_DESCRIPTION || is_heartbeat(event_type)
}

fn too_long(found: usize) -> BinlogError {
    BinlogError::invalid("message", "size", found, "at most 64 KiB, as it is no event of a transaction")
}
