//! Where a new log begins, and whether a server of the source may be followed.

use binlogz_binlog::gtid::GtidSet;
use binlogz_relay_log::Error as LogError;
use binlogz_source::Connection;

use crate::error::{Error, Result};

/// Where a new log begins: always with a whole file from the source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StartAt {
    /// The first file that the source has.
    #[default]
    Earliest,
    /// The file that it is writing to.
    Now,
    /// The last file that contains everything missing from this set.
    Gtids(GtidSet),
}

/// The source's file to begin a new log with; empty for its first one.
pub(crate) fn first_file(connection: &mut Connection, start: &StartAt) -> Result<String> {
    if *start == StartAt::Earliest {
        return Ok(String::new());
    }
    let text = |cell: Option<&Option<Vec<u8>>>| {
        cell.and_then(Option::as_deref)
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .unwrap_or_default()
    };
    let rows = connection.query("SHOW BINARY LOGS")?;
    let names = rows.iter().rev().map(|row| text(row.first()));
    let StartAt::Gtids(has) = start else {
        return Ok(names.into_iter().next().unwrap_or_default());
    };
    for name in names {
        if name.contains('\\') {
            connection.plain_sql_mode()?;
        }
        let quoted = name.replace('\\', "\\\\").replace('\'', "''");
        let events = connection.query(&format!("SHOW BINLOG EVENTS IN '{quoted}' LIMIT 2"))?;
        let previous = events.iter().find(|row| text(row.get(2)) == "Previous_gtids");
        let previous: GtidSet = match previous {
            Some(row) => text(row.get(5)).replace('\n', "").parse()?,
            None => continue,
        };
        if previous.is_subset(has) {
            return Ok(name);
        }
    }
    Err(Error::Log(LogError::Lineage(format!(
        "the source has purged files with transactions that are not in {has}"
    ))))
}

/// Whether a server lacks some of these GTIDs.
pub(crate) fn lacks(connection: &mut Connection, gtids: &GtidSet) -> Result<bool> {
    // MariaDB, for one, does not know the function.
    if gtids.is_empty() {
        return Ok(false);
    }
    let has = connection.first_row(&format!("SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)"))?;
    Ok(!has.is_on(0)?)
}

/// Whether a server has `ours`, everything we store, and still has the transactions after it; `false` if we store nothing
/// with a GTID.
///
/// # Errors
///
/// The server lacks something that another server of the source may have.
pub(crate) fn check_server(ours: &GtidSet, connection: &mut Connection) -> Result<bool> {
    if ours.is_empty() {
        return Ok(false);
    }
    let asked = format!(
        "SELECT GTID_SUBSET('{ours}', @@GLOBAL.gtid_executed), GTID_SUBSET(@@GLOBAL.gtid_purged, '{ours}')"
    );
    let answers = connection.first_row(&asked)?;
    if !answers.is_on(0)? {
        return Err(Error::OfSource(
            "the server lacks transactions that are kept here: it is behind, or another source's".into(),
        ));
    }
    if !answers.is_on(1)? {
        return Err(Error::OfSource("the server has purged transactions that are not kept here yet".into()));
    }
    Ok(true)
}
