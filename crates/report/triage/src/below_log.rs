//! Rows that go or change with deleted ones by foreign keys, below the log: no log of a server before 9.6 or of MariaDB has them, nor that of a later
//! server with `innodb_native_foreign_keys`.

use std::collections::{BTreeMap, HashMap};

use binlogz_stats::TableName;

use crate::transaction::TriagedTransaction;

/// Keys that are followed from a table to the last of its descendants.
const DEPTH_MAX: usize = 15;

/// A foreign key with ON DELETE CASCADE or ON DELETE SET NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CascadingKey {
    /// The table that it refers to.
    pub parent: TableName,
    /// The table that has it.
    pub child: TableName,
    /// CASCADE: children go with their parents, and theirs with them.
    pub deletes: bool,
}

/// For each table, how many rows of other tables go or change with one of its rows, in the mean.
#[derive(Debug, Clone, Default)]
pub struct CascadeEstimates(HashMap<TableName, f64>);

impl CascadeEstimates {
    /// Estimates by how many rows the tables have. A table whose rows aren't known counts as empty.
    pub fn new(keys: &[CascadingKey], rows: &HashMap<TableName, u64>) -> Self {
        let mut children: BTreeMap<&TableName, Vec<&CascadingKey>> = BTreeMap::new();
        keys.iter().for_each(|key| children.entry(&key.parent).or_default().push(key));
        let estimate = |parent: &&TableName| below(parent, &children, rows, &mut Vec::new());
        CascadeEstimates(children.keys().map(|parent| ((*parent).clone(), estimate(parent))).collect())
    }

    /// The rows that go or change with those that a transaction deleted. A statement that is unusual itself is looked at for that.
    pub(crate) fn rows_below(&self, transaction: &TriagedTransaction) -> u64 {
        if self.0.is_empty() || transaction.unusual.is_some() {
            return 0;
        }
        let deleted = transaction.tables.iter().filter(|table| table.rows.deletes > 0);
        let rows = deleted.filter_map(|table| Some(table.rows.deletes as f64 * self.0.get(&*table.name)?));
        rows.sum::<f64>() as u64
    }
}

/// The rows below one row of a table. `path` has the tables above it, so that keys which go round are followed once.
fn below<'k>(
    parent: &'k TableName,
    children: &BTreeMap<&TableName, Vec<&'k CascadingKey>>,
    rows: &HashMap<TableName, u64>,
    path: &mut Vec<&'k TableName>,
) -> f64 {
    if path.len() >= DEPTH_MAX || path.contains(&parent) {
        return 0.0;
    }
    let known = |table: &TableName| rows.get(table).copied().unwrap_or(0) as f64;
    let mut all = 0.0;
    path.push(parent);
    for key in children.get(parent).map(Vec::as_slice).unwrap_or_default() {
        let of_one = known(&key.child) / known(parent).max(1.0);
        let further = if key.deletes { below(&key.child, children, rows, path) } else { 0.0 };
        all += of_one * (1.0 + further);
    }
    path.pop();
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use binlogz_stats::RowCounts;

    use super::*;
    use crate::transaction::TableChanges;

    fn name(table: &str) -> TableName {
        TableName { database: b"d"[..].into(), table: table.as_bytes().into() }
    }

    fn key(parent: &str, child: &str, deletes: bool) -> CascadingKey {
        CascadingKey { parent: name(parent), child: name(child), deletes }
    }

    fn deleted(table: &str, deletes: u64) -> TriagedTransaction {
        let rows = RowCounts { deletes, ..RowCounts::default() };
        let by_foreign_key = RowCounts::default();
        let changes = TableChanges { name: Arc::new(name(table)), rows, by_foreign_key, rows_now: None };
        TriagedTransaction { tables: vec![changes], ..TriagedTransaction::default() }
    }

    #[test]
    fn children_of_children_count_and_those_set_to_null_have_none() {
        let keys = [
            key("wards", "patients", true),
            key("patients", "visits", true),
            key("wards", "notes", false),
            key("notes", "lines", true),
            // Round in a circle.
            key("visits", "wards", true),
            key("wards", "wards", true),
        ];
        let rows = [("wards", 4), ("patients", 40), ("visits", 400), ("notes", 8), ("lines", 8_000)];
        let rows = rows.into_iter().map(|(table, rows)| (name(table), rows)).collect();
        let estimates = CascadeEstimates::new(&keys, &rows);
        // 10 patients, 100 visits, 2 notes; a ward of the ward and one for each 100 visits, whose own aren't followed.
        assert_eq!(estimates.rows_below(&deleted("wards", 3)), 3 * (10 + 100 + 2 + 1) + 3);
        assert_eq!(estimates.rows_below(&deleted("notes", 1)), 1_000);
        assert_eq!(estimates.rows_below(&deleted("lines", 9)), 0);
        assert_eq!(CascadeEstimates::default().rows_below(&deleted("wards", 3)), 0);
    }
}
