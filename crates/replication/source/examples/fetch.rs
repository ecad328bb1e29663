//! Fetches a binary log from a server, byte for byte, to stdout.
//!
//! `fetch mysql://USER@HOST:PORT NAME >NAME`, the password in `MYSQL_PWD`.

use std::io::{self, Write};
use std::process::ExitCode;

use binlogz_source::{ConnectOptions, DumpOptions, RemoteFiles};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, name] = arguments.as_slice() else {
        eprintln!("usage: fetch mysql://USER@HOST:PORT NAME >NAME");
        return ExitCode::from(2);
    };
    match fetch(url, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fetch: {error}");
            ExitCode::from(2)
        }
    }
}

fn fetch(url: &str, name: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut connect = ConnectOptions::new("fetch");
    connect.set_url(url)?;
    let mut files = RemoteFiles::open(&connect, DumpOptions::to_the_end(name, 4))?;
    let mut out = io::stdout().lock();
    // The server's next files follow.
    if let Some(mut file) = files.next_file()? {
        io::copy(&mut file, &mut out)?;
    }
    out.flush()?;
    Ok(())
}
