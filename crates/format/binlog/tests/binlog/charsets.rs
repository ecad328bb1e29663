//! Character sets decode as the real server converts them, and every collation names the right one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use binlogz_binlog::charset::Charset;
use binlogz_testkit::{MysqlSandbox, Tool, require_tool};
use encoding_rs::Encoding;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Multi-byte character sets: the web's encoding that has most of their characters.
const MULTI_BYTE: [(&str, &Encoding); 9] = [
    ("big5", encoding_rs::BIG5),
    ("cp932", encoding_rs::SHIFT_JIS),
    ("eucjpms", encoding_rs::EUC_JP),
    ("ujis", encoding_rs::EUC_JP),
    ("euckr", encoding_rs::EUC_KR),
    ("gb18030", encoding_rs::GB18030),
    ("gb2312", encoding_rs::GBK),
    ("gbk", encoding_rs::GBK),
    ("sjis", encoding_rs::SHIFT_JIS),
];

/// The server's character sets with a collation's number each.
fn charsets(server: &MysqlSandbox) -> Result<BTreeMap<String, Vec<u64>>> {
    let rows = server.sql("SELECT CHARACTER_SET_NAME, ID FROM information_schema.COLLATIONS")?;
    let mut charsets: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for row in rows.lines() {
        let (name, id) = row.split_once('\t').ok_or("two columns")?;
        charsets.entry(name.to_owned()).or_default().push(id.parse()?);
    }
    Ok(charsets)
}

/// Byte strings in a character set as the server converts them to UTF-8; unassigned ones left out.
fn converted(server: &MysqlSandbox, charset: &str, strings: &[Vec<u8>]) -> Result<BTreeMap<Vec<u8>, String>> {
    let mut sql = String::from("CREATE TEMPORARY TABLE test.strings (s VARBINARY(4));\n");
    for strings in strings.chunks(1000) {
        let literals: Vec<_> = strings.iter().map(|string| format!("(x'{}')", hex(string))).collect();
        writeln!(sql, "INSERT INTO test.strings VALUES {};", literals.join(","))?;
    }
    writeln!(
        sql,
        "SELECT HEX(s), HEX(CONVERT(CONVERT(s USING {charset}) USING utf8mb4)) FROM test.strings
         WHERE CONVERT(CONVERT(s USING {charset}) USING binary) = s;"
    )?;
    let rows = server.sql(&format!("CREATE DATABASE IF NOT EXISTS test; {sql}"))?;
    let mut converted = BTreeMap::new();
    for row in rows.lines() {
        let (string, text) = row.split_once('\t').ok_or("two columns")?;
        if text == "NULL" {
            continue;
        }
        let (string, text) = (from_hex(string), String::from_utf8(from_hex(text))?);
        if !text.contains('?') || string.contains(&b'?') {
            converted.insert(string, text);
        }
    }
    Ok(converted)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16).expect("hexadecimal")).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

#[test]
fn every_collation_names_its_character_set() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    for (name, ids) in charsets(&server)? {
        for id in ids {
            assert_eq!(Charset::of_collation(id).map(Charset::name), Some(name.as_str()), "{id}");
        }
    }
    Ok(())
}

#[test]
fn single_byte_charsets_agree_with_the_server() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let bytes: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let single_byte =
        server.sql("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS WHERE MAXLEN = 1")?;
    for name in single_byte.lines().filter(|name| *name != "binary") {
        let id = charsets(&server)?[name][0];
        let charset = Charset::of_collation(id).ok_or("a known collation")?;
        let converted = converted(&server, name, &bytes)?;
        assert!(converted.len() >= 100, "{name}: {}", converted.len());
        for string in &bytes {
            let ours = charset.decode(string).map(|text| text.into_owned());
            assert_eq!(ours.as_ref(), converted.get(string), "{name} {string:02x?}");
        }
    }
    Ok(())
}

/// Every code of one, two, three and four bytes in a multi-byte character set that the server converts to one character,
/// with that character. A code that it has no character for becomes a question mark and is left out, as are two
/// characters.
fn characters(server: &MysqlSandbox, charset: &str) -> Result<BTreeMap<u32, char>> {
    let (bytes, digits) =
        ("SELECT i FROM test.bytes WHERE i >= 128", "SELECT i FROM test.bytes WHERE i BETWEEN 48 AND 57");
    let all = "SELECT i FROM test.bytes";
    let mut kinds = vec![vec![bytes], vec![bytes, all]];
    match charset {
        // Of other bytes eucjpms makes nothing at all, so that two of them and a code look like one.
        "ujis" | "eucjpms" => kinds.push(vec!["SELECT 143 i", bytes, bytes]),
        "gb18030" => kinds.push(vec![bytes, digits, bytes, digits]),
        _ => {}
    }
    server.sql(
        "CREATE DATABASE IF NOT EXISTS test; DROP TABLE IF EXISTS test.bytes; CREATE TABLE test.bytes (i INT);
         INSERT INTO test.bytes WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 255) SELECT i FROM n",
    )?;
    let mut characters = BTreeMap::new();
    for kind in kinds {
        let names: Vec<String> = (0..kind.len()).map(|index| format!("t{index}.i")).collect();
        let tables: Vec<String> =
            kind.iter().enumerate().map(|(index, table)| format!("({table}) t{index}")).collect();
        let rows = server.sql(&format!(
            "SELECT HEX(s), HEX(u) FROM (
                 SELECT s, CONVERT(CONVERT(s USING {charset}) USING utf32) u FROM (
                     SELECT CHAR({} USING binary) s FROM {}
                 ) strings
             ) converted WHERE LENGTH(u) = 4 AND u <> CONVERT('?' USING utf32)",
            names.join(","),
            tables.join(",")
        ))?;
        for row in rows.lines() {
            let (string, text) = row.split_once('\t').ok_or("two columns")?;
            let character = char::from_u32(u32::from_str_radix(text, 16)?).ok_or("a character")?;
            characters.insert(u32::from_str_radix(string, 16)?, character);
        }
    }
    Ok(characters)
}

/// The bytes of a code, the first of which is never 0.
fn bytes_of(code: u32) -> Vec<u8> {
    (0..4).rev().map(|place| (code >> (8 * place)) as u8).skip_while(|byte| *byte == 0).collect()
}

/// Every code that [`characters`] asks for.
fn codes(charset: &str) -> Vec<u32> {
    let mut codes: Vec<u32> = (0x80..=0xff).chain(0x8000..=0xffff).collect();
    match charset {
        "ujis" | "eucjpms" => codes.extend((0x8f_8080..=0x8f_ffff).filter(|code| code & 0x8080 == 0x8080)),
        "gb18030" => codes.extend((0x80..=0xff).flat_map(|first| {
            (0x30..=0x39).flat_map(move |second| {
                (0x80..=0xff).flat_map(move |third| {
                    (0x30..=0x39).map(move |fourth| first << 24 | second << 16 | third << 8 | fourth)
                })
            })
        })),
        _ => {}
    }
    codes
}

/// A single character.
fn only(text: Option<Cow<'_, str>>) -> Option<char> {
    let text = text?;
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// Item 15 of issue 42. With `UPDATE_CHARSETS=1` it writes the tables again: scripts/make-charsets.sh.
#[test]
fn every_code_of_the_multi_byte_charsets_is_the_servers() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let ids = charsets(&server)?;
    let mut tables = String::from(differences::HEAD);
    let mut digests = String::new();
    for (name, web) in MULTI_BYTE {
        let collation = ids[name][0];
        let charset = Charset::of_collation(collation).ok_or("a known collation")?;
        let characters = characters(&server, name)?;
        assert!(characters.len() > 6500, "{name}: only {} characters", characters.len());
        differences::table(&mut tables, name, &codes(name), &characters, web)?;
        differences::digest(&mut digests, name, collation, &characters)?;
        if std::env::var_os("UPDATE_CHARSETS").is_some() {
            continue;
        }
        let mut differing = Vec::new();
        for code in codes(name) {
            let bytes = bytes_of(code);
            let ours = charset.decode(&bytes);
            let is_two_codes = ours.as_ref().is_some_and(|text| text.chars().count() > 1);
            let ours = only(ours);
            if ours.as_ref() != characters.get(&code) && !is_two_codes {
                differing.push(format!("{code:x}: {ours:?} for {:?}", characters.get(&code)));
            }
        }
        assert_eq!(differing, [""; 0], "{name}");
    }
    tables.push_str(&differences::digests(&digests));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/charset/differences.rs");
    if std::env::var_os("UPDATE_CHARSETS").is_some() {
        std::fs::write(path, tables)?;
    } else {
        assert_eq!(std::fs::read_to_string(path)?, tables, "run scripts/make-charsets.sh");
    }
    Ok(())
}

/// Writes `src/charset/differences.rs`.
mod differences {
    use super::*;

    pub(super) const HEAD: &str = "\
//! Codes that MySQL's East Asian character sets map differently from the web's encodings. Made by
//! `scripts/make-charsets.sh` from the answers of MySQL 9.7.4 to `SELECT HEX(CONVERT(CONVERT(x'8160' USING sjis) USING
//! utf32))` and so on, for every code. Don't edit.

use super::CodeRun;
";

    /// The runs of codes at which the server's character isn't the web's.
    pub(super) fn table(
        out: &mut String,
        name: &str,
        codes: &[u32],
        characters: &BTreeMap<u32, char>,
        web: &'static Encoding,
    ) -> Result<()> {
        let mut runs: Vec<(u32, u32, u32)> = Vec::new();
        for &code in codes {
            let bytes = bytes_of(code);
            let of_web = web.decode_without_bom_handling_and_without_replacement(&bytes);
            // Two codes, of which each is asked for alone; a code that the web doesn't know.
            let (is_none, of_web) = (of_web.is_none(), only(of_web));
            let character = characters.get(&code).copied();
            if of_web == character
                || bytes.len() == 1
                || (character.is_none() && (is_none || of_web.is_none()))
            {
                continue;
            }
            let character = character.map_or(0, u32::from);
            match runs.last_mut() {
                Some((first, last, begin))
                    if *last + 1 == code
                        && (character == 0 && *begin == 0
                            || *begin != 0 && character == *begin + (code - *first)) =>
                {
                    *last = code;
                }
                _ => runs.push((code, code, character)),
            }
        }
        write!(out, "\n#[rustfmt::skip]\npub(super) const {}: &[CodeRun] = &[", name.to_uppercase())?;
        for (index, (first, last, character)) in runs.iter().enumerate() {
            out.push_str(if index % 4 == 0 { "\n    " } else { " " });
            write!(out, "({first:#x}, {last:#x}, {character:#x}),")?;
        }
        out.push_str(if runs.is_empty() { "];\n" } else { "\n];\n" });
        Ok(())
    }

    /// A line of the digests.
    pub(super) fn digest(
        out: &mut String,
        name: &str,
        collation: u64,
        characters: &BTreeMap<u32, char>,
    ) -> Result<()> {
        let pairs: Vec<[u8; 4]> = characters
            .iter()
            .flat_map(|(code, character)| [code.to_le_bytes(), u32::from(*character).to_le_bytes()])
            .collect();
        let digest = binlogz_binlog::checksum::crc32(pairs.as_flattened());
        writeln!(out, "    (\"{name}\", {collation}, {}, {digest:#010x}),", characters.len())?;
        Ok(())
    }

    pub(super) fn digests(lines: &str) -> String {
        format!(
            "
/// For each character set: a collation, how many codes above 7f have a character, and the CRC-32 of all of them, each
/// code with its character as little-endian numbers of four bytes.
#[cfg(test)]
pub(super) const DIGESTS: &[(&str, u64, usize, u32)] = &[
{lines}];
"
        )
    }
}
