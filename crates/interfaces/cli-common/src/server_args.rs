//! SERVER and the options of a connection: the mysql client's own, by their own names.
//!
//! Option files come first, then the command line, then the SERVER argument itself; anything not set has
//! libmysqlclient's default. A password is taken from option files, a login path, the environment or the
//! terminal, never from the command line, where other users would see it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use binlogz_source::option_files::{BINLOGZ_GROUPS, OptionFiles};
use binlogz_source::{ConnectOptions, Password, PasswordOption};
use clap::Args;
use parking_lot::Mutex;

use crate::failure::{CommandFailure, Result, warn};

/// Why a password on the command line is refused.
pub(crate) const PASSWORD_HAS_VALUE: &str = "--password has a value: others would see it; put it into an option file, a login \
                                  path or MYSQL_PWD, or give -p alone to be asked";

/// A user that names an authority expects the server's certificate to be checked.
const AUTHORITY_IGNORED: &str =
    "ssl-ca or ssl-capath is given, and nothing is verified: ssl-mode=VERIFY_CA or VERIFY_IDENTITY does that";

/// The heading of these options.
pub const CONNECTION: &str = "Connection, as for the mysql client (more options: binlogz help connection)";
/// Those that the help of each command has, by their names in clap.
pub(crate) const CONNECTION_SHOWN: [&str; 6] = ["host", "port", "socket", "user", "password", "login_path"];

/// How to reach servers. In a command with these `-h NAME` is the host, as for the mysql client, and `-h` alone is help.
#[derive(Debug, Args)]
#[command(next_help_heading = CONNECTION)]
pub struct ServerArgs {
    /// Host of a server that is not named as SERVER; -h alone shows a summary of this help
    #[arg(short = 'h', long, value_name = "NAME")]
    host: Option<String>,
    /// Port
    #[arg(short = 'P', long, value_name = "PORT")]
    port: Option<String>,
    /// Unix socket
    #[arg(short = 'S', long, value_name = "PATH", hide_short_help = true)]
    socket: Option<String>,
    /// TCP or SOCKET
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
    /// Account
    #[arg(short = 'u', long, value_name = "NAME")]
    user: Option<String>,
    /// Ask for the password
    #[arg(short = 'p', long, num_args = 0..=1, require_equals = true, default_missing_value = "", value_name = "")]
    password: Option<String>,
    /// Read only this option file
    #[arg(long, value_name = "FILE")]
    defaults_file: Option<PathBuf>,
    /// Read this option file after the global ones
    #[arg(long, value_name = "FILE")]
    defaults_extra_file: Option<PathBuf>,
    /// Also read groups whose names end with this
    #[arg(long, value_name = "TEXT")]
    defaults_group_suffix: Option<String>,
    /// Read no option file but the login file
    #[arg(long)]
    no_defaults: bool,
    /// The login path of mysql_config_editor to use
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    login_path: Option<String>,
    /// DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY
    #[arg(long, value_name = "MODE")]
    ssl_mode: Option<String>,
    /// File of trusted certificate authorities
    #[arg(long, value_name = "FILE")]
    ssl_ca: Option<String>,
    /// Folder of trusted certificate authorities
    #[arg(long, value_name = "DIR")]
    ssl_capath: Option<String>,
    /// Client certificate
    #[arg(long, value_name = "FILE")]
    ssl_cert: Option<String>,
    /// Client key
    #[arg(long, value_name = "FILE")]
    ssl_key: Option<String>,
    /// File of revoked certificates
    #[arg(long, value_name = "FILE")]
    ssl_crl: Option<String>,
    /// Folder of revoked certificates
    #[arg(long, value_name = "DIR")]
    ssl_crlpath: Option<String>,
    /// Ciphers of TLS 1.2
    #[arg(long, value_name = "LIST")]
    ssl_cipher: Option<String>,
    /// Ciphers of TLS 1.3
    #[arg(long, value_name = "LIST")]
    tls_ciphersuites: Option<String>,
    /// Versions of TLS
    #[arg(long, value_name = "LIST")]
    tls_version: Option<String>,
    /// Request the server's public key, to send a password without TLS
    #[arg(long)]
    get_server_public_key: bool,
    /// The server's public key
    #[arg(long, value_name = "FILE")]
    server_public_key_path: Option<String>,
    /// Seconds to wait for a connection
    #[arg(long, value_name = "SECONDS")]
    connect_timeout: Option<String>,
    /// Show this help; -h, without a host, shows a summary
    #[arg(long, action = clap::ArgAction::HelpLong, help_heading = "Options")]
    help: Option<bool>,
    /// The option that -h alone becomes
    #[arg(long, action = clap::ArgAction::HelpShort, hide = true)]
    short_help: Option<bool>,
    /// Where a password would be asked for, it is the first line of standard input: for commands that run others of ours
    #[arg(long, hide = true)]
    password_on_stdin: bool,
}

/// The password that was typed. It is asked for once: all servers of a command are reached with the same account.
static TYPED_PASSWORD: Mutex<Option<Password>> = Mutex::new(None);

/// The option with which a command of ours gets the password that this one asked for.
pub const PASSWORD_ON_STDIN: &str = "--password-on-stdin";

/// The password that was asked for, if one was: for [`PASSWORD_ON_STDIN`].
pub fn typed_password() -> Option<Password> {
    TYPED_PASSWORD.lock().clone()
}

impl ServerArgs {
    /// The connection's options from option files and the command line; asks for the password if requested.
    pub fn connect_options(&self, program_name: &str) -> Result<ConnectOptions> {
        if self.password.as_deref().is_some_and(|password| !password.is_empty()) {
            return Err(CommandFailure::Line(PASSWORD_HAS_VALUE.to_owned()));
        }
        let mut options = with_option_files(&self.option_files(), program_name).map_err(line)?;
        for (name, value) in self.given() {
            if let Some(value) = value {
                options.set(name, Some(value)).map_err(line)?;
            }
        }
        if self.get_server_public_key {
            options.get_server_public_key = true;
        }
        if self.password.is_some() {
            options.set("password", None).map_err(line)?;
        }
        self.ask_password(&mut options)?;
        if options.tls.ignores_authority() {
            warn(AUTHORITY_IGNORED);
        }
        Ok(options)
    }

    /// Asks for the password if it is to be asked for and was not before.
    fn ask_password(&self, options: &mut ConnectOptions) -> Result<()> {
        if options.password != PasswordOption::Ask {
            return Ok(());
        }
        let mut typed = TYPED_PASSWORD.lock();
        match &*typed {
            Some(password) => options.password = PasswordOption::Given(password.clone()),
            None if self.password_on_stdin => {
                options.password = PasswordOption::Given(password_line(io::stdin().lock())?);
            }
            None => options.ask_password().map_err(line)?,
        }
        if let PasswordOption::Given(password) = &options.password {
            *typed = Some(password.clone());
        }
        Ok(())
    }

    /// Whether the command line itself says where the server is.
    pub fn names_a_place(&self) -> bool {
        self.host.is_some() || self.port.is_some() || self.socket.is_some()
    }

    /// The options given that say which option files are read, as words: other programs want them first.
    pub fn file_words(&self) -> Vec<String> {
        let path = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map(|path| format!("--{name}={}", path.display()))
        };
        let text = |name: &str, text: &Option<String>| text.as_ref().map(|text| format!("--{name}={text}"));
        let words = [
            self.no_defaults.then(|| "--no-defaults".to_owned()),
            path("defaults-file", &self.defaults_file),
            path("defaults-extra-file", &self.defaults_extra_file),
            text("defaults-group-suffix", &self.defaults_group_suffix),
            text("login-path", &self.login_path),
        ];
        words.into_iter().flatten().collect()
    }

    /// The other options given, as words; those that name the server only if asked for. `-p` is among them, not the password.
    pub fn option_words(&self, with_place: bool) -> Vec<String> {
        let place = ["host", "port", "socket", "protocol"];
        let given = self
            .given()
            .into_iter()
            .filter(|(name, _)| with_place || !place.contains(name))
            .filter_map(|(name, value)| Some(format!("--{name}={}", value?)));
        let key = self.get_server_public_key.then(|| "--get-server-public-key".to_owned());
        given.chain(key).chain(self.password.is_some().then(|| "-p".to_owned())).collect()
    }

    fn option_files(&self) -> OptionFiles {
        OptionFiles {
            defaults_file: self.defaults_file.clone(),
            defaults_extra_file: self.defaults_extra_file.clone(),
            no_defaults: self.no_defaults,
            group_suffix: self.defaults_group_suffix.clone(),
            login_path: self.login_path.clone(),
            no_login_paths: false,
        }
    }

    fn given(&self) -> [(&'static str, Option<&str>); 17] {
        [
            ("host", &self.host),
            ("port", &self.port),
            ("socket", &self.socket),
            ("protocol", &self.protocol),
            ("user", &self.user),
            ("ssl-mode", &self.ssl_mode),
            ("ssl-ca", &self.ssl_ca),
            ("ssl-capath", &self.ssl_capath),
            ("ssl-cert", &self.ssl_cert),
            ("ssl-key", &self.ssl_key),
            ("ssl-crl", &self.ssl_crl),
            ("ssl-crlpath", &self.ssl_crlpath),
            ("ssl-cipher", &self.ssl_cipher),
            ("tls-ciphersuites", &self.tls_ciphersuites),
            ("tls-version", &self.tls_version),
            ("server-public-key-path", &self.server_public_key_path),
            ("connect-timeout", &self.connect_timeout),
        ]
        .map(|(name, value)| (name, value.as_deref()))
    }
}

/// A password that another command of ours wrote, without the end of its line.
fn password_line(input: impl io::BufRead) -> Result<Password> {
    let failure = |error: io::Error| CommandFailure::of(&"standard input", error);
    let first = input.split(b'\n').next().transpose().map_err(failure)?;
    let missing = || CommandFailure::Line("standard input: has no line, expected the password".to_owned());
    first.map(Password::new).ok_or_else(missing)
}

/// These arguments, with `-h` read as help where it has no value: with one it is the host in a command that connects, as for
/// the mysql client. Everywhere else `-h` is help anyway.
pub(crate) fn with_h_alone_as_help(cli: &clap::Command, mut args: Vec<OsString>) -> Vec<OsString> {
    let mut command = cli;
    for arg in args.iter().skip(1).filter(|arg| !arg.as_encoded_bytes().starts_with(b"-")) {
        match command.find_subcommand(arg) {
            Some(below) => command = below,
            None => break,
        }
    }
    let takes_host =
        command.get_arguments().any(|arg| arg.get_short() == Some('h') && arg.get_id() == "host");
    let has_value =
        |after: Option<&OsString>| after.is_some_and(|arg| !arg.as_encoded_bytes().starts_with(b"-"));
    let alone = (1..args.len())
        .find(|at| args.get(*at).is_some_and(|arg| arg == "-h") && !has_value(args.get(at + 1)));
    if let Some(arg) = alone.filter(|_| takes_host).and_then(|at| args.get_mut(at)) {
        *arg = SHORT_HELP.into();
    }
    args
}

/// The option that `-h` alone becomes.
const SHORT_HELP: &str = "--short-help";

/// Whether the arguments of a command that logs in have `-pPASSWORD`, which the mysql client takes.
pub(crate) fn password_behind_p(cli: &clap::Command, args: &[OsString]) -> bool {
    let command = args.get(1).and_then(|name| cli.find_subcommand(name));
    command.is_some_and(|command| command.get_arguments().any(|arg| arg.get_id() == "password"))
        && args.iter().any(|arg| arg.len() > 2 && arg.as_encoded_bytes().starts_with(b"-p"))
}

/// These options with the place that a SERVER names ([`ConnectOptions::set_server`]).
pub fn with_place(options: &ConnectOptions, server: &str) -> Result<ConnectOptions, String> {
    let mut options = options.clone();
    options.set_server(server).map(|()| options).map_err(|error| error.to_string())
}

/// Options from files alone; what is odd in these is told.
///
/// # Errors
///
/// A file that can't be read, or an option with a value that it can't have.
pub fn with_option_files(
    files: &OptionFiles,
    program_name: &str,
) -> Result<ConnectOptions, binlogz_source::Error> {
    let mut options = ConnectOptions::new(program_name);
    let defaults = files.read(&BINLOGZ_GROUPS)?;
    for warning in &defaults.warnings {
        warn(warning);
    }
    // Other programs use these groups too: options that don't concern a connection are theirs.
    defaults.apply(&mut options)?;
    Ok(options)
}

fn line(error: binlogz_source::Error) -> CommandFailure {
    CommandFailure::Line(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_a_line_of_any_bytes() {
        let read = |input: &[u8]| password_line(input).map(|password| password.as_bytes().to_vec());
        assert_eq!(read(b"p\xffw\r\nnext").unwrap(), b"p\xffw\r");
        assert_eq!(read(b"\n").unwrap(), b"");
        assert!(read(b"").is_err());
    }
}
