//! MySQL servers that a command line names, with settings from option files.

use binlogz_cli_common::companions::sql_inputs::SqlServerArgs;
use binlogz_cli_common::server_args::with_option_files;
use binlogz_query::Error;
use binlogz_source::ConnectOptions;
use binlogz_source::option_files::OptionFiles;

use crate::PROGRAM;

/// How to reach a server. Asks for the password if option files say so.
pub(crate) fn connect_options(args: &SqlServerArgs, server: &str) -> Result<ConnectOptions, Error> {
    let failed = |error: binlogz_source::Error| Error::Log(error.to_string());
    let files = OptionFiles {
        defaults_file: args.defaults_file.clone(),
        defaults_extra_file: args.defaults_extra_file.clone(),
        login_path: args.login_path.clone(),
        ..OptionFiles::default()
    };
    let mut options = with_option_files(&files, PROGRAM).map_err(failed)?;
    options.set_server(server).map_err(failed)?;
    options.ask_password().map_err(failed)?;
    Ok(options)
}
