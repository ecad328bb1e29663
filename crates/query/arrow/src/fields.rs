//! The columns of a table over all of its definitions in the logs, in the order in which they first appear.

use arrow_schema::{DataType, Field, Fields};

use crate::types::merged;

/// The columns of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableFields {
    names: Vec<String>,
    types: Vec<DataType>,
}

impl TableFields {
    /// As the fields of a row image.
    pub fn fields(&self) -> Fields {
        self.names.iter().zip(&self.types).map(|(name, kind)| Field::new(name, kind.clone(), true)).collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds a column. One that is there already gets a type that has the values of both.
    pub fn add(&mut self, name: String, kind: DataType) {
        match self.names.iter().position(|known| *known == name).and_then(|place| self.types.get_mut(place)) {
            Some(known) => *known = merged(known, &kind),
            None => {
                self.names.push(name);
                self.types.push(kind);
            }
        }
    }

    /// Adds those of a later part of the logs.
    pub fn join(&mut self, later: TableFields) {
        later.names.into_iter().zip(later.types).for_each(|(name, kind)| self.add(name, kind));
    }
}
