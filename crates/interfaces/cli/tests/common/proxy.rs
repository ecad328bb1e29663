//! A network between relay and source that is cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Stands between relay and source: this many connections are cut, each after a random number of the source's bytes. Its port,
/// and how many connections there were.
pub(crate) fn cutting(to: u16, seed: u64, cuts: u64) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", to)).unwrap());
            let number = counting.fetch_add(1, Ordering::SeqCst);
            // xorshift: small numbers cut logins, large ones the middle of what is larger than a packet.
            let mut random = (seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
            for shift in [13, 7, 17] {
                random ^= if shift == 7 { random >> shift } else { random << shift };
            }
            let budget = match number % 4 {
                _ if number >= cuts => u64::MAX,
                0 => random % 500,
                1 => random % 20_000,
                2 => random % 1_000_000,
                _ => (16 << 20) - 500_000 + random % 1_000_000,
            };
            let (from_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || carry(from_client, to_server, u64::MAX));
            std::thread::spawn(move || carry(server, client, budget));
        }
    });
    (port, count)
}

/// Carries `budget` bytes, then nothing in either direction.
fn carry(mut from: TcpStream, mut to: TcpStream, mut budget: u64) {
    let mut buffer = vec![0; 64 << 10];
    while budget > 0 {
        let room = usize::try_from(budget).unwrap_or(usize::MAX).min(buffer.len());
        match from.read(&mut buffer[..room]) {
            Ok(0) | Err(_) => break,
            Ok(count) if to.write_all(&buffer[..count]).is_err() => break,
            Ok(count) => budget -= count as u64,
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
