//! Puts logs into an archive, one after the other. Each is packed into a segment. When the segment is full,
//! or no log is left, it is stored, read back and compared; only then does the manifest name the logs that
//! are complete.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use binlogz_binlog::EventType;
use binlogz_binlog::event::PreviousGtidsEvent;
use binlogz_binlog::gtid::GtidSet;
use binlogz_flow::ReadAt;

use crate::chosen_tables::TableChoice;
use crate::codec::Level;
use crate::error::{Error, Result};
use crate::format::index;
use crate::format::{ErasureNote, FileEntry, Manifest, log_begin};
use crate::log::Cutter;
use crate::log::active::ActivePart;
use crate::log::events;
use crate::log::framing::LogFraming;
use crate::log::payloads::{self, Codec, ExpandedLog, Payloads};
use crate::operations::digest::{DigestReader, Hasher, digest, digest_to, of_object};
use crate::operations::former_blocks::FormerBlocks;
use crate::operations::presence::{CheckDepth, Inspector};
use crate::operations::remove;
use crate::operations::restore::codec_of;
use crate::segment::{PLAIN_MAX, Segment};
use crate::storage::{ArchiveStorage, LogName, ObjectName};
use binlogz_scratch_file::Scratch;

/// Plain bytes of a block: restoring one transaction unpacks one block and those that it refers to.
const BLOCK_SIZE: usize = 8 << 20;

/// The outcome for a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It is in the archive now.
    Added(FileEntry),
    /// It was there already, and so are its objects.
    Known(FileEntry),
    /// The manifest named it, but its objects were missing or damaged: it was stored again, and read back. With what was wrong.
    StoredAgain(FileEntry, String),
}

/// Puts a log under `name` into an archive. When this returns, the archive holds it durably and has given it
/// back byte for byte.
///
/// # Errors
///
/// A log that can't be read, an archive that can't be written, another log of the same name in it.
pub fn add(
    storage: &dyn ArchiveStorage,
    name: &str,
    log: Arc<dyn ReadAt>,
    workers: usize,
) -> Result<CreateOutcome> {
    let mut created = None;
    let mut told = |one: &CreateOutcome| created = Some(one.clone());
    let mut creator = Creator::new(storage, workers, &mut told)?;
    creator.add(name, log)?;
    creator.finish()?;
    created.ok_or_else(|| Error::damaged("log", "no log added", "one"))
}

/// Puts logs into an archive, several into each segment.
pub struct Creator<'a> {
    storage: &'a dyn ArchiveStorage,
    workers: usize,
    canonical_payloads: bool,
    /// The tables whose rows the added logs have; `None`: they are the server's.
    choice: Option<TableChoice>,
    /// The policy by which the logs were masked; `None`: they weren't.
    exits: Option<String>,
    level: Level,
    block_size: usize,
    segment_size: u64,
    /// The codec of the last log that had payloads: the next log very likely has it too.
    codec: Codec,
    /// Called for each log once the archive holds it durably.
    told: &'a mut dyn FnMut(&CreateOutcome),
    manifest: Manifest,
    /// Checks that the objects named by the manifest are there.
    inspector: Inspector<'a>,
    segment: Option<Segment>,
    /// Packed logs, which are stored except for the open segment.
    packed: Vec<PackedLog>,
}

/// A packed log.
#[derive(Debug)]
struct PackedLog {
    entry: FileEntry,
    replaces: Replaces,
}

/// The entry that a packed log replaces.
#[derive(Debug)]
enum Replaces {
    Nothing,
    /// The archived part of it with this SHA-256.
    Part(String),
    /// A log that these objects hold whole: it is packed again.
    Packed(Vec<ObjectName>),
    /// A log with this SHA-256 that these objects hold whole: its place takes what is left of it.
    Erased(Vec<ObjectName>, String),
    /// A log that these objects should hold and don't give back, and why.
    Broken(Vec<ObjectName>, String),
}

/// The state of a log's name in an archive.
enum LogNameState {
    Nothing,
    Same(Box<FileEntry>),
    /// A part of the log, with this SHA-256.
    Part(String),
}

impl std::fmt::Debug for Creator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Creator").field("packed", &self.packed).finish_non_exhaustive()
    }
}

impl<'a> Creator<'a> {
    /// For an archive that may or may not exist yet.
    ///
    /// # Errors
    ///
    /// A manifest that can't be read.
    pub fn new(
        storage: &'a dyn ArchiveStorage,
        workers: usize,
        told: &'a mut dyn FnMut(&CreateOutcome),
    ) -> Result<Creator<'a>> {
        let manifest = Manifest::read(storage)?.unwrap_or_default();
        let canonical_payloads = false;
        Ok(Creator {
            storage,
            workers,
            canonical_payloads,
            choice: None,
            exits: None,
            level: Level::default(),
            block_size: BLOCK_SIZE,
            segment_size: PLAIN_MAX,
            codec: Codec::DEFAULT,
            told,
            manifest,
            inspector: Inspector::new(storage, CheckDepth::Presence),
            segment: None,
            packed: Vec::new(),
        })
    }

    /// Whether payloads that no level reproduces come back with equal meaning instead of being kept as they
    /// are.
    pub fn canonical_payloads(&mut self, canonical: bool) {
        self.canonical_payloads = canonical;
    }

    /// The logs to be added are a selection: they have the rows of these tables alone
    /// ([`select`](crate::chosen_tables::select)). The manifest says so.
    ///
    /// # Errors
    ///
    /// The archive has whole logs, or another selection.
    pub fn selection(&mut self, choice: TableChoice) -> Result<()> {
        self.manifest.check_selection(Some(&choice))?;
        self.choice = Some(choice);
        Ok(())
    }

    /// The logs to be added were masked by a policy, which this digest names. The manifest says so.
    ///
    /// # Errors
    ///
    /// The archive has logs that weren't masked, or were by another policy.
    pub fn exits(&mut self, digest: String) -> Result<()> {
        self.manifest.check_exits(Some(&digest))?;
        self.exits = Some(digest);
        Ok(())
    }

    /// How closely the objects of logs that are in the archive already are examined; missing and damaged ones are stored
    /// again. By default only their presence is checked.
    pub fn depth(&mut self, depth: CheckDepth) {
        self.inspector.depth(depth);
    }

    /// How small, and how fast.
    pub fn level(&mut self, level: Level) {
        self.level = level;
    }

    /// Plain bytes of a block, if transactions are not larger: 8 MiB unless this says less.
    pub fn block_size(&mut self, size: usize) {
        self.block_size = size.min(BLOCK_SIZE);
    }

    /// The most plain bytes of a segment, if it has more than one block; at most [`PLAIN_MAX`].
    pub fn segment_size(&mut self, size: u64) {
        self.segment_size = size.min(PLAIN_MAX);
    }

    /// Packs a log. The archive holds it once `told` was called with it, at the latest when
    /// [`Creator::finish`] returns.
    ///
    /// # Errors
    ///
    /// A log that can't be read, an archive that can't be written, another log of the same name in it. After
    /// an error no more logs can be added; [`Creator::finish`] keeps those added before.
    pub fn add(&mut self, name: &str, log: Arc<dyn ReadAt>) -> Result<()> {
        self.add_file(name, log, None)
    }

    /// Adds a closed log file with this mode, as chmod takes it. One that doesn't end with an event, or has an event whose
    /// checksum its bytes don't give, is refused: its server, a replica or a backup has more of it.
    ///
    /// # Errors
    ///
    /// As [`Creator::add`]; a log that is torn or damaged ([`Error::Torn`]), of which nothing was added: others can be, and so can its whole
    /// transactions ([`Creator::add_active`]).
    pub fn add_file(&mut self, name: &str, log: Arc<dyn ReadAt>, mode: Option<u32>) -> Result<()> {
        let mut framing = LogFraming::default();
        let digest = digest_to(&mut DigestReader::new(log.as_ref()), &mut framing)?;
        match framing.torn() {
            Some(torn) => Err(Error::Torn(torn)),
            None => self.add_digested(name, log, mode, None, digest),
        }
    }

    /// Packs the whole transactions of a log that its server is still writing, or that is torn or damaged, as far as
    /// [`crate::log::first_damage`] finds none. They are replaced when the log
    /// is given again, longer or closed.
    ///
    /// # Errors
    ///
    /// As [`Creator::add`].
    pub fn add_active(&mut self, name: &str, log: Arc<dyn ReadAt>, mode: Option<u32>) -> Result<()> {
        let part = ActivePart::of(log)?;
        let size = part.size();
        self.add_part(name, Arc::new(part), mode, Some(size))
    }

    fn add_part(
        &mut self,
        name: &str,
        log: Arc<dyn ReadAt>,
        mode: Option<u32>,
        active_size: Option<u64>,
    ) -> Result<()> {
        let digest = digest(&mut DigestReader::new(log.as_ref()))?;
        self.add_digested(name, log, mode, active_size, digest)
    }

    /// Adds a log with this SHA-256, size and CRC-32.
    fn add_digested(
        &mut self,
        name: &str,
        log: Arc<dyn ReadAt>,
        mode: Option<u32>,
        active_size: Option<u64>,
        (sha256, size, crc32): (String, u64, u32),
    ) -> Result<()> {
        self.manifest.check_selection(self.choice.as_ref())?;
        self.manifest.check_exits(self.exits.as_deref())?;
        let replaces = match self.standing(name, &log, &sha256, size, active_size)? {
            LogNameState::Nothing => Replaces::Nothing,
            LogNameState::Part(sha256) => Replaces::Part(sha256),
            LogNameState::Same(known) => match self.problem(&known)? {
                Some(why) if known.is_erased() => {
                    let what = format!("{name}: its objects, from which values were erased");
                    return Err(Error::unexpected(
                        what,
                        why,
                        "whole ones: create would bring back what was erased",
                    ));
                }
                Some(why) => Replaces::Broken(known.objects, why),
                None => {
                    (self.told)(&CreateOutcome::Known(*known));
                    return Ok(());
                }
            },
        };
        let entry = FileEntry {
            name: LogName::new(name)?,
            objects: Vec::new(),
            size,
            sha256,
            source_sha256: None,
            packed_size: 0,
            payload_level: None,
            payload_codec: None,
            payloads_kept: 0,
            previous_gtids: String::new(),
            gtids: String::new(),
            times: None,
            mode,
            active_size,
            erasures: Vec::new(),
        };
        self.pack_entry(entry, (&log, &FormerBlocks::default()), crc32, replaces)
    }

    /// Looks for a problem of the objects that should hold a log.
    fn problem(&mut self, known: &FileEntry) -> Result<Option<String>> {
        // This run packs it: what it stores it reads back.
        match self.packed.iter().any(|packed| packed.entry.name == known.name) {
            true => Ok(None),
            false => self.inspector.problem(known),
        }
    }

    /// Packs a log of the archive again, from `log`, which was restored from it. The former objects are retired. Columns that are unchanged keep
    /// their code.
    ///
    /// # Errors
    ///
    /// As [`Creator::add`].
    pub(crate) fn repack(
        &mut self,
        entry: &FileEntry,
        log: Arc<dyn ReadAt>,
        former: &FormerBlocks,
    ) -> Result<()> {
        let (sha256, _, crc32) = digest(&mut DigestReader::new(log.as_ref()))?;
        if sha256 != entry.sha256 {
            let what = format!("{}: SHA-256 of what was restored", entry.name);
            return Err(Error::unexpected(what, sha256, &entry.sha256));
        }
        let replaces = Replaces::Packed(entry.objects.clone());
        let anew = FileEntry { objects: Vec::new(), packed_size: 0, times: None, ..entry.clone() };
        self.pack_entry(anew, (&log, former), crc32, replaces)
    }

    /// Packs what is left of a log of the archive after values were erased from it: `plain` is that log as it is packed, with
    /// the transactions of its payloads in their place, as are the offsets of the note, with its SHA-256 and size. Its former objects are retired.
    ///
    /// # Errors
    ///
    /// As [`Creator::add`]; payloads of another codec.
    pub(crate) fn put_erased(
        &mut self,
        entry: &FileEntry,
        (plain, (sha256, size)): (Arc<Scratch>, (String, u64)),
        note: ErasureNote,
        former: &FormerBlocks,
    ) -> Result<()> {
        let replaces = Replaces::Erased(entry.objects.clone(), entry.sha256.clone());
        let mut anew = FileEntry {
            objects: Vec::new(),
            packed_size: 0,
            times: None,
            source_sha256: Some(entry.source_sha256().to_owned()),
            ..entry.clone()
        };
        let plain_until = note.same_until;
        anew.payloads_kept = Payloads::of(plain.as_ref()).count;
        match entry.payload_level {
            Some(level) => {
                if let Some(segment) = &mut self.segment {
                    segment.slim();
                }
                let mut hasher = Hasher::default();
                let codec = codec_of(entry, level)?;
                let ends = payloads::compress(
                    Arc::clone(&plain) as Arc<dyn ReadAt>,
                    codec,
                    &mut hasher,
                    self.workers,
                )?;
                (anew.sha256, anew.size) = hasher.finish();
                let same_until = ends.places()(plain_until).unwrap_or_else(log_begin);
                anew.erasures.push(ErasureNote { same_until, ..note });
                let log = (DigestReader::new(plain.as_ref()), former);
                self.pack(&mut anew, log, &mut ends.places())?;
            }
            None => {
                (anew.sha256, anew.size) = (sha256, size);
                anew.erasures.push(note);
                self.pack(&mut anew, (DigestReader::new(plain.as_ref()), former), &mut |_| None)?;
            }
        }
        self.packed.push(PackedLog { entry: anew, replaces });
        Ok(())
    }

    /// Packs a log with this SHA-256 and size, and this CRC-32.
    fn pack_entry(
        &mut self,
        mut entry: FileEntry,
        (log, former): (&Arc<dyn ReadAt>, &FormerBlocks),
        crc32: u32,
        replaces: Replaces,
    ) -> Result<()> {
        let payloads = Payloads::of(log.as_ref());
        if payloads.count > 0
            && let Some(segment) = &mut self.segment
        {
            segment.slim();
        }
        let mut expanded = match payloads.count {
            0 => None,
            _ => payloads::expanded(log, &payloads, self.codec, self.workers, self.canonical_payloads)?,
        };
        if let Some(expanded) = &expanded {
            self.codec = expanded.codec;
        }
        entry.payload_level = expanded.as_ref().map(|expanded| expanded.codec.level);
        entry.payload_codec = expanded.as_ref().map(|expanded| expanded.codec.name());
        entry.payloads_kept = expanded.as_ref().map_or(payloads.count, |expanded| expanded.kept);
        if let Some(ExpandedLog { file, codec, exact: false, ends, .. }) = &mut expanded {
            let mut hasher = Hasher::default();
            *ends = payloads::compress(file.clone(), *codec, &mut hasher, self.workers)?;
            let (sha256, size) = hasher.finish();
            entry.source_sha256 = Some(std::mem::replace(&mut entry.sha256, sha256));
            entry.size = size;
        }
        let packed = match &expanded {
            Some(expanded) => {
                let file = DigestReader::new(expanded.file.as_ref());
                self.pack(&mut entry, (file, former), &mut expanded.ends.places()).map(drop)
            }
            None => {
                let plain = (DigestReader::new(log.as_ref()), former);
                self.pack(&mut entry, plain, &mut |_| None).and_then(|packed| {
                    let what = format!("{}: CRC-32 at a second reading", entry.name);
                    let changed = || Error::unexpected(what, packed, crc32);
                    if packed == crc32 { Ok(()) } else { Err(changed()) }
                })
            }
        };
        packed?;
        self.packed.push(PackedLog { entry, replaces });
        Ok(())
    }

    /// The state of a log's name in the archive: under it may only be the same log, or a part of it.
    fn standing(
        &self,
        name: &str,
        log: &Arc<dyn ReadAt>,
        sha256: &str,
        size: u64,
        active_size: Option<u64>,
    ) -> Result<LogNameState> {
        let part = self.manifest.files.iter().find(|file| file.name == name);
        let Some((part, part_size)) = part.and_then(|file| Some((file, file.active_size?))) else {
            let files = self.manifest.files.iter().chain(self.packed.iter().map(|packed| &packed.entry));
            return Ok(known(files, name, sha256)?
                .map_or(LogNameState::Nothing, |known| LogNameState::Same(Box::new(known))));
        };
        if active_size.is_some() && part.source_sha256() == sha256 {
            return Ok(LogNameState::Same(Box::new(part.clone())));
        }
        if size < part_size {
            let expected = format!("at least {part_size}, which the archive has of it");
            return Err(Error::unexpected(format!("{name}: size"), size, expected));
        }
        let beginning = ActivePart::first(Arc::clone(log), part_size);
        let (beginning, _, _) = digest(&mut DigestReader::new(&beginning))?;
        if beginning != part.source_sha256() {
            return Err(Error::unexpected(
                format!("{name}: SHA-256 of its first {part_size} bytes"),
                beginning,
                format!("{}, that of the part in the archive: this is another log", part.source_sha256()),
            ));
        }
        Ok(LogNameState::Part(beginning))
    }

    /// Packs a log's bytes and returns their CRC-32. `origin` gives the place of an offset in the log with its payloads.
    fn pack(
        &mut self,
        entry: &mut FileEntry,
        (log, former): (DigestReader<'_>, &FormerBlocks),
        origin: &mut (dyn FnMut(u64) -> Option<u64> + Send),
    ) -> Result<u32> {
        let mut hasher = crc32fast::Hasher::new();
        let mut cutter = Cutter::with_size(log, self.block_size).beginning_at(former.begins());
        let mut gtids = GtidSet::default();
        let mut held = cutter.next_piece()?;
        let head = held.as_ref().map(|piece| events::head(&piece.log)).unwrap_or_default();
        entry.previous_gtids = previous_gtids(&head);
        if let Some(piece) = &mut held {
            hasher.update(&piece.log);
            piece.origin = origin(piece.offset);
            piece.former = former.at(piece.offset)?;
        }
        loop {
            let segment = match &mut self.segment {
                Some(segment) => segment,
                None => self.segment.insert(Segment::with_size(self.level, self.segment_size)?),
            };
            let mark = segment.mark();
            let number = segment.begin(&entry.name, &head);
            let mut next = || {
                if let Some(piece) = held.take() {
                    return Ok(Some(piece));
                }
                let mut piece = cutter.next_piece()?;
                if let Some(piece) = &mut piece {
                    hasher.update(&piece.log);
                    piece.origin = origin(piece.offset).filter(|_| !piece.continues);
                    piece.former = former.at(piece.offset)?;
                }
                Ok(piece)
            };
            let packed = segment.pack(number, &mut next, self.workers);
            let rest = match packed {
                Ok(rest) => rest,
                Err(error) => {
                    segment.give_back(mark);
                    return Err(error);
                }
            };
            let blocks = || segment.index().blocks.iter().filter(|block| block.log == number);
            entry.packed_size += blocks().map(|block| block.packed_size).sum::<u64>();
            gtids.union(&index::gtids(blocks()));
            entry.times = index::join_times(entry.times, index::times(blocks()));
            if rest.is_none() {
                break;
            }
            held = rest;
            let object = self.store()?;
            entry.objects.extend(object);
        }
        entry.gtids = gtids.to_string();
        Ok(hasher.finalize())
    }

    /// Stores the open segment, reads it back and compares it; then the manifest names the logs that it
    /// completes. Returns its name.
    fn store(&mut self) -> Result<Option<ObjectName>> {
        let Some(segment) = self.segment.take() else { return Ok(None) };
        let (file, size, _) = segment.finish()?;
        let (sha256, _, _) = digest(&mut DigestReader::new(&file).up_to(size))?;
        let object = ObjectName::of_segment(&sha256)?;
        let storage = self.storage;
        let put = |object: &str| {
            storage.put(object, &mut |out| {
                io::copy(&mut DigestReader::new(&file).up_to(size), out).map(drop).map_err(Error::io("write"))
            })
        };
        put(&object)?;
        let (back, size_back) = of_object(self.storage, &object)?;
        if back != sha256 || size_back != size {
            return Err(Error::unexpected(format!("{object}: SHA-256 of what was read back"), back, sha256));
        }
        if !self.packed.is_empty() {
            for PackedLog { entry, .. } in &mut self.packed {
                entry.objects.push(object.clone());
            }
            let replaced = self.record()?;
            // A run that just removed the same logs may have deleted the object, if it was the last to name
            // it.
            if storage.get(&object).is_err() {
                put(&object)?;
            }
            for PackedLog { entry, replaces } in self.packed.drain(..) {
                (self.told)(&match replaces {
                    Replaces::Broken(_, why) => CreateOutcome::StoredAgain(entry, why),
                    _ => CreateOutcome::Added(entry),
                });
            }
            // Objects that are locked are left behind, as by a killed run: `prune` finds them.
            remove::collect(self.storage, &replaced)?;
        }
        Ok(Some(object))
    }

    /// Names the packed logs in the manifest, or in that of a run that was faster. Returns the objects of replaced logs.
    fn record(&mut self) -> Result<Vec<String>> {
        let mut attempts = 1;
        loop {
            // It is read again where it can't be written.
            let mut manifest = std::mem::take(&mut self.manifest);
            // Logs that are packed again are of the archive itself.
            if !self.packed.iter().all(|packed| matches!(packed.replaces, Replaces::Packed(_))) {
                manifest.check_selection(self.choice.as_ref())?;
                manifest.selection.clone_from(&self.choice);
                manifest.check_exits(self.exits.as_deref())?;
                manifest.exits.clone_from(&self.exits);
            }
            let mut new: BTreeMap<&str, &PackedLog> =
                self.packed.iter().map(|packed| (packed.entry.name.as_str(), packed)).collect();
            let mut replaced = Vec::new();
            let mut retired = Vec::new();
            // In place, since the order of base names is that of the files.
            for file in &mut manifest.files {
                let Some(packed) = new.remove(file.name.as_str()) else { continue };
                let before = std::mem::replace(file, packed.entry.clone());
                match packed.replaces {
                    // Readers may have begun to restore it from there.
                    Replaces::Packed(_) | Replaces::Erased(..) | Replaces::Broken(..) => {
                        retired.extend(before.objects);
                    }
                    Replaces::Nothing | Replaces::Part(_) => {
                        replaced.extend(before.objects.into_iter().map(String::from))
                    }
                }
            }
            let is_new = |packed: &&PackedLog| new.contains_key(packed.entry.name.as_str());
            manifest.files.extend(self.packed.iter().filter(is_new).map(|packed| packed.entry.clone()));
            manifest.retire(retired, seconds(SystemTime::now()));
            match manifest.write(self.storage) {
                Ok(()) => {
                    self.manifest = manifest;
                    return Ok(replaced);
                }
                Err(Error::Changed) if attempts < ATTEMPTS_MAX => attempts += 1,
                Err(error) => return Err(error),
            }
            self.manifest = Manifest::read(self.storage)?.unwrap_or_default();
            // The new manifest has the logs that another run archived meanwhile.
            for packed in std::mem::take(&mut self.packed) {
                let PackedLog { entry, replaces } = &packed;
                let there = self.manifest.files.iter().find(|file| file.name == entry.name);
                if let Replaces::Packed(objects) = replaces {
                    // Another run may have removed it, or packed it anew.
                    if there.is_some_and(|file| file.sha256 == entry.sha256 && file.objects == *objects) {
                        self.packed.push(packed);
                    }
                    continue;
                }
                if let Replaces::Erased(objects, sha256) = replaces {
                    if there.is_some_and(|file| file.sha256 == *sha256 && file.objects == *objects) {
                        self.packed.push(packed);
                    }
                    continue;
                }
                if let Replaces::Broken(objects, _) = replaces {
                    match there.is_some_and(|file| {
                        file.source_sha256() == entry.source_sha256() && file.objects == *objects
                    }) {
                        true => self.packed.push(packed),
                        false => return Err(Error::Changed),
                    }
                    continue;
                }
                let part = there.filter(|file| file.active_size.is_some());
                match part {
                    Some(part) if matches!(replaces, Replaces::Part(sha256) if sha256 == part.source_sha256()) => {
                        self.packed.push(packed)
                    }
                    Some(part) if part.source_sha256() != entry.source_sha256() => {
                        return Err(Error::Changed);
                    }
                    _ => match known(there, &entry.name, entry.source_sha256())? {
                        Some(known) => (self.told)(&CreateOutcome::Known(known)),
                        None => self.packed.push(packed),
                    },
                }
            }
        }
    }

    /// Stores the packed logs; if there are none, completes a killed run's work. Returns the manifest.
    ///
    /// # Errors
    ///
    /// An archive that can't be written.
    pub fn finish(mut self) -> Result<Manifest> {
        if self.packed.is_empty() {
            Manifest::mend_copy(self.storage)?
        } else {
            self.store().map(drop)?
        }
        Ok(self.manifest)
    }
}

/// Seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// How often to read the manifest again while other runs keep replacing it.
const ATTEMPTS_MAX: u32 = 10;

/// The existing log of this name, which must be the same.
fn known<'a>(
    files: impl IntoIterator<Item = &'a FileEntry>,
    name: &str,
    sha256: &str,
) -> Result<Option<FileEntry>> {
    match files.into_iter().find(|file| file.name == name) {
        Some(known) if !known.is_of(sha256) => Err(Error::unexpected(
            format!("{name}: SHA-256"),
            sha256,
            format!("{}, that of the log of this name in the archive", known.source_sha256()),
        )),
        known => Ok(known.cloned()),
    }
}

fn previous_gtids(head: &[u8]) -> String {
    let events = events::events(head, 0);
    let frames =
        events.filter_map(events::frame).filter(|frame| frame.event_type() == EventType::PREVIOUS_GTIDS);
    let sets = frames.filter_map(|frame| PreviousGtidsEvent::decode_frame(&frame).ok());
    sets.last().map(|event| event.gtid_set.to_string()).unwrap_or_default()
}
