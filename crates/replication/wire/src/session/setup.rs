//! The statements between login and dump, in the order in which a 9.7 replica or mysqlbinlog sends them, and the meaning
//! of their answers.
//!
//! ```text
//! replica                                            mysqlbinlog
//! SELECT UNIX_TIMESTAMP()                            SELECT VERSION()
//! SELECT @@GLOBAL.SERVER_ID                          SET @master_binlog_checksum = 'NONE', …
//! SET @master_heartbeat_period = N, …                of MariaDB: SET @mariadb_slave_capability = 4
//! SET @master_binlog_checksum = @@global.binlog_checksum, …
//! SELECT @source_binlog_checksum
//! SELECT @@GLOBAL.GTID_MODE
//! SELECT @@GLOBAL.SERVER_UUID
//! SET @slave_uuid = 'U', @replica_uuid = 'U'
//! of MariaDB: SET @mariadb_slave_capability = 4
//! with semi-sync: SELECT @@global.rpl_semi_sync_source_enabled
//!                 SET @rpl_semi_sync_replica = 1
//! COM_REGISTER_SLAVE
//! ```
//!
//! If a source does not know a variable (error 1193), we do without it; for semi-sync we try once more with
//! the variable's name before 8.0.26.

use std::collections::VecDeque;
use std::time::Duration;

use binlogz_binlog::ChecksumAlgorithm;
use binlogz_binlog::gtid::ServerUuid;

use super::login::ServerGreeting;
use crate::command::Command;
use crate::error::{Error, Result, ServerError};
use crate::register_replica::RegisterReplica;
use crate::result_set::{ResultRow, ServerAnswer};

/// The capability that MariaDB's own clients have announced since 10.0: they know its GTIDs. To others it sends statements in place
/// of its own events.
const MARIADB_CAPABILITY: &str = "SET @mariadb_slave_capability = 4";
/// MariaDB's versions hold its name.
const MARIADB: &str = "MariaDB";

/// The kind of client that the source believes it is talking to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientProfile {
    /// mysqlbinlog: says little, and is not listed among the replicas.
    Mysqlbinlog,
    /// A 9.7 replica.
    Replica(ReplicaProfile),
}

/// How a replica introduces itself, and its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaProfile {
    /// The replica's own identity: a second connection with the same identity ends the first.
    pub server_uuid: ServerUuid,
    /// The time without an event after which the source sends a heartbeat; zero for none.
    pub heartbeat_period: Duration,
    /// Whether to acknowledge events if the source wants that.
    pub semi_sync: bool,
    /// The host at which the replica says it can be reached; empty unless configured (`report_host`).
    pub host: String,
    /// The port at which the replica says it can be reached (`report_port`).
    pub port: u16,
}

/// The source's account of itself before the dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceIdentity {
    /// The source's greeting.
    pub greeting: ServerGreeting,
    /// Whether the source is a MariaDB, by its greeting or its version.
    pub is_mariadb: bool,
    /// The source's server id; only replicas ask for it.
    pub server_id: Option<u32>,
    /// The source's identity; only replicas ask for it, known since 5.6.
    pub server_uuid: Option<ServerUuid>,
    /// The source's `gtid_mode`; only replicas ask for it, known since 5.6.
    pub gtid_mode: Option<String>,
    /// The source's clock, in seconds since 1970; only replicas ask for it.
    pub clock: Option<u64>,
    /// The checksum algorithm that we announced to it.
    pub announced_checksum: ChecksumAlgorithm,
    /// Whether the source will want acknowledgements: each event then has a prefix.
    pub semi_sync: bool,
}

/// The purpose of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The answer must be OK, or rows that we ignore.
    Nothing,
    Clock,
    /// MariaDB sends its own events unchanged only to clients that say they know them.
    Version,
    ServerId,
    /// SET of the checksum: sources older than 5.6 don't know the variable.
    AnnounceChecksum,
    AnnouncedChecksum,
    GtidMode,
    ServerUuid,
    /// Whether the source has semi-sync, and the name of the variable that requests it.
    SemiSync {
        since_8_0_26: bool,
    },
}

impl SourceIdentity {
    /// As known from the greeting alone.
    pub(super) fn of(greeting: ServerGreeting) -> Self {
        SourceIdentity {
            is_mariadb: greeting.server_version.contains(MARIADB),
            greeting,
            server_id: None,
            server_uuid: None,
            gtid_mode: None,
            clock: None,
            announced_checksum: ChecksumAlgorithm::NONE,
            semi_sync: false,
        }
    }
}

#[derive(Debug)]
enum Ask {
    Statement(String, Purpose),
    Register,
}

/// The statements still to be sent.
#[derive(Debug)]
pub(super) struct Setup {
    asks: VecDeque<Ask>,
    current: Purpose,
    server_id: u32,
    own_uuid: Option<ServerUuid>,
    host: String,
    port: u16,
}

impl Setup {
    pub(super) fn new(profile: &ClientProfile, server_id: u32) -> Self {
        let mut setup = Setup {
            asks: VecDeque::new(),
            current: Purpose::Nothing,
            server_id,
            own_uuid: None,
            host: String::new(),
            port: 0,
        };
        let asks = match profile {
            ClientProfile::Mysqlbinlog => mysqlbinlog_asks(),
            ClientProfile::Replica(replica) => {
                setup.own_uuid = Some(replica.server_uuid);
                setup.host = replica.host.clone();
                setup.port = replica.port;
                replica_asks(replica)
            }
        };
        setup.asks.extend(asks);
        setup
    }

    /// The next command and its purpose, in words; `None` if the dump may begin.
    pub(super) fn next(&mut self) -> Option<(OwnedCommand, String)> {
        Some(match self.asks.pop_front()? {
            Ask::Statement(sql, purpose) => {
                self.current = purpose;
                let doing = format!("asking {sql}");
                (OwnedCommand::Query(sql), doing)
            }
            Ask::Register => {
                self.current = Purpose::Nothing;
                let command = OwnedCommand::Register {
                    server_id: self.server_id,
                    host: self.host.clone(),
                    port: self.port,
                };
                (command, "registering as a replica".into())
            }
        })
    }

    /// Takes the answer to the last command.
    pub(super) fn answer(
        &mut self,
        answer: ServerAnswer,
        doing: &str,
        identity: &mut SourceIdentity,
    ) -> Result<()> {
        let rows = match answer {
            ServerAnswer::Ok => Vec::new(),
            ServerAnswer::Rows(rows) => rows,
            ServerAnswer::Refused(error) => return self.refused(error, doing),
        };
        let text = rows.first().and_then(first_text);
        let found = text.clone().unwrap_or_else(|| "NULL".into());
        let bad = |expected| Error::Protocol { doing: doing.into(), found: found.clone(), expected };
        match self.current {
            Purpose::Nothing | Purpose::AnnounceChecksum => {}
            Purpose::Clock => {
                identity.clock = text.and_then(|text| text.parse().ok());
                self.announce_to_mariadb(identity);
            }
            Purpose::Version => {
                identity.is_mariadb |= found.contains(MARIADB);
                self.announce_to_mariadb(identity);
            }
            Purpose::ServerId => {
                let id = text.and_then(|text| text.parse().ok()).ok_or_else(|| bad("a server id"))?;
                if id == self.server_id {
                    return Err(Error::Usage(format!("source and replica have the same server id {id}")));
                }
                identity.server_id = Some(id);
            }
            Purpose::AnnouncedChecksum => {
                identity.announced_checksum = match text.as_deref() {
                    None | Some("NONE") => ChecksumAlgorithm::NONE,
                    Some("CRC32") => ChecksumAlgorithm::CRC32,
                    Some(_) => return Err(bad("NONE or CRC32")),
                };
            }
            Purpose::GtidMode => identity.gtid_mode = text,
            Purpose::ServerUuid => {
                let uuid = text.and_then(|text| text.parse().ok()).ok_or_else(|| bad("a server uuid"))?;
                if Some(uuid) == self.own_uuid {
                    return Err(Error::Usage(format!("source and replica have the same server uuid {uuid}")));
                }
                identity.server_uuid = Some(uuid);
            }
            Purpose::SemiSync { since_8_0_26 } => {
                identity.semi_sync = true;
                let variable = if since_8_0_26 { "rpl_semi_sync_replica" } else { "rpl_semi_sync_slave" };
                self.asks.push_front(Ask::Statement(format!("SET @{variable} = 1"), Purpose::Nothing));
            }
        }
        Ok(())
    }

    fn announce_to_mariadb(&mut self, identity: &SourceIdentity) {
        if identity.is_mariadb {
            self.asks.push_front(Ask::Statement(MARIADB_CAPABILITY.into(), Purpose::Nothing));
        }
    }

    fn refused(&mut self, error: ServerError, doing: &str) -> Result<()> {
        let unknown = error.code == ServerError::UNKNOWN_SYSTEM_VARIABLE;
        match self.current {
            Purpose::GtidMode | Purpose::ServerUuid | Purpose::AnnounceChecksum if unknown => Ok(()),
            Purpose::SemiSync { since_8_0_26: false } if unknown => Ok(()),
            Purpose::SemiSync { since_8_0_26: true } if unknown => {
                let sql = "SELECT @@global.rpl_semi_sync_master_enabled".into();
                self.asks.push_front(Ask::Statement(sql, Purpose::SemiSync { since_8_0_26: false }));
                Ok(())
            }
            _ => Err(Error::Server { doing: doing.into(), error }),
        }
    }
}

/// A command that owns its text.
#[derive(Debug)]
pub(super) enum OwnedCommand {
    Query(String),
    Register { server_id: u32, host: String, port: u16 },
}

impl OwnedCommand {
    pub(super) fn borrow(&self) -> Command<'_> {
        match self {
            OwnedCommand::Query(sql) => Command::Query(sql.as_bytes()),
            OwnedCommand::Register { server_id, host, port } => Command::RegisterReplica(RegisterReplica {
                server_id: *server_id,
                host: host.as_bytes(),
                port: *port,
                ..RegisterReplica::default()
            }),
        }
    }
}

fn mysqlbinlog_asks() -> Vec<Ask> {
    vec![
        Ask::Statement("SELECT VERSION()".into(), Purpose::Version),
        Ask::Statement(
            "SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE'".into(),
            Purpose::Nothing,
        ),
    ]
}

fn replica_asks(replica: &ReplicaProfile) -> Vec<Ask> {
    let ask = |sql: &str, purpose| Ask::Statement(sql.to_owned(), purpose);
    let period = replica.heartbeat_period.as_nanos();
    let uuid = replica.server_uuid;
    let mut asks = vec![
        ask("SELECT UNIX_TIMESTAMP()", Purpose::Clock),
        ask("SELECT @@GLOBAL.SERVER_ID", Purpose::ServerId),
        ask(
            &format!("SET @master_heartbeat_period = {period}, @source_heartbeat_period = {period}"),
            Purpose::Nothing,
        ),
        ask(
            "SET @master_binlog_checksum = @@global.binlog_checksum, \
             @source_binlog_checksum = @@global.binlog_checksum",
            Purpose::AnnounceChecksum,
        ),
        ask("SELECT @source_binlog_checksum", Purpose::AnnouncedChecksum),
        ask("SELECT @@GLOBAL.GTID_MODE", Purpose::GtidMode),
        ask("SELECT @@GLOBAL.SERVER_UUID", Purpose::ServerUuid),
        ask(&format!("SET @slave_uuid = '{uuid}', @replica_uuid = '{uuid}'"), Purpose::Nothing),
    ];
    if replica.semi_sync {
        asks.push(ask(
            "SELECT @@global.rpl_semi_sync_source_enabled",
            Purpose::SemiSync { since_8_0_26: true },
        ));
    }
    asks.push(Ask::Register);
    asks
}

fn first_text(row: &ResultRow) -> Option<String> {
    row.first()?.as_deref().map(|text| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::Capabilities;

    const OWN_UUID: &str = "5a5a5a5a-e54d-11f1-848d-02fc00000001";

    /// Answers each statement with `answer`, until nothing is left to ask or something is refused.
    fn converse(answer: impl Fn(&str) -> ServerAnswer) -> Result<SourceIdentity> {
        let profile = ReplicaProfile {
            server_uuid: OWN_UUID.parse().unwrap(),
            heartbeat_period: Duration::ZERO,
            semi_sync: true,
            host: String::new(),
            port: 0,
        };
        let mut identity = identity("5.5.0");
        let mut setup = Setup::new(&ClientProfile::Replica(profile), 7);
        while let Some((_, doing)) = setup.next() {
            setup.answer(answer(&doing), &doing, &mut identity)?;
        }
        Ok(identity)
    }

    fn identity(server_version: &str) -> SourceIdentity {
        SourceIdentity::of(ServerGreeting {
            server_version: server_version.into(),
            connection_id: 1,
            capabilities: Capabilities::default(),
        })
    }

    /// What is asked of a server whose greeting and `VERSION()` are these.
    fn asked(profile: &ClientProfile, greeting: &str, version: &str) -> (Vec<String>, bool) {
        let mut identity = identity(greeting);
        let mut setup = Setup::new(profile, 7);
        let mut asked = Vec::new();
        while let Some((_, doing)) = setup.next() {
            let answer = if doing.contains("VERSION()") { row(version) } else { modern(&doing) };
            setup.answer(answer, &doing, &mut identity).unwrap();
            asked.push(doing);
        }
        (asked, identity.is_mariadb)
    }

    #[test]
    fn mariadb_is_told_that_its_events_are_known() {
        let replica = ClientProfile::Replica(ReplicaProfile {
            server_uuid: OWN_UUID.parse().unwrap(),
            heartbeat_period: Duration::ZERO,
            semi_sync: false,
            host: String::new(),
            port: 0,
        });
        let told = format!("asking {MARIADB_CAPABILITY}");
        for (profile, greeting, version, is_mariadb) in [
            (&ClientProfile::Mysqlbinlog, "5.5.5-10.11.6-MariaDB", "10.11.6-MariaDB", true),
            // A proxy may greet in its own name.
            (&ClientProfile::Mysqlbinlog, "8.0.33", "10.11.6-MariaDB", true),
            (&ClientProfile::Mysqlbinlog, "9.7.4", "9.7.4", false),
            (&replica, "11.4.5-MariaDB-log", "", true),
            (&replica, "9.7.4", "", false),
        ] {
            let (asked, known) = asked(profile, greeting, version);
            assert_eq!((asked.contains(&told), known), (is_mariadb, is_mariadb), "{greeting}: {asked:?}");
        }
    }

    fn row(text: &str) -> ServerAnswer {
        ServerAnswer::Rows(vec![vec![Some(text.into())]])
    }

    fn refused(code: u16) -> ServerAnswer {
        ServerAnswer::Refused(ServerError { code, sqlstate: None, message: "no".into() })
    }

    fn modern(doing: &str) -> ServerAnswer {
        match doing {
            "asking SELECT UNIX_TIMESTAMP()" => row("1700000000"),
            "asking SELECT @@GLOBAL.SERVER_ID" => row("33"),
            "asking SELECT @source_binlog_checksum" => row("CRC32"),
            "asking SELECT @@GLOBAL.GTID_MODE" => row("ON"),
            "asking SELECT @@GLOBAL.SERVER_UUID" => row("1410447f-e54d-11f1-848d-02fc00000001"),
            "asking SELECT @@global.rpl_semi_sync_source_enabled" => row("1"),
            _ => ServerAnswer::Ok,
        }
    }

    #[test]
    fn a_source_is_known_by_its_answers() {
        let identity = converse(modern).unwrap();
        assert_eq!((identity.server_id, identity.clock), (Some(33), Some(1_700_000_000)));
        assert_eq!(identity.gtid_mode.as_deref(), Some("ON"));
        assert_eq!(identity.announced_checksum, ChecksumAlgorithm::CRC32);
        assert!(identity.semi_sync && identity.server_uuid.is_some());
    }

    #[test]
    fn an_old_source_does_without_what_it_does_not_know() {
        let identity = converse(|doing| match doing {
            "asking SELECT @@GLOBAL.SERVER_ID" => row("33"),
            "asking SELECT @source_binlog_checksum" => ServerAnswer::Rows(vec![vec![None]]),
            "asking SELECT @@global.rpl_semi_sync_master_enabled" => row("0"),
            "asking SET @rpl_semi_sync_slave = 1" => ServerAnswer::Ok,
            "asking SET @rpl_semi_sync_replica = 1" => panic!("its name before 8.0.26"),
            _ if doing.contains("@@") => refused(ServerError::UNKNOWN_SYSTEM_VARIABLE),
            _ => ServerAnswer::Ok,
        })
        .unwrap();
        assert_eq!(identity.announced_checksum, ChecksumAlgorithm::NONE);
        assert!(identity.semi_sync && identity.server_uuid.is_none() && identity.gtid_mode.is_none());
    }

    #[test]
    fn a_source_that_is_oneself_or_refuses_ends_it() {
        let instead = |statement: &'static str, answer: ServerAnswer| {
            converse(|doing| if doing == statement { answer.clone() } else { modern(doing) })
                .unwrap_err()
                .to_string()
        };
        let error = instead("asking SELECT @@GLOBAL.SERVER_ID", row("7"));
        assert_eq!(error, "source and replica have the same server id 7");
        let error = instead("asking SELECT @@GLOBAL.SERVER_UUID", row(OWN_UUID));
        assert_eq!(error, format!("source and replica have the same server uuid {OWN_UUID}"));
        let error = instead("registering as a replica", refused(ServerError::ACCESS_DENIED));
        assert_eq!(error, "registering as a replica: server says 1045: no");
        let error = instead("asking SELECT @source_binlog_checksum", row("SHA3"));
        assert_eq!(
            error,
            "protocol broken while asking SELECT @source_binlog_checksum: found SHA3, expected NONE or CRC32"
        );
    }
}
