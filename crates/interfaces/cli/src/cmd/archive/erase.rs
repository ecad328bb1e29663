//! `binlogz archive erase`: takes a person's values out of the logs of an archive. Here are its options and its order of work; [`chosen`] reads which rows
//! are meant, [`children`] which tables refer to them, [`passes`] goes over the logs, [`report`] says what came of it.

mod children;
mod chosen;
mod passes;
mod report;
mod report_file;
mod report_key;

use binlogz_cli_common::malloc::keep_blocks;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use binlogz_archive::erase::{self, EraseOptions, ErasePlan, EraseSummary};
use binlogz_archive::format::Manifest;
use binlogz_archive::storage::ArchiveStorage;
use binlogz_row_changes::{Eraser, ErasureAim};
use binlogz_schema::SchemaFile;
use clap::{ArgGroup, Args};

use super::create::LevelArg;
use super::manner::MannerArgs;
use super::upkeep::GRACE_DEFAULT;
use super::{failure, open_in};
use crate::Exit;
use crate::cmd::row_changes::{read_schema, table};
use crate::cmd::workers;
use crate::failure::{Result, complain};
use crate::format::ReportFormat;
use crate::progress::WorkProgress;
use crate::server_args::ServerArgs;
use crate::terminal::SizesArg;
use crate::units;
use passes::{EraseArchive, ErasePasses, EraseSurvey};
use report::{EraseReport, ErasureWay, LeftUndone};
use report_file::ReportFile;

/// Erase a person's values from the logs of an archive
///
/// Rewrites the logs with changes of rows that meet --where: columns become NULL or empty, or the changes go. Without --execute it only says
/// what would be done. Transactions stay, with their GTIDs; positions after a rewritten one move. Objects that held the values are deleted by a
/// later run, once the time of --grace is over.
///
/// Statements that may hold the values stay and are named, with exit code 1. Other archives, relays, servers and backups are not touched.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "binlogz archive erase [OPTIONS]
           <--table <DB.TABLE> --where <CONDITION>|--where-file <FILE>>
           <--rows|--null <COLUMN,…>|--blank <COLUMN,…>> <ARCHIVE>", disable_help_flag = true,
    group = ArgGroup::new("how").required(true).multiple(true).args(["rows", "null", "blank"]),
    group = ArgGroup::new("chosen").required(true).multiple(true).args(["table", "where_file"]))]
pub(super) struct Erase {
    /// The table; several each have a --where of their own, in the same order
    #[arg(long, value_name = "DB.TABLE", value_parser = table)]
    table: Vec<(String, String)>,
    /// The rows, by an SQL condition on one of their images; name what is the same in all of them, as the key
    #[arg(long, value_name = "CONDITION")]
    r#where: Vec<String>,
    /// Tables and rows from a file, one DB.TABLE CONDITION in a line; - is standard input
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    where_file: Option<PathBuf>,
    /// Choose, too, rows of children that refer to chosen rows by a foreign key, whatever its rules are, and those that refer to them. With
    /// --null and --blank, columns of theirs are named as TABLE.COLUMN
    #[arg(long)]
    children: bool,
    /// Make these columns NULL, by name or as @3
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    null: Vec<String>,
    /// Give these columns the empty value of their type: '', 0, 0000-00-00, JSON null, the first member of an ENUM
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    blank: Vec<String>,
    /// Take the row changes out, whole
    #[arg(long, conflicts_with_all = ["null", "blank"])]
    rows: bool,
    /// Do it, instead of saying what would be done
    #[arg(long)]
    execute: bool,
    /// Take the names of columns and keys, where the logs lack them, and foreign keys from a file of CREATE TABLE statements or from a
    /// server
    #[arg(long, value_name = "FILE.sql|SERVER")]
    schema: Option<String>,
    /// Take out, too, all texts of statements that name a table (binlog_rows_query_log_events); every log is read
    #[arg(long, hide_short_help = true)]
    texts: bool,
    /// Output format; json is a line with the report, and one with the SHA-256 of that line
    #[arg(long, value_enum, default_value_t = ReportFormat::Text, hide_short_help = true)]
    format: ReportFormat,
    /// Write the report into a new file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Sign the report with this Ed25519 key (PKCS #8 in PEM): FILE.sig is its signature, which openssl verifies
    #[arg(long, value_name = "KEY.pem", requires = "report", hide_short_help = true)]
    sign: Option<PathBuf>,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero, hide_short_help = true)]
    jobs: Option<NonZeroUsize>,
    /// How small, and how fast
    #[arg(long, value_enum, default_value_t, hide_short_help = true)]
    level: LevelArg,
    /// How long objects that no log is in any more stay, for restores that have begun; 0 deletes them at once
    #[arg(long, value_name = "DURATION", default_value = GRACE_DEFAULT, value_parser = units::duration_or_zero, hide_short_help = true)]
    grace: Duration,
    #[command(flatten)]
    sizes: SizesArg,
    #[command(flatten)]
    manner: MannerArgs,
    #[command(flatten)]
    connection: ServerArgs,
    /// The archive: its folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
}

/// How servers that are asked for a schema know this program.
const PROGRAM_NAME: &str = "binlogz archive erase";

const EXAMPLES: &str = "Examples:
  binlogz archive erase /backup/db1 --table shop.customers --where 'id = 42' --null email,phone --blank name
  binlogz archive erase /backup/db1 --table shop.customers --where 'id = 42' --rows --children --schema shop.sql --execute

Exit codes: 0 done, or could be; 1 nothing to erase, or something may be left and is named; 2 trouble.";

impl Erase {
    pub(super) fn run(self) -> Result<Exit> {
        keep_blocks();
        let file =
            self.report.as_deref().map(|path| ReportFile::new(path, self.sign.as_deref())).transpose()?;
        let chosen = chosen::rows((&self.table, &self.r#where), self.where_file.as_deref())?;
        let schema = self.schema()?;
        let (storage, manifest) = open_in(&self.archive, &self.manner.manner())?;
        let jobs = workers(self.jobs);
        let told = schema.as_ref().zip(self.schema.as_deref());
        let aim = ErasureAim::new(chosen).taking_texts(self.texts);
        let (aim, references) = match self.children || schema.is_some() {
            true => {
                let references = children::references((&self.archive, &manifest), told, jobs)?;
                (if self.children { aim.with_children(&references) } else { aim }, references)
            }
            false => (aim, Vec::new()),
        };
        let aim = match self.rows {
            true => aim.taking_rows(),
            false => aim.taking_columns(&self.null, &self.blank),
        };
        let archive = EraseArchive { place: &self.archive, storage: &*storage, manifest: &manifest };
        let passes = ErasePasses::new(archive, &aim, schema.as_ref(), jobs);
        let (survey, eraser) = passes.survey(self.texts)?;
        let EraseSurvey { held, strays, .. } = &survey;
        let plan =
            ErasePlan::of(&manifest, held.iter().map(|(file, _)| file.clone()).collect(), strays.clone());
        let mut left = LeftUndone::of(&survey, &aim);
        left.children(children::others(&aim, &references), self.children && schema.is_none());
        let before = plan.stored(&*storage).map_err(failure(&self.archive))?;
        let how = ErasureWay { rows: self.rows, null: self.null.clone(), blank: self.blank.clone() };
        let mut report = EraseReport::new(&self.archive, (&aim, how), &survey, (&plan, &before));
        let mut exit = left.say(&self.archive);
        let now = SystemTime::now();
        if self.execute && !plan.is_empty() {
            let summary = self.execute(&*storage, &plan, (&passes, eraser), (survey.changed(&aim), now))?;
            exit = exit.max(self.say_trouble(&summary));
            let manifest = Manifest::read(&*storage).map_err(failure(&self.archive))?.unwrap_or_default();
            report.executed(&summary, &manifest, now, self.grace);
        }
        report.left(&left);
        file.map_or(Ok(()), |file| file.write(&report))?;
        report.print(self.format, self.sizes)?;
        Ok(if plan.is_empty() { exit.max(Exit::Negative) } else { exit })
    }

    fn schema(&self) -> Result<Option<SchemaFile>> {
        let Some(place) = &self.schema else { return Ok(None) };
        read_schema(place, &|| self.connection.connect_options(PROGRAM_NAME)).map(Some)
    }

    fn execute<'p>(
        &self,
        storage: &dyn ArchiveStorage,
        plan: &ErasePlan,
        (passes, surveyed): (&ErasePasses<'p>, Eraser<'p>),
        (table, now): (String, SystemTime),
    ) -> Result<EraseSummary> {
        let options = EraseOptions {
            table,
            level: self.level.into(),
            workers: workers(self.jobs),
            grace: self.grace,
            now,
        };
        let logs = plan.logs.len() + plan.neighbours.len();
        let progress = WorkProgress::counting("erase", "logs", logs as u64);
        let mut count = 0;
        let mut remains = passes.remains(surveyed)?;
        let erased = erase::erase(storage, plan, &options, &mut remains, &mut |_| {
            progress.at(count);
            count += 1;
        });
        drop(progress);
        match remains.failed.take() {
            Some(failure) => Err(failure),
            None => erased.map_err(failure(&self.archive)),
        }
    }

    /// Says what went wrong while it was done.
    fn say_trouble(&self, summary: &EraseSummary) -> Exit {
        for (log, error) in &summary.failed {
            complain(&format!("{log}: {error}"));
        }
        for object in &summary.still_named {
            complain(&format!(
                "{}: {object} still holds logs, and may hold the values: run erase again",
                self.archive.display()
            ));
        }
        super::upkeep::say_undeleted(&self.archive, &summary.swept.undeleted);
        match summary.failed.is_empty()
            && summary.still_named.is_empty()
            && summary.swept.undeleted.is_empty()
        {
            true => Exit::Done,
            false => Exit::Trouble,
        }
    }
}
