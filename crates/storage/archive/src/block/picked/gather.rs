//! Second step of picking columns out of a block: goes through the rows events in order and finds each image. The next
//! step ([`super::fill`]) takes their values, column by column.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_binlog::event::RowsKind;

use super::images::{Base, NewImages, Nulls, RowSide};
use super::prepare::{Pattern, RowsStep, RowsStreams};
use super::streams::TableStreams;
use super::{BlockBound, PickedChanges, PickedTable, RowImage, RowRun, no_row, too_many};
use crate::block::slots::{DIFFERS, ImageRole, PARTIAL_JSON, REFERENCES_MAX};
use crate::error::{Error, Result};

impl RowsStreams {
    /// The blocks that it needs, by their places among those that it refers to.
    pub(crate) fn needs(&self) -> BTreeSet<usize> {
        let sources = self.tables.iter().flat_map(|(_, streams)| &streams.sources);
        let sources =
            sources.flat_map(|(sources, _)| &sources.0).filter_map(|&source| usize::try_from(source).ok());
        let plain = sources.map(|source| if source > DIFFERS { source - DIFFERS } else { source });
        plain.filter_map(|source| source.checked_sub(2)).collect()
    }

    /// Goes through the rows. `sources`: the contents picked out of the blocks that it refers to, as far as it needs
    /// them. `before`: the state where the block begins.
    pub(crate) fn gather(
        self,
        sources: &[Option<Arc<PickedChanges>>],
        before: &BlockBound,
    ) -> Result<PickedChanges> {
        let RowsStreams { patterns, steps, mut events, tables, with_deleted, with_numbers, maps, size } =
            self;
        let mut picked = PickedChanges::default();
        let mut transactions = before.transactions.clone();
        let mut gathered = Vec::with_capacity(tables.len());
        for (mut table, of_table) in tables {
            // Each value is in the block's rows, too.
            let texts_max = u32::try_from(size).unwrap_or(u32::MAX);
            table.cells.iter_mut().for_each(|cells| cells.texts_max = texts_max);
            table.rows.reserve_exact(of_table.rows());
            // The same table in the other blocks.
            let elsewhere = sources.iter().map(|source| {
                source.as_ref().and_then(|source| source.tables.iter().find(|other| other.name == table.name))
            });
            gathered.push((of_table, elsewhere.collect::<Vec<_>>(), Vec::new()));
            picked.tables.push(table);
        }
        let sides: Vec<Vec<RowSide>> = patterns
            .iter()
            .map(|pattern| {
                let table = picked.tables.get(pattern.table);
                table.map(|table| pattern.sides(table)).unwrap_or_default()
            })
            .collect();
        for RowsStep { event, pattern } in steps {
            let Some((&Pattern { table: number, kind, .. }, sides)) =
                patterns.get(pattern).zip(sides.get(pattern))
            else {
                continue;
            };
            let around =
                events.as_mut().map(|events| events.pass_to(event, &mut transactions)).transpose()?;
            let (Some(table), Some((streams, elsewhere, made))) =
                (picked.tables.get_mut(number), gathered.get_mut(number))
            else {
                continue;
            };
            let start = table.rows.len();
            let mut gatherer = Gatherer { table, streams, elsewhere, made };
            if let (RowsKind::Delete, false, [side]) = (kind, with_deleted, sides.as_slice()) {
                gatherer.deleted_rows(side)?;
            }
            gatherer.event(kind == RowsKind::PartialUpdate, sides)?;
            let end = gatherer.table.rows.len();
            picked.add_run(RowRun { table: number, kind, rows: start..end, first: 0, around }, with_numbers);
        }
        if let Some(events) = &mut events {
            events.pass_all(&mut transactions)?;
        }
        for (table, (streams, elsewhere, made)) in picked.tables.iter_mut().zip(gathered) {
            table.fill(streams, &elsewhere, &made)?;
        }
        picked.end = BlockBound { maps, transactions };
        Ok(picked)
    }
}

/// Gathers the rows of a table.
struct Gatherer<'g, 's> {
    table: &'g mut PickedTable,
    streams: &'g mut TableStreams,
    elsewhere: &'g [Option<&'s PickedTable>],
    made: &'g mut Vec<NewImages<'s>>,
}

impl Pattern {
    fn sides(&self, table: &PickedTable) -> Vec<RowSide> {
        let roles: &[ImageRole] = match self.kind {
            RowsKind::Write => &[ImageRole::Inserted],
            RowsKind::Delete => &[ImageRole::Deleted],
            RowsKind::Update | RowsKind::PartialUpdate => &[ImageRole::Before, ImageRole::After],
        };
        let width = table.schema.columns().len();
        let sides = roles.iter().zip(&self.bitmaps);
        sides.map(|(role, bitmap)| RowSide::new(*role, bitmap, table, width)).collect()
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

impl<'s> Gatherer<'_, 's> {
    fn event(&mut self, partial: bool, sides: &'s [RowSide]) -> Result<()> {
        if let [side] = sides
            && side.role == ImageRole::Inserted
        {
            self.fresh_rows(side)?;
        }
        while self.streams.more.next()? == 1 {
            let mut row = [RowImage::NONE; 2];
            for side in sides {
                let is_after = matches!(side.role, ImageRole::Inserted | ImageRole::After);
                let before = if side.role == ImageRole::After {
                    row.first().and_then(|row| row.number())
                } else {
                    None
                };
                let image = self.image(side, partial, before)?;
                if let Some(place) = row.get_mut(usize::from(is_after)) {
                    *place = RowImage(image);
                }
            }
            self.table.rows.push(row);
        }
        Ok(())
    }

    /// Takes rows that are deleted, without their images.
    fn deleted_rows(&mut self, side: &RowSide) -> Result<()> {
        let rows = self.streams.more.left().iter().take_while(|&&more| more == 1).count();
        self.streams.more.take(rows)?;
        let sources = self.streams.sources.get(side.role as usize);
        // Images that are updated are numbered from these on.
        if side.is_whole && sources.is_some_and(|(sources, _)| !sources.left().is_empty()) {
            (0..rows).try_for_each(|_| self.former(side.role).map(drop))?;
        }
        self.table.rows.resize(self.table.rows.len() + rows, [RowImage::NONE; 2]);
        Ok(())
    }

    /// Takes rows that are inserted, as long as they have no NULL in a picked column.
    fn fresh_rows(&mut self, side: &'s RowSide) -> Result<()> {
        let Some((nulls, _)) = self.streams.nulls.get_mut(side.role as usize) else { return Ok(()) };
        let rows = self.streams.more.left().iter().take_while(|&&more| more == 1).count();
        let rows = match side.width.div_ceil(8) {
            0 => rows,
            1..=8 => {
                let nulls = nulls.left().iter().take(rows);
                nulls.take_while(|&&nulls| nulls as u64 & side.null_mask == 0).count()
            }
            _ => return Ok(()),
        };
        if rows == 0 {
            return Ok(());
        }
        if side.width > 0 {
            nulls.take(rows)?;
        }
        self.streams.more.take(rows)?;
        let first = self.table.new_images(rows, side.is_whole)?;
        self.table.rows.extend((first..first + rows as u32).map(|image| [RowImage::NONE, RowImage(image)]));
        self.made_fresh(side, rows);
        Ok(())
    }

    fn made_fresh(&mut self, side: &'s RowSide, rows: usize) {
        match self.made.last_mut() {
            Some(NewImages::Fresh { side: last, count }) if std::ptr::eq(*last, side) => *count += rows,
            _ => self.made.push(NewImages::Fresh { side, count: rows }),
        }
    }

    /// Takes an image, and returns its number.
    fn image(&mut self, side: &'s RowSide, partial: bool, before: Option<u32>) -> Result<u32> {
        let role = side.role;
        let old = matches!(role, ImageRole::Deleted | ImageRole::Before);
        let leaves = side.is_whole && if partial { role == ImageRole::Before } else { !old };
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
                self.made.push(NewImages::Again { source, image });
                return self.table.new_image(leaves);
            }
            Former::Differs(source, image) => Some(Base(source, image)),
            Former::Unknown => before.map(|before| Base(None, before as usize)),
        };
        if partial && role == ImageRole::After && self.streams.options.next()? == PARTIAL_JSON {
            let bits = self.streams.partial.next()?;
            if bits.len() != self.streams.json.div_ceil(8) {
                return Err(Error::damaged("row image", "bits of partial columns", "one for each document"));
            }
        }
        let nulls = self.nulls(role, side.width)?;
        self.made.push(NewImages::One { side, nulls, base });
        self.table.new_image(leaves)
    }

    /// Where a whole image was before.
    fn former(&mut self, role: ImageRole) -> Result<Former> {
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
    fn nulls(&mut self, role: ImageRole, count: usize) -> Result<Nulls> {
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
}
