//! Where a server is and how to log in: the mysql client's own options, by their own names.
//!
//! Option files, environment and command line set them in this order, later ones winning; anything not set
//! has libmysqlclient's default. No text that this module makes contains a password.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use binlogz_wire::auth::{AuthPlugin, Credentials, Password};
use binlogz_wire::compressed::CompressionChoice;
use binlogz_wire::session::{LoginOptions, Timeouts, TlsPolicy};

use crate::error::{Error, FileContext, Result};
use crate::password_prompt::prompt_for_password;
use crate::socket::Socket;
use crate::tls::{SslMode, TlsOptions};

const DEFAULT_PORT: u16 = 3306;
const LOCALHOST: &str = "localhost";
/// Where servers put their sockets: Debian's and the upstream default.
const DEFAULT_SOCKETS: [&str; 2] = ["/var/run/mysqld/mysqld.sock", "/tmp/mysql.sock"];
/// The largest public key file that is read, in bytes.
const PUBLIC_KEY_SIZE_MAX: u64 = 64 << 10;

/// How to reach a server (`--protocol`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Over TCP.
    Tcp,
    /// Over a Unix socket.
    Socket,
}

/// Where the password comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PasswordOption {
    /// Not set: the environment variable `MYSQL_PWD`, or none.
    #[default]
    NotGiven,
    /// The password was given; empty means none.
    Given(Password),
    /// Ask for it.
    Ask,
}

/// Where a server is and how to log in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// `--host`; `localhost` means the Unix socket unless the protocol says TCP.
    pub host: Option<String>,
    /// `--port`.
    pub port: Option<u16>,
    /// `--socket`.
    pub socket: Option<PathBuf>,
    /// `--protocol`.
    pub protocol: Option<Protocol>,
    /// `--bind-address`: the address of this machine to connect from.
    pub bind_address: Option<String>,
    /// `--user`.
    pub user: Option<String>,
    /// `--password`.
    pub password: PasswordOption,
    /// `--ssl-…` and `--tls-…`.
    pub tls: TlsOptions,
    /// `--server-public-key-path`.
    pub server_public_key_path: Option<PathBuf>,
    /// `--get-server-public-key`.
    pub get_server_public_key: bool,
    /// `--default-auth`.
    pub default_auth: Option<AuthPlugin>,
    /// `--compression-algorithms`, `--zstd-compression-level`.
    pub compression: CompressionChoice,
    /// How long to wait for connection, answers and events.
    pub timeouts: Timeouts,
    /// The client's name for itself (`program_name`).
    pub program_name: String,
    /// The default database.
    pub database: Option<String>,
    /// The number of the session's collation; by default utf8mb4_general_ci.
    pub collation: Option<u8>,
}

impl ConnectOptions {
    /// Nothing set but the name the program has at the server.
    pub fn new(program_name: &str) -> Self {
        ConnectOptions { program_name: program_name.to_owned(), ..ConnectOptions::default() }
    }

    /// Sets an option by its name in option files, as in `ssl-mode`; dashes and underscores are alike. `false`: no
    /// option of a connection has that name.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] for a value that the option can't have.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<bool> {
        let name = name.replace('_', "-");
        let text = || value.map(str::to_owned).ok_or_else(|| Error::Option(format!("{name} needs a value")));
        let path = || text().map(PathBuf::from);
        match name.as_str() {
            "host" => self.host = Some(text()?),
            "port" => self.port = Some(number(&name, &text()?)?),
            "socket" => self.socket = Some(path()?),
            "protocol" => self.protocol = Some(protocol(&text()?)?),
            "bind-address" => self.bind_address = Some(text()?),
            "user" => self.user = Some(text()?),
            "password" => {
                self.password = match value {
                    Some(password) => PasswordOption::Given(Password::new(password)),
                    None => PasswordOption::Ask,
                }
            }
            "skip-password" => self.password = PasswordOption::Given(Password::default()),
            "ssl-mode" => {
                let mode = SslMode::from_name(&text()?);
                self.tls.mode = Some(mode.ok_or_else(|| unknown(&name, value, "an SSL mode"))?);
            }
            "ssl-ca" => self.tls.ca = Some(path()?),
            "ssl-capath" => self.tls.ca_path = Some(path()?),
            "ssl-cert" => self.tls.certificate = Some(path()?),
            "ssl-key" => self.tls.key = Some(path()?),
            "ssl-crl" => self.tls.crl = Some(path()?),
            "ssl-crlpath" => self.tls.crl_path = Some(path()?),
            "ssl-cipher" => self.tls.ciphers = Some(text()?),
            "tls-ciphersuites" => self.tls.ciphersuites = Some(text()?),
            "tls-version" => self.tls.versions = Some(text()?),
            "tls-sni-servername" => self.tls.sni_server_name = Some(text()?),
            "server-public-key-path" => self.server_public_key_path = Some(path()?),
            "get-server-public-key" => self.get_server_public_key = is_on(&name, value)?,
            "skip-get-server-public-key" => self.get_server_public_key = false,
            "default-auth" => {
                let plugin = AuthPlugin::from_name(text()?.as_bytes());
                self.default_auth =
                    Some(plugin.ok_or_else(|| unknown(&name, value, "an authentication plugin"))?);
            }
            "compression-algorithms" => {
                let list = text()?;
                let unfit = || {
                    Error::Option(format!("{name} is '{list}', expected some of zlib, zstd and uncompressed"))
                };
                let choice = CompressionChoice::of_names(&list).ok_or_else(unfit)?;
                self.compression = CompressionChoice { zstd_level: self.compression.zstd_level, ..choice };
            }
            "zstd-compression-level" => {
                let level = text()?.trim().parse().ok();
                let level = level.filter(|level| (1..=CompressionChoice::ZSTD_LEVEL_MAX).contains(level));
                self.compression.zstd_level =
                    level.ok_or_else(|| unknown(&name, value, "a level from 1 to 22"))?;
            }
            "connect-timeout" => self.timeouts.login = Duration::from_secs(number(&name, &text()?)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets where a server is, as every command takes it:
    ///
    /// ```text
    /// mysql://[USER@]HOST[:PORT]    [USER@]HOST[:PORT]       a port means TCP, also on localhost
    /// [USER@]unix:/PATH             [USER@]/PATH             a Unix socket
    /// ```
    pub fn set_server(&mut self, server: &str) -> Result<()> {
        if let Some((user, path)) = socket_place(server) {
            if let Some(user) = user {
                self.user = Some(user.to_owned());
            }
            (self.socket, self.protocol) = (Some(path.into()), Some(Protocol::Socket));
            return Ok(());
        }
        let url = match server.contains("://") {
            true => server.to_owned(),
            false => format!("mysql://{server}"),
        };
        let port = self.port.take();
        self.set_url(&url)?;
        if self.port.is_some() {
            (self.socket, self.protocol) = (None, Some(Protocol::Tcp));
        } else {
            // As with the mysql client, localhost is the socket that option files name.
            self.port = port;
        }
        Ok(())
    }

    /// Sets the parts of a URL: `mysql://[USER@]HOST[:PORT][/]`. A password in it is refused: other users of this machine
    /// would see it.
    pub fn set_url(&mut self, url: &str) -> Result<()> {
        let bad = |problem: &str| Error::Option(format!("{problem}, expected mysql://[USER@]HOST[:PORT]"));
        let rest = url.strip_prefix("mysql://").ok_or_else(|| bad("server is no mysql:// URL"))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err(Error::Option(
                "a password in a URL can be seen by others: put it into an option file, a login path or MYSQL_PWD"
                    .into(),
            ));
        }
        if place.contains(['/', '?', '#']) {
            return Err(bad("URL goes on after the server"));
        }
        // An IPv6 address is in brackets, because of its colons.
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(|| bad("URL has no port"))?)),
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        if host.is_empty() {
            return Err(bad("URL has no host"));
        }
        self.host = Some(host.to_owned());
        if let Some(port) = port {
            self.port = Some(number("port", port)?);
        }
        if let Some(user) = user {
            self.user = Some(percent_decoded(user).ok_or_else(|| bad("user has a bad escape"))?);
        }
        Ok(())
    }

    /// Asks for the password at the terminal, if it is to be asked for.
    pub fn ask_password(&mut self) -> Result<()> {
        if self.password == PasswordOption::Ask {
            let password = prompt_for_password("Enter password: ")
                .map_err(|error| Error::Option(format!("ask for the password: {error}")))?;
            self.password = PasswordOption::Given(Password::new(password));
        }
        Ok(())
    }

    /// The host, `localhost` by default.
    pub fn host(&self) -> &str {
        match self.host.as_deref() {
            None | Some("") => LOCALHOST,
            Some(host) => host,
        }
    }

    /// Host and port, or the socket, as errors name the server.
    pub fn server(&self) -> String {
        match self.place() {
            Address::Socket(path) => path.display().to_string(),
            Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            Address::Tcp(host, port) => format!("{host}:{port}"),
        }
    }

    /// The Unix socket, unless the server is reached over TCP.
    pub fn socket_path(&self) -> Option<PathBuf> {
        match self.place() {
            Address::Socket(path) => Some(path),
            Address::Tcp(..) => None,
        }
    }

    /// Host and port of a server that is reached over TCP.
    pub fn address(&self) -> (&str, u16) {
        match self.place() {
            Address::Tcp(host, port) => (host, port),
            Address::Socket(_) => (self.host(), self.port.unwrap_or(DEFAULT_PORT)),
        }
    }

    /// The account that a session logs in with, and its password.
    pub fn account(&self) -> Result<(String, Password)> {
        self.login().map(|login| (login.credentials.user, login.credentials.password))
    }

    /// The credentials and options of a login.
    pub(crate) fn login(&self) -> Result<LoginOptions> {
        let mut seed = [0; 20];
        getrandom::fill(&mut seed).map_err(|error| Error::Option(format!("random numbers: {error}")))?;
        let password = match &self.password {
            PasswordOption::Given(password) => password.clone(),
            PasswordOption::NotGiven => Password::new(std::env::var("MYSQL_PWD").unwrap_or_default()),
            PasswordOption::Ask => {
                return Err(Error::Option("the password was not asked for before connecting".into()));
            }
        };
        let server_public_key = self.server_public_key_path.as_deref().map(read_public_key).transpose()?;
        Ok(LoginOptions {
            credentials: Credentials {
                user: self.user(),
                password,
                server_public_key,
                get_server_public_key: self.get_server_public_key,
                seed,
            },
            default_auth: self.default_auth,
            tls: match self.tls.effective_mode() {
                SslMode::Disabled => TlsPolicy::Disabled,
                SslMode::Preferred => TlsPolicy::Preferred,
                SslMode::Required | SslMode::VerifyCa | SslMode::VerifyIdentity => TlsPolicy::Required,
            },
            local_socket: matches!(self.place(), Address::Socket(_)),
            compression: self.compression,
            attributes: self.attributes(),
            database: self.database.clone(),
            collation: self.collation,
        })
    }

    pub(crate) fn connect_socket(&self) -> io::Result<Socket> {
        match self.place() {
            Address::Socket(path) => Socket::connect_unix(&path),
            Address::Tcp(host, port) => {
                Socket::connect_tcp(host, port, self.bind_address.as_deref(), self.timeouts.login)
            }
        }
    }

    fn place(&self) -> Address<'_> {
        let over_socket = match self.protocol {
            Some(Protocol::Socket) => true,
            Some(Protocol::Tcp) => false,
            None => self.host() == LOCALHOST,
        };
        if over_socket {
            return Address::Socket(self.socket.clone().unwrap_or_else(default_socket));
        }
        Address::Tcp(self.host(), self.port.or_else(port_of_environment).unwrap_or(DEFAULT_PORT))
    }

    fn user(&self) -> String {
        self.user.clone().or_else(user_of_environment).unwrap_or_else(|| "root".into())
    }

    /// The attributes that performance_schema.session_connect_attrs shows.
    fn attributes(&self) -> Vec<(String, String)> {
        [
            ("_client_name", "binlogz"),
            ("_client_version", env!("CARGO_PKG_VERSION")),
            ("_client_role", "binary_log_listener"),
            ("_os", std::env::consts::OS),
            ("_platform", std::env::consts::ARCH),
            ("_pid", &std::process::id().to_string()),
            ("program_name", &self.program_name),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Address<'a> {
    Socket(PathBuf),
    Tcp(&'a str, u16),
}

/// A user, if named, and the path of a Unix socket; `None` for a server that is none.
fn socket_place(server: &str) -> Option<(Option<&str>, &str)> {
    // A path may have an @ of its own.
    let (user, place) = match server.split_once('@') {
        Some((user, place)) if is_socket(place) && !is_socket(server) && !user.contains(['/', ':']) => {
            (Some(user), place)
        }
        _ => (None, server),
    };
    is_socket(place).then(|| (user, place.strip_prefix("unix:").unwrap_or(place)))
}

fn is_socket(place: &str) -> bool {
    place.strip_prefix("unix:").unwrap_or(place).starts_with('/')
}

fn port_of_environment() -> Option<u16> {
    std::env::var("MYSQL_TCP_PORT").ok()?.parse().ok()
}

fn user_of_environment() -> Option<String> {
    ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok())
}

fn default_socket() -> PathBuf {
    if let Some(path) = std::env::var_os("MYSQL_UNIX_PORT") {
        return path.into();
    }
    let [first, ..] = DEFAULT_SOCKETS;
    DEFAULT_SOCKETS.iter().find(|path| Path::new(path).exists()).unwrap_or(&first).into()
}

fn read_public_key(path: &Path) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut key = Vec::new();
    let file = std::fs::File::open(path).at("open", path)?;
    file.take(PUBLIC_KEY_SIZE_MAX).read_to_end(&mut key).at("read", path)?;
    Ok(key)
}

fn protocol(name: &str) -> Result<Protocol> {
    match name.to_ascii_uppercase().as_str() {
        "TCP" => Ok(Protocol::Tcp),
        "SOCKET" => Ok(Protocol::Socket),
        _ => Err(unknown("protocol", Some(name), "TCP or SOCKET")),
    }
}

fn number<N: std::str::FromStr>(name: &str, text: &str) -> Result<N> {
    text.trim().parse().map_err(|_| unknown(name, Some(text), "a number in range"))
}

/// A switch without a value is on.
fn is_on(name: &str, value: Option<&str>) -> Result<bool> {
    match value.map(str::to_ascii_uppercase).as_deref() {
        None | Some("1" | "ON" | "TRUE") => Ok(true),
        Some("0" | "OFF" | "FALSE") => Ok(false),
        Some(_) => Err(unknown(name, value, "ON or OFF")),
    }
}

fn unknown(name: &str, value: Option<&str>, expected: &str) -> Error {
    Error::Option(format!("{name} is {}, expected {expected}", value.unwrap_or("empty")))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_clients_names() {
        let mut options = ConnectOptions::new("test");
        for (name, value) in [
            ("host", Some("db1")),
            ("port", Some("3307")),
            ("ssl_mode", Some("verify_ca")),
            ("ssl-ca", Some("ca.pem")),
            ("get-server-public-key", None),
            ("default-auth", Some("sha256_password")),
            ("connect_timeout", Some("3")),
            ("zstd-compression-level", Some("7")),
            ("compression_algorithms", Some("zstd, Uncompressed")),
            ("password", Some("secret")),
        ] {
            assert!(options.set(name, value).unwrap(), "{name}");
        }
        assert_eq!(options.server(), "db1:3307");
        assert_eq!(options.tls.mode, Some(SslMode::VerifyCa));
        assert!(options.get_server_public_key);
        assert_eq!(options.default_auth, Some(AuthPlugin::Sha256Password));
        assert_eq!(options.timeouts.login, Duration::from_secs(3));
        assert_eq!(
            options.compression,
            CompressionChoice { zlib: false, zstd: true, uncompressed: true, zstd_level: 7 }
        );
        assert!(!options.set("quick", None).unwrap());
        assert!(!format!("{options:?}").contains("secret"));
        for (name, value, said) in [
            ("port", Some("70000"), "port is 70000, expected a number in range"),
            ("ssl-mode", Some("YES"), "ssl-mode is YES, expected an SSL mode"),
            ("host", None, "host needs a value"),
            (
                "zstd-compression-level",
                Some("23"),
                "zstd-compression-level is 23, expected a level from 1 to 22",
            ),
            (
                "compression-algorithms",
                Some("lz4"),
                "compression-algorithms is 'lz4', expected some of zlib, zstd and uncompressed",
            ),
            ("protocol", Some("PIPE"), "protocol is PIPE, expected TCP or SOCKET"),
            (
                "get-server-public-key",
                Some("perhaps"),
                "get-server-public-key is perhaps, expected ON or OFF",
            ),
        ] {
            assert_eq!(options.set(name, value).unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn localhost_is_the_socket_unless_tcp_is_asked_for() {
        let mut options = ConnectOptions { socket: Some("/run/s".into()), ..ConnectOptions::default() };
        assert_eq!(options.server(), "/run/s");
        options.protocol = Some(Protocol::Tcp);
        options.port = Some(1);
        assert_eq!(options.server(), "localhost:1");
        options.host = Some("::1".into());
        assert_eq!(options.server(), "[::1]:1");
    }

    #[test]
    fn a_server_is_a_url_a_host_or_a_socket() {
        let base = ConnectOptions { port: Some(3310), ..ConnectOptions::new("test") };
        for (server, place, user) in [
            ("mysql://db1", "db1:3310", None),
            ("repl@db1:3307", "db1:3307", Some("repl")),
            ("localhost:3307", "localhost:3307", None),
            ("/run/my.sock", "/run/my.sock", None),
            ("unix:/run/my.sock", "/run/my.sock", None),
            ("repl@/run/a@b.sock", "/run/a@b.sock", Some("repl")),
            ("repl@unix:/run/my.sock", "/run/my.sock", Some("repl")),
            ("/run/a@/b.sock", "/run/a@/b.sock", None),
            ("[::1]:3308", "[::1]:3308", None),
        ] {
            let mut options = base.clone();
            options.set_server(server).unwrap();
            assert_eq!((options.server().as_str(), options.user.as_deref()), (place, user), "{server}");
        }
        let mut options = ConnectOptions { socket: Some("/run/s".into()), ..base.clone() };
        options.set_server("mysql://localhost").unwrap();
        assert_eq!(options.server(), "/run/s");
        for server in
            ["", "db1:port", "http://db1", "mysql://u:secret@db1", "unix:my.sock", "u:secret@/run/s"]
        {
            let error = base.clone().set_server(server).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{server}: {error}");
        }
    }

    #[test]
    fn urls_name_a_server() {
        for (url, server, user) in [
            ("mysql://db1", "db1:3306", None),
            ("mysql://repl@db1:3307/", "db1:3307", Some("repl")),
            ("mysql://a%40b@[::1]:3308", "[::1]:3308", Some("a@b")),
            ("mysql://[fe80::1]", "[fe80::1]:3306", None),
        ] {
            let mut options = ConnectOptions::new("test");
            options.set_url(url).unwrap();
            assert_eq!((options.server().as_str(), options.user.as_deref()), (server, user), "{url}");
        }
        for url in ["db1", "mysql://", "mysql://db1:x", "mysql://db1/x", "mysql://a%4@b", "mysql://[::1]3306"]
        {
            assert!(ConnectOptions::new("test").set_url(url).is_err(), "{url}");
        }
        let error = ConnectOptions::new("test").set_url("mysql://root:secret@db1").unwrap_err().to_string();
        assert!(error.contains("MYSQL_PWD") && !error.contains("secret"), "{error}");
    }
}
