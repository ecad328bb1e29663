//! Answers the SQL statements of clients.
//!
//! The input is a parsed statement (`binlogz_wire::statement`) and the client that sent it; the answer comes from the
//! stored logs and counters. `housekeeping` purges, `receive` starts and stops receiving, `serve` talks to the client.
//!
//! * `answers` maps each statement to its answer (`statement_answer`);
//! * `variables` are those of the source, of the relay and of the client: SELECT, SET, SHOW VARIABLES;
//! * `listings` are SHOW BINARY LOGS, BINARY LOG STATUS, BINLOG EVENTS and REPLICAS;
//! * `replica_status` is SHOW REPLICA STATUS;
//! * `compression_stats` is the table of that name in performance_schema;
//! * `routing` decides which statements the source answers instead;
//! * `admin` are the statements that control the relay.

pub(crate) mod admin;
pub(crate) mod answers;
pub(crate) mod compression_stats;
pub(crate) mod listings;
pub(crate) mod replica_status;
pub(crate) mod routing;
pub(crate) mod statement_answer;
pub(crate) mod variables;

use std::sync::Arc;

use crate::housekeeping::Housekeeping;
use crate::receive::intake::Intake;
use crate::replicas::registry::Registry;

#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) intake: Arc<Intake>,
    pub(crate) housekeeping: Arc<Housekeeping>,
    pub(crate) registry: Arc<Registry>,
    /// Whether replicas may acknowledge transactions.
    pub(crate) listen_semi_sync: bool,
    /// Whether clients must use TLS.
    pub(crate) requires_tls: bool,
    /// This machine's name.
    pub(crate) hostname: String,
}
