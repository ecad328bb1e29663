//! The table maps of a block.

use std::collections::BTreeMap;

use binlogz_binlog::event::TableMapEvent;
use binlogz_binlog::row::TableSchema;

use super::{Pick, PickedTable};
use crate::block::layout::TABLES_MAX;
use crate::error::Result;
use crate::log::events::TABLE_MAP_POST_HEADER;

/// The table maps of a block, numbered as its layout numbers them.
#[derive(Debug, Default)]
pub(super) struct Maps {
    pub(super) numbers: BTreeMap<Vec<u8>, usize>,
    /// The table of each table id.
    pub(super) ids: BTreeMap<i64, usize>,
    /// By number: which of `tables` it is.
    pub(super) picked: BTreeMap<usize, usize>,
    pub(super) tables: Vec<(usize, PickedTable)>,
    /// A table map of the table can't be understood.
    pub(super) is_unfit: bool,
}

impl Maps {
    pub(super) fn note(&mut self, id: i64, rest: &[u8], pick: &Pick<'_>) -> Result<()> {
        let number = match self.numbers.get(rest) {
            Some(&number) => number,
            None if self.numbers.len() == TABLES_MAX => {
                self.is_unfit = true;
                return Ok(());
            }
            None => {
                let number = self.numbers.len();
                self.numbers.insert(rest.to_vec(), number);
                self.table(number, rest, pick);
                number
            }
        };
        self.ids.insert(id, number);
        Ok(())
    }

    /// The table's maps in force.
    pub(super) fn in_force(&self) -> Vec<Vec<u8>> {
        let maps = self.ids.iter().filter_map(|(id, number)| {
            let (_, table) = self.tables.get(*self.picked.get(number)?)?;
            Some([id.to_le_bytes().get(..6)?, &table.name].concat())
        });
        maps.collect()
    }

    pub(super) fn table(&mut self, number: usize, rest: &[u8], pick: &Pick<'_>) {
        let body = [&[0; 6], rest].concat();
        let Ok(map) = TableMapEvent::decode(&body, TABLE_MAP_POST_HEADER) else { return };
        if map.database != pick.database || map.table != pick.table {
            return;
        }
        // A map that needs its log to be understood is read there.
        let schema = TableSchema::of_any_family(&map).ok().flatten();
        let chosen = schema.and_then(|schema| (pick.columns)(&schema).map(|columns| (schema, columns)));
        match chosen {
            Some((schema, columns)) => {
                self.picked.insert(number, self.tables.len());
                self.tables.push((number, PickedTable::new(rest, schema, columns, pick.with_values)));
            }
            None => self.is_unfit = true,
        }
    }
}
