//! `--where` against a server's own WHERE: generated conditions choose the same rows, or are refused: of those that the server answers
//! at most a tenth, on more types 13 of a hundred. Every fourth one is asked of a log with MINIMAL metadata, whose names come from `--schema`.
//!
//! `SEED=N` begins at N, `BINLOGZ_CONDITIONS` says how many conditions there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use binlogz_testkit::random::Random;
use binlogz_testkit::{Result, Tool, require_tool};

use crate::common::Folder;
use crate::table_at::number;

/// Definition, and literals that its values are made of.
const COLUMNS: [(&str, &[&str]); 32] = [
    ("n INT", &["0", "1", "-1", "7", "12", "NULL"]),
    ("u BIGINT UNSIGNED", &["0", "1", "18446744073709551615", "9223372036854775807", "NULL"]),
    ("p DECIMAL(8,2)", &["0", "1.50", "-1.5", "12", "99999.99"]),
    ("f FLOAT", &["0", "0.1", "1.5", "-2", "1e20"]),
    ("g DOUBLE", &["0", "0.1", "1.5", "1e300", "-7"]),
    ("e ENUM('a','B','it''s')", &["'a'", "'b'", "'it''s'", "NULL"]),
    ("s SET('x','y','z')", &["''", "'x'", "'x,z'", "'x,y,z'"]),
    (
        "v VARCHAR(20)",
        &["'paid'", "'PAID'", "'pai_d'", "'José'", "'jose'", "''", "'12abc'", "'a '", "'日本'"],
    ),
    ("b VARCHAR(20) COLLATE utf8mb4_bin", &["'paid'", "'PAID'", "'José'", "'7'", "'50%'", "'a\\\\b'"]),
    ("dt DATETIME(3)", &["'2026-01-02 03:04:05.000'", "'2026-01-02 03:04:05.500'", "'2025-12-31 00:00:00'"]),
    ("dd DATE", &["'2026-01-02'", "'2025-12-31'", "NULL"]),
    ("t TIME", &["'10:00:00'", "'-10:00:00'", "'100:00:00'", "'00:00:00'"]),
    ("y YEAR", &["2026", "1999", "0"]),
    ("bits BIT(8)", &["0", "1", "7", "255"]),
    ("bb VARBINARY(8)", &["'paid'", "X'00ff'", "'7'"]),
    ("ti TINYINT", &["0", "1", "-128", "127", "NULL"]),
    ("si SMALLINT UNSIGNED", &["0", "1", "65535", "26"]),
    ("mi MEDIUMINT", &["0", "-8388608", "8388607", "7"]),
    ("bi BIGINT", &["0", "-1", "9223372036854775807", "-9223372036854775808", "NULL"]),
    ("pp DECIMAL(30,10)", &["0", "0.1", "12345678901234567890.0123456789", "-1.5", "NULL"]),
    ("c CHAR(12)", &["'paid'", "'Paid'", "'José'", "''", "'7'", "NULL"]),
    ("l VARCHAR(20) CHARACTER SET latin1", &["'paid'", "X'50414944'", "'José'", "'jose'", "'50%'"]),
    (
        "ge VARCHAR(20) COLLATE utf8mb4_general_ci",
        &["'paid'", "X'50414944'", "'José'", "'pai_d'", "'a '", "''", "NULL"],
    ),
    ("cs VARCHAR(20) COLLATE utf8mb4_0900_as_cs", &["'paid'", "'PAID'", "'José'", "'jose'", "'7'"]),
    ("tx TEXT", &["'paid'", "'PAID late'", "'José'", "'12abc'", "NULL"]),
    ("bl BLOB", &["'paid'", "X'00ff'", "'7'", "''", "NULL"]),
    ("fb BINARY(4)", &["'paid'", "X'00ff'", "'7'", "NULL"]),
    ("d0 DATETIME", &["'2026-01-02 03:04:05'", "'2026-01-02 00:00:00'", "'2025-12-31 23:59:59'", "NULL"]),
    (
        "ts TIMESTAMP NULL",
        &["'2026-01-02 03:04:05'", "'2026-01-02 00:00:00'", "'2025-12-31 23:59:59'", "NULL"],
    ),
    ("t6 TIMESTAMP(6) NULL", &["'2026-01-02 03:04:05.000000'", "'2026-01-02 03:04:05.500001'", "NULL"]),
    ("t3 TIME(3)", &["'10:00:00.000'", "'-10:00:00.500'", "'00:00:00.250'", "NULL"]),
    ("el ENUM('new','paid','lost') CHARACTER SET latin1", &["'new'", "'paid'", "'lost'", "NULL"]),
];
/// Columns of conditions.
type Columns = &'static [(&'static str, &'static [&'static str])];

/// The first of them, of the types that tables usually have, and of [`MENDED`].
const USUAL_COLUMNS: usize = 15;
const USUAL_MENDED: usize = 6;
/// With fewer conditions their share of refused ones is that of a sample.
const SAMPLE_MAX: usize = 5_000;
/// Literals in conditions, in addition to the columns' own values.
const LITERALS: [&str; 16] = [
    "0",
    "1",
    "2",
    "7",
    "1.5",
    "0.1",
    "1e0",
    "'a'",
    "'b'",
    "'x,z'",
    "\"paid\"",
    "'2026-01-02'",
    "'2026-01-02 03:04:05'",
    "'10:00:00'",
    "26",
    "X'37'",
];
const PATTERNS: [&str; 10] = [
    "'p%'",
    "'%AI%'",
    "'pai\\_d'",
    "'_aid'",
    "'jose'",
    "'50\\%'",
    "'%'",
    "'a\\\\\\\\%'",
    "'50|%' ESCAPE '|'",
    "'pai__' ESCAPE ''",
];

/// Conditions that chose other rows once.
const MENDED: [&str; 10] = [
    "t < 0.1",
    "t <=> 0.1 AND p <> 12",
    "v NOT BETWEEN 'b' AND n",
    "s NOT BETWEEN 'x' AND n",
    "y NOT BETWEEN 1999 AND f",
    "y BETWEEN f AND 26",
    "l NOT IN (bb, 'paid')",
    "v IN (b, 'paid')",
    "v = X'50414944'",
    "cs = tx",
];

fn pick<'t>(random: &mut Random, texts: &[&'t str]) -> &'t str {
    texts[random.below(texts.len())]
}

fn name(columns: Columns, column: usize) -> &'static str {
    columns[column].0.split_once(' ').unwrap().0
}

fn literal(random: &mut Random, columns: Columns, column: usize) -> String {
    match random.below(4) {
        0 => pick(random, &LITERALS).to_owned(),
        1 if random.below(8) == 0 => format!("-{}", random.below(10)),
        _ => pick(random, columns[column].1).to_owned(),
    }
}

/// A condition without AND and OR.
fn simple(random: &mut Random, columns: Columns) -> String {
    let column = random.below(columns.len());
    let own = name(columns, column);
    let operand = match random.below(12) {
        0 => name(columns, random.below(columns.len())).to_owned(),
        _ => literal(random, columns, column),
    };
    let not = pick(random, &["", "NOT "]);
    match random.below(14) {
        0..=6 => format!("{own} {} {operand}", pick(random, &["=", "<>", "!=", "<", "<=", ">", ">=", "<=>"])),
        7 => format!("{operand} = {own}"),
        8 => format!("{own} {not}IN ({operand}, {})", literal(random, columns, column)),
        9 => format!("{own} {not}BETWEEN {} AND {operand}", literal(random, columns, column)),
        10 => format!("{own} {not}LIKE {}", pick(random, &PATTERNS)),
        11 => format!("{own} IS {not}NULL"),
        12 => own.to_owned(),
        _ => format!(
            "({}) IS {}",
            simple(random, columns),
            pick(random, &["TRUE", "FALSE", "NOT TRUE", "NOT FALSE"])
        ),
    }
}

fn condition(random: &mut Random, columns: Columns, depth: usize) -> String {
    if depth == 0 {
        return simple(random, columns);
    }
    let one = condition(random, columns, depth - 1);
    let other_depth = random.below(depth);
    let other = condition(random, columns, other_depth);
    match random.below(14) {
        0..=2 => format!("{one} AND {other}"),
        3..=5 => format!("{one} OR {other}"),
        6 => format!("NOT {one}"),
        7 => format!("NOT ({one})"),
        8 => format!("({one}) AND ({other})"),
        9 => format!("({one}) XOR ({other})"),
        10 => format!("{one} XOR {other}"),
        11 => format!("{one} {} {other}", pick(random, &["&&", "||"])),
        12 => format!("{one} = {other}"),
        _ => format!("!({one})"),
    }
}

/// Why a condition is refused, without what it is about.
fn reason(told: &str) -> String {
    let line = told.trim_end().trim_end_matches("; a server might choose other rows");
    let known = [
        "whether letters",
        "whether spaces",
        "the order of these",
        "expected a date",
        "clocks show",
        "the names of its",
        "a year of",
        "JSON documents",
        "a hexadecimal",
        "the list has",
        "two columns",
        "columns of these",
        "the bounds",
        "a number of many",
        "LIKE is not",
    ];
    let begin = known.iter().find_map(|known| line.rfind(known)).unwrap_or(0);
    line.get(begin..).unwrap_or(line).to_owned()
}

#[test]
fn conditions_choose_what_a_server_chooses_or_are_refused() -> Result<()> {
    compare_conditions(&COLUMNS[..USUAL_COLUMNS], &MENDED[..USUAL_MENDED], 0.1)
}

#[test]
fn conditions_on_more_types_choose_what_a_server_chooses_or_are_refused() -> Result<()> {
    compare_conditions(&COLUMNS, &MENDED, 0.13)
}

/// Compares conditions on these columns, and on a table of the same without names in the log. At most this share is refused of what a
/// server answers.
fn compare_conditions(columns: Columns, mended: &[&str], refused_max: f64) -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let options = [("binlog_row_metadata", "FULL"), ("default_time_zone", "+00:00")];
    let server = options.iter().fold(mysql.sandbox(), |sandbox, (name, value)| sandbox.option(name, value));
    let server = server.start()?;
    let folder = Folder::new();
    let seed = number("SEED").unwrap_or(1);
    println!("SEED={seed}");
    let mut random = Random::new(seed);
    let definitions: Vec<&str> = columns.iter().map(|(definition, _)| *definition).collect();
    server.sql(&format!(
        "CREATE DATABASE w; CREATE TABLE w.t (id INT PRIMARY KEY, {})",
        definitions.join(", ")
    ))?;
    server.flush_binary_logs()?;
    let rows: Vec<String> = (0..40)
        .map(|id| {
            let values: Vec<&str> = columns.iter().map(|(_, values)| pick(&mut random, values)).collect();
            format!("({id}, {})", values.join(", "))
        })
        .collect();
    server.sql(&format!("INSERT INTO w.t VALUES {}", rows.join(", ")))?;
    let log = server.flush_binary_logs()?;
    let definitions = definitions.join(", ");
    let schema =
        folder.put("schema.sql", format!("USE w;\nCREATE TABLE m (id INT PRIMARY KEY, {definitions});\n"));
    server.sql("SET GLOBAL binlog_row_metadata = MINIMAL; CREATE TABLE w.m LIKE w.t")?;
    server.flush_binary_logs()?;
    server.sql("INSERT INTO w.m SELECT * FROM w.t")?;
    let log_without_names = server.flush_binary_logs()?;
    let count = number("BINLOGZ_CONDITIONS").unwrap_or(250);
    let generated =
        (0..count).map(|number| condition(&mut random, columns, [0, 0, 1, 2][number as usize % 4]));
    let conditions: Vec<String> = mended.iter().map(|&text| text.to_owned()).chain(generated).collect();
    let script: String = conditions
        .iter()
        .enumerate()
        .map(|(number, condition)| {
            format!("SELECT {number}, -1;\nSELECT {number}, id FROM w.t WHERE {condition};\n")
        })
        .collect();
    let path = folder.put("conditions.sql", script);
    let ran = server
        .client()
        .args(["--force", "--skip-column-names"])
        .stdin(File::open(path).unwrap())
        .output()
        .unwrap();
    let mut chosen: BTreeMap<usize, BTreeSet<i64>> = BTreeMap::new();
    for line in String::from_utf8(ran.stdout).unwrap().lines() {
        let (number, id) = line.split_once('\t').unwrap();
        chosen.entry(number.parse().unwrap()).or_default().insert(id.parse().unwrap());
    }
    // Two lines for each condition.
    let errors: BTreeSet<usize> = String::from_utf8_lossy(&ran.stderr)
        .lines()
        .filter_map(|line| line.split_once(" at line ")?.1.split(':').next()?.parse().ok())
        .map(|line: usize| (line - 1) / 2)
        .collect();
    let mut differ = Vec::new();
    // By reason.
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    for (number, condition) in conditions.iter().enumerate() {
        let condition_option = format!("--where={condition}");
        let has_names = number % 4 != 3;
        let (table, log) = if has_names { ("w.t", &log) } else { ("w.m", &log_without_names) };
        let schema_option = format!("--schema={}", schema.display());
        let arguments = ["rows", table, "--format", "json", &condition_option, &schema_option];
        let used = if has_names { arguments.len() - 1 } else { arguments.len() };
        let arguments = arguments.into_iter().take(used).map(AsRef::as_ref).chain([log.as_os_str()]);
        let ran = folder.binlogz(arguments).env("TZ", "UTC").output().unwrap();
        if ran.status.code() == Some(2) {
            let told = String::from_utf8(ran.stderr).unwrap();
            assert!(told.contains("--where: "), "{condition}: {told}");
            if !errors.contains(&number) {
                *refusals.entry(reason(&told)).or_default() += 1;
            }
            continue;
        }
        let text = String::from_utf8(ran.stdout).unwrap();
        let ids = text.lines().map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            row["after"]["id"].as_i64().unwrap()
        });
        let ids: BTreeSet<i64> = ids.chain([-1]).collect();
        if ids != chosen[&number] {
            differ.push(format!("{condition}: {ids:?}, the server {:?}", chosen[&number]));
        }
    }
    let count = conditions.len();
    let answered = count - errors.len();
    let refused: usize = refusals.values().sum();
    println!("{count} conditions, {answered} answered by the server, {refused} of them refused");
    refusals.iter().for_each(|(reason, count)| println!("{count:6} {reason}"));
    assert!(differ.is_empty(), "SEED={seed}: {} of {count} differ:\n{}", differ.len(), differ.join("\n"));
    // A few hundred are a sample: its share varies, by four standard deviations at most.
    let spread = if answered < SAMPLE_MAX {
        4.0 * (answered as f64 * refused_max * (1.0 - refused_max)).sqrt()
    } else {
        0.0
    };
    assert!(
        refused as f64 <= answered as f64 * refused_max + spread,
        "SEED={seed}: {refused} of {answered} are refused"
    );
    Ok(())
}

#[test]
fn a_timestamp_that_clocks_show_twice_is_refused() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server
        .sql("CREATE DATABASE w; CREATE TABLE w.t (id INT PRIMARY KEY, at TIMESTAMP, done TIMESTAMP NULL)")?;
    server.flush_binary_logs()?;
    // In Berlin clocks show 02:30 twice that night.
    server.sql(
        "SET time_zone = '+00:00'; INSERT INTO w.t VALUES (1, '2026-10-25 00:30:00', NULL), (2, '2026-10-25 01:30:00', NULL),
         (3, '2026-10-25 02:30:00', '2026-10-25 02:30:00'), (4, '2026-10-25 00:30:00', '2026-10-25 01:30:00')",
    )?;
    let log = server.flush_binary_logs()?;
    let rows = |zone: &str, condition: &str| {
        let mut command = folder.binlogz(["rows", "w.t", "--format", "json", "--where", condition]);
        let ran = command.arg(&log).env("TZ", zone).output().unwrap();
        let text = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
        (ran.status.code(), text)
    };
    for condition in [
        "at = '2026-10-25 02:30:00'",
        "at < '2026-10-25 02:10:00'",
        "at BETWEEN '2026-10-25 02:00:00' AND '2026-10-25 03:00:00'",
        "at IN ('2026-10-25 02:30:00', '2026-10-26')",
        "at >= '2026-03-29 02:30:00'",
        "id = 4 AND at < done",
    ] {
        let (code, text) = rows("Europe/Berlin", condition);
        assert_eq!(code, Some(2), "{condition}: {text}");
        assert!(text.contains("clocks show this time twice or never"), "{condition}: {text}");
        assert!(rows("UTC", condition).0.is_some_and(|code| code < 2), "{condition}");
    }
    for (condition, count) in [
        ("at = '2026-10-25 03:30:00'", 1),
        ("at < '2026-10-25 01:59:59'", 0),
        ("at < '2026-10-25 03:00:00'", 3),
    ] {
        let (code, text) = rows("Europe/Berlin", condition);
        assert!(code.is_some_and(|code| code < 2), "{condition}: {text}");
        assert_eq!(text.lines().filter(|line| line.starts_with('{')).count(), count, "{condition}: {text}");
    }
    Ok(())
}
