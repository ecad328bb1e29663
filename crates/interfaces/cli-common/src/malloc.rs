//! `relay run`, `archive create` and others re-execute themselves with malloc settings that keep their processes small, as `export`
//! does with others. By default glibc keeps an arena for many of the threads (the relay has one for each client), each with its own
//! fragmentation. And after a large buffer was freed, it places all others of that size between the small ones.
//!
//! | | with it | without |
//! |---|---|---|
//! | 8 clients, two busy cores: one arena | 47 MiB, 5.2 s of CPU time | 116 MiB, 4.7 s |
//! | transactions of 20 MB to four replicas, a debug build: large buffers apart | 65 MiB | 78 to 100 MiB |
//!
//! (`scripts/bench/relay.sh`; `cargo test -p binlogz --test relay large::`. For archives: lab/book/archive.md; for exports:
//! lab/book/sql.md.) glibc reads the variables when a process starts, so the program executes itself again, with the same process
//! id and arguments. A user who sets the first of them keeps what was set.
//!
//! musl has no such settings. The static programs of `make dist` allocate with mimalloc, which gives memory back by itself.

#[cfg(target_env = "gnu")]
use std::os::unix::process::CommandExt;
#[cfg(target_env = "gnu")]
use std::process::Command;

/// glibc's variables, as mallopt(3) has them.
#[cfg(target_env = "gnu")]
const SMALL: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "1"),
    // Buffers from here on go back to the system when they are freed, and grow in place.
    ("MALLOC_MMAP_THRESHOLD_", "4194304"),
    // So much stays at hand above the rest.
    ("MALLOC_TRIM_THRESHOLD_", "8388608"),
];
/// As many blocks as are worked on at once, of 8 MiB and less, are used again: a system that gives fresh pages for each takes a sixth of the
/// processor time of `archive erase`, which has 18 MiB more with this.
#[cfg(target_env = "gnu")]
const KEEPING_BLOCKS: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "1"),
    // The most that glibc takes.
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ("MALLOC_TRIM_THRESHOLD_", "134217728"),
];
/// With one arena threads that encode columns wait for each other.
#[cfg(target_env = "gnu")]
const GIVING_BACK: [(&str, &str); 1] = [("MALLOC_MMAP_THRESHOLD_", "1048576")];

/// Re-executes the program with one arena and buffers of some megabytes apart, unless the user has set the number of arenas. If that
/// fails, it returns, and the process takes more memory.
#[cfg(target_env = "gnu")]
pub fn keep_small() {
    run_again_with(&SMALL);
}

/// Re-executes the program with one arena that keeps the buffers of blocks, unless the user has set the number of arenas. If that fails, it
/// returns, and the process takes more processor time.
#[cfg(target_env = "gnu")]
pub fn keep_blocks() {
    run_again_with(&KEEPING_BLOCKS);
}

/// Re-executes the program so that freed buffers of a megabyte go back to the system, unless the user has set from which size on. If that
/// fails, it returns, and the process takes more memory.
#[cfg(target_env = "gnu")]
pub fn give_buffers_back() {
    run_again_with(&GIVING_BACK);
}

#[cfg(target_env = "gnu")]
fn run_again_with(variables: &[(&str, &str)]) {
    if let Some((first, _)) = variables.first()
        && std::env::var_os(first).is_none()
        && let Ok(program) = std::env::current_exe()
    {
        let mut args = std::env::args_os();
        let mut again = Command::new(program);
        if let Some(name) = args.next() {
            again.arg0(name);
        }
        // It returns only if it failed.
        let _ = again.args(args).envs(variables.iter().copied()).exec();
    }
}

/// Other libcs have nothing to set.
#[cfg(not(target_env = "gnu"))]
pub fn keep_small() {}

/// Other libcs have nothing to set.
#[cfg(not(target_env = "gnu"))]
pub fn give_buffers_back() {}

/// Other libcs have nothing to set.
#[cfg(not(target_env = "gnu"))]
pub fn keep_blocks() {}
