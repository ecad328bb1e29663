//! Follows sources as a replica, keeps the binary log of each durably, byte for byte, and serves it to any number of
//! replicas in the form that each can read.
//!
//! ```text
//! source ─ receiver ─ whole transactions ─ store ─ sync ─ durable ┬ sender ─ received ──── replica
//!                                                                ├ sender ─ compressed ── replica
//!                                                                └ sender ─ uncompressed  replica
//! ```
//!
//! Each folder is a stage of this flow. Its `mod.rs` describes its input, its output and its files. Each stage uses only
//! those above it in this list:
//!
//! * `telemetry`: counters, lag and log lines from all parts; `rates` limits bytes a second;
//! * `replicas`: what we know about the connected replicas;
//! * `receive`: from the source to durable bytes;
//! * `housekeeping`: retention and archiving of closed files;
//! * `serve`: clients, logins and dumps;
//! * `watch`: status, metrics and pages;
//! * `statements.rs` tells `binlogz-client-sql`, which answers clients' SQL statements, what it has to know;
//! * `source.rs` joins them for one source, `sources.rs` has all sources and `relay.rs` their shared state, as the
//!   `options` say; `server_check.rs` asks servers beforehand whether they can be followed.
//!
//! There is one thread per client, and for each source one that receives and one that syncs. `binlogz-relay-log` keeps the logs and
//! their indexes, `binlogz-relay-forms` converts them into the form that a reader can read, `binlogz-wire` implements the protocol,
//! `binlogz-store` writes the files on disk, and `binlogz-payload` compresses and expands transactions.

mod error;
mod housekeeping;
mod options;
mod rates;
mod receive;
mod relay;
mod replicas;
mod serve;
mod server_check;
mod source;
mod sources;
mod statements;
mod telemetry;
#[cfg(test)]
mod tests;
mod time;
mod watch;

pub use binlogz_relay_log::{
    BringBack, ClosedLogs, EndedLogs, Error as LogError, Form, LastTransaction, StopAt, SyncPolicy,
};
pub use error::{Error, Result};
pub use housekeeping::archiving::ArchiveOptions;
pub use housekeeping::checking::ArchiveCheckStatus;
pub use housekeeping::retention::Retention;
pub use housekeeping::scrub::{ScrubOptions, ScrubStatus};
pub use options::{ListenTls, RelayOptions, ServeOptions, ServedLogs, SourceOptions};
pub use rates::{ByteRates, RateStatus, RatesStatus};
pub use receive::control::Phase;
pub use receive::source_status::SourceStatus;
pub use receive::start::StartAt;
pub use receive::storing::StoredForm;
pub use relay::{Relay, ReloadResult, RunningRelay};
pub use replicas::acknowledgements::WaitForReplicas;
pub use serve::connections::accounts::AccountOptions;
pub use serve::connections::admission::Limits;
pub use serve::connections::client_form::FormPolicy;
pub use serve::events::log_survey::{LogSurvey, SurveyFinding, SurveyPlace};
pub use serve::events::profiles::{ReaderProfile, Treatment, Treatments};
pub use serve::events::row_metadata::{RowMetadata, UnknownRowMetadata};
pub use serve::events::table_choice::{TableChoice, UnfitPattern};
pub use serve::upstream::ForwardOptions;
pub use server_check::ServerCheck;
pub use sources::SourceChanges;
pub use telemetry::duties::DutyStatus;
pub use telemetry::meters::RememberedError;
pub use watch::http::{HttpAnswer, HttpOptions, HttpRequest, serve_pages};
pub use watch::relay_status::{NamedStatus, RelayStatus};
pub use watch::status::{
    ArchiveStatus, LineageOrigin, LineageState, LineageStatus, LogPosition, LogStatus, ReplicaStatus,
    SourceReport, StatusBytes, StatusClients,
};
