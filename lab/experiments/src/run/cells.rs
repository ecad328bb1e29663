//! The cells of a run: each is configured, loaded, measured, dropped and saved.

use std::path::PathBuf;

use super::plan::{self, EstimatePace, PlannedCell};
use super::{ExperimentProgress, Experimenter, space};
use crate::error::{Error, Result};
use crate::load::sysbench::Sysbench;
use crate::load::work::Load;
use crate::measure::consumer::RunningReader;
use crate::measure::counters::{Snapshot, time_stages};
use crate::measure::replicas;
use crate::measure::zstd::whole_files;
use crate::preset::experiment::{COMPRESSION, CellSetting, CellStep, Experiment, SCHEMAS, Work};
use crate::results::{CellResult, RefusedSetting, Results, StepResult, now};
use crate::server::limits;
use crate::server::session::ServerSession;
use crate::server::tested::TestedServer;

/// A run in progress.
pub(super) struct CellRun<'a> {
    pub(super) experimenter: &'a Experimenter,
    pub(super) server: &'a TestedServer,
    pub(super) sysbench: Option<Sysbench>,
    pub(super) session: ServerSession,
    /// All variables that a setting of the run sets.
    pub(super) variables: &'a [&'static str],
    pub(super) results: &'a mut Results,
    /// The experiment whose data is still there, for its other settings.
    pub(super) standing: Option<&'static str>,
    /// Where the server writes, if that is on this machine.
    pub(super) folders: Vec<PathBuf>,
}

impl CellRun<'_> {
    /// The cells of the plan that are still missing.
    pub(super) fn cells(
        &mut self,
        experiments: &[Experiment],
        progress: &mut dyn FnMut(&ExperimentProgress),
    ) -> Result<()> {
        time_stages(&mut self.session);
        let connections = limits::connections(&mut self.session);
        let options = &self.experimenter.options;
        let planned = plan::planned(experiments, options);
        let estimates = plan::estimates(&planned, Some(self.results), options);
        let mut pace = EstimatePace::new(&estimates);
        for (done, (cell, estimate)) in planned.iter().zip(&estimates).enumerate() {
            let PlannedCell { experiment, setting, repeat } = cell;
            if plan::is_done(cell, self.results) {
                continue;
            }
            self.cell(cell, &connections, &mut |step| {
                let now = format!(
                    "{}: {}, {repeat} of {}: {step}",
                    experiment.name, setting.name, self.experimenter.options.repeat
                );
                progress(&ExperimentProgress { done, cells: planned.len(), now, left: Some(pace.left()) });
            })?;
            pace.done(estimate);
            self.results.ended = now();
            self.results.write(&self.experimenter.folder)?;
        }
        self.drop_schemas()?;
        if self.experimenter.preset.has_replicas() && !self.experimenter.skips("replicas") {
            self.replicas(planned.len(), progress)?;
        }
        Ok(())
    }

    /// Measures replicas on separate private servers.
    fn replicas(&mut self, cells: usize, progress: &mut dyn FnMut(&ExperimentProgress)) -> Result<()> {
        if !self.server.is_private() {
            let reason = "replicas are only set up for a private source (--sandbox)";
            self.leave_out("replicas", "all", reason.to_owned());
        } else if self.results.replicas.is_empty() {
            self.results.replicas = replicas::examine(&self.experimenter.stopper, &mut |what| {
                progress(&ExperimentProgress {
                    done: cells,
                    cells,
                    now: format!("replicas: {what}"),
                    left: None,
                });
            })?;
        }
        Ok(())
    }

    fn cell(
        &mut self,
        planned: &PlannedCell<'_>,
        limit: &limits::Connections,
        tell: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let PlannedCell { experiment, setting, repeat } = planned;
        let mut cell = CellResult {
            experiment: experiment.name.to_owned(),
            setting: setting.name.clone(),
            repeat: *repeat,
            started: now(),
            steps: Vec::new(),
        };
        if let Some(cores) = setting.cores
            && !self.server.is_private()
        {
            let reason = format!("only a private server (--sandbox) is held to {cores} cores");
            self.leave_out(experiment.name, &setting.name, reason);
            return Ok(());
        }
        self.server.hold_to(setting.cores)?;
        let prepared = self.standing == Some(experiment.name);
        if !prepared && self.standing.is_some() {
            self.drop_schemas()?;
        }
        for step in experiment.steps.iter().filter(|step| step.measured || !prepared) {
            if let Some(reason) = limit.against(step.work.connections()) {
                self.leave_out(experiment.name, &step.name, reason);
                continue;
            }
            tell(&step.name);
            if let Err(error) = self.set(setting, step.measured) {
                return self.refuse(experiment, setting, error);
            }
            let measured = self.step(setting, step, *repeat)?;
            if step.measured {
                cell.steps.push(measured);
            }
        }
        if experiment.keeps_data {
            self.standing = Some(experiment.name);
            self.purge()?;
        } else {
            tell("dropping schemas");
            self.drop_schemas()?;
        }
        self.results.cells.push(cell);
        Ok(())
    }

    /// Sets the setting's variables, and restores those that only other settings of the run have. A step that is
    /// not measured is not compressed.
    fn set(&mut self, setting: &CellSetting, measured: bool) -> Result<()> {
        let stopper = self.experimenter.stopper.clone();
        for name in self.variables {
            let own = setting.variables.iter().find(|(known, _)| known == name);
            let value = match own {
                Some((_, value)) if measured || *name != COMPRESSION => value.as_str(),
                _ if *name == COMPRESSION => "OFF",
                _ => self.results.server.variable(name),
            };
            if !value.is_empty() {
                stopper.change(|| self.session.run(&format!("SET GLOBAL {name} = {value}")))?;
            }
        }
        Ok(())
    }

    /// Leaves out a setting that the server refuses; any other error ends the run.
    fn refuse(&mut self, experiment: &Experiment, setting: &CellSetting, error: Error) -> Result<()> {
        let reason = match &error {
            Error::Server(server) if server.server_error().is_some() => error.to_string(),
            _ => return Err(error),
        };
        self.leave_out(experiment.name, &setting.name, reason);
        self.drop_schemas()
    }

    /// Says once that a setting or step is left out.
    fn leave_out(&mut self, experiment: &str, what: &str, reason: String) {
        if !self.results.is_refused(experiment, what) {
            let experiment = experiment.to_owned();
            let setting = what.to_owned();
            self.results.refused.push(RefusedSetting { experiment, setting, reason });
        }
    }

    fn step(&mut self, setting: &CellSetting, step: &CellStep, repeat: u32) -> Result<StepResult> {
        let connect = self.server.connect();
        let stopper = &self.experimenter.stopper;
        self.session.run("FLUSH BINARY LOGS")?;
        let before = Snapshot::take(&mut self.session, self.server.pid())?;
        let consumer = match step.work {
            Work::UpdateLoop => before.current_log().map(|log| RunningReader::follow(connect, log)),
            _ => None,
        };
        let load = Load::new(connect, self.sysbench.as_ref(), stopper);
        let too_full = |reason| stopper.end_load(connect, reason);
        let seen =
            space::watched(&self.folders, too_full, || load.run(step.work, &self.experimenter.options));
        if let Some(reason) = stopper.cut_short() {
            return Err(Error::Load(reason));
        }
        let wire_bytes = consumer.map(|consumer| consumer.end(&mut self.session)).transpose();
        let seen = seen?;
        let wire_bytes = wire_bytes?;
        let after = Snapshot::take(&mut self.session, self.server.pid())?;
        let mut zstd = Vec::new();
        if step.measured && repeat == 1 {
            for level in setting.zstd_levels {
                zstd.push(whole_files(connect, &after.logs_since(&before), *level, stopper)?);
            }
        }
        Ok(StepResult {
            step: step.name.clone().into_owned(),
            seen,
            cost: after.since(&before),
            other_sessions: self.other_sessions(),
            wire_bytes,
            zstd,
        })
    }

    /// Sessions of others, apart from the server's own threads.
    fn other_sessions(&mut self) -> u64 {
        let asked = "SELECT COUNT(*) FROM performance_schema.threads WHERE TYPE = 'FOREGROUND' \
                     AND PROCESSLIST_USER IS NOT NULL AND PROCESSLIST_ID <> CONNECTION_ID() \
                     AND PROCESSLIST_USER <> 'event_scheduler'";
        self.session.number(asked).ok().flatten().unwrap_or(0)
    }

    fn drop_schemas(&mut self) -> Result<()> {
        self.standing = None;
        for schema in SCHEMAS {
            self.session.run(&format!("DROP DATABASE IF EXISTS {schema}"))?;
        }
        self.purge()
    }

    fn purge(&mut self) -> Result<()> {
        // Nothing reads a private server's log; a user's log is left alone.
        if self.server.is_private() {
            self.session.run("FLUSH BINARY LOGS")?;
            self.session.run("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")?;
        }
        Ok(())
    }
}
