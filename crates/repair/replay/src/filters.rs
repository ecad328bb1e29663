//! The server's own filters, as CHANGE REPLICATION FILTER takes them.

use crate::quoting::{identifier, literal};

/// Filters of a replication channel, each as mysqld's option of that name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicationFilters {
    /// Only these databases.
    pub do_db: Vec<String>,
    /// All but these databases.
    pub ignore_db: Vec<String>,
    /// Only these tables, each with its database.
    pub do_table: Vec<(String, String)>,
    /// All but these tables, each with its database.
    pub ignore_table: Vec<(String, String)>,
    /// Only tables that are like these patterns, with % and _.
    pub wild_do_table: Vec<String>,
    /// All but tables that are like these patterns.
    pub wild_ignore_table: Vec<String>,
    /// Changes of the first database are applied to the second.
    pub rewrite_db: Vec<(String, String)>,
}

impl ReplicationFilters {
    /// Whether nothing is filtered.
    pub(crate) fn is_empty(&self) -> bool {
        *self == ReplicationFilters::default()
    }

    /// The filters in SQL: `REPLICATE_DO_DB = (…)`, and so on.
    pub(crate) fn clauses(&self) -> Vec<String> {
        let all = [
            ("REPLICATE_DO_DB", self.do_db.iter().map(|name| identifier(name)).collect::<Vec<_>>()),
            ("REPLICATE_IGNORE_DB", self.ignore_db.iter().map(|name| identifier(name)).collect()),
            ("REPLICATE_DO_TABLE", self.do_table.iter().map(table).collect()),
            ("REPLICATE_IGNORE_TABLE", self.ignore_table.iter().map(table).collect()),
            ("REPLICATE_WILD_DO_TABLE", self.wild_do_table.iter().map(|text| literal(text)).collect()),
            (
                "REPLICATE_WILD_IGNORE_TABLE",
                self.wild_ignore_table.iter().map(|text| literal(text)).collect(),
            ),
            ("REPLICATE_REWRITE_DB", self.rewrite_db.iter().map(rewriting).collect()),
        ];
        let given = all.into_iter().filter(|(_, values)| !values.is_empty());
        given.map(|(clause, values)| format!("{clause} = ({})", values.join(", "))).collect()
    }
}

fn table((database, table): &(String, String)) -> String {
    format!("{}.{}", identifier(database), identifier(table))
}

fn rewriting((from, to): &(String, String)) -> String {
    format!("({}, {})", identifier(from), identifier(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_clauses_with_quoted_names_and_patterns() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let filters = ReplicationFilters {
            do_db: names(&["shop", "a`b"]),
            ignore_table: vec![("shop".into(), "t".into())],
            wild_do_table: names(&["s%.t\\_1", "it's.%"]),
            rewrite_db: vec![("old".into(), "new".into())],
            ..ReplicationFilters::default()
        };
        assert_eq!(
            filters.clauses(),
            [
                "REPLICATE_DO_DB = (`shop`, `a``b`)",
                "REPLICATE_IGNORE_TABLE = (`shop`.`t`)",
                "REPLICATE_WILD_DO_TABLE = ('s%.t\\\\_1', 'it''s.%')",
                "REPLICATE_REWRITE_DB = ((`old`, `new`))",
            ]
        );
        assert!(!filters.is_empty());
        assert!(
            ReplicationFilters::default().is_empty() && ReplicationFilters::default().clauses().is_empty()
        );
    }
}
