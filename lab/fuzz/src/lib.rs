//! The fuzz targets as functions. Each takes any bytes and must not panic, and asserts the properties of every input that
//! it accepts.
//!
//! `fuzz_targets/` hands them to cargo fuzz; `src/bin/smoke.rs` feeds them with mutations of real logs, and so does a test of
//! the testkit (`tests/fuzz_targets.rs`), briefly.

pub mod manifest;
pub mod seeds;
pub mod wire;

use std::str::FromStr;
use std::sync::Arc;

use binlogz_archive::block;
use binlogz_archive::format::contents::KeyProbe;
use binlogz_archive::format::{BlockHeader, Contents, Index, Key, VERSION, index_anew};
use binlogz_archive::segment::Object;
use binlogz_archive::storage::ReadRange;
use binlogz_binlog::event::{AnyEvent, PostHeaderLengths, RowsEvent, ServerFamily, TableMapEvent};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::row::json::{JsonDiffs, JsonDocument, JsonTree};
use binlogz_binlog::row::{OwnedRow, Row, RowDecoder, TableSchema};
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventReader, EventType, Framing, HeaderFlags};
use binlogz_encryption::{FileCipher, Keyring};
use binlogz_flow::{Input, Rewrite, Rewriter};
use binlogz_testkit::builder::{LogBuilder, Release};

/// A target: its name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 18] = [
    ("frame", frame),
    ("event", event),
    ("gtid_set", gtid_set),
    ("table_map", table_map),
    ("payload", payload),
    ("rows", rows),
    ("json", json),
    ("keyring", keyring),
    ("packet", wire::packet),
    ("handshake", wire::handshake),
    ("statement", wire::statement),
    ("dump_request", wire::dump_request),
    ("archive_block", archive_block),
    ("archive_index", archive_index),
    ("archive_header", archive_header),
    ("archive_object", archive_object),
    ("archive_manifest", manifest::archive_manifest),
    ("archive_contents", archive_contents),
];

/// A log, event by event: every frame is its own bytes.
pub fn frame(bytes: &[u8]) {
    let mut reader = EventReader::new(bytes);
    while let Ok(Some((offset, frame))) = reader.next_event() {
        let offset = offset as usize;
        assert_eq!(frame.bytes().len(), frame.header().event_size as usize);
        assert_eq!(bytes.get(offset..offset + frame.bytes().len()), Some(frame.bytes()));
    }
}

/// The first byte is a type, the rest a body: what decodes encodes into something that decodes to the same.
pub fn event(bytes: &[u8]) {
    let Some((event_type, body)) = bytes.split_first() else { return };
    if EventType(*event_type) == EventType::FORMAT_DESCRIPTION {
        return; // where its body ends depends on its version: `frame` reads whole ones
    }
    let lengths = PostHeaderLengths::default();
    let encoded = with_event(EventType(*event_type), body, &lengths, |event| event.encode(&lengths).ok());
    let Some(Some(encoded)) = encoded else { return };
    let again = with_event(EventType(*event_type), &encoded, &lengths, |event| event.encode(&lengths).ok());
    assert_eq!(again.flatten().as_deref(), Some(encoded.as_slice()), "{event_type}");
}

fn with_event<T>(
    event_type: EventType,
    body: &[u8],
    lengths: &PostHeaderLengths,
    then: impl FnOnce(&AnyEvent<'_>) -> T,
) -> Option<T> {
    let header = EventHeader {
        timestamp: 0,
        event_type,
        server_id: 0,
        event_size: 0,
        end_log_pos: 0,
        flags: HeaderFlags::default(),
    };
    let bytes = encode_event(header, body, ChecksumAlgorithm::NONE);
    let frame = Framing::new().next_frame(&bytes).ok()??.verify().ok()?;
    AnyEvent::decode(&frame, lengths).ok().map(|event| then(&event))
}

/// A GTID set as text and as bytes: both ways back, and the algebra agrees with itself.
pub fn gtid_set(bytes: &[u8]) {
    if let Ok((set, format)) = GtidSet::decode(bytes) {
        let mut encoded = Vec::new();
        set.encode(format, &mut encoded);
        assert_eq!(GtidSet::decode(&encoded).expect("it was just encoded").0, set);
        text(&set);
    }
    if let Some(set) = std::str::from_utf8(bytes).ok().and_then(|text| GtidSet::from_str(text).ok()) {
        text(&set);
    }
}

fn text(set: &GtidSet) {
    assert_eq!(&GtidSet::from_str(&set.to_string()).expect("it was just printed"), set);
}

/// The body of a table map: everything that is read late is read too.
pub fn table_map(bytes: &[u8]) {
    let Ok(event) = TableMapEvent::decode(bytes, 8) else { return };
    event.columns().for_each(drop);
    event.optional_metadata.iter().for_each(drop);
    for family in [ServerFamily::Mysql, ServerFamily::Mariadb, ServerFamily::Unknown] {
        let _ = event.column_definitions(family);
    }
    let encoded = event.encode(8).expect("it was just decoded");
    assert_eq!(TableMapEvent::decode(&encoded, 8).expect("it was just encoded"), event);
}

/// The body of a payload event in a log: after it is expanded, compressed and expanded again, it has the same events.
pub fn payload(bytes: &[u8]) {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.gtid(100).event(EventType::TRANSACTION_PAYLOAD, bytes);
    let Some(plain) = rewritten(log.take(), Rewrite::Expand) else { return };
    let compressed =
        rewritten(plain.clone(), Rewrite::Compress(Default::default())).expect("it was just written");
    assert!(rewritten(compressed, Rewrite::Expand).as_deref() == Some(plain.as_slice()));
}

/// A table map and rows of it, see [`pair`]; the rows begin with their type. Every value of every row is
/// read, as text too, and a copy of the row reads the same.
pub fn rows(bytes: &[u8]) {
    let (map, event) = unpair(bytes);
    let schema = TableMapEvent::decode(map, 8).and_then(|map| TableSchema::new(&map, ServerFamily::Unknown));
    let Ok(schema) = schema else { return };
    let Some((event_type, body)) = event.split_first() else { return };
    let event_type = EventType(*event_type);
    if !event_type.is_rows() {
        return;
    }
    let lengths = PostHeaderLengths::default();
    let Ok(event) = RowsEvent::decode(event_type, body, lengths.of(event_type)) else { return };
    let schema = Arc::new(schema);
    let mut decoder = RowDecoder::new();
    let Ok(mut rows) = decoder.rows(&schema, &event) else { return };
    while let Ok(Some(row)) = rows.next_row() {
        let copy = OwnedRow::new(Arc::clone(&schema), &row);
        assert_eq!(shown(&row), shown(&copy.row()));
        for index in 0..schema.columns().len() {
            if let Ok(Some(tree)) = row.json_after(index) {
                let _ = tree.write_text(&mut Vec::new());
            }
        }
    }
}

/// Everything that a row says.
fn shown(row: &Row<'_, '_>) -> Vec<String> {
    let images = row.before.iter().chain(&row.after);
    let cells = images.flat_map(|image| image.cells());
    cells.map(|cell| format!("{} {:?} {:?}", cell.index, cell.value(), cell.text())).collect()
}

/// A document and differences from it, see [`pair`]: a document that can be taken apart has the text of
/// the bytes it was read from.
pub fn json(bytes: &[u8]) {
    let (document, diffs) = unpair(bytes);
    let document = JsonDocument::new(document);
    let mut text = Vec::new();
    let written = document.write_text(&mut text);
    if let (Ok(()), Ok(tree)) = (written, JsonTree::new(document)) {
        let mut again = Vec::new();
        if tree.write_text(&mut again).is_ok() {
            assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&text));
        }
    }
    if let Ok(tree) = JsonDiffs::new(diffs).apply(document) {
        let _ = tree.write_text_unquoted(&mut Vec::new());
    }
}

/// A keyring file, then the start of an encrypted log, see [`pair`]: what opens it is one of its keys.
pub fn keyring(bytes: &[u8]) {
    let (keyring, log) = unpair(bytes);
    let Ok(keyring) = Keyring::parse(keyring) else { return };
    for server in keyring.servers() {
        let _ = keyring.current_key(Some(server));
    }
    if let Ok(cipher) = FileCipher::open(log, &keyring) {
        let mut bytes = [0; 100];
        cipher.apply(&mut bytes, 7);
        cipher.apply(&mut bytes, 7);
        assert_eq!(bytes, [0; 100]);
    }
}

/// A block of an archive, after its plain size in three bytes: unpacking gives that size.
pub fn archive_block(bytes: &[u8]) {
    let Some((size, packed)) = bytes.split_first_chunk::<3>() else { return };
    let size = size.iter().rev().fold(0, |size, &byte| size << 8 | usize::from(byte));
    let Ok(opened) = block::open(packed, size) else { return };
    if let Ok(unpacked) = opened.gather(4, Vec::new()) {
        assert_eq!(unpacked.log.len(), size);
    }
}

/// The index of an archive's segment, of any version: written again as of today's, it reads the same.
pub fn archive_index(bytes: &[u8]) {
    for version in [1, 2, VERSION] {
        let Ok(mut index) = Index::decode(bytes, version) else { continue };
        // Version 1 has one log, whose name is in the manifest alone.
        if let (1, [log]) = (version, index.logs.as_mut_slice()) {
            log.name = "binlog.000001".into();
        }
        assert_eq!(Index::decode(&index.encode(), VERSION).expect("it was just written"), index);
    }
}

/// Contents, unpacked, after the version of their object and the number of its blocks, a byte each: written again they
/// read the same. Their tables are known or refused, and a key that is looked for is found or not.
pub fn archive_contents(bytes: &[u8]) {
    let Some((&[version, blocks], plain)) = bytes.split_first_chunk() else { return };
    let Ok(contents) = Contents::decode_plain(plain, version.into(), blocks.into()) else { return };
    let again = Contents::decode_plain(&contents.encode_plain(), VERSION, blocks.into());
    assert_eq!(again.expect("it was just written"), contents);
    let probes = [0, 7, i128::from(i64::MAX), i128::MIN].map(|number| KeyProbe {
        numbers: Some((number, number.saturating_add(100))),
        text: Some(Key::Text(b"text".to_vec())),
    });
    for block in &contents.blocks {
        for table in &block.tables {
            let name = contents.tables.get(table.table as usize).expect("a table that is there");
            let _ = name.schema();
            block.may_have(name, table, &probes);
        }
    }
}

/// The header of a block, after its place in four bytes, with its size and checksum made to fit: written again it reads
/// the same, and an index that is made of it has no more blocks than there is room for.
pub fn archive_header(bytes: &[u8]) {
    let Some((at, header)) = bytes.split_first_chunk() else { return };
    let at = u32::from_le_bytes(*at).into();
    let object = Part { at, bytes: with_checksum(header) };
    let Ok((read, size)) = BlockHeader::read(&object, at) else { return };
    assert_eq!((read.entry.at, size), (at + size, object.bytes.len() as u64));
    let mut entry = read.entry.clone();
    entry.at = at;
    let again = BlockHeader::encode(read.number, &entry, &read.log, !read.log.head.is_empty());
    let again = Part { at, bytes: again };
    let (mut again, _) = BlockHeader::read(&again, at).expect("it was just written");
    again.entry.at = read.entry.at;
    assert_eq!(again, read);
    // From the begin of an object on, where it is looked for.
    if at < 1 << 16 {
        let object = Part { at: 0, bytes: [vec![0; at as usize], object.bytes].concat() };
        let index = index_anew(&object).expect("bytes that can be read");
        assert!(index.blocks.len() <= object.bytes.len());
    }
}

/// A header whose size and checksum fit the bytes after them.
fn with_checksum(header: &[u8]) -> Vec<u8> {
    let body = header.get(HEADER_FIXED..).unwrap_or_default();
    let size = (body.len() as u32).to_le_bytes();
    let crc32 = binlogz_binlog::checksum::crc32(&[&size, body].concat());
    [b"blkz", &size, &crc32.to_le_bytes(), body].concat()
}

/// Bytes of a header that all have: magic, size and checksum.
const HEADER_FIXED: usize = 12;

/// The bytes of an object from some place on.
struct Part {
    at: u64,
    bytes: Vec<u8>,
}

impl ReadRange for Part {
    fn size(&self) -> binlogz_archive::Result<u64> {
        Ok(self.at + self.bytes.len() as u64)
    }

    fn read(&self, offset: u64, size: usize) -> binlogz_archive::Result<Vec<u8>> {
        let begin = offset.checked_sub(self.at).and_then(|begin| usize::try_from(begin).ok());
        let read = begin.and_then(|begin| self.bytes.get(begin..begin.checked_add(size)?));
        let missing = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        read.map(<[u8]>::to_vec).ok_or_else(|| binlogz_archive::Error::writing(missing()))
    }
}

/// A segment of an archive: whatever can be had of it is had, by its index or by the headers of its blocks.
pub fn archive_object(bytes: &[u8]) {
    let object = Part { at: 0, bytes: bytes.to_vec() };
    let Ok(object) = Object::open("object", Box::new(object)) else { return };
    assert!(object.index.blocks.len() <= bytes.len());
    for (number, entry) in (0..).zip(&object.index.blocks) {
        if let Ok(block) = object.block(number, 1) {
            assert_eq!(block.log.len() as u64, entry.size);
        }
    }
    for log in 0..object.index.logs.len() as u32 {
        let _ = object.inspect(log);
    }
}

/// Two inputs in one: the length of the first in two bytes, the first, the second.
pub fn pair(first: &[u8], second: &[u8]) -> Vec<u8> {
    [&(first.len() as u16).to_le_bytes(), first, second].concat()
}

fn unpair(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else { return (bytes, b"") };
    rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*length))))
}

fn rewritten(log: Vec<u8>, how: Rewrite) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    Rewriter::new(how).workers(1).run(Input::Places(Arc::new(log)), &mut out).ok()?;
    Some(out)
}
