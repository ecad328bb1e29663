//! `table-at --dump`: a table as it was, from its dump and the changes in the logs up to the moment.

use std::fs::File;
use std::io::{BufRead, BufWriter};
use std::path::Path;

use binlogz_flow::events::RunSummary;
use binlogz_row_changes::{DumpedTable, Forward, PastError, TableMoment};

use super::unpacked::unpacked;
use super::{FormatArg, TableAt, Trouble, passed_over};
use crate::Exit;
use crate::cmd::row_changes::{failure, file_name};
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, warn, warn_cut};
use crate::output::OutputTarget;
use crate::progress::WorkProgress;

impl TableAt {
    pub(super) fn go_forward(&self, dump: &Path, target: &OutputTarget) -> Result<Exit, Trouble> {
        if let Some(other) = self.format.filter(|format| *format != FormatArg::Sql) {
            let line = format!(
                "--format {} needs --server: the values of a dump are passed on as they are spelled",
                other.suffix()
            );
            return Err(CommandFailure::Line(line).into());
        }
        let database = self.of.0.as_str();
        let name = self.of.1.as_str();
        let dumped = DumpedTable::find(open(dump)?, (database, name))?;
        let cascades = dumped.unlogged_cascades();
        if !cascades.is_empty() {
            warn(&format!(
                "{database}.{name}: rows that these foreign keys changed are not in the logs of this server, and stay as they \
                 are in the dump: {}",
                cascades.join(", ")
            ));
        }
        let are_logged = cascades.is_empty();
        let mut forward = Forward::new(&dumped, self.at.moment, self.over_statements);
        let keyring = self.keyring.open()?;
        let count = self.files.len();
        let mut exit = if are_logged { Exit::Done } else { Exit::Negative };
        for (number, log) in self.files.iter().enumerate() {
            let input = log.open(keyring.as_ref())?;
            let progress = WorkProgress::of(log, log.size()?, (number + 1, count));
            let input = progress.watch(input);
            let name = file_name(log);
            let read = forward.read(input, &name, workers(self.jobs), &mut |bytes| progress.at(bytes));
            let (RunSummary { read, unread }, goes_on) = read.map_err(|error| match error {
                PastError::Log(error) => Trouble::Line(failure(log, error)),
                error => Trouble::Past(error),
            })?;
            exit = exit.max(self.cross(log, unread)?);
            if let Some(cut) = read.cut {
                warn_cut(log, cut, "; they are left out");
            }
            if !goes_on {
                break;
            }
        }
        let when = match self.at.moment {
            TableMoment::After(_) => "after",
            TableMoment::Before(_) => "before",
        };
        let title = format!(
            "binlogz table-at: {database}.{name} of {} as it was {when} {}",
            dump.display(),
            self.at.text
        );
        exit = exit.max(passed_over(forward.passed_statements()));
        let mut output = target.create_printed()?;
        let mut out = BufWriter::new(&mut output);
        forward.write(open(dump)?, &title, &mut out)?;
        drop(out);
        output.finish()?;
        Ok(exit)
    }
}

/// It is read twice: the place in the log may stand at its end.
fn open(dump: &Path) -> Result<Box<dyn BufRead>, Trouble> {
    let trouble = |error: &dyn std::fmt::Display| CommandFailure::of(&dump.display(), error);
    let file = File::open(dump).map_err(|error| trouble(&error))?;
    let kind = file.metadata().map_err(|error| trouble(&error))?.file_type();
    if kind.is_dir() {
        let line = "is a folder, expected a file of mysqldump: dumps of MySQL Shell are not read";
        return Err(trouble(&line).into());
    }
    if !kind.is_file() {
        return Err(trouble(&"is a pipe, expected a file: it is read twice").into());
    }
    Ok(unpacked(file).map_err(|error| trouble(&error))?)
}
