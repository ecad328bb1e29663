//! One relay with several sources: which client is served which source, and that one source's trouble or change doesn't
//! harm the others.

use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};

const BY_GTID: &str = "SOURCE_AUTO_POSITION=1, SOURCE_SSL=1";

fn table(name: &str, source: &MysqlSandbox, keys: &str) -> String {
    format!(
        "[[source]]\nname = \"{name}\"\nservers = [\"{}\"]\npassword_file = \"source.password\"\n{keys}\n",
        url(source)
    )
}

/// The status of a source.
fn of(relay: &Relay, name: &str) -> serde_json::Value {
    let status = relay.status();
    let sources = status["sources"].as_array().unwrap();
    sources.iter().find(|source| source["name"] == name).unwrap_or_else(|| panic!("{status}")).clone()
}

fn all_of(relay: &mut Relay, name: &str, source: &MysqlSandbox) {
    let all = source.gtid_executed().unwrap();
    relay.wait_for("last transaction", |relay| {
        (of(relay, name)["log"]["gtid_executed"] == all.as_str()).then_some(())
    });
}

#[test]
fn each_source_has_its_replicas_and_the_others_trouble_is_not_theirs() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let start = || mysql.sandbox().start().unwrap();
    let (orders, (mut payments, (of_orders, of_payments))) = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(start));
        let [a, b, c, d] = threads.map(|thread| thread.join().unwrap());
        (a, (b, (c, d)))
    });
    let rows = |server: &MysqlSandbox, word: &str| {
        let rows = format!("INSERT INTO d.t (body) VALUES (REPEAT('{word} ', 200));\n").repeat(20);
        server.sql(&rows).unwrap();
    };
    for (server, word) in [(&orders, "order"), (&payments, "payment")] {
        let make = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)";
        server.sql(make).unwrap();
        rows(server, word);
    }
    let own_port = reserved_port();
    let tables = |last: &str| table("orders", &orders, "[source.store]\nstore = \"compressed\"") + last;
    let listens = format!("listen = \"127.0.0.1:{own_port}\"");
    let configuration = Configuration::of_several(tables(&table("payments", &payments, &listens)))
        .account("orders_reader", "source = \"orders\"")
        .account("any", "");
    let mut relay = configuration.start(&folder);
    all_of(&mut relay, "orders", &orders);
    all_of(&mut relay, "payments", &payments);

    // By account, and by a port of its own.
    relay.replicates_to(&of_orders, "orders_reader", BY_GTID);
    let shared = std::mem::replace(&mut relay.port, own_port);
    relay.replicates_to(&of_payments, "any", BY_GTID);
    relay.port = shared;
    relay.brings(&orders, &of_orders, &["d"]);
    relay.brings(&payments, &of_payments, &["d"]);
    // By default schema, and by TLS server name.
    const SAYS: &str = "SELECT @@GLOBAL.gtid_executed";
    for option in ["--database=payments", "--tls-sni-servername=payments"] {
        let said = relay.sql(mysql, "any", &[option, "--raw"], SAYS).unwrap();
        assert_eq!(said.trim_end(), payments.gtid_executed().unwrap(), "{option}");
    }
    for (user, option, told) in [
        ("any", "--raw", "several sources and the client names none: orders, payments. "),
        ("any", "--database=d", "names none (none is called d): orders, payments. "),
        (
            "orders_reader",
            "--database=payments",
            "the source orders by its account and payments by its default schema",
        ),
    ] {
        let error = relay.sql(mysql, user, &[option], SAYS).unwrap_err();
        assert!(error.contains("ERROR 1105 ") && error.contains(told), "{error}");
    }

    // One changes: its replica comes back, to the same port. The other's notices nothing, here or later.
    let connection = of(&relay, "orders")["replicas"][0]["connection"].clone();
    let listens = format!("{listens}\nform = \"uncompressed\"");
    configuration.with_several(tables(&table("payments", &payments, &listens))).write(&folder);
    folder.run(["relay", "reload"]).is(0, "changed payments\n", "");
    folder.run(["relay", "reload"]).is(0, "nothing is different\n", "");
    rows(&payments, "later");
    relay.wait_for("replica that came back", |relay| {
        (of(relay, "payments")["replicas"][0]["form"] == "uncompressed").then_some(())
    });
    relay.brings(&payments, &of_payments, &["d"]);

    // One source is lost.
    payments.kill();
    rows(&orders, "later");
    relay.brings(&orders, &of_orders, &["d"]);
    relay.wait_for("loss", |relay| (of(relay, "payments")["source"]["phase"] != "receiving").then_some(()));
    assert_eq!(of(&relay, "orders")["source"]["phase"], "receiving");
    crate::fleet::assert_labels_exist(&relay.get("/metrics").1);
    assert_eq!(relay.metric("binlogz_relay_source_up{source=\"orders\"}"), 1.0);
    assert_eq!(relay.metric("binlogz_relay_source_up{source=\"payments\"}"), 0.0);
    let http = format!("--http={}", relay.http);
    let shown = folder.run(["relay", "status", &http]);
    let text = shown.text();
    assert!(shown.code == Some(1) && text.contains("source    orders: 127.0.0.1:"), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("source    payments: ") && line.contains("is down")),
        "{text}"
    );
    folder.run(["relay", "status", &http, "--source=orders"]).is_done();
    assert_eq!(relay.get("/healthz?source=orders").0, 200);
    assert!(
        relay.get("/").1.contains("payments")
            && relay.get("/?source=orders").1.contains("binlogz relay: orders")
    );

    // It is removed and another is added; a configuration that is wrong changes nothing.
    let broken = table("broken", &orders, "[source.store]\ndir = \"relay.toml\"");
    let copy = table("copy", &of_payments, "");
    configuration.with_several(tables(&(copy.clone() + &broken))).write(&folder);
    folder.run(["relay", "reload"]).is(0, "added copy, broken; removed payments\n", "");
    let (code, why) = relay.get("/healthz");
    assert!(code == 503 && why.starts_with("source broken: it is not served: "), "{code} {why}");
    assert_eq!((relay.get("/readyz").0, relay.get("/healthz?source=orders").0), (200, 200));
    configuration.with_several(tables(&copy)).write(&folder);
    let hang_up = rustix::process::Signal::HUP;
    rustix::process::kill_process(rustix::process::Pid::from_child(&relay.child), hang_up).unwrap();
    relay.wait_for("reload", |relay| {
        let said = "reloaded relay.toml: removed broken";
        relay.messages().iter().any(|line| line == said).then_some(())
    });
    assert_eq!(relay.get("/healthz").0, 200);
    configuration.with_several(tables(&table("orders", &of_payments, ""))).write(&folder);
    let said = folder.run(["relay", "reload"]);
    assert!(said.code == Some(2) && said.stderr.contains("source orders is there twice"), "{}", said.stderr);
    all_of(&mut relay, "copy", &of_payments);
    let said = relay.sql(mysql, "any", &["--database=copy", "--raw"], SAYS).unwrap();
    assert_eq!(said.trim_end(), of_payments.gtid_executed().unwrap());
    let error = relay.sql(mysql, "any", &["--database=payments"], SAYS).unwrap_err();
    assert!(error.contains("names none (none is called payments): orders, copy. "), "{error}");
    assert!(std::net::TcpStream::connect(("127.0.0.1", own_port)).is_err(), "its port is closed");
    rows(&orders, "last");
    relay.brings(&orders, &of_orders, &["d"]);
    assert_eq!(of(&relay, "orders")["replicas"][0]["connection"], connection, "it was not dropped");
    assert!(folder.path("kept/payments/binlog.000001").exists(), "what is stored stays");
}
