//! A client's announcements in user variables before it asked for the log, under new names and old ones.

use std::time::Duration;

use binlogz_binlog::ChecksumAlgorithm;
use binlogz_binlog::event::FormatDescription;
use binlogz_client_sql::ClientVariables;

/// The value of a user variable under its new name or else its old one.
fn variable<'a>(variables: &'a ClientVariables, name: &str, older: &str) -> Option<&'a str> {
    let set = |name| variables.get(name)?.as_deref();
    set(name).or_else(|| set(older))
}

pub(super) fn replica_uuid(variables: &ClientVariables) -> Option<String> {
    variable(variables, "replica_uuid", "slave_uuid").filter(|uuid| !uuid.is_empty()).map(str::to_owned)
}

/// The checksums that the client can read.
pub(super) fn checksum(variables: &ClientVariables) -> Option<ChecksumAlgorithm> {
    let name = variable(variables, "source_binlog_checksum", "master_binlog_checksum")?;
    match name.to_ascii_uppercase().as_str() {
        "CRC32" | "1" => Some(ChecksumAlgorithm::CRC32),
        _ => Some(ChecksumAlgorithm::NONE),
    }
}

/// Whether the client is a replica of MariaDB, which says what it knows of MariaDB's events.
pub(super) fn is_mariadb(variables: &ClientVariables) -> bool {
    variables.contains_key("mariadb_slave_capability")
}

/// Whether the client will acknowledge transactions.
pub(super) fn semi_sync(variables: &ClientVariables) -> bool {
    variable(variables, "rpl_semi_sync_replica", "rpl_semi_sync_slave").is_some_and(|value| value != "0")
}

/// The heartbeat period, which the client gives in nanoseconds.
pub(super) fn heartbeat_period(variables: &ClientVariables) -> Option<Duration> {
    let text = variable(variables, "source_heartbeat_period", "master_heartbeat_period")?;
    let period = text.parse::<u64>().ok().or_else(|| text.parse::<f64>().ok().map(|period| period as u64))?;
    (period > 0).then(|| Duration::from_nanos(period))
}

/// The version in the greeting: MariaDB 10 puts 5.5.5- before its own, which its replicas and clients expect.
pub(super) fn greeted_version(description: &FormatDescription) -> String {
    let version = description.server_version();
    match description.is_mariadb() && version.starts_with("10.") {
        true => format!("5.5.5-{version}"),
        false => version,
    }
}
