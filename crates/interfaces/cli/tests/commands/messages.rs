//! A newcomer's mistakes, and the line that helps.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use crate::common::{Folder, wait_for};
use crate::terminal::commands;

#[test]
fn an_index_is_called_one() {
    let folder = Folder::new();
    folder.put("binlog.index", "./binlog.000001\n");
    for command in [&["verify"][..], &["stats"], &["compress", "--output", "small"], &["advise"]] {
        folder.run(command.iter().chain(&["binlog.index"])).fails(
            "binlog.index: not a binary log: it begins with 2e 2f 62 69, expected fe 62 69 6e; this is the index, which \
             lists the logs",
        );
    }
}

#[test]
fn an_empty_file_is_empty() {
    let folder = Folder::new();
    folder.put("none", "");
    for command in [&["verify"][..], &["stats"], &["compress", "--output", "small"], &["advise"]] {
        folder.run(command.iter().chain(&["none"])).fails("none: is empty, expected a binary log");
    }
    let ran = folder.run(["dump", "none"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "ERROR: none: is empty, expected a binary log\n"));
}

#[test]
fn numbers_of_threads_begin_at_one() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    for (command, option) in [
        (&["compress", "--output", "small"][..], "--jobs"),
        (&["verify"], "--jobs"),
        (&["stats"], "--jobs"),
        (&["archive", "create", "--to", "kept"], "--jobs"),
        (&["advise"], "--jobs"),
        (&["advise"], "--last"),
    ] {
        let ran = folder.run(command.iter().chain(&[option, "0", "binlog.000009"]));
        let said = format!(
            "binlogz: invalid value '0' for '{option} <N>': expected a number above 0\n\nFor more information, try \
             '--help'.\n"
        );
        assert_eq!((ran.code, ran.text(), ran.stderr.as_str()), (Some(2), "", said.as_str()), "{command:?}");
    }
}

#[test]
fn a_baseline_of_doctor_is_a_document_of_doctor() {
    let folder = Folder::new();
    folder.put("binlog.index", "./binlog.000001\n");
    folder.put("other.json", "{\"servers\": 3}");
    for name in ["binlog.index", "other.json"] {
        folder
            .run(["doctor", "--since", name, "mysql://x@127.0.0.1:1"])
            .fails(&format!("{name}: is no baseline, expected the JSON document that doctor --save wrote"));
    }
}

#[test]
fn advise_and_doctor_take_a_server_in_the_same_ways() {
    let folder = Folder::new();
    // Held, so that nobody answers there.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _socket = UnixListener::bind(folder.path("mysql.sock")).unwrap();
    let url = format!("mysql://x@{closed}");
    let account = format!("x@{closed}");
    for server in [url.as_str(), account.as_str(), &closed.to_string()] {
        for command in ["advise", "doctor"] {
            let ran = folder.run([command, "--no-defaults", "--connect-timeout=5", server]);
            let said = format!("connect to {closed}: Connection refused (os error 111)\n");
            assert!(ran.stderr.ends_with(&said), "{command} {server}: {}", ran.stderr);
            assert_eq!(ran.code, Some(2));
        }
    }
    let socket = folder.path("mysql.sock").display().to_string();
    drop(_socket);
    for command in ["advise", "doctor"] {
        let ran = folder.run([command, "--no-defaults", "--connect-timeout=5", &socket]);
        let said = format!("connect to {socket}: Connection refused (os error 111)\n");
        assert!(ran.stderr.ends_with(&said), "{command}: {}", ran.stderr);
    }
}

#[test]
fn a_table_that_is_not_there_names_its_likely_neighbours() {
    let folder = Folder::with_sample("plain", "binlog.000004");
    let said = "binlogz: warning: sbtest.sbtset1: no such table is in these logs; there are sbtest.sbtest1, sbtest.sbtest2 and \
                sbtest.sbtest3\n";
    let asked = "sbtest.sbtset1";
    for command in [&["rows", asked][..], &["undo", "--table", asked], &["redo", "--table", asked]] {
        let ran = folder.run(command.iter().chain(&["binlog.000004"]));
        assert!(ran.code == Some(1) && ran.stderr.ends_with(said), "{command:?}: {}", ran.stderr);
    }
    for (command, code) in [
        // It is there; none is like it.
        (&["rows", "sbtest.sbtest1", "--where", "@1 = -1"][..], 1),
        (&["rows", "shop.invoices"], 1),
        (&["undo", "--table", "sbtest.sbtest1", "--operation", "DELETE"], 1),
    ] {
        let ran = folder.run(command.iter().chain(&["binlog.000004"]));
        assert!(!ran.stderr.contains("no such table"), "{command:?}: {}", ran.stderr);
        assert!(ran.code == Some(code) || ran.code == Some(0), "{command:?}: {}", ran.stderr);
    }
}

#[test]
fn an_address_is_named_once() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let schema = format!("mysql://x@{closed}");
    for command in [
        &["undo", "--no-defaults", "--server", &closed][..],
        &["rows", "a.b", "--no-defaults", "--server", &closed],
        &["rows", "a.b", "--no-defaults", "--schema", &schema, "binlog.000009"],
        &["undo", "--no-defaults", "--apply", &closed, "binlog.000009"],
        &["table-at", "a.b", "--no-defaults", "--at", "now", "--server", &closed],
        &["recover", "--no-defaults", "--from", "binlog.000009", "--to", &closed],
        &["advise", "--no-defaults", &closed],
        &["doctor", "--no-defaults", &closed],
    ] {
        let ran = folder.run(command);
        assert_eq!(ran.stderr.matches(&closed).count(), 1, "{command:?}: {}", ran.stderr);
        let last = ran.stderr.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("binlogz: ") && last.contains("Connection refused"),
            "{command:?}: {}",
            ran.stderr
        );
    }
}

#[test]
fn an_archive_that_ends_too_early_says_where_it_ends() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    secret(&folder, "password");
    folder.run(["archive", "create", "--to", "kept", "binlog.000009"]).is_done();
    let list = folder.run(["archive", "list", "kept"]).text().to_owned();
    let end = list.lines().find_map(|line| line.strip_prefix("last restorable moment: ")).unwrap();
    let end = end.split(',').next().unwrap();
    let said =
        format!("; the archive ends at {end}: FLUSH BINARY LOGS and create again, or --include-active\n");
    let serve = ["archive", "serve", "--listen", "127.0.0.1:0", "--user", "x", "--password-file", "password"];
    let serve = serve.iter().copied().chain(["--until-datetime", "2100-01-01", "kept"]);
    for command in [
        serve.collect::<Vec<_>>(),
        vec!["archive", "cat", "--start-datetime", "2100-01-01", "kept"],
        vec!["archive", "restore", "--to", "out", "--start-datetime", "2100-01-01", "kept"],
    ] {
        let ran = folder.run(&command);
        assert_eq!(ran.code, Some(1), "{command:?}: {}", ran.stderr);
        assert!(ran.stderr.ends_with(&said), "{command:?}: {}", ran.stderr);
    }
    // Before the archive begins, more of it doesn't help.
    let ran = folder.run(["archive", "cat", "--stop-datetime", "2001-01-01", "kept"]);
    assert!(ran.code == Some(1) && !ran.stderr.contains("FLUSH"), "{}", ran.stderr);
}

fn secret(folder: &Folder, name: &str) {
    folder.put_secret(name, "a password\n");
}

#[test]
fn relay_init_says_what_comes_next() {
    let folder = Folder::new();
    folder.run(["relay", "init"]).is(
        0,
        "wrote relay.toml: set the source and the users in it, then\n  binlogz relay run --config relay.toml\n",
        "",
    );
    folder.run(["relay", "init"]).fails("relay.toml: exists already; --force replaces it");
}

#[test]
fn restore_says_what_it_wrote() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    folder.run(["archive", "create", "--to", "kept", "binlog.000009"]).is_done();
    folder.run(["archive", "restore", "--to", "back", "kept"]).is(
        0,
        "back/binlog.000009: restored, 7,361 bytes\n",
        "",
    );
}

#[test]
fn h_alone_is_help_and_with_a_name_the_host() {
    let folder = Folder::new();
    for command in [&["doctor"][..], &["advise"], &["stats"], &["archive", "list"], &["dump"]] {
        let ran = folder.run(command.iter().chain(&["-h"]));
        ran.is_done();
        assert!(ran.text().contains("Usage:"), "{command:?}: {}", ran.text());
    }
    // The summary, with a line for each option; --help has more.
    let [short, long] = ["-h", "--help"].map(|option| folder.run(["doctor", option]).text().lines().count());
    assert!(short + 10 < long, "{short} lines, {long} lines");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let port = closed.port().to_string();
    let ran = folder.run([
        "doctor",
        "--no-defaults",
        "--connect-timeout=5",
        "-h",
        "127.0.0.1",
        "-P",
        &port,
        "-u",
        "x",
    ]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains(&format!("connect to {closed}: Connection refused")), "{}", ran.stderr);
}

/// Dump's help has mysqlbinlog's layout, `connection` is a topic, and the others are programs of their own with such a test.
const OTHER_HELP: [&str; 6] = ["dump", "connection", "sql", "export", "bench", "demo"];
/// Lines of a summary: one screen.
const SUMMARY_LINES_MAX: usize = 50;

#[test]
fn help_begins_with_examples_and_its_summary_is_one_screen() {
    let folder = Folder::new();
    for command in commands(&folder).iter().filter(|command| !OTHER_HELP.contains(&command.as_str())) {
        let help = |option: &str| folder.run(command.split(' ').chain([option])).text().to_owned();
        let [short, long] = ["-h", "--help"].map(help);
        for text in [&short, &long] {
            let headings = ["Examples:", "Arguments:", "Options:", "Commands:"];
            let first = text.lines().find(|line| headings.contains(line));
            assert_eq!(first, Some("Examples:"), "{command}: {text}");
            let is_named = text.contains(&format!("binlogz {command} "))
                || text.contains(&format!("binlogz {command}\n"));
            assert!(is_named, "{command}: {text}");
            // An option stands under one heading.
            assert!(text.matches("\nOptions:\n").count() <= 1, "{command}: {text}");
        }
        let lines = short.lines().count();
        assert!(
            lines <= SUMMARY_LINES_MAX && lines < long.lines().count(),
            "{command} -h: {lines} lines\n{short}"
        );
    }
}

#[test]
fn the_summary_of_dump_is_one_screen_too() {
    let folder = Folder::new();
    let [short, long] = ["-h", "--help"].map(|option| folder.run(["dump", option]).text().to_owned());
    assert!(short.lines().count() <= SUMMARY_LINES_MAX, "{} lines\n{short}", short.lines().count());
    assert!(short.contains("Examples:\n  binlogz dump ") && short.contains("binlogz dump --help"), "{short}");
    let options: Vec<_> = short.lines().filter_map(|line| line.trim_start().strip_prefix('-')).collect();
    assert_eq!(options.len(), 21, "{short}");
    for option in options {
        let name = option.split_once("--").map_or(option, |(_, name)| name);
        let name = name.trim_start_matches('-').split(['=', ' ', '[']).next().unwrap();
        assert!(long.contains(&format!("--{name}")), "{name}");
    }
}

#[test]
fn commands_are_listed_in_groups() {
    let folder = Folder::new();
    let help = folder.run(["--help"]).text().to_owned();
    let headings: Vec<_> =
        help.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
    assert_eq!(
        headings,
        [
            "Examples:",
            "Decide:",
            "Read:",
            "Repair:",
            "Convert:",
            "Keep and serve:",
            "More:",
            "Topics, for binlogz help:",
            "Options:"
        ]
    );
    assert_eq!(folder.run(["help"]).text(), help);
    let topic = folder.run(["help", "connection"]);
    assert!(topic.text().contains("Usage: binlogz <COMMAND> [OPTIONS]\n"), "{}", topic.text());
    assert_eq!(folder.run(["connection"]).text(), topic.text());
}

#[test]
fn a_relay_that_is_not_there_is_told_with_the_way_to_it() {
    let folder = Folder::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let http = closed.to_string();
    for command in [&["status", "--http", &http][..], &["doctor", &http]] {
        folder.run(["relay"].iter().chain(command)).fails(&format!(
            "http://{closed}/: Connection refused (os error 111); a running relay answers where --http, or address of [http] \
             in its configuration, says"
        ));
    }
}

#[test]
fn verbose_tells_of_each_piece_of_work() {
    let folder = Folder::new();
    for name in ["binlog.000004", "binlog.000009"] {
        folder.sample("plain", name);
    }
    for command in
        [&["verify", "-v"][..], &["--verbose", "stats"], &["archive", "create", "-v", "--to", "kept"]]
    {
        let ran = folder.run(command.iter().chain(&["binlog.000004", "binlog.000009"]));
        let told: Vec<_> = ran.stderr.lines().collect();
        assert_eq!((ran.code, told.len()), (Some(0), 2), "{command:?}: {told:?}");
        for (line, name) in told.iter().zip(["1/2 binlog.000004: 77.0 KiB, ", "2/2 binlog.000009: 7.2 KiB, "])
        {
            assert!(line.starts_with(&format!("binlogz: {name}")) && line.ends_with(" s"), "{line}");
        }
    }
    folder.run(["verify", "binlog.000004"]).is_done();
}

#[test]
fn what_is_missing_is_named_with_the_way_to_it() {
    let folder = Folder::new();
    folder.run(["archive", "list", "nowhere"]).fails("nowhere: there is no such folder, expected an archive");
    folder.put("binlog.index", b"./binlog.000001\n");
    for command in ["list", "check", "merge"] {
        folder
            .run(["archive", command, "binlog.index"])
            .fails("binlog.index: is a file, expected an archive's folder");
    }
    folder
        .run(["archive", "create", "--to", "arc", "binlog.index"])
        .fails("binlog.index: is the index, which lists the logs; expected a binary log");
    for command in ["run", "status", "check-config"] {
        folder.run(["relay", command, "--config", "relay.toml"]).fails(
            "relay.toml: No such file or directory (os error 2); `binlogz relay init` writes one, --config names another",
        );
    }
    let mut doctor = folder.binlogz(["doctor", "--no-defaults"]);
    let ran: crate::common::Ran =
        doctor.env("MYSQL_UNIX_PORT", folder.path("none.sock")).output().unwrap().into();
    let last = "binlogz: no server was named: `binlogz doctor HOST` or -h HOST does, and --help has more\n";
    assert!(ran.code == Some(2) && ran.stderr.ends_with(last), "{ran:?}");
}

#[test]
fn a_file_that_is_followed_begins_as_a_log() {
    let folder = Folder::new();
    folder.put("binlog.index", b"./binlog.000001\n");
    folder.put("text", b"a\n");
    for (name, said) in [
        (
            "binlog.index",
            "binlog.index: not a binary log: it begins with 2e 2f 62 69, expected fe 62 69 6e; this is the index, which lists the \
             logs",
        ),
        ("text", "text at 0: the log ends inside an event: 4 bytes expected, 2 are there"),
        ("nowhere", "nowhere: No such file or directory (os error 2)"),
    ] {
        let mut dump = folder.spawn(["dump", "--format=jsonl", "--follow", name]);
        let code = wait_for(&mut dump, Duration::from_secs(60));
        let ran: crate::common::Ran = dump.wait_with_output().unwrap().into();
        assert_eq!((code, ran.stderr.as_str()), (Some(1), &*format!("ERROR: {said}\n")), "{name}");
    }
}

#[test]
fn relays_are_named_in_the_same_way_in_status_and_doctor() {
    let folder = Folder::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = format!(
        "http://{closed}/: Connection refused (os error 111); a running relay answers where --http, or address of [http] in \
         its configuration, says"
    );
    for place in [format!("localhost:{}", closed.port()), format!("http://{closed}/"), closed.to_string()] {
        for command in [&["status", "--http", &place][..], &["doctor", &place]] {
            let ran = folder.run(["relay"].iter().chain(command));
            // A name may have several addresses.
            let is_same = ran.stderr == format!("binlogz: {refused}\n") || place.starts_with("localhost");
            assert!(ran.code == Some(2) && ran.stderr.contains("Connection refused"), "{command:?}: {ran:?}");
            assert!(is_same, "{command:?}: {ran:?}");
        }
    }
    for command in [&["status", "--http", "relay1"][..], &["doctor", "relay1"]] {
        folder.run(["relay"].iter().chain(command)).fails("relay1: expected HOST:PORT");
    }
}

#[test]
fn what_a_restore_needs_is_asked_for_before_any_server() {
    let folder = Folder::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let to = format!("root@{closed}");
    folder
        .run(["recover", "--no-defaults", "--from", "nowhere", "--to", &to])
        .fails("nowhere: No such file or directory (os error 2)");
    let mut serve = folder.binlogz(["archive", "serve", "--user", "repl", "nowhere"]);
    let ran: crate::common::Ran = serve.env_remove("MYSQL_PWD").output().unwrap().into();
    ran.fails("--user: needs a password: --password-file FILE, or MYSQL_PWD in the environment");
}

#[test]
fn dump_says_which_of_its_options_writes_a_file() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    let hint = "HINT: dump has mysqlbinlog's options: --output=FILE (--result-file, -r) writes to a file, -o is --offset=N";
    for (option, code) in [("-oout.sql", 9), ("--nonsense", 2)] {
        let ran = folder.run(["dump", option, "binlog.000009"]);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().last() == Some(hint), option != "--nonsense", "{}", ran.stderr);
    }
    let mut as_mysqlbinlog = folder.mysqlbinlog(["--no-defaults", "-oout.sql", "binlog.000009"]);
    let told = String::from_utf8(as_mysqlbinlog.output().unwrap().stderr).unwrap();
    assert!(told.contains("Unknown suffix") && !told.contains("HINT"), "{told}");
}
