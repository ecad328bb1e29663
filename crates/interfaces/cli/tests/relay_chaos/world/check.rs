//! Checks that every replica has the rows that the source has, once all writes have ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;

use super::{Fault, LIMIT, World, stored};
use crate::common::relay::name;

const FORMS: [&str; 3] = ["", "-z", "-u"];
const SCHEMAS: [&str; 2] = ["sbtest", "d"];
/// `ER_SERVER_SOURCE_FATAL_ERROR_READING_BINLOG` is what a replica makes of the relay's error 1236, which names the reason.
const REASONS: [&str; 1] = ["13114"];
/// `ER_REPLICA_RELAY_LOG_WRITE_FAILURE`: an event came with a checksum that its bytes don't give.
const COULD_NOT_QUEUE: &str = "13122";
/// The rows of the tables as numbers that MySQL and MariaDB agree on.
const ROWS: &str = "SELECT 1, COUNT(*), SUM(CRC32(CONCAT_WS('|', id, k, c, pad))) FROM sbtest.sbtest1 UNION ALL \
                    SELECT 2, COUNT(*), SUM(CRC32(CONCAT_WS('|', id, k, c, pad))) FROM sbtest.sbtest2 UNION ALL \
                    SELECT 3, COUNT(*), SUM(CRC32(body)) FROM d.t ORDER BY 1";

impl World<'_> {
    /// The source has gone silent: relay, files and replicas have what it has.
    pub(super) fn check(&mut self, fault: Fault) {
        let committed: GtidSet = self.source.gtid_executed().unwrap().parse().unwrap();
        let kept = stored::gtids(&stored::files(&self.kept()));
        if !committed.is_subset(&kept) {
            let mut missing = committed.clone();
            missing.subtract(&kept);
            self.wrong(&format!("acknowledged and not in the stored files: {missing}"));
        }
        self.replica_is_equal(fault, &committed);
        self.mariadb_is_equal();
        self.files_are_equal();
    }

    fn replica_is_equal(&mut self, fault: Fault, committed: &GtidSet) {
        let deadline = Instant::now() + LIMIT;
        let mut was_reset = false;
        loop {
            let status = self.replica.replica_status().unwrap();
            let field = |name: &str| status.get(name).cloned().unwrap_or_default();
            // Of a payload that can't be decompressed it says nothing.
            if !field("Last_SQL_Error").is_empty() || field("Replica_SQL_Running") == "No" {
                let (number, error) = (field("Last_SQL_Errno"), field("Last_SQL_Error"));
                self.wrong(&format!("the replica can't apply what it was sent: {number} {error}"));
                if std::mem::replace(&mut was_reset, true) {
                    return;
                }
                // It drops the log that it has fetched, so that the next rounds begin well.
                self.replica.sql("STOP REPLICA; RESET REPLICA; START REPLICA").unwrap();
            }
            let has: GtidSet = self.replica.gtid_executed().unwrap().parse().unwrap();
            if committed.is_subset(&has) {
                break;
            }
            // It stopped for good, with the reason; the cause has gone.
            if field("Replica_IO_Running") == "No" {
                let (number, error) = (field("Last_IO_Errno"), field("Last_IO_Error"));
                println!("{}: the replica has stopped: {number} {error}", self.now);
                let is_damage = fault.damages() && number == COULD_NOT_QUEUE;
                if !REASONS.contains(&number.as_str()) && number != "0" && !is_damage {
                    self.wrong(&format!(
                        "the replica stopped without a reason of the relay's: {number} {error}"
                    ));
                }
                self.replica.sql("START REPLICA IO_THREAD").unwrap();
            }
            if Instant::now() > deadline {
                let mut missing = committed.clone();
                missing.subtract(&has);
                return self.wrong(&format!("after {fault:?} the replica lacks {missing}: {status:?}"));
            }
            sleep(Duration::from_millis(200));
        }
        for schema in SCHEMAS {
            let (theirs, ours) = (self.replica.checksum_tables(schema), self.source.checksum_tables(schema));
            if theirs.as_ref().ok() != ours.as_ref().ok() {
                self.wrong(&format!("the replica has other rows in {schema}: {theirs:?}, not {ours:?}"));
            }
        }
    }

    fn mariadb_is_equal(&mut self) {
        let Some(mariadb) = self.mariadb else { return };
        let expected = self.source.sql(ROWS).unwrap();
        let deadline = Instant::now() + LIMIT;
        while mariadb.sql(ROWS).ok().as_ref() != Some(&expected) {
            if Instant::now() > deadline {
                let status = mariadb.sql("SHOW SLAVE STATUS").unwrap_or_default();
                let rows = mariadb.sql(ROWS);
                return self.wrong(&format!("MariaDB has {rows:?}, not {expected:?}: {status}"));
            }
            let _ = mariadb.sql("START SLAVE");
            sleep(Duration::from_millis(500));
        }
    }

    /// The files that were begun since the last time: whole on disk, the source's over the wire, and of the same meaning
    /// without compressed transactions.
    fn files_are_equal(&mut self) {
        self.source.flush_binary_logs().unwrap();
        let mut files = self.source.binlogs().unwrap();
        let open = files.pop().unwrap();
        let target: GtidSet = self.source.gtid_executed().unwrap().parse().unwrap();
        let settled = self.wait_for(&target, LIMIT);
        if settled != super::Settled::Level {
            self.wrong(&format!("a quiet source's end is not reached: {settled:?}"));
        }
        files.retain(|file| name(file) >= self.first_file.as_str());
        // The end of a file has no GTID of its own.
        let begun = self.kept().join(name(&open));
        if !self.wait_until(|_| stored::files(&begun.with_file_name("")).contains(&begun)) {
            self.wrong("the source's last file is not begun here");
        }
        let stored: Vec<_> = files.iter().map(|file| self.kept().join(name(file))).collect();
        let verified = self.binlogz(&["verify"], &stored);
        if !verified.status.success() {
            self.wrong(&format!("the stored files are damaged: {}", said(&verified)));
        }

        let fetched = self.folder.path("fetched");
        let received = self.fetch(&fetched, "", &files[0]);
        let uncompressed = self.fetch(&fetched, "-u", &files[0]);
        for (form, result) in [("received", &received), ("uncompressed", &uncompressed)] {
            if let Err(why) = result {
                self.wrong(&format!("the files can't be fetched as {form}: {why}"));
            }
        }
        if received.is_ok() {
            for file in &files {
                if fs::read(file).ok() != fs::read(fetched.join(name(file))).ok() {
                    self.wrong(&format!("{} over the wire is not the source's", name(file)));
                }
            }
        }
        if uncompressed.is_ok() {
            let others: Vec<_> =
                files.iter().map(|file| fetched.join(name(file).replace("binlog.", "binlog-u."))).collect();
            let arguments: Vec<_> =
                files.iter().cloned().chain([PathBuf::from("--")]).chain(others).collect();
            let same = self.binlogz(&["verify", "--same"], &arguments);
            if !same.status.success() {
                self.wrong(&format!("the uncompressed form has another meaning: {}", said(&same)));
            }
        }
        let _ = fs::remove_dir_all(&fetched);
        self.first_file = name(&open).to_owned();
    }

    /// Fetches the undamaged log as clients get it, from this file on.
    pub(super) fn fetch_reference(&mut self, file: &Path) {
        let reference = self.folder.path("reference");
        let _ = fs::remove_dir_all(&reference);
        for form in FORMS {
            if let Err(why) = self.fetch(&reference, form, file) {
                self.wrong(&format!("the files can't be fetched as binlog{form}: {why}"));
            }
        }
    }

    /// From a damaged log clients get the same, or an end.
    pub(super) fn nobody_gets_damage(&mut self, file: &Path) {
        let (reference, damaged) = (self.folder.path("reference"), self.folder.path("damaged"));
        for form in FORMS {
            let _ = fs::remove_dir_all(&damaged);
            match self.fetch(&damaged, form, file) {
                Ok(()) => {}
                Err(why) if why.is_empty() => self.wrong(&format!("binlog{form} ends without a reason")),
                Err(why) => println!("{}: binlog{form}: {why}", self.now),
            }
            for entry in fs::read_dir(&damaged).into_iter().flatten().flatten() {
                let now = fs::read(entry.path()).unwrap_or_default();
                let Ok(before) = fs::read(reference.join(entry.file_name())) else { continue };
                let both = now.len().min(before.len());
                if now[..both] == before[..both] {
                    continue;
                }
                let file = entry.file_name();
                let at = (0..both).find(|at| now[*at] != before[*at]).unwrap_or(0);
                let verified = self.binlogz(&["verify"], &[entry.path()]);
                self.wrong(&format!("{file:?} is sent altered at {at}: {}", said(&verified)));
            }
        }
        let _ = fs::remove_dir_all(&damaged);
    }

    /// Fetches the files of a form, from this one of the source's on, as they are; or the last line of why not.
    fn fetch(&self, into: &Path, form: &str, from: &Path) -> Result<(), String> {
        fs::create_dir_all(into).unwrap();
        let mut dump = self.folder.binlogz(["dump", "--no-defaults", "--no-login-paths", "-R", "--raw"]);
        dump.args(["--to-last-log", "-h127.0.0.1", "-ureader", "--ssl-mode=DISABLED"]);
        dump.arg(format!("-P{}", self.ports.0)).arg(format!("--result-file={}/", into.display()));
        dump.arg(name(from).replace("binlog.", &format!("binlog{form}."))).env("MYSQL_PWD", "secret");
        let output = ended(dump)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(said(&output)),
        }
    }

    fn binlogz(&self, arguments: &[&str], files: &[PathBuf]) -> Output {
        self.folder.binlogz(arguments).args(files).output().unwrap()
    }
}

/// Runs to its end, within limits.
fn ended(mut command: Command) -> Result<Output, String> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + LIMIT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("it has not ended within {LIMIT:?}"));
        }
        sleep(Duration::from_millis(10));
    }
    child.wait_with_output().map_err(|error| error.to_string())
}

fn said(output: &Output) -> String {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&text).lines().last().unwrap_or_default().to_owned()
}
