//! Where replicas connect, as the page tells those who have none yet: an address that reaches the relay from elsewhere, and what to
//! paste there.

use std::net::IpAddr;

use binlogz_figures::PageStep;

use super::request::HttpRequest;
use crate::watch::WatchedRelay;
use crate::watch::status::LogStatus;

/// The relay's host where nobody knows a name of it that others can use.
const HOST_UNKNOWN: &str = "RELAY";
/// Where a log's events begin.
const FIRST_EVENT: u64 = 4;

/// The way by which replicas of a source come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplicaEntrance {
    /// A name or address that replicas can use; `None`: none is known.
    pub(super) host: Option<String>,
    pub(super) port: u16,
    /// Whether only this machine gets there.
    pub(super) is_local: bool,
    pub(super) has_tls: bool,
    /// The source that an account has to have, where the port means none and there are several.
    pub(super) source: Option<String>,
}

impl ReplicaEntrance {
    /// The entrance of a source, whose name is empty if the relay has no other.
    pub(super) fn of(watch: &WatchedRelay, source: &str, request: &HttpRequest) -> Option<ReplicaEntrance> {
        let listeners = watch.door.listeners.all();
        let own = listeners.iter().find(|listener| listener.source.as_deref() == Some(source));
        let listener = own.or_else(|| listeners.iter().find(|listener| listener.source.is_none()))?;
        let address = listener.address.ip();
        let host = match address.is_unspecified() {
            true => {
                watch.http.iter().flat_map(|http| &http.hosts).next().cloned().or_else(|| asked_at(request))
            }
            false => Some(address.to_string()),
        };
        Some(ReplicaEntrance {
            host,
            port: listener.address.port(),
            is_local: address.is_loopback(),
            has_tls: watch.door.tls.is_some(),
            source: (own.is_none() && !source.is_empty()).then(|| source.to_owned()),
        })
    }

    /// What to do to connect a first replica to this log.
    pub(super) fn step(&self, log: &LogStatus) -> PageStep {
        let of_source =
            self.source.as_ref().map_or(String::new(), |name| format!(" that has source = \"{name}\""));
        let mut what = format!(
            "No replica has read here yet. Connect a first one: paste this there, with an account of the relay{of_source} (its \
             configuration has them; without any it is the account that the relay uses at the source)."
        );
        if self.is_local {
            what += " The relay listens on this machine alone: address in [listen] lets others in.";
        }
        if self.host.is_none() {
            what += &format!(" {HOST_UNKNOWN} is the name or address of the relay's machine.");
        }
        what += " An older MySQL has the same words with MASTER for SOURCE; MariaDB begins at a file that SHOW BINARY LOGS lists at the relay.";
        PageStep { what, paste: self.statements(log) }
    }

    fn statements(&self, log: &LogStatus) -> String {
        let host = quoted(self.host.as_deref().unwrap_or(HOST_UNKNOWN));
        let tls = if self.has_tls { "SOURCE_SSL=1, " } else { "" };
        let place = match log.gtid_executed.is_empty() {
            false => "SOURCE_AUTO_POSITION=1".to_owned(),
            true => format!("SOURCE_LOG_FILE={}, SOURCE_LOG_POS={FIRST_EVENT}", quoted(&log.first_file)),
        };
        format!(
            "CHANGE REPLICATION SOURCE TO\n    SOURCE_HOST={host}, SOURCE_PORT={},\n    \
             SOURCE_USER='USER', SOURCE_PASSWORD='PASSWORD',\n    {tls}{place};\nSTART REPLICA;",
            self.port
        )
    }
}

/// The name by which the relay was asked, if others may use it, too.
fn asked_at(request: &HttpRequest) -> Option<String> {
    let host = request.host()?;
    let is_local = match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host.to_ascii_lowercase().trim_end_matches('.').ends_with("localhost"),
    };
    (!is_local).then(|| host.to_owned())
}

/// A text in SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::http::request::{Read, read};
    use crate::watch::status::LogPosition;

    fn log(gtids: &str) -> LogStatus {
        let end = LogPosition { file: "binlog.000042".to_owned(), number: 42, position: 1337 };
        LogStatus {
            lineage: 1,
            source_uuid: String::new(),
            files: 3,
            first_file: "binlog.000040".to_owned(),
            bytes: 9,
            written: end.clone(),
            durable: end,
            gtid_executed: gtids.to_owned(),
        }
    }

    #[test]
    fn the_statement_is_complete() {
        let here = ReplicaEntrance {
            host: Some("relay.example.com".to_owned()),
            port: 3307,
            is_local: false,
            has_tls: true,
            source: None,
        };
        let step = here.step(&log("7d2a1f0e-0000-11ef-8000-0242ac120002:1-9"));
        let expected = "CHANGE REPLICATION SOURCE TO\n    SOURCE_HOST='relay.example.com', SOURCE_PORT=3307,\n    \
                        SOURCE_USER='USER', SOURCE_PASSWORD='PASSWORD',\n    SOURCE_SSL=1, SOURCE_AUTO_POSITION=1;\n\
                        START REPLICA;";
        assert_eq!(step.paste, expected);
        assert!(!step.what.contains("RELAY") && !step.what.contains("[listen]"), "{}", step.what);
        let local = ReplicaEntrance {
            host: None,
            is_local: true,
            has_tls: false,
            source: Some("orders".to_owned()),
            ..here
        };
        let step = local.step(&log(""));
        let place = "SOURCE_PASSWORD='PASSWORD',\n    SOURCE_LOG_FILE='binlog.000040', SOURCE_LOG_POS=4;";
        assert!(step.paste.contains("SOURCE_HOST='RELAY'") && step.paste.contains(place), "{}", step.paste);
        for said in ["RELAY is the name", "address in [listen]", "that has source = \"orders\""] {
            assert!(step.what.contains(said), "{said}: {}", step.what);
        }
    }

    #[test]
    fn a_name_that_only_this_machine_knows_is_not_given() {
        for (host, known) in [
            ("relay.example.com:3308", Some("relay.example.com")),
            ("192.0.2.7:3308", Some("192.0.2.7")),
            ("127.0.0.1:3308", None),
            ("[::1]:3308", None),
            ("localhost:3308", None),
            ("relay.localhost.", None),
        ] {
            let Read::Whole(request) = read(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
            else {
                panic!("{host}: no request")
            };
            assert_eq!(asked_at(&request).as_deref(), known, "{host}");
        }
    }
}
