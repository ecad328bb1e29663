//! Peers that are no server, or a bad one: each is refused in time, with one clear line.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use binlogz_source::wire::auth::Password;
use binlogz_source::wire::packet::PacketWriter;
use binlogz_source::{ConnectOptions, Connection, PasswordOption, SslMode};

/// The greeting of a MySQL 9.7.4, its nonce replaced.
const GREETING: &[u8] = b"\x0a9.7.4\0\x0b\0\0\0abcdefgh\0\xff\xff\xff\x02\0\xff\xdf\x15\
    \0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0caching_sha2_password\0";

/// A message as the packet it comes in.
fn packet(sequence: u8, message: &[u8]) -> Vec<u8> {
    let mut writer = PacketWriter::default();
    writer.set_sequence(sequence);
    writer.message(|payload| payload.extend_from_slice(message));
    writer.pending().to_vec()
}

/// Connects to a peer that does what `peer` does; the error it ends with.
fn refused_by(mode: SslMode, peer: impl FnOnce(TcpStream) + Send) -> String {
    refused_with(mode, |_| {}, peer)
}

/// The error of a connection to a bad peer, with other options.
fn refused_with(
    mode: SslMode,
    change: impl FnOnce(&mut ConnectOptions),
    peer: impl FnOnce(TcpStream) + Send,
) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let mut options = ConnectOptions {
        host: Some("127.0.0.1".into()),
        port: Some(listener.local_addr().expect("bound").port()),
        user: Some("root".into()),
        password: PasswordOption::Given(Password::new("secret")),
        ..ConnectOptions::new("test")
    };
    options.tls.mode = Some(mode);
    options.timeouts.login = Duration::from_secs(2);
    change(&mut options);
    std::thread::scope(|scope| {
        scope.spawn(|| peer(listener.accept().expect("a client").0));
        let began = Instant::now();
        let error = Connection::open(&options).expect_err("no server").to_string();
        assert!(began.elapsed() < Duration::from_secs(60), "{error}");
        error.split_once(": ").map_or(error.clone(), |(_, rest)| rest.to_owned())
    })
}

/// Sends something, then waits until the client leaves.
fn say(bytes: Vec<u8>) -> impl FnOnce(TcpStream) + Send {
    move |mut stream| {
        stream.write_all(&bytes).expect("connected");
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

#[test]
fn strangers_and_liars_are_told_apart() {
    let mut cut = packet(0, GREETING);
    cut.truncate(60);
    for (said, error) in [
        (Vec::new(), "no answer within 2 s while logging in"),
        (
            b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
            "malformed answer while logging in: packet: sequence is 45 where 0 is next",
        ),
        (b"\xff\xff\xff\0".to_vec(), "no answer within 2 s while logging in"),
        (packet(0, b""), "malformed answer while logging in: greeting: version needs 1 bytes, 0 are left"),
        (
            packet(0, b"\xff\x10\x04Too many connections"),
            "logging in: server says 1040: Too many connections",
        ),
        (cut, "no answer within 2 s while logging in"),
    ] {
        let shown = said.escape_ascii().to_string();
        let found = refused_by(SslMode::Disabled, say(said));
        assert!(found.starts_with(error), "{shown}: {found}");
    }
}

#[test]
fn a_peer_that_leaves_is_not_waited_for() {
    let found = refused_by(SslMode::Disabled, drop);
    assert_eq!(found, "connection ended by the server while logging in");
    let leaves_at_tls = |mut stream: TcpStream| {
        stream.write_all(&packet(0, GREETING)).expect("connected");
        let _ = stream.read(&mut [0; 100]);
    };
    let found = refused_by(SslMode::Required, leaves_at_tls);
    assert_eq!(found, "the server ended the connection");
}

#[test]
fn nothing_said_in_the_clear_is_taken_for_the_servers_word() {
    // An attacker's OK after the greeting must not be read as if it had come through TLS.
    let with_more = [packet(0, GREETING), packet(2, b"\0\0\0\x02\0\0\0")].concat();
    let injects = move |mut stream: TcpStream| {
        stream.write_all(&with_more).expect("connected");
        let _ = stream.read_to_end(&mut Vec::new());
    };
    let found = refused_by(SslMode::Required, injects);
    assert!(
        found.contains("found bytes after the greeting, expected silence until TLS is set up"),
        "{found}"
    );
}

#[test]
fn tls_that_never_comes_is_given_up() {
    let found = refused_by(SslMode::Required, say(packet(0, GREETING)));
    assert_eq!(found, "timed out");
}

#[test]
fn the_password_is_not_sent_to_whoever_asks() {
    // The server switches to the plugin that wants the password, and gets a wish for its key instead: if that may be.
    let asks = |may: bool| {
        move |mut stream: TcpStream| {
            stream.write_all(&packet(0, GREETING)).expect("connected");
            let mut answer = [0; 4096];
            let _ = stream.read(&mut answer);
            let switch = packet(2, b"\xfesha256_password\0abcdefghijklmnopqrst");
            stream.write_all(&switch).expect("connected");
            let count = stream.read(&mut answer).expect("an answer");
            if !may {
                assert_eq!(count, 0, "not even a wish");
                return;
            }
            assert_eq!(&answer[..count], b"\x01\0\0\x03\x01");
            stream.write_all(&packet(4, b"\x01no key")).expect("connected");
            let count = stream.read(&mut answer).expect("the end");
            assert_eq!(count, 0, "nothing for a bad key");
        }
    };
    let may_ask = |options: &mut ConnectOptions| options.get_server_public_key = true;
    let found = refused_with(SslMode::Disabled, may_ask, asks(true));
    assert!(found.starts_with("public key of the server can't be read"), "{found}");
    let found = refused_by(SslMode::Disabled, asks(false));
    assert!(found.starts_with("authentication plugin sha256_password needs a secure connection"), "{found}");
    let unknown = |mut stream: TcpStream| {
        stream.write_all(&packet(0, GREETING)).expect("connected");
        let _ = stream.read(&mut [0; 4096]);
        stream.write_all(&packet(2, b"\xfemysql_clear_password\0\0")).expect("connected");
        let _ = stream.read_to_end(&mut Vec::new());
    };
    let found = refused_by(SslMode::Disabled, unknown);
    assert!(found.starts_with("authentication plugin mysql_clear_password is not one of"), "{found}");
}

/// The greeting without the offer of TLS, as somebody on the way leaves it.
fn stripped() -> Vec<u8> {
    const SSL: u8 = 0x08;
    let mut greeting = GREETING.to_vec();
    // The capabilities follow the version, the connection's number, half of the nonce and a NUL.
    let high = 1 + b"9.7.4\0".len() + 4 + 8 + 1 + 1;
    assert_ne!(greeting[high] & SSL, 0);
    greeting[high] &= !SSL;
    packet(0, &greeting)
}

/// Removes the offer of TLS, then asks for the password with this message. Returns everything that the client
/// sends, if anything.
fn strips_tls(asks: &'static [u8], heard: &mut Vec<u8>) -> impl FnOnce(TcpStream) + Send {
    move |mut stream: TcpStream| {
        stream.write_all(&stripped()).expect("connected");
        let mut answer = [0; 4096];
        let count = stream.read(&mut answer).expect("an answer");
        heard.extend_from_slice(&answer[..count]);
        if count > 0 {
            stream.write_all(&packet(2, asks)).expect("connected");
            stream.read_to_end(heard).expect("the end");
        }
    }
}

#[test]
fn tls_that_was_taken_out_on_the_way_costs_no_password() {
    const FULL: &[u8] = b"\x01\x04";
    const SWITCH: &[u8] = b"\xfesha256_password\0abcdefghijklmnopqrst\0";
    for asks in [FULL, SWITCH] {
        // If the server decides about TLS, the proof is sent, which is valid for this nonce alone, and
        // nothing more: neither the password nor a request for a key, which could be anybody's.
        let mut heard = Vec::new();
        let found = refused_by(SslMode::Preferred, strips_tls(asks, &mut heard));
        assert!(found.contains("needs a secure connection"), "{found}");
        let size = usize::from(heard[0]) + 256 * usize::from(heard[1]) + 4;
        assert_eq!(heard.len(), size, "more than the response: {}", heard.escape_ascii());
        assert!(!heard.windows(6).any(|part| part == b"secret"), "{}", heard.escape_ascii());
        // If TLS is required, not even the user's name is sent.
        for mode in [SslMode::Required, SslMode::VerifyCa, SslMode::VerifyIdentity] {
            let mut heard = Vec::new();
            let found = refused_by(mode, strips_tls(asks, &mut heard));
            assert_eq!(found, "TLS is required, and the server offers none", "{mode:?}");
            assert!(heard.is_empty(), "{mode:?}: {}", heard.escape_ascii());
        }
    }
}
