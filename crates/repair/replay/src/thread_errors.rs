//! The errors that ended a channel's threads, in the server's words.

use binlogz_source::Error as ServerError;

use crate::target::TargetServer;

/// ER_REPLICA_WORKER_STOPPED_PREVIOUS_THD_ERROR: a worker ended because the worker of an earlier transaction did.
const ENDED_WITH_ANOTHER: u16 = 3030;

/// Why the channel can't go on; `None` while it can, and while its threads are ending.
pub(crate) fn of(target: &mut TargetServer, channel: &str) -> Result<Option<String>, ServerError> {
    if let Some(error) = of_applying(target, channel)? {
        return Ok(Some(format!("applying ended: {error}")));
    }
    let receiver = target.ask(&format!(
        "SELECT LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE FROM performance_schema.replication_connection_status \
         WHERE CHANNEL_NAME = '{channel}' AND SERVICE_STATE = 'OFF'"
    ))?;
    Ok(first(&receiver).map(|error| format!("receiving ended: {error}")))
}

fn of_applying(target: &mut TargetServer, channel: &str) -> Result<Option<String>, ServerError> {
    // The coordinator ends after all workers. Which of them failed first is known only then. A single applier has none.
    let coordinator = target.ask(&format!(
        "SELECT LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE, SERVICE_STATE \
         FROM performance_schema.replication_applier_status_by_coordinator WHERE CHANNEL_NAME = '{channel}'"
    ))?;
    if coordinator.iter().any(|row| row.get(2).is_some_and(|state| state == "ON")) {
        return Ok(None);
    }
    let workers = target.ask(&format!(
        "SELECT LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker \
         WHERE CHANNEL_NAME = '{channel}' AND LAST_ERROR_NUMBER <> 0 AND SERVICE_STATE = 'OFF' \
         ORDER BY LAST_ERROR_NUMBER = {ENDED_WITH_ANOTHER}, LAST_ERROR_TIMESTAMP"
    ))?;
    // A worker's message names the transaction, the table and the row's key; the coordinator's refers to it.
    Ok(first(&workers).or_else(|| first(&coordinator)))
}

/// The error of the first row, if it has one.
fn first(rows: &[Vec<String>]) -> Option<String> {
    let [number, message, ..] = rows.first()?.as_slice() else { return None };
    let message = message.trim_end_matches(|end: char| end == '.' || end.is_whitespace());
    (number != "0").then(|| format!("{message} (error {number})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_once_without_its_full_stop() {
        let row = |cells: [&str; 2]| vec![cells.map(str::to_owned).to_vec()];
        assert_eq!(
            first(&row(["1062", "Duplicate entry '3' for key 't.PRIMARY'.\n"])).as_deref(),
            Some("Duplicate entry '3' for key 't.PRIMARY' (error 1062)")
        );
        assert_eq!(first(&row(["0", ""])), None);
        assert_eq!(first(&[]), None);
    }
}
