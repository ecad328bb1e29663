//! The order of logs: by base name, in the order in which the base names first appear, then by number as a
//! number, since `.1000000` comes after `.999999`.

use std::collections::HashMap;

/// Base name and number of a log; a name without a number is all base.
fn parts(name: &str) -> (&str, Option<u64>) {
    name.rsplit_once('.')
        .and_then(|(base, number)| Some((base, Some(number.parse().ok()?))))
        .unwrap_or((name, None))
}

/// The base name of a log.
pub(crate) fn base(name: &str) -> &str {
    parts(name).0
}

/// The number of a log.
pub(crate) fn number(name: &str) -> Option<u64> {
    parts(name).1
}

/// The name of the log this many numbers later.
pub fn numbered(name: &str, step: i64) -> Option<String> {
    let (base, number) = name.rsplit_once('.')?;
    let next = number.parse::<u64>().ok()?.checked_add_signed(step)?;
    // Servers give at least six digits: .999999 comes before .1000000.
    let width = if number.starts_with('0') { number.len() } else { number.len().min(6) };
    Some(format!("{base}.{next:0width$}"))
}

/// Sorts items that have the names of logs; items with equal names keep their order.
pub fn sort_by_name<T>(logs: &mut [T], name: impl Fn(&T) -> &str) {
    // Nearly always they are.
    if logs.is_sorted_by(|one, next| {
        let one = parts(name(one));
        let next = parts(name(next));
        one.0 == next.0 && one.1 <= next.1
    }) {
        return;
    }
    let mut bases: HashMap<String, usize> = HashMap::new();
    for log in logs.iter() {
        let next = bases.len();
        bases.entry(parts(name(log)).0.to_owned()).or_insert(next);
    }
    logs.sort_by_cached_key(|log| {
        let (base, number) = parts(name(log));
        (bases.get(base).copied(), number)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_stand_in_the_order_of_their_numbers() {
        let mut names = [
            "db.1000000",
            "db.000002",
            "db-relay.000007",
            "db.999999",
            "other",
            "db-relay.000006",
            "db.000010",
            "other",
        ];
        sort_by_name(&mut names, |name| name);
        assert_eq!(
            names,
            [
                "db.000002",
                "db.000010",
                "db.999999",
                "db.1000000",
                "db-relay.000006",
                "db-relay.000007",
                "other",
                "other",
            ]
        );
    }

    #[test]
    fn the_next_log_has_the_next_number() {
        assert_eq!(numbered("binlog.000009", 1).as_deref(), Some("binlog.000010"));
        assert_eq!(numbered("binlog.999999", 1).as_deref(), Some("binlog.1000000"));
        assert_eq!(numbered("binlog.1000000", -1).as_deref(), Some("binlog.999999"));
        assert_eq!(numbered("binlog.000010", -1).as_deref(), Some("binlog.000009"));
        assert_eq!(numbered("binlog.000000", -1), None);
        assert_eq!(numbered("binlog", 1), None);
    }
}
