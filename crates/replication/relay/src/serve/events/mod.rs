//! The events of the log, as each client can read them.
//!
//! In: an event as its form has it (`binlogz_relay_forms`), and the profile of the client. Out: the event, another one of its size in its place, or the
//! reason why the dump ends before it. Knows no connections; `sending` calls this for each event that leaves.
//!
//! * `profiles` says what each kind of client is sent, `table_choice` which tables' rows, `row_metadata` which facts about their columns;
//! * `fitting` makes each event fit that, with `older_collations`, which replaces names that older servers don't know, and `xa`, which makes XA
//!   transactions plain for those that don't know them;
//! * `log_survey` counts what some profiles would not be sent as it is.

#[cfg(test)]
mod event_in_tests;
pub(crate) mod fitting;
pub(crate) mod log_survey;
mod older_collations;
pub(crate) mod profiles;
pub(crate) mod row_metadata;
pub(crate) mod table_choice;
pub(crate) mod xa;
