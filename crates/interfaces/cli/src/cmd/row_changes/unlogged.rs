//! Databases that a server doesn't log, where its logs are to tell what was changed.

use binlogz_row_changes::LoggedDatabases;
use binlogz_source::ConnectOptions;

use crate::Exit;
use crate::failure::{CommandFailure, Result, complain};

/// The databases that the server of the logs writes into them.
pub(in crate::cmd) struct ServerLogging {
    server: String,
    logged: LoggedDatabases,
}

impl ServerLogging {
    /// Asks the server.
    pub(in crate::cmd) fn of(connect: &ConnectOptions) -> Result<Self> {
        let server = connect.server();
        match LoggedDatabases::of_server(connect) {
            Ok(logged) => Ok(ServerLogging { server, logged }),
            Err(error) => Err(CommandFailure::of_server(&server, error)),
        }
    }

    /// Names the tables of databases that aren't logged. Negative, if there are some.
    pub(super) fn name_unlogged(&self, tables: &[(String, String)]) -> Exit {
        let mut exit = Exit::Done;
        for (database, table) in tables {
            if let Some(why) = self.logged.lacks(database) {
                complain(&format!("{}: {database}.{table}: {why}", self.server));
                exit = Exit::Negative;
            }
        }
        exit
    }

    /// Says what the logs may lack of any table. Negative, if they may lack something.
    pub(in crate::cmd) fn name_doubt(&self) -> Exit {
        match self.logged.doubt() {
            Some(doubt) => {
                complain(&format!("{}: {doubt}", self.server));
                Exit::Negative
            }
            None => Exit::Done,
        }
    }

    /// Says that changes of other databases stay, or are missing. Negative, if there may be some.
    pub(in crate::cmd) fn name_others(&self, what: &str) -> Exit {
        if !self.logged.is_partial() {
            return Exit::Done;
        }
        complain(&format!("{}: it doesn't log all databases: {what}", self.server));
        Exit::Negative
    }
}
