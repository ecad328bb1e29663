//! A client and a source in one process; and clients that break the rules.

use std::time::Duration;

use binlogz_binlog::put::PutFields;

use super::login::LOGIN_SIZE_MAX;
use super::*;
use crate::auth::{Credentials, scramble};
use crate::change_user::ChangeUser;
use crate::command::Command;
use crate::compressed::CompressionChoice;
use crate::dump_request::DumpRequest;
use crate::error::ServerError;
use crate::handshake_response::{HandshakeResponse, SslRequest};
use crate::response::{ErrPacket, OkPacket};
use crate::result_set::{ResultKind, ResultRow, ServerAnswer};
use crate::session::{ClientSession, ClientStep, LoginOptions, Timeouts, TlsPolicy};

fn client(password: &str, default_auth: Option<AuthPlugin>) -> ClientSession {
    let credentials = Credentials {
        user: "repl".into(),
        password: Password::new(password),
        server_public_key: None,
        get_server_public_key: false,
        seed: [7; 20],
    };
    let login = LoginOptions {
        credentials,
        default_auth,
        tls: TlsPolicy::Preferred,
        local_socket: false,
        compression: CompressionChoice::default(),
        attributes: Vec::new(),
        database: None,
        collation: None,
    };
    ClientSession::new(login, Timeouts::default(), Duration::ZERO)
}

fn source() -> ReplicaSession {
    let account = LoginAccount { user: "repl".into(), password: Password::new("secret") };
    ReplicaSession::new(ReplicaOptions {
        server_version: "9.7.4".into(),
        connection_id: 5,
        nonce: *b"abcdefghijklmnopqrst",
        tls: false,
        accounts: vec![account],
        native_password: true,
    })
}

/// Carries bytes both ways, one at a time, until one side reports something.
fn talk(client: &mut ClientSession, source: &mut ReplicaSession) -> (Result<ClientStep>, ReplicaStep) {
    let mut told = ReplicaStep::NeedInput;
    loop {
        let sent = client.pending().to_vec();
        client.sent(sent.len());
        for byte in sent {
            let step = source.poll(&mut [byte].as_slice()).unwrap();
            if let ReplicaStep::LoggedIn(_) = step {
                source.ok();
            }
            if step != ReplicaStep::NeedInput {
                told = step;
            }
        }
        if matches!(told, ReplicaStep::Request(_)) && source.pending().is_empty() {
            return (Ok(ClientStep::NeedInput), told);
        }
        let sent = source.pending().to_vec();
        source.sent(sent.len());
        for byte in &sent {
            match client.poll(&mut [*byte].as_slice(), Duration::ZERO) {
                Ok(ClientStep::NeedInput) => {}
                step => return (step, told),
            }
        }
        assert!(!sent.is_empty() || !client.pending().is_empty(), "both wait");
    }
}

#[test]
fn clients_of_both_plugins_log_in_and_ask() {
    for plugin in [None, Some(AuthPlugin::NativePassword), Some(AuthPlugin::CachingSha2Password)] {
        let mut client = client("secret", plugin);
        let mut source = source();
        let (step, told) = talk(&mut client, &mut source);
        assert!(matches!(step, Ok(ClientStep::LoggedIn)), "{plugin:?}: {step:?}");
        assert_eq!(told, ReplicaStep::LoggedIn("repl".into()));
        client.ask(&Command::Query(b"SELECT 1"), "asking", Duration::ZERO).unwrap();
        let (_, told) = talk(&mut client, &mut source);
        assert_eq!(told, ReplicaStep::Request(ReplicaRequest::Statement("SELECT 1".into())));
        let row: ResultRow = vec![Some(b"1".to_vec()), None];
        let columns = [
            ReplyColumn { name: "1", kind: ResultKind::INTEGER },
            ReplyColumn { name: "nothing", kind: ResultKind::TEXT },
        ];
        source.rows(&columns, std::slice::from_ref(&row));
        let (step, _) = talk(&mut client, &mut source);
        assert_eq!(step.unwrap(), ClientStep::Answer(ServerAnswer::Rows(vec![row])));
    }
}

// The digest was computed independently, with Python's hashlib.
#[test]
fn only_mariadbs_clients_are_shown_that_the_certificate_is_the_servers() {
    let proof = b"6FB0B1160A82264D576E921366694675D302414F89A0A39A0DB1641CD9AC75BA";
    let stored = scramble::stored_password(b"secret");
    for (name, stored, is_shown) in [
        ("libmariadb", Some(stored), true),
        ("MariaDB Connector/J", Some(stored), true),
        ("libmariadb", None, false),
        ("libmysql", Some(stored), false),
    ] {
        let mut source = source();
        source.sent(source.pending().len());
        source.stored_password = stored;
        source.attributes = vec![("_client_name".into(), name.into())];
        source.ok_over_tls(&[7; 32]);
        let packet = OkPacket::decode(&source.pending()[4..]).unwrap();
        let expected = [&[65, 1][..], proof].concat();
        assert_eq!(packet.info, if is_shown { expected.as_slice() } else { b"" }, "{name}");
    }
}

#[test]
fn native_passwords_can_be_switched_off() {
    for plugin in [None, Some(AuthPlugin::NativePassword), Some(AuthPlugin::CachingSha2Password)] {
        let mut client = client("secret", plugin);
        let mut source = source();
        source.options.native_password = false;
        let (step, told) = talk(&mut client, &mut source);
        assert!(matches!(step, Ok(ClientStep::LoggedIn)), "{plugin:?}: {step:?}");
        assert_eq!(told, ReplicaStep::LoggedIn("repl".into()));
    }
    // A client that answers the switch with the other plugin's proof is not let in.
    let mut source = source();
    source.options.native_password = false;
    let nonce = source.options.nonce;
    let proof = crate::auth::scramble::native_password(b"secret", &nonce);
    let response = HandshakeResponse {
        head: SslRequest {
            capabilities: CAPABILITIES,
            packet_size_max: 1 << 24,
            collation: COLLATION,
            filler: [0; 23],
        },
        user: b"repl",
        proof: &proof,
        database: None,
        plugin: Some(b"mysql_native_password"),
        attributes: Vec::new(),
        zstd_level: None,
    };
    let mut writer = PacketWriter::default();
    writer.set_sequence(1);
    writer.message(|out| response.encode(out));
    assert_eq!(source.poll(&mut writer.pending()).unwrap(), ReplicaStep::NeedInput);
    assert!(source.pending().windows(21).any(|part| part == b"caching_sha2_password"));
    let mut again = PacketWriter::default();
    again.set_sequence(3);
    again.message(|out| out.put(&proof));
    assert_eq!(source.poll(&mut again.pending()).unwrap(), ReplicaStep::Denied("repl".into()));
}

/// Answers the greeting with this response; returns the step and the answer's message.
fn respond(source: &mut ReplicaSession, message: &[u8]) -> (ReplicaStep, Vec<u8>) {
    source.sent(source.pending().len());
    let mut writer = PacketWriter::default();
    writer.set_sequence(1);
    writer.message(|out| out.put(message));
    let step = source.poll(&mut writer.pending()).unwrap();
    (step, source.pending().get(4..).unwrap_or_default().to_vec())
}

fn response_of(capabilities: Capabilities, proof: &[u8]) -> Vec<u8> {
    let response = HandshakeResponse {
        head: SslRequest { capabilities, packet_size_max: 1 << 24, collation: 45, filler: [0; 23] },
        user: b"repl",
        proof,
        database: None,
        plugin: None,
        attributes: Vec::new(),
        zstd_level: None,
    };
    let mut bytes = Vec::new();
    response.encode(&mut bytes);
    bytes
}

#[test]
fn a_client_that_names_no_plugin_is_asked_for_another_proof() {
    let capabilities =
        Capabilities::PROTOCOL_41 | Capabilities::PLUGIN_AUTH | Capabilities::SECURE_CONNECTION;
    let mut source = source();
    let proof = crate::auth::scramble::native_password(b"secret", &source.options.nonce);
    let mut response = response_of(capabilities, &proof);
    assert_eq!(response.pop(), Some(0), "the end of the plugin's name");
    let (step, answer) = respond(&mut source, &response);
    assert_eq!(step, ReplicaStep::NeedInput);
    assert!(answer.starts_with(b"\xfemysql_native_password\0"), "{answer:?}");
    let mut again = PacketWriter::default();
    again.set_sequence(3);
    again.message(|out| out.put(&proof));
    let step = source.poll(&mut again.pending()).unwrap();
    assert_eq!(step, ReplicaStep::LoggedIn("repl".into()));
}

#[test]
fn clients_without_plugins_log_in_by_the_method_of_4_1_or_are_told_that_they_are_too_old() {
    let by_4_1 = Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION;
    let new = source;
    let proof = crate::auth::scramble::native_password(b"secret", &new().options.nonce);
    let (step, _) = respond(&mut new(), &response_of(by_4_1, &proof));
    assert_eq!(step, ReplicaStep::LoggedIn("repl".into()));
    let (step, _) = respond(&mut new(), &response_of(by_4_1, &[1; 20]));
    assert_eq!(step, ReplicaStep::Denied("repl".into()));

    let mut without_native = new();
    without_native.options.native_password = false;
    let plugins = "authentication by plugins";
    let too_old: [(ReplicaSession, Vec<u8>, &str); 4] = [
        (without_native, response_of(by_4_1, &proof), plugins),
        (new(), response_of(Capabilities::PROTOCOL_41, &proof), plugins),
        (new(), response_of(by_4_1, b"password"), plugins),
        // 4.0: capabilities, largest packet, user, proof of 8 bytes.
        (new(), b"\x85\x24\0\0\0repl\0abcdefgh".to_vec(), "the protocol of 4.1"),
    ];
    for (mut source, response, lacks) in too_old {
        let (step, answer) = respond(&mut source, &response);
        assert_eq!(step, ReplicaStep::TooOld(lacks));
        let error = ServerError::from(ErrPacket::decode(&answer).unwrap());
        assert_eq!((error.code, error.sqlstate), (1251, Some(*b"08004")));
    }
}

#[test]
fn a_client_goes_over_to_tls_once() {
    let mut client = client("secret", None);
    let mut source = source();
    source = ReplicaSession::new(ReplicaOptions { tls: true, ..source.options });
    let greeting = source.pending().to_vec();
    source.sent(greeting.len());
    assert_eq!(client.poll(&mut greeting.as_slice(), Duration::ZERO).unwrap(), ClientStep::StartTls);
    let asked = [client.pending(), b"hello"].concat();
    client.sent(asked.len());
    let mut input = asked.as_slice();
    assert_eq!(source.poll(&mut input).unwrap(), ReplicaStep::StartTls);
    assert_eq!(input, b"hello", "what belongs to TLS is left");
    client.tls_started().unwrap();
    let (step, told) = talk(&mut client, &mut source);
    assert!(matches!(step, Ok(ClientStep::LoggedIn)), "{step:?}");
    assert_eq!(told, ReplicaStep::LoggedIn("repl".into()));
}

#[test]
fn a_login_refused_for_another_reason_tells_nothing_of_the_password() {
    let capabilities =
        Capabilities::PROTOCOL_41 | Capabilities::PLUGIN_AUTH | Capabilities::SECURE_CONNECTION;
    let error = ServerError { code: 1040, sqlstate: Some(*b"08004"), message: "later".into() };
    for plugin in [AuthPlugin::CachingSha2Password, AuthPlugin::NativePassword] {
        let answers = [true, false].map(|is_right| {
            let mut source = source();
            let nonce = source.options.nonce;
            let mut proof = match plugin {
                AuthPlugin::NativePassword => {
                    crate::auth::scramble::native_password(b"secret", &nonce).to_vec()
                }
                _ => crate::auth::scramble::caching_sha2_password(b"secret", &nonce).to_vec(),
            };
            if !is_right {
                proof[0] ^= 1;
            }
            let mut response = response_of(capabilities, &proof);
            assert_eq!(response.pop(), Some(0), "the end of the plugin's name");
            response.extend(plugin.name().as_bytes());
            response.push(0);
            let (step, _) = respond(&mut source, &response);
            let told = match is_right {
                true => ReplicaStep::LoggedIn("repl".into()),
                false => ReplicaStep::Denied("repl".into()),
            };
            assert_eq!(step, told, "{plugin:?}");
            source.refuse_login(&error);
            source.pending().to_vec()
        });
        assert_eq!(answers[0], answers[1], "{plugin:?}");
        let packet = ErrPacket::decode(answers[0].get(4..).unwrap_or_default()).unwrap();
        assert_eq!((packet.code, answers[0].get(3)), (1040, Some(&2)));
    }
}

#[test]
fn a_wrong_password_is_refused_and_that_is_the_end() {
    for plugin in [None, Some(AuthPlugin::NativePassword)] {
        for password in ["Secret", ""] {
            let mut client = client(password, plugin);
            let mut source = source();
            let (step, told) = talk(&mut client, &mut source);
            assert_eq!(told, ReplicaStep::Denied("repl".into()), "{plugin:?} {password:?}");
            let error = step.unwrap_err().to_string();
            assert!(error.contains("1045"), "{error}");
            assert!(source.poll(&mut b"\x01\0\0\x04\x01".as_slice()).is_err());
        }
    }
}

fn logged_in() -> ReplicaSession {
    let mut source = source();
    let (step, _) = talk(&mut client("secret", None), &mut source);
    assert!(matches!(step, Ok(ClientStep::LoggedIn)), "{step:?}");
    source
}

/// Gives a session a message in packets, 1 MiB at a time.
fn send(source: &mut ReplicaSession, command: &Command<'_>) -> ReplicaStep {
    let mut writer = PacketWriter::default();
    writer.message(|out| command.encode(out));
    let mut step = ReplicaStep::NeedInput;
    for mut piece in writer.pending().chunks(1 << 20) {
        assert_eq!(step, ReplicaStep::NeedInput);
        step = source.poll(&mut piece).unwrap();
        assert!(piece.is_empty());
    }
    step
}

#[test]
fn a_dump_may_name_a_set_of_many_megabytes_and_a_longer_command_is_answered() {
    let mut text = "1410447f-e54d-11f1-848d-02fc00000001".to_owned();
    // 16 bytes each: more than the 4 MiB at which connections were once cut, and more than fits in a
    // packet.
    (1..1_200_000).for_each(|n| text.push_str(&format!(":{}", 2 * n)));
    let request = DumpRequest::ByGtidSet {
        flags: crate::dump_request::DumpFlags(0),
        server_id: 7,
        name: Vec::new(),
        position: 4,
        gtid_set: text.parse().unwrap(),
        format: binlogz_binlog::gtid::GtidSetFormat::Untagged,
    };
    let mut source = logged_in();
    assert!(
        send(&mut source, &Command::Dump(request.clone()))
            == ReplicaStep::Request(ReplicaRequest::Dump(request))
    );
    assert!(source.pending().is_empty());
    assert_eq!(source.next_sequence(), 2, "the answer to two packets");

    let statement = vec![b' '; COMMAND_SIZE_MAX];
    assert_eq!(send(&mut source, &Command::Query(&statement)), ReplicaStep::NeedInput);
    let (header, message) = source.pending().split_at(4);
    assert_eq!(header.last(), Some(&5), "after packets 0 to 4");
    let error = ServerError::from(ErrPacket::decode(message).unwrap());
    assert_eq!(error.to_string(), "1153 (08S01): Got a packet bigger than 'max_allowed_packet' bytes");
    source.sent(source.pending().len());
    // The longest statement that is accepted, and one after it.
    let step = send(&mut source, &Command::Query(statement.get(1..).unwrap()));
    assert!(
        matches!(step, ReplicaStep::Request(ReplicaRequest::Statement(text)) if text.len() == COMMAND_SIZE_MAX - 1)
    );
    assert_eq!(send(&mut source, &Command::Ping), ReplicaStep::Request(ReplicaRequest::Ping));
}

#[test]
fn what_drivers_ask_beside_statements_is_understood() {
    let mut source = logged_in();
    for (command, request) in [
        (Command::UseDatabase(b"shop"), ReplicaRequest::UseDatabase("shop".into())),
        (Command::Statistics, ReplicaRequest::Statistics),
        (Command::Kill(7), ReplicaRequest::Kill(7)),
        (Command::Prepare(b"SELECT ?"), ReplicaRequest::Prepare("SELECT ?".into())),
    ] {
        assert_eq!(send(&mut source, &command), ReplicaStep::Request(request));
    }
    source.sent(source.pending().len());
    source.line("Uptime: 1");
    assert_eq!(source.pending(), b"\x09\0\0\x01Uptime: 1");
}

#[test]
fn a_command_that_is_coming_in_can_be_refused() {
    let mut source = logged_in();
    let mut writer = PacketWriter::default();
    writer.message(|out| Command::Query(&[b' '; 1000]).encode(out));
    let (mut front, mut back) = writer.pending().split_at(600);
    assert_eq!(source.poll(&mut front).unwrap(), ReplicaStep::NeedInput);
    assert_eq!(source.held(), 596);
    source.limit_commands(500);
    assert_eq!(source.poll(&mut back).unwrap(), ReplicaStep::NeedInput);
    assert_eq!(source.held(), 0);
    assert!(source.pending().windows(5).any(|part| part == b"08S01"));
    source.sent(source.pending().len());
    assert_eq!(send(&mut source, &Command::Ping), ReplicaStep::Request(ReplicaRequest::Ping));
}

#[test]
fn whoever_is_not_logged_in_can_send_little() {
    let mut source = source();
    let mut many: Vec<u8> = vec![0xff, 0xff, 0x0f, 1];
    many.resize(LOGIN_SIZE_MAX + 5, 0);
    let error = source.poll(&mut many.as_slice()).unwrap_err().to_string();
    assert_eq!(error, "protocol broken while logging in: found 65541 bytes, expected a shorter message");
    let mut garbage: &[u8] = b"\x05\0\0\x01GET /";
    assert!(self::source().poll(&mut garbage).is_err());
}

/// Sends a change of user; returns the step that follows and the answer's message.
fn change(source: &mut ReplicaSession, user: &[u8], proof: &[u8], plugin: &[u8]) -> (ReplicaStep, Vec<u8>) {
    let change = ChangeUser {
        user,
        proof,
        database: b"shop",
        collation: Some(45),
        plugin,
        attributes: Some(vec![(b"_client_name", b"libmysql")]),
    };
    source.sent(source.pending().len());
    let mut writer = PacketWriter::default();
    writer.message(|out| change.encode(out));
    let mut step = ReplicaStep::NeedInput;
    // A byte at a time: half of it is nothing.
    for byte in writer.pending() {
        assert_eq!(step, ReplicaStep::NeedInput);
        step = source.poll(&mut [*byte].as_slice()).unwrap();
    }
    let ReplicaStep::Request(ReplicaRequest::ChangeUser(change)) = step else { panic!("{step:?}") };
    let accounts = ["repl", "other"].map(|user| LoginAccount {
        user: user.into(),
        password: Password::new(if user == "repl" { "secret" } else { "others" }),
    });
    let step = source.change_user(change, accounts.into());
    (step, source.pending().get(4..).unwrap_or_default().to_vec())
}

/// Answers a switch of the plugin.
fn prove(source: &mut ReplicaSession, proof: &[u8]) -> ReplicaStep {
    source.sent(source.pending().len());
    let mut writer = PacketWriter::default();
    writer.set_sequence(2);
    writer.message(|out| out.put(proof));
    source.poll(&mut writer.pending()).unwrap()
}

#[test]
fn a_client_becomes_another_account_by_its_password_alone() {
    let nonce = *b"abcdefghijklmnopqrst";
    let native = scramble::native_password(b"others", &nonce);
    let sha2 = scramble::caching_sha2_password(b"others", &nonce);
    // As libmysqlclient: an empty proof, then the one that it is asked for.
    for (plugin, proof) in
        [(b"mysql_native_password".as_slice(), native.to_vec()), (b"caching_sha2_password", sha2.to_vec())]
    {
        let mut source = logged_in();
        let (step, answer) = change(&mut source, b"other", b"", plugin);
        assert_eq!(step, ReplicaStep::NeedInput);
        assert!(answer.starts_with(&[b"\xfe", plugin, b"\0"].concat()), "{answer:?}");
        assert_eq!(prove(&mut source, &proof), ReplicaStep::LoggedIn("other".into()));
        source.ok();
        assert_eq!((source.database(), source.attributes().len()), (Some("shop"), 1));
        source.sent(source.pending().len());
        assert_eq!(send(&mut source, &Command::Ping), ReplicaStep::Request(ReplicaRequest::Ping));
    }
    // As mysql2: a proof made with the nonce of the greeting.
    let mut source = logged_in();
    let (step, _) = change(&mut source, b"other", &native, b"mysql_native_password");
    assert_eq!(step, ReplicaStep::LoggedIn("other".into()));
    // And back again.
    let native = scramble::native_password(b"secret", &nonce);
    let (step, _) = change(&mut source, b"repl", &native, b"mysql_native_password");
    assert_eq!(step, ReplicaStep::LoggedIn("repl".into()));
}

#[test]
fn who_changes_the_user_without_its_password_is_nobody() {
    let nonce = *b"abcdefghijklmnopqrst";
    let native = b"mysql_native_password";
    let own = scramble::native_password(b"secret", &nonce);
    for (user, proof) in
        [(b"other".as_slice(), own.as_slice()), (b"nobody", &own), (b"", &own), (b"repl", &[0; 20])]
    {
        let mut source = logged_in();
        let (step, answer) = change(&mut source, user, proof, native);
        assert_eq!(step, ReplicaStep::Denied(String::from_utf8_lossy(user).into_owned()));
        let error = ServerError::from(ErrPacket::decode(&answer).unwrap());
        assert_eq!((error.code, error.sqlstate), (1873, Some(*b"28000")));
        source.sent(source.pending().len());
        let mut again = PacketWriter::default();
        again.message(|out| Command::Query(b"SELECT 1").encode(out));
        assert!(source.poll(&mut again.pending()).is_err(), "it is logged in no more");
    }
    // A command instead of a proof is a wrong proof.
    let mut source = logged_in();
    assert_eq!(change(&mut source, b"other", b"", native).0, ReplicaStep::NeedInput);
    assert_eq!(prove(&mut source, b"\x03SELECT 1"), ReplicaStep::Denied("other".into()));
    // Without mysql_native_password, its proof is not looked at.
    let mut source = logged_in();
    source.options.native_password = false;
    let (step, answer) = change(&mut source, b"repl", &own, native);
    assert_eq!(step, ReplicaStep::NeedInput);
    assert!(answer.starts_with(b"\xfecaching_sha2_password\0"));
    // What is no change of user is a command that nobody knows.
    let mut source = logged_in();
    for message in [b"\x11repl".to_vec(), [b"\x11".to_vec(), vec![b'a'; 1 << 20]].concat()] {
        source.sent(source.pending().len());
        let mut writer = PacketWriter::default();
        writer.message(|out| out.put(&message));
        assert_eq!(
            source.poll(&mut writer.pending()).unwrap(),
            ReplicaStep::Request(ReplicaRequest::Other(0x11))
        );
    }
}

#[test]
fn a_login_of_connector_j_5_1_49_is_understood() {
    let recorded = include_bytes!("../../../tests/data/handshake-5.1.49.bin").get(4..).unwrap();
    let (step, _) = respond(&mut source(), recorded);
    // The password was another, for another nonce.
    assert_eq!(step, ReplicaStep::Denied("cdc".into()));
    // With bytes after it, a request for TLS is one still.
    let mut source = ReplicaSession::new(ReplicaOptions { tls: true, ..source().options });
    let mut request = response_of(Capabilities::PROTOCOL_41 | Capabilities::SSL, b"");
    request.truncate(32);
    request.extend_from_slice(&[0; 4]);
    assert_eq!(respond(&mut source, &request).0, ReplicaStep::StartTls);
}
