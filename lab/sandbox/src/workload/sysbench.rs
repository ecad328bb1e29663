//! sysbench against a sandboxed server, in schema `sbtest`.

use std::process::Command;

use crate::{Error, Result, SandboxServer, Tool};

/// Runs `sysbench oltp_read_write … COMMAND`-like arguments against the server; returns its output.
pub fn sysbench(server: &SandboxServer, args: &[&str]) -> Result<String> {
    let mut command: Command = Tool::Sysbench.find()?.command("sysbench");
    command
        .args(["--db-driver=mysql", "--mysql-user=root", "--mysql-db=sbtest"])
        .arg(format!("--mysql-socket={}", server.socket().display()))
        .args(args);
    let output = command.output().map_err(|error| Error::Io("run sysbench".into(), error))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let trouble = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Failed(format!("sysbench {args:?} {}\n{said}{trouble}", output.status)));
    }
    Ok(said)
}
