//! Tests over the logs of `samples/`, without a server.

mod fitness;
mod incidents;
mod logs;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use binlogz_relay::{EndedLogs, StopAt};
use binlogz_testkit::corpus;

use crate::{ReplayError, ReplayListener, ReplayedLogs};

/// The server whose logs the samples are.
const UUID: &str = "468dfa6d-e565-11f1-89b6-02fc00000001";

/// Keeps what it hears.
#[derive(Default)]
struct KeptLines(Mutex<Vec<String>>);

impl ReplayListener for KeptLines {
    fn warn(&self, line: &str) {
        self.0.lock().unwrap().push(format!("warning: {line}"));
    }

    fn complain(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

/// The plain samples with these numbers.
fn samples(numbers: impl IntoIterator<Item = u32>) -> Vec<PathBuf> {
    let all = corpus::samples();
    let of = |number| {
        let name = format!("samples/plain/binlog.{number:06}");
        all.iter()
            .find(|sample| sample.name == name)
            .map(|sample| sample.path.clone())
            .expect("in the checkout")
    };
    numbers.into_iter().map(of).collect()
}

/// The logs up to where they end, and what is told of them.
fn ended(paths: &[PathBuf], stop: &StopAt, folder: &Path) -> (Result<EndedLogs, ReplayError>, Vec<String>) {
    let lines = KeptLines::default();
    let ended = ReplayedLogs::named(paths).and_then(|logs| logs.ended(None, stop, folder, &lines));
    (ended, lines.0.into_inner().unwrap())
}

/// These transactions of the samples' server, such as `1-24`.
fn gtids(numbers: &str) -> binlogz_binlog::gtid::GtidSet {
    format!("{UUID}:{numbers}").parse().unwrap()
}
