//! Options with a few possible values: in any case, and abbreviated as long as the value is unambiguous.

/// The value that a text names; `Err`: what to tell.
pub(super) fn choose<T: Copy>(option: &str, text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let begins =
        |name: &str| name.get(..text.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(text));
    if !text.is_empty() {
        if let Some((_, value)) = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            return Ok(*value);
        }
        let mut found = choices.iter().filter(|(name, _)| begins(name));
        if let (Some((_, value)), None) = (found.next(), found.next()) {
            return Ok(*value);
        }
    }
    let problem = match text {
        "" => format!("No option given to {option}"),
        _ => format!("Unknown option to {option}: {text}"),
    };
    let names: Vec<_> = choices.iter().map(|(name, _)| format!("'{name}'")).collect();
    Err(format!("{problem}\nAlternatives are: {}", names.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICES: [(&str, u8); 3] = [("REQUIRED", 1), ("VERIFY_CA", 2), ("VERIFY_IDENTITY", 3)];

    #[test]
    fn a_beginning_is_enough() {
        for (text, value) in [("required", 1), ("R", 1), ("verify_c", 2), ("VERIFY_IDENTITY", 3)] {
            assert_eq!(choose("ssl-mode", text, &CHOICES), Ok(value), "{text}");
        }
        let alternatives = "Alternatives are: 'REQUIRED','VERIFY_CA','VERIFY_IDENTITY'";
        for (text, problem) in [
            ("", "No option given to ssl-mode"),
            ("verify", "Unknown option to ssl-mode: verify"),
            ("REQUIREDX", "Unknown option to ssl-mode: REQUIREDX"),
            ("ä", "Unknown option to ssl-mode: ä"),
        ] {
            assert_eq!(choose("ssl-mode", text, &CHOICES), Err(format!("{problem}\n{alternatives}")));
        }
    }
}
