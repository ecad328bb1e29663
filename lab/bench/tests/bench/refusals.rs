//! `binlogz bench` where it must not run, and where a run can't go on.

use crate::common::small_disk::SmallDisk;
use crate::common::{Folder, Ran};
use crate::servers::{bench, results, run, server, state};
use binlogz_testkit::{Tool, require_tool};
use serde_json::Value;

const SMALL: [&str; 3] = ["--scale=0.0005", "--repeat=1", "--time=0.5"];

#[test]
fn a_server_with_replicas_or_semi_sync_is_loaded_only_where_that_is_allowed() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let (folder, source) = (Folder::new(), server());
    let replica = Tool::Mysql.find().unwrap().sandbox().start().unwrap();
    replica.replicate_from(&source).unwrap();
    source
        .sql(
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'; \
             SET GLOBAL rpl_semi_sync_source_enabled = ON, GLOBAL rpl_semi_sync_source_timeout = 100",
        )
        .unwrap();
    let before = state(&source);
    let [replicas, semi_sync] = [
        "attached replicas and other readers: 1 (--allow replicas)",
        "commits wait for semi-synchronous replicas (--allow semi-sync)",
    ];
    let with = |allowed: &[&str]| run(bench(&folder, &source, "updates", &[&SMALL[..], allowed].concat()));
    with(&[]).fails(&format!("{replicas}; {semi_sync}"));
    with(&["--allow=replicas"]).fails(semi_sync);
    with(&["--allow=semi-sync"]).fails(replicas);
    assert!(!folder.path("out").join("restore.sql").exists());
    assert_eq!(state(&source), before);
    with(&["--allow=replicas,semi-sync"]).is_done();
    assert_eq!(state(&source), before);
}

#[test]
fn a_server_whose_disk_fills_is_left_in_time_and_restored() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let folder = Folder::new();
    let path = folder.path("disk");
    let Some(_disk) = SmallDisk::mount(&path, 32 << 20) else { return };
    let log = path.join("binlog");
    let server =
        Tool::Mysql.find().unwrap().sandbox().option("log-bin", log.to_str().unwrap()).start().unwrap();
    let before = state(&server);

    let args = ["--scale=0.01", "--repeat=2"];
    let refused = run(bench(&folder, &server, "updates", &args));
    let begin = format!("binlogz: the run may write 128 MB to {}, where 34 MB are free", path.display());
    assert_eq!(refused.stderr, format!("{begin} (--allow little-space)\n"));
    assert!(!folder.path("out").join("restore.sql").exists());

    // A cell fits, not all of them.
    let args = ["--scale=0.004", "--repeat=20", "--allow=little-space"];
    let ran = run(bench(&folder, &server, "updates", &args));
    let said = "the disk below the server is nearly full: ";
    assert!(ran.stderr.starts_with(&format!("binlogz: {said}")), "{}", ran.stderr);
    assert!(!ran.stderr.contains("restored"), "{}", ran.stderr);
    assert_eq!((ran.code, state(&server)), (Some(2), before));
    let results = results(&folder);
    assert_eq!(results["partial"], true);
    assert!(results["ended_by"].as_str().unwrap().starts_with(said), "{}", results["ended_by"]);
    assert!(!results["cells"].as_array().unwrap().is_empty());
    let page = String::from_utf8(folder.read("out/report.html")).unwrap();
    assert!(page.contains(&format!("PARTIAL: {said}")));
    assert_ne!(results["tables"]["updates"], Value::Null);
}

#[test]
fn a_sandbox_without_a_server_says_how_to_get_one() {
    let folder = Folder::new();
    let mut command = folder.binlogz(["bench", "updates", "--sandbox", "--out", "out"]);
    command.env_remove("MYSQL_BASEDIR").env("BINLOGZ_CACHE", folder.path("cache"));
    let ran: Ran = command.output().unwrap().into();
    let said = "binlogz: a private server needs a MySQL: MYSQL_BASEDIR=FOLDER names one that is installed \
                (FOLDER/bin/mysqld or FOLDER/sbin/mysqld), and `scripts/get-tool.sh mysql` in the sources of binlogz \
                fetches one (get-tool: mysql isn't installed in ";
    assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    assert_eq!(ran.code, Some(2));
}
