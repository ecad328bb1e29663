//! Clients: their connections, logins and dumps.
//!
//! Takes connections, sends the log in the form that each client can read (`binlogz_relay_forms`), and answers statements
//! (`binlogz_client_sql`). `replicas` records which replicas there are and how far they have got. `binlogz_wire` implements the
//! protocol.
//!
//! From the first to the last, each folder uses those before it:
//!
//! * `events` makes each event as the client can read it;
//! * `connections` takes clients in: limits, accounts, TLS, and which source each reads;
//! * `remembered` has what outlives a connection: the form and the log that a client was served;
//! * `mariadb_source` is what the log of a MariaDB source needs;
//! * `sending` serves a dump until the client leaves;
//! * `upstream` is a client's own connection to the source, for statements that the relay does not answer;
//! * `server` accepts connections and takes commands; `server/dump` resolves a request for the log.

pub(crate) mod connections;
pub(crate) mod events;
mod mariadb_source;
pub(crate) mod remembered;
mod sending;
pub(crate) mod server;
pub(crate) mod upstream;

use std::sync::Arc;

use crate::housekeeping::Housekeeping;
use crate::replicas::acknowledgements::Acknowledgements;
use crate::replicas::dumps::Dumps;
use crate::replicas::registry::Registry;
use crate::statements::Statements;
use crate::telemetry::Telemetry;
use binlogz_relay_forms::Conversions;
use binlogz_relay_log::Lineages;
use connections::client_form::FormPolicy;
use connections::clients::ServedClients;
use remembered::last_served::LastServed;
use remembered::pins::Pins;
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
