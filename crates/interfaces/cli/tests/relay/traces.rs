//! Spans of a relay arrive by OTLP at a listener on the loopback interface, as the standard variables say.
//! `scripts/soak/traces.sh` builds the relay with traces.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use binlogz_testkit::{Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, url};

/// A collector: it takes every request and keeps its first line, its headers and its body.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<(String, String, Vec<u8>)>>>);

impl Collector {
    fn start() -> (Collector, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let collector = Collector::default();
        let taking = collector.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let taking = taking.clone();
                thread::spawn(move || taking.take(client));
            }
        });
        (collector, port)
    }

    /// Takes requests of a connection until it ends.
    fn take(&self, client: TcpStream) {
        let mut reader = BufReader::new(client);
        loop {
            let (mut first, mut headers, mut size) = (String::new(), String::new(), 0);
            if reader.read_line(&mut first).unwrap_or(0) == 0 {
                return;
            }
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                let line = line.to_ascii_lowercase();
                size = line.strip_prefix("content-length:").map_or(size, |size| size.trim().parse().unwrap());
                headers.push_str(&line);
            }
            let mut body = vec![0; size];
            reader.read_exact(&mut body).unwrap();
            self.0.lock().unwrap().push((first.trim().to_owned(), headers, body));
            let _ = reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    }

    /// Whether a body has these bytes.
    fn has(&self, bytes: &[u8]) -> bool {
        self.0
            .lock()
            .unwrap()
            .iter()
            .any(|(_, _, body)| body.windows(bytes.len()).any(|there| there == bytes))
    }

    /// Whether a span of this name came: field 5 of a span in protobuf.
    fn has_span(&self, name: &str) -> bool {
        self.has(&[&[5 << 3 | 2, name.len() as u8], name.as_bytes()].concat())
    }
}

#[test]
fn spans_of_a_relay_arrive_at_a_collector() {
    let mysql = require_tool!(Tool::Mysql);
    let (collector, port) = Collector::start();
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (1)")
        .unwrap();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{port}")),
        ("OTEL_SERVICE_NAME", "relay of orders".to_owned()),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test".to_owned()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100".to_owned()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=seven".to_owned()),
    ];
    let configuration = Configuration::of([url(&source)])
        .archive()
        .account("reader", "form = \"uncompressed\"")
        .environment(variables.map(|(name, value)| (name, OsString::from(value))));
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    relay
        .fetch(mysql, "reader", &folder.path("fetched"), &["--ssl-mode=DISABLED"], &["binlog-u.000001"])
        .unwrap();
    for span in ["store", "archive", "client", "session"] {
        relay.wait_for(span, |_| collector.has_span(span).then_some(()));
    }
    // A connection's span ends with the connection.
    drop(source);
    relay.wait_for("receive", |_| collector.has_span("receive").then_some(()));
    // Nothing of a thread that never ends.
    assert!(!collector.has_span("duty"));
    for told in ["relay of orders", "deployment.environment.name", "transactions"] {
        assert!(collector.has(told.as_bytes()), "{told}");
    }
    let requests = collector.0.lock().unwrap();
    for (first, headers, _) in requests.iter() {
        assert_eq!(first, "POST /v1/traces HTTP/1.1");
        assert!(headers.contains("content-type: application/x-protobuf"), "{headers}");
        assert!(headers.contains("x-tenant: seven"), "{headers}");
    }
}

#[test]
fn a_collector_that_is_not_there_is_a_line_of_the_log_and_a_way_that_is_not_built_in_an_error() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let nobody = "http://127.0.0.1:1";
    let started = |variables: &[(&'static str, &str)]| {
        let variables = variables.iter().map(|(name, value)| (*name, OsString::from(value)));
        Configuration::of([url(&source)]).environment(variables)
    };
    let mut relay = started(&[("OTEL_EXPORTER_OTLP_ENDPOINT", nobody), ("OTEL_BSP_SCHEDULE_DELAY", "100")])
        .start(&folder);
    source.sql("CREATE DATABASE told").unwrap();
    relay.has_all_of(&source);
    relay.wait_for("line", |relay| relay.said().contains("BatchSpanProcessor.ExportError: ").then_some(()));
    source.sql("CREATE DATABASE d").unwrap();
    relay.has_all_of(&source);
    drop(relay);

    let of_grpc = [("OTEL_EXPORTER_OTLP_ENDPOINT", nobody), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    let mut relay = started(&of_grpc).launch(&folder);
    assert_eq!(relay.child.wait().unwrap().code(), Some(2));
    assert!(
        relay.said().contains("OTEL_EXPORTER_OTLP_PROTOCOL: \"grpc\", expected http/protobuf"),
        "{}",
        relay.said()
    );
}
