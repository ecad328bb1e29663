//! Statements of any depth and size are answered or refused: none ends the process.

use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use binlogz_query::engine::{BatchOutput, STACK_SIZE, statements};
use binlogz_query::{Error, Logs, QueryEngine, QueryOptions};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use crate::common::SHAPES;

/// Takes rows, and forgets them.
struct Nowhere;

impl BatchOutput for Nowhere {
    fn begin(&mut self, _: &SchemaRef) -> Result<(), Error> {
        Ok(())
    }

    fn batch(&mut self, _: &RecordBatch) -> Result<(), Error> {
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

fn nested(begin: &str, inner: &str, end: &str, count: usize) -> String {
    format!("{}{inner}{}", begin.repeat(count), end.repeat(count))
}

/// A list of numbered parts.
fn each(count: usize, between: &str, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(between)
}

/// A way to make a statement that is as deep or as long as is asked for.
pub(crate) type Production = (&'static str, fn(usize) -> String);

/// Statements that are answered as long as they are short.
pub(crate) const PRODUCTIONS: &[Production] = &[
    ("sum", |n| format!("SELECT 1{}", "+1".repeat(n))),
    ("sum to the right", |n| format!("SELECT {}", nested("1+(", "1", ")", n))),
    ("texts", |n| format!("SELECT 'a'{}", "||'a'".repeat(n))),
    ("and", |n| format!("SELECT true{}", " AND true".repeat(n))),
    ("or", |n| format!("SELECT count(*) FROM transactions WHERE log = 'a'{}", " OR log = 'b'".repeat(n))),
    ("is null", |n| format!("SELECT 1{}", " IS NULL".repeat(n))),
    ("like", |n| format!("SELECT 'a' LIKE 'a'{}", " OR 'a' LIKE 'b'".repeat(n))),
    ("not", |n| format!("SELECT {}true", "NOT ".repeat(n))),
    ("minus", |n| format!("SELECT {}1", "- ".repeat(n))),
    ("brackets", |n| format!("SELECT {}", nested("(", "1", ")", n))),
    ("function", |n| format!("SELECT {}", nested("abs(", "1", ")", n))),
    ("case", |n| format!("SELECT {}", nested("CASE WHEN true THEN ", "1", " ELSE 2 END", n))),
    ("long case", |n| format!("SELECT CASE 1{} ELSE 0 END", " WHEN 1 THEN 1".repeat(n + 1))),
    ("array", |n| format!("SELECT {}", nested("[", "1", "]", n))),
    ("array type", |n| format!("SELECT CAST(NULL AS INT{})", "[]".repeat(n))),
    ("casts", |n| format!("SELECT 1{}", "::BIGINT".repeat(n))),
    ("cast", |n| format!("SELECT {}", nested("CAST(", "1", " AS BIGINT)", n))),
    ("named type", |n| format!("SELECT arrow_cast(NULL, '{}')", nested("List(", "Int8", ")", n))),
    ("explain", |n| format!("{}SELECT 1", "EXPLAIN ".repeat(n.min(1)))),
    ("query in query", |n| format!("SELECT * FROM {}", nested("(SELECT * FROM ", "transactions", ")", n))),
    ("scalar query", |n| format!("SELECT {}", nested("(SELECT ", "1", ")", n))),
    ("scalar queries", |n| {
        format!("SELECT {}", each(n + 1, ",", |number| format!("(SELECT {number}) AS s{number}")))
    }),
    ("in", |n| format!("SELECT {}", nested("1 IN (1, ", "1", ")", n.min(1)))),
    ("union", |n| each(n + 1, " UNION ALL ", |_| "SELECT 1, 2, 3".into())),
    ("except", |n| each(n + 1, " EXCEPT ", |number| format!("SELECT {number}, 2"))),
    ("names of queries", |n| {
        let names = each(n, "", |number| format!(", c{} AS (SELECT a FROM c{number})", number + 1));
        format!("WITH c0 AS (SELECT 1 AS a){names} SELECT a FROM c{n}")
    }),
    ("tables", |n| {
        format!("SELECT 1 FROM {}", each(n + 1, ", ", |number| format!("(SELECT 1 AS a) t{number}")))
    }),
    ("joins", |n| {
        let joins = each(n, "", |number| format!(" JOIN (SELECT 1 AS a) t{0} ON t0.a = t{0}.a", number + 1));
        format!("SELECT t0.a FROM (SELECT 1 AS a) t0{joins}")
    }),
    ("windows", |n| {
        let windows =
            each(n + 1, ", ", |number| format!("sum(value) OVER (ORDER BY value ROWS {number} PRECEDING)"));
        format!("SELECT {windows} FROM generate_series(1, 3)")
    }),
    ("fields", |n| format!("SELECT {}{}", nested("named_struct('a', ", "1", ")", n), "['a']".repeat(n))),
    ("list of values", |n| format!("SELECT 1 IN ({})", each(n + 1, ",", |number| number.to_string()))),
    ("rows of values", |n| format!("VALUES {}", each(n + 1, ",", |number| format!("({number}, 'a')")))),
    ("columns", |n| format!("SELECT {}", each(n + 1, ",", |number| format!("{number} AS c{number}")))),
];

/// Statements that are not always answered, however short.
pub(crate) const OTHERS: &[Production] = &[
    ("exists", |n| format!("SELECT 1 WHERE {}", nested("EXISTS (SELECT 1 WHERE ", "true", ")", n))),
    ("intervals", |n| format!("SELECT {} '1' DAY", "INTERVAL ".repeat(n + 1))),
    ("explains", |n| format!("{}SELECT 1", "EXPLAIN ".repeat(n + 2))),
    ("analyzed", |n| format!("{}SELECT 1", "EXPLAIN ANALYZE ".repeat(n + 2))),
    ("struct types", |n| format!("SELECT CAST(NULL AS {})", nested("STRUCT<a INT, b ", "INT", ">", n + 1))),
    ("array types", |n| format!("SELECT CAST(NULL AS {})", nested("ARRAY<", "INT", ">", n + 1))),
    ("in in", |n| format!("SELECT {}", nested("1 IN (1, ", "1", ")", n + 2))),
    ("between", |n| format!("SELECT 1{}", " BETWEEN 0 AND 1".repeat(n + 2))),
    ("at time zone", |n| format!("SELECT now(){}", " AT TIME ZONE 'UTC'".repeat(n + 3))),
    ("collate", |n| format!("SELECT 'a'{}", " COLLATE x".repeat(n + 1))),
    ("open brackets", |n| format!("SELECT {}", "(".repeat(n + 1))),
    ("closed brackets", |n| format!("SELECT {}", ")".repeat(n + 1))),
    ("braces", |n| format!("SELECT {}", "{a: ".repeat(n + 1))),
    ("path", |n| format!("SELECT a{}", ".a".repeat(n + 4))),
    ("dots of brackets", |n| format!("SELECT a{}", "[1].b".repeat(n + 1))),
    ("prepare", |n| format!("{}SELECT 1", "PREPARE a AS ".repeat(n + 1))),
    ("create", |n| format!("{}SELECT 1", "CREATE VIEW a AS ".repeat(n + 2))),
    ("with with", |n| format!("{}SELECT 1", "WITH a AS (".repeat(n + 1))),
    ("lambda", |n| format!("SELECT array_transform([1], {}1)", "x -> ".repeat(n + 2))),
    ("casts to types", |n| {
        format!("SELECT arrow_cast(1, '{}')", nested("Dictionary(Int8, ", "Utf8", ")", n + 200))
    }),
];

/// Runs statements as `binlogz sql` does; those that give something else than is expected.
fn run(all: Vec<(String, String)>, is_expected: fn(&Result<(), Error>) -> bool) -> Vec<String> {
    let test = move || {
        let temporary = tempfile::tempdir().unwrap();
        let options = QueryOptions { memory: 1 << 28, jobs: 2, temporary: temporary.path().to_owned() };
        let logs = Logs::new(vec![SHAPES.plain[7].clone()], None, |_| {}).unwrap();
        let engine = QueryEngine::new(logs, &options).unwrap();
        let mut others = Vec::new();
        for (name, text) in all {
            let parsed = statements(&text);
            let ran = parsed.and_then(|statements| {
                statements.into_iter().try_for_each(|statement| engine.run(statement, &mut Nowhere))
            });
            if !is_expected(&ran) {
                others.push(format!("{name}: {ran:?}"));
            }
        }
        engine.close();
        others
    };
    thread::Builder::new().stack_size(STACK_SIZE).spawn(test).unwrap().join().unwrap()
}

fn is_told(ran: &Result<(), Error>) -> bool {
    matches!(ran, Ok(()) | Err(Error::Sql(_) | Error::Memory { .. }))
}

#[test]
fn statements_of_ordinary_depth_are_answered() {
    let of = |(name, make): &Production, n: usize| (format!("{name} {n}"), make(n));
    let mut all: Vec<_> =
        PRODUCTIONS.iter().flat_map(|production| [0, 1, 6].map(|n| of(production, n))).collect();
    let long = ["or", "list of values", "rows of values", "columns"];
    let long = PRODUCTIONS.iter().filter(|(name, _)| long.contains(name));
    all.extend(long.map(|production| of(production, 300)));
    assert_eq!(run(all, Result::is_ok), Vec::<String>::new());
}

#[test]
fn statements_of_any_depth_end_no_process() {
    // Near the limits, of which those of brackets are the parser's; beyond them, and far beyond.
    let all = PRODUCTIONS.iter().chain(OTHERS).flat_map(|(name, make)| {
        let near = if ["sum", "not", "casts", "array type"].contains(name) { 900 } else { 45 };
        [near, 3000, 60_000].map(|n| (format!("{name} {n}"), make(n)))
    });
    assert_eq!(run(all.collect(), is_told), Vec::<String>::new());
}

/// An error within expressions that the parser reads twice: each level doubled the time.
#[test]
fn an_error_in_nested_expressions_is_told_soon() {
    let wraps = [
        ("CAST(", " AS INT)"),
        ("TRY_CAST(", " AS INT)"),
        ("CONVERT(", ", INT)"),
        ("CASE WHEN true THEN ", " ELSE 2 END"),
        ("CASE WHEN end THEN ", " ELSE 2 END"),
        ("CASE WHEN CAST(", " AS BOOLEAN) THEN 1 END"),
        ("substr(", ", 1)"),
        ("substring(", ", 1)"),
        ("ceil(", ")"),
        ("floor(", ")"),
        ("ARRAY[", "]"),
        ("overlay(", " PLACING 'a' FROM 1)"),
        ("1 + (CAST(", " AS INT))"),
        ("INTERVAL ", ""),
        ("INTERVAL (", ")"),
    ];
    let all = wraps.iter().flat_map(|(begin, end)| {
        [13, 40, 300].map(|n| (format!("{begin} {n}"), format!("SELECT {}", nested(begin, "1 2 3", end, n))))
    });
    let begun = Instant::now();
    assert_eq!(run(all.collect(), |ran| matches!(ran, Err(Error::Sql(_)))), Vec::<String>::new());
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    // Beside one another there may be any number.
    let beside = ["CASE WHEN true THEN 1 ELSE 2 END", "CAST(1 AS INT)", "CASE 1 WHEN 2 THEN NULL END"];
    let all = beside.iter().flat_map(|part| {
        [" + ", ", ", " IS NULL AND "].map(|between| {
            let list = vec![*part; 40].join(between);
            let list = if between == " IS NULL AND " { list + " IS NULL" } else { list };
            let list = if between == ", " { format!("[{list}]") } else { list };
            (format!("{part}{between}"), format!("SELECT {list}"))
        })
    });
    assert_eq!(run(all.collect(), Result::is_ok), Vec::<String>::new());
}

/// Productions one in the other, chosen by a seed.
#[test]
fn statements_of_mixed_depth_end_no_process() {
    let mut seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(42);
    let mut next = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let wraps: [(&str, &str); 10] = [
        ("1+(", ")"),
        ("abs(", ")"),
        ("- ", ""),
        ("CASE WHEN true THEN ", " ELSE 2 END"),
        ("CAST(", " AS BIGINT)"),
        ("(SELECT max(value) FROM generate_series(1, 2) WHERE value <> ", ")"),
        ("coalesce(NULL, 2, ", ")"),
        ("array_length([1, ", "])"),
        ("", " + 1"),
        ("2 * ", ""),
    ];
    let mut all = Vec::new();
    for round in 0..24 {
        let (mut begin, mut end) = ("SELECT ".to_owned(), String::new());
        for _ in 0..next([20, 40, 200][round % 3]) {
            let (before, after) = wraps[next(wraps.len())];
            let times = 1 + next(4);
            write!(begin, "{}", before.repeat(times)).unwrap();
            end.insert_str(0, &after.repeat(times));
        }
        all.push((format!("round {round}"), format!("{begin}1{end}")));
    }
    assert_eq!(run(all, is_told), Vec::<String>::new());
}
