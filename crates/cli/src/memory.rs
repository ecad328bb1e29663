//! Keeps the processes of `relay run` and `archive create` small: glibc would keep an arena for many of the threads, one a client, each with holes of its own, and
//! once a large buffer was freed it would put all others of its size between the small ones, too.
//!
//! | | with it | without |
//! |---|---|---|
//! | 8 clients, two busy cores: one arena | 47 MiB, 5.2 s of CPU time | 116 MiB, 4.7 s |
//! | transactions of 20 MB to four replicas, a debug build: large buffers apart | 65 MiB | 78 to 100 MiB |
//!
//! (`scripts/bench/relay.sh`; `cargo test -p binlogz --test relay_large`.) Archives: docs/archive.md. The variables are read when a process begins, so that
//! the program begins again with them: the same process id, the same arguments. Whoever sets the first keeps what was set;
//! another libc ignores them.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// glibc's variables, as mallopt(3) has them.
const VARIABLES: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "1"),
    // Buffers from here on go back to the system when they are freed, and grow in place.
    ("MALLOC_MMAP_THRESHOLD_", "4194304"),
    // So much stays at hand above the rest.
    ("MALLOC_TRIM_THRESHOLD_", "8388608"),
];

/// Begins again with these, unless somebody has decided that. Returns if it can't: it takes more memory then.
pub(crate) fn keep_small() {
    let [(first, _), ..] = VARIABLES;
    if std::env::var_os(first).is_none()
        && let Ok(program) = std::env::current_exe()
    {
        let mut args = std::env::args_os();
        let mut again = Command::new(program);
        if let Some(name) = args.next() {
            again.arg0(name);
        }
        // It returns only if it failed.
        let _ = again.args(args).envs(VARIABLES).exec();
    }
}
