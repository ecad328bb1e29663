//! Whole numbers don't wrap: the right number, or an error.

use crate::common::{SHAPES, ask};

/// As MySQL answers, where its type has room for it; an error where BIGINT or DECIMAL has none.
#[test]
fn arithmetic_and_sums_are_right_or_an_error() {
    let log = std::slice::from_ref(&SHAPES.plain[7]);
    let unsigned = |number: &str, bits: usize| format!("arrow_cast({number}, 'UInt{bits}')");
    let (one, two) = (unsigned("1", 32), unsigned("2", 32));
    let max = "9223372036854775807";
    let nines = "9".repeat(38);
    let mut wrong = Vec::new();
    for (expression, expected) in [
        (format!("{one} - {two}"), "-1"),
        (format!("{} - {}", unsigned("1", 8), unsigned("2", 8)), "-1"),
        (format!("{} + {}", unsigned("200", 8), unsigned("100", 8)), "300"),
        (format!("{} - {}", unsigned("1", 64), unsigned("2", 64)), "-1"),
        (format!("{} * {}", unsigned("4294967295", 32), unsigned("4294967295", 32)), "18446744065119617025"),
        (format!("{} + {}", unsigned("'18446744073709551614'", 64), unsigned("1", 64)), "18446744073709551615"),
        ("2147483647::INT + 1::INT".to_owned(), "2147483648"),
        ("2147483647::INT * 2147483647::INT".to_owned(), "4611686014132420609"),
        ("100::TINYINT * 100::TINYINT".to_owned(), "10000"),
        (format!("{max} + 0"), max),
        (format!("{max} - 1 + 1"), max),
        ("-9223372036854775807 - 1".to_owned(), "-9223372036854775808"),
        ("sum(a) FROM (VALUES (9223372036854775807), (1), (-1)) t(a)".to_owned(), max),
        (format!("sum({one} - {two})"), "-1"),
        (format!("sum(a::DECIMAL(38,0)) FROM (VALUES ('{nines}'), ('-1')) t(a)"), &format!("{}8", "9".repeat(37))),
        ("sum(a) FROM (VALUES (1.5), (2.25)) t(a)".to_owned(), "3.75"),
        ("sum(DISTINCT a) FROM (VALUES (1), (2), (2)) t(a)".to_owned(), "3"),
        ("max(s) FROM (SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING) AS s FROM (VALUES (1), (2), (5)) t(a))".to_owned(), "7"),
        ("sum(a) FROM (VALUES (1)) t(a) WHERE a > 5".to_owned(), ""),
    ] {
        let ran = ask(&format!("SELECT {expression}"), log);
        if ran.out.lines().nth(1).unwrap_or_default() != expected || ran.code != Some(0) {
            wrong.push(format!("{expression}: {ran:?}"));
        }
    }
    for expression in [
        format!("{max} + 1"),
        format!("{max} * 2"),
        "-9223372036854775807 - 2".to_owned(),
        "-a FROM (SELECT -9223372036854775807 - 1 AS a)".to_owned(),
        format!("{} + {}", unsigned("'18446744073709551615'", 64), unsigned("1", 64)),
        "value + 9223372036854775807 FROM generate_series(1, 2)".to_owned(),
        "sum(a) FROM (VALUES (9223372036854775807), (1)) t(a)".to_owned(),
        "sum(a) FROM (VALUES (9223372036854775807, 1), (1, 1)) t(a, b) GROUP BY b".to_owned(),
        "sum(a) OVER (ORDER BY a) FROM (VALUES (9223372036854775807), (1)) t(a)".to_owned(),
        format!("sum({}) FROM generate_series(1, 2)", unsigned("'18446744073709551615'", 64)),
        format!("sum(a::DECIMAL(38,0)) FROM (VALUES ('{nines}'), ('1')) t(a)"),
    ] {
        let ran = ask(&format!("SELECT {expression}"), log);
        let is_told = ["beyond", "out of range", "too large"].iter().any(|word| ran.error.contains(word));
        if ran.code != Some(2) || !is_told {
            wrong.push(format!("{expression}: {ran:?}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Columns of the logs and of tables.
#[test]
fn differences_of_unsigned_columns_may_be_below_zero() {
    let answer = |expression: &str| -> i64 {
        let statement = format!("SELECT {expression} FROM transactions");
        ask(&statement, &SHAPES.plain).ok().lines().nth(1).unwrap().parse().unwrap()
    };
    let difference = answer("sum(deleted - inserted)");
    assert!(difference < 0, "{difference}");
    assert_eq!(difference, -answer("sum(inserted - deleted)"));
    assert_eq!(difference, answer("sum(deleted)::BIGINT") - answer("sum(inserted)::BIGINT"));
    assert!(answer("min(server_id - 4294967295)") < 0);
}
