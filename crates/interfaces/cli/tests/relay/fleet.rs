//! `binlogz fleet` over a real relay with an archive, one target that is dead and one that hangs; `relay doctor` of that relay;
//! and that the alert rules and the dashboard name only metrics that exist.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use binlogz_testkit::s3::{BUCKET, S3Server};
use binlogz_testkit::{Mysql56Sandbox, Tool, require_tool};
use serde_json::Value;

use crate::common::Folder;
use crate::common::relay::{Configuration, reserved_port, url};
use crate::recovery::{TABLES, checksums, dump_to, gno, ran, restored, work};

#[test]
fn one_table_has_relays_archives_and_what_cannot_be_asked_the_worst_first() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut source = mysql.sandbox().compression(3).start().unwrap();
    let rows = "INSERT INTO d.t (body) VALUES (REPEAT('some words ', 500)); ".repeat(9);
    source
        .sql(&format!(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT); {rows} FLUSH BINARY LOGS; DELETE FROM d.t"
        ))
        .unwrap();
    let configuration = Configuration::of([url(&source)]).archive().account("reader", "");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    drop(relay);
    // It looks for closed files when it starts, then every five seconds.
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    relay.wait_for("archived file", |relay| {
        (relay.status()["archive"]["waiting_files"] == 0
            && relay.status()["archive"]["last_file"].is_string())
        .then_some(())
    });
    relay.wait_for("lag", |relay| (relay.status()["state"] == "Live").then_some(()));
    let well =
        format!("[[relay]]\nname = \"orders\"\nhttp = \"{}\"\n[[archive]]\nto = \"arc\"\n", relay.http);
    folder.put("well.toml", &well);
    let shown = folder.run(["fleet", "--targets", "well.toml", "--format=json"]);
    let document: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((shown.code, &document["healthy"]), (Some(0), &true.into()), "{document}");
    let row = |document: &Value, target: &str| {
        let rows = document["rows"].as_array().unwrap();
        rows.iter().find(|row| row["target"] == target).unwrap_or_else(|| panic!("{document}")).clone()
    };
    let (file, position) = source.position().unwrap();
    let orders = row(&document, "orders");
    assert_eq!(orders["last_durable"], format!("{file} at {position}"));
    assert_eq!(orders["last_archived"], "binlog.000001");
    let restorable = &orders["last_restorable"];
    assert_eq!(restorable, &row(&document, "arc")["last_restorable"]);
    // That of the closed file; the one after it is not archived.
    let (_, last) = source
        .gtid_executed()
        .unwrap()
        .rsplit_once('-')
        .map(|(uuid, last)| (uuid.to_owned(), last.to_owned()))
        .unwrap();
    let last: u64 = last.parse().unwrap();
    let gtids = restorable["gtids"].as_str().unwrap();
    assert!(gtids.ends_with(&format!(":{}", last - 1)), "{gtids} of {last}");
    assert_eq!((&orders["gaps"], &orders["tone"]), (&Value::Array(Vec::new()), &"good".into()));

    // A relay that can't be asked, one that never answers, and an archive that isn't there: each is a row.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = format!("127.0.0.1:{}", reserved_port());
    let quick = format!(
        "{well}[[relay]]\nname = \"dead\"\nhttp = \"{dead}\"\n[[archive]]\nname = \"gone\"\nto = \"gone\"\n"
    );
    let hung = listener.local_addr().unwrap();
    folder.put("fleet.toml", format!("{quick}[[relay]]\nname = \"hung\"\nhttp = \"http://{hung}/\"\n"));
    folder.put("quick.toml", quick);
    let shown =
        folder.run(["fleet", "--targets=fleet.toml", "--timeout=2s", "--format=json", "--html=fleet.html"]);
    let document: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((shown.code, &document["healthy"]), (Some(1), &false.into()), "{document}");
    let found = |target: &str| row(&document, target)["findings"][0].as_str().unwrap().to_owned();
    assert!(found("dead").starts_with(&format!("http://{dead}/: Connection refused")), "{}", found("dead"));
    assert!(found("hung").ends_with("the answer did not come in time"), "{}", found("hung"));
    assert!(found("gone").starts_with("gone: there is no such folder"), "{}", found("gone"));
    let shown = folder.run(["fleet", "--wide", "--targets", "quick.toml"]);
    let order: Vec<_> =
        shown.text().lines().skip(2).take(4).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(order, ["dead", "gone", "arc", "orders"], "{}", shown.text());
    let below =
        format!("\n\ndead: http://{dead}/: Connection refused (os error 111)\ngone: there is no such folder");
    assert!(shown.text().contains(&below), "{}", shown.text());

    // A source that is down, and a client that was refused.
    let refused = relay.mysqlbinlog(mysql, "reader").arg("binlog.000099").output().unwrap();
    assert!(!refused.status.success());
    let doctor = folder.run(["relay", "doctor", &relay.http]);
    let told = doctor.text().to_owned();
    assert!(
        doctor.code == Some(1) && told.starts_with("look  a client was refused "),
        "{told}{}",
        doctor.stderr
    );
    assert!(
        in_one_line(&told).contains("from 127.0.0.1: ")
            && in_one_line(&told).contains("Could not find first log file name"),
        "{told}"
    );
    let place = source.port();
    source.kill();
    relay.wait_for("the source's end", |relay| (relay.status()["state"] == "Source down").then_some(()));
    let doctor = folder.run(["relay", "doctor", &relay.http]);
    let down = format!("wrong 127.0.0.1:{place} is down for ");
    assert!(doctor.code == Some(1) && doctor.text().starts_with(&down), "{}", doctor.text());
    let shown = folder.run(["fleet", "--wide", "--targets", "well.toml"]);
    assert_eq!(shown.code, Some(1), "{}", shown.text());
    assert!(shown.text().lines().nth(2).unwrap().contains("Source down"), "{}", shown.text());

    let exported = exported(&[
        relay.get("/metrics").1,
        folder.run(["fleet", "--targets", "quick.toml", "--format=prometheus"]).text().to_owned(),
        folder.run(["archive", "list", "--format=prometheus", "arc"]).text().to_owned(),
    ]);
    assert_only_exported(&exported);
    let page = String::from_utf8(folder.read("fleet.html")).unwrap();
    assert!(page.contains("</i> Unreachable</span>") && page.contains("3 of 5 need somebody"), "{page}");
}

/// Why real replicas are not served, or stop at what they are served: each cause in words, with a way out.
#[test]
fn relay_doctor_says_why_a_replica_was_refused() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mysql56);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).readable_by_mariadb().start().unwrap();
    let insert = "INSERT INTO d.t (body) VALUES (REPEAT('some words ', 500))";
    source
        .sql(&format!(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT); FLUSH BINARY LOGS; \
             PURGE BINARY LOGS TO 'binlog.000002'; {insert}"
        ))
        .unwrap();
    let configuration =
        Configuration::of([url(&source)]).account("reader", "").account("as_it_is", "form = \"received\"");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let doctor = || folder.run(["relay", "doctor", &relay.http]);
    let said = doctor();
    assert_eq!((said.code, said.text()), (Some(0), "nothing is wrong\n"), "{}", said.stderr);

    // It lacks what was purged; then it has more than the source ever had.
    let replica = mysql.sandbox().start().unwrap();
    let refused = |of: &str| {
        let begin = Instant::now();
        loop {
            let status = replica.replica_status().unwrap();
            if status["Last_IO_Error"].contains(of) {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{status:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let told = |words: &str| {
        let lines = doctor().text().replace("\n      ", " ");
        let line = lines.lines().find(|line| line.contains(words));
        line.unwrap_or_else(|| panic!("{words}: {lines}")).to_owned()
    };
    relay.replicates_to(&replica, "reader", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
    refused("the source purged required binary logs");
    let line = told("purged required binary logs");
    assert!(line.starts_with("look  a client was refused ") && line.contains("from 127.0.0.1: "), "{line}");
    assert!(line.contains("build the replica from a newer backup"), "{line}");

    let uuid = source.server_uuid().unwrap();
    let ahead = format!("RESET BINARY LOGS AND GTIDS; SET GLOBAL gtid_purged = '{uuid}:1-1000'");
    replica.sql(&format!("STOP REPLICA; {ahead}; START REPLICA")).unwrap();
    refused("Replica has more GTIDs than the source has");
    let line = told("more GTIDs");
    assert!(line.contains("it has errant transactions, under the source's own GTIDs: compare"), "{line}");

    // A server from before compressed transactions is refused, also where somebody decided that it may have them.
    let old = Mysql56Sandbox::start(&[]).unwrap();
    let follow = |user: &str, file: &str| {
        old.sql(&format!(
            "STOP SLAVE; RESET SLAVE; CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='{user}', \
             MASTER_PASSWORD='secret', MASTER_LOG_FILE='{file}', MASTER_LOG_POS=4; START SLAVE",
            relay.port
        ))
        .unwrap();
    };
    let wait_for = |words: &str| {
        let begin = Instant::now();
        while !doctor().text().replace("\n      ", " ").contains(words) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{words}: {}", doctor().text());
            std::thread::sleep(Duration::from_millis(100));
        }
        told(words)
    };
    follow("reader", "binlog.000002");
    let line = wait_for("not known to read compressed transactions");
    assert!(line.contains("binlog-u.000002 has them uncompressed"), "{line}");
    follow("as_it_is", "binlog.000002");
    let line = wait_for("and MySQL 5.6 does not read such: begin in a file of the uncompressed form");
    assert!(line.starts_with("look  a client was refused ") && line.contains(" is compressed, "), "{line}");
    assert_eq!(doctor().code, Some(1));
}

/// Asks again and again: changes show, the past is remembered, and a target that can't be reached is shown with the
/// cause.
#[test]
fn a_fleet_that_is_served_shows_what_changes_and_what_cannot_be_reached() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    folder.sample("plain", "binlog.000001");
    folder.run(["archive", "create", "--to", "arc", "binlog.000001"]).is_done();
    folder.put("monitor.cnf", "[client]\nuser=root\n");
    let text = format!(
        "[[archive]]\nto = \"arc\"\n[[server]]\nname = \"db\"\nserver = \"{}\"\ndefaults_file = \"monitor.cnf\"\n",
        source.socket().display()
    );
    folder.put("fleet.toml", &text);
    let free = format!("127.0.0.1:{}", reserved_port());
    let mut command =
        folder.binlogz(["fleet", "--targets=fleet.toml", "--listen=0", "--every=1s", "--timeout=4s"]);
    command.args(["--host", "fleet.example.com"]).envs([
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", &format!("http://{free}")),
    ]);
    let served = Served::start(command);
    let row = |document: &Value, target: &str| {
        let rows = document["rows"].as_array().unwrap();
        rows.iter().find(|row| row["target"] == target).cloned()
    };
    let document = served.wait_for(|document| {
        let history = row(document, "arc")?["lag_history_seconds"].as_array().map_or(0, Vec::len);
        (history >= 2).then(|| document.clone())
    });
    let db = row(&document, "db").unwrap();
    assert_eq!((&db["kind"], &db["reached"]), (&"server".into(), &true.into()), "{db}");
    assert!(db["state"] == "Can compress" || db["state"] == "Not known", "{db}");
    assert_eq!(document["healthy"], true, "{document}");

    // Another target counts from the next round on; the file is broken, and the targets stay.
    folder.put("fleet.toml", format!("{text}[[archive]]\nname = \"cloud\"\nto = \"s3://there/x\"\n"));
    let cloud = served.wait_for(|document| row(document, "cloud"));
    let said = cloud["findings"][0].as_str().unwrap();
    assert!(said.contains("Connection refused") && said.contains(&free), "{said}");
    folder.put("fleet.toml", "[[archive]]\nplace = 1\n");
    let broken = served.wait_for(|document| row(document, "fleet.toml"));
    assert!(broken["findings"][0].as_str().unwrap().contains("unknown field `place`"), "{broken}");

    let (head, page) = served.get("/", "localhost");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("Refresh: 5\r\n"), "{head}");
    assert!(page.contains("</i> Unreachable</span>") && page.contains("2 of 4 need somebody"), "{page}");
    let (head, metrics) = served.get("/metrics", "fleet.example.com");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    for name in ["binlogz_fleet_up{target=\"cloud\"", "binlogz_fleet_round_age_seconds "] {
        assert!(metrics.contains(name), "{name} {metrics}");
    }
    assert!(served.get("/healthz", "127.0.0.1").0.starts_with("HTTP/1.1 200 "));
    assert!(served.get("/", "evil.example.com").0.starts_with("HTTP/1.1 403 "));
    assert!(served.get("/secret", "localhost").0.starts_with("HTTP/1.1 404 "));
}

/// A `binlogz fleet --listen`. Gone when dropped.
struct Served {
    process: Child,
    address: String,
}

impl Served {
    fn start(mut command: Command) -> Served {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit_once("http://").unwrap_or_else(|| panic!("{line}")).1;
        Served { process, address: address.trim_end_matches('/').to_owned() }
    }

    /// Head and body of an answer.
    fn get(&self, path: &str, host: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (format!("{head}\r\n"), body.to_owned())
    }

    fn wait_for<T>(&self, done: impl Fn(&Value) -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            let (head, body) = self.get("/status.json", "localhost");
            if head.starts_with("HTTP/1.1 200 ")
                && let Some(done) = done(&serde_json::from_str(&body).unwrap())
            {
                return done;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{head}{body}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The drill of a lost server: one of three sources, followed by one relay with archives in S3.
#[test]
#[ignore = "long: scripts/soak/fleet.sh runs it"]
fn a_lost_source_comes_back_up_to_the_moment_that_fleet_showed() {
    let mysql = require_tool!(Tool::Mysql);
    let Some(s3) = S3Server::start() else { return };
    let folder = Folder::new();
    let start = || mysql.sandbox().compression(3).start().unwrap();
    let mut sources = std::thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(start));
        threads.map(|thread| thread.join().unwrap())
    });
    let names = ["orders", "payments", "users"];
    let table = |(name, source)| {
        format!(
            "[[source]]\nname = \"{name}\"\nservers = [\"{}\"]\npassword_file = \"source.password\"\n",
            url(source)
        )
    };
    let tables: String = names.iter().zip(&sources).map(table).collect();
    let place = format!("s3://{BUCKET}/drill");
    let settings: Vec<(&'static str, OsString)> =
        s3.settings().into_iter().map(|(name, value)| (&*name.leak(), value.into())).collect();
    let configuration = Configuration::of_several(tables).archive_to(&place).environment(settings);
    let mut relay = configuration.account("any", "").start(&folder);
    for source in &sources {
        source.sql(TABLES).unwrap();
        work(source, 0);
        source.flush_binary_logs().unwrap();
    }
    // The backup is from amid the work; what follows the last closed file is lost with the server.
    let (lost, dump) = (&sources[1], folder.path("dump.sql"));
    work(lost, 100);
    dump_to(mysql, lost, &dump);
    work(lost, 200);
    lost.flush_binary_logs().unwrap();
    work(lost, 300);
    let (uuid, gno_then, then) = (lost.server_uuid().unwrap(), gno(lost), checksums(lost));
    lost.flush_binary_logs().unwrap();
    work(lost, 400);
    assert_ne!(checksums(lost), then);

    let targets =
        format!("[[relay]]\nname = \"relay\"\nhttp = \"{}\"\n[[archive]]\nto = \"{place}\"\n", relay.http);
    folder.put("fleet.toml", targets);
    let shown = || -> Value {
        let mut command = folder.binlogz(["fleet", "--targets", "fleet.toml", "--format=json"]);
        let output = command.envs(s3.settings()).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = document["rows"].as_array().unwrap();
        rows.iter().find(|row| row["source"] == "payments").unwrap_or_else(|| panic!("{document}")).clone()
    };
    relay.wait_for("archive", |_| {
        let gtids = shown()["last_restorable"]["gtids"].clone();
        (gtids == format!("{uuid}:{gno_then}")).then_some(())
    });
    sources[1].kill();
    fs::remove_dir_all(sources[1].datadir()).unwrap();
    relay.wait_for("loss", |_| (shown()["state"] == "Source down").then_some(()));

    let row = shown();
    let until = row["last_restorable"]["gtids"].as_str().unwrap();
    let server = restored(mysql, &dump);
    let mut command = folder.binlogz(["recover", "--no-defaults", "--work-dir", ".", "--until-gtid", until]);
    command.arg("--to").arg(format!("root@{}", server.socket().display()));
    command.arg("--from").arg(format!("{place}/payments")).envs(s3.settings());
    ran(command).is_done();
    assert_eq!((gno(&server), checksums(&server)), (gno_then, then));
}

/// The names of all series that these metrics have.
fn exported(texts: &[String]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let ends: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        names.extend(ends.iter().map(|end| format!("{name}{end}")));
    }
    names
}

/// Labels that panels and alerts show or sum by, each beside its metrics, have to be on the series of a relay with several sources.
pub(crate) fn assert_labels_exist(metrics: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging");
    let dashboard = fs::read_to_string(root.join("grafana/binlogz.json")).unwrap();
    let mut panels = Vec::new();
    queries(&serde_json::from_str(&dashboard).unwrap(), &mut panels);
    let rules = fs::read_to_string(root.join("prometheus/binlogz.rules.yml")).unwrap();
    panels.extend(rules.split("- alert: ").skip(1).map(str::to_owned));
    let word = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
            .collect()
    };
    let mut checked = 0;
    for panel in &panels {
        let shown =
            panel.split("{{").skip(1).map(|rest| word(rest.trim_start().trim_start_matches("$labels.")));
        let summed = panel.split(" by (").skip(1).filter_map(|rest| rest.split(')').next());
        let labels: BTreeSet<String> =
            shown.chain(summed.flat_map(|list| list.split(',').map(word))).collect();
        for name in panel.split("binlogz_relay_").skip(1).map(|rest| format!("binlogz_relay_{}", word(rest)))
        {
            let series = |line: &&str| line.starts_with(&format!("{name}{{"));
            let Some(sample) = metrics.lines().find(series) else { continue };
            // Prometheus adds the first, and the second is no label.
            for label in labels.iter().filter(|label| !["instance", "", "value"].contains(&label.as_str())) {
                assert!(sample.contains(&format!("{label}=\"")), "{label} of {panel}\n{sample}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 12, "{checked} of {} panels and alerts\n{metrics}", panels.len());
}

/// The query of each panel, with the text of its legend.
fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let (Some(Value::String(query)), Some(Value::String(legend))) =
                (fields.get("expr"), fields.get("legendFormat"))
            {
                found.push(format!("{query} {legend}"));
            }
            fields.values().for_each(|value| queries(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| queries(value, found)),
        _ => {}
    }
}

/// Alert rules and the dashboard.
fn assert_only_exported(exported: &BTreeSet<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging");
    for file in ["prometheus/binlogz.rules.yml", "grafana/binlogz.json"] {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let named: BTreeSet<_> = words
            .filter(|word| {
                ["relay", "archive", "fleet"].iter().any(|of| word.starts_with(&format!("binlogz_{of}_")))
            })
            .collect();
        assert!(named.len() >= 8, "{file} names only {named:?}");
        let unknown: Vec<_> = named.into_iter().filter(|name| !exported.contains(*name)).collect();
        assert!(unknown.is_empty(), "{file} names what nothing exports: {unknown:?}\n{exported:?}");
    }
    let dashboard = fs::read_to_string(root.join("grafana/binlogz.json")).unwrap();
    serde_json::from_str::<Value>(&dashboard).unwrap();
}

/// A text whose lines were broken to fit.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
