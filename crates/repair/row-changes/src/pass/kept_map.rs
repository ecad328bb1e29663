//! Table maps as records keep them: without the number that the server gave the table, which is another after each restart, and
//! with the family of the server, which tells what they mean.
//!
//! ```text
//!  0  1  family: 0 MySQL, 1 MariaDB, 2 unknown
//!  1  n  body of the table map, its number 0
//! ```

use binlogz_binlog::event::{PostHeaderLengths, ServerFamily, TableId, TableMapEvent};
use binlogz_binlog::row::TableSchema;
use binlogz_binlog::{EventType, Result};

/// Bytes of a table map's post-header since 5.1: the table's number has 6.
pub(crate) const TABLE_MAP_POST_HEADER_LENGTH: u8 = 8;

/// The number of the table whose map this is, and the map to be kept.
pub(super) fn kept_map(body: &[u8], lengths: &PostHeaderLengths) -> Result<(TableId, Vec<u8>)> {
    let map = TableMapEvent::decode(body, lengths.of(EventType::TABLE_MAP))?;
    let family = match lengths.family() {
        ServerFamily::Mysql => 0,
        ServerFamily::Mariadb => 1,
        ServerFamily::Unknown => 2,
    };
    let mut kept = vec![family];
    let unnumbered = TableMapEvent { table_id: TableId(0), ..map };
    kept.extend(unnumbered.encode(TABLE_MAP_POST_HEADER_LENGTH)?);
    Ok((map.table_id, kept))
}

/// The table map that was kept.
pub(crate) fn map_of_kept(kept: &[u8]) -> Result<TableMapEvent<'_>> {
    TableMapEvent::decode(kept.get(1..).unwrap_or_default(), TABLE_MAP_POST_HEADER_LENGTH)
}

/// The table of a map that was kept.
pub(crate) fn schema_of_kept(kept: &[u8]) -> Result<TableSchema> {
    let family = match kept.first() {
        Some(0) => ServerFamily::Mysql,
        Some(1) => ServerFamily::Mariadb,
        _ => ServerFamily::Unknown,
    };
    TableSchema::new(&map_of_kept(kept)?, family)
}
