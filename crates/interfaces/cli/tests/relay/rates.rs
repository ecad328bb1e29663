//! Limits on the rates of receiving and archiving, and levels and fields of the log: how a relay obeys them, and that a
//! reload changes them while everything goes on.

use std::time::Duration;

use binlogz_testkit::{Tool, require_tool};
use serde_json::Value;

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, client, sql, url};

/// The log's lines as objects.
fn lines(relay: &Relay) -> Vec<Value> {
    let said = relay.said();
    let whole = said.rfind('\n').map_or("", |end| &said[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn rates_hold_and_change_by_a_reload() {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().start().unwrap();
    source
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body MEDIUMTEXT)")
        .unwrap();
    // Too much for a rate of 64 KiB a second, whatever the machine.
    source.sql(&"INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 2000));\n".repeat(60)).unwrap();
    source.flush_binary_logs().unwrap();
    let folder = Folder::new();
    let configuration = Configuration::of([url(&source)]).archive();
    let slow = configuration.clone().source("receive_rate = \"64K\"\narchive_rate = \"64K\"");
    let mut relay = slow.start(&folder);
    relay.wait_for("wait for the rate", |relay| {
        let status = relay.status();
        (status["rates"]["receive"]["is_waiting"] == true).then_some(())
    });
    std::thread::sleep(Duration::from_secs(2));
    let status = relay.status();
    let received = status["bytes"]["received"].as_u64().unwrap();
    let uptime = status["uptime_seconds"].as_u64().unwrap() + 1;
    // A piece may be larger than what a second allows.
    assert!(received > 0 && received <= (uptime << 16) + (256 << 10), "{received} bytes in {uptime} s");
    let receive = &status["rates"]["receive"];
    assert!(receive["limit"] == 64 << 10 && receive["waited_seconds"].as_f64().unwrap() > 1.0, "{receive}");
    assert!(relay.metric("binlogz_relay_receive_rate_waited_seconds_total") > 1.0);
    assert_eq!(relay.metric("binlogz_relay_receive_rate_limit_bytes"), 65536.0);
    assert_eq!(status["source"]["phase"], "receiving");
    let shown = folder.run(["relay", "status", &format!("--http={}", relay.http)]);
    assert!(
        shown.text().contains("rates     at most 64.0 KiB received a second (waited "),
        "{}",
        shown.text()
    );

    // More, and at once: the source's connection stays.
    let connections = || {
        lines(&relay)
            .iter()
            .filter(|line| line["message"].as_str().unwrap().starts_with("receiving "))
            .count()
    };
    assert_eq!(connections(), 1);
    configuration.clone().source("archive_rate = \"64K\"").write(&folder);
    folder.run(["relay", "reload"]).is(0, "other rates\n", "");
    relay.has_all_of(&source);
    let archived = |relay: &Relay| relay.status()["archive"]["waiting_files"] == 0;
    relay.wait_for("wait for the archive's rate", |relay| {
        (relay.status()["rates"]["archive"]["is_waiting"] == true).then_some(())
    });
    assert!(!archived(&relay));
    configuration.write(&folder);
    folder.run(["relay", "reload"]).is(0, "other rates\n", "");
    relay.wait_for("archive", |relay| archived(relay).then_some(()));
    assert_eq!(
        lines(&relay)
            .iter()
            .filter(|line| line["message"].as_str().unwrap().starts_with("receiving "))
            .count(),
        1
    );

    for (keys, said) in [
        ("receive_rate = \"1K\"", "source: receive_rate: \"1K\", expected at least 16K a second"),
        ("archive_rate = \"fast\"", "source: archive_rate: \"fast\", expected a size such as"),
    ] {
        configuration.clone().source(keys).write(&folder);
        let ran = folder.run(["relay", "check-config"]);
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn log_lines_have_fields_and_levels_and_doctor_names_each_refusal() {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().start().unwrap();
    let folder = Folder::new();
    let configuration = Configuration::of([url(&source)])
        .account("elsewhere", "from = [\"10.0.0.0/8\"]")
        .account("safe", "require_tls = true")
        .account("reader", "");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let tell = |relay: &Relay, user: &str, password: &str, options: &[&str]| {
        let mut client = client(mysql, "mysql", relay.port, user, password);
        client.args(options);
        sql(client, "SELECT 1").unwrap_err()
    };
    tell(&relay, "nobody", "secret", &[]);
    tell(&relay, "reader", "wrong", &[]);
    tell(&relay, "elsewhere", "secret", &[]);
    tell(&relay, "safe", "secret", &["--ssl-mode=DISABLED", "--get-server-public-key"]);
    // A file that is not there, one in a form that the client can't be known to read, and transactions that the source lacks.
    let fetch = |relay: &Relay, options: &[&str], name: &str| {
        relay.fetch(mysql, "reader", &folder.path("fetched"), options, &[name]).unwrap_err()
    };
    fetch(&relay, &[], "binlog.000099");
    fetch(&relay, &["--start-position=99999"], "binlog.000001");
    let reasons = [
        "nobody': there is no account of this name",
        "reader': wrong password",
        "elsewhere': the account may not come from this address",
        "safe': Connections using insecure transport are prohibited",
        "Could not find first log file name in binary log index file",
        "position > file size",
    ];
    let found = relay.wait_for("all reasons", |relay| {
        let ran = folder.run(["relay", "doctor", "--format=json", &relay.http]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let report: Value = serde_json::from_str(ran.text()).unwrap();
        let said: Vec<String> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["said"].as_str().unwrap().to_owned())
            .collect();
        reasons.iter().all(|reason| said.iter().any(|line| line.contains(reason))).then_some(said)
    });
    assert!(
        found.iter().filter(|line| line.contains("a client was refused")).count() >= reasons.len(),
        "{found:?}"
    );

    let all = lines(&relay);
    let line = |what: &str| all.iter().find(|line| line["message"].as_str().unwrap().contains(what)).unwrap();
    let denied = line("wrong password");
    assert!(
        denied["level"] == "warn" && denied["kind"] == "refused" && denied["client"].is_u64(),
        "{denied}"
    );
    assert!(denied["target"] == "binlogz_relay::serve::server" && denied["duty"].is_null(), "{denied}");
    assert!(denied["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{denied}");
    let receiving = line("receiving ");
    assert!(receiving["level"] == "info" && receiving["duty"] == "receive", "{receiving}");
    assert!(all.iter().all(|line| ["source", "client", "duty"].iter().all(|name| line.get(*name).is_some())));

    // Errors alone: a client's own mistakes are told no more.
    configuration.clone().log("level = \"error,binlogz::cmd=info\"").write(&folder);
    folder.run(["relay", "reload"]).is(0, "another level of the log\n", "");
    let before = lines(&relay).len();
    tell(&relay, "nobody", "secret", &[]);
    tell(&relay, "nobody", "secret", &[]);
    configuration.clone().log("level = \"info\"").write(&folder);
    folder.run(["relay", "reload"]).is(0, "another level of the log\n", "");
    tell(&relay, "nobody", "secret", &[]);
    relay.wait_for("line of the client", |relay| {
        lines(relay).iter().skip(before).any(|line| line["level"] == "warn").then_some(())
    });
    let denied = lines(&relay).iter().skip(before).filter(|line| line["level"] == "warn").count();
    assert_eq!(denied, 1, "{}", relay.said());
    configuration.clone().log("level = \"loud\"").write(&folder);
    let ran = folder.run(["relay", "reload"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("level: \"loud\", expected error, warn"),
        "{}",
        ran.stderr
    );
}
