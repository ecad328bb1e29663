//! MySQL's functions by the query engine's: each as an expression with `$1`, `$2` … in the places of its arguments.
//!
//! A moment is one of microseconds in UTC. Functions that both have under one name, with one meaning, are not here.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Value, ValueWithSpan, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// A function's name in capitals, how many arguments it has, and the expression.
const FUNCTIONS: &[(&str, usize, &str)] = &[
    ("ADDDATE", 2, "$1 + $2"),
    ("CEILING", 1, "ceil($1)"),
    ("CHARACTER_LENGTH", 1, "char_length($1)"),
    ("CURDATE", 0, "current_date()"),
    ("CURTIME", 0, "to_char(arrow_cast(now(), 'Timestamp(Second, None)'), '%H:%M:%S')"),
    ("DATE", 1, "CAST($1 AS DATE)"),
    (
        "DATEDIFF",
        2,
        "CAST(arrow_cast(CAST($1 AS DATE), 'Int32') AS BIGINT) - CAST(arrow_cast(CAST($2 AS DATE), 'Int32') AS BIGINT)",
    ),
    ("DATE_ADD", 2, "arrow_cast($1, 'Timestamp(Microsecond, None)') + $2"),
    ("DATE_SUB", 2, "arrow_cast($1, 'Timestamp(Microsecond, None)') - $2"),
    ("DAY", 1, "CAST(date_part('day', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT)"),
    ("DAYNAME", 1, "to_char(arrow_cast($1, 'Timestamp(Microsecond, None)'), '%A')"),
    ("DAYOFMONTH", 1, "CAST(date_part('day', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT)"),
    ("DAYOFWEEK", 1, "CAST(date_part('dow', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT) + 1"),
    ("DAYOFYEAR", 1, "CAST(date_part('doy', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT)"),
    ("FROM_UNIXTIME", 1, "arrow_cast(CAST($1 * 1000000 AS BIGINT), 'Timestamp(Microsecond, None)')"),
    // Of bytes and texts. Concatenation refuses numbers, whose bytes as they are in memory are not their digits.
    ("HEX", 1, "hex(CAST(($1 || X'') AS BYTEA))"),
    ("HOUR", 1, "CAST(date_part('hour', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT)"),
    ("IF", 3, "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("INSTR", 2, "strpos($1, $2)"),
    ("ISNULL", 1, "$1 IS NULL"),
    ("JSON_UNQUOTE", 1, "CASE WHEN left($1, 1) = '\"' THEN json_value($1, '$') ELSE $1 END"),
    ("LCASE", 1, "lower(CAST($1 AS VARCHAR))"),
    ("LEFT", 2, "left($1, CASE WHEN $2 < 0 THEN 0 ELSE $2 END)"),
    ("LENGTH", 1, "octet_length($1)"),
    ("LOCALTIME", 0, "arrow_cast(now(), 'Timestamp(Second, None)')"),
    ("LOCALTIMESTAMP", 0, "arrow_cast(now(), 'Timestamp(Second, None)')"),
    ("LOCATE", 2, "strpos($2, $1)"),
    // With one argument, the engine's is that of base 10.
    ("LOG", 1, "ln($1)"),
    ("LOWER", 1, "lower(CAST($1 AS VARCHAR))"),
    (
        "MICROSECOND",
        1,
        "CAST(date_part('microsecond', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT) % 1000000",
    ),
    ("MINUTE", 1, "CAST(date_part('minute', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT)"),
    ("MOD", 2, "$1 % $2"),
    ("MONTH", 1, "CAST(date_part('month', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT)"),
    ("MONTHNAME", 1, "to_char(arrow_cast($1, 'Timestamp(Microsecond, None)'), '%B')"),
    ("NOW", 0, "arrow_cast(now(), 'Timestamp(Second, None)')"),
    ("NOW", 1, "arrow_cast(now(), 'Timestamp(Microsecond, None)')"),
    ("CURRENT_TIMESTAMP", 0, "arrow_cast(now(), 'Timestamp(Second, None)')"),
    ("CURRENT_TIMESTAMP", 1, "arrow_cast(now(), 'Timestamp(Microsecond, None)')"),
    ("QUARTER", 1, "CAST(date_part('quarter', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT)"),
    ("RAND", 0, "random()"),
    ("RIGHT", 2, "right($1, CASE WHEN $2 < 0 THEN 0 ELSE $2 END)"),
    ("SECOND", 1, "CAST(date_part('second', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT)"),
    ("SUBDATE", 2, "$1 - $2"),
    ("SYSDATE", 0, "arrow_cast(now(), 'Timestamp(Second, None)')"),
    (
        "TIME_TO_SEC",
        1,
        "CAST(split_part($1, ':', 1) AS BIGINT) * 3600 + CAST(split_part($1, ':', 2) AS BIGINT) * 60 + CAST(split_part($1, ':', 3) AS BIGINT)",
    ),
    ("TRUNCATE", 2, "trunc($1, $2)"),
    ("UCASE", 1, "upper(CAST($1 AS VARCHAR))"),
    ("UPPER", 1, "upper(CAST($1 AS VARCHAR))"),
    ("UNIX_TIMESTAMP", 0, "arrow_cast(arrow_cast(now(), 'Timestamp(Second, None)'), 'Int64')"),
    (
        "UNIX_TIMESTAMP",
        1,
        "CAST(CAST(arrow_cast(arrow_cast($1, 'Timestamp(Microsecond, None)'), 'Int64') AS DECIMAL(20, 0)) * CAST('0.000001' AS DECIMAL(7, 6)) AS DECIMAL(20, 6))",
    ),
    ("UTC_DATE", 0, "current_date()"),
    ("UTC_TIMESTAMP", 0, "arrow_cast(now(), 'Timestamp(Second, None)')"),
    (
        "WEEKDAY",
        1,
        "(CAST(date_part('dow', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT) + 6) % 7",
    ),
    ("YEAR", 1, "CAST(date_part('year', arrow_cast($1, 'Timestamp(Microsecond, None)')) AS BIGINT)"),
];

/// Microseconds of a unit of TIMESTAMPDIFF.
const UNITS: [(&str, u64); 6] = [
    ("MICROSECOND", 1),
    ("SECOND", 1_000_000),
    ("MINUTE", 60_000_000),
    ("HOUR", 3_600_000_000),
    ("DAY", 86_400_000_000),
    ("WEEK", 604_800_000_000),
];

/// DATE_FORMAT's letters and those of `to_char`. A letter that isn't here stands for itself in neither.
const LETTERS: [(char, &str); 22] = [
    ('a', "%a"),
    ('b', "%b"),
    ('c', "%-m"),
    ('d', "%d"),
    ('e', "%-d"),
    ('f', "%6f"),
    ('H', "%H"),
    ('h', "%I"),
    ('I', "%I"),
    ('i', "%M"),
    ('j', "%j"),
    ('k', "%-H"),
    ('l', "%-I"),
    ('M', "%B"),
    ('m', "%m"),
    ('p', "%p"),
    ('r', "%I:%M:%S %p"),
    ('S', "%S"),
    ('s', "%S"),
    ('T', "%H:%M:%S"),
    ('W', "%A"),
    ('w', "%w"),
];
/// Letters for years and weeks: `%v` and `%x` are ISO's week and its year.
const YEARS: [(char, &str); 5] = [('Y', "%Y"), ('y', "%y"), ('v', "%V"), ('x', "%G"), ('%', "%%")];

/// The expression of a function with these arguments; `None`: the query engine's function of this name is meant.
pub(super) fn function(name: &str, arguments: &[Expr]) -> Option<Expr> {
    let name = name.to_ascii_uppercase();
    match (name.as_str(), arguments) {
        ("CONCAT", [_, ..]) => return joined(arguments),
        ("GREATEST" | "LEAST", [_, _, ..]) => return unless_null(&name, arguments),
        ("MID", [text, from, length]) => {
            let plain = || expression("substr($1, $2, $3)", arguments);
            return substring(text, from, Some(length.clone())).or_else(plain);
        }
        ("DATE_FORMAT", [moment, format]) => return formatted(moment, format),
        ("FROM_UNIXTIME", [seconds, format]) => {
            return formatted(&function("FROM_UNIXTIME", std::slice::from_ref(seconds))?, format);
        }
        ("TIMESTAMPDIFF", [Expr::Identifier(unit), from, to]) => {
            let unit = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&unit.value))?;
            let text = format!(
                "(arrow_cast(arrow_cast($2, 'Timestamp(Microsecond, None)'), 'Int64') - \
                 arrow_cast(arrow_cast($1, 'Timestamp(Microsecond, None)'), 'Int64')) DIV {}",
                unit.1
            );
            return expression(&text.replace("DIV", "//"), &[from.clone(), to.clone()]);
        }
        ("HEX", [Expr::Value(ValueWithSpan { value: Value::Number(..), .. })]) => {
            return expression("upper(to_hex($1))", arguments);
        }
        _ => {}
    }
    let (.., text) =
        FUNCTIONS.iter().find(|(known, count, _)| *known == name && *count == arguments.len())?;
    expression(text, arguments)
}

/// MySQL's names of functions of groups that the engine has by another name, or with another meaning.
pub(super) fn aggregate(name: &str) -> Option<&'static str> {
    match name.to_ascii_uppercase().as_str() {
        "STD" | "STDDEV" => Some("stddev_pop"),
        "VARIANCE" => Some("var_pop"),
        _ => None,
    }
}

/// SUBSTRING, whose place counts from the text's end if it is negative, and has nothing if it is 0 or before the text; `None`: the
/// place is a number above 0, which the engine takes as MySQL does.
pub(super) fn substring(text: &Expr, from: &Expr, length: Option<Expr>) -> Option<Expr> {
    if let Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) = from
        && number.parse::<u32>().is_ok_and(|number| number > 0)
    {
        return None;
    }
    let place = "CASE WHEN $2 > 0 THEN $2 \
         WHEN $2 < 0 AND char_length($1) + $2 >= 0 THEN char_length($1) + $2 + 1 \
         WHEN $2 <= 0 THEN 2147483647 END";
    let mut arguments = vec![text.clone(), from.clone()];
    arguments.extend(length);
    let rest = if arguments.len() == 3 { ", $3" } else { "" };
    expression(&format!("substr($1, {place}{rest})"), &arguments)
}

/// An expression with arguments in the places of `$1`, `$2` ….
pub(super) fn expression(text: &str, arguments: &[Expr]) -> Option<Expr> {
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(text).ok()?;
    let mut expression = parser.parse_expr().ok()?;
    let mut places = ArgumentPlaces(arguments);
    let _ = expression.visit(&mut places);
    Some(Expr::Nested(Box::new(expression)))
}

/// Puts arguments in their places. What was put there isn't looked at again.
struct ArgumentPlaces<'a>(&'a [Expr]);

impl VisitorMut for ArgumentPlaces<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = expression
            && let Some(number) = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok())
            && let Some(argument) = number.checked_sub(1).and_then(|place| self.0.get(place))
        {
            *expression = Expr::Nested(Box::new(argument.clone()));
        }
        ControlFlow::Continue(())
    }
}

/// CONCAT is NULL where an argument is.
fn joined(arguments: &[Expr]) -> Option<Expr> {
    let parts: Vec<_> = (1..=arguments.len()).map(|number| format!("CAST(${number} AS VARCHAR)")).collect();
    expression(&parts.join(" || "), arguments)
}

/// GREATEST and LEAST are NULL where an argument is.
fn unless_null(name: &str, arguments: &[Expr]) -> Option<Expr> {
    let numbers = 1..=arguments.len();
    let tests: Vec<_> = numbers.clone().map(|number| format!("${number} IS NULL")).collect();
    let all: Vec<_> = numbers.map(|number| format!("${number}")).collect();
    let text = format!(
        "CASE WHEN {} THEN NULL ELSE {}({}) END",
        tests.join(" OR "),
        name.to_ascii_lowercase(),
        all.join(", ")
    );
    expression(&text, arguments)
}

/// DATE_FORMAT with a format that is a text.
fn formatted(moment: &Expr, format: &Expr) -> Option<Expr> {
    let Expr::Value(ValueWithSpan {
        value: Value::SingleQuotedString(format) | Value::DoubleQuotedString(format),
        ..
    }) = format
    else {
        return None;
    };
    let format = Expr::Value(Value::SingleQuotedString(letters(format)?).with_empty_span());
    expression("to_char(arrow_cast($1, 'Timestamp(Microsecond, None)'), $2)", &[moment.clone(), format])
}

/// A format of DATE_FORMAT as `to_char` takes it; `None`: it has a letter that `to_char` doesn't know.
fn letters(format: &str) -> Option<String> {
    let mut told = String::new();
    let mut rest = format.chars();
    while let Some(letter) = rest.next() {
        if letter != '%' {
            told.push(letter);
            continue;
        }
        let letter = rest.next()?;
        let known = LETTERS.iter().chain(&YEARS).find(|(known, _)| *known == letter);
        match known {
            Some((_, written)) => told.push_str(written),
            None if letter.is_ascii_alphabetic() => return None,
            None => told.push(letter),
        }
    }
    Some(told)
}

/// Whether DATE_FORMAT or FROM_UNIXTIME can't be told in the query engine's words.
pub(super) fn has_no_format(name: &str, arguments: usize) -> bool {
    arguments == 2 && ["DATE_FORMAT", "FROM_UNIXTIME"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_can_be_read() {
        for (name, count, text) in FUNCTIONS {
            let one = Expr::Value(Value::Number("1".to_owned(), false).with_empty_span());
            let read = expression(text, &vec![one; *count]).unwrap_or_else(|| panic!("{name}")).to_string();
            let places = read
                .split('$')
                .skip(1)
                .filter(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()));
            assert_eq!(places.count(), 0, "{name}: {read}");
        }
    }

    #[test]
    fn formats_are_told_in_other_letters() {
        assert_eq!(letters("%Y-%m-%d %H:%i:%s.%f %%").as_deref(), Some("%Y-%m-%d %H:%M:%S.%6f %%"));
        assert_eq!(letters("%D"), None);
        assert_eq!(letters("100%"), None);
    }
}
