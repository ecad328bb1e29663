//! Whether a server replicates: what is committed there by hand has a GTID that its source doesn't know.

use super::session::{AnswerRow, ApplySession};

/// The statements that tell where a server replicates from, by age. Only MariaDB knows the first; it lists all connections.
const STATEMENTS: [&str; 3] = ["SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"];
/// The columns that have the source's address.
const HOSTS: [&str; 2] = ["Source_Host", "Master_Host"];
/// The channels of a group's members begin with this: a group gives what is committed on its primary to all its members.
const OF_A_GROUP: &str = "group_replication_";
/// The error of a server that doesn't know a statement.
const SYNTAX_ERROR: u16 = 1064;

/// Why changes that are applied to this server would be lacking at others, if they would.
pub(crate) fn why_not(session: &mut ApplySession) -> Option<String> {
    for statement in STATEMENTS {
        let rows = match session.rows(statement) {
            Ok(rows) => rows,
            Err(error) if error.server_error().is_some_and(|error| error.code == SYNTAX_ERROR) => continue,
            Err(error) => {
                return Some(format!("whether the server replicates from another can't be asked ({error})"));
            }
        };
        let column = |names: &[&str]| session.columns().iter().position(|column| names.contains(&&**column));
        let host = column(&HOSTS);
        let channel = column(&["Channel_Name"]);
        let text = |row: &AnswerRow, column: Option<usize>| {
            let bytes = row.get(column?)?.as_deref()?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        let is_of_a_group =
            |row: &&AnswerRow| text(row, channel).is_some_and(|name| name.starts_with(OF_A_GROUP));
        return rows.iter().find(|row| !is_of_a_group(row)).map(|row| {
            let from = text(row, host).unwrap_or_else(|| "another server".to_owned());
            format!("the server replicates from {from}, which would lack the changes (errant GTIDs)")
        });
    }
    Some("whether the server replicates from another can't be asked".to_owned())
}
