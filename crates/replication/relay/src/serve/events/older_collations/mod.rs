//! Replaces collations that only MySQL 8.0 and later have, and other words of its statements, in events for older
//! replicas.
//!
//! ```text
//! event                            what names a collation
//! Query, Execute_load_query        status variables 4, 8 and 18: numbers of two bytes; the statement: names after COLLATE
//! User_var                         a number of four bytes
//! ```
//!
//! MySQL 5.6 and 5.7 and MariaDB before 11.4.5 stop at the first transaction of a session with the default collation
//! of 8.0 ("Character set '#255' is not a compiled character set"), whatever its tables have.
//!
//! An event keeps its length, so everything after it keeps its position: numbers have a fixed size, and each name is
//! replaced by one that is no longer ([`names`]), padded with spaces. So this needs no form with files and positions
//! of its own: a replica resumes in the same file at the same position, translated or not. If we can't be certain of
//! a name, we refuse it, and the dump ends before that event.
//!
//! From 8.0.21 on, CREATE TABLE … SELECT is one transaction: BEGIN, CREATE TABLE … START TRANSACTION, the rows. Older
//! servers don't know that option, so it becomes spaces; for them CREATE TABLE ends the transaction, and the rows are
//! their own. MySQL refuses that, also without GTIDs (error 1778), so there the dump ends before it. MariaDB does it.

mod names;
mod statement;

use binlogz_binlog::event::{
    ExecuteLoadQueryEvent, QueryEvent, StatusVariable, StatusVariables, UserVarEvent, UserVarValue,
};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::{ChecksumAlgorithm, EventFrame, EventType};

use crate::serve::events::profiles::Treatment;
use names::{StandIn, number_for, stand_in};
pub(super) use statement::first_words;
use statement::{SqlMode, named_collations, transaction_option};

const NO_END: &str = "a text or comment of the statement has no end";

/// Client character sets in which one byte of a character may look like a quote or a backslash: big5, sjis, gbk,
/// cp932, gb18030.
const TRICKY_CHARSETS: [u16; 11] = [1, 84, 13, 88, 28, 87, 95, 96, 248, 249, 250];

/// Whether an event may have what older servers don't know.
pub(crate) fn may_be_unknown(event_type: EventType) -> bool {
    [EventType::QUERY, EventType::EXECUTE_LOAD_QUERY, EventType::USER_VAR].contains(&event_type)
}

/// Returns the event, of the same length, with collations that older servers know, if these are translated, and as they
/// know tables of a SELECT; `None` if it needs no change. Its checksum was compared.
///
/// # Errors
///
/// Why we can't tell which collations the statement names, or why older servers can't have it.
pub(crate) fn for_older(
    frame: &EventFrame<'_>,
    checksum: ChecksumAlgorithm,
    collations: Treatment,
    tables_of_selects: Treatment,
) -> Result<Option<Vec<u8>>, String> {
    let older = OlderNames { collations: collations == Treatment::Translated, tables_of_selects };
    let body = match frame.event_type() {
        EventType::QUERY => QueryEvent::decode(frame.body()).ok().map(|event| query(&event, older)),
        EventType::EXECUTE_LOAD_QUERY => {
            ExecuteLoadQueryEvent::decode(frame.body()).ok().map(|event| load(&event, older))
        }
        EventType::USER_VAR if older.collations => {
            UserVarEvent::decode(frame.body()).ok().map(|event| Ok(user_variable(&event)))
        }
        _ => None,
    };
    let body = body.transpose()?.flatten();
    // An event of another length would move what follows it.
    Ok(body
        .map(|body| encode_event(*frame.header(), &body, checksum))
        .filter(|translated| translated.len() == frame.bytes().len() && translated != frame.bytes()))
}

/// Which names in statements are replaced.
#[derive(Debug, Clone, Copy)]
struct OlderNames {
    /// Whether collations are replaced.
    collations: bool,
    tables_of_selects: Treatment,
}

fn query(event: &QueryEvent<'_>, older: OlderNames) -> Result<Option<Vec<u8>>, String> {
    with_older_names(event, older, |event| event.encode().ok())
}

fn load(event: &ExecuteLoadQueryEvent<'_>, older: OlderNames) -> Result<Option<Vec<u8>>, String> {
    with_older_names(&event.query, older, |query| {
        ExecuteLoadQueryEvent { query: *query, ..*event }.encode().ok()
    })
}

fn with_older_names(
    event: &QueryEvent<'_>,
    older: OlderNames,
    encode: impl Fn(&QueryEvent<'_>) -> Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, String> {
    let mut statement = event.statement.to_vec();
    let session = Session::of(event.status_variables);
    if older.collations {
        session.replace_names(&mut statement)?;
    }
    if older.tables_of_selects != Treatment::Passed {
        session.without_transaction_option(&mut statement, older.tables_of_selects)?;
    }
    let variables = match older.collations {
        true => older_variables(event.status_variables),
        false => Some(event.status_variables.0.to_vec()),
    };
    let Some(variables) = variables else { return Ok(None) };
    let status_variables = StatusVariables(&variables);
    Ok(encode(&QueryEvent { status_variables, statement: &statement, ..*event }))
}

/// Status variables whose collations have numbers that older servers know; `None` if they can't be read.
fn older_variables(variables: StatusVariables<'_>) -> Option<Vec<u8>> {
    let older = |number: u16| number_for(u64::from(number)).unwrap_or(number);
    let mut bytes = Vec::with_capacity(variables.0.len());
    for variable in variables.iter() {
        let variable = match variable.ok()? {
            StatusVariable::Charset { client, connection, server } => StatusVariable::Charset {
                client: older(client),
                connection: older(connection),
                server: older(server),
            },
            StatusVariable::CharsetDatabase(number) => StatusVariable::CharsetDatabase(older(number)),
            StatusVariable::DefaultCollationForUtf8mb4(number) => {
                StatusVariable::DefaultCollationForUtf8mb4(older(number))
            }
            other => other,
        };
        variable.encode(&mut bytes).ok()?;
    }
    Some(bytes)
}

fn user_variable(event: &UserVarEvent<'_>) -> Option<Vec<u8>> {
    let value = event.value?;
    let collation = u32::from(number_for(u64::from(value.collation))?);
    UserVarEvent { value: Some(UserVarValue { collation, ..value }), ..*event }.encode().ok()
}

/// The session settings that decide how a statement is parsed.
struct Session {
    mode: SqlMode,
    /// The number of a collation of its character set.
    client: u16,
}

impl Session {
    fn of(variables: StatusVariables<'_>) -> Self {
        let mut session = Session { mode: SqlMode(0), client: 0 };
        for variable in variables.iter().flatten() {
            match variable {
                StatusVariable::SqlMode(bits) => session.mode = SqlMode(bits),
                StatusVariable::Charset { client, .. } => session.client = client,
                _ => {}
            }
        }
        session
    }

    fn without_transaction_option(&self, statement: &mut [u8], treatment: Treatment) -> Result<(), String> {
        let option = transaction_option(statement, self.mode)
            .ok_or_else(|| format!("{NO_END}: its options can't be told"))?;
        let Some(place) = option.and_then(|range| statement.get_mut(range)) else { return Ok(()) };
        if TRICKY_CHARSETS.contains(&self.client) {
            return Err(format!("{} where its options are", self.not_told()));
        }
        if treatment != Treatment::Translated {
            return Err("a CREATE TABLE ... SELECT is one transaction since 8.0.21, which MySQL before that can't apply: \
                        CREATE TABLE and INSERT ... SELECT would be two"
                .into());
        }
        place.fill(b' ');
        Ok(())
    }

    /// The error for a character set in which quotes may be part of characters.
    fn not_told(&self) -> String {
        format!("the statement's character set (that of collation {}) does not let us tell", self.client)
    }

    fn replace_names(&self, statement: &mut [u8]) -> Result<(), String> {
        if !names::may_be_in(statement) {
            return Ok(());
        }
        let found = named_collations(statement, self.mode)
            .ok_or_else(|| format!("{NO_END}: its collations can't be told"))?;
        for named in found {
            let name = statement.get(named.name.clone()).unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            match stand_in(&name) {
                StandIn::NotNeeded => {}
                StandIn::None => {
                    return Err(format!("servers before 8.0 have nothing like collation {name}"));
                }
                StandIn::Is(_) if TRICKY_CHARSETS.contains(&self.client) => {
                    return Err(format!("{} where it names {name}", self.not_told()));
                }
                StandIn::Is(older) => {
                    named.write(statement, &older).ok_or_else(|| format!("{older} is longer than {name}"))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_binlog::event::UserVarType;

    use super::*;
    use crate::serve::events::event_in_tests::event_with;

    const CRC32: ChecksumAlgorithm = ChecksumAlgorithm::CRC32;

    fn for_older(event: &[u8], checksum: ChecksumAlgorithm) -> Result<Option<Vec<u8>>, String> {
        with(event, checksum, Treatment::Translated)
    }

    fn with(
        event: &[u8],
        checksum: ChecksumAlgorithm,
        tables_of_selects: Treatment,
    ) -> Result<Option<Vec<u8>>, String> {
        let frame = EventFrame::from_bytes(event, checksum.size()).unwrap();
        super::for_older(&frame, checksum, Treatment::Translated, tables_of_selects)
    }

    fn variables(client: u16, others: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        for variable in [
            StatusVariable::SqlMode(0),
            StatusVariable::Charset { client, connection: others, server: others },
            StatusVariable::CharsetDatabase(others),
            StatusVariable::Microseconds(5),
            StatusVariable::DefaultCollationForUtf8mb4(others),
            StatusVariable::Unknown(&[99, 255, 0]),
        ] {
            variable.encode(&mut bytes).unwrap();
        }
        bytes
    }

    fn query_of(variables: &[u8], statement: &str, checksum: ChecksumAlgorithm) -> Vec<u8> {
        let query = QueryEvent {
            thread_id: 1,
            exec_time: 0,
            error_code: 0,
            status_variables: StatusVariables(variables),
            database: b"shop",
            statement: statement.as_bytes(),
        };
        event_with(EventType::QUERY, &query.encode().unwrap(), checksum)
    }

    /// Translates a statement of a session with these collations.
    fn translated(statement: &str, client: u16) -> Result<Option<Vec<u8>>, String> {
        for_older(&query_of(&variables(client, 45), statement, CRC32), CRC32)
    }

    #[test]
    fn numbers_are_replaced_and_nothing_moves() {
        for checksum in [CRC32, ChecksumAlgorithm::NONE] {
            let new = query_of(&variables(255, 278), "BEGIN", checksum);
            let old = query_of(&variables(224, 46), "BEGIN", checksum);
            assert_eq!(for_older(&new, checksum).unwrap().as_deref(), Some(old.as_slice()));
            assert_eq!(for_older(&old, checksum), Ok(None));
        }
        // MariaDB's own numbers and unknown ones are kept.
        assert_eq!(for_older(&query_of(&variables(2304, 2048), "BEGIN", CRC32), CRC32), Ok(None));
    }

    #[test]
    fn names_are_replaced_in_statements() {
        let statement =
            "CREATE TABLE t (a TEXT COLLATE utf8mb4_0900_bin, b INT) COLLATE='utf8mb4_0900_ai_ci'";
        let expected = "CREATE TABLE t (a TEXT COLLATE utf8mb4_bin     , b INT) COLLATE='utf8mb4_unicode_ci'";
        let expected = query_of(&variables(45, 45), expected, CRC32);
        assert_eq!(translated(statement, 45), Ok(Some(expected)));
        assert_eq!(translated("INSERT INTO t VALUES ('COLLATE utf8mb4_0900_bin')", 45), Ok(None));

        let file = "LOAD DATA INFILE 'x' INTO TABLE t SET a = 'b' COLLATE utf8mb4_0900_as_cs";
        let variables = variables(255, 255);
        let load = |variables: &[u8], statement: &str| {
            let query = QueryEvent {
                thread_id: 1,
                exec_time: 0,
                error_code: 0,
                status_variables: StatusVariables(variables),
                database: b"",
                statement: statement.as_bytes(),
            };
            let event = ExecuteLoadQueryEvent {
                query,
                file_id: 1,
                file_name_start: 10,
                file_name_end: 20,
                duplicate_handling: binlogz_binlog::event::DuplicateHandling::ERROR,
            };
            event.encode().unwrap()
        };
        let loaded = event_with(EventType::EXECUTE_LOAD_QUERY, &load(&variables, file), CRC32);
        let older = file.replace("utf8mb4_0900_as_cs", "utf8mb4_bin       ");
        let older = load(&super::tests::variables(224, 224), &older);
        let older = event_with(EventType::EXECUTE_LOAD_QUERY, &older, CRC32);
        assert_eq!(for_older(&loaded, CRC32), Ok(Some(older)));
    }

    #[test]
    fn what_is_not_certain_is_refused() {
        let error = translated("CREATE TABLE t (a TEXT) COLLATE utf8mb4_xx_0900_ai_ci", 45).unwrap_err();
        assert_eq!(error, "servers before 8.0 have nothing like collation utf8mb4_xx_0900_ai_ci");
        let error =
            translated("CREATE TABLE t (a TEXT COMMENT 'x) COLLATE utf8mb4_0900_bin", 45).unwrap_err();
        assert!(error.starts_with("a text or comment"), "{error}");
        let error = translated("CREATE TABLE t (a TEXT) COLLATE utf8mb4_0900_bin", 28).unwrap_err();
        assert!(error.starts_with("the statement's character set"), "{error}");
        assert!(translated("CREATE TABLE t (a TEXT) COLLATE gbk_bin", 28).unwrap().is_none());
    }

    #[test]
    fn a_table_of_a_select_is_no_longer_one_transaction() {
        let statement = |option: &str| format!("CREATE TABLE `a`.`u` (\n  `id` int NOT NULL\n) {option}");
        let atomic = query_of(&variables(45, 45), &statement("START TRANSACTION"), CRC32);
        let older = query_of(&variables(45, 45), &statement(&" ".repeat(17)), CRC32);
        assert_eq!(for_older(&atomic, CRC32), Ok(Some(older)));
        let error = with(&atomic, CRC32, Treatment::Refused).unwrap_err();
        assert!(error.contains("MySQL before that can't apply"), "{error}");
        let usual = query_of(&variables(45, 45), "CREATE TABLE t (a INT)", CRC32);
        assert_eq!(with(&usual, CRC32, Treatment::Refused), Ok(None));
        let tricky = query_of(&variables(28, 45), &statement("START TRANSACTION"), CRC32);
        assert!(for_older(&tricky, CRC32).unwrap_err().starts_with("the statement's character set"));
    }

    #[test]
    fn a_server_that_knows_the_collations_keeps_them() {
        let statement = "CREATE TABLE u (a TEXT COLLATE utf8mb4_0900_bin) START TRANSACTION";
        let atomic = query_of(&variables(255, 255), statement, CRC32);
        let frame = EventFrame::from_bytes(&atomic, 4).unwrap();
        let fitted = super::for_older(&frame, CRC32, Treatment::Passed, Treatment::Translated);
        let expected = statement.replace("START TRANSACTION", &" ".repeat(17));
        assert_eq!(fitted, Ok(Some(query_of(&variables(255, 255), &expected, CRC32))));
    }

    #[test]
    fn user_variables_have_a_collation() {
        let with = |collation| {
            let value =
                UserVarValue { value_type: UserVarType::STRING, collation, bytes: b"x", flags: Some(0) };
            let body = UserVarEvent { name: b"a", value: Some(value) }.encode().unwrap();
            event_with(EventType::USER_VAR, &body, CRC32)
        };
        assert_eq!(for_older(&with(255), CRC32), Ok(Some(with(224))));
        assert_eq!(for_older(&with(45), CRC32), Ok(None));
        let null = UserVarEvent { name: b"a", value: None }.encode().unwrap();
        assert_eq!(for_older(&event_with(EventType::USER_VAR, &null, CRC32), CRC32), Ok(None));
    }
}
