//! Makes a connection from the options.

use std::ffi::OsStr;

use binlogz_source::{ConnectOptions, Error};

use super::{DumpSettings, RemoteSource};

/// The server id that mysqlbinlog gives to a server that it waits for, unless told otherwise.
const WAITING_SERVER_ID: u32 = 1;

/// Ids of `--follow`: beyond those that people give to servers. A process id is added.
const FOLLOWER_IDS: u32 = 0x6269_0000;

impl DumpSettings {
    /// The text that an option was given last.
    pub(super) fn given(&self, name: &str) -> Option<&OsStr> {
        self.given.iter().find(|(given, _)| *given == name).map(|(_, text)| text.as_os_str())
    }

    /// Whether no log has to be named: the server then finds the logs with transactions that were not handed over yet.
    pub(super) fn finds_logs(&self) -> bool {
        self.is_remote() && self.offsets.is_some()
    }

    /// Whether the logs are a server's.
    pub(crate) fn is_remote(&self) -> bool {
        self.remote_source.is_some()
    }

    /// Whether the source leaves out the transactions of `--exclude-gtids`.
    pub(crate) fn excludes_at_source(&self) -> bool {
        self.remote_source == Some(RemoteSource::Gtids)
    }

    /// The server id to tell the source; 0 does not wait at the end of the log.
    pub(crate) fn own_server_id(&self) -> u32 {
        let waiting = || match self.stop_never {
            // Two programs that follow one server must not have the same.
            true if self.follow && self.stop_never_slave_server_id == -1 => FOLLOWER_IDS + std::process::id(),
            true => u32::try_from(self.stop_never_slave_server_id).unwrap_or(WAITING_SERVER_ID),
            false => 0,
        };
        u32::try_from(self.connection_server_id).unwrap_or_else(|_| waiting())
    }

    /// How to reach the server.
    ///
    /// # Errors
    ///
    /// The connection's options; an error for those that can't be followed here.
    pub(crate) fn connect(&self, program_name: &str) -> Result<ConnectOptions, Error> {
        let mut connect = ConnectOptions::new(program_name);
        connect.get_server_public_key = self.get_server_public_key;
        connect.compression.zlib = self.compress;
        for (name, value) in &self.connection {
            let value = value.as_deref().map(OsStr::to_string_lossy);
            match (*name, value.as_deref()) {
                ("port", None) => connect.port = None,
                ("ssl-fips-mode", Some("OFF")) => {}
                ("ssl-fips-mode", _) => {
                    return Err(Error::Option("there is no FIPS mode: --ssl-fips-mode must be OFF".into()));
                }
                (_, value) => {
                    connect.set(name, value)?;
                }
            }
        }
        connect.compression.zstd_level =
            u8::try_from(self.zstd_compression_level).unwrap_or(connect.compression.zstd_level);
        Ok(connect)
    }
}
