//! The faults that a round of the chaos test can bring about.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use binlogz_testkit::faults::{Call, CallFault as Failing, FaultRule};
use binlogz_testkit::random::Random;

/// A fault that one round brings about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Calls on its files fail at random, for causes that go by themselves.
    Transient,
    /// Calls on its files fail at random, also with EIO and with short writes.
    Burst,
    /// Nothing more can be written.
    DiskFull,
    /// Neither files nor connections can be opened, as far as the shim says so.
    Descriptors,
    /// The process may have hardly more descriptors than it has.
    DescriptorLimit,
    /// No thread can be started, and the connection to the source breaks.
    Threads,
    /// Each sync takes its time.
    SlowSync,
    /// `kill -9`, and a start.
    Kill,
    /// `kill -9`, and a start, while calls fail.
    KillInBurst,
    /// A bit flips in a stored file while the relay is down; the source can't be asked at once.
    FlipWhileDown,
    /// A bit flips in a stored file that the relay has open.
    FlipWhileUp,
    /// A bit flips in a closed file.
    BitRot,
    /// Nothing can be put where the archive is.
    ArchiveTarget,
    /// The command that prints the archive's key hangs.
    KeyCommand,
    /// A helper program for payloads of another libzstd hangs.
    HelperHangs,
    /// A bit flips in an object of the archive.
    ArchiveRot,
    /// This machine's clock goes forth or back by days.
    ClockJump,
    /// 200 connections that mean no good.
    Hostile,
    /// The process does not run for a while.
    Stopped,
}

impl Fault {
    pub(crate) const ALL: [Fault; 19] = [
        Fault::Transient,
        Fault::Burst,
        Fault::DiskFull,
        Fault::Descriptors,
        Fault::DescriptorLimit,
        Fault::Threads,
        Fault::SlowSync,
        Fault::Kill,
        Fault::KillInBurst,
        Fault::FlipWhileDown,
        Fault::FlipWhileUp,
        Fault::BitRot,
        Fault::ArchiveTarget,
        Fault::KeyCommand,
        Fault::HelperHangs,
        Fault::ArchiveRot,
        Fault::ClockJump,
        Fault::Hostile,
        Fault::Stopped,
    ];

    /// Whether the relay must go on by itself once the cause is gone.
    pub(crate) fn passes_by_itself(self) -> bool {
        !matches!(self, Fault::Burst | Fault::KillInBurst | Fault::FlipWhileDown | Fault::FlipWhileUp)
    }

    /// Whether stored bytes change.
    pub(crate) fn damages(self) -> bool {
        matches!(self, Fault::FlipWhileDown | Fault::FlipWhileUp | Fault::BitRot)
    }

    /// Whether closed files can't be archived meanwhile.
    pub(crate) fn hinders_archiving(self) -> bool {
        matches!(self, Fault::ArchiveTarget | Fault::KeyCommand | Fault::HelperHangs)
    }

    /// The calls that fail meanwhile, below the relay's folder.
    pub(crate) fn rules(self, kept: &Path, random: &mut Random) -> Vec<FaultRule> {
        let transient = [
            Failing::TOO_MANY_FILES,
            Failing::TOO_MANY_FILES_IN_ALL,
            Failing::INTERRUPTED,
            Failing::TRY_AGAIN,
            Failing::NO_SPACE,
        ];
        let any = [Failing::IO, Failing::NO_SPACE, Failing::TOO_MANY_FILES, Failing::Short];
        match self {
            Fault::Transient => burst(kept, &transient, random),
            Fault::Burst | Fault::KillInBurst => burst(kept, &any, random),
            Fault::DiskFull => {
                let after = random.below(20) as u64;
                let full = |call| FaultRule::new(call, Failing::NO_SPACE).below(kept).after(after);
                let mut rules = vec![full(Call::Write), full(Call::Mkdir)];
                // Half of the file systems tell it earlier.
                if random.below(2) == 0 {
                    rules.push(full(Call::Sync));
                }
                rules
            }
            Fault::Descriptors => {
                let after = random.below(4) as u64;
                let none = |call| FaultRule::new(call, Failing::TOO_MANY_FILES).after(after);
                vec![none(Call::Open).below(kept), none(Call::List).below(kept), none(Call::Accept)]
            }
            Fault::Threads => {
                vec![FaultRule::new(Call::Thread, Failing::TRY_AGAIN).after(random.below(3) as u64)]
            }
            Fault::SlowSync => {
                let delay = Duration::from_millis(500 + random.below(1500) as u64);
                vec![FaultRule::new(Call::Sync, Failing::Delay(delay)).below(kept)]
            }
            _ => Vec::new(),
        }
    }
}

/// Up to four kinds of calls, each with a fault of its own that is rare or certain.
fn burst(kept: &Path, faults: &[Failing], random: &mut Random) -> Vec<FaultRule> {
    let rule = |random: &mut Random| {
        let call = Call::OF_FILES[random.below(Call::OF_FILES.len())];
        let mut fault = faults[random.below(faults.len())];
        if fault == Failing::Short && call != Call::Write {
            fault = Failing::IO;
        }
        let chance = [0.05, 0.3, 1.0][random.below(3)];
        FaultRule::new(call, fault).below(kept).chance(chance).after(random.below(5) as u64)
    };
    (0..=random.below(4)).map(|_| rule(random)).collect()
}

/// Lowers the process's limit of descriptors to a few more than it has open; returns the former limit.
pub(crate) fn limit_descriptors(pid: u32, more: usize) -> Option<String> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    let soft = line.split_whitespace().nth(3)?.to_owned();
    let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    set_limit(pid, &(open + more).to_string());
    Some(soft)
}

/// Sets the process's soft limit of descriptors.
pub(crate) fn set_limit(pid: u32, limit: &str) {
    let mut prlimit = Command::new("prlimit");
    prlimit.args(["--pid", &pid.to_string(), &format!("--nofile={limit}:")]);
    // A process that is gone has no limits.
    let _ = prlimit.output();
}

/// Sends a signal by its name.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -{name} {pid}");
}
