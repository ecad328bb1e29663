//! Profiles of clients: what each kind is sent of the things that not all can read.
//!
//! ```text
//! reads of the account, or what the client says of itself (`recognized`) → a row of `table` → `fitting`: each event
//! ```

mod recognized;
mod table;

pub(crate) use recognized::ClientSigns;
use table::PROFILES;
pub(crate) use table::{FillerKind, ProfileFamily};
pub use table::{ReaderProfile, Treatment, Treatments};

impl ReaderProfile {
    /// All profiles, older servers first.
    pub fn all() -> &'static [ReaderProfile] {
        &PROFILES
    }

    /// The profile of this name.
    pub fn of_name(name: &str) -> Option<&'static ReaderProfile> {
        PROFILES.iter().find(|profile| profile.name == name)
    }

    /// Whether such a client reads compressed transactions.
    pub fn reads_payloads(&self) -> bool {
        self.treatments.payloads == Treatment::Passed
    }

    /// The profile with this metadata of table maps, whatever its clients know (`row_metadata` of an account).
    #[must_use]
    pub(crate) fn with_row_metadata(mut self, treatment: Treatment) -> ReaderProfile {
        self.treatments.row_metadata = treatment;
        self
    }

    /// The profile with collations replaced, whatever its clients know (`older_collations` of an account).
    #[must_use]
    pub(crate) fn with_older_collations(mut self) -> ReaderProfile {
        self.treatments.collations = Treatment::Translated;
        if self.treatments.tables_of_selects == Treatment::Passed {
            self.treatments.tables_of_selects = Treatment::Refused;
        }
        self
    }
}

impl Treatment {
    /// The word for it in tables.
    pub fn word(self) -> &'static str {
        match self {
            Treatment::Passed => "passed",
            Treatment::Translated => "translated",
            Treatment::LeftOut => "left out",
            Treatment::Refused => "refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_can_be_named_and_a_family_begins_with_its_oldest() {
        for (place, profile) in PROFILES.iter().enumerate() {
            assert_eq!(ReaderProfile::of_name(profile.name), Some(profile));
            let before = PROFILES[..place].iter().rfind(|before| before.family == profile.family);
            let Some(before) = before.filter(|_| profile.family != ProfileFamily::None) else {
                continue;
            };
            assert!(before.since < profile.since, "{} after {}", profile.name, before.name);
        }
        assert_eq!(ReaderProfile::of_name("auto"), None);
    }

    #[test]
    fn each_thing_alone_is_the_thing_of_that_place() {
        for profile in &PROFILES {
            let things = profile.treatments.each();
            for (place, alone) in profile.treatments.each_alone().iter().enumerate() {
                for (other, (name, treatment)) in alone.each().into_iter().enumerate() {
                    let expected = if other == place { things[place].1 } else { Treatment::Passed };
                    assert_eq!(treatment, expected, "{} {name}", profile.name);
                }
            }
        }
    }

    #[test]
    fn a_client_without_compressed_transactions_is_served_none_by_itself() {
        for profile in &PROFILES {
            let gets = profile.form != binlogz_relay_log::Form::Uncompressed;
            assert!(!gets || profile.reads_payloads(), "{}", profile.name);
        }
    }
}
