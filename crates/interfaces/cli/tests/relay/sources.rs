//! Servers as sources: how they are named, and those that can't be followed.

use std::time::{Duration, Instant};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay};
use binlogz_testkit::{MariadbSandbox, Tool, require_tool};

/// How the process ended, which it does by itself.
fn exit_code(relay: &mut Relay) -> Option<i32> {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(status) = relay.child.try_wait().unwrap() {
            return status.code();
        }
        assert!(Instant::now() < deadline, "it still runs:\n{}", relay.said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_that_can_not_be_followed_is_refused_once_and_by_name() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    let folder = Folder::new();
    let mariadb = MariadbSandbox::start(&[]).unwrap();
    let source = mysql.sandbox().start().unwrap();
    let account =
        "CREATE USER repl@localhost IDENTIFIED BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl@localhost";
    source.sql(account).unwrap();
    let refused = |relay: &Relay| {
        let messages = relay.messages();
        messages.into_iter().filter(|message| message.contains(" is MariaDB: ")).collect::<Vec<_>>()
    };
    let mariadb = format!("mysql://repl@127.0.0.1:{}", mariadb.port());
    // It has none of MySQL's GTIDs, after which a log could begin, or by which servers could be compared.
    let gtids = "start = \"3e11fa47-71ca-11e1-9e33-c80aa9429562:1\"";

    // A relay that keeps nothing has nothing to do.
    for (configuration, why) in [
        (Configuration::of([&mariadb]).source(gtids), "the log is to begin after MySQL's GTIDs"),
        (Configuration::of([&mariadb, &mariadb]), "name one server"),
    ] {
        let mut relay = configuration.launch(&folder);
        assert_eq!(exit_code(&mut relay), Some(2));
        let said = refused(&relay);
        assert!(said.len() == 1 && said[0].contains(why), "{}", relay.said());
    }

    // One that keeps a log, here from a source that is named by its socket, goes on serving it.
    let by_socket = format!("repl@unix:{}", source.socket().display());
    let configuration = Configuration::of([by_socket]).account("reader", "");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    assert_eq!(relay.status()["source"]["server"].as_str().unwrap(), source.socket().to_str().unwrap());
    drop(relay);
    let mut relay = configuration.with_servers([&mariadb]).source(gtids).start(&folder);
    let error = relay.wait_for("refusal", |relay| {
        let status = relay.status();
        status["source"]["error"].as_str().map(str::to_owned)
    });
    assert!(error.contains(" is MariaDB: ") && !error.contains("server_uuid"), "{error}");
    relay.fetch(mysql, "reader", &folder.path("fetched"), &[], &["binlog.000001"]).unwrap();
    assert_eq!(refused(&relay).len(), 1, "it is tried again minutes later:\n{}", relay.said());
}
