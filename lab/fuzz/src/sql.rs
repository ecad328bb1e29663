//! Statements that any client may send: whatever they are, they are planned or come back as an error, and no process ends of
//! them or holds more than it may.
//!
//! This alone needs DataFusion, so it stands apart from the other targets: cargo fuzz has it with `--features sql`
//! (`fuzz_targets/sql.rs`), and a test of binlogz-sql (`tests/sql/fuzz.rs`) feeds it in a process of its own, which it already links.

use std::fs;
use std::sync::LazyLock;
use std::thread;

use binlogz_query::engine::{BatchOutput, STACK_SIZE, statements};
use binlogz_query::{Error, Logs, QueryEngine, QueryOptions, memory};
use binlogz_testkit::random::Random;
use binlogz_testkit::{corpus, mutate};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

/// Memory of the engine, in bytes.
const MEMORY: usize = 256 << 20;
/// Bytes of a recipe.
const RECIPE_SIZE_MAX: usize = 80;
/// Real statements, one a line.
const QUERIES: &str = include_str!("../../../crates/interfaces/sql-cli/tests/sql/queries.sql");

/// Text before an expression, and after it. None makes a value much larger: constants are computed while a statement is planned,
/// and only the process of a statement has a limit for them, which other tests are for.
const WRAPS: [(&str, &str); 56] = [
    ("1+(", ")"),
    ("(", ")"),
    ("abs(", ")"),
    ("- ", ""),
    ("NOT ", ""),
    ("2 * ", ""),
    ("1 / ", ""),
    ("", " % 3"),
    ("", " + 1"),
    ("", " || 'a'"),
    ("", " AND true"),
    ("", " IS NULL"),
    ("", " IN (1, 2)"),
    ("1 IN (1, ", ")"),
    ("", " BETWEEN 0 AND 1"),
    ("", " LIKE '%'"),
    ("CASE WHEN true THEN ", " ELSE 2 END"),
    ("CASE ", " WHEN 1 THEN 2 END"),
    ("CAST(", " AS BIGINT)"),
    ("CAST(", " AS VARCHAR)"),
    ("TRY_CAST(", " AS DATE)"),
    ("", "::DECIMAL(38,30)"),
    ("arrow_cast(", ", 'Dictionary(Int8, Utf8)')"),
    ("coalesce(NULL, 2, ", ")"),
    ("[", "]"),
    ("", "[1]"),
    ("array_length([1, ", "])"),
    ("array_transform([1], x -> ", ")"),
    ("named_struct('a', ", ")"),
    ("", "['a']"),
    ("length(", ")"),
    ("concat(", ", 'a')"),
    ("substr('abc', ", ")"),
    ("regexp_like('a', ", ")"),
    ("json_value(", ", '$.a')"),
    ("gtid_in(", ", '')"),
    ("to_timestamp(", ")"),
    ("date_trunc('day', ", ")"),
    ("EXTRACT(YEAR FROM ", ")"),
    ("+ ", ""),
    ("", " AT TIME ZONE 'UTC'"),
    ("", " COLLATE x"),
    ("count(DISTINCT ", ")"),
    ("sum(", ") OVER (ORDER BY 1)"),
    ("max(", ")"),
    ("array_agg(", " ORDER BY 1)"),
    ("(SELECT ", ")"),
    ("(SELECT max(a) FROM (SELECT ", " AS a) t)"),
    ("(SELECT ", " FROM changes LIMIT 1)"),
    ("EXISTS (SELECT 1 FROM transactions WHERE ", ")"),
    ("(SELECT a FROM (VALUES (", ")) t(a) UNION ALL SELECT 1)"),
    ("(WITH c AS (SELECT ", " AS a) SELECT a FROM c)"),
    ("(SELECT x.a FROM (SELECT ", " AS a) x JOIN (SELECT 1 AS a) y ON x.a = y.a)"),
    ("(SELECT count(*) FROM unnest([", "]))"),
    ("(SELECT ", " GROUP BY 1 HAVING true ORDER BY 1 LIMIT 3)"),
    ("(WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + ", " FROM r) SELECT max(a) FROM r)"),
];

/// Innermost expressions.
const ATOMS: [&str; 24] = [
    "1",
    "0.1",
    "1e308",
    "18446744073709551615",
    "-9223372036854775808",
    "NULL",
    "true",
    "'a'",
    "''",
    "X'00'",
    "'\u{1f600}'",
    "DATE '2024-02-31'",
    "$1",
    "?",
    "gtid",
    "\"table\"",
    "before",
    "after",
    "committed_at",
    "now()",
    "*",
    "[]",
    "{}",
    "",
];

/// Text after the whole expression.
const ENDS: [&str; 6] = [
    "",
    " FROM changes",
    " FROM transactions WHERE true",
    " FROM events ORDER BY 1",
    " AS a GROUP BY a",
    " FROM changes c, transactions t",
];

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

static ENGINE: LazyLock<QueryEngine> = LazyLock::new(|| {
    let options = QueryOptions { memory: MEMORY, jobs: 1, temporary: std::env::temp_dir() };
    let logs = Logs::new(vec![corpus::path("binlog.000004")], None, |_| {}).expect("a real log");
    QueryEngine::new(logs, &options).expect("a folder for temporary files")
});

/// A statement: a text after an even byte, a recipe of one after an odd one. It is planned and explained, or refused.
pub(crate) fn sql(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let text = match kind % 2 {
        0 => String::from_utf8_lossy(rest).into_owned(),
        _ => cooked(rest),
    };
    LazyLock::force(&ENGINE);
    let before = resident("VmRSS:");
    // From here on, the most that is held counts anew.
    let is_counted = fs::write("/proc/self/clear_refs", "5").is_ok();
    let ended = thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_SIZE);
        let thread = thread.spawn_scoped(scope, || explain(&text)).expect("a thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let is_told = matches!(ended, Ok(()) | Err(Error::Sql(_) | Error::Memory { .. }));
    assert!(is_told, "{ended:?} of {}", shortened(&text));
    let held = resident("VmHWM:").saturating_sub(before);
    assert!(!is_counted || held < memory::held_max(MEMORY), "{} MiB for {}", held >> 20, shortened(&text));
}

/// Reads and plans a statement as `binlogz sql` does. EXPLAIN ANALYZE would run it, so such a text is only read.
fn explain(text: &str) -> Result<(), Error> {
    statements(text)?;
    let explained = statements(&format!("EXPLAIN {text}"))?;
    if text.to_ascii_lowercase().contains("analy") {
        return Ok(());
    }
    explained.into_iter().next().map_or(Ok(()), |statement| ENGINE.run(statement, &mut Nowhere))
}

/// The statement of a recipe. Its first two bytes choose the innermost expression and the text after the whole; of each two bytes
/// after them the first chooses the next text around the expression, and the second how often it stands there.
fn cooked(recipe: &[u8]) -> String {
    let mut bytes = recipe.iter().copied();
    let mut next = || bytes.next().map(usize::from);
    let atom = next().unwrap_or(0);
    let end = next().unwrap_or(0);
    let mut before = String::from("SELECT ");
    let mut after = Vec::new();
    while let (Some(what), Some(times)) = (next(), next()) {
        let Some((begin, end)) = WRAPS.get(what % WRAPS.len()) else { break };
        let times = match times % 16 {
            0..=11 => 1,
            12 | 13 => 3,
            14 => 40,
            _ => 1 + times * 4,
        };
        before.push_str(&begin.repeat(times));
        after.push(end.repeat(times));
    }
    before.push_str(ATOMS.get(atom % ATOMS.len()).unwrap_or(&""));
    after.iter().rev().for_each(|end| before.push_str(end));
    before.push_str(ENDS.get(end % ENDS.len()).unwrap_or(&""));
    before
}

/// Input `index` of a run with this seed, and its description.
pub(crate) fn input(seed: u64, index: u64) -> (Vec<u8>, String) {
    let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(index));
    let queries: Vec<&str> =
        QUERIES.lines().filter(|line| !line.is_empty() && !line.starts_with("--")).collect();
    let original = queries.get(random.below(queries.len())).filter(|_| index.is_multiple_of(3));
    if let Some(original) = original {
        let (text, what) = mutate::mutate(original.as_bytes(), seed, index);
        return ([&[0], text.as_slice()].concat(), format!("{what} of {original}"));
    }
    let size = 2 + random.below(RECIPE_SIZE_MAX);
    let recipe: Vec<u8> = (0..size).map(|_| random.bits() as u8).collect();
    ([&[1], recipe.as_slice()].concat(), format!("SEED={seed} recipe {index}"))
}

/// Bytes of memory that `/proc/self/status` tells on a line; 0: it isn't told here.
fn resident(line: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|told| told.strip_prefix(line)?.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or(0_u64) << 10
}

fn shortened(text: &str) -> String {
    let begin: String = text.chars().take(2000).collect();
    format!("{} bytes: {begin:?}", text.len())
}
