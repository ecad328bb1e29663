//! Spans of `tracing`: the fields of the log lines inside them. The last five, of level debug, also say how long work takes to a
//! program that listens to spans.
//!
//! ```text
//! duty        of a thread that never ends
//! client      of a client's thread
//! session     a replica's dump, from the request to the end
//! conversion  a block of the log made in another form, within the session that asked first (`binlogz_relay_forms` begins it)
//! receive     a connection to a source
//! store       a batch of transactions that is written to the log, outside every other span: a connection has any number of them
//! archive     a round that archives closed files
//! ```

use std::net::SocketAddr;

use binlogz_relay_log::Form;
use tracing::{Span, debug_span, error_span, field};

use crate::telemetry::Telemetry;

/// For the lines of a duty's thread. Error is the level of the fields only: they are there whatever level is asked for.
pub(crate) fn duty(telemetry: &Telemetry, name: &'static str) -> Span {
    error_span!("duty", duty = name, source = telemetry.source())
}

/// For the lines of a client's thread; its user and source are filled in when they are known.
pub(crate) fn client(connection: u32, peer: SocketAddr) -> Span {
    error_span!("client", client = connection, peer = %peer, user = field::Empty, source = field::Empty)
}

/// A replica's dump.
pub(crate) fn session(telemetry: &Telemetry, form: Form, connection: u32, user: &str) -> Span {
    debug_span!("session", source = telemetry.source(), form = form.name(), connection, user)
}

/// A connection to a source.
pub(crate) fn receive(telemetry: &Telemetry) -> Span {
    debug_span!("receive", source = telemetry.source(), server = field::Empty)
}

/// A batch of transactions that is written to the log.
pub(crate) fn store(telemetry: &Telemetry, transactions: usize) -> Span {
    debug_span!(parent: None, "store", source = telemetry.source(), transactions, bytes = field::Empty)
}

/// A round of archiving.
pub(crate) fn archive(telemetry: &Telemetry) -> Span {
    debug_span!("archive", source = telemetry.source(), files = field::Empty)
}
