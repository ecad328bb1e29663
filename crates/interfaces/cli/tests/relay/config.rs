//! The relay's configuration: written, checked, refused; only what asks servers needs some.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use binlogz_testkit::{MariadbSandbox, SandboxServer, Tool, require_tool};

use crate::common::Folder;

/// A folder with a new configuration, and the password that it names.
fn folder() -> Folder {
    let folder = Folder::new();
    let said = "wrote relay.toml: set the source and the users in it, then\n  binlogz relay run --config relay.toml\n";
    folder.run(["relay", "init"]).is(0, said, "");
    secret(&folder, "source.password", "s3cr3t\n");
    folder
}

fn secret(folder: &Folder, name: &str, text: &str) {
    let path = folder.put(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn what_init_writes_is_a_configuration_and_so_is_all_of_it() {
    let folder = folder();
    let said = "relay.toml: follows 127.0.0.1:3306, keeps its log in data, serves the source's account on \
                127.0.0.1:3307\nretention: every file stays\n";
    folder.run(["relay", "check-config", "--offline"]).is(0, said, "");
    folder.run(["relay", "init"]).fails("relay.toml: exists already; --force replaces it");
    // Text after a # is checked too; only one of the ways to give a password is meant.
    let all = String::from_utf8(folder.read("relay.toml")).unwrap();
    let is_example = |line: &&str| {
        let other_way = [
            "password_env",
            "defaults_file",
            "ssl_",
            "server_public_key",
            "require_tls",
            "keyring",
            "encrypt",
            "seed",
            "source_password_env",
            // An account with a policy has none at the source.
            "exits",
        ];
        line.starts_with('#')
            && !line.starts_with("# ")
            && !other_way.iter().any(|key| line[1..].starts_with(key))
    };
    let lines = all.lines().map(|line| if is_example(&line) { &line[1..] } else { line });
    folder.put("all.toml", lines.collect::<Vec<_>>().join("\n"));
    secret(&folder, "repl.password", "other\n");
    secret(&folder, "app.password", "its own\n");
    let ran = folder.run(["relay", "check-config", "--offline", "--config=all.toml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.text().contains("serves repl on 127.0.0.1:3307"), "{}", ran.text());
    assert!(!folder.path("data").exists(), "nothing is changed");
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_without_the_password() {
    let folder = folder();
    let check = |added: &str| {
        folder.put(
            "other.toml",
            format!(
                "[source]\nservers = [\"mysql://repl@db1\"]\npassword_file = \"source.password\"\n[store]\n\
                 dir = \"kept\"\n{added}"
            ),
        );
        let ran = folder.run(["relay", "check-config", "--offline", "--config=other.toml"]);
        assert!(!ran.stderr.contains("s3cr3t"), "{}", ran.stderr);
        (ran.code, ran.stderr)
    };
    assert_eq!(check(""), (Some(0), String::new()));
    for (added, said) in [
        ("[lisen]\n", "binlogz: other.toml line 6: unknown field `lisen`"),
        (
            "[[account]]\nuser = \"a\"\npassword = \"s3cr3t\"\n",
            "binlogz: other.toml line 8: unknown field `password`",
        ),
        (
            "[[account]]\nuser = \"a\"\n",
            "binlogz: other.toml: account a: has no password: expected password_file",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"gone\"\n",
            "binlogz: other.toml: account a: gone: No such file",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nfrom = [\"10.0.0.0/33\"]\n",
            "binlogz: other.toml: account a: from \"10.0.0.0/33\", expected an address",
        ),
        (
            "[listen]\nread_only = \"source\"\n",
            "binlogz: other.toml: listen: read_only = \"source\" needs forward_sql: without it, no client",
        ),
        ("[listen]\ntls = false\nrequire_tls = true\n", "binlogz: other.toml: listen: require_tls needs tls"),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nolder_collations = true\nform = \"received\"\n",
            "binlogz: other.toml: account a: has older_collations, expected form = \"uncompressed\"",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nreads = \"mysql-5.6\"\nform = \"compressed\"\n",
            "binlogz: other.toml: account a: has reads, expected form = \"uncompressed\"",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nreads = \"mysql-5\"\n",
            "binlogz: other.toml: account a: reads \"mysql-5\", expected auto, mysql-5.5, mysql-5.6,",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nrow_metadata = \"most\"\n",
            "binlogz: other.toml: account a: row_metadata \"most\", expected as received, none, minimal or full",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nrow_metadata = \"none\"\nform = \"received\"\n",
            "binlogz: other.toml: account a: has row_metadata, expected form = \"uncompressed\"",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\ntables = [\"shop\"]\n",
            "binlogz: other.toml: account a: tables and ignore_tables: \"shop\", expected DATABASE.TABLE",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nignore_tables = [\"a.b\"]\nform = \"received\"\n",
            "binlogz: other.toml: account a: has tables or ignore_tables, expected form = \"uncompressed\"",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nexits = \"gone.toml\"\n",
            "binlogz: other.toml: account a: exits: gone.toml: No such file",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nexits = \"gone.toml\"\nadmin = true\n",
            "binlogz: other.toml: account a: has exits, expected it without admin: ",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nexits = \"gone.toml\"\nsource_user = \"app\"\n",
            "binlogz: other.toml: account a: has exits, expected it without an account at the source: ",
        ),
        (
            "[[account]]\nuser = \"a\"\npassword_file = \"source.password\"\nexits = \"gone.toml\"\nform = \"compressed\"\n",
            "binlogz: other.toml: account a: has exits, expected form = \"uncompressed\"",
        ),
        (
            "[http]\naddress = \"127.0.0.1:0\"\nhosts = [\"http://relay\"]\n",
            "binlogz: other.toml: http: hosts: \"http://relay\", expected a host name",
        ),
        ("[listen]\nssl_cert = \"gone.pem\"\nssl_key = \"gone.pem\"\n", "binlogz: other.toml: gone.pem: "),
    ] {
        let (code, stderr) = check(added);
        assert!(code == Some(2) && stderr.starts_with(said), "{added:?}: {stderr}");
    }
    // Files are named as seen from the configuration's folder, whatever the current one is.
    fs::create_dir(folder.path("etc")).unwrap();
    secret(&folder, "etc/source.password", "s3cr3t\n");
    let source = "[source]\nservers = [\"mysql://repl@db1\"]\npassword_file = \"source.password\"\n\
                  server_public_key = \"key.pem\"\n[store]\ndir = \"kept\"\n[listen]\nnative_password = false\n";
    folder.put("etc/relay.toml", source);
    let ran = folder.run(["relay", "check-config", "--offline", "--config=etc/relay.toml"]);
    assert!(
        ran.stderr.starts_with("binlogz: etc/relay.toml: source: etc/key.pem: No such file"),
        "{}",
        ran.stderr
    );
    folder.put("etc/key.pem", "");
    folder.run(["relay", "check-config", "--offline", "--config=etc/relay.toml"]).is_done();
    fs::set_permissions(folder.path("source.password"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(check("").1.contains("source.password: others may read or write it"));
    let url = ["relay", "run", "--source=mysql://repl:s3cr3t@db1", "--dir=kept"];
    let ran = folder.run(url);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("can be seen by others") && !ran.stderr.contains("s3cr3t")
    );
    for option in ["--dir=kept", "--no-listen-tls"] {
        let ran = folder.run(["relay", "run", "--config=relay.toml", option]);
        assert!(ran.code == Some(2) && ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
    }
}

#[test]
fn places_and_ports_are_tried_and_rights_told() {
    let folder = folder();
    secret(&folder, "repl.password", "other\n");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    let check = |archive: &str, http: &str| {
        folder.put(
            "relay.toml",
            format!(
                "[source]\nservers = [\"mysql://repl@db1\"]\npassword_file = \"source.password\"\n\
                 [store]\ndir = \"kept\"\nmax_age = \"7d\"\nmax_bytes = \"10G\"\n\
                 [archive]\nto = \"{archive}\"\n[http]\naddress = \"{http}\"\n\
                 [[account]]\nuser = \"repl\"\npassword_file = \"repl.password\"\n\
                 [[account]]\nuser = \"boss\"\npassword_file = \"repl.password\"\nadmin = true\nrequire_tls = true\n\
                 from = [\"10.0.0.0/8\"]\nconnections_max = 2\n"
            ),
        );
        folder.run(["relay", "check-config", "--offline"])
    };
    let said = |archive: &str, http: &str| {
        format!(
            "relay.toml: follows db1:3306, keeps its log in kept, serves repl, boss on 127.0.0.1:3307\n\
             retention: files are removed that are older than 7 days, and the oldest above 10.0 GiB in all\n\
             {archive}\n{http}\n\
             account boss: connects from 10.0.0.0/8, over TLS alone, 2 connections at most, may purge files, and stop and start \
             receiving\n"
        )
    };
    let free = "http 127.0.0.1:0: free";
    check("arc", "127.0.0.1:0").is(0, &said("archive arc: can be written, nothing there yet", free), "");
    assert!(!folder.path("arc").exists() && !folder.path("kept").exists(), "nothing is changed");
    folder.sample("plain", "binlog.000009");
    folder.run(["archive", "create", "--to", "arc/a", "binlog.000009"]).is_done();
    let used = format!("http {port}: in use, as it is while this relay runs");
    check("arc", &port.to_string()).is(0, &said("archive arc: can be written, 1 archive there", &used), "");
    check("repl.password", "127.0.0.1:0").fails("archive repl.password: is a file, expected a folder");
    // An address of documentation, which no machine has.
    let refused = check("arc", "192.0.2.1:3308");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("http 192.0.2.1:3308: "),
        "{}",
        refused.stderr
    );
}

#[test]
fn several_sources_are_told_apart() {
    let folder = folder();
    secret(&folder, "repl.password", "other\n");
    let source = |name: &str, keys: &str| {
        format!(
            "[[source]]\nname = \"{name}\"\nservers = [\"mysql://repl@{name}\"]\npassword_file = \"source.password\"\n\
             {keys}\n"
        )
    };
    let check = |tables: &str| {
        folder.put("several.toml", format!("{tables}[store]\ndir = \"kept\"\n"));
        folder.run(["relay", "check-config", "--offline", "--config=several.toml"])
    };
    let (a, b) =
        (source("a", ""), source("b", "listen = \"127.0.0.1:3310\"\n[source.store]\ndir = \"elsewhere\""));
    let said = "several.toml: 2 sources, serves the sources' accounts on 127.0.0.1:3307\n\
                source a: follows a:3306, keeps its log in kept/a\n\
                source b: follows b:3306, keeps its log in elsewhere, listens on 127.0.0.1:3310\n\
                source a: retention: every file stays\nsource b: retention: every file stays\n";
    check(&(a.clone() + &b)).is(0, said, "");
    assert!(!folder.path("kept").exists(), "nothing is changed");
    let archive = "[source.archive]\nto = \"arc\"";
    let account =
        |keys: &str| format!("[[account]]\nuser = \"u\"\npassword_file = \"source.password\"\n{keys}\n");
    for (tables, said) in [
        (a.clone() + &a, "several.toml: source a is there twice"),
        (source("A b", ""), "several.toml: [[source]]: name \"A b\", expected 1 to 64 lower-case letters"),
        ("[[source]]\nservers = []\n".into(), "several.toml: [[source]]: a source has no name"),
        (source("a", "dri = 1"), "several.toml line 5: unknown field `dri`"),
        (source("a", "[source.store]\nlevel = 40"), "several.toml: source a: store: level: expected 1 to 22"),
        (
            source("a", "[source.store]\ndir = \"x\"") + &source("b", "[source.store]\ndir = \"x\""),
            "several.toml: sources a and b have the same directory, x",
        ),
        (
            source("a", archive) + &source("b", archive),
            "several.toml: sources a and b have the same archive, arc",
        ),
        (
            b.clone() + &source("c", "listen = \"127.0.0.1:3310\""),
            "several.toml: sources b and c listen on the same address, 127.0.0.1:3310",
        ),
        (source("a", "listen = \"127.0.0.1:3307\""), "several.toml: source a listens where the relay does"),
        (
            a.clone() + &account("source = \"b\""),
            "several.toml: account u may read the source b, which there is not",
        ),
        (
            a.clone() + &b.replace("source.password", "repl.password"),
            "several.toml: source b: user repl has another password there than at another source",
        ),
        (
            "[source]\nservers = [\"mysql://repl@db1\"]\npassword_file = \"source.password\"\nname = \"a\"\n"
                .into(),
            "several.toml: source: name: expected in a [[source]] table",
        ),
        ("source = 1\n".into(), "several.toml line 1: invalid type: integer `1`, expected a table [source]"),
    ] {
        let ran = check(&tables);
        assert!(
            ran.code == Some(2) && ran.stderr.starts_with(&format!("binlogz: {said}")),
            "{said}: {}",
            ran.stderr
        );
    }
    // Nobody is there to be told.
    check(&(a + &b));
    let ran = folder.run(["relay", "reload", "--config=several.toml"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("kept/relay.sock: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("is the relay running?"), "{}", ran.stderr);
}

/// Each kind of server is told with what matters of it, by an account with the rights that a relay needs, and by one without.
#[test]
fn servers_are_asked_what_they_are_and_what_is_missing_is_told() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    let folder = folder();
    secret(&folder, "repl.password", "other\n");
    let new = mysql.sandbox().start().unwrap();
    let without_gtids =
        mysql.sandbox().option("gtid-mode", "OFF").option("enforce-gtid-consistency", "OFF").start().unwrap();
    let mariadb = MariadbSandbox::start(&[("binlog-format", "MIXED"), ("gtid-domain-id", "7")]).unwrap();
    let accounts = "CREATE USER relay IDENTIFIED BY 's3cr3t'; GRANT REPLICATION SLAVE ON *.* TO relay; \
                    CREATE USER nobody IDENTIFIED BY 's3cr3t'";
    for server in [&*new, &*without_gtids, &*mariadb] {
        server.sql(accounts).unwrap();
    }
    let check = |user: &str, servers: &[&SandboxServer], keys: &str| {
        let urls: Vec<_> =
            servers.iter().map(|server| format!("\"mysql://{user}@127.0.0.1:{}\"", server.port())).collect();
        folder.put(
            "relay.toml",
            format!(
                "[source]\nservers = [{}]\npassword_file = \"source.password\"\nget_server_public_key = true\n{keys}\n\
                 [store]\ndir = \"kept\"\n",
                urls.join(", ")
            ),
        );
        let ran = folder.run(["relay", "check-config"]);
        assert!(!folder.path("kept").exists() && ran.stderr.is_empty(), "{}", ran.stderr);
        (ran.code, ran.text().to_owned())
    };
    let at = |server: &SandboxServer| format!("127.0.0.1:{}", server.port());

    let (code, said) = check("relay", &[&new], "");
    let line = format!("{}: MySQL 9.7.4; log_bin 1, server_id ", at(&new));
    assert!(code == Some(0) && said.contains(&line), "{said}");
    assert!(said.contains("gtid_mode ON; its log can be read\n"), "{said}");

    let (code, said) = check("relay", &[&mariadb], "");
    let line = format!("{}: MariaDB 10.11.18; log_bin 1, server_id ", at(&mariadb));
    assert!(code == Some(0) && said.contains(&line), "{said}");
    assert!(said.contains("binlog_format MIXED, gtid_domain_id 7; its log can be read\n"), "{said}");
    assert!(said.contains("binlog_format is MIXED: changes that are logged as statements"), "{said}");
    assert!(said.contains("MariaDB's log is served as received: to its own replicas"), "{said}");

    let (code, said) = check("relay", &[&without_gtids], "");
    assert!(
        code == Some(0) && said.contains("gtid_mode is OFF: replicas follow by file and position"),
        "{said}"
    );
    let (code, said) = check("relay", &[&without_gtids, &new], "");
    let problem = format!(
        "{}: gtid_mode is OFF, and servers of one source are compared by their GTIDs",
        at(&without_gtids)
    );
    assert!(code == Some(1) && said.contains(&problem), "{said}");
    let (code, said) = check("relay", &[&mariadb, &new], "");
    let problem = format!("{}: several servers of one source are told apart", at(&mariadb));
    assert!(code == Some(1) && said.contains(&problem), "{said}");

    for (server, listed) in
        [(&*new, "REPLICATION CLIENT"), (&*mariadb, "BINLOG MONITOR (before 10.5 REPLICATION CLIENT)")]
    {
        let (code, said) = check("nobody", &[server], "start = \"now\"");
        let read = format!("{}: nobody may not read its log (", at(server));
        assert!(
            code == Some(1) && said.contains(&read) && said.contains("GRANT REPLICATION SLAVE ON *.*"),
            "{said}"
        );
        assert!(said.contains(&format!("GRANT {listed} ON *.* to it there")), "{said}");
        // The right to read the log is not the one to list it.
        let (code, said) = check("relay", &[server], "start = \"now\"");
        assert!(code == Some(1) && !said.contains("may not read") && said.contains(listed), "{said}");
    }

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    folder.put(
        "relay.toml",
        format!(
            "[source]\nservers = [\"mysql://relay@127.0.0.1:{port}\"]\npassword_file = \"source.password\"\n[store]\ndir = \"kept\"\n"
        ),
    );
    let ran = folder.run(["relay", "check-config"]);
    let said = format!("127.0.0.1:{port}: it can't be asked: ");
    assert!(ran.code == Some(1) && ran.text().contains(&said), "{}", ran.text());
    folder.run(["relay", "check-config", "--offline"]).is_done();
}
