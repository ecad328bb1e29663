//! A relay under strace, for scripts/soak/unit.sh: it starts, receives, serves each form, archives, and is reloaded. The script
//! compares its system calls with those that packaging/binlogz-relay.service allows.

use std::path::PathBuf;

use binlogz_testkit::{Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, url};

#[test]
#[ignore = "needs strace; scripts/soak/unit.sh"]
fn a_relay_is_traced() {
    let mysql = require_tool!(Tool::Mysql);
    let trace =
        PathBuf::from(std::env::var_os("BINLOGZ_STRACE").expect("BINLOGZ_STRACE: where the trace goes"));
    let source = mysql.sandbox().compression(3).start().unwrap();
    let replica = mysql.sandbox().start().unwrap();
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body TEXT)").unwrap();
    let folder = Folder::new();
    let traced = folder.put(
        "traced",
        format!(
            "#!/bin/sh\nexec strace --daemonize --follow-forks --output={} {} \"$@\"\n",
            trace.display(),
            env!("CARGO_BIN_EXE_binlogz")
        ),
    );
    std::fs::set_permissions(&traced, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let configuration = Configuration::of([url(&source)])
        .archive()
        .store("max_bytes = \"1M\"")
        .account("received", "form = \"received\"")
        .account("expanded", "form = \"uncompressed\"");
    let mut relay = configuration.run_by(Some(&traced)).start(&folder);
    for (at, user) in ["received", "expanded"].into_iter().enumerate() {
        relay.replicates_to(&replica, user, "SOURCE_SSL=1, SOURCE_AUTO_POSITION=1");
        source.sql(&format!("INSERT INTO d.t VALUES ({at}, REPEAT(UUID(), 1000))")).unwrap();
        relay.brings(&source, &replica, &["d"]);
        source.flush_binary_logs().unwrap();
    }
    relay.wait_for("archive", |relay| (relay.status()["archive"]["waiting_files"] == 0).then_some(()));
    configuration.log("level = \"debug\"").write(&folder);
    folder.run(["relay", "reload"]).is(0, "another level of the log\n", "");
    for path in ["/", "/metrics", "/healthz"] {
        assert_eq!(relay.get(path).0, 200, "{path}");
    }
}
