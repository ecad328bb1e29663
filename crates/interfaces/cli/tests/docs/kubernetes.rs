//! The manifests of packaging/kubernetes do what they say: the relay starts with their configuration and answers their probes, and
//! the jobs' commands archive and check. `scripts/check-kubernetes.sh` compares them with Kubernetes' schemas.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

use crate::common::Folder;
use crate::pages::{read, root};

const STARTED_WITHIN: Duration = Duration::from_secs(120);

/// The text of `relay.toml` in the ConfigMap.
fn configuration(manifest: &str) -> String {
    let (_, block) = manifest.split_once("  relay.toml: |\n").unwrap();
    let lines = block.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.trim_start_matches("    "))).collect()
}

/// The words of a list such as `args: ["archive", "check"]`.
fn list(manifest: &str, key: &str) -> Vec<String> {
    let begin = format!(" {key}: [");
    let line = manifest.lines().find(|line| line.contains(&begin)).unwrap_or_else(|| panic!("no {key}"));
    let (_, words) = line.split_once(&begin).unwrap();
    let words = words.trim_end_matches(']').split(", ");
    words.map(|word| word.trim_matches(['"', '\'']).to_owned()).collect()
}

/// The paths that probes, or Prometheus, ask for.
fn paths(manifest: &str) -> Vec<&str> {
    manifest
        .match_indices(" path: /")
        .filter_map(|(at, key)| manifest[at + key.len() - 1..].split(',').next())
        .collect()
}

/// A relay that ends with its test.
struct RelayOfManifest(Child);

impl Drop for RelayOfManifest {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the relay with the arguments and the configuration of the manifest, beside this server; its HTTP port.
fn start(folder: &Folder, manifest: &str, source: &MysqlSandbox) -> (RelayOfManifest, u16) {
    let servers = r#"["mysql://repl@mysql-0.mysql", "mysql://repl@mysql-1.mysql"]"#;
    let there = configuration(manifest);
    assert!(there.contains(servers), "{there}");
    let at = folder.path("").display().to_string();
    let here = there
        .replace(servers, &format!(r#"["mysql://repl@127.0.0.1:{}"]"#, source.port()))
        .replace("/etc/binlogz/secrets/", &format!("{at}/"))
        .replace("/var/lib/binlogz/", &format!("{at}/"))
        .replace("0.0.0.0:3307", "127.0.0.1:0")
        .replace("0.0.0.0:3308", "127.0.0.1:0");
    folder.put("relay.toml", here);
    folder.put("source.password", "repl\n");
    let password = folder.path("source.password");
    std::fs::set_permissions(password, std::os::unix::fs::PermissionsExt::from_mode(0o440)).unwrap();
    let arguments = list(manifest, "args");
    assert_eq!(arguments, ["relay", "run", "--config", "/etc/binlogz/relay.toml"]);
    folder.run(["relay", "check-config", "--config", "relay.toml"]).is_done();
    let arguments = arguments.iter().map(|word| word.replace("/etc/binlogz/", ""));
    let mut child = folder.binlogz(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let relay = RelayOfManifest(child);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || log.lines().map_while(Result::ok).all(|line| tell.send(line).is_ok()));
    let begun = Instant::now();
    loop {
        let line = told.recv_timeout(STARTED_WITHIN.saturating_sub(begun.elapsed())).unwrap();
        let port = line.split_once("status on http://127.0.0.1:").and_then(|(_, rest)| rest.split_once('/'));
        if let Some((port, _)) = port {
            // The thread goes on reading, so that the relay never waits for its log to be read.
            std::thread::spawn(move || told.iter().count());
            return (relay, port.parse().unwrap());
        }
    }
}

/// The status line of an answer to a kubelet, which names the pod by its address.
fn asked(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 10.1.2.3:3308\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn the_relay_of_the_manifest_answers_its_probes() -> Result<(), Box<dyn std::error::Error>> {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().start()?;
    let manifest = read("packaging/kubernetes/relay.yaml");
    let folder = Folder::new();
    let (_relay, port) = start(&folder, &manifest, &source);
    let mut probes = paths(&manifest);
    assert_eq!(probes.len(), 3, "{probes:?}");
    let monitor = read("packaging/kubernetes/service-monitor.yaml");
    probes.extend(paths(&monitor));
    let begun = Instant::now();
    for path in probes {
        while asked(port, path) != "HTTP/1.1 200 OK" {
            assert!(begun.elapsed() < STARTED_WITHIN, "{path}: {}", asked(port, path));
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}

#[test]
fn the_jobs_of_the_manifest_archive_and_check() {
    let manifest = read("packaging/kubernetes/archive.yaml");
    let folder = Folder::new();
    let archive = folder.path("archive").display().to_string();
    let place = "s3://backup/mysql-0";
    assert_eq!(manifest.matches(place).count(), 2);
    let [shell, option, script] = &list(&manifest, "command")[..] else {
        panic!("no command of three words")
    };
    let script = script
        .replace("/usr/bin/binlogz", env!("CARGO_BIN_EXE_binlogz"))
        .replace("/logs/", &format!("{}/samples/plain/", root().display()));
    let created = Command::new(shell).args([option, &script]).env("ARCHIVE", &archive).output().unwrap();
    let said = String::from_utf8_lossy(&created.stdout);
    assert!(created.status.success() && said.contains("binlog.000009 are archived"), "{created:?}");
    let check = list(&manifest, "args").iter().map(|word| word.replace(place, &archive)).collect::<Vec<_>>();
    let ran = folder.run(&check);
    ran.is_done();
    let checked = folder.run(["archive", "check", "--depth", "presence", "elsewhere"]);
    assert_eq!(checked.code, Some(2), "an archive that isn't there");
}

#[test]
fn configuration_lists_and_paths_are_found() {
    let manifest = "data:\n  relay.toml: |\n    [a]\n    b = 1\n\n    [c]\n---\nx:\n  args: [\"d\", 'e']\n  httpGet: { path: /f, port: g }\n  - { h: i, path: /j, k: l }\n";
    assert_eq!(configuration(manifest), "[a]\nb = 1\n\n[c]\n");
    assert_eq!(list(manifest, "args"), ["d", "e"]);
    assert_eq!(paths(manifest), ["/f", "/j"]);
}
