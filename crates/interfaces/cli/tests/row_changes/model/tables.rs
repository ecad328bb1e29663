//! The first tables of a seed: families with foreign keys to three levels, tables with keys of all sorts and without one, a table with
//! partitions beside its twin, generated columns, triggers and views.

use binlogz_testkit::random::Random;

use super::kinds;

const DELETES: [&str; 4] = ["CASCADE", "SET NULL", "RESTRICT", "CASCADE"];
const UPDATES: [&str; 4] = ["CASCADE", "SET NULL", "RESTRICT", "NO ACTION"];
const KEYS: [&str; 6] = [
    "id INT PRIMARY KEY",
    "id BIGINT UNSIGNED NOT NULL, UNIQUE KEY (id)",
    "id VARCHAR(20) NOT NULL, r0 INT NOT NULL DEFAULT 7, PRIMARY KEY (id, r0)",
    "id BINARY(16) PRIMARY KEY",
    "id INT AUTO_INCREMENT PRIMARY KEY, r0 INT, UNIQUE KEY (r0)",
    "id DECIMAL(5,1) PRIMARY KEY, r0 INT, KEY (r0)",
];
const CHARSETS: [&str; 4] = ["utf8mb4", "utf8mb4", "latin1", "gbk"];

/// Makes statements from a seed, with numbers that no two columns share.
pub(super) struct Statements {
    pub(super) random: Random,
    pub(super) columns_made: usize,
    pub(super) tables_made: usize,
}

impl Statements {
    pub(super) fn new(seed: u64) -> Statements {
        Statements { random: Random::new(seed), columns_made: 0, tables_made: 0 }
    }

    pub(super) fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.random.below(words.len())]
    }

    pub(super) fn percent(&mut self, share: usize) -> bool {
        self.random.below(100) < share
    }

    /// The name and the definition of a column that no table has yet.
    pub(super) fn column(&mut self) -> (String, &'static str) {
        self.columns_made += 1;
        kinds::column(&mut self.random, self.columns_made)
    }

    /// Definitions of columns of all kinds, and of generated ones.
    fn columns(&mut self) -> String {
        let mut definitions = String::new();
        for _ in 0..1 + self.random.below(5) {
            let (name, definition) = self.column();
            definitions += &format!(", {name} {definition}");
            if self.percent(8) {
                definitions += " INVISIBLE";
            }
        }
        if self.percent(25) {
            let stored = self.one_of(&["STORED", "VIRTUAL"]);
            definitions += &format!(", g{} VARCHAR(50) AS (CONCAT(id, 'x')) {stored}", self.columns_made);
        }
        definitions
    }

    fn reference(&mut self, column: &str, table: &str) -> String {
        format!(
            ", FOREIGN KEY ({column}) REFERENCES {table} (id) ON DELETE {} ON UPDATE {}",
            self.one_of(&DELETES),
            self.one_of(&UPDATES)
        )
    }

    /// A table with a key of some sort and nothing that refers to others.
    pub(super) fn keyed_table(&mut self, name: &str) -> String {
        format!(
            "CREATE TABLE {name} ({}{}) DEFAULT CHARSET {}",
            self.one_of(&KEYS),
            self.columns(),
            self.one_of(&CHARSETS)
        )
    }

    /// The statements that make the first tables.
    pub(super) fn tables(&mut self) -> Vec<String> {
        let mut made = Vec::new();
        for level in 0..1 + self.random.below(4) {
            let columns = self.columns();
            let mut keys = String::new();
            if level > 0 {
                keys += &self.reference("r1", &format!("f{}", level - 1));
            }
            if level > 1 && self.percent(40) {
                let parent = format!("f{}", self.random.below(level - 1));
                keys += &self.reference("r2", &parent);
            }
            if self.percent(30) {
                keys += &self.reference("r3", &format!("f{level}"));
            }
            made.push(format!(
                "CREATE TABLE f{level} (id INT PRIMARY KEY, r1 INT, r2 INT, r3 INT{columns}{keys})"
            ));
        }
        for number in 0..1 + self.random.below(2) {
            made.push(self.keyed_table(&format!("k{number}")));
        }
        if self.percent(40) {
            made.push(format!("CREATE TABLE n0 (id INT{})", self.columns()));
        }
        if self.percent(50) {
            let partitions = self.one_of(&[
                "HASH (id) PARTITIONS 3",
                "RANGE (id) (PARTITION p0 VALUES LESS THAN (8), PARTITION p1 VALUES LESS THAN MAXVALUE)",
            ]);
            made.push(format!(
                "CREATE TABLE p0 (id INT PRIMARY KEY{}) PARTITION BY {partitions}",
                self.columns()
            ));
            made.push("CREATE TABLE q0 LIKE p0".into());
            made.push("ALTER TABLE q0 REMOVE PARTITIONING".into());
        }
        if self.percent(25) {
            made.push("CREATE TABLE a0 (id INT AUTO_INCREMENT PRIMARY KEY, r1 VARCHAR(30))".into());
            let event = self.one_of(&["INSERT", "UPDATE", "DELETE"]);
            let row = if event == "DELETE" { "OLD" } else { "NEW" };
            made.push(format!(
                "CREATE TRIGGER tr_k0 AFTER {event} ON k0 FOR EACH ROW INSERT INTO a0 (r1) VALUES (HEX({row}.id))"
            ));
        }
        if self.percent(30) {
            made.push("CREATE VIEW v0 AS SELECT * FROM k0".into());
        }
        made
    }
}
