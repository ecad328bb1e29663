//! AUTO_INCREMENT counters after a folded range: they stand after each number that the logs gave, also of rows that the folded log doesn't have.

use std::collections::HashMap;

use crate::quoting::identifier;
use crate::target::{OWN_SCHEMAS, TargetServer, TargetTrouble};

/// The largest number that a column was given, read with a sign and without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenNumber {
    /// The table's database.
    pub database: String,
    /// The table.
    pub table: String,
    /// The column's place, from 0.
    pub column: u32,
    /// If the column has signs.
    pub signed: i64,
    /// If it has none.
    pub unsigned: u64,
}

/// A table's counter.
#[derive(Debug, PartialEq, Eq)]
struct TableCounter {
    /// The column's place, from 1, as information_schema has it.
    position: u32,
    column_type: String,
    next: u64,
}

/// Sets the counters that stand before a number which was given, here alone: they don't go into the binary log. Returns the tables whose counters
/// can't be told so, as `database.table, of type`: their column isn't one of whole numbers.
pub(crate) fn set(target: &mut TargetServer, numbers: &[GivenNumber]) -> Result<Vec<String>, TargetTrouble> {
    let counters = counters_of(target)?;
    for number in numbers {
        let Some(counter) = counters.get(&(number.database.clone(), number.table.clone())) else { continue };
        let Some(next) = counter.next_after(number) else { continue };
        let table = format!("{}.{}", identifier(&number.database), identifier(&number.table));
        target.run("SET SESSION sql_log_bin = 0")?;
        target.run(&format!("ALTER TABLE {table} AUTO_INCREMENT = {next}"))?;
        target.run("SET SESSION sql_log_bin = 1")?;
    }
    Ok(not_of_whole_numbers(&counters))
}

/// Counters, by database and table.
type TableCounters = HashMap<(String, String), TableCounter>;

/// The tables whose counters are FLOAT or DOUBLE, as servers before 8.4 have them: what such a column was given isn't looked at.
fn not_of_whole_numbers(counters: &TableCounters) -> Vec<String> {
    let others = counters.iter().filter(|(_, counter)| counter.number_max().is_none());
    let mut told: Vec<_> = others
        .map(|((database, table), counter)| format!("{database}.{table}, of type {}", counter.column_type))
        .collect();
    told.sort_unstable();
    told
}

fn counters_of(target: &mut TargetServer) -> Result<TableCounters, TargetTrouble> {
    // Otherwise the server tells numbers of up to a day ago.
    target.run("SET SESSION information_schema_stats_expiry = 0")?;
    let rows = target.ask(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION, COLUMN_TYPE, AUTO_INCREMENT FROM information_schema.COLUMNS \
         JOIN information_schema.TABLES USING (TABLE_SCHEMA, TABLE_NAME) \
         WHERE EXTRA LIKE '%auto_increment%' AND TABLE_SCHEMA NOT IN ({OWN_SCHEMAS})"
    ))?;
    let mut counters = HashMap::new();
    for row in rows {
        if let [database, table, position, column_type, next] = row.as_slice()
            && let Ok(position) = position.parse()
        {
            // NULL: nothing was inserted as yet.
            let next = next.parse().unwrap_or(1);
            let counter = TableCounter { position, column_type: column_type.to_lowercase(), next };
            counters.insert((database.clone(), table.clone()), counter);
        }
    }
    Ok(counters)
}

impl TableCounter {
    /// Where it has to stand after a number; `None`: it does already, or the number is another column's.
    fn next_after(&self, number: &GivenNumber) -> Option<u64> {
        if self.position != number.column.checked_add(1)? {
            return None;
        }
        let largest = match self.column_type.contains("unsigned") {
            true => number.unsigned,
            false => u64::try_from(number.signed).ok()?,
        };
        let next = largest.saturating_add(1).min(self.number_max()?);
        (next > self.next).then_some(next)
    }

    /// The largest number of the column; `None`: it isn't one of whole numbers.
    fn number_max(&self) -> Option<u64> {
        let name = self.column_type.split(['(', ' ']).next()?;
        let bits = match name {
            "tinyint" => 8,
            "smallint" => 16,
            "mediumint" => 24,
            "int" => 32,
            "bigint" => 64,
            _ => return None,
        };
        let signs = u32::from(!self.column_type.contains("unsigned"));
        Some(u64::MAX >> (64 - bits + signs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(column_type: &str, next: u64, (column, signed, unsigned): (u32, i64, u64)) -> Option<u64> {
        let counter = TableCounter { position: 1, column_type: column_type.to_owned(), next };
        let (database, table) = ("shop".to_owned(), "jobs".to_owned());
        counter.next_after(&GivenNumber { database, table, column, signed, unsigned })
    }

    #[test]
    fn a_counter_stands_after_the_largest_number_of_its_column() {
        assert_eq!(next("int", 5, (0, 9, 9)), Some(10));
        assert_eq!(next("int", 10, (0, 9, 9)), None);
        assert_eq!(next("int", 5, (1, 9, 9)), None);
        // Negative numbers don't move it; without signs there are none.
        assert_eq!(next("int", 5, (0, -7, u64::MAX - 6)), None);
        assert_eq!(next("tinyint unsigned", 5, (0, 3, 200)), Some(201));
        assert_eq!(next("tinyint(3) unsigned zerofill", 5, (0, 3, 255)), Some(255));
        assert_eq!(next("tinyint", 5, (0, 127, 127)), Some(127));
        assert_eq!(next("bigint", 5, (0, i64::MAX, i64::MAX as u64)), Some(i64::MAX as u64));
        assert_eq!(next("double", 5, (0, 9, 9)), None);
    }

    #[test]
    fn counters_that_are_not_of_whole_numbers_are_named() {
        let of = |table: &str, column_type: &str| {
            let counter = TableCounter { position: 1, column_type: column_type.to_owned(), next: 1 };
            (("shop".to_owned(), table.to_owned()), counter)
        };
        let counters =
            [of("jobs", "bigint unsigned"), of("rates", "float"), of("old", "double")].into_iter().collect();
        assert_eq!(
            not_of_whole_numbers(&counters),
            ["shop.old, of type double", "shop.rates, of type float"]
        );
    }
}
