//! The names of an ENUM's or SET's value where the log has none: those that a schema tells for the place of the row.

use binlogz_binlog::row::{Cell, Value};

use super::TableColumn;

/// Names of a value's members, from a schema.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MemberNames<'c> {
    /// The member of an ENUM.
    One(&'c str),
    /// The members of a SET, in the order of its definition.
    Several(Vec<&'c str>),
}

impl MemberNames<'_> {
    /// The value as the server shows it: names of a SET with commas between them.
    pub(crate) fn text(&self) -> String {
        match self {
            MemberNames::One(name) => (*name).to_owned(),
            MemberNames::Several(names) => names.join(","),
        }
    }
}

impl TableColumn {
    /// The names that a schema gives the members of a value. `None`: the log has their names, or one of them has none.
    pub(crate) fn member_names(&self, cell: &Cell<'_>) -> Option<MemberNames<'_>> {
        if cell.column.members.is_some() || self.members.is_empty() {
            return None;
        }
        let value = cell.value().ok()?;
        if let Value::Enum(number) = value {
            let name = self.members.get(usize::from(number).checked_sub(1)?)?;
            return Some(MemberNames::One(name));
        }
        let Value::Set(bits) = value else { return None };
        let places = (0..64_usize).filter(|place| bits >> place & 1 == 1);
        let names: Option<_> = places.map(|place| self.members.get(place).map(String::as_str)).collect();
        names.map(MemberNames::Several)
    }
}
