//! Walks over the rows of a rows event, according to the columns of its table.
//!
//! ```text
//! slots of a table's group
//! 0                     one more row follows
//! 1 + role              bits of NULL values
//! 5 + role              version 1: the image is the last one known of its row
//! 9 + role              where the image was before: 0 nowhere known | 1 in this block | 2 and up: in the blocks
//!                       that it refers to
//! 13 + role (1, 2)      its number there, minus the number that follows the last such image
//! 16 + 8 c + 2 role     values of column c
//! 17 + 8 c + 2 role     the value is that of the before-image
//! ```

use std::ops::Range;

use binlogz_binlog::event::TableMapEvent;
use binlogz_binlog::row::ColumnKind;

use crate::block::former::{Formers, Found, Place};
use crate::block::history::{History, Image};
use crate::block::streams::Column;
use crate::block::walk::{Order, Walk, number_of};
use crate::codec::hash::hash;
use crate::error::{Error, Result};

/// The kind of row image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Inserted = 0,
    Deleted = 1,
    Before = 2,
    After = 3,
}

/// The most blocks that a block refers to.
pub(crate) const REFERENCES_MAX: usize = 64;
/// The number of image roles.
pub(crate) const ROLES: usize = 4;
const MORE: usize = 0;
const NULLS: usize = 1;
const LAST: usize = NULLS + ROLES;
const SOURCE: usize = LAST + ROLES;
const NUMBER: usize = SOURCE + ROLES - 1;
const VALUES: usize = 16;

/// The column of a table whose values go to a slot.
pub(crate) fn column_of(slot: usize) -> Option<usize> {
    slot.checked_sub(VALUES).map(|slot| slot / 8)
}

/// How a value is walked over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Number { size: usize, order: Order },
    Fixed { size: usize },
    Prefixed { prefix: usize },
}

impl Form {
    fn of(kind: ColumnKind) -> Form {
        let low = |size| Form::Number { size, order: Order::Low };
        let high = |size: u8| match size {
            0..=8 => Form::Number { size: usize::from(size), order: Order::High },
            size => Form::Fixed { size: usize::from(size) },
        };
        let fraction = |digits: u8| digits.div_ceil(2);
        match kind {
            ColumnKind::Null => Form::Fixed { size: 0 },
            ColumnKind::TinyInt { .. } | ColumnKind::Year => low(1),
            ColumnKind::SmallInt { .. } => low(2),
            ColumnKind::MediumInt { .. } | ColumnKind::Date | ColumnKind::OldTime => low(3),
            ColumnKind::Int { .. } | ColumnKind::Float | ColumnKind::OldTimestamp => low(4),
            ColumnKind::BigInt { .. } | ColumnKind::Double | ColumnKind::OldDateTime => low(8),
            ColumnKind::Decimal(format) => high(format.size()),
            ColumnKind::Bit { bits } => high(bits.div_ceil(8)),
            ColumnKind::Time { fraction_digits } => high(3 + fraction(fraction_digits)),
            ColumnKind::DateTime { fraction_digits } => high(5 + fraction(fraction_digits)),
            ColumnKind::Timestamp { fraction_digits } => high(4 + fraction(fraction_digits)),
            ColumnKind::Enum { size } | ColumnKind::Set { size } => low(usize::from(size)),
            ColumnKind::Char { length_max } | ColumnKind::Varchar { length_max } => {
                Form::Prefixed { prefix: if length_max > 255 { 2 } else { 1 } }
            }
            ColumnKind::Blob { length_size }
            | ColumnKind::Json { length_size }
            | ColumnKind::Geometry { length_size }
            | ColumnKind::Vector { length_size } => Form::Prefixed { prefix: usize::from(length_size) },
            ColumnKind::TypedArray => Form::Prefixed { prefix: 4 },
        }
    }

    /// A number for the form: columns of the same form resemble each other.
    fn number(self) -> u8 {
        match self {
            Form::Number { size, order: Order::Low } => 0x10 | size as u8,
            Form::Number { size, order: Order::High } => 0x20 | size as u8,
            Form::Fixed { size } => 0x40 | size.min(0x3f) as u8,
            Form::Prefixed { prefix } => 0x80 | prefix as u8,
        }
    }

    /// The end of the value that begins at `at`.
    fn end(self, bytes: &[u8], at: usize) -> Result<usize> {
        match self {
            Form::Number { size, .. } | Form::Fixed { size } => Ok(at + size),
            Form::Prefixed { prefix } => {
                let length = bytes.get(at..at + prefix).ok_or_else(image_short)?;
                let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
                Ok(at + prefix + length)
            }
        }
    }
}

fn image_short() -> Error {
    Error::damaged("row image", "its end inside a value", "whole values")
}

/// A table as its map describes it, and what is known of its rows.
#[derive(Debug)]
pub(crate) struct Table {
    group: usize,
    forms: Vec<Form>,
    /// The seed for hashes of its images.
    seed: u64,
    /// The ranges of its images in the block.
    places: Vec<Place>,
    /// By source: the number that follows the last image taken from there.
    next: Vec<i64>,
    /// Its numbers in the blocks that are referred to.
    elsewhere: Vec<Option<usize>>,
    history: History,
}

/// What an event means for later ones, once it is done.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    places: Vec<Place>,
    next: Vec<i64>,
    by_key: Vec<(Range<usize>, Image)>,
}

/// What an event uses from earlier rows, and what it leaves.
#[derive(Debug, Default)]
pub(crate) struct Past<'a> {
    pub(crate) formers: Formers<'a>,
    pub(crate) pending: Pending,
}

impl Pending {
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.next.clear();
        self.by_key.clear();
    }
}

impl Table {
    /// The table with this number in its block; `name` is its map without the table id.
    pub(crate) fn new(
        number: usize,
        name: &[u8],
        map: &TableMapEvent<'_>,
        formers: &Formers<'_>,
    ) -> Result<Table> {
        let forms = map
            .columns()
            .map(|column| Ok(Form::of(ColumnKind::new(&column?, None)?)))
            .collect::<Result<_>>()?;
        let elsewhere = match formers {
            Formers::Given(sources) => {
                sources.iter().map(|source| source.tables.get(name).copied()).collect()
            }
            Formers::ByKey | Formers::Find(_) => Vec::new(),
        };
        Ok(Table {
            group: Column::TABLES + number,
            forms,
            seed: hash(0, name),
            places: Vec::new(),
            next: Vec::new(),
            elsewhere,
            history: History::default(),
        })
    }

    /// The ranges of its images in the block.
    pub(crate) fn into_places(self) -> Vec<Place> {
        self.places
    }

    /// A number for the form of each column.
    pub(crate) fn forms(&self) -> Vec<u8> {
        self.forms.iter().map(|form| form.number()).collect()
    }

    pub(crate) fn column_count(&self) -> usize {
        self.forms.len()
    }

    /// Walks over all rows of an event.
    pub(crate) fn rows(
        &self,
        walk: &mut impl Walk,
        images: &[(Role, Range<usize>)],
        past: &mut Past<'_>,
    ) -> Result<()> {
        past.pending.next.extend_from_slice(&self.next);
        let mut present = Vec::with_capacity(images.len());
        for (role, bitmap) in images {
            let bitmap = walk.walked().get(bitmap.clone()).unwrap_or_default();
            let columns = (0..self.forms.len()).filter(|&index| bit(bitmap, index)).collect::<Vec<_>>();
            present.push((*role, columns));
        }
        let mut before = Cells::default();
        let mut cells = Cells::default();
        while walk.decide(Column::new(self.group, MORE), |_, rest| i64::from(!rest.is_empty()))? == 1 {
            let start = walk.walked().len();
            for (role, columns) in &present {
                let base = (*role == Role::After).then_some(&before);
                self.image(walk, *role, columns, base, &mut cells, past)?;
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
        role: Role,
        columns: &[usize],
        base: Option<&Cells>,
        cells: &mut Cells,
        past: &mut Past<'_>,
    ) -> Result<()> {
        let Past { formers, pending } = past;
        let start = walk.walked().len();
        let by_key = matches!(formers, Formers::ByKey);
        let whole = columns.len() == self.forms.len();
        let old = matches!(role, Role::Deleted | Role::Before);
        if whole && old && !by_key && self.former(walk, role, formers, &mut pending.next)? {
            if role == Role::Before {
                cells.clear(self.forms.len());
                let nulls = start..start + columns.len().div_ceil(8);
                self.cells_of(walk.walked(), columns, &nulls, cells)?;
            }
            return Ok(());
        }
        let nulls = self.nulls(walk, role, columns.len())?;
        if role == Role::Before {
            cells.clear(self.forms.len());
        }
        let mut key = None;
        for (place, &column) in columns.iter().enumerate() {
            if is_set(walk.walked(), &nulls, place) {
                continue;
            }
            let form = *self.forms.get(column).ok_or_else(image_short)?;
            let at = walk.walked().len();
            self.value(
                walk,
                form,
                VALUES + 8 * column + 2 * role as usize,
                base.and_then(|base| base.get(column)),
            )?;
            let end = walk.walked().len();
            if role == Role::Before {
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
        if let (Role::Inserted | Role::After, Some(key)) = (role, key)
            && let Some(image) = Image::new(start..walk.walked().len(), key.clone())
        {
            pending.by_key.push((key, image));
        }
        if whole && !old && !by_key {
            pending.places.push(start as u32..walk.walked().len() as u32);
        }
        Ok(())
    }

    /// Walks over an image that occurred before, if one is known.
    fn former(
        &self,
        walk: &mut impl Walk,
        role: Role,
        formers: &mut Formers<'_>,
        next: &mut Vec<i64>,
    ) -> Result<bool> {
        let mut found = Found::default();
        let source = walk.decide(Column::new(self.group, SOURCE + role as usize), |_, rest| {
            found = self.find(rest, formers).unwrap_or_default();
            found.source as i64
        })?;
        let Some(source) = usize::try_from(source).ok().filter(|&source| source <= 1 + REFERENCES_MAX) else {
            return Err(Error::damaged(
                "row image",
                "a reference to no block",
                "one of the blocks that its own refers to",
            ));
        };
        let Some(elsewhere) = source.checked_sub(1) else { return Ok(false) };
        if next.len() < source {
            next.resize(source, 0);
        }
        let next = next.get_mut(elsewhere).ok_or_else(image_short)?;
        let step =
            walk.decide(Column::new(self.group, NUMBER + role as usize), |_, _| found.number as i64 - *next)?;
        let number = next.wrapping_add(step);
        *next = number.wrapping_add(1);
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        match elsewhere.checked_sub(1) {
            None => {
                let place = self.places.get(number).ok_or_else(|| {
                    Error::damaged("block", format!("a reference to its row {number}"), "an earlier row")
                })?;
                walk.again(place.start as usize..place.end as usize)?;
            }
            Some(reference) => walk.copy(found.size, || match formers {
                Formers::Given(sources) => {
                    let table = self.elsewhere.get(reference).copied().flatten()?;
                    sources.get(reference)?.image(table, number)
                }
                Formers::ByKey | Formers::Find(_) => None,
            })?,
        }
        Ok(true)
    }

    /// Where the image at the start of `rest` occurred.
    fn find(&self, rest: &[u8], formers: &mut Formers<'_>) -> Option<Found> {
        let Formers::Find(finder) = formers else { return None };
        let size = self.image_size(rest)?;
        finder.find(self.seed, rest.get(..size)?, self.places.len())
    }

    /// The size of the whole image at the start of `rest`.
    fn image_size(&self, rest: &[u8]) -> Option<usize> {
        let nulls = 0..self.forms.len().div_ceil(8);
        let values = self.forms.iter().enumerate().filter(|&(place, _)| !is_set(rest, &nulls, place));
        values.into_iter().try_fold(nulls.end, |at, (_, form)| form.end(rest, at).ok())
    }

    /// The bits that say which values are NULL.
    fn nulls(&self, walk: &mut impl Walk, role: Role, count: usize) -> Result<Range<usize>> {
        let (column, size) = (Column::new(self.group, NULLS + role as usize), count.div_ceil(8));
        let at = walk.walked().len();
        match size {
            0 => Ok(at..at),
            1..=8 => walk.number(column, size, Order::Low, 0).map(|_| at..at + size),
            _ => walk.fixed(column, size),
        }
    }

    /// Version 1: walks over the rest of an image that is the last one known of its row.
    fn last(
        &self,
        walk: &mut impl Walk,
        role: Role,
        nulls: &Range<usize>,
        key: Range<usize>,
    ) -> Result<bool> {
        let known = walk.walked().get(key).and_then(|key| self.history.get(key));
        let Some(image) = known else { return Ok(false) };
        let same = walk.decide(Column::new(self.group, LAST + role as usize), |walked, rest| {
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
        cells: &mut Cells,
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

    fn value(&self, walk: &mut impl Walk, form: Form, slot: usize, base: Option<Range<usize>>) -> Result<()> {
        let column = Column::new(self.group, slot);
        match (form, base) {
            (Form::Number { size: 0, .. } | Form::Fixed { size: 0 }, _) => Ok(()),
            (Form::Number { size, order }, base) => {
                let bytes = base.and_then(|base| walk.walked().get(base)).unwrap_or_default();
                let base = number_of(bytes, order);
                walk.number(column, size, order, base).map(drop)
            }
            (form, Some(base)) => {
                let same = walk.decide(Column::new(self.group, slot + 1), |walked, rest| {
                    i64::from(walked.get(base.clone()).is_some_and(|base| rest.starts_with(base)))
                })?;
                if same == 1 { walk.again(base) } else { string(walk, form, column) }
            }
            (form, None) => string(walk, form, column),
        }
    }

    /// Notes what a finished event meant.
    pub(crate) fn remember(&mut self, walked: &[u8], past: &mut Past<'_>) {
        let Past { formers, pending } = past;
        if !pending.next.is_empty() {
            self.next.clone_from(&pending.next);
        }
        for place in pending.places.drain(..) {
            if let Formers::Find(finder) = formers
                && let Some(image) = walked.get(place.start as usize..place.end as usize)
            {
                finder.leave(self.seed, image, self.places.len() as u32);
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

fn string(walk: &mut impl Walk, form: Form, column: Column) -> Result<()> {
    match form {
        Form::Prefixed { prefix } => walk.prefixed(column, prefix),
        Form::Fixed { size } | Form::Number { size, .. } => walk.fixed(column, size).map(drop),
    }
}

/// Where the values of an image are.
#[derive(Debug, Default)]
struct Cells {
    places: Vec<Option<Range<usize>>>,
}

impl Cells {
    fn clear(&mut self, count: usize) {
        self.places.clear();
        self.places.resize(count, None);
    }

    fn set(&mut self, column: usize, place: Range<usize>) {
        if let Some(cell) = self.places.get_mut(column) {
            *cell = Some(place);
        }
    }

    fn get(&self, column: usize) -> Option<Range<usize>> {
        self.places.get(column).cloned().flatten()
    }
}

fn bit(bits: &[u8], index: usize) -> bool {
    bits.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

fn is_set(walked: &[u8], bits: &Range<usize>, index: usize) -> bool {
    bit(walked.get(bits.clone()).unwrap_or_default(), index)
}
