//! A transaction too large to be held, through the relay in every form, and the memory that it takes.

use crate::common::Folder;
use crate::common::relay::Relay;
use binlogz_testkit::memory::peak_memory;
use binlogz_testkit::{MariadbSandbox, Tool, require_tool};

/// How large it is, and how the relay stores it; `scripts/soak/relay.sh` sets 200, and has it stored both ways.
fn sizes() -> (u32, &'static [&'static str]) {
    match std::env::var("BINLOGZ_RELAY_MEGABYTES") {
        Ok(megabytes) => (megabytes.parse().unwrap(), &["received", "compressed"]),
        Err(_) => (20, &["compressed"]),
    }
}

/// The law for a relay with this many replicas, in KiB: 64 MiB, 256 KiB for each, and the pool of expanders with a window of
/// level 3 each.
fn memory_max(replicas: u64) -> u64 {
    (64 << 10) + 256 * replicas + 16 * (2 << 10)
}

#[test]
fn a_large_transaction_reaches_every_replica() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    let (megabytes, stores) = sizes();
    for store in stores {
        let folder = Folder::new();
        let source = mysql.sandbox().readable_by_mariadb().start().unwrap();
        source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body LONGTEXT)").unwrap();
        let mut relay = Relay::start(&folder, &source, &["--store", store]);
        relay.wait_for("log", |relay| {
            relay.sql(mysql, "repl", &[], "SHOW BINARY LOG STATUS").is_ok().then_some(())
        });
        let replicas: Vec<_> = ["", "-z", "-u"]
            .into_iter()
            .map(|form| {
                let replica = mysql.sandbox().start().unwrap();
                let start = format!("SOURCE_SSL=0, SOURCE_LOG_FILE='binlog{form}.000001', SOURCE_LOG_POS=4");
                relay.replicates_to(&replica, "repl", &start);
                replica
            })
            .collect();
        let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW")]).unwrap();
        mariadb.replicate_from_port(relay.port, "binlog-u.000001", 4).unwrap();
        // A megabyte a row: one transaction plain in the log, one a payload.
        let row = |id: u32| {
            format!("INSERT INTO d.t VALUES ({id}, REPEAT(CONCAT(SHA2({id}, 512), ' row {id} '), 7400));\n")
        };
        for (on, first) in [("OFF", 0), ("ON", megabytes)] {
            let rows: String = (first..first + megabytes).map(row).collect();
            source.sql(&format!("SET binlog_transaction_compression = {on}; BEGIN;\n{rows}COMMIT")).unwrap();
        }
        for replica in &replicas {
            relay.brings(&source, replica, &["d"]);
        }
        let checksum = "SELECT COUNT(*), SUM(CRC32(body)), SUM(LENGTH(body)) FROM d.t";
        let expected = source.sql(checksum).unwrap();
        relay.wait_for("rows in MariaDB", |_| {
            mariadb.sql(checksum).is_ok_and(|rows| rows == expected).then_some(())
        });
        let (peak, max) = (peak_memory(relay.child.id()).unwrap(), memory_max(4));
        println!("stored {store}, two transactions of {megabytes} MB: {peak} KiB at most");
        assert!(peak <= max, "stored {store}: {peak} KiB, {max} allowed\n{}", relay.said());
    }
}
