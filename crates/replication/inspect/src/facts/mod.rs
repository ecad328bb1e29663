//! One server's report: its settings, the readers of its log, which threads hold which value, its
//! figures.
//!
//! Facts only; `findings` interprets them.

mod consumers;
mod figures;
mod threads;

use std::collections::BTreeMap;

use binlogz_source::{Connection, Error};

use crate::ask::{Fact, ServerAsker, TextRow};
use crate::version::Version;
use binlogz_payload::ServerGeneration;

pub(crate) use consumers::{BinlogClient, Consumers};
pub(crate) use figures::{BinlogIo, CompressionStage, LogStatistics};
pub(crate) use threads::{Holder, HolderKind};

pub(crate) use binlogz_payload::switch::{COMPRESSION, LEVEL};

/// A connection of this server to a source of its own.
#[derive(Debug)]
pub(crate) struct SourceChannel {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) compression: String,
}

/// One server's report.
#[derive(Debug)]
pub(crate) struct ServerFacts {
    pub(crate) version_text: String,
    pub(crate) settings: GlobalSettings,
    pub(crate) consumers: Consumers,
    pub(crate) holders: Fact<Vec<Holder>>,
    pub(crate) statistics: Fact<Vec<LogStatistics>>,
    pub(crate) stages: Fact<Vec<CompressionStage>>,
    pub(crate) binlog_io: Fact<BinlogIo>,
    pub(crate) channels: Fact<Vec<SourceChannel>>,
}

/// The server's global variables; every account may read them.
#[derive(Debug, Default)]
pub(crate) struct GlobalSettings(BTreeMap<String, String>);

impl GlobalSettings {
    /// These variables only.
    #[cfg(test)]
    pub(crate) fn of(settings: &[(&str, &str)]) -> Self {
        GlobalSettings(
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        )
    }

    /// The value of a variable, by the first of its names that this server knows.
    pub(crate) fn get(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.0.get(*name)).map(String::as_str)
    }

    pub(crate) fn number(&self, names: &[&str]) -> Option<u64> {
        self.get(names)?.parse().ok()
    }

    pub(crate) fn is_on(&self, names: &[&str]) -> bool {
        matches!(self.get(names), Some("ON" | "1" | "YES"))
    }
}

impl ServerFacts {
    /// Queries everything that doctor looks at.
    ///
    /// # Errors
    ///
    /// The connection broke; a refusal is a fact.
    pub(crate) fn gather(connection: &mut Connection) -> Result<ServerFacts, Error> {
        let greeting = connection.greeting().map(|greeting| greeting.server_version.clone());
        let mut asker = ServerAsker::new(connection);
        let variables = asker.rows("SHOW GLOBAL VARIABLES", "USAGE ON *.*")?;
        let variables = variables.known().into_iter().flatten().map(|row| (row.text(0), row.text(1)));
        let settings = GlobalSettings(variables.collect());
        let version_text = settings.get(&["version"]).map(str::to_owned).or(greeting).unwrap_or_default();
        Ok(ServerFacts {
            version_text,
            consumers: Consumers::gather(&mut asker, &settings)?,
            holders: threads::gather(&mut asker)?,
            statistics: figures::statistics(&mut asker)?,
            stages: figures::stages(&mut asker)?,
            binlog_io: figures::binlog_io(&mut asker)?,
            channels: channels(&mut asker)?,
            settings,
        })
    }

    pub(crate) fn version(&self) -> Option<Version> {
        Version::parse(&self.version_text)
    }

    /// The server's generation, which tells how it compresses transactions.
    pub(crate) fn generation(&self) -> ServerGeneration {
        ServerGeneration::of_version(&self.version_text)
    }

    pub(crate) fn is_mariadb(&self) -> bool {
        self.version_text.to_ascii_lowercase().contains("mariadb")
    }
}

fn channels(asker: &mut ServerAsker<'_>) -> Result<Fact<Vec<SourceChannel>>, Error> {
    let rows = asker.rows(
        "SELECT CHANNEL_NAME, HOST, PORT, COMPRESSION_ALGORITHM \
         FROM performance_schema.replication_connection_configuration WHERE HOST <> '<NULL>' AND HOST <> ''",
        "SELECT ON performance_schema.replication_connection_configuration",
    )?;
    Ok(rows.map(|rows| {
        let channel = |row: &TextRow| SourceChannel {
            name: row.text(0),
            source: format!("{}:{}", row.text(1), row.text(2)),
            compression: row.text(3),
        };
        rows.iter().map(channel).collect()
    }))
}
