//! Option files: `my.cnf` and its kin, where MySQL's programs look for them and as they read them.
//!
//! In this order, later files winning:
//!
//! ```text
//! /etc/my.cnf · /etc/mysql/my.cnf · $MYSQL_HOME/my.cnf · --defaults-extra-file · ~/.my.cnf
//! or --defaults-file alone, or none of them with --no-defaults
//! ~/.mylogin.cnf, unless --no-login-paths: see login_file.rs
//! ```
//!
//! `parse` reads the lines; this module finds the files and selects the groups. The caller interprets the
//! options: each comes as a name and a value, in order, as if it preceded the command line.

mod login_file;
mod parse;

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::connect_options::ConnectOptions;
use crate::error::{Error, FileContext, Result};
use parse::{OptionLine, parse_line};

const GLOBAL_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// The groups that binlogz's commands read; `dump` reads mysqlbinlog's.
pub const BINLOGZ_GROUPS: [&str; 2] = ["client", "binlogz"];
const GROUP_SUFFIX: &str = "MYSQL_GROUP_SUFFIX";
/// The environment variable that names a file in place of `~/.mylogin.cnf`.
const LOGIN_FILE: &str = "MYSQL_TEST_LOGIN_FILE";
/// The login path that is read without asking.
const DEFAULT_LOGIN_PATH: &str = "client";
/// How deep files may include others.
const INCLUDE_DEPTH_MAX: usize = 10;
/// The largest option file that is read, in bytes.
const FILE_SIZE_MAX: u64 = 1 << 20;
/// Write permission for everybody: such a file is ignored.
const WRITABLE_BY_ALL: u32 = 0o002;

/// Which option files to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionFiles {
    /// `--defaults-file`: this file alone.
    pub defaults_file: Option<PathBuf>,
    /// `--defaults-extra-file`: this file after the global ones.
    pub defaults_extra_file: Option<PathBuf>,
    /// `--no-defaults`: none but the login file.
    pub no_defaults: bool,
    /// `--defaults-group-suffix`: of each group also the one with this after its name.
    pub group_suffix: Option<String>,
    /// `--login-path`: the group of the login file to read.
    pub login_path: Option<String>,
    /// `--no-login-paths`: not the login file.
    pub no_login_paths: bool,
}

/// An option that stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOption {
    /// The option's name, as written in the file.
    pub name: String,
    /// The option's value; `None` without an equals sign.
    pub value: Option<String>,
    /// The file that contains it.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
}

impl FileOption {
    /// The option as an argument of a program, as in `--name=value`. It may hold a password.
    pub fn to_argument(&self) -> String {
        match &self.value {
            Some(value) => format!("--{}={value}", self.name),
            None => format!("--{}", self.name),
        }
    }

    /// An error about the option, with its place.
    pub fn error(&self, problem: impl ToString) -> Error {
        Error::OptionFile { path: self.path.clone(), line: self.line, problem: problem.to_string() }
    }
}

/// The settings of the option files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The options of the groups asked for, in order: a later one wins.
    pub options: Vec<FileOption>,
    /// The settings that were passed over, in words.
    pub warnings: Vec<String>,
}

impl Defaults {
    /// Sets all options of a connection; gives the others.
    pub fn apply(self, connect: &mut ConnectOptions) -> Result<Vec<FileOption>> {
        let mut others = Vec::new();
        for option in self.options {
            match connect.set(&option.name, option.value.as_deref()) {
                Ok(true) => {}
                Ok(false) => others.push(option),
                Err(error) => return Err(option.error(error)),
            }
        }
        Ok(others)
    }
}

impl OptionFiles {
    /// Takes the options that say which files to read from the front of a command line, the only place where
    /// they are allowed; returns how many it took.
    pub fn take_arguments(&mut self, arguments: &[String]) -> usize {
        arguments.iter().take_while(|argument| self.take_argument(argument)).count()
    }

    fn take_argument(&mut self, argument: &str) -> bool {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        };
        match (name, value) {
            ("--no-defaults", None) => self.no_defaults = true,
            ("--no-login-paths", None) => self.no_login_paths = true,
            ("--defaults-file", Some(path)) => self.defaults_file = Some(path.into()),
            ("--defaults-extra-file", Some(path)) => self.defaults_extra_file = Some(path.into()),
            ("--defaults-group-suffix", Some(suffix)) => self.group_suffix = Some(suffix.to_owned()),
            ("--login-path", Some(path)) => self.login_path = Some(path.to_owned()),
            _ => return false,
        }
        true
    }

    /// Reads the options of these groups, as in `["client", "mysqlbinlog"]`.
    ///
    /// # Errors
    ///
    /// A file that was asked for and can't be read, and lines that are neither group nor option.
    pub fn read(&self, groups: &[&str]) -> Result<Defaults> {
        let suffix = self.group_suffix.clone().or_else(|| env::var(GROUP_SUFFIX).ok());
        let mut reader = Reader::new(groups, suffix.as_deref());
        if let Some(path) = &self.defaults_file {
            reader.read_required(path)?;
        } else if !self.no_defaults {
            for path in GLOBAL_FILES {
                reader.read_if_there(Path::new(path))?;
            }
            if let Some(home) = env::var_os("MYSQL_HOME") {
                reader.read_if_there(&Path::new(&home).join("my.cnf"))?;
            }
            if let Some(path) = &self.defaults_extra_file {
                reader.read_required(path)?;
            }
            if let Some(home) = env::home_dir() {
                reader.read_if_there(&home.join(".my.cnf"))?;
            }
        }
        if !self.no_login_paths {
            let login_path = self.login_path.as_deref().unwrap_or(DEFAULT_LOGIN_PATH);
            reader.add_groups(&[login_path], suffix.as_deref());
            let path = env::var_os(LOGIN_FILE).map(PathBuf::from);
            if let Some(path) = path.or_else(|| Some(env::home_dir()?.join(".mylogin.cnf"))) {
                reader.read_login_file(&path)?;
            }
        }
        Ok(reader.defaults)
    }
}

/// Collects options from files.
struct Reader {
    groups: Vec<String>,
    defaults: Defaults,
}

impl Reader {
    fn new(groups: &[&str], suffix: Option<&str>) -> Self {
        let mut reader = Reader { groups: Vec::new(), defaults: Defaults::default() };
        reader.add_groups(groups, suffix);
        reader
    }

    fn add_groups(&mut self, groups: &[&str], suffix: Option<&str>) {
        for group in groups {
            self.groups.push((*group).to_owned());
            self.groups.extend(suffix.map(|suffix| format!("{group}{suffix}")));
        }
    }

    fn read_required(&mut self, path: &Path) -> Result<()> {
        let file = File::open(path).at("open", path)?;
        self.read_file(path, file, 0)
    }

    fn read_if_there(&mut self, path: &Path) -> Result<()> {
        match File::open(path) {
            Ok(file) => self.read_file(path, file, 0),
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    self.warn(format!("{} is ignored: {error}", path.display()));
                }
                Ok(())
            }
        }
    }

    fn read_login_file(&mut self, path: &Path) -> Result<()> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                self.warn(format!("{} is ignored: {error}", path.display()));
                return Ok(());
            }
        };
        // Its encryption keeps nobody out: the key stands in front.
        if file.metadata().at("look at", path)?.permissions().mode() & 0o177 != 0 {
            self.warn(format!("{} is ignored: others than its owner can use it", path.display()));
            return Ok(());
        }
        let text = login_file::decrypt(&read_all(path, file)?)
            .map_err(|problem| Error::Option(format!("read {}: {problem}", path.display())))?;
        self.read_text(path, &text, 0)
    }

    fn read_file(&mut self, path: &Path, file: File, depth: usize) -> Result<()> {
        let metadata = file.metadata().at("look at", path)?;
        if metadata.is_file() && metadata.permissions().mode() & WRITABLE_BY_ALL != 0 {
            self.warn(format!("{} is ignored: everybody can write it", path.display()));
            return Ok(());
        }
        self.read_text(path, &read_all(path, file)?, depth)
    }

    fn read_text(&mut self, path: &Path, text: &[u8], depth: usize) -> Result<()> {
        // Before the first group; in a group asked for; in another.
        let mut wanted = None;
        for (line, number) in text.split(|&byte| byte == b'\n').zip(1..) {
            let bad = |problem: String| Error::OptionFile { path: path.to_owned(), line: number, problem };
            let line = std::str::from_utf8(line).map_err(|_| bad("text is not UTF-8".into()))?;
            match parse_line(line).map_err(|problem| bad(problem.into()))? {
                OptionLine::Nothing => {}
                OptionLine::Group(name) => wanted = Some(self.groups.iter().any(|group| group == name)),
                OptionLine::Option { name, value } => match wanted {
                    None => return Err(bad("option stands in no group".into())),
                    Some(false) => {}
                    Some(true) => self.defaults.options.push(FileOption {
                        name: name.to_owned(),
                        value,
                        path: path.to_owned(),
                        line: number,
                    }),
                },
                OptionLine::Include(_) | OptionLine::IncludeDirectory(_) if depth >= INCLUDE_DEPTH_MAX => {
                    self.warn(format!(
                        "{} line {number}: files include one another too deeply",
                        path.display()
                    ));
                }
                OptionLine::Include(file) => self.include(Path::new(file), depth + 1)?,
                OptionLine::IncludeDirectory(directory) => {
                    self.include_directory(Path::new(directory), depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn include(&mut self, path: &Path, depth: usize) -> Result<()> {
        match File::open(path) {
            Ok(file) => self.read_file(path, file, depth),
            Err(error) => {
                self.warn(format!("{} is ignored: {error}", path.display()));
                Ok(())
            }
        }
    }

    /// Each `.cnf` of a directory, by name.
    fn include_directory(&mut self, directory: &Path, depth: usize) -> Result<()> {
        let entries = fs::read_dir(directory).at("read", directory)?;
        let mut paths =
            entries.map(|entry| Ok(entry.at("read", directory)?.path())).collect::<Result<Vec<PathBuf>>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "cnf"));
        paths.sort();
        paths.iter().try_for_each(|path| self.include(path, depth))
    }

    fn warn(&mut self, warning: String) {
        self.defaults.warnings.push(warning);
    }
}

fn read_all(path: &Path, file: File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(FILE_SIZE_MAX + 1).read_to_end(&mut bytes).at("read", path)?;
    if bytes.len() as u64 > FILE_SIZE_MAX {
        return Err(Error::Option(format!("{} is no option file: it has more than 1 MiB", path.display())));
    }
    Ok(bytes)
}
