//! MySQL servers that a command line names, with settings from option files.

use binlogz_cli_common::companions::sql_inputs::SqlServerArgs;
use binlogz_cli_common::server_args::with_option_files;
use binlogz_query::Error;
use binlogz_source::ConnectOptions;
#[cfg(feature = "serve")]
use binlogz_source::PasswordOption;
use binlogz_source::option_files::OptionFiles;

use crate::PROGRAM;

/// Refuses a server whose password is to be asked for at the terminal.
#[cfg(feature = "serve")]
pub(crate) fn check_password(args: &SqlServerArgs, server: &str) -> Result<(), Error> {
    match options(args, server)?.password {
        PasswordOption::Ask => Err(Error::Sql(
            "--base: its password is asked for at the terminal, expected it in an option file, a login path or MYSQL_PWD".to_owned(),
        )),
        PasswordOption::Given(_) | PasswordOption::NotGiven => Ok(()),
    }
}

/// How to reach a server. Asks for the password if option files say so.
pub(crate) fn connect_options(args: &SqlServerArgs, server: &str) -> Result<ConnectOptions, Error> {
    let mut options = options(args, server)?;
    options.ask_password().map_err(|error| Error::Log(error.to_string()))?;
    Ok(options)
}

fn options(args: &SqlServerArgs, server: &str) -> Result<ConnectOptions, Error> {
    let failed = |error: binlogz_source::Error| Error::Log(error.to_string());
    let files = OptionFiles {
        defaults_file: args.defaults_file.clone(),
        defaults_extra_file: args.defaults_extra_file.clone(),
        login_path: args.login_path.clone(),
        ..OptionFiles::default()
    };
    let mut options = with_option_files(&files, PROGRAM).map_err(failed)?;
    options.set_server(server).map_err(failed)?;
    Ok(options)
}
