//! The READMEs in other languages say what README.md says: the same commands and output, figures with their units, links,
//! and as many claims in each section.

use std::collections::BTreeMap;

use crate::pages::read;

const README: &str = "README.md";
const TRANSLATIONS: [&str; 2] = ["README.zh.md", "README.ja.md"];

/// How often each is there.
type Counts = BTreeMap<String, u32>;

fn counted(items: impl IntoIterator<Item = String>) -> Counts {
    let mut counts = Counts::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    counts
}

/// Blocks in fences whole, commands of indented blocks without the explanation beside them, and code in lines.
fn commands(page: &str) -> Counts {
    let fenced = page.split("```").skip(1).step_by(2).map(str::to_owned);
    let outside = outside_fences(page);
    let indented = outside.lines().filter_map(|line| line.strip_prefix("    "));
    let indented = indented.map(|line| line.split("   ").next().unwrap_or_default().trim_end().to_owned());
    let in_lines = outside.lines().filter(|line| !line.starts_with("    "));
    let in_lines = in_lines.flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned);
    counted(fenced.chain(indented).chain(in_lines))
}

fn outside_fences(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// The words of each language for a unit that has no sign.
const UNITS: [(&str, &[&str]); 7] = [
    ("min", &["minutes", "分钟", "分"]),
    ("byte", &["byte", "字节", "バイト"]),
    ("×", &["×", "倍"]),
    ("%", &["%"]),
    ("MB/s", &["MB/s"]),
    ("MB", &["MB"]),
    ("s", &["seconds", "秒"]),
];

/// The numbers in the words of a page, each with its unit if one follows; digits in names (`S3`) among them.
fn figures(page: &str) -> Counts {
    let outside = outside_fences(page);
    let mut words = String::new();
    for line in outside.lines().filter(|line| !line.starts_with("    ")) {
        words.extend(line.split('`').step_by(2));
        words.push('\n');
    }
    let mut rest = without_targets(&words);
    let mut found = Vec::new();
    while let Some(begin) = rest.find(|c: char| c.is_ascii_digit()) {
        let after = &rest[begin..];
        let end = after.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | ':')));
        let (number, after) = after.split_at(end.unwrap_or(after.len()));
        let closed = number.trim_end_matches(['.', ',', '-', ':']);
        let open = number.len() == closed.len();
        found.push(format!("{closed}{}", if open { unit(after) } else { "" }));
        rest = after.to_owned();
    }
    counted(found)
}

/// The unit at the beginning of a text, or nothing.
fn unit(text: &str) -> &'static str {
    let text = text.trim_start_matches(' ');
    let known = UNITS.iter().find(|(_, words)| words.iter().any(|word| text.starts_with(word)));
    known.map_or("", |(unit, _)| unit)
}

/// A page without the targets of its links.
fn without_targets(page: &str) -> String {
    let mut parts = page.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, after)| after))
}

/// The targets of links and pictures, without those of the languages to one another.
fn linked(page: &str) -> Counts {
    let targets = page.match_indices("](").filter_map(|(at, _)| page[at + 2..].split_once(')'));
    let targets = targets.map(|(target, _)| target.to_owned());
    counted(targets.filter(|target| target != README && !TRANSLATIONS.contains(&target.as_str())))
}

/// The paragraphs, rows of tables and items of each section, in their order: `p`, `|`, `-`.
fn claims(page: &str) -> Vec<String> {
    let mut sections = vec![String::new()];
    let mut before = "";
    for line in outside_fences(page).lines() {
        let kind = match line.chars().next() {
            Some('#') => {
                sections.push(String::new());
                ""
            }
            Some('|') => "|",
            Some('-') => "-",
            Some(' ') | None => "",
            Some(_) if before == "p" => "",
            Some(_) => "p",
        };
        if let Some(section) = sections.last_mut() {
            section.push_str(kind);
        }
        before = if kind.is_empty() && !line.is_empty() && before == "p" { "p" } else { kind };
    }
    sections
}

#[test]
fn translations_say_what_the_original_says() {
    let original = read(README);
    assert!(commands(&original).len() > 20 && figures(&original).len() > 20 && linked(&original).len() > 20);
    for name in TRANSLATIONS {
        let page = read(name);
        assert_eq!(commands(&page), commands(&original), "{name}: commands");
        assert_eq!(figures(&page), figures(&original), "{name}: figures");
        assert_eq!(linked(&page), linked(&original), "{name}: links");
        assert_eq!(claims(&page), claims(&original), "{name}: paragraphs, rows and items of each section");
    }
}

#[test]
fn another_figure_unit_command_link_or_claim_is_seen() {
    let page = "# A\n\nIn 5 minutes 7.2 × at [b](c.md#d), 2026-11-24. `run 3`\nmore\n\n- one\n\n    make it   quickly 9\n";
    let same =
        "# A\n\n5分で、`run 3` [え](c.md#d)、7.2倍。\n続き（2026-11-24）\n\n- 一\n\n    make it   8 速く\n";
    assert_eq!(figures(same), figures(page));
    assert_eq!(commands(same), commands(page));
    assert_eq!(linked(same), linked(page));
    assert_eq!(claims(same), claims(page));
    assert_eq!(figures(page).keys().collect::<Vec<_>>(), ["2026-11-24", "5min", "7.2×"]);
    assert_ne!(figures(&same.replace("7.2倍", "7.2 %")), figures(page));
    assert_ne!(figures(&same.replace("5分", "六分")), figures(page));
    assert_ne!(commands(&same.replace("make it", "make that")), commands(page));
    assert_ne!(commands(&same.replace("run 3", "run 4")), commands(page));
    assert_ne!(linked(&same.replace("#d", "#e")), linked(page));
    assert_ne!(claims(&same.replace("- 一", "- 一\n- 二")), claims(page));
}
