//! What is told of a file of a form after going through it: where it ends, which events it holds.

use std::io;

use binlogz_wire::result_set::Row;
use binlogz_wire::statement::EventsWanted;

use crate::checkpoints::Noting;
use crate::error::Result;
use crate::form::Form;
use crate::lineages::Kept;
use crate::listing::Listing;
use crate::parts::FormFile;
use crate::translate::{FormSink, Translator};

/// Where what is durable of a file of a form ends.
pub(crate) fn end_of(kept: &Kept, form: Form, file: FormFile) -> Result<u64> {
    go_to_end(kept, form, file).map(|(end, _)| end)
}

/// The same, with what was collected for the index since its last place.
pub(crate) fn go_to_end(kept: &Kept, form: Form, file: FormFile) -> Result<(u64, Noting)> {
    let mut translator = Translator::new(kept, form, file, io::sink())?;
    if let Some(start) = translator.before(u64::MAX) {
        translator.begin_at(&start)?;
    }
    translator.put_front()?;
    while let Some(group) = translator.walker().next()? {
        if translator.is_cut(&group)? {
            translator.put_end(&group)?;
            return Ok((translator.offset(), translator.into_noting()));
        }
        match translator.keeps_size(&group) {
            true => translator.pass(&group)?,
            false => translator.put(&group)?,
        }
    }
    if let Some(left) = translator.walker().left() {
        translator.put(&left)?;
    }
    translator.finish_file();
    Ok((translator.offset(), translator.into_noting()))
}

/// Lists the events of a file in a form, as far as they are durable.
pub(crate) fn list_events(
    kept: &Kept,
    form: Form,
    file: FormFile,
    wanted: &EventsWanted,
) -> Result<Result<Vec<Row>, String>> {
    let part = kept.part(form, file, None)?;
    let listing = Listing::new(kept.names.name(form, part.number), &part.head, wanted);
    let from = listing.from();
    let mut translator = Translator::of(kept, form, part, listing)?;
    if let Some(start) = translator.before(from) {
        translator.begin_at(&start)?;
        let at = translator.offset();
        translator.sink()?.skip_to(at);
    }
    if !translator.sink()?.is_done() {
        let done = translator.put_front();
        if !translator.sink()?.is_done() {
            done?;
        }
    }
    while !translator.sink()?.is_done() {
        let Some(group) = translator.walker().next()? else { break };
        let is_cut = translator.is_cut(&group)?;
        let unseen = translator.offset() + group.size() <= from && translator.keeps_size(&group);
        let done = match (is_cut, unseen) {
            (true, _) => translator.put_end(&group),
            (false, true) => translator.pass(&group),
            (false, false) => translator.put(&group),
        };
        if translator.sink()?.is_done() {
            break;
        }
        done?;
        if is_cut {
            break;
        }
    }
    Ok(translator.sink()?.finish())
}
