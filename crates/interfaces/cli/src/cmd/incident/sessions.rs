//! The accounts of sessions: of those that still live by `performance_schema.threads`, of others by the general log, where it is on and a
//! table.
//!
//! A server gives each session a number of its own while it runs. So a session is the one of a transaction if it has its number, the
//! transaction ran on this server (its `server_id`), and it was committed since the server was started.

use std::collections::{BTreeSet, HashMap};

use binlogz_source::{AnswerFields, ConnectOptions, Connection};
use binlogz_triage::RankedChange;

use crate::failure::warn;

const SERVER: &str = "SELECT @@server_id, CAST((UNIX_TIMESTAMP(NOW(6)) - variable_value) * 1000000 AS UNSIGNED) FROM \
                      performance_schema.global_status WHERE variable_name = 'UPTIME'";
const SESSIONS: &str = "SELECT processlist_id, processlist_user, COALESCE(processlist_host, '') FROM performance_schema.threads \
                        WHERE processlist_user IS NOT NULL AND processlist_id IS NOT NULL";
const HAS_GENERAL_LOG: &str = "SELECT @@GLOBAL.general_log AND FIND_IN_SET('TABLE', @@GLOBAL.log_output) > 0";
/// How long the server looks for sessions in its general log, which has no index, in milliseconds.
const GENERAL_LOG_TIME: u32 = 5000;
/// The uptime is in whole seconds.
const SECOND: u64 = 1_000_000;

/// User and host of sessions, by their number.
type Accounts = HashMap<u64, (String, String)>;

/// Gives the changes the accounts of their sessions, as far as the server knows them. What the log tells stays.
pub(super) fn add_accounts(
    connect: &ConnectOptions,
    connection: &mut Connection,
    changes: &mut [RankedChange],
) -> binlogz_source::Result<()> {
    let server = connect.server();
    let own = AnswerFields::first_of(&server, SERVER, connection.query(SERVER)?)?;
    let server_id: u32 = own.parsed(0, "a server id")?;
    let started: u64 = own.parsed(1, "a time")?;
    let is_its = |change: &RankedChange| {
        let transaction = &change.transaction;
        let is_recent = transaction.time > started.saturating_add(SECOND);
        transaction.account.is_none() && transaction.server_id == server_id && is_recent
    };
    let mut open: Vec<&mut RankedChange> = changes.iter_mut().filter(|change| is_its(change)).collect();
    give(&mut open, &living(&server, connection)?);
    open.retain(|change| change.transaction.account.is_none());
    let threads: BTreeSet<u32> = open.iter().filter_map(|change| change.transaction.thread_id).collect();
    if threads.is_empty() || !connection.first_row(HAS_GENERAL_LOG)?.is_on(0)? {
        return Ok(());
    }
    match in_general_log(&server, connection, &threads, started) {
        Ok(accounts) => give(&mut open, &accounts),
        Err(error) => warn(&format!("{server}: mysql.general_log, for who was connected: {error}")),
    }
    Ok(())
}

fn give(changes: &mut [&mut RankedChange], accounts: &Accounts) {
    for change in changes {
        // The log has 32 bits of the number: of a larger one it isn't certain.
        let thread = change.transaction.thread_id.map(u64::from);
        change.transaction.account = thread.and_then(|id| accounts.get(&id).cloned());
    }
}

/// The sessions that still live.
fn living(server: &str, connection: &mut Connection) -> binlogz_source::Result<Accounts> {
    let mut accounts = Accounts::new();
    for row in connection.query(SESSIONS)? {
        let session = AnswerFields::first_of(server, SESSIONS, vec![row])?;
        accounts.insert(
            session.parsed(0, "a number")?,
            (session.text(1)?.to_owned(), session.text(2)?.to_owned()),
        );
    }
    Ok(accounts)
}

/// The sessions that the general log has, since the server was started. One that changed its user is left out.
fn in_general_log(
    server: &str,
    connection: &mut Connection,
    threads: &BTreeSet<u32>,
    started: u64,
) -> binlogz_source::Result<Accounts> {
    let numbers = threads.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let statement = format!(
        "SELECT /*+ MAX_EXECUTION_TIME({GENERAL_LOG_TIME}) */ DISTINCT thread_id, CONVERT(user_host USING utf8mb4) FROM mysql.general_log \
         WHERE thread_id IN ({numbers}) AND UNIX_TIMESTAMP(event_time) >= {}",
        started / SECOND
    );
    let mut all: HashMap<u64, BTreeSet<(String, String)>> = HashMap::new();
    for row in connection.query(&statement)? {
        let session = AnswerFields::first_of(server, &statement, vec![row])?;
        all.entry(session.parsed(0, "a number")?).or_default().extend(account_of(session.text(1)?));
    }
    let one = |(id, accounts): (u64, BTreeSet<_>)| {
        let mut accounts = accounts.into_iter();
        Some((id, accounts.next()?)).filter(|_| accounts.next().is_none())
    };
    Ok(all.into_iter().filter_map(one).collect())
}

/// User and host of the column `user_host`: `priv_user[user] @ host [address]`, as the server's `log_command` writes it.
fn account_of(text: &str) -> Option<(String, String)> {
    let (user, place) = text.split_once(" @ ")?;
    let user = user.split_once('[')?.1.strip_suffix(']')?;
    let (host, address) = place.split_once(" [")?;
    let host = if host.is_empty() { address.strip_suffix(']')? } else { host };
    Some((user.to_owned(), host.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::account_of;

    #[test]
    fn the_general_log_tells_user_and_host() {
        let told = |text| account_of(text).map(|(user, host)| format!("{user}@{host}"));
        assert_eq!(told("root[root] @ localhost []").as_deref(), Some("root@localhost"));
        assert_eq!(told("[app] @  [10.0.0.7]").as_deref(), Some("app@10.0.0.7"));
        assert_eq!(told("%[a @ b] @ db1 [10.0.0.7]"), None);
        assert_eq!(told("nothing"), None);
    }
}
