//! When transactions arrive at a replica, for programs that measure the relay.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use binlogz_binlog::EventType;
use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::gtid::GtidSet;
use binlogz_source::{ConnectOptions, DumpOptions, Password, PasswordOption, RemoteLog};
use binlogz_wire::session::{ClientProfile, DumpStart, ReplicaProfile};

pub(crate) type ArrivalsFailure = Box<dyn Error + Send + Sync>;

/// Microseconds from commit to arrival of each transaction, by its number.
pub(crate) fn arrivals(
    (user, password): (&str, &str),
    port: u16,
    server_id: u32,
    executed: &GtidSet,
    last: &AtomicU64,
) -> Result<HashMap<u64, f64>, ArrivalsFailure> {
    let mut connect = ConnectOptions::new("latency");
    connect.set_url(&format!("mysql://{user}@127.0.0.1:{port}"))?;
    connect.password = PasswordOption::Given(Password::new(password));
    let profile = ReplicaProfile {
        server_uuid: format!("00000000-0000-0000-0000-{server_id:012}").parse()?,
        heartbeat_period: Duration::from_secs(10),
        semi_sync: false,
        host: String::new(),
        port: 0,
    };
    let start = DumpStart::GtidSet { gtid_set: executed.clone(), name: String::new(), position: 4 };
    let dump = DumpOptions {
        profile: ClientProfile::Replica(profile),
        server_id,
        start,
        non_blocking: false,
        verify_checksums: false,
    };
    let mut log = RemoteLog::open(&connect, dump)?;
    let mut arrivals = HashMap::new();
    let mut open = None;
    while let Some(event) = log.next_event()? {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as f64;
        if event.header.event_type.is_gtid() {
            let told = AnyGtidEvent::decode_frame(&event.frame()?.unchecked()?)?;
            let gtid = told.as_ref().and_then(AnyGtidEvent::gtid).ok_or("a transaction without GTID")?;
            let committed = told.as_ref().and_then(AnyGtidEvent::commit_timestamps);
            let number = gtid.gno();
            let end = last.load(Ordering::Acquire);
            if end > 0 && number >= end {
                break;
            }
            open = Some((number, committed.ok_or("no commit time")?.immediate as f64));
        } else if event.header.event_type == EventType::XID
            && let Some((number, committed)) = open.take()
        {
            arrivals.insert(number, now - committed);
        }
    }
    Ok(arrivals)
}

/// Prints the quantiles, in milliseconds.
pub(crate) fn report(what: &str, microseconds: impl Iterator<Item = f64>) {
    let mut all: Vec<f64> = microseconds.collect();
    all.sort_by(f64::total_cmp);
    let at =
        |share: f64| all.get(((all.len() as f64 - 1.0) * share) as usize).map_or(f64::NAN, |us| us / 1000.0);
    println!("{what:<28} {:>9.2} {:>9.2} {:>9.2} {:>9.2}", at(0.5), at(0.95), at(0.99), at(1.0));
}
