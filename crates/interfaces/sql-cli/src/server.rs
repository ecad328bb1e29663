//! MySQL servers that a command line names, with settings from option files.

use std::path::PathBuf;

use binlogz_cli_common::server_args::with_option_files;
use binlogz_query::Error;
use binlogz_source::ConnectOptions;
use binlogz_source::option_files::OptionFiles;
use clap::Args;

use crate::PROGRAM;

#[derive(Debug, Args)]
pub(crate) struct SqlServerArgs {
    /// Of a server, read only this option file
    #[arg(long, value_name = "FILE")]
    defaults_file: Option<PathBuf>,
    /// Of a server, read this option file after the global ones
    #[arg(long, value_name = "FILE")]
    defaults_extra_file: Option<PathBuf>,
    /// Of a server, the login path of mysql_config_editor to use
    #[arg(long, value_name = "NAME")]
    login_path: Option<String>,
}

impl SqlServerArgs {
    /// The option that was given, if one was.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.defaults_file.is_some(), "--defaults-file"),
            (self.defaults_extra_file.is_some(), "--defaults-extra-file"),
            (self.login_path.is_some(), "--login-path"),
        ];
        given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
    }

    /// How to reach a server. Asks for the password if option files say so.
    pub(crate) fn connect_options(&self, server: &str) -> Result<ConnectOptions, Error> {
        let failed = |error: binlogz_source::Error| Error::Log(error.to_string());
        let files = OptionFiles {
            defaults_file: self.defaults_file.clone(),
            defaults_extra_file: self.defaults_extra_file.clone(),
            login_path: self.login_path.clone(),
            ..OptionFiles::default()
        };
        let mut options = with_option_files(&files, PROGRAM).map_err(failed)?;
        options.set_server(server).map_err(failed)?;
        options.ask_password().map_err(failed)?;
        Ok(options)
    }
}
