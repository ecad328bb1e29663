//! Follows one source as a replica, keeps its binary log durably, byte for byte, and serves it to any number of
//! replicas in the form that each can read.
//!
//! ```text
//! source ─ receiver ─ whole transactions ─ store ─ sync ─ durable ┬ sender ─ received ──── replica
//!                                                                ├ sender ─ compressed ── replica
//!                                                                └ sender ─ uncompressed  replica
//! ```
//!
//! * `receiver` takes what the source sends and gives it to `binlogz-store`, a transaction at a time;
//! * `gate` counts clients, `accounts` says who they may be;
//! * `server` accepts clients, `answers` says what their statements are worth, with `variables`;
//! * `sender` serves a dump: `groups` finds the transactions in what is durable, `translate` gives them the form
//!   with `convert` and `clock`, `sink` makes packets of them; `checkpoints` says where in a file to begin;
//! * `whole` goes through a file of a form for its end and its events, `listing` shows those;
//! * `semi_sync` asks a semi-synchronous replica for its acknowledgements, `acknowledgements` waits for those of several;
//! * `parts` says what a file of a form is: `cuts` ends those of the uncompressed form at 1 GiB, `numbers` counts them;
//! * `conversions` has each `block` of transactions made once for all replicas that want it;
//!
//! * `repair` asks the source again for what is damaged of the log;
//! * `continuity` asks whether the source's log still is the one that is kept;
//! * `lineages` holds the logs of the servers that were followed, `start` and `seed` begin one, `syncing` says when it is
//!   made durable;
//! * `compression_stats` counts what was stored; `archiving` puts closed files into an archive; `retention` removes old files, `admin` does what statements want done;
//! * `disk` is where all of them keep their files;
//! * `control` steers the receiving, `dumps` and `meters` watch, `status` is all of it at one moment, `http` shows it.
//!
//! One thread a client, one that receives, one that syncs. What is said on the wire is decided in `binlogz-wire`,
//! what is on disk in `binlogz-store`, what an expanded transaction looks like in `binlogz-payload`.

#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::big_endian_bytes, clippy::host_endian_bytes)]

mod accounts;
mod acknowledgements;
mod admin;
mod answers;
mod archiving;
mod block;
mod checkpoints;
mod clock;
mod compression_stats;
mod continuity;
mod control;
mod conversions;
mod convert;
mod cuts;
mod disk;
mod dumps;
mod error;
mod form;
mod gate;
mod groups;
mod head;
mod http;
mod identity;
mod lineages;
mod lines;
mod listing;
mod meters;
mod numbers;
mod options;
mod parts;
mod pins;
mod receiver;
mod registry;
mod relay;
mod repair;
mod replica_status;
mod retention;
mod seed;
mod semi_sync;
mod sender;
mod served;
mod server;
mod sink;
mod sources;
mod start;
mod status;
mod steering;
mod storing;
mod syncing;
mod translate;
mod transport;
mod variables;
mod whole;

pub use accounts::AccountOptions;
pub use acknowledgements::WaitForReplicas;
pub use archiving::ArchiveOptions;
pub use control::Phase;
pub use error::{Error, Result};
pub use form::{Form, FormPolicy};
pub use gate::Limits;
pub use meters::Remembered;
pub use options::{ListenTls, RelayOptions};
pub use relay::{Level, Log, Relay, Running};
pub use retention::Retention;
pub use start::StartAt;
pub use status::{
    Begun, Bytes, Clients, LineageState, LineageStatus, LogStatus, Place, ReplicaStatus, SourceStatus, Status,
};
pub use storing::Storing;
pub use syncing::SyncPolicy;
