//! The type byte of an event header: every type of MySQL 5.0 to 9.7, and any unknown one.

use std::fmt;

/// The type of an event's body. A newtype, so that unknown types survive as frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventType(pub u8);

macro_rules! event_types {
    ($($(#[$doc:meta])* $constant:ident = $code:literal, $name:literal;)*) => {
        impl EventType {
            $($(#[$doc])* pub const $constant: Self = EventType($code);)*

            /// The type's name in the manual, without underscores; `None` for unknown types.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

event_types! {
    /// Never written.
    UNKNOWN = 0, "Unknown";
    /// The first event before format 4; dead.
    START_V3 = 1, "StartV3";
    /// A statement as text.
    QUERY = 2, "Query";
    /// The server shut down.
    STOP = 3, "Stop";
    /// The name of the next file.
    ROTATE = 4, "Rotate";
    /// `LAST_INSERT_ID` or `INSERT_ID` of the next statement.
    INTVAR = 5, "Intvar";
    /// `LOAD DATA` of 3.23; dead.
    LOAD = 6, "Load";
    /// Dead.
    SLAVE = 7, "Slave";
    /// `LOAD DATA` of 4.0; dead.
    CREATE_FILE = 8, "CreateFile";
    /// A block of a file loaded by statement.
    APPEND_BLOCK = 9, "AppendBlock";
    /// `LOAD DATA` of 4.0; dead.
    EXEC_LOAD = 10, "ExecLoad";
    /// The file loaded by statement is not needed.
    DELETE_FILE = 11, "DeleteFile";
    /// `LOAD DATA` of 4.0; dead.
    NEW_LOAD = 12, "NewLoad";
    /// Seeds of `RAND()` for the next statement.
    RAND = 13, "Rand";
    /// A user variable of the next statement.
    USER_VAR = 14, "UserVar";
    /// The first event of each file: how to read the others.
    FORMAT_DESCRIPTION = 15, "FormatDescription";
    /// Commit of a transactional engine.
    XID = 16, "Xid";
    /// The first block of a file loaded by statement.
    BEGIN_LOAD_QUERY = 17, "BeginLoadQuery";
    /// `LOAD DATA` as a statement.
    EXECUTE_LOAD_QUERY = 18, "ExecuteLoadQuery";
    /// Number, name and columns of a table.
    TABLE_MAP = 19, "TableMap";
    /// Rows of the 5.1 betas.
    PRE_GA_WRITE_ROWS = 20, "PreGaWriteRows";
    /// Rows of the 5.1 betas.
    PRE_GA_UPDATE_ROWS = 21, "PreGaUpdateRows";
    /// Rows of the 5.1 betas.
    PRE_GA_DELETE_ROWS = 22, "PreGaDeleteRows";
    /// Inserted rows, 5.1 to 5.5 and MariaDB.
    WRITE_ROWS_V1 = 23, "WriteRowsV1";
    /// Updated rows, 5.1 to 5.5 and MariaDB.
    UPDATE_ROWS_V1 = 24, "UpdateRowsV1";
    /// Deleted rows, 5.1 to 5.5 and MariaDB.
    DELETE_ROWS_V1 = 25, "DeleteRowsV1";
    /// The log may lack events here.
    INCIDENT = 26, "Incident";
    /// Sent on an idle connection; never stored.
    HEARTBEAT = 27, "Heartbeat";
    /// For readers to skip.
    IGNORABLE = 28, "Ignorable";
    /// The statement that the rows after it come from.
    ROWS_QUERY = 29, "RowsQuery";
    /// Inserted rows.
    WRITE_ROWS = 30, "WriteRows";
    /// Updated rows.
    UPDATE_ROWS = 31, "UpdateRows";
    /// Deleted rows.
    DELETE_ROWS = 32, "DeleteRows";
    /// Begins a transaction that has a GTID without tag.
    GTID = 33, "Gtid";
    /// Begins a transaction without GTID.
    ANONYMOUS_GTID = 34, "AnonymousGtid";
    /// The GTIDs of all files before this one.
    PREVIOUS_GTIDS = 35, "PreviousGtids";
    /// Certification data of Group Replication; never in a server's binary log.
    TRANSACTION_CONTEXT = 36, "TransactionContext";
    /// A view of Group Replication.
    VIEW_CHANGE = 37, "ViewChange";
    /// Ends the first phase of an XA transaction.
    XA_PREPARE = 38, "XaPrepare";
    /// Updated rows whose JSON columns carry differences.
    PARTIAL_UPDATE_ROWS = 39, "PartialUpdateRows";
    /// A whole transaction, compressed.
    TRANSACTION_PAYLOAD = 40, "TransactionPayload";
    /// Sent on an idle connection; never stored.
    HEARTBEAT_V2 = 41, "HeartbeatV2";
    /// Begins a transaction whose GTID has a tag.
    GTID_TAGGED = 42, "GtidTagged";
}

/// MariaDB's own. They have no [name](EventType::name): MySQL's tools print them as unknown.
impl EventType {
    /// The statement that the rows after it come from.
    pub const MARIADB_ANNOTATE_ROWS: Self = EventType(160);
    /// The file that a checkpoint reached.
    pub const MARIADB_BINLOG_CHECKPOINT: Self = EventType(161);
    /// Begins a transaction; a flag in it says whether it also takes the place of BEGIN.
    pub const MARIADB_GTID: Self = EventType(162);
    /// The GTIDs of all earlier files.
    pub const MARIADB_GTID_LIST: Self = EventType(163);
    /// All events after it are encrypted.
    pub const MARIADB_START_ENCRYPTION: Self = EventType(164);
    /// A statement, compressed.
    pub const MARIADB_QUERY_COMPRESSED: Self = EventType(165);

    /// Whether the event carries compressed row images.
    pub(crate) fn is_mariadb_compressed_rows(self) -> bool {
        matches!(self.0, 166..=171)
    }

    /// The type that a compressed event of MariaDB has once it is expanded, see
    /// [`crate::event::CompressedEvent`]; `None` for all others.
    pub fn mariadb_expanded(self) -> Option<Self> {
        Some(match self.0 {
            165 => Self::QUERY,
            166 => Self::WRITE_ROWS_V1,
            167 => Self::UPDATE_ROWS_V1,
            168 => Self::DELETE_ROWS_V1,
            169 => Self::WRITE_ROWS,
            170 => Self::UPDATE_ROWS,
            171 => Self::DELETE_ROWS,
            _ => return None,
        })
    }
}

/// Whether events of a type may change data, and whether this crate can read the change: the answer of
/// [`EventType::changes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeContent {
    /// It holds no changes: it describes the log, a transaction or the events after it.
    None,
    /// Changes, or a part of them, that this crate decodes.
    Decoded,
    /// A part of the changes that the rows beside it hold again, or that only a server needs: a reader loses
    /// no change by passing over it.
    Beside,
    /// It may hold changes, and nothing here can decode it: an unknown type, or one that is dead.
    Unread,
    /// The server says that changes are missing here.
    Lost,
}

impl EventType {
    /// Whether an event of this type may change data. A reader that passes over an event which is
    /// [`ChangeContent::Unread`] or [`ChangeContent::Lost`] must say so. An event of unknown type that carries
    /// [`crate::HeaderFlags::IGNORABLE`] may be passed over: its writer says that it changes nothing.
    ///
    /// The table of all 256 codes: types of MySQL 9.7 and MariaDB 11.8.
    pub fn changes(self) -> ChangeContent {
        match self.0 {
            // Unknown; LOAD DATA before 5.0 (6, 8, 10, 12); rows of the 5.1 betas.
            0 | 6 | 8 | 10 | 12 | 20..=22 => ChangeContent::Unread,
            // Start, stop, rotate, the slave event of 3.23, format description.
            1 | 3 | 4 | 7 | 15 => ChangeContent::None,
            // Query, intvar, file blocks and their statement, rand, user variable.
            2 | 5 | 9 | 11 | 13 | 14 | 17 | 18 => ChangeContent::Decoded,
            // XID, table map.
            16 | 19 => ChangeContent::Decoded,
            23..=25 | 30..=32 | 39 => ChangeContent::Decoded,
            26 => ChangeContent::Lost,
            // Heartbeats, ignorable.
            27 | 28 | 41 => ChangeContent::None,
            // The text of the statement whose rows follow, certification data of a group, its views.
            29 | 36 | 37 => ChangeContent::Beside,
            // GTIDs, previous GTIDs.
            33..=35 | 42 => ChangeContent::None,
            // XA PREPARE, transaction payload.
            38 | 40 => ChangeContent::Decoded,
            43..=159 => ChangeContent::Unread,
            // MariaDB: the statement of the rows after it.
            160 => ChangeContent::Beside,
            // MariaDB: checkpoint, GTID, GTID list, start of encryption.
            161..=164 => ChangeContent::None,
            // MariaDB: compressed statements and rows.
            165..=171 => ChangeContent::Decoded,
            172..=255 => ChangeContent::Unread,
        }
    }
}

impl EventType {
    /// Whether the event begins a transaction: GTID, anonymous or tagged.
    pub fn is_gtid(self) -> bool {
        matches!(self, Self::GTID | Self::ANONYMOUS_GTID | Self::GTID_TAGGED)
    }

    /// Whether the event carries row images, of any generation.
    pub fn is_rows(self) -> bool {
        matches!(self.0, 20..=25 | 30..=32 | 39)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "type {:#04x}", self.0),
        }
    }
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_code_says_whether_it_may_hold_changes() {
        for code in 0..=u8::MAX {
            let event_type = EventType(code);
            let content = event_type.changes();
            let is_known = event_type.name().is_some() || (160..=171).contains(&code);
            // A code without a name is a type of tomorrow: it may hold anything.
            assert!(is_known || content == ChangeContent::Unread, "{code}");
            if event_type.is_rows() {
                let is_beta = (20..=22).contains(&code);
                let expected = if is_beta { ChangeContent::Unread } else { ChangeContent::Decoded };
                assert_eq!(content, expected, "{code}");
            }
            if event_type.is_gtid() {
                assert_eq!(content, ChangeContent::None, "{code}");
            }
            // What is compressed is as readable as what comes out.
            assert_eq!(event_type.mariadb_expanded().is_some(), (165..=171).contains(&code), "{code}");
            if let Some(expanded) = event_type.mariadb_expanded() {
                assert_eq!((content, expanded.changes()), (ChangeContent::Decoded, ChangeContent::Decoded));
            }
        }
        assert_eq!(EventType::INCIDENT.changes(), ChangeContent::Lost);
    }
}
