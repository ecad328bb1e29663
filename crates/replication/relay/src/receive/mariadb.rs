//! MariaDB as a source: what of it is other than MySQL, and its identity.
//!
//! ```text
//! server_id 35010   6d617269-6164-6220-0000-0000000088c2   the source's uuid, here and in the store: MariaDB has none. It begins with
//!                                                           the bytes "mariadb "; the server id is also in each of its GTIDs
//! ```
//!
//! Its log is received and stored by positions, byte for byte; GTIDs in it are MariaDB's own and are not interpreted here.

use binlogz_binlog::gtid::ServerUuid;
use binlogz_source::Connection;

use crate::error::{Error, Result};
use crate::receive::servers::Servers;
use crate::receive::start::StartAt;

/// The first bytes of the uuid that stands for a MariaDB.
const UUID_FRONT: &[u8; 8] = b"mariadb ";

/// Whether a source is a MariaDB, by the uuid that stands for it.
pub(crate) fn is_mariadb(source: ServerUuid) -> bool {
    source.0.starts_with(UUID_FRONT)
}

/// Whether the server at the other end is a MariaDB.
pub(crate) fn answers(connection: &Connection) -> bool {
    connection.greeting().is_some_and(|greeting| greeting.server_version.contains("MariaDB"))
}

/// The identity of a source, which stays the same across restarts and upgrades.
///
/// # Errors
///
/// The connection broke, or the answer makes no sense.
pub(crate) fn uuid_of(connection: &mut Connection) -> Result<ServerUuid> {
    if !answers(connection) {
        return Ok(connection.first_row("SELECT @@GLOBAL.server_uuid")?.text(0)?.parse()?);
    }
    let server_id: u32 = connection.first_row("SELECT @@GLOBAL.server_id")?.parsed(0, "a server id")?;
    Ok(stand_in(server_id))
}

fn stand_in(server_id: u32) -> ServerUuid {
    let mut uuid = ServerUuid::default();
    uuid.0.iter_mut().zip(UUID_FRONT.iter()).for_each(|(byte, front)| *byte = *front);
    // At its end, the highest byte first, as the text shows it.
    uuid.0.iter_mut().rev().zip(server_id.to_le_bytes()).for_each(|(byte, id)| *byte = id);
    uuid
}

/// Why a relay with these settings can't follow MariaDB; `None`: it can.
pub(crate) fn why_not(servers: &Servers, start: &StartAt) -> Option<&'static str> {
    if servers.are_several() {
        return Some(
            "several servers of one source are told apart and compared by MySQL's GTIDs, which MariaDB doesn't have: name one server",
        );
    }
    match start {
        StartAt::Gtids(_) => Some(
            "the log is to begin after MySQL's GTIDs, which MariaDB doesn't have: begin it with the earliest file, or now",
        ),
        StartAt::Earliest | StartAt::Now => None,
    }
}

/// Refuses a MariaDB that a relay with these settings can't follow.
///
/// # Errors
///
/// [`Error::Unfollowable`]: only other settings, or another server, would help.
pub(crate) fn check(
    connection: &Connection,
    server: &str,
    (servers, start): (&Servers, &StartAt),
) -> Result<()> {
    match why_not(servers, start).filter(|_| answers(connection)) {
        Some(why) => Err(Error::Unfollowable(format!("the source {server} is MariaDB: {why}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mariadb_has_the_uuid_that_its_server_id_makes() {
        let uuid = stand_in(35010);
        assert_eq!(uuid.to_string(), "6d617269-6164-6220-0000-0000000088c2");
        assert!(is_mariadb(uuid) && stand_in(35011) != uuid);
        assert!(!is_mariadb("1410447f-e54d-11f1-848d-02fc00000001".parse().unwrap()));
    }
}
