//! Ports for relays that must have the same port after a restart.

use std::fs::File;
use std::net::TcpListener;
use std::sync::Mutex;

/// Ports below those that systems give to a program that asks for any (32768 and up on Linux, 49152 elsewhere): no
/// connection of another program, however short, takes one of these between two starts of a relay.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A port for this process alone until it ends: other processes of these tests take other ports.
pub(crate) fn reserved_port() -> u16 {
    static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let folder = binlogz_testkit::cache::dir().unwrap().join("ports");
    std::fs::create_dir_all(&folder).unwrap();
    for port in PORTS {
        let lock = File::options().create(true).append(true).open(folder.join(port.to_string())).unwrap();
        if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            RESERVED.lock().unwrap().push(lock);
            return port;
        }
    }
    panic!("no port is free");
}
