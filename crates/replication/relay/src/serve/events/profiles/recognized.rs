//! Finds a client's profile from what the client said at its login, in its settings, and when it registered.
//!
//! ```text
//! SET @mariadb_slave_capability                    MariaDB, if its attributes are libmysql's, with its own version, or it has none: python-mysql-replication
//!                                                  says so at any server
//! _client_name = libmysql, program_name = mysqld   MySQL since 5.7
//! _client_name = libmysql, a replica's uuid        MySQL 5.6, which does not name its program
//! _client_name = libmysql, program_name = mysqlbinlog   gets what it can print: everything, compressed since 8.0.20
//! no attributes, registered, a heartbeat but neither uuid nor checksum   MySQL 5.5
//! ```
//!
//! Recorded from MySQL 5.6.24, 8.0.33 and 9.7.4, MariaDB 10.11.18 and 11.4.5.

use super::{PROFILES, ProfileFamily, ReaderProfile};

/// The signs by which a client's profile is told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClientSigns<'a> {
    /// The attributes of its connection.
    pub(crate) attributes: &'a [(String, String)],
    /// Whether it told a capability of MariaDB.
    pub(crate) is_mariadb: bool,
    /// Whether it told a replica's uuid.
    pub(crate) has_uuid: bool,
    /// Whether it asked for heartbeats.
    pub(crate) has_heartbeat: bool,
    /// Whether it told which checksums it knows.
    pub(crate) has_checksum: bool,
    /// Whether it registered as a replica.
    pub(crate) is_registered: bool,
}

impl ClientSigns<'_> {
    /// The client's profile: `other` if nothing tells what it is.
    pub(crate) fn profile(&self) -> &'static ReaderProfile {
        let known =
            if self.is_mariadb && matches!(self.attribute("_client_name"), "" | "libmysql" | "libmariadb") {
                latest(ProfileFamily::Mariadb, self.libmysql_version().unwrap_or_default())
            } else if self.attribute("_client_name") == "binlogz" {
                ReaderProfile::of_name("binlogz")
            } else if self.attributes.is_empty() {
                let is_5_5 = self.is_registered && self.has_heartbeat && !self.has_uuid && !self.has_checksum;
                ReaderProfile::of_name("mysql-5.5").filter(|_| is_5_5)
            } else {
                self.libmysql_version().and_then(|version| self.of_libmysql(version))
            };
        known.unwrap_or_else(other)
    }

    fn of_libmysql(&self, version: [u32; 3]) -> Option<&'static ReaderProfile> {
        let profile = latest(ProfileFamily::Mysql, version);
        match self.attribute("program_name") {
            "mysqld" => profile,
            "" if self.has_uuid => profile,
            "mysqlbinlog" if profile.is_some_and(ReaderProfile::reads_payloads) => {
                ReaderProfile::of_name("mysql-8.3")
            }
            _ => None,
        }
    }

    /// The version of MySQL's own client library, which MariaDB's servers name as well.
    fn libmysql_version(&self) -> Option<[u32; 3]> {
        let is_own = self.attribute("_client_name") == "libmysql";
        numbers(self.attribute("_client_version")).filter(|_| is_own)
    }

    fn attribute(&self, wanted: &str) -> &str {
        let found = self.attributes.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// The last profile of a family that a version is not too old for.
fn latest(family: ProfileFamily, version: [u32; 3]) -> Option<&'static ReaderProfile> {
    PROFILES.iter().rfind(|profile| profile.family == family && profile.since <= version)
}

fn other() -> &'static ReaderProfile {
    let [.., other] = &PROFILES;
    other
}

/// The numbers at the beginning of a version such as `8.0.36-28`.
fn numbers(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.splitn(3, '.');
    let mut next = || {
        let part = parts.next()?;
        let digits = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
        part.get(..digits)?.parse().ok()
    };
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use binlogz_relay_log::Form;

    use super::*;

    fn attributes(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn libmysql(program: &str, version: &str) -> Vec<(String, String)> {
        let program = Some(("program_name", program)).filter(|(_, program)| !program.is_empty());
        let named = [("_os", "Linux"), ("_client_name", "libmysql"), ("_client_version", version)];
        attributes(&named.into_iter().chain(program).collect::<Vec<_>>())
    }

    #[test]
    fn replicas_are_recognized() {
        for (program, version, expected) in [
            ("mysqld", "9.7.4", "mysql-8.3"),
            ("mysqld", "8.4.0", "mysql-8.3"),
            ("mysqld", "8.0.36-28", "mysql-8.0.20"),
            ("mysqld", "8.2.0", "mysql-8.0.20"),
            ("mysqld", "8.0.19", "mysql-8.0.19"),
            ("mysqld", "5.7.44-log", "mysql-5.7"),
            ("", "5.6.24", "mysql-5.6"),
            ("mysqld", "8.0", "other"),
            ("mysql", "9.7.4", "other"),
        ] {
            let attributes = libmysql(program, version);
            let signs = ClientSigns { attributes: &attributes, has_uuid: true, ..ClientSigns::default() };
            assert_eq!(signs.profile().name, expected, "{program} {version}");
        }
        for (version, expected) in [
            ("10.1.23", "mariadb-10.1"),
            ("10.2.11", "mariadb-10.2"),
            ("10.11.18", "mariadb-10.2"),
            ("11.4.5", "mariadb-11.4"),
            ("?", "mariadb-10.1"),
        ] {
            let attributes = libmysql("", version);
            let signs = ClientSigns { attributes: &attributes, is_mariadb: true, ..ClientSigns::default() };
            assert_eq!(signs.profile().name, expected, "{version}");
        }
        let none = ClientSigns { is_mariadb: true, ..ClientSigns::default() };
        assert_eq!(none.profile().name, "mariadb-10.1");
        // python-mysql-replication tells MariaDB's capability to any server.
        let attributes = attributes(&[("_client_name", "pymysql"), ("_client_version", "1.1.2")]);
        let signs = ClientSigns { attributes: &attributes, is_mariadb: true, ..ClientSigns::default() };
        assert_eq!(signs.profile().name, "other");
    }

    #[test]
    fn only_a_replica_of_5_5_says_so_little() {
        let signs = ClientSigns { is_registered: true, has_heartbeat: true, ..ClientSigns::default() };
        assert_eq!(signs.profile().name, "mysql-5.5");
        for signs in [
            ClientSigns { has_uuid: true, ..signs },
            ClientSigns { has_checksum: true, ..signs },
            ClientSigns { has_heartbeat: false, ..signs },
            ClientSigns { is_registered: false, ..signs },
        ] {
            assert_eq!(signs.profile().name, "other", "{signs:?}");
        }
    }

    #[test]
    fn only_who_is_known_to_read_payloads_gets_them() {
        for (name, program, version, form, reads) in [
            ("libmysql", "mysqld", "9.7.4", Form::Received, true),
            ("libmysql", "mysqlbinlog", "8.0.20", Form::Received, true),
            ("libmysql", "mysqlbinlog", "8.0.19", Form::Uncompressed, false),
            ("libmysql", "mysqlbinlog", "", Form::Uncompressed, false),
            ("libmysql", "mysql", "9.7.4", Form::Uncompressed, false),
            ("libmariadb", "mysqld", "10.11.6", Form::Uncompressed, false),
            ("MySQL Connector/J", "mysqld", "9.1.0", Form::Uncompressed, false),
            ("binlogz", "", "0.2.0", Form::Uncompressed, true),
        ] {
            let attributes = attributes(&[
                ("_client_name", name),
                ("program_name", program),
                ("_client_version", version),
            ]);
            let signs = ClientSigns { attributes: &attributes, ..ClientSigns::default() };
            let profile = signs.profile();
            assert_eq!((profile.form, profile.reads_payloads()), (form, reads), "{name} {program} {version}");
        }
        assert_eq!(ClientSigns::default().profile().name, "other");
    }
}
