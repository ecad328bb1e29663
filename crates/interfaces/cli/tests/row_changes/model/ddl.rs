//! Random DDL over the tables as they are: columns that come, go and move, tables that are renamed, swapped, exchanged, emptied and made
//! again.

use super::kinds;
use super::snapshot::LiveTables;
use super::tables::Statements;

impl Statements {
    /// One or more statements; the server may refuse them.
    pub(super) fn ddl(&mut self, tables: &LiveTables) -> String {
        let names: Vec<&String> = tables.keys().collect();
        if names.is_empty() {
            self.tables_made += 1;
            let name = format!("x{}", self.tables_made);
            return self.keyed_table(&name);
        }
        let table = names[self.random.below(names.len())].clone();
        let other = names[self.random.below(names.len())].clone();
        self.tables_made += 1;
        let new = format!("x{}", self.tables_made);
        match self.random.below(24) {
            0..=9 => {
                let actions: Vec<String> =
                    (0..1 + self.random.below(2)).map(|_| self.action(tables, &table)).collect();
                let algorithm = self.one_of(&["", "", ", ALGORITHM=COPY"]);
                format!("ALTER TABLE {table} {}{algorithm}", actions.join(", "))
            }
            10 => format!("RENAME TABLE {table} TO {new}, {other} TO {table}, {new} TO {other}"),
            11 => format!("ALTER TABLE {table} RENAME TO {new}"),
            12 => {
                // As gh-ost does it: the new table gets the rows, then the name.
                let (column, definition) = self.column();
                let place = self.place(tables, &table);
                let shared: Vec<&str> = tables[&table]
                    .iter()
                    .filter(|column| !column.is_generated)
                    .map(|column| &*column.name)
                    .collect();
                let shared = shared.join(", ");
                format!(
                    "CREATE TABLE {new} LIKE {table}; ALTER TABLE {new} ADD {column} {definition}{place}; \
                     INSERT IGNORE INTO {new} ({shared}) SELECT {shared} FROM {table}; \
                     RENAME TABLE {table} TO {new}_old, {new} TO {table}; DROP TABLE {new}_old"
                )
            }
            13 => format!("TRUNCATE TABLE {table}"),
            14 => {
                let create = self.keyed_table(&table);
                format!("DROP TABLE {table}; {create}")
            }
            15 => format!("CREATE TABLE {new} LIKE {table}"),
            16 => format!("CREATE TABLE {new} (PRIMARY KEY (id)) AS SELECT * FROM {table}"),
            17 => format!("CREATE VIEW v_{new} AS SELECT * FROM {table}"),
            18 => {
                let event = self.one_of(&["INSERT", "UPDATE", "DELETE"]);
                format!("CREATE TRIGGER tr_{new} BEFORE {event} ON {table} FOR EACH ROW SET @x = 1")
            }
            19 => {
                let partition = self.one_of(&["p0", "p1"]);
                format!("ALTER TABLE p0 EXCHANGE PARTITION {partition} WITH TABLE q0 WITHOUT VALIDATION")
            }
            20 => {
                let action = self.one_of(&[
                    "TRUNCATE PARTITION p1",
                    "REBUILD PARTITION p0",
                    "REMOVE PARTITIONING",
                    "DROP PARTITION p0",
                ]);
                format!("ALTER TABLE p0 {action}")
            }
            21 => format!("CREATE INDEX i_{new} ON {table} (id)"),
            22 => format!("DROP TABLE {table}"),
            _ => self.keyed_table(&new),
        }
    }

    /// An action of ALTER TABLE.
    fn action(&mut self, tables: &LiveTables, table: &str) -> String {
        let own: Vec<&str> =
            tables[table].iter().map(|column| &*column.name).filter(|name| name.starts_with('c')).collect();
        let (new, definition) = self.column();
        let place = self.place(tables, table);
        if own.is_empty() {
            return format!("ADD COLUMN {new} {definition}{place}");
        }
        let column = own[self.random.below(own.len())];
        let other = own[self.random.below(own.len())];
        let was = kinds::definition(column);
        match self.random.below(16) {
            0..=2 => format!("ADD COLUMN {new} {definition}{place}"),
            3 | 4 => format!("DROP COLUMN {column}"),
            5..=7 => format!("MODIFY COLUMN {column} {was}{place}"),
            8 => {
                let kind = column.split('_').next().unwrap_or_default();
                format!("CHANGE {column} {kind}_{} {was}{place}", self.columns_made)
            }
            9 => {
                let kind = column.split('_').next().unwrap_or_default();
                format!("RENAME COLUMN {column} TO {kind}_{}", self.columns_made)
            }
            10 => format!("RENAME COLUMN {column} TO {other}, RENAME COLUMN {other} TO {column}"),
            13 => {
                let (_, retyped) = kinds::column(&mut self.random, 0);
                let other = match kinds::definition(column) {
                    definition if definition.starts_with("ENUM") => {
                        "ENUM('Ünï','first','paid','new','it''s')"
                    }
                    definition if definition.starts_with("SET('a'") => "SET('d','c,','b','a')",
                    _ => retyped,
                };
                format!("MODIFY COLUMN {column} {other}{place}")
            }
            11 => format!("DROP COLUMN {column}, ADD COLUMN {column} {was}{place}"),
            12 => self
                .one_of(&[
                    "FORCE",
                    "COMMENT 'DROP COLUMN id'",
                    "CONVERT TO CHARACTER SET utf8mb4",
                    "DROP PRIMARY KEY",
                    "AUTO_INCREMENT = 100",
                ])
                .to_owned(),
            _ => format!("ALTER COLUMN {column} SET INVISIBLE"),
        }
    }

    /// Where a column goes.
    fn place(&mut self, tables: &LiveTables, table: &str) -> String {
        let columns = &tables[table];
        match self.random.below(3) {
            0 => String::new(),
            1 => " FIRST".into(),
            _ => format!(" AFTER {}", columns[self.random.below(columns.len())].name),
        }
    }
}
