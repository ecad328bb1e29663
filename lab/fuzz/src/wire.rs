//! Targets of the client/server protocol: the messages that any client may send to a relay before and after it is logged
//! in.

use binlogz_wire::auth::Password;
use binlogz_wire::command::Command;
use binlogz_wire::dump_request::DumpRequest;
use binlogz_wire::handshake_response::{HandshakeResponse, SslRequest};
use binlogz_wire::session::{LoginAccount, ReplicaOptions, ReplicaSession, ReplicaStep};
use binlogz_wire::statement::Statement;

/// A client's bytes on a connection, from its first on: the first byte here says in pieces of which size it
/// comes. Nobody is let in who does not know the password.
pub fn packet(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let mut session = ReplicaSession::new(ReplicaOptions {
        server_version: "9.7.4".into(),
        connection_id: 1,
        nonce: *b"abcdefghijklmnopqrst",
        tls: size % 2 == 0,
        accounts: vec![LoginAccount { user: "repl".into(), password: Password::new("not in any seed") }],
        native_password: true,
    });
    for mut piece in bytes.chunks(usize::from(*size).max(1)) {
        loop {
            let pending = session.pending().len();
            session.sent(pending);
            match session.poll(&mut piece) {
                Ok(ReplicaStep::NeedInput) => break,
                Ok(ReplicaStep::LoggedIn(user)) => panic!("{user} was let in"),
                Ok(ReplicaStep::Request(request)) => panic!("{request:?} of somebody who is not logged in"),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}

/// A response to the greeting: what decodes encodes into something that decodes to the same.
pub fn handshake(bytes: &[u8]) {
    if let Ok(response) = HandshakeResponse::decode(bytes) {
        let mut encoded = Vec::new();
        response.encode(&mut encoded);
        let again = HandshakeResponse::decode(&encoded).expect("it was just encoded");
        assert_eq!(again.user, response.user);
        assert_eq!(again.proof, response.proof);
    }
    if let Ok(request) = SslRequest::decode(bytes) {
        let mut encoded = Vec::new();
        request.encode(&mut encoded);
        assert_eq!(encoded, bytes);
    }
}

/// A statement: none is too odd to be read or refused; a pattern fits or doesn't.
pub fn statement(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(Statement::ShowVariables(shown)) = Statement::parse(&text) {
        let _ = shown.includes("binlog_checksum");
    }
    let _ = Statement::parse(&format!("SHOW VARIABLES LIKE '{text}'"));
}

/// A command, and a request for a dump: what decodes encodes into something that decodes to the same.
pub fn dump_request(bytes: &[u8]) {
    let _ = Command::decode(bytes);
    let Ok(request) = DumpRequest::decode(bytes) else { return };
    let mut encoded = Vec::new();
    request.encode(&mut encoded);
    assert_eq!(DumpRequest::decode(&encoded).expect("it was just encoded"), request);
}

/// Inputs to begin with.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let response = |user: &[u8], plugin: &[u8], proof: &[u8]| {
        // PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, LENENC_DATA; 1 GiB; utf8mb4; filler.
        let head =
            [&0x0028_8201_u32.to_le_bytes()[..], &(1_u32 << 30).to_le_bytes(), &[45], &[0; 23]].concat();
        [&head, user, &[0, proof.len() as u8], proof, plugin, &[0]].concat()
    };
    let framed = |message: &[u8], sequence: u8| {
        let [l0, l1, l2, ..] = (message.len() as u32).to_le_bytes();
        [&[l0, l1, l2, sequence], message].concat()
    };
    let responses = [
        response(b"repl", b"caching_sha2_password", &[7; 32]),
        response(b"repl", b"mysql_native_password", &[7; 20]),
        response(b"repl", b"sha256_password", b"password"),
    ];
    match target {
        "packet" => {
            let ssl = framed(&response(b"", b"", b"")[..32], 1);
            let mut seeds: Vec<_> =
                responses.iter().map(|message| [&[255], &framed(message, 1)[..]].concat()).collect();
            seeds.push([&[1], &ssl[..], &framed(&responses[0], 2)].concat());
            seeds.push(
                [&[7], &framed(&responses[2], 1)[..], &framed(&[9; 32], 3), &framed(b"\x03SELECT 1", 0)]
                    .concat(),
            );
            seeds
        }
        "handshake" => responses.into(),
        "statement" => [
            "SELECT @@GLOBAL.SERVER_ID AS id, VERSION() LIMIT 1",
            "SET @master_heartbeat_period = 30000000000, @slave_uuid= 'it''s'",
            "SHOW VARIABLES LIKE 'binlog\\_%'",
            "/* x */ PURGE BINARY LOGS BEFORE '2026-11-22 01:02:03'; -- y",
            "START REPLICA IO_THREAD FOR CHANNEL ''",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
        ]
        .map(|text| text.as_bytes().to_vec())
        .into(),
        "dump_request" => {
            let by_position = [&[0x12, 4, 0, 0, 0, 2, 0, 7, 0, 0, 0][..], b"binlog.000001"].concat();
            let mut set = Vec::new();
            let text =
                "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7:9,3e11fa47-71ca-11e1-9e33-c80aa9429562:nightly:1-3";
            let parsed: binlogz_binlog::gtid::GtidSet = text.parse().expect("a set");
            parsed.encode(binlogz_binlog::gtid::GtidSetFormat::Tagged, &mut set);
            let size = (set.len() as u32).to_le_bytes();
            let head = [0x1e, 4, 0, 7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
            vec![by_position, [&head[..], &size, &set].concat()]
        }
        _ => Vec::new(),
    }
}
