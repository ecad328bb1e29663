//! Rows as a log's lines or messages have them and as the server has them: both as text that can be compared.

use std::collections::BTreeMap;

use binlogz_testkit::{Result, SandboxServer};
use serde_json::Value;

use super::Table;
use super::types::Class;

/// A row: the text of each column, `None` for NULL.
pub(super) type Cells = Vec<Option<String>>;

/// Tables, as the lines of a log make them.
#[derive(Default)]
pub(super) struct State(BTreeMap<(String, String), Made>);

/// A table so far.
#[derive(Default)]
pub(super) struct Made {
    /// Rows that were inserted, updated and deleted.
    pub(super) changes: [u64; 3],
    pub(super) rows: Vec<Cells>,
}

/// The columns of all tables.
const NAMES: [&str; 3] = ["id", "v", "w"];

impl State {
    pub(super) fn table(&self, database: &str, table: &str) -> Option<&Made> {
        self.0.get(&(database.to_owned(), table.to_owned()))
    }

    /// Takes a line.
    pub(super) fn take(&mut self, line: &Value) {
        let Some(change) = ["insert", "update", "delete"].iter().position(|change| line["type"] == *change)
        else {
            return;
        };
        let name = |field: &str| line[field].as_str().unwrap().to_owned();
        let made = self.0.entry((name("database"), name("table"))).or_default();
        made.changes[change] += 1;
        let image = |side: &str| -> Vec<Option<Option<String>>> {
            let cell = |(index, name): (usize, &&str)| {
                let image = &line[side];
                let value = image.get(*name).or_else(|| image.get(format!("@{}", index + 1)))?;
                Some(text(value))
            };
            NAMES.iter().enumerate().map(cell).collect()
        };
        let (before, after) = (image("before"), image("after"));
        let fits = |row: &Cells| {
            row.iter().zip(&before).all(|(cell, wanted)| wanted.as_ref().is_none_or(|wanted| wanted == cell))
        };
        if change == 0 {
            made.rows.push(after.into_iter().map(Option::flatten).collect());
            return;
        }
        // A row that isn't there: the comparison with the server tells.
        let Some(place) = made.rows.iter().position(fits) else { return };
        if change == 2 {
            made.rows.remove(place);
            return;
        }
        for (cell, after) in made.rows[place].iter_mut().zip(after) {
            if let Some(after) = after {
                *cell = after;
            }
        }
    }
}

/// A value of a line as text: bytes as `0x…`; `None`: NULL.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(text).collect::<Vec<_>>().join(",")),
        Value::Object(object) => match object.get("base64").and_then(Value::as_str) {
            Some(base64) => Some(hex(&from_base64(base64))),
            None => Some(value.to_string()),
        },
        other => Some(other.to_string()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02X}"))
}

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(digit).collect();
    let mut bytes = Vec::new();
    for group in digits.chunks(4) {
        let bits =
            group.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit)) << (6 * (4 - group.len()));
        // The 24 bits of a group, the highest first.
        bytes.extend([16, 8, 0].iter().take(group.len() - 1).map(|shift| (bits >> shift) as u8));
    }
    bytes
}

/// The rows of a table as the server has them, in the form of [`is_same`]. `knows`: the log tells character sets and signs;
/// `names`: it tells members.
pub(super) fn expected(
    server: &SandboxServer,
    database: &str,
    table: &Table,
    knows: bool,
    names: bool,
) -> Result<Vec<Cells>> {
    let v = match table.kind.class {
        Class::Integer { .. } | Class::Exact | Class::Clock => "CAST(v AS CHAR)".to_owned(),
        Class::Single | Class::Double => "IF(v = 0, CAST(v AS CHAR), CAST(v + 0e0 AS CHAR))".to_owned(),
        Class::Number => "v + 0".to_owned(),
        Class::Moment => "IF(v IS NULL, NULL, IFNULL(UNIX_TIMESTAMP(v), 0))".to_owned(),
        Class::Text if knows => "CONVERT(v USING utf8mb4)".to_owned(),
        Class::Enum | Class::Set if names => "CONVERT(v USING utf8mb4)".to_owned(),
        Class::Enum => "v + 0".to_owned(),
        Class::Set => "v | 0".to_owned(),
        Class::Text | Class::Bytes | Class::Padded(_) => "CAST(v AS BINARY)".to_owned(),
        Class::Json => "CAST(v AS CHAR CHARACTER SET utf8mb4)".to_owned(),
        Class::Geometry => "v".to_owned(),
        Class::Vector => "VECTOR_TO_STRING(v)".to_owned(),
    };
    let name = &table.name;
    let sql = format!(
        "SET time_zone = '+00:00', sql_mode = ''; SELECT HEX(id), HEX({v}), HEX(w) FROM (
             SELECT CAST(id AS CHAR) id, v, CAST(w AS CHAR) w FROM {database}.{name}
         ) t"
    );
    let sql = match table.kind.class {
        // HEX of a number is the number in hexadecimal digits.
        Class::Single | Class::Double | Class::Number | Class::Enum | Class::Set | Class::Moment
            if !v.starts_with("CONVERT") =>
        {
            sql.replace(&format!("HEX({v})"), &format!("HEX(CAST({v} AS CHAR))"))
        }
        _ => sql,
    };
    let is_bytes = matches!(table.kind.class, Class::Bytes | Class::Padded(_) | Class::Geometry)
        || (table.kind.class == Class::Text && !knows);
    let mut rows = Vec::new();
    for line in server.sql(&sql)?.lines() {
        let cells = line.split('\t').enumerate().map(|(index, cell)| match cell {
            "NULL" => None,
            digits if is_bytes && index == 1 => Some(format!("0x{digits}")),
            digits => {
                let bytes = (0..digits.len())
                    .step_by(2)
                    .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
                Some(String::from_utf8(bytes.collect()).unwrap())
            }
        });
        rows.push(cells.collect());
    }
    Ok(rows)
}

/// Whether rows are the same, in any order.
pub(super) fn is_same(found: &[Cells], expected: &[Cells], class: Class, knows: bool) -> bool {
    let mut left: Vec<&Cells> = expected.iter().collect();
    found.len() == expected.len()
        && found.iter().all(|row| {
            let place = left.iter().position(|other| {
                row[0] == other[0]
                    && row[2] == other[2]
                    && is_equal(row[1].as_deref(), other[1].as_deref(), class, knows)
            });
            place.map(|place| left.swap_remove(place)).is_some()
        })
}

fn is_equal(found: Option<&str>, expected: Option<&str>, class: Class, knows: bool) -> bool {
    let (Some(found), Some(expected)) = (found, expected) else { return found == expected };
    let bits = |text: &str| text.parse::<f64>().map(f64::to_bits).ok();
    match class {
        Class::Integer { bits, unsigned: true } if !knows => {
            let number: i128 = found.parse().unwrap();
            let number = if number < 0 { number + (1 << bits) } else { number };
            number.to_string() == expected
        }
        Class::Single => {
            found.parse::<f32>().map(|number| f64::from(number).to_bits()).ok() == bits(expected)
        }
        Class::Double => bits(found) == bits(expected),
        Class::Moment => {
            let trimmed = |text: &str| match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text.to_owned(),
            };
            trimmed(found) == trimmed(expected)
        }
        Class::Vector => {
            let numbers = |text: &str| {
                text.trim_matches(['[', ']'])
                    .split(',')
                    .map(|number| number.parse::<f32>().ok())
                    .collect::<Vec<_>>()
            };
            numbers(found) == numbers(expected)
        }
        // The empty value of an ENUM has no name.
        Class::Enum if found == "0" && expected.is_empty() => true,
        // Where the log tells no character set, what is UTF-8 is text, and zeros at the end of a BINARY aren't known.
        Class::Text | Class::Bytes | Class::Padded(_) if !knows => {
            let bytes = if is_hex(found) { found.to_owned() } else { hex(found.as_bytes()) };
            let is_padded = matches!(class, Class::Padded(_));
            let expected = if is_padded { without_zeros(expected) } else { expected };
            let bytes = if is_padded { without_zeros(&bytes) } else { &bytes };
            bytes == expected
        }
        Class::Integer { .. }
        | Class::Exact
        | Class::Number
        | Class::Clock
        | Class::Text
        | Class::Bytes
        | Class::Padded(_)
        | Class::Enum
        | Class::Set
        | Class::Json
        | Class::Geometry => found == expected,
    }
}

fn is_hex(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn without_zeros(hex: &str) -> &str {
    let mut hex = hex;
    while let Some(shorter) = hex.strip_suffix("00").filter(|shorter| shorter.len() % 2 == 0) {
        hex = shorter;
    }
    hex
}

/// How many rows of a table `stats` counted.
pub(super) fn counted(stats: &Value, database: &str, table: &str) -> [u64; 3] {
    let rows = stats["tables"].as_array().unwrap();
    let name = format!("{database}.{table}");
    let row = rows
        .iter()
        .find(|row| row["table"] == *name || (row["database"] == database && row["table"] == table));
    let Some(row) = row else { return [0; 3] };
    ["inserts", "updates", "deletes"].map(|field| row[field].as_u64().unwrap_or_else(|| panic!("{row}")))
}

/// The table of a message, and how many rows it has.
pub(super) fn message(format: &str, message: &Value) -> (String, u64) {
    match format {
        "debezium" => (
            message["source"]["table"].as_str().unwrap_or_default().to_owned(),
            u64::from(message.get("op").is_some()),
        ),
        "canal" => (
            message["table"].as_str().unwrap_or_default().to_owned(),
            message["data"].as_array().map_or(0, |rows| rows.len() as u64),
        ),
        _ => (message["table"].as_str().unwrap_or_default().to_owned(), 1),
    }
}
