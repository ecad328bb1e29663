//! Every link of every page that leads to one of our files leads to one that is there, and its anchor to a heading of it.
//! No network: other sites' pages are not asked for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::pages::{read, root};

/// The beginning of a link from a page of the book to a file of the repository that isn't in the book.
const REPOSITORY: &str = "https://github.com/binlogz/binlogz/blob/main/";

/// The folders of the checkout that have pages.
const FOLDERS: [&str; 4] = ["docs", "samples", "lab", "crates"];

/// All pages, named from the checkout's root.
pub(crate) fn pages() -> BTreeSet<PathBuf> {
    let root = root();
    let (mut found, mut folders) = (BTreeSet::new(), Vec::from(FOLDERS.map(|folder| root.join(folder))));
    let top = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    found.extend(top.filter(|path| path.is_file() && is_page(path)));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                let built = ["target", "node_modules"].iter().any(|name| path.ends_with(name));
                let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
                folders.extend(Some(path).filter(|_| !built && !hidden));
            } else if is_page(&path) {
                found.insert(path);
            }
        }
    }
    found.into_iter().map(|path| path.strip_prefix(&root).unwrap().to_path_buf()).collect()
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// A page without its code: fences, indented blocks and spans.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    let mut in_fence = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence && !line.starts_with("    ") {
            for (index, part) in line.split('`').enumerate() {
                prose.push_str(if index % 2 == 0 { part } else { "`" });
            }
        }
        prose.push('\n');
    }
    prose
}

/// Targets of `[text](target)` in prose.
fn targets(prose: &str) -> Vec<String> {
    prose
        .match_indices("](")
        .filter_map(|(at, _)| prose[at + 2..].split_once(')'))
        .map(|(to, _)| to.into())
        .collect()
}

/// The anchors of a page, made of its headings as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut in_fence = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence || !line.starts_with('#') {
            continue;
        }
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|n| format!("{anchor}-{n}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|name| !anchors.contains(name));
        anchors.insert(free.unwrap());
    }
    anchors
}

/// `a/b/../c` as `a/c`, without asking the disk.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(normal.pop(), "{} leaves the checkout", path.display()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// The problem with a link of a page, if there is any.
fn broken(page: &Path, target: &str) -> Option<String> {
    let in_repository = target.strip_prefix(REPOSITORY);
    if in_repository.is_none() && (target.contains("://") || target.starts_with("mailto:")) {
        return None;
    }
    let path = in_repository.unwrap_or(target);
    let (file, anchor) = path.split_once('#').map_or((path, None), |(file, anchor)| (file, Some(anchor)));
    let to = match (in_repository, file) {
        (Some(_), file) => normal(Path::new(file)),
        (None, "") => page.to_path_buf(),
        (None, file) => normal(&page.parent().unwrap().join(file)),
    };
    // The book has the pages of docs/ alone: a relative link out of it would lead nowhere there.
    if in_repository.is_none() && page.starts_with("docs") && !to.starts_with("docs") {
        return Some(format!("leads out of docs/, and so out of the book: {REPOSITORY}{}", to.display()));
    }
    if !root().join(&to).exists() {
        return Some("no such file".into());
    }
    let anchor = anchor?;
    let text = read(&to);
    (!anchors(&text).contains(anchor)).then(|| format!("{} has no heading for it", to.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages() {
        let text = read(&page);
        for target in targets(&prose(&text)) {
            count += 1;
            if let Some(why) = broken(&page, &target) {
                wrong.push(format!("{}: {target}: {why}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "{count} links: are they still found?");
}

/// Files and folders of the checkout that a page names in code spans: `crates/format/binlog/src/frame.rs`, with a test of it or without.
fn named_files(page: &str) -> Vec<String> {
    let folders = ["crates/", "lab/", "scripts/", "docs/", "codecs/", "packaging/"];
    let spans = page.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let paths = spans.filter_map(|span| span.split([' ', ':']).next());
    let paths = paths.filter(|path| folders.iter().any(|folder| path.starts_with(folder)));
    paths
        .filter(|path| !path.contains(|c: char| "*<".contains(c) || c.is_ascii_uppercase()))
        .map(String::from)
        .collect()
}

#[test]
fn every_file_that_a_page_for_contributors_names_is_there() {
    let mut count = 0;
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md", "lab/testing.md", "lab/README.md"] {
        for path in named_files(&read(page)) {
            assert!(root().join(&path).exists(), "{page}: {path} is not there");
            count += 1;
        }
    }
    assert!(count > 100, "{count} files: are they still found?");
}

#[test]
fn the_book_has_every_page() {
    let summary = read("docs/SUMMARY.md");
    let listed: BTreeSet<_> =
        targets(&summary).into_iter().map(|page| Path::new("docs").join(page)).collect();
    let mut there: BTreeSet<_> = pages().into_iter().filter(|page| page.starts_with("docs")).collect();
    there.remove(Path::new("docs/SUMMARY.md"));
    assert_eq!(listed, there);
}

#[test]
fn what_is_no_link_is_not_taken_for_one_and_bad_ones_are_seen() {
    let page = "# A page\n\n[one](a.md#b), `[no](x.md)`\n\n```\n[no](y.md)\n```\n\n    [no](z.md)\n\n## A `b` c, d\n## A `b` c, d\n";
    assert_eq!(targets(&prose(page)), ["a.md#b"]);
    let expected = ["a-page", "a-b-c-d", "a-b-c-d-1"].map(String::from);
    assert_eq!(anchors(page), expected.into());
    let named =
        named_files("run `lab/a.rs::test` of `crates/FLOOR/CRATE` by `scripts/b.sh --c`, not `c/d.rs`");
    assert_eq!(named, ["lab/a.rs", "scripts/b.sh"]);
    let at = Path::new("docs/README.md");
    assert_eq!(broken(at, "reference/commands.md"), None);
    assert!(broken(at, "reference/nothing.md").is_some());
    assert!(broken(at, "reference/commands.md#nothing").is_some());
    assert!(broken(at, "../README.md").is_some());
    assert_eq!(broken(at, &format!("{REPOSITORY}README.md")), None);
    assert!(broken(at, &format!("{REPOSITORY}nothing.md")).is_some());
    assert!(broken(at, &format!("{REPOSITORY}README.md#nothing")).is_some());
}
