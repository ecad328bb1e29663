//! Logs of servers: how they are asked for, and what their trouble is told as.

use std::path::Path;

use binlogz_source::wire::session::{DumpStart, Profile};
use binlogz_source::{ConnectOptions, DumpOptions, Error};

use super::options::{Options, POSITION_MIN};
use crate::failure::{Failure, Result};

/// What the program calls itself to the server.
const PROGRAM_NAME: &str = "mysqlbinlog";

/// How to reach the server; the password is asked for, if it has to be.
pub(super) fn connect(options: &Options) -> Result<ConnectOptions> {
    let connect = options.connect(PROGRAM_NAME).and_then(|mut connect| {
        connect.ask_password()?;
        Ok(connect)
    });
    connect.map_err(|error| Failure::Line(error.to_string()))
}

/// How the `number`th log of the command line is asked for, from 0.
pub(super) fn dump_options(options: &Options, log: &Path, number: usize) -> DumpOptions {
    // Servers know logs by their names alone.
    let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let position = if number == 0 { options.start_position } else { POSITION_MIN };
    let start = match options.excludes_at_source() {
        true => {
            DumpStart::GtidSet { gtid_set: options.exclude_gtids.clone().unwrap_or_default(), name, position }
        }
        false => DumpStart::Position { name, position },
    };
    DumpOptions {
        profile: Profile::Mysqlbinlog,
        server_id: options.own_server_id(),
        start,
        non_blocking: !options.stop_never,
        verify_checksums: options.verify_binlog_checksum,
    }
}

/// Trouble with a server, in mysqlbinlog's words: before it knew who we are, or later.
pub(super) fn failure(error: &Error, logged_in: bool) -> Failure {
    let what = if logged_in { "Got error reading packet from server" } else { "Failed on connect" };
    let said = match error.server_error() {
        Some(error) => error.message.clone(),
        None => error.to_string(),
    };
    Failure::Line(format!("{what}: {said}"))
}
