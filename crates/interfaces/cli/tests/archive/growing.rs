//! Logs that are still being written: archived as far as they are whole, replaced when they have grown, and removed
//! again. In a folder and in S3.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Folder, Ran};
use binlogz_figures::grouped;
use binlogz_testkit::s3::{BUCKET, S3Server};
use binlogz_testkit::{Result, Tool, mutate, require_tool};

const NAMES: [&str; 3] = ["binlog.000001", "binlog.000002", "binlog.000003"];
/// Two that follow each other, the second of 300 transactions.
const GROWING: [&str; 2] = ["binlog.000004", "binlog.000005"];
/// Where the flag of a log in use stands, in its format description.
const IN_USE_AT: usize = 4 + 17;

/// How long a server may take to fill a few logs.
const PATIENCE: Duration = Duration::from_secs(300);

/// An archive, and the logs beside it.
struct Place {
    folder: Folder,
    archive: String,
    server: Option<S3Server>,
}

/// One in a folder, one in S3 where that can be had.
fn places() -> Vec<Place> {
    let folder = Place { folder: Folder::new(), archive: "arc".into(), server: None };
    let s3 = S3Server::start().map(|server| Place {
        folder: Folder::new(),
        archive: format!("s3://{BUCKET}/arc"),
        server: Some(server),
    });
    [Some(folder), s3].into_iter().flatten().collect()
}

impl Place {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.folder.binlogz(["archive"]);
        command.args(args.iter().map(|arg| arg.replace("ARC", &self.archive)));
        command.envs(self.server.iter().flat_map(S3Server::settings));
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The objects that are stored, but for the copy of the manifest.
    fn objects(&self) -> Vec<String> {
        let base = self.server.as_ref().map_or_else(|| self.folder.path(""), S3Server::bucket);
        let names = fs::read_dir(base.join("arc/objects")).into_iter().flatten();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> =
            names.filter(|name| name.ends_with(".binlogz") || name.starts_with(".")).collect();
        names.sort();
        names
    }

    /// By log: whether it is a part, and its bytes.
    fn logs(&self) -> Vec<(String, bool, u64)> {
        let ran = self.run(&["list", "--format", "json", "ARC"]);
        ran.is_done();
        let listed: serde_json::Value = serde_json::from_str(ran.text()).unwrap();
        let logs = listed["logs"].as_array().unwrap().iter();
        logs.map(|log| {
            (
                log["log"].as_str().unwrap().to_owned(),
                log["active"].as_bool().unwrap(),
                log["bytes"].as_u64().unwrap(),
            )
        })
        .collect()
    }

    /// How many whole logs it has.
    fn closed(&self) -> usize {
        self.logs().iter().filter(|(_, active, _)| !active).count()
    }

    fn restored(&self, log: &str) -> Vec<u8> {
        self.run(&["restore", "--force", "--to", "back", "ARC", log]).is_done();
        self.folder.read(&format!("back/{log}"))
    }

    /// Writes the first `size` bytes of a log as its server would have them before it closes it.
    fn grow(&self, name: &str, log: &[u8], size: usize) {
        let mut bytes = log[..size].to_vec();
        bytes[IN_USE_AT] |= 1;
        self.folder.put(name, bytes);
    }

    /// Nothing is wrong with the archive, but that the copy of the manifest may be older than it, if a run was killed.
    #[track_caller]
    fn is_whole(&self, was_killed: bool) {
        let ran = self.run(&["check", "ARC"]);
        let uncopied =
            |line: &str| line.starts_with("copy of the manifest: ") && line.ends_with("; nothing is lost");
        let is_uncopied = ran.stderr.is_empty() && ran.text().lines().all(uncopied);
        assert!(ran.code == Some(0) || was_killed && is_uncopied, "{ran:?}");
    }
}

#[test]
fn a_growing_log_is_replaced_by_its_longer_version_and_by_nothing_else() {
    for place in places() {
        let logs = GROWING.map(|name| place.folder.sample("plain", name));
        let closed = &logs[1];
        let create = || place.run(&["create", "--include-active", "--to", "ARC", GROWING[0], GROWING[1]]);
        let mut before = 0;
        for part in 1..=4 {
            let size = closed.len() * part / 5;
            place.grow(GROWING[1], closed, size);
            let ran = create();
            ran.is_done();
            assert!(ran.text().ends_with("PURGE BINARY LOGS TO 'binlog.000005';\n"), "{}", ran.text());
            place.is_whole(false);
            let restored = place.restored(GROWING[1]);
            assert!(restored.len() > before && restored.len() <= size, "{} of {size}", restored.len());
            assert!(restored[..] == place.folder.read(GROWING[1])[..restored.len()], "part {part}");
            before = restored.len();
            let listed = place.logs();
            assert_eq!(listed[1], (GROWING[1].to_owned(), true, before as u64));
            // The replaced object is gone.
            assert_eq!(place.objects().len(), if part == 1 { 1 } else { 2 }, "part {part}");
        }
        let ran = create();
        assert!(ran.text().contains("binlog.000005: is in the archive already\n"), "{}", ran.text());

        let size = place.folder.read(GROWING[1]).len();
        place.grow(GROWING[1], closed, closed.len() / 5);
        let ran = create();
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("which the archive has of it"), "{}", ran.stderr);
        let mut other = closed.clone();
        other[300] ^= 1;
        mutate::mend_checksums(&mut other);
        for is_closed in [false, true] {
            place.grow(GROWING[1], &other, size);
            if is_closed {
                place.folder.put(GROWING[1], &other);
            }
            let ran = create();
            assert_eq!(ran.code, Some(2));
            assert!(ran.stderr.contains("of the part in the archive: this is another log"), "{}", ran.stderr);
        }
        assert_eq!(place.logs()[1], (GROWING[1].to_owned(), true, before as u64));

        // Closed, it is archived whole, whether or not parts are wanted.
        place.folder.put(GROWING[1], closed);
        let ran = place.run(&["create", "--to", "ARC", GROWING[0], GROWING[1]]);
        ran.is_done();
        assert_eq!(place.logs()[1], (GROWING[1].to_owned(), false, closed.len() as u64));
        assert!(place.restored(GROWING[0]) == logs[0] && place.restored(GROWING[1]) == *closed);
        place.is_whole(false);
        // A part of it is another log now.
        place.grow(GROWING[1], closed, size);
        assert_eq!(create().code, Some(2));
        place.is_whole(false);
    }
}

#[test]
fn logs_are_removed_with_their_objects_and_leave_no_gap_unless_asked() {
    for place in places() {
        for name in NAMES {
            place.folder.sample("plain", name);
            place.run(&["create", "--to", "ARC", name]).is_done();
        }
        let objects = place.objects();
        let ran = place.run(&["remove", "ARC", NAMES[1]]);
        let line = "without binlog.000002 there is a gap between binlog.000001 and binlog.000003; --force removes it";
        ran.fails(&format!("{}: {line}", place.archive));
        place
            .run(&["remove", "ARC", NAMES[0], "binlog.000009"])
            .fails(&format!("{}: holds no log binlog.000009", place.archive));
        let ran = place.run(&["remove", "--dry-run", "--force", "ARC", NAMES[1]]);
        ran.is_done();
        let lines: Vec<_> = ran.text().lines().collect();
        assert_eq!(lines[0], "binlog.000002: would be removed");
        assert!(lines.len() == 2 && lines[1].ends_with(".binlogz: would be deleted"), "{lines:?}");
        assert_eq!((place.logs().len(), place.objects()), (3, objects));

        place.run(&["remove", "--force", "ARC", NAMES[1]]).is_done();
        assert_eq!((place.logs().len(), place.objects().len()), (2, 2));
        let checked = place.run(&["check", "ARC"]);
        assert!(checked.code == Some(1) && checked.text().contains(": gap: "), "{checked:?}");
        place.run(&["create", "--to", "ARC", NAMES[1]]).is_done();
        place.is_whole(false);
        place.run(&["remove", "ARC", NAMES[0]]).is_done();
        place.is_whole(false);
        assert_eq!((place.logs().len(), place.objects().len()), (2, 2));
        place.run(&["remove", "ARC", NAMES[1], NAMES[2]]).is_done();
        assert_eq!((place.logs().len(), place.objects().len()), (0, 0));

        // Of two logs in one object the first leaves it there.
        place.run(&["create", "--to", "ARC", NAMES[0], NAMES[1]]).is_done();
        let ran = place.run(&["remove", "ARC", NAMES[0]]);
        assert!(ran.text().contains("stays, since other logs are in it"), "{}", ran.text());
        place.is_whole(false);
        place.run(&["remove", "ARC", NAMES[1]]).is_done();
        assert_eq!(place.objects().len(), 0);
    }
}

#[test]
fn killed_anywhere_the_archive_is_whole_and_what_was_left_behind_is_found() {
    for place in places() {
        let first = place.folder.sample("plain", GROWING[0]);
        let closed = place.folder.sample("plain", GROWING[1]);
        place.run(&["create", "--to", "ARC", GROWING[0]]).is_done();
        let create = ["create", "--include-active", "--to", "ARC", GROWING[1]];
        for round in 1..=12 {
            place.grow(GROWING[1], &closed, closed.len() * round / 12);
            // A run takes longer where the machine is busy: the kills are spread over the time of one.
            let begin = Instant::now();
            if round % 4 == 0 {
                place.run(&["create", "--include-active", "--to", "ARC", GROWING[1]]).is_done();
            }
            let time = begin.elapsed().max(Duration::from_millis(60));
            kill_after(place.spawn(&create), time * (round as u32 % 6) / 6);
            place.is_whole(true);
            if place.logs().len() == 2 {
                let restored = place.restored(GROWING[1]);
                assert!(restored[..] == place.folder.read(GROWING[1])[..restored.len()], "round {round}");
                kill_after(
                    place.spawn(&["remove", "ARC", GROWING[1]]),
                    Duration::from_millis(round as u64 * 3),
                );
                place.is_whole(true);
            }
            assert!(place.restored(GROWING[0]) == first);
        }
        place.folder.put(GROWING[1], &closed);
        place.run(&create).is_done();
        assert!(place.restored(GROWING[1]) == closed);
        // Files that a run left today stay: it may still be running.
        fs::create_dir_all(place.folder.path("arc/objects")).unwrap();
        let before = place.objects();
        place.run(&["remove", "ARC"]).is_done();
        assert_eq!(place.objects(), before);
        place.run(&["remove", "--orphan-age", "0", "ARC"]).is_done();
        assert_eq!(place.objects().len(), 2, "{:?}", place.objects());
        place.is_whole(false);
    }
}

fn kill_after(mut child: Child, time: Duration) {
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The observations of a cron job.
#[derive(Debug, Default)]
struct Seen {
    rounds: usize,
    parts: usize,
    purge_lines: usize,
    longest: Duration,
}

#[test]
fn list_marks_the_part_of_a_log_in_use() {
    let folder = Folder::new();
    let place = Place { folder, archive: "arc".into(), server: None };
    let logs = GROWING.map(|name| place.folder.sample("plain", name));
    place.grow(GROWING[1], &logs[1], logs[1].len() / 2);
    place.run(&["create", "--include-active", "--to", "ARC", GROWING[0], GROWING[1]]).is_done();
    let ran = place.run(&["list", "--format", "json", "ARC"]);
    let listed: serde_json::Value = serde_json::from_str(ran.text()).unwrap();
    let field = |log: usize, name: &str| listed["logs"][log][name].to_string().trim_matches('"').to_owned();
    let row = |log: usize, name: &str| {
        let [size, packed] =
            ["bytes", "packed_bytes"].map(|name| grouped(field(log, name).parse::<u64>().unwrap()));
        let time = "2026-11-21 04:37:38 UTC".to_owned();
        vec![name.to_owned(), size, packed, time.clone(), time, field(log, "gtids")]
    };
    let ran: Ran =
        place.command(&["list", "--bytes", "--wide", "ARC"]).env("TZ", "UTC").output().unwrap().into();
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect()
    };
    let shown: Vec<_> = ran.text().lines().map(cells).collect();
    assert_eq!(shown[1], ["log", "bytes", "packed bytes", "from", "to", "gtids"]);
    assert_eq!(shown[2..4], [row(0, "binlog.000004"), row(1, "binlog.000005 (part)")]);
}

/// Each second a cron job archives the logs in the folder of a server that writes all the time and rotates its logs, and
/// obeys the line about purging. BINLOGZ_CRON_SECONDS says for how long.
#[test]
fn a_cron_archives_the_logs_of_a_server_under_load() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let seconds = std::env::var("BINLOGZ_CRON_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    for include_active in [false, true] {
        let server = mysql.sandbox().option("max-binlog-size", "1048576").start()?;
        server.sql(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARBINARY(600))",
        )?;
        let place = Place { folder: Folder::new(), archive: "arc".into(), server: None };
        let stop = AtomicBool::new(false);
        let mut seen = Seen::default();
        std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                server.run_client(|stdin| {
                    while !stop.load(Ordering::Relaxed) {
                        let row = "(RANDOM_BYTES(200)), (REPEAT(UUID(), 10))";
                        std::thread::sleep(Duration::from_millis(4));
                        writeln!(stdin, "INSERT INTO d.t (v) VALUES {row}; UPDATE d.t SET v = UUID() ORDER BY id DESC LIMIT 3;")?;
                    }
                    Ok(())
                })
            });
            let end = Instant::now() + Duration::from_secs(seconds);
            // On a busy machine the server takes longer to fill its logs.
            let all_seen = |seen: &Seen| {
                seen.purge_lines > 1 && place.closed() > 2 && (seen.parts > 0 || !include_active)
            };
            while Instant::now() < end || (Instant::now() < end + PATIENCE && !all_seen(&seen)) {
                let begin = Instant::now();
                let logs = server.binlogs().unwrap();
                if let Some(to) = archive_round(&place, &logs, include_active, &mut seen) {
                    keep(&place, &logs, Some(&to));
                    server.sql(&format!("PURGE BINARY LOGS TO '{to}'")).unwrap();
                }
                seen.longest = seen.longest.max(begin.elapsed());
                std::thread::sleep(Duration::from_secs(1).saturating_sub(begin.elapsed()));
            }
            stop.store(true, Ordering::Relaxed);
            load.join().unwrap()
        })?;
        server.flush_binary_logs()?;
        let logs = server.binlogs()?;
        archive_round(&place, &logs, include_active, &mut seen);
        place.is_whole(false);
        keep(&place, &logs[..logs.len() - 1], None);
        let mut bytes = 0;
        let mut closed = 0;
        for log in fs::read_dir(place.folder.path("kept")).unwrap() {
            let log = log.unwrap().path();
            let (name, log) = (name_of(&log), fs::read(log).unwrap());
            closed += 1;
            assert!(place.restored(&name) == log, "{name}");
            bytes += log.len();
        }
        assert_eq!(place.closed(), closed);
        assert!(seen.purge_lines > 0 && closed > 2, "{seen:?}");
        assert_eq!(seen.parts > 0, include_active, "{seen:?}");
        println!(
            "include active: {include_active}, {seen:?}, {} logs, {bytes} bytes, as the server has them",
            closed
        );
    }
    Ok(())
}

fn name_of(log: &Path) -> String {
    log.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Copies logs, as the server has them, before it purges those up to this one.
fn keep(place: &Place, logs: &[PathBuf], to: Option<&str>) {
    fs::create_dir_all(place.folder.path("kept")).unwrap();
    for log in logs.iter().filter(|log| to.is_none_or(|to| name_of(log).as_str() < to)) {
        fs::copy(log, place.folder.path("kept").join(name_of(log))).unwrap();
    }
}

/// Archives the logs; gives the log that the server may purge up to. Checks the line about purging against the archive.
fn archive_round(place: &Place, logs: &[PathBuf], include_active: bool, seen: &mut Seen) -> Option<String> {
    let mut args = vec!["create", "--to", "ARC"];
    args.extend(include_active.then_some("--include-active"));
    args.extend(logs.iter().map(|log| log.to_str().unwrap()));
    let ran = place.run(&args);
    ran.is_done();
    seen.rounds += 1;
    if !place.folder.path("arc/manifest.json").exists() {
        return None; // nothing is closed yet
    }
    let archived = place.logs();
    let mut purge = None;
    if let Some((_, line)) = ran.text().split_once("PURGE BINARY LOGS TO '") {
        let (to, _) = line.split_once('\'').unwrap();
        seen.purge_lines += 1;
        purge = Some(to.to_owned());
        for log in logs.iter().filter(|log| name_of(log).as_str() < to) {
            let size = fs::metadata(log).unwrap().len();
            assert!(archived.contains(&(name_of(log), false, size)), "{to}: {log:?} {size}: {archived:?}");
        }
    }
    let Some((name, _, _)) = archived.iter().find(|(_, active, _)| *active) else { return purge };
    seen.parts += 1;
    let part = place.restored(name);
    let log = logs.iter().find(|log| name_of(log) == *name).unwrap();
    let mut there = fs::read(log).unwrap();
    there.truncate(part.len());
    there[IN_USE_AT] |= 1;
    assert!(part == there, "{name}");
    purge
}
