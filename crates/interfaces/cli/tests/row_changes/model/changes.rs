//! Random changes of rows, over the tables as they are at the time: sessions with transactions of one or more statements.

use super::kinds::literal;
use super::snapshot::LiveTables;
use super::tables::Statements;

/// The column that refers to other rows of its table. No row refers to itself: a server since 9.6 deletes such a row under RESTRICT for
/// nobody, and under SET NULL logs an update of it before a delete of what it was before that update, which no script can follow.
const SELF: &str = "r3";

impl Statements {
    /// What a session does.
    pub(super) fn session(&mut self, tables: &LiveTables, transactions: usize) -> String {
        let zone = self.one_of(&["+00:00", "+02:00", "-11:30"]);
        let mut sql = format!("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '{zone}';\n");
        for _ in 0..transactions {
            let statements: Vec<String> =
                (0..1 + self.random.below(4)).map(|_| self.change(tables)).collect();
            let statements = statements.concat();
            sql += &match self.random.below(10) {
                0 => format!("BEGIN;\n{statements}ROLLBACK;\n"),
                1 => format!(
                    "BEGIN;\n{statements}SAVEPOINT s;\n{}ROLLBACK TO s;\n{}COMMIT;\n",
                    self.change(tables),
                    self.change(tables)
                ),
                2 | 3 => statements,
                _ => format!("BEGIN;\n{statements}COMMIT;\n"),
            };
        }
        sql
    }

    /// Statements that fill the tables.
    pub(super) fn fill(&mut self, tables: &LiveTables) -> String {
        let mut sql = "SET sql_mode = 'ALLOW_INVALID_DATES';\n".to_owned();
        for _ in 0..3 {
            for table in tables.keys() {
                sql += &self.insert(tables, table);
            }
        }
        sql
    }

    fn change(&mut self, tables: &LiveTables) -> String {
        let names: Vec<&String> = tables.keys().collect();
        if names.is_empty() {
            return String::new();
        }
        let table = names[self.random.below(names.len())].clone();
        let id = literal(&mut self.random, "id");
        match self.random.below(12) {
            0..=4 => self.insert(tables, &table),
            5..=7 => {
                let set = self.set(tables, &table);
                format!("UPDATE IGNORE {table} SET {set} WHERE id = {id};\n")
            }
            8 => {
                let new = literal(&mut self.random, "id");
                let is_itself = tables[&table].iter().any(|column| column.name == SELF);
                let unless = if is_itself { format!(" AND NOT {SELF} <=> {new}") } else { String::new() };
                format!("UPDATE IGNORE {table} SET id = {new} WHERE id = {id}{unless};\n")
            }
            9 => {
                let set = self.set(tables, &table);
                format!("UPDATE IGNORE {table} SET {set} ORDER BY id LIMIT 4;\n")
            }
            10 => format!("DELETE FROM {table} WHERE id > {id} ORDER BY id LIMIT 2;\n"),
            _ => format!("DELETE FROM {table} WHERE id = {id};\n"),
        }
    }

    /// `c = value, …` for one to three columns.
    fn set(&mut self, tables: &LiveTables, table: &str) -> String {
        let columns = stored(tables, table);
        let sets: Vec<String> = (0..1 + self.random.below(3))
            .map(|_| {
                let column = columns[self.random.below(columns.len())].clone();
                let is_json = super::kinds::definition(&column) == "JSON";
                match column.as_str() {
                    "id" => "id = id".into(),
                    SELF => format!("{SELF} = NULLIF({}, id)", literal(&mut self.random, SELF)),
                    _ if is_json && self.percent(60) => {
                        let value = self.random.below(1000);
                        let path = self.one_of(&["$.a", "$.list[1]", "$.z"]);
                        format!("{column} = JSON_SET({column}, '{path}', {value})")
                    }
                    _ => format!("{column} = {}", literal(&mut self.random, &column)),
                }
            })
            .collect();
        sets.join(", ")
    }

    fn insert(&mut self, tables: &LiveTables, table: &str) -> String {
        // Now and then a column gets its default.
        let mut columns = stored(tables, table);
        columns.retain(|column| column == "id" || self.percent(90));
        let rows: Vec<String> = (0..1 + self.random.below(3))
            .map(|_| {
                let id = literal(&mut self.random, "id");
                let values: Vec<String> = columns
                    .iter()
                    .map(|column| match (column.as_str(), literal(&mut self.random, column)) {
                        ("id", _) => id.clone(),
                        (SELF, value) if value == id => "NULL".into(),
                        (_, value) => value,
                    })
                    .collect();
                format!("({})", values.join(", "))
            })
            .collect();
        let names = columns.join(", ");
        let values = rows.join(", ");
        match self.random.below(5) {
            // Since 9.6 the children of a row that REPLACE deletes and inserts stay, which a script can't repeat: it ends, and names them.
            0 if !table.starts_with('f') => format!("REPLACE INTO {table} ({names}) VALUES {values};\n"),
            1 => {
                let set = self.set(tables, table);
                format!(
                    "INSERT IGNORE INTO {table} ({names}) VALUES {values} ON DUPLICATE KEY UPDATE {set};\n"
                )
            }
            _ => format!("INSERT IGNORE INTO {table} ({names}) VALUES {values};\n"),
        }
    }
}

/// The columns that take values.
fn stored(tables: &LiveTables, table: &str) -> Vec<String> {
    tables[table].iter().filter(|column| !column.is_generated).map(|column| column.name.clone()).collect()
}
