//! How servers of different versions compress their transactions.
//!
//! | versions | frames ([`Recipe`]) | level | bytes that statistics count as compressed |
//! |---|---|---|---|
//! | 8.0.20 to 8.0.33 | unsized, flushed | always 3 | the payload event, without its checksum |
//! | 8.0.34, 8.1 | sized for the first transaction of a session, unsized for its others | always 3 | the payload |
//! | 8.0.35 and later, 8.2 and later | sized | as set | the payload |
//!
//! Before 8.0.35 the level has no effect: bug 34833913. The first row was measured with 8.0.33, the last with 9.7.4
//! (lab/testing.md); the one between is known from its source alone.

use binlogz_binlog::event::version_number;

use crate::codec::level::CompressionLevel;
use crate::codec::library::Library;
use crate::codec::recipe::Recipe;

/// Servers that make the same of the same transactions, except for the version of libzstd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerGeneration {
    /// 8.0.20 to 8.0.33.
    Flushed,
    /// 8.0.34 and 8.1.
    FirstSized,
    /// 8.0.35, 8.2, and later ones.
    #[default]
    Sized,
}

impl ServerGeneration {
    /// The generation of a server, by its version as in `8.0.33-debug`.
    pub fn of_version(version: &str) -> Self {
        Self::of_version_number(version_number(version.as_bytes()))
    }

    /// The generation of a server, by its version as a number: 80033 for 8.0.33.
    pub fn of_version_number(version: u32) -> Self {
        match version {
            80_020..=80_033 => ServerGeneration::Flushed,
            80_034 | 80_100..80_200 => ServerGeneration::FirstSized,
            _ => ServerGeneration::Sized,
        }
    }

    /// The recipe of its payloads; of those that are not a session's first, if those differ.
    pub fn recipe(self) -> Recipe {
        match self {
            ServerGeneration::Flushed => Recipe::UnsizedFlushed,
            ServerGeneration::FirstSized => Recipe::Unsized,
            ServerGeneration::Sized => Recipe::Sized,
        }
    }

    /// The libzstd of its last release, if binlogz has that.
    pub fn library(self) -> Library {
        match self {
            ServerGeneration::Flushed => Library::Helper("1.5.0"),
            ServerGeneration::FirstSized | ServerGeneration::Sized => Library::Linked,
        }
    }

    /// Whether the statistics of its binary log count the payload event without its checksum as a transaction's
    /// compressed bytes, instead of the payload in it: 29 to 45 bytes more, as long as the fields before it are.
    pub fn counts_payload_event(self) -> bool {
        self == ServerGeneration::Flushed
    }

    /// The level of its payloads if the setting has no effect.
    pub fn only_level(self) -> Option<CompressionLevel> {
        match self {
            ServerGeneration::Flushed | ServerGeneration::FirstSized => Some(CompressionLevel::DEFAULT),
            ServerGeneration::Sized => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_their_generation() {
        use ServerGeneration::{FirstSized, Flushed, Sized};
        for (version, expected) in [
            ("8.0.20", Flushed),
            ("8.0.33-debug", Flushed),
            ("8.0.34", FirstSized),
            ("8.0.35", Sized),
            ("8.1.0", FirstSized),
            ("8.2.0", Sized),
            ("9.7.4", Sized),
            ("26.10.0", Sized),
        ] {
            assert_eq!(ServerGeneration::of_version(version), expected, "{version}");
        }
    }
}
