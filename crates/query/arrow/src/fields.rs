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

    /// The name under which a column is there, which may have been renamed in case alone.
    pub fn name_of(&self, column: &str) -> Option<&str> {
        self.names.get(column_place(&self.names, column)?).map(String::as_str)
    }

    /// Adds a column. One that is there already, in whatever case, keeps its name and gets a type that has the values of both.
    pub fn add(&mut self, name: String, kind: DataType) {
        match column_place(&self.names, &name).and_then(|place| self.types.get_mut(place)) {
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

/// Whether two names are the same column's: upper and lower case are the same there (MySQL's manual, "Identifier Case Sensitivity").
pub fn is_same_column(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || !one.is_ascii() && one.to_lowercase() == other.to_lowercase()
}

/// The place of a column among names, in whatever case.
pub fn column_place<N: AsRef<str>>(names: &[N], column: &str) -> Option<usize> {
    let exact = names.iter().position(|name| name.as_ref() == column);
    exact.or_else(|| names.iter().position(|name| is_same_column(name.as_ref(), column)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_is_renamed_in_case_alone_stays_one() {
        let mut all = TableFields::default();
        for (name, kind) in [("id", DataType::Int32), ("čaj", DataType::Utf8), ("Id", DataType::Int64)] {
            all.add(name.to_owned(), kind);
        }
        let mut later = TableFields::default();
        later.add("ČAJ".to_owned(), DataType::Utf8);
        later.add("cena".to_owned(), DataType::Int32);
        all.join(later);
        let told: Vec<_> =
            all.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
        assert_eq!(told, ["id Int64", "čaj Utf8", "cena Int32"]);
        assert_eq!((all.name_of("ID"), all.name_of("iD2")), (Some("id"), None));
    }

    #[test]
    fn the_name_as_it_is_goes_first() {
        assert_eq!(column_place(&["a", "A"], "A"), Some(1));
        assert_eq!(column_place(&["b", "A"], "a"), Some(1));
        assert_eq!(column_place(&["b", "A"], "ä"), None);
    }
}
