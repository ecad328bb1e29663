//! Runs the real program over the samples, as they are, compressed, and in an archive.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::erase::{self, EraseOptions, ErasePlan, LogRemains, WrittenRemains};
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::storage::{self, ArchiveStorage};
use binlogz_archive::{Level, Scratch};
use binlogz_flow::{Input, Rewrite, Rewriter};
use binlogz_payload::CompressOptions;
use binlogz_row_changes::{Condition, Eraser, ErasureAim};
use binlogz_schema::TablesOfLogs;
use tempfile::TempDir;

/// Bytes of an archive's blocks here: small, so that there are some to skip.
const BLOCK_SIZE: usize = 16 << 10;

/// The variable that names the key of an encrypted archive.
pub(crate) const KEY_FILE: &str = "BINLOGZ_ARCHIVE_KEY_FILE";

/// The output and the end of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl Ran {
    /// The run's output. Fails the test unless the run succeeded in silence.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, &*without_names_told(&self.error)), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// The one line it failed with.
    #[track_caller]
    pub(crate) fn failure(self) -> String {
        assert_eq!(self.code, Some(2), "{self:?}");
        let told = without_names_told(&self.error);
        assert_eq!(told.lines().count(), 1, "{told}");
        told.trim_end().trim_start_matches("binlogz-sql: ").to_owned()
    }
}

/// What was told, but for the line that says how names of columns are got.
pub(crate) fn without_names_told(told: &str) -> String {
    told.split_inclusive('\n').filter(|line| !line.contains(": @1 is the first column")).collect()
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
    }
}

/// The program, without input.
pub(crate) fn sql<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogz-sql"));
    command.args(args).stdin(Stdio::null()).env("TZ", "UTC").env_remove("COLUMNS");
    command
}

/// A statement over inputs.
pub(crate) fn ask(statement: &str, inputs: &[PathBuf]) -> Ran {
    let mut command = sql(["--format", "csv", statement]);
    command.args(inputs).output().unwrap().into()
}

/// A statement over input in a pipe.
pub(crate) fn ask_pipe(statement: &str, input: &[u8]) -> Ran {
    let mut command = sql(["--format", "csv", statement, "-"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap().into()
}

/// The tables of the samples: their logs have no names of columns.
pub(crate) fn schema() -> PathBuf {
    root().join("crates/interfaces/sql-cli/tests/sql/samples.sql")
}

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// Some logs in three shapes: as they are, compressed, and in an archive.
pub(crate) struct Shapes {
    pub(crate) plain: Vec<PathBuf>,
    pub(crate) compressed: Vec<PathBuf>,
    pub(crate) archive: PathBuf,
    _folder: TempDir,
}

/// Archives logs, in small blocks.
pub(crate) fn archive_of(logs: &[PathBuf], archive: &Path) {
    archive_in(&storage::at(archive).unwrap(), logs);
}

/// Archives logs in small blocks, in a storage that may encrypt them.
pub(crate) fn archive_in(storage: &dyn ArchiveStorage, logs: &[PathBuf]) {
    archive_in_blocks(storage, logs, Some(BLOCK_SIZE));
}

/// Archives logs, in blocks of some size or as a user does.
pub(crate) fn archive_in_blocks(storage: &dyn ArchiveStorage, logs: &[PathBuf], block_size: Option<usize>) {
    let mut told = |_: &CreateOutcome| {};
    let mut creator = Creator::new(storage, 2, &mut told).unwrap();
    if let Some(size) = block_size {
        creator.block_size(size);
    }
    for path in logs {
        let name = path.file_name().unwrap().to_str().unwrap();
        creator.add(name, Arc::new(File::open(path).unwrap())).unwrap();
    }
    creator.finish().unwrap();
}

/// An archive of the first sample from which the changes of a row were taken out.
pub(crate) fn erased_archive(folder: &Path) -> PathBuf {
    let archive = folder.join("erased");
    archive_of(&SHAPES.plain[..1], &archive);
    let storage = storage::at(&archive).unwrap();
    let manifest = Manifest::read(&storage).unwrap().unwrap();
    let table = ("employees".to_owned(), "employees".to_owned());
    let aim = ErasureAim::new([(table, Condition::parse("@1 = 10001").unwrap())]).taking_rows();
    let eraser = Eraser::new(&aim, Arc::new(TablesOfLogs::forward(None)));
    let plan = ErasePlan::of(&manifest, manifest.files.clone(), BTreeSet::new());
    let options = EraseOptions {
        table: aim.shown(),
        level: Level::Fast,
        workers: 1,
        grace: Duration::ZERO,
        now: SystemTime::now(),
    };
    let summary = erase::erase(&storage, &plan, &options, &mut ErasedRows(eraser), &mut |_| {}).unwrap();
    assert!(summary.logs[0].erasures[0].rows > 0);
    archive
}

/// What is left of logs without the rows.
struct ErasedRows<'a>(Eraser<'a>);

impl LogRemains for ErasedRows<'_> {
    fn pass(&mut self, _: &FileEntry) -> binlogz_archive::Result<()> {
        Ok(())
    }

    fn write(
        &mut self,
        file: &FileEntry,
        plain: Arc<Scratch>,
        blocks: &[u64],
        out: &mut dyn Write,
    ) -> binlogz_archive::Result<WrittenRemains> {
        let erasure = self.0.write(&file.name, plain, blocks, out).unwrap();
        Ok(WrittenRemains {
            rows: erasure.counts.rows,
            same_until: erasure.same_until.unwrap(),
            block_begins: erasure.block_begins,
            changed_blocks: erasure.changed_blocks,
        })
    }
}

/// The samples, plain; compressed by us; in an archive of small blocks.
pub(crate) static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let mut plain: Vec<_> =
        fs::read_dir(root().join("samples/plain")).unwrap().map(|entry| entry.unwrap().path()).collect();
    plain.sort();
    let archive = folder.path().join("archive");
    archive_of(&plain, &archive);
    let mut compressed = Vec::new();
    for path in &plain {
        let twin = folder.path().join(path.file_name().unwrap());
        let how = Rewrite::Compress(CompressOptions::default());
        Rewriter::new(how).workers(2).run(Input::open(path).unwrap(), File::create(&twin).unwrap()).unwrap();
        assert!(fs::metadata(&twin).unwrap().len() <= fs::metadata(path).unwrap().len());
        compressed.push(twin);
    }
    Shapes { plain, compressed, archive, _folder: folder }
});

impl Shapes {
    /// The answer to a file of statements, of each shape: it must be the same.
    #[track_caller]
    pub(crate) fn same(&self, statements: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("statements.sql");
        fs::write(&file, statements).unwrap();
        let run = |inputs: &[PathBuf]| -> String {
            let mut command = sql(["--format", "csv", "--schema"]);
            command.arg(schema()).arg("--file").arg(&file).args(inputs);
            Ran::from(command.output().unwrap()).ok()
        };
        let plain = run(&self.plain);
        assert_eq!(run(&self.compressed), plain, "compressed");
        assert_eq!(run(std::slice::from_ref(&self.archive)), plain, "archive");
        plain
    }
}
