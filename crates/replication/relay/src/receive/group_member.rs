//! Whether a server that belongs to a group (Group Replication, InnoDB Cluster) is a member of it at present.
//!
//! A server that has left its group, or was expelled, can still be reached. It has all that the relay stores, and gets
//! nothing new. It is not followed while another server of the source is in the group. With an account that may not read
//! the members' states (`SELECT ON performance_schema.replication_group_members`) the relay follows any server, as in a
//! source without a group.

use binlogz_source::{ConnectOptions, Connection};

use crate::error::{Error, Result};
use crate::receive::servers::Servers;

/// A server's own state. A server that never was in a group has no row with its uuid.
const OWN_STATE: &str = "SELECT MEMBER_STATE FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@GLOBAL.server_uuid";
/// The states of a member that gets what its group writes.
const INSIDE: [&str; 2] = ["ONLINE", "RECOVERING"];
const ONLINE: &str = "ONLINE";

/// Refuses a server that has left its group while another one is in it. Returns whether the server belongs to a group at all.
///
/// # Errors
///
/// It has left, and another server has not; or the connection broke.
pub(crate) fn check(servers: &Servers, server: &ConnectOptions, connection: &mut Connection) -> Result<bool> {
    let Some(state) = state(connection)? else { return Ok(false) };
    if INSIDE.contains(&state.as_str()) {
        return Ok(true);
    }
    let is_online = |other: &ConnectOptions| {
        let asked =
            Connection::open(other).map_err(Error::from).and_then(|mut other| self::state(&mut other));
        asked.is_ok_and(|state| state.as_deref() == Some(ONLINE))
    };
    let others = servers.all().filter(|other| other.server() != server.server());
    match others.into_iter().find(|other| is_online(other)) {
        Some(other) => Err(Error::OfSource(format!(
            "the server {} has left its group ({state}), and {} is in it",
            server.server(),
            other.server()
        ))),
        None => Ok(true),
    }
}

/// `None`: it belongs to no group, or the account may not know.
fn state(connection: &mut Connection) -> Result<Option<String>> {
    match connection.query(OWN_STATE) {
        Ok(rows) => {
            let state = rows.into_iter().flatten().flatten().next();
            Ok(state.map(|state| String::from_utf8_lossy(&state).into_owned()))
        }
        // No such table, or no right to read it.
        Err(error) if error.server_error().is_some() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
