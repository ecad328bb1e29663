//! The [five workloads](Workload) and nineteen [shapes](WorkloadShape) of other data, as binlogs of a real server.
//!
//! [`binlogs`] runs them, one binlog file each, once for each scale and [`WorkloadSetting`], and keeps the files in the cache. A
//! workload with compression on differs from the same one without it in times and, with two threads, in order. Expanding
//! a compressed file gives its plain twin.

mod shapes;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use binlogz_sandbox::workload::scaled;
pub use binlogz_sandbox::workload::{Workload, sysbench};
pub use shapes::{ShapeBinlog, WorkloadShape, later_shape_binlogs, more_shape_binlogs, shape_binlogs};

use crate::{IoContext, MysqlSandbox, Result, Tool, cache};

/// Part of the cache key: raised when a workload changes.
const RECIPE: u32 = 1;

/// How the server writes its binlog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadSetting {
    level: Option<u32>,
    options: Vec<(String, String)>,
}

impl WorkloadSetting {
    /// No compression, and the server's defaults.
    pub fn plain() -> WorkloadSetting {
        WorkloadSetting { level: None, options: Vec::new() }
    }

    /// Every transaction compressed at this level.
    pub fn level(level: u32) -> WorkloadSetting {
        WorkloadSetting { level: Some(level), options: Vec::new() }
    }

    /// With one more server option.
    pub fn option(mut self, name: &str, value: &str) -> WorkloadSetting {
        self.options.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// As in `plain`, `level3` and `level3+binlog-checksum=NONE`.
impl fmt::Display for WorkloadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            None => f.write_str("plain")?,
            Some(level) => write!(f, "level{level}")?,
        }
        self.options.iter().try_for_each(|(name, value)| write!(f, "+{name}={value}"))
    }
}

/// The reverse of its `Display`.
impl std::str::FromStr for WorkloadSetting {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<WorkloadSetting, String> {
        let mut parts = text.split('+');
        let mut setting = match parts.next().unwrap_or_default() {
            "plain" => WorkloadSetting::plain(),
            first => match first.strip_prefix("level").map(str::parse) {
                Some(Ok(level @ 1..=22)) => WorkloadSetting::level(level),
                _ => {
                    return Err(format!(
                        "setting {first:?} is neither \"plain\" nor \"level1\" to \"level22\""
                    ));
                }
            },
        };
        for part in parts {
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("option {part:?} has no value"))?;
            setting = setting.option(name, value);
        }
        Ok(setting)
    }
}

/// The binlog of one workload.
#[derive(Clone, Debug)]
pub struct WorkloadBinlog {
    /// Which it is.
    pub workload: Workload,
    /// The file, in the cache: to be read, not changed.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// The five workloads' binlogs at a scale (1.0: the published size) and setting; runs them on a real server
/// the first time, which takes minutes at scale 1.
pub fn binlogs(scale: f64, setting: &WorkloadSetting) -> Result<Vec<WorkloadBinlog>> {
    let mysql = Tool::Mysql.find()?;
    Tool::Sysbench.find()?; // missing: better known before the minutes of work
    let key = format!("workloads-{RECIPE}/mysql-{}/scale-{scale}/{setting}", mysql.version());
    let dir = cache::entry(&key, |dir| run_all(scale, setting, dir))?;
    Workload::ALL
        .iter()
        .map(|&workload| {
            let path = dir.join(file_name(workload));
            let bytes = fs::metadata(&path).at("read", &path)?.len();
            Ok(WorkloadBinlog { workload, path, bytes })
        })
        .collect()
}

fn file_name(workload: Workload) -> String {
    format!("{}.000001", workload.name())
}

/// A server that writes its binlog with this setting.
fn sandbox(setting: &WorkloadSetting) -> Result<MysqlSandbox> {
    let mut builder = Tool::Mysql.find()?.sandbox();
    if let Some(level) = setting.level {
        builder = builder.compression(level);
    }
    for (name, value) in &setting.options {
        builder = builder.option(name, value);
    }
    builder.start()
}

fn run_all(scale: f64, setting: &WorkloadSetting, dir: &Path) -> Result<()> {
    let server = sandbox(setting)?;
    server.sql("FLUSH BINARY LOGS")?; // its first file says when it was started: the others don't
    for workload in Workload::ALL {
        workload.run(&server, scale)?;
        let closed = server.flush_binary_logs()?;
        let kept = dir.join(file_name(workload));
        fs::copy(&closed, &kept).at("copy", &closed)?;
        server.sql("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::WorkloadSetting;

    #[test]
    fn settings_are_read_as_they_are_written() {
        let setting = WorkloadSetting::level(19).option("binlog-checksum", "NONE");
        assert_eq!(setting.to_string(), "level19+binlog-checksum=NONE");
        assert_eq!(setting.to_string().parse(), Ok(setting));
        assert_eq!("plain".parse(), Ok(WorkloadSetting::plain()));
        for wrong in ["", "level", "level0", "level23", "fast", "plain+binlog-checksum"] {
            assert!(wrong.parse::<WorkloadSetting>().is_err(), "{wrong}");
        }
    }
}
