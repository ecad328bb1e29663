//! The book stays short enough to be read.

use crate::links::pages;
use crate::pages::read;

/// What the pages of docs/ may have together, helps and signs of tables included: what `wc -w` counts.
const WORDS_MAX: usize = 60_000;

#[test]
fn the_book_is_not_too_long() {
    let pages = pages().into_iter().filter(|page| page.starts_with("docs"));
    let mut words: Vec<_> =
        pages.map(|page| (read(&page).split_whitespace().count(), page.display().to_string())).collect();
    words.sort_unstable();
    let sum: usize = words.iter().map(|(count, _)| count).sum();
    assert!(words.len() > 40, "{} pages: are they still found?", words.len());
    let longest = words.iter().rev().take(5).collect::<Vec<_>>();
    assert!(
        sum <= WORDS_MAX,
        "docs/ has {sum} words, expected at most {WORDS_MAX}; the longest: {longest:?}"
    );
}
