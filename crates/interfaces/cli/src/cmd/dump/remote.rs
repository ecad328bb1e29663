//! Logs of servers: how they are requested, and how their errors are reported.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use binlogz_binlog::EventFrame;
use binlogz_flow::{Input, Live};
use binlogz_source::wire::session::{ClientProfile, DumpStart};
use binlogz_source::{ConnectOptions, DumpOptions, Error, RemoteFiles};
use parking_lot::Mutex;

use super::options::{DumpSettings, POSITION_MIN};
use super::tell_line;
use crate::failure::{CommandFailure, Result};

/// The program's name in its messages to the server.
pub(super) const PROGRAM_NAME: &str = "mysqlbinlog";

/// mysqlbinlog's words.
const NOT_VERIFIED: &str =
    "no verification of server certificate will be done. Use --ssl-mode=VERIFY_CA or VERIFY_IDENTITY.";

/// How to reach the server; the password is asked for, if it has to be.
pub(super) fn connect(options: &DumpSettings) -> Result<ConnectOptions> {
    let connect = options.connect(PROGRAM_NAME).and_then(|mut connect| {
        connect.ask_password()?;
        if connect.tls.ignores_authority() {
            tell_line("WARNING", NOT_VERIFIED);
        }
        Ok(connect)
    });
    connect.map_err(|error| CommandFailure::Line(error.to_string()))
}

/// The request for the `number`th log of the command line, from 0.
pub(super) fn dump_options(options: &DumpSettings, log: &Path, number: usize) -> DumpOptions {
    // Servers know logs only by their names.
    let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let position = if number == 0 { options.start_position } else { POSITION_MIN };
    let start = match options.excludes_at_source() {
        true => {
            DumpStart::GtidSet { gtid_set: options.exclude_gtids.clone().unwrap_or_default(), name, position }
        }
        false => DumpStart::Position { name, position },
    };
    DumpOptions {
        profile: ClientProfile::Mysqlbinlog,
        server_id: options.own_server_id(),
        start,
        non_blocking: !options.stop_never,
        verify_checksums: options.verify_binlog_checksum,
    }
}

/// Continues with the next file requested with `log`, and returns its name; `None`: there is none.
pub(super) fn next_file(
    files: &mut RemoteFiles,
    options: &DumpSettings,
    log: &Path,
) -> Result<Option<Vec<u8>>> {
    let name = files.next_file().map(|file| file.map(|file| file.name().to_vec()));
    let logged_in = files.log().identity().is_some();
    let name = name.map_err(|error| failure(&error, logged_in))?;
    // The server continues with its next file, wanted or not.
    let is_wanted = |name: &Vec<u8>| options.to_last_log || log.file_name() == Some(OsStr::from_bytes(name));
    Ok(name.filter(is_wanted))
}

/// Trouble with a server, in mysqlbinlog's words: before it knew who we are, or later.
pub(super) fn failure(error: &Error, logged_in: bool) -> CommandFailure {
    let what = if logged_in { "Got error reading packet from server" } else { "Failed on connect" };
    let said = match error.server_error() {
        Some(error) => error.message.clone(),
        None => error.to_string(),
    };
    CommandFailure::Line(format!("{what}: {said}"))
}

/// A log that a server sends, file by file, as an [`Input`] each.
pub(super) struct RemoteInputs(Arc<Mutex<Stream>>);

struct Stream {
    files: RemoteFiles,
    /// Why the last read failed: it comes back from there as an [`io::Error`] inside others.
    failed: Option<Error>,
}

impl RemoteInputs {
    /// Connects for the `number`th log of the command line.
    pub(super) fn open(
        options: &DumpSettings,
        connect: &ConnectOptions,
        number: usize,
        log: &Path,
    ) -> Result<Self> {
        let files = RemoteFiles::open(connect, dump_options(options, log, number))
            .map_err(|error| failure(&error, false))?;
        Ok(RemoteInputs(Arc::new(Mutex::new(Stream { files, failed: None }))))
    }

    /// The next file that was asked for, and its name.
    pub(super) fn next_input(&self, options: &DumpSettings, log: &Path) -> Result<Option<(String, Input)>> {
        let name = next_file(&mut self.0.lock().files, options, log)?;
        let bytes = FileInput(Arc::clone(&self.0));
        let input = || match options.stop_never {
            true => Input::Live(Box::new(bytes)),
            false => Input::Stream(Box::new(bytes)),
        };
        Ok(name.map(|name| (String::from_utf8_lossy(&name).into_owned(), input())))
    }

    /// Shows the rotate event that the server sent before the file.
    pub(super) fn rotate<T>(&self, show: impl FnOnce(&EventFrame<'_>) -> T) -> Result<T> {
        let stream = self.0.lock();
        let rotate = stream.files.rotate();
        rotate.map(|rotate| show(&rotate)).map_err(|error| CommandFailure::Line(error.to_string()))
    }

    /// Why the file's bytes stopped coming, if they did.
    pub(super) fn failure(&self) -> Option<CommandFailure> {
        self.0.lock().failed.take().map(|error| failure(&error, true))
    }
}

/// The bytes of the file that is being received.
struct FileInput(Arc<Mutex<Stream>>);

impl Read for FileInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.0.lock();
        let Stream { files, failed } = &mut *stream;
        if let Some(error) = failed {
            return Err(io::Error::other(error.to_string()));
        }
        let Some(mut file) = files.current_file() else { return Ok(0) };
        let mut count = 0;
        // The first bytes are waited for; events that came with them are taken along.
        while count < buffer.len() && (count == 0 || !file.is_drained()) {
            let piece = match file.next_piece() {
                Ok(Some(piece)) => piece.bytes,
                Ok(None) => break,
                // Write first what came before it.
                Err(error) if count > 0 => {
                    *failed = Some(error);
                    break;
                }
                Err(error) => {
                    let told = io::Error::other(error.to_string());
                    *failed = Some(error);
                    return Err(told);
                }
            };
            let size = io::Read::read(&mut &*piece, buffer.get_mut(count..).unwrap_or_default())?;
            io::BufRead::consume(&mut file, size);
            count += size;
        }
        Ok(count)
    }
}

impl Live for FileInput {
    fn is_drained(&self) -> bool {
        self.0.lock().files.current_file().is_none_or(|file| file.is_drained())
    }
}

/// Ends the whole process: a thread that waits for a server to send more can't be woken.
pub(super) fn leave(failure: CommandFailure) -> ! {
    std::process::exit(super::tell(failure).into())
}
