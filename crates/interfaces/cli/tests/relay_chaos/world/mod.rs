//! A relay between real servers, and everything that can happen to it, one round after the other.
//!
//! ```text
//! round: load ─ a fault, perhaps with hostile company ─ the fault goes ─ settle ─ load ends ─ check
//!        watch: health, status and the source's end, all the time
//! ```
//!
//! * `fault` has the faults; `hostile` the clients;
//! * `archive` and `clock` see whether what is wrong there is told;
//! * `watch` sees whether health is red whenever receiving stands still;
//! * `stored` reads the relay's files without its code;
//! * `check` compares everybody with the source.
//!
//! A failure is noted, and the run goes on if it can: one run then tells of every fault that does harm.

mod archive;
mod check;
mod clock;
mod fault;
mod hostile;
mod stored;
mod watch;

use std::path::{Path, PathBuf};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;
use binlogz_testkit::faults::Faults;
use binlogz_testkit::random::Random;
use binlogz_testkit::workload::sysbench;
use binlogz_testkit::{MariadbSandbox, MysqlSandbox};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay};
pub(crate) use archive::HELPERS;
pub(crate) use clock::MAX_AGE;
pub(crate) use fault::Fault;
use fault::{limit_descriptors, set_limit, signal};
use hostile::{Hostile, http_get};
use stored::{Flip, Snapshot};
pub(crate) use watch::Watch;
use watch::{PATIENCE, durable, written};

/// The time by which everything should have happened, on two busy cores.
const LIMIT: Duration = Duration::from_secs(120);
/// A relay that has not gone on by itself for so long waits for somebody: twice its longest wait between two attempts.
const BY_ITSELF: Duration = Duration::from_secs(60);
/// While this file is in the folder, the key command hangs.
pub(crate) const HANG: &str = "hang";
/// Hostile connections at a time.
const HOSTILE: usize = 200;
/// Lines of the relay's log that are shown with a failure.
const TAIL_LINES: usize = 25;

/// Everybody in it.
pub(crate) struct World<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) source: &'a MysqlSandbox,
    pub(crate) replica: &'a MysqlSandbox,
    pub(crate) mariadb: Option<&'a MariadbSandbox>,
    pub(crate) watch: &'a Watch<'a>,
    pub(crate) configuration: Configuration,
    /// Where the relay listens, and answers over HTTP.
    pub(crate) ports: (u16, u16),
    pub(crate) faults: Faults,
    pub(crate) seed: u64,
    pub(crate) relay: Relay,
    /// The source's first file that was not compared yet.
    pub(crate) first_file: String,
    /// Errors.
    pub(crate) trouble: Vec<String>,
    /// The round, for messages.
    pub(crate) now: String,
}

/// The change to be undone after a round's fault.
#[derive(Default)]
struct Wound {
    descriptor_limit: Option<String>,
    flip: Option<Flip>,
    /// In the archive.
    rot: Option<Flip>,
}

/// How a relay came through.
#[derive(Debug, PartialEq, Eq)]
enum Settled {
    /// It has all that the source has.
    Level,
    /// It says why not.
    Red(String),
    /// It neither got on nor said why.
    Neither,
}

impl World<'_> {
    fn kept(&self) -> PathBuf {
        self.folder.path("kept")
    }

    /// Notes a failure, with everything that helps to find its cause.
    fn wrong(&mut self, what: &str) {
        let said = self.relay.said();
        let lines: Vec<_> = said.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n    ");
        let what = format!("SEED={} {}: {what}\n    {tail}", self.seed, self.now);
        println!("WRONG {what}");
        self.trouble.push(what);
    }

    /// One round.
    pub(crate) fn round(&mut self, number: u64, fault: Fault) {
        let began = Instant::now();
        // A round does the same whatever happened in those before it.
        let mut random = Random::new(self.seed.wrapping_add(number << 32));
        let has_company = fault == Fault::Hostile || random.below(3) == 0;
        let company_seed = random.bits();
        let count = if fault == Fault::Hostile { HOSTILE } else { HOSTILE / 3 };
        self.now = format!("round {number}, {fault:?}{}", if has_company { " in company" } else { "" });
        self.watch.take();
        let source = self.source;
        let load_seed = random.bits();
        scope(|scope| {
            let work = scope.spawn(move || load(source, load_seed));
            // A panic must end the load too.
            let _free = FreeWhenPanicking(source);
            let company =
                has_company.then(|| Hostile::connect(count, self.ports.0, self.ports.1, company_seed));
            sleep(Duration::from_millis(200 + random.below(800) as u64));
            let wound = self.hurt(fault, &mut random);
            if !matches!(fault, Fault::Kill | Fault::FlipWhileDown) {
                sleep(Duration::from_millis(1000 + random.below(1500) as u64));
            }
            match fault {
                _ if fault.hinders_archiving() => self.archiving_is_red(fault),
                Fault::ClockJump => self.jump_is_red(&mut random),
                _ => wound.rot.iter().for_each(|rot| self.rot_is_red(rot)),
            }
            self.faults.clear().unwrap();
            if let Some(limit) = &wound.descriptor_limit {
                set_limit(self.relay.child.id(), limit);
            }
            match wound.flip {
                Some(flip) if fault == Fault::BitRot => self.heals_itself(&flip),
                Some(flip) => self.heal(&flip, &mut random),
                None => self.settle(fault, &mut random),
            }
            drop(company);
            if work.is_finished() || self.wait_until(|_| work.is_finished()) {
                return;
            }
            self.wrong("the source's commits are not acknowledged");
            let _ = source.sql("SET GLOBAL rpl_semi_sync_source_enabled = OFF");
        });
        let _ = source.sql("SET GLOBAL rpl_semi_sync_source_enabled = ON");
        let seen = self.watch.take();
        if let Some(still) = seen.green_and_still {
            self.wrong(&still);
        }
        if fault == Fault::Hostile && seen.answers[0] == 0 {
            self.wrong("health was never answered while others knocked");
        }
        self.check(fault);
        let [green, red, none] = seen.answers;
        let why = seen.red.map_or(String::new(), |why| format!(", last: {why}"));
        println!("{}: {:.1?}; health {green} green, {red} red, {none} none{why}", self.now, began.elapsed());
    }

    fn wait_until(&self, done: impl Fn(&Self) -> bool) -> bool {
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            if done(self) {
                return true;
            }
            sleep(Duration::from_millis(50));
        }
        false
    }

    /// The fault begins.
    fn hurt(&mut self, fault: Fault, random: &mut Random) -> Wound {
        let kept = std::fs::canonicalize(self.kept()).unwrap();
        self.faults.set(&fault.rules(&kept, random)).unwrap();
        let mut wound = Wound::default();
        match fault {
            Fault::DescriptorLimit => {
                wound.descriptor_limit = limit_descriptors(self.relay.child.id(), random.below(4));
                // Closes all open connections, so that more must be opened.
                self.break_connection();
            }
            Fault::Threads | Fault::Descriptors => self.break_connection(),
            Fault::Kill => self.start_again(random),
            Fault::KillInBurst => {
                sleep(Duration::from_millis(random.below(500) as u64));
                // It may find its folder unusable; its supervisor tries again.
                if let Err(why) = self.restart(random) {
                    println!("{}: it does not start meanwhile: {}", self.now, last_line(&why));
                }
            }
            Fault::Stopped => {
                let pid = self.relay.child.id();
                signal(pid, "STOP");
                sleep(Duration::from_millis(1000 + random.below(4000) as u64));
                signal(pid, "CONT");
            }
            Fault::FlipWhileDown | Fault::FlipWhileUp | Fault::BitRot => {
                wound.flip = self.flip(fault, random);
            }
            _ if fault.hinders_archiving() => self.hinder_archiving(fault, random),
            Fault::ArchiveRot => wound.rot = self.rot_archive(random),
            Fault::ClockJump => self.jump(random),
            _ => {}
        }
        wound
    }

    /// A closed file with a damaged byte: no client gets it, and the source repairs it while everything goes on.
    fn heals_itself(&mut self, flip: &Flip) {
        self.nobody_gets_damage(&flip.file);
        if !self.wait_until(|_| !flip.is_there()) {
            self.wrong("a closed file that is damaged is not repaired");
        }
        let file = flip.file.file_name().unwrap().to_str().unwrap();
        let line = format!("{file} was repaired from ");
        // The file is whole before the line is written.
        if !self.wait_until(|world| world.relay.said().contains(&line)) {
            self.wrong(&format!("nothing is said of the repair of {file}"));
        }
        let target = written(self.source);
        let settled = self.wait_for(&target, BY_ITSELF);
        if settled != Settled::Level {
            self.wrong(&format!("after a repair it does not get on: {settled:?}"));
        }
    }

    /// Ends the relay's connection to the source, as a network would.
    fn break_connection(&mut self) {
        let ids = self
            .source
            .sql("SELECT id FROM performance_schema.processlist WHERE command LIKE 'Binlog Dump%'")
            .unwrap_or_default();
        for id in ids.split_whitespace() {
            let _ = self.source.sql(&format!("KILL {id}"));
        }
    }

    /// Kills the relay and starts it, and waits until it answers.
    fn restart(&mut self, random: &mut Random) -> Result<(), String> {
        self.relay.kill();
        let store = ["received", "compressed"][random.below(2)];
        let store = format!("store = \"{store}\"\n{MAX_AGE}");
        let configuration = self.configuration.clone().store(store);
        self.relay = configuration.launch(self.folder);
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            if http_get(self.ports.1, "/readyz", PATIENCE).is_some() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.relay.child.try_wait() {
                return Err(format!("{status}: {}", self.relay.said()));
            }
            sleep(Duration::from_millis(50));
        }
        Err("it does not answer".into())
    }

    /// Kills the relay and starts it. Nothing keeps it from starting now, so it is wrong if it does not.
    fn start_again(&mut self, random: &mut Random) {
        if let Err(why) = self.restart(random) {
            self.wrong(&format!("it does not start: {}", last_line(&why)));
        }
    }

    fn health(&self) -> Option<(u16, String)> {
        http_get(self.ports.1, "/healthz", PATIENCE)
    }

    /// Whether the relay has everything that the source had written at that time. Waits for it as long as the relay is
    /// healthy, and for a while if it isn't.
    fn wait_for(&mut self, target: &GtidSet, by_itself: Duration) -> Settled {
        let began = Instant::now();
        loop {
            let health = self.health();
            let is_there = durable(self.ports.1).is_some_and(|durable| target.is_subset(&durable));
            if let Ok(Some(status)) = self.relay.child.try_wait() {
                return Settled::Red(format!("it ended, {status}: {}", last_line(&self.relay.said())));
            }
            match health {
                Some((200, _)) if is_there => return Settled::Level,
                Some((503, why)) if began.elapsed() > by_itself => {
                    return Settled::Red(why.trim().to_owned());
                }
                _ if began.elapsed() > LIMIT => return Settled::Neither,
                _ => sleep(Duration::from_millis(100)),
            }
        }
    }

    /// The transactions that are not durable here.
    fn lacks(&self, target: &GtidSet) -> GtidSet {
        let mut lacks = target.clone();
        if let Some(durable) = durable(self.ports.1) {
            lacks.subtract(&durable);
        }
        lacks
    }

    /// After the fault has gone the relay goes on by itself; after some, somebody may have to start it again.
    fn settle(&mut self, fault: Fault, random: &mut Random) {
        let target = written(self.source);
        let settled = self.wait_for(&target, BY_ITSELF);
        match &settled {
            Settled::Level => return,
            Settled::Red(why) if fault.passes_by_itself() => {
                self.wrong(&format!("it does not go on by itself: {why}"));
            }
            Settled::Red(why) if why.is_empty() => self.wrong("it is red and does not say why"),
            Settled::Red(why) => println!("{}: started again: {why}", self.now),
            Settled::Neither => {
                let lacks = self.lacks(&target);
                self.wrong(&format!("health says {:?}, but it lacks {lacks}", self.health()));
            }
        }
        self.start_again(random);
        let settled = self.wait_for(&target, BY_ITSELF);
        if settled != Settled::Level {
            let lacks = self.lacks(&target);
            self.wrong(&format!("started again it lacks {lacks}: {settled:?}"));
        }
    }

    /// A bit flips in one of the last files, closed or in use.
    fn flip(&mut self, fault: Fault, random: &mut Random) -> Option<Flip> {
        let while_down = fault == Fault::FlipWhileDown;
        if fault == Fault::BitRot {
            self.source.sql("FLUSH BINARY LOGS").unwrap();
            let kept = self.kept();
            self.wait_until(|_| stored::files(&kept).len() > 1);
        }
        let files = stored::files(&self.kept());
        let back = match fault {
            Fault::BitRot => 1 + random.below((files.len() - 1).min(3)),
            _ if random.below(2) == 0 => 0,
            _ => random.below(files.len().min(3)),
        };
        let file = files[files.len() - 1 - back].clone();
        // The replica will be sent exactly the transactions that it lacks.
        let _ = self.replica.sql("STOP REPLICA IO_THREAD");
        sleep(Duration::from_millis(500));
        self.fetch_reference(&file);
        // All of this is durable once the source has gone on.
        let size = std::fs::metadata(&file).unwrap().len() as usize;
        sleep(Duration::from_millis(300));
        let offset = match random.below(size.max(2)) {
            // No checksum covers the flag that says whether the file is in use.
            stored::FLAGS_AT => stored::FLAGS_AT + 1,
            // Only a reader of the whole file looks at its first bytes, which are sent to nobody.
            offset if fault == Fault::BitRot => offset.max(stored::MAGIC_SIZE),
            offset => offset,
        };
        if while_down {
            self.relay.kill();
        }
        let flip = Flip::bit(&file, offset, random.below(8) as u32);
        let name = file.file_name().unwrap().display();
        let is_last = stored::files(&self.kept()).last() == Some(&file);
        println!("{}: {name} at {offset} of {size}{}", self.now, if is_last { ", in use" } else { "" });
        if while_down {
            let snapshot = Snapshot::of(&file);
            // It opens its log without being able to ask the source.
            self.source.sql("SET sql_log_bin = 0; ALTER USER repl@'127.0.0.1' ACCOUNT LOCK").unwrap();
            self.break_connection();
            if let Err(why) = self.restart(random) {
                let named = names_the_place(&why, &file);
                self.note_refusal(named, &last_line(&why));
            }
            if let Some(lost) = snapshot.lost_from(&self.kept()) {
                let lost = lost.file_name().unwrap().display().to_string();
                self.wrong(&format!("opening the log has changed what was durable in {lost}"));
            }
            self.source.sql("SET sql_log_bin = 0; ALTER USER repl@'127.0.0.1' ACCOUNT UNLOCK").unwrap();
        }
        let _ = self.replica.sql("START REPLICA IO_THREAD");
        Some(flip)
    }

    fn note_refusal(&mut self, names_the_place: bool, why: &str) {
        match names_the_place {
            true => println!("{}: it does not start: {why}", self.now),
            false => self.wrong(&format!("it does not start, and does not name the damage: {why}")),
        }
    }

    /// A log with a damaged byte: no client gets it unseen, and the relay goes on, or says where the damage is. Then the byte
    /// is brought back, as from a backup.
    fn heal(&mut self, flip: &Flip, random: &mut Random) {
        let target = written(self.source);
        match self.wait_for(&target, Duration::from_secs(5)) {
            Settled::Level => {}
            Settled::Red(why) => {
                println!("{}: red: {why}", self.now);
                // A busy machine may not get on with its archive either.
                let is_of_archive =
                    ["archiving to ", "checking the archive "].map(|words| why.starts_with(words));
                if !names_the_place(&why, &flip.file) && !is_of_archive.contains(&true) {
                    self.wrong(&format!("it is red and does not name the damaged place: {why}"));
                }
            }
            Settled::Neither => self.wrong("neither level nor red over a damaged file"),
        }
        self.nobody_gets_damage(&flip.file);
        self.relay.kill();
        let was_there = flip.undo();
        println!("{}: the damage was {}", self.now, if was_there { "still there" } else { "gone" });
        self.start_again(random);
        let settled = self.wait_for(&target, BY_ITSELF);
        if settled != Settled::Level {
            let lacks = self.lacks(&target);
            self.wrong(&format!("mended and started again it lacks {lacks}: {settled:?}"));
        }
    }
}

/// Commits don't wait any more once a test has failed.
pub(crate) struct FreeWhenPanicking<'a>(pub(crate) &'a MysqlSandbox);

impl Drop for FreeWhenPanicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.sql("SET GLOBAL rpl_semi_sync_source_enabled = OFF");
        }
    }
}

/// A file's name and an offset.
fn names_the_place(why: &str, file: &Path) -> bool {
    let name = file.file_name().unwrap().to_str().unwrap();
    why.split(name).skip(1).any(|rest| rest.contains(|letter: char| letter.is_ascii_digit()))
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().to_owned()
}

/// Transactions for a few seconds: small ones, by turns compressed at the source and plain, so that positions differ in each
/// form; and sometimes one that is larger than the relay holds in memory.
fn load(source: &MysqlSandbox, seed: u64) {
    let mut random = Random::new(seed);
    let compressed = random.below(2);
    source.sql(&format!("SET GLOBAL binlog_transaction_compression = {compressed}")).unwrap();
    if random.below(4) == 0 {
        let large = "INSERT INTO d.t (body) VALUES (REPEAT('larger than 8 MiB ', 500000)); DELETE FROM d.t";
        source.sql(large).unwrap();
    }
    scope(|scope| {
        scope.spawn(|| {
            let some = "INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 20)); DO SLEEP(0.03);\n".repeat(60);
            source.sql(&format!("SET binlog_transaction_compression = 1 - {compressed};\n{some}")).unwrap();
        });
        let options = ["--tables=2", "--table-size=1000", "--threads=4", "--rate=100", "--time=3"];
        sysbench(source, &[&["oltp_write_only"], options.as_slice(), &["run"]].concat()).unwrap();
    });
}
