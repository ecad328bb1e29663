//! Decides whether a comparison certainly gives the same result here as on a server; if that isn't certain, it is
//! refused.
//!
//! ```text
//! text with text     equal letters are equal everywhere; letters beyond ASCII may equal others (é = e, ß = ss), as the
//!                    collation has it; so may a text with spaces after it; order is certain for letters, digits and spaces
//!                    in utf8mb4_0900_ai_ci all letters that `weights` knows are certain
//! dates with text    a text in the form in which the server writes dates
//! dates with numbers columns, and literals too small to be a date
//! YEAR               literals as the server stores them in it: 26 is 2026
//! ENUM, SET          by name only where names are known
//! ```

use std::fmt;
use std::ops::RangeInclusive;

use super::scalar::{Scalar, TextRule, is_date, is_like};

/// Why a comparison isn't certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Letters beyond ASCII.
    Letters,
    /// Spaces at the end of one of two equal texts.
    Spaces,
    /// The order of texts.
    Order,
    /// A text that is no date or time as the server writes it.
    Clock,
    /// A local time that clocks show twice or never, beside a TIMESTAMP.
    Repeated,
    /// A member of an ENUM or SET whose name isn't known.
    Member,
    /// A year of two digits.
    Year,
    /// A JSON document.
    Json,
    /// A hexadecimal literal beside a number.
    Hex,
    /// The text of a number or a TIMESTAMP.
    Shown,
    /// Bounds of different types.
    Bounds,
    /// A list of values that servers compare by rules of its own.
    List,
    /// A comparison of two columns of ENUM or SET.
    Members,
    /// A number of many digits beside a text.
    Digits,
    /// Columns of different collations.
    Collations,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doubt::Letters => "whether letters beyond ASCII are equal is for the column's collation to say",
            Doubt::Spaces => "whether spaces at the end count is for the column's collation to say",
            Doubt::Order => "the order of these texts is for the column's collation to say",
            Doubt::Clock => "expected a date or a time as YYYY-MM-DD hh:mm:ss",
            Doubt::Repeated => {
                "clocks show this time twice or never, as they are put back or forward: a TIMESTAMP then is one of two moments \
                 (TZ=UTC: in UTC)"
            }
            Doubt::Member => {
                "the names of its members are not known (binlog_row_metadata=FULL writes them): compare the number, as @3 = 1"
            }
            Doubt::Year => "a year of two digits, expected four",
            Doubt::Json => "JSON documents are not compared",
            Doubt::Hex => "a hexadecimal literal beside a number or a text, expected that one",
            Doubt::List => "the list has a BIT beside a text, or a negative number beside one above all signed ones",
            Doubt::Members => "two columns of ENUM or SET are not compared",
            Doubt::Bounds => "the bounds are of different types",
            Doubt::Collations => {
                "columns of these collations are compared by rules of the server's own, or not at all"
            }
            Doubt::Digits => "a number of many digits beside a text, expected a number",
            Doubt::Shown => "LIKE is not for numbers with exponents and TIMESTAMP",
        })
    }
}

/// The most digits of a number, sign and point counted, that is compared with a text.
const DIGITS_MAX: usize = 15;

/// Whether [`Scalar::compare`] answers as a server. `is_order`: it is asked which is greater.
pub(super) fn compared(one: &Scalar<'_>, two: &Scalar<'_>, is_order: bool) -> Result<(), Doubt> {
    use Scalar::{Bytes, Clock, Double, Member, Moment, Null, Number, Text};
    match (one, two) {
        (Null, _) | (_, Null) => Ok(()),
        (Text { text: one, rule }, Text { text: two, rule: other_rule }) => {
            texts((*rule).max(*other_rule), one, two, is_order)
        }
        (Member(_, None, _), Text { .. }) | (Text { .. }, Member(_, None, _)) => Err(Doubt::Member),
        (Member(_, Some(name), rule), Text { text, rule: other_rule })
        | (Text { text, rule: other_rule }, Member(_, Some(name), rule)) => {
            texts((*rule).max(*other_rule), name, text, is_order)
        }
        (Clock(clock), Text { text, .. }) | (Text { text, .. }, Clock(clock))
            if is_canonical_clock(text) && is_date(text) == is_date(clock) =>
        {
            Ok(())
        }
        (Moment(..), moment @ Text { .. }) | (moment @ Text { .. }, Moment(..)) if moment.is_repeated() => {
            Err(Doubt::Repeated)
        }
        (Moment(..), Moment(..)) if one != two && one.is_repeated() && two.is_repeated() => {
            Err(Doubt::Repeated)
        }
        (Moment(..), Text { text, .. }) | (Text { text, .. }, Moment(..))
            if is_canonical_clock(text) && is_date(text) =>
        {
            Ok(())
        }
        (Clock(_) | Moment(..), Text { .. }) | (Text { .. }, Clock(_) | Moment(..)) => Err(Doubt::Clock),
        (Clock(one), Clock(two)) if is_date(one) != is_date(two) => Err(Doubt::Clock),
        (Clock(_) | Moment(..), Number(_) | Double(_)) | (Number(_) | Double(_), Clock(_) | Moment(..)) => {
            Ok(())
        }
        (Clock(_) | Moment(..), Bytes(_) | Member(..)) | (Bytes(_) | Member(..), Clock(_) | Moment(..)) => {
            Err(Doubt::Clock)
        }
        // The moment of 0 is the date of zeros.
        (Moment(seconds, _), date @ Clock(text)) | (date @ Clock(text), Moment(seconds, _)) => {
            match *seconds > 0 && is_date(text) && date.is_local_time() {
                true if one.is_repeated() || two.is_repeated() => Err(Doubt::Repeated),
                true => Ok(()),
                false => Err(Doubt::Clock),
            }
        }
        (Member(..), Bytes(_)) | (Bytes(_), Member(..)) => Err(Doubt::Member),
        // As doubles, which hold so many digits.
        (Number(number), Text { .. } | Bytes(_)) | (Text { .. } | Bytes(_), Number(number))
            if number.len() > DIGITS_MAX && !are_far_apart(one, two) =>
        {
            Err(Doubt::Digits)
        }
        (Number(_) | Double(_), Number(_) | Double(_) | Text { .. } | Bytes(_) | Member(..))
        | (Text { .. } | Bytes(_) | Member(..), Number(_) | Double(_)) => Ok(()),
        (Bytes(_), Bytes(_) | Text { .. }) | (Text { .. }, Bytes(_)) => Ok(()),
        (Member(..), Member(..)) | (Clock(_), Clock(_)) | (Moment(..), Moment(..)) => Ok(()),
    }
}

/// Whether two numbers differ so much that no rounding counts.
fn are_far_apart(one: &Scalar<'_>, two: &Scalar<'_>) -> bool {
    let both = one.double().zip(two.double());
    both.is_some_and(|(one, two)| (one - two).abs() > 1e-6 * one.abs().max(two.abs()))
}

/// A value and its bounds as BETWEEN compares them: all three in one way. `nulls`: whether NULLs of columns with numbers are among
/// them, and of others; `is_plain`: no hexadecimal literal is.
pub(super) fn bounded<'s>(
    value: Scalar<'s>,
    bounds: (Scalar<'s>, Scalar<'s>),
    nulls: (bool, bool),
    is_plain: bool,
) -> Result<(Scalar<'s>, (Scalar<'s>, Scalar<'s>)), Doubt> {
    use Scalar::{Bytes, Clock, Double, Member, Moment, Null, Number, Text};
    let (low, high) = bounds;
    let is_of_one_type = match (&low, &high) {
        (Null, _) | (_, Null) | (Number(_) | Double(_), Number(_) | Double(_)) => true,
        _ => std::mem::discriminant(&low) == std::mem::discriminant(&high),
    };
    let has = |is: fn(&Scalar<'_>) -> bool| [&value, &low, &high].into_iter().any(is);
    let (has_null_number, has_other_null) = nulls;
    if has_other_null && value != Null && (low != Null || high != Null) {
        return Err(Doubt::Bounds);
    }
    let has_text = has(|one| matches!(one, Text { .. } | Bytes(_) | Member(..)));
    if is_of_one_type && !(has_null_number && has_text) {
        return Ok((value, (low, high)));
    }
    if has(|one| matches!(one, Clock(_) | Moment(..))) || !is_plain {
        return Err(Doubt::Bounds);
    }
    // As doubles, where one is a number.
    if has_null_number || has(|one| matches!(one, Number(_) | Double(_))) {
        if has(|one| matches!(one, Bytes(_)) || matches!(one, Number(text) if text.len() > DIGITS_MAX)) {
            return Err(Doubt::Bounds);
        }
        return Ok((as_double(&value)?, (as_double(&low)?, as_double(&high)?)));
    }
    match has(|one| matches!(one, Bytes(_))) {
        // A text in one, a member's name in the other.
        false if !has(|one| matches!(one, Member(_, None, _))) && has(|one| matches!(one, Text { .. })) => {
            Ok((value, (low, high)))
        }
        _ => Err(Doubt::Bounds),
    }
}

fn as_double<'s>(one: &Scalar<'_>) -> Result<Scalar<'s>, Doubt> {
    match one {
        Scalar::Null => Ok(Scalar::Null),
        one => one.double().map(Scalar::Double).ok_or(Doubt::Bounds),
    }
}

/// Whether LIKE answers as a server.
pub(super) fn liked(value: &Scalar<'_>, pattern: &Scalar<'_>, escape: Option<char>) -> Result<(), Doubt> {
    match (value, pattern) {
        (Scalar::Null, _) | (_, Scalar::Null) => return Ok(()),
        (Scalar::Double(_) | Scalar::Moment(..), _) | (_, Scalar::Double(_) | Scalar::Moment(..)) => {
            return Err(Doubt::Shown);
        }
        (Scalar::Member(_, None, _), _) | (_, Scalar::Member(_, None, _)) => return Err(Doubt::Member),
        (
            Scalar::Number(_)
            | Scalar::Text { .. }
            | Scalar::Bytes(_)
            | Scalar::Clock(_)
            | Scalar::Member(_, Some(_), _),
            Scalar::Number(_)
            | Scalar::Text { .. }
            | Scalar::Bytes(_)
            | Scalar::Clock(_)
            | Scalar::Member(_, Some(_), _),
        ) => {}
    }
    let Some(((text, rule), (pattern, _))) = value.text().zip(pattern.text()) else { return Ok(()) };
    let rule = rule.for_letters_of(&text, &pattern);
    // The letter that escapes is that one alone.
    if !matches!(rule, TextRule::Levels | TextRule::Capitals | TextRule::Codes)
        && escape.is_some_and(char::is_alphanumeric)
    {
        return Err(Doubt::Letters);
    }
    if rule == TextRule::Unknown
        && is_like(&text, &pattern, escape, TextRule::Codes) != is_like(&text, &pattern, escape, rule)
    {
        return Err(Doubt::Letters);
    }
    let is_certain = !matches!(rule, TextRule::Letters | TextRule::Unknown)
        || text.is_ascii() && pattern.is_ascii()
        || is_like(&text, &pattern, escape, TextRule::Letters)
        || !may_match(&loose(&text.to_lowercase(), None), &pattern_of(&pattern.to_lowercase(), escape));
    if is_certain { Ok(()) } else { Err(Doubt::Letters) }
}

fn texts(rule: TextRule, one: &str, two: &str, is_order: bool) -> Result<(), Doubt> {
    match rule.for_letters_of(one, two) {
        TextRule::Letters => texts_by_letters(one, two, is_order),
        TextRule::Weights | TextRule::Ascii => Ok(()),
        TextRule::Levels if is_order && one != two && TextRule::are_equal_but_for_levels(one, two) => {
            Err(Doubt::Order)
        }
        TextRule::Levels => Ok(()),
        TextRule::Unknown => {
            let lower = one.to_lowercase();
            let other = two.to_lowercase();
            if (one == two) != (lower == other) {
                return Err(Doubt::Letters);
            }
            if is_order && one.cmp(two) != lower.cmp(&other) {
                return Err(Doubt::Order);
            }
            texts_by_letters(one, two, is_order)
        }
        TextRule::Capitals if is_order && one != two => Err(Doubt::Order),
        // Byte by byte, or nearly so.
        TextRule::Capitals | TextRule::Codes => texts_by_bytes(one, two),
    }
}

fn texts_by_bytes(one: &str, two: &str) -> Result<(), Doubt> {
    match one != two && one.trim_end_matches(' ') == two.trim_end_matches(' ') {
        true => Err(Doubt::Spaces),
        false => Ok(()),
    }
}

fn texts_by_letters(one: &str, two: &str, is_order: bool) -> Result<(), Doubt> {
    let lower = one.to_lowercase();
    let other = two.to_lowercase();
    if lower == other {
        return Ok(());
    }
    let lower = &lower;
    let other = &other;
    let [bare, other_bare] = [lower, other].map(|text| text.trim_end_matches(' '));
    if bare == other_bare {
        return Err(Doubt::Spaces);
    }
    match is_order {
        true if is_ordered(lower, other) => Ok(()),
        true => Err(Doubt::Order),
        false if one.is_ascii() && two.is_ascii() => Ok(()),
        false if may_match(&loose(bare, None), &loose(other_bare, None)) => Err(Doubt::Letters),
        false => Ok(()),
    }
}

/// Whether every collation has two different texts of small letters in the order of their codes: where they first differ,
/// digits, letters or spaces do, or one text ends. Letters beyond ASCII next to that place might change it.
fn is_ordered(one: &str, two: &str) -> bool {
    let equal = one.bytes().zip(two.bytes()).take_while(|(one, two)| one == two).count();
    let differ = match (one.as_bytes().get(equal), two.as_bytes().get(equal)) {
        (Some(one), Some(two)) => is_simple(*one) && is_simple(*two),
        (Some(next), None) | (None, Some(next)) => *next != b' ',
        (None, None) => true,
    };
    differ && is_shown(one, equal + 2) && is_shown(two, equal + 2)
}

fn is_simple(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b' '
}

/// Whether the first bytes of a text are letters of ASCII that can be seen.
fn is_shown(text: &str, count: usize) -> bool {
    text.bytes().take(count).all(|byte| matches!(byte, b' '..=b'~'))
}

/// A letter of a text or a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letter {
    /// A letter, in small, that equals only itself.
    Exact(char),
    /// A letter that may equal others, under some collation.
    Loose,
    /// Any one.
    One,
    /// Any number of any.
    Many,
}

/// Whether a small letter beyond ASCII has a weight of its own in every collation: ideographs, syllables of Hangul, the plain
/// letters of Russian and Greek.
fn is_distinct(letter: char) -> bool {
    matches!(letter, '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | 'а'..='и' | 'к'..='я' | 'α'..='ρ' | 'τ'..='ω')
}

fn loose(text: &str, wildcards: Option<char>) -> Vec<Letter> {
    text.chars().map(|letter| loose_letter(letter, wildcards.is_some())).collect()
}

fn loose_letter(letter: char, has_wildcards: bool) -> Letter {
    match letter {
        _ if is_distinct(letter) => Letter::Exact(letter),
        _ if !letter.is_ascii() => Letter::Loose,
        // A character that can't be seen may not count.
        _ if letter.is_ascii_control() => Letter::Loose,
        '%' if has_wildcards => Letter::Many,
        '_' if has_wildcards => Letter::One,
        _ => Letter::Exact(letter.to_ascii_lowercase()),
    }
}

fn pattern_of(pattern: &str, escape: Option<char>) -> Vec<Letter> {
    let mut letters = Vec::new();
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        match Some(letter) == escape {
            true => letters.extend(loose(&rest.next().unwrap_or(letter).to_string(), None)),
            false => letters.extend(loose(&letter.to_string(), Some('%'))),
        }
    }
    letters
}

/// Whether two could be equal under some collation.
fn may_match(one: &[Letter], two: &[Letter]) -> bool {
    // Which places of `two` are reached after so many letters of `one`.
    let mut reached = vec![false; two.len() + 1];
    reach(&mut reached, 0..=0);
    pass_over_free(&mut reached, two);
    for letter in one {
        let mut next = vec![false; two.len() + 1];
        for (place, _) in reached.iter().enumerate().filter(|(_, is)| **is) {
            match (letter, two.get(place)) {
                // It may stand for nothing, or for up to three.
                (Letter::Loose | Letter::Many, _) => reach(&mut next, place..=place + 3),
                (_, Some(Letter::Loose | Letter::Many)) => reach(&mut next, place..=place + 1),
                (_, Some(Letter::One)) => reach(&mut next, place + 1..=place + 1),
                (Letter::Exact(own), Some(Letter::Exact(other))) if own == other => {
                    reach(&mut next, place + 1..=place + 1);
                }
                _ => {}
            }
        }
        pass_over_free(&mut next, two);
        reached = next;
    }
    reached.last() == Some(&true)
}

/// Marks places as reached, as far as there are such places.
fn reach(reached: &mut [bool], places: RangeInclusive<usize>) {
    for place in places {
        if let Some(is) = reached.get_mut(place) {
            *is = true;
        }
    }
}

/// Reaches the place after each letter that may stand for nothing.
fn pass_over_free(reached: &mut [bool], letters: &[Letter]) {
    for (place, letter) in letters.iter().enumerate() {
        if matches!(letter, Letter::Loose | Letter::Many) && reached.get(place) == Some(&true) {
            reach(reached, place + 1..=place + 1);
        }
    }
}

/// `YYYY-MM-DD`, with a time after it or not, or a time alone.
fn is_canonical_clock(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let (whole, fraction) = shape.split_once('.').unwrap_or((&shape, ""));
    let is_fraction = fraction.len() <= 6 && fraction.bytes().all(|byte| byte == b'0');
    let time = whole.strip_prefix('-').unwrap_or(whole);
    is_fraction
        && (["0000-00-00 00:00:00", "0000-00-00T00:00:00", "00:00:00", "000:00:00"].contains(&time)
            || whole == "0000-00-00" && fraction.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Scalar<'_> {
        Scalar::Text { text: text.into(), rule: TextRule::Letters }
    }

    #[test]
    fn what_a_collation_decides_is_refused() {
        for (one, two, is_order, expected) in [
            ("paid", "PAID", false, Ok(())),
            ("José", "josÉ", false, Ok(())),
            ("José", "jose", false, Err(Doubt::Letters)),
            ("José", "bob", false, Ok(())),
            ("Straße", "strasse", false, Err(Doubt::Letters)),
            ("日本", "東京", false, Ok(())),
            ("Москва", "Самара", false, Ok(())),
            ("Мойва", "Моива", false, Err(Doubt::Letters)),
            ("🍣", "🍺", false, Err(Doubt::Letters)),
            ("a", "a ", false, Err(Doubt::Spaces)),
            ("a", "b", true, Ok(())),
            ("a_b", "ab", true, Err(Doubt::Order)),
            ("é", "f", true, Err(Doubt::Order)),
            ("", "x,y", true, Ok(())),
            ("x", "x,y", true, Ok(())),
            ("x,y", "x,z", true, Ok(())),
            ("x,z", "xyz", true, Err(Doubt::Order)),
            ("paid", "José", true, Ok(())),
            ("a\u{30a}", "b", true, Err(Doubt::Order)),
            ("jose", "José", true, Err(Doubt::Order)),
        ] {
            assert_eq!(compared(&text(one), &text(two), is_order), expected, "{one} {two}");
        }
        for (value, pattern, expected) in [
            ("José", "jos_", Ok(())),
            ("José", "%jose%", Err(Doubt::Letters)),
            ("José", "%paid%", Ok(())),
            ("plain", "é%", Err(Doubt::Letters)),
            ("plain", "x\\%é", Ok(())),
        ] {
            assert_eq!(liked(&text(value), &text(pattern), Some('\\')), expected, "{value} {pattern}");
        }
        for clock in ["2026-11-22", "2026-11-22 01:02:03.5", "2026-11-22T01:02:03", "-10:00:00", "838:59:59"]
        {
            assert!(is_canonical_clock(clock), "{clock}");
        }
        for clock in ["2026-1-2", "26-11-22", "20261122", "10:00", "1 10:00:00", "x", ""] {
            assert!(!is_canonical_clock(clock), "{clock}");
        }
        let member = Scalar::Member(1, None, TextRule::Letters);
        assert_eq!(compared(&member, &text("a"), false), Err(Doubt::Member));
        assert_eq!(compared(&member, &Scalar::Number("1".into()), false), Ok(()));
    }
}
