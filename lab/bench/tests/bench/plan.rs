//! `binlogz bench`: the plan, a run that goes on where another one ended, and plans that need more than a server gives.

use std::fs;

use crate::common::{Folder, Ran};
use crate::servers::{bench, results, run, state};
use binlogz_testkit::{Tool, require_tool};
use serde_json::Value;

/// The plan's rows as words.
fn plan(ran: &Ran) -> Vec<Vec<String>> {
    ran.is_done();
    let words = |line: &str| {
        line.split("  ").map(str::trim).filter(|word| !word.is_empty()).map(String::from).collect()
    };
    ran.text().lines().skip(2).map(words).collect()
}

#[test]
fn a_plan_is_printed_without_a_server() {
    let folder = Folder::new();
    let plan_of =
        |args: &[&str]| plan(&folder.run(["bench", args[0], "--plan", "--out=out"].iter().chain(&args[1..])));
    let updates = plan_of(&["updates", "--repeat=1"]);
    let minutes = |name: &str| -> f64 {
        let row = updates.iter().find(|row| row.iter().any(|word| word == name)).unwrap();
        row.last().unwrap().parse().unwrap()
    };
    assert!(minutes("level 22") > 5.0 * minutes("level 3"), "{updates:?}");
    assert!((minutes("all") - minutes("off") - minutes("level 3") - minutes("level 22")).abs() < 0.2);
    let one = plan_of(&["updates", "--repeat=2", "--setting=level 3", "--scale=0.1"]);
    assert_eq!(one[0][..4], ["updates", "level 3", "2", "0"]);
    assert_eq!(one[1][..3], ["all", "2", "0"]);
    // The data of 12 million rows is made for the first of both settings.
    let select = plan_of(&["point-select", "--repeat=1"]);
    let of = |place: usize| select[place].last().unwrap().parse::<f64>().unwrap();
    assert!(of(0) > 3.0 * of(1), "{select:?}");
    let unknown = folder.run(["bench", "updates", "--plan", "--setting=level 4", "--to=out"]);
    unknown.fails("there is no setting \"level 4\", but these: off; level 3; level 22");
    assert!(folder.names().is_empty());
}

#[test]
fn settings_come_one_by_one_on_the_same_data_with_room_for_their_statements() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let folder = Folder::new();
    // sysbench prepares statements for each thread and table: more than this server takes of itself.
    let server =
        Tool::Mysql.find().unwrap().sandbox().option("max-prepared-stmt-count", "3").start().unwrap();
    let limit = || server.sql("SELECT @@GLOBAL.max_prepared_stmt_count, @@GLOBAL.max_connections").unwrap();
    let before = (state(&server), limit());
    let small = ["--scale=0.002", "--repeat=2", "--time=0.5"];
    let measured = |results: &Value| results["cells"].as_array().unwrap().len();

    run(bench(&folder, &server, "point-select", &[&small[..], &["--setting=off"]].concat())).is_done();
    let first = results(&folder);
    assert_eq!((measured(&first), &first["partial"]), (2, &Value::from(true)));
    assert_eq!(first["ended_by"], "only these were asked for: off");
    run(bench(&folder, &server, "point-select", &small)).is_done();
    let all = results(&folder);
    assert_eq!((measured(&all), &all["partial"], &all["ended_by"]), (4, &Value::from(false), &Value::Null));
    assert_eq!(all["cells"].as_array().unwrap()[..2], first["cells"].as_array().unwrap()[..]);
    let rows = all["tables"]["point_select"].as_array().unwrap();
    let version = server.sql("SELECT @@version").unwrap();
    let version = version.trim();
    assert!(rows.iter().all(|row| row["server"] == version && row["tps"].as_f64() > Some(0.0)), "{rows:?}");
    assert_eq!((state(&server), limit()), before);

    // Two runs made the data, not four cells.
    let logs: Vec<u8> = server.binlogs().unwrap().iter().flat_map(|log| fs::read(log).unwrap()).collect();
    let made = logs
        .windows(b"CREATE TABLE sbtest1(".len())
        .filter(|bytes| *bytes == b"CREATE TABLE sbtest1(")
        .count();
    assert_eq!(made, 2);
    let done = plan(&run(bench(&folder, &server, "point-select", &[&small[..], &["--plan"]].concat())));
    assert_eq!(done.last().unwrap()[..3], ["all", "4", "4"]);
}

#[test]
fn any_number_of_connections_is_tried() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let folder = Folder::new();
    let args = ["bench", "insert", "--sandbox", "--scale=0.0005", "--repeat=1", "--time=0.5", "--out=out"];
    let narrow = ["--threads=7,300", "--setting=flush 0, sync 1", "--sandbox-option=max-connections=10"];
    folder.run(args.iter().chain(&narrow)).is_done();
    let results = results(&folder);
    let rows = results["tables"]["insert"].as_array().unwrap();
    let tried: Vec<_> = rows.iter().map(|row| row["connections"].as_u64().unwrap()).collect();
    assert_eq!(tried, [7, 300]);
    assert!(rows.iter().all(|row| row["tps"].as_f64() > Some(0.0)), "{rows:?}");
}
