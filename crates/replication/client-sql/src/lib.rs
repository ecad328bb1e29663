//! Answers the SQL statements of a relay's clients, as a server answers them.
//!
//! The input is a parsed statement (`binlogz_wire::statement`) and the state of the client that sent it ([`ClientVariables`]). The
//! output is a [`StatementAnswer`]: rows, an error, or nothing more. Facts about the stored logs come through
//! the trait [`AskedRelay`], which the relay implements; this crate reads no file and has no connection. Every answer comes from
//! what is stored, so it doesn't depend on whether the source can be reached.
//!
//! * `answers` maps each statement to its answer (`statement_answer`);
//! * `asked_relay` is what the answers ask of the relay;
//! * `variables` are those of the source, of the relay and of the client: SELECT, SET, SHOW VARIABLES;
//! * `listings` are SHOW BINARY LOGS, BINARY LOG STATUS, BINLOG EVENTS and REPLICAS;
//! * `replica_status` is SHOW REPLICA STATUS;
//! * `compression_stats` is the table of that name in performance_schema;
//! * `admin` are the statements that control the relay;
//! * `routing` decides which statements the source answers instead.

mod admin;
mod answers;
mod asked_relay;
mod compression_stats;
mod listings;
mod replica_status;
mod routing;
mod statement_answer;
mod variables;

pub use answers::{AskingClient, answer, unknown_statement};
pub use asked_relay::AskedRelay;
pub use listings::{ListedLog, LogStatusRow, RegisteredReplica};
pub use replica_status::{ReceiverState, ReplicaStatusFacts};
pub use routing::{ConnectionUses, StatementRoute, asks_read_only, may_be_prepared, route, tells_position};
pub use statement_answer::{Refusal, StatementAnswer, WITH_FORWARDING};
pub use variables::session::{ClientFacts, ClientVariables};
pub use variables::source::{Collation, SourceVariable, SourceVariables};
pub use variables::system::OwnVariables;
