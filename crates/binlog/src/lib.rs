//! Reads and writes MySQL's binary log format: frames, checksums, events, GTID sets.
