//! `--where` against a server's own WHERE: generated conditions choose the same rows, or are refused: at most a tenth of those that
//! the server answers. Every fourth one is asked of a log with MINIMAL metadata, whose names come from `--schema`.
//!
//! `SEED=N` begins at N, `BINLOGZ_CONDITIONS` says how many conditions there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use binlogz_testkit::random::Random;
use binlogz_testkit::{Result, Tool, require_tool};

use crate::common::Folder;
use crate::table_at::number;

/// Definition, and literals that its values are made of.
const COLUMNS: [(&str, &[&str]); 15] = [
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
];
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
const MENDED: [&str; 6] = [
    "t < 0.1",
    "t <=> 0.1 AND p <> 12",
    "v NOT BETWEEN 'b' AND n",
    "s NOT BETWEEN 'x' AND n",
    "y NOT BETWEEN 1999 AND f",
    "y BETWEEN f AND 26",
];

fn pick<'t>(random: &mut Random, texts: &[&'t str]) -> &'t str {
    texts[random.below(texts.len())]
}

fn name(column: usize) -> &'static str {
    COLUMNS[column].0.split_once(' ').unwrap().0
}

fn literal(random: &mut Random, column: usize) -> String {
    match random.below(4) {
        0 => pick(random, &LITERALS).to_owned(),
        1 if random.below(8) == 0 => format!("-{}", random.below(10)),
        _ => pick(random, COLUMNS[column].1).to_owned(),
    }
}

/// A condition without AND and OR.
fn simple(random: &mut Random) -> String {
    let column = random.below(COLUMNS.len());
    let own = name(column);
    let operand = match random.below(12) {
        0 => name(random.below(COLUMNS.len())).to_owned(),
        _ => literal(random, column),
    };
    let not = pick(random, &["", "NOT "]);
    match random.below(14) {
        0..=6 => format!("{own} {} {operand}", pick(random, &["=", "<>", "!=", "<", "<=", ">", ">=", "<=>"])),
        7 => format!("{operand} = {own}"),
        8 => format!("{own} {not}IN ({operand}, {})", literal(random, column)),
        9 => format!("{own} {not}BETWEEN {} AND {operand}", literal(random, column)),
        10 => format!("{own} {not}LIKE {}", pick(random, &PATTERNS)),
        11 => format!("{own} IS {not}NULL"),
        12 => own.to_owned(),
        _ => format!("({}) IS {}", simple(random), pick(random, &["TRUE", "FALSE", "NOT TRUE", "NOT FALSE"])),
    }
}

fn condition(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return simple(random);
    }
    let one = condition(random, depth - 1);
    let other_depth = random.below(depth);
    let other = condition(random, other_depth);
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

#[test]
fn conditions_choose_what_a_server_chooses_or_are_refused() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    let seed = number("SEED").unwrap_or(1);
    println!("SEED={seed}");
    let mut random = Random::new(seed);
    let columns: Vec<&str> = COLUMNS.iter().map(|(definition, _)| *definition).collect();
    server
        .sql(&format!("CREATE DATABASE w; CREATE TABLE w.t (id INT PRIMARY KEY, {})", columns.join(", ")))?;
    server.flush_binary_logs()?;
    let rows: Vec<String> = (0..40)
        .map(|id| {
            let values: Vec<&str> = COLUMNS.iter().map(|(_, values)| pick(&mut random, values)).collect();
            format!("({id}, {})", values.join(", "))
        })
        .collect();
    server.sql(&format!("INSERT INTO w.t VALUES {}", rows.join(", ")))?;
    let log = server.flush_binary_logs()?;
    let columns = columns.join(", ");
    let schema =
        folder.put("schema.sql", format!("USE w;\nCREATE TABLE m (id INT PRIMARY KEY, {columns});\n"));
    server.sql("SET GLOBAL binlog_row_metadata = MINIMAL; CREATE TABLE w.m LIKE w.t")?;
    server.flush_binary_logs()?;
    server.sql("INSERT INTO w.m SELECT * FROM w.t")?;
    let log_without_names = server.flush_binary_logs()?;
    let count = number("BINLOGZ_CONDITIONS").unwrap_or(250);
    let generated = (0..count).map(|number| condition(&mut random, [0, 0, 1, 2][number as usize % 4]));
    let conditions: Vec<String> = MENDED.into_iter().map(str::to_owned).chain(generated).collect();
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
    let (mut refused, mut differ) = (0, Vec::new());
    for (number, condition) in conditions.iter().enumerate() {
        let condition_option = format!("--where={condition}");
        let has_names = number % 4 != 3;
        let (table, log) = if has_names { ("w.t", &log) } else { ("w.m", &log_without_names) };
        let schema_option = format!("--schema={}", schema.display());
        let arguments = ["rows", table, "--format", "json", &condition_option, &schema_option];
        let used = if has_names { arguments.len() - 1 } else { arguments.len() };
        let ran = folder.run(arguments.into_iter().take(used).map(AsRef::as_ref).chain([log.as_os_str()]));
        if ran.code == Some(2) {
            assert!(ran.stderr.contains("--where: "), "{condition}: {}", ran.stderr);
            refused += usize::from(!errors.contains(&number));
            continue;
        }
        let ids = ran.text().lines().map(|line| {
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
    println!("{count} conditions, {answered} answered by the server, {refused} of them refused");
    assert!(differ.is_empty(), "SEED={seed}: {} of {count} differ:\n{}", differ.len(), differ.join("\n"));
    // A few hundred are a sample: its share varies, by four standard deviations at most.
    let spread = if answered < SAMPLE_MAX { 4.0 * (answered as f64 * 0.1 * 0.9).sqrt() } else { 0.0 };
    assert!(
        refused as f64 <= answered as f64 / 10.0 + spread,
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
