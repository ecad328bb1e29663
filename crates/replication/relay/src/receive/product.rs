//! A server's product, and whether the relay can follow it at all.
//!
//! ```text
//! greeting                     product             followed
//! 9.7.4, 8.0.36-28, 5.6.24     MySQL 9.7.4 …       from 5.6 on
//! 5.5.34-log                   MySQL 5.5.34        no: it has no server uuid
//! 11.4.5-MariaDB,              MariaDB             from 10.2 on, by positions: see `mariadb`
//! 5.5.5-10.11.6-MariaDB-log    MariaDB             (10.x puts 5.5.5- before its version, for old replicas)
//! ```

use binlogz_source::{ConnectOptions, Connection};

use crate::error::{Error, Result};
use crate::receive::mariadb;
use crate::receive::servers::Servers;
use crate::receive::start::StartAt;

/// The first version of MySQL with server uuids and GTIDs.
const FIRST_FOLLOWED: (u32, u32) = (5, 6);
/// The first version of MariaDB that is followed: since then it annotates rows by default. 10.11 and 11.4 were tried.
const FIRST_MARIADB: (u32, u32) = (10, 2);
/// The word in MariaDB's versions.
pub(crate) const MARIADB: &str = "MariaDB";
/// The prefix that MariaDB 10 puts before its version.
const MARIADB_PREFIX: &str = "5.5.5-";

/// Connects to a server.
///
/// # Errors
///
/// [`Error::Unfollowable`]: nothing that is tried later would help.
pub(crate) fn connect(server: &ConnectOptions) -> Result<Connection> {
    let connection = Connection::open(server)?;
    let version = connection.greeting().map_or("", |greeting| greeting.server_version.as_str());
    match why_not(version) {
        None => Ok(connection),
        Some(why) => Err(Error::Unfollowable(format!("the source {} is {why}", server.server()))),
    }
}

/// Checks before the first start that there is a server that can be followed, or one that can't be asked yet.
pub(crate) fn check_any(servers: &Servers, start: &StartAt) -> Result<()> {
    let mut refused = None;
    for server in servers.all() {
        let connected = connect(server).and_then(|connection| {
            mariadb::check(&connection, &server.server(), (servers, start)).map(|()| connection)
        });
        match connected {
            Err(error @ Error::Unfollowable(_)) => refused = Some(error),
            _ => return Ok(()),
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Product and version, as in "MariaDB 10.11.6".
pub(crate) fn of(greeted: &str) -> String {
    let (is_mariadb, version) = product_and_version(greeted);
    format!("{} {version}", if is_mariadb { MARIADB } else { "MySQL" })
}

/// Whether it is MariaDB, and the numbers of its version.
fn product_and_version(greeted: &str) -> (bool, String) {
    let is_mariadb = greeted.contains(MARIADB);
    let version = greeted.strip_prefix(MARIADB_PREFIX).filter(|_| is_mariadb).unwrap_or(greeted);
    (is_mariadb, version.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '.').collect())
}

/// The product, and why it can't be followed; `None` if it can.
fn why_not(greeted: &str) -> Option<String> {
    let (is_mariadb, version) = product_and_version(greeted);
    let mut parts = version.split('.').map(|part| part.parse::<u32>());
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else { return None };
    if is_mariadb {
        return ((major, minor) < FIRST_MARIADB)
            .then(|| format!("MariaDB {version}: the relay follows MariaDB from 10.2 on"));
    }
    ((major, minor) < FIRST_FOLLOWED).then(|| {
        format!(
            "MySQL {version}, which has neither a server uuid nor GTIDs: the relay follows MySQL from 5.6 on"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_tells_product_and_version() {
        for (greeted, product) in [
            ("9.7.4", "MySQL 9.7.4"),
            ("8.0.36-28", "MySQL 8.0.36"),
            ("11.4.5-MariaDB", "MariaDB 11.4.5"),
            ("5.5.5-10.11.6-MariaDB-log", "MariaDB 10.11.6"),
        ] {
            assert_eq!(of(greeted), product);
        }
    }

    #[test]
    fn what_can_not_be_followed_is_named() {
        for version in [
            "9.7.4",
            "8.0.36-28",
            "5.6.24-log",
            "26.10.0",
            "5.7.44-enterprise",
            "",
            "unknown",
            "11.4.5-MariaDB",
            "5.5.5-10.11.6-MariaDB-log",
        ] {
            assert_eq!(why_not(version), None, "{version}");
        }
        for (version, product, first) in [
            ("5.5.34-log", "MySQL 5.5.34,", "from 5.6 on"),
            ("5.1.73", "MySQL 5.1.73,", "from 5.6 on"),
            ("5.5.5-10.1.23-MariaDB", "MariaDB 10.1.23:", "from 10.2 on"),
        ] {
            let why = why_not(version).unwrap();
            assert!(why.starts_with(product) && why.ends_with(first), "{version}: {why}");
        }
    }
}
