//! The relay that a command asks: the one that is named, or that of a configuration.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::read;
use crate::failure::{CommandFailure, Result};
use binlogz_fleet::relay_http::{addresses, status};

/// Why a relay could not be asked, with the way to it.
pub(super) fn unreachable(address: SocketAddr, error: &io::Error) -> CommandFailure {
    let hint = match error.kind() {
        ErrorKind::ConnectionRefused => {
            "; a running relay answers where --http, or address of [http] in its configuration, says"
        }
        _ => "",
    };
    CommandFailure::of(&format_args!("http://{address}/"), format_args!("{error}{hint}"))
}

/// Asks the relay at `HOST:PORT`, or else at the address in its configuration: where it answered, and its document.
pub(super) fn ask(
    place: Option<&str>,
    config: &Path,
    query: &str,
    limit: Duration,
) -> Result<(SocketAddr, String)> {
    let addresses = match place {
        Some(place) => addresses(place).map_err(|error| CommandFailure::of(&place, error))?,
        None => vec![address_in(config)?],
    };
    let mut asked = Err(CommandFailure::Line("there is no address".to_owned()));
    for address in addresses {
        let answer = status(address, query, limit);
        asked = answer.map(|body| (address, body)).map_err(|error| unreachable(address, &error));
        if asked.is_ok() {
            break;
        }
    }
    asked
}

/// Where the relay of this configuration can be asked.
fn address_in(config: &Path) -> Result<SocketAddr> {
    let http = read(config)?.http;
    let nowhere = "has no http address: the relay can't be asked";
    Ok(http.ok_or_else(|| CommandFailure::of(&config.display(), nowhere))?.address)
}
