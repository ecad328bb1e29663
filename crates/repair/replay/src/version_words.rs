//! The words and abilities of each version of MySQL.

use binlogz_inspect::Version;

/// A version's words for things.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VersionWords {
    /// CHANGE REPLICATION SOURCE TO, with SOURCE_…
    source_statements: bool,
    /// START REPLICA, SHOW REPLICA STATUS.
    replica_statements: bool,
    /// replica_parallel_workers and so on.
    replica_variables: bool,
    /// Whether it reads compressed transactions.
    pub(crate) reads_payloads: bool,
    /// Whether it knows GTIDs with tags.
    pub(crate) knows_tags: bool,
    /// Whether transactions can be added to gtid_purged, and a channel's host has 255 characters.
    pub(crate) can_fold: bool,
    /// Whether it can be told not to start replication at its next start.
    pub(crate) can_stay_stopped: bool,
}

impl VersionWords {
    pub(crate) fn of(version: &Version) -> VersionWords {
        let from = |text| Version::parse(text).is_some_and(|from| *version >= from);
        VersionWords {
            source_statements: from("8.0.23"),
            replica_statements: from("8.0.22"),
            replica_variables: from("8.0.26"),
            reads_payloads: from("8.0.20"),
            knows_tags: from("8.3"),
            can_fold: from("8.0.17"),
            can_stay_stopped: from("8.0.24"),
        }
    }

    /// `CHANGE REPLICATION SOURCE TO`, and the prefix of its options.
    pub(crate) fn change(self) -> (&'static str, &'static str) {
        match self.source_statements {
            true => ("CHANGE REPLICATION SOURCE TO", "SOURCE"),
            false => ("CHANGE MASTER TO", "MASTER"),
        }
    }

    /// `REPLICA`, as in START REPLICA.
    pub(crate) fn replica(self) -> &'static str {
        if self.replica_statements { "REPLICA" } else { "SLAVE" }
    }

    /// The global variable `replica_NAME`.
    pub(crate) fn variable(self, name: &str) -> String {
        let prefix = if self.replica_variables { "replica" } else { "slave" };
        format!("{prefix}_{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_told_in_its_own_words() {
        let of = |version: &str| {
            let words = VersionWords::of(&Version::parse(version).unwrap());
            (words.change(), words.replica(), words.variable("parallel_workers"))
        };
        let source = ("CHANGE REPLICATION SOURCE TO", "SOURCE");
        let master = ("CHANGE MASTER TO", "MASTER");
        assert_eq!(of("5.7.44-log"), (master, "SLAVE", "slave_parallel_workers".to_owned()));
        assert_eq!(of("8.0.22"), (master, "REPLICA", "slave_parallel_workers".to_owned()));
        assert_eq!(of("8.0.25"), (source, "REPLICA", "slave_parallel_workers".to_owned()));
        assert_eq!(of("8.0.26"), (source, "REPLICA", "replica_parallel_workers".to_owned()));
        assert_eq!(of("9.7.4"), (source, "REPLICA", "replica_parallel_workers".to_owned()));
    }
}
