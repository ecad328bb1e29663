//! The source that the server is attached to, inside this process: the relay's serving side over closed logs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;

use binlogz_relay::{
    AccountOptions, BringBack, EndedLogs, Form, FormPolicy, Limits, ListenTls, Relay, ServeOptions,
    ServedLogs,
};
use binlogz_source::Password;

use crate::channel::{ChannelSource, SavedSettings};
use crate::error::{ReplayError, Result};
use crate::target::TargetServer;

const PASSWORD_SIZE: usize = 24;
/// Ids that people give to servers are smaller.
const SERVER_ID_MIN: u32 = 1 << 31;

/// How the source inside this process serves.
#[derive(Debug, Clone)]
pub struct EmbeddedSourceOptions<'o> {
    /// The folder that has the last of the logs, and nothing else.
    pub folder: &'o Path,
    /// How much of the other logs may be on disk at a time.
    pub bring_back: BringBack,
    /// Where the server connects to; `None`: the address of this machine that leads to the server, any port.
    pub listen: Option<SocketAddr>,
    /// Whether incidents that stand between transactions are left out.
    pub over_incidents: bool,
}

/// Starts the source; it ends with the process.
pub(crate) fn start(
    target: &TargetServer,
    ended: &EndedLogs,
    before: &SavedSettings,
    options: EmbeddedSourceOptions<'_>,
) -> Result<ChannelSource> {
    let EmbeddedSourceOptions { folder, bring_back, listen, over_incidents } = options;
    let listen = match listen {
        Some(listen) => listen,
        None => SocketAddr::new(reachable_at(target)?, 0),
    };
    let mut random = [0; PASSWORD_SIZE + 4];
    getrandom::fill(&mut random)?;
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
        directory: folder.to_owned(),
        accounts: vec![AccountOptions::new(before.user(), Password::new(password.as_str()))],
        limits: Limits::default(),
        listen,
        listen_tls: if tls { ListenTls::Own } else { ListenTls::Off },
        require_tls: tls,
        native_password: true,
        form: FormPolicy::Always(form),
    };
    let running = Relay::serve(options)?;
    Ok(ChannelSource { address: running.address(), password, tls, server_id })
}

/// The address of this machine under which the server can reach it, as far as routes tell.
fn reachable_at(target: &TargetServer) -> Result<IpAddr> {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if target.options.socket_path().is_some() {
        return Ok(here);
    }
    let failed = |error: std::io::Error| {
        ReplayError::unfit(
            &target.name,
            format!("find the address of this machine that the server can reach: {error}; --listen gives it"),
        )
    };
    let address = target.options.address().to_socket_addrs().map_err(failed)?.next();
    let Some(address) = address.filter(|address| !address.ip().is_loopback()) else { return Ok(here) };
    // No packet is sent: the system tells which of its addresses it would use.
    let any: SocketAddr = if address.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).and_then(|socket| socket.connect(address).map(|()| socket));
    Ok(socket.and_then(|socket| socket.local_addr()).map_err(failed)?.ip())
}
