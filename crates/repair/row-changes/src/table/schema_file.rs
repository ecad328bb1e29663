//! Tables from a file of CREATE TABLE statements, as mysqldump --no-data and SHOW CREATE TABLE write them, or people: with
//! LIKE, and with ALTER TABLE and RENAME TABLE after them (`alter.rs`).
//!
//! Only facts that the log may lack are read: names, keys, which columns are generated or unsigned. So the statements are
//! walked as tokens; everything else in them is skipped, in the syntax of any version. A table whose columns aren't known
//! (CREATE TABLE … SELECT, an ALTER TABLE that is not understood) counts as absent.

mod alter;

use std::collections::HashMap;

use binlogz_binlog::row::{ColumnKind, ColumnSchema, TableSchema};
use sqlparser::dialect::MySqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer, Word};

use super::foreign_key::ForeignKey;
use super::unfit;

/// The tables of a schema file.
#[derive(Debug, Default)]
pub struct SchemaFile {
    /// By table, each with its database where the file tells.
    tables: HashMap<String, Vec<(Option<String>, FileTable)>>,
}

/// Why a file is no schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFileError {
    /// It can't be split into tokens.
    #[error("{0}")]
    Tokens(String),
    /// It has no table.
    #[error("has no CREATE TABLE statement, expected those of mysqldump --no-data")]
    NoTables,
    /// It is too large to be one.
    #[error("has {0} bytes, expected CREATE TABLE statements without data")]
    TooLarge(u64),
}

/// A table as the file has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileTable {
    name: String,
    pub(super) columns: Vec<FileColumn>,
    /// The primary key, then the unique ones.
    pub(super) keys: Vec<Vec<usize>>,
    pub(super) foreign_keys: Vec<ForeignKey>,
    /// The keys as they are defined.
    defined: Vec<Key>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileColumn {
    pub(crate) name: String,
    /// In capitals.
    pub(crate) type_name: String,
    pub(crate) is_generated: bool,
    pub(super) is_unsigned: bool,
    /// Members of an ENUM or SET column.
    pub(super) members: Vec<String>,
}

/// A table, for programs that read logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedTable {
    /// All columns of the table.
    pub columns: Vec<DescribedColumn>,
    /// The columns of its primary key, or of the first unique one; empty if it has none.
    pub key: Vec<usize>,
}

/// A column of a [`DescribedTable`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedColumn {
    /// Name of the column.
    pub name: String,
    /// Whether it is UNSIGNED.
    pub is_unsigned: bool,
    /// Whether it is a binary string.
    pub is_binary: bool,
    /// The members of an ENUM or SET.
    pub members: Vec<String>,
}

impl FileColumn {
    /// Whether a column of the log can be this one.
    pub(super) fn fits(&self, column: &ColumnSchema) -> bool {
        use ColumnKind as Kind;
        let expected: &[&str] = match column.kind {
            Kind::TinyInt { .. } => &["TINYINT", "BOOL", "BOOLEAN"],
            Kind::SmallInt { .. } => &["SMALLINT"],
            Kind::MediumInt { .. } => &["MEDIUMINT"],
            Kind::Int { .. } => &["INT", "INTEGER"],
            Kind::BigInt { .. } => &["BIGINT", "SERIAL"],
            Kind::Decimal(_) => &["DECIMAL", "NUMERIC", "DEC", "FIXED"],
            Kind::Float => &["FLOAT"],
            Kind::Double => &["DOUBLE", "REAL", "FLOAT"],
            Kind::Bit { .. } => &["BIT"],
            Kind::Year => &["YEAR"],
            Kind::Date => &["DATE"],
            Kind::Time { .. } | Kind::OldTime => &["TIME"],
            Kind::DateTime { .. } | Kind::OldDateTime => &["DATETIME"],
            Kind::Timestamp { .. } | Kind::OldTimestamp => &["TIMESTAMP"],
            Kind::Enum { .. } => &["ENUM"],
            Kind::Set { .. } => &["SET"],
            Kind::Json { .. } => &["JSON"],
            Kind::Vector { .. } => &["VECTOR"],
            // The many names of strings and geometries: a name that is none of the above.
            _ => return !NOT_STRINGS.contains(&self.type_name.as_str()),
        };
        expected.contains(&self.type_name.as_str())
    }
}

const NOT_STRINGS: [&str; 18] = [
    "TINYINT",
    "SMALLINT",
    "MEDIUMINT",
    "INT",
    "BIGINT",
    "DECIMAL",
    "FLOAT",
    "DOUBLE",
    "BIT",
    "YEAR",
    "DATE",
    "TIME",
    "DATETIME",
    "TIMESTAMP",
    "ENUM",
    "SET",
    "JSON",
    "VECTOR",
];

impl SchemaFile {
    /// The most bytes of a schema file: tens of thousands of tables.
    pub const SIZE_MAX: u64 = 64 << 20;

    /// Reads CREATE TABLE statements; others are skipped.
    ///
    /// # Errors
    ///
    /// Text that is not SQL, or has no table.
    pub fn parse(text: &str) -> Result<Self, SchemaFileError> {
        let dialect = MySqlDialect {};
        let tokens = Tokenizer::new(&dialect, &without_version_comments(text)).tokenize();
        let tokens = tokens.map_err(|error| SchemaFileError::Tokens(error.to_string()))?;
        let tokens = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        let mut reader = Reader { tokens, next: 0 };
        let mut file = SchemaFile::default();
        let mut database = None;
        while reader.next < reader.tokens.len() {
            if reader.takes(Keyword::USE) {
                database = reader.name();
            } else if reader.takes_create_table() {
                file.create(&mut reader, database.as_deref());
            } else if reader.takes(Keyword::ALTER) {
                alter::alter(&mut file, &mut reader, database.as_deref());
            } else if reader.takes(Keyword::RENAME) {
                alter::rename(&mut file, &mut reader, database.as_deref());
            }
            reader.skip_statement();
        }
        if file.tables.is_empty() { Err(SchemaFileError::NoTables) } else { Ok(file) }
    }

    /// Takes a table after CREATE TABLE.
    fn create(&mut self, reader: &mut Reader, database: Option<&str>) {
        if reader.takes(Keyword::IF) {
            reader.takes(Keyword::NOT);
            reader.takes(Keyword::EXISTS);
        }
        let Some((own, name)) = reader.table_name() else { return };
        let own = own.or_else(|| database.map(str::to_owned));
        let in_parentheses = reader.peek() == Some(&Token::LParen);
        if in_parentheses
            && matches!(reader.peek_after(), Some(Token::Word(word)) if word.keyword == Keyword::LIKE)
        {
            reader.next += 1;
        }
        let table = if reader.takes(Keyword::LIKE) {
            let Some((of, like)) = reader.table_name() else { return };
            let of = of.or_else(|| database.map(str::to_owned));
            // Foreign keys aren't copied.
            self.place(of.as_deref(), &like)
                .and_then(|(key, index)| self.tables.get(&key)?.get(index))
                .map(|(_, table)| FileTable { name: name.clone(), foreign_keys: Vec::new(), ..table.clone() })
        } else {
            reader.create_table(&name)
        };
        if let Some(table) = table {
            self.tables.entry(name.to_lowercase()).or_default().push((own, table));
        }
    }

    /// Where the newest definition of a table stands: in this database, else where the file names none.
    fn place(&self, database: Option<&str>, table: &str) -> Option<(String, usize)> {
        let key = table.to_lowercase();
        let defined = self.tables.get(&key)?;
        let index = defined.iter().rposition(|(own, _)| own.as_deref() == database);
        let index = index.or_else(|| defined.iter().rposition(|(own, _)| own.is_none()))?;
        Some((key, index))
    }

    /// The columns of a table.
    pub(crate) fn columns_of(&self, database: &str, table: &str) -> Option<&[FileColumn]> {
        self.table(database.as_bytes(), table.as_bytes()).map(|table| &*table.columns)
    }

    /// The columns of its primary key, or of the first unique one.
    pub(crate) fn key_of(&self, database: &str, table: &str) -> Option<Vec<usize>> {
        self.table(database.as_bytes(), table.as_bytes())?.keys.first().cloned()
    }

    /// The foreign keys of all tables, each with its table's database, where the file tells, and name.
    pub(crate) fn foreign_keys(&self) -> impl Iterator<Item = (Option<&str>, &str, &ForeignKey)> {
        let tables = self.tables.values().flatten();
        tables.flat_map(|(database, table)| {
            table.foreign_keys.iter().map(|key| (database.as_deref(), &*table.name, key))
        })
    }

    /// The facts that a table's log lacks: its columns' names, and the columns of its primary key, or of the first unique one; `None`
    /// if the file doesn't have it, or has another structure of it.
    pub fn told(&self, schema: &TableSchema) -> Option<(Vec<String>, Vec<usize>)> {
        let table = self.table(&schema.database, &schema.table)?;
        if unfit(schema, table).is_some() {
            return None;
        }
        let names = table.columns.iter().map(|column| column.name.clone()).collect();
        Some((names, table.keys.first().cloned().unwrap_or_default()))
    }

    /// A table's columns, and its primary key or the first unique one; `None` if the file doesn't have the table.
    ///
    /// # Errors
    ///
    /// Another structure of the table: what differs.
    pub fn described(&self, schema: &TableSchema) -> Result<Option<DescribedTable>, String> {
        let Some(table) = self.table(&schema.database, &schema.table) else { return Ok(None) };
        if let Some(problem) = unfit(schema, table) {
            return Err(problem);
        }
        let described = |column: &FileColumn| DescribedColumn {
            name: column.name.clone(),
            is_unsigned: column.is_unsigned,
            is_binary: column.type_name.contains("BINARY") || column.type_name.contains("BLOB"),
            members: column.members.clone(),
        };
        let columns = table.columns.iter().map(described).collect();
        Ok(Some(DescribedTable { columns, key: table.keys.first().cloned().unwrap_or_default() }))
    }

    /// The name of a table's column, by its number.
    pub fn column(&self, database: &[u8], table: &[u8], index: usize) -> Option<Vec<u8>> {
        Some(self.table(database, table)?.columns.get(index)?.name.clone().into_bytes())
    }

    /// The table of this name: in this database, else where the file names none.
    pub(super) fn table(&self, database: &[u8], table: &[u8]) -> Option<&FileTable> {
        let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name).into_owned());
        let found = self.tables.get(&table.to_lowercase())?;
        let here = found.iter().rev().find(|(own, _)| own.as_deref() == Some(&*database));
        here.or_else(|| found.iter().rev().find(|(own, _)| own.is_none())).map(|(_, table)| table)
    }
}

/// Removes the marks of `/*!80023 … */`, so that the text inside counts, as it does for a server.
fn without_version_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*!") {
        plain.push_str(before);
        let comment = comment.trim_start_matches(|c: char| c.is_ascii_digit());
        let (inside, after) = comment.split_once("*/").unwrap_or((comment, ""));
        plain.push(' ');
        plain.push_str(inside);
        plain.push(' ');
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// Walks tokens.
struct Reader {
    tokens: Vec<Token>,
    next: usize,
}

impl Reader {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn is(&self, keyword: Keyword) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word.quote_style.is_none() && word.keyword == keyword)
    }

    fn takes(&mut self, keyword: Keyword) -> bool {
        let is = self.is(keyword);
        self.next += usize::from(is);
        is
    }

    fn takes_create_table(&mut self) -> bool {
        let is_create = self.takes(Keyword::CREATE);
        self.takes(Keyword::TEMPORARY);
        is_create && self.takes(Keyword::TABLE)
    }

    fn name(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        let name = word.value.clone();
        self.next += 1;
        Some(name)
    }

    fn skip_statement(&mut self) {
        while let Some(token) = self.peek() {
            let ends = *token == Token::SemiColon;
            self.next += 1;
            if ends {
                return;
            }
        }
    }

    /// The tokens of one item of a list in parentheses, without the comma or parenthesis that ends it.
    fn item(&mut self) -> Vec<Token> {
        let (mut depth, mut item) = (0_usize, Vec::new());
        while let Some(token) = self.peek() {
            match token {
                Token::LParen => depth += 1,
                Token::Comma | Token::RParen if depth == 0 => break,
                Token::RParen => depth -= 1,
                Token::SemiColon => break,
                _ => {}
            }
            item.push(token.clone());
            self.next += 1;
        }
        item
    }

    fn peek_after(&self) -> Option<&Token> {
        self.tokens.get(self.next + 1)
    }

    /// A table's name, with its database where it is named.
    fn table_name(&mut self) -> Option<(Option<String>, String)> {
        let mut name = self.name()?;
        let mut database = None;
        if self.peek() == Some(&Token::Period) {
            self.next += 1;
            database = Some(std::mem::replace(&mut name, self.name()?));
        }
        Some((database, name))
    }

    /// The columns and keys of a table after its name; `None`: it has none there, or more columns than those.
    fn create_table(&mut self, name: &str) -> Option<FileTable> {
        if self.peek() != Some(&Token::LParen) {
            return None;
        }
        let mut table = FileTable { name: name.to_owned(), ..FileTable::default() };
        while matches!(self.peek(), Some(Token::LParen | Token::Comma)) {
            self.next += 1;
            let item = self.item();
            table.foreign_keys.extend(ForeignKey::of(&item));
            match Key::of(&item) {
                Some(key) => table.defined.push(key),
                None => {
                    let place = table.columns.len();
                    table.take_column(&item, place);
                }
            }
        }
        table.find_keys();
        // The columns of a query come after them, or are them.
        let mut is_made_by_query = false;
        while let Some(token) = self.peek().filter(|token| **token != Token::SemiColon) {
            is_made_by_query |= matches!(
                token,
                Token::Word(word) if word.quote_style.is_none()
                    && word.keyword == Keyword::SELECT
            );
            self.next += 1;
        }
        (!table.columns.is_empty() && !is_made_by_query).then_some(table)
    }
}

/// A primary or unique key, or another definition that is no column.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    is_primary: bool,
    /// As ALTER TABLE … DROP INDEX calls it, where it is named.
    name: Option<String>,
    /// Empty: no key that tells rows apart.
    columns: Vec<String>,
}

impl Key {
    /// `None`: a column.
    fn of(item: &[Token]) -> Option<Key> {
        let keyword = |token: &Token| match token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
            _ => None,
        };
        let first = keyword(item.first()?)?;
        let words: Vec<String> =
            item.iter().take_while(|token| **token != Token::LParen).filter_map(keyword).collect();
        let has = |word: &str| words.iter().any(|other| other == word);
        let is_primary = has("PRIMARY");
        match first.as_str() {
            "PRIMARY" | "UNIQUE" | "CONSTRAINT" => {}
            "KEY" | "INDEX" | "FULLTEXT" | "SPATIAL" | "FOREIGN" | "CHECK" => {
                return Some(Key { is_primary: false, name: None, columns: Vec::new() });
            }
            _ => return None,
        }
        let columns = if is_primary || has("UNIQUE") { key_columns(item) } else { Vec::new() };
        Some(Key { is_primary, name: key_name(item), columns })
    }
}

/// The name of a key: the last word before its columns that is none of the syntax's.
fn key_name(item: &[Token]) -> Option<String> {
    let front = item.iter().take_while(|token| **token != Token::LParen);
    let names = front.filter_map(|token| match token {
        Token::Word(word) => Some(word),
        _ => None,
    });
    let syntax = ["CONSTRAINT", "PRIMARY", "UNIQUE", "KEY", "INDEX", "USING", "BTREE", "HASH"];
    let is_name = |word: &&Word| word.quote_style.is_some() || !syntax.contains(&&*word.value.to_uppercase());
    names.filter(is_name).last().map(|word| word.value.clone())
}

/// The columns of a key; none if one is an expression.
fn key_columns(item: &[Token]) -> Vec<String> {
    let (mut depth, mut columns) = (0_usize, Vec::new());
    let mut expects = false;
    for token in item {
        match token {
            Token::LParen => {
                if depth == 1 && expects {
                    return Vec::new();
                }
                depth += 1;
                expects = depth == 1;
            }
            Token::RParen => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            Token::Comma if depth == 1 => expects = true,
            Token::Word(word) if depth == 1 && expects => {
                columns.push(word.value.clone());
                expects = false;
            }
            _ => {}
        }
    }
    columns
}

impl FileTable {
    /// Takes a column's definition, to stand at `place`. `None`: it is none.
    fn take_column(&mut self, item: &[Token], place: usize) -> Option<()> {
        let [Token::Word(name), Token::Word(type_name), rest @ ..] = item else { return None };
        let mut depth = 0_usize;
        // Words at the column's own level: not those of an expression or a list of members.
        let mut words = Vec::new();
        for token in rest {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                Token::Word(word) if depth == 0 && word.quote_style.is_none() => {
                    words.push(word.value.to_uppercase())
                }
                _ => {}
            }
        }
        let has = |word: &str| words.iter().any(|other| other == word);
        let type_name = type_name.value.to_uppercase();
        let in_list = rest.iter().take_while(|token| **token != Token::RParen);
        let members = in_list.filter_map(|token| match token {
            Token::SingleQuotedString(member) => Some(member.clone()),
            _ => None,
        });
        let members = if matches!(&*type_name, "ENUM" | "SET") { members.collect() } else { Vec::new() };
        // SERIAL is BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE, SERIAL DEFAULT VALUE all of it but the type. KEY alone
        // is PRIMARY KEY.
        let is_serial = type_name == "SERIAL" || has("SERIAL");
        let is_unique = is_serial || has("UNIQUE");
        let is_primary = has("PRIMARY") || (has("KEY") && !has("UNIQUE"));
        if place > self.columns.len() {
            return None;
        }
        let column = FileColumn {
            name: name.value.clone(),
            // AS alone makes a column generated too.
            is_generated: has("AS"),
            is_unsigned: has("UNSIGNED") || has("ZEROFILL") || type_name == "SERIAL",
            type_name,
            members,
        };
        self.columns.insert(place, column);
        for is_primary in [is_primary.then_some(true), is_unique.then_some(false)].into_iter().flatten() {
            let key = Key { is_primary, name: Some(name.value.clone()), columns: vec![name.value.clone()] };
            self.defined.push(key);
        }
        Some(())
    }

    /// Finds the columns of the keys that are defined.
    fn find_keys(&mut self) {
        self.defined.sort_by_key(|key| !key.is_primary);
        self.keys = self.defined.iter().filter_map(|key| self.key(key)).collect();
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// The key as indexes of columns.
    fn key(&self, key: &Key) -> Option<Vec<usize>> {
        let indexes: Option<Vec<usize>> = key.columns.iter().map(|name| self.position(name)).collect();
        indexes.filter(|indexes| !indexes.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::foreign_key::ReferentialRule;
    use super::*;

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
        let generated: Vec<_> = orders.columns.iter().map(|column| column.is_generated).collect();
        assert_eq!(generated, [false, false, true, true, false]);
        let unsigned: Vec<_> = orders.columns.iter().map(|column| column.is_unsigned).collect();
        assert_eq!(unsigned, [true, false, false, false, false]);
        assert_eq!(orders.keys, [vec![0], vec![1, 4]]);
        assert_eq!(file.table(b"archive", b"orders").unwrap().keys, [vec![0], vec![1]]);
        assert_eq!(file.table(b"other", b"orders"), None);
    }

    /// Keys as people write them: shared/cases of issue 42.
    #[test]
    fn keys_are_told_however_they_are_written() {
        let file = SchemaFile::parse(include_str!("schema_file/keys.sql")).unwrap();
        let keys = |table: &str| file.table(b"k", table.as_bytes()).map(|table| table.keys.clone());
        for table in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            assert_eq!(keys(table), Some(vec![vec![0]]), "{table}");
        }
        assert!(file.table(b"k", b"b").unwrap().columns[0].is_unsigned);
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
        let columns: Vec<_> =
            t.columns.iter().map(|column| (&*column.name, &*column.type_name, column.is_unsigned)).collect();
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
    fn a_file_without_tables_is_none() {
        assert_eq!(SchemaFile::parse("SELECT 1;").unwrap_err(), SchemaFileError::NoTables);
        assert!(SchemaFile::parse("CREATE TABLE t (a INT DEFAULT 'x").is_err());
    }
}
