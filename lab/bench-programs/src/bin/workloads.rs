//! Makes the five workloads' binlogs, or finds them in the cache, and prints for each: setting, workload, bytes, path.
//! `--of shapes` makes those of the three other shapes, `--of more-shapes` those of ten more, `--of later-shapes` those of six after them.
//!
//! usage: `workloads [--of workloads|shapes|more-shapes|later-shapes] [--scale 1] [--setting plain|levelN[+OPTION=VALUE…]]…`

use std::process::ExitCode;

use binlogz_testkit::workload::{self, WorkloadSetting};

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
    let mut of = "workloads".to_owned();
    let mut settings: Vec<WorkloadSetting> = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
        match arg.as_str() {
            "--of" => of = value,
            "--scale" => scale = value.parse()?,
            "--setting" => settings.push(value.parse()?),
            _ => return Err(format!("unknown option {arg}").into()),
        }
    }
    if settings.is_empty() {
        settings.push(WorkloadSetting::plain());
    }
    for setting in &settings {
        let shapes = match of.as_str() {
            "workloads" => {
                for binlog in workload::binlogs(scale, setting)? {
                    println!(
                        "{setting}\t{}\t{}\t{}",
                        binlog.workload.name(),
                        binlog.bytes,
                        binlog.path.display()
                    );
                }
                continue;
            }
            "shapes" => workload::shape_binlogs(scale, setting)?,
            "more-shapes" => workload::more_shape_binlogs(scale, setting)?,
            "later-shapes" => workload::later_shape_binlogs(scale, setting)?,
            other => return Err(format!("unknown kind of logs {other}").into()),
        };
        for binlog in shapes {
            println!("{setting}\t{}\t{}\t{}", binlog.shape.name(), binlog.bytes, binlog.path.display());
        }
    }
    Ok(())
}
