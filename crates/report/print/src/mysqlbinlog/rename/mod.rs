//! `--rewrite-db`: shows events under their databases' new names. Statement text is unchanged, as with
//! mysqlbinlog.

mod renamer;

pub use renamer::Renamer;

use binlogz_binlog::event::{ExecuteLoadQueryEvent, QueryEvent, TableMapEvent};
use binlogz_binlog::{EventType, Result};

/// Whether events of a type name the database they concern.
pub(crate) fn names_database(event_type: EventType) -> bool {
    matches!(event_type, EventType::QUERY | EventType::EXECUTE_LOAD_QUERY | EventType::TABLE_MAP)
}

/// The body under the database's new name, if it has one, and the place of the rule. `length` is that of the type's
/// post-header.
pub(crate) fn renamed_body(
    event_type: EventType,
    body: &[u8],
    length: u8,
    renames: &[(Vec<u8>, Vec<u8>)],
) -> Result<Option<(usize, Vec<u8>)>> {
    Ok(match event_type {
        EventType::QUERY => {
            let query = QueryEvent::decode(body)?;
            match new_name(query.database, renames) {
                Some((rule, database)) => Some((rule, QueryEvent { database, ..query }.encode()?)),
                None => None,
            }
        }
        EventType::EXECUTE_LOAD_QUERY => {
            let load = ExecuteLoadQueryEvent::decode(body)?;
            match new_name(load.query.database, renames) {
                Some((rule, database)) => {
                    let query = QueryEvent { database, ..load.query };
                    Some((rule, ExecuteLoadQueryEvent { query, ..load }.encode()?))
                }
                None => None,
            }
        }
        EventType::TABLE_MAP => {
            let map = TableMapEvent::decode(body, length)?;
            match new_name(map.database, renames) {
                Some((rule, database)) => Some((rule, TableMapEvent { database, ..map }.encode(length)?)),
                None => None,
            }
        }
        _ => None,
    })
}

/// The new name of a database, and the place of the rule. If several rules match, the last one counts.
pub(crate) fn new_name<'r>(name: &[u8], renames: &'r [(Vec<u8>, Vec<u8>)]) -> Option<(usize, &'r [u8])> {
    let rules = renames.iter().enumerate().rev();
    rules.filter(|(_, (old, _))| old == name).map(|(place, (_, new))| (place, new.as_slice())).next()
}
