//! Connects to MySQL servers and receives their binary logs: sockets, TLS, time-outs, option files.
//!
//! * [`ConnectOptions`] says where a server is and how to log in, in the mysql client's own options;
//!   [`option_files`] reads them where MySQL's programs keep them, [`secret`] passwords that a configuration names;
//! * [`Connection`] asks a server small things; [`AnswerFields`] reads an answer as what was asked for, or says that it can't be;
//! * [`RemoteLog`] receives a binary log, event by event or in pieces;
//! * [`RemoteFiles`] returns the same as the server's files, each of them a [`std::io::Read`].
//!
//! `binlogz-wire` implements the protocol; this crate moves bytes, blocking, and reads the clock. It prints
//! nothing.

mod answer_fields;
mod connect_options;
mod connection;
mod error;
mod link;
pub mod option_files;
mod password_prompt;
mod remote_files;
mod remote_log;
pub mod secret;
mod socket;
mod tls;

pub use answer_fields::AnswerFields;
pub use binlogz_wire as wire;
pub use binlogz_wire::auth::Password;
pub use binlogz_wire::compressed::{CompressionChoice, ConnectionCompression};
pub use connect_options::{ConnectOptions, PasswordOption, Protocol};
pub use connection::{Connection, ForwardError, PassOn};
pub use error::{Error, Result};
pub use password_prompt::prompt_for_password;
pub use remote_files::{FilePiece, RemoteFile, RemoteFiles};
pub use remote_log::{DumpOptions, RemoteEvent, RemoteLog};
pub use socket::HangUp;
pub use tls::{SslMode, TlsOptions};
