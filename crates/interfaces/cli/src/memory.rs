//! The allocator of the static programs. The settings for glibc are in `binlogz_cli_common::malloc`.

/// musl's own malloc takes a lock for each call.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
