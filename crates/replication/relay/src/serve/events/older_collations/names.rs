//! Which older collation replaces one that 8.0 introduced.
//!
//! ```text
//! 8.0 and later                     before                        what is lost
//! utf8mb4_0900_ai_ci         255    utf8mb4_unicode_ci      224   characters beyond U+FFFF are alike; trailing spaces
//! utf8mb4_LANGUAGE_0900_ai_ci       utf8mb4_LANGUAGE_ci           the same
//!                                   count for nothing
//! utf8mb4_*_as_cs, _as_ci, _bin     utf8mb4_bin              46   order; trailing spaces count for nothing
//! utf8mb3_* (names only)            utf8_*                        nothing
//! ```
//!
//! `utf8mb4_unicode_520_ci` would be closer to the first, but its name is longer. Numbers are those of MySQL 5.6.

use binlogz_binlog::charset::collation_name;

/// The replacement of a collation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StandIn {
    /// Older servers know it, or no server does.
    NotNeeded,
    /// Replaced by this one.
    Is(String),
    /// There is no replacement.
    None,
}

const BIN: (&str, u16) = ("utf8mb4_bin", 46);

/// By the text between `utf8mb4_` and `0900_ai_ci`.
const AI_CI: [(&str, &str, u16); 31] = [
    ("", "utf8mb4_unicode_ci", 224),
    ("bg_", "utf8mb4_unicode_ci", 224),
    ("bs_", "utf8mb4_croatian_ci", 245),
    ("cs_", "utf8mb4_czech_ci", 234),
    ("da_", "utf8mb4_danish_ci", 235),
    ("de_pb_", "utf8mb4_german2_ci", 244),
    ("eo_", "utf8mb4_esperanto_ci", 241),
    ("es_", "utf8mb4_spanish_ci", 231),
    ("es_trad_", "utf8mb4_spanish2_ci", 238),
    ("et_", "utf8mb4_estonian_ci", 230),
    ("gl_", "utf8mb4_spanish_ci", 231),
    ("hr_", "utf8mb4_croatian_ci", 245),
    ("hu_", "utf8mb4_hungarian_ci", 242),
    ("is_", "utf8mb4_icelandic_ci", 225),
    ("la_", "utf8mb4_roman_ci", 239),
    ("lt_", "utf8mb4_lithuanian_ci", 236),
    ("lv_", "utf8mb4_latvian_ci", 226),
    ("mn_cyrl_", "utf8mb4_unicode_ci", 224),
    ("nb_", "utf8mb4_danish_ci", 235),
    ("nn_", "utf8mb4_danish_ci", 235),
    ("pl_", "utf8mb4_polish_ci", 229),
    ("ro_", "utf8mb4_romanian_ci", 227),
    ("ru_", "utf8mb4_unicode_ci", 224),
    ("sk_", "utf8mb4_slovak_ci", 237),
    ("sl_", "utf8mb4_slovenian_ci", 228),
    ("sr_latn_", "utf8mb4_croatian_ci", 245),
    ("sv_", "utf8mb4_swedish_ci", 232),
    ("tr_", "utf8mb4_turkish_ci", 233),
    ("vi_", "utf8mb4_vietnamese_ci", 247),
    ("ja_", "utf8mb4_unicode_ci", 224),
    ("zh_", "utf8mb4_unicode_ci", 224),
];

/// The replacement's name and number for one of 8.0.
fn of_0900(name: &str) -> Option<(&'static str, u16)> {
    let (language, kind) = name.strip_prefix("utf8mb4_")?.split_once("0900_")?;
    let (_, ai_ci, number) = AI_CI.iter().find(|(known, ..)| *known == language)?;
    match kind {
        "ai_ci" => Some((ai_ci, *number)),
        "as_cs" | "as_cs_ks" | "as_ci" | "bin" => Some(BIN),
        _ => None,
    }
}

/// The replacement for the collation of this name.
pub(super) fn stand_in(name: &str) -> StandIn {
    let name = name.to_ascii_lowercase();
    if let Some(rest) = name.strip_prefix("utf8mb3_") {
        return StandIn::Is(format!("utf8_{rest}"));
    }
    match of_0900(&name) {
        Some((older, _)) => StandIn::Is(older.to_owned()),
        None if name.contains("_0900_") => StandIn::None,
        None => StandIn::NotNeeded,
    }
}

/// The replacement's number for the collation of this number; `None` if it needs none.
pub(super) fn number_for(number: u64) -> Option<u16> {
    of_0900(collation_name(number)?).map(|(_, number)| number)
}

/// Whether a statement may name such a collation. Most don't, and are not parsed further.
pub(super) fn may_be_in(statement: &[u8]) -> bool {
    [b"_0900_".as_slice(), b"utf8mb3_"]
        .iter()
        .any(|part| statement.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collation_of_8_0_has_one_in_its_place_that_is_no_longer() {
        let mut count = 0;
        for number in 248..=400 {
            let Some(name) = collation_name(number).filter(|name| name.starts_with("utf8mb4_")) else {
                continue;
            };
            count += 1;
            let StandIn::Is(older) = stand_in(name) else { panic!("none for {name}") };
            assert!(older.len() <= name.len(), "{older} for {name}");
            let older_number = number_for(number).map(u64::from);
            assert_eq!(older_number.and_then(collation_name), Some(older.as_str()));
            assert!(older_number.is_some_and(|number| number < 248), "{name}");
        }
        assert_eq!(count, 63);
        for number in (0..248).chain([248, 249, 250, 2048, 2304, 65535]) {
            assert_eq!(number_for(number), None, "{number}");
        }
    }

    #[test]
    fn names_of_others_stay() {
        assert_eq!(stand_in("UTF8MB4_0900_AI_CI"), StandIn::Is("utf8mb4_unicode_ci".into()));
        assert_eq!(stand_in("utf8mb3_general_ci"), StandIn::Is("utf8_general_ci".into()));
        for name in ["utf8mb4_general_ci", "latin1_swedish_ci", "utf8_general_ci", "", "my_0900"] {
            assert_eq!(stand_in(name), StandIn::NotNeeded, "{name}");
        }
        assert_eq!(stand_in("utf8mb4_0900_ai_cs"), StandIn::None);
        assert!(may_be_in(b"COLLATE UTF8MB3_bin") && !may_be_in(b"COLLATE utf8_bin"));
    }
}
