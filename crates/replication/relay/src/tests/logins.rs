//! Clients over real sockets, without a server: they log in, become another account, and come in crowds.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use binlogz_relay_log::{BringBack, ClosedLogs, Form, StopAt};
use binlogz_testkit::corpus;
use binlogz_wire::auth::{AuthSwitch, Password, scramble};
use binlogz_wire::capabilities::Capabilities;
use binlogz_wire::change_user::ChangeUser;
use binlogz_wire::greeting::Greeting;
use binlogz_wire::handshake_response::{HandshakeResponse, SslRequest};
use binlogz_wire::packet::{self, MessageReader, PacketReader};
use binlogz_wire::response::{EofPacket, ErrPacket};

use crate::options::{ListenTls, ServeOptions, ServedLogs};
use crate::relay::{Relay, RunningRelay};
use crate::serve::connections::accounts::AccountOptions;
use crate::serve::connections::admission::Limits;
use crate::serve::connections::client_form::FormPolicy;

const NATIVE: &[u8] = b"mysql_native_password";

/// A relay over a closed log, with an account that may administer and has a form, and one with neither that connects once.
fn serve(limits: Limits) -> (RunningRelay, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let logs = ClosedLogs::of_files(&[corpus::path("binlog.000005")], None).unwrap();
    let ended = logs.ended(&StopAt::End, folder.path()).unwrap();
    let account = |user: &str| AccountOptions::new(user.into(), Password::new(format!("{user}'s")));
    let accounts = vec![
        AccountOptions {
            admin: true,
            form: Some(FormPolicy::Always(Form::Uncompressed)),
            ..account("admin")
        },
        AccountOptions { connections_max: 1, ..account("reader") },
    ];
    let running = Relay::serve(ServeOptions {
        served: ServedLogs {
            logs: ended.shared(),
            bring_back: BringBack::default(),
            only_replica: None,
            over_incidents: false,
        },
        directory: folder.path().to_owned(),
        accounts,
        limits,
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        listen_tls: ListenTls::Off,
        require_tls: false,
        native_password: true,
        form: FormPolicy::Always(Form::Received),
    });
    (running.unwrap(), folder)
}

/// A client, message by message.
struct RawClient {
    stream: TcpStream,
    packets: PacketReader,
    messages: MessageReader,
    input: Vec<u8>,
    nonce: [u8; 20],
}

impl RawClient {
    /// Connects and takes the greeting; the error is the relay's.
    fn greeted(at: SocketAddr) -> Result<RawClient, String> {
        let stream = TcpStream::connect(at).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let packets = PacketReader::default();
        let messages = MessageReader::default();
        let mut client = RawClient { stream, packets, messages, input: Vec::new(), nonce: [0; 20] };
        let message = client.message()?;
        client.nonce = Greeting::decode(&message).map_err(|error| format!("{error}: {message:?}"))?.nonce;
        Ok(client)
    }

    fn message(&mut self) -> Result<Vec<u8>, String> {
        loop {
            let mut rest = self.input.as_slice();
            let found = self.messages.next(&mut self.packets, &mut rest).unwrap().map(<[u8]>::to_vec);
            let taken = self.input.len() - rest.len();
            self.input.drain(..taken);
            if let Some(message) = found {
                return Ok(message);
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err("the connection ended".into()),
                Ok(count) => self.input.extend_from_slice(&bytes[..count]),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn send(&mut self, sequence: u8, message: &[u8]) -> Result<(), String> {
        let bytes = packet::message_from(sequence, |out| out.extend_from_slice(message));
        self.packets.expect_sequence(sequence.wrapping_add(1));
        self.stream.write_all(&bytes).map_err(|error| error.to_string())
    }

    /// Logs in, with more bytes at the end of its response; the error is the relay's.
    fn log_in(at: SocketAddr, user: &str, password: &str, more: &[u8]) -> Result<RawClient, String> {
        let mut client = RawClient::greeted(at)?;
        let proof = scramble::native_password(password.as_bytes(), &client.nonce);
        let capabilities = Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::PLUGIN_AUTH
            | Capabilities::PLUGIN_AUTH_LENENC_DATA
            | Capabilities::CONNECT_ATTRS;
        let response = HandshakeResponse {
            head: SslRequest { capabilities, packet_size_max: 1 << 24, collation: 45, filler: [0; 23] },
            user: user.as_bytes(),
            proof: &proof,
            database: None,
            plugin: Some(NATIVE),
            attributes: vec![(b"_client_name", b"raw")],
            zstd_level: None,
        };
        let mut message = Vec::new();
        response.encode(&mut message);
        message.extend_from_slice(more);
        client.send(1, &message)?;
        client.done().map(|()| client)
    }

    /// Takes OK.
    fn done(&mut self) -> Result<(), String> {
        let message = self.message()?;
        match ErrPacket::decode(&message) {
            Ok(error) => Err(format!("{} {}", error.code, String::from_utf8_lossy(error.message))),
            Err(_) if message.first() == Some(&0) => Ok(()),
            Err(_) => Err(format!("{message:?}")),
        }
    }

    fn change(&mut self, user: &str, proof: &[u8]) -> Result<(), String> {
        let change = ChangeUser {
            user: user.as_bytes(),
            proof,
            database: b"",
            collation: Some(45),
            plugin: NATIVE,
            attributes: Some(vec![(b"_client_name", b"raw")]),
        };
        let mut message = Vec::new();
        change.encode(&mut message);
        self.send(0, &message)
    }

    /// Becomes another account, as libmysqlclient does.
    fn become_another(&mut self, user: &str, password: &str) -> Result<(), String> {
        self.change(user, b"")?;
        let message = self.message()?;
        let nonce = AuthSwitch::decode(&message).unwrap().nonce().unwrap();
        self.send(2, &scramble::native_password(password.as_bytes(), &nonce))?;
        self.done()
    }

    /// The cells of an answer's rows, or the error.
    fn ask(&mut self, statement: &str) -> Result<String, String> {
        self.send(0, &[b"\x03", statement.as_bytes()].concat())?;
        self.rows()
    }

    fn rows(&mut self) -> Result<String, String> {
        let mut ends = 0;
        let mut text = String::new();
        loop {
            let message = self.message()?;
            match message.first() {
                Some(0xff) => {
                    let error = ErrPacket::decode(&message).unwrap();
                    return Err(format!("{} {}", error.code, String::from_utf8_lossy(error.message)));
                }
                Some(0) if text.is_empty() && ends == 0 => return Ok("OK".into()),
                Some(_) if EofPacket::is(&message) => ends += 1,
                Some(_) if ends == 1 => text += &String::from_utf8_lossy(&message),
                Some(_) | None => {}
            }
            if ends == 2 {
                return Ok(text);
            }
        }
    }
}

const STATUS: &str = "SHOW BINARY LOG STATUS";
const ADMIN: &str = "PURGE BINARY LOGS TO 'binlog.000005'";

#[test]
fn who_becomes_another_account_has_its_rights_its_form_and_its_place_alone() {
    let (running, _folder) = serve(Limits::default());
    let at = running.address();
    let mut client = RawClient::log_in(at, "admin", "admin's", b"").unwrap();
    assert!(client.ask(STATUS).unwrap().contains("binlog-u.0"));
    client.ask("SET @mine = 5").unwrap();
    assert!(!client.ask(ADMIN).is_err_and(|error| error.starts_with("1227")), "it may administer");

    client.become_another("reader", "reader's").unwrap();
    let status = client.ask(STATUS).unwrap();
    assert!(status.contains("binlog.000005") && !status.contains("binlog-u"), "{status}");
    assert!(client.ask(ADMIN).unwrap_err().starts_with("1227"));
    assert!(!client.ask("SELECT @mine").unwrap().contains('5'), "what the other had set is gone");
    let second = RawClient::log_in(at, "reader", "reader's", b"").map(drop).unwrap_err();
    assert!(second.starts_with("1226"), "the account has one connection: {second}");

    // The same account anew, and back: its place is free.
    client.become_another("reader", "reader's").unwrap();
    client.become_another("admin", "admin's").unwrap();
    assert!(!client.ask(ADMIN).is_err_and(|error| error.starts_with("1227")));
    let mut second = RawClient::log_in(at, "reader", "reader's", b"").unwrap();
    // A place that is taken is not given: the connection ends.
    let refused = client.become_another("reader", "reader's").unwrap_err();
    assert!(refused.starts_with("1226"), "{refused}");
    assert!(client.ask("SELECT 1").is_err());
    assert!(second.ask("SELECT 1").is_ok());
}

#[test]
fn changes_of_the_user_without_end_half_or_with_a_wrong_password_harm_nobody() {
    let (running, _folder) = serve(Limits { logging_in_max: 4, ..Limits::default() });
    let at = running.address();
    for (user, proof) in [("reader", b"01234567890123456789".as_slice()), ("nobody", b"01234567890123456789")]
    {
        let mut client = RawClient::log_in(at, "admin", "admin's", b"").unwrap();
        client.change(user, proof).unwrap();
        let refused = client.done().unwrap_err();
        assert!(refused.starts_with("1873 Access denied trying to change to user"), "{refused}");
        assert!(client.ask(ADMIN).is_err(), "nobody asks there any more");
    }
    // In the middle of a change nobody is logged in: a statement is a wrong proof.
    let mut client = RawClient::log_in(at, "admin", "admin's", b"").unwrap();
    client.change("admin", b"").unwrap();
    client.message().unwrap();
    client.send(2, &[b"\x03", ADMIN.as_bytes()].concat()).unwrap();
    assert!(client.done().unwrap_err().starts_with("1873"));
    // Half messages, left open: they hold no place of those that log in.
    let half: Vec<_> = (0..40)
        .map(|_| {
            let mut client = RawClient::log_in(at, "admin", "admin's", b"").unwrap();
            client.stream.write_all(b"\x20\0\0\0\x11adm").unwrap();
            client
        })
        .collect();
    let mut client = RawClient::log_in(at, "admin", "admin's", b"").unwrap();
    for _ in 0..2000 {
        client.become_another("admin", "admin's").unwrap();
    }
    assert!(client.ask("SELECT 1").is_ok());
    drop(half);
    for message in [b"\x11".as_slice(), b"\x11admin", &[0x11; 70_000]] {
        client.send(0, message).unwrap();
        assert!(client.done().unwrap_err().starts_with("1047"), "{}", message.len());
    }
    assert!(client.ask("SELECT 1").is_ok());
}

#[test]
fn what_follows_a_login_and_old_commands_are_answered_as_a_server_does() {
    let (running, _folder) = serve(Limits::default());
    let mut client = RawClient::log_in(running.address(), "admin", "admin's", &[0; 27]).unwrap();
    // COM_SET_OPTION: on, off, nothing that there is.
    for (message, code) in [
        (b"\x1b\0\0".as_slice(), None),
        (b"\x1b\x01\0", None),
        (b"\x1b\x02\0", Some("1047")),
        (b"\x1b", Some("1047")),
    ] {
        client.send(0, message).unwrap();
        let answer = client.message().unwrap();
        match code {
            None => assert!(EofPacket::is(&answer), "{answer:?}"),
            Some(code) => assert_eq!(ErrPacket::decode(&answer).unwrap().code.to_string(), code),
        }
    }
    // COM_STMT_CLOSE and COM_STMT_SEND_LONG_DATA have no answer; what follows has its own.
    client.send(0, b"\x19\x01\0\0\0").unwrap();
    client.send(0, b"\x18\x01\0\0\0\0\0x").unwrap();
    client.send(0, b"\x0e\0").unwrap();
    client.done().unwrap();
    client.send(0, b"\x17\x01\0\0\0\0\x01\0\0\0").unwrap();
    assert!(client.done().unwrap_err().starts_with("1243"));
    // COM_PROCESS_INFO: this connection.
    client.send(0, b"\x0a").unwrap();
    let rows = client.rows().unwrap();
    assert!(rows.contains("admin") && rows.contains("Processlist"), "{rows}");
    // COM_RESET_CONNECTION.
    client.ask("SET @mine = 5").unwrap();
    client.send(0, b"\x1f").unwrap();
    client.done().unwrap();
    assert!(!client.ask("SELECT @mine").unwrap().contains('5'));
    client.send(0, b"\x0d").unwrap();
    assert!(client.done().unwrap_err().starts_with("1227"));
}

/// Connections that come at once, and logins of each; more by `BINLOGZ_LOGINS`.
const AT_ONCE: usize = 200;

#[test]
fn of_thousands_of_logins_beside_a_busy_machine_none_is_lost() {
    let logins = binlogz_testkit::setting("BINLOGZ_LOGINS", 2000_usize);
    // Far fewer slots than come at once, as a machine with few descriptors has them.
    let (running, _folder) = serve(Limits { logging_in_max: 16, connections_max: 1000, per_address_max: 0 });
    let at = running.address();
    let is_over = AtomicBool::new(false);
    let left = AtomicUsize::new(logins);
    let lost: Vec<String> = thread::scope(|scope| {
        // As many as there are cores, and more.
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let clients: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    let mut lost = Vec::new();
                    while left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                        .is_ok()
                    {
                        let logged_in = RawClient::log_in(at, "admin", "admin's", b"");
                        let asked = logged_in.and_then(|mut client| client.ask("SELECT 1"));
                        lost.extend(asked.err());
                    }
                    lost
                })
            })
            .collect();
        let lost = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        is_over.store(true, Ordering::Relaxed);
        lost
    });
    assert_eq!(lost, Vec::<String>::new());
}
