//! Walks over the rows of a rows event, according to the columns of its table.
//!
//! Their values go to the slots of the table's group: see `slots.rs`.

mod known;

use std::ops::Range;

use binlogz_binlog::event::TableMapEvent;
use binlogz_binlog::row::ColumnKind;

use crate::block::cells::{CellRanges, bit, is_set, key_columns};
use crate::block::form::ValueWalk;
use crate::block::former::{Formers, ImageRange};
use crate::block::history::{ImagePlace, LastImages};
use crate::block::slots::{
    DIFFERENCE, ImageRole, LAST, MORE, NULLS, OPTIONS, PARTIAL, PARTIAL_JSON, SAME, VALUES,
};
use crate::block::streams::StreamColumn;
use crate::block::walk::{ByteOrder, OlderValue, Walk, number_of};
use crate::codec::delta;
use crate::codec::hash::hash;
use crate::error::{Error, Result};

fn image_short() -> Error {
    Error::damaged("row image", "its end inside a value", "whole values")
}

/// A table as its map describes it, and the known rows of it.
#[derive(Debug)]
pub(crate) struct MappedTable {
    group: usize,
    forms: Vec<ValueWalk>,
    /// The seed for hashes of its images.
    seed: u64,
    /// The ranges of its images in the block.
    places: Vec<ImageRange>,
    /// By source: the number that follows the last image taken from there.
    next: Vec<i64>,
    /// The table's number in each of the blocks that this one refers to; `None`: that block doesn't have the table.
    elsewhere: Vec<Option<usize>>,
    history: LastImages,
    /// Whether values may be differences.
    differs: bool,
    /// The JSON columns.
    json: Vec<usize>,
    /// The columns that tell its rows apart.
    key: Vec<usize>,
}

/// An event's consequences for later ones, applied once it is done.
#[derive(Debug, Default)]
pub(crate) struct PendingEffects {
    places: Vec<ImageRange>,
    next: Vec<i64>,
    by_key: Vec<(Range<usize>, ImagePlace)>,
}

/// Earlier rows as an event sees them, and the rows it leaves.
#[derive(Debug, Default)]
pub(crate) struct Past<'a> {
    pub(crate) formers: Formers<'a>,
    pub(crate) pending: PendingEffects,
    /// Whether partial updates and differences are known: since format version 8.
    pub(crate) differs: bool,
    /// The image from which the present one differs.
    base: Vec<u8>,
    base_cells: CellRanges,
}

/// The images of one side of an event's rows.
struct Present {
    role: ImageRole,
    /// The columns that they have.
    columns: Vec<usize>,
    /// Whether the images are of partial updates.
    partial: bool,
}

/// An image that may have occurred before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Former {
    Unknown,
    Same,
    /// It differs from [`Past::base`].
    Differs,
}

impl<'a> Past<'a> {
    pub(crate) fn new(formers: Formers<'a>, differs: bool) -> Self {
        Past { formers, differs, ..Past::default() }
    }
}

impl PendingEffects {
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.next.clear();
        self.by_key.clear();
    }
}

impl MappedTable {
    /// The table with this number in its block; `name` is its map without the table id.
    pub(crate) fn new(
        number: usize,
        name: &[u8],
        map: &TableMapEvent<'_>,
        past: &Past<'_>,
    ) -> Result<MappedTable> {
        let kinds =
            map.columns().map(|column| Ok(ColumnKind::new(&column?, None)?)).collect::<Result<Vec<_>>>()?;
        let forms: Vec<ValueWalk> = kinds.iter().copied().map(ValueWalk::of).collect();
        let is_json = |&index: &usize| matches!(kinds.get(index), Some(ColumnKind::Json { .. }));
        let json: Vec<usize> = (0..kinds.len()).filter(is_json).collect();
        let formers = &past.formers;
        let elsewhere = match formers {
            Formers::Given(sources) => {
                sources.iter().map(|source| source.tables.get(name).copied()).collect()
            }
            Formers::ByKey | Formers::Find(_) => Vec::new(),
        };
        Ok(MappedTable {
            group: StreamColumn::TABLES + number,
            forms,
            seed: hash(0, name),
            places: Vec::new(),
            next: Vec::new(),
            elsewhere,
            history: LastImages::default(),
            differs: past.differs,
            key: if past.differs && !json.is_empty() { key_columns(map) } else { Vec::new() },
            json,
        })
    }

    /// The ranges of its images in the block.
    pub(crate) fn into_places(self) -> Vec<ImageRange> {
        self.places
    }

    /// A number for the form of each column.
    pub(crate) fn forms(&self) -> Vec<u8> {
        self.forms.iter().map(|form| form.number()).collect()
    }

    pub(crate) fn column_count(&self) -> usize {
        self.forms.len()
    }

    /// Walks over all rows of an event; `partial`: of partial updates.
    pub(crate) fn rows(
        &self,
        walk: &mut impl Walk,
        images: &[(ImageRole, Range<usize>)],
        partial: bool,
        past: &mut Past<'_>,
    ) -> Result<()> {
        past.pending.next.extend_from_slice(&self.next);
        let mut present = Vec::with_capacity(images.len());
        for (role, bitmap) in images {
            let bitmap = walk.walked().get(bitmap.clone()).unwrap_or_default();
            let columns = (0..self.forms.len()).filter(|&index| bit(bitmap, index)).collect();
            present.push(Present { role: *role, columns, partial });
        }
        let mut before = CellRanges::default();
        let mut cells = CellRanges::default();
        while walk.decide(StreamColumn::new(self.group, MORE), |_, rest| i64::from(!rest.is_empty()))? == 1 {
            let start = walk.walked().len();
            for present in &present {
                let base = (present.role == ImageRole::After).then_some(&before);
                self.image(walk, present, base, &mut cells, past)?;
                std::mem::swap(&mut before, &mut cells);
            }
            if walk.walked().len() == start {
                return Err(Error::damaged("row", "no bytes", "at least one"));
            }
        }
        Ok(())
    }

    fn image(
        &self,
        walk: &mut impl Walk,
        present: &Present,
        base: Option<&CellRanges>,
        cells: &mut CellRanges,
        past: &mut Past<'_>,
    ) -> Result<()> {
        let &Present { role, ref columns, partial } = present;
        let Past { formers, pending, base: differing, base_cells, .. } = past;
        let start = walk.walked().len();
        let by_key = matches!(formers, Formers::ByKey);
        let whole = columns.len() == self.forms.len();
        let old = matches!(role, ImageRole::Deleted | ImageRole::Before);
        let former = match whole && old && !by_key {
            true => self.former(walk, role, formers, &mut pending.next, differing)?,
            false => Former::Unknown,
        };
        // Of a partial update only the before-image is known. It is numbered however it is kept: a block of text doesn't tell.
        let leaves = whole && !by_key && if partial { role == ImageRole::Before } else { !old };
        match former {
            Former::Same if role == ImageRole::Before => {
                if leaves {
                    pending.places.push(start as u32..walk.walked().len() as u32);
                }
                cells.clear(self.forms.len());
                let nulls = start..start + columns.len().div_ceil(8);
                return self.cells_of(walk.walked(), columns, &nulls, cells);
            }
            Former::Same => return Ok(()),
            Former::Differs => {
                base_cells.clear(self.forms.len());
                self.cells_of(differing, columns, &(0..columns.len().div_ceil(8)), base_cells)?;
            }
            Former::Unknown => {}
        }
        let diffs = if partial && role == ImageRole::After { self.diff_bits(walk)? } else { None };
        let nulls = self.nulls(walk, role, columns.len())?;
        if role == ImageRole::Before {
            cells.clear(self.forms.len());
        }
        let mut key = None;
        for (place, &column) in columns.iter().enumerate() {
            if is_set(walk.walked(), &nulls, place) {
                continue;
            }
            let form = *self.forms.get(column).ok_or_else(image_short)?;
            let at = walk.walked().len();
            let older = match former {
                Former::Differs => {
                    base_cells.get(column).and_then(|cell| differing.get(cell)).map(OlderValue::Bytes)
                }
                _ if diffs.as_ref().is_some_and(|bits| self.is_diff(walk.walked(), bits, column)) => None,
                _ => base.and_then(|base| base.get(column)).map(OlderValue::Walked),
            };
            self.value(walk, form, VALUES + 8 * column + 2 * role as usize, older)?;
            let end = walk.walked().len();
            if role == ImageRole::Before {
                cells.set(column, at..end);
            }
            if place == 0 && by_key {
                key = Some(at..end);
                if old && self.last(walk, role, &nulls, at..end)? {
                    self.cells_of(walk.walked(), columns, &nulls, cells)?;
                    break;
                }
            }
        }
        if let (ImageRole::Inserted | ImageRole::After, Some(key)) = (role, key)
            && let Some(image) = ImagePlace::new(start..walk.walked().len(), key.clone())
        {
            pending.by_key.push((key, image));
        }
        if leaves {
            pending.places.push(start as u32..walk.walked().len() as u32);
        }
        Ok(())
    }

    /// Walks over the value options of a partial update's after-image, and over the bits that say which documents are
    /// differences.
    fn diff_bits(&self, walk: &mut impl Walk) -> Result<Option<Range<usize>>> {
        match walk.packed(StreamColumn::new(self.group, OPTIONS), 0)? {
            0 => Ok(None),
            PARTIAL_JSON => {
                walk.fixed(StreamColumn::new(self.group, PARTIAL), self.json.len().div_ceil(8)).map(Some)
            }
            other => Err(Error::damaged("row image", format!("value options {other}"), "0 or 1")),
        }
    }

    /// Whether a column of an after-image is a difference, as these bits say.
    fn is_diff(&self, walked: &[u8], bits: &Range<usize>, column: usize) -> bool {
        self.json.iter().position(|&json| json == column).is_some_and(|place| is_set(walked, bits, place))
    }

    /// The bits that say which values are NULL.
    fn nulls(&self, walk: &mut impl Walk, role: ImageRole, count: usize) -> Result<Range<usize>> {
        let column = StreamColumn::new(self.group, NULLS + role as usize);
        let size = count.div_ceil(8);
        let at = walk.walked().len();
        match size {
            0 => Ok(at..at),
            1..=8 => walk.number(column, size, ByteOrder::Low, 0).map(|_| at..at + size),
            _ => walk.fixed(column, size),
        }
    }

    /// Version 1: walks over the rest of an image that is the last one known of its row.
    fn last(
        &self,
        walk: &mut impl Walk,
        role: ImageRole,
        nulls: &Range<usize>,
        key: Range<usize>,
    ) -> Result<bool> {
        let known = walk.walked().get(key).and_then(|key| self.history.get(key));
        let Some(image) = known else { return Ok(false) };
        let same = walk.decide(StreamColumn::new(self.group, LAST + role as usize), |walked, rest| {
            let same_nulls = walked.get(image.nulls()) == walked.get(nulls.clone());
            let image = walked.get(image.rest());
            i64::from(same_nulls && image.is_some_and(|image| rest.starts_with(image)))
        })?;
        if same == 1 {
            walk.again(image.rest())?;
        }
        Ok(same == 1)
    }

    /// Finds the values of an image that was walked over as a whole.
    fn cells_of(
        &self,
        walked: &[u8],
        columns: &[usize],
        nulls: &Range<usize>,
        cells: &mut CellRanges,
    ) -> Result<()> {
        let mut at = nulls.end;
        for (place, &column) in columns.iter().enumerate() {
            if !is_set(walked, nulls, place) {
                let form = *self.forms.get(column).ok_or_else(image_short)?;
                let end = form.end(walked, at)?;
                cells.set(column, at..end);
                at = end;
            }
        }
        if at == walked.len() { Ok(()) } else { Err(image_short()) }
    }

    fn value(
        &self,
        walk: &mut impl Walk,
        form: ValueWalk,
        slot: usize,
        older: Option<OlderValue<'_>>,
    ) -> Result<()> {
        let column = StreamColumn::new(self.group, slot);
        let relation = StreamColumn::new(self.group, slot + 1);
        match (form, older) {
            (ValueWalk::Number { size: 0, .. } | ValueWalk::Fixed { size: 0 }, _) => Ok(()),
            (ValueWalk::Number { size, order }, older) => {
                let base =
                    number_of(older.map(|older| older.bytes(walk.walked())).unwrap_or_default(), order);
                walk.number(column, size, order, base).map(drop)
            }
            (form, Some(older)) => {
                let mut difference = None;
                let found = walk.decide(relation, |walked, rest| {
                    let older = older.bytes(walked);
                    if rest.starts_with(older) {
                        return SAME;
                    }
                    if self.differs {
                        difference = form.string(rest).and_then(|new| delta::of(form.string(older)?, new));
                    }
                    if difference.is_some() { DIFFERENCE } else { 0 }
                })?;
                match (found, form, &older) {
                    (SAME, _, OlderValue::Walked(range)) => walk.again(range.clone()),
                    (SAME, _, OlderValue::Bytes(bytes)) => walk.copy(bytes.len(), || Some(bytes)),
                    (DIFFERENCE, ValueWalk::Prefixed { prefix }, _) if self.differs => {
                        walk.difference(relation, prefix, older, &difference.unwrap_or_default())
                    }
                    _ => string(walk, form, column),
                }
            }
            (form, None) => string(walk, form, column),
        }
    }

    /// Notes what a finished event meant.
    pub(crate) fn remember(&mut self, walked: &[u8], past: &mut Past<'_>) {
        let Past { formers, pending, .. } = past;
        if !pending.next.is_empty() {
            self.next.clone_from(&pending.next);
        }
        for place in pending.places.drain(..) {
            if let Formers::Find(finder) = formers
                && let Some(image) = walked.get(place.start as usize..place.end as usize)
            {
                let number = self.places.len() as u32;
                finder.leave(self.seed, image, number);
                if !self.key.is_empty()
                    && let Some(key) = self.key_of(image)
                {
                    finder.leave_base(key, number, place.clone());
                }
            }
            self.places.push(place);
        }
        for (key, image) in pending.by_key.drain(..) {
            if let Some(key) = walked.get(key) {
                self.history.insert(key, image);
            }
        }
    }
}

fn string(walk: &mut impl Walk, form: ValueWalk, column: StreamColumn) -> Result<()> {
    match form {
        ValueWalk::Prefixed { prefix } => walk.prefixed(column, prefix),
        ValueWalk::Fixed { size } | ValueWalk::Number { size, .. } => walk.fixed(column, size).map(drop),
    }
}
