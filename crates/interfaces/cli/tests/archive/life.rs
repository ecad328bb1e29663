//! The life of an archive: what `list` shows of one and of many; prune, merge and copy, also when they are killed.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use binlogz_testkit::mutate::seed;
use binlogz_testkit::random::Random;
use binlogz_testkit::s3::{BUCKET, FaultProxy, RequestFault, S3Server};
use binlogz_testkit::setting;
use serde_json::Value;

use crate::common::{Folder, Ran};

const FILES: [&str; 4] = ["binlog.000001", "binlog.000002", "binlog.000003", "binlog.000005"];

fn json(ran: &Ran) -> Value {
    serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ran.text(), ran.stderr))
}

/// Archives of these logs of the samples, each by a run of its own.
fn archive(folder: &Folder, archive: &str, names: &[&str]) {
    for name in names {
        folder.sample("plain", name);
        folder.run(["archive", "create", "--to", archive, name]).is_done();
    }
}

#[test]
fn a_list_tells_how_far_an_archive_reaches_and_where_it_has_gaps() {
    let folder = Folder::new();
    archive(&folder, "arc", &FILES);
    let listed = json(&folder.run(["archive", "list", "--format", "json", "arc"]));
    let logs = listed["logs"].as_array().unwrap();
    let size: u64 = FILES.iter().map(|name| folder.path(name).metadata().unwrap().len()).sum();
    assert_eq!((&listed["log_count"], &listed["bytes"]), (&4.into(), &size.into()), "{listed}");
    assert_eq!(listed["first"]["time"], logs[0]["first_time"], "{listed}");
    assert_eq!(listed["last"]["time"], logs[3]["last_time"], "{listed}");
    // The samples are of one server: its last transaction ends the last set.
    let last = listed["last"]["gtids"][0].as_str().unwrap();
    let (uuid, number) = last.split_once(':').unwrap();
    let set = logs[3]["gtids"].as_str().unwrap();
    assert!(set.starts_with(uuid) && set.ends_with(number), "{last} of {set}");
    assert_eq!(listed["gaps"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["unbroken_since"]["log"], FILES[3], "{listed}");

    let ran = folder.run(["archive", "list", "arc"]);
    ran.is_done();
    let lines: Vec<_> = ran.text().lines().collect();
    assert!(lines[7].starts_with("4 logs, "), "{lines:?}");
    assert!(lines[8].starts_with("last restorable moment: ") && lines[8].ends_with(last), "{lines:?}");
    assert!(lines[9].starts_with(&format!("{}: gap: {uuid}", FILES[3])), "{lines:?}");
    assert!(lines[10].starts_with("no gap since ") && lines[10].contains(FILES[3]), "{lines:?}");
    // The other log that is given fills the gap.
    archive(&folder, "arc", &["binlog.000004"]);
    let listed = json(&folder.run(["archive", "list", "--format", "json", "arc"]));
    assert_eq!(
        (&listed["gaps"], &listed["unbroken_since"]),
        (&Value::Array(vec![]), &listed["first"]),
        "{listed}"
    );
}

#[test]
fn a_place_with_several_archives_has_a_row_for_each() {
    let folder = Folder::new();
    archive(&folder, "all/db1", &FILES[..2]);
    archive(&folder, "all/db2", &FILES[3..]);
    archive(&folder, "all/db2/lineage-2", &FILES[..1]);
    fs::create_dir(folder.path("all/empty")).unwrap();
    let listed = json(&folder.run(["archive", "list", "--format", "json", "all"]));
    let names = |listed: &Value| {
        let archives = listed["archives"].as_array().unwrap().iter();
        archives.map(|archive| archive["archive"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&listed), ["all/db1", "all/db2", "all/db2/lineage-2"]);
    let ran = folder.run(["archive", "list", "all"]);
    ran.is_done();
    assert_eq!(ran.text().lines().filter(|line| line.starts_with("  all/")).count(), 3, "{}", ran.text());
    // An archive with others below it is itself unless they are asked for.
    assert_eq!(json(&folder.run(["archive", "list", "--format", "json", "all/db2"]))["log_count"], 1);
    let listed = json(&folder.run(["archive", "list", "--format", "json", "--archives", "all/db2"]));
    assert_eq!(names(&listed).len(), 2);

    fs::write(folder.path("all/db1/manifest.json"), "{").unwrap();
    fs::remove_file(folder.path("all/db1/objects/manifest-copy.json")).unwrap();
    let ran = folder.run(["archive", "list", "--format", "prometheus", "all"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("binlogz: all/db1: manifest: "), "{}", ran.stderr);
    assert!(ran.text().contains("binlogz_archive_logs{archive=\"all/db2\"} 1\n"), "{}", ran.text());
    let last = "# TYPE binlogz_archive_last_restorable_timestamp_seconds gauge\n";
    assert!(ran.text().contains(last), "{}", ran.text());

    folder
        .run(["archive", "list", "all/empty"])
        .fails("all/empty: is no archive: neither it nor a place below it has a manifest.json");
}

#[test]
fn an_archive_is_pruned_merged_and_copied() {
    let folder = Folder::new();
    archive(&folder, "arc", &FILES);
    // Nothing is so old; the last log is always kept.
    let ran = folder.run(["archive", "prune", "--keep", "40000d", "arc"]);
    ran.is_done();
    assert!(
        ran.text().starts_with("no log is older than what is kept\nbinlog.000001 is the first that "),
        "{}",
        ran.text()
    );
    let absent = "00000000-0000-0000-0000-000000000001:7";
    let ran = folder.run(["archive", "prune", "--keep-after", absent, "arc"]);
    ran.is(1, "", &format!("binlogz: arc: {absent} is not in the archive\n"));
    let before = folder.run(["archive", "list", "arc"]).stdout;
    let ran = folder.run(["archive", "prune", "--keep-bytes", "1", "--dry-run", "arc"]);
    assert!(
        ran.text().starts_with("binlog.000001 to binlog.000003: would be removed: 3 logs until "),
        "{}",
        ran.text()
    );
    assert_eq!(folder.run(["archive", "list", "arc"]).stdout, before);
    assert_eq!(folder.run(["archive", "prune", "arc"]).code, Some(2));

    let ran = folder.run(["archive", "merge", "arc"]);
    assert!(
        ran.text().starts_with("4 logs merged: 4 objects, ") && ran.text().contains(" -> 1 object, "),
        "{}",
        ran.text()
    );
    folder.run(["archive", "merge", "arc"]).is(0, "nothing to merge\n", "");
    let ran = folder.run(["archive", "copy", "arc", "copy"]);
    ran.is_done();
    assert!(ran.text().ends_with("copy: 4 logs, 4 of them new\n"), "{}", ran.text());
    // A restore goes on after a prune; the copy keeps what was pruned.
    archive(&folder, "arc", &["binlog.000006"]);
    let ran = folder.run(["archive", "prune", "--keep-bytes", "1", "--grace", "0", "arc"]);
    assert!(ran.text().contains("\nbinlog.000006 is the first that is kept, since "), "{}", ran.text());
    assert!(ran.text().contains("\n1 object, ") && ran.text().contains(": deleted\n"), "{}", ran.text());
    let ran = folder.run(["archive", "copy", "arc", "copy"]);
    assert!(ran.text().ends_with("copy: 5 logs, 1 of them new\n"), "{}", ran.text());
    // Damage in the copy is found and mended by the next run; there is a gap in any case.
    let check = || folder.run(["archive", "check", "copy"]).text().to_owned();
    let before = check();
    let mut names = fs::read_dir(folder.path("arc/objects")).unwrap().map(|entry| entry.unwrap().file_name());
    let name = names.find(|name| name.to_string_lossy().ends_with(".binlogz")).unwrap();
    let object = folder.path("copy/objects").join(name);
    let mut bytes = fs::read(&object).unwrap();
    bytes[100] ^= 1;
    fs::write(&object, bytes).unwrap();
    assert!(check() != before);
    let ran = folder.run(["archive", "copy", "--size-only", "arc", "copy"]);
    assert!(ran.text().contains(": of the same size there, not read\n"), "{}", ran.text());
    let ran = folder.run(["archive", "copy", "--dry-run", "arc", "copy"]);
    assert!(ran.text().contains(": would be compared\n"), "{}", ran.text());
    assert!(check() != before);
    let ran = folder.run(["archive", "copy", "arc", "copy"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("; it was replaced\n"), "{}", ran.stderr);
    assert!(ran.text().contains(": damaged there, replaced\n"), "{}", ran.text());
    assert_eq!(check(), before);
    folder.run(["archive", "restore", "--to", "back", "copy"]).is_done();
    let itself = "arc/: is the archive itself, expected another place for its copy";
    folder.run(["archive", "copy", "arc", "arc/"]).fails(itself);
    for name in FILES.iter().chain(&["binlog.000006"]) {
        assert!(folder.read(&format!("back/{name}")) == folder.read(name), "{name}");
    }
}

/// An archive in a folder or in S3, and a copy of it.
struct Place {
    folder: Folder,
    s3: Option<S3>,
}

/// The server, and the way to it that is bad at times.
struct S3 {
    server: S3Server,
    bad: FaultProxy,
    faults: Arc<Faults>,
}

/// The faults of requests: each has one with a chance of one in this many.
struct Faults {
    one_in: usize,
    random: Mutex<Random>,
    count: AtomicUsize,
}

impl Faults {
    fn next(&self) -> RequestFault {
        let mut random = self.random.lock().unwrap();
        if random.below(self.one_in) > 0 {
            return RequestFault::Pass;
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let code = |code: &str| format!("<Error><Code>{code}</Code><Message>again</Message></Error>");
        match random.below(8) {
            0 => RequestFault::Answer(500, code("InternalError")),
            1 => RequestFault::Answer(503, code("SlowDown")),
            2 => RequestFault::CutUpload,
            3 => RequestFault::CutAnswer,
            4 => RequestFault::Reset,
            5 => RequestFault::Stall(Duration::from_millis(1500)),
            // The most hostile one: it was done.
            _ => RequestFault::LoseAnswer,
        }
    }
}

impl S3 {
    fn start(seed: u64) -> Option<S3> {
        let server = S3Server::start()?;
        let one_in = setting("BINLOGZ_LIFE_FAULT_IN", 12) as usize;
        let random = Mutex::new(Random::new(seed));
        let faults = Arc::new(Faults { one_in, random, count: AtomicUsize::new(0) });
        let of_proxy = Arc::clone(&faults);
        let bad = FaultProxy::start(&server, move |_, _| of_proxy.next()).unwrap();
        Some(S3 { server, bad, faults })
    }
}

impl Place {
    fn named(&self, name: &str) -> String {
        if self.s3.is_some() { format!("s3://{BUCKET}/{name}") } else { name.to_owned() }
    }

    /// On the good way.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.folder.binlogz(["archive"]);
        command.args(args).envs(self.s3.iter().flat_map(|s3| s3.server.settings()));
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// On the good way, or the bad one if there is one.
    fn spawn(&self, args: &[&str], is_bad: bool) -> Child {
        let mut command = self.command(args);
        if is_bad {
            command.envs(self.s3.iter().flat_map(|s3| s3.bad.settings())).env("AWS_TIMEOUT", "1 second");
        }
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Every block and every SHA-256 is right. The same log comes under several names, and a killed run leaves the manifest
    /// without its copy.
    fn is_whole(&self, archive: &str, what: &str) {
        let ran = self.run(&["check", archive]);
        if ran.stderr.contains("is no archive") || ran.stderr.contains("there is no such folder") {
            return;
        }
        let known = [": gap: ", ": overlap: ", "copy of the manifest: ", " whole"];
        let is_known = |line: &str| known.iter().any(|known| line.contains(known));
        assert_eq!(ran.stderr, "", "{what}");
        assert!(ran.text().lines().all(is_known), "{what}: {}", ran.text());
    }

    /// The restored logs are the archived ones. Gives their number.
    fn is_same(&self, restored: &str, what: &str) -> usize {
        let mut count = 0;
        for entry in fs::read_dir(self.folder.path(restored)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let back = self.folder.read(&format!("{restored}/{name}"));
            assert!(back == self.folder.read(&name), "{name}: {what}");
            count += 1;
        }
        count
    }
}

/// Counts of the events in a life.
#[derive(Debug, Default)]
struct Counts {
    logs: usize,
    runs: usize,
    killed: usize,
    failed: usize,
    restores: usize,
    restored: usize,
}

/// Runs that create, merge, prune and copy are killed at any moment, or meet faults of networks and services, while
/// another one restores. After each, the archive and its copy are whole. Restored logs equal the archived ones, and no
/// restore that has begun is disturbed.
#[test]
fn runs_that_are_killed_leave_archives_whole() {
    let seconds = setting("BINLOGZ_LIFE_SECONDS", 4);
    let seed = seed();
    let mut random = Random::new(seed);
    let folder = Place { folder: Folder::new(), s3: None };
    // S3 in the long version alone.
    let s3 = (seconds > 60).then(|| S3::start(seed)).flatten();
    let s3 = s3.map(|s3| Place { folder: Folder::new(), s3: Some(s3) });
    let places: Vec<_> = [Some(folder), s3].into_iter().flatten().collect();
    for place in &places {
        let until = Instant::now() + Duration::from_secs(seconds) / places.len() as u32;
        let (arc, copy) = (place.named("arc"), place.named("copy"));
        let mut counts = Counts::default();
        while Instant::now() < until {
            counts.logs += 1;
            let sample = crate::common::sample(
                "plain",
                ["binlog.000008", "binlog.000009", "binlog.000004"][random.below(3)],
            );
            let name = format!("log.{:06}", counts.logs);
            place.folder.put(&name, &sample);
            let keep = (20_000 + random.below(200_000)).to_string();
            let grace = ["0", "1s", "12h"][random.below(3)];
            // In half of the rounds nothing is killed, but all requests are in danger.
            let is_bad = place.s3.is_some() && random.below(2) == 0;
            // Objects stay for a restore as long as that grace is.
            let back = format!("back-{}", counts.logs);
            let restore = ["restore", "--to", &back, &arc];
            let reader = (grace == "12h" && counts.logs > 1).then(|| place.spawn(&restore, false));
            let mut told = vec![format!("round {}, SEED={seed}", counts.logs)];
            for _ in 0..3 {
                let args: Vec<&str> = match random.below(4) {
                    0 => vec!["create", "--level", "fast", "--to", &arc, &name],
                    1 => vec!["merge", "--level", "fast", "--grace", grace, &arc],
                    2 => vec!["prune", "--keep-bytes", &keep, "--grace", grace, &arc],
                    _ => vec!["copy", &arc, &copy],
                };
                let mut child = place.spawn(&args, is_bad);
                counts.runs += 1;
                if !is_bad {
                    std::thread::sleep(Duration::from_millis(random.below(120) as u64));
                    if child.try_wait().unwrap().is_none() {
                        counts.killed += 1;
                        child.kill().unwrap();
                    }
                }
                let ran = Ran::from(child.wait_with_output().unwrap());
                told.push(format!("{} -> {:?} {}", args.join(" "), ran.code, ran.stderr.trim()));
                if let (true, Some(1..)) = (is_bad, ran.code) {
                    counts.failed += 1;
                    println!("{}", told.last().unwrap());
                }
            }
            place.run(&["create", "--level", "fast", "--to", &arc, &name]).is_done();
            let what = told.join("; ");
            place.is_whole(&arc, &what);
            place.is_whole(&copy, &what);
            if let Some(reader) = reader {
                let ran = Ran::from(reader.wait_with_output().unwrap());
                let is_empty = ran.stderr.contains("is no archive") || ran.stderr.contains("no such folder");
                assert!(is_empty || (ran.code, ran.stderr.as_str()) == (Some(0), ""), "{ran:?}: {what}");
                if !is_empty {
                    counts.restored += place.is_same(&back, &what);
                    counts.restores += 1;
                    fs::remove_dir_all(place.folder.path(&back)).unwrap();
                }
            }
        }
        // The last runs aren't killed.
        for args in [&["merge", "--grace", "0", &arc][..], &["copy", &arc, &copy]] {
            let ran = place.run(args);
            assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        }
        place.run(&["restore", "--to", "back", &arc]).is_done();
        let left = place.is_same("back", "at the end");
        let Counts { logs, runs, killed, failed, restores, restored } = counts;
        let faults = place.s3.as_ref().map_or(0, |s3| s3.faults.count.load(Ordering::Relaxed));
        println!(
            "{arc}: {logs} rounds, {runs} runs, {killed} killed, {faults} faults of requests, of which {failed} ended a run, {restores} restores \
             of {restored} logs meanwhile, {left} logs left, SEED={seed}"
        );
    }
}
