//! A server's product, and whether the relay can follow it at all.
//!
//! ```text
//! greeting                     product             followed
//! 9.7.4, 8.0.36-28, 5.6.24     MySQL 9.7.4 …       from 5.6 on
//! 5.5.34-log                   MySQL 5.5.34        no: it has no server uuid
//! 11.4.5-MariaDB,              MariaDB 11.4.5      no: it has GTIDs and events of its own
//! 5.5.5-10.11.6-MariaDB-log    MariaDB 10.11.6     (10.x puts 5.5.5- before its version, for old replicas)
//! ```

use binlogz_source::{ConnectOptions, Connection};

use crate::error::{Error, Result};
use crate::receive::servers::Servers;

/// The first version of MySQL with server uuids and GTIDs.
const FIRST_FOLLOWED: (u32, u32) = (5, 6);
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
pub(crate) fn check_any(servers: &Servers) -> Result<()> {
    let mut refused = None;
    for server in servers.all() {
        match connect(server) {
            Err(error @ Error::Unfollowable(_)) => refused = Some(error),
            _ => return Ok(()),
        }
    }
    refused.map_or(Ok(()), Err)
}

/// The product, and why it can't be followed; `None` if it can.
fn why_not(version: &str) -> Option<String> {
    let numbers = |text: &str| -> String {
        text.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '.').collect()
    };
    if version.contains("MariaDB") {
        let version = numbers(version.strip_prefix(MARIADB_PREFIX).unwrap_or(version));
        return Some(format!(
            "MariaDB {version}, whose binary log has GTIDs and events of its own: the relay follows MySQL from 5.6 on"
        ));
    }
    let version = numbers(version);
    let mut parts = version.split('.').map(|part| part.parse::<u32>());
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else { return None };
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
    fn what_can_not_be_followed_is_named() {
        for version in ["9.7.4", "8.0.36-28", "5.6.24-log", "26.10.0", "5.7.44-enterprise", "", "unknown"] {
            assert_eq!(why_not(version), None, "{version}");
        }
        for (version, product) in [
            ("5.5.34-log", "MySQL 5.5.34,"),
            ("5.1.73", "MySQL 5.1.73,"),
            ("11.4.5-MariaDB", "MariaDB 11.4.5,"),
            ("5.5.5-10.11.6-MariaDB-log", "MariaDB 10.11.6,"),
        ] {
            let why = why_not(version).unwrap();
            assert!(why.starts_with(product) && why.ends_with("from 5.6 on"), "{version}: {why}");
        }
    }
}
