//! Names of tables at moments: `orders🕙2026-11-27 10:42` within the program, `orders AS OF '2026-11-27 10:42'` for users.
//!
//! MySQL's names have no characters beyond U+FFFF (its manual, "Schema Object Names"), so no table has a name with this one.

/// Stands between a table's name and its moment.
const MARK: char = '\u{1F559}';

/// Takes a table's name and its moment apart; `None`: it has none.
pub fn moment_of(name: &str) -> Option<(&str, &str)> {
    name.split_once(MARK)
}

/// The name of a table at a moment.
pub fn at_moment(table: &str, moment: &str) -> String {
    format!("{table}{MARK}{moment}")
}

/// The name of a table, maybe at a moment, as users write it.
pub(crate) fn written(name: &str) -> String {
    match moment_of(name) {
        Some((table, moment)) => format!("{table} AS OF '{moment}'"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_apart_and_shown_as_it_was_written() {
        let name = at_moment("orders", "10:42");
        assert_eq!(moment_of(&name), Some(("orders", "10:42")));
        assert_eq!(moment_of("orders AS OF '10:42'"), None);
        assert_eq!(written(&format!("shop.{name}")), "shop.orders AS OF '10:42'");
        assert_eq!(written("shop.orders"), "shop.orders");
    }
}
