//! The headings and units of columns for people, from their stable names: `compressed_bytes`, `p99_us`.

/// The kind of a column's numbers, as far as it changes how they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberKind {
    /// Bytes: `185.7 KiB`.
    Size,
    /// Words that are written as they are: people copy them, or a server prints them.
    Plain,
    /// Digits in groups of three.
    Count,
}

/// Numbers that name something.
const NAMES: [&str; 6] = ["offset", "position", "seed", "level", "server_id", "port"];

pub(crate) fn kind(column: &str) -> NumberKind {
    if is_of_a_server(column) || NAMES.contains(&column) {
        return NumberKind::Plain;
    }
    let mut words = column.split('_');
    let is_rate = column.contains("_per_");
    match words.any(|word| word == "bytes") || column.starts_with("size_") {
        true if !is_rate => NumberKind::Size,
        _ => NumberKind::Count,
    }
}

/// A server's own columns keep their names.
pub(crate) fn is_of_a_server(column: &str) -> bool {
    column.chars().any(|letter| letter.is_ascii_uppercase())
}

/// The heading of a column.
pub(crate) fn heading(column: &str) -> String {
    if is_of_a_server(column) {
        return column.to_owned();
    }
    match column {
        "compression_percentage" => return "saved %".to_owned(),
        "half_width_percent" => return "± %".to_owned(),
        "us_per_transaction" => return "µs per transaction".to_owned(),
        _ => {}
    }
    let (rest, unit) =
        [("_s_per_gb", " s/GB"), ("_percent", " %"), ("_us", " µs"), ("_ms", " ms"), ("_s", " s")]
            .into_iter()
            .find_map(|(end, unit)| Some((column.strip_suffix(end)?, unit)))
            .unwrap_or((column, ""));
    rest.replace('_', " ") + unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        for (column, words) in [
            ("compressed_bytes", "compressed bytes"),
            ("compression_percentage", "saved %"),
            ("saved_percent", "saved %"),
            ("p99_us", "p99 µs"),
            ("expand_s_per_gb", "expand s/GB"),
            ("first_commit", "first commit"),
            ("LOG_TYPE", "LOG_TYPE"),
        ] {
            assert_eq!(heading(column), words);
        }
    }

    #[test]
    fn only_bytes_are_sizes() {
        for (column, expected) in [
            ("bytes", NumberKind::Size),
            ("size_from", NumberKind::Size),
            ("wire_bytes_per_row_change", NumberKind::Count),
            ("transactions", NumberKind::Count),
            ("offset", NumberKind::Plain),
            ("COMPRESSED_BYTES_COUNTER", NumberKind::Plain),
        ] {
            assert_eq!(kind(column), expected, "{column}");
        }
    }
}
