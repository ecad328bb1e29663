//! Strings of every type, length prefix and character set, vectors and geometries.

use binlogz_testkit::random::Random;

use super::{table, write_line};

/// Every character set of the server, with a text that it can hold.
const CHARSETS: [(&str, &str); 41] = [
    ("armscii8", "Հայ"),
    ("ascii", "plain"),
    ("big5", "中文"),
    ("binary", "bytes"),
    ("cp1250", "Žluť"),
    ("cp1251", "Привет"),
    ("cp1256", "سلام"),
    ("cp1257", "Ąžuolas"),
    ("cp850", "Größe"),
    ("cp852", "Žluť"),
    ("cp866", "Привет"),
    ("cp932", "日本①"),
    ("dec8", "Größe"),
    ("eucjpms", "日本①"),
    ("euckr", "한국"),
    ("gb18030", "中文😀"),
    ("gb2312", "中文"),
    ("gbk", "中文"),
    ("geostd8", "საქ"),
    ("greek", "Ελλάς"),
    ("hebrew", "שלום"),
    ("hp8", "Größe"),
    ("keybcs2", "Žluť"),
    ("koi8r", "Привет"),
    ("koi8u", "Їжак"),
    ("latin1", "Größe €"),
    ("latin2", "Žluť"),
    ("latin5", "Şişli"),
    ("latin7", "Ąžuolas"),
    ("macce", "Žluť"),
    ("macroman", "Größe"),
    ("sjis", "日本"),
    ("swe7", "Åäö"),
    ("tis620", "ไทย"),
    ("ucs2", "日本"),
    ("ujis", "日本"),
    ("utf16", "日😀"),
    ("utf16le", "日😀"),
    ("utf32", "日😀"),
    ("utf8mb3", "日本"),
    ("utf8mb4", "日😀"),
];

pub(super) fn statements(sql: &mut String, random: &mut Random) {
    lengths(sql, random);
    charsets(sql);
    vectors(sql, random);
    geometries(sql);
}

/// A random binary string as a literal.
fn bytes(random: &mut Random, length: usize) -> String {
    let digits: String = (0..length).map(|_| format!("{:02x}", random.bits() as u8)).collect();
    format!("x'{digits}'")
}

/// Each length at which a prefix grows or a CHAR's metadata changes.
fn lengths(sql: &mut String, random: &mut Random) {
    let every_byte: String = (0..=255u8).map(|byte| format!("{byte:02x}")).collect();
    let every_byte = format!("x'{every_byte}'");

    let sizes = [0, 1, 63, 64, 127, 128, 255];
    let columns: Vec<_> = sizes
        .iter()
        .flat_map(|size| [format!("BINARY({size})"), format!("CHAR({size}) CHARACTER SET utf8mb4")])
        .collect();
    let full = |text: &str| {
        sizes
            .iter()
            .flat_map(|&size| [format!("x'{}'", "5c".repeat(size)), format!("'{}'", text.repeat(size))])
            .collect()
    };
    let empty: Vec<_> = columns.iter().map(|_| "''".to_owned()).collect();
    table(sql, "chars", &columns, &[full("a"), full("é"), full("😀"), full("\\n"), empty]);

    let sizes = [0usize, 1, 254, 255, 256, 257, 1000, 16_000];
    let columns: Vec<_> = sizes.iter().map(|size| format!("VARBINARY({size})")).collect();
    let mut rows: Vec<Vec<String>> = vec![sizes.iter().map(|_| "''".to_owned()).collect()];
    rows.push(sizes.iter().map(|&size| bytes(random, size)).collect());
    rows.push(
        sizes
            .iter()
            .map(|&size| {
                let length = random.below(size + 1);
                bytes(random, length)
            })
            .collect(),
    );
    rows.push(sizes.iter().map(|&size| if size < 256 { "''".into() } else { every_byte.clone() }).collect());
    table(sql, "varbinaries", &columns, &rows);

    let columns =
        ["TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"]
            .map(str::to_owned);
    let texts = |text: String| columns.iter().map(|_| text.clone()).collect::<Vec<_>>();
    let rows = [
        texts("''".into()),
        texts("REPEAT('x', 255)".into()),
        ["255", "65535", "65536", "70000", "255", "65535", "65536", "70000"]
            .map(|length| format!("REPEAT('\\'', {length})"))
            .to_vec(),
        ["1", "256", "16777215", "16777216", "1", "256", "1000", "1000"]
            .map(|length| format!("REPEAT('y', {length})"))
            .to_vec(),
    ];
    table(sql, "blobs", &columns, &rows);
}

fn charsets(sql: &mut String) {
    let columns: Vec<_> =
        CHARSETS.iter().map(|(charset, _)| format!("VARCHAR(100) CHARACTER SET {charset}")).collect();
    let texts = CHARSETS.iter().map(|(_, text)| format!("'{text}'")).collect();
    let repeated = CHARSETS.iter().map(|(_, text)| format!("REPEAT('{text}', 10)")).collect();
    let empty = CHARSETS.iter().map(|_| "''".to_owned()).collect();
    table(sql, "charsets", &columns, &[texts, repeated, empty]);
    let columns: Vec<_> =
        CHARSETS.iter().map(|(charset, _)| format!("CHAR(20) CHARACTER SET {charset}")).collect();
    let texts = CHARSETS.iter().map(|(_, text)| format!("'{text}'")).collect();
    table(sql, "char_charsets", &columns, &[texts]);
    let columns: Vec<_> = CHARSETS
        .iter()
        .map(|(charset, text)| match *charset {
            // Members are characters.
            "binary" => "ENUM('bytes')".to_owned(),
            _ => format!("ENUM('{text}') CHARACTER SET {charset}"),
        })
        .collect();
    let first = CHARSETS.iter().map(|_| "1".to_owned()).collect();
    table(sql, "enum_charsets", &columns, &[first]);
}

fn vectors(sql: &mut String, random: &mut Random) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for text in ["[0]", "[-0]", "[1e38,-1e38]", "[1.2e-38]", "[0.1,123456.789]", "[999999.5,9.999995]"] {
        rows.push(vec![format!("TO_VECTOR('{text}')"); 2]);
    }
    for _ in 0..30 {
        let number = |random: &mut Random| {
            format!("{:e}", (random.bits() as i32 as f32) * 10f32.powi(random.below(14) as i32 - 6))
        };
        let numbers: Vec<_> = (0..1 + random.below(3)).map(|_| number(random)).collect();
        rows.push(vec![format!("TO_VECTOR('[{}]')", numbers.join(",")); 2]);
    }
    table(sql, "vectors", &["VECTOR(3)".into(), "VECTOR".into()], &rows);
}

fn geometries(sql: &mut String) {
    write_line(
        sql,
        "CREATE TABLE geometries (id INT, g GEOMETRY, p POINT NOT NULL SRID 4326, after_it INT)".into(),
    );
    write_line(
        sql,
        "INSERT INTO geometries VALUES (1, POINT(1, 2), ST_SRID(POINT(13, 55), 4326), 7), \
         (2, NULL, ST_SRID(POINT(0, 0), 4326), 8), \
         (3, ST_GeomFromText('LINESTRING(0 0, 5 5)'), ST_SRID(POINT(1, 1), 4326), NULL)"
            .into(),
    );
    write_line(sql, "UPDATE geometries SET after_it = 1".into());
}
