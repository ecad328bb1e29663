//! Sizes as people read them, three or four digits and a unit, and as they write them in options and configurations: `500K`, `20M`, `1G`.
//!
//! Units are powers of 1024, as in MySQL's own options: `max_binlog_size = 1G` means the same in `my.cnf` and in `relay.toml`. (The crate
//! bytesize reads K as 1000 and goes through `f64`.)

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// A number of bytes as people read it: `242 B`, `185.7 KiB`, `1.4 GiB`.
pub fn human_size(bytes: u64) -> String {
    let mut unit = 0;
    let mut divisor = 1_u64;
    // 1.0 of the next unit instead of 1024.0 of this one.
    while unit + 1 < UNITS.len() && bytes as f64 / divisor as f64 >= 1023.95 {
        divisor = divisor.saturating_mul(1024);
        unit += 1;
    }
    let name = UNITS.get(unit).unwrap_or(&"EiB");
    match unit {
        0 => format!("{bytes} {name}"),
        _ => format!("{:.1} {name}", bytes as f64 / divisor as f64),
    }
}

/// Reads a size in bytes: a number, alone or with K, M, G or T.
///
/// # Errors
///
/// The text is no size; the error says what was expected.
pub fn byte_size(text: &str) -> Result<u64, String> {
    let units = [("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1_u64 << 40)];
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let factor = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| factor);
    // Anything but digits, such as a sign, is not a size.
    let number =
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
    number
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(*factor))
        .ok_or_else(|| format!("{text:?}, expected a size such as 4096, 500K, 20M or 1G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_digit_after_the_point_and_a_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (190_137, "185.7 KiB"),
            (1_048_524, "1023.9 KiB"),
            (1_048_560, "1.0 MiB"),
            (70_990_000, "67.7 MiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(human_size(bytes), text);
        }
    }
    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in
            [("4096", 4096), ("500k", 500 << 10), ("20M", 20 << 20), ("500G", 500 << 30), ("1T", 1 << 40)]
        {
            assert_eq!(byte_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "5X", "-1G", "+1G", "99999999999T", "1.5G", "1 G", "0x10", "1GG"] {
            assert!(byte_size(text).is_err(), "{text}");
        }
    }
}
