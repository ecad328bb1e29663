//! Pages of a content management system: long texts that are edited in place. They are drawn from a seed of their own, [`super::SEED`]
//! plus its number.

use std::io::{self, Write};

use super::words::{sentence, skewed};
use crate::random::Random;

/// Pages before the first edit, for each hundred edits.
const PAGES: usize = 12;

/// Pages of 1 to 12 KB of HTML: written once, then a paragraph is added, rewritten or taken out. Rows' images have the whole text
/// before and after.
pub(super) fn cms(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE cms; CREATE TABLE cms.page(id INT PRIMARY KEY, slug VARCHAR(80) NOT NULL UNIQUE, title VARCHAR(200), \
         body MEDIUMTEXT, revision INT NOT NULL DEFAULT 1, editor INT, changed DATETIME);"
    )?;
    let mut pages: Vec<Vec<String>> = Vec::new();
    for id in 0..(count as usize * PAGES / 100).max(1) {
        let paragraphs: Vec<String> = (0..2 + random.below(20)).map(|_| paragraph(random)).collect();
        let words = 3 + random.below(5);
        let title = sentence(random, words);
        writeln!(
            out,
            "INSERT INTO cms.page (id, slug, title, body) VALUES ({id},'{id}-{}','{title}','{}');",
            title.replace(' ', "-"),
            paragraphs.concat()
        )?;
        pages.push(paragraphs);
    }
    for edit in 0..count {
        let id = skewed(random, pages.len());
        let paragraphs = &mut pages[id];
        let place = random.below(paragraphs.len());
        match random.below(4) {
            0 => paragraphs.insert(place, paragraph(random)),
            1 if paragraphs.len() > 2 => drop(paragraphs.remove(place)),
            _ => paragraphs[place] = paragraph(random),
        }
        writeln!(
            out,
            "UPDATE cms.page SET body='{}', revision=revision+1, editor={}, changed='2026-06-{:02} {:02}:{:02}:{:02}' WHERE id={id};",
            paragraphs.concat(),
            random.below(40),
            1 + edit / 3600 % 28,
            edit / 150 % 24,
            edit % 60,
            random.below(60)
        )?;
    }
    Ok(())
}

fn paragraph(random: &mut Random) -> String {
    let mut sentences = Vec::new();
    for _ in 0..2 + random.below(6) {
        let words = 5 + random.below(15);
        sentences.push(sentence(random, words));
    }
    match random.below(8) {
        0 => format!("<h2>{}</h2>\n", sentences[0]),
        1 => format!(
            "<ul>{}</ul>\n",
            sentences.iter().map(|one| format!("<li>{one}</li>")).collect::<String>()
        ),
        2 => format!(
            "<p>{} <a href=\"/{:x}\">{}</a>.</p>\n",
            sentences[0],
            random.below(1 << 20),
            sentences[1]
        ),
        _ => format!("<p>{}.</p>\n", sentences.join(". ")),
    }
}
