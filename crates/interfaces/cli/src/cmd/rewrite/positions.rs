//! The file that says where each transaction was and is, to translate positions from the old log to the new.
//!
//! One line a transaction, tabs between the columns of [`HEADING`]: the log as it was named, the GTID, and
//! where the transaction begins and ends in the old log and in the new one.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use binlogz_flow::MovedTransaction;

use super::Job;
use crate::failure::{CommandFailure, Result};
use crate::output::{self, OpenOutput, OutputTarget};

/// The first line.
const HEADING: &str = "file\tgtid\told_start\told_end\tnew_start\tnew_end";

/// The placeholder for the GTID of a transaction without one.
const ANONYMOUS: &str = "ANONYMOUS";

/// Where the file goes, if it may go there.
pub(super) fn target(path: PathBuf, jobs: &[Job], force: bool) -> Result<OutputTarget> {
    let taken =
        |job: &Job| matches!(&job.target, Ok(OutputTarget::File { path: taken, .. }) if *taken == path);
    if jobs.iter().any(taken) {
        return Err(CommandFailure::of(
            &path.display(),
            "is the output, too; --positions needs a file of its own",
        ));
    }
    let inputs: Vec<_> = jobs.iter().filter_map(|job| job.metadata.as_ref().ok()?.clone()).collect();
    output::target(path, &inputs, force)
}

/// The file while it is written.
pub(super) struct PositionsFile<'a> {
    target: &'a OutputTarget,
    out: BufWriter<OpenOutput<'a>>,
    /// Bytes of all lines.
    size: u64,
    /// Bytes of the lines of logs that are done.
    kept: u64,
    /// It could not be written.
    failure: Option<CommandFailure>,
}

impl<'a> PositionsFile<'a> {
    /// Begins the file.
    pub(super) fn create(target: &'a OutputTarget) -> Result<Self> {
        let out = BufWriter::new(target.create()?);
        let mut positions = PositionsFile { target, out, size: 0, kept: 0, failure: None };
        positions.line(HEADING).map_err(|error| CommandFailure::writing(target, &error))?;
        positions.keep();
        Ok(positions)
    }

    /// Notes a transaction. A failure is kept for [`PositionsFile::forget`]: the code that passes the error on can't tell
    /// which file it is about.
    pub(super) fn note(
        &mut self,
        log: &dyn Display,
        MovedTransaction { gtid, old, new }: &MovedTransaction,
    ) -> io::Result<()> {
        let gtid: &dyn Display = match gtid {
            Some(gtid) => gtid,
            None => &ANONYMOUS,
        };
        let line = format!("{log}\t{gtid}\t{}\t{}\t{}\t{}", old.start, old.end, new.start, new.end);
        self.line(&line).map_err(|error| {
            self.failure = Some(CommandFailure::writing(self.target, &error));
            error.kind().into()
        })
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.size += line.len() as u64 + 1;
        writeln!(self.out, "{line}")
    }

    /// The log noted last is done.
    pub(super) fn keep(&mut self) {
        self.kept = self.size;
    }

    /// The log noted last failed: it has no new positions. An error: that was because of this file.
    pub(super) fn forget(&mut self) -> Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.size = self.kept;
        let taken_back = self.out.flush().and_then(|()| self.out.get_mut().truncate(self.kept));
        taken_back.map_err(|error| CommandFailure::writing(self.target, &error))
    }

    /// All logs are done.
    pub(super) fn finish(self) -> Result<()> {
        let PositionsFile { target, out, .. } = self;
        let output = out.into_inner().map_err(|error| CommandFailure::writing(target, error.error()))?;
        output.finish()
    }
}
