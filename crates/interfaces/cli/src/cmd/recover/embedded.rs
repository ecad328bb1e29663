//! The source that the server is attached to, inside this process: the relay's serving side over closed logs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use binlogz_relay::{
    AccountOptions, BringBack, EndedLogs, Form, FormPolicy, Limits, ListenTls, Relay, ServeOptions,
    ServedLogs,
};
use binlogz_source::Password;
use tempfile::TempDir;

use super::channel::{ChannelSource, SavedSettings};
use super::target::TargetServer;
use crate::cmd::closed_logs;
use crate::failure::{CommandFailure, Result};
use crate::log::{self, LogFormat, LogSettings};

const PASSWORD_SIZE: usize = 24;
/// Ids that people give to servers are smaller.
const SERVER_ID_MIN: u32 = 1 << 31;

/// Starts the source; it ends with the process.
pub(super) fn start(
    target: &TargetServer,
    ended: &EndedLogs,
    folder: &TempDir,
    bring_back: BringBack,
    before: &SavedSettings,
    listen: Option<SocketAddr>,
    over_incidents: bool,
) -> Result<ChannelSource> {
    let listen = match listen {
        Some(listen) => listen,
        None => SocketAddr::new(reachable_at(target)?, 0),
    };
    let mut random = [0; PASSWORD_SIZE + 4];
    getrandom::fill(&mut random).map_err(|error| CommandFailure::Line(format!("random numbers: {error}")))?;
    let (id, password) = random.split_first_chunk::<4>().unwrap_or((&[1; 4], &[]));
    let password: String = password.iter().map(|byte| format!("{byte:02x}")).collect();
    // The password of a channel may have 32 characters.
    let password = password.get(..32).unwrap_or_default().to_owned();
    let server_id = u32::from_le_bytes(*id) | SERVER_ID_MIN;
    let tls = !listen.ip().is_loopback();
    let form = if target.words.reads_payloads { Form::Received } else { Form::Uncompressed };
    let options = ServeOptions {
        served: ServedLogs {
            logs: ended.shared(),
            bring_back,
            only_replica: Some(server_id),
            over_incidents,
        },
        directory: folder.path().to_owned(),
        accounts: vec![AccountOptions::new(before.user(), Password::new(password.as_str()))],
        limits: Limits::default(),
        listen,
        listen_tls: if tls { ListenTls::Own } else { ListenTls::Off },
        require_tls: tls,
        native_password: true,
        form: FormPolicy::Always(form),
    };
    log::install(&LogSettings {
        format: LogFormat::Text,
        levels: log::levels("warn").map_err(CommandFailure::Line)?,
    })?;
    let running = Relay::serve(options).map_err(closed_logs::line)?;
    Ok(ChannelSource { address: running.address(), password, tls, server_id })
}

/// The address of this machine under which the server can reach it, as far as routes tell.
fn reachable_at(target: &TargetServer) -> Result<IpAddr> {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if target.options.socket_path().is_some() {
        return Ok(here);
    }
    let failed = |error: std::io::Error| {
        CommandFailure::of(
            &target.name,
            format_args!(
                "find the address of this machine that the server can reach: {error}; --listen gives it"
            ),
        )
    };
    let address = target.options.address().to_socket_addrs().map_err(failed)?.next();
    let Some(address) = address.filter(|address| !address.ip().is_loopback()) else { return Ok(here) };
    // No packet is sent: the system tells which of its addresses it would use.
    let any: SocketAddr = if address.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).and_then(|socket| socket.connect(address).map(|()| socket));
    Ok(socket.and_then(|socket| socket.local_addr()).map_err(failed)?.ip())
}
