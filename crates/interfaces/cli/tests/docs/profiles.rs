//! The table of clients' profiles in the relay's reference is the one that the relay uses.

use std::fs;

use binlogz_relay::{ReaderProfile, Treatment};

use crate::pages::{read, root};

const PAGE: &str = "docs/reference/relay-config.md";
const MARK: &str = "<!-- profiles -->\n";
const TREATMENTS: [Treatment; 3] = [Treatment::Translated, Treatment::LeftOut, Treatment::Refused];

/// The table: of each profile, what is not passed as it is.
fn table() -> String {
    let words = TREATMENTS.map(Treatment::word).join(" | ");
    let head = format!("| `reads` | clients | {words} |\n|---|---|---|---|---|\n");
    let row = |profile: &ReaderProfile| {
        let cells = TREATMENTS.map(|treatment| {
            let things = profile.treatments.each().into_iter().filter(|(_, treated)| *treated == treatment);
            things.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
        });
        format!("| `{}` | {} | {} |\n", profile.name, profile.clients, cells.join(" | "))
    };
    head + &ReaderProfile::all().iter().map(row).collect::<String>()
}

#[test]
fn the_table_of_profiles_is_the_relays() {
    let page = read(PAGE);
    let (before, rest) = page.split_once(MARK).unwrap();
    let (found, after) = rest.split_once("\n\n").unwrap();
    let table = table();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(PAGE), format!("{before}{MARK}{table}\n{after}")).unwrap();
        return;
    }
    assert_eq!(format!("{found}\n"), table, "UPDATE_DOCS=1 writes it");
}
