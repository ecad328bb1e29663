//! The glossary of ARCHITECTURE.md names types that its crates have.

use std::fs;
use std::path::Path;

use crate::pages::{crate_folders, read};

/// All sources below a folder, one after the other.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    text
}

/// Whether a type of this name is declared there.
fn declares(sources: &str, name: &str) -> bool {
    let declared = ["struct", "enum", "trait", "type"].map(|kind| format!("{kind} {name}"));
    let ends = |after: &str| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    declared
        .iter()
        .any(|words| sources.match_indices(words).any(|(at, _)| ends(&sources[at + words.len()..])))
}

#[test]
fn every_type_of_the_glossary_is_there() {
    let page = read("ARCHITECTURE.md");
    let (_, glossary) = page.split_once("\n## Glossary\n").expect("ARCHITECTURE.md has a glossary");
    let rows = glossary.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let folders = crate_folders();
    let (mut missing, mut count) = (Vec::new(), 0);
    for row in rows.take_while(|line| line.starts_with('|')) {
        let mut cells = row.split('|').skip(3).map(|cell| cell.split('`').nth(1).unwrap_or_default());
        let (name, package) = (cells.next().unwrap(), cells.next().unwrap());
        let folder = folders.iter().find(|folder| folder.ends_with(package));
        let folder = folder.unwrap_or_else(|| panic!("no crate {package}"));
        if !declares(&sources(&folder.join("src")), name) {
            missing.push(format!("{package}::{name}"));
        }
        count += 1;
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert!(count >= 15, "{count} rows: are they still found?");
}

#[test]
fn a_longer_name_is_another_type() {
    assert!(declares("pub struct Form {", "Form"));
    assert!(!declares("pub struct FormFile {", "Form"));
}
