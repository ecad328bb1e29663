//! Walks through a whole file of a form: finds its end, or lists its events.

use std::io;

use binlogz_relay_log::{Form, FormFile, GtidCollector, Result};
use binlogz_wire::result_set::ResultRow;
use binlogz_wire::statement::EventsWanted;

use crate::forms::Forms;
use crate::listing::Listing;
use crate::translate::{FormSink, Translator};

/// The end of the durable part of a file of a form.
pub fn end_of(forms: Forms<'_>, form: Form, file: FormFile) -> Result<u64> {
    go_to_end(forms, form, file).map(|(end, _)| end)
}

/// The end of the durable part of a file of a form, and the places collected for the index since its last checkpoint.
pub fn go_to_end(forms: Forms<'_>, form: Form, file: FormFile) -> Result<(u64, GtidCollector)> {
    let mut translator = Translator::new(forms, form, file, io::sink())?;
    if let Some(start) = translator.before(u64::MAX) {
        translator.begin_at(&start)?;
    }
    translator.put_front()?;
    while let Some(group) = translator.walker().next_group()? {
        if translator.is_cut(&group)? {
            translator.put_end(&group)?;
            return Ok((translator.offset(), translator.into_noting()));
        }
        match translator.keeps_size(&group) {
            true => translator.pass(&group)?,
            false => translator.put_unless_refused(&group)?,
        }
    }
    if let Some(left) = translator.left() {
        translator.put(&left)?;
    }
    translator.finish_file();
    Ok((translator.offset(), translator.into_noting()))
}

/// Lists the durable events of a file in a form.
pub fn list_events(
    forms: Forms<'_>,
    form: Form,
    file: FormFile,
    wanted: &EventsWanted,
) -> Result<Result<Vec<ResultRow>, String>> {
    let part = forms.kept.part(form, file, None)?;
    let listing = Listing::new(forms.name(form, part.number), &part.head, wanted);
    let from = listing.from();
    let mut translator = Translator::of(forms, form, part, listing)?;
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
        let Some(group) = translator.walker().next_group()? else { break };
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
