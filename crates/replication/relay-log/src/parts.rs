//! The files of each form: a stored file, or in the uncompressed form a part of one, and the events it begins with.
//!
//! ```text
//! magic              "\xfebin"
//! format description the stored file's; of a later part with the time of its first transaction, `created` 0
//! previous GTIDs     the stored file's; of a later part with those of the parts before
//! transactions       of a later part their clocks count from its beginning
//! rotate             names the next one
//! ```

use std::io::Read;

use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{
    ChecksumAlgorithm, Error as BinlogError, EventHeader, EventType, Framing, HeaderFlags, MAGIC,
    VerifiedFrame,
};
use binlogz_store::FileNumber;

use crate::checkpoints::StartOffsets;
use crate::cuts::FileCut;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::groups::{EventGroup, GroupWalker};
use crate::lineage_log::LineageLog;
use crate::stored_format::StoredHead;

/// A file of a form, by the stored file that it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FormFile {
    /// The stored file.
    pub file: FileNumber,
    /// The part's index, from 0.
    pub part: u32,
}

impl FormFile {
    /// The first part of a stored file.
    pub fn first_of(file: FileNumber) -> Self {
        FormFile { file, part: 0 }
    }
}

/// The file that a file number of a form refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundFile {
    /// A file that is there.
    File(FormFile),
    /// A purged file: this stored one, or an earlier one.
    Purged(FileNumber),
    /// No file of the log.
    None,
}

/// A file of a form, with the events it begins with.
#[derive(Debug, Clone)]
pub struct FilePart {
    /// Which file it is.
    pub of: FormFile,
    /// The number in the form's file names.
    pub number: FileNumber,
    /// The stored file's format description.
    pub stored_head: StoredHead,
    /// The format description that the file of the form begins with.
    pub head: StoredHead,
    /// The event that follows, which is not in the stored file.
    pub front: Vec<u8>,
    /// How much to subtract from transactions' clocks.
    pub clock: i64,
    /// The offset of its first transaction in the stored file.
    pub stored: u64,
}

impl FilePart {
    /// The position before [`FilePart::front`].
    pub fn start(&self) -> StartOffsets {
        StartOffsets { stored: self.stored, at: self.head.end() }
    }

    /// Whether a transaction is sent as stored, if nothing else changes it.
    pub fn is_as_stored(&self, at: u64, group: &EventGroup) -> bool {
        at == group.begin && self.clock == 0
    }

    fn later(
        kept: &LineageLog,
        of: FormFile,
        number: FileNumber,
        stored_head: StoredHead,
        cut: &FileCut,
    ) -> Result<Self> {
        let flags = stored_head.header.flags.without(HeaderFlags::IN_USE);
        let header = EventHeader { timestamp: cut.timestamp, flags, ..stored_head.header };
        let description = FormatDescription { created: 0, ..stored_head.description.clone() };
        // It has a checksum even if the other events have none.
        let event = encode_event(
            EventHeader { end_log_pos: (MAGIC.len() + stored_head.event.len()) as u32, ..header },
            &description.encode(),
            ChecksumAlgorithm::CRC32,
        );
        let head = StoredHead::decode(&event)?;
        let front = previous_gtids(kept, of.file, &stored_head, &head, cut)?;
        Ok(FilePart { of, number, head, front, clock: cut.clock, stored: cut.stored, stored_head })
    }
}

/// An event of a stored file, which begins at `offset`, if it is complete and not damaged.
pub fn verified(event: &[u8], framing: Framing, offset: u64) -> Result<VerifiedFrame<'_>> {
    let at = |error: BinlogError| error.at(offset, event_type_of(event));
    let cut = BinlogError::Truncated { needed: event.len() as u64 + 1, left: event.len() as u64 };
    let frame = framing.next_frame(event).map_err(at)?.ok_or_else(|| at(cut))?;
    Ok(frame.verify().map_err(at)?)
}

fn event_type_of(event: &[u8]) -> Option<EventType> {
    EventHeader::decode(event).ok().map(|header| header.event_type)
}

/// The previous GTIDs event of a part, if its stored file begins with one.
fn previous_gtids(
    kept: &LineageLog,
    file: FileNumber,
    stored: &StoredHead,
    head: &StoredHead,
    cut: &FileCut,
) -> Result<Vec<u8>> {
    let begin = stored.end();
    let mut walker = GroupWalker::new(kept.store.reader(file, begin)?, stored.framing(), begin);
    // A file is only cut after its first event.
    let missing = || BinlogError::Truncated { needed: cut.stored - begin, left: 0 }.at(begin, None);
    let group = walker.next_group()?.ok_or_else(missing)?;
    // We trust the type only if the event is not damaged.
    if group.verified.is_some() {
        return Ok(Vec::new());
    }
    let mut event = Vec::new();
    let reader = kept.store.reader(file, group.begin)?;
    reader
        .take(u64::from(group.first.event_size))
        .read_to_end(&mut event)
        .map_err(Error::io("read a stored log"))?;
    let first = *verified(&event, stored.framing(), group.begin)?.header();
    if first.event_type != EventType::PREVIOUS_GTIDS {
        return Ok(Vec::new());
    }
    let mut gtids = kept.store.previous_gtids(file)?;
    gtids.union(&cut.gtids);
    let mut body = Vec::new();
    gtids.encode(gtids.format(), &mut body);
    let size = binlogz_binlog::header::HEADER_SIZE + body.len() + head.checksum().size();
    let end_log_pos = (head.end() + size as u64) as u32;
    let header = EventHeader { timestamp: cut.timestamp, end_log_pos, ..first };
    Ok(encode_event(header, &body, head.checksum()))
}

impl LineageLog {
    /// The first stored file that is not purged, and the number of its first file in a form. For a log that was
    /// purged completely: the numbers that would follow its end.
    pub fn front(&self, form: Form) -> Result<Option<(FileNumber, FileNumber)>> {
        if let Some((first, number)) = self.files(form)?.first() {
            return Ok(Some((first.file, *number)));
        }
        let after = self.store.positions().map(|now| now.durable.file.next());
        let known = self.cuts.first().filter(|(file, _)| form == Form::Uncompressed && Some(*file) == after);
        Ok(known.or(after.map(|after| (after, after))))
    }

    /// Saves the number that would follow the last file, which is about to be removed.
    pub(crate) fn fix_numbers_after(&self, last: FileNumber) -> Result<()> {
        let number = self.number_of(Form::Uncompressed, FormFile::first_of(last))?;
        let parts = self.parts_of(Form::Uncompressed, last)?.count() as u64;
        self.cuts.set_first((last.next(), FileNumber(number.0 + parts)))
    }

    /// The number of a purged file in the uncompressed form; `None` if it is not purged.
    pub(crate) fn number_of_purged(&self, wanted: FormFile) -> Result<Option<FileNumber>> {
        let Some((first, mut number)) = self.front(Form::Uncompressed)? else { return Ok(None) };
        if wanted.file >= first {
            return Ok(None);
        }
        for file in wanted.file.0..first.0 {
            let parts = self.parts_of(Form::Uncompressed, FileNumber(file))?.count() as u64;
            number.0 = number.0.saturating_sub(parts);
        }
        number.0 += u64::from(wanted.part);
        Ok(Some(number))
    }

    /// The number of files of a form that a stored file makes.
    fn part_count(&self, form: Form, file: FileNumber) -> Result<u32> {
        match form {
            Form::Received | Form::Compressed => Ok(1),
            Form::Uncompressed => Ok(self.cuts.count(&self.store, file)? + 1),
        }
    }

    /// The number of the first existing file of a form, and the stored file's.
    fn first_number(&self, form: Form) -> Result<Option<(FileNumber, FileNumber)>> {
        let logs = self.store.logs()?;
        let Some(first) = logs.first().map(|log| log.number) else { return Ok(None) };
        match self.cuts.first().filter(|_| form == Form::Uncompressed) {
            None => Ok(Some((first, first))),
            Some((known, mut number)) => {
                // It may have been purged, and earlier ones brought back.
                for log in logs.iter().filter(|log| log.number < known) {
                    number.0 = number.0.saturating_sub(u64::from(self.part_count(form, log.number)?));
                }
                for file in known.0..first.0 {
                    number.0 += u64::from(self.part_count(form, FileNumber(file))?);
                }
                Ok(Some((first, number)))
            }
        }
    }

    /// All existing files of a form, oldest first, and their numbers.
    pub fn files(&self, form: Form) -> Result<Vec<(FormFile, FileNumber)>> {
        let Some((_, mut number)) = self.first_number(form)? else { return Ok(Vec::new()) };
        let mut files = Vec::new();
        for log in self.store.logs()? {
            for of in self.parts_of(form, log.number)? {
                files.push((of, number));
                number = number.next();
            }
        }
        self.cuts.keep();
        Ok(files)
    }

    /// The number of a file of a form.
    pub fn number_of(&self, form: Form, wanted: FormFile) -> Result<FileNumber> {
        if form != Form::Uncompressed {
            return Ok(wanted.file);
        }
        if let Some(number) = self.number_of_purged(wanted)? {
            return Ok(number);
        }
        let found = self.files(form)?.into_iter().find(|(of, _)| *of == wanted);
        let name = || self.store.names().log(wanted.file);
        let gone = || Error::Refused(format!("{} is not there as an uncompressed file", name()));
        found.map(|(_, number)| number).ok_or_else(gone)
    }

    /// The name of a file of a form.
    pub fn name_of(&self, form: Form, wanted: FormFile) -> Result<String> {
        Ok(self.names.name(form, self.number_of(form, wanted)?))
    }

    /// The file with this number in a form.
    pub fn find(&self, form: Form, wanted: FileNumber) -> Result<FoundFile> {
        let files = self.files(form)?;
        if let Some((of, _)) = files.iter().find(|(_, number)| *number == wanted) {
            return Ok(FoundFile::File(*of));
        }
        Ok(match files.first() {
            Some((first, number)) if wanted < *number => FoundFile::Purged(match form {
                Form::Uncompressed => FileNumber(first.file.0.saturating_sub(1)),
                Form::Received | Form::Compressed => wanted,
            }),
            _ => FoundFile::None,
        })
    }

    /// The number, in a form, of the file that comes after all that are here; `None` if there was never one.
    pub fn next_number(&self, form: Form) -> Result<Option<FileNumber>> {
        match self.files(form)?.last() {
            Some((_, last)) => Ok(Some(last.next())),
            None => Ok(self.front(form)?.map(|(_, number)| number)),
        }
    }

    /// Whether the durable log ends with a rotate event: it names the file after the last one, which need not be here.
    ///
    /// # Errors
    ///
    /// The last file can't be read.
    pub fn ends_with_rotate(&self) -> Result<bool> {
        let Some(last) = self.store.positions().map(|now| now.durable.file) else { return Ok(false) };
        if !self.store.logs()?.iter().any(|log| log.number == last) {
            return Ok(self.was_next_named);
        }
        let head = StoredHead::read(&self.store, last)?;
        let places = self.places(last, &head);
        let start = places.before(Form::Received, u64::MAX).map_or(head.end(), |start| start.stored);
        let mut walker = GroupWalker::new(self.store.reader(last, start)?, head.framing(), start);
        if !walker.is_between_events()? {
            places.forget();
            walker.move_to(head.end());
        }
        let mut ends = false;
        while let Some(group) = walker.next_group()? {
            ends = group.first.event_type == EventType::ROTATE;
        }
        Ok(ends)
    }

    /// The files of a form that a stored file makes.
    pub fn parts_of(&self, form: Form, file: FileNumber) -> Result<impl Iterator<Item = FormFile>> {
        Ok((0..self.part_count(form, file)?).map(move |part| FormFile { file, part }))
    }

    /// The last part of a stored file whose previous GTIDs are all in this set, if the stored file has one.
    pub fn last_part_with(&self, form: Form, file: FileNumber, gtids: &GtidSet) -> Result<FormFile> {
        if form != Form::Uncompressed {
            return Ok(FormFile::first_of(file));
        }
        let cuts = self.cuts.of(&self.store, file)?;
        let part = cuts.iter().take_while(|cut| cut.gtids.is_subset(gtids)).count() as u32;
        Ok(FormFile { file, part })
    }

    /// Opens a file of a form; looks up its number unless given.
    pub fn part(&self, form: Form, of: FormFile, number: Option<FileNumber>) -> Result<FilePart> {
        let stored_head = StoredHead::read(&self.store, of.file)?;
        let number = number.map_or_else(|| self.number_of(form, of), Ok)?;
        if of.part == 0 {
            let head = stored_head.clone();
            let stored = stored_head.end();
            return Ok(FilePart { of, number, stored_head, head, front: Vec::new(), clock: 0, stored });
        }
        let cuts = self.cuts.of(&self.store, of.file)?;
        let cut = cuts.get(of.part as usize - 1).filter(|_| form == Form::Uncompressed);
        let cut =
            cut.ok_or_else(|| Error::Refused(format!("{} is not there", self.names.name(form, number))))?;
        FilePart::later(self, of, number, stored_head, cut)
    }

    /// Removes all files before this one; their numbers stay known.
    pub fn purge_before(&self, first: FileNumber) -> Result<Vec<String>> {
        let number = self.number_of(Form::Uncompressed, FormFile::first_of(first))?;
        if number != first || self.cuts.first().is_some() {
            self.cuts.set_first((first, number))?;
        }
        let purged = self.store.purge_before(first)?;
        for name in &purged {
            if let Some(number) = self.store.names().number(name) {
                self.forget_places(number, name);
            }
        }
        Ok(purged)
    }
}
