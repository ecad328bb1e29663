//! Faults of the machine below a real process: its calls of the C library fail as [`FaultRule`]s say, which can change while it
//! runs.
//!
//! [`FaultShim`] is `faults/shim.c`, compiled once by `cc` into the cache and loaded with `LD_PRELOAD` into one process
//! alone. [`Faults`] is that process's control page: it says which calls fail from now on, and counts the failed ones.
//! Programs that make system calls without the C library (rustix does in places) are not reached.
//!
//! ```no_run
//! # use binlogz_testkit::faults::{Call, CallFault, FaultShim, FaultRule};
//! # let (dir, mut command) = (std::path::Path::new("/tmp/x"), std::process::Command::new("true"));
//! let Some(shim) = FaultShim::require() else { return };
//! let mut faults = shim.faults(&dir.join("faults"), 42).unwrap();
//! command.envs(faults.env());
//! // From the third on, one of ten writes below the folder finds the disk full.
//! faults.set(&[FaultRule::new(Call::Write, CallFault::NO_SPACE).below(dir).after(2).chance(0.1)]).unwrap();
//! faults.clear().unwrap();
//! ```

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Error, IoContext, Result, cache, tool};

const SOURCE: &str = include_str!("faults/shim.c");

// The control page's layout, which `shim.c` has too.
const PAGE_SIZE: usize = 4096;
const RULES_MAX: usize = 16;
const FAILED_AT: usize = 8;
const MATCHED_AT: usize = FAILED_AT + 8 * RULES_MAX;
const TEXT_AT: usize = MATCHED_AT + 8 * RULES_MAX;

/// Calls that can fail, those of one purpose together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `open`, `openat`, `creat`
    Open,
    /// `read`, `pread`
    Read,
    /// `write`, `pwrite`, `writev`, `copy_file_range` (its target)
    Write,
    /// `fsync`, `fdatasync`
    Sync,
    /// `ftruncate`
    Truncate,
    /// `rename`, `renameat`, `link`: their target
    Rename,
    /// `unlink`, `unlinkat`
    Unlink,
    /// `mkdir`
    Mkdir,
    /// `opendir`
    List,
    /// `pthread_create`, whatever the path
    Thread,
    /// `accept`, `accept4`, whatever the path
    Accept,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Call::Open => "open",
            Call::Read => "read",
            Call::Write => "write",
            Call::Sync => "sync",
            Call::Truncate => "truncate",
            Call::Rename => "rename",
            Call::Unlink => "unlink",
            Call::Mkdir => "mkdir",
            Call::List => "list",
            Call::Thread => "thread",
            Call::Accept => "accept",
        }
    }

    /// All that name a file or a descriptor of one.
    pub const OF_FILES: [Call; 9] = [
        Call::Open,
        Call::Read,
        Call::Write,
        Call::Sync,
        Call::Truncate,
        Call::Rename,
        Call::Unlink,
        Call::Mkdir,
        Call::List,
    ];
}

/// The fate of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFault {
    /// It fails with this errno, and does nothing.
    Errno(i32),
    /// A write that writes half, and says so. Other calls succeed.
    Short,
    /// It takes this much longer, then succeeds. Other calls don't wait for it.
    Delay(Duration),
}

/// Linux's numbers, which are the same on all processors.
impl CallFault {
    /// `EINTR`
    pub const INTERRUPTED: CallFault = CallFault::Errno(4);
    /// `EIO`
    pub const IO: CallFault = CallFault::Errno(5);
    /// `EAGAIN`
    pub const TRY_AGAIN: CallFault = CallFault::Errno(11);
    /// `ENOMEM`
    pub const NO_MEMORY: CallFault = CallFault::Errno(12);
    /// `ENFILE`
    pub const TOO_MANY_FILES_IN_ALL: CallFault = CallFault::Errno(23);
    /// `EMFILE`
    pub const TOO_MANY_FILES: CallFault = CallFault::Errno(24);
    /// `ENOSPC`
    pub const NO_SPACE: CallFault = CallFault::Errno(28);

    fn code(self) -> i64 {
        match self {
            CallFault::Errno(number) => i64::from(number),
            CallFault::Short => 0,
            CallFault::Delay(time) => -(time.as_millis() as i64),
        }
    }
}

/// Which calls fail, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultRule {
    call: Call,
    fault: CallFault,
    after: u64,
    count: u64,
    chance: f64,
    pattern: String,
}

impl FaultRule {
    /// A rule by which all calls of this kind fail, wherever.
    pub fn new(call: Call, fault: CallFault) -> FaultRule {
        FaultRule { call, fault, after: 0, count: 0, chance: 1.0, pattern: "*".into() }
    }

    /// Only in a folder and below it.
    pub fn below(self, folder: &Path) -> FaultRule {
        // The kernel tells paths of descriptors without symbolic links.
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        FaultRule { pattern: format!("{}*", folder.display()), ..self }
    }

    /// Only on paths that match a shell's pattern, whose `*` goes across folders.
    pub fn on(self, pattern: impl Into<String>) -> FaultRule {
        FaultRule { pattern: pattern.into(), ..self }
    }

    /// This many succeed first.
    pub fn after(self, after: u64) -> FaultRule {
        FaultRule { after, ..self }
    }

    /// No more than this many fail.
    pub fn count(self, count: u64) -> FaultRule {
        FaultRule { count, ..self }
    }

    /// Each fails with this probability.
    pub fn chance(self, chance: f64) -> FaultRule {
        FaultRule { chance, ..self }
    }

    fn line(&self) -> String {
        let FaultRule { call, fault, after, count, chance, pattern } = self;
        let chance = (chance * 1e6) as u64;
        format!("{} {} {after} {count} {chance} {pattern}\n", call.name(), fault.code())
    }
}

/// The compiled shim.
#[derive(Debug, Clone)]
pub struct FaultShim {
    library: PathBuf,
}

impl FaultShim {
    /// The shim, or `None` after saying `SKIPPED` aloud where there is no C compiler; panics instead where
    /// `BINLOGZ_REQUIRE_SERVERS=1`.
    pub fn require() -> Option<FaultShim> {
        match Self::build() {
            Ok(shim) => return Some(shim),
            Err(Error::Unavailable(reason)) => tool::skip(&reason),
            Err(error) => panic!("the fault shim can't be built: {error}"),
        }
        None
    }

    /// Compiles it, unless the cache has it.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] where there is no `cc`.
    pub fn build() -> Result<FaultShim> {
        let key = format!("faults/{:08x}", crc32fast::hash(SOURCE.as_bytes()));
        let folder = cache::entry(&key, |folder| {
            let source = folder.join("shim.c");
            fs::write(&source, SOURCE).at("write", &source)?;
            let mut cc = Command::new("cc");
            cc.args(["-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-o"]);
            cc.arg(folder.join("shim.so")).arg(&source).args(["-ldl", "-lpthread"]);
            let output = cc.output().map_err(|error| {
                Error::Unavailable(format!("no C compiler for the fault shim: cc: {error}"))
            })?;
            match output.status.success() {
                true => Ok(()),
                false => Err(Error::Failed(String::from_utf8_lossy(&output.stderr).into_owned())),
            }
        })?;
        Ok(FaultShim { library: folder.join("shim.so") })
    }

    /// The variables for the environment of a process of which all that it writes to files is kept in this folder: a file for each
    /// path, with `%` for `/`.
    pub fn keeping(&self, folder: &Path) -> [(&'static str, OsString); 2] {
        [("LD_PRELOAD", self.library.clone().into()), ("BINLOGZ_WRITTEN", folder.into())]
    }

    /// A control page at this path, without rules. The same seed lets the same calls of a thread fail.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn faults(&self, path: &Path, seed: u64) -> Result<Faults> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .at("create", path)?;
        file.set_len(PAGE_SIZE as u64).at("write", path)?;
        let path = fs::canonicalize(path).at("find", path)?;
        let mut faults = Faults {
            library: self.library.clone(),
            path,
            file,
            seed,
            generation: 0,
            rules: Vec::new(),
            clock: 0,
        };
        faults.clear()?;
        Ok(faults)
    }
}

/// The faults of the processes that were started with its [environment](Faults::env). Successive processes
/// get the same rules.
#[derive(Debug)]
pub struct Faults {
    library: PathBuf,
    path: PathBuf,
    file: File,
    seed: u64,
    generation: u64,
    rules: Vec<FaultRule>,
    /// How far the clock is ahead, in seconds.
    clock: i64,
}

impl Faults {
    /// The variables for the process's environment.
    pub fn env(&self) -> [(&'static str, OsString); 2] {
        [("LD_PRELOAD", self.library.clone().into()), ("BINLOGZ_FAULT_PAGE", self.path.clone().into())]
    }

    /// These rules hold from now on, the first match deciding; the counts restart from zero.
    ///
    /// # Errors
    ///
    /// The control page can't be written, or the rules don't fit.
    pub fn set(&mut self, rules: &[FaultRule]) -> Result<()> {
        let mut text = String::new();
        // A seed of its own for each set, or the same calls would always be the ones that fail.
        let seed = self.seed.wrapping_add(self.generation.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let _ = writeln!(text, "seed {seed}\nclock {}", self.clock);
        text.extend(rules.iter().map(FaultRule::line));
        let mut page = vec![0; PAGE_SIZE];
        match page.get_mut(TEXT_AT..TEXT_AT + text.len()) {
            Some(place) if rules.len() <= RULES_MAX && TEXT_AT + text.len() < PAGE_SIZE => {
                place.copy_from_slice(text.as_bytes());
            }
            _ => return Err(Error::Failed(format!("{} rules don't fit a control page", rules.len()))),
        }
        self.generation += 1;
        // Mark it as being written first, and write the generation last: a process reads the page whole.
        self.file.write_all_at(&page, 0).at("write", &self.path)?;
        self.file.write_all_at(&self.generation.to_ne_bytes(), 0).at("write", &self.path)?;
        self.rules = rules.to_vec();
        Ok(())
    }

    /// The clock that tells the time of day jumps: from now on it is ahead by so many seconds, whatever rules hold.
    ///
    /// # Errors
    ///
    /// The control page can't be written.
    pub fn set_clock(&mut self, ahead: i64) -> Result<()> {
        self.clock = ahead;
        self.set(&self.rules.clone())
    }

    /// Nothing fails any more; the clock stays as it is.
    ///
    /// # Errors
    ///
    /// The control page can't be written.
    pub fn clear(&mut self) -> Result<()> {
        self.set(&[])
    }

    /// How many calls have failed (or were short, or delayed) by each rule that holds now.
    ///
    /// # Errors
    ///
    /// The control page can't be read.
    pub fn failed(&self) -> Result<Vec<u64>> {
        self.counters(FAILED_AT)
    }

    /// How many calls each rule that holds now has looked at.
    ///
    /// # Errors
    ///
    /// The control page can't be read.
    pub fn matched(&self) -> Result<Vec<u64>> {
        self.counters(MATCHED_AT)
    }

    fn counters(&self, at: usize) -> Result<Vec<u64>> {
        let mut bytes = vec![0; 8 * self.rules.len()];
        self.file.read_exact_at(&mut bytes, at as u64).at("read", &self.path)?;
        let counts = bytes.chunks_exact(8).map(|count| count.try_into().map_or(0, u64::from_ne_bytes));
        Ok(counts.collect())
    }
}
