//! The type byte of an event header: every type of MySQL 5.0 to 9.7 and of MariaDB 11.8, and any unknown one.
//!
//! One table says of each type what readers ask: its name, what it is in a log, whether it may change data. Code that
//! asks for such a property asks the table; a `match` on [`EventClass`] has no `_` arm, so the compiler finds those who
//! have to answer for a new class.

use std::fmt;

/// The type of an event's body. A newtype, so that unknown types survive as frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventType(pub u8);

/// The role of an event in a log: the answer of [`EventType::class`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventClass {
    /// Describes the file or leads to the next one, between transactions: format description, previous GTIDs, rotate, stop.
    File,
    /// An event of MariaDB or MySQL 3.23 between transactions: checkpoints, GTID lists, encryption. No reader needs it.
    FileNote,
    /// Sent on an idle connection; never stored.
    Heartbeat,
    /// Begins a transaction: with a GTID, with a tagged one, or with none.
    Gtid,
    /// Begins a transaction of MariaDB; a flag in it says whether it also takes the place of BEGIN.
    MariadbGtid,
    /// A statement, also BEGIN, COMMIT and DDL.
    Statement,
    /// A statement of MariaDB that has to be expanded before it is a [`EventClass::Statement`].
    CompressedStatement,
    /// `LOAD DATA` as a statement.
    LoadStatement,
    /// A value that the next statement needs: a variable, a seed, an automatic number.
    StatementValue,
    /// A block of the file that the next `LOAD DATA` loads.
    LoadBlock,
    /// The file of a `LOAD DATA` isn't needed after all.
    LoadEnd,
    /// The text of the statement that made the rows after it.
    RowsStatement,
    /// Number, name and columns of a table.
    TableMap,
    /// Row images, of any generation.
    Rows,
    /// Row images of MariaDB that have to be expanded before they are [`EventClass::Rows`].
    CompressedRows,
    /// Ends a transaction, or the first phase of an XA transaction.
    Commit,
    /// A whole transaction, compressed.
    Payload,
    /// The log may lack events here.
    Incident,
    /// Certification data of Group Replication.
    GroupContext,
    /// A view of Group Replication.
    GroupView,
    /// For readers to skip.
    Ignorable,
    /// An event of MySQL before 5.0, which no server writes today.
    Dead,
    /// Not a type that MySQL 9.7 or MariaDB 11.8 has.
    Unknown,
}

impl EventClass {
    /// Whether its events are statements that may change tables: make, alter, rename or drop them. Compressed ones count after they
    /// were expanded, as [`EventClass::Statement`].
    #[inline]
    pub fn may_change_tables(self) -> bool {
        match self {
            EventClass::Statement => true,
            EventClass::CompressedStatement | EventClass::CompressedRows | EventClass::Payload => false,
            // They change rows, but no tables.
            EventClass::LoadStatement
            | EventClass::StatementValue
            | EventClass::LoadBlock
            | EventClass::LoadEnd
            | EventClass::RowsStatement
            | EventClass::TableMap
            | EventClass::Rows
            | EventClass::Commit => false,
            // They change nothing, or nothing here can read them.
            EventClass::File
            | EventClass::FileNote
            | EventClass::Heartbeat
            | EventClass::Gtid
            | EventClass::MariadbGtid
            | EventClass::Incident
            | EventClass::GroupContext
            | EventClass::GroupView
            | EventClass::Ignorable
            | EventClass::Dead
            | EventClass::Unknown => false,
        }
    }

    /// Whether its events are LOAD DATA as a statement, or values and files for the statement after them: they change rows without
    /// being rows, and beside [`EventClass::Statement`] only these do.
    pub fn is_load_or_value(self) -> bool {
        match self {
            EventClass::LoadStatement
            | EventClass::StatementValue
            | EventClass::LoadBlock
            | EventClass::LoadEnd => true,
            EventClass::File | EventClass::FileNote | EventClass::Heartbeat => false,
            EventClass::Gtid | EventClass::MariadbGtid | EventClass::Commit => false,
            EventClass::Statement | EventClass::CompressedStatement | EventClass::RowsStatement => false,
            EventClass::TableMap | EventClass::Rows | EventClass::CompressedRows => false,
            EventClass::Payload | EventClass::Incident | EventClass::Ignorable => false,
            EventClass::GroupContext | EventClass::GroupView => false,
            EventClass::Dead | EventClass::Unknown => false,
        }
    }
}

/// Whether events of a type may change data, and whether this crate can read the change: the answer of
/// [`EventType::changes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeContent {
    /// The event holds no changes: it describes the log, a transaction or the events after it.
    None,
    /// Changes, or a part of them, that this crate decodes.
    Decoded,
    /// A part of the changes that the rows beside it hold again, or that only a server needs: a reader loses
    /// no change by passing over it.
    Beside,
    /// The event may hold changes, and nothing here can decode it: an unknown type, or one that no server writes today.
    Unread,
    /// The server says that changes are missing here.
    Lost,
}

macro_rules! event_types {
    ($($(#[$doc:meta])* $constant:ident = $code:literal, $name:expr, $shown:literal, $class:ident, $changes:ident;)*) => {
        impl EventType {
            $($(#[$doc])* pub const $constant: Self = EventType($code);)*

            /// The type's name in the manual, without underscores; `None` for unknown types and MariaDB's, which
            /// MySQL's tools print as unknown.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => $name,)*
                    _ => None,
                }
            }

            /// The column `Event_type` of SHOW BINLOG EVENTS.
            pub(crate) fn shown_name(self) -> &'static str {
                match self.0 {
                    $($code => $shown,)*
                    _ => "Unknown",
                }
            }

            /// Returns the role that events of this type have in a log.
            #[inline]
            pub const fn class(self) -> EventClass {
                match self.0 {
                    $($code => EventClass::$class,)*
                    _ => EventClass::Unknown,
                }
            }

            /// Whether an event of this type may change data. A reader that passes over an event which is
            /// [`ChangeContent::Unread`] or [`ChangeContent::Lost`] must say so. An event of unknown type that carries
            /// [`crate::HeaderFlags::IGNORABLE`] may be passed over: its writer says that it changes nothing.
            pub const fn changes(self) -> ChangeContent {
                match self.0 {
                    $($code => ChangeContent::$changes,)*
                    _ => ChangeContent::Unread,
                }
            }
        }
    };
}

// Constant, code, name in the manual, name in SHOW BINLOG EVENTS, what it is, whether it changes data. Types that 9.7
// refuses to read have the names in SHOW BINLOG EVENTS that older servers gave them; MariaDB's are those of 10.11.
event_types! {
    /// Never written.
    UNKNOWN = 0, Some("Unknown"), "Unknown", Dead, Unread;
    /// The first event before format 4; dead.
    START_V3 = 1, Some("StartV3"), "Start_v3", Dead, None;
    /// A statement as text.
    QUERY = 2, Some("Query"), "Query", Statement, Decoded;
    /// The server shut down.
    STOP = 3, Some("Stop"), "Stop", File, None;
    /// The name of the next file.
    ROTATE = 4, Some("Rotate"), "Rotate", File, None;
    /// `LAST_INSERT_ID` or `INSERT_ID` of the next statement.
    INTVAR = 5, Some("Intvar"), "Intvar", StatementValue, Decoded;
    /// `LOAD DATA` of 3.23; dead.
    LOAD = 6, Some("Load"), "Load", Dead, Unread;
    /// Dead.
    SLAVE = 7, Some("Slave"), "Slave", FileNote, None;
    /// `LOAD DATA` of 4.0; dead.
    CREATE_FILE = 8, Some("CreateFile"), "Create_file", Dead, Unread;
    /// A block of a file loaded by statement.
    APPEND_BLOCK = 9, Some("AppendBlock"), "Append_block", LoadBlock, Decoded;
    /// `LOAD DATA` of 4.0; dead.
    EXEC_LOAD = 10, Some("ExecLoad"), "Exec_load", Dead, Unread;
    /// The file loaded by statement is not needed.
    DELETE_FILE = 11, Some("DeleteFile"), "Delete_file", LoadEnd, Decoded;
    /// `LOAD DATA` of 4.0; dead.
    NEW_LOAD = 12, Some("NewLoad"), "New_load", Dead, Unread;
    /// Seeds of `RAND()` for the next statement.
    RAND = 13, Some("Rand"), "RAND", StatementValue, Decoded;
    /// A user variable of the next statement.
    USER_VAR = 14, Some("UserVar"), "User var", StatementValue, Decoded;
    /// The first event of each file: how to read the others.
    FORMAT_DESCRIPTION = 15, Some("FormatDescription"), "Format_desc", File, None;
    /// Commit of a transactional engine.
    XID = 16, Some("Xid"), "Xid", Commit, Decoded;
    /// The first block of a file loaded by statement.
    BEGIN_LOAD_QUERY = 17, Some("BeginLoadQuery"), "Begin_load_query", LoadBlock, Decoded;
    /// `LOAD DATA` as a statement.
    EXECUTE_LOAD_QUERY = 18, Some("ExecuteLoadQuery"), "Execute_load_query", LoadStatement, Decoded;
    /// Number, name and columns of a table.
    TABLE_MAP = 19, Some("TableMap"), "Table_map", TableMap, Decoded;
    /// Rows of the 5.1 betas.
    PRE_GA_WRITE_ROWS = 20, Some("PreGaWriteRows"), "Write_rows_event_old", Rows, Unread;
    /// Rows of the 5.1 betas.
    PRE_GA_UPDATE_ROWS = 21, Some("PreGaUpdateRows"), "Update_rows_event_old", Rows, Unread;
    /// Rows of the 5.1 betas.
    PRE_GA_DELETE_ROWS = 22, Some("PreGaDeleteRows"), "Delete_rows_event_old", Rows, Unread;
    /// Inserted rows, 5.1 to 5.5 and MariaDB.
    WRITE_ROWS_V1 = 23, Some("WriteRowsV1"), "Write_rows_v1", Rows, Decoded;
    /// Updated rows, 5.1 to 5.5 and MariaDB.
    UPDATE_ROWS_V1 = 24, Some("UpdateRowsV1"), "Update_rows_v1", Rows, Decoded;
    /// Deleted rows, 5.1 to 5.5 and MariaDB.
    DELETE_ROWS_V1 = 25, Some("DeleteRowsV1"), "Delete_rows_v1", Rows, Decoded;
    /// The log may lack events here.
    INCIDENT = 26, Some("Incident"), "Incident", Incident, Lost;
    /// Sent on an idle connection; never stored.
    HEARTBEAT = 27, Some("Heartbeat"), "Heartbeat", Heartbeat, None;
    /// For readers to skip.
    IGNORABLE = 28, Some("Ignorable"), "Ignorable", Ignorable, None;
    /// The statement that the rows after it come from.
    ROWS_QUERY = 29, Some("RowsQuery"), "Rows_query", RowsStatement, Beside;
    /// Inserted rows.
    WRITE_ROWS = 30, Some("WriteRows"), "Write_rows", Rows, Decoded;
    /// Updated rows.
    UPDATE_ROWS = 31, Some("UpdateRows"), "Update_rows", Rows, Decoded;
    /// Deleted rows.
    DELETE_ROWS = 32, Some("DeleteRows"), "Delete_rows", Rows, Decoded;
    /// Begins a transaction that has a GTID without tag.
    GTID = 33, Some("Gtid"), "Gtid", Gtid, None;
    /// Begins a transaction without GTID.
    ANONYMOUS_GTID = 34, Some("AnonymousGtid"), "Anonymous_Gtid", Gtid, None;
    /// The GTIDs of all files before this one.
    PREVIOUS_GTIDS = 35, Some("PreviousGtids"), "Previous_gtids", File, None;
    /// Certification data of Group Replication; never in a server's binary log.
    TRANSACTION_CONTEXT = 36, Some("TransactionContext"), "Transaction_context", GroupContext, Beside;
    /// A view of Group Replication.
    VIEW_CHANGE = 37, Some("ViewChange"), "View_change", GroupView, Beside;
    /// Ends the first phase of an XA transaction.
    XA_PREPARE = 38, Some("XaPrepare"), "XA_prepare", Commit, Decoded;
    /// Updated rows whose JSON columns carry differences.
    PARTIAL_UPDATE_ROWS = 39, Some("PartialUpdateRows"), "Update_rows_partial", Rows, Decoded;
    /// A whole transaction, compressed.
    TRANSACTION_PAYLOAD = 40, Some("TransactionPayload"), "Transaction_payload", Payload, Decoded;
    /// Sent on an idle connection; never stored.
    HEARTBEAT_V2 = 41, Some("HeartbeatV2"), "Heartbeat", Heartbeat, None;
    /// Begins a transaction whose GTID has a tag.
    GTID_TAGGED = 42, Some("GtidTagged"), "Gtid_tagged_log_event", Gtid, None;

    /// The statement that the rows after it come from.
    MARIADB_ANNOTATE_ROWS = 160, None, "Annotate_rows", RowsStatement, Beside;
    /// The file that a checkpoint reached.
    MARIADB_BINLOG_CHECKPOINT = 161, None, "Binlog_checkpoint", FileNote, None;
    /// Begins a transaction; a flag in it says whether it also takes the place of BEGIN.
    MARIADB_GTID = 162, None, "Gtid", MariadbGtid, None;
    /// The GTIDs of all earlier files.
    MARIADB_GTID_LIST = 163, None, "Gtid_list", FileNote, None;
    /// All events after it are encrypted.
    MARIADB_START_ENCRYPTION = 164, None, "Start_encryption", FileNote, None;
    /// A statement, compressed.
    MARIADB_QUERY_COMPRESSED = 165, None, "Query_compressed", CompressedStatement, Decoded;
    /// Inserted rows, compressed.
    MARIADB_WRITE_ROWS_COMPRESSED_V1 = 166, None, "Write_rows_compressed_v1", CompressedRows, Decoded;
    /// Updated rows, compressed.
    MARIADB_UPDATE_ROWS_COMPRESSED_V1 = 167, None, "Update_rows_compressed_v1", CompressedRows, Decoded;
    /// Deleted rows, compressed.
    MARIADB_DELETE_ROWS_COMPRESSED_V1 = 168, None, "Delete_rows_compressed_v1", CompressedRows, Decoded;
    /// Inserted rows of version 2, compressed.
    MARIADB_WRITE_ROWS_COMPRESSED = 169, None, "Write_rows_compressed", CompressedRows, Decoded;
    /// Updated rows of version 2, compressed.
    MARIADB_UPDATE_ROWS_COMPRESSED = 170, None, "Update_rows_compressed", CompressedRows, Decoded;
    /// Deleted rows of version 2, compressed.
    MARIADB_DELETE_ROWS_COMPRESSED = 171, None, "Delete_rows_compressed", CompressedRows, Decoded;
}

impl EventType {
    /// The type that a compressed event of MariaDB has once it is expanded, see
    /// [`crate::event::CompressedEvent`]; `None` for all others.
    pub fn mariadb_expanded(self) -> Option<Self> {
        Some(match self {
            Self::MARIADB_QUERY_COMPRESSED => Self::QUERY,
            Self::MARIADB_WRITE_ROWS_COMPRESSED_V1 => Self::WRITE_ROWS_V1,
            Self::MARIADB_UPDATE_ROWS_COMPRESSED_V1 => Self::UPDATE_ROWS_V1,
            Self::MARIADB_DELETE_ROWS_COMPRESSED_V1 => Self::DELETE_ROWS_V1,
            Self::MARIADB_WRITE_ROWS_COMPRESSED => Self::WRITE_ROWS,
            Self::MARIADB_UPDATE_ROWS_COMPRESSED => Self::UPDATE_ROWS,
            Self::MARIADB_DELETE_ROWS_COMPRESSED => Self::DELETE_ROWS,
            _ => return None,
        })
    }

    /// Whether the event begins a transaction: GTID, anonymous or tagged.
    #[inline]
    pub const fn is_gtid(self) -> bool {
        matches!(self.class(), EventClass::Gtid)
    }

    /// Whether the event carries row images, of any generation.
    #[inline]
    pub const fn is_rows(self) -> bool {
        matches!(self.class(), EventClass::Rows)
    }

    /// Whether the event ends a transaction, or the first phase of an XA transaction.
    #[inline]
    pub const fn is_commit(self) -> bool {
        matches!(self.class(), EventClass::Commit)
    }

    /// Whether the event describes its file or leads to the next one: format description, previous GTIDs, rotate, stop.
    #[inline]
    pub const fn is_of_file(self) -> bool {
        matches!(self.class(), EventClass::File)
    }

    /// Whether the event is only sent, on an idle connection.
    #[inline]
    pub const fn is_heartbeat(self) -> bool {
        matches!(self.class(), EventClass::Heartbeat)
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
