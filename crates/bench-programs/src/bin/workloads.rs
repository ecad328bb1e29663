//! Makes the five workloads' binlogs, or with `--of shapes` those of the three other shapes, or finds them in the
//! cache, and prints them: setting, workload, bytes, path.
//!
//! usage: `workloads [--of workloads|shapes] [--scale 1] [--setting plain|levelN[+OPTION=VALUE…]]…`

use std::process::ExitCode;

use binlogz_testkit::workload::{self, Setting};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workloads: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut scale = 1.0;
    let mut shapes = false;
    let mut settings: Vec<Setting> = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
        match arg.as_str() {
            "--of" => shapes = value == "shapes",
            "--scale" => scale = value.parse()?,
            "--setting" => settings.push(value.parse()?),
            _ => return Err(format!("unknown option {arg}").into()),
        }
    }
    if settings.is_empty() {
        settings.push(Setting::plain());
    }
    for setting in settings.iter().filter(|_| shapes) {
        for binlog in workload::shape_binlogs(scale, setting)? {
            println!("{setting}\t{}\t{}\t{}", binlog.shape.name(), binlog.bytes, binlog.path.display());
        }
    }
    for setting in settings.iter().filter(|_| !shapes) {
        for binlog in workload::binlogs(scale, setting)? {
            println!("{setting}\t{}\t{}\t{}", binlog.workload.name(), binlog.bytes, binlog.path.display());
        }
    }
    Ok(())
}
