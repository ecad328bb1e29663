//! The source's system variables and collations, as clients ask the relay for them. The relay fetches and keeps them, as JSON.

use std::collections::BTreeMap;

use binlogz_wire::result_set::ResultKind;
use serde::{Deserialize, Serialize};

/// A system variable of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceVariable {
    /// The variable's value in SHOW VARIABLES.
    pub shown: String,
    /// The variable's value in SELECT, which may be NULL.
    pub selected: Option<String>,
    column_type: u8,
    flags: u16,
    decimals: u8,
    /// Whether only sessions have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_in_sessions: bool,
}

impl SourceVariable {
    /// A variable with its value in SHOW VARIABLES, in SELECT, and the kind of the latter.
    pub fn new(shown: String, selected: Option<String>, kind: ResultKind) -> Self {
        let ResultKind { column_type, flags, decimals } = kind;
        SourceVariable { shown, selected, column_type, flags, decimals, only_in_sessions: false }
    }

    /// The kind of its value in SELECT.
    pub fn kind(&self) -> ResultKind {
        ResultKind { column_type: self.column_type, flags: self.flags, decimals: self.decimals }
    }

    /// Whether it is ON or OFF in SHOW VARIABLES, and 1 or 0 in SELECT.
    pub fn is_switch(&self) -> bool {
        self.kind().is_integer() && ["ON", "OFF"].contains(&self.shown.as_str())
    }
}

/// A collation that the source knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collation {
    /// The collation's number.
    pub id: u64,
    /// The collation's name.
    pub name: String,
    /// The name of its character set.
    pub character_set: String,
    /// Whether it is its character set's own.
    pub is_default: bool,
}

/// The source's variables and collations, when the relay last connected to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceVariables {
    /// Variables by their names.
    pub variables: BTreeMap<String, SourceVariable>,
    /// The collations that it knows.
    pub collations: Vec<Collation>,
}

impl SourceVariables {
    /// The collation with this number.
    pub fn collation(&self, id: u8) -> Option<&Collation> {
        self.collations.iter().find(|collation| collation.id == u64::from(id))
    }
}
