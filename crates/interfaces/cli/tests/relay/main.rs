//! `binlogz relay` on real servers: how it stores, serves, repairs and reports, and how it behaves under faults.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod ahead;
mod archive;
mod archive_check;
mod cdc_clients;
mod closed;
#[path = "../common/mod.rs"]
mod common;
mod compressed;
mod config;
mod cut;
mod damage;
mod descriptors;
mod duties;
mod end_to_end;
mod exits;
mod failover;
mod fleet;
mod forms;
mod forwarding;
mod group_replication;
mod large;
mod lineage;
mod mariadb_source;
mod maxwell;
mod old_replica_guide;
mod old_replicas;
mod old_sources;
mod ops;
#[path = "../common/planted.rs"]
mod planted;
mod profile_survey;
mod profiles;
mod rates;
mod receive;
mod recovery;
mod recovery_choice;
mod recovery_far;
mod recovery_folded;
mod recovery_incidents;
mod rolling;
mod row_metadata;
mod semi_sync;
mod serving;
mod several;
mod sources;
mod statements;
mod tls;
#[cfg(feature = "otel")]
mod traces;
mod unit;
mod variables;
mod xa;
mod xa_random;
