//! Runs a preset on a server: cell by cell, in an order that favours no setting, saving after each.

mod cells;
mod plan;
mod space;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, IoErrorContext, Result};
use crate::load::sysbench::Sysbench;
use crate::preset::Preset;
use crate::preset::experiment::Experiment;
use crate::preset::options::ExperimentOptions;
use crate::results::{Results, now};
use crate::safety::guard::{self, Allow};
use crate::safety::restore::Restorer;
use crate::safety::stop::RunStopper;
use crate::server::machine::{Machine, ServerMachine};
use crate::server::session::ServerSession;
use crate::server::tested::TestedServer;
use binlogz_figures::Section;
use cells::CellRun;

/// Runs presets.
#[derive(Debug)]
pub struct Experimenter {
    /// The preset that is run.
    pub preset: Preset,
    /// Experiments of the preset that are left out.
    pub skipped: Vec<String>,
    /// The only settings to measure; empty: all.
    pub settings: Vec<String>,
    /// How.
    pub options: ExperimentOptions,
    /// The folder for the results.
    pub folder: PathBuf,
    /// The reasons against loading the server that the user allows.
    pub allowed: Vec<Allow>,
    /// Ends the run.
    pub stopper: RunStopper,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentProgress {
    /// Finished cells, also of earlier runs.
    pub done: usize,
    /// All cells of the run.
    pub cells: usize,
    /// The step that runs now, as in `space: compressed, 2 of 3: bulk update`.
    pub now: String,
    /// How long the rest will take, as far as that is known.
    pub left: Option<Duration>,
}

impl Experimenter {
    /// Runs the cells that are not in the folder yet. When this returns, the server is restored, or the error names the
    /// statements to run.
    ///
    /// # Errors
    ///
    /// Anything that ends the run; the figures up to then are kept and marked as partial.
    pub fn run(
        &self,
        server: &TestedServer,
        progress: &mut dyn FnMut(&ExperimentProgress),
    ) -> Result<Results> {
        let experiments = self.experiments()?;
        let needs_sysbench = experiments
            .iter()
            .flat_map(|experiment| &experiment.steps)
            .any(|step| step.work.needs_sysbench());
        let sysbench = needs_sysbench.then(|| Sysbench::find(server.connect())).transpose()?;
        fs::create_dir_all(&self.folder).at("create", &self.folder)?;
        let mut session = ServerSession::open(server.connect())?;
        let mut results = self.begin(server, &mut session)?;
        let variables: BTreeSet<&'static str> = experiments
            .iter()
            .flat_map(|experiment| &experiment.settings)
            .flat_map(|setting| setting.variables.iter().map(|(name, _)| *name))
            .collect();
        let variables: Vec<&'static str> = variables.into_iter().collect();
        let left_behind = Restorer::is_left_behind(&self.folder);
        if !left_behind {
            if !server.is_private() {
                guard::check(&mut session, &self.allowed)?;
            }
            guard::check_rights(&mut session, &variables)?;
            let planned = plan::planned(&experiments, &self.options);
            let estimates = plan::estimates(&planned, Some(&results), &self.options);
            space::check(&mut session, server, &estimates, &self.allowed)?;
        }
        results.write(&self.folder)?;
        let restorer = Restorer::save(&mut session, server.connect(), &variables, &self.folder)?;
        self.stopper.begin(restorer)?;
        let folders = space::folders(&mut session, server)?.map_or_else(Vec::new, Vec::from);
        let mut run = CellRun {
            experimenter: self,
            server,
            sysbench,
            session,
            variables: &variables,
            results: &mut results,
            standing: None,
            folders,
        };
        let ran = run.cells(&experiments, progress);
        drop(run);
        self.end(ran, results)
    }

    /// Tells the steps of this run and about how long it takes: cells that the folder has are done. Nothing is changed.
    ///
    /// # Errors
    ///
    /// Settings that the preset does not have; a folder with results that can't be read, or are of other options.
    pub fn plan(&self) -> Result<Section> {
        let experiments = self.experiments()?;
        let results = Results::read(&self.folder)?;
        if results.as_ref().is_some_and(|results| results.options != self.options) {
            return Err(self.other_results());
        }
        let planned = plan::planned(&experiments, &self.options);
        let replicas = self.preset.has_replicas() && !self.skips("replicas");
        Ok(plan::section(&planned, replicas, results.as_ref(), &self.options))
    }

    /// The preset's experiments, without those that are left out.
    fn experiments(&self) -> Result<Vec<Experiment>> {
        let mut experiments = self.preset.experiments(&self.options);
        experiments.retain(|experiment| !self.skips(experiment.name));
        let names: Vec<String> = experiments
            .iter()
            .flat_map(|experiment| experiment.settings.iter().map(|setting| setting.name.clone()))
            .collect();
        if let Some(unknown) = self.settings.iter().find(|name| !names.contains(name)) {
            let known = names.join("; ");
            return Err(Error::Refused(format!("there is no setting {unknown:?}, but these: {known}")));
        }
        if !self.settings.is_empty() {
            for experiment in &mut experiments {
                experiment.settings.retain(|setting| self.settings.contains(&setting.name));
            }
        }
        Ok(experiments)
    }

    /// Whether cells are missing that were not asked for.
    fn is_narrowed(&self, results: &Results) -> bool {
        let mut experiments = self.preset.experiments(&self.options);
        experiments.retain(|experiment| !self.skips(experiment.name));
        !plan::planned(&experiments, &self.options).iter().all(|cell| plan::is_done(cell, results))
    }

    fn other_results(&self) -> Error {
        Error::Refused(format!(
            "{}: holds results of another server, or of other options: name another folder with --to",
            self.folder.display()
        ))
    }

    fn skips(&self, experiment: &str) -> bool {
        self.skipped.iter().any(|skipped| skipped == experiment)
    }

    /// The results that are in the folder, or new ones.
    fn begin(&self, server: &TestedServer, session: &mut ServerSession) -> Result<Results> {
        let mut facts = ServerMachine::ask(session)?;
        (facts.name, facts.private, facts.local) =
            (server.name(), server.is_private(), server.pid().is_some());
        let Some(results) = Results::read(&self.folder)? else {
            return Ok(Results::new(self.options.clone(), Machine::this(), facts));
        };
        let identity = |server: &ServerMachine| match server.private {
            true => server.variable("version").to_owned(),
            false => server.variable("server_uuid").to_owned(),
        };
        let same_server =
            identity(&results.server) == identity(&facts) && results.server.private == facts.private;
        if results.options != self.options || !same_server {
            return Err(self.other_results());
        }
        Ok(results)
    }

    /// Restores the server and saves the results.
    fn end(&self, ran: Result<()>, mut results: Results) -> Result<Results> {
        let ran = match ran {
            // Work that the signal's thread killed may end with any error.
            Err(_) if self.stopper.is_stopped() => Err(Error::Interrupted),
            ran => ran,
        };
        let restored = match &ran {
            Ok(()) => self.stopper.restore(&Error::Load("the run ended".to_owned())),
            Err(cause) => self.stopper.restore(cause),
        };
        let narrowed = self.is_narrowed(&results);
        results.partial = ran.is_err() || narrowed;
        results.ended_by = match &ran {
            Err(error) => Some(error.to_string()),
            Ok(()) => narrowed.then(|| format!("only these were asked for: {}", self.settings.join("; "))),
        };
        results.ended = now();
        let written = results.write(&self.folder);
        restored?;
        ran?;
        written?;
        Ok(results)
    }
}
