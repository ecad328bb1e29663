//! The files of each form: a stored file, or in the uncompressed form a part of one, and what it begins with.
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

use crate::checkpoints::Start;
use crate::cuts::Cut;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::groups::{Group, GroupWalker};
use crate::head::Head;
use crate::lineages::Kept;

/// A file of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FormFile {
    /// The stored file.
    pub(crate) file: FileNumber,
    /// Which part of it, from 0.
    pub(crate) part: u32,
}

impl FormFile {
    /// Where a stored file begins.
    pub(crate) fn first_of(file: FileNumber) -> Self {
        FormFile { file, part: 0 }
    }
}

/// What a number of a form means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    File(FormFile),
    /// A file that was purged: this stored one, or one in front of it.
    Purged(FileNumber),
    None,
}

/// What a file of a form begins with.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) of: FormFile,
    /// As the form's names count.
    pub(crate) number: FileNumber,
    /// The stored file's head.
    pub(crate) stored_head: Head,
    /// The form's.
    pub(crate) head: Head,
    /// The event behind it that does not stand in the stored file.
    pub(crate) front: Vec<u8>,
    /// What is taken off the clocks of transactions.
    pub(crate) clock: i64,
    /// Where its first transaction begins in the stored file.
    pub(crate) stored: u64,
}

impl Part {
    /// Where to begin with it, in front of [`Part::front`].
    pub(crate) fn start(&self) -> Start {
        Start { stored: self.stored, at: self.head.end() }
    }

    /// Whether a transaction goes out as it is stored, if nothing else changes it.
    pub(crate) fn is_as_stored(&self, at: u64, group: &Group) -> bool {
        at == group.begin && self.clock == 0
    }

    fn later(kept: &Kept, of: FormFile, number: FileNumber, stored_head: Head, cut: &Cut) -> Result<Self> {
        let flags = stored_head.header.flags.without(HeaderFlags::IN_USE);
        let header = EventHeader { timestamp: cut.timestamp, flags, ..stored_head.header };
        let description = FormatDescription { created: 0, ..stored_head.description.clone() };
        // Its own checksum is there also where the others have none.
        let event = encode_event(
            EventHeader { end_log_pos: (MAGIC.len() + stored_head.event.len()) as u32, ..header },
            &description.encode(),
            ChecksumAlgorithm::CRC32,
        );
        let head = Head::decode(&event)?;
        let front = previous_gtids(kept, of.file, &stored_head, &head, cut)?;
        Ok(Part { of, number, head, front, clock: cut.clock, stored: cut.stored, stored_head })
    }
}

/// An event of a stored file, which begins at `offset`, if it is whole and not damaged.
pub(crate) fn verified(event: &[u8], framing: Framing, offset: u64) -> Result<VerifiedFrame<'_>> {
    let at = |error: BinlogError| error.at(offset, event_type_of(event));
    let cut = BinlogError::Truncated { needed: event.len() as u64 + 1, left: event.len() as u64 };
    let frame = framing.next_frame(event).map_err(at)?.ok_or_else(|| at(cut))?;
    Ok(frame.verify().map_err(at)?)
}

fn event_type_of(event: &[u8]) -> Option<EventType> {
    EventHeader::decode(event).ok().map(|header| header.event_type)
}

/// The previous GTIDs event of a part, if its stored file begins with one.
fn previous_gtids(kept: &Kept, file: FileNumber, stored: &Head, head: &Head, cut: &Cut) -> Result<Vec<u8>> {
    let begin = stored.end();
    let mut walker = GroupWalker::new(kept.store.reader(file, begin)?, stored.framing(), begin);
    // A file is only cut after its first event.
    let missing = || BinlogError::Truncated { needed: cut.stored - begin, left: 0 }.at(begin, None);
    let group = walker.next()?.ok_or_else(missing)?;
    // Which type it has is believed only of an event that is not damaged.
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

impl Kept {
    /// How many files of a form a stored file is.
    fn part_count(&self, form: Form, file: FileNumber) -> Result<u32> {
        match form {
            Form::Received | Form::Compressed => Ok(1),
            Form::Uncompressed => Ok(self.cuts.count(&self.store, file)? + 1),
        }
    }

    /// The number of the first file of a form that is there, and the stored file's.
    fn first_number(&self, form: Form) -> Result<Option<(FileNumber, FileNumber)>> {
        let logs = self.store.logs()?;
        let Some(first) = logs.first().map(|log| log.number) else { return Ok(None) };
        match self.cuts.first().filter(|_| form == Form::Uncompressed) {
            None => Ok(Some((first, first))),
            Some((known, mut number)) => {
                // It may have been purged, and others in front of it been brought back.
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

    /// All files of a form that are there, the oldest first, and their numbers.
    pub(crate) fn files(&self, form: Form) -> Result<Vec<(FormFile, FileNumber)>> {
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
    pub(crate) fn number_of(&self, form: Form, wanted: FormFile) -> Result<FileNumber> {
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
    pub(crate) fn name_of(&self, form: Form, wanted: FormFile) -> Result<String> {
        Ok(self.names.name(form, self.number_of(form, wanted)?))
    }

    /// The file that has this number in a form.
    pub(crate) fn find(&self, form: Form, wanted: FileNumber) -> Result<Found> {
        let files = self.files(form)?;
        if let Some((of, _)) = files.iter().find(|(_, number)| *number == wanted) {
            return Ok(Found::File(*of));
        }
        Ok(match files.first() {
            Some((first, number)) if wanted < *number => Found::Purged(match form {
                Form::Uncompressed => FileNumber(first.file.0.saturating_sub(1)),
                Form::Received | Form::Compressed => wanted,
            }),
            _ => Found::None,
        })
    }

    /// The parts of a stored file.
    pub(crate) fn parts_of(&self, form: Form, file: FileNumber) -> Result<impl Iterator<Item = FormFile>> {
        Ok((0..self.part_count(form, file)?).map(move |part| FormFile { file, part }))
    }

    /// The last part of a stored file that begins with transactions of this set alone, if the stored file does.
    pub(crate) fn last_part_with(&self, form: Form, file: FileNumber, gtids: &GtidSet) -> Result<FormFile> {
        if form != Form::Uncompressed {
            return Ok(FormFile::first_of(file));
        }
        let cuts = self.cuts.of(&self.store, file)?;
        let part = cuts.iter().take_while(|cut| cut.gtids.is_subset(gtids)).count() as u32;
        Ok(FormFile { file, part })
    }

    /// Opens a file of a form, whose number is known or looked for.
    pub(crate) fn part(&self, form: Form, of: FormFile, number: Option<FileNumber>) -> Result<Part> {
        let stored_head = Head::read(&self.store, of.file)?;
        let number = number.map_or_else(|| self.number_of(form, of), Ok)?;
        if of.part == 0 {
            let (head, stored) = (stored_head.clone(), stored_head.end());
            return Ok(Part { of, number, stored_head, head, front: Vec::new(), clock: 0, stored });
        }
        let cuts = self.cuts.of(&self.store, of.file)?;
        let cut = cuts.get(of.part as usize - 1).filter(|_| form == Form::Uncompressed);
        let cut =
            cut.ok_or_else(|| Error::Refused(format!("{} is not there", self.names.name(form, number))))?;
        Part::later(self, of, number, stored_head, cut)
    }

    /// Removes all files before this one; what their numbers were is kept.
    pub(crate) fn purge_before(&self, first: FileNumber) -> Result<Vec<String>> {
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
