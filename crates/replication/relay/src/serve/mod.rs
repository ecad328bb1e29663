//! Clients: their connections, logins and dumps.
//!
//! Takes connections, sends the log in the form that each client can read (`binlogz_relay_forms`), and answers statements
//! (`binlogz_client_sql`). `replicas` records which replicas there are and how far they have got. `binlogz_wire` implements the
//! protocol.
//!
//! * `door` is what all clients pass, `listeners` where they arrive, `routes` says which source each reads;
//! * `server` accepts connections and takes commands; `server/dump` resolves a request for the log; `clients` can be sent away, and
//!   `departures` notices when they leave by themselves;
//! * `admission` limits the number of clients, `descriptors` to as many as the process may have files open for; `accounts` checks logins, `transport` does TLS, `own_certificate` makes what
//!   it needs;
//! * `upstream` is a client's own connection to the source, for statements that the relay does not answer; `answer_scan`
//!   finds places in the source's log in the source's answers;
//! * `sender` serves a dump until the client leaves, through `sink`, which cuts events into packets;
//! * `profiles` says what each kind of client is sent, `table_choice` which tables' rows, `row_metadata` which facts about their columns; `fitting` makes each event fit that, with
//!   `older_collations`, which replaces names that older servers don't know, and `xa`, which makes XA transactions plain for those that don't know them;
//! * `log_survey` counts what some profiles would not be sent as it is;
//! * `mariadb_log` is what a MariaDB's log is not served to, `mariadb_start` where it begins by MariaDB's GTIDs;
//! * `semi_sync` asks a replica for its acknowledgements;
//! * `client_form` is the policy for the form of a client that names no file, `pins` remembers which form a client is served, `last_served` which log; `recent` bounds both.

pub(crate) mod accounts;
pub(crate) mod admission;
mod answer_scan;
pub(crate) mod client_form;
pub(crate) mod clients;
pub(crate) mod departures;
mod descriptors;
pub(crate) mod door;
#[cfg(test)]
mod event_in_tests;
mod fitting;
pub(crate) mod last_served;
pub(crate) mod listeners;
pub(crate) mod log_survey;
mod mariadb_log;
pub(crate) mod mariadb_start;
mod older_collations;
pub(crate) mod own_certificate;
pub(crate) mod pins;
pub(crate) mod profiles;
pub(crate) mod recent;
pub(crate) mod routes;
pub(crate) mod row_metadata;
pub(crate) mod semi_sync;
pub(crate) mod sender;
pub(crate) mod server;
pub(crate) mod sink;
pub(crate) mod table_choice;
pub(crate) mod transport;
pub(crate) mod upstream;
mod xa;

use std::sync::Arc;

use crate::housekeeping::Housekeeping;
use crate::replicas::acknowledgements::Acknowledgements;
use crate::replicas::dumps::Dumps;
use crate::replicas::registry::Registry;
use crate::statements::Statements;
use crate::telemetry::Telemetry;
use binlogz_relay_forms::Conversions;
use binlogz_relay_log::Lineages;
use client_form::FormPolicy;
use clients::ServedClients;
use last_served::LastServed;
use pins::Pins;
use upstream::ForwardOptions;

/// State shared by the threads of one source's clients.
pub(crate) struct SourceServer {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) lineages: Arc<Lineages>,
    pub(crate) conversions: Arc<Conversions>,
    pub(crate) housekeeping: Arc<Housekeeping>,
    pub(crate) statements: Statements,
    pub(crate) registry: Arc<Registry>,
    pub(crate) dumps: Arc<Dumps>,
    pub(crate) acknowledgements: Arc<Acknowledgements>,
    pub(crate) clients: ServedClients,
    pub(crate) pins: Pins,
    pub(crate) served: LastServed,
    /// Whether replicas may acknowledge transactions.
    pub(crate) semi_sync: bool,
    /// Whether and how statements are forwarded to the source.
    pub(crate) forward: Option<ForwardOptions>,
    /// The form of a client whose account has none.
    pub(crate) form: FormPolicy,
    /// The server id of the only replica that is served; `None`: all are.
    pub(crate) only_replica: Option<u32>,
    /// Whether incidents between transactions are left out.
    pub(crate) over_incidents: bool,
}
