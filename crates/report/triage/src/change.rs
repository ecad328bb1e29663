//! A change that is shown, and why.

use crate::statement::DdlEffect;
use crate::transaction::TriagedTransaction;

/// Why a change is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnusualReason {
    /// A statement that may lose data, or changes tables.
    Statement(DdlEffect),
    /// At least five rows, and five times those of the median transaction, were deleted or updated, most of them deleted.
    MassDelete,
    /// The same, most of them updated.
    MassUpdate,
    /// At least 100 rows, and 20 times those of the 99th percentile.
    LargeTransaction,
    /// At least 500 transactions of one session, one after the other, each of which deleted or updated a few rows of the same table.
    SessionLoop,
    /// The first DELETE of a table after so many transactions that changed it, at least 20.
    FirstDelete(u64),
}

impl UnusualReason {
    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            UnusualReason::Statement(DdlEffect::DropDatabase) => "drop_database",
            UnusualReason::Statement(DdlEffect::DropTable) => "drop_table",
            UnusualReason::Statement(DdlEffect::Truncate) => "truncate",
            UnusualReason::Statement(DdlEffect::LosesPart) => "drop_part",
            UnusualReason::Statement(DdlEffect::ChangesAllRows) => "all_rows",
            UnusualReason::Statement(DdlEffect::Redefines) => "ddl",
            UnusualReason::MassDelete => "mass_delete",
            UnusualReason::MassUpdate => "mass_update",
            UnusualReason::LargeTransaction => "large_transaction",
            UnusualReason::SessionLoop => "session_loop",
            UnusualReason::FirstDelete(_) => "first_delete",
        }
    }
}

/// An unusual change.
#[derive(Debug, Clone)]
pub struct RankedChange {
    /// Its transaction.
    pub transaction: TriagedTransaction,
    /// Why it is unusual, the main reason first.
    pub reasons: Vec<UnusualReason>,
    /// How often the logs have as large a change of this kind, this one counted.
    pub as_large: u64,
    /// Its weight, divided by the square of that: the order in which changes are shown.
    pub severity: f64,
}

impl RankedChange {
    /// Its tables, database and name: of its rows, or without any those that its statement names.
    pub fn tables(&self) -> Vec<(String, String)> {
        let transaction = &self.transaction;
        let rows = transaction.tables.iter().map(|table| {
            let name = &table.name;
            (
                String::from_utf8_lossy(&name.database).into_owned(),
                String::from_utf8_lossy(&name.table).into_owned(),
            )
        });
        let named = transaction
            .unusual
            .iter()
            .flat_map(|statement| &statement.tables)
            .filter(|table| !table.table.is_empty())
            .map(|table| (table.database.clone(), table.table.clone()));
        let mut tables: Vec<_> = rows.collect();
        if tables.is_empty() {
            tables.extend(named);
        }
        tables
    }
}
