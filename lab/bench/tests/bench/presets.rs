//! `binlogz bench PRESET` on real servers, at scales that take seconds.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Folder, Ran, terminal, wait_for};
use crate::servers::{bench, results, run, server, state};
use binlogz_testkit::browser::assert_readable;
use binlogz_testkit::tool::require;
use binlogz_testkit::{Tool, require_tool};
use serde_json::Value;

/// Columns of a terminal that nobody made wider.
const COLUMNS: usize = 80;

fn rows<'a>(results: &'a Value, table: &str) -> &'a [Value] {
    rows_of(&results["tables"][table])
}

#[test]
fn every_preset_runs_on_a_private_server_and_the_page_shows_what_was_measured() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let folder = Folder::new();
    let args = "bench all --sandbox --scale=0.002 --repeat=1 --time=0.5 --out=out --skip=insert,replicas";
    let Some(text) = terminal::shown(&folder, COLUMNS, args, &[]) else { return };
    let wider = terminal::wider(&text, COLUMNS);
    assert!(text.contains("Published figures: ") && wider.is_empty(), "{wider:#?}\n{text}");
    let results = results(&folder);
    assert_eq!((&results["partial"], &results["ended_by"]), (&Value::from(false), &Value::Null));
    assert_eq!(results["refused"], Value::Array(vec![]));
    assert!(!folder.path("out/restore.sql").exists());

    // The server would not do it any other way: compressed logs are smaller, encrypted ones 512 bytes larger.
    let bytes = |workload: &str, setting: &str| {
        let row = rows(&results, "space")
            .iter()
            .find(|row| row["workload"] == workload && row["setting"] == setting);
        row.unwrap()["bytes"].as_u64().unwrap()
    };
    for workload in ["load employees", "bulk update", "sysbench prepare", "sysbench run", "single-row delete"]
    {
        assert!(bytes(workload, "compressed") < bytes(workload, "plain"), "{workload}");
        assert!(bytes(workload, "plain, by zstd -3") < bytes(workload, "plain"), "{workload}");
    }
    assert_eq!(bytes("load employees", "encrypted"), bytes("load employees", "plain") + 512);
    let load: Vec<u64> =
        rows(&results, "levels").iter().take(5).map(|row| row["bytes"].as_u64().unwrap()).collect();
    assert!(load[0] > load[1] && load[1] > load[3], "{load:?}");
    let updates = rows(&results, "updates");
    assert_eq!(updates.len(), 6);
    assert!(updates[4]["of_off_percent"].as_f64().unwrap() < 40.0, "{}", updates[4]);
    for cell in results["cells"].as_array().unwrap() {
        for step in cell["steps"].as_array().unwrap() {
            // A point select writes no log.
            let reads = step["step"] == "point select";
            assert!(
                step["server_cpu_s"].is_number() && (reads || step["binlog_io_bytes"].as_u64() > Some(0)),
                "{step}"
            );
            let plain = reads || step["compression"][0]["compression_type"] == "NONE";
            assert!(plain || step["compressing_s"].as_f64() > Some(0.0), "{step}");
        }
    }
    assert_eq!(rows(&results, "point_select").len(), 4);
    let network = rows(&results, "network");
    let wire = |place: usize| network[place]["wire_bytes_per_row_change"].as_f64().unwrap();
    assert!(wire(0) > 400.0 && wire(1) < wire(0), "{network:?}");
    page_shows_it(&folder, &results);

    // A run is itself.
    let compared = folder.run(["bench", "compare", "--format=json", "out", "out"]);
    compared.is_done();
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let comparison = rows_of(&compared["comparison"]);
    assert!(comparison.len() > 100 && comparison.iter().all(|row| row["a"] == row["b"]));
    folder.run(["bench", "compare", "out", "nowhere"]).fails("nowhere: no results.json in it");
}

fn rows_of(table: &Value) -> &[Value] {
    table.as_array().unwrap()
}

/// The page in a real browser: all can be read, nothing is asked for, the very figures of the results.
fn page_shows_it(folder: &Folder, results: &Value) {
    let page = String::from_utf8(folder.read("out/report.html")).unwrap();
    let (_, figures) = page.split_once("id=\"figures\">").unwrap();
    let (figures, _) = figures.split_once("</script>").unwrap();
    assert_eq!(serde_json::from_str::<Value>(figures).unwrap(), results["tables"]);
    for request in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(request), "{request}");
    }
    // The conclusion is the headline; what is published stands on the same scale.
    assert!(page.contains("<strong>Compression leaves "), "{page}");
    // Which way is better is said once, and the headlines go that way, too.
    assert_eq!((page.matches(" is better").count(), page.matches("ompression saves").count()), (1, 0));
    let (_, space) = page.split_once("<h2>Space: what each setting leaves of the plain log</h2>").unwrap();
    let (space, _) = space.split_once("</section>").unwrap();
    assert_eq!((space.matches("<th ").count(), space.matches("<tr>").count()), (6, 1 + 5), "{space}");
    assert!(page.contains("<h2>Space by workload, in percent of the plain log</h2>"));
    assert!(page.len() < 400_000, "{} bytes", page.len());
    let Some(chromium) = require(Tool::Chromium) else { return };
    let looked = &assert_readable(chromium, &[("bench", page)])[0];
    assert!(looked.shapes > 6 * 60 && looked.hints > 0, "{looked:?}");
}

#[test]
fn inserts_are_measured_by_connections_and_flush_policy() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let folder = Folder::new();
    let args = ["bench", "insert", "--sandbox", "--scale=0.0005", "--repeat=1", "--time=0.5", "--out=out"];
    folder.run(args).is_done();
    let results = results(&folder);
    let inserts = rows(&results, "insert");
    // Six settings, with 1 and 4 connections.
    assert_eq!(inserts.len(), 12);
    assert!(inserts.iter().all(|row| row["tps"].as_f64() > Some(0.0)), "{inserts:?}");
    assert_eq!(inserts[3]["published_tps"], 17.61);
}

#[test]
fn replicas_of_each_kind_are_told_apart() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    let folder = Folder::new();
    folder.run(["bench", "replicas", "--sandbox", "--out=out"]).is_done();
    let results = results(&folder);
    let outcome = |replica: &str, follows: &str| {
        let of =
            |row: &&Value| row["replica"].as_str().unwrap().starts_with(replica) && row["follows"] == follows;
        let row = rows(&results, "replicas").iter().find(of).unwrap();
        (row["outcome"].as_str().unwrap(), row["said"].as_str().unwrap_or_default().to_owned())
    };
    for follows in ["source", "relay, received", "relay, compressed", "relay, uncompressed", "relay, auto"] {
        assert_eq!(outcome("mysqld", follows).0, "works", "{follows}");
    }
    for (follows, why) in [
        ("source", "Could not parse relay log event entry"),
        ("relay, received", "MariaDB does not read such"),
        ("relay, compressed", "MariaDB does not read such"),
    ] {
        let (outcome, said) = outcome("MariaDB", follows);
        assert!(outcome == "stops" && said.contains(why), "{follows}: {said}");
    }
    for follows in ["relay, uncompressed", "relay, auto"] {
        assert_eq!(outcome("MariaDB", follows).0, "works", "{follows}");
    }
    if require(Tool::Cdc).is_some() {
        for follows in ["source", "relay, received", "relay, compressed"] {
            let (outcome, said) = outcome("Python", follows);
            assert_eq!(outcome, "loses rows", "{follows}: {said}");
        }
        for follows in ["relay, uncompressed", "relay, auto"] {
            assert_eq!(outcome("Python", follows).0, "works", "{follows}");
        }
    }
    // The counter counts events, of which a compressed transaction has two.
    let skipped: Vec<_> = rows(&results, "replicas")
        .iter()
        .filter(|row| row["outcome"] == "skips")
        .map(|row| row["said"].as_str().unwrap())
        .collect();
    let of = |compressed: u32, plain: u32| {
        format!(
            "{compressed} of 5 compressed transactions were skipped, {plain} of a log without compression"
        )
    };
    assert_eq!(skipped, [of(1, 1), of(1, 1), of(2, 1), of(4, 1), of(4, 2)]);
}

#[test]
fn a_users_server_is_loaded_only_where_that_is_allowed_and_left_as_it_was() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let (folder, server) = (Folder::new(), server());
    let small = ["--scale=0.0005", "--repeat=1", "--time=0.5"];
    server.sql("CREATE DATABASE mine").unwrap();
    let before = state(&server);

    let mut command = folder.binlogz(["bench", "levels", "--no-defaults", "--user=root", "--out=out"]);
    command.arg(server.socket());
    let refused = run(command);
    assert!(refused.stderr.contains("--yes-load-this-server"), "{}", refused.stderr);
    run(bench(&folder, &server, "levels", &small)).fails("it has 1 schemas of users' (--allow user-schemas)");
    assert!(!folder.path("out/restore.sql").exists());

    let allowed = [&small[..], &["--allow=user-schemas"]].concat();
    run(bench(&folder, &server, "levels", &allowed)).is_done();
    assert_eq!(state(&server), before);
    // Done is done: nothing is measured again.
    let first = results(&folder);
    run(bench(&folder, &server, "levels", &allowed)).is_done();
    assert_eq!(results(&folder)["cells"], first["cells"]);
    // Other options are another run.
    let other =
        run(bench(&folder, &server, "levels", &["--scale=0.001", "--repeat=1", "--allow=user-schemas"]));
    assert!(
        other.stderr.contains("holds results of another server, or of other options"),
        "{}",
        other.stderr
    );
    // A schema of that name is somebody's.
    server.sql("CREATE DATABASE sbtest").unwrap();
    fs::remove_dir_all(folder.path("out")).unwrap();
    let refused = run(bench(&folder, &server, "levels", &allowed));
    assert!(refused.stderr.contains("there is a schema sbtest"), "{}", refused.stderr);
}

#[test]
fn an_interrupted_run_restores_the_server_and_keeps_what_it_has() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let (folder, server) = (Folder::new(), server());
    let before = state(&server);
    let args = ["--scale=0.001", "--repeat=50"];
    let mut command = bench(&folder, &server, "levels", &args);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    // Until there is a cell to keep, and another one in work.
    let deadline = Instant::now() + Duration::from_secs(60);
    let cells = || {
        let text = fs::read(folder.path("out/results.json")).unwrap_or_default();
        serde_json::from_slice::<Value>(&text).map_or(0, |results| results["cells"].as_array().unwrap().len())
    };
    while cells() == 0 {
        assert!(Instant::now() < deadline, "no cell in time");
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(150));
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    assert_eq!(wait_for(&mut child, Duration::from_secs(60)), None);
    assert_eq!(state(&server), before);
    assert!(!folder.path("out/restore.sql").exists());
    let results = results(&folder);
    assert_eq!(
        (&results["partial"], &results["ended_by"]),
        (&Value::from(true), &Value::from("interrupted"))
    );
    let page = String::from_utf8(folder.read("out/report.html")).unwrap();
    assert!(page.contains("PARTIAL: interrupted"));
}

#[test]
fn a_server_that_was_killed_is_named_with_the_line_that_restores_it() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let (folder, mut server) = (Folder::new(), server());
    let before = state(&server);
    let mut command = bench(&folder, &server, "levels", &["--scale=0.001", "--repeat=50"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !folder.path("out/restore.sql").exists() {
        assert!(Instant::now() < deadline, "nothing begins");
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(300));
    server.kill();
    let ran: Ran = child.wait_with_output().unwrap().into();
    assert_eq!(ran.code, Some(2));
    let restore = folder.path("out/restore.sql").canonicalize().unwrap();
    let line =
        format!("run: mysql --socket={} --user=root -p < {}", server.socket().display(), restore.display());
    assert!(ran.stderr.contains(&line), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert_eq!(results(&folder)["partial"], true);
    // The line does what it says.
    server.start().unwrap();
    server.sql_file(&restore).unwrap();
    assert_eq!(state(&server), before);
}

#[test]
fn a_schema_that_may_no_longer_be_dropped_is_named_with_the_line_that_removes_it() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let (folder, server) = (Folder::new(), server());
    let before = state(&server);
    server
        .sql(
            "CREATE USER loader@localhost; GRANT ALL ON *.* TO loader@localhost;
             SET GLOBAL partial_revokes = ON",
        )
        .unwrap();
    let mut command = folder.binlogz(["bench", "levels", "--no-defaults", "--user=loader", "--out=out"]);
    command.arg(server.socket()).args([
        "--yes-load-this-server",
        "--scale=0.001",
        "--repeat=50",
        "--allow=other-load",
    ]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while state(&server).ends_with("0\n") {
        if child.try_wait().unwrap().is_some() {
            panic!("no schema is made: {}", Ran::from(child.wait_with_output().unwrap()).stderr);
        }
        assert!(Instant::now() < deadline, "no schema is made");
        sleep(Duration::from_millis(20));
    }
    server
        .sql(
            "REVOKE DROP ON sbtest.* FROM loader@localhost; REVOKE DROP ON employees.* FROM loader@localhost",
        )
        .unwrap();
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let ran: Ran = child.wait_with_output().unwrap().into();
    for said in [
        "the server is not as it was, the account may not run DROP DATABASE IF EXISTS sbtest (",
        "DROP DATABASE IF EXISTS employees (",
        "with an account that may, run: mysql --socket=",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    // All else is as it was; and the line does what it says.
    server.sql("SET GLOBAL partial_revokes = OFF").unwrap_or_default();
    let settings = |state: &str| state.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(settings(&state(&server)), settings(&before));
    server.sql_file(&folder.path("out/restore.sql")).unwrap();
    assert_eq!(state(&server), before);
}

#[test]
fn what_is_missing_is_told_before_anything_is_changed() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let (folder, server) = (Folder::new(), server());
    server
        .sql("CREATE USER small@localhost; GRANT SELECT ON performance_schema.* TO small@localhost;")
        .unwrap();
    let before = state(&server);
    let mut command = folder.binlogz(["bench", "space", "--no-defaults", "--user=small", "--out=out"]);
    command.arg(server.socket()).arg("--yes-load-this-server");
    run(command).fails(
        "the account lacks rights, nothing was changed: REPLICATION CLIENT, RELOAD, SYSTEM_VARIABLES_ADMIN, \
         ALL ON sbtest.* and employees.*",
    );
    // One that could make the schemas and not drop them has made none, nor begun a new log.
    server
        .sql(
            "CREATE USER maker@localhost; GRANT SELECT ON performance_schema.* TO maker@localhost;
             GRANT REPLICATION CLIENT, RELOAD, SYSTEM_VARIABLES_ADMIN, BINLOG_ENCRYPTION_ADMIN ON *.* TO
             maker@localhost;
             GRANT CREATE ON sbtest.* TO maker@localhost; GRANT CREATE ON employees.* TO maker@localhost",
        )
        .unwrap();
    let logs = server.sql("SHOW BINARY LOGS").unwrap();
    let mut command = folder.binlogz(["bench", "space", "--no-defaults", "--user=maker", "--out=out"]);
    command.arg(server.socket()).arg("--yes-load-this-server");
    run(command).fails("the account lacks rights, nothing was changed: ALL ON sbtest.* and employees.*");
    assert_eq!((state(&server), server.sql("SHOW BINARY LOGS").unwrap()), (before.clone(), logs));
    let mut command = bench(&folder, &server, "space", &["--scale=0.001"]);
    // Neither on PATH nor installed.
    command.env("PATH", folder.path("empty")).env("BINLOGZ_CACHE", folder.path("empty"));
    run(command)
        .fails("sysbench is not on PATH: these workloads are its own; nothing was changed on the server");
    assert_eq!(state(&server), before);
}

#[test]
fn a_disk_that_takes_no_more_ends_the_run_with_the_server_restored() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let (folder, server) = (Folder::new(), server());
    let before = state(&server);
    // Files of more than 4 KiB can't be written: the results of the first cell are larger.
    let run_it = bench(&folder, &server, "updates", &["--scale=0.0005"]);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"]).current_dir(folder.path(""));
    command.arg(run_it.get_program()).args(run_it.get_args());
    let ran = run(command);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("binlogz: write out/results.json: File too large"), "{}", ran.stderr);
    assert_eq!(state(&server), before);
    let results = results(&folder);
    assert_eq!((&results["partial"], &results["cells"]), (&Value::from(true), &Value::Array(vec![])));
}

#[test]
fn a_server_that_others_work_on_is_not_loaded() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let (folder, server) = (Folder::new(), server());
    let done = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            let write = |out: &mut dyn Write| {
                while !done.load(Ordering::Relaxed) {
                    writeln!(out, "DO 1;")?;
                }
                Ok(())
            };
            server.run_client(write).unwrap();
        });
        let ran = run(bench(&folder, &server, "levels", &["--scale=0.0005"]));
        done.store(true, Ordering::Relaxed);
        ran
    });
    assert!(ran.stderr.starts_with("binlogz: others sent "), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("statements in a second (--allow other-load)\n"), "{}", ran.stderr);
}
