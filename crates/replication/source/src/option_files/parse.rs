//! The lines of an option file.
//!
//! ```text
//! [group]
//! name              name = value        name = "value with # and spaces"
//! # comment         ; comment           name = value # comment
//! !include FILE     !includedir DIRECTORY
//! ```
//!
//! A value may be in quotes. Inside and outside of them `\n`, `\t`, `\r`, `\b`, `\s`, `\\`, `\'` and `\"` are escapes
//! (`\s` is a space), and any other backslash is literal. All of it is compared with MySQL's own `--print-defaults`.

/// A line's meaning.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OptionLine<'a> {
    /// The line is empty, or a comment.
    Nothing,
    /// The following lines belong to this group.
    Group(&'a str),
    /// An option.
    Option {
        /// The option's name as it is written.
        name: &'a str,
        /// Without quotes, escapes and comment; `None` without an equals sign.
        value: Option<String>,
    },
    /// The file is to be read here.
    Include(&'a str),
    /// Each `.cnf` of the directory is to be read here.
    IncludeDirectory(&'a str),
}

/// Reads a line; the error names the mistake in it.
pub(super) fn parse_line(line: &str) -> Result<OptionLine<'_>, &'static str> {
    let line = line.trim_ascii();
    match line.chars().next() {
        None | Some('#' | ';') => Ok(OptionLine::Nothing),
        Some('!') => parse_directive(&line[1..]),
        Some('[') => match line[1..].split_once(']') {
            // A space in front is part of the name.
            Some((name, _)) => Ok(OptionLine::Group(name.trim_ascii_end())),
            None => Err("group has no closing bracket"),
        },
        Some(_) => Ok(parse_option(without_comment(line))),
    }
}

fn parse_directive(directive: &str) -> Result<OptionLine<'_>, &'static str> {
    let (name, path) = directive.split_once([' ', '\t']).unwrap_or((directive, ""));
    match (name, path.trim_ascii()) {
        ("include" | "includedir", "") => Err("include without a path"),
        ("include", path) => Ok(OptionLine::Include(path)),
        ("includedir", path) => Ok(OptionLine::IncludeDirectory(path)),
        // MySQL's programs ignore the ones they don't know.
        _ => Ok(OptionLine::Nothing),
    }
}

fn parse_option(line: &str) -> OptionLine<'_> {
    match line.split_once('=') {
        Some((name, value)) => {
            let value = unescaped(unquoted(value.trim_ascii()));
            OptionLine::Option { name: name.trim_ascii(), value: Some(value) }
        }
        None => OptionLine::Option { name: line.trim_ascii(), value: None },
    }
}

/// The line up to a `#` outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (index, byte) in line.bytes().enumerate() {
        match byte {
            b'#' if quote.is_none() => return &line[..index],
            b'\'' | b'"' if !escaped => match quote {
                None => quote = Some(byte),
                Some(open) if open == byte => quote = None,
                Some(_) => {}
            },
            _ => {}
        }
        escaped = quote.is_some() && byte == b'\\' && !escaped;
    }
    line
}

fn unquoted(value: &str) -> &str {
    let within = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('s') => text.push(' '),
            Some(quoted @ ('\\' | '\'' | '"')) => text.push(quoted),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(line: &str) -> Option<String> {
        match parse_line(line).expect("a line") {
            OptionLine::Option { value, .. } => value,
            other => panic!("{line} is {other:?}"),
        }
    }

    #[test]
    fn lines_are_groups_options_directives_or_nothing() {
        assert_eq!(parse_line("  [ client ] rest"), Ok(OptionLine::Group(" client")));
        assert_eq!(parse_line(" quick "), Ok(OptionLine::Option { name: "quick", value: None }));
        assert_eq!(parse_line("!include /a b.cnf "), Ok(OptionLine::Include("/a b.cnf")));
        assert_eq!(parse_line("!includedir\t/etc/d"), Ok(OptionLine::IncludeDirectory("/etc/d")));
        for nothing in ["", "  ", "# a", " ;b", "!other x"] {
            assert_eq!(parse_line(nothing), Ok(OptionLine::Nothing), "{nothing}");
        }
        assert!(parse_line("[client").is_err());
        assert!(parse_line("!include").is_err());
    }

    #[test]
    fn values_lose_quotes_escapes_and_comments() {
        for (line, expected) in [
            ("user = \"a # b\"   # comment", "a # b"),
            (r#"password='it\'s \"x\" \q \s|'"#, r#"it's "x" \q  |"#),
            ("socket = ", ""),
            ("host = a\"b\"c", "a\"b\"c"),
            ("ssl_mode = 'x' y", "'x' y"),
            (r"tab=a\tb\\n\", "a\tb\\n\\"),
            ("x = y = z", "y = z"),
            ("one='", "'"),
        ] {
            assert_eq!(value(line).as_deref(), Some(expected), "{line}");
        }
    }
}
