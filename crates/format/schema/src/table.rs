//! A table as a CREATE TABLE statement defines it: its columns and keys, with the facts of them that a log may lack.

use binlogz_binlog::row::{ColumnKind, ColumnSchema, TableSchema};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::column_default::ColumnDefault;
use crate::foreign_key::ForeignKey;
use crate::key::KeyDefinition;
use crate::tokens::{TokenReader, is_same_name};

/// A table as a statement defines it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinedTable {
    /// The table's name.
    pub name: String,
    /// All columns, in their order.
    pub columns: Vec<DefinedColumn>,
    /// The primary key, then the unique ones.
    pub keys: Vec<Vec<usize>>,
    /// The foreign keys, of which it is the child.
    pub foreign_keys: Vec<ForeignKey>,
    /// The keys as they are defined.
    pub(crate) defined: Vec<KeyDefinition>,
}

/// A column of a [`DefinedTable`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedColumn {
    /// Name of the column.
    pub name: String,
    /// `None`: only its name is known.
    pub facts: Option<ColumnFacts>,
}

/// The facts of a column that its definition has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFacts {
    /// The type's name, in capitals.
    pub type_name: String,
    /// The text in the parentheses after the type, such as `10,2`.
    pub parameters: String,
    /// Whether it is computed from others.
    pub is_generated: bool,
    /// Whether it is UNSIGNED.
    pub is_unsigned: bool,
    /// Members of an ENUM or SET column.
    pub members: Vec<String>,
    /// Whether its definition lets it be NULL. A key of the table may forbid that.
    pub is_nullable: bool,
    /// The character set of texts in small letters, where the definition names it; empty: not in words that we read.
    pub charset: Option<String>,
    /// The value in a row of an INSERT that doesn't name it.
    pub default: ColumnDefault,
}

impl ColumnFacts {
    /// Whether a column of the log can be this one.
    pub fn fits(&self, column: &ColumnSchema) -> bool {
        use ColumnKind as Kind;
        let expected: &[&str] = match column.kind {
            Kind::TinyInt { .. } => &["TINYINT", "INT1", "BOOL", "BOOLEAN"],
            Kind::SmallInt { .. } => &["SMALLINT", "INT2"],
            Kind::MediumInt { .. } => &["MEDIUMINT", "MIDDLEINT", "INT3"],
            Kind::Int { .. } => &["INT", "INTEGER", "INT4"],
            Kind::BigInt { .. } => &["BIGINT", "INT8", "SERIAL"],
            Kind::Decimal(_) => &["DECIMAL", "NUMERIC", "DEC", "FIXED"],
            // REAL with the SQL mode REAL_AS_FLOAT.
            Kind::Float => &["FLOAT", "FLOAT4", "REAL"],
            Kind::Double => &["DOUBLE", "REAL", "FLOAT", "FLOAT8"],
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
            Kind::Null
            | Kind::Char { .. }
            | Kind::Varchar { .. }
            | Kind::Blob { .. }
            | Kind::Geometry { .. }
            | Kind::TypedArray => return !NOT_STRINGS.contains(&self.type_name.as_str()),
        };
        expected.contains(&self.type_name.as_str())
    }
}

/// Whole numbers, from the smallest: of those in one line all names mean the same.
const WHOLE_NUMBERS: [&[&str]; 5] = [
    &["TINYINT", "INT1", "BOOL", "BOOLEAN"],
    &["SMALLINT", "INT2"],
    &["MEDIUMINT", "MIDDLEINT", "INT3"],
    &["INT", "INTEGER", "INT4"],
    &["BIGINT", "INT8"],
];
/// Texts of characters, whose length the server checks.
const TEXTS: [&str; 8] =
    ["CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"];

impl ColumnFacts {
    /// Whether a column can hold, as they are, all values of this one, or the server refuses those that don't fit.
    pub(crate) fn takes_values_of(&self, then: &ColumnFacts) -> bool {
        let size = |name: &str| WHOLE_NUMBERS.iter().position(|names| names.contains(&name));
        let has = |name: &str| TEXTS.contains(&name);
        match (size(&self.type_name), size(&then.type_name)) {
            (Some(now), Some(was)) => now >= was && self.is_unsigned == then.is_unsigned,
            (None, None) if has(&self.type_name) && has(&then.type_name) => true,
            (None, None) if matches!(&*self.type_name, "ENUM" | "SET") => {
                self.type_name == then.type_name
                    && !then.members.is_empty()
                    && self.members.starts_with(&then.members)
            }
            (None, None) => {
                self.type_name == then.type_name
                    && self.parameters == then.parameters
                    && self.is_unsigned == then.is_unsigned
            }
            _ => false,
        }
    }
}

/// Types with a character set, other than those of [`TEXTS`].
const OTHER_TEXTS: [&str; 9] =
    ["NCHAR", "NATIONAL", "NVARCHAR", "VARCHAR2", "LONG", "CLOB", "XMLTYPE", "ENUM", "SET"];

impl ColumnFacts {
    /// Whether its values are texts in a character set.
    pub(crate) fn is_text(&self) -> bool {
        [&TEXTS[..], &OTHER_TEXTS].iter().any(|names| names.contains(&&*self.type_name))
    }

    /// Whether both have the same values, each stored in the same way, as far as their definitions tell: `false` if they don't.
    pub(crate) fn has_values_of(&self, other: &ColumnFacts) -> bool {
        let whole =
            |facts: &ColumnFacts| WHOLE_NUMBERS.iter().position(|names| names.contains(&&*facts.type_name));
        // A whole number's parameter is a width that only clients heed.
        let is_type = match (whole(self), whole(other)) {
            (Some(one), Some(two)) => one == two,
            _ => self.type_name == other.type_name && self.parameters == other.parameters,
        };
        is_type
            && self.is_unsigned == other.is_unsigned
            && self.members == other.members
            && !self.is_generated
            && !other.is_generated
            && (!self.is_text() || self.charset == other.charset && self.charset.as_deref() != Some(""))
    }
}

/// The names of types whose values are neither strings nor geometries.
const NOT_STRINGS: [&str; 35] = [
    "TINYINT",
    "INT1",
    "BOOL",
    "BOOLEAN",
    "SMALLINT",
    "INT2",
    "MEDIUMINT",
    "MIDDLEINT",
    "INT3",
    "INT",
    "INTEGER",
    "INT4",
    "BIGINT",
    "INT8",
    "SERIAL",
    "DECIMAL",
    "NUMERIC",
    "DEC",
    "FIXED",
    "FLOAT",
    "FLOAT4",
    "FLOAT8",
    "DOUBLE",
    "REAL",
    "BIT",
    "YEAR",
    "DATE",
    "TIME",
    "DATETIME",
    "TIMESTAMP",
    "ENUM",
    "SET",
    "VECTOR",
    "JSON",
    "NUMBER",
];

/// The names of the others, MariaDB's among them.
const STRINGS: [&str; 34] = [
    "CHAR",
    "CHARACTER",
    "NCHAR",
    "NATIONAL",
    "VARCHAR",
    "VARCHARACTER",
    "NVARCHAR",
    "VARCHAR2",
    "LONG",
    "BINARY",
    "VARBINARY",
    "RAW",
    "TINYBLOB",
    "BLOB",
    "MEDIUMBLOB",
    "LONGBLOB",
    "TINYTEXT",
    "TEXT",
    "MEDIUMTEXT",
    "LONGTEXT",
    "CLOB",
    "UUID",
    "INET4",
    "INET6",
    "XMLTYPE",
    "GEOMETRY",
    "POINT",
    "LINESTRING",
    "POLYGON",
    "MULTIPOINT",
    "MULTILINESTRING",
    "MULTIPOLYGON",
    "GEOMETRYCOLLECTION",
    "GEOMCOLLECTION",
];

fn is_type(name: &str) -> bool {
    NOT_STRINGS.contains(&name) || STRINGS.contains(&name)
}

/// A column's definition in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnClause {
    pub(crate) column: DefinedColumn,
    /// The keys that it makes of the column alone.
    pub(crate) keys: Vec<KeyDefinition>,
    pub(crate) foreign_key: Option<ForeignKey>,
}

impl ColumnClause {
    /// `None`: no column's definition, or a type that we don't know.
    pub(crate) fn of(item: &[Token]) -> Option<ColumnClause> {
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
        let parameters = match rest.split_first() {
            Some((Token::LParen, inside)) => {
                inside.iter().take_while(|token| **token != Token::RParen).map(Token::to_string).collect()
            }
            _ => String::new(),
        };
        let has = |word: &str| words.iter().any(|other| other == word);
        let type_name = type_name.value.to_uppercase();
        if !is_type(&type_name) {
            return None;
        }
        let members = if matches!(&*type_name, "ENUM" | "SET") { members_in(rest) } else { Vec::new() };
        // SERIAL is BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE, SERIAL DEFAULT VALUE all of it but the type. KEY alone
        // is PRIMARY KEY.
        let is_serial = type_name == "SERIAL" || has("SERIAL");
        let is_unique = is_serial || has("UNIQUE");
        let is_primary = has("PRIMARY") || (has("KEY") && !has("UNIQUE"));
        let is_nullable = !(is_primary || is_serial || words.windows(2).any(|pair| pair == ["NOT", "NULL"]));
        let charset = charset_in(&words);
        let facts = ColumnFacts {
            // AS alone makes a column generated too.
            is_generated: has("AS"),
            is_unsigned: has("UNSIGNED") || has("ZEROFILL") || type_name == "SERIAL",
            type_name,
            parameters,
            members,
            is_nullable,
            charset,
            default: if is_serial { ColumnDefault::Unknown } else { ColumnDefault::in_definition(rest) },
        };
        let column = DefinedColumn { name: name.value.clone(), facts: Some(facts) };
        let key = |is_primary| KeyDefinition {
            is_primary,
            name: Some(name.value.clone()),
            columns: vec![name.value.clone()],
            index_columns: Vec::new(),
            is_of_expression: false,
        };
        let keys =
            [is_primary.then(|| key(true)), is_unique.then(|| key(false))].into_iter().flatten().collect();
        Some(ColumnClause { column, keys, foreign_key: ForeignKey::of_column(item) })
    }
}

/// The character set that the words of a definition name, as [`ColumnFacts::charset`].
fn charset_in(words: &[String]) -> Option<String> {
    let after = |place: usize| words.get(place).map_or(String::new(), |name| name.to_lowercase());
    let named = words.iter().enumerate().find_map(|(place, word)| match word.as_str() {
        "CHARSET" => Some(after(place + 1)),
        "CHARACTER" if words.get(place + 1).is_some_and(|next| next == "SET") => Some(after(place + 2)),
        "ASCII" | "UNICODE" | "BYTE" | "BINARY" => Some(String::new()),
        _ => None,
    });
    // A collation's name begins with that of its character set.
    let collation = words.iter().position(|word| word == "COLLATE").map(|place| after(place + 1));
    let of_collation = |name: String| name.split('_').next().unwrap_or_default().to_owned();
    named.or_else(|| collation.map(of_collation))
}

/// The members of an ENUM or SET in the parentheses after it, without the spaces at their ends, which the server takes off;
/// none if one is written in a way that we don't read.
fn members_in(rest: &[Token]) -> Vec<String> {
    let mut members = Vec::new();
    for token in rest.iter().skip(1).take_while(|token| **token != Token::RParen) {
        match token {
            Token::SingleQuotedString(member) | Token::DoubleQuotedString(member) => {
                members.push(member.trim_end_matches(' ').to_owned());
            }
            Token::Comma => {}
            _ => return Vec::new(),
        }
    }
    members
}

impl DefinedTable {
    /// The columns of all keys and indexes: those to which a foreign key can refer. A foreign key makes one of its own columns.
    pub fn columns_of_indexes(&self) -> impl Iterator<Item = &str> {
        let indexed = self.defined.iter().flat_map(|key| key.columns.iter().chain(&key.index_columns));
        indexed.chain(self.foreign_keys.iter().flat_map(|key| &key.columns)).map(String::as_str)
    }

    /// The columns and keys of a table after its name; `None`: it has none there, or more columns than those.
    pub(crate) fn of_create(reader: &mut TokenReader, name: &str) -> Option<DefinedTable> {
        if reader.peek() != Some(&Token::LParen) {
            return None;
        }
        let mut table = DefinedTable { name: name.to_owned(), ..DefinedTable::default() };
        while matches!(reader.peek(), Some(Token::LParen | Token::Comma)) {
            reader.next += 1;
            let item = reader.item();
            table.foreign_keys.extend(ForeignKey::of(&item));
            match KeyDefinition::of(&item) {
                Some(key) => table.defined.push(key),
                None => {
                    let clause = ColumnClause::of(&item)?;
                    table.columns.push(clause.column);
                    table.foreign_keys.extend(clause.foreign_key);
                    table.defined.extend(clause.keys);
                }
            }
        }
        table.find_keys();
        // The columns of a query come after them, or are them.
        let mut is_made_by_query = false;
        while let Some(token) = reader.peek().filter(|token| **token != Token::SemiColon) {
            is_made_by_query |= matches!(
                token,
                Token::Word(word) if word.quote_style.is_none()
                    && word.keyword == Keyword::SELECT
            );
            reader.next += 1;
        }
        (!table.columns.is_empty() && !is_made_by_query).then_some(table)
    }

    /// A table made LIKE it: foreign keys aren't copied.
    pub(crate) fn like(&self, name: &str) -> DefinedTable {
        DefinedTable { name: name.to_owned(), foreign_keys: Vec::new(), ..self.clone() }
    }

    /// Finds the columns of the keys that are defined.
    pub(crate) fn find_keys(&mut self) {
        self.defined.sort_by_key(|key| !key.is_primary);
        self.keys = self.defined.iter().filter_map(|key| self.key(key)).collect();
    }

    /// Takes another definition of the same columns: defaults that only that one tells. `false`: one of them contradicts.
    pub(crate) fn learn_defaults(&mut self, other: &DefinedTable) -> bool {
        let facts = self.columns.iter_mut().zip(&other.columns);
        let facts = facts.filter_map(|(own, other)| own.facts.as_mut().zip(other.facts.as_ref()));
        let mut agree = true;
        for (own, other) in facts {
            agree &= !own.default.contradicts(&other.default);
            if own.default == ColumnDefault::Unknown {
                own.default = other.default.clone();
            }
        }
        agree
    }

    /// Forgets defaults, all of them or those that aren't the same in any character set.
    pub(crate) fn forget_defaults(&mut self, is_meant: fn(&ColumnDefault) -> bool) {
        for facts in self.columns.iter_mut().filter_map(|column| column.facts.as_mut()) {
            if is_meant(&facts.default) {
                facts.default = ColumnDefault::Unknown;
            }
        }
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| is_same_name(&column.name, name))
    }

    /// The key as indexes of columns.
    fn key(&self, key: &KeyDefinition) -> Option<Vec<usize>> {
        let indexes: Option<Vec<usize>> = key.columns.iter().map(|name| self.position(name)).collect();
        indexes.filter(|indexes| !indexes.is_empty())
    }

    /// Whether one of its unique keys is of an expression: [`DefinedTable::keys`] doesn't have it.
    pub fn has_key_of_expression(&self) -> bool {
        self.defined.iter().any(|key| key.is_of_expression)
    }

    /// Why it is not the table that a log has; `None`: it can be.
    pub fn unfit(&self, schema: &TableSchema) -> Option<String> {
        let logged = schema.columns().len();
        let told = self.columns.len();
        if logged != told {
            return Some(format!("--schema doesn't fit: it has {told} columns, the log {logged}"));
        }
        for (column, told) in schema.columns().iter().zip(&self.columns) {
            if let Some(name) = column.name.as_deref()
                && !name.eq_ignore_ascii_case(told.name.as_bytes())
            {
                let name = String::from_utf8_lossy(name);
                return Some(format!(
                    "--schema doesn't fit: it has the column {}, the log {name}",
                    told.name
                ));
            }
            if let Some(facts) = told.facts.as_ref().filter(|facts| !facts.fits(column)) {
                let name = &told.name;
                let kind = column.kind;
                let is = &facts.type_name;
                return Some(format!("--schema doesn't fit: {name} is {is}, in the log it is {kind:?}"));
            }
        }
        None
    }
}
