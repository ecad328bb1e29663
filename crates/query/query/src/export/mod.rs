//! Exports logs as Parquet data sets, one for each table; a later run adds the new transactions.
//!
//! ```text
//! follow     what a server has that is new                              server → logs
//! (tables)   transactions and rows, all tables in one reading           log → batches by table
//! fresh      those of transactions that are complete and not exported   batches → batches
//! encodings  how each column of a file is encoded: tried on its first rows
//! writers    a file for each table and partition, in a hidden folder    batches of each file
//! output     its columns, several at once                               batches → Parquet
//! target     the run's manifest is written: the run counts │ its files get their names
//! views      views.sql for DuckDB                                       folders → statements
//! history    the manifests of all runs, each of which names the hash of the one before
//! names      folders and paths; what a manifest names stays in the target
//! ```
//!
//! A run counts once its manifest is there. Before that, its files lie where no reader looks, and the next run removes them;
//! after that, the next run gives names to files that have none yet. Nothing is exported twice: the manifest has the GTIDs
//! of all runs, and the positions of transactions without one.

mod digest;
mod encodings;
pub mod follow;
mod fresh;
mod history;
mod manifest;
mod names;
mod output;
mod target;
mod views;
mod writers;

use std::path::PathBuf;
use std::sync::Arc;

use binlogz_archive::part::BlockRun;
use binlogz_arrow::moment;
use binlogz_binlog::gtid::GtidSet;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use parquet::basic::ZstdLevel;

use crate::error::{Error, Result};
use crate::logs::Logs;
pub use crate::print::PARQUET_LEVEL as LEVEL_DEFAULT;
use crate::tables::EveryTable;
use crate::tables::user;

use fresh::{FreshPart, FreshTransactions};
pub use manifest::Partition;
use manifest::{ExportManifest, FORMAT};
use target::{ExportTarget, TargetNews};
use writers::Writers;

/// The data set of transactions.
const TRANSACTIONS: &str = "_transactions";

/// The tables to export, and where to.
#[derive(Debug, Clone)]
pub struct TableExport {
    /// The folder of the data sets, or a place in object storage.
    pub to: PathBuf,
    /// How a data set is divided; `None`: as it is, or by day.
    pub partition: Option<Partition>,
    /// The tables, by database and name; `None`: those that it has, or all.
    pub tables: Option<Vec<(String, String)>>,
    /// Threads that work at once.
    pub jobs: usize,
    /// Only tells what would be exported.
    pub is_dry: bool,
    /// Also write what stood encrypted where it was read.
    pub plaintext: bool,
    /// The level of zstd in its files, 1 to 22.
    pub level: i32,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// The number of the run; `None`: nothing was written.
    pub run: Option<u64>,
    /// Transactions.
    pub transactions: u64,
    /// Row changes; of all tables, if nothing was written.
    pub rows: u64,
    /// Tables with rows.
    pub tables: usize,
    /// Files.
    pub files: usize,
    /// Bytes of these files.
    pub bytes: u64,
    /// Transactions that were left out, since their end is not in the logs.
    pub incomplete: u64,
    /// Files of earlier runs that were deleted since that was last reported.
    pub deleted: u64,
    /// Whether the manifests of earlier runs were taken as they are: a version without checksums wrote them.
    pub is_taken_over: bool,
}

impl TableExport {
    /// Exports what is new in the logs.
    ///
    /// # Errors
    ///
    /// Logs that can't be read, a folder that can't be written or holds something else. Then nothing was exported.
    pub fn run(&self, logs: &Logs) -> Result<ExportSummary> {
        if self.is_dry {
            let before = ExportTarget::last(&self.to)?.unwrap_or_default();
            self.choice(&before)?;
            self.check_exits(&before, logs)?;
            let mut fresh = FreshTransactions::after(&before)?;
            fresh.find(logs, &fresh.tables(), self.jobs, &mut |_| Ok(()))?;
            return Ok(fresh.counts);
        }
        self.begin()?.run(logs)
    }

    /// Opens the target for one run after the other.
    ///
    /// # Errors
    ///
    /// A target that can't be written or holds something else.
    pub fn begin(&self) -> Result<Exporter<'_>> {
        let mut target = ExportTarget::open(&self.to)?;
        let before = target.recover()?.unwrap_or_default();
        let (partition, tables) = self.choice(&before)?;
        let news = target.news()?;
        Ok(Exporter { export: self, target, news, before, partition, tables })
    }

    /// Looks whether the logs leave by the policy of the runs before.
    fn check_exits(&self, before: &ExportManifest, logs: &Logs) -> Result<()> {
        let there = match &before.exits {
            _ if before.run == 0 => return self.check_policy(logs),
            _ if before.exits.as_deref() == logs.policy_digest() => return Ok(()),
            None => "without --exits",
            Some(_) => "with --exits of a policy and a key, which stay",
        };
        Err(Error::Target(format!(
            "{}: was exported {there}; expected the same, or another folder",
            self.to.display()
        )))
    }

    /// Refuses a first run by a policy with rules that met nothing, as a name with a typing error meets nothing. Later runs may have
    /// nothing new of a table.
    fn check_policy(&self, logs: &Logs) -> Result<()> {
        let unmet = logs.exit_counts().map(|counts| counts.unmet_masks.as_slice()).unwrap_or_default();
        match unmet.is_empty() {
            true => Ok(()),
            false => Err(Error::Log(format!(
                "the logs have no rows of {}, which the policy is to hide; expected its right name, or optional = true; nothing was \
                 exported",
                unmet.join(", ")
            ))),
        }
    }

    /// How the data sets are divided, and which tables there are: as before, which can't be changed.
    fn choice(&self, before: &ExportManifest) -> Result<(Partition, Vec<(String, String)>)> {
        let refused = |option: &str, there: String| {
            let to = self.to.display();
            Err(Error::Target(format!(
                "{to}: was exported with --{option} {there}, which stays; expected the same, or another folder"
            )))
        };
        let mut chosen = self.tables.clone().unwrap_or_default();
        chosen.sort();
        chosen.dedup();
        if before.run == 0 {
            return Ok((self.partition.unwrap_or_default(), chosen));
        }
        if self.partition.is_some_and(|partition| partition != before.partition) {
            return refused("partition", before.partition.to_string());
        }
        let there: Vec<_> =
            before.tables.iter().map(|[database, table]| (database.clone(), table.clone())).collect();
        if self.tables.is_some() && chosen != there {
            let names: Vec<_> = there.iter().map(|(database, table)| format!("{database}.{table}")).collect();
            return match names.is_empty() {
                true => Err(Error::Target(format!(
                    "{}: was exported with all tables, which stays; expected no --table, or another folder",
                    self.to.display()
                ))),
                false => refused("table", names.join(" --table ")),
            };
        }
        Ok((before.partition, there))
    }
}

/// A table's data set: its number, its folder, and database and table.
type DataSet = (usize, (String, [String; 2]));

/// Runs into one target.
#[derive(Debug)]
pub struct Exporter<'a> {
    export: &'a TableExport,
    target: ExportTarget,
    /// Notes about the target, which the first run tells.
    news: TargetNews,
    /// The manifest of the last run.
    before: ExportManifest,
    partition: Partition,
    tables: Vec<(String, String)>,
}

impl Exporter<'_> {
    /// The GTIDs of all runs.
    ///
    /// # Errors
    ///
    /// A manifest whose GTIDs are none.
    pub fn gtids(&self) -> Result<GtidSet> {
        fresh::gtids(&self.before)
    }

    /// The tables whose rows are exported; `None`: all.
    pub fn tables(&self) -> Option<&[(String, String)]> {
        (!self.tables.is_empty()).then_some(&self.tables)
    }

    /// Exports what is new in the logs.
    ///
    /// # Errors
    ///
    /// As [`TableExport::run`].
    pub fn run(&mut self, logs: &Logs) -> Result<ExportSummary> {
        if !self.export.plaintext
            && let Some(log) = logs.encrypted()?
        {
            let what = "is encrypted, and Parquet files are not; --plaintext exports it all the same";
            return Err(Error::Log(format!("{log}: {what}")));
        }
        self.export.check_exits(&self.before, logs)?;
        let jobs = self.export.jobs;
        let run = self.before.run.checked_add(1);
        let run =
            run.ok_or_else(|| Error::Target(format!("{}: has too many runs", self.export.to.display())))?;
        let staging = self.target.begin()?;
        let level = ZstdLevel::try_new(self.export.level);
        let level = level.map_err(|error| Error::Target(format!("level of zstd: {error}")))?;
        let mut writers =
            Writers::new(staging.path(), self.target.file_prefix(run), self.partition, level, jobs);

        let mut fresh = FreshTransactions::after(&self.before)?;
        let transactions = writers.add(TRANSACTIONS.to_owned(), &fresh::schema(), &[]);
        let (every, found) = self.every_table(logs, &fresh, &mut writers)?;
        let (sets, folders): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let mut rows = vec![0; sets.len()];
        fresh.find(logs, &every, jobs, &mut |new| match new {
            FreshPart::Transactions(batch) => writers.write(transactions, &batch),
            FreshPart::Rows(table, batch) => {
                let (Some(&set), Some(count)) = (sets.get(table), rows.get_mut(table)) else { return Ok(()) };
                *count += batch.num_rows() as u64;
                writers.write(set, &batch)
            }
        })?;
        let mut exported = fresh.counts;
        let news = std::mem::take(&mut self.news);
        (exported.deleted, exported.is_taken_over) = (news.deleted, news.is_taken_over);
        if exported.transactions == 0 {
            return Ok(exported);
        }
        if self.tables.is_empty() && rows.iter().sum::<u64>() != exported.rows {
            return Err(Error::Target(format!(
                "{}: {} rows were read, but the transactions have {}; were the logs replaced meanwhile?",
                self.export.to.display(),
                rows.iter().sum::<u64>(),
                exported.rows
            )));
        }
        let files = writers.finish()?;
        exported.rows = rows.iter().sum();
        exported.tables = rows.iter().filter(|rows| **rows > 0).count();
        exported.files = files.len();
        exported.bytes = files.iter().map(|file| file.bytes).sum();
        let exits = logs.policy_digest().map(str::to_owned);
        let (gtids, logs) = fresh.exported();
        let tables = self.tables.iter().map(|(database, table)| [database.clone(), table.clone()]);
        let with_rows = folders.into_iter().zip(&rows).filter(|(_, rows)| **rows > 0);
        let manifest = ExportManifest {
            format: FORMAT,
            run,
            previous: self.target.previous(),
            partition: self.partition,
            tables: tables.collect(),
            exits,
            gtids,
            logs,
            transactions: exported.transactions,
            rows: exported.rows,
            data_sets: with_rows.map(|(data_set, _)| data_set).collect(),
            files,
        };
        self.target.commit(staging, &manifest)?;
        self.before = manifest;
        exported.run = Some(run);
        Ok(exported)
    }

    /// The tables whose rows are exported, and the data set of each: its number, its folder, and the names.
    fn every_table(
        &self,
        logs: &Logs,
        fresh: &FreshTransactions,
        writers: &mut Writers,
    ) -> Result<(EveryTable, Vec<DataSet>)> {
        let may_be_in = |_: usize, run: Option<&BlockRun<'_>>| {
            run.is_none_or(|run| fresh.may_be_in(run) && run.may_have_rows(&|_| true))
        };
        let has_table = |database: &str, table: &str| {
            let mut tables = self.tables.iter();
            self.tables.is_empty() || tables.any(|(schema, name)| schema == database && name == table)
        };
        let found = user::tables(logs, self.export.jobs, &may_be_in, &has_table)
            .map_err(|error| Error::Log(error.to_string()))?;
        let mut every = fresh.tables();
        let mut sets = Vec::new();
        for ((database, table), mut columns) in found {
            let folder = names::data_set(&database, &table);
            // A table's newest file has all columns that the table ever had.
            if let Some(schema) = self.target.newest_schema(&folder)?
                && let Ok(field) = schema.field_with_name("after")
                && let DataType::Struct(fields) = field.data_type()
            {
                columns.after(&with_our_names(fields));
            }
            every.add(&database, &table, &columns);
            let Some(schema) = every.schema(sets.len()) else { continue };
            let keys: Vec<_> = columns.keys().map(str::to_owned).collect();
            sets.push((writers.add(folder.clone(), &schema, &keys), (folder, [database, table])));
        }
        Ok((every, sets))
    }
}

/// The columns of a file as tables have them. Parquet tells of a moment that it is in UTC, but not how the zone is written; and what a
/// list's member is called depends on the file.
fn with_our_names(fields: &Fields) -> Fields {
    let field = |field: &FieldRef| match field.data_type() {
        DataType::Timestamp(_, Some(_)) => Arc::new(field.as_ref().clone().with_data_type(moment())),
        DataType::List(member) => {
            let list = DataType::List(Arc::new(Field::new_list_field(member.data_type().clone(), true)));
            Arc::new(field.as_ref().clone().with_data_type(list))
        }
        _ => Arc::clone(field),
    };
    fields.iter().map(field).collect()
}
