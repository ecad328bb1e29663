//! The streams of a table's rows, which are taken value by value.

use std::ops::Range;

use super::PickedTable;
use crate::block::slots::{ImageRole, MORE, NULLS, NUMBER, OPTIONS, PARTIAL, ROLES, SOURCE, VALUES};
use crate::block::streams::{SparseStreams, StreamColumn};
use crate::codec::strings::StringList;
use crate::error::{Error, Result};

/// Numbers that are taken one after the other.
#[derive(Debug, Default)]
pub(super) struct NumberStream(pub(super) Vec<i64>, pub(super) usize);

impl NumberStream {
    #[inline]
    pub(super) fn next(&mut self) -> Result<i64> {
        let next = self.0.get(self.1).copied();
        self.1 += 1;
        next.ok_or_else(ended)
    }

    /// The next numbers, as many as `count`.
    pub(super) fn take(&mut self, count: usize) -> Result<&[i64]> {
        let from = self.1;
        self.1 += count;
        self.0.get(from..self.1).ok_or_else(ended)
    }

    /// The numbers that were not taken yet.
    pub(super) fn left(&self) -> &[i64] {
        self.0.get(self.1..).unwrap_or_default()
    }
}

fn ended() -> Error {
    Error::damaged("column of numbers", "its end", "another number")
}

#[derive(Debug, Default)]
pub(super) struct TextStream(pub(super) StringList, pub(super) usize);

impl TextStream {
    #[inline]
    pub(super) fn next(&mut self) -> Result<&[u8]> {
        self.1 += 1;
        self.0.get(self.1 - 1).ok_or_else(|| Error::damaged("column of strings", "its end", "another string"))
    }

    /// The numbers of the next strings, as many as `count`; there may be fewer.
    pub(super) fn take(&mut self, count: usize) -> Range<usize> {
        let from = self.1;
        self.1 += count;
        from..self.1
    }
}

/// The streams of a table's rows.
#[derive(Debug)]
pub(super) struct TableStreams {
    pub(super) more: NumberStream,
    pub(super) nulls: [(NumberStream, TextStream); ROLES],
    pub(super) sources: [(NumberStream, NumberStream); ROLES],
    pub(super) options: NumberStream,
    pub(super) partial: TextStream,
    /// For each picked column and role: values, and how they relate to older ones.
    pub(super) values: Vec<[ValueStream; ROLES]>,
    pub(super) next: Vec<i64>,
    pub(super) json: usize,
}

#[derive(Debug, Default)]
pub(super) struct ValueStream {
    pub(super) numbers: NumberStream,
    pub(super) texts: TextStream,
    pub(super) relations: NumberStream,
    pub(super) differences: TextStream,
}

impl TableStreams {
    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.more.left().iter().filter(|&&more| more == 1).count()
    }

    /// Takes the streams of a table. `with_deleted`: also the images of rows that are deleted, to which no others refer.
    pub(super) fn take(
        streams: &mut SparseStreams<'_>,
        group: usize,
        table: &PickedTable,
        with_deleted: bool,
    ) -> Result<Self> {
        let at = |slot: usize| StreamColumn::new(group, slot);
        let is_taken = |role: &usize| with_deleted || *role != ImageRole::Deleted as usize;
        let mut numbers = |slot: usize| streams.numbers(at(slot)).map(|numbers| NumberStream(numbers, 0));
        let more = numbers(MORE)?;
        let options = numbers(OPTIONS)?;
        let mut sources: [(NumberStream, NumberStream); ROLES] = Default::default();
        // Numbers of images are told from those before them, of both roles: without updates those of deleted rows say nothing.
        let mut has_others = with_deleted;
        for role in [ImageRole::Before as usize, ImageRole::Deleted as usize] {
            if let Some((sources, images)) = sources.get_mut(role)
                && (role == ImageRole::Before as usize || has_others)
            {
                (*sources, *images) = (numbers(SOURCE + role)?, numbers(NUMBER + role)?);
                has_others |= !sources.left().is_empty();
            }
        }
        let partial = TextStream(streams.strings(at(PARTIAL))?, 0);
        let mut nulls: [(NumberStream, TextStream); ROLES] = Default::default();
        for (role, place) in nulls.iter_mut().enumerate().filter(|(role, _)| is_taken(role)) {
            let slot = at(NULLS + role);
            *place = (NumberStream(streams.numbers(slot)?, 0), TextStream(streams.strings(slot)?, 0));
        }
        let mut values = Vec::with_capacity(table.columns.len());
        for (pick, column) in table.columns.iter().enumerate() {
            let is_taken = |role: &usize| is_taken(role) && !table.is_bare(pick);
            let mut of_roles: [ValueStream; ROLES] = Default::default();
            for (role, place) in of_roles.iter_mut().enumerate().filter(|(role, _)| is_taken(role)) {
                let slot = at(VALUES + 8 * column + 2 * role);
                let relation = at(VALUES + 8 * column + 2 * role + 1);
                *place = ValueStream {
                    numbers: NumberStream(streams.numbers(slot)?, 0),
                    texts: TextStream(streams.strings(slot)?, 0),
                    relations: NumberStream(streams.numbers(relation)?, 0),
                    differences: TextStream(streams.strings(relation)?, 0),
                };
            }
            values.push(of_roles);
        }
        let columns = table.schema.columns();
        Ok(TableStreams {
            more,
            nulls,
            sources,
            options,
            partial,
            values,
            next: Vec::new(),
            json: columns.iter().filter(|column| column.is_json()).count(),
        })
    }
}
