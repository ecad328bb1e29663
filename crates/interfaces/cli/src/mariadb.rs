//! Tells users who expect compressed transactions that MariaDB has no such thing.

use std::fs::{self, File};

use binlogz_binlog::EventReader;
use binlogz_binlog::event::{AnyEvent, PostHeaderLengths};

use crate::failure::warn;
use crate::log_path::LogPath;

/// Warns if MariaDB wrote the log. The beginning of a pipe can't be looked at first. Errors of a file are left to the
/// caller, who reads it next.
pub(crate) fn warn_of(log: &LogPath) {
    if let Some(version) = version(log) {
        warn(&format!(
            "{log}: is a log of MariaDB ({version}), which has no transaction compression: none of its transactions is \
             compressed or can be"
        ));
    }
}

fn version(log: &LogPath) -> Option<String> {
    let LogPath::File(path) = log else { return None };
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut reader = EventReader::new(File::open(path).ok()?);
    let (_, frame) = reader.next_event().ok()??;
    match AnyEvent::decode(&frame, &PostHeaderLengths::default()).ok()? {
        AnyEvent::FormatDescription(description) if description.is_mariadb() => {
            Some(description.server_version())
        }
        _ => None,
    }
}
