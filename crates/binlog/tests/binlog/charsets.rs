//! Character sets decode as the real server converts them, and every collation names the right one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use binlogz_binlog::charset::Charset;
use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Multi-byte character sets, and in how many of their characters the web's table differs from the
/// server's (9.7.4, encoding_rs 0.8.44).
const MULTI_BYTE: [(&str, usize); 9] = [
    // Kana and symbols of ETEN, where the web has those of Hong Kong's supplement.
    ("big5", 267),
    ("cp932", 0),
    // Characters for users to define, which the web leaves out.
    ("eucjpms", 2083),
    ("ujis", 1888),
    ("euckr", 0),
    // Characters that were in no standard when the server's table was made.
    ("gb18030", 19),
    ("gb2312", 2),
    ("gbk", 0),
    // Wave dash, parallel, minus and the like.
    ("sjis", 7),
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

#[test]
fn multi_byte_charsets_agree_but_for_rare_characters() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let mut strings: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    strings.extend((0x80..=255).flat_map(|lead| (0x30..=255).map(move |trail| vec![lead, trail])));
    strings.extend((0xa1..=255).flat_map(|second| (0xa1..=255).map(move |third| vec![0x8f, second, third])));
    for (name, differences_max) in MULTI_BYTE {
        let charset = Charset::of_collation(charsets(&server)?[name][0]).ok_or("a known collation")?;
        let converted = converted(&server, name, &strings)?;
        let differing: Vec<String> = converted
            .iter()
            .filter_map(|(string, text)| {
                let ours = charset.decode(string).map(|text| text.into_owned());
                (ours.as_ref() != Some(text)).then(|| format!("{} {text} {ours:?}", hex(string)))
            })
            .collect();
        assert!(converted.len() > 7000, "{name}: only {} characters", converted.len());
        assert!(differing.len() <= differences_max, "{name}: {} differ: {differing:?}", differing.len());
    }
    Ok(())
}
