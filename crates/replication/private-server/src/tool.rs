//! Programs that run beside binlogz: MySQL and MariaDB of several versions, sysbench, zstd, Chromium, versitygw, openssl.
//!
//! `scripts/get-tool.sh` installs them; this module asks the script once a process and runs the installed programs. The
//! script is built in, so that a program away from the checkout finds them by the same rules.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// A program, or a family of them, that `scripts/get-tool.sh` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// MySQL 9.7: mysqld, mysql, mysqladmin, mysqldump, mysqlbinlog.
    Mysql,
    /// MariaDB 10.11: mariadbd, mariadb, mariadb-admin, mariadb-binlog.
    Mariadb,
    /// sysbench 1.0.20.
    Sysbench,
    /// The zstd command line of libzstd 1.5.7.
    Zstd,
    /// A change-data-capture client that can't read compressed transactions: Python with mysql-replication.
    Cdc,
    /// ADBC's client of Flight SQL and pyarrow, in a virtual environment of Python.
    FlightSql,
    /// A headless Chromium, for pages.
    Chromium,
    /// versitygw 1.8, an S3 server over a folder.
    Versitygw,
    /// The openssl command line, which makes certificates.
    Openssl,
    /// Java 25, for libraries that are called through foreign memory.
    Java,
    /// MySQL 5.5.34: mysqld alone. MariaDB's client speaks to it.
    Mysql55,
    /// MySQL 5.6.14, alike.
    Mysql5614,
    /// MySQL 5.6.24, alike.
    Mysql56,
    /// MySQL 8.0.33, a download of 550 MB: mysqld, mysql, mysqladmin, mysqldump, mysqlbinlog.
    Mysql80,
    /// MariaDB 10.1.23: mariadbd alone. 10.11's client speaks to it, and to the other versions but 11.4.
    Mariadb101,
    /// MariaDB 10.2.11, alike.
    Mariadb102,
    /// MariaDB 10.5: mariadbd.
    Mariadb105,
    /// MariaDB 11.4.5: mariadbd, mariadb, mariadb-dump.
    Mariadb114,
    /// MariaDB 11.8: mariadbd. The last one: [`Tool::COUNT`].
    Mariadb118,
}

impl Tool {
    const COUNT: usize = Tool::Mariadb118 as usize + 1;

    /// The name `scripts/get-tool.sh` knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Mysql => "mysql",
            Tool::Mariadb => "mariadb",
            Tool::Sysbench => "sysbench",
            Tool::Zstd => "zstd",
            Tool::Cdc => "cdc",
            Tool::FlightSql => "flight-sql",
            Tool::Chromium => "chromium",
            Tool::Versitygw => "versitygw",
            Tool::Openssl => "openssl",
            Tool::Java => "java",
            Tool::Mysql55 => "mysql-5.5",
            Tool::Mysql5614 => "mysql-5.6.14",
            Tool::Mysql56 => "mysql-5.6",
            Tool::Mysql80 => "mysql-8.0",
            Tool::Mariadb101 => "mariadb-10.1",
            Tool::Mariadb102 => "mariadb-10.2",
            Tool::Mariadb105 => "mariadb-10.5",
            Tool::Mariadb114 => "mariadb-11.4",
            Tool::Mariadb118 => "mariadb-11.8",
        }
    }

    /// The program whose `--version` speaks for the tool.
    fn main_program(self) -> &'static str {
        match self {
            Tool::Mysql | Tool::Mysql55 | Tool::Mysql5614 | Tool::Mysql56 | Tool::Mysql80 => "mysqld",
            Tool::Mariadb
            | Tool::Mariadb101
            | Tool::Mariadb102
            | Tool::Mariadb105
            | Tool::Mariadb114
            | Tool::Mariadb118 => "mariadbd",
            Tool::Sysbench => "sysbench",
            Tool::Zstd => "zstd",
            Tool::Cdc | Tool::FlightSql => "python",
            Tool::Chromium => "chromium",
            Tool::Versitygw => "versitygw",
            Tool::Openssl => "openssl",
            Tool::Java => "java",
        }
    }

    /// The option that makes it tell its version.
    fn version_argument(self) -> &'static str {
        match self {
            Tool::Openssl => "version",
            _ => "--version",
        }
    }

    /// Where it is installed; installs it first if need be.
    pub fn find(self) -> Result<&'static InstalledTool> {
        static FOUND: [OnceLock<std::result::Result<InstalledTool, String>>; Tool::COUNT] =
            [const { OnceLock::new() }; Tool::COUNT];
        #[expect(clippy::indexing_slicing, reason = "there are as many cells as tools")]
        let found = &FOUND[self as usize];
        found
            .get_or_init(|| install(self).map_err(|error| error.to_string()))
            .as_ref()
            .map_err(|reason| Error::Unavailable(reason.clone()))
    }
}

/// An installed [`Tool`].
#[derive(Debug)]
pub struct InstalledTool {
    prefix: PathBuf,
    version: String,
}

impl InstalledTool {
    /// The tool's directory: programs are in `bin` or `sbin`.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The version its main program announces, as in `9.7.4`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A command that runs `program` of this tool.
    pub fn command(&self, program: &str) -> Command {
        let sbin = self.prefix.join("sbin").join(program);
        Command::new(if sbin.is_file() { sbin } else { self.prefix.join("bin").join(program) })
    }

    /// Runs `program` to its end; the caller judges its output and its exit code.
    pub fn run<A: AsRef<OsStr>>(&self, program: &str, args: impl IntoIterator<Item = A>) -> Result<Output> {
        self.command(program).args(args).output().map_err(|error| Error::Io(format!("run {program}"), error))
    }

    /// Runs this MySQL's `mysqlbinlog`.
    pub fn mysqlbinlog<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<Output> {
        self.run("mysqlbinlog", args)
    }

    /// The release of the shared libzstd that came with it, as in `1.5.7`; `None` where it brought none
    /// (a server of your own may have its libzstd built in).
    pub fn libzstd_version(&self) -> Option<String> {
        let lib = self.prefix.join("root/usr/lib");
        let platforms = fs::read_dir(lib).ok()?;
        let link =
            platforms.flatten().map(|dir| dir.path().join("libzstd.so.1")).find(|path| path.exists())?;
        let file = fs::canonicalize(link).ok()?;
        file.file_name()?.to_str()?.strip_prefix("libzstd.so.").map(str::to_owned)
    }
}

/// Finds programs, and installs them.
const SCRIPT: &str = include_str!("../get-tool.sh");

/// From now on nothing is installed, and only programs that are there already are found. For programs that no user asked
/// to install anything.
pub fn install_nothing() {
    INSTALL_NOTHING.store(true, Ordering::Relaxed);
}

static INSTALL_NOTHING: AtomicBool = AtomicBool::new(false);

fn install(tool: Tool) -> Result<InstalledTool> {
    let mut command = Command::new("bash");
    command.args(["-c", SCRIPT, "get-tool.sh", tool.name()]);
    if INSTALL_NOTHING.load(Ordering::Relaxed) {
        command.env("BINLOGZ_NO_INSTALL", "1");
    }
    let output = command.output().map_err(|error| Error::Io("run bash".into(), error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Unavailable(said));
    }
    let prefix = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let mut installed = InstalledTool { prefix, version: String::new() };
    let output = installed.run(tool.main_program(), [tool.version_argument()])?;
    let [printed, complaint] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    installed.version = version_in(&printed).ok_or_else(|| {
        Error::Failed(format!("no version in what {} prints: {printed}{complaint}", tool.main_program()))
    })?;
    Ok(installed)
}

/// The first word that begins like a version: `mysqld  Ver 9.7.4-2 for Linux` gives `9.7.4`.
fn version_in(printed: &str) -> Option<String> {
    let word = printed
        .split_whitespace()
        .map(|word| word.trim_start_matches('v'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))?;
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    Some(word[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        let printed = [
            ("/p/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", "9.7.4"),
            ("mariadbd  Ver 10.11.18-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64", "10.11.18"),
            ("sysbench 1.0.20\n", "1.0.20"),
            ("OpenSSL 3.0.17 1 Jul 2025 (Library: OpenSSL 3.0.17 1 Jul 2025)\n", "3.0.17"),
            ("Python 3.11.7\n", "3.11.7"),
            ("Chromium 150.0.7871.100 built on Debian\n", "150.0.7871.100"),
            ("*** Zstandard CLI (64-bit) v1.5.7, by Yann Collet ***\n", "1.5.7"),
        ];
        for (text, version) in printed {
            assert_eq!(version_in(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(version_in("no number"), None);
    }
}
