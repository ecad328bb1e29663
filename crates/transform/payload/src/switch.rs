//! The SQL that turns the feature on and off at a server and watches it: `advise` and `doctor` print it for pasting.

use std::fmt::Display;

/// The variable that turns compression on.
pub const COMPRESSION: &str = "binlog_transaction_compression";
/// The variable of the level.
pub const LEVEL: &str = "binlog_transaction_compression_level_zstd";

/// The query for the savings so far.
pub const STATISTICS: &str = "SELECT * FROM performance_schema.binary_log_transaction_compression_stats;";
/// The applier of a replica keeps the values that it started with.
pub const RESTART_APPLIER: &str = "STOP REPLICA SQL_THREAD; START REPLICA SQL_THREAD;";
/// The next file begins: a setting changed now applies to it from its start.
pub const NEXT_FILE: &str = "FLUSH BINARY LOGS;";

/// Turns it on, at a level where one can be set.
pub fn turn_on(level: Option<impl Display>) -> Vec<String> {
    let level = level.map(|level| format!("SET PERSIST {LEVEL} = {level};"));
    level.into_iter().chain([format!("SET PERSIST {COMPRESSION} = ON;")]).collect()
}

/// Turns it off.
pub fn turn_off() -> String {
    format!("SET PERSIST {COMPRESSION} = OFF;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_comes_first() {
        let on = "SET PERSIST binlog_transaction_compression = ON;";
        assert_eq!(turn_on(None::<u8>), [on]);
        assert_eq!(turn_on(Some(6)), ["SET PERSIST binlog_transaction_compression_level_zstd = 6;", on]);
        assert_eq!(turn_off(), "SET PERSIST binlog_transaction_compression = OFF;");
    }
}
