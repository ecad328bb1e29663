//! Column types with values at their bounds, for each server.

/// How the value of a column is asked of the server, and how it is compared with a line's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A whole number of this many bits, unsigned or not.
    Integer {
        bits: u32,
        unsigned: bool,
    },
    /// A number as text, the same to the letter.
    Exact,
    /// A FLOAT.
    Single,
    /// A DOUBLE.
    Double,
    /// A number in the line; the server is asked for `v + 0`.
    Number,
    /// As SQL writes it.
    Clock,
    /// Seconds since 1970.
    Moment,
    Text,
    Bytes,
    /// BINARY and the types that are stored like it, of this many bytes.
    Padded(usize),
    Enum,
    Set,
    Json,
    Geometry,
    Vector,
}

/// A column type.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) definition: String,
    pub(super) class: Class,
    /// Expressions of SQL.
    pub(super) values: Vec<String>,
    /// Whether it can be a part of a primary key as it is.
    pub(super) is_key: bool,
}

/// A server's flavour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    /// 5.6.
    Mysql56,
    /// 8.0.
    Mysql80,
    /// 9.7.
    Mysql97,
    /// 10.11 and 11.4.
    Mariadb,
}

fn kind(definition: &str, class: Class, values: &[&str]) -> Kind {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Kind { definition: definition.to_owned(), class, values, is_key: true }
}

fn no_key(definition: &str, class: Class, values: &[&str]) -> Kind {
    Kind { is_key: false, ..kind(definition, class, values) }
}

/// Every column type of a server.
pub(super) fn of(flavour: Flavour) -> Vec<Kind> {
    let mut kinds = numbers();
    kinds.extend(times());
    kinds.extend(strings());
    kinds.extend(texts());
    if matches!(flavour, Flavour::Mysql80 | Flavour::Mysql97) {
        let documents = [
            "'null'",
            "'[]'",
            "'{}'",
            "'2'",
            "'2.0'",
            "'-0.0'",
            "'\"Ä\"'",
            "JSON_OBJECT('a', CAST(1.50 AS DECIMAL(9,2)))",
            "JSON_ARRAY(CAST('2026-11-22' AS DATE), 18446744073709551615, -1, 1e300, true)",
            "CONCAT('[\"', REPEAT('y', 70000), '\"]')",
        ];
        kinds.push(no_key("JSON", Class::Json, &documents));
    }
    if flavour == Flavour::Mysql97 {
        let vectors = ["STRING_TO_VECTOR('[1,2.5,-3e38]')", "STRING_TO_VECTOR('[0]')"];
        kinds.push(no_key("VECTOR(3)", Class::Vector, &vectors));
    }
    if flavour == Flavour::Mariadb {
        kinds.push(no_key("JSON", Class::Text, &["'null'", "'{\"a\": 1.50}'"]));
        // They are logged as BINARY.
        let uuids = ["'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'"];
        kinds.push(kind("UUID", Class::Padded(16), &uuids));
        kinds.push(kind("INET6", Class::Padded(16), &["'2001:db8::1'", "'::'", "'::ffff:192.0.2.0'"]));
        kinds.push(kind("INET4", Class::Padded(4), &["'10.0.0.0'", "'0.0.0.0'", "'255.255.255.255'"]));
    }
    kinds
}

fn numbers() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (name, bits) in [("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)] {
        let (low, high) = (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
        let values = [low, low + 1, -1, 0, 1, high - 1, high].map(|value| value.to_string());
        let class = Class::Integer { bits, unsigned: false };
        kinds.push(Kind { values: values.to_vec(), ..kind(name, class, &[]) });
        let values = [0, 1, high, high + 1, (1 << bits) - 1].map(|value: i128| value.to_string());
        let class = Class::Integer { bits, unsigned: true };
        kinds.push(Kind { values: values.to_vec(), ..kind(&format!("{name} UNSIGNED"), class, &[]) });
    }
    for (digits, scale) in [(1, 0), (9, 9), (10, 2), (18, 9), (38, 10), (65, 0), (65, 30)] {
        let (whole, fraction) = ("9".repeat(digits - scale), "9".repeat(scale));
        let most = format!("{}.{fraction}", if whole.is_empty() { "0" } else { &whole });
        let most = most.trim_end_matches('.').to_owned();
        let least = if scale == 0 { "1".to_owned() } else { format!("0.{}1", "0".repeat(scale - 1)) };
        let values =
            vec![most.clone(), format!("-{most}"), "0".to_owned(), least.clone(), format!("-{least}")];
        kinds.push(Kind { values, ..kind(&format!("DECIMAL({digits},{scale})"), Class::Exact, &[]) });
    }
    kinds.push(kind("FLOAT", Class::Single, &["0", "-0e0", "1.5", "3.4e38", "-3.4e38", "1.2e-38", "0.1"]));
    let doubles = ["0", "-0e0", "0.1", "1.7e308", "-1.7e308", "2.3e-308", "1e15", "123456789012345678"];
    kinds.push(kind("DOUBLE", Class::Double, &doubles));
    for bits in [1, 7, 8, 9, 63, 64] {
        let values = ["0", "1"].map(str::to_owned).into_iter().chain([((1u128 << bits) - 1).to_string()]);
        kinds.push(Kind { values: values.collect(), ..kind(&format!("BIT({bits})"), Class::Number, &[]) });
    }
    kinds.push(kind("YEAR", Class::Number, &["0", "1901", "2026", "2155"]));
    kinds
}

fn times() -> Vec<Kind> {
    let mut kinds = vec![kind(
        "DATE",
        Class::Clock,
        &["'0000-00-00'", "'1000-01-01'", "'9999-12-31'", "'2026-11-00'", "'2024-02-29'"],
    )];
    for digits in 0..=6 {
        let fraction = if digits == 0 { String::new() } else { format!(".{}", &"123456"[..digits]) };
        let nines = if digits == 0 { String::new() } else { format!(".{}", "9".repeat(digits)) };
        let times = [
            "-838:59:59".to_owned(),
            format!("-00:00:01{fraction}"),
            "00:00:00".into(),
            format!("23:59:59{nines}"),
        ];
        let quoted = |values: &[String]| values.iter().map(|value| format!("'{value}'")).collect::<Vec<_>>();
        let precision = if digits == 0 { String::new() } else { format!("({digits})") };
        kinds.push(Kind { values: quoted(&times), ..kind(&format!("TIME{precision}"), Class::Clock, &[]) });
        let moments = [
            "0000-00-00 00:00:00".to_owned(),
            format!("1000-01-01 00:00:00{fraction}"),
            format!("9999-12-31 23:59:58{nines}"),
            "2026-00-00 12:00:00".into(),
        ];
        kinds.push(Kind {
            values: quoted(&moments),
            ..kind(&format!("DATETIME{precision}"), Class::Clock, &[])
        });
        let moments = [
            "0000-00-00 00:00:00".to_owned(),
            "1970-01-01 00:00:01".into(),
            format!("2026-11-22 01:02:03{fraction}"),
            format!("2038-01-19 03:14:06{nines}"),
        ];
        let definition = format!("TIMESTAMP{precision} NULL DEFAULT NULL");
        kinds.push(Kind { values: quoted(&moments), ..no_key(&definition, Class::Moment, &[]) });
    }
    kinds
}

fn strings() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (size, bytes) in [(1, 1), (16, 16), (255, 255)] {
        let values = ["''", "X'00'", "X'61'", "X'ff'"].map(str::to_owned).into_iter();
        let values = values.chain([
            format!("REPEAT(X'ff', {size})"),
            format!("CONCAT(REPEAT(X'41', {size} - 1), X'00')"),
            format!("CONCAT(X'00', REPEAT(X'42', {size} - 1))"),
        ]);
        // They differ as keys only if they differ in their column.
        let is_key = size > 1;
        let class = Class::Padded(bytes);
        kinds.push(Kind { values: values.collect(), is_key, ..kind(&format!("BINARY({size})"), class, &[]) });
    }
    let bytes = ["''", "X'00'", "X'6100'", "X'61'", "X'ff'", "'text'"];
    kinds.push(kind("VARBINARY(20)", Class::Bytes, &bytes));
    kinds.push(no_key("VARBINARY(300)", Class::Bytes, &[&bytes[..], &["REPEAT(X'00', 300)"]].concat()));
    for (name, most) in [("TINYBLOB", 255), ("BLOB", 65_535), ("MEDIUMBLOB", 70_000), ("LONGBLOB", 70_000)] {
        let most = format!("REPEAT(X'fe', {most})");
        kinds.push(no_key(name, Class::Bytes, &[&bytes[..], &[most.as_str(), "REPEAT('a', 300)"]].concat()));
    }
    let members =
        |count: usize| (1..=count).map(|number| format!("'m{number}'")).collect::<Vec<_>>().join(",");
    kinds.push(no_key(
        "ENUM('a','b,c','Ä','d''e')",
        Class::Enum,
        &["'a'", "'b,c'", "'Ä'", "'d''e'", "'no member'"],
    ));
    kinds.push(no_key(
        &format!("ENUM({})", members(300)),
        Class::Enum,
        &["'m1'", "'m255'", "'m256'", "'m300'"],
    ));
    for count in [1, 8, 9, 17, 25, 33, 63, 64] {
        let last = format!("'m{count}'");
        let all = (1..=count).map(|number| format!("m{number}")).collect::<Vec<_>>().join(",");
        let values = ["''".to_owned(), "'m1'".to_owned(), last, format!("'{all}'")];
        kinds.push(Kind {
            values: values.to_vec(),
            ..no_key(&format!("SET({})", members(count)), Class::Set, &[])
        });
    }
    let shapes = ["POINT(1, 2)", "LINESTRING(POINT(0, 0), POINT(1e300, -1))"];
    kinds.push(no_key("GEOMETRY", Class::Geometry, &shapes));
    kinds
}

/// Characters that a character set has.
const CHARSETS: [(&str, &str); 17] = [
    ("utf8mb4", "Ä😀日"),
    ("utf8", "Ä日"),
    ("latin1", "Ä€"),
    ("latin2", "Łé"),
    ("ascii", "plain"),
    ("cp1251", "Привет"),
    ("koi8r", "Привет"),
    ("cp850", "é"),
    ("ucs2", "Ä日"),
    ("utf16", "Ä😀"),
    ("utf32", "Ä😀"),
    ("big5", "日本"),
    ("gbk", "日本"),
    ("sjis", "日本ｱ"),
    ("ujis", "日本ｱ"),
    ("euckr", "한국"),
    ("cp932", "日本①"),
];

fn texts() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (charset, text) in CHARSETS {
        let values = ["''".to_owned(), format!("'{text}'"), "'a'".into(), "'a\\0b'".into()];
        for definition in ["CHAR(10)", "VARCHAR(30)", "VARCHAR(300)"] {
            let definition = format!("{definition} CHARACTER SET {charset}");
            kinds.push(Kind { values: values.to_vec(), ..no_key(&definition, Class::Text, &[]) });
        }
    }
    let values = ["'a'", "'b '", "'Straße'", "'x\\0'", "REPEAT('é', 100)"];
    kinds.push(kind("CHAR(120) CHARACTER SET utf8 COLLATE utf8_bin", Class::Text, &values));
    kinds.push(kind("VARCHAR(120) CHARACTER SET utf8 COLLATE utf8_bin", Class::Text, &values));
    for (name, most) in [("TINYTEXT", 127), ("TEXT", 32_000), ("MEDIUMTEXT", 70_000), ("LONGTEXT", 70_000)] {
        let values = ["''".to_owned(), "'a'".into(), "'é'".into(), format!("REPEAT('é', {most})")];
        let definition = format!("{name} CHARACTER SET utf8mb4");
        kinds.push(Kind { values: values.to_vec(), ..no_key(&definition, Class::Text, &[]) });
    }
    kinds
}
