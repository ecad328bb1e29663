//! Numbers with their digits in groups of three.

/// A number with a comma between groups of three digits.
pub fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things, as in `1 log` and `2,345 logs`; `things` is the plural, which the singular is without its `s`.
pub fn counted(number: u64, things: &str) -> String {
    let name = if number == 1 { things.strip_suffix('s').unwrap_or(things) } else { things };
    format!("{} {name}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        for (number, text) in [(0u64, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn one_thing_is_singular() {
        assert_eq!([0, 1, 2345].map(|number| counted(number, "logs")), ["0 logs", "1 log", "2,345 logs"]);
    }
}
