//! Table maps as records keep them: without the number that the server gave the table, which is another after each restart, and
//! with the family of the server, which tells what they mean.
//!
//! ```text
//!  0  1  family: 0 MySQL, 1 MariaDB, 2 unknown
//!  1  n  body of the table map, its number 0
//! ```

use binlogz_binlog::Result;
use binlogz_binlog::event::{ServerFamily, TableId, TableMapEvent};
use binlogz_binlog::row::TableSchema;

/// Bytes of a table map's post-header since 5.1: the table's number has 6.
pub(crate) const TABLE_MAP_POST_HEADER_LENGTH: u8 = 8;

/// Stands first in the map of a table of MySQL.
const FAMILY_MYSQL: u8 = 0;

/// The map to be kept of one that a server of this family wrote.
pub(crate) fn kept_map(map: &TableMapEvent<'_>, family: ServerFamily) -> Result<Vec<u8>> {
    let family = match family {
        ServerFamily::Mysql => FAMILY_MYSQL,
        ServerFamily::Mariadb => 1,
        ServerFamily::Unknown => 2,
    };
    let mut kept = vec![family];
    let unnumbered = TableMapEvent { table_id: TableId(0), ..*map };
    kept.extend(unnumbered.encode(TABLE_MAP_POST_HEADER_LENGTH)?);
    Ok(kept)
}

/// The table map that was kept.
pub(crate) fn map_of_kept(kept: &[u8]) -> Result<TableMapEvent<'_>> {
    TableMapEvent::decode(kept.get(1..).unwrap_or_default(), TABLE_MAP_POST_HEADER_LENGTH)
}

/// The table of a map that was kept.
pub(crate) fn schema_of_kept(kept: &[u8]) -> Result<TableSchema> {
    TableSchema::new(&map_of_kept(kept)?, family_of_kept(kept))
}

/// The family of the server that wrote the map.
pub(crate) fn family_of_kept(kept: &[u8]) -> ServerFamily {
    match kept.first() {
        Some(&FAMILY_MYSQL) => ServerFamily::Mysql,
        Some(1) => ServerFamily::Mariadb,
        _ => ServerFamily::Unknown,
    }
}
