//! Keeps the process small: a thread a client would have glibc keep an arena for many of them, each with holes of its own.
//!
//! With 8 clients on two busy cores the relay took 116 MiB with glibc's default and 47 with one arena, and 4.7 and 5.2
//! seconds of CPU time for all that `scripts/bench/relay.sh` has it serve. The variable is read when a process begins, so that the relay begins again with it: the
//! same process id, the same arguments. Whoever sets it keeps what was set; another libc ignores it.

use std::os::unix::process::CommandExt;
use std::process::Command;

const VARIABLE: &str = "MALLOC_ARENA_MAX";
const ARENAS: &str = "1";

/// Begins again with one arena, unless somebody has decided that. Returns if it can't: it takes more memory then.
pub(super) fn use_one_arena() {
    if std::env::var_os(VARIABLE).is_none()
        && let Ok(program) = std::env::current_exe()
    {
        let mut args = std::env::args_os();
        let mut again = Command::new(program);
        if let Some(name) = args.next() {
            again.arg0(name);
        }
        // It returns only if it failed.
        let _ = again.args(args).env(VARIABLE, ARENAS).exec();
    }
}
