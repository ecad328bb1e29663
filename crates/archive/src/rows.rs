//! Walks over the rows of a rows event, by the columns of its table.
//!
//! ```text
//! slots of a table's group
//! 0                     one more row follows
//! 1 + role              bits of NULL values
//! 5 + role              the image is the last one known of its row
//! 16 + 8 c + 2 role     values of column c
//! 17 + 8 c + 2 role     the value is that of the before-image
//! ```

use std::ops::Range;

use binlogz_binlog::event::TableMapEvent;
use binlogz_binlog::row::ColumnKind;

use crate::error::{Error, Result};
use crate::history::{History, Image};
use crate::streams::Column;
use crate::walk::{Order, Walk, number_of};

/// What an image is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Inserted = 0,
    Deleted = 1,
    Before = 2,
    After = 3,
}

/// Roles of an image.
pub(crate) const ROLES: usize = 4;
const MORE: usize = 0;
const NULLS: usize = 1;
const LAST: usize = NULLS + ROLES;
const VALUES: usize = 16;

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

    /// Where the value that begins at `at` ends.
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
    Error::damaged("row image", "ends inside a value")
}

/// A table as its map describes it, and what is known of its rows.
#[derive(Debug)]
pub(crate) struct Table {
    group: usize,
    forms: Vec<Form>,
    history: History,
}

/// An image to be remembered once its event is done.
pub(crate) type Remembered = (Range<usize>, Image);

impl Table {
    /// The table of number `number` in its block.
    pub(crate) fn new(number: usize, map: &TableMapEvent<'_>) -> Result<Table> {
        let forms = map
            .columns()
            .map(|column| Ok(Form::of(ColumnKind::new(&column?, None)?)))
            .collect::<Result<_>>()?;
        Ok(Table { group: Column::TABLES + number, forms, history: History::default() })
    }

    pub(crate) fn column_count(&self) -> usize {
        self.forms.len()
    }

    /// Walks over all rows of an event.
    pub(crate) fn rows(
        &self,
        walk: &mut impl Walk,
        images: &[(Role, Range<usize>)],
        remembered: &mut Vec<Remembered>,
    ) -> Result<()> {
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
                self.image(walk, *role, columns, base, &mut cells, remembered)?;
                std::mem::swap(&mut before, &mut cells);
            }
            if walk.walked().len() == start {
                return Err(Error::damaged("row", "has no bytes"));
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
        remembered: &mut Vec<Remembered>,
    ) -> Result<()> {
        let start = walk.walked().len();
        let nulls = self.nulls(walk, role, columns.len())?;
        cells.clear(self.forms.len());
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
            cells.set(column, at..end);
            if place == 0 {
                key = Some(at..end);
                if matches!(role, Role::Deleted | Role::Before) && self.last(walk, role, &nulls, at..end)? {
                    self.cells_of(walk.walked(), columns, &nulls, cells)?;
                    break;
                }
            }
        }
        if let (Role::Inserted | Role::After, Some(key)) = (role, key)
            && let Some(image) = Image::new(start..walk.walked().len(), key.clone())
        {
            remembered.push((key, image));
        }
        Ok(())
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

    /// Walks over the rest of an image that is the last one known of its row.
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

    pub(crate) fn remember(&mut self, walked: &[u8], remembered: &mut Vec<Remembered>) {
        for (key, image) in remembered.drain(..) {
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

/// Where the values of an image stand.
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
