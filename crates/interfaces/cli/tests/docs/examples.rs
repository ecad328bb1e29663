//! No example in the docs of a crate goes unrun because its `Cargo.toml` says that there is none.

use std::fs;
use std::path::Path;

use crate::pages::{crate_folders, read};

/// Lines of a source at which an example begins.
fn examples(source: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut inside = false;
    for (line, number) in source.lines().zip(1..) {
        let line = line.trim_start();
        let doc = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")).unwrap_or_default();
        let Some(tag) = doc.trim_start().strip_prefix("```") else { continue };
        let is_rust = ["", "rust", "no_run", "should_panic", "compile_fail"].contains(&tag.trim());
        if !inside && is_rust {
            found.push(number);
        }
        inside = !inside;
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let lines = examples(&read(&path));
            found.extend(lines.into_iter().map(|line| format!("{}:{line}", path.display())));
        }
    }
}

#[test]
fn every_example_of_the_docs_is_run() {
    let (mut without, mut with) = (0, 0);
    for path in crate_folders() {
        if !path.join("src/lib.rs").exists() {
            continue;
        }
        let mut found = Vec::new();
        sources(&path.join("src"), &mut found);
        match read(path.join("Cargo.toml")).contains("\ndoctest = false\n") {
            true => {
                assert!(found.is_empty(), "{} has doctest = false, and examples: {found:?}", path.display());
                without += 1;
            }
            false => with += usize::from(!found.is_empty()),
        }
    }
    assert!(without > 5 && with > 3, "{without} without, {with} with examples");
}

#[test]
fn an_example_is_told_from_other_blocks() {
    assert_eq!(examples("//! ```text\n//! ```\n/// ```\n/// x\n/// ```\n// ```\n"), [3]);
}
