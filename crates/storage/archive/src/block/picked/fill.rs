//! Third step of picking columns out of a block: takes the values of the images that were found, column by column.

use super::images::{Base, NewImages};
use super::streams::{TableStreams, ValueStream};
use super::values::{CellState, ColumnCells, ValueContent};
use super::{PickedTable, no_row};
use crate::block::cells::bit;
use crate::block::form::ValueWalk;
use crate::block::slots::{DIFFERENCE, ImageRole, ROLES, SAME};
use crate::block::walk::number_of;
use crate::codec::delta;
use crate::error::Result;
use crate::log::BLOCK_SIZE_MAX;

impl PickedTable {
    /// Takes the values of images. `elsewhere`: the same table in the blocks that this one refers to.
    pub(super) fn fill(
        &mut self,
        streams: TableStreams,
        elsewhere: &[Option<&PickedTable>],
        made: &[NewImages<'_>],
    ) -> Result<()> {
        let TableStreams { nulls, values, .. } = streams;
        for (pick, (cells, values)) in self.cells.iter_mut().zip(values).enumerate() {
            cells.reserve(self.image_count);
            let others: Vec<Option<&ColumnCells>> =
                elsewhere.iter().map(|other| other.and_then(|other| other.cells.get(pick))).collect();
            let mut column = Column { cells, values, others: &others };
            for made in made {
                match made {
                    NewImages::Fresh { side, count } if side.has(pick) => column.fresh(side.role, *count)?,
                    NewImages::Fresh { count, .. } => column.cells.push_none(CellState::Absent, *count),
                    NewImages::Again { source, image } => column.again(*source, *image)?,
                    NewImages::One { side, nulls: of_one, base } => match side.place(pick) {
                        None => column.cells.push_none(CellState::Absent, 1),
                        Some(place) if bit(of_one.bytes(&nulls), place) => {
                            column.cells.push_none(CellState::Null, 1);
                        }
                        Some(_) => column.one(side.role, *base)?,
                    },
                }
            }
        }
        Ok(())
    }
}

/// A picked column.
struct Column<'c> {
    cells: &'c mut ColumnCells,
    values: [ValueStream; ROLES],
    /// The cells of this column in the blocks that this one refers to.
    others: &'c [Option<&'c ColumnCells>],
}

impl Column<'_> {
    /// Takes values that differ from no others.
    fn fresh(&mut self, role: ImageRole, count: usize) -> Result<()> {
        let ValueStream { numbers, texts, .. } = self.values.get_mut(role as usize).ok_or_else(no_row)?;
        match self.cells.form {
            ValueWalk::Number { size: 0, .. } | ValueWalk::Fixed { size: 0 } => {
                (0..count).try_for_each(|_| self.cells.push(ValueContent::Value(&[])))
            }
            ValueWalk::Number { size, order } => {
                self.cells.push_numbers(numbers.take(count)?, size, order);
                Ok(())
            }
            ValueWalk::Prefixed { .. } => {
                let range = texts.take(count);
                self.cells.push_texts(&texts.0, range)
            }
            ValueWalk::Fixed { .. } => {
                (0..count).try_for_each(|_| self.cells.push(ValueContent::Value(texts.next()?)))
            }
        }
    }

    /// Takes the value of an image of another block.
    fn again(&mut self, source: usize, image: usize) -> Result<()> {
        let other = self.others.get(source).copied().flatten().ok_or_else(no_row)?;
        self.cells.push(other.get(image))
    }

    /// Takes a value that may be a difference.
    fn one(&mut self, role: ImageRole, base: Option<Base>) -> Result<()> {
        let cells = &mut *self.cells;
        let form = cells.form;
        let values = self.values.get_mut(role as usize).ok_or_else(no_row)?;
        let ValueStream { numbers, texts, relations, differences } = values;
        if matches!(form, ValueWalk::Number { size: 0, .. } | ValueWalk::Fixed { size: 0 }) {
            return cells.push(ValueContent::Value(&[]));
        }
        let other = match base {
            Some(Base(Some(source), _)) => {
                Some(self.others.get(source).copied().flatten().ok_or_else(no_row)?)
            }
            _ => None,
        };
        if let ValueWalk::Number { size, order } = form {
            let older = match base {
                Some(Base(_, image)) => match other.unwrap_or(&*cells).get(image) {
                    ValueContent::Value(bytes) => number_of(bytes, order),
                    ValueContent::None(_) | ValueContent::Differences(_) => 0,
                },
                None => 0,
            };
            cells.push_number(numbers.next()?.wrapping_add(older), size, order);
            return Ok(());
        }
        let older = base
            .filter(|Base(_, image)| matches!(other.unwrap_or(&*cells).get(*image), ValueContent::Value(_)));
        let Some(Base(_, image)) = older else { return cells.push(ValueContent::Value(texts.next()?)) };
        match (relations.next()?, form, other) {
            (SAME, _, None) => cells.push_again(image),
            (SAME, _, Some(other)) => cells.push(other.get(image)),
            (DIFFERENCE, ValueWalk::Prefixed { prefix }, _) => {
                let size_max = u32::MAX as usize >> (32 - 8 * prefix.clamp(1, 4));
                let ValueContent::Value(old) = other.unwrap_or(&*cells).get(image) else {
                    return Err(no_row());
                };
                let new = delta::apply(old, differences.next()?, size_max.min(BLOCK_SIZE_MAX))?;
                cells.push(ValueContent::Value(&new))
            }
            _ => cells.push(ValueContent::Value(texts.next()?)),
        }
    }
}
