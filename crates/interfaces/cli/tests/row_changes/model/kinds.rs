//! The types of the model's columns, with values for each: bounds, and what is hard to write again. A column's name says its kind:
//! `c7_12` is of the seventh.

use binlogz_testkit::random::Random;

/// A type of column.
pub(super) struct ColumnKind {
    pub(super) definition: &'static str,
    /// What its columns get, as SQL.
    literals: &'static [&'static str],
}

const fn kind(definition: &'static str, literals: &'static [&'static str]) -> ColumnKind {
    ColumnKind { definition, literals }
}

pub(super) const KINDS: [ColumnKind; 40] = [
    kind("INT", &["0", "1", "-1", "2147483647", "-2147483648", "7"]),
    kind("INT NOT NULL DEFAULT 5", &["0", "1", "-7", "100"]),
    kind("BIGINT UNSIGNED", &["0", "1", "18446744073709551615", "9223372036854775808"]),
    kind("BIGINT", &["0", "-9223372036854775808", "9223372036854775807"]),
    kind("TINYINT", &["-128", "127", "0", "1"]),
    kind("SMALLINT UNSIGNED", &["65535", "0", "32768"]),
    kind("MEDIUMINT", &["-8388608", "8388607", "0"]),
    kind("DECIMAL(10,2)", &["0", "0.01", "-99999999.99", "1.5"]),
    kind(
        "DECIMAL(65,30)",
        &["-1e-30", "99999999999999999999999999999999999.999999999999999999999999999999", "0"],
    ),
    kind("FLOAT", &["0", "-0e0", "1.5", "3.402823466e38", "1.17549e-38", "0.1", "16777216"]),
    kind("DOUBLE", &["0", "-0e0", "0.1", "1.7976931348623157e308", "5e-324", "123456789.123456789"]),
    kind("BIT(9)", &["0", "511", "256", "1"]),
    kind("BIT(64)", &["0", "18446744073709551615", "9223372036854775808"]),
    kind("YEAR", &["0", "1901", "2155"]),
    kind(
        "DATE",
        &["'0000-00-00'", "'1000-01-01'", "'9999-12-31'", "'2026-02-31'", "'2026-00-00'", "'2026-11-28'"],
    ),
    kind("TIME(3)", &["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:00.001'", "'12:34:56.789'"]),
    kind("TIME", &["'-838:59:59'", "'00:00:00'", "'23:59:59'"]),
    kind(
        "DATETIME(6)",
        &["'0000-00-00'", "'9999-12-31 23:59:59.999999'", "'1000-01-01'", "'2026-11-28 12:00:00.000001'"],
    ),
    kind("DATETIME NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", &["NOW()", "'2001-02-03'"]),
    kind(
        "TIMESTAMP NULL",
        &["'0000-00-00'", "FROM_UNIXTIME(1)", "FROM_UNIXTIME(2147483647)", "FROM_UNIXTIME(1792886400)"],
    ),
    kind(
        "TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)",
        &["FROM_UNIXTIME(1.000001)", "NOW(6)", "FROM_UNIXTIME(2147483647.999999)"],
    ),
    kind("ENUM('new','paid','it''s','Ünï')", &["'new'", "'paid'", "3", "4", "''"]),
    kind("SET('a','b','c,','d')", &["0", "15", "'a,b'", "8"]),
    kind(
        "SET('1','2','3','4','5','6','7','8','9','10','11','12','13','14','15','16','17','18','19','20','21','22','23','24','25','26',\
         '27','28','29','30','31','32','33','34','35','36','37','38','39','40','41','42','43','44','45','46','47','48','49','50','51',\
         '52','53','54','55','56','57','58','59','60','61','62','63','64')",
        &["9223372036854775808", "18446744073709551615", "1", "0"],
    ),
    kind("CHAR(10)", &["''", "'a'", "'a '", "'Ä'", "'日本'", "'it''s'"]),
    kind("VARCHAR(40)", &["''", "'a'", "'A'", "'a '", "'é😀'", "'\\\\'", "'a\\0b\\n\\Z'", "'''\"`--'"]),
    kind("VARCHAR(40) NOT NULL DEFAULT 'x'", &["''", "'plain'", "'1'", "'ß'"]),
    kind("VARCHAR(40) CHARACTER SET latin1", &["_latin1 X'80ff'", "'a'", "'é'", "''"]),
    kind("VARCHAR(40) CHARACTER SET gbk", &["_gbk X'c4e3bac3'", "'a\\\\b'", "_gbk X'815c'", "''"]),
    kind("VARCHAR(40) CHARACTER SET sjis", &["_sjis X'835c'", "'a\\\\'", "''"]),
    kind("VARCHAR(40) CHARACTER SET big5", &["_big5 X'a55c'", "'x'", "''"]),
    kind("VARCHAR(40) CHARACTER SET utf16", &["'a'", "'日本'", "'😀'", "''"]),
    kind("VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", &["'a'", "'A'", "'a '", "''"]),
    kind(
        "BINARY(16)",
        &["X''", "X'00112233445566778899aabbccddee00'", "X'ffffffffffffffffffffffffffffffff'", "X'20'"],
    ),
    kind("VARBINARY(300)", &["X''", "X'00'", "X'5c27'", "REPEAT(X'ff', 300)", "X'20'"]),
    kind("TEXT", &["''", "REPEAT('long ', 200)", "'\\r\\n;'", "'日本'"]),
    kind("BLOB", &["X''", "X'000102'", "REPEAT(X'80', 1000)"]),
    kind(
        "JSON",
        &[
            "'{\"a\": 1, \"list\": [1, 2, 3], \"name\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}'",
            "'null'",
            "'[]'",
            "'\"text\"'",
            "CAST(1.50 AS JSON)",
            "'{\"a\": {\"é\": \"it''s \\\\\\\\ \\\\n\"}}'",
        ],
    ),
    kind("GEOMETRY", &["ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(3 4)', 4326)"]),
    kind("POINT", &["POINT(0, 0)", "POINT(-1.5, 1e300)"]),
];

/// How many values the columns have that are keys or refer to keys.
const KEYS: usize = 15;

/// A value for a column, by its name: of a key and of a reference from a small range, so that rows meet.
pub(super) fn literal(random: &mut Random, column: &str) -> String {
    let kind = column.strip_prefix('c').and_then(|rest| rest.split('_').next()).and_then(|n| n.parse().ok());
    match kind.map(|index: usize| &KINDS[index]) {
        None => format!("'{}'", 1 + random.below(KEYS)),
        Some(kind) if random.below(6) == 0 && !kind.definition.contains("NOT NULL") => "NULL".into(),
        Some(kind) => kind.literals[random.below(kind.literals.len())].into(),
    }
}

/// The name and definition of a new column; `number` is its own.
pub(super) fn column(random: &mut Random, number: usize) -> (String, &'static str) {
    let kind = random.below(KINDS.len());
    (format!("c{kind}_{number}"), KINDS[kind].definition)
}

/// The definition of the kind that a column's name says.
pub(super) fn definition(column: &str) -> &'static str {
    let kind = column.trim_start_matches('c').split('_').next().and_then(|kind| kind.parse::<usize>().ok());
    kind.map_or("INT", |kind| KINDS[kind].definition)
}
