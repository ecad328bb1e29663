//! The fault shim, under commonly installed programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use binlogz_testkit::faults::{Call, CallFault, FaultRule, FaultShim, Faults};

/// Ten bytes a write.
fn dd(faults: &Faults, to: &Path, count: u32) -> Output {
    let mut dd = Command::new("dd");
    dd.args(["if=/dev/zero", "bs=10", "conv=fsync", &format!("count={count}")]);
    dd.arg(format!("of={}", to.display())).envs(faults.env()).env("LC_ALL", "C").output().unwrap()
}

#[track_caller]
fn fails(output: Output, with: &str) {
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains(with), "{said}");
}

#[test]
fn calls_fail_as_the_rules_say() {
    let Some(shim) = FaultShim::require() else { return };
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    let mut faults = shim.faults(&folder.path().join("page"), 1).unwrap();
    let (inside, outside) = (below.join("file"), folder.path().join("file"));
    let size = |path: &Path| fs::metadata(path).unwrap().len();
    let rule = |call, fault| FaultRule::new(call, fault).below(&below);

    assert!(dd(&faults, &inside, 8).status.success());
    faults.set(&[rule(Call::Write, CallFault::NO_SPACE).after(3).count(1)]).unwrap();
    fails(dd(&faults, &inside, 8), "No space left on device");
    assert_eq!((size(&inside), faults.matched().unwrap(), faults.failed().unwrap()), (30, vec![4], vec![1]));
    assert!(dd(&faults, &outside, 8).status.success(), "another folder");
    assert!(dd(&faults, &inside, 8).status.success(), "no more than it said");

    faults.set(&[rule(Call::Write, CallFault::Short)]).unwrap();
    let output = dd(&faults, &inside, 8);
    assert!(output.status.success() && faults.failed().unwrap()[0] > 8, "{output:?}");
    assert_eq!(size(&inside), 80, "dd writes the rest");
    faults.set(&[rule(Call::Sync, CallFault::IO)]).unwrap();
    fails(dd(&faults, &inside, 1), "Input/output error");
    faults.set(&[rule(Call::Open, CallFault::TOO_MANY_FILES)]).unwrap();
    fails(dd(&faults, &inside, 1), "Too many open files");
    faults.set(&[rule(Call::Sync, CallFault::Delay(Duration::from_millis(300)))]).unwrap();
    let begin = Instant::now();
    assert!(dd(&faults, &inside, 1).status.success() && begin.elapsed() >= Duration::from_millis(300));

    let run = |faults: &Faults, program: &str, arguments: [&str; 2]| {
        let mut command = Command::new(program);
        // Relative paths are those of the working directory.
        command.args(arguments.iter().filter(|argument| !argument.is_empty())).current_dir(&below);
        command.envs(faults.env()).env("LC_ALL", "C").output().unwrap()
    };
    for (call, program, arguments) in [
        (Call::Read, "cat", ["file", ""]),
        (Call::Rename, "mv", ["file", "other"]),
        (Call::Unlink, "rm", ["./file", ""]),
        (Call::Mkdir, "mkdir", ["new", ""]),
        (Call::List, "ls", [".", ""]),
    ] {
        faults.set(&[rule(call, CallFault::IO)]).unwrap();
        fails(run(&faults, program, arguments), "Input/output error");
    }
    assert_eq!(fs::read_dir(&below).unwrap().count(), 1, "what failed did nothing");
    faults.clear().unwrap();
    assert!(run(&faults, "mv", ["file", "other"]).status.success());
}

#[test]
fn a_seed_decides_which_calls_fail() {
    let Some(shim) = FaultShim::require() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("file");
    let written = |seed: u64| {
        let mut faults = shim.faults(&folder.path().join("page"), seed).unwrap();
        faults.set(&[FaultRule::new(Call::Write, CallFault::IO).on("*/file").chance(0.02)]).unwrap();
        fails(dd(&faults, &to, 2000), "Input/output error");
        fs::metadata(&to).unwrap().len()
    };
    let sizes: Vec<u64> = (0..8).map(written).collect();
    assert_eq!(sizes, (0..8).map(written).collect::<Vec<_>>());
    assert!(sizes.iter().any(|size| *size != sizes[0]), "{sizes:?}");
}

#[test]
fn the_clock_of_the_day_jumps_and_comes_back() {
    let Some(shim) = FaultShim::require() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut faults = shim.faults(&folder.path().join("page"), 1).unwrap();
    let date = |faults: &Faults| {
        let output = Command::new("date").arg("+%s").envs(faults.env()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
    };
    let right = date(&faults);
    for ahead in [-300_000, 300_000, 0] {
        faults.set_clock(ahead).unwrap();
        faults.clear().unwrap();
        let told = date(&faults) - right;
        assert!((ahead..ahead + 3600).contains(&told), "{told} s, {ahead} wanted");
    }
}
