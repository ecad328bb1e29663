//! Names like one that isn't there: what was probably meant.

/// How many are told.
const LIKELY_MAX: usize = 3;

/// The names that a user may have meant, as words: `there is shop.orders`, `there are a.t, b.t and c.t`. `None`: none is like it.
pub fn likely(asked: &str, names: impl IntoIterator<Item = String>) -> Option<String> {
    let table = asked.rsplit_once('.').map_or(asked, |(_, table)| table);
    let limit = table.chars().count() / 3 + 1;
    let measured = names.into_iter().map(|name| (difference(asked, &name), name));
    let mut close: Vec<_> = measured.filter(|(difference, _)| *difference <= limit).collect();
    close.sort();
    close.truncate(LIKELY_MAX);
    let names: Vec<String> = close.into_iter().map(|(_, name)| name).collect();
    match names.split_last()? {
        (only, []) => Some(format!("there is {only}")),
        (last, others) => Some(format!("there are {} and {last}", others.join(", "))),
    }
}

/// How many letters differ, without case. A table of the same name in another database is as near as one letter.
fn difference(one: &str, other: &str) -> usize {
    let [one, other] = [one, other].map(str::to_lowercase);
    let table = |name: &str| name.rsplit_once('.').map(|(_, table)| table.to_owned());
    if one != other && table(&one).is_some_and(|name| Some(name) == table(&other)) {
        return 1;
    }
    let letters: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=letters.len()).collect();
    for (place, letter) in one.chars().enumerate() {
        let mut diagonal = place;
        let mut left = place + 1;
        for (cell, known) in row.iter_mut().skip(1).zip(&letters) {
            let replaced = diagonal + usize::from(letter != *known);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = place + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_like_it() {
        let names = ["shop.orders", "shop.order_items", "shop.customers", "old.ordres"];
        let likely = |asked: &str| likely(asked, names.map(str::to_owned));
        for (asked, expected) in [
            ("shop.ordres", Some("there are old.ordres and shop.orders")),
            ("Shop.Orders", Some("there is shop.orders")),
            ("shop.customer", Some("there is shop.customers")),
            ("prod.customers", Some("there is shop.customers")),
            ("shop.invoices", None),
            ("", None),
        ] {
            assert_eq!(likely(asked).as_deref(), expected, "{asked}");
        }
    }

    #[test]
    fn differences_are_counted_in_letters() {
        for (one, other, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(difference(one, other), expected, "{one} {other}");
        }
    }
}
