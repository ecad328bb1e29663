//! The effects of changed parents on their children, in the order of the log, until the script asks for them.

use std::io::{self, Read};

use binlogz_figures::counted;
use binlogz_payload::{Spool, SpoolMemory};

use super::family::{Constraint, Family};
use crate::pass::FollowedTransaction;
use crate::record::{EffectRecord, RecordReader, RowAt, RowFlags, RowPlace, broken};
use crate::table::Structure;

/// Memory for effects; the rest goes to a temporary file.
const EFFECTS_MEMORY: usize = 8 << 20;

/// Where a row stands.
pub(crate) fn row_place(transaction: &FollowedTransaction, row: &RowAt<'_>) -> RowPlace {
    let inside = row.inside.unwrap_or(u64::MAX);
    RowPlace { log: transaction.log_number, offset: row.offset, inside, row: row.row }
}

/// A table's layout in the log, which a child's rows are written with.
#[derive(Debug, Clone)]
pub(super) struct CascadeLayout {
    pub(super) database: Vec<u8>,
    pub(super) table: Vec<u8>,
    pub(super) structure: Structure,
    pub(super) map: Vec<u8>,
}

/// Effects in the making.
pub(super) struct Effects(Spool);

impl Effects {
    pub(super) fn new() -> Self {
        Effects(Spool::new(&SpoolMemory::new(EFFECTS_MEMORY), Vec::new()))
    }

    /// A parent's row met a constraint.
    pub(super) fn meet(&mut self, place: RowPlace, constraint: usize) -> io::Result<()> {
        EffectRecord { place, constraint, child: None }.put(&mut self.0)
    }

    /// A child's row, as it was rendered.
    pub(super) fn child(
        &mut self,
        (place, constraint): (RowPlace, usize),
        layout: usize,
        (flags, text): (u8, &[u8]),
    ) -> io::Result<()> {
        EffectRecord { place, constraint, child: Some((layout, flags, text)) }.put(&mut self.0)
    }
}

/// How much is known about the effects of a constraint.
#[derive(Debug, Clone, Default)]
pub(super) struct ConstraintKnowledge {
    /// The child was created in the logs, so each of its rows stands there.
    pub(super) is_whole: bool,
    /// Reasons, in words, for which rows that stand in the logs can't be found.
    pub(super) gaps: Vec<String>,
}

/// A child's row that goes with a parent's.
pub(crate) struct Child<'c> {
    pub(crate) database: &'c [u8],
    pub(crate) table: &'c [u8],
    pub(crate) structure: Structure,
    pub(crate) map: &'c [u8],
    pub(crate) flags: RowFlags,
    /// The renderer's text.
    pub(crate) text: &'c [u8],
    /// The constraint that did it, for people.
    pub(crate) constraint: String,
}

/// The rows that foreign keys changed below the log, by the row that made them do so; read along with the log.
pub(crate) struct Cascades {
    reader: RecordReader<SpoolBytes>,
    /// The kind and the content of the next effect, if it was read.
    next: Option<(u8, Vec<u8>)>,
    layouts: Vec<CascadeLayout>,
    constraints: Vec<Constraint>,
    known: Vec<ConstraintKnowledge>,
    /// Counts by constraint: chosen rows of parents that met it, and children that were found.
    tallies: Vec<(u64, u64)>,
}

/// The bytes of a spool, once.
struct SpoolBytes {
    spool: Spool,
    offset: u64,
}

impl Read for SpoolBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.spool.reader(self.offset..self.spool.size()).read(buffer)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Cascades {
    pub(super) fn new(
        effects: Effects,
        family: Family,
        layouts: Vec<CascadeLayout>,
        known: Vec<ConstraintKnowledge>,
    ) -> Self {
        let tallies = vec![(0, 0); family.constraints.len()];
        let reader = RecordReader::new(SpoolBytes { spool: effects.0, offset: 0 });
        Cascades { reader, next: None, layouts, constraints: family.constraints, known, tallies }
    }

    /// Calls back with each child of the row at a place, in the order in which they are made again. Places come in the log's
    /// order.
    pub(crate) fn at(
        &mut self,
        place: RowPlace,
        take: &mut dyn FnMut(&Child<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        while let Some((kind, content)) = self.take_next()? {
            let effect = EffectRecord::read(kind, &content)?;
            if effect.place > place {
                self.next = Some((kind, content));
                return Ok(());
            }
            if effect.place < place {
                continue;
            }
            let tally = self.tallies.get_mut(effect.constraint).ok_or_else(broken)?;
            let Some((layout, flags, text)) = effect.child else {
                tally.0 += 1;
                continue;
            };
            tally.1 += 1;
            let layout = self.layouts.get(layout).ok_or_else(broken)?;
            let constraint = self.constraints.get(effect.constraint).ok_or_else(broken)?;
            take(&Child {
                database: &layout.database,
                table: &layout.table,
                structure: layout.structure,
                map: &layout.map,
                flags: RowFlags(flags),
                text,
                constraint: format!("foreign key {} of {}", constraint.name, constraint.child()),
            })?;
        }
        Ok(())
    }

    fn take_next(&mut self) -> io::Result<Option<(u8, Vec<u8>)>> {
        match self.next.take() {
            Some(next) => Ok(Some(next)),
            None => Ok(self.reader.next()?.map(|(kind, content)| (kind, content.to_vec()))),
        }
    }

    /// The effects that can't be found, a line for each foreign key.
    pub(crate) fn notes(&self) -> Vec<String> {
        let each = self.constraints.iter().zip(&self.known).zip(&self.tallies);
        let met = each
            .filter(|((_, known), (parents, _))| *parents > 0 && (!known.is_whole || !known.gaps.is_empty()));
        met.map(|((constraint, known), (parents, children))| {
            let Constraint { name, .. } = constraint;
            let child = constraint.child();
            let parent = constraint.parent();
            let mut why = known.gaps.clone();
            if !known.is_whole {
                why.push("rows whose last change stands before these logs".to_owned());
            }
            format!(
                "foreign key {name}: {} of {child} found for {} of {parent}; not found, if there were any: {}",
                counted(*children, "rows"),
                counted(*parents, "rows"),
                why.join(", ")
            )
        })
        .collect()
    }
}
