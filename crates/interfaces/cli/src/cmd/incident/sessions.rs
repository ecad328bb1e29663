//! The accounts of sessions that still live: `performance_schema.threads` of the server that sends the logs tells them.
//!
//! A server gives each session a number of its own while it runs. So a session is the one of a transaction if it has its number, the
//! transaction ran on this server (its `server_id`), and it was committed since the server was started.

use std::collections::HashMap;

use binlogz_source::{AnswerFields, ConnectOptions, Connection};
use binlogz_triage::RankedChange;

use crate::failure::warn;

const SERVER: &str = "SELECT @@server_id, CAST((UNIX_TIMESTAMP(NOW(6)) - variable_value) * 1000000 AS UNSIGNED) FROM \
                      performance_schema.global_status WHERE variable_name = 'UPTIME'";
const SESSIONS: &str = "SELECT processlist_id, processlist_user, COALESCE(processlist_host, '') FROM performance_schema.threads \
                        WHERE processlist_user IS NOT NULL AND processlist_id IS NOT NULL";
/// The uptime is in whole seconds.
const SECOND: u64 = 1_000_000;

/// Gives the changes the accounts of their sessions, as far as these still live. What the log tells stays.
pub(super) fn add_accounts(connect: &ConnectOptions, changes: &mut [RankedChange]) {
    if let Err(error) = add(connect, changes) {
        warn(&format!("{}: who was connected can't be told: {error}", connect.server()));
    }
}

fn add(connect: &ConnectOptions, changes: &mut [RankedChange]) -> binlogz_source::Result<()> {
    let server = connect.server();
    let mut connection = Connection::open(connect)?;
    let own = AnswerFields::first_of(&server, SERVER, connection.query(SERVER)?)?;
    let server_id: u32 = own.parsed(0, "a server id")?;
    let started: u64 = own.parsed(1, "a time")?;
    let mut accounts = HashMap::new();
    for row in connection.query(SESSIONS)? {
        let session = AnswerFields::first_of(&server, SESSIONS, vec![row])?;
        let id: u64 = session.parsed(0, "a number")?;
        accounts.insert(id, (session.text(1)?.to_owned(), session.text(2)?.to_owned()));
    }
    for change in changes {
        let transaction = &mut change.transaction;
        // The log has 32 bits of the number: of a larger one it isn't certain.
        let is_its = transaction.server_id == server_id && transaction.time > started.saturating_add(SECOND);
        let account = transaction.thread_id.filter(|_| is_its).and_then(|id| accounts.get(&u64::from(id)));
        if let (None, Some(account)) = (&transaction.account, account) {
            transaction.account = Some(account.clone());
        }
    }
    Ok(())
}
