//! JSON: every type of a binary document, documents of both widths, updates that are logged as
//! differences.

use binlogz_testkit::random::Random;

use super::write_line;

const DOCUMENTS: usize = 60;
const UPDATES: usize = 200;

pub(super) fn statements(sql: &mut String, random: &mut Random) {
    scalars(sql);
    write_line(sql, "CREATE TABLE documents (id INT PRIMARY KEY AUTO_INCREMENT, j JSON)".into());
    for _ in 0..DOCUMENTS {
        let document = value(random, 0);
        write_line(sql, format!("INSERT INTO documents (j) VALUES ({})", literal(&document)));
    }
    // Above 64 KiB documents have wide offsets.
    for length in [65_500, 65_530, 65_536, 70_000, 300_000] {
        let array = format!("[1, -70000, {{\"k\": [true]}}, \"{}\", 2.5]", "w".repeat(length));
        write_line(sql, format!("INSERT INTO documents (j) VALUES ({})", literal(&array)));
    }
    let members: Vec<_> = (0..20_000).map(|n| format!("\"key{n}\": {n}")).collect();
    write_line(
        sql,
        format!("INSERT INTO documents (j) VALUES ({})", literal(&format!("{{{}}}", members.join(",")))),
    );
    partial_updates(sql, random);
}

fn scalars(sql: &mut String) {
    write_line(sql, "CREATE TABLE scalars (j JSON)".into());
    let numbers = [
        "0",
        "-1",
        "32767",
        "32768",
        "-32768",
        "-32769",
        "65535",
        "65536",
        "2147483647",
        "2147483648",
        "-2147483648",
        "-2147483649",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "1.5",
        "-0.0",
        "1e0",
        "1e15",
        "1e16",
        "1e-14",
        "1e-15",
        "1e-16",
        "1.2345678901234567e-10",
        "123456789012345680000",
        "1e308",
        "5e-324",
    ];
    for number in numbers {
        for text in [number.to_owned(), format!("[{number}, {{\"n\": {number}}}]")] {
            write_line(sql, format!("INSERT INTO scalars VALUES ({})", literal(&text)));
        }
    }
    for expression in [
        "CAST('2024-02-29' AS DATE)",
        "CAST('-838:59:59' AS TIME)",
        "CAST('-00:00:00.000001' AS TIME(6))",
        "CAST('9999-12-31 23:59:59.999999' AS DATETIME(6))",
        "TIMESTAMP('2024-02-29 01:02:03')",
        "CAST(-0.00 AS DECIMAL(5,2))",
        "CAST(-12345678901234567890123456789012345.123456789012345678901234567890 AS DECIMAL(65,30))",
        "CAST(0.000000001 AS DECIMAL(9,9))",
        "CAST(7 AS UNSIGNED)",
        "CAST(-7 AS SIGNED)",
        "x'00ff'",
        "b'1011'",
        "CAST('abc' AS BINARY(5))",
        "UNHEX(REPEAT('41', 56))",
        "UNHEX(REPEAT('41', 57))",
        "UNHEX(REPEAT('41', 58))",
        "UNHEX(REPEAT('41', 200))",
        "''",
        "'quote \" back \\\\ slash / \\b\\t\\n\\r\\Z é😀'",
        "CAST('2024' AS YEAR)",
        "TRUE",
        "NULL",
        "ST_GeomFromText('POINT(1 2)')",
    ] {
        write_line(
            sql,
            format!("INSERT INTO scalars VALUES (JSON_ARRAY({expression}, JSON_OBJECT('k', {expression})))"),
        );
        write_line(
            sql,
            format!("INSERT INTO scalars VALUES (JSON_EXTRACT(JSON_ARRAY({expression}), '$[0]'))"),
        );
    }
    for text in [
        "null",
        "true",
        "false",
        "\"\"",
        "\"\\u0000\\u0001\\u001f\\u007f\\u2028'\"",
        "[]",
        "{}",
        "{\"\": \"\"}",
    ] {
        write_line(sql, format!("INSERT INTO scalars VALUES ({})", literal(text)));
    }
    let deep = format!("{}1{}", "[".repeat(99), "]".repeat(99));
    write_line(sql, format!("INSERT INTO scalars VALUES ({})", literal(&deep)));
    // A missing value outside strict mode becomes no bytes at all.
    write_line(sql, "CREATE TABLE no_documents (id INT, j JSON NOT NULL)".into());
    write_line(sql, "INSERT IGNORE INTO no_documents (id) VALUES (1)".into());
}

/// Paths that the documents of `partial` have or may get.
const PATHS: [&str; 9] = [
    "$.a",
    "$.b",
    "$.b[0]",
    "$.b[2]",
    "$.\"c d\"",
    "$.\"c d\".e",
    "$.new",
    "$.\"quo\\\\\"te\\\\n\"",
    "$.b[20]",
];

fn partial_updates(sql: &mut String, random: &mut Random) {
    write_line(sql, "SET SESSION binlog_row_value_options = PARTIAL_JSON".into());
    write_line(
        sql,
        "CREATE TABLE partial (id INT PRIMARY KEY, n INT, j JSON, k JSON NOT NULL, t TEXT, l JSON)".into(),
    );
    let padding = "p".repeat(200);
    let document =
        format!("{{\"a\": 1, \"b\": [1, 2, 3], \"c d\": {{\"e\": null}}, \"padding\": \"{padding}\"}}");
    let document = literal(&document);
    write_line(
        sql,
        format!(
            "INSERT INTO partial VALUES (1, 0, {document}, {document}, 't', NULL), (2, 0, NULL, {document}, '', {document})"
        ),
    );
    for _ in 0..UPDATES {
        let mut assignments = Vec::new();
        for column in ["j", "k", "l"] {
            if random.below(3) > 0 {
                let mut expression = column.to_owned();
                for _ in 0..1 + random.below(3) {
                    expression = change(random, &expression);
                }
                assignments.push(format!("{column} = {expression}"));
            }
        }
        if random.below(4) == 0 {
            assignments.push("n = n + 1".into());
        }
        if !assignments.is_empty() {
            write_line(sql, format!("UPDATE partial SET {}", assignments.join(", ")));
        }
    }
    for image in ["MINIMAL", "NOBLOB"] {
        write_line(sql, format!("SET SESSION binlog_row_image = {image}"));
        write_line(sql, "UPDATE partial SET n = n + 1, k = JSON_SET(k, '$.last', n)".into());
        write_line(sql, "UPDATE partial SET l = JSON_REMOVE(l, '$.padding')".into());
    }
    write_line(sql, "SET SESSION binlog_row_image = FULL, binlog_row_value_options = ''".into());
}

fn change(random: &mut Random, document: &str) -> String {
    let path = |random: &mut Random| PATHS[random.below(PATHS.len())];
    match random.below(5) {
        0 => format!("JSON_REMOVE({document}, '{}')", path(random)),
        1 => format!("JSON_REPLACE({document}, '{}', {})", path(random), sql_value(random)),
        _ => format!("JSON_SET({document}, '{}', {})", path(random), sql_value(random)),
    }
}

/// A value as SQL has it, for the JSON functions.
fn sql_value(random: &mut Random) -> String {
    match random.below(10) {
        0 => "NULL".into(),
        1 => "TRUE".into(),
        2 => "CAST('12:34:56' AS TIME)".into(),
        3 => "1.50".into(),
        4 => format!("{}e0", random.below(1_000_000)),
        5 => "x'ff27'".into(),
        6 => format!("'it''s {}'", random.below(100)),
        7 => format!("CAST({} AS JSON)", literal(&value(random, 2))),
        _ => (random.bits() as i32).to_string(),
    }
}

/// A random JSON text.
fn value(random: &mut Random, depth: usize) -> String {
    let kinds = if depth < 5 { 10 } else { 7 };
    match random.below(kinds) {
        0 => "null".into(),
        1 => ["true", "false"][random.below(2)].into(),
        2 => (random.bits() as i64 >> random.below(60)).to_string(),
        3 => (random.bits() >> random.below(60)).to_string(),
        4 => match f64::from_bits(random.bits()) {
            number if number.is_finite() => format!("{number:e}"),
            _ => "0.5".into(),
        },
        5 => format!("{}.{}", random.below(1000), random.below(1000)),
        6 => format!("\"{}\"", text(random)),
        7 | 8 => {
            let elements: Vec<_> = (0..random.below(6)).map(|_| value(random, depth + 1)).collect();
            format!("[{}]", elements.join(","))
        }
        _ => {
            let members =
                (0..random.below(6)).map(|_| format!("\"{}\": {}", text(random), value(random, depth + 1)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
    }
}

/// The inside of a JSON string.
fn text(random: &mut Random) -> String {
    const PIECES: [&str; 12] =
        ["a", "key", "\\\"", "\\\\", "\\/", "\\n", "\\u0001", "é", "😀", "'", " ", "\\u001f"];
    (0..random.below(12)).map(|_| PIECES[random.below(PIECES.len())]).collect()
}

/// A text as an SQL literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
