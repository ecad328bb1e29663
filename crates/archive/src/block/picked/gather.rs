//! The second step: goes through the rows events in order, finds each image, and takes its values.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_binlog::event::RowsKind;

use super::prepare::{Columns, Pattern};
use super::streams::{Numbers, ROLES, TableStreams, Texts, Values};
use super::values::{Content, State};
use super::{Picked, PickedTable, no_row, too_many};
use crate::block::cells::bit;
use crate::block::form::Form;
use crate::block::rows::{DIFFERENCE, DIFFERS, PARTIAL_JSON, REFERENCES_MAX, Role, SAME};
use crate::block::walk::{Order, number_of};
use crate::codec::delta;
use crate::error::{Error, Result};
use crate::log::BLOCK_SIZE_MAX;

impl Columns {
    /// The blocks that it needs, by their places among those that it refers to.
    pub(crate) fn needs(&self) -> BTreeSet<usize> {
        let sources = self.tables.iter().flat_map(|(_, streams)| &streams.sources);
        let sources =
            sources.flat_map(|(sources, _)| &sources.0).filter_map(|&source| usize::try_from(source).ok());
        let plain = sources.map(|source| if source > DIFFERS { source - DIFFERS } else { source });
        plain.filter_map(|source| source.checked_sub(2)).collect()
    }

    /// Goes through the rows. `sources`: what was picked out of the blocks that it refers to, as far as it needs them.
    pub(crate) fn gather(self, sources: &[Option<Arc<Picked>>]) -> Result<Picked> {
        let Columns { patterns, steps, tables, maps, size } = self;
        let mut picked = Picked { maps, ..Picked::default() };
        let mut streams = Vec::with_capacity(tables.len());
        for (table, of_table) in tables {
            // The same table in the other blocks.
            let elsewhere = sources.iter().map(|source| {
                source.as_ref().and_then(|source| source.tables.iter().find(|other| other.name == table.name))
            });
            streams.push((of_table, elsewhere.collect::<Vec<_>>()));
            picked.tables.push(table);
        }
        // More than any block of its size has: a row takes at least a byte, and an image takes these bytes here.
        let memory_max = size.saturating_mul(MEMORY_FACTOR).saturating_add(MEMORY_SMALL);
        let sides = patterns.iter().map(|pattern| {
            let table = picked.tables.get(pattern.table);
            table.map(|table| pattern.sides(table)).unwrap_or_default()
        });
        let sides: Vec<Vec<Side>> = sides.collect();
        for step in steps {
            let Some((&Pattern { table: number, kind, .. }, sides)) = patterns.get(step).zip(sides.get(step))
            else {
                continue;
            };
            let (Some(table), Some((streams, elsewhere))) =
                (picked.tables.get_mut(number), streams.get_mut(number))
            else {
                continue;
            };
            let start = table.rows.len();
            let mut gatherer = Gatherer { table, streams, elsewhere };
            gatherer.event(kind == RowsKind::PartialUpdate, sides, memory_max)?;
            let end = gatherer.table.rows.len();
            picked.add_run(number, kind, start..end);
        }
        Ok(picked)
    }
}

/// Memory of what is picked for each plain byte of a block, at most, and what a small block may take besides.
const MEMORY_FACTOR: usize = 48;
const MEMORY_SMALL: usize = 1 << 20;

/// Gathers the rows of a table.
struct Gatherer<'g, 's> {
    table: &'g mut PickedTable,
    streams: &'g mut TableStreams,
    elsewhere: &'g [Option<&'s PickedTable>],
}

impl Pattern {
    fn sides(&self, table: &PickedTable) -> Vec<Side> {
        let roles: &[Role] = match self.kind {
            RowsKind::Write => &[Role::Inserted],
            RowsKind::Delete => &[Role::Deleted],
            RowsKind::Update | RowsKind::PartialUpdate => &[Role::Before, Role::After],
        };
        let width = table.schema.columns().len();
        let sides = roles.iter().zip(&self.bitmaps);
        sides.map(|(role, bitmap)| Side::new(*role, bitmap, table, width)).collect()
    }
}

/// One side of an event's rows.
struct Side {
    role: Role,
    is_whole: bool,
    /// How many columns its images have.
    width: usize,
    /// Of each picked column: its place among those of the image.
    places: Vec<Option<usize>>,
}

impl Side {
    fn new(role: Role, bitmap: &[u8], table: &PickedTable, width: usize) -> Self {
        let place = |&column: &usize| {
            bit(bitmap, column).then(|| (0..column).filter(|&before| bit(bitmap, before)).count())
        };
        let count = (0..width).filter(|&column| bit(bitmap, column)).count();
        Side {
            role,
            is_whole: count == width,
            width: count,
            places: table.columns.iter().map(place).collect(),
        }
    }
}

/// Where an image was before.
#[derive(Debug, Clone, Copy)]
enum Former {
    Unknown,
    /// Here, or in another block: by its number among the cells there.
    Same(Option<usize>, usize),
    Differs(Option<usize>, usize),
}

/// The image that one differs from: in which block, and its number.
#[derive(Debug, Clone, Copy)]
struct Base(Option<usize>, usize);

impl Gatherer<'_, '_> {
    fn event(&mut self, partial: bool, sides: &[Side], memory_max: usize) -> Result<()> {
        let cost = 24 + 9 * self.table.columns.len();
        while self.streams.more.next()? == 1 {
            let mut row = [None; 2];
            for side in sides {
                let is_after = matches!(side.role, Role::Inserted | Role::After);
                let before = if side.role == Role::After { row.first().copied().flatten() } else { None };
                let image = self.image(side, partial, before)?;
                if let Some(place) = row.get_mut(usize::from(is_after)) {
                    *place = Some(image);
                }
            }
            self.table.rows.push(row);
            if self.table.rows.len().saturating_mul(cost) > memory_max {
                return Err(too_many());
            }
        }
        Ok(())
    }

    /// Takes an image, and returns its number.
    fn image(&mut self, side: &Side, partial: bool, before: Option<u32>) -> Result<u32> {
        let role = side.role;
        let old = matches!(role, Role::Deleted | Role::Before);
        let leaves = side.is_whole && if partial { role == Role::Before } else { !old };
        let former = if side.is_whole && old { self.former(role)? } else { Former::Unknown };
        let base = match former {
            Former::Same(None, image) => {
                let image = u32::try_from(image).map_err(|_| too_many())?;
                if leaves {
                    self.table.images.push(image);
                }
                return Ok(image);
            }
            Former::Same(Some(source), image) => {
                let number = self.table.new_image(leaves)?;
                let other = self.elsewhere.get(source).copied().flatten().ok_or_else(no_row)?;
                for (cells, others) in self.table.cells.iter_mut().zip(&other.cells) {
                    cells.push(others.get(image))?;
                }
                return Ok(number);
            }
            Former::Differs(source, image) => Some(Base(source, image)),
            Former::Unknown => before.map(|before| Base(None, before as usize)),
        };
        if partial && role == Role::After && self.streams.options.next()? == PARTIAL_JSON {
            let bits = self.streams.partial.next()?;
            if bits.len() != self.streams.json.div_ceil(8) {
                return Err(Error::damaged("row image", "bits of partial columns", "one for each document"));
            }
        }
        let nulls = self.nulls(role, side.width)?;
        let number = self.table.new_image(leaves)?;
        for (picked, place) in side.places.iter().enumerate() {
            match place {
                None => self.push(picked, Content::None(State::Absent))?,
                Some(place) if bit(nulls.bytes(&self.streams.nulls), *place) => {
                    self.push(picked, Content::None(State::Null))?;
                }
                Some(_) => self.value(picked, role, base)?,
            }
        }
        Ok(number)
    }

    fn push(&mut self, picked: usize, content: Content<'_>) -> Result<()> {
        self.table.cells.get_mut(picked).map_or(Ok(()), |cells| cells.push(content))
    }

    /// Where a whole image was before.
    fn former(&mut self, role: Role) -> Result<Former> {
        let Some((sources, numbers)) = self.streams.sources.get_mut(role as usize) else {
            return Ok(Former::Unknown);
        };
        let source = usize::try_from(sources.next()?).unwrap_or(usize::MAX);
        let differs = source > DIFFERS;
        let source = if differs { source - DIFFERS } else { source };
        if source > 1 + REFERENCES_MAX {
            return Err(Error::damaged(
                "row image",
                "a reference to no block",
                "one of those that it refers to",
            ));
        }
        let Some(place) = source.checked_sub(1) else { return Ok(Former::Unknown) };
        let next = &mut self.streams.next;
        if next.len() < source {
            next.resize(source, 0);
        }
        let next = next.get_mut(place).ok_or_else(no_row)?;
        let number = next.wrapping_add(numbers.next()?);
        *next = number.wrapping_add(1);
        let number = usize::try_from(number).map_err(|_| no_row())?;
        let reference = source.checked_sub(2);
        let images = match reference {
            None => &self.table.images,
            Some(reference) => &self.elsewhere.get(reference).copied().flatten().ok_or_else(no_row)?.images,
        };
        let image = *images.get(number).ok_or_else(no_row)? as usize;
        Ok(if differs { Former::Differs(reference, image) } else { Former::Same(reference, image) })
    }

    /// The bits that say which values are NULL.
    fn nulls(&mut self, role: Role, count: usize) -> Result<Nulls> {
        let Some((numbers, texts)) = self.streams.nulls.get_mut(role as usize) else { return Err(no_row()) };
        match count.div_ceil(8) {
            0 => Ok(Nulls::Number([0; 8])),
            1..=8 => numbers.next().map(|number| Nulls::Number(number.to_le_bytes())),
            size => match texts.next()?.len() == size {
                true => Ok(Nulls::Text(role as usize, texts.1 - 1)),
                false => Err(Error::damaged("row image", "other null bits", "one for each column")),
            },
        }
    }

    /// Takes a value that is there.
    fn value(&mut self, picked: usize, role: Role, base: Option<Base>) -> Result<()> {
        let Some(cells) = self.table.cells.get_mut(picked) else { return Ok(()) };
        let form = cells.form;
        let values = self.streams.values.get_mut(picked).and_then(|values| values.get_mut(role as usize));
        let Values { numbers, texts, relations, differences } = values.ok_or_else(no_row)?;
        if matches!(form, Form::Number { size: 0, .. } | Form::Fixed { size: 0 }) {
            return cells.push(Content::Value(&[]));
        }
        let other = match base {
            Some(Base(Some(source), _)) => {
                let other = self.elsewhere.get(source).copied().flatten().ok_or_else(no_row)?;
                Some(other.cells.get(picked).ok_or_else(no_row)?)
            }
            _ => None,
        };
        if let Form::Number { size, order } = form {
            let older = match base {
                Some(Base(_, image)) => match other.unwrap_or(&*cells).get(image) {
                    Content::Value(bytes) => number_of(bytes, order),
                    Content::None(_) => 0,
                },
                None => 0,
            };
            let number = numbers.next()?.wrapping_add(older) as u64;
            let eight = match order {
                Order::Low => number,
                Order::High => number.checked_shl(64 - 8 * size as u32).unwrap_or_default().swap_bytes(),
            };
            return cells.push(Content::Value(eight.to_le_bytes().get(..size).unwrap_or_default()));
        }
        let older =
            base.filter(|Base(_, image)| matches!(other.unwrap_or(&*cells).get(*image), Content::Value(_)));
        let Some(Base(_, image)) = older else { return cells.push(Content::Value(texts.next()?)) };
        match (relations.next()?, form, other) {
            (SAME, _, None) => cells.push_again(image),
            (SAME, _, Some(other)) => cells.push(other.get(image)),
            (DIFFERENCE, Form::Prefixed { prefix }, _) => {
                let size_max = u32::MAX as usize >> (32 - 8 * prefix.clamp(1, 4));
                let Content::Value(old) = other.unwrap_or(&*cells).get(image) else { return Err(no_row()) };
                let new = delta::apply(old, differences.next()?, size_max.min(BLOCK_SIZE_MAX))?;
                cells.push(Content::Value(&new))
            }
            _ => cells.push(Content::Value(texts.next()?)),
        }
    }
}

/// Null bits: few, or which of a role's texts.
enum Nulls {
    Number([u8; 8]),
    Text(usize, usize),
}

impl Nulls {
    fn bytes<'n>(&'n self, nulls: &'n [(Numbers, Texts); ROLES]) -> &'n [u8] {
        match self {
            Nulls::Number(bytes) => bytes,
            Nulls::Text(role, text) => {
                nulls.get(*role).and_then(|(_, texts)| texts.0.get(*text)).unwrap_or_default()
            }
        }
    }
}
