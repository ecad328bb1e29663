//! If a log lacks columns' names, the server's present names are used. Its logs since then tell whether the columns were
//! the same when the rows were logged, and columns' defaults, where images leave these out. They also tell whether rows of tables without a key were changed in the same way since.

use binlogz_flow::Input;
use binlogz_row_changes::{Script, ServerLogs};
use binlogz_source::ConnectOptions;

use super::{failure, heads};
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;
use crate::progress::WorkProgress;

/// Reads the server's logs after those that were read. If it hasn't all of them, rows of tables without names are left, and those of
/// tables without a key are conflicts.
pub(super) fn look(
    script: &mut Script<'_>,
    connect: &ConnectOptions,
    sought: Sought,
    workers: usize,
) -> Result<()> {
    let keyless = if sought.repeated { script.keyless_tables() } else { Vec::new() };
    // A default of now may be another one than then.
    let looks_for_names =
        sought.names && !(script.unnamed_tables().is_empty() && script.lacking_tables().is_empty());
    if !looks_for_names && keyless.is_empty() {
        return Ok(());
    }
    match since(script, connect) {
        Ok(logs) => read(script, &logs, connect, &keyless, workers),
        Err(why) => {
            let server = connect.server();
            if !keyless.is_empty() {
                script.repeated_unknown(&format!("what {server} did since can't be read: {why}"));
            }
            if looks_for_names {
                script.columns_unknown(&format!(
                    "the log has no column names, and whether they were always those that {server} has now can't be told: {why}"
                ));
            }
            Ok(())
        }
    }
}

/// The questions that the server's later logs answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sought {
    /// Whether columns had their present names.
    pub(super) names: bool,
    /// Whether rows of tables without a key were changed in the same way.
    pub(super) repeated: bool,
}

/// The server's logs from the first on that may have what wasn't read.
fn since(script: &Script<'_>, connect: &ConnectOptions) -> std::result::Result<ServerLogs, String> {
    let listed = heads::list(connect).map_err(line_of)?;
    let names: Vec<String> = listed.into_iter().map(|(name, _)| name).collect();
    let seen = script.transactions_read();
    let (first, offset) = if seen.is_empty() {
        // Without GTIDs a log is known by its name.
        let last = script.last_read().filter(|(last, _)| names.iter().any(|name| name == last));
        let (last, end) = last.ok_or("it doesn't have the log")?;
        (last.to_owned(), end)
    } else {
        let found = heads::from_last(names, connect, &|head| head.follows_only(seen));
        let (names, head) = found.map_err(line_of)?.ok_or("it has no binary log")?;
        if !head.follows_only(seen) {
            return Err("its logs begin later than those that were read end".to_owned());
        }
        (names.into_iter().next().unwrap_or_default(), heads::LOG_BEGIN)
    };
    ServerLogs::open(connect, &first, offset).map_err(|error| error.to_string())
}

fn line_of(failure: CommandFailure) -> String {
    match failure {
        CommandFailure::Line(line) => line,
        CommandFailure::ClosedPipe => "it can't be asked".to_owned(),
    }
}

fn read(
    script: &mut Script<'_>,
    logs: &ServerLogs,
    connect: &ConnectOptions,
    keyless: &[(String, String)],
    workers: usize,
) -> Result<()> {
    let trouble = |error: binlogz_source::Error| CommandFailure::of_server(&connect.server(), error);
    while let Some((name, bytes)) = logs.next_log().map_err(trouble)? {
        let progress = WorkProgress::new(&name, None);
        let input = Input::Stream(bytes);
        let read = script.read_after(input, &name, keyless, workers, &mut |bytes| progress.at(bytes));
        read.map_err(|error| failure(&LogPath::File(name.clone().into()), error))?;
    }
    Ok(())
}
