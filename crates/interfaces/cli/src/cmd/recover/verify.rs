//! `recover --verify`: restores into a private server, and compares every table with the live source at the same GTIDs.

use std::time::Instant;

use binlogz_replay::{RestoreDrill, RestoredServer, TargetServer};

use super::{PROGRAM_NAME, Recover, say};
use crate::Exit;
use crate::cmd::archive::json;
use crate::cmd::closed_logs::{StderrListener, line};
use crate::failure::{CommandFailure, Result};
use crate::format::ReportFormat;
use crate::server_args::with_place;

impl Recover {
    /// Makes the drill.
    pub(super) fn verify(&self, source: &str) -> Result<Exit> {
        let begun = Instant::now();
        let options = self.connection.connect_options(PROGRAM_NAME)?;
        let options = with_place(&options, source).map_err(|error| CommandFailure::of(&"--source", error))?;
        let mut source = TargetServer::connect(options, StderrListener::shared()).map_err(line)?;
        let restored = RestoredServer::start(&self.dump).map_err(line)?;
        let own = restored.options(PROGRAM_NAME).map_err(line)?;
        let recovered = self.recover(own.clone())?;
        // What is missing then shows in the tables.
        if recovered != Exit::Done && !self.over_incidents {
            return Ok(recovered);
        }
        let mut restored = TargetServer::connect(own, StderrListener::shared()).map_err(line)?;
        let drill = RestoreDrill::compare(&mut source, &mut restored, begun).map_err(line)?;
        self.tell(&drill).map(|exit| exit.max(recovered))
    }

    fn tell(&self, drill: &RestoreDrill) -> Result<Exit> {
        if self.format == ReportFormat::Json {
            json::print(drill)?;
        } else {
            let RestoreDrill { from_logs, from_source, seconds, .. } = drill;
            say(&format!(
                "restored in {seconds:.1} s: {from_logs} transactions from dumps and logs, {from_source} that only the source \
                 has as yet"
            ))?;
            for table in drill.tables.iter().filter(|table| !table.is_equal()) {
                let shown = |sum: &Option<String>| sum.clone().unwrap_or_else(|| "not there".into());
                say(&format!(
                    "{}: differs: source {}, restored {}",
                    table.table,
                    shown(&table.source),
                    shown(&table.restored)
                ))?;
            }
            for definition in &drill.definitions {
                say(&definition.line())?;
            }
            say(&format!(
                "{} of {} definitions are equal",
                drill.definitions_equal,
                drill.definitions_equal + drill.definitions.len()
            ))?;
            let equal = drill.tables.iter().filter(|table| table.is_equal()).count();
            say(&format!("{equal} of {} tables are equal", drill.tables.len()))?;
        }
        Ok(if drill.equal { Exit::Done } else { Exit::Negative })
    }
}
