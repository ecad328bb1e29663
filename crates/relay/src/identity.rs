//! Who the relay is to its source: a server uuid of its own, made once and kept beside the log.

use binlogz_binlog::gtid::ServerUuid;
use binlogz_store::{Storage, storage};

use crate::error::{Error, Result};

/// Where it is kept.
const NAME: &str = "relay.uuid";
/// More than its text.
const SIZE_MAX: u64 = 4096;

/// The relay's uuid; made if there is none yet.
pub(crate) fn own_uuid(storage: &dyn Storage) -> Result<ServerUuid> {
    if let Ok(file) = storage.open(NAME, false) {
        let bytes = storage::read_all(file.as_ref(), SIZE_MAX).map_err(Error::io(format!("read {NAME}")))?;
        let text = String::from_utf8_lossy(&bytes);
        let unfit = || Error::Refused(format!("{NAME}: {:?} is no server uuid", text.trim()));
        return text.trim().parse().map_err(|_| unfit());
    }
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Io { doing: "random numbers".into(), source: error.into() })?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default().to_owned();
    let text = [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-");
    // Whole or not there after a crash: half of a uuid would be refused above.
    storage::replace(storage, NAME, format!("{text}\n").as_bytes())
        .map_err(Error::io(format!("write {NAME}")))?;
    text.parse().map_err(Error::Binlog)
}

/// A server id from a uuid: never 0, which would mean a reader that does not wait.
pub(crate) fn server_id_of(uuid: ServerUuid) -> u32 {
    let sum = uuid
        .to_string()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    sum.max(1)
}
