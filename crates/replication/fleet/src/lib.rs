//! Asks relays, archives and servers how they are, and says what needs somebody, the worst first.
//!
//! ```text
//! targets → ask (several at once, each with a limit) → row, joined and sorted → page (table, HTML) · document · prometheus
//!              relay: relay_http, relay_document, findings                      again and again: rounds, with a history
//!              server: the findings of inspect
//! ```
//!
//! `findings` judges a relay's status for all who tell of it. Nothing here prints: a target that can't be asked is a row with the
//! cause, and the caller's function hears warnings.

mod ask;
mod document;
mod error;
pub mod findings;
mod history;
pub mod page;
pub mod prometheus;
mod relay_document;
pub mod relay_http;
mod rounds;
mod row;
mod server;
pub mod targets;

pub use ask::ask_all;
pub use document::FleetDocument;
pub use error::FleetError;
pub use relay_document::{RelayDocument, SourceDocument};
pub use rounds::{FleetRound, FleetRounds, RoundOptions};
pub use row::{FleetRow, joined};
