//! Images that occurred before: of exactly these bytes, or of the same row. Packing looks them up; unpacking takes them
//! from the place that the block names.

use super::{Former, MappedTable, image_short};
use crate::block::cells::is_set;
use crate::block::former::{FormerImage, Formers};
use crate::block::slots::{DIFFERS, ImageRole, NUMBER, REFERENCES_MAX, SOURCE};
use crate::block::streams::StreamColumn;
use crate::block::walk::Walk;
use crate::codec::hash::hash;
use crate::error::{Error, Result};

impl MappedTable {
    /// Walks over an image that occurred before, if one is known.
    pub(super) fn former(
        &self,
        walk: &mut impl Walk,
        role: ImageRole,
        formers: &mut Formers<'_>,
        next: &mut Vec<i64>,
        base: &mut Vec<u8>,
    ) -> Result<Former> {
        let mut found = FormerImage::default();
        let source = walk.decide(StreamColumn::new(self.group, SOURCE + role as usize), |_, rest| {
            found = self.find(rest, formers).unwrap_or_default();
            (found.source + if found.differs { DIFFERS } else { 0 }) as i64
        })?;
        let source = usize::try_from(source).unwrap_or(usize::MAX);
        let differs = self.differs && source > DIFFERS;
        let source = if differs { source - DIFFERS } else { source };
        if source > 1 + REFERENCES_MAX {
            return Err(Error::damaged(
                "row image",
                "a reference to no block",
                "one of the blocks that its own refers to",
            ));
        };
        let Some(elsewhere) = source.checked_sub(1) else { return Ok(Former::Unknown) };
        if next.len() < source {
            next.resize(source, 0);
        }
        let next = next.get_mut(elsewhere).ok_or_else(image_short)?;
        let step = walk.decide(StreamColumn::new(self.group, NUMBER + role as usize), |_, _| {
            found.number as i64 - *next
        })?;
        let number = next.wrapping_add(step);
        *next = number.wrapping_add(1);
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let no_row = || Error::damaged("block", format!("a reference to its row {number}"), "an earlier row");
        let formers = &*formers;
        let elsewhere = |reference: usize| match formers {
            Formers::Given(sources) => {
                let table = self.elsewhere.get(reference).copied().flatten()?;
                sources.get(reference)?.image(table, number)
            }
            Formers::Find(finder) if differs => finder.base(),
            Formers::ByKey | Formers::Find(_) => None,
        };
        match (source.checked_sub(2), differs) {
            (None, false) => {
                let place = self.places.get(number).ok_or_else(no_row)?;
                walk.again(place.start as usize..place.end as usize)?;
            }
            (Some(reference), false) => walk.copy(found.size, || elsewhere(reference))?,
            (None, true) => {
                let place = self.places.get(number).ok_or_else(no_row)?;
                let image = walk.walked().get(place.start as usize..place.end as usize);
                base.clear();
                base.extend_from_slice(image.ok_or_else(no_row)?);
            }
            (Some(reference), true) => {
                base.clear();
                base.extend_from_slice(elsewhere(reference).ok_or_else(no_row)?);
            }
        }
        Ok(if differs { Former::Differs } else { Former::Same })
    }

    /// Where the image at the start of `rest` occurred.
    fn find(&self, rest: &[u8], formers: &mut Formers<'_>) -> Option<FormerImage> {
        let Formers::Find(finder) = formers else { return None };
        let image = rest.get(..self.image_size(rest)?)?;
        let found = finder.find(self.seed, image, self.places.len());
        if found.is_some() || self.key.is_empty() {
            return found;
        }
        finder.find_base(self.key_of(image)?)
    }

    /// A hash of the table and the key of one of its images.
    pub(super) fn key_of(&self, image: &[u8]) -> Option<u64> {
        let nulls = 0..self.forms.len().div_ceil(8);
        let mut at = nulls.end;
        let mut key = self.seed;
        let last = self.key.iter().max()?;
        for (index, form) in self.forms.iter().enumerate().take(last + 1) {
            if !is_set(image, &nulls, index) {
                let end = form.end(image, at).ok()?;
                if self.key.contains(&index) {
                    key = hash(key, image.get(at..end)?);
                }
                at = end;
            }
        }
        Some(key)
    }

    /// The size of the whole image at the start of `rest`.
    fn image_size(&self, rest: &[u8]) -> Option<usize> {
        let nulls = 0..self.forms.len().div_ceil(8);
        let values = self.forms.iter().enumerate().filter(|&(place, _)| !is_set(rest, &nulls, place));
        values.into_iter().try_fold(nulls.end, |at, (_, form)| form.end(rest, at).ok())
    }
}
