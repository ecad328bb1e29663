//! Finds which server version wrote the logs that are measured: from the logs themselves, or by asking the server.

use binlogz_binlog::event::{SERVER_VERSION_SIZE, version_number};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_encryption::Keyring;
use binlogz_flow::Input;
use binlogz_payload::ServerGeneration;

use super::measured_log::MeasuredLog;

/// The offset of a file's server version: magic, event header, and the format's version.
const SERVER_VERSION: usize = binlogz_binlog::MAGIC.len() + HEADER_SIZE + size_of::<u16>();

/// The generation that `--as` names, as in `mysql-8.0.33`.
pub(super) fn named(text: &str) -> Result<ServerGeneration, String> {
    let version = text
        .strip_prefix("mysql-")
        .filter(|version| version.starts_with(|first: char| first.is_ascii_digit()));
    let version =
        version.ok_or_else(|| format!("server is {text:?}, expected a name such as mysql-8.0.33"))?;
    Ok(ServerGeneration::of_version(version))
}

/// The generation of the last server whose version can be known before its log is read.
pub(super) fn of_logs(logs: &[MeasuredLog], keyring: Option<&Keyring>) -> ServerGeneration {
    let known = logs.iter().rev().find_map(|log| match log {
        MeasuredLog::Server(log) => log.version.as_deref().map(ServerGeneration::of_version),
        MeasuredLog::Path(path) => {
            // A pipe can be read only once. A file that can't be read is reported when it is measured.
            path.metadata().ok().flatten().filter(|metadata| metadata.is_file())?;
            let Ok(Input::Places(places)) = path.open_input(keyring) else { return None };
            let mut front = [0; SERVER_VERSION + SERVER_VERSION_SIZE];
            places.fill_at(&mut front, 0).ok().filter(|&size| size == front.len())?;
            Some(ServerGeneration::of_version_number(version_number(front.get(SERVER_VERSION..)?)))
        }
    });
    known.unwrap_or_default()
}
