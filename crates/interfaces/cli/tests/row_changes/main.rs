//! `undo`, `redo`, `rows`, `table-at` and `fold`, on real servers.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod apply;
mod cascades;
mod changed_rows;
mod children;
mod client_charsets;
#[path = "../common/mod.rs"]
mod common;
mod conditions;
mod defaults;
mod fold;
mod fold_killed;
mod foreign_keys;
mod from_server;
mod incident;
mod indirect_statements;
mod later_cascades;
mod later_changes;
mod mariadb;
mod mariadb_replace;
mod misplaced_rows;
mod model;
mod moments;
mod moved_columns;
mod names_from_ddl;
mod on_call;
mod options;
mod ordinary_server;
mod partial_images;
mod replaced_rows;
mod rewind;
mod rewind_ddl;
mod rewind_doubts;
mod rewind_keys;
mod rewind_others;
mod round_trip;
mod rows;
mod table_at;
mod table_at_ddl;
mod table_at_dump;
mod table_at_log;
mod table_at_many;
mod table_history;
mod trouble;
mod unlogged;
mod values;
mod workload;
