//! Sizes for people: three or four digits and a unit, powers of 1024 as in the options of all commands.

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
}
