//! The command lines of binlogz's companions: what `binlogz sql`, `export`, `bench` and `demo` take. The programs that do them parse
//! these; binlogz, which passes them on, makes completions and manual pages of the same definitions.
//!
//! ```text
//! sql, sql_serve, export   binlogz-sql; sql_inputs is what they share
//! bench, demo              binlogz-bench; presets and commit are commands of bench
//! ```
//!
//! Definitions alone: what is done is in the programs, with their query engine, experiments and servers.

pub mod bench;
pub mod commit;
pub mod demo;
pub mod export;
pub mod presets;
pub mod sql;
pub mod sql_inputs;
pub mod sql_serve;
