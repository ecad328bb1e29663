//! An empty folder in which the program runs, and all of its output.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use binlogz_testkit::corpus;
use tempfile::TempDir;

use super::PROGRAM;

/// A folder of its own, gone with the test.
pub(crate) struct Folder {
    dir: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder { dir: tempfile::tempdir().unwrap() }
    }

    /// A folder with one sample, such as `binlog.000004`.
    pub(crate) fn with_sample(folder: &str, name: &str) -> Folder {
        let with = Folder::new();
        with.sample(folder, name);
        with
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file.
    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Writes a file that only its owner may read, as keys are.
    pub(crate) fn put_secret(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.put(name, bytes);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// The first segment of an archive.
    pub(crate) fn segment(&self, archive: &str) -> PathBuf {
        let objects = fs::read_dir(self.path(&format!("{archive}/objects"))).unwrap();
        let mut paths = objects.map(|object| object.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|extension| extension == "binlogz")).unwrap()
    }

    /// Puts a sample under its own name, such as `binlog.000004`.
    pub(crate) fn sample(&self, folder: &str, name: &str) -> Vec<u8> {
        let bytes = sample(folder, name);
        self.put(name, &bytes);
        bytes
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names in the folder, hidden files too.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The binary, in this folder, without input.
    pub(crate) fn binlogz<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// The binary, in this folder, without input, called through a link named mysqlbinlog.
    pub(crate) fn mysqlbinlog<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.binlogz(args);
        command.arg0("mysqlbinlog");
        command
    }

    /// Runs it to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        self.binlogz(args).output().unwrap().into()
    }

    /// Runs it with `input` in a pipe.
    pub(crate) fn run_with<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: &[u8]) -> Ran {
        let mut child = self.spawn(args);
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // If the process stops reading, the rest is not written.
            scope.spawn(move || stdin.write_all(input).ok());
            child.wait_with_output().unwrap().into()
        })
    }

    /// Starts it with pipes on all three sides.
    pub(crate) fn spawn<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Child {
        let mut command = self.binlogz(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

/// A file of `samples/`.
pub(crate) fn sample(folder: &str, name: &str) -> Vec<u8> {
    let name = format!("samples/{folder}/{name}");
    corpus::samples().iter().find(|sample| sample.name == name).expect("a sample").read()
}

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    /// `None`: a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("text on stderr"),
        }
    }
}

impl Ran {
    /// Standard output as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("text on stdout")
    }

    /// Compares all that was printed.
    #[track_caller]
    pub(crate) fn is(&self, code: i32, stdout: &str, stderr: &str) {
        assert_eq!((self.text(), self.stderr.as_str(), self.code), (stdout, stderr, Some(code)));
    }

    /// Asserts that the command succeeded, with nothing on standard error.
    #[track_caller]
    pub(crate) fn is_done(&self) {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""));
    }

    /// Bad usage, bad input or I/O trouble: nothing on stdout, one line on stderr.
    #[track_caller]
    pub(crate) fn fails(&self, line: &str) {
        self.is(2, "", &format!("binlogz: {line}\n"));
    }
}

/// Waits for a process to end by itself.
#[track_caller]
pub(crate) fn wait_for(child: &mut Child, limit: Duration) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    panic!("still running after {limit:?}");
}
