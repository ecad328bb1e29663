//! Patterns of LIKE.

/// Whether a name matches a LIKE pattern: `%` is any text, `_` any character, `\` takes the next one
/// literally.
pub fn is_like(name: &str, pattern: &str) -> bool {
    let name = name.as_bytes();
    // The lengths of the prefixes of the name that match the pattern so far.
    let mut fits: Vec<bool> = (0..=name.len()).map(|length| length == 0).collect();
    let mut pattern = pattern.bytes();
    while let Some(letter) = pattern.next() {
        if letter == b'%' {
            let mut any = false;
            for slot in &mut fits {
                any |= *slot;
                *slot = any;
            }
            continue;
        }
        let (letter, any) = match letter {
            b'\\' => (pattern.next().unwrap_or(letter), false),
            _ => (letter, letter == b'_'),
        };
        let longer =
            fits.iter().zip(name).map(|(fit, next)| *fit && (any || next.eq_ignore_ascii_case(&letter)));
        fits = std::iter::once(false).chain(longer).collect();
    }
    fits.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (name, pattern, fits) in [
            ("server_id", "SERVER_ID", true),
            ("server_id", "server%", true),
            ("server_id", "%id", true),
            ("server_id", "server\\_id", true),
            ("serverxid", "server\\_id", false),
            ("serverxid", "server_id", true),
            ("server_id", "server", false),
            ("", "%", true),
        ] {
            assert_eq!(is_like(name, pattern), fits, "{name} LIKE {pattern}");
        }
        assert!(!is_like(&"a".repeat(64), &("%a".repeat(5000) + "b")), "and it takes no time");
    }
}
