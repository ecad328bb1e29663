//! The table of profiles: for each kind of client, what is done with each thing that some can't read. A fact about a
//! client belongs here, and nowhere else.
//!
//! Within a family the profiles stand in the order of their versions: a server has the last one that it is not older
//! than. Facts of MySQL 5.5 to 9.7 and MariaDB 10.1 to 11.8, seen with the servers themselves.

use binlogz_relay_log::Form;

/// How an element of the log that not every client can read is sent to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// The client gets it as it is.
    Passed,
    /// The client gets something in its place that it can read.
    Translated,
    /// The client gets an empty place, which is counted.
    LeftOut,
    /// The dump ends before it, with error 1236.
    Refused,
}

/// The treatment of each element of the log that not every client can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Treatments {
    /// Compressed transactions. Translated: the client is served the uncompressed form.
    pub payloads: Treatment,
    /// Checksums of events.
    pub checksums: Treatment,
    /// Events with GTIDs, and those that say that there is none.
    pub gtids: Treatment,
    /// GTIDs with a tag. Translated: into ones without, for clients that ignore them.
    pub tagged_gtids: Treatment,
    /// Row events of version 2, which all servers write since 5.6.
    pub rows_version_2: Treatment,
    /// XA transactions. Translated: into plain ones where XA COMMIT stands.
    pub xa: Treatment,
    /// Rows of tables with MySQL's JSON.
    pub json_columns: Treatment,
    /// Rows of tables with MySQL's VECTOR.
    pub vector_columns: Treatment,
    /// Updates that hold only the changed part of a JSON value (`binlog_row_value_options`).
    pub partial_json: Treatment,
    /// Collations of MySQL 8.0. Translated: into older ones, with losses.
    pub collations: Treatment,
    /// Optional metadata of table maps. Left out: all of it. Translated: into what MINIMAL has. Refused: rows without names
    /// of columns.
    pub row_metadata: Treatment,
    /// A CREATE TABLE … SELECT in one transaction. Translated: into two.
    pub tables_of_selects: Treatment,
    /// CREATE USER, GRANT and the like of a source since 8.0.
    pub account_statements: Treatment,
    /// Events by which Group Replication certifies transactions and tells its members.
    pub group_events: Treatment,
    /// Types of events that binlogz does not know and that are not marked as ignorable.
    pub unknown_events: Treatment,
}

impl Treatments {
    /// Each thing's name, and what is done with it.
    pub fn each(&self) -> [(&'static str, Treatment); 15] {
        [
            ("payloads", self.payloads),
            ("checksums", self.checksums),
            ("GTIDs", self.gtids),
            ("tags", self.tagged_gtids),
            ("rows", self.rows_version_2),
            ("XA", self.xa),
            ("JSON", self.json_columns),
            ("VECTOR", self.vector_columns),
            ("partial JSON", self.partial_json),
            ("collations", self.collations),
            ("metadata", self.row_metadata),
            ("selects", self.tables_of_selects),
            ("accounts", self.account_statements),
            ("group", self.group_events),
            ("others", self.unknown_events),
        ]
    }

    /// For each thing, in the order of [`Treatments::each`], this treatment of it and all others passed.
    pub(crate) fn each_alone(&self) -> [Treatments; 15] {
        [
            Treatments { payloads: self.payloads, ..ALL_PASSED },
            Treatments { checksums: self.checksums, ..ALL_PASSED },
            Treatments { gtids: self.gtids, ..ALL_PASSED },
            Treatments { tagged_gtids: self.tagged_gtids, ..ALL_PASSED },
            Treatments { rows_version_2: self.rows_version_2, ..ALL_PASSED },
            Treatments { xa: self.xa, ..ALL_PASSED },
            Treatments { json_columns: self.json_columns, ..ALL_PASSED },
            Treatments { vector_columns: self.vector_columns, ..ALL_PASSED },
            Treatments { partial_json: self.partial_json, ..ALL_PASSED },
            Treatments { collations: self.collations, ..ALL_PASSED },
            Treatments { row_metadata: self.row_metadata, ..ALL_PASSED },
            Treatments { tables_of_selects: self.tables_of_selects, ..ALL_PASSED },
            Treatments { account_statements: self.account_statements, ..ALL_PASSED },
            Treatments { group_events: self.group_events, ..ALL_PASSED },
            Treatments { unknown_events: self.unknown_events, ..ALL_PASSED },
        ]
    }
}

/// The kind of event that a client gets in the place of one that it isn't sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FillerKind {
    /// An event of type Ignorable.
    Ignorable,
    /// A statement that is a comment or, where that has no room, a user variable. Events of GTIDs are replaced as well: so the client
    /// keeps each event that it receives.
    Statement,
}

/// The servers that a profile is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProfileFamily {
    Mysql,
    Mariadb,
    /// No server.
    None,
}

/// A kind of client, and how it is sent what it may not be able to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderProfile {
    /// The name, as in `reads`.
    pub name: &'static str,
    /// The clients, in words.
    pub clients: &'static str,
    /// The clients' name in errors.
    pub(crate) kind: &'static str,
    pub(crate) family: ProfileFamily,
    /// The first version of the family that it is for.
    pub(crate) since: [u32; 3],
    /// The form of a client that names no file, under `form = "auto"`.
    pub form: Form,
    /// The kind of event in the place of one that is left out.
    pub(crate) fillers: FillerKind,
    /// The treatment of each element.
    pub treatments: Treatments,
}

use Treatment::{LeftOut, Passed, Refused, Translated};

const ALL_PASSED: Treatments = Treatments {
    payloads: Passed,
    checksums: Passed,
    gtids: Passed,
    tagged_gtids: Passed,
    rows_version_2: Passed,
    xa: Passed,
    json_columns: Passed,
    vector_columns: Passed,
    partial_json: Passed,
    collations: Passed,
    row_metadata: Passed,
    tables_of_selects: Passed,
    account_statements: Passed,
    group_events: Passed,
    unknown_events: Passed,
};
const MYSQL_8_0_20: Treatments = Treatments { tagged_gtids: Refused, unknown_events: Refused, ..ALL_PASSED };
const MYSQL_8_0: Treatments = Treatments { payloads: Translated, tables_of_selects: Refused, ..MYSQL_8_0_20 };
const MYSQL_5_7: Treatments =
    Treatments { partial_json: Refused, collations: Translated, account_statements: LeftOut, ..MYSQL_8_0 };
// It has no JSON, and says so itself at the CREATE TABLE.
const MYSQL_5_6: Treatments = Treatments { xa: Translated, group_events: LeftOut, ..MYSQL_5_7 };
const MYSQL_5_5: Treatments =
    Treatments { checksums: Refused, gtids: Refused, rows_version_2: Refused, xa: Refused, ..MYSQL_5_6 };
// It commits what XA only prepares, and stops without a word at rows with a type that it does not know.
const MARIADB_11_4: Treatments = Treatments {
    payloads: Translated,
    tagged_gtids: Translated,
    xa: Translated,
    json_columns: Refused,
    vector_columns: Refused,
    partial_json: Refused,
    tables_of_selects: Translated,
    account_statements: LeftOut,
    group_events: LeftOut,
    unknown_events: Refused,
    ..ALL_PASSED
};
const MARIADB_10_2: Treatments = Treatments { collations: Translated, ..MARIADB_11_4 };

// A field of a table map that it does not know (12, of MySQL 8.0.23) costs it the map and every row of the table, without a word; so
// does an event that it does not know.
const CONNECTOR_JAVA_0_20: Treatments = Treatments {
    payloads: Translated,
    tagged_gtids: Refused,
    vector_columns: Refused,
    partial_json: Refused,
    row_metadata: Translated,
    unknown_events: Refused,
    ..ALL_PASSED
};

const fn mysql(
    name: &'static str,
    kind: &'static str,
    since: [u32; 3],
    form: Form,
    treatments: Treatments,
) -> ReaderProfile {
    let family = ProfileFamily::Mysql;
    ReaderProfile {
        name,
        clients: kind,
        kind,
        family,
        since,
        form,
        fillers: FillerKind::Ignorable,
        treatments,
    }
}

const fn mariadb(
    name: &'static str,
    clients: &'static str,
    since: [u32; 3],
    fillers: FillerKind,
    treatments: Treatments,
) -> ReaderProfile {
    let kind = "MariaDB";
    let family = ProfileFamily::Mariadb;
    ReaderProfile { name, clients, kind, family, since, form: Form::Uncompressed, fillers, treatments }
}

const fn program(name: &'static str, clients: &'static str, treatments: Treatments) -> ReaderProfile {
    let family = ProfileFamily::None;
    let since = [0; 3];
    let form = Form::Uncompressed;
    let fillers = FillerKind::Ignorable;
    ReaderProfile { name, clients, kind: clients, family, since, form, fillers, treatments }
}

/// All profiles.
pub(super) static PROFILES: [ReaderProfile; 13] = [
    mysql("mysql-5.5", "MySQL 5.5", [0, 0, 0], Form::Uncompressed, MYSQL_5_5),
    mysql("mysql-5.6", "MySQL 5.6", [5, 6, 0], Form::Uncompressed, MYSQL_5_6),
    mysql("mysql-5.7", "MySQL 5.7", [5, 7, 0], Form::Uncompressed, MYSQL_5_7),
    mysql("mysql-8.0.19", "MySQL 8.0 before 8.0.20", [8, 0, 0], Form::Uncompressed, MYSQL_8_0),
    mysql("mysql-8.0.20", "MySQL 8.0.20 to 8.2", [8, 0, 20], Form::Received, MYSQL_8_0_20),
    mysql("mysql-8.3", "MySQL since 8.3", [8, 3, 0], Form::Received, ALL_PASSED),
    // Stopped after an event that it doesn't keep, it writes a rotate event without a checksum into a relay log with checksums.
    mariadb("mariadb-10.1", "MariaDB before 10.2", [0, 0, 0], FillerKind::Statement, MARIADB_10_2),
    mariadb("mariadb-10.2", "MariaDB 10.2 to 11.4.4", [10, 2, 0], FillerKind::Ignorable, MARIADB_10_2),
    mariadb("mariadb-11.4", "MariaDB since 11.4.5", [11, 4, 5], FillerKind::Ignorable, MARIADB_11_4),
    program("connector-java-0.20", "mysql-binlog-connector-java to 0.20", CONNECTOR_JAVA_0_20),
    program("maxwell-1", "Maxwell 1", CONNECTOR_JAVA_0_20),
    program("binlogz", "binlogz", ALL_PASSED),
    program("other", "any other client", Treatments { payloads: Translated, ..ALL_PASSED }),
];
