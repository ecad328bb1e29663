//! A table in the text that mysqldump writes: its CREATE TABLE, where in the log it was read, and its rows.
//!
//! ```text
//! line that begins with             tells
//! USE `…`; or -- Host: … Database:  the database of what follows
//! SET @@GLOBAL.GTID_PURGED=         the transactions before it; may take several lines
//! [-- ]CHANGE … LOG_FILE=… LOG_POS= the place in the source's log
//! CREATE TABLE `…` (                the table, up to the line that ends with ;
//! INSERT INTO `…` […] VALUES        its rows, all in one line
//! SET NAMES, SET TIME_ZONE          how values are spelled
//! ```

use std::io::{self, BufRead, Read};

use binlogz_binlog::gtid::GtidSet;
use binlogz_schema::{DefinedColumn, ForeignKey, ReferentialRule, SchemaFile};

use super::PastError;
use super::session::logs_cascades;

/// The most bytes of a line: a row has at most 1 GiB, and its text twice that.
const LINE_SIZE_MAX: u64 = 4 << 30;

/// Where in the log a dump was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpPlace {
    /// The dump was made after these transactions, and no others.
    Gtids(GtidSet),
    /// The dump was made at this offset, in bytes, of the log of this name.
    Position(String, u64),
}

/// A table in a dump: its description, without its rows.
#[derive(Debug)]
pub struct DumpedTable {
    pub(super) database: String,
    pub(super) table: String,
    pub(super) place: DumpPlace,
    pub(super) create: String,
    pub(super) schema: SchemaFile,
    pub(super) names: Vec<String>,
    /// Places of the columns of a key.
    pub(super) key: Vec<usize>,
    /// Columns that hold values of their own.
    pub(super) stored: Vec<usize>,
    /// The server's version, as the dump has it; empty: it has none.
    version: String,
}

/// Takes a row: the places of its columns, its values as they are spelled.
pub(super) type TakeRow<'t> = dyn FnMut(&[usize], &[&[u8]]) -> Result<(), PastError> + 't;

/// Goes through a dump line by line.
struct Lines<R> {
    input: R,
    line: Vec<u8>,
    database: Option<String>,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R) -> Self {
        Lines { input, line: Vec::new(), database: None }
    }

    fn next(&mut self) -> Result<bool, PastError> {
        self.line.clear();
        let read = (&mut self.input).take(LINE_SIZE_MAX).read_until(b'\n', &mut self.line);
        if read.map_err(of_dump)? == 0 {
            return Ok(false);
        }
        if let Some(name) = self.after(b"USE `").and_then(quoted_name) {
            self.database = Some(name.0);
        } else if self.line.starts_with(b"-- Host: ") {
            let text = String::from_utf8_lossy(&self.line);
            let name = text.split("Database: ").nth(1).map(str::trim);
            self.database = name.filter(|name| !name.is_empty()).map(str::to_owned);
        }
        Ok(true)
    }

    /// The rest of a line that begins so.
    fn after(&self, begin: &[u8]) -> Option<&[u8]> {
        self.line.strip_prefix(begin)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.line).into_owned()
    }
}

fn of_dump(error: io::Error) -> PastError {
    PastError::Dump(error.to_string())
}

/// A name before its closing backtick, and what follows it.
fn quoted_name(bytes: &[u8]) -> Option<(String, &[u8])> {
    let mut name = Vec::new();
    let mut at = 0;
    loop {
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'`', Some(b'`')) => {
                name.push(b'`');
                at += 2;
            }
            (b'`', _) => return Some((String::from_utf8_lossy(&name).into_owned(), bytes.get(at + 1..)?)),
            (byte, _) => {
                name.push(*byte);
                at += 1;
            }
        }
    }
}

fn refused<T>(why: String) -> Result<T, PastError> {
    Err(PastError::Dump(why))
}

/// Whether a column holds times that a dump spells in a zone.
fn is_timestamp(column: &DefinedColumn) -> bool {
    column.facts.as_ref().is_some_and(|facts| facts.type_name == "TIMESTAMP")
}

/// Whether a column holds values of its own.
fn is_stored(column: &DefinedColumn) -> bool {
    column.facts.as_ref().is_some_and(|facts| !facts.is_generated)
}

/// The lines of a dump that tell of it and of one table, but for its rows.
#[derive(Default)]
struct DumpText {
    gtids: Option<GtidSet>,
    position: Option<(String, u64)>,
    /// The CREATE TABLE statement, with its `;`; empty: none was met.
    create: String,
    /// The first SET NAMES.
    charset: Option<String>,
    is_utc: bool,
    version: String,
}

impl DumpText {
    /// Reads a dump to its end.
    fn read(
        &mut self,
        mut lines: Lines<impl BufRead>,
        (database, table): (&str, &str),
    ) -> Result<(), PastError> {
        let mut is_first = true;
        while lines.next()? {
            if std::mem::take(&mut is_first) {
                check_uncompressed(&lines.line)?;
            }
            self.setting(&mut lines)?;
            let is_table = lines.after(b"CREATE TABLE `").and_then(quoted_name);
            if is_table.is_some_and(|(name, _)| name == table) && lines.database.as_deref() == Some(database)
            {
                self.create.clear();
                loop {
                    self.create.push_str(&lines.text());
                    if self.create.trim_end().ends_with(';') || !lines.next()? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes a line that tells of the whole dump. A set of GTIDs goes on in further lines.
    fn setting(&mut self, lines: &mut Lines<impl BufRead>) -> Result<(), PastError> {
        let text = if lines.line.len() < 4096 { lines.text() } else { String::new() };
        if text.contains("GTID_PURGED=") && !text.starts_with("--") {
            self.gtids = Some(gtid_set(lines)?);
        } else if text.contains("_LOG_FILE='") && text.contains("_LOG_POS=") {
            self.position = self.position.take().or(log_position(&text));
        } else if let Some(rest) = text.split("SET NAMES ").nth(1) {
            let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
            self.charset.get_or_insert(name);
        } else if let Some(text) = text.strip_prefix("-- Server version") {
            self.version = text.trim().to_owned();
        } else if text.contains("SET TIME_ZONE='+00:00'") {
            self.is_utc = true;
        }
        Ok(())
    }

    /// Where in the log the dump was made: by GTIDs, if it tells both.
    fn place(&mut self) -> Result<DumpPlace, PastError> {
        match (self.gtids.take(), self.position.take()) {
            (Some(gtids), _) => Ok(DumpPlace::Gtids(gtids)),
            (None, Some((log, offset))) => Ok(DumpPlace::Position(log, offset)),
            (None, None) => refused(
                "doesn't say where in the log it was made, expected GTID_PURGED, or the position that mysqldump \
                 --source-data writes"
                    .to_owned(),
            ),
        }
    }
}

/// Refuses a dump that begins as a compressed file.
fn check_uncompressed(line: &[u8]) -> Result<(), PastError> {
    let kind = match line.get(..2) {
        Some([0x1f, 0x8b]) => "gzip",
        Some([0x28, 0xb5]) => "zstd",
        _ => return Ok(()),
    };
    refused(format!("is compressed with {kind}, expected mysqldump's text"))
}

impl DumpedTable {
    /// Looks for a table in a dump.
    ///
    /// # Errors
    ///
    /// A dump without the table, without its place in the log, or that spells values otherwise.
    pub fn find(input: impl BufRead, (database, table): (&str, &str)) -> Result<Self, PastError> {
        let mut text = DumpText::default();
        text.read(Lines::new(input), (database, table))?;
        if text.create.is_empty() {
            return refused(format!("has no CREATE TABLE of {database}.{table}"));
        }
        let place = text.place()?;
        if text.charset.as_deref() != Some("utf8mb4") {
            return refused("isn't in utf8mb4, expected the line SET NAMES utf8mb4".to_owned());
        }
        let create = text.create.trim_end().trim_end_matches(';').to_owned();
        let schema = SchemaFile::parse(&format!("USE `{}`;\n{create};\n", database.replace('`', "``")))
            .map_err(|error| PastError::Dump(error.to_string()))?;
        let told = schema.columns_of(database, table).unwrap_or_default();
        if !text.is_utc && told.iter().any(is_timestamp) {
            let line = "has times of the server's zone, expected those of UTC (mysqldump --tz-utc)";
            return refused(line.to_owned());
        }
        let names: Vec<_> = told.iter().map(|column| column.name.clone()).collect();
        let stored: Vec<_> =
            told.iter().enumerate().filter(|(_, column)| is_stored(column)).map(|(place, _)| place).collect();
        let Some(key) = schema.key_of(database, table) else {
            return refused(format!(
                "{database}.{table} has no primary key, and no unique key: its rows can't be told apart"
            ));
        };
        let database = database.to_owned();
        let table = table.to_owned();
        let version = text.version;
        Ok(DumpedTable { database, table, place, create, schema, names, key, stored, version })
    }

    /// Foreign keys by which InnoDB changes rows of the table below the log, which servers before 9.6 don't write there.
    pub fn unlogged_cascades(&self) -> Vec<String> {
        if logs_cascades(&self.version) {
            return Vec::new();
        }
        let keys = self.schema.foreign_keys();
        let change = |key: &&ForeignKey| {
            (key.on_delete, key.on_update) != (ReferentialRule::Refuse, ReferentialRule::Refuse)
        };
        keys.map(|(_, _, key)| key).filter(change).map(|key| key.name.clone()).collect()
    }

    /// Calls back with each row: its values as the dump spells them, by the places of the columns.
    pub(super) fn rows(&self, input: impl BufRead, take: &mut TakeRow<'_>) -> Result<(), PastError> {
        let mut lines = Lines::new(input);
        while lines.next()? {
            let inserts =
                [&b"INSERT INTO `"[..], b"INSERT IGNORE INTO `", b"REPLACE INTO `", b"INSERT  IGNORE INTO `"];
            let Some((name, rest)) = inserts.iter().find_map(|begin| quoted_name(lines.after(begin)?)) else {
                continue;
            };
            if name != self.table || lines.database.as_deref() != Some(&*self.database) {
                continue;
            }
            let broken = || PastError::Dump(format!("an INSERT of {} can't be read", self.table));
            let (places, mut rest) = self.columns(rest).ok_or_else(broken)?;
            loop {
                rest = rest.trim_ascii_start();
                let (values, after) = tuple(rest).ok_or_else(broken)?;
                if values.len() != places.len() {
                    return Err(broken());
                }
                take(&places, &values)?;
                match after.split_first() {
                    Some((b',', after)) => rest = after,
                    Some((b';', _)) => break,
                    _ => return Err(broken()),
                }
            }
        }
        Ok(())
    }

    /// The columns of an INSERT, and what follows VALUES.
    fn columns<'b>(&self, rest: &'b [u8]) -> Option<(Vec<usize>, &'b [u8])> {
        let mut rest = rest.trim_ascii_start();
        let mut places = self.stored.clone();
        if let Some(mut list) = rest.strip_prefix(b"(") {
            places.clear();
            loop {
                let (name, after) = quoted_name(list.trim_ascii_start().strip_prefix(b"`")?)?;
                places.push(self.names.iter().position(|own| *own == name)?);
                let (end, after) = after.trim_ascii_start().split_first()?;
                list = after;
                if *end == b')' {
                    break;
                }
            }
            rest = list.trim_ascii_start();
        }
        Some((places, rest.strip_prefix(b"VALUES")?))
    }
}

/// The values of a row in parentheses, and what follows.
fn tuple(bytes: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let mut values = Vec::new();
    let mut start = 1;
    let mut at = 1;
    bytes.strip_prefix(b"(")?;
    let mut in_text = false;
    loop {
        match (bytes.get(at)?, in_text) {
            (b'\\', true) => at += 1,
            (b'\'', _) => in_text = !in_text,
            (b',' | b')', false) => {
                values.push(bytes.get(start..at)?.trim_ascii());
                start = at + 1;
                if bytes.get(at) == Some(&b')') {
                    return Some((values, bytes.get(at + 1..)?));
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// A value's bytes, without quotes and escapes. `None`: not a literal that is known, or NULL.
pub(super) fn literal(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_prefix(b"_binary ").unwrap_or(text);
    if let Some(hex) = text.strip_prefix(b"0x") {
        let pairs = hex.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        return pairs.collect();
    }
    let Some(inside) = text.strip_prefix(b"'").and_then(|text| text.strip_suffix(b"'")) else {
        let is_number = text.iter().all(|byte| byte.is_ascii_digit() || b"-.".contains(byte));
        return (is_number && !text.is_empty()).then(|| number(text));
    };
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => bytes.push(match rest.next()? {
                b'0' => 0,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'b' => 8,
                b'Z' => 26,
                other => *other,
            }),
            b'\'' => bytes.push(*rest.next()?),
            other => bytes.push(*other),
        }
    }
    Some(bytes)
}

/// A number without zeros before it, as ZEROFILL has them.
pub(super) fn number(text: &[u8]) -> Vec<u8> {
    let zeros = text.iter().take_while(|byte| **byte == b'0').count();
    let is_whole = text.iter().all(u8::is_ascii_digit);
    let from = if is_whole { zeros.min(text.len().saturating_sub(1)) } else { 0 };
    text.get(from..).unwrap_or_default().to_vec()
}

/// The set after GTID_PURGED, which ends with the statement.
fn gtid_set<R: BufRead>(lines: &mut Lines<R>) -> Result<GtidSet, PastError> {
    let mut text = lines.text();
    while !text.trim_end().trim_end_matches("*/").ends_with(';') && lines.next()? {
        text.push_str(&lines.text());
    }
    let set = text.split("GTID_PURGED=").nth(1).unwrap_or_default();
    // A plus between comment marks says that it is added to what the server has.
    let set = set.split('\'').rev().nth(1).unwrap_or_default();
    let set: String = set.chars().filter(|letter| !letter.is_whitespace()).collect();
    set.parse().map_err(|error| PastError::Dump(format!("GTID_PURGED: {error}")))
}

/// `…_LOG_FILE='binlog.000002', …_LOG_POS=157;`
fn log_position(text: &str) -> Option<(String, u64)> {
    let name = text.split("_LOG_FILE='").nth(1)?.split('\'').next()?;
    let offset: String = text.split("_LOG_POS=").nth(1)?.chars().take_while(char::is_ascii_digit).collect();
    Some((name.to_owned(), offset.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "-- MySQL dump\n-- Host: localhost    Database: shop\n/*!50503 SET NAMES utf8mb4 */;\n\
        SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:7';\n\
        CREATE TABLE `or``ders` (\n  `id` int NOT NULL,\n  `twice` int GENERATED ALWAYS AS (`id` * 2) VIRTUAL,\n  `t` text,\n  PRIMARY \
        KEY (`id`)\n) ENGINE=InnoDB;\nINSERT INTO `or``ders` (`id`, `t`) VALUES (1,'a,(\\'\\n)'),(-2,NULL);\nINSERT INTO `other` VALUES (3);\n";

    #[test]
    fn a_dump_tells_its_place_and_its_rows() {
        let table = DumpedTable::find(DUMP.as_bytes(), ("shop", "or`ders")).unwrap();
        let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,4e11fa47-71ca-11e1-9e33-c80aa9429562:7";
        assert_eq!(table.place, DumpPlace::Gtids(set.parse().unwrap()));
        assert_eq!((&*table.key, &*table.stored), (&[0][..], &[0, 2][..]));
        let mut rows = Vec::new();
        let mut take = |places: &[usize], values: &[&[u8]]| {
            assert_eq!(places, [0, 2]);
            rows.push((literal(values[0]), literal(values[1])));
            Ok(())
        };
        table.rows(DUMP.as_bytes(), &mut take).unwrap();
        let expected = [(Some(b"1".to_vec()), Some(b"a,('\n)".to_vec())), (Some(b"-2".to_vec()), None)];
        assert_eq!(rows, expected);
        for (from, to, line) in [
            ("or``ders", "others", "has no CREATE TABLE of shop.or`ders"),
            ("GTID_PURGED", "x", "doesn't say where in the log it was made"),
            ("utf8mb4", "latin1", "isn't in utf8mb4"),
            ("PRIMARY", "FULLTEXT", "has no primary key"),
            ("`t` text", "`t` timestamp", "has times of the server's zone"),
        ] {
            let other = DUMP.replace(from, to);
            let error = DumpedTable::find(other.as_bytes(), ("shop", "or`ders")).unwrap_err().to_string();
            assert!(error.contains(line), "{error}: {line}");
        }
        let position = "-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='b.000002', SOURCE_LOG_POS=157;";
        assert_eq!(log_position(position), Some(("b.000002".to_owned(), 157)));
    }

    #[test]
    fn literals_are_their_bytes() {
        for (text, bytes) in [
            ("007", &b"7"[..]),
            ("000", b"0"),
            ("-1.50", b"-1.50"),
            ("'00'", b"00"),
            ("'it''s\\0'", b"it's\0"),
            ("_binary 'a\\\\'", b"a\\"),
            ("0x00fF", b"\0\xff"),
        ] {
            assert_eq!(literal(text.as_bytes()).as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(literal(b"NULL"), None);
    }
}
