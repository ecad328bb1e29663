//! The recorded conversations: accounts and options, and the format of the files.

use std::time::Duration;

use binlogz_wire::auth::{Credentials, Password};
use binlogz_wire::compressed::CompressionChoice;
use binlogz_wire::session::{
    ClientProfile, DumpStart, LoginOptions, ReceiveOptions, ReplicaProfile, Timeouts, TlsPolicy,
};

/// A recorded conversation.
pub(crate) struct Recorded {
    /// The file in `tests/sessions`.
    pub(crate) name: &'static str,
    /// The account, which is also its password.
    pub(crate) user: &'static str,
    /// Whether to use a wrong password.
    pub(crate) wrong_password: bool,
    /// Whether the server had to forget its cached passwords first.
    #[allow(dead_code)] // the recorder's
    pub(crate) forgets_passwords: bool,
    /// Whether the server is MariaDB.
    pub(crate) mariadb: bool,
    /// Whether the client speaks as a replica, by GTID; otherwise it speaks as mysqlbinlog, by position.
    pub(crate) replica: bool,
}

const SHA2: Recorded = Recorded {
    name: "caching_sha2_full",
    user: "sha2",
    wrong_password: false,
    forgets_passwords: true,
    mariadb: false,
    replica: false,
};

/// All conversations, in the order in which they were recorded.
pub(crate) const SESSIONS: &[Recorded] = &[
    SHA2,
    Recorded { name: "caching_sha2_cached_replica", forgets_passwords: false, replica: true, ..SHA2 },
    Recorded { name: "sha256_replica", user: "sha256", replica: true, ..SHA2 },
    Recorded { name: "wrong_password", wrong_password: true, ..SHA2 },
    Recorded { name: "mariadb_native", user: "native", forgets_passwords: false, mariadb: true, ..SHA2 },
];

/// The client's options in a conversation.
pub(crate) fn options(session: &Recorded) -> ReceiveOptions {
    let password = if session.wrong_password { "wrong" } else { session.user };
    let profile = match session.replica {
        false => ClientProfile::Mysqlbinlog,
        true => ClientProfile::Replica(ReplicaProfile {
            server_uuid: "5a5a5a5a-e54d-11f1-848d-02fc00000001".parse().expect("a uuid"),
            heartbeat_period: Duration::from_secs(30),
            semi_sync: true,
            host: "replica-1".into(),
            port: 3307,
        }),
    };
    let start = match session.replica {
        false => DumpStart::Position { name: "binlog.000001".into(), position: 4 },
        true => DumpStart::GtidSet { gtid_set: Default::default(), name: String::new(), position: 4 },
    };
    ReceiveOptions {
        login: LoginOptions {
            credentials: Credentials {
                user: session.user.into(),
                password: Password::new(password),
                server_public_key: None,
                get_server_public_key: true,
                seed: [7; 20],
            },
            default_auth: None,
            tls: TlsPolicy::Disabled,
            local_socket: false,
            compression: CompressionChoice::default(),
            attributes: vec![("_client_name".into(), "binlogz".into())],
            database: None,
            collation: None,
        },
        profile,
        server_id: 4711,
        start,
        non_blocking: true,
        verify_checksums: true,
        timeouts: Timeouts::default(),
    }
}

/// A line of a file.
#[allow(dead_code)] // the recorder's
pub(crate) fn turn(who: char, bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{who} {hex}\n")
}
