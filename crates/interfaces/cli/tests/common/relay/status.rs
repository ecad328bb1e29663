//! A relay with a configuration, seen from outside: its log, and its answers over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;

use binlogz_testkit::MysqlSandbox;
use serde_json::Value;

use super::Relay;

impl Relay {
    /// The lines of its log, each of which must be a JSON object.
    pub(crate) fn messages(&self) -> Vec<String> {
        let log = self.said();
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        let message = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(line["time"].as_f64().unwrap() > 1.7e9 && line["level"].is_string(), "{line}");
            line["message"].as_str().unwrap().to_owned()
        };
        whole.lines().map(message).collect()
    }

    /// The answer's status code and body.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.http).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.http).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.get("/status.json").1).unwrap()
    }

    pub(crate) fn phase(&self) -> String {
        self.status()["source"]["phase"].as_str().unwrap().to_owned()
    }

    /// A metric's value; labels count as part of its name.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").1;
        let line =
            text.lines().find_map(|line| line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{'])));
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Waits until every byte of the source's log is durable here, in the form in which it came.
    pub(crate) fn has_all_of(&mut self, source: &MysqlSandbox) {
        let (file, position) = source.position().unwrap();
        self.wait_for("end of the source's log", |relay| {
            let durable = &relay.status()["log"]["durable"];
            (durable["file"] == file.as_str() && durable["position"] == position).then_some(())
        });
    }

    /// Waits until it has all transactions of the source.
    pub(crate) fn has_gtids_of(&mut self, source: &MysqlSandbox) {
        let all = source.gtid_executed().unwrap();
        self.wait_for("last transaction", |relay| {
            (relay.status()["log"]["gtid_executed"] == all.as_str()).then_some(())
        });
    }
}
