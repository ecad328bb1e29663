//! The relay on a sick machine, among bad company: real servers, sysbench, and one fault after the other, by a seed.
//!
//! `make test` has each fault once; `scripts/soak/chaos.sh` has many rounds. `SEED=N` repeats the actions of each round
//! and their order; the machine's timing can't be repeated.
//!
//! This is a binary of its own: it takes minutes, nearly all of them waiting, so `make test` begins it first and runs others
//! beside it. Its limits are those of a busy machine.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

#[path = "../common/mod.rs"]
mod common;
mod world;

use std::ffi::OsString;

use binlogz_testkit::faults::FaultShim;
use binlogz_testkit::random::Random;
use binlogz_testkit::workload::sysbench;
use binlogz_testkit::{MariadbSandbox, Tool, mutate, require_tool, setting};
use common::Folder;
use common::relay::{Configuration, reserved_port, url};
use world::{Fault, MAX_AGE, Watch, World};

/// All faults, or those that `BINLOGZ_CHAOS_FAULT` names, in a random order; again and again for so many rounds as
/// `BINLOGZ_CHAOS` says, else once.
fn faults(seed: u64) -> Vec<Fault> {
    let named = std::env::var("BINLOGZ_CHAOS_FAULT").ok();
    let named: Vec<_> = named.iter().flat_map(|names| names.split(',')).collect();
    let is_meant = |fault: &Fault| named.is_empty() || named.contains(&format!("{fault:?}").as_str());
    let meant: Vec<_> = Fault::ALL.into_iter().filter(is_meant).collect();
    assert!(!meant.is_empty(), "{named:?} is no fault: {:?}", Fault::ALL);
    let rounds = setting("BINLOGZ_CHAOS", meant.len());
    let mut random = Random::new(seed);
    let mut faults = Vec::new();
    while faults.len() < rounds {
        let mut deck = meant.clone();
        while !deck.is_empty() {
            faults.push(deck.swap_remove(random.below(deck.len())));
        }
    }
    faults.truncate(rounds);
    faults
}

#[test]
fn no_fault_loses_alters_or_hides_anything() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let Some(shim) = FaultShim::require() else { return };
    let seed = mutate::seed();
    let is_long = std::env::var_os("BINLOGZ_CHAOS").is_some();
    let faults = faults(seed);
    let rounds = faults.len();
    let folder = Folder::new();

    let source = mysql.sandbox().option("max-binlog-size", "128K").readable_by_mariadb().start().unwrap();
    source
        .sql("CREATE DATABASE sbtest; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT)")
        .unwrap();
    sysbench(&source, &["oltp_write_only", "--tables=2", "--table-size=1000", "prepare"]).unwrap();

    // From here on nothing is committed before the relay has acknowledged it.
    source
        .sql(
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';
             SET GLOBAL rpl_semi_sync_source_timeout = 600000, GLOBAL rpl_semi_sync_source_enabled = ON",
        )
        .unwrap();

    let faults_page = shim.faults(&folder.path("faults"), seed).unwrap();
    let ports = (reserved_port(), reserved_port());
    let configuration =
        Configuration::of([url(&source)])
            .source("semi_sync = true")
            .account("reader", "")
            .archive()
            .store(MAX_AGE)
            .archive_keys("overdue = \"15s\"\ncheck = \"20s\"")
            .ports(ports.0, ports.1)
            .environment(faults_page.env().into_iter().chain([
                ("BINLOGZ_ARCHIVE_KEY_COMMAND", key_command(&folder)),
                ("PATH", search_path(&folder)),
            ]));
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);

    let replica = mysql.sandbox().option("replica-parallel-workers", "2").start().unwrap();
    replica
        .sql(&format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={}, SOURCE_USER='reader', \
             SOURCE_PASSWORD='secret', SOURCE_SSL=0, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=100000, \
             SOURCE_AUTO_POSITION=1; START REPLICA",
            ports.0
        ))
        .unwrap();
    // One that can't read what is compressed, where there is time for it.
    let mariadb = is_long.then(|| require(Tool::Mariadb)).flatten().map(|()| {
        let mariadb =
            MariadbSandbox::start(&[("binlog-format", "ROW"), ("master-retry-count", "100000")]).unwrap();
        mariadb
            .sql(&format!(
                "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='reader', \
                 MASTER_PASSWORD='secret', MASTER_SSL=0, MASTER_CONNECT_RETRY=1, \
                 MASTER_USE_GTID=no, MASTER_LOG_FILE='binlog-u.000001', MASTER_LOG_POS=4; START SLAVE",
                ports.0
            ))
            .unwrap();
        mariadb
    });

    let watch = Watch::new(&source, ports.1);
    let mut world = World {
        folder: &folder,
        source: &source,
        replica: &replica,
        mariadb: mariadb.as_ref(),
        watch: &watch,
        configuration,
        ports,
        faults: faults_page,
        seed,
        relay,
        first_file: "binlog.000001".into(),
        trouble: Vec::new(),
        now: String::new(),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| watch.run());
        let _stop = StopWhenDropped(&watch);
        for (number, fault) in (1..).zip(faults) {
            world.round(number, fault);
        }
    });
    let World { trouble, .. } = world;
    assert!(trouble.is_empty(), "{} of {rounds} rounds:\n{}", trouble.len(), trouble.join("\n"));
}

/// A command that prints the archive's key, and hangs while a file is there.
fn key_command(folder: &Folder) -> OsString {
    let key = "5f".repeat(32);
    format!("while test -e '{}'; do sleep 0.1; done; echo {key}", folder.path(world::HANG).display()).into()
}

/// Where helper programs are looked for: first in the folder in which one can hang.
fn search_path(folder: &Folder) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [folder.path(world::HELPERS)].into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap()
}

fn require(tool: Tool) -> Option<()> {
    binlogz_testkit::tool::require(tool).map(drop)
}

/// Ends the watching, also when the test fails.
struct StopWhenDropped<'a>(&'a Watch<'a>);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
