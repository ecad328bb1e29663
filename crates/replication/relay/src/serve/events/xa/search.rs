//! Finds where a transaction was prepared that a dump has not come by: in the stored logs, backwards file by file, each from its
//! beginning.
//!
//! ```text
//! its own log       … │ PREPARE x · … │ … │ … · COMMIT x       the last file up to COMMIT, then those before it
//! logs before it    … │ PREPARE x · … │ …                      after a failover; not what stands behind the same COMMIT
//! ```
//!
//! What is found is the last step of that name before COMMIT: if it isn't PREPARE, then the log doesn't have it.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::ChecksumAlgorithm;
use binlogz_binlog::gtid::Gtid;
use binlogz_relay_forms::{FormSink, Forms, Translator};
use binlogz_relay_log::{Error, EventGroup, Form, FormFile, LineageLog, Result};
use binlogz_store::FileNumber;

use super::{PreparedPlace, TransactionEnds, XaStep};

/// Which transaction is searched, and up to where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreparedSearch<'a> {
    /// The transaction's XA identifier, as text.
    pub(crate) name: &'a str,
    /// The GTID of its XA COMMIT.
    pub(crate) gtid: Option<Gtid>,
    /// The file and offset of that in the log that is searched; `None`: it is in a later log.
    pub(crate) before: Option<(FileNumber, u64)>,
}

/// Where it was prepared, if this log has it.
///
/// # Errors
///
/// A stored file can't be read.
pub(crate) fn search(forms: Forms<'_>, search: PreparedSearch<'_>) -> Result<Option<PreparedPlace>> {
    for log in forms.kept.store.logs()?.iter().rev() {
        let file = log.number;
        if search.before.is_some_and(|(last, _)| file > last) || is_behind(forms.kept, file, search)? {
            continue;
        }
        match last_step(forms, file, search)? {
            Some((XaStep::Prepare(_), offset)) => {
                return Ok(Some(PreparedPlace { lineage: forms.kept.number, file, offset }));
            }
            Some(_) => return Ok(None),
            None => {}
        }
    }
    Ok(None)
}

/// Whether a file begins after the COMMIT itself, which the earlier log has too.
fn is_behind(kept: &LineageLog, file: FileNumber, search: PreparedSearch<'_>) -> Result<bool> {
    match search.gtid.filter(|_| search.before.is_none()) {
        Some(gtid) => Ok(kept.store.previous_gtids(file)?.contains(&gtid)),
        None => Ok(false),
    }
}

/// The last step of that name in a file, and where its transaction begins.
fn last_step(
    forms: Forms<'_>,
    file: FileNumber,
    search: PreparedSearch<'_>,
) -> Result<Option<(XaStep, u64)>> {
    let part = Arc::new(forms.kept.part(Form::Uncompressed, FormFile::first_of(file), Some(file))?);
    let end = search.before.filter(|(last, _)| *last == file).map(|(_, offset)| offset);
    let checksum = part.head.checksum();
    let reader = StepReader { forms, file, checksum };
    let mut translator =
        Translator::at(forms, Form::Uncompressed, &part, &part.start(), StepSink::default())?;
    let mut last = None;
    while let Some(group) = translator.walker().next_group()? {
        if end.is_some_and(|end| group.begin >= end) || (group.gtid.is_some() && group.gtid == search.gtid) {
            break;
        }
        let step = match group.payload {
            None => reader.step(translator.walker().bytes(&group)?, &group)?,
            Some(_) => {
                translator.write(&group)?;
                std::mem::take(&mut translator.sink()?.0).step(checksum)
            }
        };
        last = step.filter(|step| is_of(step, search.name)).map(|step| (step, group.begin)).or(last);
    }
    Ok(last)
}

fn is_of(step: &XaStep, wanted: &str) -> bool {
    match step {
        XaStep::Prepare(name) | XaStep::Commit(name) | XaStep::Rollback(name) => name == wanted,
        XaStep::OnePhase => false,
    }
}

/// Takes a transaction's ends.
#[derive(Debug, Default)]
struct StepSink(TransactionEnds);

impl Write for StepSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.feed(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FormSink for StepSink {
    fn skip_to(&mut self, _: u64) {}
}

/// The bytes of a short range of a stored file.
///
/// # Errors
///
/// The file can't be read.
pub(crate) fn stored_bytes(forms: Forms<'_>, file: FileNumber, range: Range<u64>) -> Result<Vec<u8>> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    let mut reader = forms.kept.store.reader(file, range.start)?;
    reader.read_exact(&mut bytes).map_err(Error::of_stored)?;
    Ok(bytes)
}

/// Tells the steps of transactions that are stored plain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepReader<'a> {
    /// Their log.
    pub(crate) forms: Forms<'a>,
    /// Their file.
    pub(crate) file: FileNumber,
    /// Its checksums.
    pub(crate) checksum: ChecksumAlgorithm,
}

impl StepReader<'_> {
    /// The step that a transaction is; `bytes`: the whole of it, if it is in memory.
    ///
    /// # Errors
    ///
    /// The stored file can't be read.
    pub(crate) fn step(self, bytes: Option<&[u8]>, group: &EventGroup) -> Result<Option<XaStep>> {
        if !group.first.event_type.is_gtid() || !group.is_transaction {
            return Ok(None);
        }
        let ends = match bytes {
            Some(bytes) => TransactionEnds::of(bytes),
            None => self.ends(group)?,
        };
        Ok(ends.step(self.checksum))
    }

    /// The ends of a transaction that is not in memory.
    fn ends(self, group: &EventGroup) -> Result<TransactionEnds> {
        let (front, tail) = TransactionEnds::SIZES;
        // The two may meet.
        let front_end = group.end.min(group.begin + front as u64);
        let tail_begin = front_end.max(group.end.saturating_sub(tail as u64));
        let mut ends = TransactionEnds::default();
        ends.feed(&stored_bytes(self.forms, self.file, group.begin..front_end)?);
        ends.feed(&stored_bytes(self.forms, self.file, tail_begin..group.end)?);
        Ok(ends)
    }
}
