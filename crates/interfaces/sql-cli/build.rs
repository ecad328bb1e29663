//! Links the command line at a fixed address, as the packages' static programs are: a position-independent program of this size
//! spends most of a small job's time on relocating pointers before `main` (lab/book/sql.md).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable, value| env::var(variable).is_ok_and(|set| set == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
