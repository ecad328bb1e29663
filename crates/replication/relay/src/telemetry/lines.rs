//! Log lines, as events of `tracing`. Each has the source it is of; the spans around it (`spans`) say which duty or which client
//! it is about. The target is the module that logs, so that each part can have a level of its own.
//!
//! ```text
//! say!(telemetry, line)               info    something happened
//! report!(telemetry, alarms, line)    info, or error if it alarms
//! complain!(telemetry, error, line)   error, or warn if a client is to blame; counted and remembered
//! ```
//!
//! The program decides what happens to the events: the library prints nothing.

/// Logs what happened.
macro_rules! say {
    ($telemetry:expr, $line:expr $(,)?) => {{
        let telemetry: &$crate::telemetry::Telemetry = &$telemetry;
        tracing::info!(source = telemetry.source(), "{}", binlogz_binlog::printable($line));
    }};
}

/// Logs a report, which is an error if it alarms.
macro_rules! report {
    ($telemetry:expr, $alarms:expr, $line:expr $(,)?) => {{
        let telemetry: &$crate::telemetry::Telemetry = &$telemetry;
        let line = binlogz_binlog::printable($line).into_owned();
        match $alarms {
            true => tracing::error!(source = telemetry.source(), "{line}"),
            false => tracing::info!(source = telemetry.source(), "{line}"),
        }
    }};
}

/// Logs an error, counts it and remembers it.
macro_rules! complain {
    ($telemetry:expr, $error:expr, $line:expr $(,)?) => {{
        let telemetry: &$crate::telemetry::Telemetry = &$telemetry;
        let error: &$crate::error::Error = $error;
        let line = telemetry.remember(error, $line);
        let source = telemetry.source();
        let kind = error.kind();
        match error.is_of_client() {
            true => tracing::warn!(source, kind, "{line}"),
            false => tracing::error!(source, kind, "{line}"),
        }
    }};
}

pub(crate) use {complain, report, say};
