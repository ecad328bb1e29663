//! Runs a preset on a server: cell for cell, in an order that favours no setting, kept after each.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use binlogz_report::stats::Section;

use crate::consumer::Consumer;
use crate::error::{Error, IoContext, Result};
use crate::guard::{self, Allow};
use crate::limits;
use crate::machine::{Machine, Server};
use crate::measure::{Snapshot, time_stages};
use crate::plan::{self, Pace, Planned};
use crate::preset::{COMPRESSION, Experiment, Preset, SCHEMAS, Setting, Step, Work};
use crate::replicas;
use crate::restore::Restorer;
use crate::results::{Cell, Measured, Options, RefusedSetting, Results, now};
use crate::server::TestedServer;
use crate::session::Session;
use crate::space;
use crate::stop::Stopper;
use crate::sysbench::Sysbench;
use crate::work::Load;
use crate::zstd::whole_files;

/// Runs presets.
#[derive(Debug)]
pub struct Experimenter {
    /// What is run.
    pub preset: Preset,
    /// Experiments of it that are left out.
    pub skipped: Vec<String>,
    /// Settings that are measured alone; none: all.
    pub settings: Vec<String>,
    /// How.
    pub options: Options,
    /// Where results go.
    pub folder: PathBuf,
    /// What does not stand against loading the server.
    pub allowed: Vec<Allow>,
    /// Ends the run.
    pub stopper: Stopper,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Cells that are done, of earlier runs too.
    pub done: usize,
    /// All of them.
    pub cells: usize,
    /// What is run now, as in `space: compressed, 2 of 3: bulk update`.
    pub now: String,
    /// How long the rest will take, as far as that is known.
    pub left: Option<Duration>,
}

impl Experimenter {
    /// Runs what is not in the folder yet. The server is as it was when this returns, or the error says what to run.
    ///
    /// # Errors
    ///
    /// Whatever ends the run; what was measured until then is kept, and marked as partial.
    pub fn run(&self, server: &TestedServer, progress: &mut dyn FnMut(&Progress)) -> Result<Results> {
        let experiments = self.experiments()?;
        let needs_sysbench = experiments
            .iter()
            .flat_map(|experiment| &experiment.steps)
            .any(|step| step.work.needs_sysbench());
        let sysbench = needs_sysbench.then(|| Sysbench::find(server.connect())).transpose()?;
        fs::create_dir_all(&self.folder).at("create", &self.folder)?;
        let mut session = Session::open(server.connect())?;
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
        let mut run = Run {
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

    /// What this run will do, and about how long it takes: cells that the folder has are done. Nothing is changed.
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

    /// Those of the preset, without what is left out.
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
            "{}: holds results of another server, or of other options: name another folder with --out",
            self.folder.display()
        ))
    }

    fn skips(&self, experiment: &str) -> bool {
        self.skipped.iter().any(|skipped| skipped == experiment)
    }

    /// The results that are in the folder, or new ones.
    fn begin(&self, server: &TestedServer, session: &mut Session) -> Result<Results> {
        let mut facts = Server::ask(session)?;
        (facts.name, facts.private, facts.local) =
            (server.name(), server.is_private(), server.pid().is_some());
        let Some(results) = Results::read(&self.folder)? else {
            return Ok(Results::new(self.options.clone(), Machine::this(), facts));
        };
        let identity = |server: &Server| match server.private {
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

    /// Restores the server, and keeps what there is.
    fn end(&self, ran: Result<()>, mut results: Results) -> Result<Results> {
        let ran = match ran {
            // What a signal's thread killed ends with whatever error.
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

/// A run on its way.
struct Run<'a> {
    experimenter: &'a Experimenter,
    server: &'a TestedServer,
    sysbench: Option<Sysbench>,
    session: Session,
    /// All that a setting of the run has.
    variables: &'a [&'static str],
    results: &'a mut Results,
    /// The experiment whose data stands, for its other settings.
    standing: Option<&'static str>,
    /// Where the server writes, if that is on this machine.
    folders: Vec<PathBuf>,
}

impl Run<'_> {
    fn cells(&mut self, experiments: &[Experiment], progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        time_stages(&mut self.session);
        let connections = limits::connections(&mut self.session);
        let options = &self.experimenter.options;
        let planned = plan::planned(experiments, options);
        let estimates = plan::estimates(&planned, Some(self.results), options);
        let mut pace = Pace::new(&estimates);
        for (done, (cell, estimate)) in planned.iter().zip(&estimates).enumerate() {
            let Planned { experiment, setting, repeat } = cell;
            if plan::is_done(cell, self.results) {
                continue;
            }
            self.cell(cell, &connections, &mut |step| {
                let now = format!(
                    "{}: {}, {repeat} of {}: {step}",
                    experiment.name, setting.name, self.experimenter.options.repeat
                );
                progress(&Progress { done, cells: planned.len(), now, left: Some(pace.left()) });
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

    /// Servers of their own, whatever is tested.
    fn replicas(&mut self, cells: usize, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        if !self.server.is_private() {
            let reason = "replicas are set up behind a private source alone (--sandbox)";
            self.leave_out("replicas", "all", reason.to_owned());
        } else if self.results.replicas.is_empty() {
            self.results.replicas = replicas::examine(&self.experimenter.stopper, &mut |what| {
                progress(&Progress { done: cells, cells, now: format!("replicas: {what}"), left: None });
            })?;
        }
        Ok(())
    }

    fn cell(
        &mut self,
        planned: &Planned<'_>,
        limit: &limits::Connections,
        tell: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let Planned { experiment, setting, repeat } = planned;
        let mut cell = Cell {
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

    /// Sets the server: the setting's variables, those that only others of the run have as they were. A step that is
    /// not measured is not compressed.
    fn set(&mut self, setting: &Setting, measured: bool) -> Result<()> {
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

    /// A setting that the server can't have is left out; anything else ends the run.
    fn refuse(&mut self, experiment: &Experiment, setting: &Setting, error: Error) -> Result<()> {
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
            let (experiment, setting) = (experiment.to_owned(), what.to_owned());
            self.results.refused.push(RefusedSetting { experiment, setting, reason });
        }
    }

    fn step(&mut self, setting: &Setting, step: &Step, repeat: u32) -> Result<Measured> {
        let (connect, stopper) = (self.server.connect(), &self.experimenter.stopper);
        self.session.run("FLUSH BINARY LOGS")?;
        let before = Snapshot::take(&mut self.session, self.server.pid())?;
        let consumer = match step.work {
            Work::UpdateLoop => before.current_log().map(|log| Consumer::follow(connect, log)),
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
        let (seen, wire_bytes) = (seen?, wire_bytes?);
        let after = Snapshot::take(&mut self.session, self.server.pid())?;
        let mut zstd = Vec::new();
        if step.measured && repeat == 1 {
            for level in setting.zstd_levels {
                zstd.push(whole_files(connect, &after.logs_since(&before), *level, stopper)?);
            }
        }
        Ok(Measured {
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
        // A private server's log serves nobody; on a server of the user's it is the user's.
        if self.server.is_private() {
            self.session.run("FLUSH BINARY LOGS")?;
            self.session.run("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")?;
        }
        Ok(())
    }
}
