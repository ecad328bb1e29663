//! Tables from a file of CREATE TABLE statements, as mysqldump --no-data and SHOW CREATE TABLE write them, or people: with
//! LIKE, and with ALTER TABLE and RENAME TABLE after them.
//!
//! Only facts that the log may lack are read: names, keys, which columns are generated or unsigned. So the statements are
//! walked as tokens; everything else in them is skipped, in the syntax of any version. A table whose columns aren't known
//! (CREATE TABLE … SELECT, an ALTER TABLE that is not understood) counts as absent.

use std::collections::HashMap;

use binlogz_binlog::row::TableSchema;

use crate::alter::AlterAction;
use crate::foreign_key::ForeignKey;
use crate::statement::DdlStatement;
use crate::table::{DefinedColumn, DefinedTable};
use crate::tokens::TokenReader;

/// The tables of a schema file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaFile {
    /// By table, each with its database where the file tells.
    tables: HashMap<String, Vec<(Option<String>, DefinedTable)>>,
}

/// Why a file is no schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFileError {
    /// The file can't be split into tokens.
    #[error("{0}")]
    Tokens(String),
    /// The file has no table.
    #[error("has no CREATE TABLE statement, expected those of mysqldump --no-data")]
    NoTables,
    /// A foreign key with a rule that isn't known.
    #[error(
        "foreign key {key} of {table}: what it does ON {event} isn't known, expected CASCADE, SET NULL, SET DEFAULT, RESTRICT or NO ACTION"
    )]
    UnknownRule {
        /// The key's name.
        key: String,
        /// The table that has it.
        table: String,
        /// DELETE or UPDATE.
        event: &'static str,
    },
    /// The file is too large to be a schema.
    #[error("has {0} bytes, expected CREATE TABLE statements without data")]
    TooLarge(u64),
}

impl SchemaFile {
    /// The most bytes of a schema file: tens of thousands of tables.
    pub const SIZE_MAX: u64 = 64 << 20;

    /// Reads CREATE TABLE statements; others are skipped.
    ///
    /// # Errors
    ///
    /// Text that is not SQL, or has no table; a foreign key with a rule that isn't known.
    pub fn parse(text: &str) -> Result<Self, SchemaFileError> {
        let tokens = TokenReader::of(text).map_err(|error| SchemaFileError::Tokens(error.to_string()));
        let mut reader = tokens?;
        let mut file = SchemaFile::default();
        let mut database = None;
        while reader.peek().is_some() {
            match DdlStatement::read(&mut reader) {
                DdlStatement::Use(name) => database = Some(name),
                statement => file.take(statement, database.as_deref()),
            }
        }
        if file.tables.is_empty() {
            return Err(SchemaFileError::NoTables);
        }
        let unknown = file.foreign_keys().find_map(|(_, table, key)| Some((table, key, key.unknown_rule()?)));
        match unknown {
            Some((table, key, event)) => {
                let [key, table] = [&*key.name, table].map(str::to_owned);
                Err(SchemaFileError::UnknownRule { key, table, event })
            }
            None => Ok(file),
        }
    }

    /// The tables of all of these files; a later one counts.
    pub fn of_all<'f>(files: impl IntoIterator<Item = &'f SchemaFile>) -> Self {
        let mut all = SchemaFile::default();
        for (name, tables) in files.into_iter().flat_map(|file| &file.tables) {
            all.tables.entry(name.clone()).or_default().extend(tables.iter().cloned());
        }
        all
    }

    fn take(&mut self, statement: DdlStatement, database: Option<&str>) {
        let own = |name: Option<String>| name.or_else(|| database.map(str::to_owned));
        match statement {
            DdlStatement::Create { table: (named, name), definition: Some(table), .. } => {
                self.put(own(named), DefinedTable { name, ..table });
            }
            DdlStatement::CreateLike { table: (named, name), of: (of, like), .. } => {
                let place = self.place(own(of).as_deref(), &like);
                let like = place.and_then(|(key, index)| self.tables.get(&key)?.get(index));
                if let Some(table) = like.map(|(_, table)| table.like(&name)) {
                    self.put(own(named), table);
                }
            }
            DdlStatement::Alter { table: (named, name), actions } => {
                let Some((place, table)) = self.remove(own(named).as_deref(), &name) else { return };
                let Some(actions) = actions else { return };
                let Some(altered) = table.altered(&actions) else { return };
                // Another table's rows, and columns perhaps.
                if actions.iter().any(|action| matches!(action, AlterAction::Exchange(..))) {
                    return;
                }
                let renamed = actions.into_iter().rev().find_map(|action| match action {
                    AlterAction::RenameTable(database, name) => Some((database, name)),
                    _ => None,
                });
                match renamed {
                    Some((database, name)) => {
                        self.put(database.or(place), DefinedTable { name, ..altered });
                    }
                    None => self.put(place, altered),
                }
            }
            DdlStatement::Rename(renames) => {
                for ((named, from), (to_database, to)) in renames {
                    if let Some((place, table)) = self.remove(own(named).as_deref(), &from) {
                        self.put(to_database.or(place), DefinedTable { name: to, ..table });
                    }
                }
            }
            // A dump drops a table before it makes it.
            DdlStatement::Drop(dropped) => {
                for (named, name) in dropped {
                    self.drop_all(own(named).as_deref(), &name);
                }
            }
            DdlStatement::DropDatabase(dropped) => {
                let is_other = |(own, _): &(Option<String>, DefinedTable)| own.as_ref() != Some(&dropped);
                self.tables.values_mut().for_each(|defined| defined.retain(is_other));
            }
            _ => {}
        }
    }

    /// Takes away all definitions of a table, earlier ones too.
    fn drop_all(&mut self, database: Option<&str>, table: &str) {
        let Some((place, _)) = self.remove(database, table) else { return };
        if let Some(defined) = self.tables.get_mut(&table.to_lowercase()) {
            defined.retain(|(own, _)| *own != place);
        }
    }

    pub(crate) fn put(&mut self, database: Option<String>, table: DefinedTable) {
        self.tables.entry(table.name.to_lowercase()).or_default().push((database, table));
    }

    fn remove(&mut self, database: Option<&str>, table: &str) -> Option<(Option<String>, DefinedTable)> {
        let (key, index) = self.place(database, table)?;
        let defined = self.tables.get_mut(&key).filter(|defined| index < defined.len())?;
        Some(defined.remove(index))
    }

    /// Where the newest definition of a table stands: in this database, else where the file names none.
    fn place(&self, database: Option<&str>, table: &str) -> Option<(String, usize)> {
        let key = table.to_lowercase();
        let defined = self.tables.get(&key)?;
        let index = defined.iter().rposition(|(own, _)| own.as_deref() == database);
        let index = index.or_else(|| defined.iter().rposition(|(own, _)| own.is_none()))?;
        Some((key, index))
    }

    /// Whether it has a table of a database, or tables without one's name.
    pub fn has_database(&self, database: &str) -> bool {
        let mut databases = self.tables.values().flatten().map(|(own, _)| own.as_deref());
        databases.any(|own| own.is_none_or(|own| own == database))
    }

    /// The columns of a table.
    pub fn columns_of(&self, database: &str, table: &str) -> Option<&[DefinedColumn]> {
        self.table(database.as_bytes(), table.as_bytes()).map(|table| &*table.columns)
    }

    /// The columns of its primary key, or of the first unique one.
    pub fn key_of(&self, database: &str, table: &str) -> Option<Vec<usize>> {
        self.table(database.as_bytes(), table.as_bytes())?.keys.first().cloned()
    }

    /// The foreign keys of all tables, each with its table's database, where the file tells, and name.
    pub fn foreign_keys(&self) -> impl Iterator<Item = (Option<&str>, &str, &ForeignKey)> {
        let tables = self.tables.values().flatten();
        tables.flat_map(|(database, table)| {
            table.foreign_keys.iter().map(|key| (database.as_deref(), &*table.name, key))
        })
    }

    /// The parent's columns of a foreign key whose child is in this database; none where the key names none and its parent, or the
    /// parent's primary key, isn't told here.
    pub fn referenced<'k>(&'k self, database: Option<&str>, key: &'k ForeignKey) -> &'k [String] {
        if !key.referenced.is_empty() {
            return &key.referenced;
        }
        let place = self.place(key.database.as_deref().or(database), &key.parent);
        let parent = place.and_then(|(name, index)| self.tables.get(&name)?.get(index));
        let primary = parent.and_then(|(_, table)| table.defined.iter().find(|key| key.is_primary));
        primary.map(|key| &*key.columns).unwrap_or_default()
    }

    /// The facts that a table's log lacks: its columns' names, and the columns of its primary key, or of the first unique one; `None`
    /// if the file doesn't have it, or has another structure of it.
    pub fn told(&self, schema: &TableSchema) -> Option<(Vec<String>, Vec<usize>)> {
        let table = self.table(&schema.database, &schema.table)?;
        if table.unfit(schema).is_some() {
            return None;
        }
        let names = table.columns.iter().map(|column| column.name.clone()).collect();
        Some((names, table.keys.first().cloned().unwrap_or_default()))
    }

    /// The name of a table's column, by its number.
    pub fn column(&self, database: &[u8], table: &[u8], index: usize) -> Option<Vec<u8>> {
        Some(self.table(database, table)?.columns.get(index)?.name.clone().into_bytes())
    }

    /// The table of this name: in this database, else where the file names none.
    pub fn table(&self, database: &[u8], table: &[u8]) -> Option<&DefinedTable> {
        let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name).into_owned());
        let found = self.tables.get(&table.to_lowercase())?;
        let here = found.iter().rev().find(|(own, _)| own.as_deref() == Some(&*database));
        here.or_else(|| found.iter().rev().find(|(own, _)| own.is_none())).map(|(_, table)| table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign_key::ReferentialRule;
    use crate::table::ColumnFacts;

    fn facts(column: &DefinedColumn) -> &ColumnFacts {
        column.facts.as_ref().unwrap()
    }

    const DUMP: &str = "
/*!40101 SET character_set_client = utf8mb4 */;
USE `shop`;
CREATE TABLE `orders` (
  `id` bigint unsigned NOT NULL AUTO_INCREMENT,
  `state` enum('as','b,c)') CHARACTER SET latin1 DEFAULT 'as' COMMENT 'UNSIGNED',
  `total` decimal(10,2) GENERATED ALWAYS AS ((`id` * 2)) STORED,
  `half` int AS (`id` / 2) VIRTUAL,
  `hidden` int DEFAULT NULL /*!80023 INVISIBLE */,
  PRIMARY KEY (`id`),
  UNIQUE KEY `f` ((`half` + 1)),
  UNIQUE KEY `s` (`state`(3),`hidden` DESC),
  KEY `k` (`total`),
  CONSTRAINT `fk` FOREIGN KEY (`hidden`) REFERENCES `other` (`id`),
  CONSTRAINT `c` CHECK ((`half` > 0))
) ENGINE=InnoDB /*!50100 PARTITION BY HASH (`id`) PARTITIONS 4 */;
INSERT INTO x VALUES (1);
CREATE TABLE `archive`.`orders` (a INT PRIMARY KEY, b VARCHAR(10) UNIQUE);
";

    #[test]
    fn a_dump_tells_names_keys_and_what_is_generated() {
        let file = SchemaFile::parse(DUMP).unwrap();
        let orders = file.table(b"shop", b"orders").unwrap();
        let names: Vec<_> = orders.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["id", "state", "total", "half", "hidden"]);
        let generated: Vec<_> = orders.columns.iter().map(|column| facts(column).is_generated).collect();
        assert_eq!(generated, [false, false, true, true, false]);
        let unsigned: Vec<_> = orders.columns.iter().map(|column| facts(column).is_unsigned).collect();
        assert_eq!(unsigned, [true, false, false, false, false]);
        assert_eq!(orders.keys, [vec![0], vec![1, 4]]);
        assert_eq!(file.table(b"archive", b"orders").unwrap().keys, [vec![0], vec![1]]);
        assert_eq!(file.table(b"other", b"orders"), None);
    }

    /// Keys as people write them.
    #[test]
    fn keys_are_told_however_they_are_written() {
        let file = SchemaFile::parse(include_str!("keys.sql")).unwrap();
        let keys = |table: &str| file.table(b"k", table.as_bytes()).map(|table| table.keys.clone());
        for table in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            assert_eq!(keys(table), Some(vec![vec![0]]), "{table}");
        }
        assert!(file.table(b"k", b"b").map(|table| facts(&table.columns[0])).unwrap().is_unsigned);
        // Its columns are those of a query.
        assert_eq!(keys("i"), None);
    }

    #[test]
    fn an_alter_in_the_file_changes_its_table() {
        let file = SchemaFile::parse(
            "USE shop; CREATE TABLE t (a INT, b INT, c INT UNSIGNED); CREATE TABLE u (a INT); CREATE TABLE v (a INT);
             CREATE TABLE w (a INT PRIMARY KEY); CREATE TABLE x (a INT);
             ALTER TABLE t ADD PRIMARY KEY (a), ADD UNIQUE KEY k (b), ENGINE=InnoDB, AUTO_INCREMENT = 7;
             ALTER TABLE shop.t ADD COLUMN (d INT, e INT), ADD f INT FIRST, ADD COLUMN g INT AFTER a, DROP COLUMN b;
             ALTER TABLE t MODIFY c BIGINT NOT NULL FIRST, CHANGE d dd INT UNSIGNED, RENAME COLUMN e TO ee, DROP KEY k,
                 ADD CONSTRAINT fk FOREIGN KEY (a) REFERENCES u (a), ADD INDEX (c);
             ALTER TABLE u RENAME TO uu; RENAME TABLE v TO vv;
             ALTER TABLE w DROP PRIMARY KEY, ALTER COLUMN a SET DEFAULT 3, COMMENT 'x', ALGORITHM=INPLACE;
             ALTER TABLE x EXCHANGE PARTITION p WITH TABLE y;",
        )
        .unwrap();
        let table = |name: &str| file.table(b"shop", name.as_bytes());
        let t = table("t").unwrap();
        let columns: Vec<_> = t
            .columns
            .iter()
            .map(|column| (&*column.name, &*facts(column).type_name, facts(column).is_unsigned))
            .collect();
        let expected = [
            ("c", "BIGINT", false),
            ("f", "INT", false),
            ("a", "INT", false),
            ("g", "INT", false),
            ("dd", "INT", true),
            ("ee", "INT", false),
        ];
        assert_eq!(columns, expected);
        assert_eq!(t.keys, [vec![2]]);
        assert_eq!(t.foreign_keys.len(), 1);
        assert!(table("u").is_none() && table("uu").is_some());
        assert!(table("v").is_none() && table("vv").is_some());
        assert_eq!(table("w").unwrap().keys, Vec::<Vec<usize>>::new());
        // It isn't known what it has now.
        assert!(table("x").is_none());
    }

    #[test]
    fn foreign_keys_are_told_with_their_rules() {
        let file = SchemaFile::parse(
            "USE `shop`; CREATE TABLE `line` (`a` int, `b` int, CONSTRAINT `one` FOREIGN KEY (`a`, `b`) REFERENCES `orders` \
             (`x`, `y`) ON DELETE CASCADE ON UPDATE SET NULL, foreign key i (b) references `old`.`orders` (`id`) on update \
             cascade, CONSTRAINT FOREIGN KEY (a) REFERENCES other (a) ON DELETE SET DEFAULT, KEY (a))",
        )
        .unwrap();
        let keys: Vec<_> = file.foreign_keys().collect();
        let [(Some("shop"), "line", one), (_, _, two), (_, _, three)] = keys[..] else {
            panic!("{keys:?}");
        };
        assert_eq!((&*one.name, &*one.parent, &one.database), ("one", "orders", &None));
        assert_eq!((&*one.columns.concat(), &*one.referenced.concat()), ("ab", "xy"));
        assert_eq!((one.on_delete, one.on_update), (ReferentialRule::Cascade, ReferentialRule::SetNull));
        assert_eq!((&*two.parent, two.database.as_deref()), ("orders", Some("old")));
        assert_eq!((two.on_delete, two.on_update), (ReferentialRule::Refuse, ReferentialRule::Cascade));
        assert_eq!((&*three.name, three.on_delete), ("without a name", ReferentialRule::Refuse));
    }

    #[test]
    fn foreign_keys_at_columns_and_those_of_the_parents_primary_key_are_told() {
        let file = SchemaFile::parse(
            "USE shop; CREATE TABLE orders (x INT, y INT, PRIMARY KEY (y, x)); CREATE TABLE line (a INT REFERENCES orders (x) ON \
             DELETE CASCADE, b INT CHECK (b > 1) NOT NULL REFERENCES old.orders MATCH FULL ON UPDATE SET NULL, c INT DEFAULT 1 \
             COMMENT 'REFERENCES orders (x)', d INT, `references` INT, FOREIGN KEY (c, d) REFERENCES orders ON DELETE CASCADE); \
             ALTER TABLE line ADD e INT REFERENCES orders (x) ON DELETE SET NULL, CHANGE d dd INT",
        )
        .unwrap();
        let keys: Vec<_> = file.foreign_keys().map(|(_, _, key)| key).collect();
        let [a, b, both, e] = keys[..] else { panic!("{keys:?}") };
        assert_eq!((&*a.name, &*a.columns.concat(), a.is_at_column), ("of the column a", "a", true));
        assert_eq!((&*a.referenced.concat(), a.on_delete), ("x", ReferentialRule::Cascade));
        assert_eq!(
            (b.database.as_deref(), &*b.parent, b.on_update),
            (Some("old"), "orders", ReferentialRule::SetNull)
        );
        // Its parent isn't told.
        assert_eq!(file.referenced(Some("shop"), b), [""; 0]);
        assert_eq!((&*both.columns.concat(), both.is_at_column), ("cdd", false));
        assert_eq!(file.referenced(Some("shop"), both), ["y", "x"]);
        assert_eq!(
            (&*e.columns.concat(), e.is_at_column, e.on_delete),
            ("e", true, ReferentialRule::SetNull)
        );
    }

    #[test]
    fn a_foreign_key_with_a_rule_that_is_not_known_is_an_error() {
        let with = |rule: &str| {
            SchemaFile::parse(&format!(
                "CREATE TABLE c (a INT, b TIMESTAMP, CONSTRAINT k FOREIGN KEY (a) REFERENCES p (a) {rule})"
            ))
        };
        for rule in ["", "ON DELETE NO ACTION ON UPDATE RESTRICT", "ON UPDATE SET DEFAULT ON DELETE CASCADE"]
        {
            assert!(with(rule).is_ok(), "{rule}");
        }
        let error = with("ON DELETE CASCADE ON UPDATE FOLLOW").unwrap_err().to_string();
        assert!(error.starts_with("foreign key k of c: what it does ON UPDATE isn't known"), "{error}");
        let stamped = "CREATE TABLE c (b TIMESTAMP REFERENCES p (b) ON UPDATE CURRENT_TIMESTAMP)";
        assert!(SchemaFile::parse(stamped).is_ok());
    }

    #[test]
    fn all_columns_to_which_a_foreign_key_can_refer_are_told() {
        let file = SchemaFile::parse(
            "CREATE TABLE p (a INT PRIMARY KEY, b INT UNIQUE, c INT, d INT, e INT, f INT, g INT, UNIQUE u (c), KEY k (d, e(3)),
             CONSTRAINT n CHECK (f > 0), FULLTEXT KEY t (f), INDEX x ((f + 1)), CONSTRAINT gk FOREIGN KEY (g) REFERENCES q (id))",
        );
        let file = file.unwrap();
        let columns: Vec<_> = file.table(b"", b"p").unwrap().columns_of_indexes().collect();
        assert_eq!(columns, ["a", "b", "c", "d", "e", "g"]);
    }

    #[test]
    fn a_table_that_the_file_drops_is_not_told() {
        let file = SchemaFile::parse(
            "USE shop; CREATE TABLE a (id INT); CREATE TABLE a (id INT, x INT); CREATE TABLE other.a (id INT); CREATE TABLE b (id INT);
             DROP TABLE IF EXISTS c; CREATE TABLE c (id INT); DROP TABLE a, other.none; CREATE TEMPORARY TABLE b (id INT);
             DROP TEMPORARY TABLE b; CREATE TABLE old.d (id INT); DROP DATABASE old",
        )
        .unwrap();
        let is_told = |database: &[u8], table: &[u8]| file.table(database, table).is_some();
        assert!(!is_told(b"shop", b"a") && is_told(b"other", b"a") && !is_told(b"old", b"d"));
        assert!(is_told(b"shop", b"b") && is_told(b"shop", b"c"));
    }

    #[test]
    fn a_file_without_tables_is_none() {
        assert_eq!(SchemaFile::parse("SELECT 1;").unwrap_err(), SchemaFileError::NoTables);
        assert!(SchemaFile::parse("CREATE TABLE t (a INT DEFAULT 'x").is_err());
    }
}
