//! GTIDs and GTID sets.
