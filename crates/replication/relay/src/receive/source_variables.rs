//! The source's system variables and collations, as clients of the relay ask for them before they dump.
//!
//! They are fetched whenever the relay connects to the source, and stored durably, so that a relay whose source is down
//! answers as well. If the source changes one later, the relay sees it at the next connect.
//!
//! ```text
//! relay.variables      a JSON object: variables by their names, collations
//! ```

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

use binlogz_client_sql::{Collation, SourceVariable, SourceVariables};
use binlogz_relay_log::{Error as LogError, small_file};
use binlogz_source::{Connection, Error as SourceError};
use binlogz_store::{Storage, storage};
use binlogz_wire::result_set::{ResultKind, ResultRow};

use crate::error::{Error, Result};

const NAME: &str = "relay.variables";
/// Some 20 times what a server of 9.7 needs.
const SIZE_MAX: u64 = 4 << 20;
/// ER_UNKNOWN_SYSTEM_VARIABLE and ER_INCORRECT_GLOBAL_LOCAL_VAR name a variable that can't be selected.
const NOT_SELECTABLE: [u16; 2] = [1193, 1238];
/// How many variables a server may list but not select.
const NOT_SELECTABLE_MAX: usize = 64;
/// Values that change by themselves or belong to a session: the relay has its own, and the file would be written at
/// each connect.
const FLEETING: [&str; 14] = [
    "error_count",
    "gtid_executed",
    "gtid_owned",
    "gtid_purged",
    "identity",
    "insert_id",
    "last_insert_id",
    "proxy_user",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "statement_id",
    "timestamp",
    "warning_count",
];

/// Asks the source for all its variables and collations.
///
/// # Errors
///
/// The connection broke, or the source refuses even SHOW VARIABLES.
fn fetch(connection: &mut Connection) -> Result<SourceVariables> {
    let mut variables = fetch_variables(connection, "GLOBAL", &BTreeMap::new())?;
    for (name, mut variable) in fetch_variables(connection, "SESSION", &variables)? {
        variable.only_in_sessions = true;
        variables.insert(name, variable);
    }
    let collations = connection.query("SHOW COLLATION")?.into_iter().filter_map(collation).collect();
    Ok(SourceVariables { variables, collations })
}

/// The variables of a scope, without those that are known.
fn fetch_variables(
    connection: &mut Connection,
    scope: &str,
    known: &BTreeMap<String, SourceVariable>,
) -> Result<BTreeMap<String, SourceVariable>> {
    let shown = connection.query(&format!("SHOW {scope} VARIABLES"))?;
    let shown: Vec<(String, String)> = shown
        .into_iter()
        .filter_map(|row| {
            let mut cells = row.into_iter().map(text);
            Some((cells.next()??, cells.next()?.unwrap_or_default()))
        })
        .filter(|(name, _)| !known.contains_key(name))
        .collect();
    let names = shown.iter().map(|(name, _)| name.clone()).collect();
    let mut selected = select_all(connection, scope, names)?;
    let mut variables = BTreeMap::new();
    for (name, shown) in shown {
        let (mut shown, (mut value, kind)) = match selected.remove(&name) {
            Some(found) => (shown, found),
            // It can't be selected there either.
            None => (shown.clone(), (Some(shown), ResultKind::TEXT)),
        };
        if FLEETING.contains(&name.as_str()) {
            (shown, value) = match kind.is_text() {
                true => (String::new(), None),
                false => ("0".into(), Some("0".into())),
            };
        }
        variables.insert(name, SourceVariable::new(shown, value, kind));
    }
    Ok(variables)
}

/// The values of all these variables in SELECT, and their kinds; without those that the server does not select.
fn select_all(
    connection: &mut Connection,
    scope: &str,
    mut names: Vec<String>,
) -> Result<BTreeMap<String, (Option<String>, ResultKind)>> {
    for _ in 0..NOT_SELECTABLE_MAX {
        if names.is_empty() {
            break;
        }
        let items: Vec<String> = names.iter().map(|name| format!("@@{scope}.{name}")).collect();
        match connection.query(&format!("SELECT {}", items.join(", "))) {
            Ok(rows) => {
                let row = rows.into_iter().next().unwrap_or_default();
                let kinds = connection.columns().iter().map(|column| column.kind);
                return Ok(names.into_iter().zip(row.into_iter().map(text).zip(kinds)).collect());
            }
            Err(error) => {
                let refused = refused_name(&error).map(str::to_owned);
                let Some(place) = names.iter().position(|name| Some(name) == refused.as_ref()) else {
                    return Err(error.into());
                };
                names.remove(place);
            }
        }
    }
    Ok(BTreeMap::new())
}

/// The variable that a server refuses to select, as in `Unknown system variable 'x'`.
fn refused_name(error: &SourceError) -> Option<&str> {
    let error = error.server_error()?;
    NOT_SELECTABLE.contains(&error.code).then(|| error.message.split('\'').nth(1))?
}

/// A row of SHOW COLLATION: Collation, Charset, Id, Default, …
fn collation(row: ResultRow) -> Option<Collation> {
    let mut cells = row.into_iter().map(text);
    let mut next = || cells.next().flatten();
    let name = next()?;
    let character_set = next()?;
    let id = next()?;
    let default = next();
    Some(Collation {
        id: id.parse().ok()?,
        name,
        character_set,
        is_default: default.as_deref() == Some("Yes"),
    })
}

fn text(cell: Option<Vec<u8>>) -> Option<String> {
    cell.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The known variables of the source.
#[derive(Debug)]
pub(crate) struct KnownVariables {
    storage: Arc<dyn Storage>,
    known: Mutex<KnownSource>,
}

#[derive(Debug, Default)]
struct KnownSource {
    latest: Option<Arc<SourceVariables>>,
    /// Whether the file has the latest.
    is_stored: bool,
}

impl KnownVariables {
    /// Reads the stored variables. The second value says why the file is not used: the source will be asked again.
    pub(crate) fn open(storage: Arc<dyn Storage>) -> (Self, Option<Error>) {
        let read = small_file(storage.as_ref(), NAME, SIZE_MAX).and_then(|text| {
            let expected = "the source's variables; they are fetched again";
            let parse = |text: String| {
                serde_json::from_str(&text).map_err(|_| LogError::damaged(NAME, &text, expected))
            };
            text.map(parse).transpose()
        });
        let (latest, unused) = match read {
            Ok(known) => (known.map(Arc::new), None),
            Err(error) => (None, Some(error.into())),
        };
        let known = KnownSource { is_stored: latest.is_some(), latest };
        (KnownVariables { storage, known: Mutex::new(known) }, unused)
    }

    pub(crate) fn get(&self) -> Option<Arc<SourceVariables>> {
        self.known.lock().latest.clone()
    }

    /// Asks the source, and keeps the answer.
    ///
    /// # Errors
    ///
    /// The connection broke, or the answer could not be stored; it is used all the same then.
    pub(crate) fn ask(&self, connection: &mut Connection) -> Result<()> {
        self.set(fetch(connection)?)
    }

    fn set(&self, variables: SourceVariables) -> Result<()> {
        let variables = Arc::new(variables);
        let mut known = self.known.lock();
        if known.is_stored && known.latest.as_ref() == Some(&variables) {
            return Ok(());
        }
        *known = KnownSource { latest: Some(Arc::clone(&variables)), is_stored: false };
        self.store(&variables)?;
        known.is_stored = true;
        Ok(())
    }

    fn store(&self, variables: &SourceVariables) -> Result<()> {
        let mut json = serde_json::to_vec_pretty(variables)
            .map_err(|error| Error::Io { doing: format!("write {NAME}"), source: error.into() })?;
        json.push(b'\n');
        storage::replace(self.storage.as_ref(), NAME, &json).map_err(Error::io(format!("write {NAME}")))
    }
}

#[cfg(test)]
mod tests {
    use binlogz_store::MemoryStorage;

    use super::*;

    #[test]
    fn what_the_source_said_is_there_after_a_restart() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let (known, unused) = KnownVariables::open(Arc::clone(&storage));
        assert!(known.get().is_none() && unused.is_none());
        let mut said = SourceVariables::default();
        let switch = SourceVariable::new("ON".into(), Some("1".into()), ResultKind::INTEGER);
        let null = SourceVariable::new(String::new(), None, ResultKind::TEXT);
        let text = SourceVariable::new("a 'b'\n".into(), Some("a 'b'\n".into()), ResultKind::TEXT);
        assert!(switch.is_switch() && !null.is_switch() && !text.is_switch());
        for (name, variable) in [("autocommit", switch), ("init_file", null), ("init_connect", text)] {
            said.variables.insert(name.into(), variable);
        }
        let row = ["latin1_bin", "latin1", "47", "", "Yes", "1"].map(|cell| Some(cell.into()));
        said.collations.extend(collation(row.into()));
        known.set(said.clone()).unwrap();
        let (known, unused) = KnownVariables::open(Arc::clone(&storage));
        assert_eq!((known.get().as_deref(), unused.map(|error| error.to_string())), (Some(&said), None));
        assert_eq!(said.collation(47).unwrap().name, "latin1_bin");

        for damaged in [&b"{"[..], b"", b"{\"variables\": 7}"] {
            storage::replace(storage.as_ref(), NAME, damaged).unwrap();
            let (known, unused) = KnownVariables::open(Arc::clone(&storage));
            assert!(known.get().is_none());
            assert!(unused.unwrap().to_string().contains(NAME));
        }
    }
}
