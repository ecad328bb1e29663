//! The READMEs in other languages give the same commands and figures as README.md.

use std::collections::BTreeSet;

use crate::pages::read;

const TRANSLATIONS: [&str; 2] = ["README.zh.md", "README.ja.md"];

/// The commands in indented blocks, without the explanation beside them. Blocks in fences are code.
fn commands(page: &str) -> BTreeSet<&str> {
    let outside_fences = page.split("```").step_by(2).flat_map(str::lines);
    let indented = outside_fences.filter_map(|line| line.strip_prefix("    "));
    let commands = indented.filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    commands.map(|line| line.split("   ").next().unwrap_or_default().trim_end()).collect()
}

/// The figures with a thousands separator or a decimal point.
fn figures(page: &str) -> BTreeSet<&str> {
    let words = page.split(|c: char| !c.is_ascii_digit() && c != ',' && c != '.');
    let words = words.map(|word| word.trim_matches(['.', ',']));
    words.filter(|word| word.contains([',', '.'])).collect()
}

/// The targets of links to our own pages, without anchors.
fn linked(page: &str) -> BTreeSet<&str> {
    let targets = page.match_indices("](docs/").filter_map(|(at, _)| page[at + 2..].split_once(')'));
    targets.map(|(target, _)| target.split('#').next().unwrap_or_default()).collect()
}

#[test]
fn translations_give_the_commands_figures_and_pages_of_the_original() {
    let original = read("README.md");
    assert!(commands(&original).len() >= 6 && figures(&original).len() > 10, "{:?}", commands(&original));
    for name in TRANSLATIONS {
        let page = read(name);
        assert_eq!(commands(&page), commands(&original), "{name}: commands");
        let unknown: Vec<_> = figures(&page).difference(&figures(&original)).copied().collect();
        assert!(unknown.is_empty(), "{name}: figures that README.md doesn't have: {unknown:?}");
        let guides = |page| linked(page).into_iter().filter(|to| to.starts_with("docs/guides/")).collect();
        let (found, expected): (BTreeSet<_>, BTreeSet<_>) = (guides(&page), guides(&original));
        assert_eq!(found, expected, "{name}: guides");
    }
}
