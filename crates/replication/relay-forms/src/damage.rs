//! Where a client can resume after damage that it need not read.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::gtid::GtidSet;
use binlogz_relay_log::{FilePart, Form, Result, StartOffsets};
use binlogz_store::Hole;

use crate::forms::Forms;
use crate::translate::Translator;

/// Where a client resumes that already has all damaged transactions and everything before them. `None` if it lacks
/// some, or if we can't tell its position in this form because a readable transaction is not at its stored position.
pub fn behind_damage(
    forms: Forms<'_>,
    form: Form,
    part: &Arc<FilePart>,
    has: &GtidSet,
) -> Result<Option<StartOffsets>> {
    if forms.exits.is_some() {
        // No masked transaction is at its stored position.
        return Ok(None);
    }
    let damage = forms.kept.store.damage_of(part.of.file);
    let Some(damage) = damage.filter(|_| part.of.part == 0) else {
        return Ok(None);
    };
    let is_had = |hole: &&Hole| {
        hole.before.is_subset(has) && hole.lost.as_ref().is_some_and(|lost| lost.is_subset(has))
    };
    let Some(last) = damage.holes.iter().take_while(is_had).last() else { return Ok(None) };
    let mut from = part.stored_head.end();
    for to in damage.holes.iter().map(|hole| (hole.from, hole.to)).chain([(u64::MAX, 0)]) {
        if !stands_as_stored(forms, form, part, from..to.0)? {
            return Ok(None);
        }
        from = to.1;
    }
    Ok(Some(StartOffsets { stored: last.to, at: last.to }))
}

/// Whether every transaction of a range has the same position in this form as in the stored file.
fn stands_as_stored(forms: Forms<'_>, form: Form, part: &Arc<FilePart>, range: Range<u64>) -> Result<bool> {
    let start = StartOffsets { stored: range.start, at: range.start };
    let mut log = Translator::at(forms, form, part, &start, io::sink())?;
    while log.walker().offset() < range.end {
        let Some(group) = log.walker().next_group()? else { break };
        match log.keeps_size(&group) {
            true => log.pass(&group)?,
            false => log.write(&group)?,
        }
        if log.offset() != group.end {
            return Ok(false);
        }
    }
    Ok(true)
}
