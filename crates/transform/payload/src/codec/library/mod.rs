//! Which libzstd compresses: the one that is linked, or another version in a helper program.
//!
//! One input gives other bytes with another version, at the same level and by the same recipe, and a program can link
//! only one version. `codecs/` has the helpers' source; [`protocol`] is what they exchange over the pipes.

mod helper;
mod pipe;
mod protocol;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, fmt};

use parking_lot::Mutex;

pub(crate) use helper::LibraryHelper;

/// A version of libzstd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Library {
    /// The linked one: MySQL 9.7's.
    #[default]
    Linked,
    /// A helper program with this version.
    Helper(&'static str),
}

/// The prefix of a helper's name; its version follows, with hyphens for dots.
const HELPER_PREFIX: &str = "binlogz-zstd-";

impl Library {
    /// All that binlogz knows, the newest first, each for a server that has it:
    ///
    /// - 1.5.7: MySQL 9.7, and Debian's packages, which link the system's library;
    /// - 1.5.6: Anaconda's MySQL 9.3.0, whose package asks for zstd 1.5.6 or later;
    /// - 1.5.5: Percona Server 8.4.3, whose build says `ZSTD_VERSION (bundled) is 1.5.5`;
    /// - 1.5.2: conda-forge's MySQL 8.0.33, whose package asks for zstd 1.5.2 or later;
    /// - 1.5.0: MySQL 8.0.28 to 8.0.33.
    ///
    /// Up to level 15 mostly any of them makes the same payloads.
    pub const ALL: [Library; 5] = [
        Library::Linked,
        Library::Helper("1.5.6"),
        Library::Helper("1.5.5"),
        Library::Helper("1.5.2"),
        Library::Helper("1.5.0"),
    ];

    /// The version of zstd, as `1.5.7`.
    pub fn version(self) -> &'static str {
        match self {
            Library::Linked => zstd_safe::version_string(),
            Library::Helper(version) => version,
        }
    }

    /// The installed program that has it; `None` for the linked one.
    pub fn program(self) -> Option<String> {
        match self {
            Library::Linked => None,
            Library::Helper(version) => Some(format!("{HELPER_PREFIX}{}", version.replace('.', "-"))),
        }
    }

    /// Whether it is linked, or its program is there and works.
    pub fn is_available(self) -> bool {
        self.program().is_none_or(|program| self.given_up().is_none() && find(&program).is_some())
    }

    /// Why its program was given up: it has ended, or did not answer. After ten minutes it is tried again.
    pub fn given_up(self) -> Option<String> {
        let given_up = PROGRAMS_GIVEN_UP.lock();
        let (_, why) = given_up.get(self.version()).filter(|(at, _)| at.elapsed() < GIVEN_UP)?;
        Some(why.clone())
    }

    fn give_up(self, why: &str) {
        PROGRAMS_GIVEN_UP.lock().insert(self.version(), (Instant::now(), why.to_owned()));
    }
}

/// How long a program that does not work is not started: whatever tries many codecs would wait for it each time.
const GIVEN_UP: Duration = Duration::from_secs(600);

/// By version: when a program was given up, and why.
static PROGRAMS_GIVEN_UP: Mutex<BTreeMap<&str, (Instant, String)>> = Mutex::new(BTreeMap::new());

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "libzstd {}", self.version())
    }
}

/// A program beside this one, or else on the PATH.
fn find(program: &str) -> Option<PathBuf> {
    let own = env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = own.into_iter().chain(env::split_paths(&path));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}
