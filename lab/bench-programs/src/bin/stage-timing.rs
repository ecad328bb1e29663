//! Runs the five workloads at a level on a server that times its own compressing, and prints for each: level,
//! workload, seconds of the stage "Compressing transaction changes." for a gigabyte of events, path of the binlog.
//!
//! After each workload it waits for a line on standard input, so that a comparison has the machine to itself.
//!
//! usage: `stage-timing FOLDER [--scale 1] [--level N]…        The binlogs go into FOLDER.`

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use binlogz_testkit::Tool;
use binlogz_testkit::workload::Workload;

const STAGE: &str = "stage/sql/Compressing transaction changes.";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stage-timing: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().ok_or("no folder")?;
    let mut scale = 1.0;
    let mut levels = Vec::new();
    while let Some(arg) = args.next() {
        let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
        match arg.as_str() {
            "--scale" => scale = value.parse()?,
            "--level" => levels.push(value.parse()?),
            _ => return Err(format!("unknown option {arg}").into()),
        }
    }
    for level in levels {
        let instrument = format!("{STAGE}=ON");
        let server = Tool::Mysql
            .find()?
            .sandbox()
            .compression(level)
            .option("performance-schema-instrument", &instrument)
            .start()?;
        for workload in Workload::ALL {
            server.sql(
                "FLUSH BINARY LOGS; TRUNCATE performance_schema.events_stages_summary_global_by_event_name; \
                 TRUNCATE performance_schema.binary_log_transaction_compression_stats",
            )?;
            workload.run(&server, scale)?;
            // Picoseconds a byte are milliseconds a gigabyte.
            let per_gb = server.sql(&format!(
                "SELECT (SELECT SUM(SUM_TIMER_WAIT) FROM performance_schema.events_stages_summary_global_by_event_name \
                 WHERE EVENT_NAME = '{STAGE}') / (SELECT SUM(UNCOMPRESSED_BYTES_COUNTER) FROM \
                 performance_schema.binary_log_transaction_compression_stats WHERE COMPRESSION_TYPE = 'ZSTD') / 1000"
            ))?;
            let closed = server.flush_binary_logs()?;
            let kept = Path::new(&folder).join(format!("{}-{level}", workload.name()));
            fs::copy(&closed, &kept)?;
            println!("{level}\t{}\t{}\t{}", workload.name(), per_gb.trim(), kept.display());
            std::io::stdin().read_line(&mut String::new())?;
        }
    }
    Ok(())
}
