//! Versions of servers and clients: as many numbers as there are, compared number by number.
//!
//! Newer series count past 9 (26.10 follows 9.7), so nothing here looks at single digits.

use std::fmt;

/// A version, as in `9.7.4` or `v1.8.0`; what follows the numbers is not compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Vec<u32>);

impl Version {
    /// Reads the numbers at the front of a text; `None` where it begins with none.
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.trim().trim_start_matches('v');
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let numbers: Vec<u32> = text.get(..end)?.split('.').map_while(|number| number.parse().ok()).collect();
        (!numbers.is_empty()).then_some(Version(numbers))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

impl<'de> serde::Deserialize<'de> for Version {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let expected =
            || serde::de::Error::custom(format!("version is {text:?}, expected numbers as in 8.0.20"));
        Version::parse(&text).ok_or_else(expected)
    }
}

/// A range of versions: from this one on, below that one; either may be open.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionRange {
    pub(crate) from: Option<Version>,
    pub(crate) below: Option<Version>,
}

impl VersionRange {
    pub(crate) fn contains(&self, version: &Version) -> bool {
        self.from.as_ref().is_none_or(|from| version >= from)
            && self.below.as_ref().is_none_or(|below| version < below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_not_text() {
        let version = |text| Version::parse(text).expect("a version");
        assert!(version("8.0.20") > version("8.0.9"));
        assert!(version("26.10.0") > version("9.7.4-debug"));
        assert_eq!(version("v1.8.0+incompatible"), version("1.8.0"));
        assert_eq!(version("10.11.18-MariaDB").to_string(), "10.11.18");
        assert_eq!(Version::parse("(devel)"), None);
    }

    #[test]
    fn ranges_end_before_their_end() {
        let range: VersionRange = toml::from_str("from = '8.0.20'\nbelow = '8.0.35'").expect("a range");
        let inside = |text| range.contains(&Version::parse(text).expect("a version"));
        assert_eq!(["8.0.19", "8.0.20", "8.0.34", "8.0.35"].map(inside), [false, true, true, false]);
        assert!(toml::from_str::<VersionRange>("from = 'soon'").is_err());
    }
}
